"""Put statements, stubs or solutions into the cells of a notebook that belong to an exercise.

A cell belongs to an exercise when its metadata say {"exercise": "its_name"}: a Markdown cell holds
the statement, a code cell (tagged `exercise`) the stub.
"""

import copy
from collections.abc import Callable

from nbformat import NotebookNode

from course_utils.checker import source, statement, stub
from course_utils.checker.exercise import REGISTRY


def fill(notebook: NotebookNode, code: Callable[[str], str] = stub) -> list[str]:
    """Write the exercises' texts into their cells, in place.

    Args:
        notebook: of nbformat version 4.
        code: from the name of an exercise to what its code cell shall hold.

    Returns:
        The names of the exercises whose cells were out of step.
    """
    changed = []
    for cell in notebook.cells:
        name = cell.metadata.get("exercise")
        if name is None:
            continue
        wanted = code(name) if cell.cell_type == "code" else statement(name)
        if cell.source != wanted:
            cell.source = wanted
            changed.append(name)
    return changed


def solved_notebook(notebook: NotebookNode) -> NotebookNode:
    """A copy in which every stub is replaced by its solution, without outputs."""
    notebook = copy.deepcopy(notebook)
    fill(notebook, lambda name: source.solved(REGISTRY[name]))
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook
