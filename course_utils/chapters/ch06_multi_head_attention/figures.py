"""Diagrams of attention in batches: how heads are split and merged, and what masks hide."""

from course_utils.viz.canvas import FAINT, LEARNED, SMALL, Canvas, tint
from course_utils.viz.drawings import Drawing
from course_utils.viz.style import BLUE, GREEN, ORANGE, PINK


def multi_head_attention():
    """Project to queries, keys and values, split, attend in each head, merge, project."""
    sheet = Canvas(8, 5.2)
    hues, cell, tokens, middle = [BLUE, ORANGE, GREEN, PINK], 0.105, 5, 2.9
    heads = len(hues)
    plain = [[tint(FAINT, 0.45)] * 2 * heads] * tokens
    coloured = [[tint(hue, 0.3) for hue in hues for _ in range(2)]] * tokens
    half = tokens * cell / 2

    def matrix(x, y, colours, name, shape=None):
        grid = sheet.cells(x, y + half, colours, cell)
        sheet.text(grid.x, grid.top[1] + 0.16, name, SMALL)
        if shape:
            sheet.text(grid.x, grid.bottom[1] - 0.16, shape, SMALL - 0.4)
        return grid

    x_in = matrix(0.15, middle, plain, "x", "(B, T, d_model)")
    merged = matrix(5.9, middle, coloured, "merged", "(B, T, d_model)")
    w_o = sheet.box(7.15, middle + 1.2, "$W_o$", LEARNED, 0.5)
    out = sheet.cells(6.73, middle + 2.1, plain, cell)
    sheet.text(out.x - 0.5, out.y, "output", SMALL, align="right")
    sheet.arrow(merged.right, (7.15, middle), w_o.bottom)
    sheet.arrow(w_o.top, out.bottom)
    lanes = [middle + 1.35 - 0.9 * i for i in range(heads)]
    for j, name in enumerate(("queries", "keys", "values")):
        y = middle + 1.2 - 1.2 * j
        weight = sheet.box(1.55, y, f"$W_{name[0]}$", LEARNED, 0.5)
        grid = matrix(1.98, y, coloured, name, "(B, T, d_model)" if j == 2 else None)
        sheet.arrow(x_in.right, weight.left)
        sheet.arrow(weight.right, grid.left)
        for lane in lanes:
            sheet.arrow(grid.right, (3.45, lane), colour=tint(FAINT, 0.7), head=False)
    for i, (y, hue) in enumerate(zip(lanes, hues, strict=True)):
        colour = tint(hue, 0.3)
        for j, letter in enumerate("qkv"):
            before = sheet.cells(3.5 + 0.27 * j, y + half, [[colour] * 2] * tokens, cell)
            sheet.text(before.x, before.top[1] + 0.1, letter, SMALL - 0.4)
        attend = sheet.box(4.8, y, f"attention\nhead {i}", hue, 0.85, 0.5, SMALL)
        after = sheet.cells(5.4, y + half, [[colour] * 2] * tokens, cell)
        sheet.arrow(before.right, attend.left)
        sheet.arrow(attend.right, after.left)
        sheet.arrow(after.right, merged.left)
    for x, name, note in ((3.8, "split_heads", "each (B, h, T, d_model / h)"),
                          (6.1, "transpose, flatten", "(B, T, d_model)")):  # fmt: skip
        sheet.text(x, 0.62, name, SMALL, bold=True)
        sheet.text(x, 0.4, note, SMALL - 0.4)
    return sheet


FIGURES = {
    "multi_head_attention.svg": Drawing(
        multi_head_attention,
        "Multi-head attention with 4 heads: W_q, W_k and W_v project x (B, T, d_model); the "
        "columns are split into 4 heads (B, h, T, d_model / h). Each head attends, the results "
        "are merged to (B, T, d_model) and W_o mixes them.",
    ),
}
