"""The page that leads from each heading of each of the five notes to what teaches it here.

`note_headings.tsv` lists the headings, with the rows of the ledger that stand below each.
"""

import csv
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from course_utils.cli.notebooks import NOTEBOOKS
from course_utils.maintain.ledger import Row
from course_utils.maintain.sections import Section, sections

TABLE = Path(__file__).with_name("note_headings.tsv")
PAGE = NOTEBOOKS / "notes.md"
MOST = 4  # sections that a heading leads to
AFTERWARDS = {15, 16}  # the clinic and the cards ask what other chapters teach
BEGINNING = """# From the notes to the chapters

The course grew out of five study notes, written in Chinese. They do not come with it, and nobody
needs them: the chapters teach what is in them. Who has read one finds here, for each of its
headings, the sections that teach the same. Where a note is mistaken, the fold "From the notes" at
the end of a chapter and the [mistakes clinic](15_mistakes_clinic.ipynb) say so.

[Course map](00_start_here.ipynb) · [Glossary](glossary.md)
"""
ABOUT = {
    "000": "Notes on rebuilding the model of *Attention Is All You Need* (Vaswani et al., "
    "2017): positions, attention, heads, and six mistakes.",
    "001": "Notes of 2021 on chapter 10 of [*Dive into Deep Learning*](https://zh.d2l.ai), from "
    "attention cues to the Transformer, with its code.",
    "002": "A long summary to prepare for interviews: formulas, costs, variants, sentences to "
    "remember.",
    "003": "Arranged and translated from Peter Bloem's [*Transformers from scratch*]"
    "(https://peterbloem.nl/blog/transformers) (2019, last update 2023).",
    "004": "One layer of self-attention from zero, by vortezwohl and 吴子豪.",
}


@dataclass(frozen=True)
class Heading:
    """One heading of a note: how deep it stands, its words, and the rows of the ledger below it."""

    note: str
    level: int
    heading: str
    rows: tuple[str, ...]


def headings() -> list[Heading]:
    """All headings, in the order of the notes."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        lines = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [
            Heading(x["note"], int(x["level"]), x["heading"], tuple(x["rows"].split()))
            for x in lines
        ]


def taught_in(rows: list[Row], where: dict[str, Section]) -> list[Section]:
    """The sections that teach most of these rows, in the order of reading."""
    times = Counter(section for row in rows for section in {where[cell] for cell in row.cells})
    teaching = {s: n for s, n in times.items() if s.chapter.number not in AFTERWARDS} or times
    place = {section: i for i, section in enumerate(dict.fromkeys(where.values()))}
    best = sorted(teaching, key=lambda section: (-teaching[section], place[section]))[:MOST]
    return sorted(best, key=place.__getitem__)


def page(rows: list[Row]) -> str:
    """What notes.md holds, given the rows of the ledger with their cells."""
    by_name, where = {row.row: row for row in rows}, sections()
    lines, note = [BEGINNING], ""
    for h in headings():
        if h.note != note:
            note, top = h.note, h.level
            lines += [
                f"\n## Note {note}: {h.heading.rstrip('.')}\n", f"{ABOUT[note]}\n",
                "| heading of the note | taught in |", "|---|---|",
            ]  # fmt: skip
        links = " · ".join(s.link for s in taught_in([by_name[r] for r in h.rows], where))
        lines.append(f"| {'· ' * (h.level - top)}{h.heading} | {links} |")
    return "\n".join(lines) + "\n"
