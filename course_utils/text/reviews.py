"""Film reviews with a label: short ones that ship with the course, and rt-polarity.

A grammar wrote the shipped ones (`course_utils.maintain.review_grammar`). In most of them word
order decides: for "The plot is weak, but the film is great." there is also "The plot is great, but
the film is weak.", with the same words and the other label.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from course_utils.text.registry import REVIEWS, CorpusError, corpus_files, find
from course_utils.text.text import normalise

FILE = Path(__file__).with_name("reviews.tsv.gz")  # split, construction, positive, negative
SIZES = {"train": 8_000, "test": 1_000}  # by default
LARGEST = {"train": 20_000, "test": 3_000}


@dataclass(frozen=True)
class Review:
    """A text, its label (1 = positive, 0 = negative), and how it is built, where that is known."""

    text: str
    label: int
    construction: str = ""


def reviews(split: str = "train", size: int | None = None) -> list[Review]:
    """Short reviews, a smaller set is the beginning of a larger one.

    Each positive review is followed by its negative counterpart, so that any even number of them
    is balanced. No review of "test" is in "train", nor is its combination: two opinions such as
    great/terrible and strong/clumsy, or an opinion and what it is about, that never stand together
    in training.

    Args:
        size: by default 8,000 of "train" and 1,000 of "test".

    Raises:
        ValueError: an unknown split, or a size below 1 or above what there is.
    """
    if split not in SIZES:
        raise ValueError(f"unknown split {split!r}: use one of {', '.join(SIZES)}")
    size = SIZES[split] if size is None else size
    if not 1 <= size <= LARGEST[split]:
        raise ValueError(f"size must lie in 1..{LARGEST[split]} for {split!r}, got {size}")
    return _shipped()[split][:size]


@cache
def _shipped() -> dict[str, list[Review]]:
    """All reviews, by split."""
    found: dict[str, list[Review]] = {split: [] for split in SIZES}
    for line in gzip.decompress(FILE.read_bytes()).decode("utf-8").splitlines():
        split, construction, positive, negative = line.split("\t")
        found[split] += [Review(positive, 1, construction), Review(negative, 0, construction)]
    return found


def constructions() -> dict[str, tuple[Review, Review]]:
    """The name of every construction with a positive and a negative example."""
    examples: dict[str, tuple[Review, Review]] = {}
    for positive, negative in zip(*[iter(reviews("train"))] * 2):
        examples.setdefault(positive.construction, (positive, negative))
    return examples


def real_reviews(name: str = "rt-polarity") -> list[Review]:
    """The reviews of a corpus with a file of positive and one of negative ones, in turn.

    Raises:
        CorpusError: a file cannot be had, is not UTF-8, or holds fewer reviews than the other.
    """
    find(name, REVIEWS)
    sides = []
    for path, label in zip(corpus_files(name), (1, 0), strict=True):
        try:
            text = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise CorpusError(f"{path.name} is not UTF-8 ({error.reason}): load it again") from None
        lines = [normalise(line) for line in text.split("\n")]
        sides.append([Review(line, label) for line in lines if line])
    positive, negative = sides
    if len(positive) != len(negative):
        raise CorpusError(
            f"{name} has {len(positive):,} positive and {len(negative):,} negative reviews "
            "where there should be equally many: load the files again"
        )
    return [review for couple in zip(positive, negative) for review in couple]
