"""The grammar that made the small world: which pairs `course_utils.text.small_world` ships.

A synchronous grammar writes both sides of a pair at once from one hand-made lexicon. The
conventions of its French and of its alignments stand in `course_utils.text.small_world`. A
construction is drawn by chance, fills itself by chance, and its sentence goes to a split by a
stable rule (`splits.py`).
"""

from __future__ import annotations

from random import Random

from course_utils.text.corpora import load_corpus, reads_as
from course_utils.text.pairs import Pair
from course_utils.text.small_world import LARGEST, SIZES
from course_utils.text.text import tokenize

# Importing these registers their constructions, in this order.
from . import being, comparisons, questions, requests, sentences, statements  # noqa: F401
from .constructions import CONSTRUCTIONS
from .lexicon import nouns
from .phrases import NAMES
from .rules import Phrase, realise
from .splits import SPLITS, split_of

_PATIENCE = 20_000  # draws in a row with nothing new, after which a split counts as used up
_LEMMAS = {form: noun.en[0] for noun in nouns.values() for form in noun.en} | {n: n for n in NAMES}


class Draws:
    """The sentences that one seed draws, sorted into the splits as they come."""

    def __init__(self, seed: int = 0):
        self.rng = Random(f"small world {seed}")
        self.seen: set[str] = set()
        self.splits: dict[str, list[tuple[Pair, str]]] = {split: [] for split in SPLITS}

    def take(self, split: str, size: int) -> list[tuple[Pair, str]]:
        """The first ``size`` pairs of a split, each with the name of its construction."""
        pairs, idle = self.splits[split], 0
        while len(pairs) < size:
            idle = 0 if self._draw() == split else idle + 1
            if idle > _PATIENCE:
                raise ValueError(f"{split!r} has only some {len(pairs):,} pairs: ask for fewer")
        return pairs[:size]

    def _draw(self) -> str | None:
        """Draw one sentence; the split that it went to, or None if it was nothing new."""
        name = self.rng.choice(list(CONSTRUCTIONS))
        sentence = CONSTRUCTIONS[name](self.rng)
        pair = realise(sentence)
        if pair.source in self.seen or _repetitive(sentence):
            return None
        self.seen.add(pair.source)
        split = split_of(pair.source, sentence.marks)
        self.splits[split].append((pair, name))
        return split


def _repetitive(sentence: Phrase) -> bool:
    """Does a noun or name come twice, as in "Paul helps Paul"?"""
    lemmas = [_LEMMAS[word] for word, _ in sentence.en if word in _LEMMAS]
    return len(lemmas) != len(set(lemmas))


def small_world_splits() -> dict[str, list[Pair]]:
    """All pairs that ship, by split.

    A held-out pair has no word that the default training set lacks, and its source reads like none
    of another split, nor like an everyday one.
    """
    draws = Draws()
    splits = {"train": [pair for pair, _ in draws.take("train", LARGEST["train"])]}
    known = set().union(*map(_words, splits["train"][: SIZES["train"]]))
    taken = {reads_as(p.source) for p in splits["train"] + load_corpus("everyday").pairs}
    for split in SPLITS[1:]:
        kept: list[Pair] = []
        asked = LARGEST[split]
        while len(kept) < LARGEST[split]:
            kept = [
                pair
                for pair, _ in draws.take(split, asked)
                if known.issuperset(_words(pair)) and reads_as(pair.source) not in taken
            ]
            asked += LARGEST[split]
        splits[split] = kept[: LARGEST[split]]
        taken |= {reads_as(pair.source) for pair in splits[split]}
    return splits


def _words(pair: Pair) -> set[tuple[str, str]]:
    sides = (("en", pair.source), ("fr", pair.target))
    return {(lang, word) for lang, text in sides for word in tokenize(text, lang)}
