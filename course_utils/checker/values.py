"""Compare what an answer gave with what was expected, and write both in few digits."""

import math
import re
import sys
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from course_utils.checker.wording import entries, in_words

RTOL, ATOL = 1e-4, 1e-5
_ALL_WHOLE = 2**23  # from here on each float32 is a whole number, whatever it measures
TYPED = 1e-3  # relative, for single numbers; rounded to three digits, one typed by hand is right
_KINDS = {"bool": "true/false values", "int": "whole numbers", "float": "floating-point numbers"}


@dataclass(frozen=True)
class Opaque:
    """Stands for a returned object; `values` are the numbers of an array of numpy."""

    type_name: str
    values: Any = field(default=None, compare=False)


class Typed(float):
    """A number that was typed: its digits count, however small it is."""


TOO_LARGE = Opaque("int too large for a float")


@dataclass(frozen=True)
class Raised:
    """An exception as an outcome: some known mistakes are known by the error they raise."""

    type_name: str
    message: str


@dataclass(frozen=True)
class Gap:
    """How far a value is from the expected one, in tolerances.

    `fact` says what is certain; `index` leads to the first entry that differs, part by part;
    `of_kind` is true where the fact is that it is no tensor or of another dtype, `of_form` where it
    is the shape, or the number of entries.
    """

    size: float
    fact: str = ""
    index: tuple = ()
    of_kind: bool = False
    of_form: bool = False


def freeze(value: Any) -> Any:
    """A copy of an outcome that later code cannot change; tensors lose their gradient.

    Sparse tensors become dense ones, for what counts is the numbers.
    """
    if isinstance(value, Tensor):
        nested = value.is_nested
        return Opaque("nested tensor") if nested else _dense(value.detach()).cpu().clone()
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        return TOO_LARGE
    if value is None or type(value) in (bool, int, float, str, Typed, Raised):
        return value
    if isinstance(value, (list, tuple)):
        return [freeze(item) for item in value]
    if isinstance(value, dict):
        return {str(key): freeze(item) for key, item in value.items()}
    if getattr(value, "shape", None) == () and hasattr(value, "item"):  # a numpy number
        return value.item()
    if getattr(value, "shape", None) and hasattr(value, "tolist"):
        return Opaque(type(value).__name__, freeze(value.tolist()))
    if isinstance(value, Real):
        try:
            return float(value)
        except OverflowError:
            return TOO_LARGE
    return Opaque(type(value).__name__)


def _dense(x: Tensor) -> Tensor:
    """A tensor whose numbers stand in memory one beside the other."""
    if x.is_quantized:
        return x.dequantize()
    return x if x.layout == torch.strided else x.to_dense()


def fresh(value: Any) -> Any:
    """A deep copy of an argument, so that one call cannot spoil the next; callables stay."""
    if isinstance(value, Tensor):
        return value.clone()
    if isinstance(value, (list, tuple)):
        return type(value)(fresh(item) for item in value)
    if isinstance(value, dict):
        return {key: fresh(item) for key, item in value.items()}
    return value


def numbers_in(value: Any) -> int:
    """How many numbers an argument holds."""
    if isinstance(value, Tensor):
        return value.numel()
    return sum(map(numbers_in, value)) if isinstance(value, (list, tuple)) else 1


def unchanged(before: Any, after: Any) -> bool:
    """Whether an argument still holds, to the last bit, what it held."""
    if isinstance(before, Tensor):
        same_form = before.shape == after.shape and before.dtype == after.dtype
        return same_form and bool(torch.equal(before.nan_to_num(), after.nan_to_num()))
    if isinstance(before, (list, tuple)):
        return len(before) == len(after) and all(map(unchanged, before, after))
    if isinstance(before, dict):
        return before.keys() == after.keys() and all(unchanged(before[k], after[k]) for k in before)
    return callable(before) or before == after


def gap(expected: Any, given: Any) -> Gap:
    """Compare two frozen outcomes; 0 to 1 is equal, infinity is another form."""
    if isinstance(expected, Raised) or isinstance(given, Raised):
        return Gap(0.0 if _same_error(expected, given) else math.inf, "it raised an error")
    typed = isinstance(expected, (int, float)) and not isinstance(expected, bool)
    if given is None and expected is not None and not typed:
        return Gap(math.inf, "it returned None: is a `return` missing?")
    if isinstance(expected, Tensor):
        return _tensor_gap(expected, given)
    if isinstance(expected, (bool, str)):
        return _exact_gap(expected, given)
    if isinstance(expected, (int, float)):
        return _number_gap(expected, given)
    if isinstance(expected, dict):
        return _dict_gap(expected, given)
    if isinstance(expected, list):
        return _list_gap(expected, given)
    return _exact_gap(expected, given)


def _same_error(a: Any, b: Any) -> bool:
    """Whether two errors are of one kind and read alike but for the sizes in them."""
    if not (isinstance(a, Raised) and isinstance(b, Raised)):
        return False
    texts = [re.sub(r"\d+", "#", x.message) for x in (a, b)]
    return a.type_name == b.type_name and texts[0] == texts[1]


def _tensor_gap(expected: Tensor, given: Any) -> Gap:
    given = _vector(expected, given)
    if not isinstance(given, Tensor):
        if expected.dim() == 0 and isinstance(given, (int, float)):
            return _number_gap(expected.item(), given)
        what = "a list or tuple" if isinstance(given, list) else article(given)
        return Gap(math.inf, f"it returned {what}, not a tensor", of_kind=True)
    if given.shape != expected.shape:
        return Gap(math.inf, _shape_fact(tuple(given.shape), tuple(expected.shape)), of_form=True)
    if _kind(given) != _kind(expected):
        return Gap(
            math.inf,
            f"the dtype is {_dtype(given)}: it holds {_KINDS.get(_kind(given), 'other numbers')}, "
            f"not {_KINDS[_kind(expected)]}",
            of_kind=True,
        )
    if given.dtype == expected.dtype and torch.equal(expected, given):
        return Gap(0.0)
    finest = torch.complex128 if expected.is_complex() else torch.float64
    a, b = expected.to(finest), given.to(finest)
    distance = (a - b).abs() / (ATOL + RTOL * a.abs())
    same = (a == b) | (a.isnan() & b.isnan())
    distance = distance.masked_fill(same, 0.0).nan_to_num(nan=math.inf)
    worst = distance.max().item() if distance.numel() else 0.0
    first = tuple((distance > 1).nonzero()[0].tolist()) if worst > 1 else ()
    fact = _nan_fact(expected, given) if worst > 1 else ""
    coarse = given.dtype in (torch.float16, torch.bfloat16) and given.dtype != expected.dtype
    if coarse and not fact:
        fact = f"the dtype is {_dtype(given)}, which keeps only 3 digits"
        return Gap(worst, fact, first, of_kind=True)
    return Gap(worst, fact, first)


def _vector(expected: Tensor, given: Any) -> Any:
    """Numbers in a list, a tuple or an array of one axis as the tensor that was due."""
    values = given.values if isinstance(given, Opaque) else given
    if expected.dim() != 1 or not isinstance(values, list):
        return given
    plain = [x.item() if isinstance(x, Tensor) and x.dim() == 0 else x for x in values]
    kinds = {type(x) for x in plain}
    if not (kinds <= {bool} or kinds <= {int, float}):
        return given
    if not plain:
        return expected.new_empty(0)
    made = torch.tensor(plain, dtype=torch.float64 if float in kinds else None)
    return made.double() if kinds == {int} and expected.is_floating_point() else made


def _shape_fact(given: tuple, due: tuple) -> str:
    fact = f"the shape is {given}, not {due}"
    if len(given) != len(due) and [n for n in given if n != 1] == [n for n in due if n != 1]:
        much = "too many" if len(given) > len(due) else "too few"
        return f"{fact}: axes of size 1 are {much}"
    differ = [axis for axis, (a, b) in enumerate(zip(given, due)) if a != b]
    if len(given) == len(due) and sorted(given) == sorted(due) and len(differ) == 2:
        return f"{fact}: the sizes of axes {differ[0]} and {differ[1]} are exchanged"
    return fact


def _nan_fact(expected: Tensor, given: Tensor) -> str:
    bad = int((~given.isfinite()).sum()) - int((~expected.isfinite()).sum())
    return f"{bad} of {given.numel()} entries are NaN or infinite" if bad > 0 else ""


def _number_gap(expected: float, given: Any) -> Gap:
    if isinstance(given, Tensor) and given.numel() == 1:
        given = given.item()
    if given is None:
        return Gap(math.inf, "None was given, not a number")
    if isinstance(given, list):
        return Gap(math.inf, f"{len(given)} values were given, not one number")
    if isinstance(given, Opaque):
        one = "" if given is TOO_LARGE else ", not one number"
        return Gap(math.inf, f"it is {article(given)}{one}")
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        return Gap(math.inf, f"it is {article(given)}, not one number")
    if not (math.isfinite(given) and math.isfinite(expected)):
        return Gap(0.0 if str(float(given)) == str(float(expected)) else math.inf, f"it is {given}")
    counted = isinstance(expected, int) or abs(expected) < _ALL_WHOLE
    if counted and float(expected).is_integer() and float(given).is_integer():
        return Gap(0.0 if expected == given else math.inf)  # counts are exact
    if isinstance(expected, Typed) and expected and given == float(f"{expected:.2e}"):
        return Gap(0.0)
    size = abs(expected)
    least = ATOL * min(1.0, 100 * size) if isinstance(expected, Typed) and size else ATOL
    return Gap(abs(expected - given) / (least + TYPED * size))


def _list_gap(expected: list, given: Any) -> Gap:
    if not (expected and isinstance(expected[0], Tensor)):
        if isinstance(given, Tensor):
            given = given.tolist()
        elif isinstance(given, Opaque) and given.values is not None:
            given = given.values
    if not isinstance(given, list):
        return Gap(math.inf, f"it is {article(given)}, not {len(expected)} values")
    if len(given) != len(expected):
        return Gap(math.inf, f"it has {entries(len(given))}, not {len(expected)}", of_form=True)
    gaps = [gap(a, b) for a, b in zip(expected, given, strict=True)]
    return _first_that_differs(dict(enumerate(gaps)), any(isinstance(x, Tensor) for x in expected))


def _dict_gap(expected: dict, given: Any) -> Gap:
    if not isinstance(given, dict):
        return Gap(math.inf, f"it is {article(given)}, not a dictionary")
    if lost := [key for key in expected if key not in given]:
        return Gap(math.inf, f"it has no part called {', '.join(lost)}")
    if given.keys() != expected.keys():
        return Gap(math.inf, f"it has other parts than {', '.join(expected)}")
    return _first_that_differs({key: gap(expected[key], given[key]) for key in expected})


def _first_that_differs(gaps: dict, several: bool = False) -> Gap:
    """The first part that differs, with the largest distance of all; `several` results in order."""
    size = max((g.size for g in gaps.values()), default=0.0)
    for key, found in gaps.items():
        if found.size > 1:
            part = in_words(key) if several else f"entry {key}" if isinstance(key, int) else key
            fact = f"{part}: {found.fact}" if found.fact else ""
            return Gap(size, fact, (key, *found.index), found.of_kind, found.of_form)
    return Gap(size)


def _exact_gap(expected: Any, given: Any) -> Gap:
    if isinstance(expected, str) and isinstance(given, str):
        same = expected.strip().lower() == given.strip().lower()
        return Gap(0.0 if same else math.inf)
    same = type(expected) is type(given) and expected == given
    if isinstance(expected, bool) and isinstance(given, bool):
        return Gap(0.0 if same else math.inf, "" if same else f"it is {given}, not {expected}")
    if isinstance(given, list) and not same:
        return Gap(math.inf, f"{len(given)} values were given, not one")
    return Gap(0.0 if same else math.inf, "" if same else f"it is {article(given)}")


def _kind(x: Tensor) -> str:
    numbers = "float" if x.is_floating_point() else "complex" if x.is_complex() else "int"
    return "bool" if x.dtype == torch.bool else numbers


def _dtype(x: Tensor) -> str:
    return str(x.dtype).removeprefix("torch.")


def article(value: Any) -> str:
    """'a list', 'an int': what kind of thing a value is."""
    name = value.type_name if isinstance(value, Opaque) else type(value).__name__
    return f"{'an' if name[0].lower() in 'aeio' else 'a'} {name}"
