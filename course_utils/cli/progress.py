"""What is solved and which mistakes come back; and a file to hand in to a teacher."""

import argparse
import json
import sys
from pathlib import Path

from course_utils.checker import log, progress
from course_utils.training.runs.files import CannotWrite, write_atomic

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
        text = str(progress(args.chapter))
        try:
            text.encode(sys.stdout.encoding or "utf-8")
        except UnicodeEncodeError:  # a terminal of a narrow encoding has no such blocks
            text = text.replace("█", "#").replace("░", ".")
        print(text)
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
        if file.exists():
            raise CannotWrite(f"cannot write {file}: it is there already; name another file")
        write_atomic(file, "".join(line + "\n" for line in lines).encode("utf-8"))
    except CannotWrite as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{len(lines)} tries are in {file}.")
    return 0
