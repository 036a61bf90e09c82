"""Run somebody's code so that nothing it does can hurt the kernel.

The code runs in a thread of its own, under a limit of computing time, so that a busy machine makes
nothing wrong; code that only waits has ten times as long by the clock. When time is up an exception
is raised inside that thread, and if the code catches it, another one that never comes back, so that
the thread sleeps for good and costs nothing. What the code prints is kept short; random state,
default dtype, print options, the working folder and the arguments are put back as they were.
"""

import contextlib
import ctypes
import sys
import threading
import time
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from course_utils.checker import errors
from course_utils.checker.side_effects import global_state_kept, quiet
from course_utils.checker.values import Raised, freeze, fresh, unchanged
from course_utils.checker.watch import Watch, described, loads, things

SECONDS = 2.0  # of computing, for all the runs of an answer
_PATIENCE = 10  # by the clock, times that, for one that waits or a machine that is busy
_LOADING = 30.0  # seconds of loading modules that do not count, in one check
_GRACE = 0.5  # how long a thread may take to give up, and then to fall asleep
_STACK = 32 * 2**20  # bytes; threads get only 512 kB on macOS
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
    """What one call of the answer did, and the seconds of computing that it took."""

    value: Any = None
    timed_out: bool = False
    seconds: float = 0.0
    where: str = ""
    tips: tuple[str, ...] = ()
    changed: tuple[int, ...] = ()
    things: int | None = None
    form: str = ""


@dataclass
class Session:
    """The runs of one check, one for each input, and what the answer printed meanwhile.

    `repeated` is the last input once more with other random numbers, `again` once more with the
    very tensors of the first run, and `watch` holds notes on a last run.
    """

    runs: list[Run] = field(default_factory=list)
    repeated: Run | None = None
    again: Run | None = None
    watch: Watch | None = None
    printed: str = ""
    warned: tuple[str, ...] = ()
    loaded: float = 0.0  # seconds that went into loading modules
    stuck: bool = False
    interrupted: bool = False


def run_answer(
    play: Callable,
    answer: Any,
    inputs: Sequence[tuple],
    seconds: float = SECONDS,
    *,
    whole: bool = False,
    numbered: bool = True,
) -> Session:
    """Play an answer on every input; `whole` adds the further runs of a `Session`.

    Each input has random numbers of its own; unless `numbered`, all have those of the first.

    Returns:
        A session with one run per input, fewer when time ran out.
    """
    session = Session(watch=Watch(answer))
    worker = threading.Thread(
        target=_work, args=(session, play, inputs, whole, numbered), daemon=True
    )
    with quiet() as notepad:
        _start(worker)
        try:
            session.loaded = _wait(worker, seconds)
        except KeyboardInterrupt:
            session.interrupted = True
        session.stuck = worker.is_alive() and not _stop(worker)
    if session.runs and session.runs[-1].timed_out:
        session.runs[-1].seconds += time.process_time()
    session.printed, session.warned = notepad.summary(), tuple(notepad.warned)
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
    loading_ends = time.monotonic() + _LOADING

    def work():
        with contextlib.suppress(_TimeUp, _Sleep):
            while begun[0] < len(jobs) and time.process_time() < end:
                begun[1] = time.monotonic()
                with contextlib.suppress(Exception):
                    results[begun[0]] = jobs[begun[0]]()
                begun[0] += 1

    with quiet():
        while begun[0] < len(jobs) and time.process_time() < end:
            begun[1] = time.monotonic()
            worker = threading.Thread(target=work, daemon=True)
            _start(worker)
            while worker.is_alive() and time.monotonic() - begun[1] < each:
                worker.join(0.02)
                if loads(worker.ident) and time.monotonic() < loading_ends:
                    begun[1] = time.monotonic()  # cut off, a module would stay half loaded
            if worker.is_alive() and not _stop(worker):
                break
            begun[0] += 1
    return results


def outcome(
    play: Callable, answer: Any, args: tuple, number: int, *, kept: bool = False, times: int = 1
) -> Any:
    """What our own code gives on input `number`: no thread, no limit, an error is an outcome.

    Args:
        kept: the caller keeps the global state.
        times: how often it is called with the same tensors; the last outcome counts.
    """
    with contextlib.nullcontext() if kept else global_state_kept():
        given = fresh(args)
        try:
            for _ in range(times):
                _seed(number)
                value = freeze(play(answer, *given))
            return value
        except Exception as error:
            return Raised(type(error).__name__, errors.message(error))


def _seed(number: int) -> None:
    torch.default_generator.manual_seed(number)  # torch.manual_seed formats a stack each time


def _start(worker: threading.Thread) -> None:
    usual = threading.stack_size(_STACK)
    try:
        worker.start()
    finally:
        threading.stack_size(usual)


def _wait(worker: threading.Thread, seconds: float) -> float:
    """Join in short steps, so that interrupting the kernel works on Windows too.

    What modules take to load does not count: cut off they stay half loaded. Returns those seconds.
    """
    end, latest = time.process_time() + seconds, time.monotonic() + _PATIENCE * seconds
    loaded, now = 0.0, time.process_time()
    while worker.is_alive() and now < end + loaded and time.monotonic() < latest + _LOADING:
        worker.join(0.02)
        before, now = now, time.process_time()
        if loaded < _LOADING and loads(worker.ident):
            loaded += now - before
        elif time.monotonic() > latest + loaded * _PATIENCE:
            break
    return loaded


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


def _work(
    session: Session, play: Callable, inputs: Sequence[tuple], whole: bool, numbered: bool
) -> None:
    if _MUST_BREATHE:
        _trace(None)
    watch = session.watch
    with contextlib.suppress(_TimeUp, _Sleep), watch.returns_noted() as answer:

        def one(run: Run, given: tuple, number: int, before: tuple = ()) -> Run:
            _seed(number)
            run.seconds -= time.process_time()
            watch.returned = ...  # nothing yet
            try:
                run.value = freeze(play(answer, *given))
            except (_TimeUp, _Sleep):
                raise
            except BaseException as error:  # SystemExit and KeyboardInterrupt are caught too
                run.value = Raised(type(error).__name__, errors.message(error))
                run.where, tips = errors.place(error, watch.answer)
                run.tips = tuple(tips)
            run.seconds += time.process_time()
            if not run.where:  # it came back, whatever was then made of it
                run.things, run.form = things(watch.returned), described(watch.returned)
            pairs = enumerate(zip(before, given))
            run.changed = tuple(i for i, (a, b) in pairs if not unchanged(a, b))
            run.timed_out = False
            return run

        first: tuple = ()
        for number, args in enumerate(inputs):
            session.runs.append(Run(timed_out=True))  # until the call has come back
            given = fresh(args)
            one(session.runs[-1], given, number if numbered else 0, args)
            first = first or given
        if whole:
            session.again = Run(timed_out=True)
            one(session.again, first, 0)
            session.repeated = Run(timed_out=True)
            one(session.repeated, fresh(inputs[-1]), len(inputs))
            once_more = fresh(inputs[0])
            with watch.calls_noted():
                one(Run(), once_more, 0)
