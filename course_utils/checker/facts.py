"""What can be said for certain of an answer that equals no known wrong one.

A fact is a function `(play_again, args, expected, given) -> sentence or None`, where `play_again`
plays the answer on other arguments. Nothing here guesses: each sentence is a measurement.
"""

import re
from collections.abc import Callable

from torch import Tensor

from course_utils.checker.values import Raised, number


def rows_sum_to_one(play_again: Callable, args: tuple, expected, given) -> str | None:
    """For answers that are weights: their rows sum to what the right rows sum to."""
    if not _alike(expected, given):
        return None
    right, sums = expected.sum(-1), given.double().sum(-1)
    wrong = (sums - right).abs() > 1e-3
    if not wrong.any():
        negative = int((given < 0).sum())
        return f"{negative} of the weights are negative" if negative else None
    row = tuple(wrong.nonzero()[0].tolist())
    return (
        f"row {list(row)} of the weights sums to {number(sums[row].item())}, "
        f"not {number(right[row].item())}"
    )


def no_look_ahead(*positions_in: int) -> Callable:
    """Changing the last position of these arguments (axis -2) must not change earlier outputs."""

    def fact(play_again: Callable, args: tuple, expected, given) -> str | None:
        if not _alike(expected, given) or given.shape[-2] < 2:
            return None
        changed = list(args)
        for i in positions_in:
            changed[i] = args[i].clone()
            changed[i][..., -1, :] += 1.0
        other = play_again(*changed)
        if not _alike(given, other):
            return None
        moved = (other - given)[..., :-1, :].abs().max().item()
        return "the last position changes outputs at earlier positions" if moved > 1e-4 else None

    return fact


def _alike(a, b) -> bool:
    """Two tensors of floating-point numbers and of one shape."""
    both = isinstance(a, Tensor) and isinstance(b, Tensor) and a.dim() > 0
    return both and a.shape == b.shape and a.is_floating_point() and b.is_floating_point()


_ADVICE = (
    (r"view size is not compatible", "after a transpose use .reshape, or .contiguous().view"),
    (
        r"must match the size of tensor|not broadcastable|doesn't match the broadcast",
        "two shapes do not broadcast: print both and count the axes from the right",
    ),
    (
        r"shapes cannot be multiplied|batch1|size mismatch|inconsistent tensor size",
        "in a matrix product the last axis on the left must equal the last but one on the right",
    ),
    (r"shape '\[.*\]' is invalid", "a reshape must keep the number of entries"),
    (
        r"not implemented for '(Long|Bool|Int|Short|Byte|Char)'|must be either a floating point",
        "this operation needs floating-point numbers: convert to float first, with .float()",
    ),
    (
        r"meta tensor",
        "a meta tensor has a shape but no numbers: make the tensor without device='meta'",
    ),
    (r"only supports boolean masks|bool", "a mask must be boolean: compare, or use .bool()"),
    (r"same dtype|expected scalar type", "two tensors have different dtypes: convert one"),
    (r"missing \d+ required positional", "something is called with too few arguments"),
    (r"not defined", "a name is used that no cell has defined"),
    (r"Dimension out of range", "an axis is named that the tensor does not have"),
    (r"maximum recursion depth", "the function calls itself without end"),
)


def advice(raised: Raised) -> str:
    """What the message of a common error means, or nothing."""
    return next((text for pattern, text in _ADVICE if re.search(pattern, raised.message)), "")
