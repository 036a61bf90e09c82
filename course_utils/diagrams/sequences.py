"""Diagrams of sequences: positions, three ways to connect tokens, and the Bahdanau decoder."""

import numpy as np

from course_utils.attention import AdditiveAttention
from course_utils.diagrams.canvas import (
    FAINT,
    KEY,
    LEARNED,
    QUERY,
    RESULT,
    SMALL,
    STEP,
    VALUE,
    WEIGHT,
    Canvas,
    tint,
)
from course_utils.plot.style import BLUE, GREEN, ORANGE
from course_utils.positional import sinusoidal_table
from course_utils.seq2seq import BahdanauDecoder, GRUEncoder


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
    sheet.text(5.85, 1.2, "across: cosine, up: sine, for positions 0 to 7", SMALL, FAINT)
    sheet.text(5.85, 0.75, "k positions further is the same turn everywhere:\n"
               "a rotation that depends on k only", SMALL)  # fmt: skip
    return sheet


def _hand(sheet, x, y, radius, pairs, colour):
    """The clock of one frequency: a dot per position, the hands of positions 0 and 1."""
    sheet.circle(x, y, radius, colour=FAINT, filled=False)
    for position, (sine, cosine) in enumerate(pairs):
        tip = x + radius * cosine, y + radius * sine
        if position < 2:
            sheet.arrow((x, y), tip, colour=colour, dashed=position == 1)
        sheet.circle(*tip, 0.05, colour=colour)


def sequence_models():
    """How far apart two tokens are in a convolution, a recurrence and self-attention."""
    sheet = Canvas(8, 3.6)
    notes = [
        ("Convolution, width k", "path O(n / k), steps O(1)", "cost O(k n d²)"),
        ("Recurrence", "path O(n), steps O(n)", "cost O(n d²)"),
        ("Self-attention", "path O(1), steps O(1)", "cost O(n² d)"),
    ]
    links = [
        lambda i, j: abs(i - j) <= 1,
        lambda i, j: i == j,
        lambda i, j: True,
    ]
    for panel, ((title, path, cost), linked) in enumerate(zip(notes, links, strict=True)):
        left = 0.1 + 2.64 * panel
        sheet.frame(left, 0.15, left + 2.52, 3.45, title)
        xs = [left + 0.3 + 0.48 * i for i in range(5)]
        lower = [sheet.circle(x, 1.3, 0.16, f"$x_{i + 1}$", KEY) for i, x in enumerate(xs)]
        upper = [sheet.circle(x, 2.6, 0.16, f"$y_{i + 1}$", RESULT) for i, x in enumerate(xs)]
        for j, end in enumerate(upper):
            for i, start in enumerate(lower):
                if linked(i, j):
                    sheet.arrow(start.top, end.bottom, colour="#333333" if j == 2 else FAINT)
        if panel == 1:
            for one, other in zip(upper, upper[1:], strict=False):
                sheet.arrow(one.right, other.left)
        sheet.text(left + 1.26, 0.75, path, SMALL)
        sheet.text(left + 1.26, 0.45, cost, SMALL)
    return sheet


def bahdanau_step():
    """One step of the decoder: its last state asks, the encoder's outputs answer."""
    sheet = Canvas(8, 5.8)
    sheet.frame(0.15, 0.12, 4.1, 2.55)
    sheet.text(2.12, 0.3, GRUEncoder.__name__, bold=True)
    attention = sheet.box(2.1, 3.4, AdditiveAttention.__name__, WEIGHT, 3.6, 0.46)
    words, weights, before = ["i'm", "home", ".", "<eos>"], [0.08, 0.85, 0.04, 0.03], None
    for i, (word, weight) in enumerate(zip(words, weights, strict=True)):
        x = 0.65 + 0.85 * i
        sheet.text(x, 0.63, word)
        cell = sheet.box(x, 1.25, "GRU", LEARNED, 0.55, 0.4)
        hidden = sheet.circle(x, 2.1, 0.2, f"$h_{i + 1}$", VALUE)
        sheet.arrow((x, 0.76), cell.bottom)
        sheet.arrow(cell.top, hidden.bottom)
        sheet.arrow(hidden.top, (x, attention.bottom[1]), colour=KEY)
        sheet.arrow((x, attention.top[1]), (x, 4.1), colour=WEIGHT)
        sheet.cells(x - 0.25, 4.36, [[tint(WEIGHT, 1 - weight)]], 0.5, 0.26, line=FAINT)
        sheet.text(x, 4.52, f"$\\alpha_{i + 1}$", SMALL)
        if before:
            sheet.arrow(before.right, cell.left)
        before = cell
    sheet.text(3.3, 2.86, "keys = values\n(B, Ts, n)", SMALL, align="left")
    sheet.text(1.93, 4.85, "weights (B, 1, 1, Ts)\nwhen the decoder says “chez”", SMALL)

    sheet.frame(5.4, 0.12, 7.9, 5.65)
    x = 6.55
    sheet.text(x, 0.3, BahdanauDecoder.__name__, bold=True)
    sheet.text(x, 0.63, "suis")
    embedding = sheet.box(x, 1.25, "Embedding", LEARNED, 1.2, 0.4)
    joined = sheet.box(x, 2.2, "concatenate", STEP, 1.2, 0.4)
    gru = sheet.box(x, 3.4, "GRU", LEARNED, 1.2, 0.4)
    linear = sheet.box(x, 4.45, "Linear", LEARNED, 1.2, 0.4)
    sheet.arrow((x, 0.76), embedding.bottom)
    sheet.arrow(embedding.top, joined.bottom, text="(B, 1, embed)")
    sheet.arrow(joined.top, gru.bottom, text="(B, 1, n + embed)")
    sheet.arrow(gru.top, linear.bottom, text="$s_{t}$ (B, 1, n)")
    sheet.arrow(linear.top, (x, 5.15))
    sheet.text(x, 5.3, "chez")
    context = sheet.box(4.75, 3.4, "context $c_t$", RESULT, 1.05)
    state = sheet.box(4.75, 4.45, "state $s_{t-1}$", QUERY, 1.05)
    sheet.arrow(attention.right, context.left)
    sheet.arrow(context.bottom, (4.75, 2.2), joined.left, text="(B, 1, n)", at=(4.75, 2.75))
    sheet.arrow(state.left, (3.7, 4.45), (3.7, attention.top[1]), colour=QUERY, text="query",
                at=(3.7, 3.85))  # fmt: skip
    sheet.arrow(state.right, (5.65, 4.45), (5.65, 3.4), gru.left)
    return sheet
