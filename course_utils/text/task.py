"""A translation task: what to train on, what to test on, and the vocabularies.

Chapters 4 and 9 use the same task, so their results can be compared.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from course_utils.text.batches import Example, number_pairs
from course_utils.text.corpora import check_apart, load_corpus, split_by_source
from course_utils.text.pairs import Pair
from course_utils.text.small_world import small_world
from course_utils.text.text import detokenize, tokenize
from course_utils.text.vocab import Vocab


@dataclass(frozen=True)
class TranslationTask:
    """Training pairs, held-out pairs by name of the set; the vocabularies of the former, and
    the training pairs as their ids."""

    name: str
    train: list[Pair]
    held_out: dict[str, list[Pair]]
    src_vocab: Vocab
    tgt_vocab: Vocab
    examples: list[Example]

    def __str__(self) -> str:
        sets = ", ".join(f"{len(pairs):,} {name}" for name, pairs in self.held_out.items())
        return (
            f"{self.name}: {len(self.train):,} training pairs, held out: {sets}; "
            f"{len(self.src_vocab):,} English and {len(self.tgt_vocab):,} French tokens"
        )


def translation_task(
    corpus: str | os.PathLike = "small-world", size: int | None = None, held_out: int = 500
) -> TranslationTask:
    """Load a corpus and hold out a test set; no source of it reads like one to train on.

    Args:
        corpus: "small-world", which is joined by the everyday pairs, three times over so that
            their words are learnt, and has two test sets, random and compositional (words and
            patterns seen, never together); or any other corpus that
            `load_corpus` knows, from which `held_out` sources are set aside.
        size: at most so many pairs of the corpus; by default 30,000 of the small world, 10,000
            of any other.

    Words that training sees only once become <unk>, so that <unk> is trained, too.

    Raises:
        CorpusError: the corpus cannot be had.
        ValueError: `size` or `held_out` is below 1, or the corpus too small for it.
    """
    for name, count in (("size", size), ("held_out", held_out)):
        if count is not None and count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}")
    if corpus == "small-world":
        pairs = load_corpus(corpus, 30_000 if size is None else size).pairs
        everyday = load_corpus("everyday").pairs
        sets = {name: small_world(name, held_out) for name in ("random", "compositional")}
        *vocabs, examples = number_pairs(pairs + everyday, min_freq=2)
        train = pairs + 3 * everyday
        examples += 2 * examples[len(pairs) :]
    else:
        pairs = load_corpus(corpus, 10_000 if size is None else size).pairs
        train, test = split_by_source(pairs, held_out)
        sets = {"held-out": test}
        *vocabs, examples = number_pairs(train, min_freq=2)
    for test in sets.values():
        check_apart((pair.source for pair in train), (pair.source for pair in test))
    return TranslationTask(str(corpus), train, sets, *vocabs, examples)


def references(pairs: Sequence[Pair]) -> list[str]:
    """The right translations, spelled as a word-level model spells: lower case, plain spaces."""
    return [detokenize(tokenize(pair.target, "fr"), "fr") for pair in pairs]
