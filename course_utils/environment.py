"""Makes the course's virtual environment and keeps it in step with requirements.txt.

Runs before anything is installed (`make` calls it; on Windows, `py -m course_utils setup`): so it
uses the standard library alone, and only syntax that lets a Python that is too old say so.

A folder that set-up makes carries its stamp from the first moment on. A folder without one was made
by somebody else, whatever is in it: set-up neither clears nor changes it.
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
EXTRAS = ("test", "site", "bench")  # in pyproject.toml; the lessons need none
STAMP = "course-utils.stamp"  # what is installed: the digest of the recipe, then a line an extra

# Settings of pip that say where packages come from are kept. Others, which may say where they go or
# what is left out (PIP_USER, PIP_TARGET, PIP_NO_DEPS, ...), are meant for other installations.
PIP_SOURCES = re.compile(
    r"PIP_(.*INDEX.*|FIND_LINKS|.*HOSTS?|.*CERT|PROXY|.*TIMEOUT|RETRIES|.*CACHE.*|CONFIG_FILE|"
    r".*CONSTRAINT|.*_BINARY|KEYRING_PROVIDER|NO_INPUT|NO_COLOR|PROGRESS_BAR)"
)
MISLEADING = {"PYTHONPATH", "PYTHONHOME", "__PYVENV_LAUNCHER__"}


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


def stamped(venv: Path) -> tuple[str, set[str]]:
    """The recipe's digest and the extras that a finished set-up left; nothing where none did."""
    try:
        lines = (venv / STAMP).read_text(encoding="utf-8").split()
    except OSError:
        return "", set()
    return (lines[0], set(lines[1:])) if lines else ("", set())


def write_stamp(venv: Path, *lines: str) -> None:
    """Say in the folder that it is the course's, and what is installed there."""
    fresh = venv / (STAMP + ".new")
    fresh.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    fresh.replace(venv / STAMP)


def surroundings() -> dict[str, str]:
    """The variables for a Python of the environment, without what would lead it elsewhere.

    On PYTHONPATH pip would take this very copy of the course for one that is installed already.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in MISLEADING and (not name.startswith("PIP_") or PIP_SOURCES.fullmatch(name))
    }
    return {**kept, "PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def answer(venv: Path, question: str) -> str | None:
    """What the environment's Python prints for a line of code; None when it does not work."""
    try:
        done = subprocess.run(
            [str(python_of(venv)), "-c", question],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=surroundings(),
        )
    except OSError:
        return None
    return done.stdout.decode().strip() if done.returncode == 0 else None


def version_of(venv: Path) -> tuple[int, ...]:
    """(major, minor) of a working environment's Python; empty when it does not work."""
    said = answer(venv, "import sys; print(*sys.version_info[:2])")
    return tuple(int(part) for part in said.split()) if said else ()


def is_vacant(venv: Path) -> bool:
    """Whether nothing stands in the way of making the environment."""
    if venv.is_dir():
        return not any(venv.iterdir())
    return not os.path.lexists(venv)


def description(venv: Path) -> str:
    """What stands in the way, in words."""
    if not venv.is_dir():
        is_dead = venv.is_symlink() and not venv.exists()
        return f"a link to {os.readlink(venv)}, which is not there" if is_dead else "a file"
    python, config = version_of(venv), venv / "pyvenv.cfg"
    about = f" with Python {python[0]}.{python[1]}" if python else ""
    if (venv / "conda-meta").is_dir():
        return f"a conda environment{about}"
    if config.is_file():
        text = config.read_text(encoding="utf-8", errors="replace")
        maker = re.search(r"^(uv|virtualenv) *=", text, re.MULTILINE)
        return f"an environment{f' of {maker[1]}' if maker else ''}{about}"
    return f"a Python installation{about}" if python else "a folder with other things"


def refusal(venv: Path, root: Path = ROOT) -> str:
    """Why a folder that the course did not make is left alone, and what to do instead."""
    text = (
        f"{venv} is {description(venv)}. The course did not make it, so it stays as it is. The "
        "course wants a folder of its own: name another, as in make lab VENV=path (on Windows: "
        "py -m course_utils setup path), or delete this one if nobody needs it."
    )
    oldest, beyond = supported_versions(root)
    if oldest <= version_of(venv) < beyond:
        pip = f'"{python_of(venv)}" -m pip'
        if answer(venv, "import pip") is None:
            pip = f'uv pip --python "{python_of(venv)}"'
        text += f' To have the course in it all the same: {pip} install -e "{root}"'
    return text


def create(venv: Path, root: Path = ROOT) -> None:
    """Make the environment, in place of a broken one of ours, but never of anything else."""
    if complaint(root):
        raise SetupError(complaint(root))
    try:
        venv.mkdir(parents=True, exist_ok=True)
        write_stamp(venv)  # first of all: what is interrupted from now on may be begun again
        for old in venv.iterdir():
            if old.name != STAMP:
                shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
    except OSError as error:
        raise SetupError(
            f"{venv} cannot be made: {error.strerror}. Name a folder that you may write, as in "
            "make lab VENV=path"
        ) from error
    print(f"Making the environment {venv} with Python {sys.version.split()[0]} ...", flush=True)
    if subprocess.run([sys.executable, "-m", "venv", str(venv)], env=surroundings()).returncode:
        raise SetupError(f"{sys.executable} could not make the environment (see above)")


def drop_half_installed(venv: Path) -> None:
    """Forget packages whose installation was cut short, which pip would take for complete.

    pip writes a package's list of files, RECORD, last.
    """
    for info in venv.glob("**/site-packages/*.dist-info"):
        if not (info / "RECORD").is_file():
            shutil.rmtree(info)


def install(venv: Path, extras: set[str], root: Path = ROOT) -> None:
    """Install the requirements and the course itself, then say so in the stamp."""
    digest, before = stamped(venv)
    extras = extras | before
    if not os.access(venv, os.W_OK):
        raise SetupError(
            f"{venv} lacks something that is needed now, and cannot be written. Make it writable, "
            "or name another folder: VENV=path"
        )
    write_stamp(venv)
    if answer(venv, "import pip") is None:
        subprocess.run([str(python_of(venv)), "-m", "ensurepip"], env=surroundings())
    # What is not compiled now is compiled when it is first used, and most of it never is.
    pip = [str(python_of(venv)), "-m", "pip", "install", "--no-compile"]
    if digest:
        wanted = " ".join(sorted(extras - before)) or "the requirements"
        print(f"Bringing {venv} into step with {wanted} ...", flush=True)
        pip.append("--quiet")  # or it would list all that stays as it is
    else:
        print(f"Installing what is needed in {venv}; this takes minutes ...", flush=True)
    drop_half_installed(venv)
    course = f".[{','.join(sorted(extras))}]" if extras else "."
    command = [*pip, "-r", "requirements.txt", "-e", course]
    if subprocess.run(command, cwd=str(root), env=surroundings()).returncode:
        raise SetupError(advice())
    if not list(venv.glob("**/site-packages/*.dist-info/direct_url.json")):
        raise SetupError(
            "pip reports success, but the course is not in the environment: a setting of pip sends "
            f'packages elsewhere. Look for it with: "{python_of(venv)}" -m pip config list'
        )
    write_stamp(venv, recipe_digest(root), *sorted(extras))


def advice() -> str:
    """What to do when pip has failed."""
    text = "pip could not install the requirements (see above). The same command tries again."
    settings = sorted(name for name in surroundings() if PIP_SOURCES.fullmatch(name))
    if settings:
        text += f" pip heeds these settings of yours: {', '.join(settings)}."
    if sys.platform == "darwin" and os.uname().machine == "x86_64":
        text += " Macs with an Intel processor: PyTorch has no release for them since 2.2."
    return text


def prepare(venv: Path, extras: set[str] = frozenset(), root: Path = ROOT) -> None:
    """Bring the environment into step with the recipe; do nothing when it is."""
    if not (venv / STAMP).is_file() and not is_vacant(venv):
        raise SetupError(refusal(venv, root))
    oldest, beyond = supported_versions(root)
    found = version_of(venv)
    if not oldest <= found < beyond:
        create(venv, root)
    elif found != sys.version_info[:2]:
        print(f"{venv} keeps its Python 3.{found[1]}; delete the folder to change that.")
    digest, installed = stamped(venv)
    if digest != recipe_digest(root) or not extras <= installed:
        install(venv, set(extras), root)


def main(argv: list[str] | None = None) -> int:
    """Make or mend the environment that the command line names; 0 when it is ready."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils setup",
        description="Make the course's virtual environment, or bring it up to date.",
        epilog="example: python -m course_utils setup --with test",
    )
    parser.add_argument("venv", nargs="?", default=DEFAULT, help="folder (default: %(default)s)")
    parser.add_argument("--with", dest="extras", action="append", choices=EXTRAS, default=[],
                        help="also what the tests, the site or the benchmark need")  # fmt: skip
    parser.add_argument("--fits", action="store_true", help="only tell if this Python can make it")
    args = parser.parse_args(argv)
    try:
        if args.fits:
            return 1 if complaint() else 0
        prepare(ROOT / Path(args.venv).expanduser(), set(args.extras))
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("setup: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a path may hold any character
    sys.exit(main())
