"""Recall: questions that come back when they are about to be forgotten, and answers checked.

ask()                                  # what is due, and a few new cards
ask(part="heads", new=4)               # or chapter=6, or tag="scale"
answer("head-size", 64)                # right or not, and why; plans when it comes back
answer({"head-size": 64, "ids": ...})  # several at once
reveal("head-size")                    # give up: shows the answer, counts as not known
flip("say-scale", "say-heads")         # questions to answer aloud; a click shows a model answer
overview()                             # cards by chapter and by kind of mistake
forget("head-size")                    # start a card anew; forget() starts all anew
"""

from datetime import datetime
from typing import Any

from course_utils.checker import catalogue, log
from course_utils.checker.overview import open_exercise
from course_utils.checker.report import Text
from course_utils.recall import clock, schedule
from course_utils.recall.card import Card
from course_utils.recall.deck import deck, find, select
from course_utils.recall.views import Flips, Marked, Overview, Questions, Round

__all__ = ["Card", "answer", "ask", "deck", "flip", "forget", "overview", "reveal"]
_NOTHING = object()
_WEEK = 7  # days


def ask(
    *, part=None, chapter=None, tag=None, new: int = 5, count: int = 12, now: datetime | None = None
) -> Questions | Text:
    """Show the cards that are due, and some new ones.

    Args:
        part, chapter, tag: only cards that fit, see `deck.select`.
        new: at most so many cards that were never answered.
        count: at most so many cards in all.
        now: another time than that of the clock.
    """
    chosen = select(part, chapter, tag)
    if isinstance(chosen, str):
        return Text(chosen)
    time = _time(now)
    asked = schedule.queue(chosen, time, new)[: max(0, count)]
    unseen = len(chosen.keys() - schedule.histories(time).keys())
    rest = 'Answer with answer("id", value).' if asked else "Nothing is due."
    if unseen:
        rest += f" Never answered so far: {unseen} of {len(chosen)} cards."
    kinds = [tag for tag, _ in log.tags().most_common() if tag in {c.tag for c in chosen.values()}]
    if exercise := open_exercise(catalogue(), kinds):
        rest += f" An exercise against the same mistakes: {exercise.name} in {exercise.notebook}."
    return Questions(asked, rest)


def answer(
    card: str | dict[str, Any],
    value: Any = _NOTHING,
    *,
    save: bool = True,
    now: datetime | None = None,
) -> Marked | Round | Text:
    """Mark an answer and plan when its card comes back.

    Args:
        card: the id of a card; or a dictionary from ids to answers.
        value: the answer; `...` is none yet.
        save: False only checks: nothing is noted or planned.
        now: another time than that of the clock.

    Returns:
        What a notebook displays, true when right. Nothing is raised for a wrong answer.
    """
    if isinstance(card, dict):
        return Round(answer(name, given, save=save, now=now) for name, given in card.items())
    found = find(card)
    if isinstance(found, str):
        return Marked(str(card), "unread", [found])
    if value is ... or value is _NOTHING:
        return Marked(found.id, "open", [found.answer.wanted])
    judged = found.answer.judge(value)
    if judged.right is None:
        return Marked(found.id, "unread", [judged.message])
    tries, lines = _note(found, judged.right, _time(now)) if save else (0, [])
    if judged.right:
        return Marked(found.id, "right", [found.lesson, *lines])
    state = "partly" if judged.partly else "wrong"
    if tries > 1:
        return Marked(found.id, state, [judged.message, found.lesson, *lines])
    more = f'Try again, or see the answer with reveal("{found.id}").'
    return Marked(found.id, state, [judged.message, more, *lines])


def reveal(card: str, *, now: datetime | None = None) -> Text:
    """Show the right answer with its reason; the card counts as not known and comes back soon."""
    found = find(card)
    if isinstance(found, str):
        return Text(found)
    _, lines = _note(found, False, _time(now))
    return Text("\n".join([found.question, found.lesson, *lines]))


def flip(*cards: str) -> Flips | Text:
    """Questions whose answers open at a click. Nothing is noted or planned.

    Args:
        cards: their ids.
    """
    found = [find(card) for card in cards]
    unknown = [card for card in found if isinstance(card, str)]
    return Text("\n".join(unknown)) if unknown else Flips(found)


def forget(card: str | None = None) -> Text:
    """Start a card anew, or all; the log itself keeps every line."""
    if card is None:
        return Text(f"All cards start anew. {log.write('forget')}".strip())
    found = find(card)
    if isinstance(found, str):
        return Text(found)
    return Text(f"{found.id} starts anew. {log.write('forget', card=found.id)}".strip())


def overview(*, now: datetime | None = None) -> Overview:
    """How many cards are new, due and known, by chapter and by kind of mistake."""
    time, made = _time(now), log.tags()
    known = schedule.histories(time)

    def row(name: str, cards: list[Card]) -> tuple:
        seen = [known[card.id] for card in cards if card.id in known]
        due = sum(history.due <= time for history in seen)
        sure = sum((history.due - time).days >= _WEEK for history in seen)
        return name, len(cards), len(cards) - len(seen), due, len(seen) - due - sure, sure

    cards = list(deck().values())
    chapters = {c.notebook: [d for d in cards if d.notebook == c.notebook] for c in cards}
    tags = {c.tag: [d for d in cards if d.tag == c.tag] for c in cards if c.tag}
    _, count, new, due, *_ = row("", cards)
    return Overview(
        f"{count} cards: {new} new, {due} due now",
        [row(name, own) for name, own in chapters.items()],
        sorted(((*row(tag, own), made[tag]) for tag, own in tags.items()), key=_worst_first),
    )


def _worst_first(row: tuple) -> tuple:
    return -row[-1], -row[3], row[0]


def _note(card: Card, right: bool, now: datetime) -> tuple[int, list[str]]:
    """Write the review down: how many wrong tries there now are, and what to tell the learner."""
    rating = schedule.rating_of(right, schedule.histories(now).get(card.id), now)
    if rating is None:
        due = schedule.histories(now)[card.id].due
        return 0, [f"It is not due yet, so this does not count. Due in {clock.span(now, due)}."]
    note = schedule.write(card, rating, now)
    if note:
        return 1, [note]
    history = schedule.histories(now)[card.id]
    return history.wrong_tries, [f"Comes back in {clock.span(now, history.due)}."]


def _time(now: datetime | None) -> datetime:
    return clock.read(now) or clock.now()
