"""The glossary: one Chinese term for one thing in all chapters, and a page that lists them.

`glossary.tsv` holds, for each English term, its Chinese one, others for the same that other texts
have and ours does not (`instead`), and a few words on what it is.
"""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from course_utils.chapters import CHAPTERS
from course_utils.cli.notebook_file import read_notebook
from course_utils.cli.notebooks import NOTEBOOKS
from course_utils.maintain.sections import Section, sections

TABLE = Path(__file__).with_name("glossary.tsv")
PAGE = NOTEBOOKS / "glossary.md"
HAN = r"[\u4e00-\u9fff]"
BRACKETS = r"\(([^()（）\n]*)\)"  # ours; full-width ones belong to Chinese text
BEGINNING = """# Glossary (词汇表)

The terms of the course, in English and in Chinese: one term for one thing in all chapters. *Also*
are words that other texts have for the same. The last column leads to where a chapter first gives
the Chinese term.

[Course map](00_start_here.ipynb) · [From the notes to the chapters](notes.md)

| English | Chinese | also | what it is | first in |
|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Term:
    """A row of the glossary."""

    english: str
    chinese: str
    instead: tuple[str, ...]
    says: str


def terms() -> list[Term]:
    """All rows, in the order of the file, which is that of the alphabet."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        lines = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [Term(**{**line, "instead": tuple(line["instead"].split())}) for line in lines]


def chinese_in(text: str) -> Iterator[str]:
    """The Chinese terms that stand in brackets: `GRU (gated recurrent unit, 门控循环单元)`."""
    for inside in re.findall(BRACKETS, text):
        for part in re.split(r"[,:;，、：；]\s*", inside):
            if re.search(HAN, part):
                yield part.strip()


def taught_texts() -> Iterator[tuple[str, str]]:
    """The text cells of all chapters, without the folds that quote the notes: ("02#id", text)."""
    for chapter in CHAPTERS:
        for cell in read_notebook(NOTEBOOKS / chapter.file).cells:
            if cell.cell_type == "markdown" and "notes" not in cell.metadata.get("tags", []):
                yield f"{chapter.name[:2]}#{cell.id}", cell.source


def first_places() -> dict[str, Section]:
    """Where each Chinese term first stands in brackets."""
    where, found = sections(), {}
    for cell, text in taught_texts():
        for chinese in chinese_in(text):
            found.setdefault(chinese, where[cell])
    return found


def page() -> str:
    """What glossary.md holds."""
    places = first_places()
    rows = (
        f"| {t.english} | {t.chinese} | {', '.join(t.instead)} | {t.says} | "
        f"{places[t.chinese].link if t.chinese in places else ''} |\n"
        for t in terms()
    )
    return BEGINNING + "".join(rows)
