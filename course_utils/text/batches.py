"""From sentence pairs to padded tensors."""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from course_utils.text.bulk import collecting_later
from course_utils.text.numbering import Lines
from course_utils.text.pairs import Pair
from course_utils.text.text import tokenize
from course_utils.text.vocab import Vocab

T = TypeVar("T")


@dataclass(slots=True)
class Example:
    """A pair as ids: the source ends with <eos>, the target stands between <bos> and <eos>."""

    source: list[int]
    target: list[int]


@dataclass(frozen=True)
class Batch:
    """Padded sentences.

    src: (B, Ts) ids; src_lens: (B,) lengths, <eos> included.
    tgt_in: (B, Tt) what the decoder reads, from <bos>; tgt_out: (B, Tt) what it has to say next,
    to <eos>. tgt_in shifted by one is tgt_out.
    """

    src: Tensor
    src_lens: Tensor
    tgt_in: Tensor
    tgt_out: Tensor

    @property
    def num_tokens(self) -> int:
        """Real tokens to predict."""
        return int(self.tgt_out.ne(Vocab.pad).sum())

    def to(self, device) -> "Batch":
        return Batch(*(x.to(device) for x in (self.src, self.src_lens, self.tgt_in, self.tgt_out)))


@collecting_later()
def number_pairs(pairs: Sequence[Pair], min_freq: int = 1) -> tuple[Vocab, Vocab, list[Example]]:
    """The English and the French vocabulary of some pairs, and the pairs as their ids."""
    sides = _sides(pairs)
    vocabs = [Vocab.of_counts(side.counts(), min_freq) for side in sides]
    return (*vocabs, _examples(sides, vocabs))


def encode_source(text: str, vocab: Vocab) -> list[int]:
    """Ids of an English sentence with <eos>; an empty one is <eos> alone."""
    return [*vocab.encode(tokenize(text, "en")), vocab.eos]


def encode_target(text: str, vocab: Vocab) -> list[int]:
    """Ids of a French sentence between <bos> and <eos>."""
    return [vocab.bos, *vocab.encode(tokenize(text, "fr")), vocab.eos]


@collecting_later()
def encode_pairs(pairs: Sequence[Pair], src_vocab: Vocab, tgt_vocab: Vocab) -> list[Example]:
    """Every pair as ids, in the same order."""
    return _examples(_sides(pairs), (src_vocab, tgt_vocab))


def _sides(pairs: Sequence[Pair]) -> tuple[Lines, Lines]:
    sources, targets = (pair.source for pair in pairs), (pair.target for pair in pairs)
    return Lines(sources, "en"), Lines(targets, "fr")


def _examples(sides: Sequence[Lines], vocabs: Sequence[Vocab]) -> list[Example]:
    sources = sides[0].ids(vocabs[0], after=[Vocab.eos])
    targets = sides[1].ids(vocabs[1], before=[Vocab.bos], after=[Vocab.eos])
    return list(map(Example, sources, targets))


def pad(sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Lists of ids -> (B, T) with <pad> at the end, and their lengths (B,).

    Raises:
        ValueError: there is no list.
    """
    if not sequences:
        raise ValueError("a batch needs at least one sentence, got none")
    rows, lengths = _padded(sequences)
    return torch.from_numpy(rows), torch.from_numpy(lengths)


def _padded(sequences: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """`pad` in NumPy, whose calls cost less where a batch is small."""
    lengths = np.fromiter(map(len, sequences), dtype=np.int64, count=len(sequences))
    rows = np.full((len(sequences), lengths.max()), Vocab.pad, dtype=np.int64)  # (B, T)
    real = np.arange(rows.shape[1]) < lengths[:, None]  # (B, T), in the order of ids
    rows[real] = np.fromiter(chain.from_iterable(sequences), dtype=np.int64, count=lengths.sum())
    return rows, lengths


def collate(examples: Sequence[Example]) -> Batch:
    """Pad some examples into one batch.

    Raises:
        ValueError: there is no example.
    """
    src, src_lens = pad([example.source for example in examples])
    said, lengths = _padded([example.target for example in examples])
    read = said.copy()
    read[np.arange(len(read)), lengths - 1] = Vocab.pad  # <eos> is said, never read
    tgt_in, tgt_out = torch.from_numpy(read[:, :-1]), torch.from_numpy(said[:, 1:])
    return Batch(src, src_lens, tgt_in, tgt_out)


@collecting_later()
def group_by_length(
    items: Iterable[T],
    lengths: Callable[[T], tuple[int, ...]],
    *,
    sentences: int | None = None,
    tokens: int | None = None,
    rng: random.Random | None = None,
) -> list[list[T]]:
    """One pass over the items in groups of like length, so that little is padded.

    How large a group may be, either `sentences` or `tokens` says.

    Args:
        lengths: of the sequences of an item, the one to sort by first.
        sentences: at most so many items a group.
        tokens: at most so many tokens a group, padding included, all sequences together; an item
            that has more stands alone.
        rng: shuffles the items, and the groups; without it the order is by length.
    """
    if (sentences is None) == (tokens is None):
        raise TypeError(f"give sentences or tokens, not {sentences} and {tokens}")
    order = list(items)
    if rng is not None:
        rng.shuffle(order)  # before the stable sort, so that equal lengths meet at random
    order.sort(key=lengths)
    if sentences is not None:
        groups = [order[i : i + sentences] for i in range(0, len(order), sentences)]
    else:
        groups = _within(order, lengths, tokens)
    if rng is not None:
        rng.shuffle(groups)
    return groups


def _within(
    order: Sequence[T], lengths: Callable[[T], tuple[int, ...]], most: int
) -> list[list[T]]:
    """The items in their order, in groups of at most so many padded tokens."""
    groups: list[list[T]] = []
    widths: tuple[int, ...] = ()  # of the last group: its longest sequences
    for item in order:
        own = lengths(item)
        widths = tuple(map(max, widths, own)) if groups else own
        if not groups or (len(groups[-1]) + 1) * sum(widths) > most:
            groups.append([])
            widths = own
        groups[-1].append(item)
    return groups


def by_target(example: Example) -> tuple[int, int]:
    """Lengths of an example, to sort by the target and then by the source."""
    return len(example.target), len(example.source)


def make_batches(
    examples: Sequence[Example], batch_size: int, rng: random.Random | None = None
) -> Iterator[Batch]:
    """One pass over the examples, sentences of like length together.

    Args:
        rng: shuffles the examples, and the batches; without it the order is by length.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    return map(collate, group_by_length(examples, by_target, sentences=batch_size, rng=rng))
