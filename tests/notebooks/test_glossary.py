"""The glossary and the way from the notes: one term for one thing, no row and no heading lost."""

from collections import Counter

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from test_lesson_form import CHAPTERS as IN_FORM

from course_utils.chapters import CHAPTERS
from course_utils.maintain import glossary, note_pages, sections
from course_utils.maintain.ledger import Row, read_table

TERMS = glossary.terms()
QUOTES_THE_NOTES = "15"  # the clinic, from its first cell to its last
IN_ORDER = {"00", *(name[:2] for name in IN_FORM)}  # those whose brackets hold nothing but terms


def faults(texts, terms):
    """What a chapter calls otherwise than the glossary, or what the glossary lacks."""
    ours = {t.chinese for t in terms}
    refused = {other: t for t in terms for other in t.instead}
    for cell, text in texts:
        for chinese in glossary.chinese_in(text):
            if chinese in refused:
                term = refused[chinese]
                yield f"{cell}: {chinese}; the course says {term.chinese} for {term.english}"
            elif chinese not in ours and cell[:2] in IN_ORDER:
                yield f"{cell}: {chinese} is new; give it a row in maintain/glossary.tsv"


def test_one_term_for_one_thing():
    texts = [x for x in glossary.taught_texts() if x[0][:2] != QUOTES_THE_NOTES]
    assert list(faults(texts, TERMS)) == []


def test_the_glossary_is_in_order():
    english = [term.english for term in TERMS]
    assert english == sorted(english, key=str.lower)
    known = Counter(word for t in TERMS for word in (t.chinese, *t.instead))
    assert [word for word, times in known.items() if times > 1] == []
    assert Counter(english).most_common(1)[0][1] == 1
    assert all(term.says and not term.says.endswith(".") for term in TERMS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a score (得分) of", "00#x: 得分; the course says 评分 for score"),
        ("a GRU (gated recurrent unit, 门控循环单元), 笔记（东西）", None),
        ("a thing (东西)", "00#x: 东西 is new"),
        ("得分 outside of brackets", None),
    ],
)
def test_other_words_are_named(text, said):
    found = "; ".join(faults([("00#x", text)], TERMS))
    assert found.startswith(said) if said else found == ""


def test_every_row_of_a_note_stands_below_one_heading():
    rows = Counter(row for h in note_pages.headings() for row in h.rows)
    assert rows == Counter(row.row for row in read_table() if row.note != "C")


def test_a_heading_without_rows_has_others_below_it():
    all_of_them = note_pages.headings()
    for here, below in zip(all_of_them, all_of_them[1:]):
        is_above = below.note == here.note and below.level > here.level
        is_part = here.note == "002" and below.level == 2  # its parts all stand at the top
        assert here.rows or is_above or is_part, here


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A course of one chapter with two sections."""
    chapter = CHAPTERS[2]
    cells = [
        new_markdown_cell("# Title\n\nA query (查询).", id="a"),
        new_markdown_cell("## Masks (掩码), first\n\nText", id="b"),
        new_code_cell("# ## no heading", id="c"),
        new_markdown_cell("## Of $d$\n\n```\n## no heading\n```", id="d"),
        new_markdown_cell("A key (键).\n\n## The `end`", id="e"),
        new_code_cell("1", id="f"),
        new_markdown_cell("## Twice\n\n## Twice", id="g"),
    ]
    nbformat.write(new_notebook(cells=cells), tmp_path / chapter.file)
    for module in (sections, glossary):
        monkeypatch.setattr(module, "NOTEBOOKS", tmp_path)
        monkeypatch.setattr(module, "CHAPTERS", (chapter,))
    return chapter


def test_a_cell_belongs_to_the_section_above_it(small):
    found = {name[3:]: section.heading for name, section in sections.sections().items()}
    masks = "Masks (掩码), first"
    assert found == {
        "a": "", "b": masks, "c": masks, "d": masks, "e": "The end", "f": "The end", "g": "The end",
    }  # fmt: skip
    link = sections.sections()["02#c"].link
    assert link == f"[2. {masks}](02_masked_softmax.ipynb#Masks-%28掩码%29,-first)"


def test_the_page_leads_to_the_first_place(small):
    assert glossary.first_places()["查询"].link == "[2. Masked softmax](02_masked_softmax.ipynb)"
    assert "| query | 查询 |  | what asks | [2. Masked softmax](" in glossary.page()


def test_a_heading_leads_to_what_teaches_most_of_its_rows(small):
    where = sections.sections()
    rows = [
        Row("000-1", "claim", "any", "x", ("02#a", "02#f")),
        Row("000-2", "claim", "any", "y", ("02#e",)),
    ]
    assert [s.heading for s in note_pages.taught_in(rows, where)] == ["", "The end"]
    assert note_pages.taught_in([], where) == []
