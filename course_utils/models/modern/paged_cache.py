"""A key-value cache in pages (分页缓存), and one in bytes: memory as served models use it."""

from dataclasses import dataclass, field

import torch
from torch import Tensor


class PagePool:
    """Memory for one layer's keys and values, cut into pages that texts take and give back.

    A text holds a list of page numbers, its page table: no memory is reserved for lengths that may
    never come, and a page can serve several texts that begin alike. Source: Kwon et al. 2023,
    PagedAttention, section 4.

    Args:
        num_pages: how many pages there are.
        page_size: positions a page.
        num_heads, d: heads of keys and values, and their size.
    """

    def __init__(self, num_pages: int, page_size: int, num_heads: int, d: int, dtype=torch.float32):
        self.keys = torch.zeros(num_pages, num_heads, page_size, d, dtype=dtype)
        self.values = torch.zeros_like(self.keys)
        self.page_size = page_size
        self.users = [0] * num_pages  # how many texts hold each page

    @property
    def free(self) -> int:
        """Pages that no text holds."""
        return self.users.count(0)

    def take(self) -> int:
        """A free page, by number.

        Raises:
            MemoryError: there is none.
        """
        if not self.free:
            raise MemoryError(f"all {len(self.users)} pages are taken: release a text")
        page = self.users.index(0)
        self.users[page] = 1
        return page


@dataclass
class PagedText:
    """One text's keys and values: its page table and its length."""

    pool: PagePool
    table: list[int] = field(default_factory=list)
    length: int = 0

    def append(self, keys: Tensor, values: Tensor) -> None:
        """One position more: (h, d) each. A shared last page is copied first (copy on write)."""
        place = self.length % self.pool.page_size
        if not place:
            self.table.append(self.pool.take())
        elif self.pool.users[self.table[-1]] > 1:
            old, new = self.table[-1], self.pool.take()
            self.pool.keys[new], self.pool.values[new] = self.pool.keys[old], self.pool.values[old]
            self.pool.users[old] -= 1
            self.table[-1] = new
        page = self.table[-1]
        self.pool.keys[page, :, place], self.pool.values[page, :, place] = keys, values
        self.length += 1

    def read(self) -> tuple[Tensor, Tensor]:
        """Keys and values in order, (h, T, d) each, gathered from the pages."""
        return tuple(
            x[self.table].transpose(0, 1).flatten(1, 2)[:, : self.length]
            for x in (self.pool.keys, self.pool.values)
        )

    def fork(self) -> "PagedText":
        """A text that begins as this one does, on the same pages."""
        for page in self.table:
            self.pool.users[page] += 1
        return PagedText(self.pool, self.table[:], self.length)

    def release(self) -> None:
        """Give the pages back; those that another text holds stay with it."""
        for page in self.table:
            self.pool.users[page] -= 1
        self.table, self.length = [], 0


@dataclass
class Quantised:
    """Numbers as int8 with one scale a row: x is about `codes * scale`."""

    codes: Tensor  # (..., d) int8
    scale: Tensor  # (..., 1) floating-point

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes + self.scale.nbytes

    def dequantise(self) -> Tensor:
        return self.codes.to(self.scale.dtype) * self.scale


def quantise(x: Tensor) -> Quantised:
    """Each row (the last axis) to -127 .. 127, its largest number to the end of the range.

    For keys and values (B, h, T, d) a row is one head at one position. No number moves by more
    than half a step, its row's largest absolute value / 254.
    """
    scale = x.abs().amax(dim=-1, keepdim=True).clamp(min=torch.finfo(x.dtype).tiny) / 127
    return Quantised((x / scale).round().to(torch.int8), scale)
