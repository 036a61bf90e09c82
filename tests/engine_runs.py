"""Tiny trainings for the tests of the engine."""

import functools
import io
import os
import sys
import tempfile
import types
from pathlib import Path

from safetensors.torch import load_file

from course_utils.engine import train, translate
from course_utils.environment import ROOT

TINY = (
    "--corpus everyday --size 60 --vocab 300 --d-model 16 --heads 2 --layers 1 --epochs 3 "
    "--tokens 400 --validations 3"
).split()
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
    "PYTHONIOENCODING": "utf-8",
    "OMP_NUM_THREADS": "1",
}


def run(folder, *options):
    """`train` with the tiny settings, of which some may be given anew; returns its exit code."""
    return train.main([*TINY, *options, "--out", str(folder)])


@functools.cache
def _made():
    scratch = tempfile.TemporaryDirectory()
    folder = Path(scratch.name) / "tiny"
    assert run(folder) == 0
    return scratch, folder


def tiny_folder():
    """A finished tiny training, made once; not to be changed."""
    return _made()[1]


def tensors(folder, name="last.safetensors"):
    return load_file(folder / name)


def translate_bytes(monkeypatch, data, *options, folder=None):
    """What `translate` writes for some bytes on standard input."""
    written = io.BytesIO()
    with monkeypatch.context() as patch:
        stdin = types.SimpleNamespace(buffer=io.BytesIO(data), isatty=lambda: False)
        patch.setattr(sys, "stdin", stdin)
        patch.setattr(sys, "stdout", types.SimpleNamespace(buffer=written))
        assert translate.main(["--model", str(folder or tiny_folder()), *options]) == 0
    return written.getvalue()
