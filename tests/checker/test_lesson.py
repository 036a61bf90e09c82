"""Claims, guesses and what came out: what a lesson says to a learner, and to a test."""

import pytest
import torch

from course_utils.checker import lesson, log
from course_utils.checker.lesson import claim, compare, guess

CLAIM = "each row sums to 1"


@pytest.fixture(autouse=True)
def at_a_desk(monkeypatch, tmp_path):
    """Where a learner sits: not headless, with a log of their own."""
    monkeypatch.delenv(lesson.HEADLESS, raising=False)
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.jsonl"))
    lesson._guesses.clear()


@pytest.mark.parametrize("holds", [True, torch.tensor([True, True]), lambda: torch.tensor(True)])
@pytest.mark.parametrize("headless", [False, True])
def test_a_claim_that_holds_prints_one_line(holds, headless, monkeypatch, capsys):
    if headless:
        monkeypatch.setenv(lesson.HEADLESS, "1")
    claim(holds, CLAIM, "never said")
    assert capsys.readouterr().out == "✓ each row sums to 1\n"


FAILING = {
    "false": (False, "the sums are 2", "the sums are 2."),
    "one of many": (torch.tensor([True, False]), lambda: "one is 2.", "one is 2."),
    "an index too far": (
        lambda: torch.zeros(2)[5],
        "unused",
        "it cannot even be checked here (IndexError: index 5 is out of bounds for dimension 0 with "
        "size 2).",
    ),
    "not to be told": (
        False,
        lambda: [][1],
        "what is there instead cannot be told (IndexError: list index out of range).",
    ),
}


@pytest.mark.parametrize(("holds", "otherwise", "said"), FAILING.values(), ids=FAILING)
def test_a_claim_that_fails_says_what_is_there_instead_and_goes_on(
    holds, otherwise, said, monkeypatch, capsys
):
    claim(holds, CLAIM, otherwise)
    assert capsys.readouterr().out == f"○ {lesson.NO_LONGER} each row sums to 1: {said}\n"
    monkeypatch.setenv(lesson.HEADLESS, "1")
    with pytest.raises(AssertionError, match="the lesson claims that each row sums to 1, but "):
        claim(holds, CLAIM, otherwise)


def test_dots_are_no_guess(capsys):
    guess("share", ...)
    compare("share", torch.tensor(0.644), "Why.")
    printed = capsys.readouterr().out
    assert printed == (
        "No guess yet (share): write yours in place of the dots, or simply go on.\n"
        "share: 0.644. Why.\n"
    )
    assert log.read() == []


@pytest.mark.parametrize(
    ("guessed", "came", "verdict", "close"),
    [
        (0.25, 0.644, "too low by 0.394", False),
        (0.66, 0.644, "that is it", True),
        (3, 2, "too high by 1", False),
        (float("inf"), float("inf"), "that is it", True),
        (" Home", "home", "that is it", True),
        ("i", "home", "it came out otherwise", False),
        (True, 1, "it came out otherwise", False),
        (True, torch.tensor(True), "that is it", True),
        ([1, 2], torch.tensor([1, 2]), "that is it", True),
        ([1, 2], [1, 2, 3], "it came out otherwise", False),
        ("many", 3, "it came out otherwise", False),
        (float("nan"), 0.5, "it came out otherwise", False),
    ],
)
def test_a_guess_is_compared_and_kept(guessed, came, verdict, close, capsys):
    guess("it", guessed)
    compare("it", came)
    assert capsys.readouterr().out.endswith(f"{verdict}.\n")
    first, second = log.read()
    assert (first["event"], first["guess"]) == ("guess", "it")
    assert (second["event"], second["close"]) == ("outcome", close)


def test_a_log_that_cannot_be_written_is_said(monkeypatch, tmp_path, capsys):
    (tmp_path / "file").touch()
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "file" / "log"))
    guess("it", 1)
    assert "Progress is not saved" in capsys.readouterr().out
