"""More inputs than an exercise writes down, made from those by rule.

An exercise's own probes tell its known mistakes apart. What they happen to have in common (values
as wide as keys, nothing far away, no empty row, one id for padding) would let a wrong answer pass;
each rule takes that away. A widened input counts only where the axes have the sizes that the
docstring states, and where the solution and all the right variants agree on it: then it asks for
nothing that the exercise leaves open.
"""

import functools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from course_utils.checker.exercise import Exercise
from course_utils.checker.generic_inputs import generic
from course_utils.checker.long_lists import of_long_lists
from course_utils.checker.plain_inputs import IDS, Input, of_large_sizes, of_plain_numbers
from course_utils.checker.properties import are_due
from course_utils.checker.resized import (
    all_differ,
    cut,
    exchanged,
    ids_in,
    is_ids,
    is_order,
    is_signs,
    longer_mask,
    weights_still,
    without_gaps,
)
from course_utils.checker.runner import outcome
from course_utils.checker.side_effects import global_state_kept
from course_utils.checker.special_inputs import (
    are_amounts,
    at_limits,
    both_signs,
    of_labels,
    of_masks,
    of_meaning,
    of_weights,
)
from course_utils.checker.stated_sizes import (
    as_stated,
    axes_of,
    in_range,
    sizes_of,
    tensors_in,
    within_numbers,
)
from course_utils.checker.together import far_from_zero, of_divisors, of_far_scores, of_several
from course_utils.checker.values import Raised, gap

FAR, NEAR, VERY_FAR = 25.0, 0.01, 4000.0
ROW_FAR = 1000.0  # of one row
_ORDINARY = 100.0  # no number of an ordinary probe is larger
_DRAWN = 48  # inputs of `drawn`, at most
_ALIKE = {int, str, list}  # entries of a list of which two may be the same


@functools.cache
def widened(exercise: Exercise) -> tuple[Input, ...]:
    """The further inputs on which all right answers agree, each with what is special about it."""
    if exercise.kind == "value":
        return ()
    ordinary = [p for p in exercise.probes if _largest(p) <= _ORDINARY] or [*exercise.probes]
    made = [pair for probe in ordinary[-2:] for pair in _all_rules(exercise, probe)]
    made += of_large_sizes(exercise, exercise.probes[0])
    found = [(words, in_range(exercise, args)) for words, args in made]
    return tuple(pair for pair in (*exercise.edges, *found) if all_agree(exercise, pair[1]))


def all_agree(exercise: Exercise, args: tuple) -> bool:
    """Whether sizes are as stated, and right answers agree on finite numbers, and on what holds."""
    if not as_stated(exercise, args):
        return False
    with global_state_kept():
        due = outcome(exercise.play, exercise.solution, args, 0, kept=True)
        holds = _is_finite(due) and are_due(exercise, due)
        return holds and all(
            gap(due, outcome(exercise.play, answer, args, 0, kept=True)).size <= 1
            for answer in (exercise.variant(), *exercise.right_variants)
        )


def _all_rules(exercise: Exercise, probe: tuple) -> Iterator[Input]:
    forms = set()
    names = [exercise.argument(i) for i in range(len(probe))]
    for i, (name, value) in enumerate(zip(names, probe)):
        made = (*_of_floats(value), *of_masks(value), *_of_rows(value), *of_weights(value))
        for words, new in (*made, *of_meaning(exercise, name, value, probe)):
            yield f"where `{name}` {words}", (*probe[:i], new, *probe[i + 1 :])
        if both_signs(value):
            for words, new in (_longer(exercise, probe, i, axis) for axis in range(value.dim())):
                form = tuple(x.shape for x in tensors_in(new))
                if form not in forms:  # axes of one name grow together
                    forms.add(form)
                    yield words, new
        if name in IDS and type(value) is int:
            ids = {x for arg in probe for x in ids_in(arg)}
            for other in sorted(ids - {value})[-1:]:
                swapped = tuple(exchanged(arg, value, other) for arg in probe)
                yield f"where `{name}` is {other}", swapped
    yield from of_plain_numbers(exercise, probe)
    yield from of_long_lists(exercise, probe)
    yield from at_limits(names, probe)
    yield from of_labels(exercise, probe)
    yield from far_from_zero(names, probe)
    yield from of_several(names, probe)
    yield from of_divisors(exercise, probe)
    yield from of_far_scores(names, probe)
    sizes = sorted({n for arg in tensors_in(probe) for n in arg.shape if n > 1})
    for size in sizes:
        for to in sorted({size - 1, 1, *(n for n in sizes if n < size)} - {0}, reverse=True):
            less = tuple(cut(a, size, to) for a in probe)
            yield _smaller_in_words(exercise, probe, size, to), less


def _smaller_in_words(exercise: Exercise, probe: tuple, size: int, to: int) -> str:
    """Which axes are cut: those of a size, by their names where all have one."""
    of = sizes_of(exercise, probe)
    unnamed = any(isinstance(x, (Tensor, list, tuple)) and not axes_of(exercise, i, x)
                  for i, x in enumerate(probe))  # fmt: skip
    names = [name for name, sizes in of.items() if size in sizes]
    if unnamed or not all(name.isidentifier() and of[name] == {size} for name in names):
        return f"with sizes of {to} in place of {size}"
    return f"where {' and '.join(names)} {'is' if len(names) == 1 else 'are'} {to}"


@functools.cache
def far_longer(exercise: Exercise) -> tuple[tuple, ...]:
    """Of these the ones with long lists: they are quick, and no number that cuts holds there."""
    made = [x for probe in exercise.probes[-2:] for _, x in of_long_lists(exercise, probe)]
    return tuple(args for args in made if all_agree(exercise, in_range(exercise, args)))


@functools.cache
def drawn(exercise: Exercise) -> tuple[tuple, ...]:
    """The probes with other numbers, ids and masks, some longer or shorter.

    A chance fit does not survive them. They judge explanations, not answers: they may go beyond
    what a statement allows, wherever the right answers go along.
    """
    generator = torch.Generator().manual_seed(1)

    def other(value: Any) -> Any:
        if isinstance(value, Tensor) and value.dim() and value.numel():
            if value.is_floating_point() and (value < 0).any():
                new = torch.randn(value.shape, generator=generator).to(value.dtype)
                return new.sign() if is_signs(value) else new
            if is_order(value):
                return torch.randperm(len(value), generator=generator)
            if all_differ(value):
                return value.gather(-1, torch.rand(value.shape, generator=generator).argsort(-1))
            at = torch.randint(value.numel(), value.shape, generator=generator)
            new = value.flatten()[at]
            return new.triu() + new.triu(1).mT if _is_symmetric(value) else new
        if isinstance(value, (list, tuple)) and value:
            at = torch.randint(len(value), (len(value),), generator=generator).tolist()
            plain = all(type(item) in (bool, int) for item in value)
            return type(value)(value[k] if plain else other(item) for k, item in zip(at, value))
        return value

    made: list[tuple] = []
    for probe in exercise.probes:
        forms = [probe, probe]
        for size in {n for x in probe for n in _lengths(x) if n > 1}:
            forms += (tuple(cut(x, size, to) for x in probe) for to in {1, size - 1})
        for i, value in enumerate(probe):
            axes = range(value.dim()) if isinstance(value, Tensor) else ()
            forms += (_longer(exercise, probe, i, axis)[1] for axis in axes)
        inside = [in_range(exercise, form) for form in forms]
        others = (tuple(other(x) for x in form) for form in inside for _ in range(2))
        made += (within_numbers(exercise, args) for args in others)
    few = made[:: -(-len(made) // _DRAWN)] if made else []
    return tuple(args for args in few if all_agree(exercise, args))


def _is_symmetric(value: Tensor) -> bool:
    square = value.dim() == 2 and value.shape[0] == value.shape[1] > 1
    return square and value.dtype != torch.bool and value.equal(value.mT)


def _lengths(value: Any) -> Iterator[int]:
    if isinstance(value, Tensor):
        yield from value.shape
    elif isinstance(value, (list, tuple)):
        yield len(value)
        for item in value:
            yield from _lengths(item)


def _of_floats(value: Any) -> Iterator[tuple[str, Any]]:
    """Far and near, where any numbers will do."""
    if both_signs(value):
        yield f"is {FAR:.0f} times as large", value * FAR
        yield f"is {NEAR} times as large", value * NEAR
        yield f"is {VERY_FAR:.0f} times as large", value * VERY_FAR
        yield "is negative throughout", -4 * value.abs() - NEAR
    elif are_amounts(value):
        yield f"is {FAR:.0f} times as large", [x * FAR for x in value]


def _of_rows(value: Any) -> Iterator[tuple[str, Any]]:
    """Two rows, ids or words that are equal; a row of zeros, and one of large numbers."""
    if isinstance(value, list) and len({*map(type, value)} & _ALIKE) == 1 and len(value) > 1:
        yield "holds the same at 0 and 1", [value[0], *value[:-1]]
        if isinstance(value[0], str) and value[0].upper() not in value:
            yield f"begins with {value[0].upper()}", [value[0].upper(), *value[1:]]
    if not isinstance(value, Tensor) or not value.dim() or value.dtype == torch.bool:
        return
    axis = max(0, value.dim() - 2) if both_signs(value) else value.dim() - 1
    if value.shape[axis] > 2 and (both_signs(value) or (is_ids(value) and not is_order(value))):
        for at, beside in ((0, 1), (1, 2)):
            equal = value.clone()
            equal.select(axis, beside).copy_(value.select(axis, at))
            yield f"holds the same at {at} and {beside}", equal
    if both_signs(value) and value.dim() > 1:
        empty = value.clone()
        empty.select(axis, 0).zero_()
        yield "has a row of zeros", empty
        large = value.clone()
        large.select(axis, 0).mul_(ROW_FAR)
        yield f"has a row that is {ROW_FAR:.0f} times as large", large
        holed = value.clone()
        holed[..., ::2, -1] = 0
        yield "holds zeros", holed
        near = value.clone()
        near[..., ::2, -1] = -1e-6
        yield "holds numbers near 0", near


@functools.cache
def usual(exercise: Exercise, factor: float = 1.0) -> tuple[tuple, ...]:
    """The generic inputs that are as the exercise states them, or so many times as large."""
    every = [
        within_numbers(exercise, tuple(factor * x if both_signs(x) else x for x in args))
        for args in generic(exercise)
        if any(map(both_signs, args))
    ]
    return tuple(args for args in every if all_agree(exercise, args))


def _longer(exercise: Exercise, probe: tuple, i: int, axis: int) -> Input:
    """One entry more along an axis, and along all axes of its name."""
    names = [axes_of(exercise, j, value) for j, value in enumerate(probe)]
    name = names[i][axis] if names[i] else ""
    new, others = list(probe), 0

    def grown(value: Any, at: int) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(grown(item, at) for item in value)
        if value.dtype == torch.bool and at == value.dim() - 1 and value.equal(without_gaps(value)):
            return longer_mask(value)
        more = value.narrow(at, 0, 1)
        more = 0.7 - more if both_signs(value) and not is_signs(value) else more
        more = torch.tensor([len(value)]) if is_order(value) else more
        return weights_still(value, torch.cat([value, more], at))

    for j, value in enumerate(probe):
        for at in range(len(names[j]) or (value.dim() if j == i else 0)):
            if (j, at) == (i, axis) or (names[j] and names[j][at] == name):
                new[j] = grown(new[j], at)
                others += (j, at) != (i, axis)
    words = f"where `{exercise.argument(i)}` has one entry more along axis {axis}"
    if others:
        size = probe[i].shape[axis] + 1
        words = f"where {name} is {size}" if name.isidentifier() else f"{words}, and what fits it"
    return words, tuple(new)


def _largest(value: Any) -> float:
    floats = (x for x in tensors_in(value) if x.numel() and x.is_floating_point())
    return max((x.abs().max().item() for x in floats), default=0)


def _is_finite(value: Any) -> bool:
    if isinstance(value, Raised) or value is None:
        return False
    values = [*value.values()] if isinstance(value, dict) else value
    return all(x.isfinite().all() for x in tensors_in(values))


def in_float64(exercise: Exercise) -> tuple | None:
    """The first probe in float64; None where it has no float tensor, or a right answer fails."""
    args = tuple(doubled(arg) for arg in exercise.probes[0])
    has_any = any(x.dtype == torch.float64 for x in tensors_in(args))
    return args if has_any and all_agree(exercise, args) else None


def doubled(value: Any) -> Any:
    """The same in float64."""
    if isinstance(value, (list, tuple)):
        return type(value)(doubled(item) for item in value)
    return value.double() if isinstance(value, Tensor) and value.is_floating_point() else value
