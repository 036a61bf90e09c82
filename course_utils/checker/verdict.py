"""What can be known of an answer, and the names of its mistakes where they are certain."""

import functools
import time
from dataclasses import dataclass
from typing import Any

from course_utils.checker.exercise import Exercise, Mistake
from course_utils.checker.runner import outcome
from course_utils.checker.values import gap


@dataclass(frozen=True)
class Case:
    """One input with what was expected and what was given."""

    args: tuple
    expected: Any
    given: Any
    index: tuple = ()


@dataclass(frozen=True)
class Verdict:
    """What is known of an answer.

    `status` is one of "right", "mistake" (named), "wrong" (facts only), "error" (it raised),
    "time" (it did not end), "borrowed" (right, but by a function that the exercise rules out, or
    the library's own), "unfinished" (the placeholder still raises), "not attempted" and "not
    checked" (nothing to check was given). `measured` is what experiments tell of a wrong answer
    without a name; `tried` counts the inputs on which a right one was right.
    """

    status: str
    mistakes: tuple[Mistake, ...] = ()
    facts: tuple[str, ...] = ()
    case: Case | None = None
    printed: str = ""
    measured: tuple[str, ...] = ()
    tried: int = 0


@functools.cache
def outcome_of(exercise: Exercise, mistakes: tuple[Mistake, ...], i: int) -> Any:
    """What the reference gives on probe `i` when it makes these mistakes; none: what is right."""
    answer = exercise.combine(*mistakes).answer
    return outcome(exercise.play, answer, exercise.probes[i], i)


def explains(exercise: Exercise, mistakes: tuple[Mistake, ...], given: list[Any]) -> bool:
    return all(gap(outcome_of(exercise, mistakes, i), g).size <= 1 for i, g in enumerate(given))


def name_mistakes(
    exercise: Exercise, given: list[Any], end: float
) -> tuple[tuple[Mistake, ...], bool]:
    """The mistakes that every fitting explanation contains, and whether they explain everything.

    One mistake is tried before two; nothing is named when no explanation fits, when those that
    fit have nothing in common, or when the time is up.
    """
    for possible in ([(m,) for m in exercise.mistakes], exercise.pairs()):
        fitting = []
        for some in possible:
            if time.process_time() > end:
                return (), False
            fitting += [some] if explains(exercise, some, given) else []
        if fitting:
            certain = set.intersection(*({m.name for m in some} for some in fitting))
            named = tuple(m for m in fitting[0] if m.name in certain)
            return named, len(named) == len(fitting[0])
    return (), False
