"""The site of the course in a browser: read on a phone, on a laptop, in the dark, and searched."""

import io

import pytest
from browser import expect, open_page, serve
from explorer_figure import CONTRAST, Figure
from PIL import Image

from course_utils.chapters import CHAPTERS as TABLE
from course_utils.environment import ROOT

PHONE = {"width": 390, "height": 844}
LAPTOP = {"width": 1366, "height": 768}
CAT = "Le chat noir est en train de dormir."
CHAPTERS = [ROOT / "notebooks" / chapter.file for chapter in TABLE]


@pytest.fixture(scope="module")
def address(course_site):
    with serve(course_site) as address:
        yield address


@pytest.fixture
def open_site(browser, address):
    """open_site(path, **options of the context): a page of the site, checked when it is left."""
    return lambda path, **options: open_page(browser, f"{address}/{path}", **options)


def wait_for_pictures(page):
    """Wait until every picture of the page is there."""
    page.evaluate("() => { for (const picture of document.images) picture.loading = 'eager'; }")
    page.wait_for_function(
        "() => [...document.images].every(each => each.complete && each.naturalWidth > 0)"
    )


def test_the_course_is_read_from_first_to_last_page_on_a_phone(open_site):
    """By its own links; no page is wider than the screen, and each shows all its pictures."""
    pages, wide = ["index.html", *(f"notebooks/{path.stem}.html" for path in CHAPTERS)], []
    with open_site(pages[0], viewport=PHONE, is_mobile=True, has_touch=True) as page:
        for name in pages:
            page.wait_for_url(f"**/{name}")
            wait_for_pictures(page)
            if page.evaluate("document.documentElement.scrollWidth") > PHONE["width"]:
                wide.append(name)
            if name != pages[-1]:
                page.locator("a.next-page").click()
        page.locator("a.prev-page").click()
        page.wait_for_url(f"**/{pages[-2]}")
    assert wide == []


def test_formulas_are_drawn(open_site):
    with open_site("notebooks/03_scoring_functions.html", viewport=LAPTOP) as page:
        fraction = page.locator("math[display=block] mfrac").first
        above, below = fraction.locator("> *").all()
        assert above.bounding_box()["y"] < below.bounding_box()["y"]
        assert below.bounding_box()["width"] > 20


def test_figures_stay_on_white_paper_in_the_dark(open_site):
    with open_site("notebooks/03_scoring_functions.html", viewport=LAPTOP) as page:
        wait_for_pictures(page)
        for _ in range(3):  # the switch goes round: as the system, light, dark
            if page.locator("body").get_attribute("data-theme") == "dark":
                break
            page.locator(".theme-toggle:visible").click()
        expect(page.locator("body")).to_have_attribute("data-theme", "dark")
        assert brightness(page.locator("article h1")) < 80
        drawing = page.locator("article img[src$='.svg']").first
        heatmap = page.locator("article img[src$='.png']").first
        assert min(brightness(drawing), brightness(heatmap)) > 240


def brightness(locator):
    """The commonest shade of grey, 0 to 255, in a picture of this element."""
    histogram = Image.open(io.BytesIO(locator.screenshot())).convert("L").histogram()
    return histogram.index(max(histogram))


def test_search_finds_the_chapter(open_site):
    with open_site("index.html", viewport=LAPTOP) as page:
        page.locator("input.sidebar-search").fill("masked softmax")
        page.keyboard.press("Enter")
        hit = page.locator("#search-results li a[href*='02_masked_softmax']").first
        hit.click()
        expect(page.locator("article h1")).to_contain_text("Masked softmax")


def test_the_cover_translates_and_the_picture_stays_without_scripts(open_site, browser, address):
    with open_site("index.html", viewport=LAPTOP, reduced_motion="reduce") as page:
        page.wait_for_selector("[data-live][data-ready]")
        expect(page.locator(".live-said").first).to_have_text(CAT)
        page.get_by_role("button", name="black", exact=True).click()
        expect(page.locator(".live-said").nth(1)).to_have_text("Le chat dort.")
        page.get_by_role("link", name="The whole live page").click()
        page.wait_for_url("**/live.html")
        page.wait_for_selector("[data-live][data-ready]")
        expect(page.locator(".live-head")).to_have_count(24)
        expect(page.locator("article a[href='course.zip']")).to_be_visible()
        page.get_by_role("link", name="chapter 0").click()
        page.wait_for_url("**/00_start_here.html")
    with open_page(browser, f"{address}/index.html", java_script_enabled=False) as page:
        expect(page.locator("img[src$='live.svg']")).to_be_visible()


@pytest.mark.parametrize("viewport", [PHONE, {"width": 1280, "height": 800}])
def test_the_tour_stays_in_sight_under_what_the_theme_lays_on_top(open_site, viewport):
    with open_site("live.html", viewport=viewport, reduced_motion="reduce") as page:
        page.wait_for_selector("[data-live][data-ready]")
        page.locator(".live-counter").scroll_into_view_if_needed()
        page.mouse.wheel(0, -300)  # a scroll up, at which the theme offers the top
        page.wait_for_timeout(300)
        assert page.evaluate("scrollY") > 300
        tour = page.locator(".live-tour")
        assert tour.evaluate("""tour => {
            const { left, right, top, bottom } = tour.getBoundingClientRect();
            const seen = (y) => tour.contains(document.elementFromPoint((left + right) / 2, y));
            return seen(top + 5) && seen(bottom - 5);
        }""")


def test_the_cover_and_the_explorer_of_a_chapter_live_from_a_file(browser, course_site):
    for name, mark in (("index", "data-live"), ("notebooks/06_multi_head_attention", "data-scene")):
        with open_page(browser, (course_site / f"{name}.html").as_uri(), viewport=PHONE) as page:
            place = page.locator(f"[{mark}]").first
            place.scroll_into_view_if_needed()
            page.wait_for_selector(f"[{mark}][data-ready]")
            figure = Figure(page)
            figure.token("query", 0).click()
            assert abs(sum(map(float, figure.weights("key"))) - 1) < 0.05
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_words_beside_a_live_figure_stand_on_the_page_in_the_dark(open_site):
    with open_site("index.html", viewport=LAPTOP, color_scheme="dark") as page:
        assert page.locator(".live-more").evaluate(CONTRAST) >= 4.5
        edges = page.locator("img[src$='feedback.svg']").evaluate("""picture => {
            const box = picture.closest(".wide").getBoundingClientRect();
            const own = picture.getBoundingClientRect();
            return ["left", "right", "top", "bottom"].map((x) => Math.abs(box[x] - own[x]));
        }""")  # in one go: the figure above may grow meanwhile
        assert max(edges) < 1


def test_a_figure_further_down_is_not_loaded_before_it_is_scrolled_to(browser, address):
    with open_page(browser, f"{address}/notebooks/06_multi_head_attention.html") as page:
        page.wait_for_load_state("load")
        asked = page.evaluate("performance.getEntriesByType('resource').map(({ name }) => name)")
        assert any("live.js" in name for name in asked)
        assert not any("/scenes/" in name or "model.js" in name for name in asked)


def test_a_result_of_the_search_leads_to_its_section(open_site):
    with open_site("index.html", viewport=LAPTOP) as page:
        page.locator("input.sidebar-search").fill("blind")
        page.keyboard.press("Enter")
        page.locator("#search-results li a").first.click()
        page.wait_for_function("window.scrollY > 200")
