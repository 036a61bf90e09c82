"""More inputs than an exercise writes down, made from those by rule.

An exercise's own probes tell its known mistakes apart. What they happen to have in common (values
as wide as keys, nothing far away, no empty row, one id for padding) would let a wrong answer pass;
each rule takes that away. A widened input counts only where the solution and all the right variants
agree on it: then it asks for nothing that the exercise leaves open.
"""

import functools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from course_utils.checker.exercise import Exercise
from course_utils.checker.runner import outcome
from course_utils.checker.values import Raised, gap

FAR, NEAR = 25.0, 0.01
_ORDINARY = 100.0  # no number of an ordinary probe is larger
_IDS = ("pad", "bos", "eos", "unk", "mask_id")
Input = tuple[str, tuple]  # in words how it was made, and the arguments


@functools.cache
def widened(exercise: Exercise) -> tuple[Input, ...]:
    """The further inputs on which all right answers agree, each with what is special about it."""
    if exercise.kind == "value":
        return ()
    ordinary = [p for p in exercise.probes if _largest(p) <= _ORDINARY] or [*exercise.probes]
    found = [made for probe in ordinary[-2:] for made in _all_rules(exercise, probe)]
    return tuple(made for made in found if all_agree(exercise, made[1]))


def all_agree(exercise: Exercise, args: tuple) -> bool:
    """Whether the solution and all right variants give the same finite numbers."""
    due = outcome(exercise.play, exercise.solution, args, 0)
    return _is_finite(due) and all(
        gap(due, outcome(exercise.play, answer, args, 0)).size <= 1
        for answer in (exercise.variant(), *exercise.right_variants)
    )


def _all_rules(exercise: Exercise, probe: tuple) -> Iterator[Input]:
    for i, value in enumerate(probe):
        name = exercise.argument(i)
        for words, new in (*_of_floats(value), *_of_masks(value)):
            yield f"where `{name}` {words}", (*probe[:i], new, *probe[i + 1 :])
        if name in _IDS and type(value) is int:
            ids = {x for arg in _tensors(probe) if _is_ids(arg) for x in arg.flatten().tolist()}
            for other in sorted(ids - {value})[-1:]:
                swapped = tuple(_exchanged(arg, value, other) for arg in probe)
                yield f"where `{name}` is {other}", swapped
    for size in sorted({n for arg in _tensors(probe) for n in arg.shape if n > 2}):
        yield f"with sizes of {size - 1} in place of {size}", tuple(_cut(a, size) for a in probe)


def _of_floats(value: Any) -> Iterator[tuple[str, Any]]:
    """Far, near, and one more along each axis; only where any numbers will do, of both signs."""
    if not (isinstance(value, Tensor) and value.is_floating_point() and value.numel() > 1):
        return
    if not ((value < 0).any() and (value > 0).any()):
        return
    yield f"is {FAR:.0f} times as large", value * FAR
    yield f"is {NEAR} times as large", value * NEAR
    for axis in range(value.dim()):
        first = value.narrow(axis, 0, 1)
        yield f"has one entry more along axis {axis}", torch.cat([value, 0.7 - first], axis)


def _of_masks(value: Any) -> Iterator[tuple[str, Any]]:
    if not (isinstance(value, Tensor) and value.dtype == torch.bool and value.dim()):
        return
    yield "is True throughout", torch.ones_like(value)
    yield "is turned round", value.flip(-1)
    empty = value.clone()
    empty[(0,) * (value.dim() - 1)] = False
    yield "has a row without True", empty


def _cut(value: Any, size: int) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_cut(item, size) for item in value)
    if isinstance(value, Tensor):
        for axis, n in enumerate(value.shape):
            value = value.narrow(axis, 0, n - 1) if n == size else value
    return value


def _exchanged(value: Any, a: int, b: int) -> Any:
    """Two ids exchanged, in tensors of ids and as an argument."""
    if isinstance(value, (list, tuple)):
        return type(value)(_exchanged(item, a, b) for item in value)
    if _is_ids(value):
        return torch.where(value == a, b, torch.where(value == b, a, value))
    return {a: b, b: a}.get(value, value) if type(value) is int else value


def _is_ids(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype == torch.long


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _largest(value: Any) -> float:
    floats = (x for x in _tensors(value) if x.numel() and x.is_floating_point())
    return max((x.abs().max().item() for x in floats), default=0)


def _is_finite(value: Any) -> bool:
    if isinstance(value, Raised) or value is None:
        return False
    values = [*value.values()] if isinstance(value, dict) else value
    return all(x.isfinite().all() for x in _tensors(values))


def in_float64(exercise: Exercise) -> tuple | None:
    """The first probe in float64; None where it has no float tensor, or a right answer fails."""
    args = tuple(_doubled(arg) for arg in exercise.probes[0])
    has_any = any(x.dtype == torch.float64 for x in _tensors(args))
    return args if has_any and all_agree(exercise, args) else None


def _doubled(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_doubled(item) for item in value)
    return value.double() if isinstance(value, Tensor) and value.is_floating_point() else value


def smaller(exercise: Exercise, args: tuple) -> Iterator[tuple]:
    """Smaller forms of an input, the smallest first, on which all right answers agree."""
    if any(_is_ids(x) for x in _tensors(args)):
        return
    forms = [args]
    while sizes := [n for x in _tensors(forms[-1]) for n in x.shape if n > 2]:
        cut = tuple(_cut(arg, max(sizes)) for arg in forms[-1])
        if not all_agree(exercise, cut):
            break
        forms.append(cut)
    for form in reversed(forms):
        whole = tuple(_whole(arg) for arg in form)
        yield from (x for x in (whole, form) if x is not args and all_agree(exercise, x))


def _whole(value: Any) -> Any:
    free = isinstance(value, Tensor) and value.is_floating_point() and (value < 0).any()
    return (1.5 * value).round() if free and value.abs().max() > 0.5 else value
