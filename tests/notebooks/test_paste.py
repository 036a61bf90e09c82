"""What a chapter defines, shows or imports, pasted under an exercise's name, does not solve it.

Save for exercises of the kind "practice".
"""

import ast
import inspect

import nbformat
import pytest
from test_lesson_form import PATHS

from course_utils.checker import catalogue
from course_utils.checker.runner import run_answer
from course_utils.checker.values import gap
from course_utils.checker.verdict import outcome_of
from course_utils.maintain.form import parsed

DEFINES = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)


def pieces(path):
    """Functions and classes of a chapter by name, those of its exercises apart."""
    names = {}
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type != "code" or "exercise" in cell.metadata:
            continue
        for node in parsed(cell.source).body:
            is_lambda = isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda)
            if isinstance(node, DEFINES) or is_lambda:
                exec(compile(ast.Module([node], []), "<chapter>", "exec"), names)
    return {k: v for k, v in names.items() if inspect.isfunction(v) or inspect.isclass(v)}


def passes(exercise, piece):
    """Whether a piece is right on all probes, in the time that an answer has; on the first first.

    Few of the many pieces are right on one.
    """
    if inspect.isclass(piece) != (exercise.kind == "class"):
        return False

    def right_on(probes):
        runs = run_answer(exercise.play, piece, probes).runs
        return len(runs) == len(probes) and all(
            not run.timed_out and gap(outcome_of(exercise, (), i), run.value).size <= 1
            for i, run in enumerate(runs)
        )

    return right_on(exercise.probes[:1]) and right_on(exercise.probes)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_only_practice_is_solved_by_pasting(path):
    found = pieces(path)
    solved = {
        f"{exercise.name} is solved by {name}"
        for exercise in catalogue()
        if exercise.notebook == path.stem and exercise.kind != "value"
        and exercise.asks != "practice"
        for name, piece in found.items()
        if passes(exercise, piece)
    }  # fmt: skip
    assert not solved


def test_a_piece_that_solves_an_exercise_is_found():
    exercise = next(e for e in catalogue() if e.name == "softmax_with_mask")
    assert passes(exercise, exercise.solution)
    assert not passes(exercise, sorted)
