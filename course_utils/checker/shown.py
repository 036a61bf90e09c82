"""Outcomes and arguments as short text, in few digits."""

import math
from typing import Any

from torch import Tensor

from course_utils.checker.values import Opaque, Raised, article


def number(x: Any) -> str:
    """One number in few digits."""
    if isinstance(x, bool):
        return str(x)
    if isinstance(x, float):
        if not math.isfinite(x):
            return str(x)
        text = f"{x:.1f}" if abs(x - round(x, 1)) < 1e-6 and abs(x) < 1e5 else f"{x:.4g}"
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
        return f"{where} = {_nested(value[row].flatten()[:12])} of shape {tuple(value.shape)}"
    if isinstance(value, (list, tuple)):
        parts = [part(i, item) for i, item in enumerate(value)]
        if not any(map(_holds_tensors, value)):
            return "[" + ", ".join(parts) + "]"
        return ",\n".join(
            _indented("(", text + ")") if isinstance(item, (list, tuple)) else text
            for item, text in zip(value, parts, strict=True)
        )
    if isinstance(value, dict):
        return "\n".join(_indented(f"{key}: ", part(key, item)) for key, item in value.items())
    if isinstance(value, Opaque):
        return article(value)
    if isinstance(value, Raised):
        return f"{value.type_name}: {value.message}"
    if callable(value):
        return f"{getattr(value, '__name__', 'a function')}(...)"
    return number(value) if isinstance(value, (bool, int, float)) else repr(value)[:200]


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
