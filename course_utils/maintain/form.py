"""The form of a chapter, counted: words, lines of code, minutes, guesses, exercises by kind.

python -m course_utils.maintain.form [notebooks/02_masked_softmax.ipynb ...]

The main line is what everybody reads. Apart from it stand exercises with their checks, cells
tagged `proof`, and the fold "From the notes", a Markdown cell tagged `notes`. The lesson ends at
that fold; what stands behind it is an appendix.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat

from course_utils.checker import catalogue
from course_utils.checker.exercise import Exercise
from course_utils.cli.notebook_file import read_notebook
from course_utils.environment import ROOT

WORDS_A_MINUTE, LINES_A_MINUTE = 150, 12
FOLLOWS = "*Follows "  # begins the one line that says which sections of which notes are taught
TIME = r"\*\*Time\*\*: (\d+) minutes to read and run(?:, (\d+) for the exercises)?"
NOTES = r"\b[Nn]otes? 00\d|\bthe (?:five )?notes\b|\b00[0-4]-\d+|\bC-\d+\b"
FENCE = r"^```.*?^```"
WORD = r"\w+(?:['’-]\w+)*"  # also the letters and numbers of formulas and the targets of links


@dataclass(frozen=True)
class Form:
    """What was counted in one chapter.

    Attributes:
        words, lines: of the main line; lines of code without empty ones.
        lesson: words of all its text up to "From the notes", those of its exercises too.
        asserts: ids of cells that assert outside of proofs.
        mentions: what the main line and the exercises say of the notes, outside the line FOLLOWS.
        guesses, claims: the names of the guesses, and how many claims are made.
        early: exercises before the cell that shows their code, of which the metadata say
            {"exercise": name, "before": id of that cell}.
        time: minutes to read and run, and for the exercises, as the first cell says.
        exercises: those of the chapter.
    """

    words: int
    lesson: int
    lines: int
    asserts: tuple[str, ...]
    mentions: tuple[str, ...]
    guesses: tuple[str, ...]
    claims: int
    early: tuple[str, ...]
    time: tuple[int, int] | None
    exercises: tuple[Exercise, ...]

    @property
    def minutes(self) -> float:
        """To read the main line, text and code."""
        return self.words / WORDS_A_MINUTE + self.lines / LINES_A_MINUTE

    def asking(self, kind: str) -> list[str]:
        """The names of the exercises that ask for "build", "practice" or "transfer"."""
        return [e.name for e in self.exercises if e.asks == kind]


def main_line(notebook: nbformat.NotebookNode) -> Iterator[nbformat.NotebookNode]:
    """The cells that everybody reads, in order."""
    for cell in notebook.cells:
        apart = {"proof", "notes"} & set(cell.metadata.get("tags", []))
        if not (apart or "exercise" in cell.metadata or cell.source.startswith("check(")):
            yield cell


def count(path: Path) -> Form:
    """Read a chapter and count."""
    return count_in(read_notebook(path), path.stem)


def count_in(notebook: nbformat.NotebookNode, chapter: str) -> Form:
    """Count in a notebook, which is that of this chapter."""
    cells = list(main_line(notebook))
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    codes = [cell.source for cell in cells if cell.cell_type == "code"]
    fences = [fence for text in texts for fence in re.findall(FENCE, text, re.M | re.S)]
    exercises = tuple(e for e in catalogue() if e.notebook == chapter)
    said = texts + codes + [line for e in exercises for line in (e.trains, e.text, *e.hints)]
    lines = [line for text in said for line in text.splitlines() if not line.startswith(FOLLOWS)]
    calls = [call for code in codes for call in _calls(code)]
    head = re.search(TIME, notebook.cells[0].source)
    return Form(
        words=sum(_words(re.sub(FENCE, "", text, flags=re.M | re.S)) for text in texts),
        lesson=sum(map(_words, _lesson(notebook))),
        lines=sum(bool(line.strip()) for code in codes + fences for line in code.splitlines()),
        asserts=tuple(c.id for c in cells if c.cell_type == "code" and _asserts(c.source)),
        mentions=tuple(line.strip() for line in lines if re.search(NOTES, line)),
        guesses=tuple(ast.literal_eval(args[0]) for name, args in calls if name == "guess"),
        claims=sum(name == "claim" for name, _ in calls),
        early=tuple(_early(notebook)),
        time=(int(head[1]), int(head[2] or 0)) if head else None,
        exercises=exercises,
    )


def _words(text: str) -> int:
    return len(re.findall(WORD, text))


def _lesson(notebook: nbformat.NotebookNode) -> Iterator[str]:
    for cell in notebook.cells:
        if "notes" in cell.metadata.get("tags", []):
            return
        if cell.cell_type == "markdown":
            yield cell.source


def parsed(code: str) -> ast.Module:
    """The syntax tree of a cell without its magics."""
    lines = code.split("\n")
    return ast.parse(
        "\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in lines)
    )


def _asserts(code: str) -> bool:
    return any(isinstance(node, ast.Assert) for node in ast.walk(parsed(code)))


def _calls(code: str) -> Iterator[tuple[str, list[ast.expr]]]:
    for node in ast.walk(parsed(code)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id, node.args


def _early(notebook: nbformat.NotebookNode) -> Iterator[str]:
    passed = set()
    for cell in notebook.cells:
        later = cell.metadata.get("before")
        if later and later not in passed and any(c.id == later for c in notebook.cells):
            yield cell.metadata.exercise
        passed.add(cell.id)


def main(arguments: list[str]) -> None:
    """Print one line a chapter."""
    paths = [Path(name) for name in arguments] or sorted((ROOT / "notebooks").glob("*.ipynb"))
    print("chapter                       words lesson  lines  minutes  asserts  notes  guesses"
          "  claims  practice/build/transfer")  # fmt: skip
    for path in paths:
        form = count(path)
        kinds = "/".join(str(len(form.asking(k))) for k in ("practice", "build", "transfer"))
        print(
            f"{path.stem:<28}{form.words:>7}{form.lesson:>7}{form.lines:>7}{form.minutes:>9.1f}"
            f"{len(form.asserts):>9}{len(form.mentions):>7}{len(form.guesses):>9}{form.claims:>8}"
            f"  {kinds}"
        )
        for line in form.mentions if len(paths) == 1 else ():
            print(f"  of the notes: {line}")


if __name__ == "__main__":
    main(sys.argv[1:])
