"""Smaller forms of a probe, with whole numbers where that can be, to show what is wrong."""

import copy
import functools
import itertools
from collections.abc import Iterator
from typing import Any

from torch import Tensor

from course_utils.checker.exercise import Exercise
from course_utils.checker.resized import cut, is_ids
from course_utils.checker.stated_sizes import tensors_in
from course_utils.checker.widen import all_agree


def smaller(exercise: Exercise, i: int) -> Iterator[tuple]:
    """Smaller forms of probe `i`, the smallest first, on which all right answers agree.

    Each is made when it is first asked for, and then kept.
    """
    return copy.copy(_kept(exercise, i))


@functools.cache
def _kept(exercise: Exercise, i: int) -> Iterator[tuple]:
    """Stays at the start: what reads is a copy."""
    return itertools.tee(_made(exercise, exercise.probes[i]), 1)[0]


def _made(exercise: Exercise, args: tuple) -> Iterator[tuple]:
    if any(is_ids(x) for x in tensors_in(args)):
        return
    forms = [args]
    while sizes := [n for x in tensors_in(forms[-1]) for n in x.shape if n > 2]:
        size = max(sizes)
        cuts = (tuple(cut(x, size, to) for x in forms[-1]) for to in (max(2, size // 2), size - 1))
        fitting = next((cut for cut in cuts if all_agree(exercise, cut)), None)
        if fitting is None:
            break
        forms.append(fitting)
    for form in reversed(forms):
        whole = tuple(_whole(arg) for arg in form)
        yield from (x for x in (whole, form) if x is not args and all_agree(exercise, x))


def _whole(value: Any) -> Any:
    """Whole numbers in the place of others; what differs in a row differs still."""
    free = isinstance(value, Tensor) and value.is_floating_point() and (value < 0).any()
    whole = (1.5 * value).round() if free and value.abs().max() > 0.5 else value
    return whole if whole is value or _different(whole) == _different(value) else value


def _different(value: Tensor) -> list[int]:
    """How many numbers each row holds."""
    rows = value.reshape(-1, value.shape[-1] if value.dim() else 1)
    return [len(row.unique()) for row in rows]
