"""The run of the benchmark that the README quotes and figures/decoding_cost.svg draws."""

import json
from collections.abc import Iterable
from pathlib import Path

from course_utils.bench.decoding_speed import CASES, TASK, shape
from course_utils.bench.peers import PEERS
from course_utils.bench.results import measurements
from course_utils.bench.rounds import OURS, Measurement

FILE = Path(__file__).with_name("measured.json")  # written by bench --json


def kept_records() -> list[dict]:
    """What `bench --json` wrote."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def seconds_by_steps(found: Iterable[Measurement], sentences: int) -> dict[str, list[tuple]]:
    """Seconds to decode so many sentences, by system: (steps, seconds), the middle round."""
    steps = {shape(n, steps): steps for n, steps in CASES if n == sentences}
    curves: dict[str, list[tuple[int, float]]] = {}
    for case in found:
        if case.task == TASK and case.shape in steps:
            for system in case.values:
                seconds = sentences / case.middle(system)
                curves.setdefault(system, []).append((steps[case.shape], seconds))
    return curves


def as_markdown(records: list[dict]) -> str:
    """A table: our value, and ours divided by each other system's, with the spread of rounds."""
    found = measurements(records)
    columns = [system for system in PEERS if system != OURS]
    lines = [
        f"| task | ours | {' | '.join(f'÷ {system}' for system in columns)} | ÷ others |",
        "|---|---|" + "---|" * len(columns) + "---|",
    ]
    for case in found:
        cells = [_ratio(case, system) if system in case.values else "" for system in columns]
        others = [system for system in case.values if system not in PEERS]
        cells.append("<br>".join(f"{system}: {_ratio(case, system)}" for system in others))
        middle = case.middle(OURS)
        value = f"{middle:,.0f}" if middle >= 100 else f"{middle:.2g}"
        lines.append(f"| {case.task}, {case.shape} | {value} {case.unit} | {' | '.join(cells)} |")
    machines = dict.fromkeys(record["machine"] for record in records)
    return "\n".join([*lines, "", f"Measured on: {'; '.join(machines)}."])


def _ratio(case: Measurement, system: str) -> str:
    low, middle, high = case.ratio(system)
    spread = f" ({low:.2f}–{high:.2f})" if len(case.values[system]) > 1 else ""
    return f"{middle:.2f}{spread}"
