"""Keys and values of the positions so far, with capacity for those to come."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class _Buffer:
    """Memory for C positions, of which the first `taken` belong to some cache."""

    keys: Tensor  # (B, h, C, d/h)
    values: Tensor  # (B, h, C, d/h)
    taken: int


class KeyValueCache:
    """What a decoder's self-attention may look at: one layer's keys and values.

    A cache is a value: `append` gives a longer one and leaves this one as it is. Yet as long as the
    capacity lasts, it copies nothing that is there already: both share the memory, and each sees
    its own beginning of it. Only where two caches grow from one does the second move out.

    Args:
        keys, values: (B, h, T, d/h) each.
    """

    def __init__(self, keys: Tensor, values: Tensor, buffer: _Buffer | None = None):
        self.keys, self.values = keys, values
        self._buffer = buffer or _Buffer(keys, values, keys.shape[2])

    def __len__(self) -> int:
        """T, the number of positions."""
        return self.keys.shape[2]

    def append(self, keys: Tensor, values: Tensor) -> "KeyValueCache":
        """This cache and (B, h, T', d/h) more."""
        old, new = len(self), len(self) + keys.shape[2]
        if torch.is_grad_enabled():  # gradients need what they went through as it was
            joined = ((self.keys, keys), (self.values, values))
            return KeyValueCache(*(torch.cat(pair, dim=2) for pair in joined))
        # twice what is needed: then all moves together copy each position about once
        buffer = self._buffer if self._may_grow_to(new) else self._moved_to_capacity(2 * new)
        buffer.keys[:, :, old:new], buffer.values[:, :, old:new] = keys, values
        buffer.taken = new
        return _beginning(buffer, new)

    def _may_grow_to(self, length: int) -> bool:
        buffer = self._buffer
        writable = buffer.keys.is_inference() == torch.is_inference_mode_enabled()
        return writable and buffer.taken == len(self) and buffer.keys.shape[2] >= length

    def _moved_to_capacity(self, positions: int) -> _Buffer:
        """Memory of its own, with this cache at its beginning."""
        batch, heads, length, size = self.keys.shape
        keys, values = (
            x.new_empty(batch, heads, positions, size) for x in (self.keys, self.values)
        )
        keys[:, :, :length], values[:, :, :length] = self.keys, self.values
        return _Buffer(keys, values, length)

    def select(self, rows: Tensor) -> "KeyValueCache":
        """The cache of some sentences, in the order of `rows`, with the capacity it had."""
        buffer = _Buffer(self._buffer.keys[rows], self._buffer.values[rows], len(self))
        return _beginning(buffer, len(self))


def _beginning(buffer: _Buffer, length: int) -> KeyValueCache:
    return KeyValueCache(buffer.keys[:, :, :length], buffer.values[:, :, :length], buffer)
