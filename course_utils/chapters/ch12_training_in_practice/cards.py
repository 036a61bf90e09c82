"""The recall cards of chapter 12."""

from dataclasses import replace

from course_utils.models.parameters import BASE, BIG, count_parameters, on_meta, parts
from course_utils.models.transformer import EncoderBlock, TransformerConfig
from course_utils.recall.card import card
from course_utils.recall.chosen import statement
from course_utils.recall.computed import Number


def _sizes(config: TransformerConfig):
    return config.d_model, config.num_heads, config.d_ff, config.num_encoder_layers


def _millions(config):
    return round(sum(parts(config).values()) / 1e6, 1)


def _without_embedding(config):
    counts = parts(config)
    return counts["encoder"] + counts["decoder"]


CARDS = [
    card(
        "base-sizes", "sizes", "", "002-84",
        "The base model: (d_model, heads, d_ff, layers of each stack).",
        Number(lambda: _sizes(BASE),
               {(512, 8, 2048, 12): "6 in each stack.", (768, 12, 3072, 12): "That is BERT-base.",
                (512, 8, 512, 6): "d_ff is four times d_model.",
                (1024, 16, 4096, 6): "That is the big model."}, count=4),
        "d_ff = 4 d_model and d_model / h = 64.",
    ),
    card(
        "big-sizes", "sizes", "", "002-84",
        "The paper's big model: (d_model, heads, d_ff, layers of each stack).",
        Number(lambda: _sizes(BIG),
               {(1024, 16, 4096, 24): "24 layers has BERT-large, which is an encoder only.",
                (512, 8, 2048, 6): "That is the base model.",
                (1024, 8, 4096, 6): "A head keeps 64 numbers."}, count=4),
        "Twice as wide, equally deep.",
        "\"large has 24 layers\": these widths are the big model's of the paper, the 24"
        " layers BERT-large's.",
    ),
    card(
        "base-parameters", "sizes", "counting", "002-84",
        "How many million parameters has the base model, with one shared embedding of 37 000 "
        "words? (5 % off is near enough.)",
        Number(lambda: _millions(BASE),
               {44.1: "The embeddings are missing: 37 000 · 512.",
                101.0: "One matrix serves source, target and output.",
                37.8: "A decoder layer has a second attention: 4.2 M, not 3.15 M.",
                110: "That is BERT-base.", 214.2: "That is the big model."}, within=0.05),
        "18.9 M in the encoder, 25.2 M in the decoder, 18.9 M in the embedding; the paper says 65.",
    ),
    card(
        "big-parameters", "sizes", "counting", "002-84",
        "How many million parameters has the paper's big model, with one shared embedding of "
        "37 000 words? (5 % off is near enough.)",
        Number(lambda: _millions(BIG),
               {126.2: "Widths enter squared: layers become four times as large.",
                63.1: "That is the base model.", 302.3: "Those are the 24 layers of BERT-large."},
               within=0.05),
        "Twice the width is four times the layer: 176.4 M, and 37.9 M of embedding.",
    ),
    card(
        "bert-large-layers", "sizes", "counting", "002-84",
        "24 encoder layers of width 1024 (16 heads, d_ff 4096): how many million parameters? "
        "(5 % off is near enough.)",
        Number(lambda: round(24 * count_parameters(on_meta(
                   lambda: EncoderBlock(1024, 16, 4096, bias=True))) / 1e6, 1),
               {214.2: "That is the paper's big model, 6 + 6 layers.",
                75.6: "24 of them, not 6.", 743.1: "That is 24 + 24 layers with embeddings."},
               within=0.05),
        "12.6 M a layer.",
        "\"the large Transformer has 24 layers\": that is this encoder, and no "
        "encoder-decoder.",
    ),
    card(
        "ratio-of-ffn", "sizes", "", "002-84 002-89",
        "d_ff is how many times d_model, as a rule?",
        Number(lambda: BASE.d_ff // BASE.d_model, {2: "More.", 8: "That is the number of heads."}),
        "2048 = 4 · 512; 4096 = 4 · 1024.",
    ),
    card(
        "head-of-the-big-model", "sizes", "head layout", "002-84",
        "How large is a head of the big model?",
        Number(lambda: BIG.d_model // BIG.num_heads, {128: "16 heads share 1024.",
                                                      1024: "16 heads share 1024."}),
        "64, as in the base model.",
    ),
    card(
        "depth-doubles", "sizes", "counting", "002-84",
        "Base model, 12 + 12 layers instead of 6 + 6: the parameters *without* the embedding "
        "become ... times as many?",
        Number(lambda: _without_embedding(replace(BASE, num_encoder_layers=12,
                                                  num_decoder_layers=12))
               / _without_embedding(BASE),
               {4: "That is what twice the width does."}),
        "Depth enters once, width squared.",
    ),
    card(
        "twice-the-heads", "sizes", "counting", "002-84",
        "True or false: twice the heads, d_model kept, leaves the number of parameters as it is.",
        statement(True, "Heads share d_model; the matrices stay what they are.",
                  lambda: parts(replace(BASE, num_heads=16)) == parts(BASE)),
        "Heads are free; width and depth are not.",
    ),
]  # fmt: skip
