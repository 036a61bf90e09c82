"""One training at a time writes into a folder."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from course_utils.training.runs.refusals import Refused


@contextlib.contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Keep other trainings out of a folder; the lock goes with its process, however that ends.

    Its file stands in the system's temporary folder, under the number that the system gives the
    model folder: whatever path leads there, and also where the folder may only be read.

    Raises:
        Refused: another training is at work there.
    """
    status = folder.stat()
    name = f"course-training-{status.st_dev}-{status.st_ino}.lock"
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(FileLock(Path(tempfile.gettempdir()) / name).acquire(timeout=0))
        except Timeout:
            raise Refused(
                f"another training is writing to {folder}: wait until it ends, or name another "
                "--out"
            ) from None
        except (OSError, NotImplementedError):
            pass  # this machine has no place for a lock, which is no reason not to train
        yield
