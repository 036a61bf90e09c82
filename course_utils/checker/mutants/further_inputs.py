"""Further inputs, on which an answer and a mutant must agree before they count as the same."""

from typing import Any

from torch import Tensor

from course_utils.checker.model import Exercise
from course_utils.checker.runner import outcome
from course_utils.checker.values import Raised


def further_inputs(exercise: Exercise) -> list[tuple]:
    """The probes with their floating-point tensors turned round along the last or first axis.

    That keeps sizes, ranges and the sums of rows; inputs on which the right answer raises are
    left out.
    """
    turned = [
        tuple(_turned(a, axis) for a in probe) for axis in (-1, 0) for probe in exercise.probes
    ]
    right = exercise.variant()
    return [
        args for args in turned if not isinstance(outcome(exercise.play, right, args, 0), Raised)
    ]


def _turned(value: Any, axis: int) -> Any:
    if isinstance(value, Tensor):
        return value.flip(axis) if value.is_floating_point() and value.dim() else value
    if isinstance(value, (list, tuple)):
        return type(value)(_turned(item, axis) for item in value)
    return value
