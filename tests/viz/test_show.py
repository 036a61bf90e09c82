"""What notebooks show of the package and of each other."""

import json

import pytest
import torch

from course_utils.models.attention import masked_softmax
from course_utils.viz import show


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


def test_a_listing_is_one_line_in_one_format():
    assert show.listing(torch.tensor([0.125, 1.0]), ".3f") == "0.125, 1.000"
    assert show.listing({"place": 0.126, "word": 1}, ".2f") == "place 0.13, word 1.00"
    assert show.listing({"weight": (4, 4), "bias": (4,)}) == "weight (4, 4), bias (4,)"
    assert show.listing(n for n in ("a", "b")) == "a, b"
