"""The learner's log: one JSON object a line, only ever added to; everything else is read from it.

Events: check, hint, solution and reset belong to exercises; review and forget to recall cards
(`course_utils.recall.schedule`), which stand in "card", not in "exercise"; guess and outcome to
what a learner expects of a cell (`course_utils.checker.lesson`), named in "guess".
Lines that a crash cut short, or that are none of ours, are skipped. Two kernels may write at once:
a lock file in the system's temporary folder keeps their lines apart.
"""

import contextlib
import hashlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock, Timeout

LONGEST = 100_000  # bytes of a line; ours are far shorter
_TEXTS = (  # what an entry may hold
    "exercise", "outcome", "code", "time", "card", "rating", "guess", "value", "came",
)  # fmt: skip
_NO_FILE = (OSError, RuntimeError, ValueError, Timeout)  # no such user, too long, a NUL, ...
_REPOSITORY = Path(__file__).resolve().parents[2]


def path() -> Path:
    """Where the log is: COURSE_PROGRESS, or beside the notebooks, or in the home folder.

    Raises:
        RuntimeError: the home folder of the user that "~" or "~name" means is not known.
    """
    if os.environ.get("COURSE_PROGRESS"):
        return Path(os.environ["COURSE_PROGRESS"]).expanduser()
    notebooks = _REPOSITORY / "notebooks"
    return (notebooks if notebooks.is_dir() else Path.home()) / ".progress.jsonl"


def write(event: str, exercise: str | None = None, **more) -> str:
    """Add one line.

    Returns:
        An empty string, or one line that says why nothing could be written.
    """
    entry = {"time": datetime.now(timezone.utc).isoformat(timespec="seconds"), "event": event}
    if exercise is not None:
        entry["exercise"] = exercise
    line = json.dumps(entry | more, ensure_ascii=False).encode() + b"\n"
    try:
        file = path()
        file.parent.mkdir(parents=True, exist_ok=True)
        with _lock(), open(file, "a+b") as log:
            if log.seek(0, os.SEEK_END):
                log.seek(-1, os.SEEK_END)
                if log.read(1) != b"\n":  # the line before was cut short
                    line = b"\n" + line
            log.write(line)
    except _NO_FILE as error:
        reason = str(error)[:200].rstrip(".")
        return f"Progress is not saved: {reason}. Set COURSE_PROGRESS to a file you can write."
    return ""


@contextlib.contextmanager
def _lock() -> Iterator[None]:
    """One for all logs of a user, held for a moment: no file is left behind for each log.

    Where this machine has no place for a lock, or one that another user made, there is none: that
    is no reason to lose a line.
    """
    key = hashlib.sha1(os.path.expanduser("~").encode()).hexdigest()[:16]
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError, NotImplementedError):
            file = Path(tempfile.gettempdir()) / f"course-progress-{key}.lock"
            held.enter_context(FileLock(file, timeout=5))
        yield


def read() -> list[dict]:
    """All entries that can be read, oldest first; none where there can be no file."""
    try:
        file = path()
        if not file.is_file():  # a pipe would be waited for
            return []
        with open(file, "rb") as log:
            return entries(log)
    except _NO_FILE:
        return []


def entries(log: BinaryIO) -> list[dict]:
    """The entries of a log that is open; lines that are none of ours are passed over."""
    return [entry for line in _lines(log) if _is_ours(entry := _parsed(line))]


def _lines(log: BinaryIO) -> Iterator[bytes]:
    """The lines of a file, without those longer than LONGEST, of which no more is held."""
    whole = True  # whether the next piece begins a line
    while piece := log.readline(LONGEST):
        ends = piece.endswith(b"\n")
        if whole and (ends or len(piece) < LONGEST):
            yield piece
        whole = ends


def _parsed(line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _is_ours(entry: object) -> bool:
    """Whether all that is read of an entry has the type that `write` gives it."""
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("event"), str)
        and all(isinstance(entry.get(name, ""), str) for name in _TEXTS)
        and type(entry.get("hint", 1)) is int
        and isinstance(tags := entry.get("tags", []), list)
        and all(isinstance(tag, str) for tag in tags)
        and isinstance(names := entry.get("mistakes", []), list)
        and all(isinstance(name, str) for name in names)
    )


def counting(entries: list[dict]) -> list[dict]:
    """The entries after the last reset of everything or of their exercise."""
    kept: list[dict] = []
    for entry in entries:
        if entry["event"] == "reset":
            name = entry.get("exercise")
            kept = [e for e in kept if name and e.get("exercise") != name]
        else:
            kept.append(entry)
    return kept


def since_reset(exercise: str | None = None) -> list[dict]:
    """The learner's entries that count, of all exercises or of one."""
    return [e for e in counting(read()) if exercise is None or e.get("exercise") == exercise]


def solved() -> set[str]:
    """The names of the exercises that were right once."""
    return {e.get("exercise") for e in since_reset() if e.get("outcome") == "right"}


def attempts() -> Counter:
    """How often each exercise was checked."""
    return Counter(e.get("exercise") for e in since_reset() if e["event"] == "check")


def kinds() -> dict[str, tuple[int, str]]:
    """How often each kind of mistake was made, and on which day last, over all exercises.

    Repeated checks of one and the same answer count once.
    """
    last = {
        (tag, e.get("exercise"), e.get("code")): e.get("time", "")[:10]
        for e in since_reset()
        if e["event"] == "check"
        for tag in e.get("tags", ())
    }
    times = Counter(tag for tag, *_ in last)
    return {
        tag: (n, max(d for key, d in last.items() if key[0] == tag)) for tag, n in times.items()
    }


def tags() -> Counter:
    """How often each kind of mistake was made."""
    return Counter({tag: times for tag, (times, _) in kinds().items()})


def wrong_guesses() -> list[str]:
    """What was last guessed otherwise than it came out: cases of the clinic, cells of lessons."""
    right: dict[str, bool] = {}
    for e in since_reset():
        if e["event"] in ("clinic", "outcome"):
            right[str(e.get("case") or e.get("guess"))] = bool(e.get("good", e.get("close")))
    return [name for name, good in right.items() if not good]


def hints_shown(exercise: str) -> int:
    """How many hints of an exercise were opened."""
    return max([0, *(e.get("hint", 0) for e in since_reset(exercise))])
