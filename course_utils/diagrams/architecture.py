"""Diagram of the whole Transformer, with the class of every part."""

from dataclasses import fields

from course_utils.attention import MultiHeadAttention
from course_utils.diagrams.canvas import KEY, LEARNED, QUERY, SMALL, STEP, Canvas
from course_utils.positional import PositionalEncoding
from course_utils.transformer import (
    AddNorm,
    DecoderBlock,
    EncoderBlock,
    PositionWiseFFN,
    TransformerConfig,
)


class _Side:
    """Encoder or decoder, drawn upwards from the token ids."""

    def __init__(self, sheet, x, name, length):
        self.sheet, self.x, self.y = sheet, x, 0.42
        sheet.text(x, 0.25, f"{name} ids (B, {length})", SMALL)
        self.layer("Embedding", LEARNED)
        scaled = f"× $\\sqrt{{\\mathrm{{d\\_model}}}}$, (B, {length}, d_model)"
        self.layer(PositionalEncoding.__name__, STEP, gap=0.36, text=scaled)

    def layer(self, name, colour, gap=0.22, text=""):
        """An arrow and a box on top of what is there."""
        height = 0.5 if "\n" in name else 0.32
        start, self.y = self.y, self.y + gap
        self.sheet.arrow((self.x, start), (self.x, self.y), text=text)
        drawn = self.sheet.box(self.x, self.y + height / 2, name, colour, 2.0, height, 9)
        self.y += height
        return drawn

    def blocks(self, block, count, sublayers):
        """The framed block, each sub-layer followed by AddNorm. Returns the sub-layers' boxes."""
        bottom = self.y + 0.2
        self.sheet.arrow((self.x, self.y), (self.x, bottom + 0.2), head=False)
        self.y = bottom + 0.2
        boxes = []
        for name, colour in sublayers:
            boxes.append(self.layer(name, colour))
            self.layer(AddNorm.__name__, STEP, 0.18)
        left, right, top = self.x - 1.55, self.x + 1.75, self.y + 0.45
        self.sheet.frame(left, bottom, right, top, f"{block.__name__}")
        self.sheet.text(right - 0.12, bottom + 0.16, f"× {count}", SMALL, align="right")
        self.layer("LayerNorm (pre-norm only)", STEP, top - self.y + 0.2)
        return boxes


def architecture():
    """Encoder and decoder with the class of every part, and the fields that size them."""
    sheet = Canvas(8, 8.4)
    sheet.frame(0.55, 5.9, 3.85, 8.25, TransformerConfig.__name__)
    for i, field in enumerate(fields(TransformerConfig)):
        column, row = divmod(i, 7)
        sheet.text(0.7 + 1.72 * column, 7.78 - 0.27 * row, field.name, SMALL, align="left")
    attention, feed_forward = MultiHeadAttention.__name__, (PositionWiseFFN.__name__, LEARNED)
    encoder = _Side(sheet, 2.1, "source", "Ts")
    encoder.blocks(EncoderBlock, "num_encoder_layers",
                   [(f"{attention}\nself-attention", QUERY), feed_forward])  # fmt: skip
    decoder = _Side(sheet, 6.05, "target", "Tt")
    _, cross, _ = decoder.blocks(
        DecoderBlock, "num_decoder_layers",
        [(f"{attention}\nmasked self-attention", QUERY), (f"{attention}\ncross-attention", KEY),
         feed_forward],
    )  # fmt: skip
    turn = encoder.y + 0.3
    sheet.arrow((2.1, encoder.y), (2.1, turn), (4.2, turn), (4.2, cross.y), cross.left, colour=KEY,
                text="memory (B, Ts, d_model)", side="above", at=(2.95, turn))  # fmt: skip
    decoder.layer("Linear", LEARNED)
    sheet.arrow((6.05, decoder.y), (6.05, 8.3), text="logits\n(B, Tt, tgt_vocab_size)")
    return sheet
