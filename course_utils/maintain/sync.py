"""Bring the exercise cells of the notebooks in step with their one source.

python -m course_utils.maintain.sync [--check | --solve FOLDER]

Without an option the stubs and statements are written into the notebooks. With --check nothing is
written and the exit status is 1 when a cell is out of step. With --solve copies of the notebooks
with all solutions filled in are written into FOLDER.
"""

import argparse
import sys
from pathlib import Path

import nbformat

from course_utils.checker.cells import fill, solved_notebook

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m course_utils.maintain.sync")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="only say what is out of step")
    what.add_argument("--solve", type=Path, metavar="FOLDER", help="write solved copies")
    options = parser.parse_args(arguments)
    stale = 0
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        if options.solve:
            options.solve.mkdir(parents=True, exist_ok=True)
            nbformat.write(solved_notebook(notebook), options.solve / path.name)
            continue
        changed = fill(notebook)
        if changed:
            stale += 1
            print(f"{path.name}: {', '.join(dict.fromkeys(changed))}")
            if not options.check:
                nbformat.write(notebook, path)
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
