"""What an answer is called with, where inputs are others; what right ones return and borrow."""

import functools
import inspect
from types import FunctionType
from typing import Any

from torch import Tensor

from course_utils.checker.exercise import Exercise, call
from course_utils.checker.runner import outcome
from course_utils.checker.values import fresh
from course_utils.checker.watch import Watch, things

_PLAIN = (Tensor, bool, int, float, str, list, tuple, FunctionType)


def own_arguments(exercise: Exercise, args: tuple) -> list[tuple[str, Any]]:
    """What the answer itself is called with, where `play` makes that out of other arguments.

    Empty where the arguments of `play` can be shown: where they are the answer's, or hold them;
    and where the answer is called several times, or with things that have no short text.
    """
    if exercise.kind != "function" or exercise.play is call:
        return []
    names = list(inspect.signature(exercise.solution).parameters)
    if {*names} <= {exercise.argument(i) for i in range(len(args))}:
        return []
    calls, _ = _calls(exercise, args)
    plain = len(calls) == 1 and all(isinstance(x, _PLAIN) for x in calls[0])
    several = plain and not all(isinstance(x, FunctionType) for x in calls[0])
    return list(zip(names, calls[0])) if several else []


def one_call(exercise: Exercise, args: tuple, k: int) -> list[tuple[str, Any]]:
    """What call `k` of an answer is given where `play` lists the results of several calls."""
    if exercise.kind != "function" or exercise.play is call:
        return []
    calls, results = _calls(exercise, args)
    listed = isinstance(results, list) and len(results) == len(calls) > 1
    if not listed or not all(isinstance(x, _PLAIN) for x in calls[k]):
        return []
    return list(zip(inspect.signature(exercise.solution).parameters, calls[k]))


def _calls(exercise: Exercise, args: tuple) -> tuple[list[tuple], Any]:
    """What the solution is given, call by call, and what comes out of them."""
    calls: list[tuple] = []

    def noting(*given):
        calls.append(fresh(given))
        return exercise.solution(*given)

    return calls, outcome(exercise.play, noting, args, 0)


@functools.cache
def things_due(exercise: Exercise, i: int) -> tuple[int, str] | None:
    """How many things the solution returns on probe `i`, and that in words; None for any number."""
    watch = Watch(exercise.solution)
    with watch.returns_noted() as answer:
        outcome(exercise.play, answer, exercise.probes[i], i)
    due = things(watch.returned)
    words = "is one tensor" if isinstance(watch.returned, Tensor) else f"are {due} things"
    return None if due is None else (due, "is one thing" if due == 1 and "are" in words else words)


@functools.cache
def may_borrow(exercise: Exercise) -> frozenset[str]:
    """The library's functions and layers whose results right answers hand back as they are."""
    allowed: set[str] = set()
    for right in (exercise.solution, *exercise.right_variants):
        watch = Watch(right)
        with watch.returns_noted() as answer, watch.calls_noted():
            outcome(exercise.play, answer, exercise.probes[0], 0)
        allowed |= watch.borrowed
    return frozenset(allowed)
