"""From the text of fra-eng to arrays, by d2l's own rules, in d2l's way and in a faster one."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from course_utils.bench.rounds import OURS, Measurement, rates
from course_utils.data.corpora import corpus_bytes

STEPS = 10  # positions of d2l's arrays
RESERVED = ("<unk>", "<pad>", "<bos>", "<eos>")

Arrays = tuple[Tensor, Tensor]  # ids (N, STEPS) and valid lengths (N,)


def fast(text: str) -> tuple[Arrays, Arrays]:
    """Preprocess, tokenize, build vocabularies and arrays, as d2l's load_data_nmt does.

    Every step is one call over the whole text, so that the loops run in C.
    """
    text = text.replace("\u202f", " ").replace("\xa0", " ").lower()
    for mark in ",.!?":
        text = text.replace(mark, f" {mark}").replace(f"  {mark}", f" {mark}")
    lines = [line for line in text.split("\n") if line.count("\t") == 1]
    sides = "\t".join(lines).split("\t")  # source, target, source, target ...
    return arrays(sides[::2]), arrays(sides[1::2])


def arrays(sentences: Sequence[str]) -> Arrays:
    """Ids with <eos>, cut or padded to STEPS; words seen once are <unk>."""
    tokens = " \n ".join(sentences).split(" ")  # a line feed stands between two sentences
    words = {word: i for i, word in enumerate(dict.fromkeys(tokens))}
    met = np.fromiter(map(words.__getitem__, tokens), np.int64, len(tokens))
    counts = np.bincount(met)
    if "\n" in words:
        counts[words["\n"]] = 0
    spelled = list(words)
    frequent = [spelled[i] for i in np.argsort(-counts, kind="stable") if counts[i] >= 2]
    known = {word: i for i, word in enumerate(dict.fromkeys((*RESERVED, *frequent)))}
    index = dict.fromkeys(words, known["<unk>"]) | known | {"\n": -1}
    flat = np.array([index[word] for word in words])[met]
    ends = np.flatnonzero(np.append(flat, -1) < 0)  # where each sentence is over
    starts = np.append(0, ends[:-1] + 1)
    padded = np.append(flat, np.full(STEPS, known["<pad>"]))
    ids = padded[starts[:, None] + np.arange(STEPS)]  # (N, STEPS), running into what follows
    lengths = (ends - starts)[:, None]
    ids[np.arange(STEPS) == lengths] = known["<eos>"]
    ids[np.arange(STEPS) > lengths] = known["<pad>"]
    ids = torch.from_numpy(ids)
    return ids, ids.ne(known["<pad>"]).sum(1)


def slow(text: str) -> tuple[Arrays, Arrays]:
    """The same by d2l's functions."""
    from d2l import torch as d2l

    source, target = d2l.tokenize_nmt(d2l.preprocess_nmt(text))
    reserved = list(RESERVED[1:])
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
