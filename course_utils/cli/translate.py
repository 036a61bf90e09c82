"""python -m course_utils translate "Where are my keys?", or translate < en.txt > fr.txt"""

import os
import sys
from collections.abc import Iterator
from functools import partial
from itertools import islice

from course_utils.cli.command import add_decoding_options, parser, refusing, to_stderr
from course_utils.training.runs.lines import (
    letters_of,
    read_lines,
    sentences,
    translate_lines,
    unseen_letters,
)
from course_utils.training.runs.processes import best_device
from course_utils.training.runs.refusals import Refused
from course_utils.training.translation import load_translator

WINDOWS = os.name == "nt"
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
    """Translate a text, or standard input line by line, to standard output, in UTF-8."""
    command = parser(
        "translate",
        'Translate: python -m course_utils translate "Where are my keys?" A text that is not given '
        "is read from standard input, in UTF-8: one line in, one line out, and only a line feed "
        "ends a line. At a terminal each line is answered at once. The sentences of a line are "
        "translated one by one.",
    )
    command.add_argument("text", nargs="*", help="what to translate (default: standard input)")
    add_decoding_options(command)
    args = command.parse_args(argv)
    if not args.text and sys.stdin is None:
        raise Refused("there is nothing to translate: standard input is closed")
    translator = load_translator(args.model, best_device())
    at_terminal = not args.text and sys.stdin.isatty()
    if at_terminal:
        to_stderr(f"Type a sentence and press Enter. {'Ctrl-Z, Enter' if WINDOWS else 'Ctrl-D'} "
                  "ends.")  # fmt: skip
    given = iter([" ".join(args.text)]) if args.text else read_lines(sys.stdin.buffer, _say)
    at_once = 1 if at_terminal else BATCHES_AT_ONCE * args.batch_size
    known, done = letters_of(translator.source), 0
    while group := _some(given, at_once):
        for number, line in enumerate(group, start=done + 1):
            if strange := unseen_letters(line, known):
                _say(f"line {number}: the model has never seen {strange[:20]}, and guesses")

        def on_cut(index: int, parts: int, owners: list[int]) -> None:
            _say(
                f"line {owners[index] + 1} is longer than anything the model was trained on: "
                f"translated in {parts} parts"
            )

        parts = [sentences(line) for line in group]
        owners = [done + i for i, some in enumerate(parts) for _ in some]
        translations = translate_lines(
            translator,
            [sentence for some in parts for sentence in some],
            beam=args.beam,
            batch_size=args.batch_size,
            on_cut=partial(on_cut, owners=owners),
        )
        said = iter(translations)
        joined = [" ".join(filter(None, islice(said, len(some)))) for some in parts]
        sys.stdout.buffer.write("".join(f"{line}\n" for line in joined).encode("utf-8"))
        sys.stdout.buffer.flush()
        done += len(group)
