"""Trainings that their machine fails: killed, no room, no right to write, no memory.

Whatever happens, the folder stays whole, and `--resume` ends with the weights of an unbroken run.
`make test-long` kills a training 30 times, `make test` 4 times.
"""

import contextlib
import errno
import json
import os
import shlex
import shutil
import stat
import subprocess
import sys

import pytest
import torch
from engine_runs import (
    ENVIRONMENT,
    ROOT,
    TINY,
    assert_same_folders,
    command,
    run,
    talking_folder,
    tiny_folder,
)

from course_utils.cli import evaluate, heatmap, translate
from course_utils.training.runs import engine, files
from course_utils.training.runs.checkpoint import LAST
from course_utils.training.runs.files import read_header
from course_utils.training.runs.folder import WEIGHTS
from course_utils.training.translation import load_translator

IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.mark.deeper
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the killer forks")
def test_a_run_killed_at_any_moment_and_resumed_equals_an_unbroken_one(tmp_path, request):
    kills = 30 if request.config.getoption("hypothesis_profile", None) == "long" else 2
    options = [*TINY, "--epochs", f"{10 * kills}", "--validations", f"{5 * kills}"]
    killer = [
        sys.executable,
        str(ROOT / "tests" / "support" / "engine_killer.py"),
        str(tmp_path / "killed"),
    ]
    killed = subprocess.run(
        [*killer, f"{kills}", *options], env=ENVIRONMENT, capture_output=True, text=True
    )
    assert killed.returncode == 0, killed.stderr
    reached = [int(line) for line in killed.stdout.split() if line != "None"]
    assert reached == sorted(reached)
    assert run(tmp_path / "killed", *options[len(TINY) :], "--resume") == 0
    assert run(tmp_path / "unbroken", *options[len(TINY) :]) == 0
    assert_same_folders(tmp_path / "killed", tmp_path / "unbroken")
    assert not list((tmp_path / "killed").glob(".unfinished-*"))


def failing_write(monkeypatch, number, code):
    """Let the so manieth file that is brought to the disk fail."""
    fsync, left = os.fsync, [number]

    def failing(handle):
        left[0] -= not stat.S_ISDIR(os.fstat(handle).st_mode)
        if left[0] == 0:
            raise OSError(code, os.strerror(code))
        return fsync(handle)

    monkeypatch.setattr(files.os, "fsync", failing)


CODES = {
    errno.ENOSPC: "make room there",
    errno.EFBIG: "make room there",
    errno.EROFS: "make sure that you may write there",
    errno.EACCES: "make sure that you may write there",
}


@pytest.mark.parametrize(
    ("write", "code"), [*((n, errno.ENOSPC) for n in (1, 4, 5, 6, 7)), *((8, c) for c in CODES)]
)
def test_a_failed_write_is_explained_and_nothing_is_lost(
    monkeypatch, tmp_path, capsys, write, code
):
    with monkeypatch.context() as patch:
        failing_write(patch, write, code)
        assert run(tmp_path / "a") == 1
    err = capsys.readouterr().err
    assert err.count(f"{os.strerror(code)}; {CODES[code]}; then go on by the same command with "
                     "--resume") == 1  # fmt: skip
    assert "Traceback" not in err
    if (tmp_path / "a" / WEIGHTS).exists():
        load_translator(tmp_path / "a")
        assert (tmp_path / "a" / LAST).exists()
    assert run(tmp_path / "a", "--resume") == 0
    assert_same_folders(tmp_path / "a", tiny_folder())


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="only Linux tells what is mapped")
def test_a_checkpoint_that_was_read_is_no_longer_in_use(tmp_path):
    folder = shutil.copytree(tiny_folder(), tmp_path / "a")
    wanted = engine.checkpoint._wanted(
        *[dict(load_translator(folder).model.named_parameters())] * 2
    )
    kept = files.read_tensors(folder / LAST, wanted)
    with open("/proc/self/maps", encoding="utf-8") as maps:
        assert str(folder) not in maps.read()
    assert len(kept) == len(wanted)


LIMITED = """
import resource, sys
from course_utils.cli import train
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
sys.exit(train.main(sys.argv[2:]))
"""


@pytest.mark.long
def test_a_file_system_that_takes_no_larger_files_keeps_what_is_there(tmp_path, capsys):
    pytest.importorskip("resource", reason="no such limits here")
    arguments = [*TINY, "--out", str(tmp_path / "a")]
    limited = [sys.executable, "-c", LIMITED, "100000"]  # the checkpoint is larger, not the weights
    result = subprocess.run(
        [*limited, *arguments], env=ENVIRONMENT, capture_output=True, text=True, encoding="utf-8"
    )
    assert result.returncode == 1
    assert "cannot write" in result.stderr
    assert "File too large; make room there" in result.stderr
    assert "Traceback" not in result.stderr
    assert run(tmp_path / "a", "--resume") == 0
    assert_same_folders(tmp_path / "a", tiny_folder())


@contextlib.contextmanager
def mounted(folder, *options):
    """A file system of its own on a folder; the test is skipped where that is not allowed."""
    if not (sys.platform == "linux" and IS_ROOT and shutil.which("mount")):
        pytest.skip("only root of Linux can mount")
    mount = subprocess.run(["mount", *options, folder], capture_output=True)
    if mount.returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_explained_and_the_model_stays(tmp_path, capsys):
    disk = tmp_path / "disk"
    disk.mkdir()
    with mounted(disk, "-t", "tmpfs", "-o", "size=900k", "tmpfs"):
        ballast = disk / "ballast"
        ballast.write_bytes(b"x" * 400_000)
        assert run(disk / "a") == 1
        assert "No space left on device; make room there" in capsys.readouterr().err
        load_translator(disk / "a")
        assert not list((disk / "a").glob(".unfinished-*"))
        ballast.unlink()
        assert run(disk / "a", "--resume") == 0
        assert_same_folders(disk / "a", tiny_folder())


def test_a_disk_that_may_only_be_read_still_serves_its_model(tmp_path, capsys, monkeypatch):
    disk = tmp_path / "disk"
    shutil.copytree(talking_folder(), disk)
    with mounted(disk, "--bind", str(disk)), contextlib.ExitStack() as stack:
        subprocess.run(["mount", "-o", "remount,bind,ro", disk], check=True)
        stack.callback(subprocess.run, ["mount", "-o", "remount,bind,rw", disk], check=True)
        assert run(disk, "--epochs", "80", "--validations", "1", "--resume") == 0  # all is done
        assert run(disk / "b") == 1
        assert "cannot make the folder" in capsys.readouterr().err
        both = ["--src", str(disk / "test.en"), "--ref", str(disk / "test.fr")]
        assert evaluate.main(["--model", str(disk), *both]) == 0
        picture = ["--text", "Go.", "--out", str(disk / "map.png")]
        assert heatmap.main(["--model", str(disk), *picture]) == 1
        assert "Read-only file system; make sure that you may write" in capsys.readouterr().err


@pytest.mark.skipif(IS_ROOT or os.name == "nt", reason="root and Windows ignore these modes")
def test_a_folder_without_the_right_to_write_is_explained(tmp_path, capsys):
    tmp_path.chmod(0o500)
    try:
        assert run(tmp_path / "a") == 1
    finally:
        tmp_path.chmod(0o700)
    assert "cannot make the folder" in capsys.readouterr().err


def test_the_best_weights_never_stand_without_a_checkpoint(monkeypatch, tmp_path):
    def killed(folder, *args):
        write(folder, *args)
        raise KeyboardInterrupt

    write = engine.write_weights
    with monkeypatch.context() as patch:
        patch.setattr(engine, "write_weights", killed)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "a")
    assert json.loads(read_header(tmp_path / "a" / LAST)["validated"]) == 0
    assert run(tmp_path / "a", "--resume") == 0
    assert_same_folders(tmp_path / "a", tiny_folder())


def test_a_budget_of_no_time_makes_one_update(tmp_path, capsys):
    timed = ["--minutes" if part == "--epochs" else part for part in TINY]
    timed[timed.index("--minutes") + 1] = "1e-9"
    arguments = [*timed, "--out", str(tmp_path / "a")]
    assert command(*arguments) == 0
    assert json.loads(read_header(tmp_path / "a" / LAST)["step"]) == 1
    assert command(*arguments, "--resume") == 0


OUT_OF_MEMORY = [
    MemoryError(),
    MemoryError("Unable to allocate 3.7 GiB for an array"),
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total"),
    RuntimeError("CUDA error: out of memory"),
    RuntimeError("MPS backend out of memory (MPS allocated: 8.83 GB, max allowed: 9.07 GB)."),
    RuntimeError("Invalid buffer size: 23.84 GB"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't "
                 "allocate memory: you tried to allocate 4 bytes. Error code 12 (Cannot allocate"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:72] data. DefaultCPUAllocator: not enough "
                 "memory: you tried to allocate 4 bytes."),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    RuntimeError("std::bad_alloc"),
    OSError(errno.ENOMEM, "Cannot allocate memory"),
]  # fmt: skip


@pytest.mark.parametrize("error", OUT_OF_MEMORY, ids=lambda error: str(error)[:40])
def test_out_of_memory_says_what_to_lower(monkeypatch, tmp_path, capsys, error):
    def full(*args):
        raise error

    monkeypatch.setattr(engine.Training, "_update", full)
    assert run(tmp_path / "a") == 1
    err = capsys.readouterr().err
    assert "train: there is not enough memory: start anew in another --out with smaller" in err
    assert "--tokens, then with smaller --d-model" in err
    assert "Traceback" not in err


def test_memory_that_translating_lacks_is_explained_too(monkeypatch, tmp_path, capsys):
    def full(*args, **options):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    folder = tiny_folder()
    for module in (translate, evaluate, heatmap):
        monkeypatch.setattr(module, "load_translator", full)
    assert translate.main(["--model", str(folder)]) == 1
    both = ["--src", str(folder / "test.en"), "--ref", str(folder / "test.fr")]
    assert evaluate.main(["--model", str(folder), *both]) == 1
    assert capsys.readouterr().err.count("not enough memory: take a smaller --batch-size") == 2
    assert heatmap.main(["--model", str(folder), "--text", "Go.", "--out", "map.png"]) == 1
    assert "not enough memory: take a shorter --text" in capsys.readouterr().err


@pytest.mark.parametrize("error", [RuntimeError("shapes differ"), OSError(5, "I/O error")])
def test_another_error_is_not_taken_for_a_lack_of_memory(monkeypatch, tmp_path, error):
    def broken(*args):
        raise error

    monkeypatch.setattr(engine.Training, "_update", broken)
    with pytest.raises(type(error), match="shapes differ|I/O error"):
        run(tmp_path / "a")


def test_best_weights_that_are_gone_are_missed(tmp_path, capsys):
    folder = shutil.copytree(tiny_folder(), tmp_path / "a")
    (folder / WEIGHTS).unlink()
    assert run(folder, "--resume") == 1
    assert "model.safetensors, the best weights so far, is gone from" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--d-model", "--d-ff", "--vocab", "--heads", "--epochs"])
def test_no_size_can_be_trained_that_cannot_be_loaded(tmp_path, capsys, option):
    with pytest.raises(SystemExit):
        run(tmp_path / "a", option, "9" * 400)
    assert "is not a whole number from" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="needs the redirections of a POSIX shell")
class TestStreams:
    """`test_cli` has what holds for every command; here are those that speak in their own way."""

    full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")

    def command(self, redirections, *arguments):
        line = shlex.join([sys.executable, "-m", "course_utils", *map(str, arguments)])
        return subprocess.run(
            f"{line} {redirections}", shell=True, env=ENVIRONMENT, cwd=ROOT, capture_output=True,
            text=True, encoding="utf-8",
        )  # fmt: skip

    @pytest.mark.parametrize(
        "stream", ["2>&-", pytest.param("2>/dev/full", marks=[full, pytest.mark.long])]
    )
    def test_a_training_goes_on_when_nobody_can_be_told(self, tmp_path, stream):
        result = self.command(stream, "train", *TINY, "--out", tmp_path / "a")
        assert (result.returncode, result.stderr) == (0, "")
        assert "test chrF2" in result.stdout
        assert_same_folders(tmp_path / "a", tiny_folder())

    @full
    @pytest.mark.parametrize("name", ["translate", pytest.param("heatmap", marks=pytest.mark.long)])
    def test_output_that_cannot_be_written_is_said(self, tmp_path, name):
        both = {"translate": [], "heatmap": ["--text", "Go.", "--target", "Va !",
                                             "--out", tmp_path / "map.png"]}[name]  # fmt: skip
        source = tiny_folder() / "test.en"
        result = self.command(f"<{source} >/dev/full", name, "--model", tiny_folder(), *both)
        assert result.returncode == 1
        assert result.stderr == f"{name}: cannot write the output: No space left on device\n"

    def test_a_translation_of_nothing_is_refused(self):
        result = self.command("<&-", "translate", "--model", tiny_folder())
        assert result.returncode == 1
        assert result.stderr == (
            "translate: there is nothing to translate: standard input is closed\n"
        )
