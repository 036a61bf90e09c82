"""A learner who is not there: what the schedule would ask over the coming weeks.

FSRS says with which chance a card is remembered; here a seeded coin decides. So this shows what the
model expects, and not what a person will do.
"""

import random
from datetime import datetime, timedelta, timezone

from course_utils.recall.schedule import SCHEDULER, remember

START = datetime(2026, 1, 5, 9, tzinfo=timezone.utc)
FIRST_RIGHT = 0.7  # an assumption: who has read the chapters knows most of it
_DAY = timedelta(days=1)


def intervals(ratings: list[str]) -> list[float]:
    """Days until the next question after each of these answers, every card asked when it is due."""
    memory, now, found = None, START, []
    for rating in ratings:
        memory = remember(memory, rating, now)
        found.append((memory.due - now) / _DAY)
        now = memory.due
    return found


def workload(cards: int, days: int, new: int, seed: int = 0) -> dict[str, list[int]]:
    """Questions a day for a learner who comes every morning and takes up to `new` new cards.

    A card that fails is asked again at once, and then counts as hard. Of the new cards FIRST_RIGHT
    are known at the first try.

    Returns:
        "new" and "again asked": counts for each day.
    """
    coin, memories = random.Random(seed), []
    asked: dict[str, list[int]] = {"new": [], "again asked": []}
    for day in range(days):
        now = START + day * _DAY
        due = [i for i, memory in enumerate(memories) if memory.due <= now]
        for i in due:
            chance = SCHEDULER.get_card_retrievability(memories[i], now)
            memories[i] = _answered(memories[i], coin.random() < chance, now)
        fresh = min(new, cards - len(memories))
        memories += [_answered(None, coin.random() < FIRST_RIGHT, now) for _ in range(fresh)]
        asked["new"].append(fresh)
        asked["again asked"].append(len(due))
    return asked


def _answered(memory, right: bool, now: datetime):
    if right:
        return remember(memory, "good", now)
    return remember(remember(memory, "again", now), "hard", now + timedelta(minutes=1))


def chance_over_time(review_days: list[int], days: int) -> list[float]:
    """FSRS's chance to remember a card on each day that was answered right on `review_days`."""
    memory, chances = None, []
    for day in range(days):
        now = START + day * _DAY
        for _ in range(review_days.count(day)):
            memory = remember(memory, "good", now)
        chances.append(SCHEDULER.get_card_retrievability(memory, now) if memory else 0.0)
    return chances
