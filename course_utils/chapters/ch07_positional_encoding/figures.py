"""The diagram of positions, and a chart of the chapter: clock hands."""

import numpy as np

from course_utils.models.positional import sinusoidal_table
from course_utils.viz import display_figure, new_figure, use_course_style
from course_utils.viz.canvas import FAINT, SMALL, Canvas
from course_utils.viz.drawings import Drawing
from course_utils.viz.style import BLUE, GREEN, ORANGE, write


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
