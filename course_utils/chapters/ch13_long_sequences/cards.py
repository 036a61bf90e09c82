"""The recall cards of chapter 13."""

import torch
from torch.utils.flop_counter import FlopCounterMode

from course_utils.models.attention import MultiHeadAttention
from course_utils.models.parameters import on_meta
from course_utils.models.transformer import PositionWiseFFN
from course_utils.recall.card import card
from course_utils.recall.chosen import Choice, Keyword, statement
from course_utils.recall.computed import Expression, Inputs, Number

_N_AND_D = Inputs("n _h _d_k", {"d": "_h * _d_k"})
_REMEDIES = [
    "sparse: most pairs are left out",
    "low rank: keys and values are projected to fewer rows",
    "kernel: softmax is approximated by random features",
    "memory: the hidden states of the last segment are kept",
]  # fmt: skip


def products(layer, *inputs):
    """The multiplications of a layer on inputs of these shapes, counted as it runs."""
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        layer(*(torch.zeros(shape) for shape in inputs))
    return counter.get_total_flops() // 2  # a multiplication and an addition count as two


def _scores_and_average(n, _h, d, **_):
    """Multiplications of attention alone: the whole layer less its projections."""
    layer = on_meta(lambda: MultiHeadAttention(d, _h))
    whole = products(lambda x: layer(x, x, x, return_weights=True), (1, n, d))
    return whole - 4 * products(layer.W_q, (1, n, d))


def _projections(n, _h, d, **_):
    layer = on_meta(lambda: MultiHeadAttention(d, _h))
    return sum(products(W, (1, n, d)) for W in (layer.W_q, layer.W_k, layer.W_v, layer.W_o))


def _feed_forward(n, d, **_):
    return products(on_meta(lambda: PositionWiseFFN(d, 4 * d)), (1, n, d))


def _crossover():
    """The length at which attention alone costs what all linear layers of a block cost."""
    d, h, n = 512, 8, 64
    attention, rest = _scores_and_average(n, h, d), _projections(n, h, d) + _feed_forward(n, d)
    return n * rest // attention


def _stored_weights(n, h):
    layer = on_meta(lambda: MultiHeadAttention(2 * h, h))
    with torch.device("meta"):
        x = torch.zeros(1, n, 2 * h)
    return layer(x, x, x, return_weights=True)[1].numel()


CARDS = [
    card(
        "largest-advantage", "idea", "", "002-97 002-67 002-68",
        "The greatest advantage of the Transformer over a recurrent network, and its "
        "greatest bottleneck. Which two?",
        Choice(["training in parallel",
                "few parameters",
                "attention that costs O(n²) in the length n",
                "no need for positions"], "ac",
               {"b": "A Transformer has many.",
                "d": "Self-attention alone sees no order, so positions must be added."}),
        "Both come from the same thing: all pairs of positions are compared at once.",
    ),
    card(
        "attention-cost", "cost", "counting", "002-68 002-83 002-91 002-97",
        "The time of self-attention over n tokens of size d, as O( ). (Projections left out.)",
        Expression("O(n**2 * d)", _N_AND_D, _scores_and_average, {
            "n * d**2": "That is the cost of the projections, and of the FFN.",
            "n * d": "Every token meets every token.",
            "n**2": "Each comparison takes d multiplications.",
            "n**2 * d**2": "A dot product of two vectors of size d takes d multiplications.",
            "n**3": "Pairs, not triples.",
        }, ["n^2 d", "O(n² · d)", "2 n² d"], up_to_factor=True),
        "n² pairs, d multiplications each.",
        "\"O(n²)\" alone is the memory; and \"mainly QKᵀ\" forgets the average with V, "
        "which costs the same.",
    ),
    card(
        "attention-products", "cost", "counting", "002-68 002-83",
        "Self-attention over n tokens of size d, one sentence, all heads. How many multiplications "
        "are needed for the scores and the weighted average together?",
        Expression("2 * n**2 * d", _N_AND_D, _scores_and_average, {
            "n**2 * d": "That is QKᵀ; the average with V takes as many again.",
            "2 * n**2": "Each score takes d multiplications, summed over the heads.",
            "4 * n * d**2": "Those are the projections.",
        }, ["n²d + n²d"]),
        "n²d for QKᵀ and n²d for the average. The number of heads does not matter.",
    ),
    card(
        "projection-products", "cost", "counting", "002-68 002-91",
        "How many multiplications do the four projections of multi-head attention need, for n "
        "tokens of size d?",
        Expression("4 * n * d**2", _N_AND_D, _projections, {
            "3 * n * d**2": "W_o is the fourth.", "n * d**2": "There are four.",
            "2 * n**2 * d": "Those are scores and average.",
            "4 * d**2": "For each of the n tokens.",
        }),
        "d² multiplications a token and matrix.",
    ),
    card(
        "ffn-products", "cost", "counting", "002-68 002-89",
        "How many multiplications does the FFN with d_ff = 4d need, for n tokens of size d?",
        Expression("8 * n * d**2", _N_AND_D, _feed_forward, {
            "4 * n * d**2": "There are two matrices of d x 4d.",
            "8 * d**2": "For each of the n tokens.",
            "2 * n * d**2": "The hidden layer has 4d units.",
        }, ["n * d * 4 * d + n * 4 * d * d"]),
        "For usual lengths the largest part of a block.",
    ),
    card(
        "crossover", "cost", "counting", "002-68 002-83",
        "From which length n on does attention (2n²d) cost more than the rest of a block (12nd²) "
        "in the base model, d = 512?",
        Number(_crossover,
               {512: "2n²d = 12nd² gives n = 6d.", 6: "In multiples of d it is 6.",
                6144: "Attention takes 2n²d, not n²d.",
                1024: "That compares it with the projections only.",
                2048: "That compares it with the FFN only."}),
        "n = 6d = 3072. Below that the \"n² bottleneck\" is not the largest cost.",
        "\"n² dominates when n is large\": from here on.",
    ),
    card(
        "weights-in-memory", "cost", "memory", "002-83 002-91 002-68",
        "How many weights does one layer with h heads store for one sentence of n tokens?",
        Expression("h * n**2", Inputs("n h"), _stored_weights, {
            "n**2": "Each head has a map of its own.",
            "n": "Every query has a weight for every key.",
            "h * n": "Every query has a weight for every key.",
        }),
        "n = 1024 and 8 heads: 8 388 608 numbers, 32 MiB in float32.",
        "\"memory O(n²)\": with h heads h times that; and fused kernels keep none of "
        "it.",
    ),
    card(
        "megabytes-of-weights", "cost", "memory", "002-83 002-91",
        "n = 1024, 8 heads, one sentence, float32: how many MiB are the weights of one layer?",
        Number(lambda: _stored_weights(1024, 8) * 4 // 2**20,
               {4: "There are 8 heads.", 8: "A float32 has 4 bytes."}),
        "8 · 1024² numbers of 4 bytes.",
    ),
    card(
        "fused-kernels", "cost", "memory", "002-83 002-91",
        "True or false: a fused kernel such as FlashAttention still computes all n² scores.",
        statement(True, "It computes them block by block, and keeps none."),
        "O(n) memory, O(n² d) multiplications.",
    ),
    card(
        "longformer", "cost", "", "002-68 002-83 002-91",
        "Longformer and BigBird:",
        Choice(_REMEDIES, "a", {"b": "That is Linformer.", "c": "That is Performer.",
                                "d": "That is Transformer-XL."}),
        "A window round each token, and a few global tokens.",
    ),
    card(
        "linformer", "cost", "", "002-91",
        "Linformer:",
        Choice(_REMEDIES, "b", {"a": "That is Longformer.", "c": "That is Performer.",
                                "d": "That is Transformer-XL."}),
        "From n rows of keys and values to k; n is fixed.",
        "\"Linformer and Performer are low-rank\": the first is, the second is a kernel"
        " method.",
    ),
    card(
        "performer", "cost", "", "002-68 002-91",
        "Performer:",
        Choice(_REMEDIES, "c", {"a": "That is Longformer.", "b": "That is Linformer.",
                                "d": "That is Transformer-XL."}),
        "softmax(QKᵀ) becomes a product of features, φ(Q) φ(K)ᵀ, and the brackets can be moved.",
    ),
    card(
        "transformer-xl", "cost", "cache", "002-83 002-91",
        "Transformer-XL:",
        Choice(_REMEDIES, "d", {"a": "That is Longformer.", "b": "That is Linformer.",
                                "c": "That is Performer."}),
        "The last segment's states are looked at, too, without gradient, at relative positions.",
        "\"Transformer-XL caches keys and values\": it keeps hidden states of the "
        "segment before; caching keys and values is what decoders do.",
    ),
    card(
        "retrieval", "cost", "", "002-68 002-83",
        "How does retrieval help with long texts?",
        Choice(["it makes attention linear", "it compresses the keys",
                "it makes the input shorter"], "c",
               {"a": "Attention stays what it is.", "b": "Attention stays what it is."}),
        "Only the passages that matter are read; n becomes smaller.",
        "\"retrieval makes attention cheaper\": attention costs what it did, on a "
        "shorter input.",
    ),
    card(
        "big-o-of-the-bottleneck", "cost", "memory", "002-68 002-97",
        "Twice as many tokens: the memory for attention weights becomes ... times as large?",
        Number(lambda: _stored_weights(20, 2) // _stored_weights(10, 2),
               {2: "Every token meets every token.", 8: "Pairs, not triples."}),
        "2² = 4.",
    ),
    card(
        "reformer", "cost", "", "002-83",
        "Reformer compares only tokens that fall into the same bucket. How are buckets found?",
        Keyword("LSH", ["locality-sensitive hashing", "hashing", "locality-sensitive hash",
                        "LSH hashing", "LSH attention", "hash", "hash function",
                        "random rotations", "局部敏感哈希"],
                {"clustering": "Near it; but no clusters are learned.",
                 "window": "That is Longformer."}),
        "Similar vectors get the same hash with high probability.",
    ),
]  # fmt: skip
