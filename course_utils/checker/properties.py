"""Open tasks: what an outcome says is true of an answer."""

import functools
from typing import Any

from course_utils.checker.exercise import Exercise, call
from course_utils.checker.runner import outcome


def is_of_properties(value: Any) -> bool:
    """Whether an outcome tells of each property whether an answer has it, and nothing else."""
    return isinstance(value, dict) and bool(value) and {*map(type, value.values())} == {bool}


def are_due(exercise: Exercise, due: Any) -> bool:
    """Whether a right outcome has all the properties that right outcomes have on the probes.

    Where it lacks one, as on an input so small that nothing moves, the property is not asked of
    anybody: what an exercise demands is that it holds.
    """
    if exercise.play is call or not isinstance(due, dict):
        return True
    return all(due.get(name) is value for name, value in _always(exercise).items())


@functools.cache
def _always(exercise: Exercise) -> dict[str, bool]:
    """The truths in the outcomes on the probes that are the same on all of them."""
    first, *others = (
        outcome(exercise.play, exercise.solution, args, k) for k, args in enumerate(exercise.probes)
    )
    return {
        name: value
        for name, value in first.items()
        if type(value) is bool and all(x.get(name) is value for x in others)
    }
