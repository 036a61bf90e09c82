"""A classification task: reviews to train on, reviews to test on, the vocabulary, and batches."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, tensor

from course_utils.text.batches import group_by_length, pad
from course_utils.text.corpora import check_apart, reads_as
from course_utils.text.registry import REVIEWS, find
from course_utils.text.reviews import Review, real_reviews, reviews
from course_utils.text.text import tokenize
from course_utils.text.vocab import Vocab


@dataclass(frozen=True)
class ReviewBatch:
    """Padded reviews: tokens (B, T) ids, valid_lens (B,) real tokens, labels (B,) 0 or 1."""

    tokens: Tensor
    valid_lens: Tensor
    labels: Tensor


@dataclass(frozen=True)
class ReviewTask:
    """Training and held-out reviews, and the vocabulary of the former."""

    name: str
    train: list[Review]
    test: list[Review]
    vocab: Vocab

    def batch(self, chosen: Sequence[Review]) -> ReviewBatch:
        """Some reviews as one padded batch."""
        return _collate(self._encoded(chosen))

    def _encoded(self, chosen: Sequence[Review]) -> list[tuple[list[int], int]]:
        """Ids and label of each review."""
        return [(self.vocab.encode(tokenize(r.text, "en")), r.label) for r in chosen]

    def batches(self, epochs: int, batch_size: int = 64, seed: int = 0) -> list[ReviewBatch]:
        """So many passes over the training reviews; in each of them like lengths stand together.

        Raises:
            ValueError: `epochs` or `batch_size` is below 1.
        """
        if epochs < 1 or batch_size < 1:
            raise ValueError(
                f"epochs and batch_size must be at least 1, got {epochs} and {batch_size}"
            )
        rng = random.Random(seed)
        encoded = self._encoded(self.train)
        groups = [
            group
            for _ in range(epochs)
            for group in group_by_length(encoded, _length, sentences=batch_size, rng=rng)
        ]
        return [_collate(group) for group in groups]

    @property
    def max_len(self) -> int:
        """Tokens of the longest review."""
        return max(len(tokenize(review.text, "en")) for review in self.train + self.test)

    def __str__(self) -> str:
        return (
            f"{self.name}: {len(self.train):,} training reviews, {len(self.test):,} held out, "
            f"{len(self.vocab):,} tokens, at most {self.max_len} in a review"
        )


def _length(encoded: tuple[list[int], int]) -> tuple[int]:
    return (len(encoded[0]),)


def _collate(encoded: Sequence[tuple[list[int], int]]) -> ReviewBatch:
    """Pad reviews, given as ids and label."""
    tokens, valid_lens = pad([ids for ids, _ in encoded])
    return ReviewBatch(tokens, valid_lens, tensor([label for _, label in encoded]))


def review_task(corpus: str = "short-reviews") -> ReviewTask:
    """Load a corpus of reviews.

    Args:
        corpus: "short-reviews", which ships with the course; or "rt-polarity", downloaded once or
            taken from `COURSE_DATA_DIR`, of which a tenth is held out.

    Words that training sees only once become <unk>, so that <unk> is trained, too.

    Raises:
        CorpusError: the name is unknown, or the file cannot be had.
    """
    find(corpus, REVIEWS)
    if corpus == "short-reviews":
        train, test = reviews("train"), reviews("test")
    else:
        train, test = _hold_out_a_tenth(real_reviews(corpus))
    check_apart((r.text for r in train), (r.text for r in test))
    return ReviewTask(
        corpus, train, test, Vocab((tokenize(r.text, "en") for r in train), min_freq=2)
    )


def _hold_out_a_tenth(every: list[Review]) -> tuple[list[Review], list[Review]]:
    """Training and test reviews; texts that read alike go to one side."""
    texts = sorted({review.text for review in every})
    held = {reads_as(text) for text in random.Random(0).sample(texts, len(texts) // 10)}
    train, test = [], []
    for review in every:
        (test if reads_as(review.text) in held else train).append(review)
    return train, test
