"""The static site: two small notebooks, faults that must stop it, and the whole course."""

import importlib
import json
import re
import zipfile
from html import escape

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from site_pages import NEEDED, asked_of_other_hosts, broken, pages

from course_utils.chapters import CHAPTERS as CHAPTERS_OF_THE_COURSE
from course_utils.chapters import Chapter
from course_utils.checker import catalogue
from course_utils.cli import notebooks as course
from course_utils.cli.addresses import notebook_links, repository
from course_utils.environment import ROOT

for package in NEEDED:
    pytest.importorskip(package, reason=f"the site needs {package}, which is not installed")
site = importlib.import_module("course_utils.cli.site")
archive = importlib.import_module("course_utils.cli.site.archive")
finish = importlib.import_module("course_utils.cli.site.finish").finish

README = """# A course

| | chapter | shows | runs in |
|---|---|---|---|
| 0 | [Start](notebooks/00_start.ipynb) 开始 | a formula | 2 s |
| 1 | [Map](notebooks/01_map.ipynb) | a heatmap | 3 s |

See the [license](LICENSE) and [d2l](https://d2l.ai).
"""
CHAPTERS = [
    Chapter("00_start", "Start", "开始", "Begin", "How?", "a formula", "look"),
    Chapter("01_map", "Map", "", "See", "Where?", "a heatmap", "see"),
]
BOX = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect/></svg>\n'
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNg+M/wHwAEAQH/7yMK/gAAAABJRU5ErkJg"
    "gg=="
)
ALT = "Heatmap: suis looks at i'm & home."
START = [
    new_markdown_cell("# 0. Start (开始)\n\n[1. Map](01_map.ipynb)\n\nDivide by $\\sqrt{d}$.\n"),
    new_markdown_cell(
        "$$\\begin{aligned} a &= \\tfrac{q^\\top k}{\\sqrt{d}} \\\\ b &= \\exp a \\end{aligned}$$"
        "\n\n<details><summary>Answer</summary>\n\nBecause $d$ grows.\n\n</details>"
    ),
    new_markdown_cell("## The end\n\nGoodbye."),
]
MAP = [
    new_markdown_cell("# 1. Map\n\n[Back](00_start.ipynb#the-end)\n\n![Box](../figures/box.svg)"),
    new_code_cell(
        "show_heatmaps(weights)",
        outputs=[
            new_output(
                "display_data",
                {"image/png": PIXEL, "text/plain": "<Figure size 640x480 with 1 Axes>"},
                metadata={"image/png": {"alt": ALT}},
            ),
            new_output("display_data", {"text/markdown": "| loss |\n|---|\n| $x^2$ |"}),
        ],
    ),
    new_code_cell(
        "settle('C-1')",
        metadata={"jupyter": {"outputs_hidden": True}},
        outputs=[new_output("execute_result", {"text/html": "<i>settled</i>"})],
    ),
    new_code_cell(
        "# proof: one is one\nassert 1 == 1\nprint('equal')",
        metadata={"tags": ["proof"], "jupyter": {"source_hidden": True, "outputs_hidden": True}},
        outputs=[new_output("stream", text="equal\n")],
    ),
    new_code_cell("print('seen')", outputs=[new_output("stream", text="seen\n")]),
]
INFO = {"language_info": {"name": "python", "pygments_lexer": "ipython3"}}
COSTS = {
    "00_start.ipynb": {"seconds": 13.6, "peak_bytes": 560_000_000},
    "01_map.ipynb": {"seconds": 141.0, "peak_bytes": 1_240_000_000},
}


def write_course(root, extra="", readme=README):
    """Write a course of two notebooks with stored outputs; `extra` ends the first one."""
    for name, cells in (("00_start", [*START, new_markdown_cell(extra)]), ("01_map", MAP)):
        path = root / "notebooks" / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(new_notebook(cells=cells, metadata=INFO), path)
    for name, text in (("figures/box.svg", BOX), ("LICENSE", "free\n"), ("README.md", readme)):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def text_of(path):
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A course of two notebooks and its site: (root, site)."""
    root = write_course(tmp_path_factory.mktemp("course"))
    site.build_site(root, root / "_site", COSTS, CHAPTERS)
    return root, root / "_site"


def test_cover_names_each_chapter_with_its_cost(small):
    html = text_of(small[1] / "index.html")
    rows = re.findall(r"<tr.*?</tr>", html, re.DOTALL)
    assert 'href="notebooks/00_start.html"' in rows[1]
    assert "<p>2 s; here 14 s with 0.6 GB</p>" in rows[1]
    assert "<p>3 s; here 2.4 min with 1.2 GB</p>" in rows[2]
    assert re.findall(r'toctree-l1"><a[^>]*>([^<]*)</a>', html) == ["0. Start", "1. Map"]
    assert re.findall(r'class="caption-text">([^<]*)<', html) == ["Begin", "See"]


def test_the_menu_follows_the_table_and_not_the_numbers():
    text = site.cover(README, CHAPTERS[::-1], {})
    assert text.index("1. Map <notebooks/01_map.ipynb>") < text.index("0. Start <notebooks/")


def test_chapter_offers_its_notebook_and_its_neighbours(small):
    root, out = small
    html = text_of(out / "notebooks/01_map.html")
    assert "When this page was made, it ran in 2.4 min with 1.2 GB." in html
    [download] = re.findall(r'<a class="[^"]*download[^"]*"[^>]*href="([^"]*)"', html)
    stored = root / "notebooks/01_map.ipynb"
    assert (out / "notebooks" / download).read_bytes() == stored.read_bytes()
    assert re.search(r'<a class="prev-page" href="00_start.html">', html)
    first = text_of(out / "notebooks/00_start.html")
    assert re.search(r'<a class="next-page" href="01_map.html">', first)
    assert 'href="../search.html"' in first or 'action="../search.html"' in first


def test_formulas_are_mathml(small):
    html = text_of(small[1] / "notebooks/00_start.html")
    inline, block, in_details = re.findall(r"<math.*?</math>", html, re.DOTALL)
    assert "<msqrt><mi>d</mi></msqrt>" in inline
    assert block.startswith('<math display="block"')
    assert block.count("<mtr>") == 2
    assert "<mfrac" in block
    assert "<mi>d</mi>" in in_details
    assert "$" not in re.sub(r"<script.*?</script>|<math.*?</math>", "", html, flags=re.DOTALL)


def test_outputs_keep_alt_text_tables_and_folds(small):
    html = text_of(small[1] / "notebooks/01_map.html")
    page = pages(small[1])[small[1] / "notebooks/01_map.html"]
    assert page.alts[-2:] == ["Box", ALT]
    assert "<Figure size" not in html
    assert "<msup>" in re.search(r"loss.*?</table>", html, re.DOTALL)[0]
    fold, proof = re.findall(r'<details class="[^"]*hide.*?</details>', html, re.DOTALL)
    assert "<i>settled</i>" in fold
    assert "Show the output" in fold
    assert "proof: one is one" in re.sub("<pre.*?</pre>", "", proof, flags=re.DOTALL)
    assert "<pre>" in proof.replace("<pre><span></span>", "<pre>")
    assert "equal" in proof
    assert "seen" in html.replace(fold, "").replace(proof, "")


def test_search_knows_the_words(small):
    index = text_of(small[1] / "searchindex.js")
    assert '"goodby"' in index or "goodby:" in index


def test_small_site_is_whole_and_asks_no_other_host(small):
    assert asked_of_other_hosts(small[1]) == set()
    assert broken(small[1]) == set()


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ('<script src="//cdn.example/x.js"></script>', {("a.html", "//cdn.example/x.js")}),
        ('<link href="https://fonts.example/f.css">', {("a.html", "https://fonts.example/f.css")}),
        ('<img srcset="http://e.example/x 2x">', {("a.html", "http://e.example/x")}),
        ('<p style="background: url(http://e.example/x)">', {("a.html", "http://e.example/x")}),
        ('<a href="https://d2l.ai">d2l</a><img src="data:image/png;base64,AA">', set()),
    ],
)
def test_other_hosts_are_noticed(tmp_path, html, found):
    (tmp_path / "a.html").write_text(html, encoding="utf-8")
    assert asked_of_other_hosts(tmp_path) == found


def test_other_hosts_are_noticed_in_style_sheets(tmp_path):
    (tmp_path / "a.css").write_text("@import 'https://e.example/f.css';", encoding="utf-8")
    assert asked_of_other_hosts(tmp_path) == {("a.css", "https://e.example/f.css")}


def test_broken_links_are_noticed(tmp_path):
    html = '<i id="x"></i><a href="#x"></a><a href="#y"></a><a href="b.html"></a><img src="c.png">'
    (tmp_path / "a.html").write_text(html, encoding="utf-8")
    assert {url for _, url in broken(tmp_path)} == {"#y", "b.html", "c.png"}


@pytest.mark.parametrize(
    ("extra", "readme", "warning"),
    [
        ("$\\sqroot{d}$", README, r"00_start.ipynb.*\\sqroot"),
        ("![lost](../figures/lost.svg)", README, "00_start.ipynb.*lost.svg"),
        ("[lost](09_lost.ipynb)", README, "00_start.ipynb.*09_lost.ipynb"),
        ("[lost](01_map.ipynb#nowhere)", README, "00_start.ipynb.*nowhere"),
        ("", README + "\n[lost](tests/lost.tsv)", "index.md.*lost.tsv"),
    ],
)
def test_faults_stop_the_site_and_keep_the_former_one(tmp_path, extra, readme, warning):
    former = tmp_path / "_site"
    former.mkdir()
    (former / site.MADE_BY_SPHINX).write_text("", encoding="utf-8")
    with pytest.raises(site.FaultyPages, match=warning):
        site.build_site(write_course(tmp_path / "course", extra, readme), former, {}, CHAPTERS)
    assert [path.name for path in former.iterdir()] == [site.MADE_BY_SPHINX]


def test_chapter_without_a_title_stops_the_site(tmp_path):
    root = write_course(tmp_path)
    untitled = new_notebook(cells=MAP[1:], metadata=INFO)
    nbformat.write(untitled, root / "notebooks/01_map.ipynb")
    with pytest.raises(site.FaultyPages, match="01_map.*begin with the title"):
        site.build_site(root, tmp_path / "_site", {}, CHAPTERS)


def test_other_files_are_never_replaced(tmp_path):
    mine = tmp_path / "letter.txt"
    mine.write_text("dear", encoding="utf-8")
    with pytest.raises(FileExistsError, match="--out"):
        site.build_site(write_course(tmp_path / "course"), tmp_path, {}, CHAPTERS)
    assert mine.read_text(encoding="utf-8") == "dear"


def test_commands_hand_the_costs_on(tmp_path, monkeypatch, capsys):
    root = write_course(tmp_path)
    monkeypatch.setattr(site, "ROOT", root)
    monkeypatch.setattr(site.build_site, "__defaults__", (None, CHAPTERS))
    monkeypatch.setattr(course, "run_notebook", lambda path: (None, course.Cost(1, 7, 1, 7, 10**9)))
    paths = [str(path) for path in sorted((root / "notebooks").glob("*.ipynb"))]
    costs = tmp_path / "build" / "costs.json"
    assert course.main([*paths, "--costs", str(costs)]) == 0
    assert json.loads(text_of(costs))["01_map.ipynb"]["seconds"] == 7
    out = tmp_path / "out"
    assert site.main(["--out", str(out), "--costs", str(costs)]) == 0
    assert "2 s; here 7 s with 1.0 GB" in text_of(out / "index.html")
    assert str(out / "index.html") in capsys.readouterr().out
    assert site.main(["--out", str(out), "--costs", str(tmp_path / "none.json")]) == 1
    assert "none.json (No such file or directory): `python -m" in capsys.readouterr().err
    costs.write_text("<<<<<<< HEAD\n{}", encoding="utf-8")
    assert site.main(["--out", str(out), "--costs", str(costs)]) == 1
    assert "measures and writes them" in capsys.readouterr().err


def test_whole_course_is_there(course_site):
    made = {path.stem for path in (course_site / "notebooks").glob("*.html")}
    kept = [*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "notebooks").glob("*.md")]
    assert made == {path.stem for path in kept}
    assert "course_map.svg" in text_of(course_site / "index.html")


def test_whole_site_asks_no_other_host(course_site):
    assert asked_of_other_hosts(course_site) == set()


def test_whole_site_has_no_broken_link(course_site):
    assert broken(course_site) == set()


def test_each_page_has_one_title_and_words_for_every_picture(course_site):
    for path, page in pages(course_site).items():
        if path.parent.name == "notebooks":
            assert page.h1 == 1, path.name
            assert all(" " in alt for alt in page.alts), path.name


def test_the_whole_course_is_one_file_that_the_site_carries(small):
    root, out = small
    (root / "notebooks" / ".progress.jsonl").write_text("mine")
    archive.write_archive(root, root / "again.zip")
    with zipfile.ZipFile(root / "again.zip") as again:
        names = [name.split("/", 1)[1] for name in again.namelist()]
        assert {"README.md", "notebooks/00_start.ipynb", "figures/box.svg"} <= set(names)
        assert not any(".progress" in name or "_site" in name for name in names)
        assert again.read("attention-by-running-it/README.md").decode() == README
    assert 'href="../course.zip"' in text_of(out / "notebooks/01_map.html")
    assert zipfile.is_zipfile(out / "course.zip")


@pytest.mark.parametrize(
    ("table", "found"),
    [
        ("", None),
        ('[project.urls]\n# Repository = "https://github.com/a/b"\n', None),
        ('[project.urls] # where\n\nRepository = "https://github.com/a/b/"\n', "https://github.com/a/b"),
        ('[project.urls]\n[other]\nRepository = "https://github.com/a/b"\n', None),
    ],
)  # fmt: skip
def test_one_setting_names_the_repository(tmp_path, table, found):
    (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "x"\n\n{table}')
    assert repository(tmp_path) == found


def test_colab_and_binder_open_what_lies_on_github():
    links = notebook_links("https://github.com/a/b", "02_x.ipynb")
    assert links["Colab"].endswith("/github/a/b/blob/main/notebooks/02_x.ipynb")
    assert links["Binder"].endswith("/gh/a/b/main?labpath=notebooks%2F02_x.ipynb")
    assert set(notebook_links("https://example.org/a", "02_x.ipynb")) == {"Source"}


def test_while_no_repository_is_named_nothing_points_to_one(small):
    html = text_of(small[1] / "notebooks/01_map.html")
    assert not re.search("colab|mybinder|blob/main", html)


def test_tables_have_scopes_and_chinese_is_marked(small):
    html = text_of(small[1] / "index.html")
    assert re.search(r'<th[^>]* scope="col"', html)
    assert '<span lang="zh">开始</span>' in html
    page = '<title>注意</title><thead><th>a</th></thead><th class="x">注 意</th><img alt="注意">'
    assert finish(page) == (
        '<title>注意</title><thead><th scope="col">a</th></thead><th scope="row" class="x">'
        '<span lang="zh">注 意</span></th><img alt="注意">'
    )


def test_each_chapter_of_the_course_shows_hints_solutions_and_a_wrong_answer(course_site):
    for chapter in CHAPTERS_OF_THE_COURSE:
        html = text_of(course_site / f"notebooks/{chapter.name}.html")
        exercises = [e for e in catalogue() if e.notebook == chapter.name]
        stored = text_of(ROOT / f"notebooks/{chapter.name}.ipynb")  # what check shows has folds too
        for fold in ("<summary>Solution</summary>", "<summary>Hint 1 of"):
            assert html.count(fold) == len(exercises) + stored.count(fold)
        if exercises:
            assert html.count('<pre class="said">') == 1
            assert "not right yet" in re.search(r'<pre class="said">.*?</pre>', html, re.DOTALL)[0]
        assert f'content="{escape(chapter.question)}' in html


def test_the_picture_of_a_widget_that_was_saved_live_stays_on_the_page(tmp_path):
    """jupyter-book/mystmd#2809: a page has no kernel, and a bare widget shows nothing."""
    root = write_course(tmp_path)
    path = root / "notebooks/01_map.ipynb"
    notebook = nbformat.read(path, as_version=4)
    live = {"application/vnd.jupyter.widget-view+json": {"model_id": "7", "version_major": 2}}
    data = notebook.cells[1].outputs[0].data
    notebook.cells[1].outputs[0].data = {**live, **data}
    bar = {**live, "text/plain": "100 % of the bar"}  # a progress bar that was saved live
    notebook.cells[1].outputs.insert(0, new_output("display_data", bar))
    state = {"state": {}, "version_major": 2, "version_minor": 0}
    notebook.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": state}
    nbformat.write(notebook, path)
    site.build_site(root, root / "_site", {}, CHAPTERS)
    path = root / "_site/notebooks/01_map.html"
    assert pages(root / "_site")[path].alts[-1] == ALT
    assert "100 % of the bar" in text_of(path)
    assert "jupyter.widget" not in text_of(path)


def test_a_stored_scene_becomes_a_live_figure_around_its_picture(tmp_path):
    root = write_course(tmp_path)
    path = root / "notebooks/01_map.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[1].outputs[0].metadata["image/png"]["scene"] = "eJyrBQAAdQB5"
    nbformat.write(notebook, path)
    site.build_site(root, root / "_site", {}, CHAPTERS)
    html = text_of(root / "_site/notebooks/01_map.html")
    [address] = re.findall(r'data-scene="\.\./([^"]+)"', html)
    assert '"eJyrBQAAdQB5"' in text_of(root / "_site" / address)
    assert re.search(r"data-scene=[^>]*>\s*<img", html)
    assert "live.js" in html
    assert "live.js" not in text_of(root / "_site/notebooks/00_start.html")
