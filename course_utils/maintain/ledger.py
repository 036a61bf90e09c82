"""The ledger of the notes: which cell teaches or verifies each of their rows.

`ledger.tsv` lists every formula, snippet, figure, number, claim and mistake of the five notes
(392 rows, 000-1 to 004-26) and every correction of them (C-1 to C-140), and the cells that teach
it. A cell says so itself, in its metadata: {"covers": ["001-28", "C-21"]}. `make sync` writes the
cells into ledger.tsv, and the summary into the README.
"""

import csv
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from course_utils.cli.notebook_file import read_notebook
from course_utils.environment import ROOT

TABLE = Path(__file__).with_name("ledger.tsv")
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
        for cell in read_notebook(path).cells:
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


def rows_with_cells() -> list[Row]:
    """All rows, with the cells that cover them now."""
    found = cells_by_row()
    return [replace(r, cells=tuple(sorted(found.get(r.row, {})))) for r in read_table()]


def as_text(rows: list[Row]) -> str:
    """What ledger.tsv holds."""
    lines = ["\t".join([r.row, r.kind, r.needs, r.says, " ".join(r.cells)]) for r in rows]
    return "\n".join(["row\tkind\tneeds\tsays\tcells", *lines, ""])
