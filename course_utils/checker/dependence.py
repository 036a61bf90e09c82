"""What an answer depends on: facts got by changing an argument, a row of it, or the batch.

Each is a finding (see findings.py): `(trial) -> sentence or None`.
"""

from typing import Any

import torch
from torch import Tensor

from course_utils.checker.exercise import Exercise
from course_utils.checker.generic_inputs import Trial, comparable, is_floats, part_of, parts
from course_utils.checker.stated_sizes import stated
from course_utils.checker.values import gap

_LONGEST = 8  # rows of an argument that are changed one by one
_ROUNDING = 1e-4  # relative


def no_influence(trial: Trial) -> str | None:
    """An argument that changes the right result but not the given one, or the other way round."""
    for i in range(len(trial.inputs[0])):
        free = [played for played in trial.played if _changed(played[0][i]) is not None]
        pairs = trial.both([(*p[:i], _changed(p[i]), *p[i + 1 :]) for p, _, _ in free])
        if not pairs:
            continue
        due = [gap(old, new).size > 1 for (_, old, _), (new, _) in zip(free, pairs)]
        seen = [gap(old, new).size for (_, _, old), (_, new) in zip(free, pairs)]
        name = trial.exercise.argument(i)
        if all(due) and not any(seen):  # not by the least, beside numbers however large
            return f"what is returned does not change when `{name}` changes; it should"
        if min(seen) > 1 and not any(due):
            return f"what is returned changes when `{name}` changes; it should not"
    return None


def _changed(value: Any) -> Any:
    """Another value of the same kind, or None where none is sure to be allowed."""
    if is_floats(value) and value.numel() > 1 and not ((value >= 0) & (value <= 1)).all():
        return value + torch.linspace(0.3, 1.7, value.numel()).reshape(value.shape)
    if type(value) is float and value > 0:
        return 1.5 * value
    return (not value) if isinstance(value, bool) else None


def rows_mixed_up(trial: Trial) -> str | None:
    """Which rows of the result depend on which rows of an argument."""
    for i, argument in enumerate(trial.inputs[0]):
        if not isinstance(argument, Tensor) or _changed(argument) is None:
            continue
        axes = ((-2, "row"), (0, "entry")) if argument.dim() > 2 else ((0, "row"),)
        for axis, row in axes:
            if sentence := _dependence(trial, i, axis, row):
                return sentence
    return None


def _dependence(trial: Trial, i: int, axis: int, row: str) -> str | None:
    """The first pair of rows that depend on each other wrongly, on every input that has them."""
    name, least = trial.exercise.argument(i), 3 if row == "entry" else 2
    of_inputs: list[tuple[Tensor, ...]] = []  # which rows (p, q) should move, do, and do at all
    key = None
    for args, due, given in trial.played:
        size = args[i].shape[axis]
        if not 2 <= size <= _LONGEST:
            continue
        pairs = trial.both(
            [(*args[:i], _moved_row(args[i], axis, p), *args[i + 1 :]) for p in range(size)]
        )
        key, right, wrong = next(
            (
                part
                for part in parts(due, given)
                if comparable(*part[1:]) and part[1].dim() >= least
            ),
            (None, None, None),
        )
        if pairs is None or right is None:
            return None
        moved = [(part_of(a, key), part_of(b, key)) for a, b in pairs]
        if not all(comparable(a, right) and comparable(b, wrong) for a, b in moved):
            return None
        of_inputs.append(tuple(
            torch.stack([_moved(x, y, axis, least) for x, y in zip([old] * size, new)])
            for old, new, least in (
                (right, [a for a, _ in moved], _ROUNDING),
                (wrong, [b for _, b in moved], _ROUNDING),
                (wrong, [b for _, b in moved], 0.0),
            )
        ))  # fmt: skip
    if not of_inputs:
        return None
    least_size = [min(of[0].shape[d] for of in of_inputs) for d in (0, 1)]
    due, seen, touched = (
        torch.stack([x[k][: least_size[0], : least_size[1]] for x in of_inputs]) for k in range(3)
    )  # (inputs, p, q)
    of = f"`{key}`" if isinstance(key, str) and not key.startswith("entry") else key or "the result"
    for p, q in ((~due.any(0)) & seen.all(0)).nonzero().tolist():
        return f"{row} {q} of {of} depends on {row} {p} of `{name}`; it must not"
    for p, q in (due.all(0) & ~touched.any(0)).nonzero().tolist():
        return f"{row} {q} of {of} does not depend on {row} {p} of `{name}`; it should"
    return None


def _moved_row(x: Tensor, axis: int, p: int) -> Tensor:
    other = x.clone()
    row = other.select(axis, p)
    row += torch.linspace(0.7, 1.6, row.numel()).reshape(row.shape)
    return other


def _moved(before: Tensor, after: Tensor, axis: int, least: float) -> Tensor:
    """Which rows along an axis have changed by more than `least` of what they are, and 1."""
    moved = (after - before).abs() > least * (1 + before.abs())
    moved |= after.isnan() != before.isnan()
    others = [d for d in range(moved.dim()) if d != axis % moved.dim()]
    return moved.any(dim=others) if others else moved


def batch_mixed_up(trial: Trial) -> str | None:
    """Right for every sentence or row alone, wrong for several together."""
    told: list[tuple[int, Tensor]] = []  # what was taken apart where it came out wrong
    for args, right, given in zip(trial.inputs, trial.due, trial.given):
        sizes = {a.shape[0] for a in args if isinstance(a, Tensor) and a.dim() > 1}
        tensors = isinstance(right, Tensor) and isinstance(given, Tensor)
        if len(sizes) != 1 or not tensors or not right.shape[:1] == given.shape[:1] == (*sizes,):
            return None
        (batch,) = sizes
        cut = [isinstance(a, Tensor) and a.dim() > 0 and a.shape[0] == batch for a in args]
        alone = [tuple(a[b : b + 1] if c else a for a, c in zip(args, cut)) for b in range(batch)]
        pairs = trial.both(alone)
        if pairs is None or not all(gap(a, b).size <= 1 for a, b in pairs):
            return None
        if not all(gap(right[b : b + 1], a).size <= 1 for b, (a, _) in enumerate(pairs)):
            return None
        if batch > 1 and gap(right, given).size > 1:
            told += [(i, args[i]) for i, c in enumerate(cut) if c]
    if not told:
        return None
    each = "row" if all(x.dim() < 3 for _, x in told) else "entry along axis 0"
    if {_first_axis(trial.exercise, *x) for x in told} == {"B"}:
        each = "entry of the batch"
    return f"each {each} alone comes out right; together they do not"


def batch_added_up(trial: Trial) -> str | None:
    """Every entry of the batch gets the sum over all entries of one argument."""
    if not all(comparable(a, b) for a, b in zip(trial.due, trial.given)):
        return None
    for i, argument in enumerate(trial.inputs[0]):
        batches = is_floats(argument) and _first_axis(trial.exercise, i, argument) == "B"
        if not batches or max(args[i].shape[0] for args in trial.inputs) < 2:
            continue
        added = []
        for args in trial.inputs:
            of_each = [x.expand_as(args[i]) for x in args[i].split(1)]
            made = trial.play_right([(*args[:i], x, *args[i + 1 :]) for x in of_each])
            added.append(sum(made) if all(map(is_floats, made)) else made)
        if all(gap(a, b).size <= 1 for a, b in zip(added, trial.given)):
            name = trial.exercise.argument(i)
            return f"the entries of the batch of `{name}` are added up; they are to stay apart"
    return None


def _first_axis(exercise: Exercise, i: int, value: Tensor) -> str:
    """The name of the first axis of an argument; "" where it has none."""
    names = [x for x in stated(exercise).get(exercise.argument(i), ()) if x != "..."]
    return names[-value.dim()] if value.dim() <= len(names) else ""
