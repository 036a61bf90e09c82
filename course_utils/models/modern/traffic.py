"""Bytes between slow, large memory and the small, fast one beside the processor, counted.

The two-level model of FlashAttention (Dao et al. 2022, section 2 and theorem 2): a kernel loads
what it reads from slow memory and stores what it makes; what it keeps in between costs nothing.
The algorithms run, on zeros, and each load and store is counted.
"""

import math

import torch
from torch import Tensor

from course_utils.models.modern.tiles import tile_forward


class Traffic:
    """Bytes that were loaded from and stored in slow memory."""

    def __init__(self):
        self.loaded = self.stored = 0

    @property
    def total(self) -> int:
        return self.loaded + self.stored

    def load(self, x: Tensor) -> Tensor:
        self.loaded += x.nbytes
        return x

    def store(self, x: Tensor) -> Tensor:
        self.stored += x.nbytes
        return x


class _Slow:
    """A tensor in slow memory, from which one can only take slices, which are counted."""

    def __init__(self, x: Tensor, traffic: Traffic):
        self.shape, self._x, self._traffic = x.shape, x, traffic

    def __getitem__(self, index) -> Tensor:
        return self._traffic.load(self._x[index])


def plain_traffic(num_queries: int, num_keys: int, d: int, dtype=torch.float32) -> Traffic:
    """Of one head in three kernels: scores, softmax, weighted sum."""
    q, k, v = _inputs(num_queries, num_keys, d, dtype)
    t = Traffic()
    scores = t.store(t.load(q) @ t.load(k).mT / math.sqrt(d))  # (1, 1, Tq, Tk)
    weights = t.store(t.load(scores).softmax(dim=-1))  # (1, 1, Tq, Tk)
    t.store(t.load(weights) @ t.load(v))  # (1, 1, Tq, d)
    return t


def tiled_traffic(num_queries: int, num_keys: int, d: int, tile: int, dtype=torch.float32):
    """Of one head in the one kernel of `tile_forward`, which runs here; without a mask."""
    t = Traffic()
    q, k, v = (_Slow(x, t) for x in _inputs(num_queries, num_keys, d, dtype))
    seen = torch.ones(1, dtype=torch.bool).expand(num_queries, num_keys)
    for result in tile_forward(q, k, v, seen, tile):
        t.store(result)
    return t


def tile_bytes(tile: int, d: int, dtype=torch.float32) -> int:
    """What has to fit into fast memory: queries, keys, values, output, and a tile of scores."""
    return (4 * tile * d + tile * tile) * dtype.itemsize


def _inputs(num_queries: int, num_keys: int, d: int, dtype):
    lengths = (num_queries, num_keys, num_keys)
    return (torch.zeros(1, 1, n, d, dtype=dtype) for n in lengths)
