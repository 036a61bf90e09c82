"""What the learner has done so far, which mistakes come back, and what would train them."""

from collections import Counter
from datetime import datetime, timezone
from html import escape
from importlib import import_module

from course_utils.checker import log
from course_utils.checker.exercise import TAGS, Exercise

_BAR = 20  # characters of a full bar
_MOST_KINDS = 8


class Progress:
    """What is solved, chapter by chapter or within one, and the kinds of mistakes made."""

    def __init__(self, exercises: list[Exercise], chapter: str | int | None = None):
        """The exercises of the course; `chapter`, a notebook's name or number, shows its own.

        Raises ValueError if no exercise stands in that chapter.
        """
        self._solved, attempts = log.solved(), log.attempts()
        self.states = {e.name: _state(e.name in self._solved, attempts[e.name]) for e in exercises}
        self.tags = {tag: kind for tag, kind in log.kinds().items() if tag in TAGS}
        chapters = list(dict.fromkeys(e.notebook for e in exercises))
        self._chapter = None if chapter is None else _meant(chapter, chapters)
        self._every = exercises
        if self._chapter is None:
            self._exercises = exercises
            self._heads = ("chapter", "solved", "tried", "exercises", "")
            self._rows = [_count(name, exercises, self._solved, attempts) for name in chapters]
        else:
            self._exercises = [e for e in exercises if e.notebook == self._chapter]
            self._heads = ("exercise", "time", "state")
            self._rows = [
                (e.name, f"{e.minutes} min", self.states[e.name]) for e in self._exercises
            ]
        self.solved = sum(e.name in self._solved for e in self._exercises)

    def __repr__(self) -> str:
        table = [self._heads, *self._rows] if self._rows else []
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(f"{text:{width}}" for text, width in zip(row, widths, strict=True)).rstrip()
            for row in table
        ]
        return "\n".join([self._headline(), *lines, *self._lessons()])

    def _repr_html_(self) -> str:
        heads = "".join(f'<th scope="col">{head}</th>' for head in self._heads)
        rows = "".join(
            f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in self._rows
        )
        lessons = "".join(f"<p>{escape(line)}</p>" for line in self._lessons())
        return (
            f"<table><caption>{escape(self._headline())}</caption><tr>{heads}</tr>{rows}</table>"
            f"{lessons}"
        )

    def _headline(self) -> str:
        where = f" in {self._chapter}" if self._chapter else ""
        return f"{self.solved} of {len(self._exercises)} exercises{where} solved"

    def _lessons(self) -> list[str]:
        """The kinds of mistakes, the wrong guesses, and what to do next."""
        kinds = sorted(self.tags.items(), key=lambda item: (-item[1][0], item[0]))
        lines = ["Kinds of mistakes so far:"] if kinds else []
        today = datetime.now(timezone.utc).date().isoformat()  # as in the log
        for tag, (times, last) in kinds[:_MOST_KINDS]:
            when = "today" if last == today else f"on {last}"
            day = f", last {when}" if last else ""
            lines.append(f"  {times} x {tag}{day} - {TAGS[tag]}")
        if wrong := log.wrong_guesses():
            lines.append(f"Guessed otherwise: {', '.join(wrong)}")
        if kinds and (training := self._training(kinds[0][0])):
            lines.append(f"To train {kinds[0][0]!r}: {training}")
        return lines

    def _training(self, tag: str) -> str:
        """An open exercise in which this mistake is known, and a card that guards against it."""
        open_one = open_exercise(self._every, [tag])
        contents = import_module("course_utils.chapters").contents("cards")
        cards = [
            card["id"] for _, module in contents for card in module.CARDS if card["tag"] == tag
        ]
        found = [f"exercise {open_one.name}"] if open_one else []
        return " and ".join(found + [f"card {name}" for name in cards[:1]])


def open_exercise(exercises: list[Exercise], tags: list[str]) -> Exercise | None:
    """An exercise that is not solved and knows one of these mistakes; one that was tried first.

    Args:
        tags: kinds of mistakes, the one to be trained first in front.
    """
    solved, tries = log.solved(), log.attempts()
    ordered = sorted(exercises, key=lambda e: not tries[e.name])
    fit = (e for tag in tags for e in ordered if tag in e.tags and e.name not in solved)
    return next(fit, None)


def _count(
    chapter: str, exercises: list[Exercise], solved: set[str], attempts: Counter[str]
) -> tuple[str, ...]:
    """A chapter's row: its name, exercises solved, tried without success so far, all, a bar."""
    names = {e.name for e in exercises if e.notebook == chapter}
    done, tried = len(names & solved), sum(attempts[name] > 0 for name in names - solved)
    full = round(_BAR * done / len(names))
    return chapter, *map(str, (done, tried, len(names))), "█" * full + "░" * (_BAR - full)


def _meant(chapter: str | int, chapters: list[str]) -> str:
    """The notebook of that name, or of that number."""
    number = f"{chapter}".zfill(2) if f"{chapter}".isdigit() else ""
    for name in chapters:
        if chapter == name or number == name.split("_")[0]:
            return name
    raise ValueError(f"no exercise is in {chapter!r}; chapters: {', '.join(chapters)}")


def _state(solved: bool, attempts: int) -> str:
    if solved:
        return f"✓ solved, {attempts} tr{'y' if attempts == 1 else 'ies'}"
    if attempts:
        return f"… {attempts} tr{'y' if attempts == 1 else 'ies'}"
    return "○ not attempted"
