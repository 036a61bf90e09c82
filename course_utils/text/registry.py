"""Which corpora there are, and where their bytes come from.

A corpus is one row of `CORPORA`. Real ones are downloaded and checked by their hash;
`COURSE_DATA_DIR` may name a folder with copies; then nothing is downloaded.
"""

import io
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

PAIRS, TEXT, REVIEWS = "corpus", "text", "corpus of reviews"
_PATIENCE = 30  # seconds without a byte after which a download has failed


@dataclass(frozen=True)
class File:
    """A file of a corpus. Without a URL it ships; `member` is what to read out of an archive."""

    name: str
    url: str = ""
    known_hash: str = ""
    member: str | None = None


@dataclass(frozen=True)
class Source:
    """What a corpus is and how it is read.

    Attributes:
        kind: PAIRS in tab-separated columns, source first; running TEXT; or REVIEWS, one a line,
            those of the first file positive, those of the second negative.
        what: it is, in a few words.
    """

    kind: str
    what: str
    files: tuple[File, ...]

    @property
    def ships(self) -> bool:
        return not any(file.url for file in self.files)


CORPORA = {
    # the small world has columns of its own, which `course_utils.text.small_world` reads
    "small-world": Source(
        PAIRS, "English and French by a grammar, word-aligned", (File("small_world.tsv.gz"),)
    ),
    "everyday": Source(PAIRS, "English and French by hand", (File("everyday.tsv"),)),
    "fra-eng": Source(
        PAIRS,
        "167,130 English sentences of Tatoeba in French",
        (
            File(
                "fra-eng.zip",
                "http://d2l-data.s3-accelerate.amazonaws.com/fra-eng.zip",
                "sha1:94646ad1522d915e7b0f9296181140edcf86a4f5",
                member="fra.txt",
            ),
        ),
    ),
    "prose": Source(TEXT, "stories of a small town", (File("prose.txt"),)),
    "tiny-shakespeare": Source(
        TEXT,
        "a million characters of Shakespeare",
        (
            File(
                "tiny-shakespeare.txt",
                "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
                "sha256:86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
            ),
        ),
    ),
    # its columns are read by `course_utils.text.reviews`
    "short-reviews": Source(REVIEWS, "film reviews by a grammar", (File("reviews.tsv.gz"),)),
    "rt-polarity": Source(
        REVIEWS,
        "10,662 snippets of film reviews (Pang and Lee, 2005)",
        (
            File(
                "rt-polarity.pos",
                "https://raw.githubusercontent.com/yoonkim/CNN_sentence/master/rt-polarity.pos",
                "sha256:4134882974a28d0c7b5151256f0e33a6169984ee7372c279e673f1114f475d58",
            ),
            File(
                "rt-polarity.neg",
                "https://raw.githubusercontent.com/yoonkim/CNN_sentence/master/rt-polarity.neg",
                "sha256:2d11cfbc790f1cd96d78339f41ce53ced1efa83cd22d37d6788fa3fe3d17e2fd",
            ),
        ),
    ),
}


class CorpusError(ValueError):
    """A corpus cannot be found or read; the message says why and what to do."""


def names(kind: str, shipped_only: bool = False) -> list[str]:
    """The corpora of one kind, those that ship first."""
    return [
        name
        for name, source in CORPORA.items()
        if source.kind == kind and (source.ships or not shipped_only)
    ]


def find(name: str, kind: str) -> Source:
    """The row of a corpus.

    Raises:
        CorpusError: there is none of this kind.
    """
    source = CORPORA.get(name)
    if source is None or source.kind != kind:
        raise CorpusError(f"unknown {kind} {name!r}: use one of {', '.join(names(kind))}")
    return source


def corpus_files(name: str) -> list[Path]:
    """The files of a corpus: shipped, from `COURSE_DATA_DIR` when set, or downloaded and checked.

    Raises:
        CorpusError: the name is unknown, or there is neither a copy nor a network.
    """
    if name not in CORPORA:
        raise CorpusError(f"unknown corpus {name!r}: use one of {', '.join(CORPORA)}")
    source = CORPORA[name]
    return [_path(file, source.kind) for file in source.files]


def corpus_bytes(name: str) -> bytes:
    """What the first file of a corpus holds, out of its archive where it comes in one.

    Raises:
        CorpusError: as `corpus_files`, or the file cannot be read, or the archive is damaged.
    """
    path = corpus_files(name)[0]
    member = CORPORA[name].files[0].member
    try:
        data = path.read_bytes()
    except OSError as error:
        raise unreadable(str(path), error) from None
    return _member_of(path, data, member) if member else data


def unreadable(what: str, error: Exception) -> CorpusError:
    """The error of a file that cannot be read."""
    return CorpusError(f"cannot read {what}: {getattr(error, 'strerror', None) or error}")


def _path(file: File, kind: str) -> Path:
    if not file.url:
        return Path(__file__).with_name(file.name)
    if folder := os.environ.get("COURSE_DATA_DIR"):
        path = Path(folder) / file.name
        try:
            if path.is_file():
                return path
        except OSError as error:
            raise unreadable(str(path), error) from None
        raise CorpusError(
            f"COURSE_DATA_DIR is {folder!r}, but there is no {file.name} in it: "
            "put a copy there, or unset the variable to download it"
        )
    import pooch

    try:
        path = pooch.retrieve(
            file.url,
            known_hash=file.known_hash,
            fname=file.name,
            path=pooch.os_cache("attention-course"),
            downloader=pooch.HTTPDownloader(progressbar=True, timeout=_PATIENCE),
        )
    except Exception as error:
        raise CorpusError(
            f"{file.name} could not be downloaded from {file.url} ({type(error).__name__}: "
            f"{error}). Without a network use a {kind} that ships with the course "
            f"({', '.join(names(kind, shipped_only=True))}), or put a copy of {file.name} into a "
            "folder and set COURSE_DATA_DIR to it"
        ) from error
    return Path(path)


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
