"""Prefix-tuning: trained keys and values that every query may look at."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.models.attention import MultiHeadAttention
from course_utils.models.fine_tuning.freezing import check_size, encoder_blocks, freeze


class PrefixAttention(MultiHeadAttention):
    """Multi-head attention with m trained keys and values before those of the tokens.

    The weights grow from (B, h, Tq, Tk) to (B, h, Tq, m + Tk); no mask hides the prefix, so a
    query that may look at no token still looks at the prefix. Source: Li and Liang 2021, section
    4, without the network that they use to train the prefix.

    Args:
        base: the pre-trained layer, whose projections are used and frozen, and not copied.
        length: m.

    Raises:
        ValueError: length is below 1, or the layer is no plain attention, such as one that has a
            prefix already.
    """

    added = ("prefix_keys", "prefix_values")

    def __init__(self, base: MultiHeadAttention, length: int):
        check_size("length", length)
        _check_plain(base)
        super().__init__(base.d_model, base.num_heads, base.attention.dropout.p)
        base.requires_grad_(False)
        self.W_q, self.W_k, self.W_v, self.W_o = base.W_q, base.W_k, base.W_v, base.W_o
        self.attention, self.training = base.attention, base.training
        size = (1, base.num_heads, length, base.d_model // base.num_heads)
        like = next(base.parameters())
        self.prefix_keys = nn.Parameter(torch.randn(size).to(like))  # (1, h, m, d_model / h)
        self.prefix_values = nn.Parameter(0.1 * torch.randn(size).to(like))

    def attend(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None = None,
        return_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """As in `MultiHeadAttention`, with the prefix in front of keys and values."""
        if mask is not None:
            mask = mask.expand(*mask.shape[:-1], keys.shape[2])
            mask = F.pad(mask, (self.prefix_keys.shape[2], 0), value=True)  # (., ., ., m + Tk)
        keys, values = (
            torch.cat([prefix.expand(len(x), -1, -1, -1), x], dim=2)  # (B, h, m + Tk, d_model / h)
            for prefix, x in ((self.prefix_keys, keys), (self.prefix_values, values))
        )
        return super().attend(queries, keys, values, mask, return_weights)

    def zero_fully_masked(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Leave x as it is: every query may look at the prefix."""
        return x


def _check_plain(attention: nn.Module) -> None:
    if isinstance(attention, PrefixAttention) or not isinstance(attention, MultiHeadAttention):
        raise ValueError(
            f"a prefix is for plain multi-head attention, but here is {type(attention).__name__}: "
            "add it once, and before the adapters"
        )


def add_prefix(model: nn.Module, length: int) -> nn.Module:
    """Freeze the model and give the attention of every encoder block a prefix, in place.

    Returns:
        the model.

    Raises:
        ValueError: there is no `EncoderBlock`, length is below 1, or the attention has a prefix or
            an adapter already; the model is then as before.
    """
    blocks = encoder_blocks(model)
    check_size("length", length)
    for block in blocks:
        _check_plain(block.attention)
    for block in blocks:
        block.attention = PrefixAttention(block.attention, length)
    return freeze(model)
