"""Diagrams of attention itself: look-up, pooling, scores, the block, the heads, the masks."""

import numpy as np
import torch

from course_utils.diagrams.canvas import (
    FAINT,
    KEY,
    LARGE,
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
from course_utils.masks import causal_mask, combine_masks, padding_mask
from course_utils.plot.style import BLUE, GREEN, ORANGE, PINK


def soft_lookup():
    """A dictionary gives the value of one key; attention a mixture of all values."""
    sheet = Canvas(8, 5.6)
    words, french = ["dog", "cat", "car"], ["chien", "chat", "voiture"]
    _lookup(sheet, 4.15, "Dictionary: the one key that is equal", "cat", words, french,
            [0.0, 1.0, 0.0], "chat")  # fmt: skip
    keys, query = np.array([[1.0, 1.5], [1.0, 2.0], [-1.0, 0.0]]), np.array([1.0, 2.0])
    values = np.array([[8.0, 2.0], [10.0, 0.0], [0.0, 6.0]])
    weights = np.exp(keys @ query) / np.exp(keys @ query).sum()
    _lookup(sheet, 1.35, "Attention: every key, by how well it fits", _vector(query),
            [_vector(k) for k in keys], [_vector(v) for v in values], weights,
            _vector(weights @ values))  # fmt: skip
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


def _vector(numbers):
    return "[" + "  ".join(f"{number:.1f}" for number in numbers) + "]"


def attention_pooling():
    """Query and keys give weights; the weights and the values give the output."""
    sheet = Canvas(8, 4.2)
    query = sheet.box(1.0, 3.5, "query  $q$", QUERY, 1.2)
    output = sheet.box(7.0, 0.75, "output\n$\\sum_i \\alpha_i v_i$", RESULT, 1.5, 0.7)
    total = sheet.circle(5.55, 0.75, 0.2, "+", size=LARGE)
    softmax = sheet.box(5.0, 3.5, "softmax", STEP, 1.1)
    for i, x in enumerate((2.2, 3.3, 4.4), 1):
        key = sheet.box(x, 2.55, f"key $k_{i}$", KEY, 0.9)
        score = sheet.circle(x, 3.5, 0.2, "$a$", size=SMALL + 1)
        sheet.arrow(key.top, score.bottom)
        value = sheet.box(x, 0.75, f"value $v_{i}$", VALUE, 0.95)
        times = sheet.circle(x, 1.55, 0.17, "$\\times$")
        sheet.arrow(value.top, times.bottom)
        sheet.arrow((x + 0.17, 1.55), (5.55, 1.55), total.top, head=i == 3)
    return sheet, query, output, softmax


