"""Cards on note 002, sections 4.1, 4.2 and memory card 3: positions, scores, masks."""

import math

import torch
import torch.nn.functional as F

from course_utils.attention import DotProductAttention, MultiHeadAttention, masked_softmax
from course_utils.positional import LearnedPositionalEmbedding, sinusoidal_table
from course_utils.recall.chosen import Choice, Keyword, statement
from course_utils.recall.computed import Expression, Inputs, Number, Shape
from course_utils.recall.model import card

_QKV = Inputs("Tq Tk d_k d_v", tensors={"Q": "Tq d_k", "K": "Tk d_k", "V": "Tk d_v"})
_BATCH = Inputs("B Tq Tk d_k d_v")
_ROLES = ["what is looked for", "what a query is compared with", "what is passed on",
          "where the token stands"]  # fmt: skip


def _attend(Q, K, V, **_):
    return DotProductAttention()(Q[None], K[None], V[None])[0]


def _run(B, Tq, Tk, d_k, d_v):
    """Output and weights of attention on zeros of these sizes."""
    q, k, v = torch.zeros(B, Tq, d_k), torch.zeros(B, Tk, d_k), torch.zeros(B, Tk, d_v)
    return DotProductAttention()(q, k, v, return_weights=True)


def _spread():
    """The standard deviation of dot products of random vectors of 64 numbers, to 2 digits."""
    q, k = torch.randn(2, 100_000, 64, generator=torch.Generator().manual_seed(0))
    return round(float((q * k).sum(-1).std()), 1)


def _swapping_inputs_swaps_outputs():
    generator = torch.Generator().manual_seed(0)
    x, attention = torch.randn(1, 5, 8, generator=generator), MultiHeadAttention(8, 2)
    order = torch.tensor([3, 1, 4, 0, 2])
    y = x[:, order]
    return torch.allclose(attention(y, y, y), attention(x, x, x)[:, order], atol=1e-6)


def _longer_than_trained():
    try:
        LearnedPositionalEmbedding(8, max_len=10)(torch.zeros(1, 11, 8))
    except ValueError:
        return "b"
    return "a"


def _axis_of_ones():
    """The axis along which the weights sum to 1."""
    weights = masked_softmax(torch.randn(2, 3, 4, 5))
    return next(a for a in range(4) if torch.allclose(weights.sum(a), torch.ones(())))


def _half_precision():
    try:
        torch.zeros(1, dtype=torch.float16).masked_fill(torch.tensor([True]), -1e9)
    except RuntimeError:
        return "c"
    return "a"


CARDS = [
    card(
        "attention-formula", "03_scoring_functions", "scale", "002-64 002-78 002-87 002-93 C-80",
        "Scaled dot-product attention for matrices Q (Tq, d_k), K (Tk, d_k), V (Tk, d_v).",
        Expression("softmax(Q @ K.T / sqrt(d_k)) @ V", _QKV, _attend, {
            "softmax(Q @ K.T) @ V": "The scale is missing: divide by sqrt(d_k).",
            "softmax(Q @ K.T / d_k) @ V": "Divide by the square root of d_k, not by d_k.",
            "softmax(Q @ K.T * sqrt(d_k)) @ V": "Divide by the root, do not multiply.",
            "softmax(Q @ K.T / sqrt(d_k))": "V is missing: these are only the weights.",
            "Q @ K.T / sqrt(d_k) @ V": "The softmax is missing.",
            "softmax(Q @ K.T / sqrt(d_k) @ V)": "The softmax makes weights: it ends before V.",
            "softmax(Q @ K.T / sqrt(d_k), dim=0) @ V": "Softmax runs over the keys, the last axis.",
            "softmax(Q @ K.T) @ V / sqrt(d_k)": "The scale belongs inside the softmax.",
            "softmax(Q @ K.T / sqrt(d_v)) @ V": "The scale is the size of a key, not of a value.",
        }, ["softmax(QKᵀ / √d_k) V", "softmax(Q @ K.transpose(-2, -1) / d_k**0.5, dim=-1) @ V",
            "softmax(Q @ (K / sqrt(d_k)).T) @ V", "Attention(Q, K, V) = softmax(QK^T/√(d_k)) V",
            "(softmax(K @ Q.T / sqrt(d_k), dim=0)).T @ V"]),
        "Each row of weights sums to 1, so every output is a mean of values.",
        "one copy of the formula on the memory card (002-87) lacks V: those would be the weights, "
        "not the output.",
    ),
    card(
        "attention-weights", "03_scoring_functions", "score", "002-87 002-78",
        "Only the weights, (Tq, Tk), of scaled dot-product attention; Q is (Tq, d_k), K (Tk, d_k).",
        Expression("softmax(Q @ K.T / sqrt(d_k))", _QKV,
                lambda Q, K, V, **_: DotProductAttention()(
                    Q[None], K[None], V[None], return_weights=True)[1][0, 0],
                {"softmax(Q @ K.T)": "The scale is missing: divide by sqrt(d_k).",
                 "Q @ K.T / sqrt(d_k)": "Those are scores; the softmax turns them into weights.",
                 "softmax(Q @ K.T / sqrt(d_k)) @ V": "That is the output already.",
                 "softmax(K @ Q.T / sqrt(d_k))": "Rows belong to queries: Q comes first."}),
        "A row for each query, a column for each key.",
    ),
    card(
        "output-shape", "03_scoring_functions", "role of q, k, v", "002-87 002-64",
        "Q is (B, Tq, d_k), K is (B, Tk, d_k), V is (B, Tk, d_v). The shape of the output?",
        Shape("(B, Tq, d_v)", _BATCH, lambda **sizes: tuple(_run(**sizes)[0].shape),
              {"(B, Tq, d_k)": "What is averaged are values, so their size comes out.",
               "(B, Tk, d_v)": "There is one output for each query.",
               "(B, Tq, Tk)": "Those are the weights."}),
        "As many outputs as queries, each of the size of a value.",
    ),
    card(
        "weights-shape", "03_scoring_functions", "softmax axis", "002-87 002-64",
        "Queries (B, Tq, d_k) attend to keys (B, Tk, d_k) with one head. The shape of the weights?",
        Shape("(B, Tq, Tk)", _BATCH, lambda **sizes: tuple(_run(**sizes)[1][:, 0].shape),
              {"(B, Tk, Tq)": "Queries are the rows, keys the columns.",
               "(B, Tq, d_v)": "That is the output.",
               "(B, Tq, Tq)": "Queries and keys may differ in number."}),
        "Every query meets every key.",
    ),
    card(
        "sum-of-weights", "02_masked_softmax", "normalisation", "002-78 002-87",
        "One sentence, 8 heads, 5 queries, 7 keys. What do all the weights sum to?",
        Number(lambda: round(float(masked_softmax(torch.randn(1, 8, 5, 7)).sum())),
               {1: "Each query has a 1 of its own to share out.", 5: "In every one of the 8 heads.",
                56: "Rows belong to queries: 8 x 5.", 8: "There are 5 queries in each head."}),
        "1 for each head and query.",
    ),
    card(
        "role-of-query", "01_attention_pooling", "role of q, k, v", "002-87",
        "What is a query?",
        Choice(_ROLES, "a", {"b": "That is a key.", "c": "That is a value.",
                             "d": "Positions are added to the tokens, earlier."}),
        "It asks; the keys decide who answers.",
    ),
    card(
        "role-of-key", "01_attention_pooling", "role of q, k, v", "002-87 C-80",
        "What is a key?",
        Choice(_ROLES, "b", {"a": "That is a query.", "c": "That is a value.",
                             "d": "A key is made from what the token says; see the correction."}),
        "How well it fits the query makes the weight of its value.",
        "\"K: candidate position (候选位置)\" (002-87): a key is content to be compared, not a "
        "position; only the positional encoding in it says where it stands.",
    ),
    card(
        "role-of-value", "01_attention_pooling", "role of q, k, v", "002-87",
        "What is a value?",
        Choice(_ROLES, "c", {"a": "That is a query.", "b": "That is a key.",
                             "d": "Positions are added to the tokens, earlier."}),
        "The output is a weighted mean of values.",
    ),
    card(
        "spread-of-scores", "03_scoring_functions", "variance", "002-73 002-87",
        "q and k have 64 independent entries of variance 1. The standard deviation of q · k?",
        Number(_spread, {64: "That is the variance.", 1: "So it is after the scaling."},
               within=0.02, shown="8"),
        "64 products of variance 1 add up to variance 64; its root is 8.",
    ),
    card(
        "why-scale", "03_scoring_functions", "scale", "002-73 002-87",
        "Why divide by sqrt(d_k)?",
        Choice(["to make the weights sum to 1",
                "to keep the scores' spread near 1, so that softmax is not saturated",
                "to make it faster",
                "to keep the values small"], "b",
               {"a": "Softmax does that by itself.", "c": "It is one operation more.",
                "d": "Values are not scaled at all."}),
        "With a spread of sqrt(d_k) one weight is nearly 1, and the gradient of softmax nearly 0.",
    ),
    card(
        "softmax-axis", "02_masked_softmax", "softmax axis", "002-78",
        "Scores are (B, h, Tq, Tk). Which axis does the softmax run over? Answer with its index.",
        Number(_axis_of_ones,
               {2: "Then the weights of one key sum to 1 over the queries.",
                -2: "Then the weights of one key sum to 1 over the queries."}, same=[-1]),
        "Over the keys: the last axis, dim=-1.",
    ),
    card(
        "mask-before-softmax", "02_masked_softmax", "mask timing", "002-78 C-57",
        "A key is hidden. When, and how?",
        Choice(["before the softmax: its score becomes -inf",
                "after the softmax: its weight becomes 0",
                "before the softmax: its score becomes 0"], "a",
               {"b": "Then the visible weights no longer sum to 1.",
                "c": "A score of 0 still gets weight: exp(0) = 1."}),
        "exp(-inf) = 0, and the softmax shares out the 1 among the others.",
    ),
    card(
        "minus-infinity-everywhere", "02_masked_softmax", "empty row", "C-57",
        "All keys of a query are hidden with -inf. What does `F.softmax` give for its weights?",
        Keyword("NaN", ["not a number", "all of them NaN", "NaN everywhere"],
                {"0": "That is what masked_softmax of this course gives; F.softmax does not.",
                 "1/n": "That is what a finite filler such as -1e9 gives."}),
        "-inf minus the maximum -inf is no number. This course's `masked_softmax` gives zeros.",
        "the text says -∞, the code fills with -1e9 (C-57): these differ in exactly this row.",
    ),
    card(
        "large-number-everywhere", "02_masked_softmax", "empty row", "C-57",
        "All 4 keys of a query are hidden with -1e9. What weight does `F.softmax` give each?",
        Number(lambda: F.softmax(torch.full((4,), -1e9), dim=-1)[0].item(),
               {0: "All scores are equal, so the softmax cannot tell that they were hidden."}),
        "Equal scores, equal weights: padding is looked at as if nothing had been hidden.",
        "the code's -1e9 is not the text's -∞ (C-57).",
    ),
    card(
        "half-precision-filler", "02_masked_softmax", "overflow", "C-57",
        "`scores.masked_fill(mask == 0, -1e9)` with scores in float16:",
        Choice(["works as in float32", "fills with -65504", "raises an error"], "c",
               {"a": "The smallest float16 is -65504.", "b": "Nothing is clipped in silence."},
               _half_precision),
        "-1e9 does not fit into float16; bfloat16 has the range of float32 and takes it.",
        "the code fails in the FP16 that section 8 of the same note recommends (C-57).",
    ),
    card(
        "true-means", "02_masked_softmax", "mask meaning", "002-78",
        "True in a boolean mask: what does it mean in this course (and in "
        "`F.scaled_dot_product_attention`)?",
        Choice(["may look", "must not look"], "a",
               {"b": "So it is in nn.MultiheadAttention."},
               lambda: "a" if masked_softmax(
                   torch.zeros(1, 1, 2), mask=torch.tensor([True, False]))[0, 0, 0] == 1 else "b"),
        "`nn.MultiheadAttention` has it the other way round.",
    ),
    card(
        "position-formula", "07_positional_encoding", "frequency", "002-80 002-89",
        "The sinusoidal encoding at position pos, column 2i, for vectors of size d_model.",
        Expression("sin(pos / 10000**(2*i / d_model))",
                Inputs("pos i _m", {"d_model": "2 * (i + _m)"}),
                lambda pos, i, d_model, _m: sinusoidal_table(pos + 1, d_model)[pos, 2 * i], {
                    "cos(pos / 10000**(2*i / d_model))": "Cosines stand in the odd columns.",
                    "sin(pos / 10000**(i / d_model))": "The exponent is 2i / d_model.",
                    "sin(pos * 10000**(2*i / d_model))": "Divide: later pairs turn more slowly.",
                    "sin(pos / 10000**(2*i) / d_model)": "d_model stands in the exponent.",
                }, ["sin(pos * 10000**(-2*i/d_model))", "sin(pos / 10000^{2i/d_model})",
                    "sin(pos * exp(-log(10000) * 2 * i / d_model))"]),
        "Column 2i + 1 has the cosine of the same angle.",
    ),
    card(
        "two-kinds-of-positions", "07_positional_encoding", "position", "002-80 002-89",
        "Sinusoidal, fixed, is one kind of positional encoding. The other that note 002 names?",
        Keyword("learned",
                [*(" ".join((how, *what.split()))
                   for how in ("learned", "learnable", "trained", "trainable")
                   for what in ("", "embedding", "encoding", "position", "vector",
                                "position embedding", "positional embedding",
                                "positional encoding", "position encoding", "position vector")),
                 "可学习"]),
        "One trained vector for each position, as for words.",
    ),
    card(
        "without-positions", "07_positional_encoding", "position", "002-80",
        "True or false: without positions and without a mask, self-attention on shuffled words "
        "gives the same outputs, shuffled in the same way.",
        statement(True, "Nothing in the formula knows where a token stands.",
                  _swapping_inputs_swaps_outputs),
        "That is why order has to be put in.",
    ),
    card(
        "beyond-the-trained-length", "07_positional_encoding", "position", "002-80 002-89",
        "A learned positional embedding with max_len = 10 meets a sentence of 11 tokens:",
        Choice(["it computes the 11th vector", "it fails: there is no 11th vector"], "b",
               {"a": "Only the sinusoidal formula can go on."}, _longer_than_trained),
        "A table ends; a formula does not (though a model may still be bad beyond its training).",
    ),
    card(
        "root-of-scale", "03_scoring_functions", "scale", "002-64 002-73",
        "d_model = 512, 8 heads. By which number are the scores divided?",
        Number(lambda: math.sqrt(MultiHeadAttention(512, 8).split_heads(
                   torch.zeros(1, 1, 512)).shape[-1]),
               {math.sqrt(512): "The size of one head counts, 512 / 8.",
                64: "That is d_k; divide by its root."}),
        "d_k = 512 / 8 = 64, and its root is 8.",
    ),
]  # fmt: skip
