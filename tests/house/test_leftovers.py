"""The check at the end of the tests sees what is left behind."""

import subprocess
import sys
import tempfile

import leftovers
import matplotlib.pyplot as plt
import pytest
from leftovers import note_temporary_files


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(leftovers, "PATIENCE", 0.1)


def left(made=(), kept="nowhere"):
    return leftovers.leftovers(made, kept)


def test_figures_are_seen_until_they_are_closed():
    before = left()
    figure = plt.figure()
    assert set(left()) - set(before) == {f"figure {figure.number}"}
    plt.close(figure)
    assert left() == before


def test_processes_are_seen_until_they_end():
    before = left()
    command = [sys.executable, "-c", "print(flush=True), input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()  # before it runs, its command may still be empty
        new = sorted(set(left()) - set(before))
        process.stdin.write(b"\n")
    assert new[0].startswith(f"process {process.pid}: ")
    assert new[0].endswith(" -c print(flush=True), input()")
    assert left() == before


def test_temporary_files_are_seen_until_they_are_deleted(tmp_path):
    made = note_temporary_files()
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.NamedTemporaryFile() as file,
        tempfile.NamedTemporaryFile(dir=tmp_path) as kept,
    ):
        assert kept.name in made
        new = left(made, str(tmp_path))
    assert {folder, file.name} <= set(new)
    assert kept.name not in new
    assert not {folder, file.name} & set(left(made))
