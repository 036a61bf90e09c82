"""Write everything that is made from something else: `make sync`.

From exercises.py their cells in the notebooks; from the table of chapters the heads and feet of
the notebooks, the map, the README's rows; from figures.py and the notebooks' pictures figures/;
from the cells that teach the notes the ledger, its summary and the way from the notes to the
chapters; from glossary.tsv the glossary; from the kept run of the benchmark the table of speed.
"""

import argparse
import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course_utils.chapters import CHAPTERS, measured_costs
from course_utils.checker import catalogue
from course_utils.checker.cells import solved_notebook
from course_utils.cli.notebook_file import UnreadableNotebook, read_notebook
from course_utils.cli.notebooks import NOTEBOOKS, rewrite, run_notebook
from course_utils.environment import ROOT
from course_utils.maintain import glossary, ledger, note_pages, readme
from course_utils.maintain.exercise_cells import write_exercises
from course_utils.maintain.heads import write_head_and_foot
from course_utils.recall.deck import deck
from course_utils.viz import drawings, gallery

FIGURE = r"!\[[^\]]*\]\(\.\./figures/([\w.]+\.svg)\)"


def notebooks(check: bool) -> Iterator[str]:
    """Exercise cells, head and foot, the map, the alt texts of figures."""
    costs = measured_costs()
    for chapter in CHAPTERS:
        path = NOTEBOOKS / chapter.file
        notebook = read_notebook(path)
        changed = list(_texts(notebook))
        changed += write_head_and_foot(notebook, chapter, costs.get(chapter.file))
        changed += write_exercises(notebook, chapter.name)
        if changed:
            yield f"notebooks/{path.name}: {', '.join(changed)}"
            if not check:
                rewrite(path, notebook)


def _texts(notebook: NotebookNode) -> Iterator[str]:
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            continue
        wanted = re.sub(FIGURE, lambda m: drawings.figure_markdown(m[1]), cell.source)
        if cell.metadata.get("generated") == "chapters":
            wanted = readme.chapters("", "../figures")
        if cell.source != wanted:
            cell.source = wanted
            yield f"cell {cell.id}"


def outputs(check: bool) -> Iterator[str]:
    """Run notebooks with cells that never ran, or that list exercises or cards that changed.

    Such a notebook says so in its metadata: {"lists": {"cards": ...}}.
    """
    found = {
        "exercises": _digest(f"{e.notebook} {e.name} {e.minutes}" for e in catalogue()),
        "cards": _digest(f"{card.notebook} {card.id}" for card in deck().values()),
    }
    for chapter in CHAPTERS:
        path = NOTEBOOKS / chapter.file
        notebook = read_notebook(path)
        lists = notebook.metadata.get("lists", {})
        why = [kind for kind, digest in lists.items() if digest != found[kind]]
        code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source]
        if any(cell.execution_count is None for cell in code):
            why.append("cells that never ran")
        if why:
            yield f"notebooks/{path.name}: outputs ({', '.join(why)})"
            if not check:
                notebook, _ = run_notebook(path)
                notebook.metadata["lists"] = {kind: found[kind] for kind in lists}
                rewrite(path, notebook)


def _digest(lines: Iterator[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def figures(check: bool) -> Iterator[str]:
    """Diagrams whose code draws something else by now, pictures that a notebook drew anew."""
    for name in drawings.figures():
        if drawings.is_stale(name):
            yield f"figures/{name}"
            if not check:
                drawings.write(name)
    for picture in gallery.pictures():
        yield from _written(drawings.FOLDER / picture.name, picture.png, check)


def the_ledger(check: bool) -> Iterator[str]:
    """Which cells teach which rows of the notes."""
    text = ledger.as_text(ledger.rows_with_cells())
    yield from _written(ledger.TABLE, text.encode(), check)


def the_pages(check: bool) -> Iterator[str]:
    """The glossary, and the page that leads from the notes to the chapters."""
    yield from _written(glossary.PAGE, glossary.page().encode(), check)
    yield from _written(note_pages.PAGE, note_pages.page(ledger.rows_with_cells()).encode(), check)


def the_readme(check: bool) -> Iterator[str]:
    """The README's pictures, chapters and way in; the pages on speed and on the notes."""
    for name, draw in readme.PICTURES.items():
        yield from _written(drawings.FOLDER / name, draw()[0].encode(), check)
    for path, parts in readme.parts().items():
        text = path.read_text(encoding="utf-8")
        for name, part in parts.items():
            before, text = text, readme.with_part(text, name, part)
            if text != before:
                yield f"{path.name}: {name}"
        if not check:
            path.write_bytes(text.encode())


def _written(path: Path, wanted: bytes, check: bool) -> Iterator[str]:
    if path.is_file() and path.read_bytes() == wanted:
        return
    yield path.relative_to(ROOT).as_posix()
    if not check:
        path.write_bytes(wanted)


STEPS = (notebooks, outputs, figures, the_ledger, the_pages, the_readme)  # each reads the last


def solve(folder: Path) -> None:
    """Write copies of the notebooks, with all solutions filled in, into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for chapter in CHAPTERS:
        notebook = read_notebook(NOTEBOOKS / chapter.file)
        nbformat.write(solved_notebook(notebook), folder / chapter.file)


def write_or_name(check: bool) -> int:
    """Do all steps, or with `check` only name what is stale; how much was."""
    stale = 0
    for step in STEPS:
        for name in step(check):
            stale += 1
            print(name, flush=True)
    return stale


def main(argv: list[str]) -> int:
    """Run the command; 1 when something is stale and was to be checked only."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils sync",
        description="Write everything that is made from something else, and name what was stale.",
        epilog="example: python -m course_utils sync --check",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="write nothing; 1 if something is stale")
    what.add_argument(
        "--solve", type=Path, metavar="FOLDER", help="write solved copies of the notebooks instead"
    )
    args = parser.parse_args(argv)
    try:
        if args.solve:
            solve(args.solve)
            return 0
        stale = write_or_name(args.check)
    except UnreadableNotebook as error:
        print(error, file=sys.stderr)
        return 1
    if args.check and stale:
        print("stale; to write it: make sync", file=sys.stderr)
    return int(args.check and stale > 0)
