"""Which sentence belongs to which split: a stable rule, whatever size or seed is asked for."""

from __future__ import annotations

import zlib

# Words and patterns that never stand together in the training set: the compositional split.
HELD_OUT = {
    "eat": "cheese tomato",
    "drink": "tea",
    "buy": "dress piano",
    "red": "car",
    "going to": "read",
}
_PAIRS = [frozenset((a, b)) for a, others in HELD_OUT.items() for b in others.split()]
_ONE_IN = 20  # sentences a random split takes


def split_of(source: str, marks: frozenset[str]) -> str:
    """The split of a sentence, from its text and from the words and patterns it is made of."""
    if any(pair <= marks for pair in _PAIRS):
        return "compositional"
    held_out = zlib.crc32(source.encode("utf-8")) % _ONE_IN == 0
    return "random" if held_out else "train"
