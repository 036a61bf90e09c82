"""Numbers may be changed: no listed change of a chapter ends in a bare error.

`make test` tries the tool on a small notebook; `make test-long` tries thirty changes a chapter,
with short trainings.
"""

import os

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from test_lesson_form import PATHS

from course_utils.environment import ROOT
from course_utils.maintain import changes
from course_utils.maintain.changes import Tried, changes_of, short_of, try_chapter

pytestmark = [
    pytest.mark.deeper,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="each change runs in a fork"),
]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))  # PATHS, and those of another form
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
CELLS = {
    "a": "x = [1, 2]",
    "b": "from course_utils.checker.lesson import claim\n"
    "claim(sum(x) == 3, 'the sum is 3', f'here it is {sum(x)}')",
    "c": "x[1]",
    "d": "from course_utils.models.masks import causal_mask\ncausal_mask(len(x), 2)",
}


@pytest.fixture
def chapter(tmp_path, monkeypatch):
    """A chapter of four cells, with changes that are given by calling it."""
    cells = [new_code_cell(source, id=name) for name, source in CELLS.items()]
    path = tmp_path / "small.ipynb"
    nbformat.write(new_notebook(cells=cells), path)

    def with_changes(*listed, short=()):
        monkeypatch.setattr(changes, "changes_of", lambda _: list(listed))
        monkeypatch.setattr(changes, "short_of", lambda _: list(short))
        return path

    return with_changes


def test_what_became_of_each_change_is_told(chapter):
    path = chapter(("a", "2", "3"), ("a", ", 2", ""), ("a", "2", "2, 0"), ("c", "x[1]", "x[0]"))
    spoke, short, long, quiet = try_chapter(path)
    said = "○ With these numbers it no longer holds that the sum is 3: here it is"
    assert spoke == Tried("a", "2", "3", [f"{said} 4."])
    assert short.spoke == [f"{said} 1."]
    assert short.bare == ["c: IndexError: list index out of range"]
    assert long.bare == []
    assert long.clear[0].startswith("d: ValueError: a causal mask needs at least as many keys")
    assert quiet == Tried("c", "x[1]", "x[0]")


def sums(path, **options):
    """What the claim of the small chapter found instead of 3, change by change."""
    found = [one.spoke for one in try_chapter(path, **options)]
    return [int(one[0].rstrip(".").split()[-1]) if one else 3 for one in found]


def test_a_change_comes_before_what_makes_a_chapter_short(chapter):
    """The first takes away what "1" would shorten, the second brings another, the rest do not."""
    listed = ("a", "1", "5"), ("a", "2", "1"), ("a", "2", "7"), ("b", "here it is", "it is")
    path = chapter(*listed, short=[("a", "1", "4"), ("a", "2", "6")])
    assert sums(path) == [5 + 6, 1 + 1, 4 + 7, 4 + 6]
    assert sums(path, whole=True) == [5 + 2, 1 + 1, 1 + 7, 3]


def test_a_chapter_that_fails_without_a_change_is_named(chapter):
    path = chapter(("d", "len(x)", "2"), short=[("a", ", 2", "")])
    with pytest.raises(RuntimeError, match="without a change it fails: .'c: IndexError"):
        list(try_chapter(path))
    assert [one.bare for one in try_chapter(path, whole=True)] == [[]]


def test_what_a_chapter_imports_is_imported_once(tmp_path, monkeypatch):
    """By a copy that is thrown away, then before the copies of the changes are made."""
    monkeypatch.syspath_prepend(tmp_path)
    log = tmp_path / "log"
    (tmp_path / "slow_to_import.py").write_text(f"open({str(log)!r}, 'a').write('imported ')")
    cells = [new_code_cell("x = 1", id="a"), new_code_cell("import slow_to_import", id="b")]
    listed = [("a", "1", "2"), ("a", "1", "3"), ("b", "slow", "slow")]
    path = tmp_path / "small.ipynb"
    nbformat.write(new_notebook(cells=cells), path)
    monkeypatch.setattr(changes, "changes_of", lambda _: listed)
    monkeypatch.setattr(changes, "short_of", lambda _: [])
    assert len(list(try_chapter(path))) == 3
    assert log.read_text().split() == ["imported"] * 2


def test_changes_that_do_not_apply_are_named(chapter):
    for wrong in (("a", "7", "8"), ("b", "sum", "max"), ("z", "1", "2")):
        for path in (chapter(wrong), chapter(("a", "2", "3"), short=[wrong])):
            with pytest.raises(ValueError, match="does not stand exactly once"):
                list(try_chapter(path))


@each_notebook
def test_a_chapter_lists_thirty_changes_that_apply(path):
    sources = {cell.id: cell.source for cell in nbformat.read(path, as_version=4).cells}
    listed = changes_of(path.stem)
    assert len(set(listed)) >= 30 or path not in PATHS
    for cell, old, new in listed:
        assert sources[cell].count(old) == 1, (cell, old)
        assert new != old
    for cell, old, new in short_of(path.stem):
        assert sources[cell].count(old) == 1, (cell, old)
        sources[cell] = sources[cell].replace(old, new)  # none may spoil another of its cell


@each_notebook
def test_no_change_of_a_chapter_ends_in_a_bare_error(path, request):
    if request.config.getoption("hypothesis_profile", None) != "long":
        pytest.skip("make test-long tries them")
    tried = list(try_chapter(path))
    assert [one for one in tried if one.bare] == []
    assert any(one.spoke for one in tried) or path not in PATHS
