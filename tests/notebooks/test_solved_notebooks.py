"""The notebooks once more, whole, with all solutions filled in: each check turns green.

Those that train for a minute or more are left to test_exercises_notebooks.py, which runs their
imports, solutions and checks.
"""

import nbformat
import pytest

from course_utils.checker.cells import solved_notebook
from course_utils.cli.notebooks import run_notebook
from course_utils.environment import ROOT

TRAINING = ("04", "09", "10", "11", "12", "14")
NOTEBOOKS = [
    path
    for path in sorted((ROOT / "notebooks").glob("*.ipynb"))
    if not path.name.startswith(TRAINING)
]
pytestmark = pytest.mark.long  # test_exercises_notebooks.py runs the solved cells in any case


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_solved_notebook_runs_and_its_checks_are_green(path, tmp_path):
    solved = solved_notebook(nbformat.read(path, as_version=4))
    nbformat.write(solved, tmp_path / path.name)
    notebook, _ = run_notebook(tmp_path / path.name)
    checks = [c for c in notebook.cells if c.cell_type == "code" and c.source.startswith("check(")]
    said = {c.source: c.outputs[0].data["text/plain"].split("\n")[0] for c in checks}
    assert [text for text in said.values() if not text.startswith("✓")] == []
    exercises = [c for c in solved.cells if c.cell_type == "code" and "exercise" in c.metadata]
    assert len(checks) == len(exercises)
