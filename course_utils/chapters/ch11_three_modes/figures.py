"""Diagram of the three modes from the same parts, and a chart of what models find."""

from course_utils.viz import plot_curves
from course_utils.viz.canvas import FAINT, KEY, LEARNED, QUERY, RESULT, SMALL, Canvas
from course_utils.viz.drawings import Drawing

_FULL = ("self-attention\nall positions", QUERY)
_MASKED = ("masked self-attention\nnow and before", QUERY)
_CROSS = ("cross-attention", KEY)
_NETWORK = ("feed-forward network", LEARNED)


def draw_shares(updates, shares):
    """The share of tokens found over the updates: the mean as a curve, a dot for each seed.

    updates: (n,), shares: name -> (seeds, n).
    """
    plot_curves(
        updates,
        {name: share.mean(0) for name, share in shares.items()},
        "updates",
        "share of tokens found",
        points={
            name: (updates.repeat(len(share)), share.flatten()) for name, share in shares.items()
        },
    )


def three_modes():
    """Each stack with what it reads and what it says; residual connections are left out."""
    sheet = Canvas(8, 4.4)
    frames = (
        (0.1, 1.95, "Encoder-only", "as in BERT", QUERY),
        (2.1, 3.95, "Decoder-only", "as in GPT", QUERY),
        (4.1, 7.9, "Encoder-decoder", "the Transformer of 2017, T5", KEY),
    )
    for left, right, name, example, colour in frames:
        sheet.frame(left, 0.1, right, 4.3, name, colour)
        sheet.text(left + 0.12, 3.92, example, SMALL, FAINT, align="left")
    _stack(sheet, 1.02, "they <mask> this boy", [_FULL, _NETWORK], "call")
    _stack(sheet, 3.02, "<bos> they call", [_MASKED, _NETWORK], "they call this")
    _stack(sheet, 5.05, "they call this boy", [_FULL, _NETWORK], "memory", 2.95)
    _, cross, _ = _stack(sheet, 7.0, "<bos> boy this", [_MASKED, _CROSS, _NETWORK], "boy this call")
    middle = 6.02
    sheet.arrow((5.05 + 0.78, 2.95), (middle, 2.95), (middle, cross.y), cross.left, colour=KEY)
    sheet.text(5.05, 3.28, "gives keys and values", SMALL, KEY)
    return sheet


def _stack(sheet, x, read, layers, said, top=3.3):
    """One stack, upwards from what it reads to what it says. Returns the boxes of its layers.

    The layers stand on three floors; a stack of two leaves the middle one free.
    """
    sheet.text(x, 0.3, read, SMALL)
    floors = (1.05, 1.9, 2.6) if len(layers) == 3 else (1.05, 1.95)
    boxes, end = [], (x, 0.42)
    for (name, colour), y in zip(layers, floors, strict=True):
        height = 0.62 if "\n" in name else 0.4
        box = sheet.box(x, y, name, colour, 1.62, height, SMALL)
        sheet.arrow(end, box.bottom)
        boxes.append(box)
        end = box.top
    result = sheet.box(x, top, said, RESULT, 1.56, 0.36, SMALL)
    sheet.arrow(end, result.bottom)
    return boxes


FIGURES = {
    "three_modes.svg": Drawing(
        three_modes,
        "Three modes. Encoder-only: they <mask> this boy, self-attention over all positions, "
        "network, call. Decoder-only: <bos> they call, masked self-attention, network, they call "
        "this. Encoder-decoder: the encoder turns they call this boy into a memory, which gives "
        "keys and values to the cross-attention of the decoder, between its masked "
        "self-attention and its network.",
    ),
}
