"""The translation chapters run on real sentences, too, with the switch that a learner sets."""

import os

import nbformat
import pytest

from course_utils.course import NOTEBOOKS, headless_environment, run_notebook

SWITCH = 'CORPUS = "small-world"'

pytestmark = pytest.mark.skipif(
    "COURSE_DATA_DIR" not in os.environ, reason="COURSE_DATA_DIR names no folder with fra-eng.zip"
)


@pytest.mark.parametrize("name", ["04_bahdanau_translation", "09_transformer_translation"])
def test_the_chapter_runs_on_fra_eng(name, tmp_path, monkeypatch):
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    (cell,) = [cell for cell in notebook.cells if cell.source == SWITCH]
    cell.source = 'CORPUS = "fra-eng"'
    copy = tmp_path / f"{name}.ipynb"
    nbformat.write(notebook, copy)
    for variable, value in headless_environment(str(tmp_path)).items():
        monkeypatch.setenv(variable, value)
    monkeypatch.delenv("MPLBACKEND", raising=False)

    done, _ = run_notebook(copy)  # raises at the first cell that fails

    printed = "".join(
        output.get("text", "") + str(output.get("data", {}).get("text/plain", ""))
        for cell in done.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    )
    assert "fra-eng: " in printed
    assert "held-out" in printed
    assert "BLEU" in printed
