"""How the numbers differ: by one factor, one sum, their signs, or in what their rows sum to."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from course_utils.checker.findings.trial import Trial, comparable, is_floats, numbers
from course_utils.checker.values import number


def one_factor(trial: Trial) -> str | None:
    """All numbers too large by one factor."""
    factors = [_factor(a, b) for a, b in zip(trial.expected, trial.given)]
    if None in factors or all(abs(f - 1) < 1e-3 for f in factors):
        return None
    if max(factors) - min(factors) < 1e-3 * abs(factors[0]):
        if abs(factors[0] + 1) < 1e-3:
            return "every number has the opposite sign"
        return f"every number is {_known(factors[0])} times what it should be"
    for what, values in _sizes(trial):
        for words, function in _FUNCTIONS:
            if all(v > 0 and abs(function(v) / f - 1) < 1e-3 for v, f in zip(values, factors)):
                return f"every number is {words.format(what)} times what it should be"
    return None


_FUNCTIONS = (
    ("{}", lambda v: v),
    ("1 / {}", lambda v: 1 / v),
    ("the square root of {}", lambda v: v**0.5),
    ("1 / the square root of {}", lambda v: v**-0.5),
)


def _factor(expected: Any, given: Any) -> float | None:
    a, b = numbers(expected), numbers(given)
    if a is None or b is None or a.shape != b.shape or not a.any():
        return None
    if not (a.isfinite().all() and b.isfinite().all()) or (b[a == 0].abs() > 1e-5).any():
        return None
    ratios = b[a != 0] / a[a != 0]
    return ratios[0].item() if (ratios - ratios[0]).abs().max() < 1e-3 * abs(ratios[0]) else None


def _known(factor: float) -> str:
    for words, value in (("√2", math.sqrt(2)), ("1/√2", math.sqrt(0.5)), ("1/3", 1 / 3)):
        if abs(factor / value - 1) < 1e-4:
            return f"{number(factor)} ({words})"
    return number(factor)


def _sizes(trial: Trial) -> Iterator[tuple[str, list[float]]]:
    """Numbers and sizes among the arguments that a factor may come from, one for each probe."""
    for i, argument in enumerate(trial.probes[0]):
        name = trial.exercise.argument(i)
        column = [probe[i] for probe in trial.probes]
        if all(type(x) in (int, float) for x in column):
            yield f"`{name}`", [float(x) for x in column]
        if isinstance(argument, Tensor):
            for axis in range(-1, -1 - argument.dim(), -1):
                if all(x.dim() == argument.dim() for x in column):
                    yield f"the size of axis {axis} of `{name}`", [x.shape[axis] for x in column]


def one_shift(trial: Trial) -> str | None:
    """All numbers too large by one sum."""
    shifts = []
    for expected, given in zip(trial.expected, trial.given):
        a, b = numbers(expected), numbers(given)
        if a is None or b is None or a.shape != b.shape or not (b - a).isfinite().all():
            return None
        difference = b - a
        if (difference - difference[0]).abs().max() > 1e-4:
            return None
        shifts.append(difference[0].item())
    several = max(shifts) - min(shifts) > 1e-4 or abs(shifts[0]) < 1e-4
    amount = number(abs(shifts[0]))
    return (
        None if several else f"every number is {amount} too {'large' if shifts[0] > 0 else 'small'}"
    )


def wrong_signs(trial: Trial) -> str | None:
    """Right but for signs."""
    pairs = [(numbers(a), numbers(b)) for a, b in zip(trial.expected, trial.given)]
    if any(a is None or b is None or a.shape != b.shape for a, b in pairs):
        return None
    if not all(torch.allclose(a.abs(), b.abs(), rtol=1e-4, atol=1e-5) for a, b in pairs):
        return None
    return "all the numbers are right but for their signs"


def sums_of_rows(trial: Trial) -> str | None:
    """Rows that should sum to 1 and do not."""
    right, given = trial.expected[trial.first], trial.given[trial.first]
    if not comparable(right, given) or not all(map(is_floats, trial.expected)):
        return None
    if not all(_sums_to_one(x) for x in trial.expected):
        return None
    off = ((given.double().sum(-1) - 1).abs() > 1e-3).nonzero()
    if not len(off):
        return None
    row = tuple(off[0].tolist())
    total = number(given.double().sum(-1)[row].item())
    return f"row {list(row)} should sum to 1, it sums to {total}"


def _sums_to_one(x: Tensor) -> bool:
    return x.dim() > 1 and bool((x >= 0).all()) and bool(((x.sum(-1) - 1).abs() < 1e-4).all())
