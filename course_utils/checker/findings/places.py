"""Where the result is right and where it is not: places, parts, rows, inputs."""

from collections.abc import Iterator

import torch
from torch import Tensor

from course_utils.checker.findings.trial import Trial, comparable, numbers
from course_utils.checker.values import gap


def other_places(trial: Trial) -> str | None:
    """The right numbers, but not where they belong."""
    for expected, given in zip(trial.expected, trial.given):
        a, b = numbers(expected), numbers(given)
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
    if not comparable(right, given):
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
