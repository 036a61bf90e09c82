"""What notebooks show of the package and of each other."""

import json

import pytest

from course_utils import show
from course_utils.attention import masked_softmax


def test_show_source_shows_the_source_as_it_stands(capsys):
    show.show_source(masked_softmax)
    assert "Markdown" in capsys.readouterr().out  # displayed, not printed


@pytest.fixture
def notebooks(tmp_path, monkeypatch):
    """A folder with one notebook: a cell that printed a result, and one that has not run."""
    (tmp_path / "notebooks").mkdir()
    stream = {"output_type": "stream", "name": "stdout", "text": ["BLEU 1\n", "BLEU 2\n"]}
    cells = [
        {"metadata": {"result": "scores"}, "outputs": [stream]},
        {"metadata": {"result": "unrun"}, "outputs": []},
    ]
    path = tmp_path / "notebooks" / "04.ipynb"
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    monkeypatch.setattr(show, "ROOT", tmp_path)


def test_stored_output_is_what_the_cell_printed(notebooks):
    assert show.stored_output("04", "scores") == "BLEU 1\nBLEU 2"


@pytest.mark.parametrize("result", ["unrun", "unknown"])
def test_a_result_that_is_not_there_is_named(notebooks, result):
    with pytest.raises(LookupError, match=f"04.ipynb has no cell.*'{result}'"):
        show.stored_output("04", result)
