"""The head and the foot of each notebook, written from the table of chapters.

A head: the title; the way back, to the map and on; how long reading, exercises and running take.
"""

import math
import re
from collections.abc import Sequence

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from course_utils.chapters import CHAPTERS, Chapter
from course_utils.cli.notebooks import in_words
from course_utils.maintain.form import count_in

MAP = CHAPTERS[0]  # the notebook that shows the map
WAY = r"\[[^\]]*\]\(\w+\.ipynb\)"
WAYS = rf"(?=.*[←→]){WAY}( · {WAY})*"
TIME = r"\*\*Time\*\*:.*"


def title(chapter: Chapter) -> str:
    """Its heading: `# 2. Masked softmax (掩蔽 softmax)`."""
    chinese = f" ({chapter.chinese})" if chapter.chinese else ""
    return f"# {chapter.number}. {chapter.title}{chinese}"


def ways(chapter: Chapter, chapters: Sequence[Chapter] = CHAPTERS) -> str:
    """Links to the chapter before, to the map and to the chapter after."""
    place = chapters.index(chapter)
    links = []
    if place:
        before = chapters[place - 1]
        if before != MAP:
            links.append(f"[← {before.number}. {before.title}]({before.file})")
        links.append(f"[{'← ' * (before == MAP)}Course map]({MAP.file})")
    for after in chapters[place + 1 : place + 2]:
        links.append(f"[{after.number}. {after.title} →]({after.file})")
    return " · ".join(links)


def time(notebook: NotebookNode, chapter: Chapter, cost: dict | None) -> str:
    """How long the chapter takes: reading and running, up to the next 5 minutes; exercises."""
    form = count_in(notebook, chapter.name)
    minutes = form.minutes + (cost["seconds"] / 60 if cost else 0)
    said = f"**Time**: {5 * math.ceil(minutes / 5)} minutes to read and run"
    if form.exercises:
        said += f", {sum(e.minutes for e in form.exercises)} for the exercises"
    return f"{said}; all cells run in {in_words(cost)} of memory." if cost else f"{said}."


def write_head_and_foot(
    notebook: NotebookNode, chapter: Chapter, cost: dict | None = None
) -> list[str]:
    """Bring title, ways and time of a notebook in step with the table, in place.

    Returns:
        What was out of step: "head", "foot".
    """
    first = notebook.cells[0]
    if not first.source.startswith("# "):
        raise ValueError(f"{chapter.file}: the first cell must begin with the title: # Title")
    paragraphs = first.source.partition("\n")[2].strip("\n").split("\n\n")
    own = [p for p in paragraphs if p and not re.fullmatch(f"{WAYS}|{TIME}", p)]
    head = [title(chapter), ways(chapter), time(notebook, chapter, cost), *own]
    last = notebook.cells[-1]
    if last.cell_type == "code" or last is first:
        last = new_markdown_cell(id=f"c{chapter.name[:2]}-foot")
        notebook.cells.append(last)
    foot = [p for p in last.source.split("\n\n") if p and not re.fullmatch(WAYS, p)]
    wanted = {"head": (first, head), "foot": (last, [*foot, ways(chapter)])}
    changed = []
    for name, (cell, parts) in wanted.items():
        if cell.source != (text := "\n\n".join(parts)):
            cell.source = text
            changed.append(name)
    return changed
