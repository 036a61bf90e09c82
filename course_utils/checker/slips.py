"""The likely slips: what may stand in the place of an expression.

An operator takes an expression with the names around it and offers `(words, new expression)`; the
words finish the sentence "in this line ...".
"""

import ast
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from course_utils.checker.mistaken import (
    ALIKE,
    FACTORS,
    KEYWORDS,
    MORE,
    NUMBERS,
    OVER_ALL,
    VERY_LOW,
)

_COMPARES = {"eq", "ne", "lt", "le", "gt", "ge", "isin", "equal", "not_equal"}
_SAME = {ast.Is: ast.Eq, ast.IsNot: ast.NotEq}
_SHORT = 30  # characters of code that words hold
OTHER_OPERATION = "another operation is due"
OTHER_NAME = "one name stands for another"
NO_SMALL = "the small number is too many"
NO_ZERO = "a small number is missing, in a divisor, a root or a logarithm"
LOG_SOFTMAX = "`log_softmax` is due, for a softmax can be 0 in float32"
A_NAME = "a name is due, not one number"

Slips = Iterator[tuple[str, ast.expr]]


def _exchanges(node: ast.expr, names: list[str], own: list[str]) -> Slips:
    """One name, number, sign or function for another of its kind."""
    if isinstance(node, ast.Name) and node.id in names:
        yield from ((OTHER_NAME, _name(n)) for n in names)
    if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self":
        for name in own:
            yield "one part of the module stands for another", _attribute(node.value, name)
    if (value := _whole(node)) is not None:
        others = NUMBERS if abs(value) <= 3 else (value - 1, value + 1)
        others += (-VERY_LOW,) if value <= -10 else ()
        yield from (("another number is due", _number(other)) for other in others)
    elif isinstance(node, ast.Constant) and type(node.value) is float:
        for factor in FACTORS:
            yield "another number is due", ast.Constant(node.value * factor)
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        yield "True and False are exchanged", ast.Constant(not node.value)
    if isinstance(node, ast.BinOp):  # exponents stay small: a power of whole numbers may never end
        for other in _alike(type(node.op)):
            if other is not ast.Pow or _is_exponent(node.right):
                yield OTHER_OPERATION, ast.BinOp(node.left, other(), node.right)
        if not isinstance(node.op, ast.Pow) or not isinstance(node.left, ast.BinOp):
            yield "two sides are exchanged", ast.BinOp(node.right, node.op, node.left)
        for new in _other_brackets(node):
            yield "the brackets stand elsewhere", new
        if isinstance(node.op, ast.Sub) and isinstance(node.right, ast.Constant):
            yield "another number is due", ast.BinOp(node.left, node.op, _number(VERY_LOW))
        if isinstance(node.op, (ast.Add, ast.Sub)) and is_small(node.right):
            yield NO_SMALL, node.left
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        if (same := _SAME.get(type(node.ops[0]))) and not _is_none(node.comparators[0]):
            equal = ast.Compare(node.left, [same()], node.comparators)
            sign = "==" if same is ast.Eq else "!="
            yield f"`{sign}` is due, for `is` asks whether it is the same object", equal
        for other in _alike(type(node.ops[0])):
            yield "another comparison is due", ast.Compare(node.left, [other()], node.comparators)
    if isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield "`and` and `or` are exchanged", ast.BoolOp(other(), node.values)
        for i, x in enumerate(node.values):
            if isinstance(x, ast.Name):
                asked = ast.Compare(x, [ast.IsNot()], [ast.Constant(None)])
                others = [*node.values[:i], asked, *node.values[i + 1 :]]
                yield f"`{x.id} is not None` is due, for 0 is False", ast.BoolOp(node.op, others)
    if isinstance(node, ast.Call):
        called = getattr(node.func, "id", None) or getattr(node.func, "attr", "")
        for other in _alike(called):
            if isinstance(node.func, ast.Name):
                func = _name(other)
            else:
                func = _attribute(node.func.value, other)
            yield "another function is due", ast.Call(func, node.args, node.keywords)
        if called == "log" and (softmax := _softmax_under(node)):
            yield LOG_SOFTMAX, softmax
        if _is_clamped(node):
            yield NO_SMALL, node.func.value


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _softmax_under(node: ast.Call) -> ast.Call | None:
    """log_softmax in place of the logarithm of a softmax, with a small number in it or without."""
    inner = node.args[0] if node.args else getattr(node.func, "value", None)
    if isinstance(inner, ast.BinOp) and is_small(inner.right):
        inner = inner.left
    if _is_clamped(inner):
        inner = inner.func.value
    func = getattr(inner, "func", None)
    if isinstance(func, ast.Attribute) and func.attr == "softmax":
        return ast.Call(_attribute(func.value, "log_softmax"), inner.args, inner.keywords)
    return None


def _is_clamped(node: ast.expr | None) -> bool:
    """Whether it is x.clamp(min=1e-9)."""
    func = getattr(node, "func", None)
    called = isinstance(func, ast.Attribute) and func.attr in ("clamp", "clip", "clamp_min")
    return called and all(map(is_small, [*node.args, *(k.value for k in node.keywords)]))


def _left_out(node: ast.expr, names: list[str], own: list[str]) -> Slips:
    """A step, an argument or an index that is too many; arguments in another order; slices."""
    if isinstance(node, ast.Call):
        inner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        for x in [*inner, *(a for a in node.args if not isinstance(a, ast.Starred))]:
            yield "a step is too many", x
        for words, items in _shorter_and_swapped(node.args):
            yield words, ast.Call(node.func, items, node.keywords)
        for i, keyword in enumerate(node.keywords):
            rest = [*node.keywords[:i], *node.keywords[i + 1 :]]
            yield f"`{keyword.arg}=` is too many", ast.Call(node.func, node.args, rest)
            for value in KEYWORDS.get(keyword.arg, ()):
                others = [*rest, ast.keyword(keyword.arg, ast.Constant(value))]
                yield f"another `{keyword.arg}=` is due", ast.Call(node.func, node.args, others)
        if not node.args and not node.keywords and inner and node.func.attr in OVER_ALL:
            for axes in OVER_ALL[node.func.attr]:
                places = [*map(_number, axes)]
                yield "an argument is missing", ast.Call(node.func, places, [])
                if node.func.attr != "flatten":
                    kept = [ast.keyword("keepdim", ast.Constant(True))]
                    yield "two arguments are missing", ast.Call(node.func, places, kept)
        if not any(k.arg == "keepdim" for k in node.keywords):
            more = [*node.keywords, ast.keyword("keepdim", ast.Constant(True))]
            yield "an argument is missing", ast.Call(node.func, node.args, more)
    elif isinstance(node, ast.BinOp):
        sides = (x for x in (node.left, node.right) if not isinstance(x, ast.Constant))
        yield from (("a step is too many", x) for x in sides)
    elif isinstance(node, ast.UnaryOp) and _whole(node) is None:
        yield "a sign is too many", node.operand
    elif isinstance(node, ast.Attribute) and node.attr in ("T", "mT", "values", "indices"):
        inner = node.value.func if isinstance(node.value, ast.Call) else None
        if node.attr in ("T", "mT"):
            yield "a step is too many", node.value
        elif isinstance(inner, ast.Attribute):  # x.sort().values
            yield "a step is too many", inner.value
            means = ("_.mean(-1)", "_.mean(0)") if inner.attr == "median" else ()
            yield from (("another function is due", fill(t, inner.value)) for t in means)
    elif _whole(node) is not None:
        yield from ((A_NAME, _name(n)) for n in names)
    elif isinstance(node, ast.Subscript):
        yield "the brackets are too many", node.value
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for i, part in enumerate(parts):
            for new in _other_slices(part) if isinstance(part, ast.Slice) else ():
                items = [*parts[:i], new, *parts[i + 1 :]]
                index = ast.Tuple(items, ast.Load()) if len(parts) > 1 else new
                yield "a slice begins or ends elsewhere", ast.Subscript(node.value, index, node.ctx)
    elif isinstance(node, ast.BoolOp):
        yield from (("a part of the condition is too many", x) for x in node.values)
    elif isinstance(node, ast.IfExp):
        yield "the branch after `else` is too many", node.body
        yield "the branch before `if` is too many", node.orelse
    elif isinstance(node, (ast.List, ast.Tuple)):
        for words, items in _shorter_and_swapped(node.elts):
            yield words, type(node)(items, ast.Load())


def _one_step_more(node: ast.expr, names: list[str], own: list[str]) -> Slips:
    for kind, templates in MORE.items() if not isinstance(node, ast.Constant) else ():
        for template in templates:
            yield f"a step is missing ({kind})", fill(template, node)
    called = getattr(getattr(node, "func", None), "attr", "") in ("sqrt", "rsqrt", "log")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        yield NO_ZERO, ast.BinOp(node.left, node.op, fill("_ + 1e-6", node.right))
    elif called and node.args:  # torch.sqrt(x)
        yield NO_ZERO, ast.Call(node.func, [fill("_ + 1e-6", node.args[0])], node.keywords)
    elif called:
        more = _attribute(fill("_ + 1e-6", node.func.value), node.func.attr)
        yield NO_ZERO, ast.Call(more, [], [])


def _always(node: ast.expr, names: list[str], own: list[str]) -> Slips:
    """A comparison that holds everywhere, or nowhere."""
    called = getattr(getattr(node, "func", None), "attr", "")
    if isinstance(node, ast.Compare) or called in _COMPARES:
        yield "this condition is too many", ast.BinOp(node, ast.BitOr(), ast.Constant(True))
        yield "this condition is too many", ast.BinOp(node, ast.BitAnd(), ast.Constant(False))


EXPRESSIONS: tuple[Callable[..., Slips], ...] = (_exchanges, _left_out, _one_step_more, _always)


def fill(template: str, node: ast.expr) -> ast.expr:
    """The template with the expression in place of each underscore."""

    class Filled(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.expr:
            return node if name.id == "_" else name

    return Filled().visit(ast.parse(template, mode="eval").body)


def _alike(thing: Any) -> Iterator[Any]:
    """What it is easily taken for, in a fixed order."""
    for group in ALIKE:
        if thing in group:
            yield from sorted(group - {thing}, key=str)


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _attribute(value: ast.expr, name: str) -> ast.Attribute:
    return ast.Attribute(value, name, ast.Load())


def _whole(node: ast.expr | None) -> int | None:
    """The whole number that an expression is, if it is one."""
    with suppress(ValueError, TypeError, SyntaxError):
        value = ast.literal_eval(node)
        return value if type(value) is int else None
    return None


def _is_exponent(node: ast.expr) -> bool:
    value = getattr(node, "value", None)
    return isinstance(node, ast.Constant) and type(value) in (int, float) and abs(value) <= 10


def is_small(node: ast.expr) -> bool:
    """Whether it is a number that only keeps a divisor from 0."""
    value = getattr(node, "value", None)
    return isinstance(node, ast.Constant) and type(value) is float and 0 < value <= 1e-3


def _number(value: int) -> ast.expr:
    return ast.parse(str(value), mode="eval").body


def _other_brackets(node: ast.BinOp) -> Iterator[ast.expr]:
    left, right = node.left, node.right
    if isinstance(left, ast.BinOp):
        yield ast.BinOp(left.left, left.op, ast.BinOp(left.right, node.op, right))
        if isinstance(power := left.right, ast.BinOp):  # a / d ** 1/2
            inner = ast.BinOp(power.right, node.op, right)
            yield ast.BinOp(left.left, left.op, ast.BinOp(power.left, power.op, inner))
    if isinstance(right, ast.BinOp):
        yield ast.BinOp(ast.BinOp(left, node.op, right.left), right.op, right.right)


def _shorter_and_swapped(items: list[ast.expr]) -> Iterator[tuple[str, list[ast.expr]]]:
    for i, item in enumerate(items):
        if len(items) > 1:
            yield f"`{_in_short(item)}` is too many", items[:i] + items[i + 1 :]
        for j, other in enumerate(items[:i]):
            words = f"`{_in_short(other)}` and `{_in_short(item)}` have to change places"
            yield words, [*items[:j], item, *items[j + 1 : i], other, *items[i + 1 :]]


def _in_short(node: ast.expr) -> str:
    text = ast.unparse(node).replace("\n", " ")
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 4]} ..."


def _other_slices(part: ast.Slice) -> Iterator[ast.Slice]:
    def moved(end: ast.expr | None) -> list[ast.expr | None]:
        if end is None:
            return [_number(1), _number(-1)]
        if (value := _whole(end)) is not None:
            return [None, _number(value + 1), _number(value - 1)]
        return [None, fill("_ + 1", end), fill("_ - 1", end)]

    yield from (ast.Slice(lower, part.upper, part.step) for lower in moved(part.lower))
    yield from (ast.Slice(part.lower, upper, part.step) for upper in moved(part.upper))
    if part.lower is not None and "-" in ast.unparse(part.lower):  # below 0: from the end
        yield ast.Slice(fill("max(0, _)", part.lower), part.upper, part.step)
    if part.upper is not None:
        yield from (ast.Slice(lower, None, part.step) for lower in moved(part.lower))
    turned = isinstance(part.lower, ast.UnaryOp) and part.upper is None  # x[-n:]
    yield ast.Slice(part.upper, part.lower.operand if turned else part.lower, part.step)
    if part.step is not None:
        yield ast.Slice(part.lower, part.upper, None)
