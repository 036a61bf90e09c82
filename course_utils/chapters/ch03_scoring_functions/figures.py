"""Diagrams of attention itself: look-up, pooling, scores, and the block."""

from course_utils.viz.canvas import KEY, LARGE, LEARNED, QUERY, SMALL, STEP, VALUE, Canvas
from course_utils.viz.drawings import Drawing


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
        ("Scale", "divide by $\\sqrt{d}$: variance d becomes 1", False),
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


FIGURES = {
    "scoring_functions.svg": Drawing(
        scoring_functions,
        "Additive: query and key through W_q and W_k, added, then tanh and w_v. Scaled dot "
        "product: query and key of one size d, multiplied, divided by the root of d.",
    ),
    "scaled_dot_product_attention.svg": Drawing(
        scaled_dot_product_attention,
        "Scaled dot-product attention: queries and keys are multiplied, scaled by the root of d, "
        "masked if wanted, put through softmax, and multiplied with the values.",
    ),
}
