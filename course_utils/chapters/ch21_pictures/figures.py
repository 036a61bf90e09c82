"""Diagram of a vision Transformer, and the charts of the race against a convolutional net."""

import torch

from course_utils.chapters.ch21_pictures.helpers import alike
from course_utils.viz import plot_curves, show_heatmaps
from course_utils.viz.canvas import FAINT, LEARNED, RESULT, SMALL, STEP, VALUE, Canvas, tint
from course_utils.viz.drawings import Drawing

_CROSS = {(1, 2), (2, 1), (2, 2), (2, 3), (3, 2)}  # patches that the shape touches


def picture_to_words():
    """A picture in patches, the row of words with the class token, the encoder, the answer."""
    sheet = Canvas(8, 3.3)
    side = 0.36
    shade = [[tint(VALUE, 0.35) if (r, c) in _CROSS else "#E8E8E8" for c in range(4)]
             for r in range(4)]  # fmt: skip
    grid = sheet.cells(0.25, 2.6, shade, side, size=7.5,
                       texts=[[str(4 * r + c) for c in range(4)] for r in range(4)])  # fmt: skip
    sheet.text(grid.x, 2.85, "16 patches", SMALL)
    linear = sheet.box(2.65, grid.y, "one linear\nmap for all", LEARNED, 1.2, 0.6, SMALL)
    sheet.arrow(grid.right, linear.left)

    words = 3.85
    names = ["class", "0", "1", "2", "…", "15"]
    colours = [tint(LEARNED, 0.4), *[tint(VALUE, 0.7)] * 5]
    row = sheet.cells(words, 2.3, [colours], 0.5, 0.36, [names], SMALL)
    sheet.text(row.x, 2.55, "17 words of d numbers", SMALL)
    where = sheet.cells(words, 1.45, [[tint(LEARNED, 0.6)] * 6], 0.5, 0.36,
                        [["pos 0", "1", "2", "3", "…", "16"]], 7.5)  # fmt: skip
    sheet.text(row.x, 1.68, "+", SMALL)
    sheet.text(where.x, 0.85, "learned positions", SMALL, FAINT)
    sheet.arrow(linear.right, (words - 0.04, 2.12))

    blocks = sheet.box(7.4, 1.9, "encoder\nblocks", STEP, 0.95, 0.6, SMALL)
    sheet.arrow((words + 3.05, 1.9), blocks.left)
    answer = sheet.box(7.4, 0.75, "answer", RESULT, 0.95, 0.4, SMALL)
    sheet.arrow(blocks.bottom, answer.top)
    sheet.text(6.45, 0.33, "read from the class token alone", SMALL, FAINT)
    return sheet


_QUESTIONS = ("shape", "quarter")


def _mean(runs, name, number):
    """(measurements, 4): the mean of the seeds."""
    return torch.stack([c for (who, n, _), c in runs.items() if (who, n) == (name, number)]).mean(0)


def draw_ends(runs, names=("Transformer", "net")):
    """Shares of right answers at the end over the number of pictures; dots are single runs.

    runs: (name, pictures, seed) -> (measurements, 4).
    """
    numbers = sorted({number for _, number, _ in runs})
    for column, question in enumerate(_QUESTIONS, start=2):
        means, dots = {}, {}
        for name in names:
            means[name] = [_mean(runs, name, n)[-1, column].item() for n in numbers]
            mine = [(n, c[-1, column].item()) for (who, n, _), c in runs.items() if who == name]
            dots[f"{name}, one run"] = tuple(zip(*mine, strict=True))
        plot_curves(numbers, means, "training pictures", "share right, held out",
                    f"which {question}", log="x", points=dots, ylim=(0.2, 1.05))  # fmt: skip


def draw_way(runs, number, question, axis, names=("Transformer", "net")):
    """Shares of right answers with so many pictures, over "updates" or "seconds"."""
    across, column = ("updates", "seconds").index(axis), 2 + _QUESTIONS.index(question)
    means = {name: _mean(runs, name, number) for name in names}
    plot_curves(None, {name: (m[:, across].tolist(), m[:, column].tolist())
                       for name, m in means.items()},
                axis, "share right, held out", f"which {question}", ylim=(0.2, 1.05),
                figsize=(5.2, 2.8))  # fmt: skip


def draw_alike(model):
    """For each of 16 patches the cosines of its learned position with all others."""
    show_heatmaps(alike(model).reshape(4, 4, 4, 4), "Column", "Row", signed=True,
                  titles=[f"column {c}" for c in range(4)],
                  row_titles=[f"row {r}" for r in range(4)],
                  xticklabels=range(4), yticklabels=range(4), annotate=False, figsize=(6.4, 6.4),
                  value_name="cosine", alt="16 panels in a grid of 4 by 4, one a patch: the cosine "
                  "of its learned position with those of all patches. Each is 1 with itself; what "
                  "the others are on average is printed below.")  # fmt: skip


FIGURES = {
    "picture_to_words.svg": Drawing(
        picture_to_words,
        "A picture in sixteen patches, five of which hold a cross. One linear map makes a word of "
        "each. A class token goes first, a learned position is added to each of the seventeen, "
        "encoder blocks follow, and the answer is read from the class token.",
    ),
}
