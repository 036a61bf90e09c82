"""Start a training again and again, and kill it each time: python engine_killer.py DIR OPTIONS...

The modules are imported once; every run is a fork of this process. Prints, after each kill, whether
the folder holds a checkpoint and a model that load.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

from course_utils.engine import train
from course_utils.engine.checkpoint import read_fields
from course_utils.engine.command import Refused
from course_utils.engine.folder import load_translator

KILLS = 6


def look(folder):
    """Load what the folder holds; whatever is there must be whole."""
    fields = read_fields(folder) if folder.exists() else None
    try:
        load_translator(folder)
    except Refused as error:
        assert "there is no" in str(error), error  # not yet written; never damaged
    return fields["step"] if fields else None


def main():
    folder, options = Path(sys.argv[1]), sys.argv[2:]
    rng = random.Random(0)
    for _ in range(KILLS):
        child = os.fork()
        if child == 0:
            sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
            os._exit(train.main([*options, "--out", str(folder), "--resume"]))
        time.sleep(rng.uniform(0.2, 1.2))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        # looked at in a fork, so that torch starts no thread in the process that is forked
        if (reader := os.fork()) == 0:
            print(os.WIFSIGNALED(status), look(folder), flush=True)
            os._exit(0)
        assert os.waitpid(reader, 0)[1] == 0


if __name__ == "__main__":
    main()
