"""A right answer as a tree in which one place at a time can be changed.

The tree is watched once while it runs on the probes, so that every expression is known by the kind
of value it has; an operator can then offer, say, another boolean mask in the place of a mask.
Before a name is given a new value its old one is kept under another name (`earlier_x`), because
using the old value is a common slip.
"""

import ast
import copy
import functools
import math
import types
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_FUNCTIONS = (ast.FunctionDef, ast.Lambda)
_NEVER_SEEN = ("decorator_list", "returns", "annotation", "defaults", "kw_defaults", "bases")
EARLIER = "earlier_"


@dataclass(frozen=True)
class Place:
    """Where an expression or a list of statements hangs in the tree."""

    parent: ast.AST
    field: str
    index: int | None
    function: ast.AST
    above: tuple[ast.AST, ...]

    @property
    def node(self) -> Any:
        value = getattr(self.parent, self.field)
        return value if self.index is None else value[self.index]


class Program:
    """The source of one right answer, named `name`, and the names that it may use."""

    def __init__(self, source: str, name: str, names: dict[str, Any]):
        self.name = name
        self.names = {"torch": torch, "F": F, "nn": nn, "math": math} | names
        self.tree = ast.parse(source)
        _keep_earlier_values(self.tree)
        ast.fix_missing_locations(self.tree)
        self.places = list(_places(self.tree))
        self.kinds: dict[int, str] = {}
        self.shapes: dict[int, tuple] = {}

    def answer(self) -> Any:
        """What the tree defines as it stands now."""
        names = dict(self.names)
        exec(compile(self.tree, "<a right answer>", "exec"), names)
        return names[self.name]

    @contextmanager
    def changed(self, place: Place, new: Any) -> Iterator[None]:
        """The tree with another node, or list of statements, at one place."""
        old = place.node
        for node in new if isinstance(new, list) else [new]:
            ast.fix_missing_locations(node)
        _put(place, new)
        try:
            yield
        finally:
            _put(place, old)

    def watch(self, run: Callable[[Any], Any]) -> Any:
        """Let `run` play the answer, and note the kind of every expression meanwhile."""
        watched = copy.deepcopy(self.tree)
        nodes = {getattr(node, "number", None): node for node in ast.walk(watched)}
        for number, place in enumerate(self.places):
            if isinstance(place.node, ast.expr) and not isinstance(place.node, ast.Starred):
                nodes[number].watched = number
        names = self.names | {"_see": self._see}
        tree = ast.fix_missing_locations(_Watch().visit(watched))
        exec(compile(tree, "<a right answer>", "exec"), names)
        return run(names[self.name])

    def _see(self, number: int, value: Any) -> Any:
        if number not in self.kinds:
            self.kinds[number] = kind_of(value)
            self.shapes[number] = tuple(value.shape) if isinstance(value, Tensor) else ()
        return value

    def kind(self, node: ast.AST) -> str:
        """What kind of value an expression had: "float tensor", "int", ...; "" when never seen."""
        return self.kinds.get(getattr(node, "number", -1), "")

    @functools.cached_property
    def names_used_once(self) -> set[str]:
        """Variables that are set once and read once: what is done to one is done to its value."""
        names = [n for n in ast.walk(self.tree) if isinstance(n, ast.Name)]
        read = Counter(n.id for n in names if isinstance(n.ctx, ast.Load))
        stored = Counter(n.id for n in names if isinstance(n.ctx, ast.Store))
        return {name for name in read if read[name] == stored[name] == 1}

    def shape(self, node: ast.AST) -> tuple:
        """The shape of a tensor when it was first seen."""
        return self.shapes.get(getattr(node, "number", -1), ())

    @functools.cache  # noqa: B019 - there are a few programs, kept for as long as the process runs
    def expressions(self, function: ast.AST) -> list[tuple[str, ast.expr]]:
        """The expressions of one function that were seen, with their texts, each once."""
        found = {}
        for place in self.places:
            if place.function is function and self.kind(place.node):
                found.setdefault(ast.unparse(place.node), place.node)
        return list(found.items())

    @functools.cache  # noqa: B019
    def local_names(self, function: ast.AST) -> dict[str, str]:
        """The arguments and variables of a function with the kinds of their values."""
        bound = dict.fromkeys(bound_names(function), "")
        read = [p.node for p in self.places if p.function is function]
        for node in read:
            if isinstance(node, ast.Name) and node.id in bound:
                bound[node.id] = bound[node.id] or self.kind(node)
        for name in bound:  # what is kept for later has the kind of what it keeps
            if name.startswith(EARLIER):
                bound[name] = bound.get(original_name(name), "")
        bound.pop("self", None)
        return bound


def kind_of(value: Any) -> str:
    """One word or two for the kind of a value."""
    if isinstance(value, Tensor):
        if value.dtype == torch.bool:
            return "bool tensor"
        return "float tensor" if value.is_floating_point() else "int tensor"
    if isinstance(value, (types.ModuleType, type)):
        return "module"
    if isinstance(value, nn.Module) or callable(value):
        return "function"
    return type(value).__name__


def bound_names(function: ast.AST) -> list[str]:
    """The names that a function binds: its arguments, then its variables."""
    arguments = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    stored = [
        n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    ]
    return list(dict.fromkeys(arguments + stored))


def original_name(earlier: str) -> str:
    """The name whose old value is kept under this one."""
    return earlier.removeprefix(EARLIER).rstrip("_")


def _put(place: Place, new: Any) -> None:
    if place.index is None:
        setattr(place.parent, place.field, new)
    else:
        getattr(place.parent, place.field)[place.index] = new


def _places(tree: ast.Module) -> Iterator[Place]:
    """All expressions that are read and all lists of statements, inside the functions."""
    number = 0

    def walk(parent: ast.AST, function: ast.AST | None, above: tuple) -> Iterator[Place]:
        nonlocal number
        if isinstance(parent, _FUNCTIONS):
            function = parent
        for field, value in ast.iter_fields(parent):
            if field in _NEVER_SEEN or isinstance(parent, (ast.JoinedStr, ast.arguments)):
                continue
            if function is not None and field in ("body", "orelse") and isinstance(value, list):
                yield Place(parent, field, None, function, above)
                number += 1
            for index, child in enumerate(value if isinstance(value, list) else [value]):
                if not isinstance(child, ast.AST):
                    continue
                if _is_read(child) and function is not None and not _is_docstring(parent):
                    child.number = number
                    number += 1
                    at = index if isinstance(value, list) else None
                    yield Place(parent, field, at, function, (*above, parent))
                yield from walk(child, function, (*above, parent))

    yield from walk(tree, None, ())


def _is_read(node: ast.AST) -> bool:
    stored = isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))
    return isinstance(node, ast.expr) and not isinstance(node, ast.Slice) and not stored


def _is_docstring(parent: ast.AST) -> bool:
    return isinstance(parent, ast.Expr) and isinstance(parent.value, ast.Constant)


class _Watch(ast.NodeTransformer):
    """Wrap every watched expression in a call that notes its value."""

    def visit(self, node: ast.AST) -> ast.AST:
        self.generic_visit(node)
        number = getattr(node, "watched", None)
        if number is None or _holds_slice(node):
            return node
        name = ast.Name("_see", ast.Load())
        return ast.copy_location(ast.Call(name, [ast.Constant(number), node], []), node)


def _holds_slice(node: ast.AST) -> bool:
    return isinstance(node, ast.Tuple) and any(
        isinstance(item, (ast.Slice, ast.Starred)) for item in node.elts
    )


def _keep_earlier_values(tree: ast.Module) -> None:
    """Before each statement that rebinds names of its function, keep what they were."""
    for function in [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]:
        bound = {a.arg for a in function.args.args} - {"self"}
        _keep_in(function.body, bound, set())


def _keep_in(body: list[ast.stmt], bound: set[str], kept: set[str]) -> None:
    position = 0
    while position < len(body):
        statement = body[position]
        stores = _stored(statement)
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.For, ast.While)):
            for name in [n for n in dict.fromkeys(stores) if n in bound]:
                earlier = EARLIER + name
                while earlier in kept:
                    earlier += "_"
                kept.add(earlier)
                value = ast.Name(name, ast.Load())
                body.insert(position, ast.Assign([ast.Name(earlier, ast.Store())], value))
                position += 1
        if isinstance(statement, (ast.For, ast.While)):
            _keep_in(statement.body, bound, kept)
        bound |= set(stores)
        position += 1


def _stored(statement: ast.stmt) -> list[str]:
    """The names that a statement binds in its function; comprehensions keep theirs."""
    inner = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    private = {n for c in ast.walk(statement) if isinstance(c, inner) for n in ast.walk(c)}
    return [
        n.id
        for n in ast.walk(statement)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n not in private
    ]
