"""Run somebody's code so that nothing it does can hurt the kernel.

The code runs in a thread of its own, under a time limit that works on every system: when time is
up an exception is raised inside that thread, and if the code catches it, another one that never
comes back, so that the thread sleeps for good and costs nothing. What the code prints is kept
short; random state, default dtype, print options, the working folder and the arguments are put back
as they were.
"""

import contextlib
import ctypes
import io
import linecache
import os
import random
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from course_utils.checker.values import Raised, freeze, fresh, unchanged

SECONDS = 10.0  # for all the runs of one check
_GRACE = 0.5  # how long a thread may take to give up, and then to fall asleep
_STACK = 32 * 2**20  # bytes; threads get only 512 kB on macOS
_MOST_TEXT = 200  # characters of what an answer prints
# There `while True: try: ... except: ...` stops all threads.
_MUST_BREATHE = sys.version_info < (3, 11)


_asleep: set[int] = set()  # threads that will never wake up


class _TimeUp(BaseException):
    """Raised inside the answer's thread when its time is up."""

    def __init__(self):
        self.thread = threading.get_ident()

    def __del__(self):  # caught; but where `_breathe` let it in, Python has ended the tracing
        if _MUST_BREATHE and self.thread == threading.get_ident():
            _trace(sys._getframe(1))


class _Sleep(BaseException):
    """Raised inside a thread that catches everything: making one puts the thread to sleep."""

    def __init__(self):
        _asleep.add(threading.get_ident())
        threading.Event().wait()


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
        return " / ".join(self.kept.split("\n")).rstrip(" /") + cut


def run_answer(
    play: Callable, answer: Any, inputs: Sequence[tuple], seconds: float = SECONDS
) -> Session:
    """Play an answer on every input; the first one again at the end, with other random numbers.

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
    session.printed = notepad.summary()
    return session


def play_batch(jobs: Sequence[Callable[[], Any]], each: float, end: float) -> list[Any]:
    """Our own small jobs, one after another in a thread; one that hangs is given up.

    Args:
        each: seconds that one job may take.
        end: when, on the clock of the process, no more jobs are begun.

    Returns:
        What each job returned, None for one that failed, hung or was not begun.
    """
    results: list[Any] = [None] * len(jobs)
    begun = [0, time.monotonic()]  # the job that runs, and since when

    def work():
        with contextlib.suppress(_TimeUp, _Sleep):
            while begun[0] < len(jobs) and time.process_time() < end:
                begun[1] = time.monotonic()
                with contextlib.suppress(Exception):
                    results[begun[0]] = jobs[begun[0]]()
                begun[0] += 1

    notepad = _Notepad()
    with (
        _global_state_kept(),
        contextlib.redirect_stdout(notepad),
        contextlib.redirect_stderr(notepad),
    ):
        while begun[0] < len(jobs) and time.process_time() < end:
            begun[1] = time.monotonic()
            worker = threading.Thread(target=work, daemon=True)
            _start(worker)
            while worker.is_alive() and time.monotonic() - begun[1] < each:
                worker.join(0.02)
            if worker.is_alive() and not _stop(worker):
                break
            begun[0] += 1
    return results


def outcome(play: Callable, answer: Any, args: tuple, number: int) -> Any:
    """What our own code gives on input `number`: no thread, no limit, an error is an outcome."""
    with _global_state_kept():
        torch.manual_seed(number)
        try:
            return freeze(play(answer, *fresh(args)))
        except Exception as error:
            return Raised(type(error).__name__, _message(error))


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
    """End the thread or put it to sleep; False while it is in code that is not Python."""
    with _not_reported(_TimeUp, _Sleep):
        for exception, pause in ((_TimeUp, 0.002), (_Sleep, 0.02)):
            end = time.monotonic() + _GRACE
            while time.monotonic() < end:
                if not worker.is_alive() or worker.ident in _asleep:
                    return True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(worker.ident), ctypes.py_object(exception)
                )
                worker.join(pause)
    return False


@contextlib.contextmanager
def _not_reported(*exceptions: type[BaseException]):
    """Python writes nothing about these where it can only report them and go on.

    One that is raised from outside may land in a destructor, or when its thread is all but over.
    """
    usual = sys.unraisablehook, threading.excepthook

    def unless_listed(report):
        return lambda lost: None if lost.exc_type in exceptions else report(lost)

    sys.unraisablehook, threading.excepthook = map(unless_listed, usual)
    try:
        yield
    finally:
        sys.unraisablehook, threading.excepthook = usual


def _trace(frame: types.FrameType | None) -> None:
    """Let this thread breathe, in this frame and its callers too."""
    sys.settrace(_breathe)
    while frame:
        frame.f_trace, frame = _breathe, frame.f_back


def _breathe(*_):
    """A trace function that does nothing but let other threads run."""
    return _breathe


def _work(session: Session, play: Callable, answer: Any, inputs: Sequence[tuple]) -> None:
    if _MUST_BREATHE:
        _trace(None)
    with contextlib.suppress(_TimeUp, _Sleep):
        for number, args in enumerate(inputs):
            run = Run(timed_out=True)  # until the call has come back
            session.runs.append(run)
            torch.manual_seed(number)
            given = fresh(args)
            try:
                run.value = freeze(play(answer, *given))
            except (_TimeUp, _Sleep):
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
    torch_printing = torch._tensor_str.get_printoptions()
    numpy_printing = numpy.get_printoptions() if numpy else {}
    try:
        folder = os.getcwd()
    except OSError:  # it was removed meanwhile
        folder = None
    try:
        yield
    finally:
        torch.set_rng_state(torch_state)
        random.setstate(python_state)
        if numpy:
            numpy.random.set_state(numpy_state)
            numpy.set_printoptions(**numpy_printing)
        torch.set_default_dtype(dtype)
        torch.set_printoptions(**torch_printing)
        if folder is not None:
            with contextlib.suppress(OSError):
                os.chdir(folder)
