"""The logs that learners hand in: plain files, files inside zips, or notebooks that are run.

Nothing in the folder is changed and nothing is unpacked on the disk. What cannot be read is
reported with its reason and skipped.
"""

import io
import os
import signal
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from course_utils.checker import log
from course_utils.environment import ROOT

LOGS = (".jsonl", ".json", ".txt", ".log")
MOST_BYTES = 20_000_000  # of one log
MOST_MEMBERS = 5_000  # of one zip
Content = Callable[[], BinaryIO] | Exception
_UNREADABLE = (OSError, ValueError, RuntimeError, zipfile.BadZipFile, NotImplementedError,
               EOFError, zlib.error)  # fmt: skip


@dataclass
class Hand:
    """What is known of one learner."""

    name: str
    entries: list[dict] = field(default_factory=list)


def read_folder(folder: Path, seconds: float = 0) -> tuple[list[Hand], list[tuple[str, str]]]:
    """All learners of a folder, by name, and what was skipped with the reason.

    A learner is called as the folder in which a file lies, or as the file itself. With `seconds`
    notebooks are run too, each for so long at most.
    """
    hands: dict[str, Hand] = {}
    skipped: list[tuple[str, str]] = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        inside = PurePosixPath(path.relative_to(folder).as_posix())
        for name, content in _files(path, inside):
            try:
                if isinstance(content, Exception):
                    raise content
                if not _is_notebook(name):
                    _add(hands, name, log.entries(content()))
                elif seconds:
                    _add(hands, name, _of_notebook(content(), seconds))
            except _UNREADABLE as error:
                skipped.append((str(name), f"{type(error).__name__}: {error}"[:200]))
    return sorted(hands.values(), key=lambda hand: hand.name), skipped


def _add(hands: dict[str, Hand], name: PurePosixPath, entries: list[dict]) -> None:
    if not entries:
        raise ValueError("no line of it is an entry of a course's log")
    who = name.parts[0] if len(name.parts) > 1 else name.stem
    hands.setdefault(who, Hand(who)).entries += entries


def _is_notebook(name: PurePosixPath) -> bool:
    return name.suffix == ".ipynb"


def _files(path: Path, inside: PurePosixPath) -> Iterator[tuple[PurePosixPath, Content]]:
    """The logs and notebooks that a file is, or that a zip holds, each to be opened; or an error.

    Where a zip holds one log, it has the zip's name; where more, that of its folder or file.
    """
    if path.suffix.lower() != ".zip":
        wanted = _is_wanted(inside)
        yield inside, partial(_at_most, path.open, "rb") if wanted else ValueError("it is no log")
        return
    try:
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.infolist() if not m.is_dir()]
            if len(members) > MOST_MEMBERS:
                raise ValueError(f"it holds more than {MOST_MEMBERS} files")
            named = [(PurePosixPath(m.filename), m) for m in members]
            named = [(n, m) for n, m in named if _is_wanted(n) and "__MACOSX" not in n.parts]
            for name, member in named:
                alone = len(named) == 1 or name.stem == ".progress" and len(name.parts) == 1
                shown = inside.with_suffix("") / name.name if alone else name
                yield shown, partial(_at_most, archive.open, member)
    except _UNREADABLE as error:
        yield inside, error


def _is_wanted(name: PurePosixPath) -> bool:
    return name.suffix.lower() in (*LOGS, ".ipynb") or name.name == ".progress.jsonl"


def _at_most(opening: Callable[..., BinaryIO], *which: object) -> BinaryIO:
    with opening(*which) as stream:
        data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(f"it is larger than {MOST_BYTES // 10**6} MB")
    return io.BytesIO(data)


def _of_notebook(stream: BinaryIO, seconds: float) -> list[dict]:
    """The log of a notebook that is run in a process and a folder of its own."""
    if not seconds:
        return []
    with tempfile.TemporaryDirectory() as scratch:
        notebook, progress = Path(scratch, "handed_in.ipynb"), Path(scratch, "progress.jsonl")
        notebook.write_bytes(stream.read())
        kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
        settings = kept | {
            "HOME": scratch,
            "IPYTHONDIR": scratch,
            "MPLBACKEND": "Agg",
            "COURSE_PROGRESS": str(progress),
            "PYTHONPATH": str(ROOT),
        }
        command = [sys.executable, "-m", "course_utils.cli.class_run", notebook.name, str(seconds)]
        process = subprocess.Popen(
            command,
            cwd=scratch,
            env=settings,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=os.name != "nt",
        )
        try:
            process.wait(max(120, 4 * seconds))  # a busy machine counts less time than the clock
        except subprocess.TimeoutExpired:
            pass  # what it had checked until then counts
        finally:
            _end(process)
        if not progress.is_file():
            raise RuntimeError("it ran, but checked nothing")
        return log.entries(_at_most(progress.open, "rb"))


def _end(process: subprocess.Popen) -> None:
    """End the process and those that it has started."""
    try:
        if os.name != "nt":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except ProcessLookupError:
        pass
    process.wait()
