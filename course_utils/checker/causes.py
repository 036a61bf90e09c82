"""Which of the inputs that come out wrong is told, and whether what is special about it is why.

A size stands for many things at once: a mask that was made longer has a gap, a row more has other
numbers. It is named only where the answer is wrong on every ordinary input of those sizes. What is
true of an input that comes out right is not why another one comes out wrong.
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
from course_utils.checker.stated_sizes import axes_of, sizes_of
from course_utils.checker.values import Raised, gap
from course_utils.checker.widen import Input, all_agree, usual

_SIZE = re.compile(r"where ((\w+ and )*\w+) (?:is|are) (\d+)")
_NUMBER = re.compile(r"where `(\w+)` is (\d+)")
_SCALE = re.compile(r"\d times as large$")
_RELATIVE = re.compile(r"where `\w+` has one entry more .+|with sizes of .+")  # more than what?
_UNKNOWN = "on this one"
_NAME = re.compile(r"[a-zA-Z_]\w*")
_DRAWS = 2
_GRID = range(1, 10)  # of two whole numbers
_TIMES = {2, 3, 4}  # as large as another one a size may be wherever an answer is right


def told(
    exercise: Exercise,
    wrong: Sequence[Input],
    right: Sequence[Input],
    play_right: Callable[[Sequence[tuple]], list[Any]],
    play_answer: Callable[[Sequence[tuple]], list[Any]],
) -> tuple[int, str]:
    """Which wrong input is the first whose words say why; else the first, and no reason.

    Args:
        wrong, right: the inputs on which the answer is wrong, and those on which it is right.
    """

    def is_wrong(inputs: list[tuple]) -> list[bool]:
        given = play_answer(inputs)
        return [gap(a, b).size > 1 for a, b in zip(play_right(inputs), given)]

    more = _grid(exercise)
    off = is_wrong(more)
    if len(off) == len(more):
        wrong = [*wrong, *((_UNKNOWN, x) for x, is_off in zip(more, off) if is_off)]
        right = [*right, *(("", x) for x, is_off in zip(more, off) if not is_off)]
    if apart := _sizes_apart(exercise, [x for _, x in wrong], [x for _, x in right]):
        return 0, apart
    also_right = {words for words, _ in right}
    wrong_words = [words for words, _ in wrong]
    doubtful, by_hand = [], {words for words, _ in exercise.edges}
    for k, (words, args) in enumerate(wrong):
        if words == _UNKNOWN or _RELATIVE.fullmatch(words):
            continue
        if words in also_right:
            others = words in by_hand and {*wrong_words} != {words}
            exact = others or any(p.search(words) for p in (_SIZE, _NUMBER, _SCALE))
            doubtful += [] if exact else [k]
        elif sizes := _SIZE.fullmatch(words):
            others = [x for x in _of_these_sizes(args) if all_agree(exercise, x)]
            known = [_named_sizes(exercise, x) for _, x in right]
            names, size = sizes[1].split(" and "), int(sizes[3])
            held = any(all(of.get(n) == size for n in names) for of in known)
            others += [] if held else _of_one_size(exercise, names, size)
            off = [] if held else is_wrong(others)
            if not held and len(off) == len(others) and all(off):
                return k, words
        elif number := _NUMBER.fullmatch(words):
            if said := _of_a_number(exercise, *number.groups(), wrong, right, is_wrong):
                return k, said
        elif not _SCALE.search(words) or not any(is_wrong([*usual(exercise)])):
            return k, words
    return (doubtful[0], wrong[doubtful[0]][0]) if doubtful else (0, _UNKNOWN)


def _of_a_number(
    exercise: Exercise,
    name: str,
    number: str,
    wrong: Sequence[Input],
    right: Sequence[Input],
    is_wrong: Callable[[list[tuple]], list[bool]],
) -> str:
    """That a number is why, if it is on every input that may hold it; alone, or as an example."""
    i = [exercise.argument(i) for i in range(len(wrong[0][1]))].index(name)
    if any(args[i] == int(number) for _, args in right):
        return ""
    others = [(*args[:i], int(number), *args[i + 1 :]) for args in exercise.probes]
    others = [args for args in others if all_agree(exercise, args)]
    off = is_wrong(others)
    if len(off) < len(others) or not all(off):
        return ""
    words = f"where `{name}` is {number}"
    found = {args[i] for _, args in wrong} - {args[i] for _, args in right}
    if len(found) == 1:
        return words
    even = {args[i] % 2 for _, args in right}
    if even == {0} and all(args[i] % 2 for _, args in wrong):
        return f"where `{name}` is odd"
    return f"{words}, for example"


def _of_one_size(
    exercise: Exercise, names: list[str], size: int, inputs: Sequence[tuple] = ()
) -> list[tuple]:
    """The inputs, else the probes, with the axes of these names as long as that."""

    def resized(value: Any, axes: tuple[str, ...]) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(resized(item, axes) for item in value)
        for axis in (k for k, name in enumerate(axes) if name in names and value.shape[k]):
            value = value.index_select(axis, torch.arange(size) % value.shape[axis])
        return value

    made = [
        tuple(resized(x, axes_of(exercise, i, x)) for i, x in enumerate(args))
        for args in inputs or exercise.probes
    ]
    return [args for args in made if all_agree(exercise, args)]


def _grid(exercise: Exercise) -> list[tuple]:
    """Where nothing is given but two whole numbers, all pairs of small ones that are allowed."""
    if any([*map(type, args)] != [int, int] for args in exercise.probes):
        return []
    pairs = itertools.product(_GRID, repeat=2)
    return [args for args in pairs if all_agree(exercise, args)]


def _sizes_apart(exercise: Exercise, wrong: list[tuple], right: list[tuple]) -> str:
    """What two sizes are to each other wherever the answer is right, and nowhere else; or wrong."""
    of_wrong, of_right = ([_named_sizes(exercise, x) for x in some] for some in (wrong, right))
    names = set.intersection(*map(set, (*of_wrong, *of_right)))
    fitting = []
    for a, b in itertools.permutations(sorted(names), 2):
        steps = [{of[b] - of[a] for of in some} for some in (of_right, of_wrong)]
        for (one, others), so in ((steps, "is not"), (steps[::-1], "is")):
            if len(one) == 1 and not one & others and (one == {1} or (one == {0} and a < b)):
                fitting.append(f"where {a}{' + 1' * max(one)} {so} {b}")
        times = {of[a] / of[b] if of[b] else 0 for of in of_right}
        several = len({of[a] for of in of_right}) > 1
        never = all(of[a] != max(times) * of[b] for of in of_wrong)
        if several and never and len(times) == 1 and times <= _TIMES:
            fitting.append(f"where {a} / {b} is not {max(times):.0f}")
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

    Of two such conditions neither is told, unless one alone has a name that the `line` has. What
    fits the probes is tried where these very sizes, and no others, are equal and where they differ.

    Args:
        given: what came on the probes; further inputs tell conditions apart that fit these.
    """
    further = _other_numbers(exercise)
    played = [*zip(exercise.probes, given), *zip(further, play_answer(further))]
    more = [x for pair in _fitting(exercise, played) for x in _equal_and_not(exercise, *pair[1:])]
    played += zip(more, play_answer(more))
    fitting = _fitting(exercise, played)
    if len(fitting) > 1:
        here = {*_NAME.findall(line)}
        fitting = [x for x in fitting if here & {*_NAME.findall(" ".join(x[1:]))}]
    if len(fitting) != 1 or len({isinstance(x, Raised) for _, x in played}) < 2:
        return ""
    words, a, b = fitting[0]
    return f"it stops where {a} is {words} {b}, and on no other of the inputs tried"


def _fitting(exercise: Exercise, played: Sequence[tuple]) -> list[tuple[str, str, str]]:
    """The pairs of sizes of which one is larger, or other, where an answer stopped and only there.

    Args:
        played: inputs, each with what came.
    """
    stopped = [isinstance(x, Raised) for _, x in played]
    sizes = [_sizes(exercise, args) for args, _ in played]
    axes = [_axes(exercise, args) for args, _ in played]
    return [
        (words, a, b)
        for some, pairs, words, is_so in (
            (sizes, itertools.permutations, "larger than", operator.gt),
            (axes, itertools.combinations, "not", operator.ne),
        )
        for a, b in pairs(sorted(set.intersection(*map(set, some))), 2)
        if [is_so(of[a], of[b]) for of in some] == stopped
    ]


def _equal_and_not(exercise: Exercise, a: str, b: str) -> list[tuple]:
    """The probes with two of their sizes made equal, and with one of them 1 longer than all."""
    found = []
    for args in exercise.probes:
        of = _axes(exercise, args)
        for name, other in ((a, b), (b, a)) if {a, b} <= {*of} else ():
            for size in (of[other], max(of.values()) + 1):
                found += _of_one_size(exercise, [name.strip("`")], size, [args])
    return found


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
