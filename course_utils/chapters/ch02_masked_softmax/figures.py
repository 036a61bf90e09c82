"""Diagrams of attention in batches: how heads are split and merged, and what masks hide."""

import torch

from course_utils.models.masks import causal_mask, combine_masks, padding_mask
from course_utils.viz.canvas import FAINT, SMALL, Canvas
from course_utils.viz.drawings import Drawing
from course_utils.viz.style import BLUE


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


FIGURES = {
    "masks.svg": Drawing(
        masks,
        "Three masks of je suis ici <pad> <pad>, queries down and keys across. The padding mask "
        "hides the last two columns, the causal mask hides all above the diagonal, and both "
        "together leave the lower triangle without the last two columns.",
    ),
}
