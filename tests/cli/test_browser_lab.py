"""A lesson in JupyterLab, in a browser: it runs, is drawn, and judges what a learner types."""

import io
import json

import pytest
from browser import expect, open_notebook, run_lab
from PIL import Image

from course_utils.environment import ROOT

NAME = "03_scoring_functions.ipynb"
HEATMAP = 'show_heatmaps(pair, titles=["with tanh"'
OPENED = "02_masked_softmax.ipynb"  # and never run


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("lab")


@pytest.fixture(scope="module")
def address(scratch):
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        run_lab(scratch, monkeypatch, [NAME, OPENED]) as address,
    ):
        yield address


@pytest.fixture(scope="module")
def lesson(browser, address):
    """The notebook, open and with its first cells run, down to a heatmap."""
    with open_notebook(browser, address, NAME, viewport={"width": 1366, "height": 900}) as lab:
        lab.run_down_to(HEATMAP)
        yield lab


def test_a_lesson_opens_unchanged_and_is_saved_as_it_was(browser, address, scratch):
    with open_notebook(browser, address, OPENED) as lab:
        lab.wait_until("panel.sessionContext?.session?.kernel?.status === 'idle'")
        told, dirty = lab.page.evaluate(
            """async () => {
                const panel = window.jupyterapp.shell.currentWidget;
                const { language_info } = await panel.sessionContext.session.kernel.info;
                await new Promise(resolve => setTimeout(resolve, 500));
                return [language_info.version, panel.context.model.dirty];
            }"""
        )
        assert told.startswith("3.")
        assert dirty is False
        lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.context.save()")
    saved = (scratch / "course" / "notebooks" / OPENED).read_bytes()
    assert saved == (ROOT / "notebooks" / OPENED).read_bytes()


def colours(png):
    """How many colours a picture has."""
    return len(Image.open(io.BytesIO(png)).convert("RGB").getcolors(10**7))


def test_heatmaps_are_drawn(lesson):
    cell = lesson.go_to(HEATMAP)
    pictures = cell.locator(".jp-OutputArea-output img")
    expect(pictures).to_have_count(1)
    assert colours(pictures.first.screenshot()) > 100
    margin = cell.locator(".jp-InputPrompt").first  # of one colour, but for its number
    assert colours(margin.screenshot()) < 100


def test_formulas_are_typeset(lesson):
    cell = lesson.go_to(r"\frac{", "markdown")
    expect(cell.locator("mjx-container mjx-mfrac").first).to_be_visible()
    expect(cell.locator(".jp-MarkdownOutput")).not_to_contain_text("$")
    expect(lesson.page.locator("mjx-merror")).to_have_count(0)


def test_pictures_of_the_text_are_there(lesson):
    cell = lesson.go_to("../figures/", "markdown")
    expect(cell.locator("img")).not_to_have_js_property("naturalWidth", 0)


def test_a_typed_answer_is_judged(lesson, scratch):
    """Wrong first, then right: the check names the mistake, then turns green."""
    for scores, verdict, words in (
        ("queries @ keys.mT", "not right yet", "The scores are not scaled."),
        ("queries @ keys.mT / queries.shape[-1] ** 0.5", "✓ scaled_attention: right", ""),
    ):
        lesson.replace_last_line(
            lesson.go_to("def scaled_attention"),
            f"weights = torch.softmax({scores}, dim=-1)\nreturn weights @ values, weights",
        )
        lesson.run_active()
        lesson.run_active()
        box = lesson.go_to("check(scaled_attention)").get_by_role("group").filter(has_text=verdict)
        expect(box).to_contain_text(words)
    expect(box).to_have_css("border-left-color", "rgb(27, 127, 92)")
    log = (scratch / "progress.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [entry for entry in map(json.loads, log) if entry["exercise"] == "scaled_attention"]
    assert [entry["outcome"] for entry in entries[-2:]] == ["mistake", "right"]
