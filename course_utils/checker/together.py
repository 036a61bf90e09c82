"""Inputs of which several arguments are changed together."""

import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from course_utils.checker.exercise import Exercise
from course_utils.checker.resized import sums_to_one
from course_utils.checker.special_inputs import both_signs, divides, has_floats, on_grid

_FEW = 3  # tensors of which every two are changed together
_TOGETHER = {  # how they are changed
    "negative throughout": lambda x: -2 * x.abs() - 0.01,
    "4000 times as large": lambda x: 4000 * x,
}
_FAR = 2**17  # of scores: added to them, -1e5 does not hide
# from 0: a square of such numbers has no digits left for a small difference; or exp overflows
_AWAY = (4096.0, -4096.0, 512.0, -512.0)


def far_from_zero(names: list[str], probe: tuple) -> Iterator[tuple[str, tuple]]:
    """Two rows of numbers moved alike, up and down, which keeps their differences.

    All are whole parts of a power of 2, so that no difference is rounded.
    """
    rows = [i for i, x in enumerate(probe) if _is_row(x)]
    for (i, j), away in itertools.product(itertools.combinations(rows, 2), _AWAY):
        far = tuple(on_grid(x) + away if k in (i, j) else x for k, x in enumerate(probe))
        yield f"where the numbers of `{names[i]}` and `{names[j]}` are near {away:.0f}", far


def of_several(names: list[str], probe: tuple) -> Iterator[tuple[str, tuple]]:
    """Of two tensors that may hold any numbers, both far below 0, or both large; or of all."""
    floats = [i for i, x in enumerate(probe) if both_signs(x)]
    pairs = [*itertools.combinations(floats, 2)] if len(floats) <= _FEW else []
    for some in dict.fromkeys((*pairs, tuple(floats))) if len(floats) > 1 else ():
        both = " and ".join(f"`{names[i]}`" for i in some)
        for words, other in _TOGETHER.items():
            yield (
                f"where {both} are {words}",
                tuple(other(x) if i in some else x for i, x in enumerate(probe)),
            )


def of_far_scores(names: list[str], probe: tuple) -> Iterator[tuple[str, tuple]]:
    """Scores of which some are hidden, far apart; whole numbers, so that no rounding decides."""
    hides = any(isinstance(x, Tensor) and x.dtype in (torch.bool, torch.long) for x in probe)
    whole = {"scores": _FAR, "queries": _FAR, "keys": 1, "Q": _FAR, "K": 1}
    by = [whole.get(name) if both_signs(x) else None for name, x in zip(names, probe)]
    if hides and _FAR in by:
        far = tuple(x if f is None else f * (3 * x).round() for f, x in zip(by, probe))
        yield "where scores lie more than 100,000 apart", far


def of_divisors(exercise: Exercise, probe: tuple) -> Iterator[tuple[str, tuple]]:
    """What makes a divisor small, but not 0: one more small number in it would show."""
    if not divides(exercise) or "eps" in (exercise.argument(i) for i in range(len(probe))):
        return
    small = (type(x) is float or (has_floats(x) and not sums_to_one(x)) for x in probe)
    yield (
        "where all numbers are 1/1024 as large",
        tuple(x / 1024 if may else x for x, may in zip(probe, small)),
    )
    if any(map(both_signs, probe)):
        near = tuple(x / 8 - 4 if both_signs(x) else x for x in probe)
        yield "where all numbers are near -4", near


def _is_row(value: Any) -> bool:
    floats = isinstance(value, Tensor) and value.is_floating_point() and value.dim() == 1
    return floats and bool((value < 0).any())
