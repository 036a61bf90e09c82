"""Author-side proof of every card: its answer is computed, accepted in all its forms, and the known
slips get their own names."""

import re

import pytest
from ledger import read_table

from course_utils.environment import ROOT
from course_utils.exercises.model import TAGS
from course_utils.recall import answer, deck
from course_utils.recall.chosen import Keyword
from course_utils.recall.computed import Expression, Number, Shape
from course_utils.recall.deck import PARTS, select

CARDS = list(deck().values())
# The interview lines of note 002, its memory card, its tables, and the notes' mistakes in them.
ROWS = [
    *(f"002-{n}" for n in [*range(64, 69), 73, *range(78, 98), *range(99, 105), 106]),
    *(f"002-{n}" for n in [*range(109, 114), 125, 135]),
    "C-57", "C-73", "C-80",
]  # fmt: skip
every_card = pytest.mark.parametrize("card", CARDS, ids=lambda card: card.id)


def test_there_are_enough_of_every_kind():
    assert len(CARDS) >= 100
    assert len({card.question for card in CARDS}) == len(CARDS)
    assert {card.part for card in CARDS} == set(PARTS)
    kinds = [type(card.answer) for card in CARDS]
    assert min(kinds.count(kind) for kind in (Expression, Shape, Number, Keyword)) >= 7
    assert len({card.tag for card in CARDS}) >= 25


@pytest.mark.parametrize("row", ROWS)
def test_every_row_has_a_card(row):
    assert any(row in card.rows for card in CARDS)


def test_the_rows_are_those_of_the_ledger():
    table = {row.row: row for row in read_table()}
    lines = {r for r, row in table.items() if row.note == "002" and row.kind == "interview line"}
    assert lines <= set(ROWS) <= table.keys()
    assert {row for card in CARDS for row in card.rows} <= table.keys()


@every_card
def test_card_is_complete(card):
    assert re.fullmatch(r"[a-z][a-z-]+", card.id)
    assert card.tag in TAGS or card.tag == ""
    assert card.rows
    assert card.question[-1] in ".?:\"')", card.question
    assert not card.question.startswith("And ")  # a card comes alone
    for text in [card.why, card.correction, *_messages(card)]:
        assert text == "" or text[-1] in '.?!"', text
    assert card.wanted


def test_every_chapter_that_a_card_names_exists():
    chapters = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert {card.notebook for card in CARDS} <= chapters


@every_card
def test_the_right_answer_is_proved_by_code(card):
    assert card.answer.proved()


@every_card
def test_right_answers_are_accepted(card):
    assert len(card.answer.accepted) >= 1
    for given in card.answer.accepted:
        result = answer(card.id, given, save=False)
        assert result, (given, result)
        assert card.why in str(result)
        assert card.correction in str(result)


@every_card
def test_wrong_answers_are_refused_by_name(card):
    slips = getattr(card.answer, "slips", {})
    assert card.answer.refused or isinstance(card.answer, Keyword)
    for given in card.answer.refused:
        judged = card.answer.judge(given)
        assert judged.right is False, given
        assert judged.message == slips.get(given, judged.message), given
        assert judged.message


@every_card
def test_the_question_does_not_hold_the_answer(card):
    if isinstance(card.answer, (Expression, Keyword)):
        assert card.answer.right not in card.question + card.wanted


def test_choices_do_not_always_have_the_same_letter():
    letters = [c.answer.accepted[0] for c in CARDS if hasattr(c.answer, "options")]
    assert max(letters.count(letter) for letter in set(letters)) < len(letters) / 2
    both = [c.answer.accepted[0] for c in CARDS if "True or false" in c.question]
    assert 0.3 < both.count("a") / len(both) < 0.7


def test_cards_are_found_by_part_chapter_and_tag():
    assert set(select(chapter=6)) == set(select(chapter="06")) == set(select(part="heads")) | {
        c.id for c in CARDS if c.notebook.startswith("06") and c.part != "heads"
    }
    assert all(card.tag == "scale" for card in select(tag="scale").values())
    assert "Parts: idea, modules" in select(part="nothing")


def _messages(card):
    return [*getattr(card.answer, "slips", {}).values(),
            *getattr(card.answer, "because", {}).values()]  # fmt: skip
