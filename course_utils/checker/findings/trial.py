"""An answer under examination, and how results of any form are taken apart."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from course_utils.checker.model import Exercise
from course_utils.checker.values import Raised


@dataclass
class Trial:
    """An answer, what it gave on every probe and what was expected, and both to be played again."""

    exercise: Exercise
    expected: list[Any]
    given: list[Any]
    first: int
    right: Callable
    answer: Callable

    @property
    def probes(self) -> tuple[tuple, ...]:
        """The inputs of `expected` and `given`."""
        return self.exercise.probes

    def both(self, inputs: Sequence[tuple]) -> list[tuple[Any, Any]] | None:
        """What is right and what is given on other inputs; None where one of them raises."""
        pairs = list(zip(map(self.right, inputs), self.answer(inputs)))
        whole = len(pairs) == len(inputs)
        return pairs if whole and not any(isinstance(x, Raised) for p in pairs for x in p) else None


def is_floats(value: Any) -> bool:
    """A tensor of floats."""
    return isinstance(value, Tensor) and value.is_floating_point()


def comparable(a: Any, b: Any) -> bool:
    """Two tensors of floats of one shape."""
    return is_floats(a) and is_floats(b) and a.shape == b.shape and a.dim() > 0


def numbers(value: Any) -> Tensor | None:
    """The numbers of a result in one row; None where it is no tensor or list of numbers."""
    if isinstance(value, dict):  # parts that are no tensors say nothing of size
        value = value.get("output")
    if isinstance(value, Tensor) and value.dtype != torch.bool and not value.is_complex():
        return value.double().flatten() if value.numel() else None
    if isinstance(value, list) and value and all(type(x) in (int, float) for x in value):
        return torch.tensor(value, dtype=torch.float64)
    return torch.tensor([float(value)]).double() if type(value) in (int, float) else None


def parts(right: Any, given: Any) -> Iterator[tuple[Any, Any, Any]]:
    """The parts of two results, with their keys; a result of one part has the key None."""
    if isinstance(right, dict) and isinstance(given, dict):
        yield from ((key, right[key], given.get(key)) for key in right)
    elif isinstance(right, list) and isinstance(given, list) and len(right) == len(given):
        yield from ((f"entry {k}", *pair) for k, pair in enumerate(zip(right, given)))
    else:
        yield None, right, given


def part(result: Any, key: Any) -> Any:
    """The part that `parts` gave this key, or None."""
    if key is None:
        return result
    if isinstance(result, dict):
        return result.get(key)
    k = int(key.removeprefix("entry "))
    return result[k] if isinstance(result, list) and k < len(result) else None
