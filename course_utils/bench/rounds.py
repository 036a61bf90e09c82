"""Timing by turns: what the machine does meanwhile hits all alike, so that ratios hold."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

OURS = "ours"
FLOOR = "products alone"  # no system, but what every one must do


@dataclass(frozen=True)
class Measurement:
    """One task at one shape: what each system reached, a value a round, in one unit."""

    task: str
    shape: str
    unit: str
    values: Mapping[str, list[float]]

    def middle(self, system: str) -> float:
        """The value of the middle round."""
        return statistics.median(self.values[system])

    def ratio(self, system: str) -> tuple[float, float, float]:
        """Ours divided by the system's of the same round: lowest, middle and highest."""
        pairs = zip(self.values[OURS], self.values[system], strict=True)
        each = sorted(ours / theirs for ours, theirs in pairs)
        return each[0], statistics.median(each), each[-1]


def take_turns(
    calls: Mapping[str, Callable[[], object]],
    rounds: int,
    seconds_of: Callable[[Callable[[], object]], float] | None = None,
) -> dict[str, list[float]]:
    """Call all of them in every round, each round from another one on.

    Args:
        seconds_of: makes a call and says what it took; by default here, after each was called once
            to warm up.

    Returns:
        the seconds of every round, by name.
    """
    names = list(calls)
    if seconds_of is None:
        seconds_of = _seconds
        for call in calls.values():
            call()
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            seconds[name].append(seconds_of(calls[name]))
    return seconds


def _seconds(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def rates(
    calls: Mapping[str, Callable[[], object]], work: float, rounds: int, device: torch.device
) -> dict[str, list[float]]:
    """Take turns, count the same work for each call, and give it a second, by name and round."""
    seconds = take_turns(synchronised(calls, device), rounds)
    return {name: [work / each for each in times] for name, times in seconds.items()}


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
