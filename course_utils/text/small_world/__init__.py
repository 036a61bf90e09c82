"""The small world: English sentences, their correct French translations, and the word alignment.

A synchronous grammar writes both sides of a pair at once from one hand-made lexicon, so every pair
is right by construction, and which word stands for which is known. Each English sentence has one
translation only, because the world has conventions where French asks for more than English says:

- "you" is one friend (tu, never vous), and the speaker and "you" are men (je suis fatigué);
- "they" are "ils", unless a subject earlier in the sentence is feminine (elles);
- "it" as an object always takes up a noun of the same sentence;
- the English past of an action is a passé composé; "used to", "was" and "was doing" an imparfait;
- "will" is a futur simple, "going to" a futur proche.

Gold links ``(i, j)`` join token i of the source to token j of the target, counted with
`course_utils.text.text.tokenize`:

- every word is linked to each word that it stands for, and several make a group: "went" to both
  "est" and "allé", "doesn't" to "ne" and "pas", "I'm" to "je" and to the verb;
- an auxiliary that French does without is linked with the verb it serves ("is eating" - "mange");
- a question's fronted auxiliary (do, is, can) is linked to "est-ce" and "que";
- a reflexive pronoun is linked to the English verb ("get up" - "me lève");
- punctuation is linked to punctuation;
- only a French article stays without a link, where English has none ("I like cats" - "les chats",
  "he eats bread" - "du pain", "he doesn't eat meat" - "pas de viande").
"""

from __future__ import annotations

from collections import Counter
from functools import cache, lru_cache
from random import Random

from course_utils.text.pairs import Pair
from course_utils.text.text import tokenize

# Importing these registers their constructions, in this order.
from . import being, comparisons, questions, requests, sentences, statements  # noqa: F401
from .constructions import CONSTRUCTIONS
from .lexicon import nouns
from .phrases import NAMES
from .rules import Phrase, realise
from .splits import SPLITS, split_of

__all__ = ["SIZES", "Pair", "constructions", "describe", "small_world"]

SIZES = {"train": 20_000, "random": 1_000, "compositional": 1_000}
_PATIENCE = 20_000  # draws in a row with nothing new, after which a split counts as used up
_LEMMAS = {form: noun.en[0] for noun in nouns.values() for form in noun.en} | {n: n for n in NAMES}


def small_world(split: str = "train", size: int | None = None, seed: int = 0) -> list[Pair]:
    """Pairs of one split, all with different sources, alike on every machine.

    Args:
        split: "train"; "random", held out by chance; or "compositional", held out because a word
            or pattern meets another that it never meets in training (see ``splits.py``).
        size: how many pairs; by default 20,000 of "train" and 1,000 of the others. A smaller set
            is the beginning of a larger one. The held-out splits have no word that is not in the
            default training set.
        seed: another seed gives other sentences, never one of another split.

    Raises:
        ValueError: an unknown split, a negative size, or more pairs than the grammar has.
    """
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}: use one of {', '.join(SPLITS)}")
    size = SIZES[split] if size is None else size
    if size < 0:
        raise ValueError(f"size must be 0 or more, not {size}")
    if split == "train":
        return [pair for pair, _ in _draws(seed).take(split, size)]
    pairs: list[Pair] = []
    asked = size
    while len(pairs) < size:
        drawn = _draws(seed).take(split, asked)
        pairs = [pair for pair, _ in drawn if _training_words().issuperset(_words(pair))]
        asked += size - len(pairs)
    return pairs[:size]


class _Draws:
    """The sentences that one seed draws, sorted into the splits as they come."""

    def __init__(self, seed: int):
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


@lru_cache(maxsize=4)
def _draws(seed: int) -> _Draws:
    return _Draws(seed)


def _repetitive(sentence: Phrase) -> bool:
    """Does a noun or name come twice, as in "Paul helps Paul"?"""
    lemmas = [_LEMMAS[word] for word, _ in sentence.en if word in _LEMMAS]
    return len(lemmas) != len(set(lemmas))


def _words(pair: Pair) -> set[tuple[str, str]]:
    sides = (("en", pair.source), ("fr", pair.target))
    return {(lang, word) for lang, text in sides for word in tokenize(text, lang)}


@cache
def _training_words() -> frozenset[tuple[str, str]]:
    return frozenset().union(*map(_words, small_world()))


def constructions() -> dict[str, Pair]:
    """The name of every construction with one example."""
    rng = Random("small world examples")
    return {name: realise(make(rng)) for name, make in CONSTRUCTIONS.items()}


def describe() -> dict[str, int]:
    """Counts: constructions, words a side in the training set, its pairs, and pairs there are.

    ``pairs_in_all`` is an estimate by capture and recapture (Chapman's): two samples of n and m
    sentences of a construction that share k come from (n + 1) (m + 1) / (k + 1) - 1. Since some
    sentences are drawn more easily than others, it is rather too low than too high.
    """
    languages = Counter(lang for lang, _ in _training_words())
    samples = _draws(0).take("train", SIZES["train"]), _draws(1).take("train", SIZES["train"] // 5)
    space = 0
    for name in CONSTRUCTIONS:
        one, two = ({pair.source for pair, made in drawn if made == name} for drawn in samples)
        space += (len(one) + 1) * (len(two) + 1) // (len(one & two) + 1) - 1
    return {
        "constructions": len(CONSTRUCTIONS),
        "english_words": languages["en"],
        "french_words": languages["fr"],
        "training_pairs": SIZES["train"],
        "pairs_in_all": space // 10_000 * 10_000,
    }
