"""The block then and now, shared key heads, and the curves of the race."""

from course_utils.viz import plot_curves
from course_utils.viz.canvas import FAINT, KEY, LARGE, LEARNED, QUERY, SMALL, STEP, Canvas
from course_utils.viz.drawings import Drawing

_HEADS = 4
_KINDS = (("multi-head", 4), ("grouped-query", 2), ("multi-query", 1))


def shared_key_heads():
    """Query heads below, key and value heads above; a line says which reads which."""
    sheet = Canvas(8, 2.55)
    for i, (name, kv) in enumerate(_KINDS):
        left = 0.95 + 2.45 * i
        middle = left + 0.5 * (_HEADS - 1) / 2
        sheet.text(middle, 2.3, name, bold=True)
        sheet.text(middle, 2.02, f"{kv} of {_HEADS} key heads cached", SMALL, FAINT)
        share = _HEADS // kv
        keys = [
            sheet.box(left + 0.5 * (share * j + (share - 1) / 2), 1.5, f"{j}", KEY, width=0.36)
            for j in range(kv)
        ]
        for head in range(_HEADS):
            query = sheet.box(left + 0.5 * head, 0.5, f"{head}", QUERY, width=0.36)
            sheet.arrow(query.top, keys[head // share].bottom)
    sheet.text(0.35, 1.5, "keys,\nvalues", SMALL)
    sheet.text(0.35, 0.5, "queries", SMALL)
    return sheet


def _block(sheet, x, title, parts, entry):
    """One pre-norm block, from below: two halves, each with a norm before it and a sum behind."""
    sheet.frame(x - 1.75, 0.75, x + 1.75, 5.0, title)
    below, y = sheet.box(x, 0.3, entry, KEY, 3.1, 0.36, 9).top, 1.0
    for norm, text, colour in parts:
        fork = (x, y - 0.1)
        first = sheet.box(x, y + 0.2, norm, STEP, 1.9, 0.32, 9)
        half = sheet.box(x, y + 0.85, text, colour, 2.1, 0.54, 9)
        plus = sheet.circle(x, y + 1.45, 0.13, "+", size=LARGE)
        sheet.arrow(below, first.bottom)
        sheet.arrow(first.top, half.bottom)
        sheet.arrow(half.top, plus.bottom)
        sheet.arrow(fork, (x - 1.35, fork[1]), (x - 1.35, plus.y), plus.left)
        below, y = plus.top, y + 1.95
    sheet.arrow(below, (x, 5.25))


def old_and_new_block():
    """The block of chapter 8 on the left; on the right the same block with today's parts."""
    sheet = Canvas(8, 5.35)
    _block(sheet, 2.0, "the old block", (
        ("LayerNorm", "attention,\na key head a query head", QUERY),
        ("LayerNorm", "two matrices, ReLU", LEARNED),
    ), "words + a table of positions")  # fmt: skip
    _block(sheet, 6.0, "today's block", (
        ("RMSNorm", "attention: rotary (RoPE),\nshared key heads (GQA)", QUERY),
        ("RMSNorm", "SwiGLU,\nor several experts (MoE)", LEARNED),
    ), "words")  # fmt: skip
    return sheet


def draw_race(runs, shown):
    """The loss over updates, then over time: of each kind the mean of its seeds.

    runs: kind -> (seeds, measurements, 3). The first third is left out: it would hide the rest.
    """
    updates = runs[shown[0]][0, :, 0]
    late = updates >= updates.max() / 3
    for column, label in ((0, "updates"), (1, "seconds of updates")):
        means = {kind: runs[kind][:, late].mean(0) for kind in shown}
        curves = {kind: (mean[:, column], mean[:, 2]) for kind, mean in means.items()}
        title = f"mean of {len(runs[shown[0]])} seeds"
        plot_curves([], curves, label, "loss on held-out text", title, figsize=(8, 4))


FIGURES = {
    "old_and_new_block.svg": Drawing(
        old_and_new_block,
        "Two blocks side by side: norm, attention, sum, norm, network, sum. The old one has "
        "LayerNorm, ReLU and a table of positions; today's has RMSNorm, rotary positions, shared "
        "key heads, and SwiGLU or experts.",
    ),
    "shared_key_heads.svg": Drawing(
        shared_key_heads,
        "In multi-head attention each of four query heads reads a key and value head of its own. "
        "In grouped-query attention query heads 0 and 1 read key head 0, and 2 and 3 read key head "
        "1. In multi-query attention all four read one.",
    ),
}
