"""From sentence pairs to padded tensors."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from course_utils.text.pairs import Pair
from course_utils.text.text import tokenize
from course_utils.text.vocab import Vocab


@dataclass(frozen=True)
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


def build_vocabs(pairs: Sequence[Pair], min_freq: int = 1) -> tuple[Vocab, Vocab]:
    """The English and the French vocabulary of some pairs."""
    return (
        Vocab((tokenize(pair.source, "en") for pair in pairs), min_freq),
        Vocab((tokenize(pair.target, "fr") for pair in pairs), min_freq),
    )


def encode_source(text: str, vocab: Vocab) -> list[int]:
    """Ids of an English sentence with <eos>; an empty one is <eos> alone."""
    return [*vocab.encode(tokenize(text, "en")), vocab.eos]


def encode_target(text: str, vocab: Vocab) -> list[int]:
    """Ids of a French sentence between <bos> and <eos>."""
    return [vocab.bos, *vocab.encode(tokenize(text, "fr")), vocab.eos]


def encode_pairs(pairs: Sequence[Pair], src_vocab: Vocab, tgt_vocab: Vocab) -> list[Example]:
    """Every pair as ids, in the same order."""
    return [
        Example(encode_source(pair.source, src_vocab), encode_target(pair.target, tgt_vocab))
        for pair in pairs
    ]


def pad(sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Lists of ids -> (B, T) with <pad> at the end, and their lengths (B,).

    Raises:
        ValueError: there is no list.
    """
    if not sequences:
        raise ValueError("a batch needs at least one sentence, got none")
    lengths = torch.tensor([len(ids) for ids in sequences])
    padded = torch.full((len(sequences), int(lengths.max())), Vocab.pad)
    for row, ids in zip(padded, sequences, strict=True):
        row[: len(ids)] = torch.tensor(ids)
    return padded, lengths


def collate(examples: Sequence[Example]) -> Batch:
    """Pad some examples into one batch."""
    src, src_lens = pad([example.source for example in examples])
    tgt, _ = pad([example.target for example in examples])
    # the last real token is <eos>: it is said, never read
    tgt_in = tgt[:, :-1].masked_fill(tgt[:, :-1] == Vocab.eos, Vocab.pad)
    return Batch(src, src_lens, tgt_in, tgt[:, 1:])


def make_batches(
    examples: Sequence[Example], batch_size: int, rng: random.Random | None = None
) -> Iterator[Batch]:
    """One pass over the examples, sentences of like length together so that little is padded.

    Args:
        rng: shuffles the examples, and the batches; without it the order is by length.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    order = list(range(len(examples)))
    if rng is not None:
        rng.shuffle(order)  # before the stable sort, so that equal lengths meet at random
    order.sort(key=lambda i: (len(examples[i].target), len(examples[i].source)))
    chunks = [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
    if rng is not None:
        rng.shuffle(chunks)
    for chunk in chunks:
        yield collate([examples[i] for i in chunk])
