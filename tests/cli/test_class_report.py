"""What learners hand in, good and hostile, becomes one page and one table; nothing is lost."""

import csv
import errno
import json
import random
import zipfile

import nbformat
import pytest

from course_utils.__main__ import run
from course_utils.checker import catalogue, check
from course_utils.cli.class_logs import read_folder
from course_utils.cli.class_report import summary

SCRIPT = "<script>alert(1)</script>"


def line(exercise, outcome="right", mistakes=(), tags=(), **more):
    entry = {"event": "check", "exercise": exercise, "outcome": outcome}
    return json.dumps(entry | {"mistakes": list(mistakes), "tags": list(tags)} | more) + "\n"


STUCK = line("scaled_attention", "mistake", ["the scores are not scaled"], ["scale"])


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "handed_in"
    (folder / "ben").mkdir(parents=True)
    (folder / "anna.jsonl").write_text(3 * STUCK + line("dot_product_variance"))
    (folder / "ben" / ".progress.jsonl").write_text(STUCK + line("scaled_attention"))
    with zipfile.ZipFile(folder / "cleo.zip", "w") as archive:
        archive.writestr("work/.progress.jsonl", 4 * STUCK)
    with zipfile.ZipFile(folder / "rest.zip", "w") as archive:
        archive.writestr("dora/.progress.jsonl", line("dot_product_variance"))
        archive.writestr("emil.jsonl", line("dot_product_variance", "wrong"))
        archive.writestr("../../evil.jsonl", line(SCRIPT, mistakes=[SCRIPT], tags=[SCRIPT]))
    return folder


def test_everybody_is_found_wherever_the_log_lies(folder):
    hands, skipped = read_folder(folder)
    assert [hand.name for hand in hands] == ["..", "anna", "ben", "cleo", "dora", "emil"]
    assert skipped == []
    found = summary(hands, skipped)
    own = found.learners["anna"]["scaled_attention"]
    assert (own.tries, own.solved) == (3, False)
    assert found.learners["ben"]["scaled_attention"].solved
    assert found.stuck("scaled_attention") == 2
    assert found.mistakes("scaled_attention") == {"the scores are not scaled": 3}
    assert {*found.kinds["scale"]} == {"anna", "ben", "cleo"}


def test_the_page_and_the_table(folder, tmp_path, capsys):
    assert run(["class", str(folder), "--to", str(tmp_path / "out")]) == 0
    assert "6 learners" in capsys.readouterr().out
    page = (tmp_path / "out" / "class.html").read_text(encoding="utf-8")
    assert "Most are stuck at" in page
    assert "the scores are not scaled (3)" in page
    assert "Divide dot products by the square root" in page
    assert "due    " in page  # an example
    assert 'href="#who-anna"' in page
    assert 'id="who-anna"' in page
    assert 'href="#ex-scaled_attention"' in page
    assert SCRIPT not in page
    with (tmp_path / "out" / "class.csv").open(encoding="utf-8-sig", newline="") as table:
        rows = list(csv.DictReader(table))
    assert len(rows) == 6
    assert rows[0]["mistakes"] == "the scores are not scaled (3)"


def test_names_are_left_out_on_request(folder, tmp_path):
    assert run(["class", str(folder), "--to", str(tmp_path), "--no-names"]) == 0
    written = (tmp_path / "class.html").read_text("utf-8") + (tmp_path / "class.csv").read_text(
        "utf-8"
    )
    assert "anna" not in written
    assert "learner 2" in written


def test_what_cannot_be_read_is_reported_and_costs_nobody_else(folder, capsys, tmp_path):
    (folder / "broken.zip").write_bytes(b"PK\x03\x04 no zip")
    (folder / "photo.png").write_bytes(b"\x89PNG")
    (folder / "empty.jsonl").write_bytes(b"")
    (folder / "odd.json").write_bytes(b"[1, 2]\n\xff\xfe\n" + b"[" * 100_000)
    with (folder / "huge.jsonl").open("wb") as huge:
        huge.truncate(30_000_000)
    with zipfile.ZipFile(folder / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.jsonl", b"\0" * 30_000_000)
        archive.writestr("fritz.jsonl", line("dot_product_variance"))
    hands, skipped = read_folder(folder)
    assert "fritz" in [hand.name for hand in hands]
    assert len(hands) == 7
    reasons = dict(skipped)
    assert {*reasons} == {
        "broken.zip",
        "photo.png",
        "empty.jsonl",
        "odd.json",
        "huge.jsonl",
        "bomb.jsonl",
    }
    assert "larger than 20 MB" in reasons["bomb.jsonl"]
    assert run(["class", str(folder), "--to", str(tmp_path)]) == 0
    assert "skipped broken.zip: BadZipFile" in capsys.readouterr().out


def test_a_cell_of_the_table_is_no_formula(folder, tmp_path):
    (folder / "=1+1.jsonl").write_text(line("dot_product_variance"))
    assert run(["class", str(folder), "--to", str(tmp_path)]) == 0
    assert "'=1+1," in (tmp_path / "class.csv").read_text("utf-8")


def test_a_full_disk_leaves_what_was_there(folder, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    assert run(["class", str(folder), "--to", str(out)]) == 0
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    assert {*before} == {"class.html", "class.csv"}

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    capsys.readouterr()
    for command in (
        ["class", str(folder), "--to", str(out)],
        ["progress", "--export", str(out / "me.jsonl")],
    ):
        assert run(command) == 1
        assert "No space left on device; make room there" in capsys.readouterr().err
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before


def test_wrong_options_are_answered(tmp_path, capsys):
    with pytest.raises(SystemExit):
        run(["class", str(tmp_path / "none")])
    assert "is no folder" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run(["class", str(tmp_path), "--seconds", "0"])


def test_what_a_learner_exports_holds_no_code_no_time_and_no_name(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "log.jsonl"))
    check("dot_product_variance", 8)
    check("dot_product_variance", 64)
    handed_in = tmp_path / "class" / "me.jsonl"
    handed_in.parent.mkdir()
    assert run(["progress", "--export", str(handed_in)]) == 0
    entries = [json.loads(text) for text in handed_in.read_text("utf-8").splitlines()]
    assert [e["outcome"] for e in entries] == ["mistake", "right"]
    assert not {"code", "time"} & {key for e in entries for key in e}
    capsys.readouterr()
    assert run(["progress", "--export", str(handed_in)]) == 1  # nothing is written over
    assert capsys.readouterr().err == (
        f"cannot write {handed_in}: it is there already; name another file\n"
    )
    hands, _ = read_folder(handed_in.parent)
    own = summary(hands, []).learners["me"]["dot_product_variance"]
    assert (own.tries, own.solved) == (2, True)


def test_notebooks_are_run_only_when_asked_for(tmp_path, capsys):
    cells = [
        "from course_utils.checker import check",
        "1 / 0",
        "check('dot_product_variance', 64)",
        "while True: pass",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    (tmp_path / "in").mkdir()
    nbformat.write(notebook, tmp_path / "in" / "gina.ipynb")
    assert read_folder(tmp_path / "in") == ([], [])
    options = ["class", str(tmp_path / "in"), "--to", str(tmp_path), "--run", "--seconds", "10"]
    assert run(options) == 0
    said = capsys.readouterr()
    assert "runs the code of every notebook" in said.err
    assert "1 learners" in said.out
    assert "gina" in (tmp_path / "class.html").read_text("utf-8")


def test_two_hundred_learners_are_read(tmp_path, capsys):
    chance = random.Random(1)
    exercises = [e for e in catalogue() if e.mistakes]
    for i in range(200):
        lines = []
        for e in chance.sample(exercises, 25):
            slip = chance.choice(e.mistakes)
            lines += chance.randint(0, 4) * [line(e.name, "mistake", [slip.name], [slip.tag])]
            lines += [line(e.name)] if chance.random() < 0.7 else []
        (tmp_path / f"learner{i}.jsonl").write_text("".join(lines))
    assert run(["class", str(tmp_path), "--to", str(tmp_path / "out")]) == 0
    assert "200 learners" in capsys.readouterr().out
