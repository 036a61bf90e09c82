"""Diagrams of attention in batches: how heads are split and merged, and what masks hide."""

from course_utils.viz.canvas import FAINT, LEARNED, SMALL, Canvas, tint
from course_utils.viz.drawings import Drawing
from course_utils.viz.style import BLUE, GREEN, ORANGE, PINK


def multi_head_attention():
    """Project, split into heads, attend in each, merge, project: 4 heads of size 2."""
    sheet = Canvas(8, 4.9)
    hues, cell, tokens, middle = [BLUE, ORANGE, GREEN, PINK], 0.105, 5, 2.75
    heads = len(hues)
    plain = [[tint(FAINT, 0.45)] * 2 * heads] * tokens
    coloured = [[tint(hue, 0.3) for hue in hues for _ in range(2)]] * tokens
    top = middle + tokens * cell / 2

    def matrix(x, colours, name, shape):
        grid = sheet.cells(x, top, colours, cell)
        sheet.text(grid.x, grid.top[1] + 0.16, name, SMALL)
        sheet.text(grid.x, grid.bottom[1] - 0.16, shape, SMALL - 0.5)
        return grid

    x_in = matrix(0.25, plain, "x", "(B, T, d_model)")
    w_q = sheet.box(1.5, middle, "$W_q$", LEARNED, 0.5)
    q = matrix(2.0, coloured, "queries", "(B, T, d_model)")
    merged = matrix(5.9, coloured, "merged", "(B, T, d_model)")
    w_o = sheet.box(7.1, middle + 1.2, "$W_o$", LEARNED, 0.5)
    out = sheet.cells(6.7, middle + 2.05, plain, cell)
    sheet.text(out.x - 0.5, out.y, "output", SMALL, align="right")
    sheet.arrow(x_in.right, w_q.left)
    sheet.arrow(w_q.right, q.left)
    sheet.arrow(merged.right, (7.1, middle), w_o.bottom)
    sheet.arrow(w_o.top, out.bottom)
    for i, hue in enumerate(hues):
        y = middle + 1.35 - 0.9 * i
        colour = tint(hue, 0.3)
        corner = y + tokens * cell / 2
        before = sheet.cells(3.5, corner, [[colour] * 2] * tokens, cell)
        attend = sheet.box(4.4, y, f"attention\nhead {i}", hue, 0.85, 0.5, SMALL)
        after = sheet.cells(5.1, corner, [[colour] * 2] * tokens, cell)
        sheet.arrow(q.right, before.left)
        sheet.arrow(before.right, attend.left)
        sheet.arrow(attend.right, after.left)
        sheet.arrow(after.right, merged.left)
    for x, name, note in ((3.4, "split_heads", "(B, h, T, d_model / h)"),
                          (5.4, "merge_heads", "(B, T, d_model)")):  # fmt: skip
        sheet.text(x, 0.62, name, SMALL, bold=True)
        sheet.text(x, 0.4, note, SMALL - 0.5)
    sheet.text(1.5, 0.5, "keys and values go the same way,\nthrough $W_k$ and $W_v$", SMALL)
    return sheet


FIGURES = {
    "multi_head_attention.svg": Drawing(
        multi_head_attention,
        "Multi-head attention with 4 heads: W_q projects x (B, T, d_model) to the queries, whose "
        "columns are split into 4 heads (B, h, T, d_model / h). Each head attends on its own, the "
        "results are merged to (B, T, d_model) and W_o mixes them. Keys and values go the same "
        "way.",
    ),
}
