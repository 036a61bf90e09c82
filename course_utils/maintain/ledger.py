"""The ledger of the notes: which cell teaches or verifies each of their rows.

`ledger.tsv` lists every formula, snippet, figure, number, claim and mistake of the five notes
(392 rows, 000-1 to 004-26) and every correction of them (C-1 to C-140), and the cells that teach
it. A cell says so itself, in its metadata: {"covers": ["001-28", "C-21"]}.

python -m course_utils.maintain.ledger

writes the cells into ledger.tsv and the summary into the README.
"""

import csv
import io
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import nbformat

from course_utils.environment import ROOT

TABLE = Path(__file__).with_name("ledger.tsv")
README = ROOT / "README.md"
START, END = "<!-- coverage of the notes, written by make sync -->", "<!-- end -->"
NOTES = {
    "000": "Transformer reproduction",
    "001": "D2L chapter 10, attention",
    "002": "Transformer in detail",
    "003": "Transformers from scratch",
    "004": "Build a Transformer from 0",
    "C": "corrections of the notes",
}


@dataclass(frozen=True)
class Row:
    """One row of the ledger.

    Attributes:
        row: its number, such as "001-28" or "C-21".
        kind: what it is, such as "formula".
        needs: "code" when a code cell has to show it, "any" when words may do, or
            "none: " and the reason why no cell is needed.
        says: the row in short.
        cells: chapter and cell id of those that teach it, such as "02#c02-008".
    """

    row: str
    kind: str
    needs: str
    says: str
    cells: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        return self.row.split("-")[0]


def read_table() -> list[Row]:
    """All rows, in the order of the file."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        lines = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [Row(**{**line, "cells": tuple(line["cells"].split())}) for line in lines]


def cells_by_row() -> dict[str, dict[str, str]]:
    """Row -> the cells that claim to cover it, each with its type, "code" or "markdown"."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            for row in cell.metadata.get("covers", []):
                found.setdefault(row, {})[f"{path.name[:2]}#{cell.id}"] = cell.cell_type
    return found


def summary(rows: list[Row]) -> str:
    """Markdown: rows taught of each note, and in which chapters."""
    lines = ["| note | rows | taught | in chapters |", "|---|---|---|---|"]
    for note, title in NOTES.items():
        of_note = [row for row in rows if row.note == note]
        taught = [row for row in of_note if row.cells]
        chapters = Counter(c for row in taught for c in {cell[:2] for cell in row.cells})
        where = ", ".join(f"{int(c)} ({n})" for c, n in sorted(chapters.items()))
        name = title if note == "C" else f"{note} {title}"
        lines.append(f"| {name} | {len(of_note)} | {len(taught)} | {where} |")
    return "\n".join(lines)


def readme_summary() -> str:
    """What stands in the README between the two marks."""
    text = README.read_text(encoding="utf-8")
    return text.partition(START)[2].partition(END)[0].strip()


def write() -> None:
    """Bring the table and the README in step with the notebooks."""
    found = cells_by_row()
    rows = [
        Row(r.row, r.kind, r.needs, r.says, tuple(sorted(found.get(r.row, {}))))
        for r in read_table()
    ]
    text = io.StringIO()
    text.write("row\tkind\tneeds\tsays\tcells\n")
    for r in rows:
        text.write("\t".join([r.row, r.kind, r.needs, r.says, " ".join(r.cells)]) + "\n")
    TABLE.write_text(text.getvalue(), encoding="utf-8", newline="\n")
    block = f"{START}\n\n{summary(rows)}\n\n{END}"
    readme = README.read_text(encoding="utf-8")
    readme = re.sub(re.escape(START) + ".*?" + re.escape(END), lambda _: block, readme, flags=re.S)
    README.write_text(readme, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    sys.exit(write())
