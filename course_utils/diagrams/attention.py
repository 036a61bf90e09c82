"""Diagrams of attention itself: look-up, pooling, scores, and the block."""

import numpy as np

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


def soft_lookup():
    """A dictionary gives the value of one key; attention a mixture of all values."""
    sheet = Canvas(8, 5.6)
    words, french = ["dog", "cat", "car"], ["chien", "chat", "voiture"]
    _lookup(sheet, 4.15, "Dictionary: the one key that is equal", "cat", words, french,
            [0.0, 1.0, 0.0], "chat")  # fmt: skip
    keys, query = np.array([[1.0, 1.3], [1.0, 2.0], [0.8, 1.0]]), np.array([1.0, 2.0])
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


def scoring_functions():
    """Additive and scaled dot-product scores of one query and one key."""
    sheet = Canvas(8, 4.3)
    sheet.frame(0.15, 0.15, 4.15, 4.15, "Additive: sizes may differ")
    q = sheet.box(1.0, 0.6, "query (20)", QUERY, 1.2)
    k = sheet.box(3.2, 0.6, "key (2)", KEY, 1.2)
    w_q = sheet.box(1.0, 1.4, "$W_q$", LEARNED, 0.9)
    w_k = sheet.box(3.2, 1.4, "$W_k$", LEARNED, 0.9)
    plus = sheet.circle(2.1, 2.0, 0.18, "+", size=LARGE)
    tanh = sheet.box(2.1, 2.65, "tanh", STEP, 1.0, 0.36)
    w_v = sheet.box(2.1, 3.3, "$w_v$", LEARNED, 1.0, 0.36)
    sheet.arrow(q.top, w_q.bottom)
    sheet.arrow(k.top, w_k.bottom)
    sheet.arrow(w_q.top, (1.0, 2.0), plus.left, text="(n)", side="above", at=(1.4, 2.0))
    sheet.arrow(w_k.top, (3.2, 2.0), plus.right, text="(n)", side="above", at=(2.8, 2.0))
    sheet.arrow(plus.top, tanh.bottom)
    sheet.arrow(tanh.top, w_v.bottom, text="(n)")
    sheet.arrow(w_v.top, (2.1, 3.82), text="one score", at=(2.1, 3.7))
    sheet.frame(4.35, 0.15, 7.85, 4.15, "Scaled dot product: one size d")
    q = sheet.box(5.2, 0.6, "query (d)", QUERY, 1.2)
    k = sheet.box(7.0, 0.6, "key (d)", KEY, 1.2)
    dot = sheet.box(6.1, 1.7, "dot product\n$q^\\top k$", STEP, 1.5, 0.6)
    scale = sheet.box(6.1, 2.8, "divide by $\\sqrt{d}$", STEP, 1.5)
    sheet.arrow(q.top, (5.2, 1.1), (5.8, 1.1), (5.8, 1.4))
    sheet.arrow(k.top, (7.0, 1.1), (6.4, 1.1), (6.4, 1.4))
    sheet.arrow(dot.top, scale.bottom, text="variance d")
    sheet.arrow(scale.top, (6.1, 3.82), text="one score,\nvariance 1", at=(6.1, 3.4))
    return sheet


def scaled_dot_product_attention():
    """The block of the paper's figure 2, with the shape on every arrow."""
    sheet = Canvas(8, 6.6)
    middle, right = 2.5, 4.7
    q = sheet.box(1.7, 0.45, "queries", QUERY, 1.1)
    k = sheet.box(3.3, 0.45, "keys", KEY, 1.1)
    v = sheet.box(right, 0.45, "values", VALUE, 1.1)
    steps = [
        ("MatMul", "$Q K^\\top$: a score for each pair of query and key", False),
        ("Scale", "divide by $\\sqrt{d}$: the variance stays 1", False),
        ("Mask (optional)", "where False, the score becomes $-\\infty$", True),
        ("Softmax", "weights: each row sums to 1", False),
    ]
    boxes = []
    for i, (name, note, optional) in enumerate(steps):
        y = 1.65 + i
        boxes.append(sheet.box(middle, y, name, STEP, 2.2, dashed=optional))
        sheet.text(5.15, y, note, SMALL, align="left")
    sheet.arrow(q.top, (1.7, boxes[0].bottom[1]), text="(B, h, Tq, d)", side="left")
    sheet.arrow(k.top, (3.3, boxes[0].bottom[1]), text="(B, h, Tk, d)")
    for lower, upper in zip(boxes, boxes[1:], strict=False):
        sheet.arrow(lower.top, upper.bottom, text="(B, h, Tq, Tk)")
    mix = sheet.box(3.6, 5.6, "MatMul", STEP, 3.4)
    sheet.text(5.45, 5.6, "a mixture of the values per query", SMALL, align="left")
    sheet.arrow(boxes[-1].top, (middle, mix.bottom[1]), text="(B, h, Tq, Tk)")
    sheet.arrow(v.top, (right, mix.bottom[1]), text="(B, h, Tk, d)", at=(right, 1.15))
    sheet.arrow(mix.top, (3.6, 6.3), text="output (B, h, Tq, d)")
    return sheet
