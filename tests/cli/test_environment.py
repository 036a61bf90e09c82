"""The set-up of the environment, done for real on a small recipe that needs no network."""

import os
import re
import sys

import pytest

from course_utils import environment
from course_utils.environment import (
    EXTRAS,
    STAMP,
    SetupError,
    complaint,
    prepare,
    python_of,
    recipe_digest,
    stamped,
    write_stamp,
)

PYPROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "tiny"
version = "1"
requires-python = ">=3.10,<3.14"

[project.optional-dependencies]
test = []
site = []
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
    """A course of one empty package, in a folder with spaces and Chinese letters in its name."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    root = tmp_path / "mes le\u00e7ons \u6ce8\u610f\u529b"
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
    return environment.answer(venv, ask).split()


@pytest.fixture
def settings_of_all_kinds(tmp_path, monkeypatch):
    """What people have set for other installations, and that must not matter here."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "pip.py").write_text("raise SystemExit('not this pip')")
    for name, value in {
        "HOME": "/dev/null/home",
        "PYTHONHOME": "/nowhere",
        "PYTHONPATH": str(tmp_path / "elsewhere"),
        "PIP_USER": "1",
        "PIP_TARGET": str(tmp_path / "target"),
        "PIP_PREFIX": str(tmp_path / "prefix"),
        "PIP_DRY_RUN": "1",
        "PIP_REQUIRE_HASHES": "1",
        "PIP_REQUIRE_VIRTUALENV": "1",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "CONDA_PREFIX": str(tmp_path / "conda"),
        "VIRTUAL_ENV": str(tmp_path / "other"),
    }.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("settings_of_all_kinds")
def test_a_life_of_the_environment(recipe, tmp_path, capfd):
    venv, stamp = recipe / ".venv", recipe / ".venv" / STAMP
    prepare(venv, root=recipe)
    assert "tiny" in installed(venv)
    assert stamped(venv) == (recipe_digest(recipe), set())

    prepare(venv, {"test"}, recipe)
    assert stamped(venv) == (recipe_digest(recipe), {"test"})
    capfd.readouterr()
    prepare(venv, {"test"}, recipe)
    prepare(venv, root=recipe)
    assert capfd.readouterr() == ("", ""), "an environment in step is left alone"

    write_stamp(venv)  # as after an interrupted set-up, with a package whose files are incomplete
    info = next(venv.glob("**/site-packages/tiny-1.dist-info"))
    (info / "RECORD").unlink()
    prepare(venv, {"site"}, recipe)
    assert (info / "RECORD").is_file()
    prepare(venv, {"test"}, recipe)
    assert stamped(venv) == (recipe_digest(recipe), {"test", "site"})

    (recipe / "requirements.txt").write_text("no-such-package==1\n", encoding="utf-8")
    with pytest.raises(SetupError, match=r"pip could not install .*: .*PIP_NO_INDEX"):
        prepare(venv, root=recipe)
    assert stamp.read_text() == ""

    (recipe / "requirements.txt").write_text("tiny\n", encoding="utf-8")
    python_of(venv).unlink()  # as when the interpreter was upgraded away
    prepare(venv, root=recipe)
    assert "tiny" in installed(venv)
    assert stamped(venv) == (recipe_digest(recipe), set())
    assert {path.name for path in tmp_path.iterdir()} == {"elsewhere", recipe.name}


def test_a_setting_that_sends_packages_elsewhere_is_named(recipe, monkeypatch):
    config = recipe / "pip.conf"
    config.write_text(f"[install]\ntarget = {recipe / 'target'}\n", encoding="utf-8")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    with pytest.raises(SetupError, match="not in the environment.* config list"):
        prepare(recipe / ".venv", root=recipe)


def contents(folder):
    return {
        path: path.lstat().st_mtime_ns if path.is_symlink() or path.is_file() else None
        for path in folder.rglob("*")
    }


def foreign(folder, says="3 11", config="home = /usr/bin\n", pip=True):
    """An environment of somebody else: its Python says its version, and that of a package."""
    packages = folder / "lib" / "python3" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "theirs.py").write_text("mine = 1\n")
    if config:
        (folder / "pyvenv.cfg").write_text(config)
    (folder / "bin").mkdir()
    lines = ["#!/bin/sh", 'case "$*" in', f"*pip*) exit {0 if pip else 1};;"]
    lines += [f"*version_info*) {f'echo {says}' if says else 'exit 1'};;", "esac", ""]
    (folder / "bin" / "python").write_text("\n".join(lines))
    (folder / "bin" / "python").chmod(0o755)
    return folder


OTHERS = {
    "venv": ({}, "an environment with Python 3.11", '-m pip install -e "'),
    "uv": (
        {"config": "home = /x\nuv = 0.9.1\n", "pip": False},
        "an environment of uv with Python 3.11",
        "uv pip --python",
    ),
    "virtualenv": (
        {"config": "virtualenv = 20.1\n"},
        "an environment of virtualenv with",
        "-m pip",
    ),
    "older": ({"says": "3 9"}, "an environment with Python 3.9", None),
    "newer": ({"says": "3 14"}, "an environment with Python 3.14", None),
    "broken": ({"says": ""}, "an environment. The", None),
    "prefix": ({"config": ""}, "a Python installation with Python 3.11", "-m pip"),
    "conda": ({"config": ""}, "a conda environment with Python 3.11", "-m pip"),
}


@pytest.mark.skipif(os.name == "nt", reason="these interpreters are shell scripts")
@pytest.mark.parametrize("maker", OTHERS)
@pytest.mark.parametrize("linked", [False, True], ids=["", "linked"])
def test_an_environment_of_somebody_else_is_left_as_it_is(maker, linked, recipe, tmp_path, capsys):
    options, said, way_in = OTHERS[maker]
    folder = foreign(tmp_path / "theirs", **options)
    if maker == "conda":
        (folder / "conda-meta").mkdir()
    venv = recipe / ".venv" if linked else folder
    if linked:
        venv.symlink_to(folder)
    before = contents(folder)
    with pytest.raises(SetupError) as caught:
        prepare(venv, root=recipe)
    assert contents(folder) == before
    message = str(caught.value)
    assert f"{venv} is {said}" in message
    assert "did not make it, so it stays as it is" in message
    assert "VENV=path" in message
    assert ("To have the course in it all the same: " in message) == bool(way_in)
    assert (way_in or "") in message


@pytest.mark.skipif(os.name == "nt", reason="links want rights there")
def test_other_peoples_folders_files_and_links_are_left_alone(recipe, tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "cat.jpg").touch()
    (recipe / ".venv").symlink_to(tmp_path / "gone")
    for path, said in {
        folder: "a folder with other things",
        folder / "cat.jpg": "a file",
        recipe / ".venv": f"a link to {tmp_path / 'gone'}, which is not there",
    }.items():
        with pytest.raises(SetupError, match=rf"{re.escape(f'{path} is {said}')}\. .*VENV=path"):
            prepare(path, root=recipe)
    assert os.listdir(folder) == ["cat.jpg"]
    assert not (tmp_path / "gone").exists()


def test_folders_that_cannot_be_written_are_named(recipe, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match="cannot be made: Not a directory.*VENV=path"):
        prepare(tmp_path / "file" / "venv", root=recipe)

    ours = tmp_path / "ours"
    ours.mkdir()
    write_stamp(ours, recipe_digest(recipe), "site")
    monkeypatch.setattr(environment, "version_of", lambda venv: sys.version_info[:2])
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    prepare(ours, {"site"}, recipe)  # in step: nothing to write
    with pytest.raises(SetupError, match="cannot be written"):
        prepare(ours, {"test"}, recipe)
    assert stamped(ours) == (recipe_digest(recipe), {"site"})


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        *[(f"PIP_{name}", True) for name in ("INDEX_URL", "EXTRA_INDEX_URL", "NO_INDEX", "PROXY")],
        *[(f"PIP_{name}", True) for name in ("FIND_LINKS", "TRUSTED_HOST", "CERT", "CONSTRAINT")],
        *[(f"PIP_{name}", True) for name in ("DEFAULT_TIMEOUT", "CACHE_DIR", "CONFIG_FILE")],
        *[(f"PIP_{name}", False) for name in ("TARGET", "ROOT", "PREFIX", "NO_DEPS", "PYTHON")],
        *[(f"PIP_{name}", False) for name in ("DRY_RUN", "REQUIRE_HASHES", "IGNORE_INSTALLED")],
        *[("HTTP_PROXY", True), ("SSL_CERT_FILE", True), ("PYTHONHOME", False)],
    ],
)
def test_settings_of_where_packages_come_from_are_kept(name, kept, monkeypatch):
    monkeypatch.setenv(name, "x")
    assert (name in environment.surroundings()) == kept


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
    with pytest.raises(SystemExit):
        environment.main(["--with", "everything"])
    assert "'everything'" in capsys.readouterr().err


def test_the_extras_stand_in_pyproject():
    text = (environment.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert {extra for extra in EXTRAS if f"\n{extra} = [" in text} == set(EXTRAS)
