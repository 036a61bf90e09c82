"""What is solved and which mistakes come back; and a file to hand in to a teacher."""

import argparse
import json
import sys
from pathlib import Path

from course_utils.checker import log, progress

_HANDED_IN = ("event", "exercise", "outcome", "mistakes", "tags", "guess", "close", "case", "good")


def main(options: list[str]) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils progress",
        description="Show how much of each chapter is solved, or which exercises of one chapter.",
        epilog="example: python -m course_utils progress 2",
    )
    parser.add_argument("chapter", nargs="?", help="its exercises one by one: 2, or its name")
    parser.add_argument(
        "--export",
        type=Path,
        metavar="FILE",
        help="write what a teacher needs: exercises, tries, kinds of mistakes; no code, no name, "
        "no times",
    )
    args = parser.parse_args(options)
    try:
        if args.export:
            return export(args.export)
        print(progress(args.chapter))
    except ValueError as error:
        parser.error(str(error))
    return 0


def export(file: Path) -> int:
    """Write the learner's tries without code, name and time; an existing file stays."""
    lines = [
        json.dumps({key: entry[key] for key in _HANDED_IN if key in entry}, ensure_ascii=False)
        for entry in log.since_reset()
        if entry["event"] in ("check", "outcome", "clinic")
    ]
    try:
        with file.open("x", encoding="utf-8") as handed_in:
            handed_in.write("".join(line + "\n" for line in lines))
    except OSError as error:
        print(f"{file} cannot be written: {error.strerror}.", file=sys.stderr)
        return 1
    print(f"{len(lines)} tries are in {file}.")
    return 0
