"""Diagrams of encoder and decoder block, and what chapter 08 collects from its models."""

import torch

from course_utils.models.attention import MultiHeadAttention
from course_utils.models.transformer import DecoderBlock, EncoderBlock, PositionWiseFFN
from course_utils.viz.canvas import FAINT, KEY, LARGE, LEARNED, QUERY, SMALL, STEP, Canvas
from course_utils.viz.drawings import Drawing

_VARIANTS = (0.15, "post-norm", False), (4.1, "pre-norm", True)  # left edge, title, norm_first


class _Stack:
    """A column of layers, drawn from the bottom to the top, through which one stream runs."""

    def __init__(self, sheet, x, bottom, shape):
        self.sheet, self.x, self.y, self.shape = sheet, x, bottom, shape

    def up(self, gap=0.32, text="", head=True):
        """The stream goes up by `gap`."""
        start, self.y = self.y, self.y + gap
        self.sheet.arrow((self.x, start), (self.x, self.y), text=text, head=head)

    def box(self, text, colour=STEP, height=0.34):
        """A layer on top of the stream."""
        drawn = self.sheet.box(self.x, self.y + height / 2, text, colour, 1.9, height, 9)
        self.y += height
        return drawn

    def sublayer(self, text, colour, norm_first, height=0.6, inputs=1):
        """A sub-layer with its residual connection, and its LayerNorm before it or after.

        inputs: so many arrows enter the sub-layer from the stream. Returns the sub-layer's box.
        """
        self.up(0.1, head=False)
        fork = self.y
        if norm_first:
            self.up(0.3, self.shape)
            self.box("LayerNorm")
        self.up(0.34, self.shape)
        drawn = self.box(text, colour, height)
        for i in range(1, inputs):
            x, knee = self.x - 0.4 * i, drawn.bottom[1] - 0.2
            self.sheet.arrow((self.x, knee), (x, knee), (x, drawn.bottom[1]))
        self.up(0.28, self.shape)
        self.y += 0.14
        plus = self.sheet.circle(self.x, self.y, 0.14, "+", size=LARGE)
        self.y += 0.14
        aside = self.x - 1.25
        self.sheet.arrow((self.x, fork), (aside, fork), (aside, plus.y), plus.left)
        if not norm_first:
            self.up(0.28, self.shape)
            self.box("LayerNorm")
        return drawn


def encoder_block():
    """Self-attention and feed-forward network, each with residual and norm: both orders."""
    sheet, shape = Canvas(8, 6.2), "(B, Ts, d_model)"
    for left, title, norm_first in _VARIANTS:
        sheet.frame(left, 0.45, left + 3.75, 5.75, f"{EncoderBlock.__name__}\n{title}")
        stack = _Stack(sheet, left + 1.75, 0.1, shape)
        stack.up(0.5, shape, head=False)
        attention = stack.sublayer(_attention("self"), QUERY, norm_first, inputs=3)
        _from_the_side(sheet, attention, "mask", "(B, 1, 1, Ts)")
        stack.sublayer(_feed_forward(), LEARNED, norm_first)
        stack.up(6.1 - stack.y, shape)
    return sheet


def decoder_block():
    """Masked self-attention, cross-attention, feed-forward network: both orders."""
    sheet, shape = Canvas(8, 8.6), "(B, Tt, d_model)"
    for left, title, norm_first in _VARIANTS:
        sheet.frame(left, 0.45, left + 3.75, 8.15, f"{DecoderBlock.__name__}\n{title}")
        stack = _Stack(sheet, left + 1.75, 0.1, shape)
        stack.up(0.5, shape, head=False)
        attention = stack.sublayer(_attention("masked self"), QUERY, norm_first, inputs=3)
        _from_the_side(sheet, attention, "causal mask", "(1, 1, Tt, Tt)")
        cross = stack.sublayer(_attention("cross"), KEY, norm_first, 0.9)
        _from_the_side(sheet, cross, "source mask", "(B, 1, 1, Ts)", 0.55)
        _from_the_side(sheet, cross, "memory: k, v", "(B, Ts, d_model)", -0.55, KEY)
        stack.sublayer(_feed_forward(), LEARNED, norm_first)
        stack.up(8.5 - stack.y, shape)
    return sheet


def _attention(kind):
    return f"{MultiHeadAttention.__name__}\n({kind}-attention)"


def _feed_forward():
    return f"{PositionWiseFFN.__name__}\nd_model → d_ff → d_model"


def _from_the_side(sheet, box, text, shape, up=0.0, colour=FAINT):
    x, y = box.at(1, up)
    sheet.arrow((x + 1.0, y), (x, y), colour=colour)
    sheet.text(x + 0.55, y + 0.11, text, SMALL)
    sheet.text(x + 0.55, y - 0.12, shape, SMALL - 0.5)


def over_seeds(probe, kinds, depths, seeds=3):
    """What probe(kind, depth, seed) finds, for each kind as a tensor (seeds, depths, ...)."""
    found = {}
    for kind in kinds:
        rows = [[probe(kind, depth, seed) for depth in depths] for seed in range(seeds)]
        found[kind] = torch.stack([torch.stack(row) for row in rows])
    return found


def cross_weights(model, source, given):
    """Weights (1, h, Tt, Ts) of cross-attention in `model.decoder`, which reads both sentences.

    A hook, a function that PyTorch calls with what a module reads, keeps queries, keys and values;
    with these the module is called once more.
    """
    cross, kept = model.decoder.cross_attention, []
    hook = cross.register_forward_pre_hook(lambda _, inputs: kept.extend(inputs[:3]))
    with torch.no_grad():
        model(source, given)
        hook.remove()
        _, weights = cross(*kept, return_weights=True)
    return weights


FIGURES = {
    "encoder_block.svg": Drawing(
        encoder_block,
        "Encoder block, from below: self-attention with a mask (B, 1, 1, Ts), then the "
        "feed-forward network, each with a residual connection; LayerNorm after each sum "
        "(post-norm) or before each sub-layer (pre-norm). All arrows carry (B, Ts, d_model).",
    ),
    "decoder_block.svg": Drawing(
        decoder_block,
        "Decoder block, from below: self-attention with the causal mask (1, 1, Tt, Tt), "
        "cross-attention to the memory (B, Ts, d_model), then the feed-forward network, each with "
        "residual connection and LayerNorm as in the encoder block.",
    ),
}
