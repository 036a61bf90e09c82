"""Tiny trainings for the tests of the engine."""

import functools
import io
import os
import sys
import tempfile
import types
from pathlib import Path

import torch
from safetensors.torch import load_file

from course_utils.cli import train, translate
from course_utils.environment import ROOT
from course_utils.training.runs.files import read_header

TINY = (
    "--corpus everyday --size 60 --vocab 300 --d-model 16 --heads 2 --layers 1 --epochs 3 "
    "--tokens 400 --validations 3"
).split()
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests" / "support")]),
    "PYTHONIOENCODING": "utf-8",
    "OMP_NUM_THREADS": "1",
}


def command(*options):
    """`train` on one thread, as in ENVIRONMENT: sums in another order differ in the last bits."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return train.main(list(options))
    finally:
        torch.set_num_threads(threads)


def run(folder, *options):
    """`train` with the tiny settings, of which some may be given anew; returns its exit code."""
    return command(*TINY, *options, "--out", str(folder))


@functools.cache
def _scratch():
    return tempfile.TemporaryDirectory()


@functools.cache
def tiny_folder():
    """A finished tiny training, made once; not to be changed."""
    folder = Path(_scratch().name) / "tiny"
    assert run(folder) == 0
    return folder


@functools.cache
def talking_folder():
    """A tiny model trained long enough to say different things; made once, not to be changed."""
    folder = Path(_scratch().name) / "talking"
    assert run(folder, "--epochs", "80", "--validations", "1") == 0
    return folder


def tensors(folder, name="last.safetensors"):
    return load_file(folder / name)


def translate_bytes(monkeypatch, data, *options, folder=None):
    """What `translate` writes for some bytes on standard input."""
    folder, written = folder or talking_folder(), io.BytesIO()
    with monkeypatch.context() as patch:
        stdin = types.SimpleNamespace(buffer=io.BytesIO(data), isatty=lambda: False)
        patch.setattr(sys, "stdin", stdin)
        patch.setattr(sys, "stdout", types.SimpleNamespace(buffer=written))
        assert translate.main(["--model", str(folder), *options]) == 0
    return written.getvalue()


def assert_same_folders(found, wanted):
    for name in ("last.safetensors", "model.safetensors"):
        ours, theirs = tensors(found, name), tensors(wanted, name)
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[key], theirs[key]) for key in theirs), name
    assert read_header(found / "model.safetensors") == read_header(wanted / "model.safetensors")
    for name in ("config.json", "vocabulary.json", "test.en", "test.fr"):
        assert (found / name).read_bytes() == (wanted / name).read_bytes()
