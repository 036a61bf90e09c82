"""What the engine's commands share: their parsers, and errors as one line without a traceback."""

import argparse
import functools
import re
import sys
from collections.abc import Callable

from course_utils.text.corpora import CorpusError
from course_utils.text.text import printable

# what PyTorch says on Linux, macOS, Windows, and of CUDA, cuBLAS, cuDNN and MPS
_NO_MEMORY = re.compile(
    r"out of memory|(can't|cannot) allocate memory|not enough memory|bad_alloc|ALLOC_FAILED"
    r"|invalid buffer size",
    re.IGNORECASE,
)


class Refused(ValueError):
    """A command cannot do what it was asked; the message says why and how to mend it."""


def say(line: str) -> None:
    """A line on stderr; what a stranger's file has put into it does not act on the terminal."""
    print(printable(line), file=sys.stderr)


def parser(name: str, description: str, **options) -> argparse.ArgumentParser:
    """A parser whose usage names the command as it is typed."""
    return argparse.ArgumentParser(
        prog=f"python -m course_utils {name}", description=description, **options
    )


def refusing(name: str, lower: str) -> Callable:
    """Decorate a command: what is refused is said on stderr, and the exit code is 1.

    Args:
        lower: what to do when there is not enough memory.
    """

    def decorate(main: Callable[[list[str]], int | None]) -> Callable[[list[str]], int]:
        @functools.wraps(main)
        def run(argv: list[str]) -> int:
            try:
                return main(argv) or 0
            except (Refused, CorpusError) as error:
                message = str(error)
            except (RuntimeError, MemoryError, OSError) as error:
                if _lacks_memory(error):
                    message = f"there is not enough memory: {lower}"
                elif getattr(error, "filename", None) is not None:
                    message = f"cannot use {error.filename}: {error.strerror}"
                else:
                    raise
            say(f"{name}: {message}")
            return 1

        return run

    return decorate


def _lacks_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or _NO_MEMORY.search(str(error)) is not None


def number(kind: type, low: float, high: float = float("inf"), open_ends: bool = False) -> Callable:
    """An argparse type: an int or a float between two ends, which `open_ends` leaves out."""

    def parse(text: str):
        try:
            value = kind(text)
        except ValueError:
            value = None
        inside = value is not None and (low < value < high if open_ends else low <= value <= high)
        if not inside:
            noun = "a whole number" if kind is int else "a number"
            ends = f"above {low:g}" if open_ends else f"from {low:g}"
            ends += "" if high == float("inf") else f"{' below' if open_ends else ' to'} {high:g}"
            raise argparse.ArgumentTypeError(f"{text!r} is not {noun} {ends}")
        return value

    return parse


def add_model_option(own: argparse.ArgumentParser) -> None:
    """--model, a folder or the name of a model that ships with the course."""
    own.add_argument(
        "--model", required=True, metavar="DIR",
        help="the folder `train` has written, or fra-eng, a model that ships with the course",
    )  # fmt: skip


def add_decoding_options(own: argparse.ArgumentParser) -> None:
    """--model, --beam and --batch-size, which `translate` and `evaluate` share."""
    add_model_option(own)
    own.add_argument(
        "--beam", type=number(int, 1, 64), default=1, metavar="K",
        help="keep the K best beginnings; 1, the default, takes the best token at each step",
    )  # fmt: skip
    own.add_argument(
        "--batch-size", type=number(int, 1, 10_000), default=64, metavar="N",
        help="sentences translated together (default 64); the translations do not depend on it",
    )  # fmt: skip
