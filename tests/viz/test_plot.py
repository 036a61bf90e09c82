"""The plot helpers: what is drawn, what is said about it, and what is refused."""

import os
import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython.core.displaypub import CapturingDisplayPublisher
from matplotlib import colors

from course_utils import viz as plot
from course_utils.viz import charts, in_notebook, style

SOURCE, TARGET = "i'm home . <eos>".split(), "je suis chez moi . <eos>".split()
WEIGHTS = torch.tensor(
    [[0.93, 0.03, 0.02, 0.02], [0.8, 0.1, 0.05, 0.05], [0.05, 0.9, 0.03, 0.02],
     [0.4, 0.55, 0.03, 0.02], [0.25, 0.25, 0.25, 0.25], [0.0, 0.0, 0.0, 0.0]]
)  # fmt: skip
CAUSAL = torch.ones(6, 6, dtype=torch.bool).tril()


@pytest.fixture
def published(monkeypatch):
    """What a notebook's front end would get: a list of {data, metadata}."""
    publisher = CapturingDisplayPublisher()
    monkeypatch.setattr(in_notebook, "_kernel", lambda: SimpleNamespace(display_pub=publisher))
    return publisher.outputs


def panels(figure):
    """The axes of the heatmaps, without the colour bar's."""
    return [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]


def labels(axis):
    """The (place, text) of each label of an axis."""
    texts = [text.get_text() for text in axis.get_ticklabels()]
    return list(zip(axis.get_majorticklocs().tolist(), texts, strict=True))


def masked_cells(ax):
    """The (query, key) cells under the hatched patch."""
    found = [patch for patch in ax.patches if patch.get_gid() == "masked"]
    if not found:
        return set()
    corners = found[0].get_path().vertices.reshape(-1, 5, 2)[:, :4].mean(1)
    return {(int(q), int(k)) for k, q in corners}


# Labels


def test_every_token_stands_at_the_middle_of_its_cell():
    figure = plot.show_heatmaps(WEIGHTS, xticklabels=SOURCE, yticklabels=TARGET, show=False)
    ax = panels(figure)[0]
    assert labels(ax.xaxis) == list(enumerate(SOURCE))
    assert labels(ax.yaxis) == list(enumerate(TARGET))
    assert ax.images[0].get_extent() == [-0.5, 3.5, 5.5, -0.5]  # cell k is centred on k
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("Keys", "Queries")


@pytest.mark.parametrize(("n_queries", "n_keys"), [(30, 25), (60, 60), (1, 60), (60, 1), (1, 1)])
def test_long_sentences_keep_all_labels_and_none_overlap(n_queries, n_keys):
    queries, keys = [f"mot{i}" for i in range(n_queries)], [f"word{i}" for i in range(n_keys)]
    figure = plot.show_heatmaps(
        np.ones((n_queries, n_keys)), xticklabels=keys, yticklabels=queries, show=False
    )
    figure.draw_without_rendering()
    ax = panels(figure)[0]
    assert [text for _, text in labels(ax.xaxis)] == keys
    assert [text for _, text in labels(ax.yaxis)] == queries
    for axis, side in ((ax.xaxis, "intervalx"), (ax.yaxis, "intervaly")):
        ends = [getattr(t.get_window_extent(), side) for t in axis.get_ticklabels()]
        ends = sorted(tuple(end) for end in ends)
        assert all(b[0] >= a[1] for a, b in zip(ends, ends[1:], strict=False))
        assert min(t.get_fontsize() for t in axis.get_ticklabels()) >= 6


def test_chinese_words_are_turned_where_they_would_overlap():
    for word, turned in (("注意", 0), ("自注意力", 90)):
        figure = plot.show_heatmaps(np.eye(12), xticklabels=[word] * 12, show=False)
        assert {label.get_rotation() for label in figure.axes[0].get_xticklabels()} == {turned}


def test_repeated_words_keep_a_row_each():
    words = "the cat saw the dog .".split()
    figure = plot.show_heatmaps(np.eye(6), xticklabels=words, yticklabels=words, show=False)
    assert labels(panels(figure)[0].yaxis) == list(enumerate(words))


def test_all_panels_of_a_grid_show_the_same_tokens():
    figure = plot.show_heatmaps(
        WEIGHTS.expand(2, 3, 6, 4), xticklabels=SOURCE, yticklabels=TARGET, show=False
    )
    axes = np.array(panels(figure)).reshape(2, 3)
    for ax in axes[-1]:
        assert labels(ax.xaxis) == list(enumerate(SOURCE))
        assert {t.get_fontsize() for t in ax.get_xticklabels()} == {9}
    for ax in axes[:, 0]:
        assert labels(ax.yaxis) == list(enumerate(TARGET))
    assert [ax.get_xlabel() for ax in axes.flat] == [""] * 3 + ["Keys"] * 3
    assert [ax.get_ylabel() for ax in axes.flat] == ["Queries", "", ""] * 2


def test_tokens_are_drawn_as_they_are():
    tokens = ["$5", "$", " a", "\n", ""]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = plot.show_heatmaps(np.eye(5), xticklabels=tokens, yticklabels=tokens, show=False)
        in_notebook.png_bytes(figure)
    assert [t for _, t in labels(panels(figure)[0].xaxis)] == ["$5", "$", "␣a", "\\n", "''"]
    assert not any(t.get_parse_math() for t in panels(figure)[0].get_xticklabels())


def test_letters_without_a_font_give_one_warning_and_are_named_once(monkeypatch):
    """matplotlib/matplotlib#15062: a warning for each glyph, and boxes."""
    monkeypatch.setattr(style, "fonts", lambda: ["DejaVu Sans"])
    monkeypatch.setattr(style, "_MISSED", set())

    def drawn(words):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            figure = plot.show_heatmaps(np.eye(2), "Keys", "Queries", yticklabels=words, show=False)
            in_notebook.png_bytes(figure)
        return [str(warning.message) for warning in caught]

    (said,) = drawn(["猫", "狗"])
    assert said.startswith("no installed font has 狗猫: drawn as boxes. Install")
    assert "Noto Sans CJK SC" in said
    assert drawn(["猫", "cat"]) == []
    (said,) = drawn(["猫", "แ"])  # another script is another letter
    assert said.startswith("no installed font has แ:")


def test_a_font_that_matplotlib_has_not_listed_yet_is_found(monkeypatch):
    """Its list is made once, and knows no font that was installed later."""
    later = style.font_manager.findfont("DejaVu Serif")
    seen = []
    monkeypatch.setattr(style.font_manager, "findSystemFonts", lambda: [later, "none.ttf"])
    monkeypatch.setattr(style.font_manager.fontManager, "ttflist", [])
    monkeypatch.setattr(style.font_manager.fontManager, "addfont", seen.append)
    style.fonts.__wrapped__()
    assert sorted(seen) == sorted([later, "none.ttf"])


def test_other_warnings_while_drawing_are_heard():
    with pytest.warns(DeprecationWarning, match="old"), plot.use_course_style():
        warnings.warn("old", DeprecationWarning, stacklevel=1)


def test_titles_stand_per_column_or_per_panel_and_rows_have_names():
    grid = torch.rand(2, 2, 3, 3)
    tops = panels(plot.show_heatmaps(grid, titles=["a", "b"], row_titles=["x", "y"], show=False))
    assert [ax.get_title() for ax in tops] == ["a", "b", "", ""]
    assert [ax.get_ylabel() for ax in tops] == ["x\n\nQueries", "", "y\n\nQueries", ""]
    each = panels(plot.show_heatmaps(grid, titles=list("abcd"), show=False))
    assert [ax.get_title() for ax in each] == list("abcd")
    assert panels(plot.show_heatmaps(grid[0, 0], titles="one", show=False))[0].get_title() == "one"


# Numbers and colours


@pytest.mark.parametrize("shape", [(5, 7), (1, 5, 7), (2, 4, 5, 7)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_any_float_tensor_is_drawn_with_its_values(shape, dtype):
    weights = torch.rand(shape, dtype=dtype, requires_grad=True)
    figure = plot.show_heatmaps(weights, show=False)
    drawn = np.stack([ax.images[0].get_array() for ax in panels(figure)])
    assert np.array_equal(drawn, weights.detach().double().numpy().reshape(-1, 5, 7))
    assert weights.grad is None
    assert weights.requires_grad


def test_lists_of_tensors_and_whole_numbers_are_drawn():
    figure = plot.show_heatmaps([torch.eye(2, requires_grad=True), torch.zeros(2, 2)], show=False)
    assert [ax.images[0].get_array().sum() for ax in panels(figure)] == [2, 0]
    figure = plot.show_heatmaps([[1, 2], [3, 4]], show=False)
    assert panels(figure)[0].images[0].get_array().tolist() == [[1, 2], [3, 4]]


def test_all_panels_share_one_scale_and_one_colour_bar():
    figure = plot.show_heatmaps(torch.stack([torch.eye(3), 4 * torch.eye(3)]), show=False)
    assert [ax.images[0].get_clim() for ax in panels(figure)] == [(0, 4), (0, 4)]
    bars = [ax for ax in figure.axes if ax.get_label() == "<colorbar>"]
    assert [bar.get_ylabel() for bar in bars] == ["weight"]
    assert {ax.images[0].get_cmap().name for ax in panels(figure)} == {"viridis"}


def test_signed_maps_are_white_at_zero():
    figure = plot.show_heatmaps([[-1.0, 0.0], [0.5, 0.2]], signed=True, show=False)
    image = panels(figure)[0].images[0]
    assert image.get_clim() == (-1, 1)
    assert min(image.to_rgba(0.0)[:3]) > 0.95


def test_no_colour_is_lost_beyond_vmax_and_negative_values_keep_theirs():
    capped = plot.show_heatmaps([[0.1, 0.9]], vmax=0.5, show=False)
    assert panels(capped)[0].images[0].colorbar.extend == "max"
    for values, scale in (([[-2.0, 3.0]], (-2, 3)), (np.zeros((2, 2)), (0, 1))):
        ax = panels(plot.show_heatmaps(values, show=False))[0]
        assert ax.images[0].get_clim() == scale


@pytest.mark.parametrize(("options", "bottom"), [({}, "0"), ({"signed": True}, "0")])
@pytest.mark.parametrize("vmax", [0, 0.0, -1.0, float("nan")])
def test_an_end_of_the_scale_that_is_no_end_is_refused(options, bottom, vmax):
    with pytest.raises(ValueError, match=f"vmax, .* must be above {bottom}, got {vmax}"):
        plot.show_heatmaps([[0.1, 0.9]], vmax=vmax, show=False, **options)


def test_small_maps_carry_their_numbers_and_large_ones_do_not():
    small = panels(plot.show_heatmaps([[0.125, 0.875]], show=False))[0]
    assert [text.get_text() for text in small.texts] == ["0.12", "0.88"]
    dark, light = (colors.to_rgb(text.get_color()) for text in small.texts)
    assert sum(dark) > sum(light)  # white on the dark end, dark on the light end
    assert not panels(plot.show_heatmaps(np.eye(40), show=False))[0].texts
    assert not panels(plot.show_heatmaps(np.eye(2), annotate=False, show=False))[0].texts


def test_an_exact_zero_is_told_from_one_that_is_rounded():
    ax = panels(plot.show_heatmaps([[0.0, 0.004], [0.006, -0.004]], signed=True, show=False))[0]
    assert {text.get_position(): text.get_text() for text in ax.texts} == {
        (0, 0): "0", (0, 1): "0.01",
    }  # fmt: skip


@pytest.mark.parametrize(("largest", "end"), [(0.89, 0.89), (0.93, 1.0), (1.0, 1.0), (1.2, 1.2)])
def test_a_scale_that_nearly_reaches_one_ends_there(largest, end):
    image = panels(plot.show_heatmaps([[0.1, largest]], show=False))[0].images[0]
    assert image.get_clim() == (0, end)
    kept = plot.show_heatmaps([[0.1, 0.93]], vmax=0.95, show=False)
    assert panels(kept)[0].images[0].get_clim() == (0, 0.95)


# Masks and alignments


def test_masked_cells_are_hatched_and_carry_no_number():
    scores = torch.rand(6, 6).masked_fill(~CAUSAL, float("-inf"))
    ax = panels(plot.show_heatmaps(scores, mask=CAUSAL, show=False))[0]
    assert masked_cells(ax) == {(q, k) for q in range(6) for k in range(6) if k > q}
    assert len(ax.texts) == 21
    patch = next(p for p in ax.patches if p.get_gid() == "masked")
    assert patch.get_hatch() == "////"
    zero = ax.images[0].to_rgba(0.0)
    assert np.abs(np.subtract(patch.get_facecolor(), zero)).max() > 0.3


def test_a_mask_is_broadcast_over_the_panels():
    mask = torch.tensor([[True, True, False, False]])  # padding, the same for all queries
    figure = plot.show_heatmaps(WEIGHTS.expand(2, 2, 6, 4), mask=mask, show=False)
    cells = {(q, k) for q in range(6) for k in (2, 3)}
    assert [masked_cells(ax) for ax in panels(figure)] == [cells] * 4
    keep = torch.ones(2, 1, 1, 4, dtype=torch.bool)
    keep[1, ..., 3] = False
    figure = plot.show_heatmaps(WEIGHTS.expand(2, 2, 6, 4), mask=keep, show=False)
    assert [len(masked_cells(ax)) for ax in panels(figure)] == [0, 0, 6, 6]
    assert "masked" in figure.legends[0].get_texts()[0].get_text()


def test_the_gold_alignment_is_outlined():
    gold = [(0, 0), (1, 0), (3, 1)]
    figure = plot.show_heatmaps(WEIGHTS, alignment=iter(gold), show=False)
    frames = [patch for patch in panels(figure)[0].patches if patch.get_gid() == "gold"]
    centres = [(p.get_y() + p.get_height() / 2, p.get_x() + p.get_width() / 2) for p in frames]
    assert np.allclose(centres, gold)
    assert figure.legends[0].get_texts()[0].get_text() == "gold alignment"


@pytest.mark.parametrize("shape", [(6, 6), (2, 6, 6), (2, 3, 6, 6)])
def test_show_mask_draws_what_the_mask_says(shape):
    figure = plot.show_mask(CAUSAL.expand(shape), TARGET, TARGET, show=False)
    axes = panels(figure)
    assert len(axes) == CAUSAL.expand(shape).numel() // 36
    future = {(q, k) for q in range(6) for k in range(q + 1, 6)}
    assert [masked_cells(ax) for ax in axes] == [future] * len(axes)
    assert labels(axes[-1].xaxis)[3] == (3, "moi")
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words == ["True: may look", "False: may not look"]


# What is said


def test_the_reading_of_a_known_matrix():
    assert plot.read_heatmap(WEIGHTS, TARGET, SOURCE) == (
        "je looks most at i'm (0.93); suis looks most at i'm (0.80); chez looks most at home "
        "(0.90); moi splits its weight between home (0.55) and i'm (0.40); . spreads its weight "
        "over 4 keys; <eos> looks at nothing"
    )


def test_a_reading_tells_equal_words_apart_and_stays_short():
    words = ["the", "cat", "the", "dog"]
    assert plot.read_heatmap(np.eye(4), words, words, limit=3) == (
        "the[0] looks most at the[0] (1.00); cat looks most at cat (1.00); "
        "the[2] looks most at the[2] (1.00); and 1 more query"
    )
    three = plot.read_heatmap([[0.45, 0.2, 0.2, 0.15]])
    assert three == "query 0 looks at key 0 (0.45), key 1 (0.20), key 2 (0.20) and others"


def test_numbers_that_are_no_weights_are_read_by_their_ends():
    scores = [[-1.5, 0.0], [2.0, 7.0]]
    reading = plot.read_heatmap(scores, ["a", "b"], ["c", "d"])
    assert reading == "values from -1.50 (a, c) to 7.00 (b, d)"
    mask = [[True, True], [True, False]]
    assert plot.read_heatmap(scores, mask=mask).endswith("to 2.00 (query 1, key 0)")


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**31))
def test_the_first_key_named_is_the_heaviest(n_queries, n_keys, seed):
    scores = 4 * np.random.default_rng(seed).normal(size=(n_queries, n_keys))
    weights = torch.softmax(torch.tensor(scores), -1)
    parts = plot.read_heatmap(weights, limit=9).split("; ")
    assert len(parts) == n_queries
    for row, part in zip(weights, parts, strict=True):
        if "spreads" in part:
            assert row.max() < 1.5 / n_keys
        else:
            assert part.split("key ")[1].split(" ")[0] == str(row.argmax().item())


@pytest.mark.parametrize(
    ("mask", "reading"),
    [
        (np.ones((2, 3), bool), "every query may look at every key"),
        (np.tri(3, dtype=bool), "each query may look at itself and at what stands before it"),
        (np.array([[1, 1, 0]] * 2, bool), "every query may look at key 0 and key 1"),
        (np.array([[0, 0, 0], [1, 0, 1]], bool),
         "query 0 may look at nothing; query 1 may look at key 0 and key 2"),
        (np.arange(9).reshape(1, 9) < 7, "every query may look at 7 keys, key 0 to key 6"),
    ],
)  # fmt: skip
def test_the_reading_of_a_mask(mask, reading):
    assert plot.read_mask(mask) == reading


def test_alt_text_is_made_from_the_data_and_travels_as_metadata(published):
    result = plot.show_heatmaps(
        WEIGHTS.expand(2, 6, 4), xticklabels=SOURCE, yticklabels=TARGET, titles=["one", "two"]
    )
    assert result is None
    (shown,) = published
    alt = shown["metadata"]["image/png"]["alt"]
    assert alt.startswith("2 heatmaps of weight, Queries (6) down, Keys (4) across. one: je looks")
    assert f"two: {plot.read_heatmap(WEIGHTS, TARGET, SOURCE)}" in alt
    assert shown["data"]["text/plain"] == "<Figure: 2 heatmaps, 6 x 4>"


def test_alt_text_of_many_panels_is_cut_between_panels(published):
    plot.show_heatmaps(WEIGHTS.expand(2, 4, 6, 4), xticklabels=SOURCE, yticklabels=TARGET)
    alt = published[0]["metadata"]["image/png"]["alt"]
    assert len(alt) < 1000
    assert alt.endswith("<eos> looks at nothing. And 4 more.")


def test_every_helper_shows_one_png_with_its_own_words(published):
    plot.show_mask(CAUSAL)
    plot.plot_curves([1, 2, 3], {"train": [3.0, 1.0, 2.0], "test": [3, 2, 1]}, "epoch", "loss")
    bars = {"with": [30, 20], "without": [29, 7]}
    plot.plot_bars(["short", "long"], bars, "length", "BLEU", digits=0)
    assert [shown["data"]["text/plain"] for shown in published] == [
        "<Figure: 1 mask, 6 x 6>", "<Figure: 2 curves>", "<Figure: bars, 2 groups x 2>"
    ]  # fmt: skip
    assert [shown["metadata"]["image/png"]["alt"] for shown in published] == [
        "1 mask, Queries (6) down, Keys (6) across. "
        "each query may look at itself and at what stands before it.",
        "Line chart: loss against epoch. train goes from 3 at 1 to 2 at 3, lowest 1 at 2. "
        "test goes from 3 at 1 to 1 at 3.",
        "Bar chart: BLEU by length. with: short 30, long 20. without: short 29, long 7.",
    ]
    plot.show_mask(CAUSAL, alt="my own words")
    assert published[-1]["metadata"]["image/png"]["alt"] == "my own words"
    with pytest.raises(ValueError, match="no alt text"):
        plot.display_figure(plot.new_figure()[0], "  ")


def test_the_same_figure_is_the_same_file():
    one, two = (in_notebook.png_bytes(plot.show_heatmaps(WEIGHTS, show=False)) for _ in range(2))
    assert one == two
    assert one[:8] == b"\x89PNG\r\n\x1a\n"


def test_kernels_show_and_terminals_do_not(monkeypatch):
    shell = SimpleNamespace(kernel=object())
    for found, wanted in ((shell, shell), (SimpleNamespace(), None), (None, None)):
        fake = SimpleNamespace(get_ipython=lambda found=found: found)
        monkeypatch.setitem(sys.modules, "IPython", fake)
        assert in_notebook._kernel() is wanted


# Curves and bars


def test_curves_are_told_apart_without_colour_and_named_at_their_ends():
    curves = {name: np.full(5, float(i)) for i, name in enumerate("abcdefg")}
    ax = plot.plot_curves(range(5), curves, "x", "y", show=False).axes[0]
    assert len({line.get_linestyle() for line in ax.lines}) >= 4
    assert len({line.get_marker() for line in ax.lines}) == 7
    assert len({line.get_color() for line in ax.lines}) == 7
    heights = {text.get_text(): text.xyann[1] for text in ax.texts}
    assert list(heights) == list("abcdefg")
    assert sorted(heights.values()) == list(heights.values())


def test_names_at_the_ends_do_not_overlap():
    curves = {f"curve {i}": [0.0, 1.0 + 0.1 * i] for i in range(7)}
    figure = plot.plot_curves([0, 1], curves, "x", "y", show=False)
    figure.draw_without_rendering()
    assert len(figure.axes[0].texts) == 7
    ends = sorted(tuple(t.get_window_extent().intervaly) for t in figure.axes[0].texts)
    assert all(b[0] >= a[1] for a, b in zip(ends, ends[1:], strict=False))


def test_where_ends_crowd_a_legend_names_the_curves():
    curves = {f"curve {i}": [float(i), 1.0] for i in range(5)}
    points = {"data": ([0.5], [2.0])}
    ax = plot.plot_curves([0, 1], curves, "x", "y", points=points, show=False).axes[0]
    assert not ax.texts
    assert sorted(t.get_text() for t in ax.get_legend().get_texts()) == sorted([*curves, "data"])


def test_a_curve_that_ends_early_is_named_where_it_ends():
    curves = {"short": ([0, 1], [0.0, 2.0]), "dot": ([3], [1.0]), "long": ([0, 9], [0.0, 3.0])}
    ax = plot.plot_curves([], curves, "x", "y", show=False).axes[0]
    places = {text.get_text(): (text.xycoords, tuple(text.xy)) for text in ax.texts}
    assert places["short"] == ("data", (1, 2))
    assert places["dot"] == ("data", (3, 1))
    assert places["long"][0] == "axes fraction"


def test_names_stay_below_the_top_and_apart():
    assert charts._keep_below(100, [103, 5, 98], 12) == [100, 5, 88]
    assert charts._keep_below(100, [90, 50], 12) == [90, 50]


def test_whole_numbers_have_no_ticks_between_them():
    loss = {"loss": [2.0, 0.5, 0.2, 0.1]}
    figure = plot.plot_curves([1, 2, 3, 4], loss, "epoch", "loss", show=False)
    figure.draw_without_rendering()
    assert all(float(tick).is_integer() for tick in figure.axes[0].get_xticks())


@settings(deadline=None, derandomize=True)
@given(st.lists(st.floats(0, 100), min_size=1, max_size=7))
def test_spread_keeps_order_and_moves_no_more_than_it_must(heights):
    spread = charts._spread(heights, 12)
    order = np.argsort(heights, kind="stable")
    assert (np.diff(np.array(spread)[order]) >= 12 - 1e-9).all()
    assert np.isclose(np.mean(spread), np.mean(heights))
    if (np.diff(np.array(heights)[order]) >= 12).all():
        assert np.allclose(spread, heights)


def test_a_curve_that_breaks_off_is_drawn_and_said(published):
    plot.plot_curves([1, 2, 3], {"loss": [1.0, 2.0, float("nan")]}, "step", "loss")
    alt = published[0]["metadata"]["image/png"]["alt"]
    assert alt.endswith("loss goes from 1 at 1 to 2 at 2; 1 points are not finite.")


def test_points_log_axes_and_own_x():
    figure = plot.plot_curves(
        [1, 10, 100], {"a": [1, 2, 3], "b": ([2, 20], [1, 1])}, "d", "ms", "Cost",
        log="xy", points={"measured": ([1, 5], [2, 4])}, show=False,
    )  # fmt: skip
    ax = figure.axes[0]
    assert (ax.get_xscale(), ax.get_yscale(), ax.get_title()) == ("log", "log", "Cost")
    assert ax.lines[1].get_xdata().tolist() == [2, 20]
    assert ax.collections[0].get_offsets().tolist() == [[1, 2], [5, 4]]
    assert [t for _, t in labels(ax.xaxis)] == ["1", "2", "10", "20", "100"]


def test_bars_carry_their_values():
    bars = {"a": torch.tensor([1.0, float("nan")]), "b": [3, 4]}
    ax = plot.plot_bars(["x", "y"], bars, "g", "v", digits=1, show=False).axes[0]
    assert [p.get_height() for p in ax.patches] == [1, 0, 3, 4]
    assert [t.get_text() for t in ax.texts] == ["1.0", "none", "3.0", "4.0"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["x", "y"]


# What is refused

HEATMAP_ERRORS = [
    ({"xticklabels": list("abcdef")}, "6 labels for 7 columns"),
    ({"yticklabels": list("abc")}, "3 labels for 5 rows"),
    ({"xticklabels": "a b"}, "list of tokens, got one string"),
    ({"titles": ["a", "b", "c"]}, "titles has 3 entries for 1 x 1 panels"),
    ({"row_titles": ["a", "b"]}, "row_titles has 2 entries for 1 rows"),
    ({"mask": torch.ones(5, 7)}, "mask must be boolean"),
    ({"mask": torch.ones(7, 5, dtype=torch.bool)}, r"\(7, 5\) does not broadcast"),
    ({"alignment": [(5, 0)]}, r"pair \(query 5, key 0\)"),
    ({"alignment": [(0, -1)]}, r"pair \(query 0, key -1\)"),
]


@pytest.mark.parametrize(("options", "message"), HEATMAP_ERRORS)
def test_options_that_do_not_fit_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        plot.show_heatmaps(torch.rand(5, 7), **options)


@pytest.mark.parametrize(
    ("matrices", "message"),
    [
        (torch.rand(7), "got 1, of shape"),
        (torch.rand(1, 1, 1, 2, 2), "got 5, of shape"),
        (torch.rand(0, 3), "empty"),
        ([[0.5, float("nan")]], r"the first is nan at \(row, col, query, key\) = \(0, 0, 0, 1\)"),
        ([[0.5, float("-inf")]], "belong in mask="),
        (torch.zeros(2, 2, dtype=torch.complex64), "complex"),
        ([torch.eye(2), torch.eye(3)], "unequal shapes"),
        ("weights", "must hold real numbers"),
    ],
)
def test_matrices_that_cannot_be_drawn_are_refused(matrices, message):
    with pytest.raises(ValueError, match=message):
        plot.show_heatmaps(matrices)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plot.plot_curves([1, 2], {"a": [1, 2, 3]}, "x", "y"), r"\(3,\).*\(2,\)"),
        (lambda: plot.plot_curves([1], {}, "x", "y"), "got 0"),
        (lambda: plot.plot_curves([1], {str(i): [1] for i in range(8)}, "x", "y"), "got 8"),
        (lambda: plot.plot_curves([0, 1], {"a": [1, 2]}, "x", "y", log="x"), "x values <= 0"),
        (lambda: plot.plot_curves([1], {"a": [1]}, "x", "y", log="z"), "got 'z'"),
        (lambda: plot.plot_curves([1], {"a": [float("nan")]}, "x", "y"), "no finite point"),
        (lambda: plot.plot_bars(["a"], {"b": [1, 2]}, "x", "y"), r"\(2,\).*1 groups"),
        (lambda: plot.show_mask(torch.ones(2, 2)), "must be boolean"),
        (lambda: plot.read_heatmap(torch.ones(2, 2, 2)), "one matrix"),
        (lambda: plot.read_mask([True, False]), r"\(2,\)"),
    ],
)
def test_other_helpers_refuse_with_a_reason(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# Nothing is left behind


def test_25_figures_of_each_kind_leave_nothing_and_warn_of_nothing(published, monkeypatch):
    monkeypatch.setattr(in_notebook, "png_bytes", lambda figure: b"")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    open_before, style_before = pyplot.get_fignums(), dict(pyplot.rcParams)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in range(25):
            plot.show_heatmaps(torch.rand(2, 2), "k", "q", figsize=(2, 2), annotate=False)
            plot.show_mask(torch.rand(2, 2) > 0.5, figsize=(2, 2))
            plot.plot_curves([0, 1], {"a": [0, step]}, "x", "y", figsize=(1.5, 1))
            plot.plot_bars(["a"], {"b": [step]}, "x", "y", figsize=(1.5, 1))
    assert len(published) == 100  # each once, none twice
    assert pyplot.get_fignums() == open_before
    assert dict(pyplot.rcParams) == style_before


def test_a_pyplot_figure_is_closed_after_it_was_shown(published):
    from matplotlib import pyplot

    figure = pyplot.figure()
    plot.display_figure(figure, "an empty figure")
    assert figure.number not in pyplot.get_fignums()
    assert len(published) == 1


def test_importing_and_drawing_need_no_screen_and_choose_no_backend():
    code = (
        "import sys, course_utils.viz as plot\n"
        "from course_utils.viz.in_notebook import png_bytes\n"
        "png_bytes(plot.show_heatmaps([[1.0, 0.0]], show=False))\n"
        "plot.plot_curves([0, 1], {'a': [0, 1]}, 'x', 'y')\n"
        "assert not {'matplotlib.pyplot', 'tkinter', 'torch', 'seaborn'} & set(sys.modules)\n"
    )
    bare = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "MPLBACKEND")}
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, env=bare)


# Any text


HOSTILE = ["$x^2$", "_private", "a $ b $ c", "_", "$\\frac{$"]


def texts(figure):
    from matplotlib.text import Text

    return [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]


@pytest.mark.parametrize("name", HOSTILE)
def test_every_text_is_drawn_as_it_is(name):
    figures = {
        "heatmap": plot.show_heatmaps(
            torch.rand(2, 3, 3), name, name, titles=[name, name], row_titles=[name],
            xticklabels=[name] * 3, value_name=name, show=False,
        ),
        "mask": plot.show_mask(CAUSAL, TARGET, TARGET, [name], xlabel=name, show=False),
        "ends": plot.plot_curves([0, 1], {name: [0, 1], "b": [1, 0]}, name, name, name,
                                 points={f"{name}.": ([0], [0])}, show=False),
        "legend": plot.plot_curves([0, 1], {name: [0, 1], "b": [1, 1], "c": [2, 1], "d": [3, 1],
                                            "e": [4, 1]}, name, name, show=False),
        "bars": plot.plot_bars([name], {name: [1], "b": [2]}, name, name, name, show=False),
    }  # fmt: skip
    wanted = {"heatmap": 12, "mask": 2, "ends": 5, "legend": 3, "bars": 5}
    for kind, figure in figures.items():
        figure.draw_without_rendering()
        found = [text for text in texts(figure) if name in text.get_text().replace("\n", " ")]
        assert len(found) == wanted[kind], kind
        assert not any(text.get_parse_math() for text in found), kind


def test_a_text_without_end_is_cut():
    long = "word " * 1000
    figures = [
        plot.show_heatmaps([[1.0]], long, long, [long], xticklabels=[long], value_name=long,
                           row_titles=[long], show=False),
        plot.plot_curves([0, 1], {long: [0, 1], "b": [1, 0]}, long, long, long, show=False),
        plot.plot_bars([long], {long: [1], "b": [2]}, long, long, long, show=False),
    ]  # fmt: skip
    for figure in figures:
        found = [text.get_text() for text in texts(figure) if "word" in text.get_text()]
        assert len(found) >= 4
        assert all(text.endswith("…") and len(text) <= 130 for text in found)
    kept = "x" * 60
    figure = plot.show_heatmaps([[1.0]], xticklabels=[kept], show=False)
    assert [text for _, text in labels(panels(figure)[0].xaxis)] == [kept]


@pytest.mark.parametrize(
    ("shape", "labelled"), [((2, 3000), True), ((1000, 1000), True), ((30, 30, 1, 1), False)]
)
def test_what_nobody_could_read_is_refused(shape, labelled):
    tokens = [f"t{i}" for i in range(shape[-1])] if labelled else None
    with pytest.raises(ValueError, match="too large to be read: show a part"):
        plot.show_heatmaps(np.zeros(shape), xticklabels=tokens)


def test_a_large_mask_is_grey_without_hatching():
    hidden = ~np.tri(400, dtype=bool)
    ax = panels(plot.show_mask(~hidden, show=False))[0]
    assert masked_cells(ax) == set()
    grey = ax.images[0].get_array()
    assert (np.ma.getmaskarray(grey) == ~hidden).all()


def test_more_kinds_of_points_than_marks_are_refused():
    with pytest.raises(ValueError, match="points: give 1 to 7 of them, got 8"):
        plot.plot_curves([0], {"a": [0]}, "x", "y", points={str(i): ([0], [0]) for i in range(8)})


def test_curves_whose_ends_all_lie_outside_the_drawn_range():
    curves = {"a": [5.0, 6.0], "b": [7.0, 8.0]}
    ax = plot.plot_curves([1, 2], curves, "x", "y", ylim=(0, 4), show=False).axes[0]
    assert ax.get_ylim() == (0, 4)


def test_runs_are_drawn_one_row_a_name_with_mean_and_spread():
    runs = {"full": [0.8, 0.9, 1.0], "head only": [0.5]}
    ax = plot.plot_spread(runs, "accuracy", show=False).axes[0]
    assert [text for _, text in labels(ax.yaxis)] == ["full", "head only"]
    assert [len(dots.get_offsets()) for dots in ax.collections[:2]] == [3, 1]
    (bars,) = ax.containers
    assert bars[0].get_xdata().tolist() == pytest.approx([0.9, 0.5])
    ends = [x for x, _ in bars[2][0].get_segments()[0]]
    assert ends == pytest.approx([0.8, 1.0])
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first name stands on top


@pytest.mark.parametrize("runs", [{}, {"a": []}, {"a": [1.0, float("nan")]}, {"a": [[1.0]]}])
def test_runs_that_cannot_be_drawn_are_refused(runs):
    with pytest.raises(ValueError, match="at least one name, and finite numbers"):
        plot.plot_spread(runs, "accuracy", show=False)
