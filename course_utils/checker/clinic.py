"""Predict first, then run: the wagers of the mistakes clinic.

guess = ...                                     # the learner puts an answer here, or leaves it
settle("coins", guess, found, options)          # compares it with what the cell has found
clinic()                                        # how many were guessed, and how many rightly

clinic.tsv says for each case what the cell finds as stored, whether the quoted sentence holds, and
why; so a cell does not give it away before it runs.
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
    "holds": "The sentence holds.",
    "half": "The sentence holds under a condition, or says too little.",
    "fails": "The sentence does not hold.",
}


@dataclass(frozen=True)
class Case:
    """One quoted sentence.

    Attributes:
        case: its name, such as "coins".
        found: what its cell finds as stored.
        verdict: of the sentence, a key of VERDICTS.
        why: the reason, in words.
    """

    case: str
    found: str
    verdict: str
    why: str


def settle(case: str, guess: object, found: object, options: Sequence[object]) -> Text:
    """Compare a guess with what a cell has found, and say whether the quoted sentence holds.

    Args:
        case: name of the case, such as "coins".
        guess: one of the options, or `...` for none.
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
    if _key(guess) not in known:
        return Text(f"{case}: guess one of {names}; {guess} is none of them.")
    good = _key(guess) == _key(found)
    note = log.write("clinic", case=case, good=good)
    verdict = "Well guessed." if good else f"You guessed {known[_key(guess)]}."
    return Text("\n".join(filter(None, [f"{head} {verdict}", right, note])))


@cache
def cases() -> dict[str, Case]:
    """All cases by their names, in the order of the notebook."""
    with Path(__file__).with_suffix(".tsv").open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {row["case"]: Case(**row) for row in rows}


def clinic() -> Text:
    """How many cases were guessed at the first guess, by what their sentences are worth."""
    first: dict[str, bool] = {}
    for entry in log.since_reset():
        if entry["event"] == "clinic" and entry.get("case") in cases():
            first.setdefault(str(entry["case"]), bool(entry.get("good")))
    lines = [f"{len(first)} of {len(cases())} cases guessed"]
    if first:
        lines[0] += f", {_share(first)} at the first guess"
    for verdict, words in VERDICTS.items():
        own = {name: good for name, good in first.items() if cases()[name].verdict == verdict}
        if own:
            lines.append(f"  {words[4:].rstrip('.')}: {_share(own)}")
    wrong = [case for case, good in first.items() if not good]
    return Text("\n".join(lines + ([f"worth another look: {', '.join(wrong)}"] if wrong else [])))


def _share(first: dict[str, bool]) -> str:
    return f"{sum(first.values())} of {len(first)} rightly"


def _key(value: object) -> str:
    """How an option is typed does not matter: 72 or "72", Yes or yes."""
    return str(value).strip().lower()
