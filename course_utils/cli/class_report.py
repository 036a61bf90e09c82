"""One page and one table on what a class has solved, from the logs that its learners hand in."""

import argparse
import csv
import io
import statistics
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from course_utils.checker import catalogue, log
from course_utils.checker.exercise import TAGS, Exercise
from course_utils.cli.class_logs import Hand, read_folder
from course_utils.cli.class_page import page
from course_utils.training.runs.files import CannotWrite, write_atomic

WARNING = (
    "This runs the code of every notebook in {}, on this machine and with your rights: each in a "
    "process of its own, with limits of time, memory and files, but with no other walls around it."
)


@dataclass
class Tried:
    """What one learner did in one exercise."""

    tries: int = 0
    solved: bool = False
    mistakes: Counter = field(default_factory=Counter)


@dataclass
class Class:
    """What all learners did: by learner and exercise, and by kind of mistake."""

    exercises: list[Exercise]
    learners: dict[str, dict[str, Tried]]
    kinds: dict[str, Counter]  # tag -> learner -> times
    guesses: Counter  # what was guessed otherwise, by how many
    skipped: list[tuple[str, str]]

    def tried(self, exercise: str) -> dict[str, Tried]:
        """The learners who tried an exercise."""
        return {who: own[exercise] for who, own in self.learners.items() if exercise in own}

    def stuck(self, exercise: str) -> int:
        """How many tried it three times or more and have not solved it."""
        return sum(t.tries >= 3 and not t.solved for t in self.tried(exercise).values())

    def median(self, exercise: str) -> float:
        """The usual number of tries; 0 where nobody tried."""
        return statistics.median([t.tries for t in self.tried(exercise).values()] or [0])

    def mistakes(self, exercise: str) -> Counter:
        """By how many learners each mistake was made."""
        return Counter(name for t in self.tried(exercise).values() for name in t.mistakes)


def summary(hands: list[Hand], skipped: list[tuple[str, str]], hidden: bool = False) -> Class:
    """Count what the learners did; `hidden` puts numbers in the place of their names."""
    exercises = catalogue()
    known = {e.name for e in exercises}
    learners: dict[str, dict[str, Tried]] = {}
    kinds: dict[str, Counter] = defaultdict(Counter)
    guesses: Counter = Counter()
    for number, hand in enumerate(hands, 1):
        name = f"learner {number}" if hidden else hand.name
        own = learners.setdefault(name, {})
        wrong: dict[str, bool] = {}
        for entry in log.counting(hand.entries):
            exercise = entry.get("exercise")
            if entry["event"] == "check" and exercise in known:
                tried = own.setdefault(exercise, Tried())
                tried.tries += not tried.solved
                tried.solved |= entry.get("outcome") == "right"
                tried.mistakes.update(entry.get("mistakes", ()))
                for tag in TAGS.keys() & {*entry.get("tags", ())}:
                    kinds[tag][name] += 1
            elif entry["event"] in ("outcome", "clinic"):
                right = entry.get("close", entry.get("good"))
                wrong[str(entry.get("guess") or entry.get("case"))[:80]] = not right
        guesses.update(what for what, missed in wrong.items() if missed)
    return Class(exercises, learners, dict(kinds), guesses, skipped)


def table(found: Class) -> str:
    """One row for each learner and exercise tried, as CSV."""
    chapters = {e.name: e.notebook for e in found.exercises}
    stream = io.StringIO(newline="")
    rows = csv.writer(stream)
    rows.writerow(("learner", "chapter", "exercise", "solved", "tries", "mistakes"))
    for who, own in found.learners.items():
        for name, tried in own.items():
            mistakes = "; ".join(f"{m} ({n})" for m, n in tried.mistakes.most_common())
            row = (who, chapters[name], name, int(tried.solved), tried.tries, mistakes)
            rows.writerow([_no_formula(cell) for cell in row])
    return stream.getvalue()


def _no_formula(cell: object) -> object:
    """A text that no spreadsheet computes."""
    text = isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{cell}" if text else cell


def main(options: list[str]) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils class",
        description="Show what a class solved and which mistakes it made: reads the logs in FOLDER "
        "(.progress.jsonl, or what `progress --export` wrote), also inside zips, and writes "
        "class.html and class.csv.",
        epilog="example: python -m course_utils class handed_in --to report --no-names",
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--to", type=Path, default=Path(), help="folder of the two files; here")
    parser.add_argument("--no-names", action="store_true", help="number the learners")
    parser.add_argument("--run", action="store_true", help="run the notebooks in FOLDER, too")
    parser.add_argument("--seconds", type=float, default=300, help="for each notebook: %(default)s")
    args = parser.parse_args(options)
    if not args.folder.is_dir():
        parser.error(f"{args.folder} is no folder; give the one in which the logs lie")
    if not 1 <= args.seconds <= 86_400:
        parser.error("--seconds is between 1 and 86400")
    if args.run:
        print(WARNING.format(args.folder), file=sys.stderr, flush=True)
    hands, skipped = read_folder(args.folder, args.seconds if args.run else 0)
    found = summary(hands, skipped, args.no_names)
    files = args.to / "class.html", args.to / "class.csv"
    try:
        args.to.mkdir(parents=True, exist_ok=True)
        write_atomic(files[0], page(found).encode("utf-8"))
        write_atomic(files[1], table(found).encode("utf-8-sig"))
    except (OSError, CannotWrite) as error:
        said = error if isinstance(error, CannotWrite) else f"{args.to}: {error.strerror or error}"
        print(said, file=sys.stderr)
        return 1
    print(f"{len(hands)} learners: {files[0]}, {files[1]}")
    for name, why in skipped:
        print(f"skipped {ascii(name)[1:-1]}: {ascii(why)[1:-1]}")
    return 0
