"""Where the four ways insert what they train."""

from course_utils.viz.canvas import FAINT, LEARNED, SMALL, STEP, Canvas
from course_utils.viz.drawings import Drawing


def where_to_insert():
    """One block of an encoder, from below; residual connections and norms are left out."""
    sheet = Canvas(8, 4.2)
    sheet.frame(0.5, 1.0, 7.5, 3.72, "one frozen block (there are two)", STEP)
    middle = 4.0
    tokens = sheet.box(middle, 0.42, "vectors of n tokens", STEP, 2.2)
    queries = sheet.box(middle - 1.3, 1.4, "W_q", STEP, 0.8)
    keys = sheet.box(middle, 1.4, "W_k", STEP, 0.8)
    values = sheet.box(middle + 1.3, 1.4, "W_v", STEP, 0.8)
    attention = sheet.box(middle, 2.1, "attention, W_o", STEP, 3.4)
    first = sheet.box(middle, 2.7, "adapter", LEARNED, 1.3, 0.34)
    network = sheet.box(middle, 3.3, "feed-forward network", STEP, 2.2, 0.36)
    second = sheet.box(6.2, 3.3, "adapter", LEARNED, 1.3, 0.34)
    head = sheet.box(6.2, 3.98, "head", LEARNED, 1.3, 0.34)

    prompt = sheet.box(1.45, 0.42, "prompt: m vectors", LEARNED, 1.7)
    sheet.arrow(prompt.right, tokens.left, colour=LEARNED, text="in front", side="above")
    for layer, x in ((queries, 1.45), (values, 6.55)):
        lora = sheet.box(x, 1.4, "LoRA: B A", LEARNED, 1.2)
        near, far = (lora.right, layer.left) if x < middle else (lora.left, layer.right)
        sheet.arrow(near, far, colour=LEARNED)
    prefix = sheet.box(1.35, 2.1, "prefix: m keys, values", LEARNED, 1.6, size=SMALL)
    sheet.arrow(prefix.right, attention.left, colour=LEARNED)
    for layer, across in ((queries, -0.76), (keys, 0.0), (values, 0.76)):
        sheet.arrow(tokens.at(across, 1), layer.bottom)
        sheet.arrow(layer.top, (layer.x, attention.y - 0.21))
    sheet.arrow(attention.top, first.bottom)
    sheet.arrow(first.top, network.bottom)
    sheet.arrow(network.right, second.left)
    sheet.arrow(second.top, head.bottom)
    sheet.text(0.6, 3.98, "in colour: inserted and trained", SMALL, FAINT, align="left")
    return sheet


FIGURES = {
    "where_to_insert.svg": Drawing(
        where_to_insert,
        "One frozen encoder block. Inserted: a prompt in front of the tokens, LoRA beside W_q and "
        "W_v, a prefix in attention, adapters behind both sub-layers, a head above the last block.",
    ),
}
