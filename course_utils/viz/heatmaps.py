"""Heatmaps of attention weights and pictures of masks, with the tokens on their axes."""

import numpy as np
from matplotlib.colors import Normalize
from matplotlib.patches import Patch, Rectangle
from matplotlib.patheffects import withStroke

from course_utils.viz.alt_text import read_heatmap, read_mask
from course_utils.viz.arrays import as_grid, as_mask, check_finite, shorten
from course_utils.viz.in_notebook import display_figure
from course_utils.viz.panels import Panels, hatch_cells
from course_utils.viz.style import (
    BLUE,
    DIVERGING,
    INK,
    MASKED,
    MASKED_LINES,
    SEQUENTIAL,
    use_course_style,
)


def show_heatmaps(
    matrices,
    xlabel="Keys",
    ylabel="Queries",
    titles=None,
    figsize=None,
    cmap=None,
    *,
    xticklabels=None,
    yticklabels=None,
    row_titles=None,
    mask=None,
    alignment=None,
    annotate="auto",
    signed=False,
    vmax=None,
    value_name=None,
    show=True,
    alt=None,
):
    """Draw matrices, queries down and keys across, all on one colour scale.

    matrices      (rows, cols, Tq, Tk), (n, Tq, Tk) or (Tq, Tk): torch tensors of any real dtype
                  on any device, with or without gradients, arrays or lists
    titles        one per column, or one per panel; row_titles one per row
    xticklabels   the Tk key tokens, yticklabels the Tq query tokens: all of them are drawn
    mask          boolean, True = this query may look at this key, broadcastable to the matrices;
                  the other cells are hatched in grey, and what they hold is not drawn
    alignment     (query, key) index pairs to outline, such as a gold word alignment
    annotate      write the numbers into the cells: True, False or "auto" (where they fit); an exact
                  zero is "0", and what only rounds to 0.00 is left to its colour
    signed        colours that are white at 0, for values of either sign
    vmax          the value of the last colour (default: the largest value drawn, or 1 if that
                  is at most 0.1 more)
    value_name    stands at the colour bar (default "weight", "value" if signed)
    alt           alt text (default: read from the numbers, see `read_heatmap`)

    Shows the figure and returns None; with show=False returns the matplotlib Figure.
    Raises ValueError for labels, titles, masks or pairs that do not fit, and for NaN.
    """
    grid = as_grid(matrices, "matrices").astype(np.float64)
    shown = np.ones(grid.shape, bool) if mask is None else as_mask(mask, grid.shape)
    check_finite(grid, shown, "matrices")
    panels = Panels(grid.shape, xlabel, ylabel, xticklabels, yticklabels, titles, row_titles)
    pairs = _as_pairs(alignment, *grid.shape[-2:])
    visible = np.where(shown, grid, 0.0)
    norm = _norm(grid[shown], signed, vmax)
    cmap = cmap or (DIVERGING if signed else SEQUENTIAL)
    value_name = value_name or ("value" if signed else "weight")

    with use_course_style():
        figure, axes, sizes = panels.draw(figsize)
        if annotate == "auto":
            annotate = min(sizes.cell) >= 0.36 and grid.size <= 400
        for at, ax in np.ndenumerate(axes):
            image = ax.imshow(visible[at], cmap, norm, aspect="auto", interpolation="nearest")
            hatch_cells(ax, ~shown[at])
            _outline(ax, pairs)
            if annotate:
                _write_numbers(ax, visible[at], shown[at], image, sizes)
        _colour_bar(figure, axes, image, grid[shown], value_name, sizes)
        _legend(figure, not shown.all(), bool(pairs))
    if not show:
        return figure
    if alt is None:
        readings = [
            read_heatmap(visible[at], panels.queries, panels.keys, mask=shown[at])
            for at in np.ndindex(axes.shape)
        ]
        alt = panels.alt(f"{panels.count('heatmap')} of {value_name}", readings)
    display_figure(figure, alt, f"{panels.count('heatmap')}, {panels.size()}")
    return None


def show_mask(
    mask,
    queries=None,
    keys=None,
    titles=None,
    *,
    xlabel="Keys",
    ylabel="Queries",
    row_titles=None,
    figsize=None,
    show=True,
    alt=None,
):
    """Draw a boolean mask, True = this query may look at this key, with tokens on its axes.

    mask (Tq, Tk), (B, Tq, Tk) or (B, h, Tq, Tk): B down and h across; `queries` and `keys` are
    the tokens. Otherwise as `show_heatmaps`.
    """
    grid = as_grid(mask, "mask")
    grid = as_mask(grid, grid.shape)
    panels = Panels(grid.shape, xlabel, ylabel, keys, queries, titles, row_titles)
    with use_course_style():
        figure, axes, sizes = panels.draw(figsize)
        for at, ax in np.ndenumerate(axes):
            ax.set_facecolor(BLUE)
            hatch_cells(ax, ~grid[at])
            if min(sizes.cell) > 0.1:
                _draw_cell_borders(ax, *grid.shape[-2:])
        figure.legend(
            handles=[Patch(facecolor=BLUE, label="True: may look"), _hidden("False: may not look")],
            loc="outside lower center", ncols=2,
        )  # fmt: skip
    if not show:
        return figure
    if alt is None:
        readings = [
            read_mask(grid[at], panels.queries, panels.keys) for at in np.ndindex(axes.shape)
        ]
        alt = panels.alt(panels.count("mask"), readings)
    display_figure(figure, alt, f"{panels.count('mask')}, {panels.size()}")
    return None


def _norm(values, signed, vmax):
    """One colour scale for all panels; it starts at 0 unless values are negative."""
    low, high = (values.min(), values.max()) if values.size else (0.0, 0.0)
    bottom = 0.0 if signed else min(0.0, float(low))
    if vmax is not None and not vmax > bottom:
        raise ValueError(f"vmax, the end of the colour scale, must be above {bottom:g}, got {vmax}")
    if signed:
        top = float(max(abs(low), abs(high)) or 1.0) if vmax is None else float(vmax)
        return Normalize(-top, top)
    low = bottom
    top = float(high if vmax is None else vmax)
    if vmax is None and 0.9 <= top < 1.0:  # weights that nearly reach 1: show that the scale does
        top = 1.0
    return Normalize(low, top if top > low else low + 1.0)


def _as_pairs(alignment, n_queries, n_keys):
    pairs = [(int(q), int(k)) for q, k in (() if alignment is None else alignment)]
    for q, k in pairs:
        if not (0 <= q < n_queries and 0 <= k < n_keys):
            raise ValueError(
                f"alignment has the pair (query {q}, key {k}), "
                f"outside a map of {n_queries} queries and {n_keys} keys"
            )
    return pairs


def _outline(ax, pairs):
    """A white frame with a dark rim: it stands out on every colour of the map."""
    for q, k in pairs:
        ax.add_patch(
            Rectangle((k - 0.42, q - 0.42), 0.84, 0.84, gid="gold", fill=False, edgecolor="white",
                      linewidth=1.8, path_effects=[withStroke(linewidth=3.8, foreground=INK)])
        )  # fmt: skip


def _write_numbers(ax, values, shown, image, sizes):
    size = min(9.0, 72 * min(sizes.cell) / 3.2)
    for (q, k), value in np.ndenumerate(values):
        number = "0" if value == 0 else f"{value:.2f}"
        if shown[q, k] and number not in ("0.00", "-0.00"):
            red, green, blue, _ = image.to_rgba(value)
            dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
            ax.text(k, q, number, ha="center", va="center", fontsize=size,
                    color="white" if dark else INK)  # fmt: skip


def _draw_cell_borders(ax, n_queries, n_keys):
    ax.set_xticks(np.arange(n_keys - 1) + 0.5, minor=True)
    ax.set_yticks(np.arange(n_queries - 1) + 0.5, minor=True)
    ax.tick_params(which="minor", length=0)
    ax.grid(which="minor", color="white", linewidth=1)


def _colour_bar(figure, axes, image, values, label, sizes):
    over = values.size and values.max() > image.norm.vmax
    under = values.size and values.min() < image.norm.vmin
    extend = {(0, 0): "neither", (1, 0): "max", (0, 1): "min", (1, 1): "both"}
    bar = figure.colorbar(image, ax=axes, extend=extend[bool(over), bool(under)],
                          fraction=0.05, pad=0.02, aspect=max(5, 5 * sizes.figure[1]))  # fmt: skip
    bar.set_label(shorten(label), parse_math=False)
    bar.outline.set_visible(False)
    bar.locator.set_params(nbins=max(1, min(6, int(sizes.figure[1] / 0.45))))


def _hidden(label):
    return Patch(facecolor=MASKED, edgecolor=MASKED_LINES, hatch="////", linewidth=0, label=label)


def _legend(figure, masked, aligned):
    handles = [_hidden("masked: may not look")] if masked else []
    if aligned:
        handles.append(Patch(fill=False, edgecolor=INK, linewidth=1.5, label="gold alignment"))
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=2)
