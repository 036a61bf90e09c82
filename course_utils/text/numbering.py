"""Many lines of one language, as numbers."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from course_utils.text.text import tokenize, words
from course_utils.text.vocab import Vocab


class Lines:
    """Lines cut into tokens. Of the words between two spaces each different one is cut once.

    Args:
        texts: in any spelling that `normalise` accepts.
        lang: "en" or "fr".
    """

    def __init__(self, texts: Iterable[str], lang: str):
        rows = [words(text) for text in texts]
        kinds, which = _numbered(chain.from_iterable(rows))  # which[i]: the kind of word i
        pieces = [tokenize(word, lang) for word in kinds]
        self._tokens, number = _numbered(chain.from_iterable(pieces))
        sizes = _lengths(pieces)  # tokens of each kind of word
        taken = sizes[which]  # of each word
        ends = np.concatenate(([0], np.cumsum(taken)))
        # token t of word i is token t of its kind
        shifts = (np.cumsum(sizes) - sizes)[which] - ends[:-1]
        self._numbers = number[np.repeat(shifts, taken) + np.arange(ends[-1])]
        self._ends = ends[np.concatenate(([0], np.cumsum(_lengths(rows))))]  # of the lines

    def counts(self) -> Counter[str]:
        """How often each token occurs."""
        times = np.bincount(self._numbers, minlength=len(self._tokens))
        return Counter(dict(zip(self._tokens, times.tolist(), strict=True)))

    def ids(
        self, vocab: Vocab, before: Sequence[int] = (), after: Sequence[int] = ()
    ) -> list[list[int]]:
        """The ids of each line, between those that stand before and after it."""
        table = np.array(vocab.encode(self._tokens), dtype=np.int64)
        ids, ends = table[self._numbers].tolist(), self._ends.tolist()
        return [[*before, *ids[a:b], *after] for a, b in zip(ends, ends[1:])]


def _numbered(items: Iterable[str]) -> tuple[list[str], np.ndarray]:
    """The different items, and for each item the place of its like among them."""
    places: defaultdict[str, int] = defaultdict()
    places.default_factory = places.__len__
    which = np.fromiter(map(places.__getitem__, items), dtype=np.int64)
    return list(places), which


def _lengths(rows: Sequence[Sequence[str]]) -> np.ndarray:
    return np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
