"""A classification task: reviews to train on, reviews to test on, the vocabulary, and batches."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, tensor

from course_utils.text.batches import pad
from course_utils.text.corpora import CorpusError
from course_utils.text.reviews import Review, reviews, rt_polarity
from course_utils.text.text import tokenize
from course_utils.text.vocab import Vocab

CORPORA = ("short-reviews", "rt-polarity")


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
        tokens, valid_lens = pad([self.vocab.encode(tokenize(r.text, "en")) for r in chosen])
        return ReviewBatch(tokens, valid_lens, tensor([review.label for review in chosen]))

    def batches(self, epochs: int, batch_size: int = 64, seed: int = 0) -> list[ReviewBatch]:
        """So many passes over the training reviews; each pass is shuffled, then cut up.

        Raises:
            ValueError: `epochs` or `batch_size` is below 1.
        """
        if epochs < 1 or batch_size < 1:
            raise ValueError(
                f"epochs and batch_size must be at least 1, got {epochs} and {batch_size}"
            )
        rng, found = random.Random(seed), []
        for _ in range(epochs):
            order = rng.sample(self.train, len(self.train))
            order.sort(key=lambda review: len(review.text))  # stable: like lengths, little padding
            chunks = [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
            found += rng.sample(chunks, len(chunks))
        return [self.batch(chunk) for chunk in found]

    @property
    def max_len(self) -> int:
        """Tokens of the longest review."""
        return max(len(tokenize(review.text, "en")) for review in self.train + self.test)

    def __str__(self) -> str:
        return (
            f"{self.name}: {len(self.train):,} training reviews, {len(self.test):,} held out, "
            f"{len(self.vocab):,} tokens, at most {self.max_len} in a review"
        )


def review_task(corpus: str = "short-reviews") -> ReviewTask:
    """Load a corpus of reviews.

    Args:
        corpus: "short-reviews", which ships with the course; or "rt-polarity", downloaded once or
            taken from `COURSE_DATA_DIR`, of which a tenth is held out.

    Words that training sees only once become <unk>, so that <unk> is trained, too.

    Raises:
        CorpusError: the name is unknown, or the file cannot be had.
    """
    if corpus not in CORPORA:
        raise CorpusError(f"unknown corpus {corpus!r}: use one of {', '.join(CORPORA)}")
    if corpus == "short-reviews":
        train, test = reviews("train"), reviews("test")
    else:
        train, test = _hold_out_a_tenth(rt_polarity())
    return ReviewTask(
        corpus, train, test, Vocab((tokenize(r.text, "en") for r in train), min_freq=2)
    )


def _hold_out_a_tenth(every: list[Review]) -> tuple[list[Review], list[Review]]:
    """Training and test reviews; a text that stands there twice goes to one side."""
    texts = sorted({review.text for review in every})
    held = set(random.Random(0).sample(texts, len(texts) // 10))
    return [r for r in every if r.text not in held], [r for r in every if r.text in held]
