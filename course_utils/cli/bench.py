"""python -m course_utils bench: the course's model against others of the same size."""

import json
import warnings
from pathlib import Path

import torch

from course_utils.bench import (
    attention_speed,
    decoding_speed,
    results,
    step_memory,
    text_speed,
    training_speed,
)
from course_utils.bench.peers import PEERS, available
from course_utils.bench.rounds import Measurement
from course_utils.cli.command import parser, refusing
from course_utils.training.runs.files import write_atomic
from course_utils.training.runs.processes import best_device
from course_utils.training.runs.refusals import number

PARTS = ("train", "decode", "attention", "text", "memory")


@refusing("bench", "measure fewer parts at once: bench attention, then the others")
def main(argv: list[str]) -> None:
    """Measure, print a table, and with --json keep the numbers."""
    command = parser(
        "bench",
        "Time the course's model against d2l, torch.nn.Transformer and Hugging Face's Marian, all "
        "of one size, taking turns in one process. Only the ratios mean something on another "
        "machine. Marian needs the extra: pip install 'course-utils[bench]'.",
    )
    command.add_argument(
        "parts", nargs="*", choices=(*PARTS, "all"), default="all", metavar="PART",
        help=f"{', '.join(PARTS)}, or all (the default)",
    )  # fmt: skip
    command.add_argument(
        "--rounds", type=number(int, 1, 1000), default=5, metavar="N",
        help="turns of each (default 5)",
    )  # fmt: skip
    command.add_argument(
        "--threads", type=number(int, 1, 1024), metavar="N", help="threads of torch"
    )
    command.add_argument(
        "--json", type=Path, metavar="FILE", help="write what was measured here, too"
    )
    args = command.parse_args(argv)
    if args.threads:
        torch.set_num_threads(args.threads)
    warnings.filterwarnings("ignore", "The PyTorch API of nested tensors")  # nn.Transformer's own
    device = best_device()
    print(results.machine(device), flush=True)
    found: list[Measurement] = []
    for part in PARTS if "all" in args.parts else args.parts:
        new = measure(part, args.rounds, device)
        print(f"\n{results.table(new)}", flush=True)
        found += new
    if args.json:
        text = json.dumps(results.records(found, device), indent=1)
        write_atomic(args.json, text.encode())


def measure(part: str, rounds: int, device: torch.device) -> list[Measurement]:
    """All measurements of one part."""
    if part == "attention":
        return attention_speed.measurements(rounds, device)
    if part == "text":
        return text_speed.measurements(rounds)
    if part == "memory":
        return step_memory.measurements(device)
    models, missing = available(PEERS, device)
    for name in missing:
        print(f"{name} is left out: its package is not installed")
    return {"train": training_speed, "decode": decoding_speed}[part].measurements(
        models, rounds, device
    )
