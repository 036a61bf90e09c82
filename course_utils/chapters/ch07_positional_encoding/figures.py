"""The diagram of positions, and two charts of the chapter: clock hands, and curves of training."""

import numpy as np
import torch

from course_utils.models.positional import sinusoidal_table
from course_utils.viz import display_figure, new_figure, use_course_style
from course_utils.viz.canvas import FAINT, SMALL, Canvas
from course_utils.viz.drawings import Drawing
from course_utils.viz.style import BLUE, GREEN, ORANGE, VERMILION, write


def draw_hands(codes):
    """Each pair of columns as a plane, with one arrow per position, dark to light.

    codes: (n, d), d even; column 2i is drawn across and 2i + 1 up.
    """
    n, d = codes.shape
    with use_course_style():
        figure, axes = new_figure(1, d // 2, (2.15 * d / 2, 2.6), sharey=True, squeeze=False)
        for i, ax in enumerate(axes[0]):
            across, up = codes[:, 2 * i].numpy(), codes[:, 2 * i + 1].numpy()
            ax.quiver(0 * across, 0 * up, across, up, range(n), cmap="viridis",
                      scale=1, scale_units="xy", angles="xy", width=0.012)  # fmt: skip
            ax.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal")
            title = f"plane {i}: {_turn(codes[:2, 2 * i : 2 * i + 2]):.3g} rad a step"
            write(ax, f"column {2 * i} (sine)", f"column {2 * i + 1} (cosine)", title)
    turns = [f"plane {i} by {_turn(codes[:2, 2 * i : 2 * i + 2]):.3g}" for i in range(d // 2)]
    display_figure(
        figure, f"{d // 2} planes with arrows for positions 0 to {n - 1}, from one to the next "
        f"clockwise: {', '.join(turns)} radians a step.", f"{d // 2} planes",
    )  # fmt: skip


def _turn(pairs):
    """The angle, clockwise and in radians, from the first (sine, cosine) to the second."""
    first, second = (np.arctan2(*pair) for pair in pairs.double().numpy())
    return (second - first) % (2 * np.pi)


def draw_training(history, trained, every, questions):
    """Shares of right answers over updates: one row of charts a question, one column a method.

    history: name -> (seeds, examinations, questions, positions), the mean of which is drawn
    inside and beyond the trained length, one thin line per seed; position 0, with no word before
    it, is left out. every: updates from one examination to the next.
    """
    curves = {name: _inside_and_beyond(found, trained) for name, found in history.items()}
    inside, beyond = {"color": BLUE, "linestyle": "-"}, {"color": VERMILION, "linestyle": "--"}
    with use_course_style():
        figure, axes = new_figure(
            len(questions), len(curves), (1.6 * len(curves), 2 * len(questions)),
            sharex=True, sharey=True, squeeze=False,
        )  # fmt: skip
        for j, (name, found) in enumerate(curves.items()):
            updates = every * np.arange(1, found.shape[1] + 1)
            for i, question in enumerate(questions):
                ax = axes[i, j]
                for look, part in (inside, 0), (beyond, 1):
                    lines = ax.plot(updates, found[:, :, i, part].T, linewidth=1.2, **look)
                    lines[0].set_label(("inside", "beyond")[part])
                ax.set_ylim(0, 1.05)
                ax.grid(True)
                if i == 0:
                    ax.set_title(name)
                if j == 0:
                    ax.set_ylabel(question)
            axes[-1, j].set_xlabel("updates")
        axes[0, 0].legend(loc="upper right", fontsize=8)
    said = [
        f"{question}, {name}: inside {_means(found[..., i, 0])}, beyond {_means(found[..., i, 1])}"
        for i, question in enumerate(questions)
        for name, found in curves.items()
    ]
    display_figure(
        figure, "Shares of right answers over updates, inside and beyond the trained length, mean "
        f"of the seeds at the first and the last examination. {'; '.join(said)}.",
        f"{len(questions)} x {len(curves)} charts",
    )  # fmt: skip


def _inside_and_beyond(found, trained):
    """(..., positions) -> (..., 2): the means inside and beyond the trained length."""
    parts = found[..., 1:trained].nanmean(-1), found[..., trained:].nanmean(-1)
    return torch.stack(parts, dim=-1)


def _means(found):
    """(seeds, examinations) -> the means at the first and at the last, in words."""
    mean = found.mean(0)
    return f"{mean[0]:.2f} to {mean[-1]:.2f}"


def positional_encoding():
    """The sinusoidal table as a picture, and three of its column pairs as turning hands."""
    sheet = Canvas(8, 4.5)
    positions, d_model = 60, 32
    table = sinusoidal_table(positions, d_model).numpy()
    picture = sheet.image(0.75, 4.0, table, 2.7, 3.4)
    sheet.text(picture.x, 4.22, "sinusoidal_table(60, 32)", SMALL, bold=True)
    for position in (0, 20, 40, 59):
        y = 4.0 - 3.4 * (position + 0.5) / positions
        sheet.text(0.68, y, str(position), SMALL, align="right")
    for column in (0, 8, 16, 24, 31):
        sheet.text(0.75 + 2.7 * (column + 0.5) / d_model, 0.47, str(column), SMALL)
    sheet.text(picture.x, 0.22, "dimension", SMALL, FAINT)
    sheet.text(0.22, picture.y, "position", SMALL, FAINT, rotation=90)
    sheet.text(5.8, 4.22, "each pair of columns is a hand that turns", SMALL, bold=True)
    for x, pair, colour in ((4.5, 0, BLUE), (5.85, 4, ORANGE), (7.2, 8, GREEN)):
        _hand(sheet, x, 2.75, 0.58, table[:8, 2 * pair : 2 * pair + 2], colour)
        sheet.text(x, 3.6, f"columns {2 * pair}, {2 * pair + 1}", SMALL)
        turn = 2 * np.pi * 10000 ** (2 * pair / d_model)
        sheet.text(x, 1.85, f"one turn in\n{turn:.0f} positions", SMALL)
    sheet.text(5.85, 1.2, "across: sine, up: cosine, for positions 0 to 7", SMALL, FAINT)
    sheet.text(5.85, 0.75, "k positions further is the same turn everywhere:\n"
               "a rotation that depends on k only", SMALL)  # fmt: skip
    return sheet


def _hand(sheet, x, y, radius, pairs, colour):
    """The clock of one frequency: a dot per position, the hands of positions 0 and 1."""
    sheet.circle(x, y, radius, colour=FAINT, filled=False)
    for position, (sine, cosine) in enumerate(pairs):
        tip = x + radius * sine, y + radius * cosine
        if position < 2:
            sheet.arrow((x, y), tip, colour=colour, dashed=position == 1)
        sheet.circle(*tip, 0.05, colour=colour)


FIGURES = {
    "positional_encoding.svg": Drawing(
        positional_encoding,
        "Left: the sinusoidal table of 60 positions and 32 dimensions. Right: three pairs of "
        "columns as hands of a clock that turn once in 6, 63 and 628 positions.",
    ),
}
