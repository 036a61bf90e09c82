"""The live explorer in a browser, on a page of its own: pointer, keys, steps, and its numbers."""

import base64
import json
import shutil

import nbformat
import pytest
import torch
from browser import open_notebook, open_page, run_lab, serve
from explorer_figure import CONTRAST, Figure
from explorer_models import TEXT, recurrent, transformer, unpack
from nbformat.v4 import new_code_cell, new_notebook

from course_utils.environment import ROOT
from course_utils.models.attention import MultiHeadAttention
from course_utils.models.masks import causal_mask
from course_utils.training.seeds import set_seed
from course_utils.viz.explorer.display import FOLDER, NOT_LIVE, ExplorerWidget
from course_utils.viz.explorer.payload import pack_scene
from course_utils.viz.explorer.scenes import layer_scene, translation_scene

TARGET = "Nous suis chez moi."
PAGE = """<!doctype html>
<meta charset="utf-8"><title>Explorer</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="explorer.css">
<body>
<script type="module">
import explorer from "./explorer.js";

const revive = (name, value) => name === "data" && typeof value === "string"
  ? new DataView(Uint8Array.from(atob(value), (c) => c.charCodeAt(0)).buffer) : value;
const payloads = JSON.parse(await (await fetch("payloads.json")).text(), revive);
window.models = payloads.map((payload) => ({
  payload, sent: [], heard: [],
  get(name) { return this[name]; },
  on(name, act) { this.heard.push(act); },
  off(name, act) { this.heard = this.heard.filter((other) => other !== act); },
  send(message) { this.sent.push(message); },
  hear(message) { this.heard.forEach((act) => act(message)); },
}));
window.stops = window.models.map((model) => {
  const el = document.body.appendChild(document.createElement("div"));
  return explorer.render({ model, el });
});
document.body.dataset.ready = "yes";
</script>
"""


def write_page(folder, payloads):
    """A page in `folder` that shows a figure for each payload, without a kernel behind it."""
    (folder / "explorer.js").write_text(ExplorerWidget._esm, encoding="utf-8")
    shutil.copyfile(FOLDER / "explorer.css", folder / "explorer.css")
    text = json.dumps(payloads, default=lambda data: base64.b64encode(data).decode("ascii"))
    (folder / "payloads.json").write_text(text, encoding="utf-8")
    (folder / "index.html").write_text(PAGE, encoding="utf-8")


def long_sentence():
    words = "we are late i'm home . "
    return translation_scene(transformer(max_len=80), words * 10, "nous ai perdu je suis . " * 10)


@pytest.fixture(scope="module")
def payloads():
    """What the figures show: a Transformer, a GRU, one causal layer, and 60 tokens."""
    causal = causal_mask(4)[0, 0]
    set_seed(0)
    layer = layer_scene(MultiHeadAttention(8, 2), "abcd", torch.randn(4, 8), causal)
    return [
        pack_scene(translation_scene(transformer(), TEXT, TARGET), own_sentences=True),
        pack_scene(translation_scene(recurrent(), TEXT, TARGET), own_sentences=True),
        pack_scene(layer),
        pack_scene(long_sentence(), own_sentences=True),
    ]


@pytest.fixture(scope="module")
def address(payloads, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    write_page(folder, payloads)
    with serve(folder) as url:
        yield url


@pytest.fixture
def page(browser, address):
    with open_page(browser, address, viewport={"width": 900, "height": 900}) as opened:
        opened.wait_for_selector("body[data-ready]")
        yield opened


def written(row):
    return [f"{w:.2f}" for w in row]


def focus_of(page):
    return page.evaluate(
        "() => [document.activeElement.className.split(' ')[0], document.activeElement.textContent]"
    )


def weights_of(payload, family=0, layer=-1):
    """(h, Tq, Tk)"""
    return unpack(payload["families"][family]["layers"][layer]["weights"])


def test_pointing_at_a_token_shows_its_row_or_column_and_moves_nothing(page, payloads):
    figure, weights = Figure(page), weights_of(payloads[0])[0]
    before = figure.places()
    figure.token("query", 1).hover()
    assert figure.weights("key") == written(weights[1].tolist())
    assert figure.weights("query") == [""] * len(weights)
    lines = figure.lines("from-query")
    assert set(lines) == {(1, k) for k, w in enumerate(weights[1].tolist()) if w >= 0.005}
    for (q, k), width in lines.items():
        assert width == pytest.approx(0.6 + 9 * float(weights[q, k]), abs=0.01)
    figure.token("key", 2).hover()
    assert figure.weights("query") == written(weights[:, 2].tolist())
    assert set(figure.lines("from-key")) == {(q, 2) for q in range(len(weights))}
    assert figure.places() == before
    page.mouse.move(0, 0)
    assert figure.weights("query") == [""] * len(weights)


def test_a_click_locks_and_a_second_click_or_escape_unlocks(page, payloads):
    figure, weights = Figure(page), weights_of(payloads[0])[0]
    figure.token("query", 1).click()
    figure.token("query", 3).hover()
    assert figure.weights("key") == written(weights[1].tolist())
    assert figure.token("query", 1).get_attribute("aria-pressed") == "true"
    figure.token("query", 1).click()
    assert figure.token("query", 1).get_attribute("aria-pressed") == "false"
    figure.token("key", 0).click()
    page.mouse.move(0, 0)
    assert figure.weights("query") == written(weights[:, 0].tolist())
    page.keyboard.press("Escape")
    assert figure.root.locator("[aria-pressed=true]").count() == 0
    assert figure.root.get_by_text("Point at a token").count() == 1


def test_the_keyboard_reaches_everything(page, payloads):
    figure = Figure(page)
    keys = page.keyboard
    figure.root.get_by_label("One step back").focus()
    for _ in range(2):  # the slider, then the column of queries: "one step on" is off at the end
        keys.press("Tab")
    assert focus_of(page) == ["ax-token", "nous"]
    keys.press("ArrowDown")
    keys.press("ArrowDown")
    keys.press("Home")
    keys.press("ArrowDown")
    assert focus_of(page) == ["ax-token", "suis"]
    assert figure.weights("key") == written(weights_of(payloads[0])[0, 1].tolist())
    outline = figure.token("query", 1).evaluate("e => getComputedStyle(e).outlineWidth")
    assert outline == "3px"
    keys.press("Enter")
    keys.press("ArrowRight")
    assert focus_of(page) == ["ax-token", "are"]
    keys.press("ArrowRight")
    keys.press("End")
    assert focus_of(page) == ["ax-weight", written(weights_of(payloads[0])[0, 1].tolist())[-1]]
    keys.press("Enter")
    assert figure.root.get_by_role("heading").inner_text() == (
        "Query suis, key <eos>: layer 1, head 0"
    )
    keys.press("Escape")
    assert figure.root.locator(".ax-unfolded").is_hidden()
    assert focus_of(page)[0] == "ax-weight"
    keys.press("Escape")
    assert focus_of(page) == ["ax-token", "suis"]
    assert figure.root.locator("[aria-pressed=true]").count() == 0
    keys.press("Tab")
    assert focus_of(page)[0] == "ax-token"
    keys.press("Tab")
    assert not figure.root.evaluate("e => e.contains(document.activeElement)")


@pytest.mark.parametrize("n", [0, 1])
def test_the_unfolded_numbers_are_those_of_the_model(page, payloads, n):
    figure, q, k = Figure(page, n), 2, 1
    layer = {x: unpack(v) for x, v in payloads[n]["families"][0]["layers"][-1].items()}
    figure.token("query", q).click()
    figure.slot("key", k).click()
    assert figure.number("score") == layer["scores"][0, q, k].item()
    assert figure.number("weight") == layer["weights"][0, q, k].item()
    if n == 0:
        assert figure.number("product") == layer["products"][0, q, k].item()
    rows = figure.root.get_by_role("region", name="Softmax of the row").locator("tbody tr")
    titles = rows.locator("span").evaluate_all("all => all.map(e => Number(e.title))")
    columns = torch.stack([layer[x][0, q] for x in ("scores", "exps", "weights")], -1)
    assert titles == [*columns.flatten().tolist(), layer["totals"][0, q].item()]
    tables = figure.root.locator("details table")
    query, key, value, output = (
        layer[name][0, at] for name, at in (("q", q), ("k", k), ("v", k), ("output", q))
    )
    if n == 0:
        products = query.double() * key.double()
        inner = [query, key, products, products.cumsum(0)]
    else:
        features, w_v = layer["features"][0, q, k], layer["w_v"]
        inner = [query, key, features, w_v, w_v.double() * features.double()]
    weight = layer["weights"][0, q, k].double()
    for table, vectors in zip(
        tables.all(), [inner, [value, weight * value.double(), output]], strict=True
    ):
        cells = table.locator("tbody tr").evaluate_all(
            "rows => rows.map(r => [...r.querySelectorAll('span')].map(s => Number(s.title)))"
        )
        assert cells == torch.stack([x.double() for x in vectors], -1).tolist()


def test_one_cell_is_unfolded_at_a_time(page):
    figure = Figure(page)
    figure.token("query", 0).click()
    figure.slot("key", 0).click()
    figure.slot("key", 2).click()
    assert figure.root.get_by_role("heading").all_inner_texts() == [
        "Query nous, key home: layer 1, head 0"
    ]
    figure.slot("key", 2).click()
    assert figure.root.locator(".ax-unfolded").is_hidden()
    figure.slot("key", 2).click()
    figure.root.get_by_role("button", name="Close").click()
    assert figure.root.locator(".ax-unfolded").is_hidden()


def test_masked_cells_say_so(page):
    figure = Figure(page, 2)
    figure.token("query", 1).click()
    assert figure.weights("key")[2:] == ["masked", "masked"]
    assert {k for _, k in figure.lines("from-query")} <= {0, 1}
    figure.slot("key", 3).click()
    said = figure.root.locator(".ax-unfolded li").all_inner_texts()
    assert "b may not look at d: the score becomes −∞, the weight 0." in said[2]
    assert figure.number("weight") == 0
    assert figure.root.get_by_role("button", name="Translate").count() == 0


def test_decoding_is_played_step_by_step(page, payloads):
    figure, steps = Figure(page), payloads[0]["steps"]
    french = [step["says"] for step in steps]
    assert figure.tokens("query") == french
    page.clock.install()
    figure.root.get_by_role("button", name="Play").click()
    for step in range(1, len(steps) + 1):
        assert figure.tokens("query") == french[:step] + ["…"] * (len(steps) - step)
        text = figure.root.locator(".ax-step").inner_text()
        reads, says = steps[step - 1]["reads"], steps[step - 1]["says"]
        assert f"Step {step} of {len(steps)}: reads “{reads}”, says “{says}”." in text
        token, chance = steps[step - 1]["candidates"][0]
        assert f"Likeliest: {token} {chance:.2f}" in text
        assert {q for q, _ in figure.lines("from-query")} == {step - 1}
        page.clock.run_for(1400)
    page.clock.run_for(5000)
    assert figure.root.get_by_role("button", name="Play").count() == 1
    figure.root.get_by_label("One step back").click()
    assert figure.tokens("query")[-2:] == [french[-2], "…"]
    figure.root.get_by_label("Step of the decoder").fill("2")
    assert figure.tokens("query") == french[:2] + ["…"] * (len(steps) - 2)
    assert figure.token("query", 3).is_disabled()
    figure.token("key", 0).hover()
    assert figure.weights("query")[2:] == [""] * (len(steps) - 2)
    figure.choose("Attention", "decoder")
    figure.root.get_by_label("Step of the decoder").fill("2")
    assert figure.tokens("key") == ["<bos>", french[0]] + ["…"] * (len(steps) - 2)
    figure.choose("Attention", "encoder")
    assert figure.root.get_by_text("no steps to play").count() == 1


def test_two_heads_stand_side_by_side(page, payloads):
    figure = Figure(page)
    figure.root.get_by_label("Head", exact=True).focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.ariaLabel") == "Head"
    figure.choose("Compare with", "0:3")
    figure.token("query", 2).hover()
    assert figure.weights("key", 0) == written(weights_of(payloads[0])[1, 2].tolist())
    assert figure.weights("key", 1) == written(weights_of(payloads[0], layer=0)[3, 2].tolist())
    boxes = [figure.root.locator(".ax-panel").nth(n).bounding_box() for n in (0, 1)]
    assert boxes[0]["y"] == boxes[1]["y"]
    figure.token("query", 2, panel=1).click()
    figure.slot("key", 0, panel=1).click()
    assert figure.number("weight") == weights_of(payloads[0], layer=0)[3, 2, 0].item()


def test_each_kind_of_attention_can_be_chosen(page, payloads):
    figure = Figure(page)
    for family, (name, seen) in enumerate((("cross", 5), ("encoder", 5), ("decoder", 2))):
        figure.choose("Attention", name)
        figure.token("query", 1).hover()
        row = weights_of(payloads[0], family, layer=1 if name == "cross" else 0)[0, 1].tolist()
        shown = figure.weights("key")
        assert shown == written(row)[:seen] + ["masked"] * (len(row) - seen)


def test_a_sentence_of_ones_own_goes_to_the_kernel_and_back(page, payloads):
    figure = Figure(page)
    line = figure.root.get_by_label("Your own English sentence")
    notice = figure.root.locator(".ax-notice")
    line.press("Enter")
    assert notice.inner_text() == "Write an English sentence first."
    line.fill("The xylophone is late.")
    line.press("Enter")
    assert page.evaluate("window.models[0].sent") == [
        {"type": "translate", "text": "The xylophone is late."}
    ]
    assert notice.inner_text() == "Translating …"
    page.evaluate("window.models[0].hear({type: 'refused', why: 'the sentence is empty'})")
    assert notice.inner_text() == "Not translated: the sentence is empty."
    page.evaluate(
        """() => { const model = window.models[0];
        model.payload = { ...window.models[1].payload, notice: 'Not in the vocabulary: x.' };
        model.hear({ type: 'translated' }); }"""
    )
    assert notice.inner_text() == "Not in the vocabulary: x."
    assert line.input_value() == "The xylophone is late."
    figure.token("query", 1).hover()
    assert figure.weights("key") == written(weights_of(payloads[1])[0, 1].tolist())
    page.clock.install()
    line.press("Enter")
    page.clock.run_for(21_000)
    assert "Run the cell again" in notice.inner_text()


def test_figures_on_one_page_do_not_disturb_each_other(page):
    first, second = Figure(page), Figure(page, 1)
    before = second.places(), second.root.inner_html()
    first.token("query", 1).click()
    assert (second.places(), second.root.inner_html()) == before
    second.token("key", 1).click()
    assert first.token("query", 1).get_attribute("aria-pressed") == "true"
    assert page.locator(".ax [id]").count() == 0
    page.evaluate("window.stops[0]()")
    assert page.evaluate("window.models.map(m => m.heard.length)") == [0, 1, 1, 1]


def test_everything_to_operate_has_a_name(page):
    nameless = page.locator(".ax button, .ax select, .ax input").evaluate_all(
        """all => all.filter(e => !e.disabled
            && !(e.ariaLabel || e.textContent.trim() || e.labels?.[0]?.textContent.trim()))
            .map(e => e.outerHTML)"""
    )
    assert nameless == []


@pytest.mark.parametrize("width", [360, 900])
def test_sixty_tokens_fit_at_any_width(browser, address, payloads, width):
    with open_page(browser, address, viewport={"width": width, "height": 700}) as page:
        page.wait_for_selector("body[data-ready]")
        figure, weights = Figure(page, 3), weights_of(payloads[3])[0]
        assert weights.shape == (61, 61)
        figure.token("query", 59).hover()
        assert figure.weights("key") == written(weights[59].tolist())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        figure.token("query", 59).click()
        figure.slot("key", 60).click()
        assert figure.number("weight") == weights[59, 60].item()
        assert page.evaluate("document.documentElement.scrollWidth") <= width


DARK = """() => {
  document.body.dataset.jpThemeLight = "false";
  const set = (name, value) => document.body.style.setProperty(`--jp-${name}`, value);
  set("ui-font-color1", "rgb(224, 224, 224)"); set("ui-font-color2", "rgb(160, 160, 160)");
  set("layout-color0", "#111111"); set("layout-color1", "#212121");
  set("border-color1", "#616161");
}"""


@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read_in_light_and_dark(page, dark):
    if dark:
        page.evaluate(DARK)
    figure = Figure(page)
    figure.root.get_by_label("Your own English sentence").press("Enter")
    figure.token("query", 1).click()
    figure.slot("key", 1).click()
    places = [".ax-notice", ".ax-step", ".ax-status", ".ax-label", ".ax-active", ".ax-weight",
              ".ax-unfolded li", ".ax-result", ".ax-strip span", "summary", "select"]  # fmt: skip
    for place in places:
        assert figure.root.locator(place).first.evaluate(CONTRAST) >= 4.5, place
    figure.token("key", 1).click()
    assert figure.root.locator(".ax-active").first.evaluate(CONTRAST) >= 4.5


CELLS = """
from explorer_figure import CONTRAST, Figure
from explorer_models import transformer
from course_utils.viz.explorer import explore
explore(transformer(), "We are home.", "Nous suis chez moi.")
"""


def test_in_jupyterlab_the_figure_is_live_and_its_kernel_translates(browser, tmp_path, monkeypatch):
    monkeypatch.delenv(NOT_LIVE, raising=False)
    cells = [new_code_cell(f"import sys; sys.path.append({str(ROOT / 'tests' / 'support')!r})"),
             new_code_cell(CELLS), new_code_cell("explore(transformer(), 'I lost.')")]  # fmt: skip
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)"}
    notebook = new_notebook(cells=cells, metadata={"kernelspec": kernel})
    with run_lab(tmp_path, monkeypatch, []) as address:
        nbformat.write(notebook, tmp_path / "course" / "notebooks" / "live.ipynb")
        with open_notebook(browser, address, "live.ipynb") as lab:
            lab.run_all()
            page = lab.page
            page.locator(".ax").nth(1).wait_for()
            first, second = Figure(page), Figure(page, 1)
            assert first.tokens("key") == ["we", "are", "home", ".", "<eos>"]
            first.token("query", 1).click()
            page.keyboard.press("a")  # in command mode JupyterLab would insert a cell
            page.keyboard.press("ArrowDown")
            assert page.locator(".jp-Notebook .jp-Cell").count() == 3
            assert focus_of(page) == ["ax-token", "chez"]
            line = first.root.get_by_label("Your own English sentence")
            line.fill("The xylophone lost.")
            line.press("Enter")
            first.root.get_by_text("Not in the model's vocabulary: the, xylophone.").wait_for()
            assert first.tokens("key") == [
                "<unk> (the)", "<unk> (xylophone)", "lost", ".", "<eos>",
            ]  # fmt: skip
            assert second.tokens("key") == ["i", "lost", ".", "<eos>"]
            line.fill("we " * 20)
            line.press("Enter")
            first.root.get_by_text("has 20 tokens, and at most 19 fit").wait_for()
