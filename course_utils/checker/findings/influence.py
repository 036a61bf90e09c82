"""What the result depends on: arguments, rows, and other entries of the batch."""

from typing import Any

import torch
from torch import Tensor

from course_utils.checker.findings.trial import Trial, comparable, is_floats, part, parts
from course_utils.checker.values import gap

_LONGEST = 8  # rows of an argument that are changed one by one


def no_influence(trial: Trial) -> str | None:
    """An argument that changes the right result but not the given one, or the other way round."""
    for i, argument in enumerate(trial.probes[0]):
        changed = [_changed(probe[i]) for probe in trial.probes]
        if any(c is None for c in changed):
            continue
        inputs = [(*p[:i], c, *p[i + 1 :]) for p, c in zip(trial.probes, changed)]
        pairs = trial.both(inputs)
        if pairs is None:
            continue
        due = [gap(a, b).size > 1 for a, (b, _) in zip(trial.expected, pairs)]
        seen = [gap(a, b).size > 1 for a, (_, b) in zip(trial.given, pairs)]
        name = trial.exercise.argument(i)
        if all(due) and not any(seen):
            return f"what is returned does not change when `{name}` changes; it should"
        if all(seen) and not any(due) and _same_form(argument, changed[0]):
            return f"what is returned changes when `{name}` changes; it should not"
    return None


def _changed(value: Any) -> Any:
    """Another value of the same kind, or None where none is sure to be allowed."""
    if is_floats(value) and value.numel():
        return value + torch.linspace(0.3, 1.7, value.numel()).reshape(value.shape)
    if isinstance(value, bool):
        return not value
    if isinstance(value, float):
        return value * 1.25
    return None


def _same_form(a: Any, b: Any) -> bool:
    return isinstance(a, Tensor) == isinstance(b, Tensor)


def rows_mixed_up(trial: Trial) -> str | None:
    """Which rows of the result depend on which rows of an argument."""
    args = trial.probes[trial.first]
    for i, argument in enumerate(args):
        if not is_floats(argument) or argument.dim() == 0:
            continue
        axes = ((-2, "row"), (0, "sentence")) if argument.dim() > 2 else ((0, "row"),)
        for axis, row in axes:
            sentence = _dependence(trial, args, i, axis, row)
            if sentence:
                return sentence
    return None


def _dependence(trial: Trial, args: tuple, i: int, axis: int, row: str) -> str | None:
    size = args[i].shape[axis]
    if not 2 <= size <= _LONGEST:
        return None
    inputs = []
    for p in range(size):
        other = args[i].clone()
        other.select(axis, p).add_(
            torch.linspace(0.7, 1.6, other.select(axis, p).numel()).reshape(
                other.select(axis, p).shape
            )
        )
        inputs.append((*args[:i], other, *args[i + 1 :]))
    pairs = trial.both(inputs)
    if pairs is None:
        return None
    name = trial.exercise.argument(i)
    for key, right, given in parts(trial.expected[trial.first], trial.given[trial.first]):
        if not comparable(right, given) or right.dim() < (3 if row == "sentence" else 2):
            continue
        for p, (new_right, new_given) in enumerate(pairs):
            a, b = part(new_right, key), part(new_given, key)
            if not comparable(a, right) or not comparable(b, given):
                return None
            due, seen = _moved(right, a, axis), _moved(given, b, axis)
            for q in (due != seen).nonzero().flatten().tolist():
                of = f"`{key}`" if isinstance(key, str) else "the result"
                must = ("depends on", "must not") if seen[q] else ("does not depend on", "should")
                return f"{row} {q} of {of} {must[0]} {row} {p} of `{name}`; it {must[1]}"
    return None


def _moved(before: Tensor, after: Tensor, axis: int) -> Tensor:
    """Which rows along an axis have changed by more than rounding."""
    moved = ((after - before).abs() > 1e-4 * (1 + before.abs())) | (after.isnan() != before.isnan())
    others = [d for d in range(moved.dim()) if d != axis % moved.dim()]
    return moved.any(dim=others) if others else moved


def batch_mixed_up(trial: Trial) -> str | None:
    """Right for every sentence alone, wrong for several together."""
    args = trial.probes[trial.first]
    sizes = {a.shape[0] for a in args if isinstance(a, Tensor) and a.dim() > 1}
    right, given = trial.expected[trial.first], trial.given[trial.first]
    if len(sizes) != 1 or not comparable(right, given) or right.shape[:1] != (*sizes,):
        return None
    (batch,) = sizes
    if batch < 2:
        return None
    tensors = [isinstance(a, Tensor) and a.dim() > 0 and a.shape[0] == batch for a in args]
    alone = [
        tuple(a[b : b + 1] if cut else a for a, cut in zip(args, tensors)) for b in range(batch)
    ]
    pairs = trial.both(alone)
    if pairs is None or not all(
        gap(right[b : b + 1], a).size <= 1 for b, (a, _) in enumerate(pairs)
    ):
        return None
    good = all(gap(a, b).size <= 1 for a, b in pairs)
    return "each entry of the batch alone comes out right; together they do not" if good else None
