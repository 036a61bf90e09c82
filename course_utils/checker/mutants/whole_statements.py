"""Slips that concern whole statements: one left out, two swapped, an update that replaces.

Each operator takes a list of statements and offers `(words, statement concerned, new list)`.
"""

import ast
from collections.abc import Iterator

from course_utils.checker.mutants.program import EARLIER

Changes = Iterator[tuple[str, ast.stmt, list[ast.stmt]]]


def left_out(body: list[ast.stmt]) -> Changes:
    """One statement is missing."""
    for i, statement in enumerate(body):
        if not isinstance(statement, ast.Return) and not _keeps_earlier(statement):
            rest = body[:i] + body[i + 1 :]
            yield "this line is left out", statement, rest or [ast.Pass()]


def swapped(body: list[ast.stmt]) -> Changes:
    """A statement comes before the one that should precede it."""
    own = [i for i, s in enumerate(body) if not _keeps_earlier(s)]
    for i, j in zip(own, own[1:]):
        if not isinstance(body[j], ast.Return) and not isinstance(body[i], ast.FunctionDef):
            new = list(body)
            new[i], new[j] = body[j], body[i]
            yield "this line comes too early", body[j], new


def replaced(body: list[ast.stmt]) -> Changes:
    """What should be added takes the place of what was there."""
    for i, statement in enumerate(body):
        if isinstance(statement, ast.AugAssign):
            new = ast.Assign([statement.target], statement.value)
            yield "this line replaces instead of adding", statement, _with(body, i, new)


def branches(body: list[ast.stmt]) -> Changes:
    """A condition is ignored or turned round."""
    for i, statement in enumerate(body):
        if isinstance(statement, ast.If):
            kept = body[:i] + statement.body + body[i + 1 :]
            dropped = body[:i] + statement.orelse + body[i + 1 :]
            opposite = ast.UnaryOp(ast.Not(), statement.test)
            turned = ast.If(opposite, statement.body, statement.orelse)
            yield "this condition is taken to be always true", statement, kept
            yield "this condition is taken to be never true", statement, dropped or [ast.Pass()]
            yield "this condition is turned round", statement, _with(body, i, turned)


def ended_early(body: list[ast.stmt]) -> Changes:
    """A loop ends after its first step, or comes a step short at an end."""
    for i, statement in enumerate(body):
        if isinstance(statement, ast.For):
            once = ast.For(statement.target, statement.iter, [*statement.body, ast.Break()], [])
            yield "this loop ends after its first step", statement, _with(body, i, once)


STATEMENTS = {1: (left_out, replaced), 2: (branches, swapped, ended_early)}


def _with(body: list[ast.stmt], i: int, new: ast.stmt) -> list[ast.stmt]:
    return [*body[:i], new, *body[i + 1 :]]


def _keeps_earlier(statement: ast.stmt) -> bool:
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return docstring or (isinstance(target, ast.Name) and target.id.startswith(EARLIER))
