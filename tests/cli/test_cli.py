"""The course's commands: the list, wrong input, and what happens when something is missing."""

import io
import os
import shlex
import subprocess
import sys

import pytest

from course_utils import __main__ as cli
from course_utils import __version__
from course_utils.cli import lab
from course_utils.environment import ROOT


def bare(*arguments):
    """Run a command without any installed package."""
    return subprocess.run(
        [sys.executable, "-S", "-m", "course_utils", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": "", "PYTHONIOENCODING": "utf-8"},
    )


def test_alone_it_lists_every_command(capsys):
    assert cli.main([]) == 0
    listing = capsys.readouterr().out
    for name, (_, text) in cli.COMMANDS.items():
        assert f"  {name} " in listing
        assert text in listing


def test_an_unknown_command_is_refused_with_the_known_ones(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["trian"])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert "'trian'" in error
    assert "did you mean train?" in error
    assert all(name in error.partition("There are ")[2] for name in cli.COMMANDS)


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"{__version__}\n"


@pytest.mark.parametrize("name", sorted(cli.COMMANDS.keys() - {"lab"}))
def test_every_command_explains_itself(name, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main([name, "--help"])
    assert stop.value.code == 0
    assert f"usage: python -m course_utils {name}" in capsys.readouterr().out


def test_options_and_the_exit_code_are_passed_on(monkeypatch):
    monkeypatch.setitem(cli.COMMANDS, "echo", (lambda options: len(options), ""))
    assert cli.main(["echo", "--beam", "4", "doctor"]) == 3


def test_a_missing_package_is_named_with_a_way_out(monkeypatch, capsys):
    def needs_torch(options):
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setitem(cli.COMMANDS, "train", (needs_torch, ""))
    assert cli.main(["train"]) == 1
    assert "the package 'torch' is missing" in capsys.readouterr().err


def test_a_fault_of_our_own_is_not_taken_for_a_missing_package(monkeypatch):
    monkeypatch.setitem(cli.COMMANDS, "gone", (cli.of_module("no_such_module"), ""))
    with pytest.raises(ModuleNotFoundError, match=r"course_utils\.no_such_module"):
        cli.main(["gone"])


def test_stopping_a_command_leaves_no_traceback(monkeypatch, capsys):
    def stopped(options):
        raise KeyboardInterrupt

    monkeypatch.setitem(cli.COMMANDS, "train", (stopped, ""))
    assert cli.main(["train"]) == 130
    assert capsys.readouterr().err == "train: stopped\n"


def test_progress_counts_every_exercise(capsys, monkeypatch, tmp_path):
    from course_utils.checker import catalogue

    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.jsonl"))
    assert cli.main(["progress"]) == 0
    assert f"0 of {len(catalogue())} exercises solved" in capsys.readouterr().out
    assert cli.main(["progress", "02_masked_softmax"]) == 0
    assert "leak_at" in capsys.readouterr().out
    assert cli.main(["progress", "2"]) == 0
    assert "leak_at" in capsys.readouterr().out
    with pytest.raises(SystemExit) as left:
        cli.main(["progress", "99"])
    assert left.value.code == 2
    assert "no exercise is in '99'; chapters: 00_start_here, 01" in capsys.readouterr().err


@pytest.mark.parametrize(("encoding", "block"), [("cp1252", "."), ("ascii", "."), ("utf-8", "░")])
def test_bars_of_progress_are_drawn_in_any_encoding(monkeypatch, tmp_path, encoding, block):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.jsonl"))
    screen = io.TextIOWrapper(io.BytesIO(), encoding)
    monkeypatch.setattr(sys, "stdout", screen)
    assert cli.main(["progress"]) == 0
    screen.flush()
    assert 20 * block in screen.buffer.getvalue().decode(encoding)


@pytest.mark.skipif(os.name == "nt", reason="Windows tells a closed pipe in another way")
def test_a_reader_that_stops_early_leaves_no_traceback():
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-S", "-m", "course_utils", "doctor"]
    run = subprocess.run(command, cwd=ROOT, stdout=write_end, stderr=subprocess.PIPE, text=True)
    os.close(write_end)
    assert (run.returncode, run.stderr) == (1, "")


def test_without_any_package_the_doctor_still_speaks():
    run = bare("doctor")
    assert run.returncode == 1
    assert run.stderr == ""
    assert "torch is missing" in run.stdout
    assert "to mend it: " in run.stdout
    assert "To mend before you start: packages, PyTorch, d2l" in run.stdout


def test_without_any_package_other_commands_point_to_the_doctor():
    run = bare("course")
    assert run.returncode == 1
    assert "is missing" in run.stderr
    assert "python -m course_utils doctor" in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    ("user", "options", "added"), [(0, [], True), (0, ["--allow-root"], False), (1000, [], False)]
)
def test_root_is_let_in_and_told(user, options, added, monkeypatch, capsys):
    monkeypatch.setattr(lab.os, "geteuid", lambda: user, raising=False)
    command = lab.lab_command(options)
    assert command.count("--allow-root") == (user == 0)
    assert ("adding --allow-root" in capsys.readouterr().out) == added


def test_options_for_jupyterlab_come_last_and_count_most():
    options = ["--no-browser", "--port", "8899"]
    assert lab.lab_command(options)[-3:] == options


def test_a_copy_without_lessons_is_refused(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(lab, "ROOT", tmp_path)
    assert lab.main([]) == 1
    assert "00_start_here.ipynb is missing" in capsys.readouterr().out


# ---------------------------------------------------------------- streams

ECHO = """
import sys
from course_utils import __main__ as cli
def echo(options):
    print("\\u00e9\\u4e2d", "x" * int(options[0]))
    print("noted \\u4e2d", file=sys.stderr)
cli.COMMANDS["echo"] = (echo, "")
sys.exit(cli.main(sys.argv[1:]))
"""
in_a_shell = pytest.mark.skipif(os.name == "nt", reason="needs the redirections of a POSIX shell")
full_disk = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")


def echo(redirections, *arguments, encoding="utf-8"):
    """Exit code, stdout and stderr of a command that says something on both."""
    command = shlex.join([sys.executable, "-S", "-c", ECHO, *(arguments or ["echo", "1"])])
    run = subprocess.run(
        f"{command} {redirections}",
        shell=True,
        cwd=ROOT,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": encoding},
    )
    return run.returncode, run.stdout, run.stderr


SAID, NOTED = "\u00e9\u4e2d x\n".encode(), "noted \u4e2d\n".encode()


@in_a_shell
@pytest.mark.parametrize(
    ("redirections", "out", "err"),
    [("", SAID, NOTED), (">&-", b"", NOTED), ("2>&-", SAID, b""), ("<&-", SAID, NOTED),
     ("<&- >&- 2>&-", b"", b""), pytest.param("2>/dev/full", SAID, b"", marks=full_disk)],
)  # fmt: skip
def test_a_stream_that_takes_no_messages_stops_no_command(redirections, out, err):
    assert echo(redirections) == (0, out, err)


@pytest.mark.skipif(os.name == "nt", reason="Windows quotes otherwise")
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1"])
def test_what_an_encoding_lacks_is_written_as_its_escape(encoding):
    code, out, err = echo("", encoding=encoding)
    wanted = [text.decode().encode(encoding, "backslashreplace") for text in (SAID, NOTED)]
    assert (code, [out, err]) == (0, wanted)


@in_a_shell
@full_disk
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [["echo", "1"], ["echo", "100000"], ["--help"]])
def test_output_that_cannot_be_written_is_said_in_a_line(monkeypatch, arguments, unbuffered):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    code, _, err = echo(">/dev/full", *arguments)
    wanted = f"{arguments[0]}: cannot write the output: No space left on device\n".encode()
    assert (code, err.removeprefix(NOTED)) == (1, wanted)


def test_another_error_is_not_taken_for_one_of_the_output(monkeypatch):
    def broken(options):
        raise OSError(5, "Input/output error")

    monkeypatch.setitem(cli.COMMANDS, "train", (broken, ""))
    with pytest.raises(OSError, match="Input/output error"):
        cli.main(["train"])
