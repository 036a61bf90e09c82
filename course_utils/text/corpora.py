"""Sentence pairs: of a corpus by name, or from a file of one's own; and how some are held out."""

import hashlib
import os
import random
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from course_utils.text.bulk import collecting_later
from course_utils.text.pairs import Pair
from course_utils.text.registry import (
    CORPORA,
    PAIRS,
    CorpusError,
    corpus_bytes,
    names,
    unreadable,
)
from course_utils.text.small_world import LARGEST, small_world
from course_utils.text.text import normalise, not_text

_BOM = b"\xef\xbb\xbf"
_MORE = "more than two columns"
_LINE_END = re.compile(r"\r\n|\n|\r")  # not splitlines: U+2028 is no line end


@dataclass
class Corpus:
    """Pairs, and what became of every line of the file they came from.

    Attributes:
        name: as it was asked for.
        pairs: in the order of the file.
        lines: number of lines read; 0 for a generated corpus.
        dropped: reason -> the numbers of the lines left out for it, from 1.
        mended: what was changed -> the numbers of the lines where it was.
    """

    name: str
    pairs: list[Pair]
    lines: int = 0
    dropped: dict[str, list[int]] = field(default_factory=dict)
    mended: dict[str, list[int]] = field(default_factory=dict)

    def __str__(self) -> str:
        text = f"{self.name}: {len(self.pairs):,} pairs"
        if self.lines:
            text += f" from {self.lines:,} lines"
        for done, reasons in (("dropped", self.dropped), ("mended", self.mended)):
            for reason, numbers in reasons.items():
                where = ", ".join(map(str, numbers[:3])) + (", ..." if len(numbers) > 3 else "")
                text += f"; {done} {len(numbers):,} with {reason} (line {where})"
        return text


def load_corpus(name_or_path: str | os.PathLike, size: int | None = None) -> Corpus:
    """Load sentence pairs.

    Args:
        name_or_path: a corpus of pairs in `course_utils.text.registry`, such as "small-world",
            "everyday" or "fra-eng"; or the path of a tab-separated UTF-8 file: source, target, and
            any further columns, which are ignored.
        size: at most so many pairs, from the beginning.

    Raises:
        CorpusError: the name is unknown, the file cannot be had, or it holds no pairs.
    """
    name = os.fspath(name_or_path)
    if size is not None and size < 1:
        raise CorpusError(f"size must be at least 1, got {size}")
    if name == "small-world":
        return Corpus(name, small_world("train", size and min(size, LARGEST["train"])))
    if name in CORPORA and CORPORA[name].kind != PAIRS:
        raise CorpusError(
            f"{name!r} is a {CORPORA[name].kind}, not one of pairs: use one of "
            f"{', '.join(names(PAIRS))}"
        )
    corpus = _parse(name, corpus_bytes(name) if name in CORPORA else _own_bytes(name))
    corpus.pairs = corpus.pairs[:size]
    return corpus


def _own_bytes(name: str) -> bytes:
    """What a file of one's own holds."""
    path = Path(name)
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise OSError("it is a pipe or a device, not a file that can be read again")
        return path.read_bytes()
    except (OSError, ValueError) as error:  # the latter: a name that no file can have
        if not path.suffix and isinstance(error, FileNotFoundError):
            raise CorpusError(
                f"unknown corpus {name!r}: use one of {', '.join(names(PAIRS))}, or a .tsv file's "
                "path"
            ) from None
        raise unreadable(f"the corpus {name!r}", error) from None


@collecting_later()
def _parse(name: str, data: bytes) -> Corpus:
    """Tab-separated lines to pairs; what does not fit or is mended is counted with its reason."""
    corpus = Corpus(name, [])
    lines = _lines(name, data)
    corpus.lines = len(lines)
    for number, line in enumerate(lines, start=1):
        raw = line.split("\t")
        columns = [normalise(column) for column in raw[:2]]
        if reason := _fault(columns):
            corpus.dropped.setdefault(reason, []).append(number)
            continue
        corpus.pairs.append(Pair(columns[0], columns[1]))
        if raw[:2] != columns and _respelled(raw, columns):
            corpus.mended.setdefault("unusual spaces, apostrophes or accents", []).append(number)
        if len(raw) > 2:
            corpus.mended.setdefault(_MORE, []).append(number)
    _check_columns(corpus)
    if not corpus.pairs:
        raise CorpusError(f"{corpus}. A corpus has one pair a line: source, tab, target, in UTF-8")
    return corpus


def _check_columns(corpus: Corpus) -> None:
    """Refuse the tables of Tatoeba, whose first column counts and whose next may be a language."""
    if not corpus.mended.get(_MORE):
        return
    numbers = sum(pair.source.isdecimal() for pair in corpus.pairs)
    if 10 * numbers > 9 * len(corpus.pairs):
        raise CorpusError(
            f"the first column of {corpus.name} holds numbers, not sentences: keep the two columns "
            "of the sentences, as by cut -f 2,4"
        )


def _lines(name: str, data: bytes) -> list[str]:
    """The lines of a file in UTF-8, whatever ends them; a byte-order mark and an empty end go."""
    if kind := not_text(data):
        raise CorpusError(f"{name} is {kind}")
    data = data.removeprefix(_BOM)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        number = len(_LINE_END.split(data[: error.start].decode("utf-8")))
        raise CorpusError(
            f"{name}, line {number} is not UTF-8 ({error.reason}): save the file as UTF-8"
        ) from None
    lines = _LINE_END.split(text) if "\r" in text else text.split("\n")
    if "\0" in text:
        number = next(number for number, line in enumerate(lines, start=1) if "\0" in line)
        raise CorpusError(
            f"{name}, line {number} holds a NUL character: this is no text, or text in UTF-16; "
            "save the file as UTF-8"
        )
    if not lines[-1].strip():
        lines.pop()
    return lines


def _respelled(raw: list[str], columns: list[str]) -> bool:
    """Whether `normalise` did more to the first two columns than to strip outer spaces."""
    return any(before.strip(" ") != after for before, after in zip(raw, columns))


def _fault(columns: list[str]) -> str | None:
    """Why these columns are no pair, or None."""
    if len(columns) > 1 and columns[0] and columns[1]:
        return None
    if len(columns) > 1:
        return "an empty side"
    return "no tab" if columns[0] else "nothing on the line"


class _Marks(dict):
    """For `str.translate`: None, which deletes, for what is no letter, digit or symbol."""

    def __missing__(self, code: int) -> int | None:
        kind = unicodedata.category(chr(code))
        self[code] = None if kind[0] in "PZ" or kind in ("Cc", "Cf") else code
        return self[code]


_MARKS = _Marks()


def reads_as(text: str) -> str:
    """What a text is when it is held out: case, punctuation and spaces make no other text.

    >>> reads_as("Hello, Marc!") == reads_as("hello Marc.")
    True
    """
    return text.casefold().translate(_MARKS) or text


def split_by_source(
    pairs: Sequence[Pair], held_out: int, seed: int = 0
) -> tuple[list[Pair], list[Pair]]:
    """Hold out so many sources, with all their translations: no source stands on both sides.

    Sources that read the same (`reads_as`) count as one.

    Returns:
        training pairs and held-out pairs, each in the order given.

    Raises:
        ValueError: there are not more than `held_out` sources.
    """
    keys = [reads_as(pair.source) for pair in pairs]
    # ranked by hash, so that the choice does not depend on the order or number of the pairs; a
    # reading by the first of its spellings, so that a few more or less of them change little
    ranks: dict[str, bytes] = {}
    for pair, key in zip(pairs, keys, strict=True):
        spelling = pair.source.lower().rstrip(" .!?")
        rank = hashlib.sha1(f"{seed}:{spelling}".encode()).digest()
        ranks[key] = min(rank, ranks.get(key, rank))
    ranked = sorted(ranks, key=ranks.__getitem__)
    if not 0 < held_out < len(ranked):
        raise ValueError(
            f"held_out must lie in 1..{len(ranked) - 1} (there are {len(ranked)} different "
            f"sources), got {held_out}"
        )
    chosen = set(ranked[:held_out])
    train = [pair for pair, key in zip(pairs, keys, strict=True) if key not in chosen]
    held = [pair for pair, key in zip(pairs, keys, strict=True) if key in chosen]
    return train, held


def check_apart(trained: Iterable[str], held_out: Iterable[str]) -> None:
    """Make sure that no text is held out that reads like one to train on.

    Raises:
        ValueError: one does.
    """
    readings = set(map(reads_as, trained))
    if leaked := [text for text in held_out if reads_as(text) in readings]:
        raise ValueError(
            f"{len(leaked):,} held-out texts read like one to train on, first {leaked[0]!r}"
        )


def sample(pairs: Sequence[Pair], size: int, seed: int = 0) -> list[Pair]:
    """So many pairs drawn without replacement, the same ones for the same seed."""
    return random.Random(seed).sample(list(pairs), size)
