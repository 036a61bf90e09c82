"""What tests leave behind: open figures, processes, temporary files. In the end nothing may be."""

import os
import sys
from contextlib import suppress

import psutil
import pytest

PATIENCE = 20  # seconds that processes may take to end
TORCHS = "torch.distributed.nn.jit.instantiator"  # in torch 2.5 it keeps a folder to the end


@pytest.fixture(scope="session", autouse=True)
def nothing_left(request, tmp_path_factory):
    """Fails after the last test for what is left, if all went well until then."""
    made = note_temporary_files()
    yield
    if engine_runs := sys.modules.get("engine_runs"):  # these trainings serve all test files
        engine_runs._scratch().cleanup()
    if not request.session.testsfailed:
        left = leftovers(made, str(tmp_path_factory.getbasetemp()))
        assert not left, "\n".join(["the tests left behind:", *left])


def note_temporary_files():
    """A list that gets the path of each file and folder that `tempfile` makes from now on."""
    made = []

    def note(event, details):
        if event in ("tempfile.mkdtemp", "tempfile.mkstemp"):
            made.append(str(details[0]))

    sys.addaudithook(note)
    return made


def leftovers(made, kept):
    """A line for each figure and process, and for each path in `made` that is not below `kept`."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    figures = pyplot.get_fignums() if pyplot else []
    torchs = getattr(sys.modules.get(TORCHS), "INSTANTIATED_TEMPLATE_DIR_PATH", None)
    files = [path for path in made if path != torchs and not path.startswith(kept)]
    return [
        *(f"figure {number}" for number in figures),
        *(f"process {process.pid}: {command}" for process, command in running()),
        *filter(os.path.lexists, files),
    ]


def running():
    """The processes below this one that do not end by themselves, each with its command."""
    commands = {}
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has ended meanwhile
            commands[process] = " ".join(process.cmdline())
    # Python keeps one of them itself, until the end, where processes were spawned.
    ours = [each for each in commands if "multiprocessing.resource_tracker" not in commands[each]]
    return [(each, commands[each]) for each in psutil.wait_procs(ours, PATIENCE)[1]]
