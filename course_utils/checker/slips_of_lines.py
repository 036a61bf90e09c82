"""The likely slips among lines: what may stand in the place of a list of statements."""

import ast
from collections.abc import Iterator

LINE, BLOCK = "this line is too many", "this line and what is under it are too many"


def statements(body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt, list[ast.stmt]]]:
    """A statement too many, too early, too deep, or under another condition."""
    for i, s in enumerate(body):
        before, after = body[:i], body[i + 1 :]
        if not isinstance(s, ast.Return) and not is_docstring(s):
            yield BLOCK if hasattr(s, "body") else LINE, s, before + after
        if after and not isinstance(after[0], ast.Return):
            yield "this line and the next are exchanged", s, [*before, after[0], s, *after[1:]]
        if isinstance(s, (ast.Break, ast.Continue)):
            other = ast.Continue() if isinstance(s, ast.Break) else ast.Break()
            yield "`break` and `continue` are exchanged", s, [*before, other, *after]
        if isinstance(s, ast.Assign) and isinstance(s.targets[0], (ast.Name, ast.Subscript)):
            new = ast.AugAssign(s.targets[0], ast.Add(), s.value)
            yield "this line should add, not replace", s, [*before, new, *after]
        if isinstance(s, ast.AugAssign):
            new = ast.Assign([s.target], s.value)
            yield "this line should replace, not add", s, [*before, new, *after]
        if isinstance(s, ast.If):
            turned = ast.If(ast.UnaryOp(ast.Not(), s.test), s.body, s.orelse)
            yield "this condition is turned round", s, [*before, turned, *after]
            yield "this condition is too many", s, before + s.body + after
            if s.orelse:
                yield "the branch under `if` is too many", s, before + s.orelse + after
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


def is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
