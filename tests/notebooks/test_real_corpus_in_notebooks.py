"""The chapters run on real text, too, with the switch that a learner sets."""

import os

import nbformat
import pytest

from course_utils.cli.notebooks import NOTEBOOKS, headless_environment, run_notebook

REAL = {
    "04_bahdanau_translation": ("small-world", "fra-eng", "held-out", "BLEU"),
    "09_transformer_translation": ("small-world", "fra-eng", "held-out", "BLEU"),
    "10_text_classification": ("short-reviews", "rt-polarity", "held-out reviews right"),
}

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        "COURSE_DATA_DIR" not in os.environ, reason="COURSE_DATA_DIR names no folder with corpora"
    ),
]


@pytest.mark.parametrize("name", REAL)
def test_the_chapter_runs_on_real_text(name, tmp_path, monkeypatch):
    shipped, real, *expected = REAL[name]
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    (cell,) = [cell for cell in notebook.cells if cell.source == f'CORPUS = "{shipped}"']
    cell.source = f'CORPUS = "{real}"'
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
    assert f"{real}: " in printed
    assert all(words in printed for words in expected)
