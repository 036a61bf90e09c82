"""The diagrams of chapter 09, and what its cells only call: a twin, times, maps, error rates."""

import math
import time

import torch

from course_utils.bench.measured import kept_records, seconds_by_steps
from course_utils.bench.results import measurements
from course_utils.models.recurrent import BahdanauDecoder, GRUEncoder, Seq2Seq
from course_utils.models.transformer import Transformer, TransformerConfig
from course_utils.training.metrics import alignment_error_rate, links_from_weights
from course_utils.viz.canvas import FAINT, KEY, LARGE, LEARNED, QUERY, SMALL, STEP, Canvas
from course_utils.viz.drawings import Drawing
from course_utils.viz.heatmaps import show_heatmaps
from course_utils.viz.style import PALETTE


def twin_of(model):
    """The package's Transformer with the numbers of the chapter's, whose parts stand in the same
    order; in evaluation mode."""
    block = model.encoder[0]
    twin = Transformer(TransformerConfig(
        model.src_embedding.num_embeddings, model.tgt_embedding.num_embeddings,
        d_model=model.src_embedding.embedding_dim, num_heads=block.attention.num_heads,
        d_ff=block.ffn[0].out_features, num_encoder_layers=len(model.encoder),
        num_decoder_layers=len(model.decoder), dropout=0.0,
    )).eval()  # fmt: skip
    with torch.no_grad():
        for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
            theirs.copy_(ours)
    return twin


def gru_of(task):
    """The recurrent model with attention of chapter 4, untrained."""
    encoder = GRUEncoder(len(task.src_vocab), 64, 128)
    return Seq2Seq(encoder, BahdanauDecoder(len(task.tgt_vocab), 64, 128, deep_output=True))


def seconds_of(models, batches, loss_of):
    """Seconds of the processor for each model, forward and back; they take turns at each batch."""
    seconds = dict.fromkeys(models, 0.0)
    for batch in batches:
        for name, model in models.items():
            started = time.process_time()
            logits = model(batch.src, batch.src_lens, batch.tgt_in)
            loss_of(logits, batch.tgt_out).backward()
            seconds[name] += time.process_time() - started
    return seconds


def draw_cross(maps, english, french, links, titles=None, mask=None):
    """Maps (Tt, Ts) of cross-attention side by side; the (French, English) links are outlined.

    Links to words that the sentence does not have are left out.
    """
    inside = [(q, k) for q, k in links if q < len(french) and k < len(english)]
    show_heatmaps(torch.stack(list(maps)), "Keys: English", "Queries: French", titles,
                  xticklabels=english, yticklabels=french, mask=mask, alignment=inside)  # fmt: skip


def error_rates(translator, pairs):
    """The alignment error rate of every cross-attention head, block by block.

    Without pairs that have a gold alignment nothing can be measured: [nan].
    """
    links = []  # per sentence: the links of each head
    for pair in pairs:
        heads = translator.attention_maps(pair.source, pair.target)[0]["cross"].flatten(0, 1)
        links.append([links_from_weights(head) for head in heads])
    gold = [pair.alignment for pair in pairs]
    return [alignment_error_rate(of_head, gold) for of_head in zip(*links)] or [math.nan]


def best_alignment(translator, pairs):
    """Of the head with the lowest error rate, the map that it aligns best in the longest fifth.

    Returns:
        weights (Tt, Ts), the English and the French tokens, the (French, English) links.
    """
    rates = error_rates(translator, pairs)
    head = rates.index(min(rates))
    longest = sorted(pairs, key=lambda pair: -len(pair.alignment))[: len(pairs) // 5 + 1]
    found = []
    for pair in longest:
        maps, english, french = translator.attention_maps(pair.source, pair.target)
        weights = maps["cross"].flatten(0, 1)[head]
        rate = alignment_error_rate([links_from_weights(weights)], [pair.alignment])
        links = [(t, s) for s, t in pair.alignment]
        found.append((rate, (weights, english, french, links)))
    return min(found, key=lambda one: one[0])[1]


class _Side:
    """Encoder or decoder, drawn upwards from the token ids."""

    def __init__(self, sheet, x, name, length):
        self.sheet, self.x, self.y = sheet, x, 0.42
        sheet.text(x, 0.25, f"{name} ids (B, {length})", SMALL)
        self.layer("Embedding", LEARNED)
        scaled = f"× $\\sqrt{{\\mathrm{{d\\_model}}}}$, (B, {length}, d_model)"
        self.layer("+ positions", STEP, gap=0.36, text=scaled)

    def layer(self, name, colour, gap=0.2, text=""):
        """An arrow and a box on top of what is there."""
        height = 0.5 if "\n" in name else 0.3
        start, self.y = self.y, self.y + gap
        self.sheet.arrow((self.x, start), (self.x, self.y), text=text)
        drawn = self.sheet.box(self.x, self.y + height / 2, name, colour, 2.0, height, 9)
        self.y += height
        return drawn

    def blocks(self, block, which, sublayers):
        """The framed block: each part behind its LayerNorm, and added to what came in."""
        bottom = self.y + 0.16
        self.sheet.arrow((self.x, self.y), (self.x, bottom + 0.12), head=False)
        self.y = bottom + 0.12
        boxes = []
        for name, colour in sublayers:
            past = self.y + 0.05  # where the way past the part begins
            self.layer("LayerNorm", STEP, 0.22)
            boxes.append(self.layer(name, colour, 0.16))
            top = self.y + 0.28
            self.sheet.arrow((self.x, self.y), (self.x, top - 0.11))
            self.sheet.circle(self.x, top, 0.11, "+", STEP, size=9)
            aside = self.x - 1.25
            self.sheet.arrow((self.x, past), (aside, past), (aside, top), (self.x - 0.11, top))
            self.y = top + 0.11
        left, right, top = self.x - 1.55, self.x + 1.75, self.y + 0.42
        self.sheet.frame(left, bottom, right, top, block)
        self.sheet.text(right - 0.12, top - 0.2, f"× layers[{which}]", SMALL, align="right")
        self.layer("LayerNorm", STEP, top - self.y + 0.16)
        return boxes


def architecture():
    """Encoder and decoder as the chapter's code has them, each part under its name there."""
    sheet = Canvas(8, 8.15)
    feed_forward = "feed_forward", LEARNED
    encoder = _Side(sheet, 2.1, "source", "Ts")
    encoder.blocks("EncoderBlock", 0, [("Attention\nself-attention", QUERY), feed_forward])
    decoder = _Side(sheet, 6.05, "target", "Tt")
    _, cross, _ = decoder.blocks(
        "DecoderBlock", 1,
        [("Attention\nself-attention, causal", QUERY), ("Attention\ncross-attention", KEY),
         feed_forward],
    )  # fmt: skip
    turn = encoder.y + 0.3
    sheet.arrow((2.1, encoder.y), (2.1, turn), (4.15, turn), (4.15, cross.y), cross.left,
                colour=KEY, text="memory (B, Ts, d_model)", side="above",
                at=(2.95, turn))  # fmt: skip
    output = decoder.layer("Embedding, transposed", LEARNED)
    sheet.text(output.right[0] + 0.08, output.y, "tied\nweights", SMALL, align="left")
    sheet.arrow((6.05, decoder.y), (6.05, decoder.y + 0.3),
                text="logits (B, Tt, French words)")  # fmt: skip
    return sheet


LEFT, BOTTOM, WIDTH, HEIGHT = 0.95, 0.75, 5.0, 3.1
SENTENCES = 64
LINE = 0.19  # between two names


def decoding_cost():
    """Seconds against steps, both axes logarithmic: a line's slope is the power of its growth."""
    curves = seconds_by_steps(measurements(kept_records()), SENTENCES)
    steps = sorted({step for curve in curves.values() for step, _ in curve})
    times = [seconds for curve in curves.values() for _, seconds in curve]
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))

    def at(step: int, seconds: float) -> tuple[float, float]:
        across = math.log(step / steps[0]) / math.log(steps[-1] / steps[0])
        up = (math.log10(seconds) - low) / (high - low)
        return LEFT + across * WIDTH, BOTTOM + up * HEIGHT

    sheet = Canvas(8, 4.4)
    sheet.text(LEFT, 4.15, f"Greedy decoding of {SENTENCES} sentences", LARGE, align="left")
    for step in steps:
        x, _ = at(step, 10**low)
        sheet.arrow((x, BOTTOM), (x, BOTTOM + HEIGHT), colour=FAINT, head=False)
        sheet.text(x, BOTTOM - 0.2, str(step), SMALL)
    for power in range(low, high + 1):
        _, y = at(steps[0], 10.0**power)
        sheet.arrow((LEFT, y), (LEFT + WIDTH, y), colour=FAINT, head=False)
        sheet.text(LEFT - 0.12, y, f"{10.0**power:g}", SMALL, align="right")
    sheet.text(LEFT + WIDTH / 2, 0.22, "steps", SMALL)
    sheet.text(0.25, BOTTOM + HEIGHT / 2, "seconds", SMALL, rotation=90)
    ends = []
    for colour, (name, curve) in zip(PALETTE, curves.items()):
        points = [at(step, seconds) for step, seconds in curve]
        for start, end in zip(points, points[1:]):
            sheet.arrow(start, end, colour=colour, head=False)
        for x, y in points:
            sheet.circle(x, y, 0.05, colour=colour, filled=True)
        ends.append((points[-1][1], name, colour))
    height = -math.inf
    for wanted, name, colour in sorted(ends):
        height = max(wanted, height + LINE)
        sheet.text(LEFT + WIDTH + 0.12, height, name, SMALL, colour, align="left")
    return sheet


FIGURES = {
    "transformer.svg": Drawing(
        architecture,
        "The Transformer under the names of the code. Left the encoder's blocks, right the "
        "decoder's: each part stands behind a LayerNorm and is added to what came in. "
        "Cross-attention reads the encoder's memory; the Embedding, transposed, gives the logits.",
    ),
    "decoding_cost.svg": Drawing(
        decoding_cost,
        "Seconds to decode 64 sentences greedily against the number of steps, both axes "
        "logarithmic. nn.Transformer rises steepest; d2l, ours and Marian rise about as the steps "
        "do; the matrix products alone lie below all of them.",
    ),
}
