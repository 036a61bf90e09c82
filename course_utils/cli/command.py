"""What commands share: parsers, options, and errors as one line without a traceback."""

import argparse
import difflib
import functools
import re
import sys
from collections.abc import Callable, Sequence

from course_utils.text.registry import CorpusError
from course_utils.text.text import printable
from course_utils.training.runs.refusals import Refused, number

# what PyTorch says on Linux, macOS, Windows, and of CUDA, cuBLAS, cuDNN and MPS
_NO_MEMORY = re.compile(
    r"out of memory|(can't|cannot) allocate memory|not enough memory|bad_alloc|ALLOC_FAILED"
    r"|invalid buffer size",
    re.IGNORECASE,
)


def to_stderr(line: str) -> None:
    """A line on stderr; what a stranger's file has put into it does not act on the terminal."""
    print(printable(line), file=sys.stderr)


class _Parser(argparse.ArgumentParser):
    """A parser that also names the option nearest to a misspelt one."""

    given: Sequence[str] = ()

    def parse_known_args(self, args=None, namespace=None):
        self.given = sys.argv[1:] if args is None else args
        return super().parse_known_args(args, namespace)

    def error(self, message: str):
        options = [name for action in self._actions for name in action.option_strings]
        for word in self.given:
            word = word.partition("=")[0]
            unknown = word.startswith("--") and not any(name.startswith(word) for name in options)
            if unknown and (near := difflib.get_close_matches(word, options, 1)):
                message += f"; for {word}, did you mean {near[0]}?"
        super().error(message)


def parser(name: str, description: str, **options) -> argparse.ArgumentParser:
    """A parser whose usage names the command as it is typed."""
    return _Parser(prog=f"python -m course_utils {name}", description=description, **options)


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
            to_stderr(f"{name}: {message}")
            return 1

        return run

    return decorate


def _lacks_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or _NO_MEMORY.search(str(error)) is not None


def add_model_option(options: argparse.ArgumentParser) -> None:
    """--model, a folder or the name of a model that ships with the course."""
    options.add_argument(
        "--model", default="fra-eng", metavar="DIR",
        help="the folder `train` has written (default: fra-eng, a model that ships with the "
        "course)",
    )  # fmt: skip


def add_decoding_options(options: argparse.ArgumentParser) -> None:
    """--model, --beam and --batch-size, which `translate` and `evaluate` share."""
    add_model_option(options)
    options.add_argument(
        "--beam", type=number(int, 1, 64), default=1, metavar="K",
        help="keep the K best beginnings; 1, the default, takes the best token at each step",
    )  # fmt: skip
    options.add_argument(
        "--batch-size", type=number(int, 1, 10_000), default=64, metavar="N",
        help="sentences translated together (default 64); the translations do not depend on it",
    )  # fmt: skip
