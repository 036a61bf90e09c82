"""Start a training again and again, and kill it each time: python engine_killer.py DIR OPTIONS...

The modules are imported once; every run is a fork of this process. Prints, after each kill,
up to which update the checkpoint reaches. Ends early if a run is faster than its killer.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

from course_utils.engine import train
from course_utils.engine.checkpoint import read_fields
from course_utils.engine.command import Refused
from course_utils.engine.folder import load_translator

KILLS = 4


def look(folder):
    """Load what the folder holds; whatever is there must be whole."""
    fields = read_fields(folder) if folder.exists() else None
    try:
        load_translator(folder)
    except Refused as error:
        if "there is no" not in str(error):  # not yet written is fine, damaged is not
            raise
    return fields["step"] if fields else None


def main():
    folder, options = Path(sys.argv[1]), sys.argv[2:]
    rng = random.Random(0)
    torch.optim.AdamW([torch.zeros(1, requires_grad=True)])  # imports half of torch
    for _ in range(KILLS):
        child = os.fork()
        if child == 0:
            sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
            os._exit(train.main([*options, "--out", str(folder), "--resume"]))
        time.sleep(rng.uniform(0.3, 1.3))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        # looked at in a fork, so that torch starts no thread in the process that is forked
        if (reader := os.fork()) == 0:
            print(look(folder), flush=True)
            os._exit(0)
        if os.waitpid(reader, 0)[1] != 0:
            sys.exit("a killed run has left what cannot be loaded")
        if not os.WIFSIGNALED(status):
            break


if __name__ == "__main__":
    main()
