"""Masked-token training of an encoder, as in BERT: hide some words, guess them from both sides.

The id that stands for a hidden word is the last one of the vocabulary, after all its tokens.
"""

import torch
from torch import Tensor, nn

from course_utils.models.token_encoder import TokenEncoder, tied_output
from course_utils.text.vocab import RESERVED, Vocab


class MaskedTokenModel(nn.Module):
    """Encoder blocks that see both sides, and an output layer (Devlin et al. 2019).

    Args:
        encoder: the trunk; the output layer shares the weights of its embedding.
    """

    def __init__(self, encoder: TokenEncoder):
        super().__init__()
        self.encoder = encoder
        self.output = tied_output(encoder)

    def forward(self, tokens: Tensor, valid_lens: Tensor | None = None) -> Tensor:
        """(B, T) ids -> (B, T, V) logits of what stands (or stood) at each position.

        Of (B,) `valid_lens` tokens are real; the padding behind them is looked at by none.
        """
        return self.output(self.encoder(tokens, valid_lens=valid_lens))


def mask_tokens(
    tokens: Tensor, mask_id: int, *, share: float = 0.15, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Choose some tokens to be guessed, and hide most of them.

    Source: Devlin et al. 2019, section 3.1. Of the chosen tokens 80 % become `mask_id`, 10 % any
    ordinary token, and 10 % stay, so that the model cannot trust what it reads.

    Args:
        tokens: (B, T) ids; reserved ones, such as padding, are never chosen.
        mask_id: the id after the last token of the vocabulary.
        share: of the tokens that is chosen.

    Returns:
        the tokens to read and the tokens to guess, (B, T) each; the latter are padding, which the
        loss leaves out, wherever nothing is to be guessed.

    Raises:
        ValueError: `mask_id` is no id above all tokens, or the share is not in 0..1.
    """
    if int(tokens.max()) >= mask_id or mask_id <= len(RESERVED):
        raise ValueError(
            f"mask_id must be len(vocab), the id after the last token, got {mask_id} for tokens "
            f"up to {int(tokens.max())}"
        )
    if not 0 <= share <= 1:
        raise ValueError(f"share must lie in 0..1, got {share}")
    chance, kind = torch.rand((2, *tokens.shape), generator=generator)
    others = torch.randint(len(RESERVED), mask_id, tokens.shape, generator=generator)
    chosen = (chance < share) & (tokens >= len(RESERVED))
    read = torch.where(chosen & (kind < 0.8), mask_id, tokens)
    read = torch.where(chosen & (kind >= 0.9), others, read)
    return read, torch.where(chosen, tokens, Vocab.pad)
