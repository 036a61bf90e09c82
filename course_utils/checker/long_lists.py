"""Lists far longer than a probe has them: what is cut off at some length shows there."""

import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from course_utils.checker.exercise import Exercise
from course_utils.checker.plain_inputs import IDS, Input

_LONG = 60  # entries
_ENTRIES = {int, float, bool, str, bytes}


def of_long_lists(exercise: Exercise, probe: tuple) -> Iterator[Input]:
    """All lists of one length repeated, where nothing else that is given has this size.

    A tensor or a text is repeated only where it is all that is given.
    """
    if len(probe) == 1 and _is_line(probe[0]) and 1 < len(probe[0]) < _LONG:
        long = _repeated(probe[0], -(-_LONG // len(probe[0])))
        what = "characters" if isinstance(long, str) else "entries"
        yield f"where `{exercise.argument(0)}` has {len(long)} {what}", (long,)
    if _holds_tensors(probe):
        return
    names = [exercise.argument(i) for i in range(len(probe))]
    numbers = {x for name, x in zip(names, probe) if type(x) is int and name not in IDS}
    for size in sorted({len(x) for x in probe if _is_list(x)} - numbers):
        if 0 < size < _LONG:
            times = -(-_LONG // size)
            alike = [i for i, x in enumerate(probe) if _is_list(x) and len(x) == size]
            have = "has" if len(alike) == 1 else "have"
            what = " and ".join(f"`{names[i]}`" for i in alike)
            longer = _repeated if len(probe) == 1 else operator.mul
            args = tuple(longer(x, times) if i in alike else x for i, x in enumerate(probe))
            yield f"where {what} {have} {size * times} entries", args


def _repeated(value: Any, times: int) -> Any:
    """A text, list or tensor repeated; the numbers 0 to n - 1 in some order go on in this order."""
    one = value.tolist() if isinstance(value, Tensor) else value
    if {*map(type, one)} != {int} or sorted(one) != [*range(len(one))]:
        return value.repeat(times) if isinstance(value, Tensor) else value * times
    long = [x + k * len(one) for k in range(times) for x in one]
    return torch.tensor(long) if isinstance(value, Tensor) else long


def _is_line(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, Tensor) and value.dim() == 1)


def _is_list(value: Any) -> bool:
    """A list of numbers or words, or of lists of them; a tuple has its length for a reason."""
    return isinstance(value, list) and all(type(x) in _ENTRIES or _is_list(x) for x in value)


def _holds_tensors(value: Any) -> bool:
    several = isinstance(value, (list, tuple))
    return any(map(_holds_tensors, value)) if several else isinstance(value, Tensor)
