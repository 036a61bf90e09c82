"""Run somebody's code so that nothing it does can hurt the kernel.

The code runs in a thread of its own, under a time limit that works on every system: when time is
up an exception is raised inside that thread, again and again until it gives up. What it prints is
kept short; random state, default dtype and the arguments are put back as they were.
"""

import contextlib
import ctypes
import io
import linecache
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from course_utils.exercises.values import Raised, freeze, fresh, unchanged

SECONDS = 10.0  # for all the runs of one check
_GRACE = 2.0  # how long a thread may take to give up
_STACK = 32 * 2**20  # bytes; threads get only 512 kB on macOS
_MOST_TEXT = 400


class _TimeUp(BaseException):
    """Raised inside the answer's thread when its time is up."""


@dataclass
class Run:
    """What one call of the answer did."""

    value: Any = None
    timed_out: bool = False
    where: str = ""
    changed: tuple[int, ...] = ()


@dataclass
class Session:
    """All the runs of one check, and what the answer printed meanwhile."""

    runs: list[Run] = field(default_factory=list)
    printed: str = ""
    stuck: bool = False
    interrupted: bool = False


class _Notepad(io.TextIOBase):
    """Takes any amount of text and keeps the start."""

    def __init__(self):
        self.kept, self.length = "", 0

    def write(self, text: str) -> int:
        if self.length < _MOST_TEXT:
            self.kept += text[: _MOST_TEXT - self.length]
        self.length += len(text)
        return len(text)

    def summary(self) -> str:
        cut = f" ... ({self.length} characters in all)" if self.length > _MOST_TEXT else ""
        return self.kept.rstrip() + cut


def run_answer(
    play: Callable, answer: Any, inputs: Sequence[tuple], seconds: float = SECONDS
) -> Session:
    """Play an answer on every input; the first input is played twice, with other random numbers.

    Returns:
        One run per input and the repetition last; fewer when time ran out.
    """
    session = Session()
    worker = threading.Thread(
        target=_work, args=(session, play, answer, [*inputs, inputs[0]]), daemon=True
    )
    notepad = _Notepad()
    with (
        _global_state_kept(),
        contextlib.redirect_stdout(notepad),
        contextlib.redirect_stderr(notepad),
    ):
        _start(worker)
        try:
            _wait(worker, seconds)
        except KeyboardInterrupt:
            session.interrupted = True
        session.stuck = worker.is_alive() and not _stop(worker)
    if session.stuck:
        _silence(worker.ident)
    session.printed = notepad.summary()
    return session


def outcomes(play: Callable, answer: Any, inputs: Sequence[tuple]) -> list[Any]:
    """What our own code gives on every input: no thread and no limit, an error is an outcome."""
    found = []
    with _global_state_kept():
        for number, args in enumerate(inputs):
            torch.manual_seed(number)
            try:
                found.append(freeze(play(answer, *fresh(args))))
            except Exception as error:
                found.append(Raised(type(error).__name__, _message(error)))
    return found


def _start(worker: threading.Thread) -> None:
    usual = threading.stack_size(_STACK)
    try:
        worker.start()
    finally:
        threading.stack_size(usual)


def _wait(worker: threading.Thread, seconds: float) -> None:
    """Join in short steps, so that interrupting the kernel works on Windows too."""
    end = time.monotonic() + seconds
    while worker.is_alive() and time.monotonic() < end:
        worker.join(0.05)


def _stop(worker: threading.Thread) -> bool:
    """Raise _TimeUp inside the thread until it ends; an answer may catch some of them."""
    end = time.monotonic() + _GRACE
    while worker.is_alive() and time.monotonic() < end:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(worker.ident), ctypes.py_object(_TimeUp)
        )
        worker.join(random.uniform(0.001, 0.01))
    return not worker.is_alive()


def _work(session: Session, play: Callable, answer: Any, inputs: Sequence[tuple]) -> None:
    with contextlib.suppress(_TimeUp):
        for number, args in enumerate(inputs):
            run = Run(timed_out=True)  # until the call has come back
            session.runs.append(run)
            torch.manual_seed(number)
            given = fresh(args)
            try:
                run.value = freeze(play(answer, *given))
            except _TimeUp:
                return
            except BaseException as error:  # SystemExit and KeyboardInterrupt are caught too
                run.value = Raised(type(error).__name__, _message(error))
                run.where = _where(error, answer)
            run.changed = tuple(
                i for i, (a, b) in enumerate(zip(args, given, strict=True)) if not unchanged(a, b)
            )
            run.timed_out = False


def _message(error: BaseException) -> str:
    try:
        return str(error)[:300]
    except Exception:
        return "(its message cannot be shown)"


def _where(error: BaseException, answer: Any) -> str:
    """The deepest line of the answer's own file that led to the error."""
    code = getattr(answer, "__code__", None) or getattr(
        getattr(answer, "forward", None) or getattr(answer, "__init__", None), "__code__", None
    )
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if code is not None and f.filename == code.co_filename]
    if not own:
        return ""
    line = linecache.getline(own[-1].filename, own[-1].lineno).strip()
    return f"line {own[-1].lineno}: {line}" if line else f"line {own[-1].lineno}"


@contextlib.contextmanager
def _global_state_kept():
    """Put back what an answer may have changed for everybody."""
    numpy = sys.modules.get("numpy")
    torch_state, python_state = torch.get_rng_state(), random.getstate()
    numpy_state = numpy.random.get_state() if numpy else None
    dtype = torch.get_default_dtype()
    try:
        yield
    finally:
        torch.set_rng_state(torch_state)
        random.setstate(python_state)
        if numpy:
            numpy.random.set_state(numpy_state)
        torch.set_default_dtype(dtype)


class _WithoutThread(io.TextIOBase):
    """Drops what one thread writes; everything else goes to the stream behind."""

    def __init__(self, stream, ident: int):
        self._stream, self._ident = stream, ident

    def write(self, text: str) -> int:
        return len(text) if threading.get_ident() == self._ident else self._stream.write(text)

    def __getattribute__(self, name: str):
        if name in ("write", "_stream", "_ident"):
            return object.__getattribute__(self, name)
        return getattr(self._stream, name)


def _silence(ident: int) -> None:
    """A thread that cannot be stopped must at least not fill the notebook."""
    sys.stdout = _WithoutThread(sys.stdout, ident)
