"""python -m course_utils translate --model DIR < en.txt > fr.txt"""

import sys
from collections.abc import Iterator
from itertools import islice

from course_utils.cli.command import add_decoding_options, parser, refusing, to_stderr
from course_utils.training.runs.lines import read_lines, translate_lines
from course_utils.training.runs.processes import best_device
from course_utils.training.runs.refusals import Refused
from course_utils.training.translation import load_translator

BATCHES_AT_ONCE = 16  # read ahead, so that lines of like length can share a batch


def _say(message: str) -> None:
    to_stderr(f"translate: {message}")


def _some(lines: Iterator[str], count: int) -> list[str]:
    try:
        return list(islice(lines, count))
    except OSError as error:
        raise Refused(f"cannot read standard input: {error.strerror or error}") from None


@refusing("translate", lower="take a smaller --batch-size")
def main(argv: list[str]) -> None:
    """Translate standard input, line by line, to standard output, in UTF-8."""
    command = parser(
        "translate",
        "Translate standard input to standard output, in UTF-8: one line in, one line out. "
        "Only a line feed ends a line. At a terminal each line is answered at once.",
    )
    add_decoding_options(command)
    args = command.parse_args(argv)
    if sys.stdin is None:
        raise Refused("there is nothing to translate: standard input is closed")
    translator = load_translator(args.model, best_device())
    at_once = 1 if sys.stdin.isatty() else BATCHES_AT_ONCE * args.batch_size
    lines, done = read_lines(sys.stdin.buffer, _say), 0
    while group := _some(lines, at_once):

        def on_cut(index: int, parts: int, before: int = done) -> None:
            _say(
                f"line {before + index + 1} is longer than anything the model was trained on: "
                f"translated in {parts} parts"
            )

        translations = translate_lines(
            translator, group, beam=args.beam, batch_size=args.batch_size, on_cut=on_cut
        )
        sys.stdout.buffer.write("".join(f"{line}\n" for line in translations).encode("utf-8"))
        sys.stdout.buffer.flush()
        done += len(group)
