"""Arguments cut down, or with ids exchanged; what holds ids, an order or weights."""

from typing import Any

import torch
from torch import Tensor

from course_utils.checker.stated_sizes import tensors_in


def cut(value: Any, size: int, to: int) -> Any:
    """All that is `size` long cut down, axes of tensors and lists."""
    if isinstance(value, (list, tuple)):
        kept = value[:to] if len(value) == size and not [*tensors_in(value)] else value
        return type(value)(cut(item, size, to) for item in kept)
    if isinstance(value, Tensor):
        less = value
        for axis, n in enumerate(value.shape):
            less = less.narrow(axis, 0, to) if n == size else less
        return weights_still(value, less)
    return value


def weights_still(before: Tensor, after: Tensor) -> Tensor:
    """`after`, whose rows sum to 1 if those of `before` do."""
    changed = sums_to_one(before) and not sums_to_one(after)
    return after / after.sum(-1, keepdim=True) if changed else after


def sums_to_one(value: Tensor) -> bool:
    """Whether it holds weights: along the last axis they sum to 1."""
    if not value.is_floating_point() or not value.dim() or (value < 0).any():
        return False
    return bool(((value.sum(-1) - 1).abs() < 1e-4).all())


def exchanged(value: Any, a: int, b: int) -> Any:
    """Two ids exchanged, in tensors of ids and as an argument."""
    if isinstance(value, (list, tuple)):
        return type(value)(exchanged(item, a, b) for item in value)
    if is_ids(value):
        return torch.where(value == a, b, torch.where(value == b, a, value))
    return {a: b, b: a}.get(value, value) if type(value) is int else value


def is_order(value: Any) -> bool:
    """The numbers 0 to n - 1 in some order."""
    return is_ids(value) and value.dim() == 1 and value.sort()[0].equal(torch.arange(len(value)))


def all_differ(value: Any) -> bool:
    """Ids of which no two in a row are equal."""
    return is_ids(value) and value.dim() > 1 and bool((value.sort(-1)[0].diff(dim=-1) > 0).all())


def is_signs(value: Any) -> bool:
    """A tensor of floats that are all 1 or -1."""
    floats = isinstance(value, Tensor) and value.is_floating_point() and value.numel() > 0
    return floats and bool((value.abs() == 1).all())


def ids_in(value: Any) -> list[int]:
    """The ids in a tensor of ids, in a list of them, or in a list of such."""
    if isinstance(value, (list, tuple)):
        return [x for item in value for x in ([item] if type(item) is int else ids_in(item))]
    return value.flatten().tolist() if is_ids(value) else []


def is_ids(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype == torch.long


def without_gaps(mask: Tensor) -> Tensor:
    """Each row with its True first."""
    return mask.int().sort(dim=-1, descending=True).values.bool()


def longer_mask(mask: Tensor) -> Tensor:
    """One key more in rows that have their True first: all is visible in the first row."""
    more = torch.cat([mask[..., :1], mask], dim=-1)
    more[(0,) * (more.dim() - 1)] = True
    return more


def with_gaps(mask: Tensor) -> Tensor:
    """The last True of each row, if it has several, stands at the end: all between is False."""
    rows, new = mask.flatten(0, -2).tolist() if mask.dim() > 1 else [mask.tolist()], []
    for row in rows:
        seen = sum(row)
        new.append([k < seen - 1 for k in range(len(row) - 1)] + [True] if seen else row)
    return torch.tensor(new).view_as(mask)
