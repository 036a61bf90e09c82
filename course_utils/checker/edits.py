"""Somebody's code, and what becomes of it by one small change at a time.

Two things rest on it: `repair` looks for the one change that makes a learner's answer right, and a
long test changes all right answers to see that no wrong one passes. Edits have a rank: those of
the lower rank are the likelier slips.
"""

import ast
import linecache
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from course_utils.checker.slips import A_NAME, EXPRESSIONS
from course_utils.checker.slips_of_lines import is_docstring, statements

_CODES = (ast.FunctionDef, ast.ClassDef, ast.Lambda)
_NOT_READ = ("decorator_list", "returns", "annotation", "bases", "defaults", "kw_defaults")
_ROUND = "the_round"  # a name that nobody gives
_FIRST_PLACE = "the first place is found of what may stand several times"
_PUTS = {"append", "extend", "insert", "add", "setdefault", "update", "__setitem__"}


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

    @property
    def places(self) -> set[tuple]:
        """Where it is."""
        return {(self.parent, self.field, self.index)}


@dataclass(frozen=True, eq=False)
class Joint:
    """Edits of several places that are one change."""

    parts: tuple[Edit, ...]
    words: str
    node: ast.AST  # the expression that it concerns first of all

    @property
    def new(self) -> list:
        """What each place becomes."""
        return [e.new for e in self.parts]

    def put(self, values: list) -> list:
        """Set the places to values; returns what was there."""
        return [e.put(value) for e, value in zip(self.parts, values, strict=True)]

    @property
    def places(self) -> set[tuple]:
        """Where they are."""
        return set().union(*(e.places for e in self.parts))


class Together(Joint):
    """The same edit in several places at once."""

    def __init__(self, parts: tuple[Edit, ...]):
        more = len(parts) - 1
        words = parts[0].words
        if words == A_NAME:  # a number that was copied: which name it is a reader must see
            words = f"`{ast.unparse(parts[0].new)}` is due, not one number"
        words = f"{words}, here and at {more} more place{'s' * (more > 1)}"
        super().__init__(parts, words, parts[0].node)


class Code:
    """The source of one function, lambda or class, and the names around it."""

    def __init__(self, node: ast.AST, names: dict[str, Any]):
        self.name = getattr(node, "name", "_")
        if isinstance(node, ast.Lambda):
            node = ast.copy_location(ast.Assign([ast.Name("_", ast.Store())], node), node)
        else:
            node.decorator_list = []
        self.tree, self.names = ast.fix_missing_locations(ast.Module([node], [])), names

    def answer(self, edit: Edit | Joint | None = None) -> Any:
        """What the code defines, with one edit in it; what an impossible edit raises."""
        with self.changed(edit) if edit else nullcontext():
            names = dict(self.names)
            exec(compile(ast.fix_missing_locations(self.tree), "<edited>", "exec"), names)
            return names[self.name]

    @contextmanager
    def changed(self, edit: Edit | Joint) -> Iterator[None]:
        """The code with an edit in it, for a while."""
        old = edit.put(edit.new)
        try:
            yield
        finally:
            edit.put(old)

    def edits(self, rank: int) -> Iterator[Edit | Joint]:
        """All the edits of one rank, 0 to 2; of 3, those that keep a condition from telling."""
        if rank == 0:
            yield from _counted(self.tree)
        for function in [n for n in ast.walk(self.tree) if isinstance(n, _CODES)]:
            if not isinstance(function, ast.ClassDef):
                yield from self._of_function(function, rank)

    def together(self, ranks: tuple[int, ...] = (0, 1)) -> Iterator[Together]:
        """The edits of these ranks that can be made in several places, each in all of them.

        A slip that was copied: `//` for `/` twice, the wrong axis in both of two sums.
        """
        alike: dict[tuple, list[Edit]] = {}
        for edit in (e for rank in ranks for e in self.edits(rank)):
            if isinstance(edit.node, ast.expr) and isinstance(edit.new, ast.expr):
                alike.setdefault((edit.words, *_what_changes(edit)), []).append(edit)
        for some in alike.values():
            first = {id(e.node): e for e in reversed(some)}  # one edit of each place
            places = [e for e in some if e is first[id(e.node)]]
            apart = [e for e in places if not any(_takes_out(x, e) for x in some)]
            if len(apart) > 1:
                yield Together(tuple(apart))

    def _of_function(self, function: ast.AST, rank: int) -> Iterator[Edit]:
        names, own = _local_names(function), _attributes(function)
        grown, put = _grown(function)
        kept = [n for n in names if n not in grown]
        for parent, field, value in _fields(function):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                for words, statement, new in statements(value) if rank == 1 else ():
                    yield Edit(words, statement, parent, field, None, new or [ast.Pass()])
            if field == "ifs" and value and rank == 1:  # of a comprehension
                yield Edit("this condition is too many", value[0], parent, field, None, [])
            for i, node in enumerate(value if isinstance(value, list) else [value]):
                if _is_read(node):
                    seen = {ast.dump(node)}
                    fitting = kept if id(node) in put else names
                    for words, new in EXPRESSIONS[rank](node, fitting, own):
                        if (text := ast.dump(new)) not in seen:
                            seen.add(text)
                            at = i if isinstance(value, list) else None
                            yield Edit(words, node, parent, field, at, new)


def _takes_out(outer: Edit, edit: Edit) -> bool:
    """Whether the place of an edit lies inside of another one, and is gone with that."""
    inside = edit.node is not outer.node and any(n is edit.node for n in ast.walk(outer.node))
    return inside and all(n is not edit.parent for n in ast.walk(outer.new))


def _what_changes(edit: Edit) -> tuple:
    """What edits of different places have in common that are the same slip."""
    node, new = edit.node, edit.new
    if isinstance(node, ast.BinOp) and isinstance(new, ast.BinOp) and new.left is node.left:
        return type(node.op), type(new.op)
    if isinstance(node, ast.Compare) and isinstance(new, ast.Compare):
        return *map(type, node.ops), *map(type, new.ops)
    if isinstance(node, ast.Call):
        called = getattr(node.func, "attr", "") or ast.dump(node.func)
        if isinstance(new, ast.Call) and new.args is node.args:
            words = ast.unparse(ast.Call(ast.Name("_"), [], new.keywords))
            return called, getattr(new.func, "attr", getattr(new.func, "id", "")), words
        if isinstance(new, ast.Call) and new.func is node.func and new.keywords is node.keywords:
            return called, *(str([ast.dump(x) for x in call.args]) for call in (node, new))
        kept = [getattr(node.func, "value", None), *node.args]
        if any(new is x for x in kept):
            return called, [new is x for x in kept].index(True)
    return ast.dump(node), ast.dump(new)


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
        if isinstance(parent, (ast.JoinedStr, ast.arguments)) or is_docstring(parent):
            continue
        for field, value in ast.iter_fields(parent):
            changed = field == "value" and isinstance(getattr(parent, "ctx", None), ast.Store)
            if field not in _NOT_READ and not changed:  # x in x[0] = 1, w in w.grad = None
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


def _local_names(function: ast.AST) -> list[str]:
    """The arguments and variables of a function."""
    stored = (
        n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    )
    return [
        n for n in dict.fromkeys([*(a.arg for a in function.args.args), *stored]) if n != "self"
    ]


def _grown(function: ast.AST) -> tuple[set[str], set[int]]:
    """The containers that something is put into, and the expressions inside of what is put.

    None of the former may stand in one of the latter: a list that holds itself, made into a
    tensor, ends the process.
    """
    grown: set[str] = set()
    put: set[int] = set()
    for n in ast.walk(function):
        if isinstance(n, ast.Call) and getattr(n.func, "attr", "") in _PUTS:
            into, inside = n.func.value, [*n.args, *(k.value for k in n.keywords)]
        elif isinstance(n, ast.AugAssign):
            into, inside = n.target, [n.value]
        elif isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Subscript):
            into, inside = n.targets[0], [n.value]
        else:
            continue
        grown |= {x.id for x in ast.walk(into) if isinstance(x, ast.Name)}
        put |= {id(x) for part in inside for x in ast.walk(part)}
    return grown, put


def _attributes(function: ast.AST) -> list[str]:
    """The parts of the module that a method uses: self.W_q, ..."""
    return sorted(
        {n.attr for n in ast.walk(function)
         if isinstance(n, ast.Attribute) and getattr(n.value, "id", "") == "self"}
    )  # fmt: skip


def _counted(tree: ast.AST) -> Iterator[Joint]:
    """The number of the round in place of `.index` of what a loop runs over."""
    loops = [n for n in ast.walk(tree) if isinstance(n, (ast.For, ast.comprehension))]
    for loop in loops:
        name = getattr(loop.target, "id", None)
        places = [
            (parent, field, k, node)
            for parent in (ast.walk(tree) if name else ())
            for field, value in ast.iter_fields(parent)
            for k, node in enumerate(value if isinstance(value, list) else [value])
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "index"
            if [getattr(arg, "id", None) for arg in node.args] == [name]
        ]
        for step in (0, 1, -1) if places else ():
            at = ast.Name(_ROUND, ast.Load())
            count = ast.Call(ast.Name("enumerate", ast.Load()), [loop.iter], [])
            both = ast.Tuple([ast.Name(_ROUND, ast.Store()), loop.target], ast.Store())
            parts = [
                Edit(_FIRST_PLACE, loop.iter, loop, "iter", None, count),
                Edit(_FIRST_PLACE, loop.target, loop, "target", None, both),
            ]
            for parent, field, k, node in places:
                index = k if isinstance(getattr(parent, field), list) else None
                new = ast.BinOp(at, ast.Add(), ast.parse(str(step), mode="eval").body)
                parts.append(Edit(_FIRST_PLACE, node, parent, field, index, new))
            yield Joint(tuple(parts), _FIRST_PLACE, places[0][-1])
