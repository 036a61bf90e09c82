"""Makes the course's virtual environment and keeps it in step with requirements.txt.

Runs before anything is installed (`make` calls it; on Windows, `py -m course_utils setup`): so it
uses the standard library alone, and only syntax that lets a Python that is too old say so.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEFAULT = ".venv"
RECIPE = ("requirements.txt", "pyproject.toml")
STAMP = "course-utils.stamp"


class SetupError(Exception):
    """The environment cannot be made; the message says what to do."""


def supported_versions(root: Path = ROOT) -> tuple[tuple[int, int], tuple[int, int]]:
    """The oldest Python that the course runs on and the first that it does not, as tuples."""
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    bounds = re.search(r'^requires-python = ">=3\.(\d+),<3\.(\d+)"$', text, re.MULTILINE)
    return (3, int(bounds[1])), (3, int(bounds[2]))


def complaint(root: Path = ROOT) -> str:
    """What keeps the running interpreter from making the environment; empty when nothing does."""
    oldest, beyond = supported_versions(root)
    found = sys.version_info[:2]
    if not oldest <= found < beyond:
        return (
            f"the course runs on Python 3.{oldest[1]} to 3.{beyond[1] - 1}, and {sys.executable} "
            f"is {found[0]}.{found[1]}. Install one of these; if it is not found by itself, name "
            "it: make lab PYTHON=/path/to/python3"
        )
    if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        return (
            f"{sys.executable} cannot make virtual environments, because its venv or ensurepip "
            "module is missing. On Debian and Ubuntu: sudo apt install python3-venv"
        )
    return ""


def python_of(venv: Path) -> Path:
    """The interpreter inside an environment folder."""
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def recipe_digest(root: Path = ROOT) -> str:
    """A digest of the files that say what is to be installed."""
    return hashlib.sha256(b"\0".join((root / name).read_bytes() for name in RECIPE)).hexdigest()


def is_ready(venv: Path, root: Path = ROOT) -> bool:
    """Whether a set-up for exactly this recipe was finished in the folder."""
    stamp = venv / STAMP
    return stamp.is_file() and stamp.read_text(encoding="utf-8").strip() == recipe_digest(root)


def version_of(venv: Path) -> tuple[int, ...]:
    """(major, minor) of a working environment's Python with pip; empty when it does not work."""
    ask = "import sys, pip; print(*sys.version_info[:2])"
    try:
        answer = subprocess.run(
            [str(python_of(venv)), "-c", ask], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError:
        return ()
    return tuple(int(part) for part in answer.stdout.split()) if answer.returncode == 0 else ()


def create(venv: Path, root: Path = ROOT) -> None:
    """Make an empty environment, in place of a broken one, but never in place of other files."""
    if complaint(root):
        raise SetupError(complaint(root))
    ours = (venv / "pyvenv.cfg").is_file() or venv == root / DEFAULT
    if venv.exists() and not ours and (not venv.is_dir() or any(venv.iterdir())):
        raise SetupError(f"{venv} exists and is no environment; name another: VENV=path")
    print(f"Making the environment {venv} with Python {sys.version.split()[0]} ...", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True)


def drop_half_installed(venv: Path) -> None:
    """Forget packages whose installation was cut short, which pip would take for complete.

    pip writes a package's list of files, RECORD, last.
    """
    for info in venv.glob("**/site-packages/*.dist-info"):
        if not (info / "RECORD").is_file():
            shutil.rmtree(info)


def install(venv: Path, root: Path = ROOT) -> None:
    """Install the requirements and the course itself, then leave the stamp that says so."""
    stamp = venv / STAMP
    pip = [str(python_of(venv)), "-m", "pip", "--disable-pip-version-check", "install"]
    if stamp.exists():
        print(f"Bringing {venv} up to date with the requirements ...", flush=True)
        pip.append("--quiet")  # or it would list all that stays as it is
        stamp.unlink()
    else:
        print(f"Installing the requirements in {venv}; this takes minutes ...", flush=True)
    drop_half_installed(venv)
    # Without PYTHONPATH, on which pip would take this very copy for one that is installed already.
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([*pip, "-r", "requirements.txt", "-e", "."], cwd=str(root), env=bare)
    if done.returncode != 0:
        advice = "pip could not install the requirements (see above). The same command tries again."
        if sys.platform == "darwin" and os.uname().machine == "x86_64":
            advice += " Macs with an Intel processor: PyTorch has no release for them since 2.2."
        raise SetupError(advice)
    fresh = venv / (STAMP + ".new")
    fresh.write_text(recipe_digest(root) + "\n", encoding="utf-8")
    fresh.replace(stamp)


def prepare(venv: Path, root: Path = ROOT) -> None:
    """Bring the environment into step with the recipe; do nothing when it is."""
    oldest, beyond = supported_versions(root)
    found = version_of(venv)
    if not oldest <= found < beyond:
        create(venv, root)
    elif found != sys.version_info[:2]:
        print(f"{venv} keeps its Python 3.{found[1]}; delete the folder to change that.")
    if not is_ready(venv, root):
        install(venv, root)


def main(argv: list[str] | None = None) -> int:
    """Make or mend the environment that the command line names; 0 when it is ready."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils setup",
        description="Make the course's virtual environment, or bring it up to date.",
    )
    parser.add_argument("venv", nargs="?", default=DEFAULT, help="folder (default: %(default)s)")
    parser.add_argument("--fits", action="store_true", help="only tell if this Python can make it")
    args = parser.parse_args(argv)
    try:
        if args.fits:
            return 1 if complaint() else 0
        prepare(ROOT / Path(args.venv).expanduser())
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("setup: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
