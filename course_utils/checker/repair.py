"""Where no name fits: the one change in the learner's own code after which it is right.

What is said was measured: with this change, and no other, the answer gives what is due on every
input tried. The change itself is not shown, only its place and its kind.
"""

import ast
import time
import warnings
from collections.abc import Callable
from typing import Any

from course_utils.checker.edits import Code, Edit, code_of
from course_utils.checker.exercise import Exercise
from course_utils.checker.runner import outcome, play_batch
from course_utils.checker.values import gap

_EACH = 0.3  # seconds for one change
_LONGEST = 60  # characters of code that are shown
# code that does more than compute is not run with changes in it
_MORE_THAN_COMPUTING = {"open", "exec", "eval", "os", "sys", "shutil", "subprocess", "pathlib"}


def repair(
    exercise: Exercise, answer: Any, inputs: list[tuple], expected: list[Any], end: float
) -> str:
    """One sentence on the change that makes the answer right, or nothing.

    Args:
        exercise, answer: what is checked.
        inputs: what it must be right on, one on which it is wrong first.
        expected: what is due on each.
        end: when the search ends, on the clock of the process.
    """
    code = code_of(answer)
    if code is None or not _only_computes(code):
        return ""
    for rank in range(3):
        edits = list(code.edits(rank))
        jobs = [_job(exercise, code, edit, inputs, expected) for edit in edits]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some changes make odd code
            good = [e for e, ok in zip(edits, play_batch(jobs, _EACH, end)) if ok is True]
        if good:
            return _sentence(good, len(inputs))
        if time.process_time() >= end:
            return ""
    return ""


def _job(
    exercise: Exercise, code: Code, edit: Edit, inputs: list[tuple], expected: list[Any]
) -> Callable[[], bool]:
    def is_right() -> bool:
        try:
            changed = code.answer(edit)
        except Exception:  # an edit that is no program
            return False
        return all(
            gap(due, outcome(exercise.play, changed, args, i, kept=True)).size <= 1
            for i, (args, due) in enumerate(zip(inputs, expected))
        )

    return is_right


def _only_computes(code: Code) -> bool:
    names = {
        getattr(n, "id", None) or getattr(n, "attr", None)
        for n in ast.walk(code.tree)
        if isinstance(n, (ast.Name, ast.Attribute))
    }
    imports = any(isinstance(n, (ast.Import, ast.ImportFrom)) for n in ast.walk(code.tree))
    return not imports and not names & _MORE_THAN_COMPUTING


def _sentence(good: list[Edit], tried: int) -> str:
    """The change of the smallest piece of code that can be recognised."""
    edit = min(good, key=lambda e: len(ast.unparse(e.node)))
    shown = ast.unparse(edit.node).split("\n")[0]
    shown = shown if len(shown) <= _LONGEST else shown[: _LONGEST - 4] + " ..."
    return (
        f"In line {edit.node.lineno}, at `{shown}`, {edit.words}: with this one change it is right "
        f"on all {tried} inputs tried"
    )
