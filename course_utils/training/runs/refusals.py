"""What a command is told when it cannot do what it was asked, and numbers held to their bounds."""

import argparse
from collections.abc import Callable


class Refused(ValueError):
    """A command cannot do what it was asked; the message says why and how to mend it."""


def number(kind: type, low: float, high: float = float("inf"), open_ends: bool = False) -> Callable:
    """An argparse type: an int or a float between two ends, which `open_ends` leaves out."""

    def parse(text: str):
        try:
            value = kind(text)
        except ValueError:
            value = None
        inside = value is not None and (low < value < high if open_ends else low <= value <= high)
        if not inside:
            noun = "a whole number" if kind is int else "a number"
            ends = f"above {low:g}" if open_ends else f"from {low:g}"
            ends += "" if high == float("inf") else f"{' below' if open_ends else ' to'} {high:g}"
            raise argparse.ArgumentTypeError(f"{text!r} is not {noun} {ends}")
        return value

    return parse
