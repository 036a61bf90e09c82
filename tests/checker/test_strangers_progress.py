"""A progress file, an answer or a notebook from a stranger: nothing crashes or is injected.

Opening a notebook runs nothing: what is stored in ours is text, pictures and plain tables.
"""

import json
import os
import re
import tempfile

import nbformat
import pytest
import torch

from course_utils.checker import check, hint, log, progress
from course_utils.environment import ROOT
from course_utils.recall import answer, ask, overview
from course_utils.recall.clock import now
from course_utils.recall.schedule import histories

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SCRIPT = "<script>alert(1)</script>"
ACTIVE = re.compile(
    r"<\s*(script|iframe|object|embed|link|meta|base|form|svg)\b|javascript:|<[^>]*\son\w+\s*=",
    re.IGNORECASE,
)
SHOWN = {"text/plain", "text/html", "text/markdown", "image/png"}
ODD = [None, True, -3, 10**400, 1.5, float("nan"), "", "\x00\x1b[2J", SCRIPT, [], [[]], {}]
FIELDS = ["exercise", "outcome", "code", "tags", "hint", "time", "card", "rating", "event"]
EVENTS = [
    {"event": "check", "exercise": "dot_product_variance", "outcome": "wrong", "code": "1",
     "tags": ["scale"]},
    {"event": "hint", "exercise": "dot_product_variance", "hint": 1},
    {"event": "solution", "exercise": "dot_product_variance"},
    {"event": "review", "card": "head-size", "rating": "good", "time": "2026-01-05T09:00:00+00:00"},
    {"event": "forget", "card": "head-size"},
    {"event": "reset", "exercise": "dot_product_variance"},
]  # fmt: skip
TIMES = ["0001-01-01", "9999-12-31T23:59:59+00:00", "2026-01-05", "9999-12-31T23:59:59-12:00"]


@pytest.fixture(autouse=True)
def file(tmp_path, monkeypatch):
    path = tmp_path / "progress.jsonl"
    monkeypatch.setenv("COURSE_PROGRESS", str(path))
    return path


def everything():
    """All that the course reads from the log, as the learner sees it."""
    shown = [progress(), overview(), ask(), hint("dot_product_variance"),
             answer("head-size", 64)]  # fmt: skip
    return "".join(view._repr_html_() + repr(view) for view in shown)


def hostile_lines():
    for event in EVENTS:
        yield event
        for field in FIELDS:
            for value in ODD:
                yield event | {field: value}
    for time in TIMES:
        yield EVENTS[3] | {"time": time}


def test_entries_of_odd_types_are_passed_over(file):
    lines = [json.dumps(entry) for entry in hostile_lines()]
    lines += ["[" * 100_000, '{"event":' * 50_000, "null", "NaN", '{"event": "check"', "\x00", "'"]
    for start in range(0, len(lines), 100):
        file.write_text("\n".join(lines[start : start + 100]) + "\n", encoding="utf-8")
        assert not ACTIVE.search(everything())
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    check("dot_product_variance", 64)
    assert log.solved() == {"dot_product_variance"}


def test_names_from_the_file_are_text(file):
    entries = [
        {"event": "check", "exercise": SCRIPT, "outcome": "right", "tags": [SCRIPT, "\x1b[31m"]},
        {"event": "check", "exercise": "dot_product_variance", "outcome": SCRIPT, "code": SCRIPT},
        {"event": "review", "card": SCRIPT, "rating": "good", "time": "2026-01-05T09:00:00"},
    ]
    file.write_text("".join(json.dumps(e) + "\n" for e in entries), encoding="utf-8")
    assert progress().solved == 0  # there is no such exercise
    assert progress().tags == {}  # and no such kind of mistake
    assert not ACTIVE.search(everything())
    assert "\x1b" not in everything()


def test_a_line_of_a_hundred_megabytes_costs_no_memory_and_no_other_line(file):
    good = json.dumps({"event": "check", "exercise": "dot_product_variance", "outcome": "right"})
    with file.open("wb") as log_file:
        log_file.write(good.encode() + b"\n" + b'{"event": "check", "exercise": "')
        log_file.truncate(100_000_000)  # a hole, read as NUL bytes
    with file.open("ab") as log_file:
        log_file.write(b'"}\n' + good.replace("dot_product_variance", "slowest_columns").encode())
    assert log.solved() == {"dot_product_variance", "slowest_columns"}
    check("additive_parameters", 184)
    assert len(log.solved()) == 3


def test_reviews_at_impossible_times_are_passed_over(file):
    entries = [EVENTS[3] | {"time": time} for time in (*TIMES, *reversed(TIMES))]
    file.write_text("".join(json.dumps(e) + "\n" for e in entries), encoding="utf-8")
    assert set(histories(now())) <= {"head-size"}
    assert "Due" in repr(answer("head-size", 64)) or answer("head-size", 64)


def test_logs_leave_one_lock_behind_not_one_each(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    for name in "abc":
        monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / name))
        assert log.write("check", "dot_product_variance") == ""
    assert len(list((tmp_path / "temporary").iterdir())) <= 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_in_place_of_the_file_is_not_waited_for(file):
    os.mkfifo(file)
    assert log.read() == []


class Named:
    def __init__(self, *args):
        pass

    def __repr__(self):
        return SCRIPT


Named.__name__ = Named.__qualname__ = SCRIPT


def prints(scores, mask):
    print(SCRIPT)


def raises(scores, mask):
    raise type(SCRIPT, (Exception,), {})(SCRIPT + "`" + SCRIPT)


ANSWERS = {
    "text": ("dot_product_variance", SCRIPT),
    "object": ("dot_product_variance", Named()),
    "list": ("dot_product_variance", [SCRIPT, Named()]),
    "printed": ("softmax_with_mask", prints),
    "error": ("softmax_with_mask", raises),
    "returned": ("softmax_with_mask", lambda scores, mask: SCRIPT),
    "keys": ("softmax_with_mask", lambda scores, mask: {SCRIPT: scores, "`" + SCRIPT: SCRIPT}),
    "an object": ("softmax_with_mask", lambda scores, mask: Named()),
    "no function": ("softmax_with_mask", Named()),
    "a class": ("softmax_with_mask", Named),
    "name": (SCRIPT, 3),
    "tensor": ("softmax_with_mask", lambda scores, mask: torch.full_like(scores, float("nan"))),
}


@pytest.mark.parametrize(("name", "given"), ANSWERS.values(), ids=ANSWERS)
def test_what_an_answer_says_of_itself_is_escaped(name, given):
    html = check(name, given)._repr_html_()
    assert not ACTIVE.search(html), html


def test_what_a_recall_answer_says_of_itself_is_escaped():
    for given in (SCRIPT, [SCRIPT], {SCRIPT: SCRIPT}, Named()):
        assert not ACTIVE.search(answer("head-size", given)._repr_html_())
        assert not ACTIVE.search(answer({SCRIPT: given})._repr_html_())
    for view in (ask(tag=SCRIPT), ask(chapter=SCRIPT)):
        assert not ACTIVE.search(view._repr_html_())


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_stored_outputs_hold_nothing_that_acts(path):
    for cell in nbformat.read(path, as_version=4).cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            assert set(data) <= SHOWN, f"cell {cell.execution_count}"
            for kind in {"text/html", "text/markdown"} & set(data):
                assert not ACTIVE.search(data[kind]), f"cell {cell.execution_count}"
        if cell.cell_type != "code":
            assert cell.cell_type == "markdown"
            assert not ACTIVE.search(re.sub(r"`[^`]*`|<(p|img|details|summary)\b", "", cell.source))


@pytest.mark.parametrize("text", ["<script>", "<a href='javascript:x'>", "<img src=x onerror = y>",
                                  "< IFRAME src=x>", "<p\nonclick=x>"])  # fmt: skip
def test_what_acts_is_known(text):
    assert ACTIVE.search(text)
