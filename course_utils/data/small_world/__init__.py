"""The small world."""

from __future__ import annotations

from random import Random

from course_utils.data.pairs import Pair

from . import comparisons, questions, requests, sentences, statements  # noqa: F401
from .constructions import CONSTRUCTIONS
from .rules import realise
from .splits import split_of

SIZES = {"train": 20_000, "random": 1_000, "compositional": 1_000}


def small_world(split: str = "train", size: int | None = None, seed: int = 0) -> list[Pair]:
    size = SIZES[split] if size is None else size
    rng = Random(f"small world {split} {seed}")
    pick = list(CONSTRUCTIONS.values())
    pairs: dict[str, Pair] = {}
    while len(pairs) < size:
        sentence = rng.choice(pick)(rng)
        pair = realise(sentence)
        if pair.source not in pairs and split_of(pair.source, sentence.marks) == split:
            pairs[pair.source] = pair
    return list(pairs.values())
