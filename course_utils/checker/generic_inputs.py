"""An answer under examination on generic inputs, and how results of any form are taken apart.

Generic inputs are the probes with fresh numbers of order one, without zeros and without saturated
scores, in several draws.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from course_utils.checker.exercise import Exercise
from course_utils.checker.resized import is_signs
from course_utils.checker.values import Raised, gap

_DRAWS = 2
_MOST_PROBES = 4
Inputs = Sequence[tuple]


@dataclass
class Trial:
    """An answer with what is due and what it gives on generic inputs; both can be played again.

    What `pairs` tell must hold on `shown` too: an input that is shown, what is due and given there.
    """

    exercise: Exercise
    inputs: list[tuple]
    due: list[Any]
    given: list[Any]
    play_right: Callable[[Inputs], list[Any]]
    play_answer: Callable[[Inputs], list[Any]]
    shown: tuple[tuple[tuple, Any, Any], ...] = ()

    @classmethod
    def of(
        cls, exercise: Exercise, play_right: Callable, play_answer: Callable, shown: tuple = ()
    ) -> "Trial | None":
        """On the generic inputs that both take; None where there is none, or all come out right."""
        inputs = list(generic(exercise))
        due, given = play_right(inputs), play_answer(inputs)
        good = [i for i, a in enumerate(due) if not isinstance(a, Raised)]
        if len(given) < len(inputs) or any(_odd(given[i]) for i in good):
            return None
        kept = ([x[i] for i in good] for x in (inputs, due, given))
        trial = cls(exercise, *kept, play_right, play_answer, shown)
        return trial if any(gap(a, b).size > 1 for a, b in trial.pairs) else None

    @property
    def played(self) -> list[tuple[tuple, Any, Any]]:
        """Each input, what is due and what is given there; the one that is shown is the last."""
        return [*zip(self.inputs, self.due, self.given), *self.shown]

    @property
    def pairs(self) -> list[tuple[Any, Any]]:
        """What is due and what is given, for each input and for the one that is shown."""
        return [(due, given) for _, due, given in self.played]

    def both(self, inputs: Inputs) -> list[tuple[Any, Any]] | None:
        """What is due and given on other inputs; None where one of them raises."""
        pairs = list(zip(self.play_right(inputs), self.play_answer(inputs)))
        whole = len(pairs) == len(inputs)
        return pairs if whole and not any(isinstance(x, Raised) for p in pairs for x in p) else None


def generic(exercise: Exercise) -> Iterator[tuple]:
    """The probes with other numbers of order one wherever an argument may be any number."""
    generator = torch.Generator().manual_seed(0)

    def drawn(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(drawn(item) for item in value)
        free = is_floats(value) and value.dim() and (value.numel() == 1 or (value < 0).any())
        if free:  # all others may have to be positive, or to sum to 1
            new = torch.randn(value.shape, generator=generator).to(value.dtype)
            return new.sign() if is_signs(value) else new
        return value

    for probe in exercise.probes[:_MOST_PROBES]:
        for _ in range(_DRAWS):
            yield tuple(drawn(arg) for arg in probe)


def _odd(value: Any) -> bool:
    return value is None or isinstance(value, Raised)


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


def part_of(result: Any, key: Any) -> Any:
    """The part that `parts` gave this key, or None."""
    if key is None:
        return result
    if isinstance(result, dict):
        return result.get(key)
    if not key.startswith("entry "):
        return None
    k = int(key.removeprefix("entry "))
    return result[k] if isinstance(result, list) and k < len(result) else None
