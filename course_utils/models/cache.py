"""Keys and values of the positions so far, with room for those to come."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class _Room:
    """Memory for C positions, of which the first `taken` belong to some cache."""

    keys: Tensor  # (B, h, C, d/h)
    values: Tensor  # (B, h, C, d/h)
    taken: int


class KeyValueCache:
    """What a decoder's self-attention may look at: one layer's keys and values.

    A cache is a value: `append` gives a longer one and leaves this one as it is. Yet it copies
    nothing that is there already, as long as there is room: both share the memory, and each sees
    its own beginning of it. Only where two caches grow from one does the second move out.

    Args:
        keys, values: (B, h, T, d/h) each.
    """

    def __init__(self, keys: Tensor, values: Tensor, room: _Room | None = None):
        self.keys, self.values = keys, values
        self._room = room or _Room(keys, values, keys.shape[2])

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
        room = self._room if self._may_grow_to(new) else self._moved_to_room_for(2 * new)
        room.keys[:, :, old:new], room.values[:, :, old:new] = keys, values
        room.taken = new
        return _beginning(room, new)

    def _may_grow_to(self, length: int) -> bool:
        room = self._room
        writable = room.keys.is_inference() == torch.is_inference_mode_enabled()
        return writable and room.taken == len(self) and room.keys.shape[2] >= length

    def _moved_to_room_for(self, positions: int) -> _Room:
        """Memory of its own, with this cache at its beginning."""
        batch, heads, length, size = self.keys.shape
        keys, values = (
            x.new_empty(batch, heads, positions, size) for x in (self.keys, self.values)
        )
        keys[:, :, :length], values[:, :, :length] = self.keys, self.values
        return _Room(keys, values, length)

    def select(self, rows: Tensor) -> "KeyValueCache":
        """The cache of some sentences, in the order of `rows`, with as much room as before."""
        room = _Room(self._room.keys[rows], self._room.values[rows], len(self))
        return _beginning(room, len(self))


def _beginning(room: _Room, length: int) -> KeyValueCache:
    return KeyValueCache(room.keys[:, :, :length], room.values[:, :, :length], room)
