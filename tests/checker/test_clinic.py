"""Guesses are compared, kept and counted."""

import re
from collections import Counter

import nbformat
import pytest

from course_utils.checker import reset
from course_utils.checker.clinic import VERDICTS, cases, clinic, settle
from course_utils.checker.lesson import HEADLESS
from course_utils.environment import ROOT

CASE, OPTIONS = "times-four", (0, 72, 288)
WHY = f"{VERDICTS[cases()[CASE].verdict]} {cases()[CASE].why}"


@pytest.fixture(autouse=True)
def progress_file(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.jsonl"))
    return tmp_path / "progress.jsonl"


def test_without_a_guess_the_truth_is_told_and_nothing_is_kept(progress_file):
    assert str(settle(CASE, ..., 0, OPTIONS)) == f"{CASE}: 0. No guess yet.\n{WHY}"
    assert not progress_file.exists()


@pytest.mark.parametrize(
    ("guess", "said"), [(0, "Well guessed."), ("0 ", "Well guessed."), (72, "You guessed 72.")]
)
def test_a_guess_is_compared(guess, said):
    assert str(settle(CASE, guess, 0, OPTIONS)).splitlines() == [f"{CASE}: 0. {said}", WHY]


def test_letters_may_be_small_and_the_answer_keeps_its_own():
    said = str(settle("other-sentences", "batchnorm", "BatchNorm", ("LayerNorm", "BatchNorm")))
    assert said.startswith("other-sentences: BatchNorm. Well guessed.")


def test_a_guess_that_is_no_option_is_not_kept(progress_file):
    assert "guess one of 0, 72, 288; 1 is none" in str(settle(CASE, 1, 0, OPTIONS))
    assert not progress_file.exists()


def test_with_other_numbers_the_cell_says_so_and_nothing_is_kept(progress_file, monkeypatch):
    monkeypatch.delenv(HEADLESS, raising=False)
    said = str(settle(CASE, 0, 90, OPTIONS))
    assert "with these numbers the cell finds: 90. As it was printed: 0." in said
    assert not progress_file.exists()


def test_a_case_that_comes_out_otherwise_fails_where_notebooks_are_tested(monkeypatch):
    monkeypatch.setenv(HEADLESS, "1")
    with pytest.raises(AssertionError, match="times-four: the cell found 90, and not 0"):
        settle(CASE, ..., 90, OPTIONS)


def test_an_unknown_case_is_an_error():
    with pytest.raises(ValueError, match="C-999 is no case of the clinic"):
        settle("C-999", ..., 0, OPTIONS)


def test_the_notebook_has_every_case_in_order_and_does_not_give_it_away():
    notebook = nbformat.read(ROOT / "notebooks" / "15_mistakes_clinic.ipynb", as_version=4)
    sources = [c.source for c in notebook.cells]
    settled = re.findall(r'settle\("([\w-]+)"', "\n".join(sources))
    assert settled == list(cases())
    assert not [case.case for case in cases().values() if any(case.why in s for s in sources)]
    shown = {c.source.split("**")[1].split(". ")[1]: c.source for c in notebook.cells
             if c.cell_type == "markdown" and re.match(r"\*\*\d+\. ", c.source)}  # fmt: skip
    assert list(shown) == settled
    for case in cases().values():
        assert f"`{case.found}`" in shown[case.case].splitlines()[-1], case.case
        assert re.search(r"· note 00[0-4], ", shown[case.case]), case.case


def test_neither_doubt_nor_trust_wins():
    verdicts = Counter(case.verdict for case in cases().values())
    assert set(verdicts) == set(VERDICTS)
    assert abs(2 * verdicts["right"] - len(cases())) <= 2
    best = Counter(case.verdict for case in list(cases().values())[:25])
    assert 12 <= best["right"] <= 14


@pytest.mark.parametrize(
    ("guess", "said"),
    [
        ((64, "right"), "coins: 64. Well guessed. Well judged (right)."),
        (("8", "Wrong"), "coins: 64. You guessed 8. Not well judged (wrong)."),
        ((64, 8), "coins: guess one of 8, 64, 512; (64, 8) is none of them."),
    ],
)
def test_the_note_may_be_judged_as_well(guess, said):
    assert str(settle("coins", guess, 64, (8, 64, 512))).splitlines()[0] == said


def test_a_condition_is_printed_between_the_outcome_and_the_reason():
    truth = cases()["nobody-left"]
    guess = ("uniform", "half", "if a key is left ")
    assert str(settle("nobody-left", guess, "uniform", ("zero", "uniform"))).splitlines() == [
        "nobody-left: uniform. Well guessed. Well judged (half).",
        "Your condition: if a key is left",
        f"{VERDICTS['half']} {truth.why}",
    ]
    assert "is none of them" in str(settle("coins", (64, "half", "if", "so"), 64, (8, 64, 512)))


def test_a_shape_is_no_verdict():
    options = ("(4, 6)", "(5, 3)", "(6, 4)")
    assert "Well guessed" in str(settle("with-eos", (6, 4), "(6, 4)", options))


def test_the_first_guess_counts():
    for case, guess in (
        ("coins", (64, "wrong")), ("what-grows", "mean"), ("what-grows", "spread"),
        ("nobody-left", ("uniform", "half")),
    ):  # fmt: skip
        settle(case, guess, cases()[case].found, (64, "mean", "spread", "uniform"))
    assert str(clinic()).splitlines() == [
        f"3 of {len(cases())} cases guessed, 2 of 3 rightly at the first guess",
        "  The note is right: seen 0 of 1 times",
        "  The note is half right: seen 1 of 1 times",
        "called wrong, and right: coins",
        "worth another look: what-grows",
    ]
    reset()
    assert str(clinic()) == f"0 of {len(cases())} cases guessed"


def test_a_folder_that_cannot_be_written_is_said(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "file" / "progress.jsonl"))
    assert "Progress is not saved" in str(settle(CASE, 0, 0, OPTIONS))
