"""What the cells of chapter 12 only call: its sentences, and the curves and table of its runs."""

import math

from course_utils.text.small_world import common_sentences as common_sentences
from course_utils.viz import plot_curves


def draw_runs(runs, names, every):
    """Held-out losses against updates: a line is the mean of a run's seeds, a dot one of them.

    runs: by name (seeds, measurements), one measurement `every` so many updates.
    """
    seeds, measurements = runs[names[0]].shape
    at = [every * i for i in range(measurements)]
    lines = {name: runs[name].mean(0) for name in names}
    dots = {name: (at * seeds, runs[name].flatten()) for name in names}
    plot_curves(at, lines, "updates", "loss on held-out text", points=dots)


def draw_sweep(swept):
    """The lowest held-out loss of each learning rate; a NaN is a dot at the upper edge.

    swept: by name rates and losses.
    """
    curves, broken, highest = {}, [], 0.0
    for name, (rates, losses) in swept.items():
        known = [loss for loss in losses if math.isfinite(loss)]
        broken += [rate for rate, loss in zip(rates, losses, strict=True) if loss not in known]
        if known:
            curves[name] = rates, losses
            highest = max(highest, *known)
    points = {"NaN": (broken, [highest] * len(broken))} if broken else None
    plot_curves([], curves, "learning rate", "lowest loss on held-out text", log="x", points=points)


def print_results(runs, learned):
    """A row a run: losses on held-out text, lowest and end, and on few sentences at the end.

    runs: by name (seeds, measurements); learned: by name one number. All are means over the seeds,
    and the lowest is that of the mean curve.
    """
    width = max(map(len, runs))
    print(f"{'':{width}}  held out: lowest   end   on few: end")
    for name, losses in runs.items():
        curve = losses.mean(0)
        lowest, end = curve.min(), curve[-1]
        print(f"{name:{width}} {lowest:17.2f} {end:5.2f} {learned[name]:13.2f}")
