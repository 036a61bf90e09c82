"""What a benchmark found: a table to read, and records to keep."""

import platform
import time
from collections.abc import Iterable, Mapping, Sequence

import torch

from course_utils.bench.rounds import OURS, Measurement


def machine(device: torch.device) -> str:
    """The processor or card, how many threads, and the versions that matter."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else _processor()
    return (
        f"{name}, {torch.get_num_threads()} threads, torch {torch.__version__}, "
        f"Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}"
    )


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model n")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def table(measurements: Iterable[Measurement]) -> str:
    """One block a measurement: the middle values, and ours divided by each (lowest..highest)."""
    blocks = []
    for found in measurements:
        lines = [f"{found.task}, {found.shape}: {found.unit}"]
        for system in found.values:
            text = f"  {system:22}{found.middle(system):10,.1f}"
            if system != OURS:
                low, middle, high = found.ratio(system)
                text += f"   ours / this {middle:5.2f}  ({low:.2f}..{high:.2f})"
            lines.append(text)
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def records(measurements: Iterable[Measurement], device: torch.device) -> list[dict]:
    """One record a system measured: `value` is that of the middle round, `rounds` are all."""
    return [
        {
            "task": found.task,
            "shape": found.shape,
            "system": system,
            "value": found.middle(system),
            "unit": found.unit,
            "rounds": rounds,
            "machine": machine(device),
        }
        for found in measurements
        for system, rounds in found.values.items()
    ]


def measurements(records: Sequence[Mapping]) -> list[Measurement]:
    """The reverse of `records`."""
    found: dict[tuple, dict[str, list[float]]] = {}
    for record in records:
        key = record["task"], record["shape"], record["unit"]
        found.setdefault(key, {})[record["system"]] = record["rounds"]
    return [Measurement(*key, values) for key, values in found.items()]
