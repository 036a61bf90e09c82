"""figures/ holds what the code draws, and what it draws can be read."""

import itertools
import json
import re
import sys
import types

import numpy as np
import pytest

from course_utils.maintain.readme import PICTURES
from course_utils.viz import canvas, drawings, use_course_style
from course_utils.viz.drawings import FOLDER, Drawing
from course_utils.viz.gallery import pictures


@pytest.fixture(scope="module", params=drawings.figures())
def drawn(request):
    """The name of a figure and its canvas, freshly drawn."""
    with use_course_style():
        return request.param, drawings.figures()[request.param].draw()


def words_in(svg):
    """The words of a file: matplotlib leaves each line of text as a comment by its outlines."""
    lines = re.findall(r"<!-- (.*?) -->", svg, flags=re.DOTALL)
    return sorted(line.replace("- -", "--") for line in lines)


def words_of(sheet):
    lines = (line for text in sheet.axes.texts for line in text.get_text().split("\n"))
    return sorted(
        re.sub(r"&(?!amp;)", "&amp;", line).replace("<", "&lt;").replace(">", "&gt;")
        for line in lines
        if line
    )


def test_no_file_is_missing_or_left_over():
    made = {*drawings.figures(), *(picture.name for picture in pictures()), *PICTURES}
    assert {path.name for path in FOLDER.iterdir()} == made


def test_pictures_of_the_gallery_have_alt_texts():
    assert all(picture.alt for picture in pictures())


def test_a_stale_file_is_noticed(tmp_path, monkeypatch):
    assert drawings.is_stale("masks.svg", tmp_path)
    path = drawings.write("masks.svg", tmp_path)
    assert not drawings.is_stale("masks.svg", tmp_path)
    draw, alt = drawings.figures()["masks.svg"]
    for other in (draw, alt + " And more."), (drawings.figures()["soft_lookup.svg"].draw, alt):
        monkeypatch.setattr(drawings, "figures", lambda other=other: {path.name: Drawing(*other)})
        assert drawings.is_stale("masks.svg", tmp_path)


def test_a_gallery_cell_without_a_picture_is_named(tmp_path):
    cell = {"id": "c1", "metadata": {"gallery": "x"}, "outputs": []}
    (tmp_path / "n.ipynb").write_text(json.dumps({"cells": [cell]}), encoding="utf-8")
    with pytest.raises(ValueError, match="cell c1 of n.ipynb"):
        list(pictures(tmp_path))


def test_the_file_holds_all_words_and_nothing_from_elsewhere(drawn):
    name, sheet = drawn
    svg = (FOLDER / name).read_bytes().decode("utf-8")
    assert words_in(svg) == words_of(sheet)
    assert "\r" not in svg
    assert "<text" not in svg  # letters are outlines, so no font is needed
    assert "Matplotlib" not in svg  # no version: it would change the file
    links = re.findall(r'href="([^"]{0,12})', svg)
    assert all(link.startswith(("#", "data:image")) for link in links)


def test_nothing_is_cut_off_and_no_words_overlap(drawn):
    _, drawing = drawn
    drawing.figure.draw_without_rendering()
    texts = [text for text in drawing.axes.texts if text.get_text()]
    boxes = [text.get_window_extent() for text in texts]
    sheet = drawing.figure.bbox
    for text, box in zip(texts, boxes, strict=True):
        assert sheet.x0 <= box.x0, text
        assert sheet.y0 <= box.y0, text
        assert box.x1 <= sheet.x1, text
        assert box.y1 <= sheet.y1, text
    for (one, a), (other, b) in itertools.combinations(zip(texts, boxes, strict=True), 2):
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        up = min(a.y1, b.y1) - max(a.y0, b.y0)
        assert across <= 0 or up <= 2, f"{one} and {other} overlap"


def test_words_are_large_enough_at_800_pixels(drawn):
    _, sheet = drawn
    smallest = min(text.get_fontsize() for text in sheet.axes.texts)
    assert smallest >= 7.5
    assert 3 <= sheet.width <= 8  # inches, of 100 pixels each: no page makes it smaller


def test_the_numbers_in_the_alt_text_stand_in_the_figure(drawn):
    name, sheet = drawn
    words = " ".join(words_of(sheet))
    for number in re.findall(r"\d+\.\d+|\b\d{2,}\b", drawings.figures()[name].alt):
        assert number in words


def test_a_figure_is_the_same_file_each_time(tmp_path):
    first = drawings.write("positional_encoding.svg", tmp_path).read_bytes()
    assert drawings.write("positional_encoding.svg", tmp_path).read_bytes() == first


def fingerprint(pen=canvas, x=1.0, text="query", weight=0.5):
    """Of a small sheet that holds one of everything that a pen can draw."""
    sheet = pen.Canvas(8, 2)
    box = sheet.box(x, 1.0, text)
    circle = sheet.circle(2.5, 1.0, 0.3)
    sheet.arrow(box.right, circle.left, text="scores")
    sheet.frame(0.1, 0.1, 4, 1.9, "layer")
    sheet.cells(4.2, 1, [[None, pen.QUERY]])
    sheet.image(5, 1, np.full((2, 2), weight), 1, 1)
    return sheet.fingerprint()


def test_the_fingerprint_tells_edits_from_noise():
    assert fingerprint() == fingerprint(x=1.0 + 1e-12, weight=0.5 + 1e-9)
    assert fingerprint() == fingerprint(x=np.float64(1))
    changed = fingerprint(x=1.01), fingerprint(text="key"), fingerprint(weight=0.6)
    assert len({fingerprint(), *changed}) == 4


@pytest.mark.parametrize(
    ("module", "old", "new", "seen"),
    [
        ("canvas", "", "# a comment\n", False),
        ("style", "", "# a comment\n", False),
        ("canvas", "linewidth=1.3", "linewidth = 1.3", False),
        ("canvas", "linewidth=1.3", "linewidth=1.6", True),
        ("canvas", "mutation_scale=11", "mutation_scale=14", True),
        ("canvas", '"hatch": "////"', '"hatch": "xx"', True),
        ("canvas", 'else "-", zorder=2', 'else ":", zorder=2', True),
        ("canvas", "NORMAL, LARGE = 8.5, 10, 12", "NORMAL, LARGE = 8.5, 11, 12", True),
        ("style", "#0072B2", "#0000B2", True),
        ("style", '"RdBu_r"', '"PuOr"', True),
    ],
)
def test_a_figure_is_stale_by_what_it_shows(monkeypatch, module, old, new, seen):
    """The pen, or the style it draws in, with one edit: is a figure another one then?"""
    for name in ("style", "canvas"):  # canvas draws with the edited style
        path = FOLDER.parent / "course_utils" / "viz" / f"{name}.py"
        source = path.read_text(encoding="utf-8")
        if name == module:
            assert old in source
            source = source.replace(old, new, 1) if old else new + source
        edited = types.ModuleType(f"course_utils.viz.{name}")
        monkeypatch.setitem(sys.modules, edited.__name__, edited)
        monkeypatch.setattr(f"course_utils.viz.{name}", edited)
        exec(compile(source, str(path), "exec"), edited.__dict__)
    assert (fingerprint(edited) != fingerprint()) == seen


def test_the_command_draws_everything(tmp_path, capsys, monkeypatch):
    one = {"masks.svg": drawings.figures()["masks.svg"]}
    monkeypatch.setattr(drawings, "figures", lambda: one)
    drawings.main(["--out", str(tmp_path / "new")])
    names = ["masks.svg", *(picture.name for picture in pictures())]
    assert capsys.readouterr().out.split("\n")[:-1] == [str(tmp_path / "new" / n) for n in names]
    assert (tmp_path / "new" / "masks.svg").stat().st_size > 10_000


def test_figure_markdown_carries_the_alt_text():
    line = drawings.figure_markdown("masks.svg")
    assert line == f"![{drawings.figures()['masks.svg'].alt}](../figures/masks.svg)"
    assert drawings.figure_markdown("masks.svg", "figures").endswith("](figures/masks.svg)")
    with pytest.raises(ValueError, match="no figure 'mask.svg'; there are course_map.svg"):
        drawings.figure_markdown("mask.svg")


def test_alt_texts_fit_into_markdown_and_a_screen_reader(drawn):
    alt = drawings.figures()[drawn[0]].alt
    assert 100 < len(alt) < 700
    assert not re.search(r"[\[\]\n]", alt)
