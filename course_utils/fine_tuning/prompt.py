"""Prompt-tuning: trained vectors before the embeddings of the tokens (notes 002-47)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.fine_tuning.freezing import check_size
from course_utils.masks import check_tokens, combine_masks, mask_from_valid_lens
from course_utils.token_encoder import TokenEncoder
from course_utils.transformer import run_blocks


class PromptEncoder(nn.Module):
    """A frozen `TokenEncoder` that reads m trained vectors before its tokens.

    The vectors start as embeddings of tokens drawn at random (Lester et al. 2021, section 3.2),
    and the tokens keep the positions that they have without them.

    Args:
        encoder: the pre-trained trunk; its weights are frozen here, and are not copied.
        length: m.

    Raises:
        ValueError: length is below 1.
    """

    def __init__(self, encoder: TokenEncoder, length: int):
        super().__init__()
        check_size("length", length)
        self.encoder = encoder.requires_grad_(False)
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
        the tokens that a padding mask shows; under a mask with one row per token, such as a
        causal one, it looks at itself only, so that it carries nothing to earlier tokens.
        """
        encoder, m = self.encoder, len(self.prompt)
        check_tokens(tokens, encoder.vocab_size)
        batch, steps = tokens.shape
        if valid_lens is not None:
            mask = combine_masks(mask, mask_from_valid_lens(valid_lens, steps, batch))
        x = encoder.positions(encoder.embedding(tokens) * self.d_model**0.5)  # (B, T, d_model)
        x = torch.cat([self.prompt.expand(batch, -1, -1), x], dim=1)  # (B, m + T, d_model)
        x, maps = run_blocks(encoder.blocks, x, self._widen(mask), return_weights=return_weights)
        x = encoder.norm(x[:, m:])
        return (x, maps) if return_weights else x

    def _widen(self, mask: Tensor | None) -> Tensor | None:
        """(., ., 1 or T, T) -> (., ., 1 or m + T, m + T)."""
        if mask is None:
            return None
        m = len(self.prompt)
        if mask.shape[-2] > 1:
            mask = F.pad(mask, (0, 0, m, 0), value=False)
        return F.pad(mask, (m, 0), value=True)
