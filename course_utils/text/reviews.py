"""Film reviews with a label: short ones that ship with the course, and rt-polarity.

In most of the shipped reviews word order decides: for "The plot is weak, but the film is great."
there is also "The plot is great, but the film is weak.", with the same words and the other label.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cache
from random import Random

from course_utils.text.corpora import CorpusError, corpus_file
from course_utils.text.review_grammar import CONSTRUCTIONS, draw
from course_utils.text.text import normalise

SPLITS = ("train", "test")
SIZES = {"train": 8_000, "test": 1_000}
LARGEST = {"train": 20_000, "test": 3_000}


@dataclass(frozen=True)
class Review:
    """A text, its label (1 = positive, 0 = negative), and how it is built, where that is known."""

    text: str
    label: int
    construction: str = ""


def reviews(split: str = "train", size: int | None = None) -> list[Review]:
    """Short reviews, alike on every machine; a smaller set is the beginning of a larger one.

    Each positive review is followed by its negative counterpart, so that any even number of them
    is balanced. No review of "test" is in "train", nor is its combination: two opinions such as
    great/terrible and strong/clumsy, or an opinion and what it is about, that never stand together
    in training.

    Args:
        size: by default 8,000 of "train" and 1,000 of "test".

    Raises:
        ValueError: an unknown split, or a size below 1 or above what there is.
    """
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}: use one of {', '.join(SPLITS)}")
    size = SIZES[split] if size is None else size
    if not 1 <= size <= LARGEST[split]:
        raise ValueError(f"size must lie in 1..{LARGEST[split]} for {split!r}, got {size}")
    return _drawn()[split][:size]


@cache
def _drawn() -> dict[str, list[Review]]:
    """All reviews, by split."""
    rng, seen = Random("short film reviews"), set()
    found = {split: [] for split in SPLITS}
    while any(len(found[split]) < LARGEST[split] for split in SPLITS):
        name, combination, *texts = draw(rng)
        split = _split_of(combination)
        if len(found[split]) < LARGEST[split] and seen.isdisjoint(texts):
            seen.update(texts)
            found[split] += [Review(text, label, name) for text, label in zip(texts, (1, 0))]
    return found


def _split_of(combination: frozenset[str]) -> str:
    """A stable rule: about one combination in seven is held out."""
    return "test" if zlib.crc32(" + ".join(sorted(combination)).encode()) % 7 == 0 else "train"


def constructions() -> dict[str, tuple[Review, Review]]:
    """The name of every construction with a positive and a negative example."""
    examples = {}
    for positive, negative in zip(*[iter(reviews("train"))] * 2):
        examples.setdefault(positive.construction, (positive, negative))
    return {name: examples[name] for name in CONSTRUCTIONS}


def rt_polarity() -> list[Review]:
    """10,662 real snippets of film reviews (Pang and Lee, 2005), positive and negative in turn.

    Raises:
        CorpusError: a file cannot be had, is not UTF-8, or holds fewer reviews than the other.
    """
    sides = []
    for name, label in (("rt-polarity.pos", 1), ("rt-polarity.neg", 0)):
        try:
            text = corpus_file(name).read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise CorpusError(f"{name} is not UTF-8 ({error.reason}): load it again") from None
        lines = [normalise(line) for line in text.split("\n")]
        sides.append([Review(line, label) for line in lines if line])
    positive, negative = sides
    if len(positive) != len(negative):
        raise CorpusError(
            f"rt-polarity has {len(positive):,} positive and {len(negative):,} negative reviews "
            "where there should be equally many: load the files again"
        )
    return [review for couple in zip(positive, negative) for review in couple]
