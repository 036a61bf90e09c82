"""Sort sequences into classes: an encoder, a mean over the real tokens, and one linear layer."""

from torch import Tensor, nn

from course_utils.models.masks import mask_from_lengths
from course_utils.models.token_encoder import TokenEncoder


def masked_mean(x: Tensor, valid_lens: Tensor) -> Tensor:
    """Mean over the real steps; what lies in padding never counts, be it infinite or NaN.

    Args:
        x: (B, T, d).
        valid_lens: (B,) number of real steps, from 1 to T.

    Returns:
        (B, d)

    Raises:
        TypeError: the lengths are not integers.
        ValueError: the lengths do not fit, or one of them is 0: nothing has no mean.
    """
    batch, steps, _ = x.shape
    real = mask_from_lengths(valid_lens, steps, batch).view(batch, steps, 1)
    lengths = real.sum(dim=1)  # (B, 1)
    if (lengths == 0).any():
        raise ValueError(f"every sequence needs at least one token, got {valid_lens.tolist()}")
    return x.masked_fill(~real, 0.0).sum(dim=1) / lengths


class SequenceClassifier(nn.Module):
    """One label for a whole sequence.

    Args:
        encoder: turns (B, T) ids into (B, T, d_model).
        num_classes: number of labels.
    """

    def __init__(self, encoder: TokenEncoder, num_classes: int = 2):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(encoder.d_model, num_classes)

    def forward(
        self, tokens: Tensor, valid_lens: Tensor | None = None, *, return_weights: bool = False
    ):
        """Read whole sequences.

        Args:
            tokens: (B, T) ids.
            valid_lens: (B,) number of real tokens; None if there is no padding.

        Returns:
            logits (B, num_classes), and with `return_weights` one (B, h, T, T) a layer.
        """
        if valid_lens is None:
            valid_lens = tokens.new_full((len(tokens),), tokens.shape[1])
        x = self.encoder(tokens, valid_lens=valid_lens, return_weights=return_weights)
        x, maps = x if return_weights else (x, None)
        logits = self.head(masked_mean(x, valid_lens))
        return (logits, maps) if return_weights else logits
