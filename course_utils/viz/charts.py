"""Curves and bars: regressions, training curves, measurements, scores by length."""

import numpy as np

from course_utils.viz.arrays import shorten, to_array
from course_utils.viz.in_notebook import display_figure
from course_utils.viz.style import (
    FAINT,
    HATCHES,
    LINESTYLES,
    MARKERS,
    PALETTE,
    add_legend,
    darker,
    new_figure,
    use_course_style,
    write,
)

_MARKED_UP_TO = 25  # a curve with more points is drawn without a mark on each
_FAR = 1.4  # gaps between two names: a name that stands further from its end seems another's
_NEAR_EDGE = 0.85  # of the width: a curve that ends before is named beside its end, in the chart


def plot_curves(
    x,
    curves,
    xlabel,
    ylabel,
    title=None,
    *,
    log=None,
    points=None,
    ylim=None,
    figsize=(6.4, 3.6),
    show=True,
    alt=None,
):
    """Draw curves over one x axis, each with its name at its end, or in a legend if ends crowd.

    x        (n,) numbers
    curves   name -> (n,) numbers, or name -> (x, y) for a curve with an x of its own; at most 7.
             Values that are NaN or infinite leave a gap, and the alt text counts them
    log      "x", "y" or "xy": logarithmic axes
    points   name -> (x, y): data drawn as dots beneath the curves

    Shows the figure and returns None; with show=False returns the matplotlib Figure.
    Raises ValueError if lengths do not fit, and if a logarithmic axis gets numbers <= 0.
    """
    log = _log_axes(log)
    curves = {str(name): _pair(x, y, f"curve {name!r}") for name, y in curves.items()}
    points = {str(name): _pair(*xy, f"points {name!r}") for name, xy in (points or {}).items()}
    _check_count(curves, "curves")
    if points:
        _check_count(points, "points")
    _check_logs({**curves, **points}, log)
    with use_course_style():
        figure, ax = new_figure(figsize=figsize)
        write(ax, xlabel, ylabel, title or "")
        _set_scales(ax, log, curves)
        if ylim is not None:
            ax.set_ylim(ylim)
        ax.grid(True)
        dots = [
            ax.scatter(px, py, 16, FAINT, marker=marker, alpha=0.7, linewidths=0)
            for (px, py), marker in zip(points.values(), MARKERS, strict=False)
        ]
        for i, (cx, cy) in enumerate(curves.values()):
            mark = MARKERS[i] if len(cx) <= _MARKED_UP_TO else None
            ax.plot(cx, cy, color=PALETTE[i], linestyle=LINESTYLES[i], marker=mark, markersize=4)
        named = _name_ends(figure, ax, curves)
        unnamed = [] if named else [*zip(ax.lines, curves, strict=True)]
        unnamed += zip(dots, points, strict=True)
        if unnamed:
            add_legend(ax, unnamed, loc="best", handlelength=0.8 if named else 3)
    if not show:
        return figure
    kind = f"{len(curves)} curve{'s' if len(curves) != 1 else ''}"
    if alt is None:
        said = [_read_curve(name, *xy) for name, xy in curves.items()]
        said += [f"{len(px)} dots of {name}" for name, (px, _) in points.items()]
        alt = _sentences(f"{title or 'Line chart'}: {ylabel} against {xlabel}", said)
    display_figure(figure, alt, kind)
    return None


def plot_bars(
    groups, bars, xlabel, ylabel, title=None, *, digits=2, figsize=(6.4, 3.6), show=True, alt=None
):
    """Draw bars side by side in groups, each with its value on top.

    groups   (n,) names of the groups, from left to right
    bars     name -> (n,) numbers, one per group; NaN leaves a gap, marked "none"
    digits   decimals of the values

    Shows the figure and returns None; with show=False returns the matplotlib Figure.
    Raises ValueError if a name has more or fewer values than there are groups.
    """
    groups = [str(group) for group in groups]
    _check_count(bars, "bars")
    bars = {str(name): to_array(v, f"bars {name!r}").astype(float) for name, v in bars.items()}
    for name, values in bars.items():
        if values.shape != (len(groups),):
            raise ValueError(
                f"bars {name!r} has shape {values.shape}, but there are {len(groups)} groups"
            )
    width = 0.8 / len(bars)
    with use_course_style():
        figure, ax = new_figure(figsize=figsize)
        write(ax, xlabel, ylabel, title or "")
        for i, values in enumerate(bars.values()):
            at = np.arange(len(groups)) + (i - (len(bars) - 1) / 2) * width
            drawn = ax.bar(at, np.nan_to_num(values), 0.92 * width, linewidth=0,
                           color=PALETTE[i], hatch=HATCHES[i], edgecolor="white")  # fmt: skip
            texts = [f"{v:.{digits}f}" if np.isfinite(v) else "none" for v in values]
            ax.bar_label(drawn, texts, fontsize=8, padding=1)
        names = [shorten(group) for group in groups]
        ax.set_xticks(range(len(groups)), names, parse_math=False)
        ax.margins(y=0.12)
        ax.axhline(0, color=FAINT, linewidth=0.8)
        if len(bars) > 1:
            named = zip(ax.containers, bars, strict=True)
            add_legend(figure, named, loc="outside upper center", ncols=len(bars))
    if not show:
        return figure
    if alt is None:
        said = [
            f"{name}: " + ", ".join(f"{g} {v:.{digits}f}" for g, v in pairs)
            for name, pairs in ((n, zip(groups, v, strict=True)) for n, v in bars.items())
        ]
        alt = _sentences(f"{title or 'Bar chart'}: {ylabel} by {xlabel}", said)
    display_figure(figure, alt, f"bars, {len(groups)} groups x {len(bars)}")
    return None


def plot_spread(runs, xlabel, title=None, *, digits=2, figsize=None, show=True, alt=None):
    """Draw one row per name: every run as a faint dot, their mean, and how far they spread.

    runs     name -> (n,) finite numbers, one per run, such as one per seed; from top to bottom.
             The line goes one standard deviation (n - 1) to either side of the mean
    digits   decimals of the mean

    Shows the figure and returns None; with show=False returns the matplotlib Figure.
    Raises ValueError if there is no name, or a name without finite numbers.
    """
    runs = {str(name): to_array(x, f"runs {name!r}").astype(float) for name, x in runs.items()}
    if not runs or any(
        x.ndim != 1 or not len(x) or not np.isfinite(x).all() for x in runs.values()
    ):
        raise ValueError("give at least one name, and finite numbers (n,) for each")
    means = [x.mean() for x in runs.values()]
    spreads = [x.std(ddof=1) if len(x) > 1 else 0.0 for x in runs.values()]
    rows = range(len(runs))
    with use_course_style():
        figure, ax = new_figure(figsize=figsize or (6.4, 0.8 + 0.32 * len(runs)))
        write(ax, xlabel, "", title or "")
        for row, x in zip(rows, runs.values()):
            ax.scatter(x, [row] * len(x), 14, FAINT, alpha=0.7, linewidths=0)
        ax.errorbar(means, rows, xerr=spreads, fmt="D", color=PALETTE[0], markersize=5, capsize=3)
        for row, mean in zip(rows, means):
            ax.annotate(f"{mean:.{digits}f}", (mean, row), (0, 5), textcoords="offset points",
                        ha="center", fontsize=8)  # fmt: skip
        ax.set_yticks(rows, [shorten(name) for name in runs], parse_math=False)
        ax.set_ylim(len(runs) - 0.5, -0.8)
        ax.grid(True, axis="x")
    if not show:
        return figure
    if alt is None:
        said = [f"{n}: {m:.{digits}f} ± {s:.{digits}f}" for n, m, s in zip(runs, means, spreads)]
        head = f"{title or 'Means and standard deviations'}: {xlabel}"
        alt = _sentences(head, [*said, "faint dots are single runs"])
    display_figure(figure, alt, f"{len(runs)} rows of runs")
    return None


def _pair(x, y, what):
    if isinstance(y, tuple) and len(y) == 2 and np.ndim(y[0]) == 1:
        x, y = y
    x, y = to_array(x, f"x of {what}").astype(float), to_array(y, what).astype(float)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"{what} has shape {y.shape}, but its x has shape {x.shape}")
    if not (np.isfinite(x) & np.isfinite(y)).any():
        raise ValueError(f"{what} has no finite point to draw")
    return x, y


def _check_count(named, what):
    if not 1 <= len(named) <= len(PALETTE):
        raise ValueError(f"{what}: give 1 to {len(PALETTE)} of them, got {len(named)}")


def _log_axes(log):
    if log not in (None, "x", "y", "xy"):
        raise ValueError(f"log must be None, 'x', 'y' or 'xy', got {log!r}")
    return log or ""


def _check_logs(named, log):
    for name, pair in named.items():
        for axis, values in zip("xy", pair, strict=True):
            if axis in log and (values <= 0).any():
                raise ValueError(f"{name!r} has {axis} values <= 0, which a log axis cannot show")


def _set_scales(ax, log, curves):
    ax.set_yscale("log" if "y" in log else "linear")
    if "x" in log:
        ax.set_xscale("log")
        measured = np.unique(np.concatenate([x for x, _ in curves.values()]))
        if len(measured) <= 10:  # a few chosen sizes: name those, not the powers of ten
            ax.set_xticks(measured, [_short(value) for value in measured], minor=False)
            ax.set_xticks([], minor=True)
    elif all((x == x.round()).all() for x, _ in curves.values()):  # no half epochs
        ax.xaxis.get_major_locator().set_params(integer=True)


def _last_finite(x, y):
    i = np.flatnonzero(np.isfinite(x) & np.isfinite(y))[-1]
    return x[i], y[i]


def _name_ends(figure, ax, curves, gap=12):
    """Write each name right of its curve's end; False if it cannot be told whose name is whose.

    Names of curves that reach the right edge stand outside it, pushed apart to be `gap` points or
    more from each other. Where one would have to stand further than that from its curve's end, no
    name is written.
    """
    if len(curves) == 1:
        return True
    ax.margins(x=0.01)
    figure.draw_without_rendering()  # settles the data limits, so that ends are known in points
    edge = ax.get_window_extent()
    low, high = (72 / figure.dpi * y for y in edge.intervaly)
    ends = [ax.transData.transform(_last_finite(*xy)) for xy in curves.values()]
    outside = [i for i, (x, _) in enumerate(ends) if x > edge.x0 + _NEAR_EDGE * edge.width]
    wanted = [float(np.clip(72 / figure.dpi * ends[i][1], low, high)) for i in outside]
    heights = _keep_below(high - gap / 3, _spread(wanted, gap), gap)  # half a name stands above
    if any(abs(h - w) > _FAR * gap for h, w in zip(heights, wanted, strict=True)):
        return False
    beside = dict(zip(outside, heights, strict=True))
    for i, (name, xy) in enumerate(curves.items()):
        place = (
            {"xy": (1, 0), "xytext": (6, beside[i] - low), "xycoords": "axes fraction"}
            if i in beside
            else {"xy": _last_finite(*xy), "xytext": (6, 0)}
        )
        ax.annotate(shorten(name), **place, textcoords="offset points", va="center",
                    color=darker(PALETTE[i]), parse_math=False)  # fmt: skip
    return True


def _spread(heights, gap):
    """The heights, moved as little as possible (least squares) to be `gap` or more apart."""
    if not len(heights):  # no end lies in the drawn range
        return []
    order = np.argsort(heights, kind="stable")
    steps = gap * np.arange(len(heights))
    blocks = []  # (mean, size) of neighbours that move together
    for mean in np.asarray(heights)[order] - steps:
        size = 1
        while blocks and blocks[-1][0] > mean:
            other, count = blocks.pop()
            mean, size = (mean * size + other * count) / (size + count), size + count
        blocks.append((mean, size))
    spread = np.empty(len(heights))
    spread[order] = np.repeat(*zip(*blocks, strict=True)) + steps
    return spread.tolist()


def _keep_below(top, heights, gap):
    """The heights, those beyond `top` and what is in their way moved down, `gap` apart."""
    kept = np.array(heights)
    for rank, i in enumerate(np.argsort(-kept, kind="stable")):
        kept[i] = min(kept[i], top - rank * gap)
    return kept.tolist()


def _read_curve(name, x, y):
    good = np.isfinite(y) & np.isfinite(x)
    px, py = x[good], y[good]
    low, high = py.argmin(), py.argmax()
    at = [f"{_short(v)} at {_short(u)}" for u, v in zip(px, py, strict=True)]
    text = f"{name} goes from {at[0]} to {at[-1]}"
    if 0 < low < len(py) - 1:
        text += f", lowest {at[low]}"
    if 0 < high < len(py) - 1:
        text += f", highest {at[high]}"
    if len(y) > good.sum():
        text += f"; {len(y) - good.sum()} points are not finite"
    return text


def _short(value):
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.3g}"


def _sentences(head, parts):
    return ". ".join([head, *parts]) + "."
