"""The set-up of the environment, done for real on a small recipe that needs no network."""

import os
import subprocess
import sys

import pytest

from course_utils import environment
from course_utils.environment import STAMP, SetupError, complaint, prepare, python_of

PYPROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "tiny"
version = "1"
requires-python = ">=3.10,<3.14"
"""
BACKEND = '''\
"""Builds the smallest editable wheel."""
import zipfile

def build_editable(folder, settings=None, metadata=None):
    files = {
        "tiny.pth": "",
        "tiny-1.dist-info/METADATA": "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1\\n",
        "tiny-1.dist-info/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\n",
    }
    files["tiny-1.dist-info/RECORD"] = "".join(f"{name},,\\n" for name in files)
    with zipfile.ZipFile(f"{folder}/tiny-1-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return "tiny-1-py3-none-any.whl"
'''


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    """A course of one empty package, in a folder with a space in its name."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    root = tmp_path / "my course"
    root.mkdir()
    for name, text in {
        "pyproject.toml": PYPROJECT,
        "backend.py": BACKEND,
        "requirements.txt": "# nothing\n",
    }.items():
        (root / name).write_text(text, encoding="utf-8")
    return root


def installed(venv):
    ask = "from importlib.metadata import distributions as d; print(*(p.name for p in d()))"
    run = subprocess.run([python_of(venv), "-c", ask], capture_output=True, text=True, check=True)
    return run.stdout.split()


def test_a_life_of_the_environment(recipe, capfd):
    venv, stamp = recipe / ".venv", recipe / ".venv" / STAMP
    prepare(venv, recipe)
    assert "tiny" in installed(venv)
    first = stamp.read_text(encoding="utf-8")

    capfd.readouterr()
    prepare(venv, recipe)
    assert capfd.readouterr() == ("", ""), "an environment in step is left alone"

    stamp.unlink()  # as after an interrupted set-up, with a package whose files are incomplete
    info = next(venv.glob("**/site-packages/tiny-1.dist-info"))
    (info / "RECORD").unlink()
    prepare(venv, recipe)
    assert (info / "RECORD").is_file()
    assert stamp.read_text(encoding="utf-8") == first

    (recipe / "requirements.txt").write_text("no-such-package==1\n", encoding="utf-8")
    with pytest.raises(SetupError, match="pip could not install"):
        prepare(venv, recipe)
    assert not stamp.exists()

    (recipe / "requirements.txt").write_text("tiny\n", encoding="utf-8")
    python_of(venv).unlink()  # as when the interpreter was upgraded away
    prepare(venv, recipe)
    assert "tiny" in installed(venv)
    assert stamp.read_text(encoding="utf-8") != first


def test_other_peoples_folders_are_left_alone(recipe, tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "cat.jpg").touch()
    with pytest.raises(SetupError, match=r"photos exists and is no environment; .*VENV=path"):
        prepare(folder, recipe)
    assert os.listdir(folder) == ["cat.jpg"]


def test_every_supported_python_fits_and_no_other(monkeypatch):
    for minor in range(8, 17):
        monkeypatch.setattr(sys, "version_info", (3, minor, 0, "final", 0))
        assert bool(complaint()) == (not 10 <= minor <= 13)
        if complaint():
            assert f"3.10 to 3.13, and {sys.executable} is 3.{minor}" in complaint()


def test_a_python_without_venv_is_told_what_to_install(monkeypatch):
    monkeypatch.setattr(environment.importlib.util, "find_spec", lambda name: None)
    assert "sudo apt install python3-venv" in complaint()


def test_the_digest_follows_both_files(recipe):
    seen = {environment.recipe_digest(recipe)}
    for name in environment.RECIPE:
        with (recipe / name).open("a", encoding="utf-8") as file:
            file.write("\n")
        seen.add(environment.recipe_digest(recipe))
    assert len(seen) == 3


def test_command_line(recipe, monkeypatch, capsys):
    assert environment.main(["--fits"]) == 0
    monkeypatch.setattr(environment, "ROOT", recipe)
    assert environment.main([str(recipe)]) == 1
    assert "setup: " in capsys.readouterr().err
