"""Peak memory of one training step: each system in a process of its own, which prints it."""

import subprocess
import sys

import torch

from course_utils.bench.peers import PEERS, available
from course_utils.bench.rounds import FLOOR, Measurement
from course_utils.bench.setting import LONG, SHORT, Shape, random_batch
from course_utils.training.memory import peak_memory
from course_utils.training.runs.processes import best_device

SHAPES = {"short": SHORT, "long": LONG}


def measurements(device: torch.device) -> list[Measurement]:
    """MiB that model, optimiser and three updates need beyond what the imports do."""
    systems = available([name for name in PEERS if name != FLOOR], device)[0]
    return [
        Measurement(
            "memory", f"one batch of {shape}", "MiB", {name: [_ask(name, key)] for name in systems}
        )
        for key, shape in SHAPES.items()
    ]


def _ask(system: str, shape: str) -> float:
    command = [sys.executable, "-W", "ignore", "-m", __name__, system, shape]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout) / 2**20


def needed(system: str, shape: Shape, device: torch.device) -> int:
    """Bytes: on an accelerator what torch has held, else what this process has grown by."""
    available([system], torch.device("cpu"))  # its imports are no part of it
    before = peak_memory()
    model = PEERS[system](device)
    batch = random_batch(shape).to(device)
    for _ in range(3):
        model.train(batch)
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return peak_memory() - before


if __name__ == "__main__":
    print(needed(sys.argv[1], SHAPES[sys.argv[2]], best_device()))
