"""Runs the notebooks from top to bottom without a browser and shows what each one costs."""

import argparse
import contextlib
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from course_utils.chapters import CHAPTERS
from course_utils.cli.notebook_file import UnreadableNotebook, read_notebook
from course_utils.environment import ROOT

NOTEBOOKS = ROOT / "notebooks"
COLOURS = r"\x1b\[[0-9;]*m"
CELL_SECONDS = 600  # a cell that runs longer has hung


class BrokenCell(Exception):
    """A cell that failed; the message names it and shows why."""


@dataclass(frozen=True)
class Cost:
    """What one run of a notebook took."""

    cells: int
    seconds: float
    slowest_cell: int  # as in the notebook's margin: [n]
    slowest_seconds: float
    peak_bytes: int


def in_words(cost: dict) -> str:
    """Time and memory as a reader wants them: `14 s with 0.6 GB`."""
    seconds = cost["seconds"]
    time = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
    return f"{time} with {cost['peak_bytes'] / 1e9:.1f} GB"


def headless_environment(scratch: str) -> dict[str, str]:
    """The environment for kernels whose outputs must be the same on every machine.

    No progress bars (they show speeds) and no live figures; no drawing backend, start-up file or
    solved exercises of the learner's own; and the code of this copy of the course, whichever copy
    is installed. One thread, for several add up in another order. For the recall cards it is always
    the same morning.
    """
    fixed = {
        "COURSE_CLOCK": "2026-01-05T09:00:00+00:00",
        "COURSE_HEADLESS": "1",
        "COURSE_PROGRESS": os.path.join(scratch, "progress.jsonl"),
        "IPYTHONDIR": scratch,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
        "TQDM_DISABLE": "1",
    }
    return {name: value for name, value in os.environ.items() if name != "MPLBACKEND"} | fixed


@contextlib.contextmanager
def kernel(
    notebook: nbformat.NotebookNode,
    folder: Path,
    path: Sequence[Path] = (ROOT,),
    seconds: float = CELL_SECONDS,
) -> Iterator[NotebookClient]:
    """A client with a fresh kernel for a notebook that stands in `folder`; it runs cell by cell.

    The kernel's surroundings are headless ones, and its PYTHONPATH is `path`. A cell that fails
    raises CellExecutionError, one that takes longer than `seconds` CellTimeoutError, and one that
    ends the kernel DeadKernelError.
    """
    client = NotebookClient(
        notebook,
        timeout=seconds,
        kernel_name="python3",
        record_timing=False,
        store_widget_state=False,
        coalesce_streams=True,  # else prints are split by chance
        extra_arguments=["--log-level=CRITICAL"],
        resources={"metadata": {"path": str(folder)}},
    )
    with tempfile.TemporaryDirectory() as scratch:
        surroundings = headless_environment(scratch)
        surroundings["PYTHONPATH"] = os.pathsep.join(map(str, path))
        with client.setup_kernel(env=surroundings):
            yield client


def run_notebook(path: Path) -> tuple[nbformat.NotebookNode, Cost]:
    """Run a notebook in a fresh kernel; return it with its new outputs, and what the run cost.

    The file itself is not touched. Raises BrokenCell for the first cell that fails, runs longer
    than CELL_SECONDS, or kills the kernel.
    """
    notebook = read_notebook(path)
    begun, times = time.perf_counter(), []
    with kernel(notebook, path.parent, seconds=CELL_SECONDS) as client:
        for index, cell in enumerate(notebook.cells):
            if cell.cell_type != "code" or not cell.source.strip():
                continue
            cell_begun = time.perf_counter()
            try:
                client.execute_cell(cell, index)
            except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
                raise BrokenCell(f"{path.name}, cell [{len(times) + 1}]:\n{error}") from error
            times.append(time.perf_counter() - cell_begun)
        seconds = time.perf_counter() - begun
        ask = nbformat.v4.new_code_cell(
            "from course_utils.training.memory import peak_memory; peak_memory()"
        )
        notebook.cells.append(ask)
        client.execute_cell(ask, len(notebook.cells) - 1, store_history=False)
        notebook.cells.remove(ask)
    slowest = max(times, default=0.0)
    return notebook, Cost(
        cells=len(times),
        seconds=seconds,
        slowest_cell=times.index(slowest) + 1 if times else 0,
        slowest_seconds=slowest,
        peak_bytes=int(ask.outputs[0].data["text/plain"]),
    )


def rewrite(path: Path, notebook: nbformat.NotebookNode) -> None:
    """Store a notebook with its new outputs, in one step, so that a crash leaves the old file."""
    fresh = path.with_name(path.name + ".new")
    nbformat.write(notebook, fresh)
    fresh.replace(path)


def row(name: str, cells: object, seconds: object, slowest: object, peak: object) -> str:
    """One line of the table."""
    return f"{name:<36}{cells:>6}{seconds:>9}{slowest:>16}{peak:>10}"


def run_course(paths: list[Path], write: bool = False) -> list[Cost]:
    """Run notebooks in order and print a table of what each took, as they finish.

    With `write` the new outputs are stored. Raises BrokenCell at the first cell that fails.
    """
    print(row("notebook", "cells", "seconds", "slowest cell", "peak MB"))
    costs = []
    for path in paths:
        notebook, cost = run_notebook(path)
        if write:
            rewrite(path, notebook)
        slowest = f"[{cost.slowest_cell}] {cost.slowest_seconds:.1f} s"
        print(
            row(path.name, cost.cells, f"{cost.seconds:.1f}", slowest, cost.peak_bytes // 10**6),
            flush=True,
        )
        costs.append(cost)
    if costs:
        peak = max(cost.peak_bytes for cost in costs) // 10**6
        total = sum(cost.seconds for cost in costs)
        print(row("all", sum(cost.cells for cost in costs), f"{total:.1f}", "", peak))
    return costs


def keep_costs(file: Path, costs: dict[Path, Cost]) -> None:
    """Store what runs took, by the notebook's name; of notebooks that did not run, it stays."""
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for path, cost in costs.items():
        kept[path.name] = {"seconds": round(cost.seconds, 1), "peak_bytes": cost.peak_bytes}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main(argv: list[str]) -> int:
    """Run the notebooks that the command line names; 1 when a cell fails."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils course",
        description="Run notebooks from top to bottom and show the time and peak memory of each.",
    )
    parser.add_argument("notebooks", nargs="*", type=Path, help="the default is all, in order")
    parser.add_argument("--write", action="store_true", help="store the new outputs in the files")
    parser.add_argument("--costs", type=Path, help="store time and memory in this JSON file")
    args = parser.parse_args(argv)
    for path in args.notebooks:
        if not path.is_file():
            parser.error(f"there is no notebook {path}")
    paths = args.notebooks or [NOTEBOOKS / chapter.file for chapter in CHAPTERS]
    try:
        costs = run_course(paths, args.write)
    except (BrokenCell, UnreadableNotebook) as error:
        text = str(error)
        print(text if sys.stderr.isatty() else re.sub(COLOURS, "", text), file=sys.stderr)
        return 1
    if args.costs:
        keep_costs(args.costs, dict(zip(paths, costs)))
    return 0
