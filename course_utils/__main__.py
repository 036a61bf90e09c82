"""The course's commands: python -m course_utils COMMAND ...

Imports nothing that must be installed, so that `setup` and `doctor` run when nothing is.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import io
import os
import sys
from collections.abc import Callable

from course_utils import __version__


def of_module(name: str) -> Callable[[list[str]], int | None]:
    """The main function of a module, which is imported when the command runs, not before."""
    return lambda options: importlib.import_module(f"course_utils.{name}").main(options)


COMMANDS = {
    "setup": (of_module("environment"), "make the environment .venv and install what is needed"),
    "doctor": (of_module("cli.doctor"), "check the environment and say how to mend it"),
    "lab": (of_module("cli.lab"), "open JupyterLab on the first lesson"),
    "course": (of_module("cli.notebooks"), "run every notebook; show its time and peak memory"),
    "site": (of_module("cli.site"), "build the course as a static site"),
    "sync": (of_module("maintain.sync"), "write everything that is made from something else"),
    "figures": (of_module("viz.drawings"), "draw everything in figures/ again"),
    "train": (of_module("cli.train"), "train a translation model on a corpus"),
    "translate": (of_module("cli.translate"), "translate lines with a trained model"),
    "evaluate": (of_module("cli.evaluate"), "BLEU and chrF of a trained model on a file"),
    "pack": (of_module("cli.pack"), "copy a trained model in half precision, to hand it on"),
    "export": (of_module("cli.export"), "write a trained model as ONNX"),
    "bench": (of_module("cli.bench"), "time the model against others of its size"),
    "heatmap": (of_module("cli.heatmap"), "draw the cross-attention map of a sentence"),
    "live": (of_module("cli.live"), "write a page in which a trained model translates"),
    "progress": (of_module("cli.progress"), "show what is solved and which mistakes come back"),
    "class": (of_module("cli.class_report"), "show what a class solved, from its learners' logs"),
}


def parser() -> argparse.ArgumentParser:
    """The parser of the command's name; what follows belongs to the command itself."""
    width = max(map(len, COMMANDS)) + 2
    listing = "\n".join(f"  {name:{width}}{text}" for name, (_, text) in COMMANDS.items())
    own = argparse.ArgumentParser(
        prog="python -m course_utils",
        usage="%(prog)s COMMAND [options]",
        description=f"commands:\n{listing}\n\npython -m course_utils COMMAND --help tells more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    own.add_argument("--version", action="version", version=__version__)
    own.add_argument("command", choices=COMMANDS, metavar="COMMAND", help=argparse.SUPPRESS)
    own.add_argument("options", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return own


class Stream(io.FileIO):
    """Where a command writes: its first failure is kept, and what is written after it is lost.

    Args:
        raising: the first failure is raised too; else the work that the messages tell of goes on.
    """

    def __init__(self, number: int, raising: bool):
        super().__init__(number, "w", closefd=False)
        self.raising, self.failure = raising, None

    def write(self, data) -> int:
        try:
            return super().write(data)
        except OSError as error:
            first, self.failure = self.failure is None, self.failure or error
            if first and self.raising:
                raise
            return len(data)


def prepare_streams() -> None:
    """Let a closed or full stream, or one of a narrow encoding, end no command in a traceback."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed, as by >&-
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif stream is not getattr(sys, f"__{name}__") or (os.name == "nt" and stream.isatty()):
            continue  # a test's or a notebook's own; or a Windows console, which has its own writer
        else:
            raw = io.BufferedWriter(Stream(stream.fileno(), raising=name == "stdout"))
            at_once = stream.line_buffering or stream.write_through
            encoding = (stream.encoding, "backslashreplace")
            setattr(sys, name, io.TextIOWrapper(raw, *encoding, line_buffering=at_once))


def run(argv: list[str]) -> int:
    """Run one command and return its exit code; each is imported only when it is called."""
    if not argv:
        parser().print_help()
        return 0
    if not argv[0].startswith("-") and argv[0] not in COMMANDS:
        near = difflib.get_close_matches(argv[0], COMMANDS, 1)
        meant = f"did you mean {near[0]}? " if near else ""
        parser().error(f"no command {argv[0]!r}: {meant}There are {', '.join(COMMANDS)}")
    args = parser().parse_args(argv)
    return COMMANDS[args.command][0](args.options) or 0


def main(argv: list[str] | None = None) -> int:
    """`run` without tracebacks where something outside the course is at fault."""
    prepare_streams()
    argv = sys.argv[1:] if argv is None else argv
    name = argv[0] if argv else "course_utils"
    try:
        try:
            return run(argv)
        finally:
            sys.stdout.flush()  # not when Python ends, where nobody could tell of a failure
            if failure := _failure(sys.stdout):  # argparse keeps it to itself
                raise failure
    except OSError as error:
        if error is not _failure(sys.stdout):
            raise
        if not isinstance(error, BrokenPipeError):  # else who read has seen enough, as `head` does
            print(f"{name}: cannot write the output: {error.strerror}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("course_utils"):
            raise
        print(
            f"{name}: the package {error.name!r} is missing here ({sys.executable}); "
            "python -m course_utils doctor says how to mend it",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        print(f"{name}: stopped", file=sys.stderr)
        return 130


def _failure(stream: io.TextIOBase) -> OSError | None:
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    return raw.failure if isinstance(raw, Stream) else None


if __name__ == "__main__":
    # Threads that wait must not hold a core that another busy program could use; heeded by the
    # libraries of Linux, macOS and Windows, if it is said before torch is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    sys.exit(main())
