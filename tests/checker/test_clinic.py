"""Guesses are compared, kept and counted."""

import re

import nbformat
import pytest

from course_utils.checker import reset
from course_utils.checker.clinic import clinic, settle, statements
from course_utils.environment import ROOT

OPTIONS = (0, 72, 288)


@pytest.fixture(autouse=True)
def progress_file(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.jsonl"))
    return tmp_path / "progress.jsonl"


def test_without_a_guess_the_truth_is_told_and_nothing_is_kept(progress_file):
    assert str(settle("C-12", ..., 0, OPTIONS)) == (
        f"C-12: 0. No guess yet.\n{statements()['C-12']}"
    )
    assert not progress_file.exists()


@pytest.mark.parametrize(
    ("guess", "said"), [(0, "Well guessed."), ("0 ", "Well guessed."), (72, "You guessed 72.")]
)
def test_a_guess_is_compared(guess, said):
    lines = str(settle("C-12", guess, 0, OPTIONS)).splitlines()
    assert lines == [f"C-12: 0. {said}", statements()["C-12"]]


def test_letters_may_be_small_and_the_answer_keeps_its_own():
    said = str(settle("C-3", "runtimeerror", "RuntimeError", ("runs", "RuntimeError")))
    assert said.startswith("C-3: RuntimeError. Well guessed.")


def test_a_guess_that_is_no_option_is_not_kept(progress_file):
    assert "guess one of 0, 72, 288; 1 is none" in str(settle("C-12", 1, 0, OPTIONS))
    assert not progress_file.exists()


def test_a_truth_that_nobody_could_guess_is_an_error():
    with pytest.raises(ValueError, match="C-12: the cell found 5, which is none of 0, 72, 288"):
        settle("C-12", ..., 5, OPTIONS)


def test_an_unknown_case_is_an_error():
    with pytest.raises(ValueError, match="C-999 is no case of the clinic"):
        settle("C-999", ..., 0, OPTIONS)


def test_every_case_of_the_notebook_has_its_statement_and_does_not_show_it():
    notebook = nbformat.read(ROOT / "notebooks" / "15_mistakes_clinic.ipynb", as_version=4)
    sources = [c.source for c in notebook.cells if c.cell_type == "code"]
    cases = re.findall(r'settle\("(C-\d+)"', "\n".join(sources))
    assert sorted(cases) == sorted(statements())
    assert not [text for text in statements().values() if any(text in s for s in sources)]


def test_the_first_guess_counts():
    for case, guess in (("C-1", "yes"), ("C-2", "no"), ("C-2", "yes")):
        settle(case, guess, "yes", ("yes", "no"))
    assert str(clinic()).splitlines() == [
        "2 cases guessed, 1 rightly at the first guess",
        "worth another look: C-2",
    ]
    reset()
    assert str(clinic()) == "0 cases guessed, 0 rightly at the first guess"


def test_a_folder_that_cannot_be_written_is_said(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "file" / "progress.jsonl"))
    assert "Progress is not saved" in str(settle("C-12", 0, 0, OPTIONS))
