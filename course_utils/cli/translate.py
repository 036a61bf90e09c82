"""python -m course_utils translate "Where are my keys?", or translate < en.txt > fr.txt"""

import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from itertools import chain, islice

from course_utils.cli.command import add_decoding_options, parser, refusing, to_stderr
from course_utils.training.runs.candidates import Candidate, candidates
from course_utils.training.runs.lines import (
    letters_of,
    read_lines,
    translate_texts,
    unseen_letters,
)
from course_utils.training.runs.parts import sentences
from course_utils.training.runs.processes import best_device
from course_utils.training.runs.refusals import Refused, number
from course_utils.training.translation import Translator, load_translator

WINDOWS = os.name == "nt"
BATCHES_AT_ONCE = 16  # read ahead, so that lines of like length can share a batch


def _say(message: str) -> None:
    to_stderr(f"translate: {message}")


def _some(lines: Iterator[str], count: int) -> list[str]:
    try:
        return list(islice(lines, count))
    except OSError as error:
        raise Refused(f"cannot read standard input: {error.strerror or error}") from None


def _answer(translator: Translator, lines: list[str], done: int, args: Namespace) -> str:
    """What is written for some lines, before which there were `done` others."""
    options = {"beam": args.beam, "batch_size": args.batch_size}

    def on_cut(index: int, parts: int) -> None:
        how = (
            f"as far as it fits, the first of {parts} parts" if args.nbest else f"in {parts} parts"
        )
        line = done + 1 + (owners[index] if args.nbest else index)
        _say(f"line {line} is longer than anything the model was trained on: translated {how}")

    if not args.nbest:
        said = translate_texts(translator, lines, **options, on_cut=on_cut)
        return "".join(f"{line}\n" for line in said)
    parts = [sentences(line) for line in lines]
    owners = [index for index, some in enumerate(parts) for _ in some]
    found = candidates(translator, [*chain(*parts)], args.nbest, **options, on_cut=on_cut)
    rows = zip(owners, found, strict=True)
    return "".join(_row(done + 1 + owner, best) for owner, some in rows for best in some)


def _row(line: int, best: Candidate) -> str:
    links = " ".join(f"{source}-{target}" for source, target in best.links)
    return f"{line}\t{best.score:.4f}\t{best.text}\t{links}\n"


@refusing("translate", lower="take a smaller --batch-size")
def main(argv: list[str]) -> None:
    """Translate a text, or standard input line by line, to standard output, in UTF-8."""
    command = parser(
        "translate",
        'Translate: python -m course_utils translate "Where are my keys?" A text that is not given '
        "is read from standard input, in UTF-8: one line in, one line out, and only a line feed "
        "ends a line. At a terminal each line is answered at once. The sentences of a line are "
        "translated one by one. With --nbest 3 a row for each of the 3 best translations of each "
        "sentence: the line's number, the score (log-probability per piece), the translation, and "
        "which word of the source each of its words goes back to, as in 0-0 2-1, source first, "
        "words counted from 0 at spaces; with tabs between.",
    )
    command.add_argument("text", nargs="*", help="what to translate (default: standard input)")
    add_decoding_options(command)
    command.add_argument(
        "--nbest", type=number(int, 1, 64), metavar="N",
        help="show the N best translations, with scores and alignments; raises --beam to N",
    )  # fmt: skip
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
        for place, line in enumerate(group, start=done + 1):
            if strange := unseen_letters(line, known):
                _say(
                    f"line {place}: the model has rarely or never seen {strange[:20]}, and guesses"
                )
        sys.stdout.buffer.write(_answer(translator, group, done, args).encode("utf-8"))
        sys.stdout.buffer.flush()
        done += len(group)
