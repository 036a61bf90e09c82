"""The live page in a browser: from a file and served, meddled with, on a phone and in the dark."""

import base64
import dataclasses
import re
import time

import pytest
from browser import PATIENCE, open_page, serve
from explorer_figure import CONTRAST, Figure
from live_engine import engine_script, python_translator
from test_live_engine import (
    CLOSE,
    NOTHING,
    PLAIN,
    hide,
    largest_difference,
    logits_in_python,
    patched,
)

from course_utils.__main__ import run
from course_utils.text.batches import pad
from course_utils.training.decoding import greedy_decode
from course_utils.viz.live.packed_model import check_kind
from course_utils.viz.live.page import write_live_page

CAT = "The black cat is sleeping."
ROOM = 12_000_000  # bytes; more would be slow to fetch by phone
CALM = {"reduced_motion": "reduce", "viewport": {"width": 1100, "height": 900}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("live")
    write_live_page("fra-eng", folder / "live.html")
    return folder


@pytest.fixture(scope="module")
def address(folder):
    with serve(folder) as url:
        yield f"{url}/live.html"


@pytest.fixture
def page(browser, address):
    with open_live(browser, address) as page:
        yield page


def open_live(browser, address, **options):
    class Opened:
        def __enter__(self):
            self.context = open_page(browser, address, **{**CALM, **options})
            page = self.context.__enter__()
            page.wait_for_selector("[data-ready]")
            return page

        def __exit__(self, *error):
            return self.context.__exit__(*error)

    return Opened()


def translate(page, text):
    page.get_by_label("English", exact=True).fill(text)
    page.get_by_role("button", name="Translate").click()


def plain(page):
    return page.locator(".live-said").first.inner_text()


def meddled(page):
    return page.locator(".live-said").nth(1).inner_text()


def in_python(text, change=None):
    """The greedy translation, of a model with this change."""
    change = {**NOTHING, **(change or {})}
    translator = patched(change)
    source = [*translator.source.encode(text), translator.source.eos]
    memory = hide(translator, change, source) if change["hidden"] else None
    src, src_lens = pad([source])
    if memory is not None:
        start = translator.model.start
        translator.model.start = lambda *args: start(*args, memory)
    ids = greedy_decode(translator.model, src, src_lens, bos=1, eos=2)[0]
    return translator.target.decode(ids)


@pytest.mark.parametrize("kind", ["file", "served"])
def test_typed_english_becomes_pythons_french(browser, folder, address, kind, record_property):
    place = folder / "live.html"
    start = time.monotonic()
    with open_live(browser, place.as_uri() if kind == "file" else address) as page:
        first = time.monotonic() - start
        assert plain(page) == in_python(CAT)
        start = time.monotonic()
        translate(page, "My sister has a red bicycle.")
        page.wait_for_function("document.querySelector('.live-said').textContent.includes('sœur')")
        following = time.monotonic() - start
        assert plain(page) == in_python("My sister has a red bicycle.")
        memory = page.evaluate("performance.memory?.usedJSHeapSize ?? 0") / 2**20
    size = place.stat().st_size
    report = (
        f"{size:,} bytes; {first:.1f} s to the first translation, {following:.2f} s to the next; "
        f"{memory:.0f} MiB of objects"
    )
    record_property("live page", report)
    print(report)
    assert size < ROOM


def test_the_browser_computes_pythons_logits(page):
    code = base64.b64encode(engine_script().encode()).decode()
    page.evaluate(f"""async () => {{
        const engine = await import("data:text/javascript;base64,{code}");
        window.translator = new engine.Translator(window.courseModel);
    }}""")
    for text in (CAT, "Where did you put my keys?"):
        source = [*python_translator().source.encode(text), 2]
        said = source[:5]
        answer = page.evaluate(
            """([source, said]) =>
            window.translator.listen(source, said).steps.map(({ logits }) => [...logits])""",
            [source, said],
        )
        assert largest_difference([answer], [logits_in_python(source, said)]) < CLOSE


def test_words_come_one_by_one_unless_motion_is_unwanted(browser, address):
    with open_live(browser, address, reduced_motion="no-preference") as page:
        seen = set()
        for _ in range(12):
            seen.add(plain(page))
            page.wait_for_timeout(300)
        whole = in_python(CAT)
        assert len(seen) > 3
        assert all(whole.startswith(each.rstrip("…")) for each in seen)
    with open_live(browser, address) as page:
        assert plain(page) == whole


def test_a_head_switched_off_changes_the_translation_at_once(page):
    heads = ["cross.1.0", "cross.1.1"]
    for head in (0, 1):
        page.get_by_role("button", name=f"Cross-attention, layer 1, head {head} is on").click()
    assert meddled(page) == in_python(CAT, {"off": heads}) != plain(page)
    marks = page.locator(".live-said").first.locator("mark").all_inner_texts()
    assert set(marks) == set(plain(page).split()) - set(meddled(page).split())
    assert page.locator(".live-changes").inner_text().count(": off") == 2
    page.get_by_role("button", name="undo all").click()
    assert page.locator(".live-both").is_hidden()


def test_whole_layers_one_head_alone_and_even_heads(page):
    page.get_by_role("button", name="Cross-attention, layer 1: all off").click()
    row = [f"cross.1.{head}" for head in range(4)]
    assert meddled(page) == in_python(CAT, {"off": row})
    page.get_by_role("button", name="Cross-attention, layer 1: all on").click()
    page.get_by_label("alone").check()
    page.get_by_role("button", name="Cross-attention, layer 1, head 3 is on").click()
    assert meddled(page) == in_python(CAT, {"off": row[:3]})
    page.get_by_role("button", name="undo all").click()
    page.get_by_label("even", exact=True).check()
    page.get_by_role("button", name="Cross-attention, layer 1, head 0 is on").click()
    assert meddled(page) == in_python(CAT, {"even": row[:1]})
    page.get_by_role("button", name="Look at Cross-attention, layer 1, head 0").click()
    figure = Figure(page)
    figure.token("query", 0).click()
    assert set(figure.weights("key")) == {"0.13", "0.12"} & set(figure.weights("key"))
    figure.slot("key", 0).click()
    assert "made even" in page.locator(".ax-unfolded").inner_text()
    assert figure.number("score") == 0


def test_words_are_hidden_and_swapped(page):
    words = page.get_by_role("group", name="Words of the source")
    words.get_by_role("button", name="black").click()
    assert meddled(page) == in_python(CAT, {"hidden": [1]}) != plain(page)
    page.get_by_label("hide from the encoder, too").check()
    assert meddled(page) == in_python(CAT, {"hidden": [1], "hiddenFrom": "both"})
    words.get_by_role("button", name="black").click()
    page.get_by_label("swaps it with another").check()
    words.get_by_role("button", name="black").click()
    words.get_by_role("button", name="cat").click()
    assert meddled(page) == in_python("The cat black is sleeping.")
    assert words.get_by_role("button").all_inner_texts()[:3] == ["The", "cat", "black"]


def test_temperature_and_positions(page):
    page.get_by_role("button", name="leave out √d").click()
    assert meddled(page) == in_python(CAT, {"temperature": {**PLAIN, "cross": 0.144}})
    page.get_by_role("button", name="back to 1").click()
    assert page.locator(".live-both").is_hidden()
    page.get_by_label("the French").uncheck()
    assert meddled(page) == in_python(CAT, {"positions": {"source": True, "target": False}})


def test_another_candidate_is_said_and_the_rest_follows(page):
    Figure(page).token("query", 2).click()
    second = page.locator(".live-candidates li button").nth(1)
    piece = second.inner_text().replace("·", "")
    second.click()
    begun = meddled(page).split()
    assert begun[:2] == plain(page).split()[:2]
    assert begun[2].startswith(piece)


def test_beams_and_chance(page):
    page.get_by_label("part of the best of 4 beams").check()
    assert plain(page) == python_translator().translate([CAT], beam=4)[0]
    page.get_by_label("drawn by chance").check()
    page.get_by_label("Temperature of sampling").fill("1.5")
    first, hash_of_first = plain(page), page.evaluate("location.hash")
    page.get_by_role("button", name="draw again").click()
    assert plain(page) != first
    page.evaluate("address => { location.hash = address; }", hash_of_first)
    page.wait_for_function(
        "text => document.querySelector('.live-said').textContent === text", arg=first
    )


def test_what_was_set_up_can_be_sent(browser, page, address):
    translate(page, "She told me she was tired.")
    page.get_by_role("button", name="Cross-attention, layer 1, head 2 is on").click()
    page.get_by_role("button", name="Look at Encoder, layer 0, head 1").click()
    with open_live(browser, page.url) as friend:
        assert plain(friend) == plain(page)
        assert meddled(friend) == meddled(page)
        assert friend.locator(".ax-title").inner_text() == "layer 0, head 1"
        assert friend.url == page.url


def test_an_address_from_a_stranger_does_no_harm(browser, address):
    bad = (
        "#live?t=%3Cimg src=x onerror=alert(1)%3E&off=cross.9.9+toString&temperature=cross:NaN+x:2"
        "+encoder:-1&hide=500+1e9+-1&swap=77+0&said=99999999+5&seed=x&way=evil&at=__proto__.0.0"
    )
    with open_live(browser, address + bad) as page:
        assert plain(page)
        assert page.locator("main img").count() == 0
    with open_live(browser, f"{address}#live?t={'word ' * 400}") as page:
        assert "at most 104 fit" in page.locator(".ax-notice").inner_text()
        assert not page.locator(".live-result").is_visible()
        translate(page, "你好")
        assert "read English sentences alone" in page.locator(".ax-notice").inner_text()
        translate(page, "  ")
        assert page.locator(".ax-notice").inner_text() == "Write an English sentence first."
        assert not page.locator(".live-figure").is_visible()


def test_the_tour_is_walked_by_doing(page):
    tour, figure = page.locator(".live-tour"), Figure(page)
    title = lambda: tour.locator("h2").inner_text()  # noqa: E731
    words = page.get_by_role("group", name="Words of the source")
    steps = [
        lambda: translate(page, "The white dog is sleeping."),
        lambda: figure.token("query", 2).click(),
        lambda: figure.slot("key", 1).click(),
        lambda: page.get_by_role("button", name="Look at Cross-attention, layer 1, head 2").click(),
        lambda: page.get_by_role("button", name="Cross-attention, layer 1, head 2 is on").click(),
        lambda: page.get_by_role("button", name="Cross-attention, layer 1: all off").click(),
        lambda: (page.get_by_role("button", name="undo all").click(),
                 words.get_by_role("button", name="white").click()),
        lambda: (page.get_by_role("button", name="Undo: “white” hidden").click(),
                 page.get_by_label("the French").uncheck()),
    ]  # fmt: skip
    for n, act in enumerate(steps):
        assert title() == f"Tour, {n + 1} of {len(steps)}"
        assert not tour.get_by_role("status").inner_text()
        act()
        assert tour.get_by_role("status").inner_text()
        tour.get_by_role("button", name="On" if n + 1 < len(steps) else "End", exact=True).click()
    assert tour.is_hidden()


def test_the_tour_stays_in_sight_wherever_it_is_followed(browser, address):
    for viewport in ({"width": 1280, "height": 800}, {"width": 390, "height": 844}):
        with open_live(browser, address, viewport=viewport) as page:
            for place in (".ax-panels", ".live-board", ".live-row:last-child", ".live-knobs"):
                page.locator(place).scroll_into_view_if_needed()
                assert page.evaluate("scrollY") > 0
                box = page.locator(".live-tour").bounding_box()
                assert box["y"] >= 0
                assert box["y"] + box["height"] <= 0.45 * viewport["height"]


def skip_to(page, step):
    for _ in range(step - 1):
        page.locator(".live-tour").get_by_role("button", name="Skip this step").click()


def test_the_tour_shows_a_head_that_matters_when_the_one_chosen_does_not(page):
    tour = page.locator(".live-tour")
    show = tour.get_by_role("button", name="Show a head that changes something")
    skip_to(page, 5)
    page.get_by_role("button", name="Cross-attention, layer 0, head 0 is on").click()
    assert plain(page) == meddled(page)
    assert "Nothing changed" in tour.get_by_role("status").inner_text()
    show.click()
    assert meddled(page) != plain(page)
    told = tour.get_by_role("status").inner_text()
    assert f"It says “{meddled(page)}” in place of “{plain(page)}”" in told
    assert "is off in “The black cat is sleeping.”" in told
    assert show.is_hidden()


def test_the_tour_speaks_while_other_changes_stand_beside_the_one_it_asks_for(page):
    tour = page.locator(".live-tour")
    undo = tour.get_by_role("button", name="Undo the other changes")
    skip_to(page, 8)
    assert undo.is_hidden()
    words = page.get_by_role("group", name="Words of the source")
    words.get_by_role("button", name="black").click()
    page.get_by_label("the French").uncheck()
    assert "undo them" in tour.get_by_role("status").inner_text()
    undo.click()
    assert "no longer knows how far" in tour.get_by_role("status").inner_text()
    assert page.locator(".live-changes").inner_text().count("no positions in the French") == 1
    assert "hidden" not in page.locator(".live-changes").inner_text()


def test_every_result_says_how_far_to_trust_it(page):
    doubt = page.locator(".live-doubt")
    assert doubt.inner_text() == (
        "A small model, of 3.6 million numbers: rare words come out as fluent nonsense."
    )
    for text, unknown in (("Hello.", "“Hello”."), ("Zxqv blorp.", "“Zxqv”, “blorp”.")):
        translate(page, text)
        assert doubt.inner_text().endswith(f"so perhaps not known: {unknown}")
    translate(page, " ")
    assert doubt.is_hidden()


@pytest.mark.long
def test_changes_are_counted_over_many_sentences(page):
    page.get_by_role("button", name="Cross-attention, layer 1: all off").click()
    page.get_by_role("button", name=re.compile("Count over")).click()
    page.wait_for_function(
        "document.querySelector('.live-counter [role=status]').textContent.includes('(greedy)')",
        timeout=PATIENCE,
    )
    told = page.locator(".live-counter [role=status]").inner_text()
    changed, of = map(int, re.findall(r"\d+", told))
    assert of == 50
    assert changed > 40


READ = """.live-said / .live-doubt / .live-note / .live-switch / h2 / h3
    / .live-switch[aria-pressed=true]
    / .live-hidden / .live-todo / .live-changes li / .live-go / .ax-legend / .live-candidates button
    / .ax-formula small"""


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1100])
def test_it_can_be_read_and_operated_anywhere(browser, address, width, dark):
    options = {
        "viewport": {"width": width, "height": 844},
        "color_scheme": "dark" if dark else "light",
    }
    with open_live(browser, address, has_touch=True, **options) as page:
        page.get_by_role("button", name="Cross-attention, layer 1, head 0 is on").tap()
        page.get_by_role("button", name="black", exact=True).tap()
        Figure(page).token("query", 2).tap()
        Figure(page).slot("key", 1).tap()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for place in map(str.strip, READ.split("/")):
            assert page.locator(place).first.evaluate(CONTRAST) >= 4.5, place
        small = page.locator(".live button:visible, .live select:visible").evaluate_all(
            "all => all.filter(e => e.getBoundingClientRect().height < 24).map(e => e.outerHTML)"
        )
        assert small == []
        nameless = page.locator(".live button, .live select, .live input").evaluate_all(
            """all => all.filter(e => !e.disabled
                && !(e.ariaLabel || e.textContent.trim() || e.labels?.[0]?.textContent.trim()))
                .map(e => e.outerHTML)"""
        )
        assert nameless == []


def test_it_is_operated_by_keys(page):
    line = page.get_by_label("English", exact=True)
    line.fill("I love you.")
    line.press("Enter")
    assert plain(page) == in_python("I love you.")
    word = page.get_by_role("group", name="Words of the source").get_by_role("button", name="love")
    word.focus()
    page.keyboard.press("Enter")
    assert meddled(page)
    assert page.evaluate("document.activeElement.textContent") == "love"
    switch = page.get_by_role("button", name="Encoder, layer 0, head 0 is on")
    switch.focus()
    page.keyboard.press("Space")
    assert page.evaluate("document.activeElement.ariaLabel").endswith("head 0 is off")


def test_the_command_writes_the_page_or_says_why_not(tmp_path, capsys):
    out = tmp_path / "own.html"
    assert run(["live", "--model", "fra-eng", "--out", str(out)]) == 0
    assert "9.9 MB" in capsys.readouterr().out
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert run(["live", "--model", "fra-eng", "--out", str(tmp_path / "own.txt")]) == 1
    assert "--out must end in .html" in capsys.readouterr().err


@pytest.mark.parametrize("change", [{"norm_first": False}, {"bias": True}, {"tie_output": False}])
def test_models_that_the_page_cannot_run_are_refused(change):
    config = dataclasses.replace(python_translator().model.config, **change)
    with pytest.raises(ValueError, match="the live page runs models with norm_first = True"):
        check_kind(config)
