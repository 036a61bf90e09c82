"""What experiments tell of an answer that equals no known wrong one: what it depends on, and how.

A finding is a function `(trial) -> sentence or None`. It is told only if it holds on every generic
input: the probes with fresh numbers of order one, without zeros and without saturated scores, in
several draws. FINDINGS lists the most telling first.
"""

import itertools
import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from course_utils.checker.called_with import own_arguments
from course_utils.checker.dependence import (
    batch_added_up,
    batch_mixed_up,
    no_influence,
    rows_mixed_up,
)
from course_utils.checker.generic_inputs import (
    Trial,
    comparable,
    numbers,
)
from course_utils.checker.shown import number
from course_utils.checker.values import gap
from course_utils.checker.widen import drawn
from course_utils.checker.wording import in_words

ALL_BUT = "the numbers are right, only "
_FEW = 8  # different whole numbers: fewer are all off by one sum by chance
_MOST = 2  # sentences that are shown
_POWERS = (("", 1), ("1 / ", -1), ("the root of ", 0.5), ("1 / the root of ", -0.5))


def findings(
    trial: Trial | None, end: float = math.inf, which: Sequence | None = None
) -> list[str]:
    """The first sentences that hold, at most two; `end` on the clock of the process."""
    found: list[str] = []
    unknown = trial and own_arguments(trial.exercise, trial.inputs[0])
    for finding in (which or FINDINGS) if trial else ():
        more = len(found) < _MOST and time.process_time() < end
        more = more and not (unknown and finding in OF_ARGUMENTS)
        sentence = finding(trial) if more else None
        found += [sentence] if sentence and not _told(sentence, found) else []
    return found


def _told(sentence: str, found: list[str]) -> bool:
    """Whether a sentence before it says more of the same argument."""
    about = set(re.findall("`.+?`", sentence))
    return bool(about) and any(about <= set(re.findall("`.+?`", s)) for s in found)


def _flat(trial: Trial) -> list[tuple[Tensor, Tensor]]:
    """Due and given as rows of finite numbers; empty where one of them is none, or longer."""
    pairs = [(numbers(due), numbers(given)) for due, given in trial.pairs]
    fit = all(a is not None and b is not None and a.shape == b.shape for a, b in pairs)
    fit &= not any(gap(due, given).of_form for due, given in trial.pairs)
    return pairs if fit and all((a.isfinite() & b.isfinite()).all() for a, b in pairs) else []


def one_factor(trial: Trial) -> str | None:
    """All numbers too large by one factor, perhaps the root of some size."""
    factors = [_factor(a, b) for a, b in _flat(trial)]
    if not factors or None in factors or all(abs(f - 1) < 1e-3 for f in factors):
        return None
    if max(factors) - min(factors) < 1e-3 * abs(factors[0]):
        if abs(factors[0] + 1) < 1e-3:
            return "every number has the opposite sign"
        roots = {math.sqrt(2): " (√2)", math.sqrt(0.5): " (1/√2)", 1 / 3: " (1/3)"}
        known = "".join(w for f, w in roots.items() if abs(factors[0] / f - 1) < 1e-4)
        return f"every number is {number(factors[0])}{known} times what it should be"
    for what, sizes in () if own_arguments(trial.exercise, trial.inputs[0]) else _sizes(trial):
        for words, power in _POWERS:
            fits = all(v > 0 and abs(v**power / f - 1) < 1e-3 for v, f in zip(sizes, factors))
            if fits and len({*sizes}) > 1:
                return f"every number is {words}{what} times what it should be"
    return None


def plain_factor(trial: Trial) -> str | None:
    """One factor that somebody may have written: a size, a small whole number or its root."""
    factors = [_factor(a, b) for a, b in _flat(trial)]
    if factors and None not in factors and max(factors) - min(factors) < 1e-3 * abs(factors[0]):
        size = abs(factors[0])
        square = max(size, 1 / size) ** 2 if size else 0.5
        if abs(square - round(square)) > 1e-3 * square or square > 300:
            return None
    return one_factor(trial)


def _factor(a: Tensor, b: Tensor) -> float | None:
    if not a.any() or (b[a == 0].abs() > 1e-5).any():
        return None
    ratios = b[a != 0] / a[a != 0]
    return ratios[0].item() if (ratios - ratios[0]).abs().max() < 1e-3 * abs(ratios[0]) else None


def _sizes(trial: Trial) -> Iterator[tuple[str, list[float]]]:
    """Numbers and sizes among the arguments that a factor may come from, one for each input."""
    for i, argument in enumerate(trial.inputs[0]):
        name, column = trial.exercise.argument(i), [p[i] for p in trial.inputs]
        if all(type(x) in (int, float) for x in column):
            yield f"`{name}`", [float(x) for x in column]
        if isinstance(argument, Tensor) and all(x.dim() == argument.dim() for x in column):
            for axis in range(-1, -1 - argument.dim(), -1):
                yield f"the size of axis {axis} of `{name}`", [float(x.shape[axis]) for x in column]


def lost_axes(trial: Trial) -> str | None:
    """Right numbers in a shape with axes of size 1 too many or too few."""
    bare = [[x.squeeze() if isinstance(x, Tensor) else x for x in pair] for pair in trial.pairs]
    if not all(isinstance(x, Tensor) for pair in bare for x in pair):
        return None
    if not all(gap(*pair).size <= 1 for pair in bare):
        return None
    return f"{ALL_BUT}axes of size 1 are not as they are due"


def joined_axes(trial: Trial) -> str | None:
    """Right numbers of which two neighbouring axes are joined into one."""
    if not all(isinstance(x, Tensor) for pair in trial.pairs for x in pair):
        return None
    for i in range(min(due.dim() for due, _ in trial.pairs) - 1):
        joined = [(due.flatten(i, i + 1), given) for due, given in trial.pairs]
        if all(gap(*pair).size <= 1 for pair in joined):
            return f"{ALL_BUT}axes {i} and {i + 1} are joined into one"
    return None


def one_sum(trial: Trial) -> str | None:
    """All numbers too large by one sum."""
    pairs = _flat(trial)
    shifts = torch.cat([b - a for a, b in pairs] or [torch.zeros(1)])
    due = torch.cat([a for a, _ in pairs] or [shifts]).unique()
    if len(due) < (_FEW if due.equal(due.round()) else 2):
        return None
    if shifts.max() - shifts.min() < 1e-4 < shifts[0].abs():
        amount = number(abs(shifts[0].item())).removesuffix(".0")
        return f"every number is {amount} too {'large' if shifts[0] > 0 else 'small'}"
    return None


def inverted(trial: Trial) -> str | None:
    """True for False everywhere."""
    both = [(a, b) for a, b in trial.pairs if _is_mask(a) and _is_mask(b) and a.shape == b.shape]
    turned = len(both) == len(trial.pairs) and all(torch.equal(a, ~b) for a, b in both)
    return "True and False are exchanged everywhere" if turned else None


def _is_mask(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype == torch.bool and value.dim() > 0


def axes_exchanged(trial: Trial) -> str | None:
    """Two axes of one tensor stand the other way round; this must show."""
    if not all(isinstance(x, Tensor) and x.dim() > 1 for pair in trial.pairs for x in pair):
        return None
    least = min(a.dim() for a, _ in trial.pairs)
    for i, j in itertools.combinations(range(-least, 0), 2):
        turned = [(a.transpose(i, j), a, b) for a, b in trial.pairs]
        if all(gap(t, b).size <= 1 for t, _, b in turned) and not any(
            gap(t, a).size <= 1 for t, a, _ in turned
        ):
            return f"axes {i} and {j} of the result are exchanged"
    return None


def one_order(trial: Trial) -> str | None:
    """One half of a result that is due the same on both sides of its diagonal."""
    squares = [(a, b) for a, b in trial.pairs if isinstance(a, Tensor) and _is_symmetric(a)]
    if len(squares) < len(trial.pairs) or any(gap(*pair).of_form for pair in squares):
        return None
    for half in (torch.triu, torch.tril):
        if all(gap(half(a), b).size <= 1 for a, b in squares):
            return "a pair is given in one order only: [i, j] and [j, i] are due alike"
    return None


def _is_symmetric(value: Tensor) -> bool:
    square = value.dim() > 1 and value.shape[-1] == value.shape[-2]
    return square and value.equal(value.mT)


def same_numbers(trial: Trial) -> str | None:
    """Numbers that are right but for their signs, or but for their places."""
    pairs = _flat(trial)
    if not pairs or all(_close(a, b) for a, b in pairs):
        return None
    if all(_close(a.abs(), b.abs()) for a, b in pairs):
        return "all the numbers are right but for their signs"
    several = all(len(a.unique()) > 2 for a, _ in pairs)
    if not several or not all(_close(a.msort(), b.msort()) for a, b in pairs):
        return None
    return "the numbers are the right ones, but they stand at other places"


def _close(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, rtol=1e-4, atol=1e-5)


def sums_of_rows(trial: Trial) -> str | None:
    """Rows that should sum to 1 and do not."""
    weights = [a for a, b in trial.pairs if comparable(a, b) and a.dim() > 1]
    if len(weights) < len(trial.due) or not all(map(_sums_to_one, weights)):
        return None
    sums = [(a.double().sum(-1).flatten(), b.double().sum(-1).flatten()) for a, b in trial.pairs]
    off = [torch.stack(pair, 1)[(pair[0] - pair[1]).abs() > 1e-3].tolist() for pair in sums]
    if all(off):
        return "the sums of rows are wrong"
    negative = all((given < 0).any() for _, given in trial.pairs)
    return "some of the weights are negative" if negative else None


def _sums_to_one(x: Tensor) -> bool:
    sums = x.sum(-1)
    return bool((x >= 0).all()) and bool((((sums - 1).abs() < 1e-4) | (sums == 0)).all())


def right_parts(trial: Trial) -> str | None:
    """Which of several returned things are right on every input, drawn ones too, which not."""
    if not all(isinstance(x, list) for x in (*trial.due, *trial.given)):
        return None
    counts = {len(x) for x in (*trial.due, *trial.given)}
    if len(counts) != 1 or not isinstance(trial.due[0][0], (Tensor, list)):
        return None
    more = trial.both(drawn(trial.exercise))
    if more is None or not all(isinstance(x, list) and {len(x)} == counts for p in more for x in p):
        return None
    pairs = [*trial.pairs, *more]
    good = [k for k in range(*counts) if all(gap(a[k], b[k]).size <= 1 for a, b in pairs)]
    bad = [k for k in range(*counts) if k not in good]
    if not good or not bad:
        return None
    return f"{_results(good)} right, {_results(bad)} not"


def _results(which: list[int]) -> str:
    return " and ".join(map(in_words, which)) + (" is" if len(which) == 1 else " are")


def some_inputs(trial: Trial) -> str | None:
    """A switch or a mask that tells the inputs on which it is right from the others."""
    good = [gap(a, b).size <= 1 for a, b in trial.pairs]
    inputs = [*trial.inputs, *(args for args, *_ in trial.shown)]
    fitting = []
    for i in range(len(inputs[0])):
        name, column = f"`{trial.exercise.argument(i)}`", [p[i] for p in inputs]
        if all(type(x) is bool for x in column):
            holds, yes, no = column, f"where {name} is True", f"where {name} is False"
        elif all(isinstance(x, Tensor) and x.dtype == torch.bool for x in column):
            holds = [bool(x.all()) for x in column]
            if (
                min(
                    len({x.shape for x, h in zip(column, holds) if h is side})
                    for side in (True, False)
                )
                < 2
            ):
                continue  # one probe may differ in more than its mask
            yes, no = f"where {name} is True throughout", f"where {name} holds a False"
        else:
            continue
        fitting += [(yes, no)] if holds == good else []
        fitting += [(no, yes)] if holds == [not g for g in good] else []
    if not any(good) or all(good) or len(fitting) != 1:
        return None
    return "of the inputs tried, it is right on those {}, wrong on those {}".format(*fitting[0])


FINDINGS: tuple[Callable[[Trial], str | None], ...] = (
    no_influence,
    batch_added_up,
    batch_mixed_up,
    rows_mixed_up,
    one_factor,
    one_sum,
    inverted,
    axes_exchanged,
    one_order,
    same_numbers,
    sums_of_rows,
    right_parts,
    some_inputs,
)
# what names arguments of `play`
OF_ARGUMENTS = (no_influence, batch_added_up, rows_mixed_up, some_inputs)
# what may be said beside a known mistake
EXACT = (plain_factor, one_sum, inverted, axes_exchanged, one_order)
OF_FORM = (lost_axes, joined_axes)  # what is told where a shape is wrong
