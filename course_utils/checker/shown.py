"""Outcomes and arguments as short text, in few digits; what is cut ends in dots."""

import functools
import itertools
import math
import operator
from typing import Any

from torch import Tensor

from course_utils.checker.probes import NotAsAsked
from course_utils.checker.values import Opaque, Raised, article, gap
from course_utils.checker.wording import in_words

_ROW = 12  # numbers of a row of a large tensor
_LIST = 24  # entries of a list
_ENDS = 4  # entries of a longer list that are shown at its start, at its end, and around a place
_TEXT = 200  # characters of anything else


def number(x: Any) -> str:
    """One number in few digits."""
    if isinstance(x, bool):
        return str(x)
    if isinstance(x, float):
        if not math.isfinite(x):
            return str(x)
        digits = 6 if 1000 <= abs(x) < 1e5 else 4  # of a large number what stands behind the point
        short = abs(x - round(x, 1)) < 1e-6 and abs(x) < 1e5
        text = f"{x:.1f}" if short else f"{x:.{digits}g}"
        return text.removeprefix("-") if float(text) == 0 else text
    return str(x)


def show(value: Any, index: tuple = (), most: int = 48) -> str:
    """A value as short text; of a large tensor only the row in which `index` lies."""

    def part(key: Any, item: Any) -> str:
        return show(item, index[1:] if index[:1] == (key,) else (), most)

    if isinstance(value, Tensor):
        if value.numel() <= most:
            return _nested(value)
        row = (index if len(index) == value.dim() else (0,) * value.dim())[:-1]
        where = "".join(f"[{i}]" for i in row)
        shown, rest = value[row].flatten().tolist()[:_ROW], value[row].numel() > _ROW
        numbers = ", ".join(map(number, shown)) + ", ..." * rest
        return f"{where} = [{numbers}] of shape {tuple(value.shape)}"
    if isinstance(value, (list, tuple)):
        parts = [part(i, item) for i, item in enumerate(value)]
        if not any(map(_holds_tensors, value)):
            return "[" + ", ".join(_few(parts, index)) + "]"
        return ",\n".join(
            _indented("(", text + ")") if isinstance(item, (list, tuple)) else text
            for item, text in zip(value, parts, strict=True)
        )
    if isinstance(value, dict):
        return "\n".join(_indented(f"{key}: ", part(key, item)) for key, item in value.items())
    if isinstance(value, Opaque):
        return article(value)
    if isinstance(value, Raised):
        if is_of_another_form(value):
            return "something of another form"
        return f"{value.type_name}: {value.message}"
    if callable(value):
        name = getattr(value, "__name__", "")
        return f"{name if name.isidentifier() else 'a function'}(...)"
    text = number(value) if isinstance(value, (bool, int, float)) else repr(value)
    return text if len(text) <= _TEXT else text[:_TEXT] + " ..."


def _few(parts: list[str], index: tuple) -> list[str]:
    """Of many entries the first and the last, and those around the place in `index`."""
    count = len(parts)
    if count <= _LIST:
        return parts
    at = index[0] if index and isinstance(index[0], int) else 0
    near = {*range(_ENDS), *range(count - _ENDS, count), *range(at - _ENDS, at + _ENDS)}
    kept = sorted(near & {*range(count)})
    shown = [parts[0]]
    for before, k in itertools.pairwise(kept):
        shown += [f"... ({k - before - 1} more)"] * (k > before + 1) + [parts[k]]
    return shown


def is_of_another_form(value: Any) -> bool:
    """Whether what an answer returned could not be measured, without an error of its own."""
    return isinstance(value, Raised) and value.type_name == NotAsAsked.__name__


def _holds_tensors(value: Any) -> bool:
    several = isinstance(value, (list, tuple))
    return any(map(_holds_tensors, value)) if several else isinstance(value, Tensor)


def _indented(head: str, text: str) -> str:
    """Text behind a head, its further lines set below its first one."""
    return head + text.replace("\n", "\n" + " " * len(head))


def _nested(x: Tensor) -> str:
    """A tensor as nested rows; rows of a matrix stand below each other."""
    if x.dim() == 0:
        return number(x.item())
    if x.dim() == 1:
        return "[" + ", ".join(number(item) for item in x.tolist()) + "]"
    return "[" + ",\n ".join(_nested(row).replace("\n", "\n ") for row in x) + "]"


def truths(due: Any, given: Any) -> list[str]:
    """Of an outcome whose first wrong part is true or false, all such parts that are wrong."""
    if not isinstance(due, dict) or not isinstance(given, dict) or due.keys() != given.keys():
        return []
    parts = [(key, a, given[key]) for key, a in due.items() if gap(a, given[key]).size > 1]
    if not parts or not isinstance(parts[0][1], bool):
        return []
    return [f"{key}: it is {b}, not {a}" for key, a, b in parts if type(a) is type(b) is bool]


def first_difference(due: Any, given: Any, index: tuple) -> str:
    """Where two results differ first, and how."""
    part, below = "at", index
    if isinstance(due, list) and isinstance(due[index[0]], Tensor) and index[1:]:
        part, below = f"in {in_words(index[0])}, at", index[1:]
    where = ", ".join(str(step) for step in below)
    pair = [functools.reduce(operator.getitem, index, x) for x in (due, given)]
    a, b = map(show, pair)
    if a == b:  # in the few digits that are shown
        a, b = (repr(x.item() if isinstance(x, Tensor) else x) for x in pair)
    return f"the first difference is {part} [{where}]: expected {a}, given {b}"
