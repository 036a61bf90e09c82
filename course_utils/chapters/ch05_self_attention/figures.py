"""The diagrams of chapter 05."""

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
)
from course_utils.viz.drawings import Drawing


def self_attention():
    """How y_1 comes about: x_1 asks, every x_j is compared, every x_j is mixed in."""
    sheet = Canvas(3.65, 4.9)
    sheet.frame(0.1, 0.1, 3.55, 4.8, "No parameters: x in three roles")
    for x, j in _columns(0.65, 0.78):
        sheet.circle(x, 0.55, 0.2, f"$x_{j}$", RESULT if j == 1 else STEP)
        _column(sheet, x, j, key=(x - 0.12, 0.71), value=(x + 0.2, 0.55), asked=(1.43, 0.75))
    _top(sheet, 0.65, 0.78)
    return sheet


def self_attention_roles():
    """The same with a vector for each role: q_1 asks, every k_j is compared, every v_j mixed in."""
    sheet = Canvas(4.4, 4.9)
    sheet.frame(0.1, 0.1, 4.3, 4.8, "A vector for each role, by $W_q$, $W_k$, $W_v$")
    for x, j in _columns(0.7, 1.0):
        token = sheet.circle(x, 0.55, 0.2, f"$x_{j}$", RESULT if j == 1 else STEP)
        key = sheet.circle(x - 0.31, 1.25, 0.14, f"$k_{j}$", KEY, size=SMALL)
        value = sheet.circle(x + 0.31, 1.25, 0.14, f"$v_{j}$", VALUE, size=SMALL)
        sheet.arrow(token.top, key.bottom)
        sheet.arrow(token.top, value.bottom)
        if j == 1:
            query = sheet.circle(x, 1.25, 0.14, f"$q_{j}$", QUERY, size=SMALL)
            sheet.arrow(token.top, query.bottom)
        _column(sheet, x, j, key=key.top, value=value.top, asked=(1.7, 1.4))
    _top(sheet, 0.7, 1.0)
    return sheet


def _columns(left, step):
    return [(left + step * i, i) for i in range(4)]


def _column(sheet, x, j, key, value, asked):
    """What happens with token j: compared with the query, weighed, mixed in."""
    dot = sheet.circle(x, 2.15, 0.15, "·", size=LARGE)
    times = sheet.circle(x, 3.5, 0.15, "$\\times$")
    sheet.arrow(asked, dot.bottom, colour=QUERY)
    sheet.arrow(key, (x - 0.12, 2.06), colour=KEY)
    sheet.arrow(dot.top, (x, 2.64))
    sheet.arrow((x, 3.0), times.bottom, text=f"$w_{{1{j}}}$", side="left", colour=WEIGHT)
    side = max(value[0], x + 0.31)
    start = (value, (side, value[1])) if value[0] < side else (value,)
    sheet.arrow(*start, (side, 3.5), times.right, colour=VALUE)
    sheet.arrow(times.top, (x, 4.02))


def _top(sheet, left, step):
    """The softmax over the keys, and the sum."""
    middle = left + 1.5 * step
    sheet.box(middle, 2.82, "softmax", STEP, 3 * step + 0.5, 0.36)
    sheet.box(middle, 4.2, "$y_1 = $ sum", RESULT, 3 * step + 0.5, 0.36)


def sequence_models():
    """How far apart two tokens are in a convolution, a recurrence and self-attention."""
    sheet = Canvas(8, 3.6)
    notes = [
        ("Convolution", "a layer: steps O(1), cost O(width n d²)", "ends: O(n / width) layers"),
        ("Recurrence", "a layer: steps O(n), cost O(n d²)", "ends: 1 layer, path O(n)"),
        ("Self-attention", "a layer: steps O(1), cost O(n d² + n² d)", "ends: 1 layer, path O(1)"),
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
        lower = [sheet.circle(x, 1.3, 0.16, f"$x_{i}$", KEY) for i, x in enumerate(xs)]
        upper = [sheet.circle(x, 2.6, 0.16, f"$y_{i}$", RESULT) for i, x in enumerate(xs)]
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


FIGURES = {
    "self_attention.svg": Drawing(
        self_attention,
        "Without parameters: x_1 is compared with every x_j, and softmax makes the weights with "
        "which y_1 sums all x_j.",
    ),
    "self_attention_roles.svg": Drawing(
        self_attention_roles,
        "With matrices: every x_i becomes query, key and value; q_1 is compared with every k_j, "
        "and y_1 sums the v_j.",
    ),
    "sequence_models.svg": Drawing(
        sequence_models,
        "Five inputs to five outputs: a convolution links neighbours, a recurrence each output to "
        "the next, self-attention everything.",
    ),
}
