"""Say in one sentence what a mutant does differently, with the smallest telling piece of code.

Names that the learner has not chosen are explained by what they stand for.
"""

import ast
import copy

from course_utils.checker.mutants.program import EARLIER, Place, Program, original_name

_SHORT, _SMALL, _LARGEST = 16, 12, 60  # characters of an expression that is shown


def pair(program: Program, place: Place, new: ast.expr) -> tuple[str, str]:
    """The code around one place before and after the change."""
    around = _around(place)
    before = _short(around, place.node)
    if around is place.node:
        return before, ast.unparse(new)
    with program.changed(place, new):
        return before, _short(around, new)


def _around(place: Place) -> ast.AST:
    """The enclosing expression that is just large enough to be recognised."""
    shown = place.node
    for parent in reversed(place.above):
        if len(ast.unparse(shown)) >= _SMALL and not isinstance(shown, (ast.Name, ast.Constant)):
            break
        if isinstance(parent, (ast.keyword, ast.Slice)):
            continue
        if not isinstance(parent, ast.expr):
            break
        shown = parent
    return shown


def _short(shown: ast.AST, changed: ast.AST) -> str:
    """The code of an expression; where it is long, what has not changed becomes dots."""
    text = ast.unparse(shown)
    if len(text) <= _LARGEST or shown is changed:
        return text
    own = copy.deepcopy(shown, {id(changed): changed})  # all but the changed node is copied
    return ast.unparse(_Dots(own, changed).visit(own))


class _Dots(ast.NodeTransformer):
    """Put dots in the place of the long expressions that do not hold the changed one."""

    def __init__(self, shown: ast.AST, changed: ast.AST):
        self.changed = changed
        self.holding = {n for n in ast.walk(shown) if any(m is changed for m in ast.walk(n))}

    def visit(self, node: ast.AST) -> ast.AST:
        if node is self.changed:
            return node
        if isinstance(node, ast.expr) and node not in self.holding:
            return _dotted(node)
        if isinstance(node, ast.Call) and node.func not in self.holding:
            if isinstance(node.func, ast.Attribute):
                node.func.value = _dotted(node.func.value)
            node.args = [self.visit(a) for a in node.args]
            node.keywords = [self.visit(k) for k in node.keywords]
            return node
        return self.generic_visit(node)


def _dotted(node: ast.expr) -> ast.expr:
    if len(ast.unparse(node)) <= _SHORT:
        return node
    dots = ast.Constant(...)
    return ast.Call(node.func, [dots], []) if isinstance(node, ast.Call) else dots


def glosses(program: Program, function: ast.AST, *codes: str) -> str:
    """What the variables in some pieces of code stand for, where that is short to say."""
    arguments = {a.arg for a in function.args.args}
    used = [n.id for code in codes for n in ast.walk(_parsed(code)) if isinstance(n, ast.Name)]
    said = []
    for name in dict.fromkeys(used):
        if name.startswith(EARLIER):
            said.append(f"`{name}` is `{original_name(name)}` before it is given a new value")
        elif name not in arguments and (value := _only_value(function, name)):
            said.append(f"`{name}` is `{value}`")
    return f" ({'; '.join(said[:2])})" if said else ""


def _parsed(code: str) -> ast.AST:
    try:
        return ast.parse(code)
    except SyntaxError:  # a slice on its own, or the head of a loop
        return ast.Module([], [])


def _only_value(function: ast.AST, name: str) -> str:
    """What a variable is set to, if that happens once and is short."""
    values = [
        statement.value
        for statement in ast.walk(function)
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name) and target.id == name
    ]
    text = ast.unparse(values[0]) if len(values) == 1 else ""
    return text if len(text) <= _LARGEST else ""


def first_line(statement: ast.stmt) -> str:
    """A statement, or the line that a compound one begins with."""
    return ast.unparse(statement).split("\n")[0]
