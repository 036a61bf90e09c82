"""When each card comes back: all reviews of the learner's log, replayed through FSRS.

Nothing but the log is kept, so the schedule survives every restart, and a line that cannot be
read costs one review. FSRS (`fsrs`) models how memory fades and asks just before it is lost.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from fsrs import Card as Memory
from fsrs import Rating, Scheduler

from course_utils.checker import log
from course_utils.recall import clock
from course_utils.recall.card import Card

SHORTLY = timedelta(minutes=10)  # a card that failed is asked again after this
SITTING = timedelta(hours=1)  # a right answer so soon after a wrong one was "hard"
SCHEDULER = Scheduler(
    learning_steps=(SHORTLY,), relearning_steps=(SHORTLY,), enable_fuzzing=False
)  # asks when the chance to remember has fallen to 90 %
AHEAD = timedelta(days=1)  # a review further ahead of now was noted by a clock that was wrong
YEARS = range(1970, 2200)  # of reviews; beyond them sums of times overflow
RATINGS = {"again": Rating.Again, "hard": Rating.Hard, "good": Rating.Good}


@dataclass
class History:
    """What has happened to one card."""

    memory: Memory
    ratings: list[str]

    @property
    def due(self) -> datetime:
        """When it is to be asked next."""
        return self.memory.due

    @property
    def failed_last(self) -> bool:
        """Whether the last answer was wrong."""
        return self.ratings[-1] == "again"

    @property
    def wrong_tries(self) -> int:
        """How many wrong answers came in a row, up to now."""
        rights = [i for i, rating in enumerate(self.ratings, 1) if rating != "again"]
        return len(self.ratings) - max(rights, default=0)


def remember(memory: Memory | None, rating: str, now: datetime) -> Memory:
    """The memory of a card after one more review."""
    memory = memory or Memory(card_id=0, due=now)  # FSRS's own ids are times: not repeatable
    return SCHEDULER.review_card(memory, RATINGS[rating], now)[0]


def histories(now: datetime) -> dict[str, History]:
    """The history of every card that was answered, by its id.

    A review that lies ahead of now is passed over: by it a card would not come back for years.
    """
    found: dict[str, History] = {}
    for entry in log.read():
        if entry["event"] == "forget":
            found = {name: h for name, h in found.items() if entry.get("card") not in (name, None)}
        time, rating, name = clock.read(entry.get("time")), entry.get("rating"), entry.get("card")
        if entry["event"] != "review" or rating not in RATINGS or not name:
            continue
        if time is None or time.year not in YEARS or time - now > AHEAD:
            continue
        before = found.get(name)
        memory = remember(before and before.memory, rating, time)
        found[name] = History(memory, [*(before.ratings if before else []), rating])
    return found


def rating_of(right: bool, history: History | None, now: datetime) -> str | None:
    """How an answer counts: again, hard or good; None when it comes too early to count.

    A right answer before the card is due would only show that the last one is not yet forgotten.
    """
    if not right:
        return "again"
    if history is None:
        return "good"
    if history.failed_last:
        return "hard" if now - history.memory.last_review < SITTING else "good"
    return "good" if now >= history.due else None


def write(card: Card, rating: str, now: datetime) -> str:
    """Note a review; returns "" or why that could not be done."""
    time = now.isoformat(timespec="seconds")
    return log.write("review", time=time, card=card.id, rating=rating)


def queue(cards: dict[str, Card], now: datetime, new: int) -> list[tuple[Card, str]]:
    """The cards to ask now, each with the reason: what is due, then at most `new` new ones.

    In both groups cards come first whose tag stands for mistakes made in the exercises; then what
    has waited longest.
    """
    known, made = histories(now), log.tags()
    due = [card for name, card in cards.items() if name in known and known[name].due <= now]
    due.sort(key=lambda card: (-made[card.tag], known[card.id].due))
    fresh = sorted((c for n, c in cards.items() if n not in known), key=lambda c: -made[c.tag])
    asked = [(card, f"due for {clock.span(known[card.id].due, now)}") for card in due]
    asked += [(card, "new") for card in fresh[: max(0, new)]]
    return [(card, reason + _mistakes(made[card.tag], card.tag)) for card, reason in asked]


def _mistakes(count: int, tag: str) -> str:
    times = f"{count} mistake{'s' if count != 1 else ''}"
    return f"; {times} in exercises: {tag}" if count and tag else ""
