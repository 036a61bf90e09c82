"""Diagrams of attention itself: look-up, pooling, scores, and the block."""

import numpy as np

from course_utils.viz.canvas import (
    FAINT,
    KEY,
    LARGE,
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


def soft_lookup():
    """A dictionary gives the value of one key; attention a mixture of all, by their distance."""
    sheet = Canvas(8, 5.6)
    keys, values, query = np.array([1.0, 2.0, 4.0]), np.array([2.6, 3.7, 1.4]), 2.2
    kernel = np.exp(-((query - keys) ** 2) / 2)
    weights = kernel / kernel.sum()
    names, readings = [f"{key:.1f}" for key in keys], [f"{value:.1f}" for value in values]
    _lookup(sheet, 4.15, "Dictionary: the one key that is equal", "2.0", names, readings,
            [0.0, 1.0, 0.0], "3.7")  # fmt: skip
    _lookup(sheet, 1.35, "Attention: every key, the nearer the more", f"{query:.1f}", names,
            readings, weights, f"{weights @ values:.1f}")  # fmt: skip
    return sheet


def _lookup(sheet, middle, title, query, keys, values, weights, result):
    sheet.frame(0.15, middle - 1.2, 7.85, middle + 1.3, title)
    for x, name in ((1.0, "query"), (3.0, "keys"), (4.55, "weights"), (5.75, "values"),
                    (7.1, "output")):  # fmt: skip
        sheet.text(x, middle + 0.72, name, SMALL, FAINT)
    asked = sheet.box(1.0, middle - 0.15, query, QUERY, 1.1)
    out = sheet.box(7.1, middle - 0.15, result, RESULT, 1.15)
    for row, (key, value, weight) in enumerate(zip(keys, values, weights, strict=True)):
        y = middle + 0.4 - 0.55 * row
        colour = "#333333" if weight > 0 else tint(FAINT, 0.5)
        k, v = sheet.box(3.0, y, key, KEY, 1.2, 0.4), sheet.box(5.75, y, value, VALUE, 1.0, 0.4)
        sheet.arrow(asked.right, k.left, colour=colour, dashed=weight == 0)
        sheet.cells(4.0, y + 0.11, [[tint(WEIGHT, 1 - weight)]], 0.7, 0.22, line=FAINT)
        sheet.text(4.95, y, f"{weight:.2f}", SMALL)
        sheet.arrow(v.right, out.left, colour=colour, dashed=weight == 0)


def attention_pooling():
    """Query and keys give weights; the weights and the values give the output."""
    sheet = Canvas(8, 4.1)
    rows, middle = [3.2, 2.05, 0.9], 2.05
    query = sheet.box(0.75, middle - 0.4, "query $q$", QUERY, 1.1)
    softmax = sheet.box(4.15, middle, "softmax", STEP, 0.9, 2.8)
    total = sheet.circle(6.6, middle, 0.2, "+", size=LARGE)
    output = sheet.box(7.4, middle, "output", RESULT, 0.8)
    for i, y in enumerate(rows, 1):
        key = sheet.box(2.2, y, f"key $k_{i}$", KEY, 0.95, 0.36)
        score = sheet.circle(3.2, y, 0.18, "$a$", size=SMALL + 1)
        sheet.arrow(key.right, score.left)
        below = y - 0.4
        sheet.arrow(query.right, (1.5, query.y), (1.5, below), (3.2, below), score.bottom)
        sheet.arrow(score.right, (softmax.left[0], y))
        value = sheet.box(5.6, y + 0.56, f"value $v_{i}$", VALUE, 0.95, 0.34)
        times = sheet.circle(5.6, y, 0.16, "$\\times$")
        sheet.arrow((softmax.right[0], y), times.left, text=f"$\\alpha_{i}$", side="above")
        sheet.arrow(value.bottom, times.top)
        sheet.arrow(times.right, (6.22, y), (6.22, middle), total.left)
    sheet.arrow(total.right, output.left)
    sheet.text(2.9, 3.75, "scores $a(q, k_i)$", SMALL)
    sheet.text(4.15, 3.75, "weights: sum 1", SMALL)
    sheet.text(7.4, 1.45, "$\\sum_i \\alpha_i v_i$", LARGE)
    return sheet


FIGURES = {
    "soft_lookup.svg": Drawing(
        soft_lookup,
        "Two look-ups among the readings at the hours 1, 2 and 4. A dictionary asked for 2.0 gives "
        "the equal key weight 1 and the others 0, and returns 3.7. Attention asked for 2.2 weighs "
        "the keys by their distance, 0.29, 0.59 and 0.12, and returns the values mixed by these "
        "weights, 3.1.",
    ),
    "attention_pooling.svg": Drawing(
        attention_pooling,
        "Attention pooling: a score compares the query with each of three keys, softmax turns the "
        "scores into weights that sum to 1, each value is multiplied by its weight, and the sum "
        "is the output.",
    ),
}
