"""The Transformer on one A4 page: note 002's memory card, with its mistakes mended.

The order of modules is read from running blocks, and every count is taken from a model."""

from course_utils.chapters.observed import modules_in_order
from course_utils.models.masks import causal_mask
from course_utils.models.parameters import BASE, BIG, count_parameters, on_meta, parts
from course_utils.models.transformer import DecoderBlock, EncoderBlock
from course_utils.viz.canvas import (
    FAINT,
    KEY,
    LARGE,
    LEARNED,
    QUERY,
    RESULT,
    SMALL,
    STEP,
    VALUE,
    WEIGHT,
    Canvas,
)
from course_utils.viz.drawings import Drawing

_LINE = 0.215  # inches from line to line
_COLOURS = {"self-attention": QUERY, "masked self-attention": QUERY, "cross-attention": KEY,
            "FFN": LEARNED, "add & norm": STEP}  # fmt: skip


def memory_card():
    """Formula, shapes, blocks, modes and masks, sizes, cost and remedies."""
    sheet = Canvas(8, 11.3)
    sheet.text(4, 11.12, "The Transformer on one page", LARGE, bold=True)
    _formula(sheet)
    _heads(sheet)
    _beside_attention(sheet)
    _blocks(sheet)
    _modes(sheet)
    _sizes(sheet)
    _cost(sheet)
    _remedies(sheet)
    return sheet


def _lines(sheet, x, y, lines, size=SMALL):
    """Lines of text below each other, the first at height y."""
    for i, line in enumerate(lines):
        sheet.text(x, y - _LINE * i, line, size, align="left")


def _table(sheet, xs, y, rows):
    """Rows of words in columns that begin at xs; the first row is the heads."""
    for i, row in enumerate(rows):
        for x, word in zip(xs, row, strict=True):
            sheet.text(x, y - _LINE * i, word, SMALL, align="left", bold=i == 0)


def _formula(sheet):
    sheet.frame(0.1, 9.3, 7.9, 10.95, "Attention")
    formula = r"softmax$\left(\frac{Q\,K^{\top}}{\sqrt{d_k}}\right)\,V$"
    sheet.text(1.55, 10.2, formula, 17)
    roles = [("Q", "query: what is looked for", "(B, h, Tq, d_k)", QUERY),
             ("K", "key: what the query is compared with", "(B, h, Tk, d_k)", KEY),
             ("V", "value: what is averaged and passed on", "(B, h, Tk, d_v)", VALUE),
             ("", "weights: softmax over the keys, rows sum to 1", "(B, h, Tq, Tk)", WEIGHT),
             ("", "output: one row for each query", "(B, h, Tq, d_v)", RESULT)]  # fmt: skip
    for i, (letter, role, shape, colour) in enumerate(roles):
        y = 10.66 - 0.235 * i
        sheet.cells(3.15, y + 0.08, [[colour]], 0.16)
        sheet.text(3.4, y, f"{letter}  {role}" if letter else role, SMALL, align="left")
        sheet.text(6.6, y, shape, SMALL, align="left")
    _lines(sheet, 0.22, 9.45, [
        "√d_k (one head's size) keeps the scores' spread near 1.   A mask hides before the "
        "softmax: -inf; True = may look.",
    ])  # fmt: skip


def _heads(sheet):
    sheet.frame(0.1, 7.68, 3.95, 9.22, "Heads")
    _lines(sheet, 0.22, 8.83, [
        "split: (B, T, d_model) → (B, T, h, d_k)",
        "         → transpose → (B, h, T, d_k),  d_k = d_model / h",
        "merge: transpose back, join, then the map W_o",
        "W_q, W_k, W_v, W_o: 4 d² parameters, whatever h is",
        "h heads: h rows of weights for each token",
    ])  # fmt: skip


def _beside_attention(sheet):
    sheet.frame(4.05, 7.68, 7.9, 9.22, "Beside attention")
    _lines(sheet, 4.17, 8.83, [
        "positions: sin, cos (pos / 10000^(2i/d)), or learned",
        "FFN: relu(x W_1 + b_1) W_2 + b_2, each position alone",
        "LayerNorm: (x - mean) / √(var + ε) · γ + β, per token",
        "post-norm (paper): LayerNorm(x + sublayer(x))",
        "pre-norm (deep): x + sublayer(LayerNorm(x)), norm at end",
    ])  # fmt: skip


def _blocks(sheet):
    sheet.frame(0.1, 5.62, 7.9, 7.6, "Blocks (post-norm), after embedding + positions, once")
    rows = [("encoder", EncoderBlock(8, 2, 16), 7.06), ("decoder", DecoderBlock(8, 2, 16), 6.2)]
    drawn = {}
    for name, block, y in rows:
        before = sheet.box(0.54, y, name, RESULT, 0.7, 0.5, SMALL)
        for i, module in enumerate(modules_in_order(block)):
            words = module.replace(" self-", "\nself-").replace("-att", "-\natt", 1)
            box = sheet.box(1.52 + 1.14 * i, y, words, _COLOURS[module], 0.92, 0.56, SMALL)
            sheet.arrow(before.right, box.left)
            before, drawn[name, module] = box, box
        if name == "encoder":
            memory = sheet.box(1.52 + 1.14 * 4, y, "memory\n(B, Ts, d)", RESULT, 0.92, 0.56, SMALL)
            sheet.arrow(before.right, memory.left)
    cross = drawn["decoder", "cross-attention"]
    turn = 6.6
    sheet.arrow(memory.bottom, (memory.x, turn), (cross.x, turn), cross.top, colour=KEY,
                text="keys and values", side="above", at=(4.95, turn - 0.03))  # fmt: skip
    sheet.text(4, 5.76, "The causal mask is needed in training, where the whole target is fed in; "
               "generation is one token after the other.", 7.8)  # fmt: skip


def _modes(sheet):
    sheet.frame(0.1, 3.87, 7.9, 5.54, "Three modes: rows look at columns")
    causal = causal_mask(4)[0, 0].tolist()
    every = [[True] * 4] * 4
    modes = [
        (0.3, [("source", every), ("target", causal), ("cross", every)],
         "encoder-decoder (paper, T5)", "translation, summaries", "teacher forcing"),
        (4.2, [("text", every)], "encoder-only (BERT)", "classification, search", "masked tokens"),
        (6.1, [("text", causal)], "decoder-only (GPT)", "writing, dialogue", "next token"),
    ]  # fmt: skip
    for left, maps, name, use, objective in modes:
        for i, (of, mask) in enumerate(maps):
            colours = [[QUERY if seen else None for seen in row] for row in mask]
            grid = sheet.cells(left + 1.2 * i, 5.22, colours, 0.16)
            sheet.text(grid.at(1, 0)[0] + 0.06, 5.0, of, 7.8, FAINT, align="left")
        _lines(sheet, left, 4.43, [name, use, f"training: {objective}"])


def _sizes(sheet):
    sheet.frame(0.1, 2.22, 3.95, 3.79, "Sizes, counted")
    block = on_meta(lambda: EncoderBlock(BIG.d_model, BIG.num_heads, BIG.d_ff, bias=True))
    layers = 24  # of BERT-large, which note 002 gives its "large"

    def row(name, config, depth, count):
        sizes = f"{config.d_model}", f"{config.num_heads}", f"{config.d_ff}"
        return name, *sizes, depth, f"{count / 1e6:.0f} M"

    rows = [("", "d", "h", "d_ff", "layers", "all")]
    for name, config in (("base", BASE), ("big", BIG)):
        depth = f"{config.num_encoder_layers} + {config.num_decoder_layers}"
        rows.append(row(name, config, depth, sum(parts(config).values())))
    rows.append(row("deep", BIG, f"{layers}", layers * count_parameters(block)))
    _table(sheet, (0.22, 0.75, 1.33, 1.7, 2.3, 3.2), 3.4, rows)
    _lines(sheet, 0.22, 2.56, ["base, big: with one embedding of 37 000 words",
                              "deep: BERT-large's encoder, without embedding"], 7.8)  # fmt: skip


def _cost(sheet):
    sheet.frame(4.05, 2.22, 7.9, 3.79, "Cost of a block, n tokens of size d")
    _table(sheet, (4.17, 6.45), 3.4, [
        ("multiplications of", ""),
        ("QKᵀ and weights · V", "2 n² d"),
        ("the four projections", "4 n d²"),
        ("the FFN, d_ff = 4 d", "8 n d²"),
        ("weights in memory", "h n² numbers"),
    ])  # fmt: skip
    equal = f"2 n² d = 12 n d² at n = 6 d: {6 * BASE.d_model} tokens for d = {BASE.d_model}"
    sheet.text(4.17, 2.36, equal, SMALL, align="left")


def _remedies(sheet):
    sheet.frame(0.1, 0.1, 7.9, 2.14, "When n² is too much")
    _table(sheet, (0.22, 2.55, 4.75), 1.75, [
        ("remedy", "how", "example"),
        ("sparse attention", "a window, a few global tokens", "Longformer, BigBird"),
        ("low rank", "n keys become k", "Linformer"),
        ("kernel", "softmax as a product of features", "Performer"),
        ("hashing", "only tokens of one bucket meet", "Reformer"),
        ("memory of the last segment", "its hidden states are kept", "Transformer-XL"),
        ("retrieval", "the input becomes shorter", "attention costs what it did"),
        ("cache, fused kernel", "no work twice; no map stored", "n² scores remain"),
    ])  # fmt: skip


FIGURES = {
    "memory_card.svg": Drawing(
        memory_card,
        "The Transformer on one page: the formula softmax(Q K^T / root of d_k) V with shapes and "
        "roles; heads; positions, FFN, LayerNorm, post-norm and pre-norm; the order of modules in "
        "the encoder and decoder block; the masks of encoder-decoder, encoder-only and "
        "decoder-only; sizes: base 63 M parameters, big 214 M, 24 encoder layers 302 M; cost: "
        "2 n² d for attention, 12 n d² for the rest, equal at 3072 tokens for d = 512; remedies.",
    ),
}
