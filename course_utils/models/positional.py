"""Where a token stands: sinusoidal and learned positional encodings."""

import torch
from torch import Tensor, nn


def frequencies(d: int, base: float = 10_000.0) -> Tensor:
    """base^(-2i/d) for i = 0 .. d/2 - 1: how far pair i turns from one position to the next.

    Sinusoidal encodings and rotary positions share them. Source: Vaswani et al. 2017, section 3.5.

    Returns:
        (d/2,) float64, in radians a position, from 1 down to almost 1 / base.

    Raises:
        ValueError: d is odd, since a rotation takes two columns, or below 2.
    """
    if d < 2 or d % 2:
        raise ValueError(f"the size must be even, because a rotation takes two columns, got {d}")
    return base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)


def sinusoidal_table(max_len: int, d_model: int) -> Tensor:
    """PE[pos, 2i] = sin(pos / 10000^(2i/d)), PE[pos, 2i+1] = cos(pos / 10000^(2i/d)).

    Source: Vaswani et al. 2017, section 3.5.

    Returns:
        (max_len, d_model) float32, computed in float64.

    Raises:
        ValueError: d_model is odd (sine and cosine come in pairs) or a size is below 1.
    """
    if d_model < 2 or d_model % 2:
        raise ValueError(
            f"d_model must be even, because sine and cosine columns come in pairs, got {d_model}"
        )
    if max_len < 1:
        raise ValueError(f"max_len must be at least 1, got {max_len}")
    position = torch.arange(max_len, dtype=torch.float64).unsqueeze(1)  # (max_len, 1)
    angle = position * frequencies(d_model)  # (max_len, d/2)
    table = torch.empty(max_len, d_model, dtype=torch.float64)
    table[:, 0::2] = torch.sin(angle)
    table[:, 1::2] = torch.cos(angle)
    return table.float()


def _check(x: Tensor, offset: int, table: Tensor) -> None:
    max_len, d_model = table.shape
    if x.dim() != 3 or x.shape[-1] != d_model:
        raise ValueError(
            f"embeddings must be (B, T, d_model) with d_model = {d_model}, got {tuple(x.shape)}"
        )
    if offset < 0 or offset + x.shape[1] > max_len:
        raise ValueError(
            f"positions {offset}..{offset + x.shape[1] - 1} do not fit in max_len = {max_len}: "
            "shorten the sequence or build the encoding with a larger max_len"
        )


class PositionalEncoding(nn.Module):
    """Add the sinusoidal table to the embeddings, then drop out (Vaswani et al. 2017).

    The table is a buffer: it moves with the module and is not trained. It is not saved, since it
    can be computed anew, so `max_len` may differ between a saved model and the one that loads it.

    Args:
        d_model: even size of an embedding.
        dropout: share of the sums that is dropped in training.
        max_len: longest sequence that can be encoded.
    """

    def __init__(self, d_model: int, dropout: float = 0.0, max_len: int = 1000):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("table", sinusoidal_table(max_len, d_model), persistent=False)

    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        """(B, T, d_model) -> the same shape; the first token stands at position `offset`."""
        _check(x, offset, self.table)
        return self.dropout(x + self.table[offset : offset + x.shape[1]].to(x.dtype))


class LearnedPositionalEmbedding(nn.Module):
    """Add one trained vector per position, as for words (Gehring et al. 2017).

    Args and call are those of `PositionalEncoding`.
    """

    def __init__(self, d_model: int, dropout: float = 0.0, max_len: int = 1000):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.table = nn.Parameter(torch.empty(max_len, d_model))
        nn.init.normal_(self.table, std=0.02)

    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        """(B, T, d_model) -> the same shape; the first token stands at position `offset`."""
        _check(x, offset, self.table)
        return self.dropout(x + self.table[offset : offset + x.shape[1]])
