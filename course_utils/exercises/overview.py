"""What the learner has done so far, as a table; and how to start over."""

from html import escape

from course_utils.exercises import log
from course_utils.exercises.model import TAGS, Exercise

_OFTEN = 3  # answers with one kind of mistake, after which its rule is shown


class Progress:
    """The state of every exercise, chapter by chapter, and the mistakes made more than once."""

    def __init__(self, exercises: list[Exercise]):
        solved, attempts = log.solved(), log.attempts()
        self.states = {e.name: _state(e.name in solved, attempts[e.name]) for e in exercises}
        self.solved = sum(e.name in solved for e in exercises)
        self.tags = {tag: times for tag, times in log.tags().items() if tag in TAGS}
        self._exercises = exercises

    def __repr__(self) -> str:
        lines, notebook = [self._headline()], None
        for e in self._exercises:
            if e.notebook != notebook:
                notebook = e.notebook
                lines.append(notebook)
            lines.append(f"  {self.states[e.name]:<22} {e.name} ({e.minutes} min)")
        return "\n".join(lines + self._tag_lines())

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(e.notebook)}</td><td>{escape(e.name)}</td>"
            f"<td>{e.minutes} min</td><td>{escape(self.states[e.name])}</td></tr>"
            for e in self._exercises
        )
        heads = "".join(
            f'<th scope="col">{h}</th>' for h in ("notebook", "exercise", "time", "state")
        )
        tags = "".join(f"<p>{escape(line)}</p>" for line in self._tag_lines())
        return (
            f"<table><caption>{escape(self._headline())}</caption><tr>{heads}</tr>{rows}</table>"
            f"{tags}"
        )

    def _headline(self) -> str:
        return f"{self.solved} of {len(self._exercises)} exercises solved"

    def _tag_lines(self) -> list[str]:
        if not self.tags:
            return []
        lines = ["Kinds of mistakes so far:"]
        for tag, times in sorted(self.tags.items(), key=lambda item: (-item[1], item[0])):
            rule = f" - {TAGS[tag]}" if times >= _OFTEN else ""
            lines.append(f"  {times} x {tag}{rule}")
        return lines


def _state(solved: bool, attempts: int) -> str:
    if solved:
        return f"✓ solved, {attempts} tr{'y' if attempts == 1 else 'ies'}"
    if attempts:
        return f"… {attempts} tr{'y' if attempts == 1 else 'ies'}"
    return "○ not attempted"
