"""The learner's log: only added to, never spoiled, and everything else is read from it."""

import json
import os
import re
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

from course_utils.chapters import CHAPTERS
from course_utils.checker import catalogue, check, hint, log, progress, reset, solution
from course_utils.checker.overview import Progress


@pytest.fixture(autouse=True)
def file(tmp_path, monkeypatch):
    path = tmp_path / "progress.jsonl"
    monkeypatch.setenv("COURSE_PROGRESS", str(path))
    return path


def no_scale(q, k, v):
    weights = torch.softmax(q @ k.mT, -1)
    return weights @ v, weights


def test_attempts_are_counted_and_survive(file):
    check("scaled_attention", no_scale)
    check("dot_product_variance", 64)
    entries = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [e["outcome"] for e in entries] == ["mistake", "right"]
    assert entries[0]["mistakes"] == ["the scores are not scaled"]
    assert entries[0]["tags"] == ["scale"]
    assert len(entries[0]["code"]) == 12
    now = progress()
    assert now.solved == 1
    assert now.states["dot_product_variance"] == "✓ solved, 1 try"
    assert now.states["scaled_attention"] == "… 1 try"
    assert now.states["causal_attention"] == "○ not attempted"
    assert f"1 of {len(catalogue())} exercises solved" in str(now)
    assert "1 x scale" in str(now)


def test_a_row_for_each_chapter_and_on_request_for_each_of_its_exercises():
    check("scaled_attention", no_scale)
    check("dot_product_variance", 64)
    check("dot_product_variance", 8)
    there = [e.name for e in catalogue() if e.notebook == "03_scoring_functions"]
    chapters = {e.notebook for e in catalogue()}
    lines = str(progress()).splitlines()
    assert lines[1].split() == ["chapter", "solved", "tried", "exercises"]
    assert [line.split()[0] for line in lines[2 : 2 + len(chapters)]] == [
        chapter.name for chapter in CHAPTERS if chapter.name in chapters
    ]
    assert f"03_scoring_functions 1 1 {len(there)}".split() in [line.split()[:4] for line in lines]
    assert any(re.search("█+░+", line) for line in lines)
    assert "<td>03_scoring_functions</td><td>1</td><td>1</td>" in progress()._repr_html_()

    chapter = progress("03_scoring_functions")
    assert chapter.solved == 1
    said = str(chapter).splitlines()
    assert said[0] == f"1 of {len(there)} exercises in 03_scoring_functions solved"
    assert [line.split()[0] for line in said[2 : 2 + len(there)]] == there
    assert "✓ solved, 2 tries" in chapter._repr_html_()
    assert "… 1 try" in str(chapter)
    assert "causal_and_padding" not in str(chapter)


@pytest.mark.parametrize("chapter", [3, "3", "03"])
def test_a_chapter_may_be_named_by_its_number(chapter):
    assert str(progress(chapter)) == str(progress("03_scoring_functions"))
    assert str(progress(0)) == str(progress("00_start_here"))


@pytest.mark.parametrize("chapter", ["99", "3_scoring", "", "03_", -1])
def test_a_chapter_without_exercises_is_refused(chapter):
    with pytest.raises(ValueError, match=f"in {chapter!r}; chapters: 00_start_here, "):
        progress(chapter)


def test_a_stub_leaves_no_trace(file):
    check("dot_product_variance", ...)
    check("scaled_attention", 3)
    assert not file.exists()


def test_one_answer_counts_a_tag_once_and_many_bring_its_rule():
    for _ in range(3):
        check("scaled_attention", no_scale)
    assert log.tags() == {"scale": 1}
    check("multi_head_parameters", 4 * (64 * 64 + 64))
    check("multi_head_parameters", 3 * 64 * 64)
    check("additive_parameters", 176)
    assert log.tags()["counting"] == 3
    said = str(progress())
    assert "3 x counting, last today - Count matrix by matrix" in said
    assert re.search(r"To train 'counting': exercise \w+ and card [\w-]+", said)


def test_a_mistake_of_another_day_is_told_with_its_day(file):
    check("scaled_attention", no_scale)
    entry = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(entry | {"time": "2026-01-05T09:00:00+00:00"}), encoding="utf-8")
    assert "1 x scale, last on 2026-01-05 - " in str(progress())


def test_wrong_guesses_are_listed_until_they_are_right():
    log.write("clinic", case="C-12", good=False)
    log.write("outcome", guess="the longest row", value="3", came="4", close=False)
    assert log.wrong_guesses() == ["C-12", "the longest row"]
    log.write("outcome", guess="the longest row", value="4", came="4", close=True)
    assert "Guessed otherwise: C-12" in str(progress())


def test_solved_stays_solved_until_it_is_reset():
    check("dot_product_variance", 64)
    check("dot_product_variance", 8)
    assert log.solved() == {"dot_product_variance"}
    reset("dot_product_variance")
    assert log.solved() == set()
    assert log.attempts() == {}
    check("dot_product_variance", 64)
    check("slowest_columns", (6, 7))
    assert len(log.solved()) == 2
    reset()
    assert progress().solved == 0
    assert len(log.read()) == 6


def test_hints_come_in_steps_and_start_anew_after_a_reset():
    assert hint("dot_product_variance").startswith("Hint 1 of 3")
    assert hint("dot_product_variance").startswith("Hint 2 of 3")
    assert hint("dot_product_variance", 1).startswith("Hint 1 of 3")
    assert hint("dot_product_variance").startswith("Hint 3 of 3")
    assert "solution('dot_product_variance')" in hint("dot_product_variance")
    assert "hints 1 to 3, not 7" in hint("dot_product_variance", 7)
    reset("dot_product_variance")
    assert hint("dot_product_variance").startswith("Hint 1 of 3")


@pytest.mark.parametrize("number", ["1", 1.5, True, 0, -1, 4, 10**400, [1], torch.tensor(1)])
def test_a_hint_that_does_not_exist_is_said(number, file):
    said = hint("dot_product_variance", number)
    assert said.startswith("dot_product_variance has hints 1 to 3, not ")
    assert said.endswith(": hint('dot_product_variance', 1).")
    assert not file.exists()


def test_hints_by_whole_numbers_of_any_type():
    assert hint("dot_product_variance", np.int64(2)).startswith("Hint 2 of 3")
    assert log.hints_shown("dot_product_variance") == 2


def test_solution_is_source_and_is_noted():
    assert solution("dot_product_variance").endswith("dot_product_variance = 64")
    assert "def scaled_attention(queries, keys, values):" in solution("scaled_attention")
    assert [e["event"] for e in log.read()] == ["solution", "solution"]


def test_unknown_names_are_answered():
    for say in (hint, solution, reset):
        assert "There is no exercise 'scaled_atention'" in say("scaled_atention")


def test_a_line_that_was_cut_short_harms_nobody(file):
    check("dot_product_variance", 64)
    with file.open("ab") as log_file:
        log_file.write(b'{"event": "check", "exerc')
    check("slowest_columns", (6, 7))
    with file.open("ab") as log_file:
        log_file.write(b"\xff\xfe\n[1, 2]\n\n7\n")
    check("additive_parameters", 184)
    assert log.solved() == {"dot_product_variance", "slowest_columns", "additive_parameters"}


def test_a_folder_that_cannot_be_written_costs_one_line(file, monkeypatch):
    file.write_text("")
    monkeypatch.setenv("COURSE_PROGRESS", str(file / "below" / "a.jsonl"))
    result = check("dot_product_variance", 64)
    assert result
    assert str(result).count("Progress is not saved") == 1
    assert len(str(result).splitlines()) == 2
    assert "Progress is not saved" in result._repr_html_()
    assert "Progress is not saved" in hint("dot_product_variance")
    assert progress().solved == 0


NO_USER = pytest.param("~nobodyxyz/p", marks=pytest.mark.skipif(os.name == "nt", reason="guessed"))


@pytest.mark.parametrize("place", [NO_USER, "x" * 300, f"a/{'x' * 300}/p", "a\0b"])
def test_a_path_that_cannot_be_costs_one_line(place, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(log.os, "environ", {"COURSE_PROGRESS": place})
    assert log.read() == []
    assert log.write("check", "dot_product_variance").startswith("Progress is not saved: ")
    for said in (check("dot_product_variance", 64), hint("dot_product_variance"), reset()):
        assert str(said).count("Progress is not saved") == 1
        assert "Set COURSE_PROGRESS to a file you can write." in str(said)
    assert progress().solved == 0


# The module is loaded without its package, which would import torch each time.
WRITER = f"""
import importlib.util, sys
spec = importlib.util.spec_from_file_location("log", {log.__file__!r})
log = importlib.util.module_from_spec(spec)
spec.loader.exec_module(log)
for i in range(100):
    log.write("check", sys.argv[1], number=i, padding="x" * 2000)
"""


def test_two_kernels_may_write_at_once(file):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, name]) for name in "ab"]
    assert [w.wait() for w in writers] == [0, 0]
    entries = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    for name in "ab":
        numbers = [e["number"] for e in entries if e["exercise"] == name]
        assert numbers == list(range(100))


@pytest.mark.parametrize("fault", [PermissionError(13, "no"), NotImplementedError("no flock")])
def test_without_a_lock_the_line_is_saved_all_the_same(fault, monkeypatch):
    def refuse(*_, **__):
        raise fault

    monkeypatch.setattr(log.FileLock, "acquire", refuse)
    assert log.write("check", "dot_product_variance", outcome="right") == ""
    assert log.solved() == {"dot_product_variance"}


def test_without_a_folder_for_the_lock_the_line_is_saved_all_the_same(file, monkeypatch):
    file.write_text("", encoding="utf-8")
    monkeypatch.setattr(log.tempfile, "tempdir", str(file / "no folder"))
    assert log.write("check", "dot_product_variance", outcome="right") == ""
    assert log.solved() == {"dot_product_variance"}


def test_a_killed_kernel_leaves_a_log_that_can_be_read(file):
    endless = WRITER.replace("range(100)", "iter(int, 1)")
    writer = subprocess.Popen([sys.executable, "-c", endless, "a"])
    while not (file.exists() and file.stat().st_size > 50_000):
        time.sleep(0.02)
    writer.kill()
    writer.wait()
    log.write("check", "b", outcome="right")
    assert log.solved() == {"b"}
    assert len(log.read()) >= 20


def test_the_log_stands_beside_the_notebooks(monkeypatch, tmp_path):
    monkeypatch.delenv("COURSE_PROGRESS")
    monkeypatch.setattr(log, "_REPOSITORY", tmp_path)
    monkeypatch.setattr("pathlib.Path.home", lambda: tmp_path / "home")
    assert log.path() == tmp_path / "home" / ".progress.jsonl"
    (tmp_path / "notebooks").mkdir()
    assert log.path() == tmp_path / "notebooks" / ".progress.jsonl"


def test_an_empty_course_has_a_table_too():
    assert str(Progress([])) == "0 of 0 exercises solved"
