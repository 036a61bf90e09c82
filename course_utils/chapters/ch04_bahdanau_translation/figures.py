"""Diagram of a step of the Bahdanau decoder, and two charts of what a notebook has measured."""

import torch

from course_utils.models.attention import AdditiveAttention
from course_utils.models.recurrent import BahdanauDecoder, GRUEncoder
from course_utils.viz import plot_bars, plot_curves
from course_utils.viz.canvas import (
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
from course_utils.viz.drawings import Drawing


def draw_losses(runs, over, width=25, ylim=None):
    """Training losses over "updates" or "seconds", each point the mean of `width` in a row.

    runs: name -> (losses, seconds), one of each per update.
    """
    curves = {}
    for name, (losses, seconds) in runs.items():
        at = seconds if over == "seconds" else range(1, len(losses) + 1)
        curves[name] = _smooth(at, width), _smooth(losses, width)
    label = "seconds of computing" if over == "seconds" else "updates"
    plot_curves(None, curves, label, "training loss per token", ylim=ylim)


def _smooth(values, width):
    """The mean of `width` values in a row, at every fifth place."""
    values = torch.tensor(values, dtype=torch.float)
    return values.unfold(0, min(width, len(values)), 5).mean(-1)


def draw_offsets(offsets, at):
    """How many % of the words of each model have each offset in `at`; nothing for no words.

    offsets: name -> vector of integers.
    """
    shares = {
        name: [100 * (found == place).float().mean().item() for place in at]
        for name, found in offsets.items()
        if len(found)
    }
    if shares:
        places = [f"{place:+d}" if place else "0" for place in at]
        plot_bars(places, shares, "greatest weight, counted from the right English word",
                  "% of French words", digits=0)  # fmt: skip


def bahdanau_step():
    """One step of the decoder: its last state asks, the encoder's outputs answer."""
    sheet = Canvas(8, 5.8)
    sheet.frame(0.15, 0.12, 4.1, 2.55)
    sheet.text(2.12, 0.3, GRUEncoder.__name__, bold=True)
    attention = sheet.box(2.1, 3.4, AdditiveAttention.__name__, WEIGHT, 3.6, 0.46)
    before = None
    for i, word in enumerate(["i'm", "home", ".", "<eos>"]):
        x = 0.65 + 0.85 * i
        sheet.text(x, 0.63, word)
        cell = sheet.box(x, 1.25, "GRU", LEARNED, 0.55, 0.4)
        hidden = sheet.circle(x, 2.1, 0.2, f"$h_{i + 1}$", VALUE)
        sheet.arrow((x, 0.76), cell.bottom)
        sheet.arrow(cell.top, hidden.bottom)
        sheet.arrow(hidden.top, (x, attention.bottom[1]), colour=KEY)
        sheet.arrow((x, attention.top[1]), (x, 4.1), colour=WEIGHT)
        sheet.cells(x - 0.25, 4.36, [[tint(WEIGHT, 0.75)]], 0.5, 0.26, line=FAINT)
        sheet.text(x, 4.52, f"$\\alpha_{i + 1}$", SMALL)
        if before:
            sheet.arrow(before.right, cell.left)
        before = cell
    sheet.text(3.3, 2.86, "keys = values\n(B, Ts, n)", SMALL, align="left")
    sheet.text(1.93, 4.85, "weights (B, 1, 1, Ts);\nbefore training all about 1/4", SMALL)

    sheet.frame(5.4, 0.12, 7.9, 5.65)
    x = 6.55
    sheet.text(x, 0.3, BahdanauDecoder.__name__, bold=True)
    sheet.text(x, 0.63, "suis")
    embedding = sheet.box(x, 1.25, "Embedding", LEARNED, 1.2, 0.4)
    joined = sheet.box(x, 2.2, "concatenate", STEP, 1.2, 0.4)
    gru = sheet.box(x, 3.4, "GRU", LEARNED, 1.2, 0.4)
    linear = sheet.box(x, 4.45, "Linear", LEARNED, 1.2, 0.4)
    sheet.arrow((x, 0.76), embedding.bottom)
    sheet.arrow(embedding.top, joined.bottom, text="(B, 1, e)")
    sheet.arrow(joined.top, gru.bottom, text="(B, 1, n + e)")
    sheet.arrow(gru.top, linear.bottom, text="$s_{t}$ (B, 1, n)")
    sheet.arrow(joined.right, (7.65, 2.2), (7.65, 4.45), linear.right)
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


FIGURES = {
    "bahdanau_step.svg": Drawing(
        bahdanau_step,
        "One step of the decoder: additive attention over h1 to h4 gives the context; with suis it "
        "goes through GRU and linear layer, which says chez.",
    ),
}
