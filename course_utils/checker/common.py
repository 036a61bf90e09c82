"""Known mistakes that several exercises share: their references have the same switches."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from course_utils.checker.exercise import Mistake, wrong
from course_utils.checker.values import Typed, gap

SOFTMAX_TWICE = wrong(
    "the softmax is applied twice",
    "normalisation",
    "Of weights between 0 and 1 a second softmax makes nearly equal ones.",
    normalise="twice",
)

SOFTMAX_OF_THE_MAP = wrong(
    "one softmax runs over queries and keys together",
    "softmax axis",
    "Each row must sum to 1, not the whole map.",
    normalise="of the map",
    axis=-1,
)

_FILLERS = {"at -1": -1.0, "at -100": -100.0, "at -1000": -1000.0, "at -10000": -10_000.0}
_BY = {"by 50": 50.0, "by 10000": 10_000.0}
NOT_LOW = (*_FILLERS, *_BY)  # ways to lower hidden scores that do not hide them from any softmax


def lowered(scores: Tensor, hidden: Tensor, how: str) -> Tensor:
    """Scores with the hidden ones lowered in one of the ways NOT_LOW."""
    if how in _BY:
        return torch.where(hidden, scores - _BY[how], scores)
    return scores.masked_fill(hidden, _FILLERS[how])


def not_low_enough(switch: str, *forms: str, **more) -> list[Mistake]:
    """The mistake of lowering too little; `switch` is turned to each of the forms of NOT_LOW.

    Probes show it in which all scores are `probes.far_below`. `more` are further switches.
    """
    first, *others = forms or ("at -1", "at -100", "by 10000")
    return wrong(
        "hidden scores are not low enough",
        "mask timing",
        "Real scores can be as low as that, or lie as far apart; only -inf (or -1e9) is below them "
        "all.",
        *({switch: how} for how in others),
        **{switch: first},
        **more,
    )


KEPT = "unshifted, kept from 0 / 0"


def unshifted(scores: Tensor, visible: Tensor | bool = True, how: str = "unshifted") -> Tensor:
    """A softmax over the visible keys, the last axis, that takes exp of the scores as they are.

    `how` is KEPT where a small number keeps the divisor from 0.
    """
    powers = scores.exp() * visible
    return powers / (powers.sum(-1, keepdim=True) + (1e-9 if how == KEPT else 0.0))


def not_shifted(*other_forms: dict, **switches) -> list[Mistake]:
    """The mistake that `unshifted` makes."""
    return wrong(
        "the row's maximum is not subtracted",
        "overflow",
        "exp of a score far below 0 is 0 in float32, and a row of zeros makes no weights: subtract "
        "the row's maximum first, or use torch.softmax.",
        *other_forms,
        **switches,
    )


DIVIDED_AGAIN = {  # by which visible weights are divided when the softmax saw all keys
    "by what is left": lambda weights, visible: weights.sum(-1, keepdim=True),
    "by what is left, and not by 0": lambda weights, visible: weights.sum(-1, keepdim=True).clamp(
        min=1e-9
    ),
}


def softmax_of_hidden(switch: str, **more) -> list[Mistake]:
    """The mistake of a softmax over hidden keys, too, that is made whole afterwards.

    `switch` is turned to each of DIVIDED_AGAIN. Probes show it in which a hidden score lies far
    above the visible ones. `more` are further switches.
    """
    first, *others = DIVIDED_AGAIN
    return wrong(
        "the maximum of a row is taken over hidden keys too",
        "overflow",
        "Below a huge hidden score every visible exp becomes 0, and of 0 / 0 no weights can be "
        "made: hide the scores before the softmax, which subtracts the maximum of what is left.",
        *({switch: how} for how in others),
        **{switch: first},
        **more,
    )


def worked_out(work: Callable[..., float], *mistakes: list[Mistake]) -> list[list[Mistake]]:
    """The mistakes of a typed number, each alone and every two at once.

    Two at once are left out where they come to what is right, to what one alone gives, or so near
    another number of the list that a rounded answer could not be told apart. Where two others come
    to the very same number, both are kept, and both are told. What one alone gives and two others
    as well is named by the one, and the two are told as another way to it.

    Args:
        work: works the number out; its keyword-only switches make the mistakes. Two that contradict
            each other (a map forgotten, and its bias counted) come to what one alone gives.
        mistakes: what `wrong` returned, with switches of `work`.
    """
    single = list(itertools.chain(*mistakes))
    known = [(m, work(**m.switches)) for m in single]
    ones = [("", Typed(work())), *((m.name, Typed(number)) for m, number in known)]
    twos: list[tuple[str, Typed]] = []
    ways: list[tuple[str, float]] = []  # two that come to what another alone gives
    for a, b in itertools.combinations(single, 2):
        if a.name == b.name or a.switches.keys() & b.switches.keys():
            continue
        number = work(**a.switches, **b.switches)
        name = f"{a.name}, and {b.name}"
        near = [of for of, other in ones if gap(other, number).size <= 5]
        same = [of for of, other in ones if math.isclose(other, number, rel_tol=1e-9)]
        if near and near == same and not {"", a.name, b.name} & {*near}:
            ways.append((name, number))
        near += [
            of
            for of, other in twos
            if gap(other, number).size <= 5 and not math.isclose(other, number, rel_tol=1e-9)
        ]
        if any(of != name for of in near):
            continue
        both = replace(a, name=name, why=f"{a.why} {b.why}", of_two=True)
        known.append((both, number))
        twos.append((name, Typed(number)))

    def why(mistake: Mistake, number: float) -> str:
        others = dict.fromkeys(name for name, x in ways if math.isclose(x, number, rel_tol=1e-9))
        more = f" Another way to this number: {'; or '.join(others)}." if others else ""
        return mistake.why + more

    return [[replace(m, why=why(m, x), switches={"answer": x})] for m, x in known]


def mixed_up(right: str, kinds: dict[str, str], tag: str, but: Sequence[str] = ()) -> list:
    """Every other order of letters that say which is which, with what tells the kinds apart.

    Args:
        right: the letters in their right order.
        kinds: what each letter stands for, and by what it is known.
        tag: the kind of the mistakes.
        but: answers that have a mistake of their own.
    """
    made = []
    for order in map("".join, itertools.permutations(right)):
        if order == right or order in but:
            continue
        off = [kind for kind, a, b in zip(kinds, order, right) if a != b]
        name = f"{', '.join(off[:-1])} and {off[-1]} are mixed up"
        made += wrong(name, tag, " ".join(kinds[kind] for kind in off), answer=order)
    return [made]
