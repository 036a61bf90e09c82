"""One look for every figure: colours, fonts and sizes, in one place."""

import re
import warnings
from contextlib import contextmanager, suppress
from functools import cache

import numpy as np
from cycler import cycler
from matplotlib import font_manager, rc_context, rcParamsDefault
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from course_utils.viz.arrays import shorten

# Okabe and Ito's colours, told apart with every common kind of colour blindness
# (their yellow is left out: too light on white).
BLUE, VERMILION, GREEN, PINK, SKY, ORANGE, BLACK = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#222222",
)  # fmt: skip
PALETTE = (BLUE, VERMILION, GREEN, PINK, ORANGE, SKY, BLACK)
LINESTYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "++", "--")

SEQUENTIAL = "viridis"  # lightness rises with the value, so grey prints and eyes agree
DIVERGING = "RdBu_r"  # white at 0
MASKED, MASKED_LINES = "#E9E9E9", "#A0A0A0"
INK, FAINT = "#222222", "#8A8A8A"

DPI = 100
_LONGEST = 120  # characters of a title or of the label of an axis

# DejaVu Sans ships with matplotlib, so figures are the same on every machine; the others are
# asked, in turn, only for letters that it lacks. (Of a file that holds the fonts of all of East
# Asia, matplotlib before 3.11 knows only the first one, JP, which has the Chinese glyphs too.)
_FALLBACK_FONTS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC",
    "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Droid Sans Fallback", "PingFang SC",
    "Hiragino Sans GB", "Microsoft YaHei", "SimHei", "Arial Unicode MS",
    "Noto Sans Thai", "Leelawadee UI", "Noto Sans Devanagari", "Nirmala UI",
)  # fmt: skip

_STYLE = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.labelsize": 9.5,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=PALETTE) + cycler(linestyle=LINESTYLES),
    "axes.formatter.useoffset": False,
    "figure.facecolor": "white",
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.7,
    "hatch.linewidth": 0.8,
    "legend.frameon": False,
    "legend.fontsize": 9.0,
    "lines.linewidth": 1.8,
    "savefig.dpi": DPI,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


_MISSED: set[str] = set()  # letters that a warning has named; of each there is one


def darker(colour):
    """The colour dark enough for text on white."""
    return to_hex(0.65 * np.array(to_rgb(colour)))


@cache
def fonts():
    """DejaVu Sans, and the installed ones that are asked for letters which it lacks."""
    listed = {font.fname for font in font_manager.fontManager.ttflist}
    for path in set(font_manager.findSystemFonts()) - listed:  # newer than matplotlib's own list
        with suppress(Exception):  # FreeType's errors, of files that are no fonts
            font_manager.fontManager.addfont(path)
    installed = set(font_manager.get_font_names())
    return ["DejaVu Sans", *(name for name in _FALLBACK_FONTS if name in installed)]


@contextmanager
def use_course_style():
    """Draw in the look of the course inside a `with`, whatever the reader's own settings are.

    Letters that no installed font has become boxes, and one warning names them.
    """
    ours = {k: v for k, v in rcParamsDefault.items() if not k.startswith("backend")}
    with rc_context({**ours, **_STYLE, "font.family": fonts()}), _one_warning_for_glyphs():
        yield


@contextmanager
def _one_warning_for_glyphs():
    with warnings.catch_warnings(record=True) as caught:
        yield
    missing = ""
    for warning in caught:
        text = str(warning.message)
        if re.match(r"Glyph \d+ .* missing from font", text):
            missing += chr(int(text.split()[1]))
        else:
            warnings.warn_explicit(text, warning.category, warning.filename, warning.lineno)
    if new := "".join(sorted({*missing} - _MISSED)):
        _MISSED.update(new)
        warnings.warn(
            f"no installed font has {new[:20]}: drawn as boxes. Install one that has, for Chinese "
            "Noto Sans CJK SC (on Debian and Ubuntu: sudo apt install fonts-noto-cjk), and start "
            "the kernel again",
            stacklevel=1,
        )


def write(ax, xlabel, ylabel, title=""):
    """Label the axes with the texts as they are: a $ is a dollar, and what is too long is cut."""
    ax.set_xlabel(shorten(xlabel, _LONGEST), parse_math=False)
    ax.set_ylabel(shorten(ylabel, _LONGEST), parse_math=False)
    ax.set_title(shorten(title, _LONGEST), parse_math=False)


def add_legend(owner, named, **options):
    """A legend of axes or of a figure for pairs (artist, name), the names drawn as they are.

    Matplotlib itself leaves out names that begin with "_".
    """
    artists, names = zip(*named, strict=True)
    legend = owner.legend(artists, [str(i) for i in range(len(names))], **options)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set(text=shorten(name), parse_math=False)


def new_figure(rows=1, cols=1, figsize=(6.4, 3.6), **subplots):
    """A figure that pyplot does not know, and its axes (one, or an array of rows x cols).

    Call it and draw inside `with use_course_style():`; hand the figure to `display_figure`.
    """
    figure = Figure(figsize=figsize, layout="constrained")
    return figure, figure.subplots(rows, cols, **subplots)
