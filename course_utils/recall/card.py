"""What a card is, and the short form in which the cards are written."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Card:
    """One question with a checked answer.

    Attributes:
        id: the name under which it is answered.
        part: the subject it belongs to, one of `deck.PARTS`, such as "heads".
        notebook: the chapter that teaches it, such as "06_multi_head_attention".
        tag: the mistake that it guards against, one of `checker.exercise.TAGS`; "" for none.
        rows: the items of the notes that it asks for, such as "002-64".
        question, why: shown before and after the answer.
        correction: a sentence that is often heard, set right; "" for none.
        answer: one of the kinds of `computed` and `chosen`.
    """

    id: str
    part: str
    notebook: str
    tag: str
    rows: tuple[str, ...]
    question: str
    answer: Any
    why: str
    correction: str = ""

    @property
    def wanted(self) -> str:
        """How the answer is typed; the options of a choice."""
        options = getattr(self.answer, "options", {})
        lines = [f"{letter}: {text}" for letter, text in options.items()]
        return "\n".join([*lines, self.answer.wanted])

    @property
    def lesson(self) -> str:
        """The right answer with its reason, and what is often said, set right."""
        correction = f" Often heard: {self.correction}" if self.correction else ""
        end = "" if self.answer.right.endswith("。") else "."
        return f"{self.answer.right}{end} {self.why}{correction}".strip()


def card(id, part, tag, rows, question, answer, why, correction="") -> dict:
    """The fields of a card but for its notebook, whose folder it stands in."""
    return {
        "id": id,
        "part": part,
        "tag": tag,
        "rows": tuple(rows.split()),
        "question": question,
        "answer": answer,
        "why": why,
        "correction": correction,
    }
