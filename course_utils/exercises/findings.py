"""What experiments tell of an answer that equals no known wrong one: what it depends on, and how.

A finding is a function `(trial) -> sentence or None`. Each plays the answer and the right one on
the same changed inputs, so every sentence is a measurement. FINDINGS lists the most telling first.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from course_utils.exercises.model import Exercise
from course_utils.exercises.values import Raised, gap, number

_MOST = 2  # sentences that are shown
_LONGEST = 8  # rows of an argument that are changed one by one


@dataclass
class Trial:
    """An answer, what it gave on every probe and what was expected, and both to be played again."""

    exercise: Exercise
    expected: list[Any]
    given: list[Any]
    first: int
    right: Callable
    answer: Callable

    @property
    def probes(self) -> tuple[tuple, ...]:
        """The inputs of `expected` and `given`."""
        return self.exercise.probes

    def both(self, inputs: Sequence[tuple]) -> list[tuple[Any, Any]] | None:
        """What is right and what is given on other inputs; None where one of them raises."""
        pairs = list(zip(map(self.right, inputs), self.answer(inputs)))
        whole = len(pairs) == len(inputs)
        return pairs if whole and not any(isinstance(x, Raised) for p in pairs for x in p) else None


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


def rows_mixed_up(trial: Trial) -> str | None:
    """Which rows of the result depend on which rows of an argument."""
    args = trial.probes[trial.first]
    for i, argument in enumerate(args):
        if not _is_floats(argument) or argument.dim() == 0:
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
    for part, right, given in _parts(trial.expected[trial.first], trial.given[trial.first]):
        if not _comparable(right, given) or right.dim() < (3 if row == "sentence" else 2):
            continue
        for p, (new_right, new_given) in enumerate(pairs):
            a, b = _part(new_right, part), _part(new_given, part)
            if not _comparable(a, right) or not _comparable(b, given):
                return None
            due, seen = _moved(right, a, axis), _moved(given, b, axis)
            for q in (due != seen).nonzero().flatten().tolist():
                of = f"`{part}`" if isinstance(part, str) else "the result"
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
    if len(sizes) != 1 or not _comparable(right, given) or right.shape[:1] != (*sizes,):
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
    a, b = _numbers(expected), _numbers(given)
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
        a, b = _numbers(expected), _numbers(given)
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


def other_places(trial: Trial) -> str | None:
    """The right numbers, but not where they belong."""
    for expected, given in zip(trial.expected, trial.given):
        a, b = _numbers(expected), _numbers(given)
        if a is None or b is None or a.shape != b.shape or len(a.unique()) < 3:
            return None
        if not torch.allclose(a.sort().values, b.sort().values, rtol=1e-4, atol=1e-5):
            return None
    turned = all(
        isinstance(b, Tensor) and a.dim() > 1 and gap(a, b.transpose(-2, -1)).size <= 1
        for a, b in zip(trial.expected, trial.given)
    )
    if turned:
        return "it is the right result with its last two axes swapped"
    return "the numbers are the right ones, but they stand at other places"


def wrong_signs(trial: Trial) -> str | None:
    """Right but for signs."""
    pairs = [(_numbers(a), _numbers(b)) for a, b in zip(trial.expected, trial.given)]
    if any(a is None or b is None or a.shape != b.shape for a, b in pairs):
        return None
    if not all(torch.allclose(a.abs(), b.abs(), rtol=1e-4, atol=1e-5) for a, b in pairs):
        return None
    return "all the numbers are right but for their signs"


def sums_of_rows(trial: Trial) -> str | None:
    """Rows that should sum to 1 and do not."""
    right, given = trial.expected[trial.first], trial.given[trial.first]
    if not _comparable(right, given) or not all(map(_is_floats, trial.expected)):
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


def right_parts(trial: Trial) -> str | None:
    """Which of several returned things are right on every input, and which are not."""
    if not all(isinstance(x, list) for x in (*trial.expected, *trial.given)):
        return None
    counts = {len(x) for x in (*trial.expected, *trial.given)}
    if len(counts) != 1 or not isinstance(trial.expected[0][0], (Tensor, list)):
        return None
    good = [
        k
        for k in range(*counts)
        if all(gap(a[k], b[k]).size <= 1 for a, b in zip(trial.expected, trial.given))
    ]
    bad = [k for k in range(*counts) if k not in good]
    if not good or not bad:
        return None
    return f"of what is returned, {_entries(good)} right, {_entries(bad)} not"


def _entries(numbers: list[int]) -> str:
    text = " and ".join(map(str, numbers))
    return f"entry {text} is" if len(numbers) == 1 else f"entries {text} are"


def only_one_row(trial: Trial) -> str | None:
    """All differences lie in one row or column."""
    right, given = trial.expected[trial.first], trial.given[trial.first]
    if not _comparable(right, given):
        return None
    differs = ~torch.isclose(right.double(), given.double(), 1e-4, 1e-5, equal_nan=True)
    for axis, size in enumerate(right.shape):
        where = differs.nonzero()[:, axis].unique().tolist()
        if len(where) == 1 and size > 2:
            return f"on this input only index {where[0]} of axis {axis} (0 to {size - 1}) is wrong"
    return None


def some_inputs(trial: Trial) -> str | None:
    """A property of the inputs that tells those on which it is right from the others."""
    good = [gap(a, b).size <= 1 for a, b in zip(trial.expected, trial.given)]
    if not any(good):
        return None
    fitting = []
    for words, opposite, holds in _properties(trial):
        if holds == good:
            fitting.append((words, opposite))
        elif holds == [not g for g in good]:
            fitting.append((opposite, words))
    if not 1 <= len(fitting) <= 2:  # with more, which one matters is anybody's guess
        return None
    right, wrong = (" and ".join(words) for words in zip(*fitting))
    return f"of the inputs tried, it is right on those {right}, wrong on those {wrong}"


def _properties(trial: Trial) -> Iterator[tuple[str, str, list[bool]]]:
    """What may distinguish inputs: in words, its opposite in words, and where it holds."""
    for i in range(len(trial.probes[0])):
        name = f"`{trial.exercise.argument(i)}`"
        column = [probe[i] for probe in trial.probes]
        if all(type(x) is bool for x in column):
            yield f"where {name} is True", f"where {name} is False", column
        elif all(type(x) is int for x in column):
            yield f"where {name} is even", f"where {name} is odd", [x % 2 == 0 for x in column]
            yield f"where {name} is 0", f"where {name} is not 0", [x == 0 for x in column]
            yield f"where {name} is 1", f"where {name} is not 1", [x == 1 for x in column]
        elif all(isinstance(x, Tensor) and x.dtype == torch.bool for x in column):
            full = [bool(x.all()) for x in column]
            yield f"where {name} is True throughout", f"where {name} holds a False", full
        elif all(isinstance(x, Tensor) and x.dim() > 1 for x in column):
            single = [len(x) == 1 for x in column]
            yield f"with a single entry in {name}", f"with several entries in {name}", single


FINDINGS: tuple[Callable[[Trial], str | None], ...] = (
    no_influence,
    batch_mixed_up,
    rows_mixed_up,
    one_factor,
    one_shift,
    wrong_signs,
    sums_of_rows,
    other_places,
    right_parts,
    some_inputs,
    only_one_row,
)


def findings(trial: Trial) -> list[str]:
    """The first sentences that hold, at most two."""
    found = []
    for finding in FINDINGS:
        sentence = finding(trial) if len(found) < _MOST else None
        found += [sentence] if sentence else []
    return found


def _changed(value: Any) -> Any:
    """Another value of the same kind, or None where none is sure to be allowed."""
    if _is_floats(value) and value.numel():
        return value + torch.linspace(0.3, 1.7, value.numel()).reshape(value.shape)
    if isinstance(value, bool):
        return not value
    if isinstance(value, float):
        return value * 1.25
    return None


def _same_form(a: Any, b: Any) -> bool:
    return isinstance(a, Tensor) == isinstance(b, Tensor)


def _is_floats(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _comparable(a: Any, b: Any) -> bool:
    return _is_floats(a) and _is_floats(b) and a.shape == b.shape and a.dim() > 0


def _numbers(value: Any) -> Tensor | None:
    """The numbers of a result in one row; None where it is no tensor or list of numbers."""
    if isinstance(value, dict):  # parts that are no tensors say nothing of size
        value = value.get("output")
    if isinstance(value, Tensor) and value.dtype != torch.bool and not value.is_complex():
        return value.double().flatten() if value.numel() else None
    if isinstance(value, list) and value and all(type(x) in (int, float) for x in value):
        return torch.tensor(value, dtype=torch.float64)
    return torch.tensor([float(value)]).double() if type(value) in (int, float) else None


def _parts(right: Any, given: Any) -> Iterator[tuple[Any, Any, Any]]:
    """The parts of two results, with their keys; a result of one part has the key None."""
    if isinstance(right, dict) and isinstance(given, dict):
        yield from ((key, right[key], given.get(key)) for key in right)
    elif isinstance(right, list) and isinstance(given, list) and len(right) == len(given):
        yield from ((f"entry {k}", *pair) for k, pair in enumerate(zip(right, given)))
    else:
        yield None, right, given


def _part(result: Any, key: Any) -> Any:
    if key is None:
        return result
    if isinstance(result, dict):
        return result.get(key)
    k = int(key.removeprefix("entry "))
    return result[k] if isinstance(result, list) and k < len(result) else None
