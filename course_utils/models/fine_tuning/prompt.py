"""Prompt-tuning: trained vectors before the embeddings of the tokens."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.models.fine_tuning.freezing import check_size, freeze
from course_utils.models.token_encoder import TokenEncoder
from course_utils.models.trunk import run_blocks


class PromptEncoder(nn.Module):
    """A frozen `TokenEncoder` that reads m trained vectors before its tokens.

    The vectors start as embeddings of tokens drawn at random (Lester et al. 2021, section 3.2),
    and the tokens keep the positions that they have without them.

    Args:
        encoder: the pre-trained trunk; its weights are frozen here, and are not copied.
        length: m.

    Raises:
        TypeError: the trunk is no `TokenEncoder`, such as one that has a prompt already.
        ValueError: length is below 1.
    """

    added = ("prompt",)

    def __init__(self, encoder: TokenEncoder, length: int):
        super().__init__()
        check_size("length", length)
        if not isinstance(encoder, TokenEncoder):
            raise TypeError(f"a prompt is for a TokenEncoder, got {type(encoder).__name__}")
        self.training = encoder.training
        self.encoder = freeze(encoder)
        self.d_model = encoder.d_model
        drawn = torch.randint(encoder.vocab_size, (length,))
        self.prompt = nn.Parameter(encoder.embedding.weight[drawn] * self.d_model**0.5)

    def forward(
        self,
        tokens: Tensor,
        mask: Tensor | None = None,
        *,
        valid_lens: Tensor | None = None,
        return_weights: bool = False,
    ):
        """As `TokenEncoder`: (B, T) ids -> (B, T, d_model); what becomes of the prompt is cut off.

        The maps are (B, h, m + T, m + T). Every token may look at the prompt. The prompt looks at
        itself only, so that under no mask it carries what one token says to another.
        """
        encoder, m = self.encoder, len(self.prompt)
        x, mask = encoder.embed(tokens, mask, valid_lens)  # (B, T, d_model)
        mask = self._widen(mask, x.shape[1], x.device)
        x = torch.cat([self.prompt.expand(len(x), -1, -1), x], dim=1)  # (B, m + T, d_model)
        x, maps = run_blocks(encoder.blocks, x, mask, return_weights=return_weights)
        x = encoder.norm(x[:, m:])
        return (x, maps) if return_weights else x

    def _widen(self, mask: Tensor | None, steps: int, device) -> Tensor:
        """(., ., 1 or T, 1 or T) -> (., ., m + T, m + T)."""
        if mask is None:
            mask = torch.ones(1, 1, 1, 1, dtype=torch.bool, device=device)
        m = len(self.prompt)
        mask = mask.expand(-1, -1, steps, steps)
        mask = F.pad(mask, (0, 0, m, 0), value=False)  # rows of the prompt
        return F.pad(mask, (m, 0), value=True)  # columns of the prompt
