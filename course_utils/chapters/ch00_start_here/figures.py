"""Diagram of the chapters, in the order in which they build on each other."""

from course_utils.viz.canvas import Canvas
from course_utils.viz.drawings import Drawing
from course_utils.viz.style import BLUE, GREEN, ORANGE, PINK, darker

_PARTS = [
    ("Attention", BLUE, [
        ("00", "Start here", "set-up and map"),
        ("01", "Attention pooling", "query, key, value"),
        ("02", "Masked softmax", "what may be seen"),
        ("03", "Scoring functions", "how well a key fits"),
        ("04", "Bahdanau translation", "attention in a GRU"),
    ]),
    ("Self-attention", ORANGE, [
        ("05", "Self-attention", "every word asks"),
        ("06", "Multi-head attention", "several at once"),
        ("07", "Positional encoding", "order, put back"),
    ]),
    ("Transformer", GREEN, [
        ("08", "Transformer blocks", "residual and norm"),
        ("09", "Transformer translation", "train, decode, look"),
        ("10", "Text classification", "one stack, one label"),
        ("11", "Three modes", "BERT, GPT, T5"),
    ]),
    ("In use", PINK, [
        ("12", "Training in practice", "and how it fails"),
        ("13", "Long sequences", "below the square of n"),
        ("14", "Fine-tuning", "LoRA and friends"),
        ("15", "Mistakes clinic", "the notes, mended"),
        ("16", "Recall", "to keep it in mind"),
    ]),
]  # fmt: skip


def course_map():
    """The chapters in their order, grouped by subject; chapter 09 takes up the task of 04."""
    sheet = Canvas(8, 7.8)
    chapters = [(colour, *chapter) for _, colour, part in _PARTS for chapter in part]
    boxes = []
    for i, (colour, number, title, note) in enumerate(chapters):
        row, column = divmod(i, 5)
        x, y = 0.86 + 1.57 * column, 6.75 - 1.95 * row
        boxes.append(sheet.box(x, y, colour=colour, width=1.3, height=1.15))
        sheet.text(x, y + 0.4, number, bold=True)
        sheet.text(x, y + 0.07, title.replace(" ", "\n", 1), 9)
        sheet.text(x, y - 0.37, note, 7.5)
        if column:
            sheet.arrow(boxes[-2].right, boxes[-1].left)
        elif row:
            _turn(sheet, boxes[-2], boxes[-1])
    for name, colour, part in _PARTS:
        first = boxes[[number for _, number, *_ in chapters].index(part[0][0])]
        left, top = first.at(-1, 1)
        sheet.text(left, top + 0.16, name, colour=darker(colour), align="left", bold=True)
    old, new = boxes[4].at(0.8, -1), boxes[9].at(0.8, 1)
    sheet.arrow(old, new, dashed=True, text="same\ntask", side="left")
    return sheet


def _turn(sheet, last, first):
    """From the end of one row to the beginning of the next."""
    start, end = last.at(-0.4, -1), first.at(0.8, 1)
    middle = (start[1] + end[1]) / 2 + 0.02
    sheet.arrow(start, (start[0], middle), (end[0], middle), end)


FIGURES = {
    "course_map.svg": Drawing(
        course_map,
        "Map of the course. Attention: 00 start here, 01 attention pooling, 02 masked softmax, "
        "03 scoring functions, 04 Bahdanau translation. Self-attention: 05 self-attention, "
        "06 multi-head attention, 07 positional encoding. Transformer: 08 Transformer blocks, "
        "09 Transformer translation, which takes up the task of 04, 10 text classification, "
        "11 three modes. In use: 12 training in practice, 13 long sequences, 14 fine-tuning, "
        "15 mistakes clinic, 16 recall.",
    ),
}
