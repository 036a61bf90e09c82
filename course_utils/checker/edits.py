"""Somebody's code, and what becomes of it by one small change at a time.

Two things rest on it: `repair` looks for the one change that makes a learner's answer right, and a
long test changes all right answers to see that no wrong one passes. Edits have a rank: those of
the lower rank are the likelier slips.
"""

import ast
import linecache
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

ALIKE = [  # what is easily taken for each other
    {ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.MatMult},
    {ast.Mult, ast.Pow},
    {ast.BitAnd, ast.BitOr, ast.BitXor},
    {ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq},
    {"sum", "mean", "amax", "max", "min", "logsumexp", "prod", "median", "norm", "cumsum", "len"},
    {"argmax", "argmin"},
    {"minimum", "maximum"},
    {"tril", "triu"},
    {"ones", "zeros", "eye"},
    {"ones_like", "zeros_like"},
    {"ones_", "zeros_", "normal_"},
    {"softmax", "log_softmax", "sigmoid", "logsigmoid"},
    {"relu", "elu", "gelu", "tanh", "sigmoid"},
    {"sin", "cos"},
    {"sqrt", "square", "abs", "exp", "log", "log10", "log2"},
    {"cat", "stack", "hstack", "vstack"},
    {"repeat", "repeat_interleave"},
    {"scatter", "gather"},
    {"any", "all"},
    {"std", "var"},
    {"view", "reshape", "transpose", "permute"},
    {"append", "extend"},
]
KEYWORDS = {"reduction": ("mean", "sum", "none"), "dim": (0, 1, 2, -1, -2, None)}
NUMBERS = (-1, -2, -3, 0, 1, 2, 3)
MORE = (  # a step that may be missing; _ is the expression that is there
    "~_", "-_", "not _", "_ + 1", "_ - 1", "2 * _", "_ / 2", "_ ** 2", "_ ** 0.5", "1 / _",
    "1 - _", "_[1:]", "_[:-1]", "_[:1]", "_[-1:]", "_[::-1]", "_.T", "_.mT", "_.transpose(0, 1)",
    "_.transpose(1, 2)", "_.flip(-1)", "_.unsqueeze(0)", "_.unsqueeze(1)", "_.unsqueeze(-1)",
    "_.squeeze(0)", "_.squeeze(-1)", "_.softmax(-1)", "_.softmax(0)", "_.exp()", "_.log()",
    "_.abs()", "_.relu()", "_.tanh()", "_.tril()", "_.triu()", "_.sum(-1, keepdim=True)",
    "_ / _.sum(-1, keepdim=True)", "_ - _.mean(-1, keepdim=True)", "_ / _.shape[-1] ** 0.5",
    "_ / _.shape[-1]", "_ / len(_)", "_.cumsum(-1)", "_.clone()", "_.detach()", "_.float()",
    "int(_)", "float(_)", "len(_)", "list(_)", "sorted(_)", "0 * _", "_ + 1e-6",
)  # fmt: skip
_CODES = (ast.FunctionDef, ast.ClassDef, ast.Lambda)
_NOT_READ = ("decorator_list", "returns", "annotation", "bases", "defaults", "kw_defaults")


@dataclass(frozen=True, eq=False)
class Edit:
    """One change: `field` of `parent` (or its item `index`) becomes `new`."""

    words: str
    node: ast.AST  # the expression or statement that it concerns
    parent: ast.AST
    field: str
    index: int | None
    new: Any

    def put(self, value: Any) -> Any:
        """Set the place to a value; returns what was there."""
        old = getattr(self.parent, self.field)
        if self.index is None:
            setattr(self.parent, self.field, value)
            return old
        old[self.index], was = value, old[self.index]
        return was


class Code:
    """The source of one function, lambda or class, and the names around it."""

    def __init__(self, node: ast.AST, names: dict[str, Any]):
        self.name = getattr(node, "name", "_")
        if isinstance(node, ast.Lambda):
            node = ast.copy_location(ast.Assign([ast.Name("_", ast.Store())], node), node)
        else:
            node.decorator_list = []
        self.tree, self.names = ast.fix_missing_locations(ast.Module([node], [])), names

    def answer(self, edit: Edit | None = None) -> Any:
        """What the code defines, with one edit in it; what an impossible edit raises."""
        old = edit.put(edit.new) if edit else None
        try:
            names = dict(self.names)
            exec(compile(ast.fix_missing_locations(self.tree), "<edited>", "exec"), names)
            return names[self.name]
        finally:
            if edit:
                edit.put(old)

    def edits(self, rank: int) -> Iterator[Edit]:
        """All the edits of one rank, 0 to 2."""
        for function in [n for n in ast.walk(self.tree) if isinstance(n, _CODES)]:
            if not isinstance(function, ast.ClassDef):
                yield from self._of_function(function, rank)

    def _of_function(self, function: ast.AST, rank: int) -> Iterator[Edit]:
        names, own = _local_names(function), _attributes(function)
        for parent, field, value in _fields(function):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                for words, statement, new in _statements(value) if rank == 1 else ():
                    yield Edit(words, statement, parent, field, None, new or [ast.Pass()])
            for i, node in enumerate(value if isinstance(value, list) else [value]):
                if _is_read(node):
                    seen = {ast.dump(node)}
                    for words, new in EXPRESSIONS[rank](node, names, own):
                        if (text := ast.dump(new)) not in seen:
                            seen.add(text)
                            at = i if isinstance(value, list) else None
                            yield Edit(words, node, parent, field, at, new)


def code_of(answer: Any) -> Code | None:
    """The code of a function or class; None where it cannot be read or stands on its own."""
    own = vars(answer).values() if isinstance(answer, type) else [answer]
    functions = [f for f in own if isinstance(f, FunctionType)]
    if not functions or (functions[0] is answer and answer.__closure__):
        return None
    code: CodeType = functions[0].__code__
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    except SyntaxError:  # a cell with a magic line
        return None
    wanted = ast.ClassDef if isinstance(answer, type) else (ast.FunctionDef, ast.Lambda)
    found = [
        n
        for n in ast.walk(tree)
        if isinstance(n, wanted)
        and min([n.lineno, *(d.lineno for d in getattr(n, "decorator_list", ()))])
        <= code.co_firstlineno
        <= n.end_lineno
        and getattr(n, "name", "<lambda>") == answer.__name__
    ]
    # of two lambdas in one line nobody can tell which is meant
    return Code(found[0], functions[0].__globals__) if len(found) == 1 else None


def _fields(function: ast.AST) -> Iterator[tuple[ast.AST, str, Any]]:
    """All places in a function, without the functions inside it."""
    todo = [function]
    while todo:
        parent = todo.pop(0)
        if isinstance(parent, (ast.JoinedStr, ast.arguments)) or _is_docstring(parent):
            continue
        for field, value in ast.iter_fields(parent):
            if field not in _NOT_READ:
                yield parent, field, value
                below = value if isinstance(value, list) else [value]
                todo += [n for n in below if isinstance(n, ast.AST) and not isinstance(n, _CODES)]


def _is_read(node: Any) -> bool:
    stored = isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))
    return (
        isinstance(node, ast.expr)
        and not isinstance(node, (ast.Slice, ast.Starred))
        and not (stored or isinstance(node, ast.Constant) and isinstance(node.value, str))
    )


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _local_names(function: ast.AST) -> list[str]:
    """The arguments and variables of a function."""
    stored = (
        n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    )
    return [
        n for n in dict.fromkeys([*(a.arg for a in function.args.args), *stored]) if n != "self"
    ]


def _attributes(function: ast.AST) -> list[str]:
    """The parts of the module that a method uses: self.W_q, ..."""
    return sorted(
        {n.attr for n in ast.walk(function)
         if isinstance(n, ast.Attribute) and getattr(n.value, "id", "") == "self"}
    )  # fmt: skip


Slips = Iterator[tuple[str, ast.expr]]


def _exchanges(node: ast.expr, names: list[str], own: list[str]) -> Slips:
    """One name, number, sign or function for another of its kind."""
    if isinstance(node, ast.Name) and node.id in names:
        yield from (("one name stands for another", _name(n)) for n in names)
    if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self":
        for name in own:
            yield "one part of the module stands for another", _attribute(node.value, name)
    if (value := _whole(node)) is not None:
        others = NUMBERS if abs(value) <= 3 else (value - 1, value + 1)
        yield from (("a number is another one", _number(other)) for other in others)
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        yield "True and False are exchanged", ast.Constant(not node.value)
    if isinstance(node, ast.BinOp):
        for other in _alike(type(node.op)):
            yield "an operation is another one", ast.BinOp(node.left, other(), node.right)
        yield "two sides are exchanged", ast.BinOp(node.right, node.op, node.left)
        for new in _other_brackets(node):
            yield "the brackets stand elsewhere", new
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for other in _alike(type(node.ops[0])):
            yield "a comparison is another one", ast.Compare(node.left, [other()], node.comparators)
    if isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield "`and` and `or` are exchanged", ast.BoolOp(other(), node.values)
    if isinstance(node, ast.Call):
        called = getattr(node.func, "id", None) or getattr(node.func, "attr", "")
        for other in _alike(called):
            if isinstance(node.func, ast.Name):
                func = _name(other)
            else:
                func = _attribute(node.func.value, other)
            yield "a function is another one", ast.Call(func, node.args, node.keywords)


def _left_out(node: ast.expr, names: list[str], own: list[str]) -> Slips:
    """A step, an argument or an index that is too many; arguments in another order; slices."""
    if isinstance(node, ast.Call):
        inner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        for x in [*inner, *(a for a in node.args if not isinstance(a, ast.Starred))]:
            yield "a step is too many", x
        for items in _shorter_and_swapped(node.args):
            yield "the arguments are others", ast.Call(node.func, items, node.keywords)
        for i, keyword in enumerate(node.keywords):
            rest = [*node.keywords[:i], *node.keywords[i + 1 :]]
            yield f"`{keyword.arg}=` is too many", ast.Call(node.func, node.args, rest)
            for value in KEYWORDS.get(keyword.arg, ()):
                others = [*rest, ast.keyword(keyword.arg, ast.Constant(value))]
                yield f"`{keyword.arg}=` is another one", ast.Call(node.func, node.args, others)
        if not any(k.arg == "keepdim" for k in node.keywords):
            more = [*node.keywords, ast.keyword("keepdim", ast.Constant(True))]
            yield "an argument is missing", ast.Call(node.func, node.args, more)
    elif isinstance(node, ast.BinOp):
        yield from (("a step is too many", x) for x in (node.left, node.right))
    elif isinstance(node, ast.UnaryOp) and _whole(node) is None:
        yield "a sign is too many", node.operand
    elif isinstance(node, ast.Subscript):
        yield "the brackets are too many", node.value
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for i, part in enumerate(parts):
            for new in _other_slices(part) if isinstance(part, ast.Slice) else ():
                items = [*parts[:i], new, *parts[i + 1 :]]
                index = ast.Tuple(items, ast.Load()) if len(parts) > 1 else new
                yield "a slice begins or ends elsewhere", ast.Subscript(node.value, index, node.ctx)
    elif isinstance(node, (ast.BoolOp, ast.IfExp)):
        parts = node.values if isinstance(node, ast.BoolOp) else (node.body, node.orelse)
        yield from (("a part of the condition is too many", x) for x in parts)
    elif isinstance(node, (ast.List, ast.Tuple)):
        for items in _shorter_and_swapped(node.elts):
            yield "the entries are others", type(node)(items, ast.Load())


def _one_step_more(node: ast.expr, names: list[str], own: list[str]) -> Slips:
    for template in () if isinstance(node, ast.Constant) else MORE:
        yield "a step is missing", fill(template, node)


EXPRESSIONS: tuple[Callable[..., Slips], ...] = (_exchanges, _left_out, _one_step_more)


def _statements(body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt, list[ast.stmt]]]:
    """A statement too many, too early, too deep, or under another condition."""
    for i, s in enumerate(body):
        before, after = body[:i], body[i + 1 :]
        if not isinstance(s, ast.Return) and not _is_docstring(s):
            yield "this line is too many", s, before + after
        if after and not isinstance(after[0], ast.Return):
            yield "this line and the next are exchanged", s, [*before, after[0], s, *after[1:]]
        if isinstance(s, ast.AugAssign):
            new = ast.Assign([s.target], s.value)
            yield "this line should replace, not add", s, [*before, new, *after]
        if isinstance(s, ast.If):
            turned = ast.If(ast.UnaryOp(ast.Not(), s.test), s.body, s.orelse)
            yield "this condition is turned round", s, [*before, turned, *after]
            yield "this condition is too many", s, before + s.body + after
        if isinstance(s, (ast.For, ast.While)):
            loop = [getattr(s, name) for name in s._fields]
            at = s._fields.index("body")
            if len(s.body) > 1:
                loop[at] = s.body[:-1]
                new = [*before, type(s)(*loop), s.body[-1], *after]
                yield "the line belongs behind the loop", s.body[-1], new
            if after and not isinstance(after[0], ast.Return):
                loop[at] = [*s.body, after[0]]
                new = [*before, type(s)(*loop), *after[1:]]
                yield "the line belongs into the loop", after[0], new


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


def _number(value: int) -> ast.expr:
    return ast.parse(str(value), mode="eval").body


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
        for j in range(i):
            yield [*items[:j], items[i], *items[j + 1 : i], items[j], *items[i + 1 :]]


def _other_slices(part: ast.Slice) -> Iterator[ast.Slice]:
    def moved(end: ast.expr | None) -> list[ast.expr | None]:
        if end is None:
            return [_number(1), _number(-1)]
        value = _whole(end)
        if value is not None:
            return [None, _number(value + 1), _number(value - 1)]
        return [None, fill("_ + 1", end), fill("_ - 1", end)]

    yield from (ast.Slice(lower, part.upper, part.step) for lower in moved(part.lower))
    yield from (ast.Slice(part.lower, upper, part.step) for upper in moved(part.upper))
    if part.step is not None:
        yield ast.Slice(part.lower, part.upper, None)
