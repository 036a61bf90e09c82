"""How large cells, letters and the whole figure must be for every token to be readable."""

from dataclasses import dataclass
from unicodedata import east_asian_width

import numpy as np

CHARACTER = 0.62  # width of a letter over the font size, on the generous side
_WIDEST = 9.0  # inches for all panels side by side, before cells would get too small to read
_SMALLEST_CELL, _LARGEST_CELL = 0.16, 0.5  # inches
_MARGIN = 0.5  # inches for an axis label and its ticks' marks


@dataclass
class Sizes:
    """Sizes for a figure in which every token can be read: (width, height) each."""

    cell: tuple  # inches
    font: tuple  # points: key labels, query labels
    figure: tuple  # inches
    panel: tuple  # inches
    upright: bool  # the key labels are turned by 90 degrees


def plan(shape, xticklabels, yticklabels, figsize):
    """Sizes for `shape` (rows, cols, Tq, Tk) panels; a given `figsize` is kept."""
    rows, cols, n_queries, n_keys = shape
    if figsize is not None:
        cell = 0.75 * figsize[0] / (cols * n_keys), 0.75 * figsize[1] / (rows * n_queries)
    else:
        cell = _cell(cols, n_queries, n_keys, labelled=bool(xticklabels or yticklabels))
    font = tuple(float(np.clip(72 * side * 0.6, 5, 9)) for side in cell)
    width, height = _longest(xticklabels) * font[0], _longest(yticklabels) * font[1]
    upright = xticklabels is not None and width > 0.95 * cell[0]
    below = _MARGIN + (width if upright else 0.1)
    left = _MARGIN + height
    fitted = (
        max(cols * max(cell[0] * n_keys + 0.15, 0.6) + left + 0.9, 2.6),
        rows * (max(cell[1] * n_queries, 0.5) + 0.35) + below + 0.1,
    )
    panel = cell[0] * n_keys, cell[1] * n_queries
    return Sizes(cell, font, tuple(figsize or fitted), panel, upright)


def _cell(cols, n_queries, n_keys, labelled):
    """Width and height of a cell: square if tokens label it, else free to fill a fair panel."""
    if labelled:
        side = min(5.5 / max(n_queries, n_keys), _WIDEST / (cols * n_keys))
        return (float(np.clip(side, _SMALLEST_CELL, _LARGEST_CELL)),) * 2
    width = min(4.0, _WIDEST / cols)
    cell = min(width / n_keys, _LARGEST_CELL)
    height = float(np.clip(cell * n_queries, min(0.4 * width, _LARGEST_CELL * n_queries), 4.0))
    return cell, height / n_queries


def _longest(labels):
    """Inches that the longest label takes per point of font size; Chinese letters are square."""
    widths = (sum(1 if east_asian_width(c) in "WF" else CHARACTER for c in x) for x in labels or ())
    return max(widths, default=0.0) / 72
