"""What a strict run of a notebook lets pass, and what it does not."""

import re
import subprocess
import sys

import nbformat
from nbformat.v4 import new_code_cell, new_notebook, new_output

from course_utils.environment import ROOT


def printed(text):
    return [new_output("stream", name="stdout", text=text)]


IGNORED = {"tags": ["nbval-ignore-output"]}
CELLS = [  # source, stored outputs, metadata, what becomes of it
    ("print('a'); print('b')", printed("a\nb\n"), {}, "passed"),
    ("print('a')", printed("b\n"), {}, "failed"),
    ("import time\nprint(time.time())", printed("1\n"), IGNORED, "passed"),
    ("%no_such_magic", [], IGNORED, "failed"),
    ("%no_such_magic", printed("x\n"), {}, "failed"),
    ("1 / 0", [], IGNORED, "failed"),
    ("2 + 2;", [], {}, "passed"),
    ("2 + 2", [], {}, "failed"),
    (
        "from IPython.display import clear_output\nprint(1)\nclear_output(wait=True)\nprint(2)",
        printed("2\n"),
        {},
        "passed",
    ),
    (
        "from IPython.display import display\nhandle = display(1, display_id=True)\n"
        "handle.update(2)",
        [new_output("display_data", {"text/plain": "2"})],
        {},
        "passed",
    ),
    ("import os; os.environ['COURSE_HEADLESS']", [], IGNORED, "passed"),
    ("import os; os._exit(1)", [], IGNORED, "failed"),
    ("print('never')", printed("never\n"), {}, "xfailed"),
]


def test_each_cell_gets_what_it_deserves(tmp_path):
    cells = [
        new_code_cell(source, outputs=outputs, metadata=metadata, execution_count=1)
        for source, outputs, metadata, _ in CELLS
    ]
    nbformat.write(new_notebook(cells=cells), tmp_path / "lesson.ipynb")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-c", ROOT / "pyproject.toml", "--rootdir", tmp_path,
         "-p", "no:cacheprovider", "-p", "no:xdist", tmp_path / "lesson.ipynb"],
        cwd=ROOT, capture_output=True, text=True, encoding="utf-8",
    )  # fmt: skip
    said = {int(n): word for n, word in re.findall(r"::Cell (\d+) ([A-Z]+)", run.stdout)}
    assert [said.get(n, "").lower().replace("xfail", "xfailed") for n in range(len(CELLS))] == [
        expected for *_, expected in CELLS
    ], run.stdout[-3000:]
    for message in ("Cell 1: Cell outputs differ", "no_such_magic", "Kernel died"):
        assert message in run.stdout
