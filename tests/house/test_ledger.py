"""Every row of the notes is taught or verified by a cell that exists."""

from collections import Counter

import pytest

from course_utils.maintain.ledger import cells_by_row, read_table

ROWS = read_table()
REWRITE = "run `make sync` and look at what changed"


def complaints(row, found):
    """What is wrong with the coverage of a row, given the cells that claim it."""
    if row.needs.startswith("none: "):
        return
    if not found:
        yield f"no cell covers it: {row.says}"
    elif row.needs == "code" and "code" not in found.values():
        yield f"a {row.kind}, but only text covers it: {row.says}"
    if gone := sorted(set(row.cells) - set(found)):
        yield f"{', '.join(gone)} are gone or no longer claim it; {REWRITE}"
    if new := sorted(set(found) - set(row.cells)):
        yield f"{', '.join(new)} are not in the table; {REWRITE}"


def test_the_ledger_is_whole():
    assert len({row.row for row in ROWS}) == len(ROWS)
    assert Counter(row.note for row in ROWS) == {
        "000": 32, "001": 114, "002": 135, "003": 85, "004": 26, "C": 140,
    }  # fmt: skip
    for row in ROWS:
        reason = row.needs.removeprefix("none: ")
        assert row.needs in ("code", "any") or (reason != row.needs and len(reason) > 20), row
        assert row.needs == "code" or row.kind not in ("formula", "code", "numeric output"), row
        assert reason == row.needs or row.kind == "reference", row


def test_every_row_is_covered():
    found = cells_by_row()
    faults = [f"{row.row}: {c}" for row in ROWS for c in complaints(row, found.get(row.row, {}))]
    assert not faults, "\n".join(faults)


def test_no_cell_covers_a_row_that_does_not_exist():
    assert not set(cells_by_row()) - {row.row for row in ROWS}


@pytest.mark.parametrize(
    ("needs", "cells", "found", "said"),
    [
        ("code", (), {}, "no cell covers it"),
        ("code", ("01#a",), {"01#a": "markdown"}, "only text covers it"),
        ("any", ("01#a",), {"01#b": "code"}, "01#a are gone"),
        ("any", ("01#a",), {"01#a": "code", "01#b": "code"}, "01#b are not in the table"),
        ("code", ("01#a",), {"01#a": "code"}, None),
        ("any", ("01#a",), {"01#a": "markdown"}, None),
        ("none: a link to a video", (), {}, None),
    ],
)
def test_a_row_that_is_not_covered_is_named(needs, cells, found, said):
    row = type(ROWS[0])("009-1", "claim", needs, "attention attends", cells)
    text = "; ".join(complaints(row, found))
    assert (said in text) if said else not text
