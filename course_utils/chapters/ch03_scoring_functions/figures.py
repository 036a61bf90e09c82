"""Diagrams of a score and of the block of attention, and a chart: sums on the curve of tanh."""

import numpy as np

from course_utils.viz import display_figure, new_figure, use_course_style
from course_utils.viz.canvas import KEY, LARGE, LEARNED, QUERY, SMALL, STEP, VALUE, Canvas
from course_utils.viz.drawings import Drawing
from course_utils.viz.style import BLUE, FAINT, VERMILION, write


def draw_on_tanh(panels):
    """The curve of tanh, once a panel, with two sums marked on it and the step between them.

    panels: title -> (sum if the key lacks the feature, sum if it has it).
    """
    x, said = np.linspace(-4.5, 4.5, 181), []
    with use_course_style():
        figure, axes = new_figure(1, len(panels), (3.2 * len(panels), 2.9), sharey=True)
        for ax, (title, (lacks, has)) in zip(np.atleast_1d(axes), panels.items(), strict=True):
            low, high = np.tanh((lacks, has))
            ax.plot(x, np.tanh(x), color=FAINT)
            ax.plot((lacks, has), (low, low), color=FAINT, linestyle=":")
            ax.annotate("", (has, high), (has, low), arrowprops={"arrowstyle": "<->"})
            ax.plot(lacks, low, "s", color=VERMILION, label=f"lacks it: tanh({lacks:g})")
            ax.plot(has, high, "o", color=BLUE, label=f"has it: tanh({has:g})")
            ax.text(has - 0.2, (low + high) / 2, f"{high - low:.2f}", ha="right", va="center")
            ax.set_ylim(-1.15, 1.75)
            ax.grid(True)
            ax.legend(loc="upper left", fontsize=8)
            write(ax, "sum", "after tanh", title)
            said.append(f"{title}: from {low:.2f} at {lacks:g} to {high:.2f} at {has:g}")
    display_figure(
        figure, f"tanh with two sums marked. {'; '.join(said)}.", f"{len(panels)} curves"
    )


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
    sheet.arrow(q.top, (1.7, boxes[0].bottom[1]), text="(B, Tq, d)", side="left")
    sheet.arrow(k.top, (3.3, boxes[0].bottom[1]), text="(B, Tk, d)")
    for lower, upper in zip(boxes, boxes[1:], strict=False):
        sheet.arrow(lower.top, upper.bottom, text="(B, Tq, Tk)")
    mix = sheet.box(3.6, 5.6, "MatMul", STEP, 3.4)
    sheet.text(5.45, 5.6, "a mixture of the values per query", SMALL, align="left")
    sheet.arrow(boxes[-1].top, (middle, mix.bottom[1]), text="(B, Tq, Tk)")
    sheet.arrow(v.top, (right, mix.bottom[1]), text="(B, Tk, v)", at=(right, 1.15))
    sheet.arrow(mix.top, (3.6, 6.3), text="output (B, Tq, v)")
    return sheet


FIGURES = {
    "scoring_functions.svg": Drawing(
        scoring_functions,
        "Additive: query and key through W_q and W_k, added, tanh, w_v. Scaled dot product: both "
        "of size d, multiplied, divided by the root of d.",
    ),
    "scaled_dot_product_attention.svg": Drawing(
        scaled_dot_product_attention,
        "Scaled dot-product attention: queries times keys, divided by the root of d, masked if "
        "wanted, softmax, times the values.",
    ),
}
