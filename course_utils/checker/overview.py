"""What the learner has done so far, as a table; and how to start over."""

from collections import Counter
from html import escape

from course_utils.checker import log
from course_utils.checker.model import TAGS, Exercise

_OFTEN = 3  # answers with one kind of mistake, after which its rule is shown


class Progress:
    """What is solved, chapter by chapter or within one, and the mistakes made more than once."""

    def __init__(self, exercises: list[Exercise], chapter: str | int | None = None):
        """The exercises of the course; `chapter`, a notebook's name or number, shows its own.

        Raises ValueError if no exercise stands in that chapter.
        """
        solved, attempts = log.solved(), log.attempts()
        self.states = {e.name: _state(e.name in solved, attempts[e.name]) for e in exercises}
        self.tags = {tag: times for tag, times in log.tags().items() if tag in TAGS}
        chapters = list(dict.fromkeys(e.notebook for e in exercises))
        self._chapter = None if chapter is None else _meant(chapter, chapters)
        if self._chapter is None:
            self._exercises = exercises
            self._heads = ("chapter", "solved", "tried", "exercises")
            self._rows = [_count(name, exercises, solved, attempts) for name in chapters]
        else:
            self._exercises = [e for e in exercises if e.notebook == self._chapter]
            self._heads = ("exercise", "time", "state")
            self._rows = [
                (e.name, f"{e.minutes} min", self.states[e.name]) for e in self._exercises
            ]
        self.solved = sum(e.name in solved for e in self._exercises)

    def __repr__(self) -> str:
        table = [self._heads, *self._rows] if self._rows else []
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(f"{text:{width}}" for text, width in zip(row, widths, strict=True)).rstrip()
            for row in table
        ]
        return "\n".join([self._headline(), *lines, *self._tag_lines()])

    def _repr_html_(self) -> str:
        heads = "".join(f'<th scope="col">{head}</th>' for head in self._heads)
        rows = "".join(
            f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in self._rows
        )
        tags = "".join(f"<p>{escape(line)}</p>" for line in self._tag_lines())
        return (
            f"<table><caption>{escape(self._headline())}</caption><tr>{heads}</tr>{rows}</table>"
            f"{tags}"
        )

    def _headline(self) -> str:
        where = f" in {self._chapter}" if self._chapter else ""
        return f"{self.solved} of {len(self._exercises)} exercises{where} solved"

    def _tag_lines(self) -> list[str]:
        if not self.tags:
            return []
        lines = ["Kinds of mistakes so far:"]
        for tag, times in sorted(self.tags.items(), key=lambda item: (-item[1], item[0])):
            rule = f" - {TAGS[tag]}" if times >= _OFTEN else ""
            lines.append(f"  {times} x {tag}{rule}")
        return lines


def _count(
    chapter: str, exercises: list[Exercise], solved: set[str], attempts: Counter[str]
) -> tuple[str, ...]:
    """A chapter's row: its name, exercises solved, tried without success so far, and all."""
    names = {e.name for e in exercises if e.notebook == chapter}
    tried = sum(attempts[name] > 0 for name in names - solved)
    return chapter, *map(str, (len(names & solved), tried, len(names)))


def _meant(chapter: str | int, chapters: list[str]) -> str:
    """The notebook of that name, or of that number."""
    number = f"{chapter}".zfill(2)
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
