"""Author-side proof of every card: its answer is computed, accepted in all its forms, and the known
slips get their own names."""

import re

import pytest

from course_utils.chapters import CHAPTERS
from course_utils.checker.exercise import TAGS
from course_utils.environment import ROOT
from course_utils.maintain.ledger import read_table
from course_utils.recall import answer, deck
from course_utils.recall.chosen import Keyword, Sentences
from course_utils.recall.computed import Expression, Number, Shape
from course_utils.recall.deck import ALOUD, PARTS, select

CARDS = list(deck().values())
# The interview lines of note 002, its memory card, its tables, and the notes' mistakes in them.
ROWS = [
    *(f"002-{n}" for n in [*range(64, 69), 73, *range(78, 98), *range(99, 105), 106]),
    *(f"002-{n}" for n in [*range(109, 114), 125, 135]),
    "C-57", "C-73", "C-80",
]  # fmt: skip
AFTER_THE_NOTES = {chapter.name for chapter in CHAPTERS if chapter.part == "Since 2017"}
every_card = pytest.mark.parametrize("card", CARDS, ids=lambda card: card.id)


def test_there_are_enough_of_every_kind():
    assert len(CARDS) >= 100
    assert len({card.question for card in CARDS}) == len(CARDS)
    assert {card.part for card in CARDS} == {*PARTS, ALOUD}
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
    assert bool(card.rows) == (card.notebook not in AFTER_THE_NOTES)
    assert card.question[-1] in ".?:\"')？。", card.question
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


WORDS = [card for card in CARDS if isinstance(card.answer, Keyword)]
WAYS = ("{}", "the {}", "A {}.", "all {}", "{} layer", "the {} mechanisms", " {} !", "{}s")


def ways_to_write(word):
    plural = word[-3:].isalpha() and not word.lower().endswith("s")
    return [way.format(word) for way in (WAYS if plural else WAYS[:-1])]


def in_english(words):
    return [word for word in words if word.isascii()]


@pytest.mark.parametrize("card", WORDS, ids=lambda card: card.id)
def test_words_are_read_with_tolerance(card):
    for word in in_english(card.answer.accepted):
        for given in [*ways_to_write(word), word.replace("-", " ")]:
            assert card.answer.judge(given).right, given


@pytest.mark.parametrize("card", WORDS, ids=lambda card: card.id)
def test_tolerance_accepts_nothing_else(card):
    slips = in_english(card.answer.slips)
    others = [c.answer for c in WORDS if c is not card]
    others = [w for a in others for w in in_english([*a.accepted, *a.slips])]
    right = {word.lower() for word in card.answer.accepted}
    for word in [*slips, *(w for w in others if w.lower() not in right)]:
        for given in ways_to_write(word):
            judged = card.answer.judge(given)
            assert judged.right is False, given
            assert word not in slips or judged.message == card.answer.slips[word], given


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("softmax-axis", [3, -1, "-1", "3"], [2, -2, 0, -3, 1]),
        (
            "after-the-heads",
            ["a linear layer", "linear projection", "dense layer", "a fully-connected layer"],
            ["output", "layer", "a layer", "non-linear", "normalisation layer"],
        ),
        (
            "core-mechanism",
            ["attention mechanism", "the self-attention mechanism", "multi-head attention"],
            ["mechanism", "recurrence", "cross", "feed-forward layers"],
        ),
        (
            "where-the-source-enters",
            ["multi-head cross-attention", "the cross-attention layers", "Cross Attention"],
            ["attention", "multi-head attention", "masked self-attention layer"],
        ),
        (
            "two-kinds-of-positions",
            ["learnt", "learned embeddings", "a learnt positional encoding", "trainable"],
            ["embeddings", "fixed", "rotary", "relative", "sinusoidal encodings"],
        ),
        ("what-cross-attention-shows", ["alignments", "word-alignment"], ["attentions", "words"]),
        ("reformer", ["LSH hashing", "by hashing", "locality sensitive hashes"], ["windows"]),
        (
            "minus-infinity-everywhere",
            ["all NaN", "nan", float("nan"), "NaNs", "not a number"],
            ["all zeros", "0", "infinity", "a number", "1/n"],
        ),
        (
            "runs-while-writing",
            ["1 20", "1 and 20", "1, 20", "(1, 20)", "1; 20", "1 & 20", (1, 20), [1, 20]],
            ["20 1", "20 and 20", "1 1", "120", "1 20 1"],
        ),
        ("base-sizes", ["512 8 2048 6", "512, 8, 4 * 512 and 6"], ["512 8 512 6", "512 8 2048"]),
    ],
)
def test_what_learners_write_is_read(name, right, wrong):
    marked = deck()[name].answer
    assert [given for given in right if not marked.judge(given).right] == []
    assert [given for given in wrong if marked.judge(given).right is not False] == []


@every_card
def test_the_question_does_not_hold_the_answer(card):
    if isinstance(card.answer, (Expression, Keyword)):
        assert card.answer.right not in card.question + card.wanted


def test_choices_do_not_always_have_the_same_letter():
    letters = [c.answer.accepted[0] for c in CARDS if hasattr(c.answer, "options")]
    assert max(letters.count(letter) for letter in set(letters)) < len(letters) / 2
    both = [c.answer.accepted[0] for c in CARDS if "True or false" in c.question]
    assert 0.3 < both.count("a") / len(both) < 0.7


SPOKEN = [card for card in CARDS if card.part == ALOUD]


@pytest.mark.parametrize("card", SPOKEN, ids=lambda card: card.id)
def test_a_model_answer_is_a_few_chinese_sentences(card):
    """In Chinese, two to four sentences; without one of its points an answer is not enough."""
    answer = card.answer
    assert isinstance(answer, Sentences)
    assert card.question[-1] in "？。"
    assert 2 <= answer.right.count("。") <= 4
    assert len(answer.right) < 200
    assert len(answer.points) >= 2
    for point, words in answer.points.items():
        judged = answer.judge(re.sub(words, "", answer.right, flags=re.I))
        assert judged.right is False
        assert point in judged.message
    assert answer.judge(" ").right is None


def test_every_interview_line_can_be_answered_aloud():
    table = {row.row: row for row in read_table()}
    lines = {r for r, row in table.items() if row.note == "002" and row.kind == "interview line"}
    assert lines <= {row for card in SPOKEN for row in card.rows}


def test_cards_answered_aloud_come_only_when_asked_for():
    assert not any(card.part == ALOUD for card in select().values())
    assert set(select(part=ALOUD)) == {card.id for card in SPOKEN} == set(select(chapter=16))


def test_every_chapter_that_teaches_has_cards_and_none_needs_a_note():
    chapters = {card.notebook[:2] for card in CARDS}
    assert chapters >= {f"{number:02d}" for number in range(1, 15)}
    for card in CARDS:
        texts = (card.question, card.why, card.correction, card.wanted, *_messages(card))
        assert not re.search(r"\b[Nn]otes? 00\d|\b00[0-4]-\d|\bC-\d", " ".join(texts)), card.id


def test_cards_are_found_by_part_chapter_and_tag():
    chapter, part = set(select(chapter=6)), set(select(part="heads"))
    assert chapter == set(select(chapter="06")) == {c.id for c in CARDS if c.notebook[:2] == "06"}
    assert "head-size" in chapter & part
    assert "mean-ablation" in part - chapter
    assert part == {c.id for c in CARDS if c.part == "heads"}
    assert all(card.tag == "scale" for card in select(tag="scale").values())
    assert "Parts: idea, modules" in select(part="nothing")


def _messages(card):
    return [*getattr(card.answer, "slips", {}).values(),
            *getattr(card.answer, "because", {}).values()]  # fmt: skip
