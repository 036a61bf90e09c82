"""The grid of labelled panels under every heatmap and mask: its ticks, titles and words."""

import textwrap
from dataclasses import dataclass

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator

from course_utils.viz.arrays import as_labels
from course_utils.viz.panel_sizes import CHARACTER, plan
from course_utils.viz.style import MASKED, MASKED_LINES, new_figure, write

_MOST_PANELS, _MOST_TOKENS = 400, 1000
_LARGEST_SIDE, _LARGEST_AREA = 200, 10_000  # inches, square inches: 100 million pixels
_MOST_HATCHED = 50_000  # cells; more take long to hatch, and are too small to show it
_LONGEST_ALT = 900  # characters; a screen reader reads for about a minute


@dataclass
class Panels:
    """rows x cols panels of Tq queries and Tk keys, with all that is written around them.

    Tokens that are not given are None; the titles that are not given are empty.
    """

    shape: tuple  # (rows, cols, Tq, Tk)
    xlabel: str
    ylabel: str
    keys: list
    queries: list
    titles: list
    row_titles: list

    def __post_init__(self):
        rows, cols, n_queries, n_keys = self.shape
        self.keys = as_labels(self.keys, n_keys, "key tokens", "columns")
        self.queries = as_labels(self.queries, n_queries, "query tokens", "rows")
        self.titles = _as_titles(self.titles, rows, cols)
        self.row_titles = _as_row_titles(self.row_titles, rows)

    def draw(self, figsize=None):
        """The figure with its empty panels, their axes (rows, cols), and the `Sizes` chosen.

        Tokens stand below the lowest row and left of the first column.
        """
        rows, cols, n_queries, n_keys = self.shape
        sizes = plan(self.shape, self.keys, self.queries, figsize)
        self._check_size(sizes)
        figure, axes = new_figure(rows, cols, sizes.figure, squeeze=False, sharex=True, sharey=True)
        letters = max(8, int(sizes.panel[0] * 72 / (10 * CHARACTER)))
        for (row, col), ax in np.ndenumerate(axes):
            ax.set(xlim=(-0.5, n_keys - 0.5), ylim=(n_queries - 0.5, -0.5))
            ax.spines[:].set_visible(True)
            ax.tick_params(length=2)
            title = "\n".join(textwrap.wrap(self.titles[row][col], letters))
            xlabel, ylabel = self.xlabel if row == rows - 1 else "", "" if col else self.ylabel
            if not col and self.row_titles[row]:
                ylabel = f"{self.row_titles[row]}\n\n{ylabel}"
            write(ax, xlabel, ylabel, title)
        for ax in axes[-1]:
            _set_ticks(ax.xaxis, self.keys, sizes.panel[0], sizes.font[0], sizes.upright)
        for ax in axes[:, 0]:
            _set_ticks(ax.yaxis, self.queries, sizes.panel[1], sizes.font[1])
        return figure, axes, sizes

    def _check_size(self, sizes):
        """ValueError if nobody could read the figure, or wait for it."""
        rows, cols, n_queries, n_keys = self.shape
        width, height = sizes.figure
        if (
            rows * cols > _MOST_PANELS
            or max(len(tokens or ()) for tokens in (self.keys, self.queries)) > _MOST_TOKENS
            or max(width, height) > _LARGEST_SIDE
            or width * height > _LARGEST_AREA
        ):
            raise ValueError(
                f"{rows} x {cols} panels of {n_queries} queries and {n_keys} keys make a figure of "
                f"{width:.0f} x {height:.0f} inches, too large to be read: show a part, or leave "
                "the tokens out"
            )

    def count(self, noun):
        """How many there are: "1 heatmap", "8 masks"."""
        many = self.shape[0] * self.shape[1]
        return f"{many} {noun}{'s' if many > 1 else ''}"

    def size(self):
        return f"{self.shape[2]} x {self.shape[3]}"

    def alt(self, what, readings):
        """Alt text: `what` is drawn, then a reading per panel, as many as a listener can bear."""
        n_queries, n_keys = self.shape[-2:]
        text = f"{what}, {self.ylabel} ({n_queries}) down, {self.xlabel} ({n_keys}) across"
        names = self._panel_names()
        for done, (name, reading) in enumerate(zip(names, readings, strict=True)):
            if done and len(text) + len(reading) > _LONGEST_ALT:
                return f"{text}. And {len(names) - done} more."
            text += f". {name}: {reading}" if name else f". {reading}"
        return text + "."

    def _panel_names(self):
        return [
            ", ".join(filter(None, (row_title, title or above)))
            for row_title, titles in zip(self.row_titles, self.titles, strict=True)
            for title, above in zip(titles, self.titles[0], strict=True)
        ]


def _set_ticks(axis, labels, inches, size, upright=False):
    if labels is None:
        axis.set_major_locator(MaxNLocator(max(1, min(8, int(inches / 0.35))), integer=True))
        return
    axis.set_ticks(range(len(labels)), labels, parse_math=False, fontsize=size)
    if axis.axis_name == "x" and upright:
        axis.set_tick_params(rotation=90)
    elif axis.axis_name == "x":  # one baseline, so that "." and "je" stand in line
        axis.set_tick_params(pad=size + 2)
        for text in axis.get_ticklabels():
            text.set_verticalalignment("baseline")


def _as_titles(titles, rows, cols):
    """rows x cols titles from None, one string, one per column (stands on top), or one each."""
    if titles is None:
        return [[""] * cols for _ in range(rows)]
    titles = [titles] if isinstance(titles, str) else [str(title) for title in titles]
    if len(titles) == cols:
        return [titles] + [[""] * cols for _ in range(rows - 1)]
    if len(titles) == rows * cols:
        return [titles[row * cols : (row + 1) * cols] for row in range(rows)]
    raise ValueError(
        f"titles has {len(titles)} entries for {rows} x {cols} panels: "
        f"give {cols} (one per column) or {rows * cols} (one per panel)"
    )


def _as_row_titles(titles, rows):
    if titles is None:
        return [""] * rows
    titles = [titles] if isinstance(titles, str) else [str(title) for title in titles]
    if len(titles) != rows:
        raise ValueError(f"row_titles has {len(titles)} entries for {rows} rows")
    return titles


def hatch_cells(ax, hidden):
    """Hatch the cells where `hidden` (Tq, Tk) is True: light grey, as no value is drawn."""
    queries, keys = np.nonzero(hidden)
    if not len(queries):
        return
    if len(queries) > _MOST_HATCHED:
        grey = ListedColormap([MASKED])
        ax.imshow(np.ma.masked_where(~hidden, hidden), grey, aspect="auto", gid="masked")
        return
    corners = np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5), (-0.5, -0.5)])
    points = np.stack([keys, queries], -1)[:, None] + corners  # (cells, 5, 2)
    codes = [Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY] * len(queries)
    ax.add_patch(
        PathPatch(Path(points.reshape(-1, 2), codes), gid="masked", hatch="////", linewidth=0,
                  facecolor=MASKED, edgecolor=MASKED_LINES)
    )  # fmt: skip
