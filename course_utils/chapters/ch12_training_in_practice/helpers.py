"""What the cells of chapter 12 only call: its sentences, and the curves and table of its runs."""

from collections import Counter

from course_utils.text.small_world import small_world
from course_utils.text.text import tokenize
from course_utils.viz import plot_curves


def common_sentences(part, longest, least):
    """English sentences of the small world, tokenised: at most `longest` tokens, no rare word.

    Every word stands `least` times or more in those sentences of the training part that are short
    enough.

    Args:
        part: of the small world, "train" or "random".
    """
    counts = Counter()
    for sentence in _short("train", longest):
        counts.update(sentence)
    return [
        sentence
        for sentence in _short(part, longest)
        if all(counts[word] >= least for word in sentence)
    ]


def _short(part, longest):
    sentences = [tokenize(pair.source, "en") for pair in small_world(part)]
    return [sentence for sentence in sentences if len(sentence) <= longest]


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
