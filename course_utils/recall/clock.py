"""What time it is for the schedule; COURSE_CLOCK stops it, so that runs can be compared."""

import os
from datetime import datetime, timezone


def now() -> datetime:
    """The time in UTC: COURSE_CLOCK (ISO 8601) where it is set, else the real one."""
    fixed = read(os.environ.get("COURSE_CLOCK", ""))
    return fixed or datetime.now(timezone.utc)


def read(text: object) -> datetime | None:
    """A time in UTC from a text or a datetime; None when it is neither. No zone means local."""
    try:
        time = text if isinstance(text, datetime) else datetime.fromisoformat(text)
        return time.astimezone(timezone.utc)
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def span(start: datetime, end: datetime) -> str:
    """How long it is from start to end, in the largest unit that fits."""
    seconds = max(0, (end - start).total_seconds())
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            count = round(seconds / size)
            return f"{count} {unit}{'s' if count != 1 else ''}"
    return "less than a minute"
