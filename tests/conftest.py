"""What holds in every test: no windows, no trace in the learner's progress, the same examples."""

import os
import tempfile

import hypothesis
import matplotlib
import pytest
from browser import browser  # noqa: F401 (a fixture)
from leftovers import nothing_left  # noqa: F401 (a fixture)
from local_web import web  # noqa: F401 (a fixture)
from site_pages import course_site  # noqa: F401 (a fixture)

matplotlib.use("Agg")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests may run beside each other; torch reads it
hypothesis.settings.register_profile("course", deadline=None, derandomize=True)
hypothesis.settings.register_profile("long", deadline=None, max_examples=2000)
hypothesis.settings.load_profile("course")


def pytest_configure(config):
    scratch = tempfile.TemporaryDirectory()
    config.add_cleanup(scratch.cleanup)
    os.environ["COURSE_PROGRESS"] = os.path.join(scratch.name, "progress.jsonl")


@pytest.fixture
def patient_search(monkeypatch):
    """What `check` finds out about a strange mistake, however busy the machine is."""
    from course_utils.checker.mutants import search

    monkeypatch.setattr(search, "SECONDS", 60.0)
    monkeypatch.setattr(search, "_EACH", 3.0)
