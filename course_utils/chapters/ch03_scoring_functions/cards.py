"""The recall cards of chapter 03."""

import math

import torch

from course_utils.models.attention import DotProductAttention, MultiHeadAttention
from course_utils.recall.card import card
from course_utils.recall.chosen import Choice
from course_utils.recall.computed import Expression, Inputs, Number, Shape

_QKV = Inputs("Tq Tk d_k d_v", tensors={"Q": "Tq d_k", "K": "Tk d_k", "V": "Tk d_v"})
_BATCH = Inputs("B Tq Tk d_k d_v")


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


CARDS = [
    card(
        "attention-formula", "attention", "scale", "002-64 002-78 002-87 002-93 C-80",
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
        "softmax(QKᵀ / √d_k) without the V: those are the weights, not the output.",
    ),
    card(
        "attention-weights", "attention", "score", "002-87 002-78",
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
        "output-shape", "attention", "role of q, k, v", "002-87 002-64",
        "Q is (B, Tq, d_k), K is (B, Tk, d_k), V is (B, Tk, d_v). The shape of the output?",
        Shape("(B, Tq, d_v)", _BATCH, lambda **sizes: tuple(_run(**sizes)[0].shape),
              {"(B, Tq, d_k)": "What is averaged are values, so their size comes out.",
               "(B, Tk, d_v)": "There is one output for each query.",
               "(B, Tq, Tk)": "Those are the weights."}),
        "As many outputs as queries, each of the size of a value.",
    ),
    card(
        "weights-shape", "attention", "softmax axis", "002-87 002-64",
        "Queries (B, Tq, d_k) attend to keys (B, Tk, d_k) with one head. The shape of the weights?",
        Shape("(B, Tq, Tk)", _BATCH, lambda **sizes: tuple(_run(**sizes)[1][:, 0].shape),
              {"(B, Tk, Tq)": "Queries are the rows, keys the columns.",
               "(B, Tq, d_v)": "That is the output.",
               "(B, Tq, Tq)": "Queries and keys may differ in number."}),
        "Every query meets every key.",
    ),
    card(
        "spread-of-scores", "attention", "variance", "002-73 002-87",
        "q and k have 64 independent entries of variance 1. The standard deviation of q · k?",
        Number(_spread, {64: "That is the variance.", 1: "So it is after the scaling."},
               within=0.02, shown="8"),
        "64 products of variance 1 add up to variance 64; its root is 8.",
    ),
    card(
        "why-scale", "attention", "scale", "002-73 002-87",
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
        "root-of-scale", "attention", "scale", "002-64 002-73",
        "d_model = 512, 8 heads. By which number are the scores divided?",
        Number(lambda: math.sqrt(MultiHeadAttention(512, 8).split_heads(
                   torch.zeros(1, 1, 512)).shape[-1]),
               {math.sqrt(512): "The size of one head counts, 512 / 8.",
                64: "That is d_k; divide by its root."}),
        "d_k = 512 / 8 = 64, and its root is 8.",
    ),
]  # fmt: skip
