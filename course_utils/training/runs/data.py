"""From a corpus to what a training reads: held-out sentences, examples, batches by length."""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass

from course_utils.text.batches import Example, by_target, group_by_length
from course_utils.text.corpora import check_apart, load_corpus, reads_as, split_by_source
from course_utils.text.pairs import Pair
from course_utils.text.subwords import Subwords
from course_utils.training.runs.refusals import Refused
from course_utils.training.runs.settings import Settings

MOST_VALIDATED = 500  # sentences; each validation translates them all


@dataclass(frozen=True)
class Split:
    """The pairs of a corpus; no source sentence stands in two of the three lists.

    Validation and test hold one translation of each source. `digest` changes with any pair.
    """

    train: list[Pair]
    validation: list[Pair]
    test: list[Pair]
    digest: str
    summary: str


def split_corpus(settings: Settings) -> Split:
    """Load the corpus and hold out sentences for validation and test.

    Raises:
        CorpusError: the corpus cannot be had.
        Refused: it is too small to hold out anything.
    """
    corpus = load_corpus(settings.corpus, settings.size)
    sources = len({reads_as(pair.source) for pair in corpus.pairs})
    count = min(250, max(1, sources // 20)) if settings.held_out is None else settings.held_out
    try:
        rest, test = split_by_source(corpus.pairs, count, settings.seed)
        train, validation = split_by_source(rest, min(count, MOST_VALIDATED), settings.seed)
    except ValueError:
        raise Refused(
            f"{corpus.name} has {sources:,} different source sentence{'s' * (sources != 1)}, "
            f"too few to hold out twice {count} and train on others: take a larger corpus"
            f"{' or a smaller --held-out' * (count > 1)}"
        ) from None
    check_apart((p.source for p in train), (p.source for p in validation + test))
    digest = hashlib.sha256()
    for pair in corpus.pairs:
        digest.update(f"{pair.source}\t{pair.target}\n".encode())
    return Split(train, _one_each(validation), _one_each(test), digest.hexdigest(), str(corpus))


def _one_each(pairs: Sequence[Pair]) -> list[Pair]:
    """The first translation of every source."""
    return list({pair.source: pair for pair in reversed(pairs)}.values())[::-1]


def learn_vocabulary(split: Split, size: int) -> Subwords:
    """Pieces for both languages, learnt from the training pairs only."""
    texts = [text for pair in split.train for text in (pair.source, pair.target)]
    return Subwords.learn(texts, size)


def encode(pairs: Sequence[Pair], vocabulary: Subwords, max_len: int) -> list[Example]:
    """The pairs as ids, without those that have more than `max_len` on a side, ends included.

    Raises:
        Refused: none is left.
    """
    return [example for _, example in _fitting(pairs, vocabulary, max_len, "training")]


def held_out(split: Split, vocabulary: Subwords, max_len: int) -> tuple[list[Pair], list[Pair]]:
    """The pairs to validate and to test, of which those are left out that `encode` leaves out.

    Raises:
        Refused: none is left.
    """
    validation, test = (
        [pair for pair, _ in _fitting(pairs, vocabulary, max_len, "held-out")]
        for pairs in (split.validation, split.test)
    )
    return validation, test


def _fitting(
    pairs: Sequence[Pair], vocabulary: Subwords, max_len: int, kind: str
) -> list[tuple[Pair, Example]]:
    sources = vocabulary.encode_all([pair.source for pair in pairs])
    targets = vocabulary.encode_all([pair.target for pair in pairs])
    bos, eos = vocabulary.bos, vocabulary.eos
    fitting = [
        (pair, Example([*source, eos], [bos, *target, eos]))
        for pair, source, target in zip(pairs, sources, targets, strict=True)
        if max(len(source), len(target)) < max_len
    ]
    if not fitting:
        raise Refused(f"every {kind} pair has more than {max_len} pieces: raise --max-len")
    return fitting


def positions(examples: Sequence[Example]) -> int:
    """The longest sentence a model may be given: the longest that it was trained on, at least 32.

    What is longer is translated in parts, for its last positions were never seen in training.
    """
    return max(32, *(max(len(e.source), len(e.target) - 1) for e in examples))


def fitting_budget(examples: Sequence[Example]) -> int:
    """Tokens in a batch: about 250 batches an epoch, each from 256 to 1280.

    More updates teach more than larger ones: in ten minutes of one CPU core on fra-eng, batches of
    1280 tokens reached 28.6 BLEU, those of 4096 only 22.3. A GPU is idle with so few.
    """
    return min(1280, max(256, sum(sum(by_target(e)) for e in examples) // 250))


def batches_of(
    examples: Sequence[Example], budget: int, seed: int, epoch: int
) -> list[list[Example]]:
    """One epoch: sentences of like length together, at most `budget` padded tokens a batch.

    Which examples meet, and the order of the batches, follow from seed and epoch alone; how many
    batches there are does not change from epoch to epoch. An example over the budget stands alone.
    """
    rng = random.Random(f"{seed}/{epoch}")
    return group_by_length(examples, by_target, tokens=budget, rng=rng)
