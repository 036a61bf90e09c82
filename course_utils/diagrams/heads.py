"""Diagrams of attention in batches: how heads are split and merged, and what masks hide."""

import torch

from course_utils.diagrams.canvas import FAINT, LEARNED, SMALL, Canvas, tint
from course_utils.masks import causal_mask, combine_masks, padding_mask
from course_utils.plot.style import BLUE, GREEN, ORANGE, PINK


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


def masks():
    """Padding, causal and combined mask of a padded sentence, by the course's own functions."""
    sheet = Canvas(8, 4.2)
    words = ["je", "suis", "ici", "<pad>", "<pad>"]
    padding = padding_mask(torch.tensor([[4, 5, 6, 0, 0]]), pad_id=0).expand(1, 1, 5, 5)
    causal = causal_mask(5)
    titles = [("Padding mask", "hides the padding"), ("Causal mask", "hides the future"),
              ("Both", "padding & causal")]  # fmt: skip
    side = 0.44
    for i, mask in enumerate((padding, causal, combine_masks(padding, causal))):
        left, top = 0.72 + 2.45 * i, 3.35
        colours = [[BLUE if may else None for may in row] for row in mask[0, 0].tolist()]
        grid = sheet.cells(left, top, colours, side)
        sheet.text(grid.x, 3.95, titles[i][0], bold=True)
        sheet.text(grid.x, 3.62, titles[i][1], SMALL)
        for j, word in enumerate(words):
            sheet.text(left + (j + 0.5) * side, top - 5 * side - 0.13, word, SMALL - 1)
            if i == 0:
                sheet.text(left - 0.08, top - (j + 0.5) * side, word, SMALL, align="right")
        sheet.text(grid.x, 0.72, "keys", SMALL, FAINT)
    sheet.text(0.12, grid.y, "queries", SMALL, FAINT, rotation=90)
    sheet.cells(2.2, 0.32, [[BLUE]], 0.28, 0.18)
    sheet.text(2.58, 0.23, "True: may look", SMALL, align="left")
    sheet.cells(4.3, 0.32, [[None]], 0.28, 0.18)
    sheet.text(4.68, 0.23, "False: may not look", SMALL, align="left")
    return sheet
