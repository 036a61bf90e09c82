"""Notebooks run wherever they are opened: any folder, no right to write, no network, no warnings.

`nobody_connects` stands in every kernel of these tests: a connection that leaves this machine, and
a warning that our own code causes, is an error there.
"""

import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook

from course_utils.cli.notebooks import kernel
from course_utils.environment import ROOT

NOTEBOOKS = ROOT / "notebooks"
QUICK = "02_masked_softmax.ipynb"
WITH_DATA = ("04_bahdanau_translation.ipynb", 7)  # its cells up to here load data, and do not train
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
GUARD = """
import socket, warnings
warnings.filterwarnings("error", module=r"course_utils(\\.|$)")
_socket, _lookup = socket.socket, socket.getaddrinfo
_near = ("127.", "::1", "localhost")
class Guarded(_socket):
    def connect(self, address):
        if isinstance(address, tuple) and not str(address[0]).startswith(_near):
            raise AssertionError(f"a connection to {address}")
        return super().connect(address)
    connect_ex = connect
def getaddrinfo(host, *args, **options):
    if host and not str(host).startswith(_near):
        raise AssertionError(f"a look-up of {host}")
    return _lookup(host, *args, **options)
socket.socket, socket.getaddrinfo = Guarded, getaddrinfo
"""


@pytest.fixture(scope="module")
def guard(tmp_path_factory):
    """A folder for PYTHONPATH whose sitecustomize forbids connections, and warnings of ours."""
    folder = tmp_path_factory.mktemp("guard")
    (folder / "sitecustomize.py").write_text(GUARD, encoding="utf-8")
    return folder


def text_of(cell):
    """What a cell prints and returns, as far as it may be compared."""
    if "nbval-ignore-output" in cell.metadata.get("tags", []):
        return ""
    parts = (o.get("text") or o.get("data", {}).get("text/plain", "") for o in cell.outputs)
    return "".join(parts)


def begin(path, cells=None):
    """The notebook without outputs, up to its so manieth code cell."""
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"][:cells]
    notebook.cells = notebook.cells[: notebook.cells.index(code[-1]) + 1]
    stored = [text_of(cell) for cell in code]
    for cell in code:
        cell.outputs = []
    return notebook, code, stored


def run(path, folder, guard, cells=None, root=ROOT):
    """Run a notebook in `folder`; what its cells say must be what is stored."""
    notebook, code, stored = begin(path, cells)
    with kernel(notebook, folder, (guard, root)) as client:
        for index, cell in enumerate(notebook.cells):
            client.execute_cell(cell, index)
        assert [text_of(cell) for cell in code] == stored
        yield client, code


def complete(*args, **options):
    for _ in run(*args, **options):
        pass


def test_the_guard_holds(guard, tmp_path):
    warn = """exec("import warnings; warnings.warn('old')", {"__name__": "course_utils.x"})"""
    broken = {
        "socket.create_connection(('192.0.2.1', 80), 1)": r"a look-up of",
        "socket.socket().connect(('example.org', 80))": r"a connection to",
        "__import__('urllib.request').request.urlopen('http://example.org')": r"a look-up of",
        warn: r"(?s)UserWarning.*\bold\b",
    }
    cells = [new_code_cell(f"import socket\n{line}") for line in broken]
    with kernel(new_notebook(cells=cells), tmp_path, (guard, ROOT)) as client:
        for index, (cell, message) in enumerate(zip(cells, broken.values())):
            with pytest.raises(CellExecutionError, match=message):
                client.execute_cell(cell, index)


def test_another_folder_and_a_second_run_change_no_text(guard, tmp_path):
    for client, code in run(NOTEBOOKS / QUICK, tmp_path, guard):
        first = [text_of(cell) for cell in code]
        for index, cell in enumerate(client.nb.cells):  # all cells again, in the same kernel
            client.execute_cell(cell, index)
        assert [text_of(cell) for cell in code] == first
        exercises = [i for i, c in enumerate(client.nb.cells) if "exercise" in c.metadata]
        for index in reversed(exercises):  # a stub may be run again at any time, in any order
            client.execute_cell(client.nb.cells[index], index)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def checkout():
    """A copy of the course, which everybody may read, in a folder with an unusual name."""
    above = Path(tempfile.mkdtemp())  # not pytest's own, into which only one user may look
    above.chmod(0o755)
    copy = above / "mes le\u00e7ons \u6ce8\u610f\u529b"
    copy.mkdir()
    for name in ("course_utils", "notebooks"):
        skip = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", ".progress*")
        shutil.copytree(ROOT / name, copy / name, ignore=skip)
    shutil.copy(ROOT / "pyproject.toml", copy)
    yield copy
    for folder in (copy, *(path for path in copy.rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    shutil.rmtree(above)


def lock(folder):
    """Take from everybody the right to write."""
    for path in sorted(folder.rglob("*"), reverse=True):
        path.chmod(0o555 if path.is_dir() else 0o444)
    folder.chmod(0o555)


def without_roots_rights(locked):
    """What to put before a command so that the modes of files count for root, too."""
    if not IS_ROOT:
        return []
    if not shutil.which("setpriv"):
        pytest.skip("root may write everywhere, and there is no setpriv to give that up")
    rights = "-dac_override,-dac_read_search"
    before = ["setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}"]
    probe = (
        "import sys\ntry:\n    open(sys.argv[1], 'w')\nexcept PermissionError:\n    print('locked')"
    )
    result = subprocess.run(
        [*before, sys.executable, "-c", probe, str(locked / "new")], capture_output=True
    )
    if b"locked" not in result.stdout:
        pytest.skip("root may not give up its rights here")
    return before


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_a_checkout_that_may_only_be_read_runs_in_a_folder_of_any_name(checkout):
    lock(checkout)
    before = without_roots_rights(checkout)
    command = [sys.executable, "-m", "course_utils", "course", str(checkout / "notebooks" / QUICK)]
    result = subprocess.run(
        [*before, *command], capture_output=True, text=True, encoding="utf-8", cwd="/",
        env={**os.environ, "PYTHONPATH": str(checkout), "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert QUICK in result.stdout
    assert not list(checkout.rglob("__pycache__"))
    assert all(not path.stat().st_mode & stat.S_IWUSR for path in checkout.rglob("*"))


def test_data_are_found_from_another_folder_in_a_checkout_of_any_name(checkout, guard, tmp_path):
    name, cells = WITH_DATA
    complete(checkout / "notebooks" / name, tmp_path, guard, cells, checkout)
    assert list(tmp_path.iterdir()) == []


def test_loopback_is_left_alone(guard):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        ask = f"import socket; socket.create_connection({server.getsockname()!r}, 5).close()"
        environment = {**os.environ, "PYTHONPATH": str(guard)}
        subprocess.run([sys.executable, "-c", ask], env=environment, check=True)
