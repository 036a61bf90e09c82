"""What a benchmark found: a table to read, and JSON to keep."""

import platform
import time
from collections.abc import Mapping

import torch

from course_utils.bench.rounds import OURS, Timing, ratios

Results = Mapping[str, Mapping[str, Timing]]


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


def table(results: Results) -> str:
    """One block a measurement: rates, and how many times faster the course is (lowest..highest)."""
    blocks = []
    for title, timings in results.items():
        lines = [title]
        for name, timing in timings.items():
            text = f"  {name:22}{timing.rate:10,.1f} /s"
            if name != OURS:
                low, middle, high = ratios(timings[OURS], timing)
                text += f"   course x {middle:5.2f}  ({low:.2f}..{high:.2f})"
            lines.append(text)
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def as_json(results: Results, device: torch.device) -> dict:
    """All that was measured, by title and name."""
    return {
        "machine": machine(device),
        "device": str(device),
        "results": {
            title: {
                name: {"seconds": timing.seconds, "work": timing.work, "rate": timing.rate}
                for name, timing in timings.items()
            }
            for title, timings in results.items()
        },
    }
