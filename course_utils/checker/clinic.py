"""Predict first, then run: the wagers of the mistakes clinic.

guess = ...                                     # the learner puts an answer here, or leaves it
settle("C-12", guess, found, options)           # compares it with what the cell has found
clinic()                                        # how many were guessed, and how many rightly

What holds in each case stands in clinic.tsv, so that a cell does not give it away before it runs.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from course_utils.checker import log
from course_utils.checker.report import Text


def settle(case: str, guess: object, found: object, options: Sequence[object]) -> Text:
    """Compare a guess with what a cell has found, and say what is right.

    Args:
        case: number of the correction, such as "C-12".
        guess: one of the options, or `...` for none.
        found: what the cell computed.
        options: what could be guessed; `found` must be among them.

    Returns:
        Text for the notebook: what was found, how good the guess was, and what holds.

    Raises:
        ValueError: `found` is no option, so that nobody could have guessed it, or clinic.tsv has no
            such case.
    """
    if case not in statements():
        raise ValueError(f"{case} is no case of the clinic")
    right = statements()[case]
    known = {_key(option): str(option) for option in options}
    names = ", ".join(known.values())
    if _key(found) not in known:
        raise ValueError(f"{case}: the cell found {found}, which is none of {names}")
    head = f"{case}: {known[_key(found)]}."
    if guess is ...:
        return Text(f"{head} No guess yet.\n{right}")
    if _key(guess) not in known:
        return Text(f"{case}: guess one of {names}; {guess} is none of them.")
    good = _key(guess) == _key(found)
    note = log.write("clinic", case=case, good=good)
    verdict = "Well guessed." if good else f"You guessed {known[_key(guess)]}."
    return Text("\n".join(filter(None, [f"{head} {verdict}", right, note])))


@cache
def statements() -> dict[str, str]:
    """What holds, in a sentence, by the number of the case."""
    table = Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8")
    return dict(line.split("\t") for line in table.splitlines())


def clinic() -> Text:
    """How many cases were guessed, and which first guesses were wrong."""
    first: dict[str, bool] = {}
    for entry in log.since_reset():
        if entry["event"] == "clinic":
            first.setdefault(str(entry.get("case")), bool(entry.get("good")))
    wrong = [case for case, good in first.items() if not good]
    lines = [f"{len(first)} cases guessed, {len(first) - len(wrong)} rightly at the first guess"]
    return Text("\n".join(lines + ([f"worth another look: {', '.join(wrong)}"] if wrong else [])))


def _key(value: object) -> str:
    """How an option is typed does not matter: 72 or "72", Yes or yes."""
    return str(value).strip().lower()
