"""Known mistakes that several exercises share: their references have the same switches."""

import torch
from torch import Tensor

from course_utils.checker.exercise import Mistake, wrong

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

_FILLERS = {"at -1": -1.0, "at -100": -100.0, "at -1000": -1000.0}
NOT_LOW = (*_FILLERS, "by 50")  # ways to lower hidden scores that do not hide them from any softmax


def lowered(scores: Tensor, hidden: Tensor, how: str) -> Tensor:
    """Scores with the hidden ones lowered in one of the ways NOT_LOW."""
    if how == "by 50":
        return torch.where(hidden, scores - 50.0, scores)
    return scores.masked_fill(hidden, _FILLERS[how])


def not_low_enough(switch: str, *forms: str, **more) -> list[Mistake]:
    """The mistake of lowering too little; `switch` is turned to each of the forms of NOT_LOW.

    Probes show it in which all scores are `probes.far_below`. `more` are further switches.
    """
    first, *others = forms or ("at -1", "at -100", "by 50")
    return wrong(
        "hidden scores are not low enough",
        "mask timing",
        "Real scores can be as low as that; only -inf (or -1e9) is below them all.",
        *({switch: how} for how in others),
        **{switch: first},
        **more,
    )


def unshifted(scores: Tensor, visible: Tensor) -> Tensor:
    """A softmax over the visible keys, the last axis, that takes exp of the scores as they are."""
    powers = scores.exp() * visible
    return powers / powers.sum(-1, keepdim=True)


def not_shifted(**switches) -> list[Mistake]:
    """The mistake that `unshifted` makes."""
    return wrong(
        "the row's maximum is not subtracted",
        "overflow",
        "exp of a score far below 0 is 0 in float32, and 0 / 0 is NaN: subtract the row's maximum "
        "first, or use torch.softmax.",
        **switches,
    )
