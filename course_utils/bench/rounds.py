"""Timing by turns: what the machine does meanwhile hits all alike, so that ratios hold."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

OURS = "course"


@dataclass(frozen=True)
class Timing:
    """Seconds of each round, and how much work one call does."""

    seconds: list[float]
    work: float

    @property
    def rate(self) -> float:
        """Work a second, in the middle round."""
        return self.work / statistics.median(self.seconds)


def take_turns(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Call each once to warm up, then all of them in every round, each round from another one on.

    Returns:
        the seconds of every round, by name.
    """
    names = list(calls)
    for call in calls.values():
        call()
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            begun = time.perf_counter()
            calls[name]()
            seconds[name].append(time.perf_counter() - begun)
    return seconds


def ratios(ours: Timing, theirs: Timing) -> tuple[float, float, float]:
    """How many times faster ours is: lowest, middle and highest over the rounds."""
    scale = ours.work / theirs.work
    each = sorted(scale * b / a for a, b in zip(ours.seconds, theirs.seconds, strict=True))
    return each[0], statistics.median(each), each[-1]


def timed(
    calls: Mapping[str, Callable[[], object]], work: float, rounds: int, device: torch.device
) -> dict[str, Timing]:
    """Take turns, and count for each call the same work."""
    seconds = take_turns(synchronised(calls, device), rounds)
    return {name: Timing(each, work) for name, each in seconds.items()}


def synchronised(
    calls: Mapping[str, Callable[[], object]], device: torch.device
) -> dict[str, Callable[[], None]]:
    """The calls, each ending when the accelerator has really done its work."""
    if device.type == "cpu":
        return dict(calls)

    def waiting(call: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            call()
            torch.accelerator.synchronize()

        return run

    return {name: waiting(call) for name, call in calls.items()}
