"""From the text of fra-eng to arrays, by d2l's own rules, in d2l's way and in a faster one."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import count

import numpy as np
import torch
from torch import Tensor

from course_utils.bench.rounds import OURS, Measurement, rates
from course_utils.text.corpora import corpus_bytes

STEPS = 10  # positions of d2l's arrays
RESERVED = (b"<unk>", b"<pad>", b"<bos>", b"<eos>")
UNK, PAD, _, EOS = range(4)

Arrays = tuple[Tensor, Tensor]  # ids (N, STEPS) and valid lengths (N,)


def fast(text: str) -> tuple[Arrays, Arrays]:
    """Preprocess, tokenize, build vocabularies and arrays, as d2l's load_data_nmt does.

    Every step is one call over the whole text, so that the loops run in C. As UTF-8 a French text
    has half the bytes of a string.
    """
    text = text.replace("\u202f", " ").replace("\xa0", " ").lower()
    utf8 = f" {text}".encode("utf-8", "surrogatepass")  # the space: a mark that begins gets none
    for mark in (b",", b".", b"!", b"?"):
        utf8 = utf8.replace(mark, b" " + mark).replace(b"  " + mark, b" " + mark)
    lines = [line for line in utf8[1:].split(b"\n") if line.count(b"\t") == 1]
    sides = b"\t".join(lines).split(b"\t")  # source, target, source, target ...
    return arrays(sides[::2]), arrays(sides[1::2])


def arrays(sentences: Sequence[bytes]) -> Arrays:
    """Ids with <eos>, cut or padded to STEPS; words seen once are <unk>."""
    tokens = b" \n ".join(sentences).split(b" ")  # a line feed stands between two sentences
    words = defaultdict(count().__next__)  # each word has the number of words met before it
    met = np.fromiter(map(words.__getitem__, tokens), np.int64, len(tokens))
    flat = vocabulary(list(words), np.bincount(met))[met]
    ends = np.flatnonzero(np.append(flat, -1) < 0)  # where each sentence is over
    starts = np.append(0, ends[:-1] + 1)
    padded = np.append(flat, np.full(STEPS, PAD))
    ids = padded[starts[:, None] + np.arange(STEPS)]  # (N, STEPS), running into what follows
    lengths = (ends - starts)[:, None]
    ids[np.arange(STEPS) == lengths] = EOS
    ids[np.arange(STEPS) > lengths] = PAD
    return torch.from_numpy(ids), torch.from_numpy(np.count_nonzero(ids != PAD, axis=1))


def vocabulary(words: Sequence[bytes], counts: np.ndarray) -> np.ndarray:
    """The id of each word: by falling count after the reserved ones; -1 for a line feed."""
    by_count = (i for i in np.argsort(-counts, kind="stable") if counts[i] >= 2)
    frequent = (words[i] for i in by_count if words[i] != b"\n")
    known = {word: i for i, word in enumerate(dict.fromkeys((*RESERVED, *frequent)))}
    known[b"\n"] = -1
    return np.array([known.get(word, UNK) for word in words])


def slow(text: str) -> tuple[Arrays, Arrays]:
    """The same by d2l's functions."""
    from d2l import torch as d2l

    source, target = d2l.tokenize_nmt(d2l.preprocess_nmt(text))
    reserved = [token.decode() for token in RESERVED[1:]]
    return tuple(
        d2l.build_array_nmt(side, d2l.Vocab(side, 2, reserved), STEPS) for side in (source, target)
    )


def measurements(rounds: int) -> list[Measurement]:
    """All of fra-eng, read in both ways.

    Raises:
        CorpusError: fra-eng cannot be had.
        ValueError: the two ways disagree.
    """
    text = corpus_bytes("fra-eng").decode("utf-8")
    for ours, theirs in zip(fast(text), slow(text)):
        if not all(torch.equal(a, b) for a, b in zip(ours, theirs)):
            raise ValueError("the fast pipeline and d2l's disagree about fra-eng")
    calls = {OURS: lambda: fast(text), "d2l": lambda: slow(text)}
    values = rates(calls, text.count("\n"), rounds, torch.device("cpu"))
    return [Measurement("pipeline", "fra-eng by d2l's rules", "lines/s", values)]
