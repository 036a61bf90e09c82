"""The table of slips: each operator takes one expression and offers what may stand there instead.

An operator is a function `(node, function, program) -> (words, new node), ...`; the words finish
the sentence "comes out when ...". Operators are listed with a rank: of two slips that come to the
same, the one with the lower rank is the likelier.
"""

import ast
from collections.abc import Callable, Iterator

from course_utils.checker.mutants.program import Program
from course_utils.checker.mutants.tables import (
    ARITHMETIC,
    COMPARISONS,
    KEYWORDS,
    METHODS,
    SIZES,
    TOO_MUCH,
    TURNED,
)

Slips = Iterator[tuple[str, ast.expr]]
_LONGEST = 40  # characters of an expression that may take another one's place


def another_name(node: ast.expr, function: ast.AST, program: Program) -> Slips:
    """A variable or argument for another one of the same kind."""
    if not isinstance(node, ast.Name) or program.kind(node) in ("", "module"):
        return
    names = program.local_names(function)
    if node.id not in names and program.kind(node) == "function":
        return
    for name, kind in names.items():
        if name != node.id and kind in ("", program.kind(node)):
            yield "one name stands for another", ast.Name(name, ast.Load())


def another_attribute(node: ast.expr, function: ast.AST, program: Program) -> Slips:
    """A layer or number of the module for another one of the same kind."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return
    for _, other in program.expressions(function):
        own = (
            isinstance(other, ast.Attribute) and ast.unparse(other.value) == node.value.id == "self"
        )
        if own and other.attr != node.attr and program.kind(other) == program.kind(node):
            yield "one part of the module stands for another", other


def another_axis(node: ast.expr, function: ast.AST, program: Program) -> Slips:
    """A small whole number, which may name an axis, for another one."""
    value = _whole_number(node)
    for other in (-1, -2, -3, 0, 1, 2, 3):
        if value is not None and abs(value) <= 3 and other != value:
            yield "a number differs", _number(other)


def no_change(node: ast.expr, function: ast.AST, program: Program) -> Slips:
    """A call, an index, a sign or one side of an operation left out."""
    if isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        inner = [a for a in node.args if not isinstance(a, ast.Starred)]
        if isinstance(node.func, ast.Attribute) and program.kind(node.func.value) != "module":
            inner = [node.func.value, *inner]
        for x in inner:
            yield f"`{called}` is left out", x
    elif isinstance(node, ast.BinOp):
        for x in (node.left, node.right):
            yield "one side of an operation is left out", x
    elif isinstance(node, ast.UnaryOp) and _whole_number(node) is None:
        yield "a sign or a `~` is left out", node.operand
    elif isinstance(node, ast.Subscript):
        yield "what stands in brackets is left out", node.value
    elif isinstance(node, (ast.BoolOp, ast.IfExp)):
        parts = node.values if isinstance(node, ast.BoolOp) else (node.body, node.orelse)
        for x in parts:
            yield "one part of the condition is left out", x


def another_sign(node: ast.expr, function: ast.AST, program: Program) -> Slips:
    """Another operation, the two sides swapped, or the brackets set elsewhere."""
    if isinstance(node, ast.BinOp):
        for other in ARITHMETIC.get(type(node.op), ()):
            yield "an operation differs", ast.BinOp(node.left, other(), node.right)
        if not isinstance(node.op, (ast.Add, ast.Mult, ast.BitAnd, ast.BitOr)):
            yield "two sides are swapped", ast.BinOp(node.right, node.op, node.left)
        for new in _other_brackets(node):
            yield "the brackets stand elsewhere", new
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        for other in COMPARISONS:
            if type(node.ops[0]) is not other and type(node.ops[0]) in COMPARISONS:
                new = ast.Compare(node.left, [other()], node.comparators)
                yield "a comparison differs", new
    elif isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield "`and` and `or` are swapped", ast.BoolOp(other(), node.values)


def another_argument(node: ast.expr, function: ast.AST, program: Program) -> Slips:
    """An argument of a call or an item of a list left out, or two of them swapped."""
    if isinstance(node, (ast.List, ast.Tuple)):
        for items in _shorter_and_swapped(node.elts):
            yield "items are left out or swapped", type(node)(items, ast.Load())
    if not isinstance(node, ast.Call):
        return
    for arguments in _shorter_and_swapped(node.args):
        yield "arguments are left out or swapped", ast.Call(node.func, arguments, node.keywords)
    for i, keyword in enumerate(node.keywords):
        rest = node.keywords[:i] + node.keywords[i + 1 :]
        yield f"`{keyword.arg}=` is left out", ast.Call(node.func, node.args, rest)
        for value in KEYWORDS.get(keyword.arg, ()):
            other = ast.keyword(keyword.arg, ast.Constant(value))
            keywords = [*node.keywords[:i], other, *node.keywords[i + 1 :]]
            yield f"`{keyword.arg}=` differs", ast.Call(node.func, node.args, keywords)


def another_method(node: ast.expr, function: ast.AST, program: Program) -> Slips:
    """One function for a related one; two methods in the other order; gather for scatter."""
    if not isinstance(node, ast.Call):
        return
    is_name = isinstance(node.func, ast.Name)
    called = node.func.id if is_name else getattr(node.func, "attr", "")
    for group in METHODS:
        for other in group:
            if called in group and other != called:
                func = (
                    ast.Name(other, ast.Load())
                    if is_name
                    else ast.Attribute(node.func.value, other, ast.Load())
                )
                new = ast.Call(func, node.args, node.keywords)
                yield f"`{other}` is taken for `{called}`", new
    if called == "scatter" and len(node.args) == 3:
        axis, index, source = node.args
        func = ast.Attribute(source, "gather", ast.Load())
        yield "`gather` is taken for `scatter`", ast.Call(func, [axis, index], [])
    inner = getattr(node.func, "value", None)
    if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
        first = ast.Attribute(inner.func.value, node.func.attr, ast.Load())
        first = ast.Call(first, node.args, node.keywords)
        second = ast.Attribute(first, inner.func.attr, ast.Load())
        new = ast.Call(second, inner.args, inner.keywords)
        yield f"`{called}` comes before `{inner.func.attr}`", new


def another_slice(node: ast.expr, function: ast.AST, program: Program) -> Slips:
    """A slice that begins or ends one earlier or later, or has no such end."""
    if not isinstance(node, ast.Subscript):
        return
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for i, part in enumerate(parts):
        for new in _other_slices(part) if isinstance(part, ast.Slice) else ():
            items = [*parts[:i], new, *parts[i + 1 :]]
            index = ast.Tuple(items, ast.Load()) if isinstance(node.slice, ast.Tuple) else new
            yield "a slice begins or ends elsewhere", ast.Subscript(node.value, index, ast.Load())


def too_much(node: ast.expr, function: ast.AST, program: Program) -> Slips:
    """Something done that is not called for: a second softmax, a step too far, another size."""
    yield from _filled(TOO_MUCH, node, program)


def turned(node: ast.expr, function: ast.AST, program: Program) -> Slips:
    """A tensor with its axes swapped or turned round."""
    yield from _filled(TURNED, node, program)


def _filled(table: dict, node: ast.expr, program: Program) -> Slips:
    if isinstance(node, ast.Name) and node.id in program.names_used_once:
        return
    for words, template in table.get(program.kind(node), ()):
        yield words, fill(template, node)


def another_value(node: ast.expr, function: ast.AST, program: Program) -> Slips:
    """Any expression for any other one of the function that has its kind (and shape)."""
    kind = program.kind(node)
    if kind in ("", "module", "function", "NoneType"):
        return
    own = ast.unparse(node)
    for text, other in program.expressions(function):
        same = program.kind(other) == kind and program.shape(other) == program.shape(node)
        if same and text != own and len(text) <= _LONGEST:
            yield "one value stands for another", other


def another_size(node: ast.expr, function: ast.AST, program: Program) -> Slips:
    """A computed whole number for the size of some tensor."""
    if program.kind(node) != "int" or isinstance(node, ast.Constant):
        return
    for name, kind in program.local_names(function).items():
        for template in SIZES if kind.endswith("tensor") else ():
            yield "another size stands here", fill(template, ast.Name(name, ast.Load()))


OPERATORS: dict[int, tuple[Callable, ...]] = {
    0: (another_name, another_attribute, another_sign, another_method),
    1: (another_axis, no_change, another_argument, another_slice, another_size),
    2: (too_much,),
    3: (turned, another_value),
}


def fill(template: str, node: ast.expr) -> ast.expr:
    """The template with the expression in place of each underscore."""

    class Filled(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.expr:
            return node if name.id == "_" else name

    return Filled().visit(ast.parse(template, mode="eval").body)


def _whole_number(node: ast.expr) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _whole_number(node.operand)
        return None if inner is None else -inner
    whole = isinstance(node, ast.Constant) and type(node.value) is int
    return node.value if whole else None


def _number(value: int) -> ast.expr:
    number = ast.Constant(abs(value))
    return ast.UnaryOp(ast.USub(), number) if value < 0 else number


def _other_brackets(node: ast.BinOp) -> Iterator[ast.expr]:
    left, right = node.left, node.right
    if isinstance(left, ast.BinOp):
        yield ast.BinOp(left.left, left.op, ast.BinOp(left.right, node.op, right))
    if isinstance(right, ast.BinOp):
        yield ast.BinOp(ast.BinOp(left, node.op, right.left), right.op, right.right)


def _shorter_and_swapped(items: list[ast.expr]) -> Iterator[list[ast.expr]]:
    for i in range(len(items)):
        if len(items) > 1:
            yield items[:i] + items[i + 1 :]
    for i in range(len(items)):
        for j in range(i):
            swapped = list(items)
            swapped[i], swapped[j] = items[j], items[i]
            yield swapped


def _other_slices(part: ast.Slice) -> Iterator[ast.Slice]:
    def moved(end: ast.expr | None) -> list[ast.expr | None]:
        if end is None:
            return [ast.Constant(1), _number(-1)]
        value = _whole_number(end)
        if value is not None:
            return [None, _number(value + 1), _number(value - 1)]
        return [None, fill("_ + 1", end), fill("_ - 1", end)]

    for lower in moved(part.lower):
        yield ast.Slice(lower, part.upper, part.step)
    for upper in moved(part.upper):
        yield ast.Slice(part.lower, upper, part.step)
    if part.step is not None:
        yield ast.Slice(part.lower, part.upper, None)
