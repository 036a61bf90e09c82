"""What holds in every test: no windows, no trace in the learner's progress, the same examples."""

import math
import os
import tempfile
from collections import Counter

if "PYTEST_XDIST_WORKER" in os.environ:  # several processes: a thread each, before torch is loaded
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import hypothesis
import matplotlib
import pytest
from browser import browser  # noqa: F401 (a fixture)
from leftovers import nothing_left  # noqa: F401 (a fixture)
from local_web import web  # noqa: F401 (a fixture)
from site_pages import course_site  # noqa: F401 (a fixture)

from course_utils.chapters import measured_costs

matplotlib.use("Agg")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests may run beside each other; torch reads it
hypothesis.settings.register_profile("course", deadline=None, derandomize=True)
hypothesis.settings.register_profile("long", deadline=None, max_examples=2000)
hypothesis.settings.load_profile("course")


def pytest_collection_modifyitems(items):
    """The dearest first, so that processes which share the tests end together.

    That is notebooks, in the order of what a run of each costs (one that was never measured first),
    then files of many tests. The order within a file stays.
    """
    seconds = {name: cost["seconds"] for name, cost in measured_costs().items()}
    counts = Counter(item.path for item in items)

    def rank(item):
        is_notebook = item.path.suffix == ".ipynb"
        cost = seconds.get(item.path.name, math.inf) if is_notebook else counts[item.path]
        return not is_notebook, -cost

    items.sort(key=rank)


def pytest_configure(config):
    scratch = tempfile.TemporaryDirectory()
    config.add_cleanup(scratch.cleanup)
    os.environ["COURSE_PROGRESS"] = os.path.join(scratch.name, "progress.jsonl")


@pytest.fixture
def patient_search(monkeypatch):
    """What `check` finds out about a strange mistake, however busy the machine is."""
    from course_utils.checker import judge, left_over, repair

    monkeypatch.setattr(judge, "BUDGET", 60.0)
    monkeypatch.setattr(repair, "EACH", 3.0)
    monkeypatch.setattr(left_over, "EACH", 3.0)
