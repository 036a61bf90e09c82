"""How much memory this process has needed."""

import sys
from pathlib import Path


def peak_memory() -> int:
    """The most memory this process has held so far, in bytes."""
    if sys.platform == "win32":
        import psutil

        return psutil.Process().memory_info().peak_wset
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss may count what the parent held before it started this process
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
