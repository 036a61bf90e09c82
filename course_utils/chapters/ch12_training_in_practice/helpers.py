"""What the cells of chapter 12 only call: its sentences, and the curves and table of its runs."""

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


def print_results(runs, learned):
    """A row a run: losses on held-out text, lowest and end, and on few sentences at the end.

    runs: by name (seeds, measurements); learned: by name one number. All are means over the seeds.
    """
    width = max(map(len, runs))
    print(f"{'':{width}}  held out: lowest   end   on few: end")
    for name, losses in runs.items():
        lowest, end = losses.min(1).values.mean(), losses[:, -1].mean()
        print(f"{name:{width}} {lowest:17.2f} {end:5.2f} {learned[name]:13.2f}")
