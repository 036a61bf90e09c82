"""Corpora by name or path: what ships with the course, and real ones that are downloaded.

A downloaded file is checked by its hash. `COURSE_DATA_DIR` may name a folder with copies; then
nothing is downloaded.
"""

import hashlib
import io
import os
import random
import re
import unicodedata
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from course_utils.text.pairs import Pair
from course_utils.text.small_world import LARGEST, small_world
from course_utils.text.text import normalise

SHIPPED = ("small-world", "everyday")
_EVERYDAY = Path(__file__).with_name("everyday.tsv")
_PATIENCE = 30  # seconds without a byte after which a download has failed
_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(r"\r\n|\n|\r")  # not splitlines: U+2028 is no line end


@dataclass(frozen=True)
class Remote:
    """A file on the web: where it is, its hash, and the member to read if it is an archive.

    `instead` names what ships with the course and serves the same end.
    """

    file: str
    url: str
    known_hash: str
    member: str | None = None
    instead: tuple[str, ...] = SHIPPED


REMOTE = {
    "fra-eng": Remote(
        "fra-eng.zip",
        "http://d2l-data.s3-accelerate.amazonaws.com/fra-eng.zip",
        "sha1:94646ad1522d915e7b0f9296181140edcf86a4f5",
        member="fra.txt",
    ),
    "tiny-shakespeare": Remote(
        "tiny-shakespeare.txt",
        "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
        "sha256:86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
    ),
    "rt-polarity.pos": Remote(
        "rt-polarity.pos",
        "https://raw.githubusercontent.com/yoonkim/CNN_sentence/master/rt-polarity.pos",
        "sha256:4134882974a28d0c7b5151256f0e33a6169984ee7372c279e673f1114f475d58",
        instead=("short-reviews",),
    ),
    "rt-polarity.neg": Remote(
        "rt-polarity.neg",
        "https://raw.githubusercontent.com/yoonkim/CNN_sentence/master/rt-polarity.neg",
        "sha256:2d11cfbc790f1cd96d78339f41ce53ced1efa83cd22d37d6788fa3fe3d17e2fd",
        instead=("short-reviews",),
    ),
}


class CorpusError(ValueError):
    """A corpus cannot be found or read; the message says why and what to do."""


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
        name_or_path: "small-world" or "everyday" (shipped), "fra-eng" (downloaded once, or taken
            from `COURSE_DATA_DIR`), or the path of a tab-separated UTF-8 file: source, target,
            and any further columns, which are ignored.
        size: at most so many pairs, from the beginning.

    Raises:
        CorpusError: the name is unknown, the file cannot be had, or it holds no pairs.
    """
    name = os.fspath(name_or_path)
    if size is not None and size < 1:
        raise CorpusError(f"size must be at least 1, got {size}")
    if name == "small-world":
        return Corpus(name, small_world("train", size and min(size, LARGEST["train"])))
    if name == "everyday":
        return _truncate(_parse(name, _EVERYDAY.read_bytes()), size)
    if name == "fra-eng":
        return _truncate(_parse(name, corpus_bytes(name)), size)
    if name in REMOTE:
        raise CorpusError(f"{name!r} holds running text, not pairs: read corpus_file({name!r})")
    return _truncate(_parse(name, _own_bytes(name)), size)


def _own_bytes(name: str) -> bytes:
    """What a file of one's own holds."""
    path = Path(name)
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise OSError("it is a pipe or a device, not a file that can be read again")
        return path.read_bytes()
    except (OSError, ValueError) as error:  # the latter: a name that no file can have
        if not path.suffix and isinstance(error, FileNotFoundError):
            known = ", ".join((*SHIPPED, "fra-eng"))
            raise CorpusError(
                f"unknown corpus {name!r}: use one of {known}, or a .tsv file's path"
            ) from None
        raise _unreadable(f"the corpus {name!r}", error) from None


def _unreadable(what: str, error: Exception) -> CorpusError:
    return CorpusError(f"cannot read {what}: {getattr(error, 'strerror', None) or error}")


def corpus_file(name: str) -> Path:
    """The file of a real corpus: from `COURSE_DATA_DIR` when set, else downloaded and checked.

    Raises:
        CorpusError: the name is unknown, or there is neither a copy nor a network.
    """
    if name not in REMOTE:
        raise CorpusError(f"unknown corpus {name!r}: these can be downloaded: {', '.join(REMOTE)}")
    remote = REMOTE[name]
    if folder := os.environ.get("COURSE_DATA_DIR"):
        path = Path(folder) / remote.file
        try:
            if path.is_file():
                return path
        except OSError as error:
            raise _unreadable(str(path), error) from None
        raise CorpusError(
            f"COURSE_DATA_DIR is {folder!r}, but there is no {remote.file} in it: "
            "put a copy there, or unset the variable to download it"
        )
    import pooch

    try:
        path = pooch.retrieve(
            remote.url,
            known_hash=remote.known_hash,
            fname=remote.file,
            path=pooch.os_cache("attention-course"),
            downloader=pooch.HTTPDownloader(progressbar=True, timeout=_PATIENCE),
        )
    except Exception as error:
        raise CorpusError(
            f"{name} could not be downloaded from {remote.url} ({type(error).__name__}: {error}). "
            "Without a network use a corpus that ships with the course "
            f"({', '.join(remote.instead)}), or put a copy of {remote.file} into a folder and set "
            "COURSE_DATA_DIR to it"
        ) from error
    return Path(path)


def corpus_bytes(name: str) -> bytes:
    """What a real corpus holds, out of its archive where it comes in one.

    Raises:
        CorpusError: as `corpus_file`, or the file cannot be read, or the archive is damaged.
    """
    path = corpus_file(name)
    member = REMOTE[name].member
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _unreadable(str(path), error) from None
    return _member_of(path, data, member) if member else data


def _member_of(path: Path, data: bytes, member: str) -> bytes:
    """One file of a zip archive, in whatever folder it stands; nothing is written to disk."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            found = [
                name
                for name in archive.namelist()
                if name.split("/")[-1] == member and not name.startswith("__MACOSX")
            ]
            if found:
                return archive.read(found[0])
    except Exception:  # each way to compress has errors of its own, and so has an encrypted file
        raise CorpusError(
            f"{path} is not a sound zip archive (cut off, damaged, encrypted, or a web page "
            "instead of the file): delete it and load it again"
        ) from None
    raise CorpusError(f"{path} holds no {member}: delete the file and load it again")


def _parse(name: str, data: bytes) -> Corpus:
    """Tab-separated lines to pairs; what does not fit or is mended is counted with its reason."""
    corpus = Corpus(name, [])
    lines = _lines(name, data)
    corpus.lines = len(lines)
    for number, line in enumerate(lines, start=1):
        raw = line.split("\t")
        columns = [normalise(column) for column in raw]
        if reason := _fault(columns):
            corpus.dropped.setdefault(reason, []).append(number)
            continue
        corpus.pairs.append(Pair(columns[0], columns[1]))
        if columns != raw:
            for change in _changes(raw, columns):
                corpus.mended.setdefault(change, []).append(number)
    if not corpus.pairs:
        raise CorpusError(f"{corpus}. A corpus has one pair a line: source, tab, target, in UTF-8")
    return corpus


def _lines(name: str, data: bytes) -> list[str]:
    """The lines of a file in UTF-8, whatever ends them; a byte-order mark and an empty end go."""
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


def _changes(raw: list[str], columns: list[str]) -> Iterator[str]:
    """What `normalise` and the limit of two columns did to a line, outer spaces apart."""
    if any(column.strip(" ") != mended for column, mended in zip(raw[:2], columns)):
        yield "unusual spaces, apostrophes or accents"
    if len(columns) > 2:
        yield "more than two columns"


def _fault(columns: list[str]) -> str | None:
    """Why these columns are no pair, or None."""
    if len(columns) > 1 and columns[0] and columns[1]:
        return None
    if len(columns) > 1:
        return "an empty side"
    return "no tab" if columns[0] else "nothing on the line"


def _truncate(corpus: Corpus, size: int | None) -> Corpus:
    corpus.pairs = corpus.pairs[:size]
    return corpus


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
