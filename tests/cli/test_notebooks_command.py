"""The run of all notebooks, and the comparison of their outputs, on small notebooks of our own."""

import os
import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from course_utils.cli import notebooks as course
from course_utils.cli.notebooks import BrokenCell, headless_environment, run_course, run_notebook
from course_utils.environment import ROOT
from course_utils.training.memory import peak_memory

SOUND = [
    "import os, sys; print(os.getcwd() == sys.path[0] or 'elsewhere')",
    "from tqdm import tqdm\nfor _ in tqdm(range(3)):\n    pass",
    "import matplotlib.pyplot as plt\nplt.plot([1, 2]);",
    "from IPython.display import clear_output, display\n"
    "for i in range(3):\n    clear_output(wait=True)\n    print(i)",
    "line = display('before', display_id=True)\nline.update('after')",
    "print('first')\nclear_output()\nprint('last')",
    "os.path.exists(os.environ['COURSE_PROGRESS'])",
    'data = b"x" * 200_000_000; len(data)',
]


@pytest.fixture
def notebook(tmp_path):
    """Writes a notebook of the given code cells that was never run, and returns its path."""

    def write(*sources, name="00_test.ipynb"):
        cells = [new_markdown_cell("# Text"), *(new_code_cell(source) for source in sources)]
        kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)"}
        made = new_notebook(cells=cells, metadata={"kernelspec": kernel})
        nbformat.write(made, tmp_path / name)
        return tmp_path / name

    return write


def outputs(path):
    """What the code cells of a stored notebook print or show, as text."""
    cells = nbformat.read(path, as_version=4).cells[1:]
    return [
        "".join(o.get("text", "") or o.get("data", {}).get("text/plain", "") for o in c.outputs)
        for c in cells
    ]


def test_a_run_costs_and_changes_nothing(notebook, capsys):
    path = notebook(*SOUND)
    before = path.read_bytes()
    [cost] = run_course([path])
    assert path.read_bytes() == before
    assert cost.cells == len(SOUND)
    assert 200e6 < cost.peak_bytes < 2e9
    assert 0 < cost.slowest_seconds < cost.seconds
    table = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert table[0] == "notebook cells seconds slowest cell peak MB".split()
    assert table[1][:3] == [path.name, str(len(SOUND)), f"{cost.seconds:.1f}"]
    assert table[1][3] == f"[{cost.slowest_cell}]"
    assert table[1][-1] == table[2][-1] == str(cost.peak_bytes // 10**6)


def test_stored_outputs_agree_with_the_next_run(notebook, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    path = notebook(*SOUND)
    run_course([path], write=True)
    assert outputs(path)[2:] == [
        "<Figure size 640x480 with 1 Axes>", "2\n", "'after'", "last\n", "False", "200000000",
    ]  # fmt: skip
    assert outputs(path)[1] == "", "no progress bar"
    compared = compare(path)
    assert f"{len(SOUND)} passed" in compared.stdout, compared.stdout
    assert compared.returncode == 0


def compare(*paths):
    """Run pytest on notebooks as `make test` does."""
    command = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "--color=no", *paths]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8")


def test_the_first_broken_cell_stops_the_course(notebook, capsys):
    broken = notebook("1", "", "print('so far')\nraise ValueError('too cold')", "print('no')")
    before = broken.read_bytes()
    later = notebook("print('never')", name="01_later.ipynb")
    assert course.main([str(broken), str(later), "--write"]) == 1
    assert broken.read_bytes() == before
    assert outputs(later) == [""]
    shown = capsys.readouterr()
    assert shown.err.startswith("00_test.ipynb, cell [2]:\n")
    assert "ValueError: too cold" in shown.err
    assert "\x1b" not in shown.err
    assert "01_later" not in shown.out


def test_a_cell_that_hangs_or_kills_the_kernel_is_named(notebook, monkeypatch):
    with pytest.raises(BrokenCell, match=r"00_test.ipynb, cell \[1\]:\nKernel died"):
        run_notebook(notebook("import os; os._exit(1)"))
    monkeypatch.setattr(course, "CELL_SECONDS", 1)
    with pytest.raises(BrokenCell, match=r"(?s)00_test.ipynb, cell \[2\]:.*timed out"):
        run_notebook(notebook("x = 1", "import time; time.sleep(60)"))


def test_a_notebook_that_is_not_there_is_refused(capsys):
    with pytest.raises(SystemExit):
        course.main(["gone.ipynb"])
    assert "there is no notebook gone.ipynb" in capsys.readouterr().err


def test_kernels_start_in_surroundings_of_their_own(monkeypatch, tmp_path):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    surroundings = headless_environment(str(tmp_path))
    assert "MPLBACKEND" not in surroundings
    assert surroundings["PYTHONPATH"] == str(ROOT)
    assert surroundings["COURSE_PROGRESS"].startswith(str(tmp_path))
    assert surroundings["PATH"] == os.environ["PATH"]


def test_peak_memory_counts_what_was_freed():
    before = peak_memory()
    data = b"x" * (before + 50_000_000)
    del data
    assert peak_memory() >= before + 50_000_000
