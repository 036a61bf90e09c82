"""One change in somebody's code: what comes of it, and in words where it is and of what kind."""

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from course_utils.checker.edits import Code, Edit
from course_utils.checker.exercise import Exercise
from course_utils.checker.runner import outcome
from course_utils.checker.slips import NO_SMALL
from course_utils.checker.values import gap

EACH = 0.3  # seconds for one change
NUMBER = "another number is due"
_FIRST = (NUMBER, NO_SMALL)  # of several changes these are told
_TAKES_AWAY = re.compile(r"(?<!=`) (is|are) too many")  # an argument by keyword has a default
_LONGEST = 60  # characters of code that are shown


def job(
    exercise: Exercise, code: Code, edit: Edit, inputs: Sequence[tuple], due: Callable[[int], Any]
) -> Callable[[], Any]:
    """Whether an edit gives what is due: True, or else what it gives on the first input, and on."""

    def is_right() -> Any:
        changed, given = code.answer(edit), []
        for i, args in enumerate(inputs):
            value = outcome(exercise.play, changed, args, i, kept=True)
            given.append(value)
            if gap(due(i), value).size > 1:
                return given
        return True

    return is_right


def takes_away(edit: Edit) -> bool:
    """Whether with the change something is gone: a step, an argument, a line, a condition."""
    return bool(_TAKES_AWAY.search(edit.words))


def around(good: list[Edit], edits: Iterable[Edit]) -> list[Edit]:
    """The edits of pieces of code in which a good edit lies."""
    changed = {id(part.node) for e in good for part in getattr(e, "parts", [e])}
    return [e for e in edits if changed & {id(n) for n in ast.walk(e.node)}]


def least_first(edit: Edit) -> tuple[bool, int]:
    """The order of changes: of a number first, then of the smallest piece of code."""
    return edit.words not in _FIRST, len(ast.unparse(edit.node))


def least(good: list[Edit]) -> Edit:
    """The change of the smallest piece of code, of a number first."""
    return min(good, key=least_first)


def place(good: list[Edit], code: Code) -> str:
    """Where the change of the smallest piece of code is, and of what kind."""
    edit = least(good)
    shown = ast.unparse(edit.node).split("\n")[0]
    if len(shown) > _LONGEST:  # what is too many may stand at either end
        shown = f"{shown[: _LONGEST // 2 - 3]} ... {shown[2 - _LONGEST // 2 :]}"
    alike = sorted(
        n.col_offset
        for n in ast.walk(code.tree)
        if getattr(n, "lineno", 0) == edit.node.lineno and ast.dump(n) == ast.dump(edit.node)
    )
    which = alike.index(edit.node.col_offset) + 1 if len(set(alike)) > 1 else 0
    shown = f"`{shown}` (number {which} of {len(alike)})" if which else f"`{shown}`"
    return f"In line {edit.node.lineno}, at {shown}, {edit.words}"
