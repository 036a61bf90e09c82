"""All cards, collected from the chapters."""

import difflib
from functools import cache
from importlib import import_module

from course_utils.recall.card import Card

PARTS = ("idea", "modules", "attention", "heads", "block", "decoder", "cost", "sizes")
ALOUD = "interview"  # the part whose cards are answered in sentences; asked only by its name


@cache
def deck() -> dict[str, Card]:
    """The cards by their id, in order.

    Raises:
        ValueError: two cards have one id.
    """
    cards: dict[str, Card] = {}
    for chapter, module in import_module("course_utils.chapters").contents("cards"):
        for fields in module.CARDS:
            if fields["id"] in cards:
                raise ValueError(f"two cards are called {fields['id']!r}")
            cards[fields["id"]] = Card(notebook=chapter.name, **fields)
    return cards


def find(name: object) -> Card | str:
    """The card of an id, or a sentence that says which ones come near."""
    cards = deck()
    if isinstance(name, str) and name in cards:
        return cards[name]
    near = difflib.get_close_matches(str(name), cards, n=3)
    tip = f" Did you mean {' or '.join(near)}?" if near else " ask() shows cards with their ids."
    return f"There is no card {name!r}.{tip}"


def select(part=None, chapter=None, tag=None) -> dict[str, Card] | str:
    """The cards that fit all the given words, or a sentence that says which words there are.

    Without any word these are all cards but those that are answered in sentences.

    Args:
        part: one of PARTS, or ALOUD.
        chapter: a number or the beginning of a notebook's name, 6 or "06".
        tag: a kind of mistake.
    """
    cards = list(deck().values())
    if part is None and chapter is None and tag is None:
        cards = [card for card in cards if card.part != ALOUD]
    if part is not None:
        cards = [card for card in cards if card.part == part]
    if chapter is not None:
        start = f"{chapter:02d}_" if isinstance(chapter, int) else str(chapter)
        cards = [card for card in cards if card.notebook.startswith(start)]
    if tag is not None:
        cards = [card for card in cards if card.tag == tag]
    if cards:
        return {card.id: card for card in cards}
    known = deck().values()
    chapters, tags = ({getattr(c, name) for c in known} - {""} for name in ("notebook", "tag"))
    return (
        f"No card fits. Parts: {', '.join((*PARTS, ALOUD))}. "
        f"Chapters: {', '.join(sorted(chapters))}. Tags: {', '.join(sorted(tags))}."
    )
