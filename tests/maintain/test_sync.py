"""All that is made from something else is in step with it, and `sync` names what is not."""

import json
from dataclasses import replace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from course_utils.chapters import CHAPTERS, measured_costs
from course_utils.checker import catalogue, statement, stub
from course_utils.environment import ROOT
from course_utils.maintain import heads, readme, sync
from course_utils.maintain.exercise_cells import write_exercises

FIRST, SECOND, *_ = CHAPTERS


@pytest.mark.parametrize("step", sync.STEPS, ids=lambda step: step.__name__)
def test_nothing_is_stale(step):
    stale = list(step(check=True))
    assert not stale, "stale; to write it: make sync\n" + "\n".join(stale)


def test_every_notebook_has_its_row():
    files = {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert files == {chapter.file for chapter in CHAPTERS}


def test_every_notebook_has_been_measured():
    """To measure one: `course notebooks/NN_name.ipynb --costs course_utils/chapters/costs.json`."""
    costs = measured_costs()
    assert set(costs) == {chapter.file for chapter in CHAPTERS}
    assert max(cost["seconds"] for cost in costs.values()) < 180
    assert sum(cost["seconds"] for cost in costs.values()) < 16 * 60
    assert max(cost["peak_bytes"] for cost in costs.values()) < 2e9


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A course of one chapter, 02, without its exercises' cells: the path of the notebook."""
    chapter = next(c for c in CHAPTERS if c.number == 2)
    cells = [new_markdown_cell("# Softmax\n\nWith a mask.\n\n![](../figures/masks.svg)")]
    path = tmp_path / chapter.file
    nbformat.write(new_notebook(cells=cells), path)
    monkeypatch.setattr(sync, "NOTEBOOKS", tmp_path)
    monkeypatch.setattr(sync, "CHAPTERS", (chapter,))
    return path


def test_a_notebook_gets_all_that_is_made_for_it(small):
    [line] = sync.notebooks(check=True)
    assert line.startswith("notebooks/02_masked_softmax.ipynb: cell ")
    assert line.endswith(", ".join(["", "head", "foot", *(e.name for e in exercises_of("02"))]))
    assert len(nbformat.read(small, as_version=4).cells) == 1  # only checked
    list(sync.notebooks(check=False))
    assert list(sync.notebooks(check=True)) == []
    cells = nbformat.read(small, as_version=4).cells
    assert cells[0].source.startswith("# 2. Masked softmax (掩蔽 softmax)\n\n[← 1. Att")
    assert "![](" not in cells[0].source
    assert "](../figures/masks.svg)" in cells[0].source
    assert [c.source for c in cells[2:-1:3]] == [stub(e.name) for e in exercises_of("02")]
    assert list(sync.outputs(check=True)) == [
        "notebooks/02_masked_softmax.ipynb: outputs (cells that never ran)"
    ]
    sync.solve(small.parent / "solved")
    solved = nbformat.read(small.parent / "solved" / small.name, as_version=4)
    assert "NotImplementedError" in cells[2].source
    assert "NotImplementedError" not in solved.cells[2].source


def test_a_notebook_that_lists_what_changed_is_run(small):
    nbformat.write(
        new_notebook(cells=[new_code_cell("print(6 * 7)")], metadata={"lists": {"cards": "old"}}),
        small,
    )
    name = "notebooks/02_masked_softmax.ipynb: outputs"
    assert list(sync.outputs(check=False)) == [f"{name} (cards, cells that never ran)"]
    assert list(sync.outputs(check=True)) == []
    assert nbformat.read(small, as_version=4).cells[0].outputs[0].text == "42\n"


def test_other_files_are_named_and_written(tmp_path, monkeypatch, capsys):
    page = tmp_path / "README.md"
    text = readme.README.read_text(encoding="utf-8")
    page.write_text(text.replace("| 2 | [Masked softmax]", "| 2 | [Softmax]"), encoding="utf-8")
    parts = readme.parts()[readme.README]
    monkeypatch.setattr(readme, "parts", lambda: {page: parts})
    monkeypatch.setattr(readme, "PICTURES", {})
    monkeypatch.setattr(sync, "STEPS", [sync.the_readme])
    assert sync.main(["--check"]) == 1
    assert capsys.readouterr().out == "README.md: chapters\n"
    assert sync.main([]) == 0
    assert page.read_text(encoding="utf-8") == text
    assert sync.main(["--check"]) == 0
    page.write_text("# No marks", encoding="utf-8")
    with pytest.raises(ValueError, match="written by make sync -->"):
        sync.main(["--check"])


def exercises_of(number):
    return [e for e in catalogue() if e.notebook.startswith(number)]


def test_a_new_exercise_stands_below_the_one_before_it():
    one, two, *_ = exercises_of("02")
    cells = [new_markdown_cell("# Title"), *cells_of(one), new_markdown_cell("## The end")]
    notebook = new_notebook(cells=cells)
    names = write_exercises(notebook, one.notebook)
    assert names == [e.name for e in exercises_of("02")[1:]]
    assert notebook.cells[4].source == statement(two.name)
    assert [c.metadata.get("exercise") for c in notebook.cells[4:7]] == [two.name, two.name, None]
    assert notebook.cells[6].source == f"check({two.name})"
    assert notebook.cells[-1].source == "## The end"
    nbformat.validate(notebook)


def cells_of(exercise):
    own = {"exercise": exercise.name}
    return [
        new_markdown_cell(statement(exercise.name), metadata=own),
        new_code_cell(stub(exercise.name), metadata=own),
        new_code_cell(f"check({exercise.name})"),
    ]


def test_the_ways_follow_the_table_and_not_the_numbers():
    late = next(c for c in CHAPTERS if c.number == 14)
    table = (FIRST, late, SECOND)
    assert heads.ways(FIRST, table) == "[14. Fine-tuning →](14_fine_tuning.ipynb)"
    assert heads.ways(late, table) == (
        "[← Course map](00_start_here.ipynb) · [1. Attention pooling →](01_attention_pooling.ipynb)"
    )
    assert heads.ways(SECOND, table) == (
        "[← 14. Fine-tuning](14_fine_tuning.ipynb) · [Course map](00_start_here.ipynb)"
    )


def test_head_and_foot_are_replaced_and_nothing_else():
    text = "# Old\n\n[← 0. Old](00_start_here.ipynb)\n\n**Time**: a day.\n\nOurs: [x](y.ipynb)."
    end = "## Reading\n\nA book.\n\n[9. Old →](09_old.ipynb)"
    notebook = new_notebook(cells=[new_markdown_cell(text), new_markdown_cell(end)])
    cost = {"seconds": 7.4, "peak_bytes": 830_000_000}
    assert heads.write_head_and_foot(notebook, SECOND, cost) == ["head", "foot"]
    assert heads.write_head_and_foot(notebook, SECOND, cost) == []
    head, foot = (cell.source.split("\n\n") for cell in notebook.cells)
    minutes = sum(e.minutes for e in exercises_of("01"))
    assert head[0] == "# 1. Attention pooling (注意力汇聚)"
    assert head[2] == (
        f"**Time**: 5 minutes to read and run, {minutes} for the exercises; "
        "all cells run in 7 s with 0.8 GB of memory."
    )
    assert head[3:] == ["Ours: [x](y.ipynb)."]
    assert foot == ["## Reading", "A book.", heads.ways(SECOND)]
    notebook.cells[0].source = "no title"
    with pytest.raises(ValueError, match="01_attention_pooling.ipynb: the first cell must begin"):
        heads.write_head_and_foot(notebook, SECOND)


def test_the_time_is_counted_without_exercises_and_proofs():
    words, lines = "word " * 1500, "x = 1\n\n" * 120  # 10 minutes each
    cells = [
        new_markdown_cell(words),
        new_code_cell(lines),
        new_markdown_cell("```python\n" + "x = 1\n" * 118 + "```"),  # the marks count as lines
        new_markdown_cell(words, metadata={"exercise": "mask"}),
        new_code_cell(lines, metadata={"exercise": "mask"}),
        new_code_cell(lines, metadata={"tags": ["proof"]}),
    ]
    cost = {"seconds": 150, "peak_bytes": 10**9}
    chapter = replace(FIRST, name="99_without_exercises")
    assert heads.time(new_notebook(cells=cells), chapter, None) == (
        "**Time**: 30 minutes to read and run."
    )
    assert heads.time(new_notebook(cells=cells), chapter, cost) == (
        "**Time**: 35 minutes to read and run; all cells run in 2.5 min with 1.0 GB of memory."
    )


def test_costs_of_notebooks_that_did_not_run_stay(tmp_path):
    from course_utils.cli.notebooks import Cost, keep_costs

    file = tmp_path / "new" / "costs.json"
    keep_costs(file, {tmp_path / "a.ipynb": Cost(1, 7.26, 1, 7.0, 10**9)})
    keep_costs(file, {tmp_path / "b.ipynb": Cost(1, 8.0, 1, 7.0, 10**9)})
    kept = json.loads(file.read_text(encoding="utf-8"))
    assert kept["a.ipynb"] == {"seconds": 7.3, "peak_bytes": 10**9}
    assert kept["b.ipynb"]["seconds"] == 8.0
