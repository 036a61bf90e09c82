"""Byte-pair encoding (字节对编码) by hand: learned from bytes, applied, undone.

Equal, id by id, to what the library `tokenizers` learns and does in `subwords.py`. Source: Sennrich
et al. 2016, section 3.2; over bytes as in GPT-2 (Radford et al. 2019, section 2.2).
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache

from course_utils.text.text import normalise
from course_utils.text.vocab import RESERVED

_VISIBLE = (*range(33, 127), *range(161, 173), *range(174, 256))  # Latin-1 that can be seen
BYTES = [bytes([b]) for b in (*_VISIBLE, *(b for b in range(256) if b not in _VISIBLE))]

Pair = tuple[int, int]


@cache  # to look through all marks takes a moment, and most who import this cut no words
def _word() -> re.Pattern[str]:
    """Letters, digits, and the rest stay apart, each with the space before it.

    GPT-2 cuts before every mark on a letter, which leaves Hindi or Thai in crumbs. (It also counts
    characters such as a superscript two or a fraction as digits; here they go with the letters.)
    """
    # accents, vowels, viramas, and the forms of a Chinese character
    places = map(chr, (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0)))
    marks = "".join(c for c in places if unicodedata.category(c)[0] == "M")
    return re.compile(
        rf"'(?:[stmd]|re|ve|ll)| ?[^\W\d_](?:[^\W\d_]|[{marks}])*| ?\d+| ?(?:[^\s\w]|_)+"
        r"|\s+(?!\S)|\s+"
    )


def split_words(text: str) -> list[bytes]:
    """The pieces of a line that no merge crosses; every word carries the space before it.

    >>> split_words("It's 42 cafés.")
    [b' It', b"'s", b' 42', b' caf\\xc3\\xa9s', b'.']
    """
    line = normalise(text)
    return [word.encode() for word in _word().findall(" " + line)] if line else []


def merge(ids: list[int], pair: Pair, new: int) -> list[int]:
    """Each occurrence of the pair becomes one id, from left to right.

    >>> merge([1, 1, 1, 2], (1, 1), 9)
    [9, 1, 2]
    """
    merged = []
    for i in ids:
        if merged and (merged[-1], i) == pair:
            merged[-1] = new
        else:
            merged.append(i)
    return merged


class BytePairs:
    """A vocabulary of byte strings: the reserved tokens, 256 bytes, and one piece a merge.

    Args:
        merges: pairs of pieces in the order in which they were learned.

    Raises:
        ValueError: a merge names a piece that is not there yet.
    """

    def __init__(self, merges: Iterable[tuple[bytes, bytes]] = ()):
        self.pieces: list[bytes] = [name.encode() for name in RESERVED] + BYTES
        self._ids = {piece: i for i, piece in enumerate(self.pieces) if i >= len(RESERVED)}
        self.merges: list[tuple[bytes, bytes]] = []
        self._ranks: dict[Pair, tuple[int, int]] = {}  # pair -> when it was learned, what it makes
        self._known: dict[bytes, list[int]] = {}  # words that were encoded before
        for left, right in merges:
            if left not in self._ids or right not in self._ids:
                raise ValueError(
                    f"merge {len(self.merges)} joins {left!r} and {right!r}, not both known"
                )
            self._add((self._ids[left], self._ids[right]))

    def _add(self, pair: Pair) -> int:
        left, right = (self.pieces[i] for i in pair)
        new = self._ids.setdefault(left + right, len(self.pieces))
        if new == len(self.pieces):  # else another pair has made this piece before
            self.pieces.append(left + right)
        self.merges.append((left, right))
        self._ranks[pair] = (len(self._ranks), new)
        return new

    def __len__(self) -> int:
        return len(self.pieces)

    @classmethod
    def learn(cls, texts: Iterable[str], size: int) -> "BytePairs":
        """Join the most frequent pair of neighbours, again and again, up to `size` pieces.

        Of equally frequent pairs the one with the smaller ids comes first. Learning ends early
        when every word is one piece.

        Raises:
            ValueError: `size` does not hold the reserved tokens and every byte.
        """
        found = cls()
        if size < len(found):
            raise ValueError(f"size must be at least {len(found)}, got {size}")
        counted = Counter(word for text in texts for word in split_words(text))
        spelled = [[found._ids[bytes([b])] for b in word] for word in counted]
        times = list(counted.values())
        counts, where = Counter(), defaultdict(set)  # of each pair: how often, in which words

        def count(number: int, sign: int) -> None:
            for pair in zip(spelled[number], spelled[number][1:]):
                counts[pair] += sign * times[number]
                where[pair].add(number)

        for number in range(len(spelled)):
            count(number, +1)
        while len(found) < size and (most := max(counts.values(), default=0)):
            pair = min(p for p, n in counts.items() if n == most)
            new = found._add(pair)
            for number in where.pop(pair):
                count(number, -1)
                spelled[number] = merge(spelled[number], pair, new)
                count(number, +1)
        return found

    def encode(self, text: str) -> list[int]:
        """Ids of a normalised line, without reserved ones: merges in the order of learning."""
        return [i for word in split_words(text) for i in self._encode_word(word)]

    def _encode_word(self, word: bytes) -> list[int]:
        if word not in self._known:
            ids = [self._ids[bytes([b])] for b in word]
            while pairs := [p for p in zip(ids, ids[1:]) if p in self._ranks]:
                first = min(pairs, key=self._ranks.__getitem__)
                ids = merge(ids, first, self._ranks[first][1])
            self._known[word] = ids
        return self._known[word]

    def decode(self, ids: Iterable[int]) -> str:
        """The line that some ids spell; reserved ids are left out, broken characters replaced."""
        spelled = b"".join(self.pieces[i] for i in ids if i >= len(RESERVED))
        return spelled.decode("utf-8", errors="replace").strip()
