"""The log of a training as a picture: loss and score over the updates."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from course_utils.training.runs.training_log import Row
from course_utils.viz.style import LINESTYLES, PALETTE, new_figure, use_course_style, write


def draw_log(rows: Sequence[Row]) -> Figure:
    """Two charts side by side, a mark at each validation; a star where the score is best."""
    updates = [row.update for row in rows]
    best = max(rows, key=lambda row: (row.score, -row.validation_loss))
    curves = (("training", "training_loss"), ("validation", "validation_loss"))
    with use_course_style():
        figure, (losses, scores) = new_figure(1, 2, figsize=(8.4, 3.2))
        for (name, field), colour, line in zip(curves, PALETTE, LINESTYLES, strict=False):
            values = [getattr(row, field) for row in rows]
            losses.plot(updates, values, color=colour, linestyle=line, marker="o", label=name)
        losses.legend()
        write(losses, "Updates", "Loss per token (nats)", "Training: moving mean, with dropout")
        scores.plot(updates, [row.score for row in rows], color=PALETTE[2], marker="o")
        scores.plot(best.update, best.score, marker="*", markersize=14, color=PALETTE[1])
        write(scores, "Updates", f"Validation {best.measure}", f"Best: {best.score:.2f}")
    return figure
