"""The exercise cells of the notebooks: in step with their source, checked, and in nobody's way.

A notebook with all solutions filled in runs like the one with its stubs, because no cell but the
checks uses what an exercise cell defines; so here only imports and solutions are run. What a check
says of a solution is tried in tests/checker/test_exercises_catalogue.py.
"""

import ast

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from course_utils.checker import catalogue, statement, stub
from course_utils.checker.cells import fill, solved_notebook
from course_utils.checker.runner import run_answer
from course_utils.checker.values import gap
from course_utils.checker.verdict import outcome_of
from course_utils.environment import ROOT

NAMES = {e.name: e for e in catalogue()}
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path):
    return nbformat.read(path, as_version=4)


def exercise_cells(notebook):
    return [c for c in notebook.cells if c.cell_type == "code" and "exercise" in c.metadata]


def other_cells(notebook):
    """Code cells that are neither an exercise nor the check of one."""
    code = [c for c in notebook.cells if c.cell_type == "code" and "exercise" not in c.metadata]
    return [c for c in code if not c.source.startswith("check(")]


def tree(cell):
    """The syntax tree of a cell without its magics."""
    lines = [
        "" if line.lstrip().startswith(("%", "!")) else line for line in cell.source.split("\n")
    ]
    return ast.parse("\n".join(lines))


@each_notebook
def test_exercise_cells_are_tagged(path):
    for cell in exercise_cells(read(path)):
        assert "exercise" in cell.metadata.tags


@each_notebook
def test_every_exercise_of_the_chapter_stands_in_its_notebook_with_its_check(path):
    notebook = read(path)
    wanted = [e.name for e in catalogue() if e.notebook == path.stem]
    assert sorted(c.metadata.exercise for c in exercise_cells(notebook)) == sorted(wanted)
    sources = [c.source.strip() for c in notebook.cells if c.cell_type == "code"]
    texts = [c.metadata.get("exercise") for c in notebook.cells if c.cell_type == "markdown"]
    for name in wanted:
        is_value = NAMES[name].kind == "value"
        line = f'check("{name}", {name})' if is_value else f"check({name})"
        assert sources[sources.index(stub(name)) + 1] == line
        assert name in texts


@each_notebook
def test_no_other_cell_uses_what_an_exercise_defines(path):
    notebook = read(path)
    names = {c.metadata.exercise for c in exercise_cells(notebook)}
    for cell in other_cells(notebook):
        used = {node.id for node in ast.walk(tree(cell)) if isinstance(node, ast.Name)}
        assert not used & names, cell.source


@each_notebook
def test_solved_cells_are_right_with_the_notebooks_own_imports(path):
    notebook = read(path)
    namespace = {}
    for cell in other_cells(notebook):
        for node in tree(cell).body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                exec(compile(ast.Module([node], []), "<imports>", "exec"), namespace)
    for cell in exercise_cells(solved_notebook(notebook)):
        name = cell.metadata.exercise
        exec(compile(cell.source, "<solution>", "exec"), namespace)
        exercise = NAMES[name]
        runs = run_answer(exercise.play, namespace[name], exercise.probes).runs
        assert len(runs) == len(exercise.probes)
        for i, run in enumerate(runs):
            assert gap(outcome_of(exercise, (), i), run.value).size <= 1


@each_notebook
def test_stored_outputs_of_the_checks_are_those_of_stubs(path):
    for cell in read(path).cells:
        if cell.cell_type == "code" and cell.source.startswith("check("):
            (output,) = cell.outputs
            assert "not attempted yet" in output.data["text/plain"], cell.source


def small_notebook():
    return new_notebook(
        cells=[
            new_markdown_cell("old", metadata={"exercise": "scaled_attention"}),
            new_code_cell("old", metadata={"exercise": "scaled_attention", "tags": ["exercise"]}),
            new_code_cell("check(scaled_attention)"),
        ]
    )


def test_fill_writes_statement_and_stub():
    notebook = small_notebook()
    assert fill(notebook) == ["scaled_attention", "scaled_attention"]
    assert notebook.cells[0].source == statement("scaled_attention")
    assert notebook.cells[1].source == stub("scaled_attention")
    assert notebook.cells[2].source == "check(scaled_attention)"
    assert fill(notebook) == []


def test_fill_refuses_unknown_exercises():
    notebook = new_notebook(cells=[new_code_cell("x", metadata={"exercise": "nothing"})])
    with pytest.raises(ValueError, match="There is no exercise 'nothing'"):
        fill(notebook)
