"""Diagram of a vision Transformer: from a picture to words, and to an answer."""

from course_utils.viz.canvas import FAINT, LEARNED, RESULT, SMALL, STEP, VALUE, Canvas, tint
from course_utils.viz.drawings import Drawing

_CROSS = {(1, 2), (2, 1), (2, 2), (2, 3), (3, 2)}  # patches that the shape touches


def picture_to_words():
    """A picture in patches, the row of words with the class token, the encoder, the answer."""
    sheet = Canvas(8, 3.3)
    side = 0.36
    shade = [[tint(VALUE, 0.35) if (r, c) in _CROSS else "#E8E8E8" for c in range(4)]
             for r in range(4)]  # fmt: skip
    grid = sheet.cells(0.25, 2.6, shade, side, size=7.5,
                       texts=[[str(4 * r + c) for c in range(4)] for r in range(4)])  # fmt: skip
    sheet.text(grid.x, 2.85, "16 patches", SMALL)
    linear = sheet.box(2.65, grid.y, "one linear\nmap for all", LEARNED, 1.2, 0.6, SMALL)
    sheet.arrow(grid.right, linear.left)

    words = 3.85
    names = ["class", "0", "1", "2", "…", "15"]
    colours = [tint(LEARNED, 0.4), *[tint(VALUE, 0.7)] * 5]
    row = sheet.cells(words, 2.3, [colours], 0.5, 0.36, [names], SMALL)
    sheet.text(row.x, 2.55, "17 words of d numbers", SMALL)
    where = sheet.cells(words, 1.45, [[tint(LEARNED, 0.6)] * 6], 0.5, 0.36,
                        [["pos 0", "1", "2", "3", "…", "16"]], 7.5)  # fmt: skip
    sheet.text(row.x, 1.68, "+", SMALL)
    sheet.text(where.x, 0.85, "learned positions", SMALL, FAINT)
    sheet.arrow(linear.right, (words - 0.04, 2.12))

    blocks = sheet.box(7.4, 1.9, "encoder\nblocks", STEP, 0.95, 0.6, SMALL)
    sheet.arrow((words + 3.05, 1.9), blocks.left)
    answer = sheet.box(7.4, 0.75, "answer", RESULT, 0.95, 0.4, SMALL)
    sheet.arrow(blocks.bottom, answer.top)
    sheet.text(6.45, 0.33, "read from the class token alone", SMALL, FAINT)
    return sheet


FIGURES = {
    "picture_to_words.svg": Drawing(
        picture_to_words,
        "A picture in sixteen patches, numbered row by row; five of them hold a cross. One linear "
        "map makes a word of each. A class token stands before the sixteen words, a learned "
        "position is added to each of the seventeen, encoder blocks follow, and the answer is read "
        "from the class token alone.",
    ),
}
