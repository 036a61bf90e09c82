"""Which of the inputs that come out wrong is told, and whether what is special about it is why.

A size stands for many things at once: a mask that was made longer has a gap, a row more has other
numbers. It is named only where the answer is wrong on every ordinary input of those sizes.
"""

import itertools
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from course_utils.checker.exercise import Exercise
from course_utils.checker.plain_inputs import is_own
from course_utils.checker.resized import without_gaps
from course_utils.checker.stated_sizes import sizes_of
from course_utils.checker.values import Raised, gap
from course_utils.checker.widen import Input, all_agree

_SIZE = re.compile(
    r"where ((\w+ and )*\w+ (is|are) \d+|`\w+` has one entry more .+)|with sizes of .+"
)
_UNKNOWN = "on this one"
_DRAWS = 2


def told(
    exercise: Exercise,
    wrong: Sequence[Input],
    right: Sequence[tuple],
    play_right: Callable[[Sequence[tuple]], list[Any]],
    play_answer: Callable[[Sequence[tuple]], list[Any]],
) -> tuple[int, str]:
    """Which wrong input is the first whose words say why; else the first, and no reason.

    Args:
        wrong, right: the inputs on which the answer is wrong, and those on which it is right.
    """
    if unequal := _sizes_apart(exercise, [args for _, args in wrong], right):
        return 0, unequal
    for k, (words, args) in enumerate(wrong):
        if not _SIZE.fullmatch(words):
            return k, words
        others = [x for x in _of_these_sizes(args) if all_agree(exercise, x)]
        given = play_answer(others)
        late = len(given) < len(others)
        if not late and all(gap(a, b).size > 1 for a, b in zip(play_right(others), given)):
            return k, words
    return 0, _UNKNOWN


def _sizes_apart(exercise: Exercise, wrong: list[tuple], right: Sequence[tuple]) -> str:
    """Two sizes that are equal, or one apart, wherever the answer is right, and nowhere else."""
    of_wrong, of_right = ([_named_sizes(exercise, x) for x in some] for some in (wrong, right))
    names = set.intersection(*map(set, (*of_wrong, *of_right)))
    fitting = []
    for a, b in itertools.combinations(sorted(names), 2):
        (least, *more) = {of[a] - of[b] for of in of_right}
        if not more and abs(least) <= 1 and all(of[a] - of[b] != least for of in of_wrong):
            left, other = (a, b) if least <= 0 else (b, a)
            fitting.append(f"where {left}{' + 1' * abs(least)} is not {other}")
    return fitting[0] if len(fitting) == 1 and len(wrong) > 1 else ""


def _named_sizes(exercise: Exercise, args: tuple) -> dict[str, int]:
    """The sizes of the axes that have a name, and the whole numbers that are given."""
    axes = {n: max(of) for n, of in sizes_of(exercise, args).items() if n.isidentifier() and of}
    whole = {f"`{exercise.argument(i)}`": x for i, x in enumerate(args) if type(x) is int}
    return axes | whole


def stops_where(
    exercise: Exercise,
    given: Sequence[Any],
    play_answer: Callable[[Sequence[tuple]], list[Any]],
    line: str = "",
) -> str:
    """What is true of the inputs on which an answer stops with an error, and of no other; or "".

    Of two such conditions neither is told, unless one alone has a name that the `line` has.

    Args:
        given: what came on the probes; further inputs tell conditions apart that fit these.
    """
    further = _other_numbers(exercise)
    played = [*zip(exercise.probes, given), *zip(further, play_answer(further))]
    stopped = [isinstance(x, Raised) for _, x in played]
    sizes = [_sizes(exercise, args) for args, _ in played]
    axes = [_axes(exercise, args) for args, _ in played]
    fitting = [
        f"{a} is {words} {b}"
        for some, pairs, words, is_so in (
            (sizes, itertools.permutations, "larger than", operator.gt),
            (axes, itertools.combinations, "not", operator.ne),
        )
        for a, b in pairs(sorted(set.intersection(*map(set, some))), 2)
        if [is_so(of[a], of[b]) for of in some] == stopped
    ]
    if len(fitting) > 1:
        here = {*re.findall(r"[a-zA-Z_]\w*", line)}
        fitting = [x for x in fitting if here & {*re.findall(r"[a-zA-Z_]\w*", _names_in(x))}]
    if len(fitting) != 1 or all(stopped) or not any(stopped):
        return ""
    return f"it stops where {fitting[0]}, and on no other of the inputs tried"


def _names_in(condition: str) -> str:
    return " ".join(re.findall("`(.*?)`", condition))


def _other_numbers(exercise: Exercise) -> list[tuple]:
    """The probes, each with 1, or a whole number of another probe, in place of its own."""
    made = {}
    for k, probe in enumerate(exercise.probes):
        for i in (i for i, x in enumerate(probe) if type(x) is int):
            for other in {1, *(p[i] for p in exercise.probes)} - {probe[i]}:
                made[k, i, other] = (*probe[:i], other, *probe[i + 1 :])
    return [args for args in made.values() if all_agree(exercise, args)]


def _axes(exercise: Exercise, args: tuple) -> dict[str, int]:
    """The sizes of the axes that the docstring names, products too: h * d_head; and squares."""
    of = {n: sizes for n, sizes in sizes_of(exercise, args).items() if re.search("[a-zA-Z]", n)}
    whole = {exercise.argument(i): x for i, x in enumerate(args) if type(x) is int}
    squares = {f"`{name} * {name}`": x * x for name, x in whole.items() if name not in of}
    return {f"`{n}`": max(sizes) for n, sizes in of.items() if len(sizes) == 1} | squares


def _sizes(exercise: Exercise, args: tuple) -> dict[str, int]:
    """The whole numbers among arguments, and the lengths of others."""
    own = {exercise.argument(i): x for i, x in enumerate(args) if is_own(exercise, i)}
    named = {f"`{name}`": x for name, x in own.items()}
    whole = {name: x for name, x in named.items() if type(x) is int}
    long = {
        f"the length of {name}": len(x)
        for name, x in named.items()
        if isinstance(x, (list, tuple)) or (isinstance(x, Tensor) and x.dim())
    }
    return whole | long


def _of_these_sizes(args: tuple) -> list[tuple]:
    """Ordinary inputs as large as these: other numbers, and masks without a gap."""
    generator = torch.Generator().manual_seed(2)

    def other(value: Any, mask: Callable[[Tensor], Tensor]) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(other(item, mask) for item in value)
        if not isinstance(value, Tensor) or not value.dim() or not value.numel():
            return value
        if value.dtype == torch.bool:
            return mask(value)
        if value.is_floating_point() and (value < 0).any():
            return torch.randn(value.shape, generator=generator).to(value.dtype)
        return value

    kinds = (torch.clone, without_gaps, torch.ones_like)
    return [tuple(other(x, kind) for x in args) for kind in kinds for _ in range(_DRAWS)]
