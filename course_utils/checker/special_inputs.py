"""What arguments stand for, as far as it can be told: lengths, amounts, limits, weights."""

import ast
import functools
import inspect
import math
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from course_utils.checker.exercise import Exercise
from course_utils.checker.resized import ids_in, sums_to_one, with_gaps, without_gaps
from course_utils.checker.runner import outcome
from course_utils.checker.stated_sizes import has_last_id, number_ranges, ranges
from course_utils.checker.values import gap

_LIMIT = re.compile("allow|limit|thresh|toler|edge|bound")
_GRID = 64  # of numbers beside a limit: sums and differences of its parts have no rounding
_MOST_PLACES = 8
_CHOICE = re.compile(r"topk|sort|argm|\bmax\(")
_VERY_UNLIKELY = -120.0  # the logarithm of a probability
_ABOVE = 120.0  # the other logits: in float32 the softmax gives them 0
_SHARE = r"(?:an? |the )?(?:probability|share|number in 0\.\.1|number from 0 to 1)"
_LOW = 256.0  # below 0: lower than any number that is put for "very low"
_LABEL = 1000  # where ids are labels, they may be as large
_CHARACTERS = {
    "a character of four bytes": "\N{BREAD}",
    "a letter whose accent stands apart": "e\N{COMBINING ACUTE ACCENT}",
    "a letter that is shorter when it is small": "\N{KELVIN SIGN}",
}


def both_signs(value: Any) -> bool:
    """A tensor that may hold any numbers, and does."""
    return has_floats(value) and bool((value < 0).any() and (value > 0).any())


def has_floats(value: Any) -> bool:
    """A tensor of floats with one axis or more."""
    return isinstance(value, Tensor) and value.is_floating_point() and value.dim() > 0


def of_lengths(
    exercise: Exercise, name: str, value: Any, probe: tuple
) -> Iterator[tuple[str, Any]]:
    """Lengths of 1 only, and the least and the largest that are stated."""
    whole = isinstance(value, Tensor) and value.dtype == torch.long
    if not whole or "len" not in name:
        return
    stated = {exercise.argument(i): ends for i, ends in ranges(exercise, probe).items()}
    for length in sorted({1, *stated.get(name, ())}):
        yield f"is {length} throughout", torch.full_like(value, length)


def are_amounts(value: Any) -> bool:
    """Whether it is a list of floats above 0."""
    return (
        isinstance(value, list) and bool(value) and all(type(x) is float and x > 0 for x in value)
    )


@functools.cache
def divides(exercise: Exercise) -> bool:
    """Whether its solution divides by what it computed, and chooses nothing, so that ties are fine.

    Then a norm, a sum or a spread of zeros may be the divisor.
    """
    (code,) = ast.parse(textwrap.dedent(inspect.getsource(exercise.solution))).body
    code.decorator_list = []
    divisors = (
        n.right for n in ast.walk(code) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div)
    )
    divided = any(not isinstance(n, ast.Constant) for n in divisors)
    return divided and not _CHOICE.search(ast.unparse(code))


def of_zeros(value: Any) -> Iterator[tuple[str, Any]]:
    """No number but 0, in a tensor or in several."""
    several = isinstance(value, (list, tuple))
    tensors = [*value] if several else [value]
    floats = all(isinstance(x, Tensor) and x.is_floating_point() and x.numel() for x in tensors)
    if floats and any((x < 0).any() for x in tensors):
        zeros = [torch.zeros_like(x) for x in tensors]
        yield "holds no number but 0", type(value)(zeros) if several else zeros[0]


def of_weights(value: Any) -> Iterator[tuple[str, Any]]:
    """Rows of weights that a softmax may give as well: zeros in them, or all on one key."""
    if not isinstance(value, Tensor) or value.dim() < 2 or not sums_to_one(value):
        return
    most = torch.zeros_like(value).scatter(-1, value.argmax(-1, keepdim=True), 1.0)
    yield "gives each row's whole weight to one key", most
    if value.shape[-1] == value.shape[-2]:
        own = torch.eye(value.shape[-1], dtype=value.dtype).expand_as(value).clone()
        yield "gives each query's whole weight to its own place", own
    if value.shape[-1] > 2:
        least = value.scatter(-1, value.argmin(-1, keepdim=True), 0.0)
        yield "has a weight of 0 in each row", least / least.sum(-1, keepdim=True)


def of_log_probs(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Logarithms of probabilities, of which one in a row is 0 in float32."""
    if not has_floats(value) or value.shape[-1] < 3 or (value > 0).any():
        return
    whole = sums_to_one(value.exp())
    if whole or name.startswith("log_p"):
        rare = value.scatter(-1, value.argmin(-1, keepdim=True), _VERY_UNLIKELY)
        yield "holds a number near -120", rare.log_softmax(-1) if whole else rare


def of_logits(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """In the first row one logit stands far above the others, the lowest or the highest so far."""
    if not has_floats(value) or "logits" not in name or value.shape[-1] < 2:
        return
    row = value.flatten(0, -2)[0] if value.dim() > 1 else value
    for at in (row.argmin(), row.argmax()):
        new = value.clone()
        new[(0,) * (value.dim() - 1)][at] = row.max() + _ABOVE
        yield f"has one logit {_ABOVE:.0f} above the others", new


def of_shares(exercise: Exercise, name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A probability, or a number that may be 0 to 1, at its ends."""
    text = " ".join(f"{exercise.solution.__doc__}".split())
    if type(value) is float and 0 < value < 1 and re.search(rf"\b{name}: {_SHARE}", text):
        yield "is 0", 0.0
        yield "is 1", 1.0


def of_scores(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Scores or logits that are all far below 0; their differences are exact."""
    if both_signs(value) and re.search("logit|score", name):
        yield f"is near -{_LOW:.0f} throughout", on_grid(value) - _LOW


def of_ends(exercise: Exercise, name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Only the smallest and the largest number that a text allows."""
    if name in number_ranges(exercise) and both_signs(value):
        low, high = number_ranges(exercise)[name]
        yield f"holds only {low} and {high}", torch.where(value > 0, high, low).to(value.dtype)


def of_text(value: Any) -> Iterator[tuple[str, Any]]:
    """A text with characters beyond ASCII, and more of them: of 3 and 4 bytes, and an accent."""
    if isinstance(value, str) and not value.isascii():
        for words, more in _CHARACTERS.items():
            yield f"holds {words}", value + more


def of_labels(exercise: Exercise, probe: tuple) -> Iterator[tuple[str, tuple]]:
    """Other ids: 0 among them, or large ones; where ids are labels, results change alike."""
    ids = sorted({*ids_in([x for x in probe if not isinstance(x, Tensor)])})
    if len(ids) < 2 or not any(isinstance(x, list) and ids_in(x) for x in probe):
        return
    others = {"where 0 is an id": lambda x: {ids[0]: 0, 0: ids[0]}.get(x, x)}
    if not has_last_id(exercise):
        others[f"where ids are above {_LABEL}"] = lambda x: x + _LABEL
    for words, other in others.items():
        new = tuple(_relabelled(x, other) for x in probe)
        right, due = (outcome(exercise.play, exercise.solution, x, 0) for x in (probe, new))
        if gap(_relabelled(right, other), due).size <= 1:
            yield words, new


def _relabelled(value: Any, other: Callable[[int], int]) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_relabelled(item, other) for item in value)
    return other(value) if type(value) is int else value


def of_meaning(
    exercise: Exercise, name: str, value: Any, probe: tuple
) -> Iterator[tuple[str, Any]]:
    """What may be put for an argument, by what it stands for."""
    if divides(exercise):
        yield from of_zeros(value)
    yield from of_lengths(exercise, name, value, probe)
    yield from of_shares(exercise, name, value)
    yield from of_scores(name, value)
    yield from of_ends(exercise, name, value)
    yield from of_text(value)
    yield from of_log_probs(name, value)
    yield from of_logits(name, value)


def of_masks(value: Any) -> Iterator[tuple[str, Any]]:
    """Masks with other places visible: all of them, none in one row, some behind a gap."""
    if not (isinstance(value, Tensor) and value.dtype == torch.bool and value.dim()):
        return
    yield "is True throughout", torch.ones_like(value)
    if value.shape[-1] > 2 and value.equal(without_gaps(value)):
        yield "holds a False before a True", with_gaps(value)
    yield "is turned round", value.flip(-1)
    empty = value.clone()
    empty[(0,) * (value.dim() - 1)] = False
    yield "has a row without True", empty


def at_limits(names: list[str], probe: tuple) -> Iterator[tuple[str, tuple]]:
    """A number that is exactly a limit, or a limit above another argument; one just beyond it.

    One that is below the other argument by more than the limit comes first.

    All are whole parts of a power of 2, so that nobody's rounding decides. Where the number stands
    several times, as in a symmetric table, all of them are exchanged.
    """
    limits = [i for i, x in enumerate(probe) if type(x) is float and _LIMIT.search(names[i])]
    plain = tuple(on_grid(x) for x in probe) if limits else ()
    for i in limits:
        others = {f" above `{names[j]}`": x for j, x in enumerate(plain) if type(x) is float}
        starts = {"": 0.0} | {k: x for k, x in others.items() if names[i] not in k}
        for j, table in enumerate(plain):
            if not isinstance(table, Tensor) or not _may_be_limited(table):
                continue
            for number in table.flatten().unique().tolist()[:_MOST_PLACES]:
                for above, start in starts.items():
                    places = {
                        f"far below{above.removeprefix(' above')}": start - 2 * plain[i],
                        f"exactly `{names[i]}`{above}": start + plain[i],
                        f"just more than `{names[i]}`{above}": start + plain[i] + 1 / _GRID,
                    }
                    for words, other in places.items():
                        if other >= 0:
                            new = torch.where(table == number, other, table)
                            what = f"where a number of `{names[j]}` is {words}"
                            yield what, (*plain[:j], new, *plain[j + 1 :])


def _may_be_limited(table: Tensor) -> bool:
    """Whether it holds amounts: numbers of one sign, and no shares of 1."""
    return table.is_floating_point() and bool((table >= 0).all()) and not sums_to_one(table)


def on_grid(value: Any) -> Any:
    """A number as the nearest power of 2, at least of the grid; a table in steps of the grid."""
    if type(value) is float and value > 0:
        return 2.0 ** max(round(math.log2(value)), -round(math.log2(_GRID)))
    floats = isinstance(value, Tensor) and value.is_floating_point()
    return (value * _GRID).round() / _GRID if floats else value
