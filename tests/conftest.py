"""What holds in every test: no windows, no trace in the learner's progress, the same examples."""

import os
import tempfile

import hypothesis
import matplotlib

matplotlib.use("Agg")
hypothesis.settings.register_profile("course", deadline=None, derandomize=True)
hypothesis.settings.load_profile("course")


def pytest_configure(config):
    scratch = tempfile.TemporaryDirectory()
    config.add_cleanup(scratch.cleanup)
    os.environ["COURSE_PROGRESS"] = os.path.join(scratch.name, "progress.jsonl")
