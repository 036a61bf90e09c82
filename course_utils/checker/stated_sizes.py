"""What an exercise fixes: which axes of its arguments must have one size."""

import functools
import math
import re
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from course_utils.checker.exercise import Exercise

_SHAPE = re.compile(
    r"((?:\w+(?:, | and ))*\w+): (?:[a-z]+ )*?(?:\([^()]*\), each )?\(([^()]*)\)( or \()?"
)

_BOUND = re.compile(r"((?:\w+, )*\w+)(?: is|:) (?:even, )?at (most|least) (\d+)\b")
_FROM_TO = re.compile(r"((?:\w+, )*\w+): [^.:;]*?\bfrom (\d+) to (\w+)")


_RANGES = (
    re.compile(r"(?P<name>\w+) may be as large as (?P<high>\d+) or as low as (?P<low>-\d+)"),
    re.compile(r"(?P<name>\w+) lie between (?P<low>-\d+) and (?P<high>\d+)"),
)
_TRIED = r"\b{} = \d+ and \d+\b"


@functools.cache
def stated(exercise: Exercise) -> dict[str, tuple[str, ...]]:
    """The names of the axes of arguments, where the docstring says them: queries: (B, Tq, d)."""
    forward = getattr(exercise.solution, "forward", None)
    text = " ".join(f"{exercise.solution.__doc__} {getattr(forward, '__doc__', '')}".split())
    return {
        name: tuple(axis.strip() for axis in axes.rstrip(",").split(","))
        for names, axes, several in _SHAPE.findall(text)
        if not several
        for name in re.split(", | and ", names)
    }


@functools.cache
def _named(exercise: Exercise) -> list[tuple[str, ...]]:
    """The names of the axes of each argument, of a tensor or of several alike.

    Where the docstring is silent, axes that have the same sizes in all probes have one name.
    """
    found, of_sizes = [], {}
    for i, column in enumerate(zip(*exercise.probes)):
        names = stated(exercise).get(exercise.argument(i), ())
        shapes = [{x.shape for x in tensors_in(value)} for value in column]
        if all(len(s) == 1 for s in shapes) and len({len(*s) for s in shapes}) == 1:
            sizes = [*zip(*(shape for (shape,) in shapes))]
            if len(names) == len(sizes):
                of_sizes |= dict(zip(sizes, names))
            else:
                names = tuple(of_sizes.get(n, str(n)) for n in sizes)
        found.append(names)
    return found


def axes_of(exercise: Exercise, i: int, value: Any) -> tuple[str, ...]:
    """The names of the axes of argument `i`; none where they are not known."""
    names = _named(exercise)[i]
    return names if {x.dim() for x in tensors_in(value)} == {len(names)} else ()


def _said(exercise: Exercise) -> str:
    return " ".join(f"{exercise.text} {exercise.solution.__doc__}".replace("`", "").split())


def is_tried_for_few(exercise: Exercise, name: str) -> bool:
    """Whether a text says for which sizes an answer is tried: d = 16 and 32."""
    return bool(re.search(_TRIED.format(name), _said(exercise)))


@functools.cache
def _bounds(exercise: Exercise) -> list[tuple[str, str, int]]:
    """The whole numbers that a text still allows: T is at most 8."""
    return [
        (name, end, int(number))
        for names, end, number in _BOUND.findall(_said(exercise))
        for name in names.split(", ")
    ]


@functools.cache
def number_ranges(exercise: Exercise) -> dict[str, tuple[int, int]]:
    """The numbers that a text allows in a tensor: scores may be as large as 2000 or as low as 0."""
    found = (m for pattern in _RANGES for m in pattern.finditer(_said(exercise)))
    return {m["name"].lower(): (int(m["low"]), int(m["high"])) for m in found}


def as_stated(exercise: Exercise, args: tuple) -> bool:
    """Whether axes of one name have one size in all arguments, and all numbers are allowed."""
    sizes = sizes_of(exercise, args)
    whole = {n: max(found) for n, found in sizes.items() if found}
    whole |= {exercise.argument(i): x for i, x in enumerate(args) if type(x) is int}
    for name, end, number in _bounds(exercise):
        if name in whole and (whole[name] > number if end == "most" else whole[name] < number):
            return False
    for i, value in enumerate(args):
        low, high = number_ranges(exercise).get(exercise.argument(i), (-math.inf, math.inf))
        if any((x < low).any() or (x > high).any() for x in tensors_in(value)):
            return False
    fit = all(len(found | ({int(n)} if n.isdigit() else set())) == 1 for n, found in sizes.items())
    inside = fit and all(
        bool(((low <= torch.as_tensor(args[i])) & (torch.as_tensor(args[i]) <= high)).all())
        for i, (low, high) in ranges(exercise, args).items()
    )
    return inside and (exercise.allows is None or bool(exercise.allows(*args)))


def ranges(exercise: Exercise, args: tuple) -> dict[int, tuple[int, int]]:
    """The smallest and the largest number that the docstring allows, of each argument that says it.

    lengths: each from 1 to Tk. The end may be a number, the size of an axis or another argument.
    """
    names = [exercise.argument(i) for i in range(len(args))]
    sizes = {n: min(found) for n, found in sizes_of(exercise, args).items() if found}
    sizes |= {n: x for n, x in zip(names, args) if type(x) is int}
    return {
        i: (low, int(end) if end.isdigit() else sizes[end])
        for i, name in enumerate(names)
        for low, end in [_from_to(exercise).get(name, (0, ""))]
        if (end.isdigit() or end in sizes) and isinstance(args[i], (int, float, Tensor))
    }


@functools.cache
def _from_to(exercise: Exercise) -> dict[str, tuple[int, str]]:
    text = " ".join(str(exercise.solution.__doc__).split())
    return {
        name: (int(low), end)
        for names, low, end in _FROM_TO.findall(text)
        for name in names.split(", ")
    }


def in_range(exercise: Exercise, args: tuple) -> tuple:
    """The arguments, with whole numbers moved into the range that is stated."""
    within = list(args)
    for i, (low, high) in ranges(exercise, args).items():
        if isinstance(args[i], Tensor) and args[i].dtype == torch.long:
            within[i] = args[i].clamp(low, high)
        elif type(args[i]) is int:
            within[i] = max(low, min(high, args[i]))
    return tuple(within)


def has_last_id(exercise: Exercise) -> bool:
    """Whether a text says below which number ids stay: numbers below 256."""
    return bool(re.search(r"numbers below \d", _said(exercise)))


def within_numbers(exercise: Exercise, args: tuple) -> tuple:
    """The arguments, with numbers moved into the range that a text allows."""
    stated_ranges = number_ranges(exercise)
    return tuple(
        x.clamp(*stated_ranges[name]) if name in stated_ranges and isinstance(x, Tensor) else x
        for name, x in ((exercise.argument(i), x) for i, x in enumerate(args))
    )


def sizes_of(exercise: Exercise, args: tuple) -> dict[str, set[int]]:
    """The sizes that the axes of each name have."""
    sizes: dict[str, set[int]] = {}
    for i, value in enumerate(args):
        for axis, name in enumerate(axes_of(exercise, i, value)):
            sizes.setdefault(name, set()).update(x.shape[axis] for x in tensors_in(value))
    return sizes


def tensors_in(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
