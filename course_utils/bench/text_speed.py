"""Text: all of fra-eng from its file to padded ids, as a lesson reads it and as d2l does.

Ours are the calls behind the lessons: `load_corpus`, `number_pairs`, `make_batches`.
d2l's are those of its `load_data_nmt`, from reading the file to arrays of ids and lengths.

Both lower the case, take no-break spaces for spaces, set a space before , . ! ? and cut at spaces;
words seen once are <unk>, sentences end with <eos>. Before anything is timed, the sentences in
which nothing else occurs must have the same tokens in both. They part where ours also cuts at the
other marks and after a French elision (l'ami), keeps the mark inside of 3.5 and one at the start of
a line apart, and mends apostrophes and accents; d2l cuts or pads every sentence to 10 positions,
ours keeps all tokens and pads a batch of 64 of like length to its longest.
"""

import importlib
import multiprocessing
import random
import re
import time
from collections.abc import Callable

import torch

from course_utils.bench.rounds import OURS, Measurement, take_turns
from course_utils.text.batches import Batch, make_batches, number_pairs
from course_utils.text.corpora import load_corpus
from course_utils.text.pairs import Pair
from course_utils.text.registry import corpus_bytes
from course_utils.text.text import tokenize

STEPS, BATCH = 10, 64
AGREED = re.compile(r"[a-z\u00e0-\u00ff\u0153 -]+[ ,.!?]*")  # words, and , . ! ? at the end


def ours(name: str = "fra-eng") -> list[Batch]:
    """A corpus as the lessons read it."""
    pairs = load_corpus(name).pairs
    *_, examples = number_pairs(pairs, min_freq=2)
    return list(make_batches(examples, BATCH, random.Random(0)))


def theirs(name: str = "fra-eng") -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The same file by d2l's functions."""
    from d2l import torch as d2l

    text = d2l.preprocess_nmt(corpus_bytes(name).decode("utf-8"))
    reserved = ["<pad>", "<bos>", "<eos>"]
    return [
        d2l.build_array_nmt(side, d2l.Vocab(side, 2, reserved), STEPS)
        for side in d2l.tokenize_nmt(text)
    ]


def check_agreement(
    pairs: list[Pair], cut: Callable[[str, str], list[str]] = tokenize
) -> tuple[int, int]:
    """The sides of pairs that both must cut alike, and all sides.

    Raises:
        ValueError: a side is cut in two ways.
    """
    from d2l import torch as d2l

    sides = [(t, lang) for p in pairs for t, lang in ((p.source, "en"), (p.target, "fr"))]
    agreed = [(text, lang) for text, lang in sides if AGREED.fullmatch(text.lower())]
    for text, lang in agreed:
        spaced = d2l.preprocess_nmt(text)
        if spaced.split() != cut(text, lang):
            raise ValueError(f"d2l and the course cut {text!r} in two ways")
    return len(agreed), len(sides)


def seconds_alone(way: Callable[[], object]) -> float:
    """What one way takes in a process of its own, as in a lesson just opened.

    Nothing of an earlier reading is remembered there, and no other way's memory lies about.
    """
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_seconds, (way,))


def _seconds(way: Callable[[], object]) -> float:
    importlib.import_module("d2l.torch")  # in both, so that both begin alike
    begun = time.perf_counter()
    way()
    return time.perf_counter() - begun


def measurements(rounds: int) -> list[Measurement]:
    """All of fra-eng, read in both ways, by turns.

    Raises:
        CorpusError: fra-eng cannot be had.
        ValueError: the two ways disagree where their rules agree.
    """
    pairs = load_corpus("fra-eng").pairs
    check_agreement(pairs[::10])
    seconds = take_turns({OURS: ours, "d2l": theirs}, rounds, seconds_alone)
    values = {name: [len(pairs) / each for each in times] for name, times in seconds.items()}
    return [Measurement("text", "fra-eng to padded ids", "lines/s", values)]
