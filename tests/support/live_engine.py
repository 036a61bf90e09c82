"""The engine of the live page, run by node, and the same model in Python."""

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from course_utils.training.translation import load_translator
from course_utils.viz.live import FOLDER
from course_utils.viz.live.packed_model import pack_model
from course_utils.viz.scripts import bundle

HARNESS = Path(__file__).with_name("live_engine.mjs")
EXPORT = "\nexport { Translator, UNTOUCHED };\n"


@cache
def python_translator():
    """The shipped model; its tests do not change it, or put back what they changed."""
    return load_translator("fra-eng")


@cache
def engine_script():
    """The engine as the page carries it, as one module."""
    return bundle(FOLDER / "translator.js") + EXPORT


class Engine:
    """Asks the engine in a folder of its own; `scripts` are variants of its code by name."""

    def __init__(self, folder):
        self.folder, self.node = Path(folder), shutil.which("node")
        if self.node is None:
            pytest.skip("node is not installed; the browser tests compare a few sentences")
        (self.folder / "model.json").write_text(json.dumps(pack_model("fra-eng")))
        self.add("engine.mjs", engine_script())

    def add(self, name, script):
        """Keep a variant of the engine under this name."""
        (self.folder / name).write_text(script, encoding="utf-8")

    def ask(self, *requests):
        """The answers to requests {ask, ...}; each may name its code."""
        requests = [{"code": "engine.mjs", **request} for request in requests]
        (self.folder / "requests.json").write_text(json.dumps(requests))
        done = subprocess.run(
            [self.node, HARNESS, self.folder], capture_output=True, text=True, timeout=1800
        )
        assert done.returncode == 0, done.stderr
        return json.loads((self.folder / "answers.json").read_text())
