"""Run the code cells of one notebook under limits.

Meant for a process of its own, which `class --run` starts in an empty folder. The limits of the
system (computing time, memory, size of files, open files) bind the code and what it starts.
"""

import contextlib
import sys

import nbformat
from IPython.core.interactiveshell import InteractiveShell

MEMORY = 6 * 2**30  # bytes of address space; torch alone asks for about 3
FILE = 50 * 2**20  # bytes of any one file
OPEN_FILES = 256


def limit(seconds: int) -> None:
    """Bind this process; where the system knows no such limits only its parent's clock does."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for what, most in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_FSIZE, FILE),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
    ):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(what, (most, most))


def main(file: str, seconds: str) -> None:
    """Run all code cells in order; one that fails does not end the others."""
    notebook = nbformat.read(file, as_version=4)
    limit(round(float(seconds)))
    shell = InteractiveShell.instance()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            shell.run_cell(cell.source)


if __name__ == "__main__":
    main(*sys.argv[1:])
