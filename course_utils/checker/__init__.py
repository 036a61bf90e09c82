"""Exercises that name the mistake: `check`, `hint`, `solution`, `progress`, `catalogue`.

check(gaussian_weights)                   # a function or class of that name
check("average_pooling_answer", 3.0)    # a prediction, or an answer under another name
hint("gaussian_weights")                  # the next hint
solution("gaussian_weights")              # the solution as source code
progress()                              # what is done; reset("gaussian_weights") starts it anew
progress(1)                             # the single exercises of chapter 1
"""

import difflib
import hashlib
import importlib
import inspect
import os
import sys
import threading
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

from course_utils.checker import log, source
from course_utils.checker.exercise import REGISTRY, Exercise
from course_utils.checker.judge import Verdict, judge_answer
from course_utils.checker.lesson import HEADLESS
from course_utils.checker.overview import Progress
from course_utils.checker.report import Result, Source, Text
from course_utils.checker.runner import SECONDS
from course_utils.checker.shown import show
from course_utils.checker.side_effects import global_state_kept
from course_utils.checker.values import freeze

__all__ = [
    "catalogue",
    "check",
    "hint",
    "progress",
    "reset",
    "solution",
    "statement",
    "stub",
]
_NOTHING = object()


def catalogue() -> list[Exercise]:
    """Every exercise, in the order of the chapters."""
    chapters = importlib.import_module("course_utils.chapters")
    with global_state_kept():  # some draw their probes
        for _ in chapters.contents("exercises"):
            pass  # importing them registers them
    place = {chapter.name: number for number, chapter in enumerate(chapters.CHAPTERS)}
    return sorted(REGISTRY.values(), key=lambda e: place.get(e.notebook, len(place)))


def check(exercise: Any, answer: Any = _NOTHING, *, seconds: float = SECONDS) -> Result | Text:
    """Say whether an answer is right and, where it can be told, what is wrong with it.

    Args:
        exercise: the learner's function or class, named like the exercise; or the name.
        answer: what to check, when `exercise` is a name.
        seconds: of computing, for all the runs of the answer together, above 0.

    Returns:
        A result that a notebook displays; true when the answer is right. Nothing is raised.
    """
    try:
        found = _find(exercise)
        if isinstance(found, Text):
            return found
        if answer is _NOTHING and isinstance(exercise, str):
            return Text(f"Give the answer too: check({found.name!r}, your_answer).")
        if not _is_number(seconds, Real) or not 0 < seconds <= sys.float_info.max:
            given = show(freeze(seconds))
            return Text(f"seconds is the time limit, a number above 0 such as 10, not {given}.")
        answer = exercise if answer is _NOTHING else answer
        with _sign_of_life(found.name):
            verdict = judge_answer(found, answer, seconds)
        note = _remember(found, answer, verdict)
        if not note and verdict.status == "right":
            note = _what_next(found)
        return Result(found, verdict, note)
    except Exception as error:
        return Text(
            f"○ this answer could not be checked ({type(error).__name__}: {error}). "
            "That is a fault of the check, not of the answer."
        )


def hint(exercise: Any, number: int | None = None) -> Text:
    """The next hint of an exercise, or hint `number`, a whole number from 1."""
    found = _find(exercise)
    if isinstance(found, Text):
        return found
    last = len(found.hints)
    number = min(log.hints_shown(found.name) + 1, last) if number is None else number
    if not _is_number(number, Integral) or not 1 <= number <= last:
        given = show(freeze(number))
        return Text(f"{found.name} has hints 1 to {last}, not {given}: hint({found.name!r}, 1).")
    number = int(number)
    note = log.write("hint", found.name, hint=number)
    more = "" if number < last else f"\nThat was the last one: solution({found.name!r})."
    return Text(f"Hint {number} of {last}: {found.hints[number - 1]}{more}" + _line(note))


def solution(exercise: Any) -> Text:
    """The solution of an exercise as source code."""
    found = _find(exercise)
    if isinstance(found, Text):
        return found
    note = log.write("solution", found.name)
    return Source(source.solved(found) + (f"\n# {note}" if note else ""))


def progress(chapter: str | int | None = None) -> Progress:
    """How much of each chapter is solved, and which mistakes come back.

    With a chapter's number, or its name ("02_masked_softmax"): the state of its single exercises.
    """
    return Progress(catalogue(), chapter)


def reset(exercise: Any = None) -> Text:
    """Forget what was done in one exercise, or in all; the log itself keeps every line."""
    if exercise is None:
        note = log.write("reset")
        return Text("All exercises start anew." + _line(note))
    found = _find(exercise)
    if isinstance(found, Text):
        return found
    note = log.write("reset", found.name)
    return Text(f"{found.name} starts anew." + _line(note))


def stub(name: str) -> str:
    """The source of the notebook cell in which the learner writes the answer."""
    return source.stub(_known(name))


def statement(name: str) -> str:
    """The Markdown that stands above the cell."""
    e = _known(name)
    level = ("warm-up", "core", "stretch")[e.difficulty - 1]
    asks = "" if e.asks == "build" else f" · {e.asks}"
    head = f"**Exercise `{e.name}`** · {e.minutes} min · {level}{asks} · trains {e.trains}"
    return f"{head}\n\n{e.text}"


def _known(name: str) -> Exercise:
    found = _find(name)
    if isinstance(found, Text):
        raise ValueError(str(found))
    return found


def _find(exercise: Any) -> Exercise | Text:
    """The exercise of a name, or of a function, class or module that is named like it."""
    name = exercise
    if not isinstance(exercise, str):
        name = getattr(exercise, "__name__", None) or type(exercise).__name__
    if name not in REGISTRY:
        catalogue()  # registers them all
    if name in REGISTRY:
        return REGISTRY[name]
    near = difflib.get_close_matches(name, REGISTRY, n=3)
    tip = f" Did you mean {' or '.join(near)}?" if near else ""
    return Text(f'There is no exercise {name!r}.{tip} Say which one: check("name", your_answer).')


@contextmanager
def _sign_of_life(name: str):
    """A line, after a second, that is gone when the verdict is there."""
    said, screen = [], sys.stderr  # which the runs of an answer take away

    def say() -> None:
        said.append(f"{name}: still looking ...")
        print(said[0], end="\r", file=screen, flush=True)

    timer = threading.Timer(1.0, say)
    timer.daemon = True
    if not os.environ.get(HEADLESS):  # stored outputs tell nothing of a machine's speed
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if timer.is_alive():
            timer.join()
        if said:
            print(" " * len(said[0]), end="\r", file=screen, flush=True)


def _what_next(exercise: Exercise) -> str:
    """How far its chapter is, and the next exercise that is open."""
    solved, every = log.solved() | {exercise.name}, catalogue()
    there = [e.name for e in every if e.notebook == exercise.notebook]
    at = every.index(exercise)
    ahead = [e for e in (*every[at:], *every[:at]) if e.name not in solved]
    done = f"{exercise.notebook}: {len(solved & {*there})} of {len(there)} solved."
    return f"{done} Next: `{ahead[0].name}`." if ahead else f"{done} That was the last one."


def _remember(exercise: Exercise, answer: Any, verdict: Verdict) -> str:
    """Add an attempt to the log; a stub is none."""
    if verdict.status in ("not attempted", "not checked"):
        return ""
    return log.write(
        "check",
        exercise.name,
        outcome=verdict.status,
        mistakes=[m.name for m in verdict.mistakes],
        tags=[m.tag for m in verdict.mistakes],
        code=_fingerprint(answer),
    )


def _fingerprint(answer: Any) -> str:
    """Tells one answer from another without keeping it."""
    try:
        text = inspect.getsource(answer)
    except (OSError, TypeError):
        code = getattr(answer, "__code__", None)
        text = code.co_code.hex() if code else repr(freeze(answer))[:1000]
    return hashlib.sha1(text.encode()).hexdigest()[:12]


def _is_number(value: Any, kind: type) -> bool:
    """A number of this kind; True and False are none."""
    return isinstance(value, kind) and not isinstance(value, bool)


def _line(note: str) -> str:
    return f"\n{note}" if note else ""
