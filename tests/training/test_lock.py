"""Two trainings never write into one folder at a time."""

import os
import subprocess
import sys
import tempfile

import pytest
from engine_runs import ENVIRONMENT, run, tiny_folder

from course_utils.training.runs.lock import only_writer
from course_utils.training.runs.refusals import Refused


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """The system's temporary folder, empty."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_a_second_training_is_refused_and_touches_nothing(tmp_path, scratch, capsys):
    folder = tmp_path / "a"
    for before, options in (([], []), ([], ["--resume"]), ([".unfinished-x"], ["--resume"])):
        folder.mkdir(exist_ok=True)
        for name in before:
            (folder / name).write_text("half", encoding="utf-8")
        found = contents(folder)
        with only_writer(folder):
            assert run(folder, *options) == 1
        err = capsys.readouterr().err
        assert f"train: another training is writing to {folder}: wait until it ends" in err
        assert contents(folder) == found
    assert run(folder, "--epochs", "1", "--validations", "1", "--resume") == 0
    assert contents(folder).keys() == contents(tiny_folder()).keys()  # no lock among them


def test_whatever_path_leads_to_a_folder_it_is_one(tmp_path, scratch, monkeypatch):
    folder, other = tmp_path / "a", tmp_path / "b"
    folder.mkdir()
    other.mkdir()
    monkeypatch.chdir(tmp_path)
    paths = [tmp_path / "b" / ".." / "a", type(tmp_path)("a")]
    if os.name != "nt":
        (tmp_path / "link").symlink_to(folder)
        paths.append(tmp_path / "link")
    with only_writer(folder):
        for path in paths:
            with pytest.raises(Refused, match="another training is writing"), only_writer(path):
                pass
        with only_writer(other):
            pass
    with only_writer(folder):
        pass


HOLD = """
import sys
from pathlib import Path
from course_utils.training.runs.lock import only_writer
with only_writer(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_killed_training_keeps_nobody_out(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], env=ENVIRONMENT, text=True, encoding="utf-8",
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    with holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(Refused, match="another training is writing"), only_writer(tmp_path):
            pass
        holder.kill()
    with only_writer(tmp_path):
        pass


@pytest.mark.parametrize("fault", [PermissionError(13, "no"), NotImplementedError("no flock")])
def test_where_nothing_can_be_locked_a_training_goes_on(fault, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise fault

    monkeypatch.setattr("course_utils.training.runs.lock.FileLock.acquire", refuse)
    with only_writer(tmp_path):
        pass


def test_without_a_place_for_the_lock_a_training_goes_on(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file" / "scratch"))
    with only_writer(tmp_path):
        pass
