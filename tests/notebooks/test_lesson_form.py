"""The form of a chapter: one main line of bounded length, guesses, proofs apart, transfer.

CHAPTERS lists those that have the form; it grows until it holds them all.
"""

import re
from collections import Counter

import nbformat
import pytest

from course_utils.chapters import CHAPTERS as TABLE
from course_utils.environment import ROOT
from course_utils.maintain.form import FOLLOWS, count

CHAPTERS = (
    "01_attention_pooling",
    "02_masked_softmax",
    "03_scoring_functions",
    "04_bahdanau_translation",
    "05_self_attention",
    "06_multi_head_attention",
    "07_positional_encoding",
    "08_transformer_blocks",
    "09_transformer_translation",
    "10_text_classification",
    "11_three_modes",
    "12_training_in_practice",
    "23_when_training_fails",
    "13_long_sequences",
    "14_fine_tuning",
    "22_preferences",
    "17_todays_blocks",
    "18_exact_and_fast",
    "20_tokens",
    "21_pictures",
    "16_recall",
)
PATHS = [ROOT / "notebooks" / f"{name}.ipynb" for name in CHAPTERS]
AFTER_THE_NOTES = {chapter.name for chapter in TABLE if chapter.part == "Since 2017"}
each_chapter = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def cells(path, tag):
    notebook = nbformat.read(path, as_version=4)
    return [cell for cell in notebook.cells if tag in cell.metadata.get("tags", [])]


@each_chapter
def test_length_and_the_time_that_the_first_cell_promises(path):
    form = count(path)
    assert form.lesson <= 3500
    assert form.time, (
        "the first cell says: **Time**: N minutes to read and run, M for the exercises"
    )
    said, exercises = form.time
    assert said <= 60
    assert said >= 0.9 * form.minutes, f"reading alone takes {form.minutes:.0f} minutes"
    assert exercises == sum(e.minutes for e in form.exercises)


@each_chapter
def test_the_main_line_does_not_meet_the_notes(path):
    assert count(path).mentions == ()
    first = nbformat.read(path, as_version=4).cells[0].source
    lines = sum(line.startswith(FOLLOWS) for line in first.splitlines())
    assert lines == (path.stem not in AFTER_THE_NOTES)


@each_chapter
def test_tests_are_no_lesson(path):
    """What asserts is a proof, folded under a line that says what it proves."""
    assert count(path).asserts == (), "use claim(...), or tag the cell proof"
    for cell in cells(path, "proof"):
        assert cell.source.startswith("# proof: "), cell.id
        assert cell.metadata.jupyter.source_hidden, cell.id
        assert cell.metadata.jupyter.get("outputs_hidden", False) or not cell.outputs, cell.id


@each_chapter
def test_the_notes_are_mended_in_one_fold_that_ends_the_lesson(path):
    folds = cells(path, "notes")
    if path.stem in AFTER_THE_NOTES:
        assert folds == []
        return
    (fold,) = folds
    assert fold.cell_type == "markdown"
    begins = r"## From the notes\n\n<details><summary>For readers of .*</summary>\n\n\|"
    assert re.match(begins, fold.source)
    assert fold.source.endswith("|\n\n</details>")


@each_chapter
def test_learners_guess_first(path):
    form = count(path)
    assert len(form.guesses) >= 2
    assert form.claims >= 2
    texts = [c.source for c in nbformat.read(path, as_version=4).cells]
    assert any(re.search(r"^##.*Turn one knob", text, re.M) for text in texts)


def test_no_two_guesses_have_one_name():
    names = Counter(name for path in PATHS for name in count(path).guesses)
    assert [name for name, times in names.items() if times > 1] == []


@each_chapter
def test_exercises_transfer_and_one_comes_before_its_code(path):
    form = count(path)
    assert 3 * len(form.asking("transfer")) >= len(form.exercises)
    assert form.early
