"""What is wrong in the file of a notebook is said with its name, by every command that reads it."""

import json

import pytest

from course_utils.cli.notebook_file import UnreadableNotebook, read_notebook
from course_utils.cli.notebooks import main as course
from course_utils.environment import ROOT

GOOD = (ROOT / "notebooks" / "00_start_here.ipynb").read_text(encoding="utf-8")


def with_one_id_twice():
    notebook = json.loads(GOOD)
    notebook["cells"][1]["id"] = notebook["cells"][0]["id"]
    return json.dumps(notebook)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{\n<<<<<<< HEAD\n" + GOOD, "nb.ipynb, line 2: a merge by git stands open"),
        (GOOD.replace("\n", "\n=======\n", 1), "nb.ipynb, line 2: a merge by git stands open"),
        (GOOD[: len(GOOD) // 2], "nb.ipynb, line "),
        ("", "nb.ipynb, line 1: no JSON there"),
        ("[]", "nb.ipynb is JSON, but no notebook"),
        ("null", "nb.ipynb is JSON, but no notebook"),
        ('{"nbformat": 4, "nbformat_minor": 5, "metadata": {}}', "it has no cells"),
        (with_one_id_twice(), "nb.ipynb: 2 cells have the id"),
    ],
)
def test_a_file_that_is_no_notebook_is_named(content, said, tmp_path, capsys):
    path = tmp_path / "nb.ipynb"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UnreadableNotebook) as error:
        read_notebook(path)
    assert said in str(error.value)
    assert course([str(path)]) == 1
    printed = capsys.readouterr()
    assert said in printed.err
    assert "Traceback" not in printed.err


def test_utf_16_is_named_and_a_byte_order_mark_is_none(tmp_path):
    path = tmp_path / "nb.ipynb"
    path.write_bytes(GOOD.encode("utf-16"))
    with pytest.raises(UnreadableNotebook, match="nb.ipynb is not UTF-8"):
        read_notebook(path)
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode("utf-8"))
    assert len(read_notebook(path).cells) == len(json.loads(GOOD)["cells"])


def test_marks_in_a_text_are_found_too(tmp_path):
    notebook = json.loads(GOOD)
    notebook["cells"][0]["source"] = ["# A title\n", "<<<<<<< HEAD\n", "one\n"]
    path = tmp_path / "nb.ipynb"
    path.write_text(json.dumps(notebook, indent=1), encoding="utf-8")
    with pytest.raises(UnreadableNotebook, match="cell 1"):
        read_notebook(path)
