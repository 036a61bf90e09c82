"""Checks that this computer and environment can run the course, and says how to mend what cannot.

Everything outside the standard library is imported inside the check that needs it: the doctor must
also work where nothing is installed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from course_utils.environment import DEFAULT, ROOT, python_of, supported_versions

OK, WARN, FAIL = "OK", "warn", "FAIL"
MEMORY_GB, DISK_GB = 2, 1


@dataclass(frozen=True)
class Finding:
    """What one check found, what it wants, and what to do when the two differ."""

    status: str
    found: str
    wanted: str
    mend: str = ""


def finding(good: bool, found: str, wanted: str, mend: str, otherwise: str = FAIL) -> Finding:
    """A finding that is OK when `good`, and carries its cure only when it is not."""
    return Finding(OK, found, wanted) if good else Finding(otherwise, found, wanted, mend)


def how_to_install() -> str:
    """The command that makes the environment, or that runs the one which is there."""
    venv = ROOT / DEFAULT
    if python_of(venv).exists() and Path(sys.prefix).resolve() != venv.resolve():
        return f"use the course's own Python: {python_of(venv)} -m course_utils doctor"
    return "make setup (on Windows: py -m course_utils setup)"


def check_python() -> Finding:
    oldest, beyond = supported_versions()
    return finding(
        oldest <= sys.version_info[:2] < beyond,
        sys.version.split()[0],
        f"3.{oldest[1]} to 3.{beyond[1] - 1}",
        "install one of these and run: make setup PYTHON=/path/to/python3",
    )


def check_packages() -> Finding:
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    wanted = re.findall(r"^([\w-]+)(\S*)$", text, re.MULTILINE)
    faults = [fault for name, versions in wanted if (fault := package_fault(name, versions))]
    found = f"{len(wanted) - len(faults)} of {len(wanted)}"
    if faults:
        found += f": {', '.join(faults[:3])}{', ...' if faults[3:] else ''}"
    return finding(not faults, found, "all of requirements.txt", how_to_install())


def package_fault(name: str, versions: str) -> str:
    """'NAME is missing' or 'NAME is VERSION'; empty when an allowed version is installed."""
    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        return f"{name} is missing"
    from packaging.specifiers import SpecifierSet

    return "" if SpecifierSet(versions).contains(found, prereleases=True) else f"{name} is {found}"


def check_torch() -> Finding:
    import torch

    product = torch.tensor([[1.0, 2.0], [3.0, 4.0]]) @ torch.tensor([[1.0], [1.0]])
    right = product.tolist() == [[3.0], [7.0]]
    found = torch.__version__ if right else f"{torch.__version__} multiplies matrices wrongly"
    return finding(right, found, "a right matrix product", "reinstall torch, or report its fault")


def check_d2l() -> Finding:
    with (
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(out),
    ):
        import d2l.torch

    said = out.getvalue().strip().splitlines()
    found = said[-1][:60] if said else metadata.version("d2l")
    return finding(
        not said and hasattr(d2l.torch, "MultiHeadAttention"),
        found,
        "its attention layers, without warnings",
        how_to_install(),
    )


def check_kernel() -> Finding:
    import ipykernel
    from jupyter_client.kernelspec import KernelSpecManager

    program = KernelSpecManager().get_kernel_spec("python3").argv[0]
    # Jupyter replaces a bare "python" by the interpreter that it runs on itself.
    ours = re.fullmatch(r"python[\d.]*", program) or Path(program) == Path(sys.executable)
    return finding(
        bool(ours),
        f"ipykernel {ipykernel.__version__}" if ours else f"notebooks run on {program}",
        "notebooks run on this Python",
        f"{sys.executable} -m ipykernel install --sys-prefix",
    )


def check_copy() -> Finding:
    """Two copies of the course may share an environment; which one a notebook imports matters."""
    here = [Path.cwd(), *Path.cwd().parents]
    around = next((p for p in here if (p / "course_utils" / "environment.py").is_file()), ROOT)
    return finding(
        around.resolve() == ROOT,
        f"course_utils of {ROOT}",
        "the copy you work in",
        f"start with make lab in {around}, or set PYTHONPATH to that folder",
    )


def check_data() -> Finding:
    from course_utils.text.corpora import load_corpus

    found = len(load_corpus("everyday").pairs)
    return finding(found > 0, f"{found} everyday pairs", "the texts of the course", "git restore .")


def check_real_data() -> Finding:
    folder = os.environ.get("COURSE_DATA_DIR")
    return finding(
        not folder or Path(folder).is_dir(),
        f"COURSE_DATA_DIR={folder}" if folder else "COURSE_DATA_DIR is not set",
        "not set, or a folder",
        "unset COURSE_DATA_DIR, or set it to the folder with your copies of the real corpora",
    )


def check_progress() -> Finding:
    from course_utils.checker.log import path

    folder = path().parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            writable = True
    except OSError:
        writable = False
    return finding(
        writable,
        f"{folder} {'can' if writable else 'cannot'} be written",
        "a place for your progress",
        "set COURSE_PROGRESS to a file in a folder that you can write",
        WARN,
    )


def check_fonts() -> Finding:
    from matplotlib import font_manager

    from course_utils.viz.style import fonts

    own, *others = fonts()
    others = others[0] if others else "none (a figure of yours would show boxes)"
    found = own in font_manager.get_font_names()
    return finding(
        found, f"{own}; for Chinese {others}" if found else "not found", own, how_to_install()
    )


def check_memory() -> Finding:
    import psutil

    free = psutil.virtual_memory().available / 1e9
    mend = "close other programs before the longer trainings"
    return finding(free >= MEMORY_GB, f"{free:.1f} GB free", f"{MEMORY_GB} GB", mend, WARN)


def check_disk() -> Finding:
    free = shutil.disk_usage(ROOT).free / 1e9
    mend = "make room: checkpoints and downloaded texts need some"
    return finding(free >= DISK_GB, f"{free:.1f} GB free", f"{DISK_GB} GB", mend, WARN)


def check_accelerator() -> Finding:
    wanted = "nothing: a CPU is enough"
    if importlib.util.find_spec("torch") is None:
        return Finding(OK, "not known without PyTorch", wanted)
    import torch

    if torch.cuda.is_available():
        found = torch.cuda.get_device_name(0)
    elif torch.backends.mps.is_available():
        found = "Apple GPU"
    else:
        found = f"none; {torch.get_num_threads()} CPU threads"
    return Finding(OK, found, wanted)


CHECKS: dict[str, Callable[[], Finding]] = {
    "Python": check_python,
    "packages": check_packages,
    "PyTorch": check_torch,
    "d2l": check_d2l,
    "notebook kernel": check_kernel,
    "copy of the course": check_copy,
    "shipped texts": check_data,
    "real texts": check_real_data,
    "progress": check_progress,
    "fonts": check_fonts,
    "memory": check_memory,
    "disk": check_disk,
    "accelerator": check_accelerator,
}


def examine() -> dict[str, Finding]:
    """Run every check; one that cannot even run has failed."""
    return {name: attempt(check) for name, check in CHECKS.items()}


def attempt(check: Callable[[], Finding]) -> Finding:
    """The check's finding, or a failure that tells why there is none."""
    try:
        return check()
    except ModuleNotFoundError as error:
        return Finding(FAIL, f"{error.name} is missing", "", how_to_install())
    except Exception as error:
        return Finding(FAIL, f"{type(error).__name__}: {error}", "", how_to_install())


def table(findings: dict[str, Finding], brief: bool = False) -> str:
    """The findings as text: a line each, and below it the cure, the first time it is needed.

    `brief` leaves out what is as it should be.
    """
    lines = [] if brief else [f"{'check':<20}{'':<6}{'found':<44}wanted"]
    for name, found in findings.items():
        if brief and found.status == OK:
            continue
        lines.append(f"{name:<20}{found.status:<6}{found.found:<43} {found.wanted}".rstrip())
        cure = f"{'':<26}to mend it: {found.mend}"
        if found.mend and cure not in lines:
            lines.append(cure)
    return "\n".join([*lines, *([""] if lines else []), verdict(findings)])


def verdict(findings: dict[str, Finding]) -> str:
    """One sentence that sums the findings up."""
    failed = [name for name, found in findings.items() if found.status == FAIL]
    if failed:
        return f"To mend before you start: {', '.join(failed)}."
    return "Everything that the course needs is there."


def doctor(brief: bool = False) -> None:
    """Check this computer and environment and print what was found.

    `brief` leaves out what is as it should be, so that the text is the same wherever all is well.
    """
    print(table(examine(), brief))


def main(argv: list[str]) -> int:
    """Print the table; 1 when something that the course needs is missing."""
    argparse.ArgumentParser(
        prog="python -m course_utils doctor",
        description="Check the environment and say how to mend what is missing.",
    ).parse_args(argv)
    findings = examine()
    print(table(findings))
    return 1 if any(found.status == FAIL for found in findings.values()) else 0
