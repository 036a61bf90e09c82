"""Give every exercise of a chapter its cells in the notebook: statement, stub and check."""

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from course_utils.checker import catalogue
from course_utils.checker.cells import fill
from course_utils.checker.exercise import Exercise


def write_exercises(notebook: NotebookNode, chapter: str) -> list[str]:
    """Bring the cells of the chapter's exercises in step with their source, in place.

    An exercise without cells gets them below the one that stands before it in exercises.py, or at
    the end of the notebook; from there they may be moved.

    Returns:
        The names of the exercises whose cells were out of step.
    """
    above = None
    for exercise in (e for e in catalogue() if e.notebook == chapter):
        if _place(notebook, exercise.name) is None:
            place = len(notebook.cells) - 1  # above the links to the other chapters
            if above and (found := _place(notebook, above)):
                place = found + 2  # the check stands below the stub
            notebook.cells[place:place] = _cells(exercise)
        above = exercise.name
    return list(dict.fromkeys(fill(notebook)))


def _place(notebook: NotebookNode, name: str) -> int | None:
    """Where the stub of the exercise stands."""
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type == "code" and cell.metadata.get("exercise") == name:
            return place
    return None


def _cells(exercise: Exercise) -> list[NotebookNode]:
    name, own = exercise.name, {"exercise": exercise.name}
    check = f'check("{name}", {name})' if exercise.kind == "value" else f"check({name})"
    ids = [f"{name[:50]}-{what}".replace("_", "-") for what in ("text", "stub", "check")]
    return [
        new_markdown_cell(id=ids[0], metadata=own),
        new_code_cell(id=ids[1], metadata={**own, "tags": ["exercise"]}),
        new_code_cell(check, id=ids[2]),
    ]
