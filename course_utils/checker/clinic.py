"""Predict first, then run: the wagers of the mistakes clinic.

guess = ...                                     # what will come out; or that, and a verdict
guess = "uniform", "half"                       # on the note: "right", "half" or "wrong"
guess = "uniform", "half", "if a key is left"   # and the condition under which it holds
settle("coins", guess, found, options)          # compares it with what the cell has found
clinic()                                        # how many were guessed, and how many rightly

clinic.tsv says for each case what the cell finds as stored, whether the note is right, and why; so
a cell does not give it away before it runs.
"""

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from course_utils.checker import log
from course_utils.checker.lesson import HEADLESS
from course_utils.checker.report import Text

VERDICTS = {
    "right": "The note is right.",
    "half": "The note is half right.",
    "wrong": "The note is wrong.",
}


@dataclass(frozen=True)
class Case:
    """One sentence, or line of code, of a note.

    Attributes:
        case: its name, such as "coins".
        found: what its cell finds as stored.
        verdict: on the note, a key of VERDICTS.
        why: the reason, in words.
    """

    case: str
    found: str
    verdict: str
    why: str


def settle(case: str, guess: object, found: object, options: Sequence[object]) -> Text:
    """Compare a guess with what a cell has found, and say whether the note is right.

    Args:
        case: name of the case, such as "coins".
        guess: one of the options; or a tuple of it, a verdict on the note and, if one likes, the
            condition under which the note holds; or `...` for none.
        found: what the cell computed.
        options: what could be guessed.

    Returns:
        Text for the notebook: what was found, how good the guess was, and what holds. Where the
        cell finds something else than as stored, because its numbers were changed, it says so, and
        the guess does not count.

    Raises:
        ValueError: there is no such case.
        AssertionError: the cell does not find what it found as stored, and COURSE_HEADLESS is set.
    """
    if case not in cases():
        raise ValueError(f"{case} is no case of the clinic")
    truth = cases()[case]
    if _key(found) != _key(truth.found):
        if os.environ.get(HEADLESS):
            raise AssertionError(f"{case}: the cell found {found}, and not {truth.found}")
        return Text(
            f"{case}: with these numbers the cell finds: {found}. As it was printed: "
            f"{truth.found}. A guess counts only on the printed one."
        )
    known = {_key(option): str(option) for option in options}
    names = ", ".join(known.values())
    head = f"{case}: {truth.found}."
    right = f"{VERDICTS[truth.verdict]} {truth.why}"
    if guess is ...:
        return Text(f"{head} No guess yet.\n{right}")
    guess, called, condition = _parts(guess)
    if _key(guess) not in known:
        return Text(f"{case}: guess one of {names}; {guess} is none of them.")
    good = _key(guess) == _key(found)
    note = log.write("clinic", case=case, good=good, called=called)
    head += " Well guessed." if good else f" You guessed {known[_key(guess)]}."
    if called:
        head += f" {'Well' if called == truth.verdict else 'Not well'} judged ({called})."
    yours = f"Your condition: {condition}" if condition else ""
    return Text("\n".join(filter(None, [head, yours, right, note])))


@cache
def cases() -> dict[str, Case]:
    """All cases by their names, in the order of the notebook."""
    with Path(__file__).with_suffix(".tsv").open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {row["case"]: Case(**row) for row in rows}


def clinic() -> Text:
    """How many first guesses were right, and how well the notes were judged."""
    first: dict[str, dict] = {}
    for entry in log.since_reset():
        if entry["event"] == "clinic" and entry.get("case") in cases():
            first.setdefault(str(entry["case"]), entry)
    lines = [f"{len(first)} of {len(cases())} cases guessed"]
    good = [case for case, entry in first.items() if entry.get("good")]
    if first:
        lines[0] += f", {len(good)} of {len(first)} rightly at the first guess"
    judged = {case: e["called"] for case, e in first.items() if e.get("called") in VERDICTS}
    for verdict, words in VERDICTS.items():
        own = [called for case, called in judged.items() if cases()[case].verdict == verdict]
        if own:
            lines.append(
                f"  {words.removesuffix('.')}: seen {own.count(verdict)} of {len(own)} times"
            )
    doubted = [
        c for c, called in judged.items() if called == "wrong" and cases()[c].verdict == "right"
    ]
    if doubted:
        lines.append(f"called wrong, and right: {', '.join(doubted)}")
    if wrong := [case for case in first if case not in good]:
        lines.append(f"worth another look: {', '.join(wrong)}")
    return Text("\n".join(lines))


def _parts(guess: object) -> tuple[object, str, str]:
    """What was guessed, and the verdict and the condition that came with it or ""."""
    if isinstance(guess, tuple) and len(guess) in (2, 3) and _key(guess[1]) in VERDICTS:
        condition = str(guess[2]).strip() if len(guess) == 3 else ""
        return guess[0], _key(guess[1]), condition
    return guess, "", ""


def _key(value: object) -> str:
    """How an option is typed does not matter: 72 or "72", Yes or yes."""
    return str(value).strip().lower()
