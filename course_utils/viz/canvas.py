"""The pen of every diagram: boxes, arrows, words and grids of cells, measured in inches.

A hash of what stands on the sheet travels in the SVG file, so a test can tell whether a file in
figures/ still shows what the code draws, with any matplotlib.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
from matplotlib.colors import to_hex, to_rgb, to_rgba
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.path import Path
from matplotlib.text import Text

from course_utils.viz import style
from course_utils.viz.style import BLUE, FAINT, GREEN, INK, ORANGE, PINK, SKY, VERMILION

# What a colour stands for, the same in every diagram.
QUERY, KEY, VALUE, WEIGHT = BLUE, VERMILION, GREEN, PINK
LEARNED, STEP, RESULT = ORANGE, FAINT, SKY  # weights to train, plain computation, what comes out

SMALL, NORMAL, LARGE = 8.5, 10, 12  # points


def tint(colour, amount=0.82):
    """The colour mixed with white: a background on which dark text can be read."""
    return to_hex(amount + (1 - amount) * np.array(to_rgb(colour)))


@dataclass(frozen=True)
class Box:
    """A box that was drawn; its edges are where arrows start and end."""

    x: float
    y: float
    width: float
    height: float

    def at(self, across, up):
        """A point on or in the box: (-1, -1) is the lower left corner, (1, 1) the upper right."""
        return self.x + across * self.width / 2, self.y + up * self.height / 2

    top = property(lambda self: self.at(0, 1))
    bottom = property(lambda self: self.at(0, -1))
    left = property(lambda self: self.at(-1, 0))
    right = property(lambda self: self.at(1, 0))


class Canvas:
    """A white sheet of `width` x `height` inches; (0, 0) is its lower left corner."""

    def __init__(self, width=8.0, height=4.0):
        self.width, self.height = width, height
        self.figure = Figure(figsize=(width, height), facecolor="white")
        self.axes = self.figure.add_axes((0, 0, 1, 1), frameon=False)
        self.axes.set(xlim=(0, width), ylim=(0, height), xticks=[], yticks=[])

    def box(self, x, y, text="", colour=STEP, width=1.5, height=0.42, size=NORMAL, dashed=False):
        """A box round (x, y) with text in it."""
        corner = x - width / 2, y - height / 2
        self.axes.add_patch(
            FancyBboxPatch(corner, width, height, boxstyle="round,pad=0,rounding_size=0.06",
                           facecolor=tint(colour), edgecolor=colour, linewidth=1.2,
                           linestyle="--" if dashed else "-", zorder=2)
        )  # fmt: skip
        self._write(x, y, text, size=size, ha="center", va="center")
        return Box(x, y, width, height)

    def frame(self, left, bottom, right, top, text="", colour=STEP):
        """A pale area behind other things, named in its upper left corner."""
        self.axes.add_patch(
            FancyBboxPatch((left, bottom), right - left, top - bottom, zorder=0.5,
                           boxstyle="round,pad=0,rounding_size=0.12", linewidth=1,
                           facecolor=tint(colour, 0.93), edgecolor=tint(colour, 0.5))
        )  # fmt: skip
        self._write(left + 0.12, top - 0.1, text, weight="bold", ha="left", va="top")

    def arrow(self, *points, text="", side="right", colour=INK, dashed=False, head=True, at=None):
        """An arrow through the points. Its text stands beside the middle of the longest part,
        or at the point `at`."""
        self.axes.add_patch(
            FancyArrowPatch(path=Path(points), arrowstyle="-|>" if head else "-", color=colour,
                            linewidth=1.3, linestyle="--" if dashed else "-", mutation_scale=11,
                            shrinkA=0, shrinkB=0, joinstyle="round", zorder=1.5)
        )  # fmt: skip
        if text:
            parts = list(zip(points, points[1:], strict=False))
            start, end = max(parts, key=lambda part: np.hypot(*np.subtract(*part)))
            x, y = at or np.mean([start, end], axis=0)
            place = {
                "right": (0.08, 0, "left", "center"), "left": (-0.08, 0, "right", "center"),
                "above": (0, 0.06, "center", "bottom"), "below": (0, -0.06, "center", "top"),
            }  # fmt: skip
            dx, dy, ha, va = place[side]
            self._write(x + dx, y + dy, text, size=SMALL, ha=ha, va=va)

    def text(self, x, y, text, size=NORMAL, colour=INK, align="center", bold=False, rotation=0):
        """Words with their middle (or left or right end, by `align`) at (x, y)."""
        self._write(x, y, text, size=size, color=colour, ha=align, va="center", rotation=rotation,
                    weight="bold" if bold else "normal")  # fmt: skip

    def cells(self, x, y, colours, width=0.25, height=None, texts=None, size=SMALL, line="white"):
        """A grid of coloured cells with its upper left corner at (x, y).

        colours (rows, cols): one colour per cell, None leaves the cell hatched as masked;
        texts (rows, cols): words in the cells. Returns the grid as a Box.
        """
        height = width if height is None else height
        rows, cols = len(colours), len(colours[0])
        for row in range(rows):
            for col in range(cols):
                colour = colours[row][col]
                fill = {"facecolor": colour, "edgecolor": line}
                if colour is None:
                    fill = {"facecolor": style.MASKED, "edgecolor": style.MASKED_LINES,
                            "hatch": "////"}  # fmt: skip
                left, top = x + col * width, y - row * height
                self.axes.add_patch(
                    Rectangle((left, top - height), width, height, linewidth=0.6, zorder=2, **fill)
                )
                if texts is not None and texts[row][col]:
                    self._write(left + width / 2, top - height / 2, texts[row][col], size=size,
                                ha="center", va="center")  # fmt: skip
        return Box(x + cols * width / 2, y - rows * height / 2, cols * width, rows * height)

    def image(self, x, y, values, width, height, cmap=style.DIVERGING, limits=(-1, 1)):
        """A matrix as a picture, its upper left corner at (x, y); for grids with many cells."""
        self.axes.imshow(values, cmap, aspect="auto", vmin=limits[0], vmax=limits[1], zorder=2,
                         interpolation="nearest", extent=(x, x + width, y - height, y))  # fmt: skip
        self.axes.set(xlim=(0, self.width), ylim=(0, self.height))
        return Box(x + width / 2, y - height / 2, width, height)

    def circle(self, x, y, radius, text="", colour=STEP, filled=True, size=NORMAL):
        """A circle round (x, y); returned as a Box for arrows to touch."""
        self.axes.add_patch(
            Circle((x, y), radius, facecolor=tint(colour) if filled else "none", edgecolor=colour,
                   linewidth=1.2, zorder=2)
        )  # fmt: skip
        self._write(x, y, text, size=size, ha="center", va="center_baseline")
        return Box(x, y, 2 * radius, 2 * radius)

    def fingerprint(self) -> str:
        """A hash of what is seen: shapes, pictures and words, each with its place and its look.

        Neither how the code is written nor the fonts of a machine change it; a colour does, a
        width, a word, and a place by more than some thousandths of an inch.
        """
        artists = [*self.axes.patches, *self.axes.images, *self.axes.texts]
        seen = [_rounded((self.width, self.height)), *(_look(artist) for artist in artists)]
        return hashlib.sha256(repr(seen).encode()).hexdigest()[:16]

    def _write(self, x, y, text, **options):
        self.axes.text(x, y, text, **{"size": NORMAL, "color": INK, "zorder": 3, **options})


def _look(artist) -> tuple:
    """What of a shape, a picture or a text is seen."""
    if isinstance(artist, Text):
        look = (artist.get_text(), artist.get_ha(), artist.get_va(), str(artist.get_weight()))
        numbers = (artist.get_position(), artist.get_size(), artist.get_rotation())
        colours = [artist.get_color()]
    elif isinstance(artist, AxesImage):
        values = artist.get_array()
        look, colours = values.shape, artist.get_cmap()(np.linspace(0, 1, 9))
        numbers = (artist.get_extent(), artist.get_clim(), values / 10)  # values in hundredths
    else:
        outline = artist.get_patch_transform().transform_path(artist.get_path())
        look = (artist.get_linestyle(), artist.get_hatch())
        numbers = (outline.vertices, artist.get_linewidth())
        colours = [artist.get_edgecolor(), artist.get_facecolor()]
    shades = tuple(tuple(round(255 * part) for part in to_rgba(colour)) for colour in colours)
    return (type(artist).__name__, look, _rounded(numbers), shades, artist.get_zorder())


def _rounded(numbers) -> tuple[int, ...]:
    """All numbers in thousandths, one after the other.

    Numbers that people write, 0.25 or 1.3, lie halfway between two thousandths more often than
    chance would have it, where the last digit of a float decides. The shift keeps them away.
    """
    parts = (np.ravel(np.asarray(part, float)) for part in numbers)
    return tuple(np.rint(1000 * np.concatenate(list(parts)) + 0.31).astype(int).tolist())
