"""What arguments stand for, as far as it can be told: lengths, amounts."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from course_utils.checker.stated_sizes import tensors_in


def of_lengths(name: str, value: Any, probe: tuple) -> Iterator[tuple[str, Any]]:
    """Lengths of 1 only, and of all that is there."""
    whole = isinstance(value, Tensor) and value.dtype == torch.long and value.dim() == 1
    if not whole or "len" not in name:
        return
    sizes = [x.shape[1] for x in tensors_in(probe) if x.dim() > 1]
    sizes += [x for x in probe if type(x) is int]
    for length in sorted({1, *sizes[:1]}):
        yield f"is {length} throughout", torch.full_like(value, length)


def are_amounts(value: Any) -> bool:
    """Whether it is a list of floats above 0."""
    return (
        isinstance(value, list) and bool(value) and all(type(x) is float and x > 0 for x in value)
    )
