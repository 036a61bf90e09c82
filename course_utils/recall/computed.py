"""Answers that are computed: formulas, shapes, numbers. Each names the slip in a wrong one.

Every kind of answer, here and in `chosen`, has `wanted` (how to type it), `right` (as it is shown),
`judge(given)`, and for the tests `accepted` and `refused` (examples) and `proved()` (whether code
comes to the same).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from course_utils.recall.formulas import Formula, Impossible
from course_utils.recall.spelling import Unreadable

_DRAWS = 3  # random inputs on which two formulas must agree
_BETWEEN = re.compile(r"(?<=[\w.)])(\s*[;&]\s*|,?\s+and\s+|\s+)(?=[\w.])")  # two numbers
_CLOSE = {"rtol": 1e-6, "atol": 1e-9}


@dataclass(frozen=True)
class Judged:
    """What an answer is worth. `right` is None when it could not be read and is not rated.

    An answer that has some of what is asked for, and not all, is `partly` right: not right yet.
    """

    right: bool | None
    message: str = ""
    partly: bool = False


class Inputs:
    """Random values for the variables of a formula.

    Args:
        sizes: names of whole numbers, such as "n d"; no two get the same value.
        tied: name -> formula in the sizes, such as d_model = "h * d_k".
        tensors: name -> its sizes, such as Q = "Tq d_k".
    """

    def __init__(self, sizes: str = "", tied=None, tensors=None):
        self.sizes, self.tied, self.tensors = sizes.split(), tied or {}, tensors or {}
        self.names = [*self.tensors, *self.sizes, *self.tied]

    @property
    def shown(self) -> str:
        """The names that the learner uses; those that begin with _ only make others."""
        return ", ".join(name for name in self.names if not name.startswith("_"))

    def draw(self, seed: int) -> dict[str, Any]:
        """Values by name: int for sizes, float64 tensors."""
        generator = torch.Generator().manual_seed(seed)
        numbers = 2 + torch.randperm(7 + len(self.sizes), generator=generator)
        values: dict[str, Any] = dict(zip(self.sizes, numbers.tolist()))
        for name, text in self.tied.items():
            values[name] = int(Formula(text, values).value(values))
        for name, sizes in self.tensors.items():
            shape = [values[size] for size in sizes.split()]
            values[name] = torch.randn(shape, generator=generator, dtype=torch.float64)
        return values


class Expression:
    """A formula, equal to the right one on random inputs.

    Args:
        right: the formula as it is shown.
        inputs: its variables.
        proof: computes the same from the values by name, with the library and not from `right`.
        slips: formula -> what is wrong with it.
        same: other ways to write it, for the tests.
        functions: more functions that may be used, by name in lower case.
        up_to_factor: constant factors make no difference, as in O( ).
    """

    def __init__(
        self,
        right: str,
        inputs: Inputs,
        proof: Callable[..., Any],
        slips: dict[str, str] | None = None,
        same: Sequence[str] = (),
        functions: dict[str, Callable] | None = None,
        up_to_factor: bool = False,
    ):
        self.right, self.inputs, self.proof = right, inputs, proof
        self.slips, self.accepted = slips or {}, (right, *same)
        self.functions, self.up_to_factor = functions, up_to_factor
        self._product = "@" if inputs.tensors else "*"

    @property
    def refused(self) -> tuple[str, ...]:
        """Known wrong answers."""
        return tuple(self.slips)

    @property
    def wanted(self) -> str:
        """How the answer is typed."""
        return f"a formula in {self.inputs.shown}, as text"

    def judge(self, given: Any) -> Judged:
        """Compare what was typed with the right formula and with the known slips."""
        try:
            values = self._values(self._text(given))
        except Unreadable as error:
            return Judged(None, f"{error}.")
        except Impossible as error:
            return Judged(False, f"{str(error)[:1].upper()}{str(error)[1:]}.")
        if self._agree(values, self._right_values):
            return Judged(True)
        for text, message in self.slips.items():
            if self._agree(values, self._values(text)):
                return Judged(False, message)
        return Judged(False, self._difference(values))

    def proved(self) -> bool:
        """Whether the right formula gives what the library computes."""
        draws = (self.inputs.draw(seed) for seed in range(_DRAWS))
        found = [_row(self.proof(**values)) for values in draws]
        return self._agree(found, self._right_values)

    def _text(self, given: Any) -> str:
        return _typed(given)

    @cached_property
    def _right_values(self) -> list[Tensor]:
        return self._values(self.right)

    def _values(self, text: str) -> list[Tensor]:
        formula = Formula(text, self.inputs.names, self.functions, self._product)
        return [formula.value(self.inputs.draw(seed)) for seed in range(_DRAWS)]

    def _agree(self, ours: list[Tensor], theirs: list[Tensor]) -> bool:
        if any(a.shape != b.shape for a, b in zip(ours, theirs)):
            return False
        if self.up_to_factor:
            ours = [a / ours[0] for a in ours[1:]]
            theirs = [b / theirs[0] for b in theirs[1:]]
        return all(torch.allclose(a, b, **_CLOSE) for a, b in zip(ours, theirs))

    def _difference(self, values: list[Tensor]) -> str:
        shape, wanted = tuple(values[0].shape), tuple(self._right_values[0].shape)
        if shape != wanted:
            return f"On random inputs its result has shape {shape}, not {wanted}."
        return "On random inputs it gives other numbers."


class Shape(Expression):
    """A shape in the letters of the question, or in any that come to the same."""

    @property
    def wanted(self) -> str:
        """How the answer is typed."""
        return f'a shape, such as "(B, ...)", in {self.inputs.shown}'

    def _text(self, given: Any) -> str:
        text = _typed(given).strip()
        return text if text.startswith(("(", "[")) else f"({text},)"

    def _difference(self, values: list[Tensor]) -> str:
        axes, wanted = values[0].numel(), self._right_values[0].numel()
        if axes != wanted:
            return f"That has {axes} axes, not {wanted}."
        wrong = [i for i, (a, b) in enumerate(zip(values[0], self._right_values[0])) if a != b]
        return f"Axis {wrong[0]} (counted from 0) has another size."


class Number:
    """One number, or several in a row, which code computes.

    Args:
        proof: computes it.
        slips: wrong number -> what was done wrong.
        within: largest relative error; 0 for counts.
        shown: how the right number is written, for one that is measured.
        count: how many numbers it is.
        same: other numbers that mean the same, such as an axis counted from the end.
    """

    def __init__(
        self,
        proof: Callable[[], Any],
        slips: dict | None = None,
        within: float = 0.0,
        shown: str = "",
        count: int = 1,
        same: Sequence[Any] = (),
    ):
        self.proof, self.slips, self._within, self._shown = proof, slips or {}, within, shown
        self._count, self._same = count, same

    @property
    def wanted(self) -> str:
        """How the answer is typed."""
        if self._count > 1:
            return f"{self._count} numbers in brackets, such as ({'1, ' * (self._count - 1)}1)"
        return "a number; a calculation such as 3 * 4**2 is one too"

    @cached_property
    def _value(self) -> Any:
        with torch.random.fork_rng():  # a proof may build a model; the learner's numbers stay
            return self.proof()

    @property
    def right(self) -> str:
        """The number as text."""
        value = self._value
        large = isinstance(value, int) and value >= 10_000
        return self._shown or (f"{value:_}" if large else str(value))

    @property
    def accepted(self) -> tuple:
        """Ways to type it."""
        return self._value, self.right, *self._same

    @property
    def refused(self) -> tuple:
        """Known wrong answers."""
        return tuple(self.slips)

    def proved(self) -> bool:
        """Whether the number that is shown is the number that code computes."""
        return bool(self.judge(self.right).right)

    def judge(self, given: Any) -> Judged:
        """Compare with the right number and with the known slips."""
        try:
            value = Formula(self._text(given), []).value({})
        except (Unreadable, Impossible) as error:
            return Judged(None, f"{error}.")
        if any(self._near(value, right) for right in (self._value, *self._same)):
            return Judged(True)
        for slip, message in self.slips.items():
            if self._near(value, slip):
                return Judged(False, message)
        if value.numel() != self._count:
            return Judged(False, f"{value.numel()} numbers are given, {self._count} asked for.")
        return Judged(False, "It is another number.")

    def _text(self, given: Any) -> str:
        """What was typed; where several numbers are asked for, spaces and "and" part them too."""
        text = _typed(given)
        return text if self._count == 1 else _BETWEEN.sub(", ", text)

    def _near(self, value: Tensor, wanted: Any) -> bool:
        wanted = _row(wanted)
        if value.shape != wanted.shape:
            return False
        return torch.allclose(value, wanted, rtol=max(self._within, 1e-9), atol=1e-9)


def _typed(given: Any) -> str:
    """Numbers, tuples and tensors as the text that would be typed."""
    if isinstance(given, Tensor):
        given = given.tolist()
    if isinstance(given, (tuple, list)):
        return f"({', '.join(map(str, given))},)"
    return str(given)


def _row(value: Any) -> Tensor:
    return torch.as_tensor(value, dtype=torch.float64)
