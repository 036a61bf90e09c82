"""The run of the benchmark that the README quotes and figures/decoding_cost.svg draws."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from course_utils.bench.rounds import OURS, Timing, ratios

FILE = Path(__file__).with_name("measured.json")  # written by bench --json
_DECODING = re.compile(r"greedy decoding, (\d+) at once, (\d+) steps")


def measured() -> dict:
    """The machine, and every timing by title and name."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def timings(data: Mapping) -> dict[str, dict[str, Timing]]:
    """What was measured, by title and name."""
    return {
        title: {name: Timing(entry["seconds"], entry["work"]) for name, entry in entries.items()}
        for title, entries in data["results"].items()
    }


def seconds_by_steps(data: Mapping, sentences: int) -> dict[str, list[tuple[int, float]]]:
    """Seconds to decode so many sentences, by name: (steps, seconds), the middle round."""
    curves: dict[str, list[tuple[int, float]]] = {}
    for title, entries in timings(data).items():
        match = _DECODING.fullmatch(title)
        if match and int(match[1]) == sentences:
            for name, timing in entries.items():
                curves.setdefault(name, []).append((int(match[2]), timing.work / timing.rate))
    return curves


def as_markdown(data: Mapping) -> str:
    """A table: the course's rate, and how many times faster it is than each other."""
    found = timings(data)
    others = list(dict.fromkeys(n for entries in found.values() for n in entries if n != OURS))
    lines = [
        f"| measured | course, a second | {' | '.join(f'x {name}' for name in others)} |",
        "|---|---" + "|---" * len(others) + "|",
    ]
    for title, entries in found.items():
        cells = [_cell(entries, name) for name in others]
        lines.append(f"| {title} | {entries[OURS].rate:,.0f} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"Measured on: {data['machine']}."])


def _cell(entries: Mapping[str, Timing], name: str) -> str:
    if name not in entries:
        return ""
    low, middle, high = ratios(entries[OURS], entries[name])
    return f"{middle:.1f} ({low:.1f}–{high:.1f})"
