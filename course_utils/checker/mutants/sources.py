"""The right answers of an exercise as source code that stands on its own."""

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from course_utils.checker import source
from course_utils.checker.model import Exercise


def right_sources(exercise: Exercise) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The solution and the right variants: source, the name it defines, the names it uses."""
    yield source.solved(exercise), exercise.name, _surroundings(exercise.solution)
    for variant in exercise.right_variants:
        if not isinstance(variant, (FunctionType, type)) or getattr(variant, "__closure__", None):
            continue
        node = _definition(variant)
        if node is None:
            continue
        if not isinstance(node, ast.ClassDef):
            _use_names_of(exercise, node)
        if isinstance(node, ast.Lambda):
            node = ast.Assign([ast.Name(exercise.name, ast.Store())], node)
            yield (
                ast.unparse(ast.fix_missing_locations(node)),
                exercise.name,
                _surroundings(variant),
            )
        else:
            yield ast.unparse(node), node.name, _surroundings(variant)


def _surroundings(thing: Any) -> dict[str, Any]:
    return vars(sys.modules[thing.__module__])


def _definition(thing: Any) -> ast.AST | None:
    """The node that defines a function, class or lambda; None where that is not certain."""
    if getattr(thing, "__name__", "") != "<lambda>":
        try:
            (node,) = ast.parse(textwrap.dedent(inspect.getsource(thing))).body
        except (OSError, TypeError, ValueError, SyntaxError):
            return None
        return node if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else None
    code = thing.__code__
    tree = ast.parse(inspect.getsource(sys.modules[thing.__module__]))
    here = [n for n in ast.walk(tree) if isinstance(n, ast.Lambda) and n.lineno == _line(code)]
    return here[0] if len(here) == 1 else None


def _line(code: Any) -> int:
    return code.co_firstlineno


def _use_names_of(exercise: Exercise, node: ast.AST) -> None:
    """Call the arguments as the learner's function does, where no other name is in the way."""
    if exercise.kind != "function":
        return
    wanted = list(inspect.signature(exercise.solution).parameters)
    own = [a.arg for a in node.args.args]
    used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    inner = {
        a.arg
        for n in ast.walk(node)
        if isinstance(n, ast.arguments) and n is not node.args
        for a in n.args
    }
    new_names = set(wanted) - set(own)
    if len(own) != len(wanted) or new_names & (used | inner) or inner & set(own):
        return
    renamed = dict(zip(own, wanted))
    for n in ast.walk(node):
        if isinstance(n, ast.Name):
            n.id = renamed.get(n.id, n.id)
    for a in node.args.args:
        a.arg = renamed[a.arg]
