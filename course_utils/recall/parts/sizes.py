"""Cards on note 002, sections 7, 8 and 13: sizes that are quoted, and training objectives."""

from dataclasses import replace

from torch import nn

from course_utils.recall.chosen import Choice, Keyword, statement
from course_utils.recall.computed import Expression, Inputs, Number
from course_utils.recall.model import card
from course_utils.sizes import BASE, BIG, on_meta, parts
from course_utils.transformer import EncoderBlock, TransformerConfig
from course_utils.translation import count_parameters


def _sizes(config: TransformerConfig):
    return config.d_model, config.num_heads, config.d_ff, config.num_encoder_layers


def _millions(config):
    return round(sum(parts(config).values()) / 1e6, 1)


def _layer_norms(d):
    return count_parameters(on_meta(lambda: nn.LayerNorm(d)))


CARDS = [
    card(
        "base-sizes", "12_training_in_practice", "", "002-84",
        "The base model: (d_model, heads, d_ff, layers of each stack).",
        Number(lambda: _sizes(BASE),
               {(512, 8, 2048, 12): "6 in each stack.", (768, 12, 3072, 12): "That is BERT-base.",
                (512, 8, 512, 6): "d_ff is four times d_model.",
                (1024, 16, 4096, 6): "That is the big model."}, count=4),
        "d_ff = 4 d_model and d_model / h = 64.",
    ),
    card(
        "big-sizes", "12_training_in_practice", "", "002-84",
        "The paper's big model: (d_model, heads, d_ff, layers of each stack).",
        Number(lambda: _sizes(BIG),
               {(1024, 16, 4096, 24): "24 layers has BERT-large, which is an encoder only.",
                (512, 8, 2048, 6): "That is the base model.",
                (1024, 8, 4096, 6): "A head keeps 64 numbers."}, count=4),
        "Twice as wide, equally deep.",
        "\"large: layers = 24\" (002-84 leaves it open, 002-50 says it): the widths are the "
        "paper's, the 24 layers BERT-large's.",
    ),
    card(
        "base-parameters", "12_training_in_practice", "counting", "002-84",
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
        "big-parameters", "12_training_in_practice", "counting", "002-84",
        "How many million parameters has the paper's big model, with one shared embedding of "
        "37 000 words? (5 % off is near enough.)",
        Number(lambda: _millions(BIG),
               {126.2: "Widths enter squared: layers become four times as large.",
                63.1: "That is the base model.", 302.3: "Those are the 24 layers of BERT-large."},
               within=0.05),
        "Twice the width is four times the layer: 176.4 M, and 37.9 M of embedding.",
    ),
    card(
        "bert-large-layers", "12_training_in_practice", "counting", "002-84",
        "24 encoder layers of width 1024 (16 heads, d_ff 4096): how many million parameters? "
        "(5 % off is near enough.)",
        Number(lambda: round(24 * count_parameters(on_meta(
                   lambda: EncoderBlock(1024, 16, 4096, bias=True))) / 1e6, 1),
               {214.2: "That is the paper's big model, 6 + 6 layers.",
                75.6: "24 of them, not 6.", 743.1: "That is 24 + 24 layers with embeddings."},
               within=0.05),
        "12.6 M a layer.",
        "\"large ... layers = 24\" is this encoder, and no encoder-decoder.",
    ),
    card(
        "ratio-of-ffn", "12_training_in_practice", "", "002-84 002-89",
        "d_ff is how many times d_model, as a rule?",
        Number(lambda: BASE.d_ff // BASE.d_model, {2: "More.", 8: "That is the number of heads."}),
        "2048 = 4 · 512; 4096 = 4 · 1024.",
    ),
    card(
        "head-of-the-big-model", "12_training_in_practice", "head layout", "002-84",
        "How large is a head of the big model?",
        Number(lambda: BIG.d_model // BIG.num_heads, {128: "16 heads share 1024.",
                                                      1024: "16 heads share 1024."}),
        "64, as in the base model.",
    ),
    card(
        "layernorm-parameters", "08_transformer_blocks", "counting", "002-125 002-84",
        "Parameters of one LayerNorm over d features.",
        Expression("2 * d", Inputs("d"), _layer_norms,
                {"d": "Scale and shift.", "2": "One scale and shift for each feature.",
                 "d**2": "It is no matrix."}, ["d + d"]),
        "gamma and beta.",
    ),
    card(
        "depth-doubles", "12_training_in_practice", "counting", "002-84",
        "Base model, 12 + 12 layers instead of 6 + 6: the parameters *without* the embedding "
        "become ... times as many?",
        Number(lambda: _without_embedding(replace(BASE, num_encoder_layers=12,
                                                  num_decoder_layers=12))
               / _without_embedding(BASE),
               {4: "That is what twice the width does."}),
        "Depth enters once, width squared.",
    ),
    card(
        "objective-of-bert", "11_three_modes", "", "002-85",
        "What does BERT learn to predict?",
        Choice(["the next token", "hidden tokens of its input", "a translation"], "b",
               {"a": "That is GPT.", "c": "That is T5, or the original."}),
        "Masked language modelling; the first BERT also guessed whether two sentences belong "
        "together.",
    ),
    card(
        "objective-of-gpt", "11_three_modes", "prefix", "002-85",
        "What does GPT learn to predict?",
        Choice(["the next token", "hidden tokens of its input", "a translation"], "a",
               {"b": "That is BERT.", "c": "That is T5, or the original."}),
        "Causal language modelling: every position predicts the token after it.",
    ),
    card(
        "objective-of-translation", "09_transformer_translation", "teacher forcing", "002-85",
        "In training the decoder reads the *true* target words, not its own guesses. The name of "
        "this?",
        Keyword("teacher forcing", ["教师强制", "强制教学"],
                {"label smoothing": "That softens the targets.",
                 "autoregression": "That is feeding its own guesses back, in generation."}),
        "So all positions can be trained at once.",
    ),
    card(
        "twice-the-heads", "12_training_in_practice", "counting", "002-84",
        "True or false: twice the heads, d_model kept, leaves the number of parameters as it is.",
        statement(True, "Heads share d_model; the matrices stay what they are.",
                  lambda: parts(replace(BASE, num_heads=16)) == parts(BASE)),
        "Heads are free; width and depth are not.",
    ),
]  # fmt: skip


def _without_embedding(config):
    counts = parts(config)
    return counts["encoder"] + counts["decoder"]
