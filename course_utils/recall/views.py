"""Questions, marked answers and the overview, as plain text and as HTML.

No meaning is carried by colour alone.
"""

from dataclasses import dataclass
from html import escape

from course_utils.recall.card import Card

_HEADS = {
    "right": ("✓", "right"),
    "partly": ("◐", "partly right"),
    "wrong": ("✗", "not right"),
    "open": ("○", "not answered yet"),
    "unread": ("○", "not understood, so it does not count"),
}
_BORDERS = {"✓": "#1b7f5c", "◐": "#8a6d00", "✗": "#b3541e", "○": "#767676"}


class Questions:
    """What `ask` returns: cards to answer, each with the reason why it is asked now."""

    def __init__(self, asked: list[tuple[Card, str]], rest: str):
        self.cards, self._asked, self._rest = [card for card, _ in asked], asked, rest

    def __repr__(self) -> str:
        blocks = []
        for card, reason in self._asked:
            wanted = card.wanted.replace("\n", "\n    ")
            blocks.append(f"{card.id}  [{reason}]\n  {card.question}\n    {wanted}")
        return "\n".join([*blocks, self._rest])

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th scope="row" style="{_LEFT}"><code>{escape(card.id)}</code><br>'
            f'<span style="font-weight:normal">{escape(reason)}</span></th>'
            f'<td style="{_LEFT}">{html(card.question)}<br>'
            f"<small>{html(card.wanted)}</small></td></tr>"
            for card, reason in self._asked
        )
        table = f"<table><caption>Cards to answer</caption>{rows}</table>" if rows else ""
        return f"{table}<p>{html(self._rest)}</p>"


class Flips:
    """Cards to be turned over: each answer opens at a click."""

    def __init__(self, cards: list[Card]):
        self.cards = cards

    def __repr__(self) -> str:
        return "\n".join(f"{card.question}\n  {card.lesson}" for card in self.cards)

    def _repr_html_(self) -> str:
        return "".join(
            f"<details><summary>{html(card.question)} <code>{escape(card.id)}</code></summary>"
            f"<p>{html(card.lesson)}</p></details>"
            for card in self.cards
        )


@dataclass
class Marked:
    """One marked answer; its state is right, partly, wrong, open (none given) or unread."""

    name: str
    state: str
    lines: list[str]

    def __bool__(self) -> bool:
        return self.state == "right"

    def __repr__(self) -> str:
        return "\n  ".join([self._headline(), *self.lines])

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{html(line)}</p>" for line in self.lines)
        return (
            f'<div role="group" aria-label="answer to {escape(self.name)}" style="border-left:'
            f'4px solid {_BORDERS[_HEADS[self.state][0]]};padding-left:1em;margin-bottom:0.5em">'
            f"<p><strong>{escape(self._headline())}</strong></p>{lines}</div>"
        )

    def _headline(self) -> str:
        mark, words = _HEADS[self.state]
        return f"{mark} {self.name}: {words}"


class Round(list):
    """Several marked answers; true when all are right."""

    def __bool__(self) -> bool:
        return len(self) > 0 and all(list(self))

    def __repr__(self) -> str:
        return "\n".join(map(repr, self))

    def _repr_html_(self) -> str:
        return "".join(marked._repr_html_() for marked in self)


class Overview:
    """Cards by chapter and by kind of mistake: how many, new, due, learned.

    Args:
        headline: the sum, in words.
        chapters, tags: rows of a name and its counts under `heads`; tags also have the last one.
    """

    heads = ("cards", "new", "due now", "learning", "known a week", "exercise mistakes")

    def __init__(self, headline: str, chapters: list[tuple], tags: list[tuple]):
        self.headline, self.chapters, self.tags = headline, chapters, tags

    def __repr__(self) -> str:
        return "\n".join([self.headline, *self._lines("chapter", self.chapters), "",
                          *self._lines("kind of mistake", self.tags)])  # fmt: skip

    def _repr_html_(self) -> str:
        return (
            f"<p><strong>{escape(self.headline)}</strong></p>"
            + self._table("chapter", self.chapters)
            + self._table("kind of mistake", self.tags)
        )

    def _lines(self, title: str, rows: list[tuple]) -> list[str]:
        width = max(len(str(name)) for name, *_ in [(title,), *rows]) + 2
        table = [(title, *self.heads[: len(rows[0]) - 1]), *rows]
        return [
            f"{name:<{width}}" + "".join(f"{n:>{len(h) + 2}}" for n, h in zip(counts, self.heads))
            for name, *counts in table
        ]

    def _table(self, title: str, rows: list[tuple]) -> str:
        columns = self.heads[: len(rows[0]) - 1]
        heads = "".join(f'<th scope="col">{h}</th>' for h in (title, *columns))
        body = "".join(
            f'<tr><th scope="row" style="{_LEFT}">{escape(str(name))}</th>'
            + "".join(f"<td>{count}</td>" for count in counts)
            + "</tr>"
            for name, *counts in rows
        )
        return f"<table><tr>{heads}</tr>{body}</table>"


_LEFT = "text-align:left;vertical-align:top"


def html(text: str) -> str:
    """Text as HTML: escaped, backticks as code, its lines kept."""
    pieces = escape(text).split("`")
    text = "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces))
    return text.replace("\n", "<br>")
