"""Start a training again and again, and kill it each time.

python engine_killer.py DIR KILLS OPTIONS...

The modules are imported once; every run is a fork of this process. Every other run dies at a
random moment, and those between them inside a write: before one of the calls that bring a file to
the disk. Prints, after each kill, up to which update the checkpoint reaches. Ends early if a run is
faster than its killer.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

from course_utils.cli import train
from course_utils.training.runs.checkpoint import read_fields
from course_utils.training.runs.refusals import Refused
from course_utils.training.translation import load_translator

WRITES = 24  # calls among which one is fatal; a write has three, and a validation two writes


def look(folder):
    """Load what the folder holds; whatever is there must be whole."""
    fields = read_fields(folder) if folder.exists() else None
    try:
        load_translator(folder)
    except Refused as error:
        if "there is no" not in str(error):  # not yet written is fine, damaged is not
            raise
    return fields["step"] if fields else None


def die_inside_a_write(calls):
    """Let this process be killed instead of making its so manieth call of fsync or replace."""
    left = [calls]

    def counted(call):
        def fatal(*args):
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args)

        return fatal

    os.fsync, os.replace = counted(os.fsync), counted(os.replace)


def start(folder, options, calls):
    """Train in a fork of this process; `calls` as above, or None."""
    child = os.fork()
    if child == 0:
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        if calls:
            die_inside_a_write(calls)
        os._exit(train.main([*options, "--out", str(folder), "--resume"]))
    return child


def main():
    folder, kills, options = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    rng = random.Random(0)
    torch.optim.AdamW([torch.zeros(1, requires_grad=True)])  # imports half of torch
    for kill in range(kills):
        child = start(folder, options, rng.randint(1, WRITES) if kill % 2 else None)
        if kill % 2 == 0:
            time.sleep(rng.uniform(0.1, 1.2))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        # looked at in a fork, so that torch starts no thread in the process that is forked
        if (reader := os.fork()) == 0:
            print(look(folder), flush=True)
            os._exit(0)
        if os.waitpid(reader, 0)[1] != 0:
            sys.exit("a killed run has left what cannot be loaded")
        if not os.WIFSIGNALED(status):
            sys.exit(status)  # 0 when it has reached its end
    sys.exit(0)


if __name__ == "__main__":
    main()
