"""The doctor's checks, each on a sound and an ailing patient, and its table."""

import builtins
import re
import sys
from pathlib import Path

import pytest

from course_utils.cli import doctor as module
from course_utils.cli.doctor import FAIL, OK, WARN, Finding, doctor, main, package_fault, table


def test_this_environment_is_sound(capsys):
    assert main([]) == 0
    text = capsys.readouterr().out
    assert FAIL not in text
    assert text.endswith("\nEverything that the course needs is there.\n")
    assert all(re.search(f"^{name} ", text, re.MULTILINE) for name in module.CHECKS)


def test_in_brief_nothing_depends_on_the_machine(capsys):
    doctor(brief=True)
    assert capsys.readouterr().out == "Everything that the course needs is there.\n"


def test_what_is_missing_fails_with_a_cure(monkeypatch, capsys):
    monkeypatch.setenv("COURSE_DATA_DIR", "/no/such/folder")
    assert main([]) == 1
    text = capsys.readouterr().out
    assert "FAIL  COURSE_DATA_DIR=/no/such/folder" in text
    assert "to mend it: unset COURSE_DATA_DIR" in text
    assert text.endswith("\nTo mend before you start: real texts.\n")


def test_a_missing_module_is_named(monkeypatch):
    sound_import = builtins.__import__

    def without_torch(name, *rest, **more):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
        return sound_import(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without_torch)
    ailing = module.attempt(module.check_torch)
    assert (ailing.status, ailing.found) == (FAIL, "torch is missing")
    assert "setup" in ailing.mend or "course's own Python" in ailing.mend


def test_a_check_that_breaks_has_failed():
    def broken():
        raise OSError("disk on fire")

    assert module.attempt(broken).status == FAIL
    assert module.attempt(broken).found == "OSError: disk on fire"


@pytest.mark.parametrize(
    ("name", "versions", "fault"),
    [
        ("torch", ">=2.5,<3", ""),
        ("torch", ">=99", "torch is "),
        ("no-such-package", ">=1", "no-such-package is missing"),
    ],
)
def test_packages_are_held_against_their_ranges(name, versions, fault):
    assert package_fault(name, versions).startswith(fault)
    assert bool(package_fault(name, versions)) == bool(fault)


def test_every_line_of_the_requirements_is_read():
    text = (module.ROOT / "requirements.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert module.check_packages().found == f"{len(lines)} of {len(lines)}"


def test_another_copy_of_the_course_is_noticed(monkeypatch, tmp_path):
    other = tmp_path / "clone" / "course_utils"
    other.mkdir(parents=True)
    (other / "environment.py").touch()
    monkeypatch.chdir(other)
    ailing = module.check_copy()
    assert ailing.status == FAIL
    assert str(tmp_path / "clone") in ailing.mend
    monkeypatch.chdir(tmp_path)
    assert module.check_copy().status == OK


def test_a_kernel_of_another_python_is_noticed(monkeypatch):
    assert module.check_kernel().status == OK
    monkeypatch.setattr(sys, "executable", str(Path(sys.executable).with_name("other")))
    from jupyter_client import kernelspec

    spec = kernelspec.KernelSpec(argv=["/opt/python", "-m", "ipykernel_launcher"])
    monkeypatch.setattr(kernelspec.KernelSpecManager, "get_kernel_spec", lambda self, name: spec)
    ailing = module.check_kernel()
    assert (ailing.status, ailing.found) == (FAIL, "notebooks run on /opt/python")


def test_a_place_that_cannot_be_written_is_a_warning(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "gone" / "progress.jsonl"))
    assert module.check_progress().status == WARN
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.jsonl"))
    assert module.check_progress().status == OK
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("check", [module.check_memory, module.check_disk])
def test_too_little_room_is_a_warning(check, monkeypatch):
    assert check().status == OK
    monkeypatch.setattr(module, "MEMORY_GB", 10**6)
    monkeypatch.setattr(module, "DISK_GB", 10**9)
    assert check().status == WARN


def test_the_table_shows_a_cure_once():
    findings = {
        "one": Finding(FAIL, "a is missing", "a", "make setup"),
        "two": Finding(FAIL, "b is missing", "b", "make setup"),
        "three": Finding(WARN, "little", "more", "tidy up"),
        "four": Finding(OK, "c", "c"),
    }
    text = table(findings)
    assert text.count("to mend it: make setup") == 1
    assert text.count("to mend it: tidy up") == 1
    assert text.endswith("To mend before you start: one, two.")
    assert table(findings, brief=True).splitlines() == [
        line for line in text.splitlines()[1:] if not line.startswith("four")
    ]
