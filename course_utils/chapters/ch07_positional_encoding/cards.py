"""The recall cards of chapter 07."""

import torch

from course_utils.models.attention import MultiHeadAttention
from course_utils.models.modern.biases import alibi_bias, alibi_slopes, relative_buckets
from course_utils.models.modern.rotary import rotate
from course_utils.models.positional import LearnedPositionalEmbedding, sinusoidal_table
from course_utils.recall.card import card
from course_utils.recall.chosen import Choice, Keyword, statement
from course_utils.recall.computed import Expression, Inputs


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


def _both_moved_by_100():
    """What becomes of a rotary score when query and key both stand 100 places further on."""
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 1, 8, generator=generator)
    scores = [
        (rotate(q, torch.tensor([m])) @ rotate(k, torch.tensor([m - 3])).T).item() for m in (5, 105)
    ]
    return "b" if abs(scores[0] - scores[1]) < 1e-4 else "a"


def _lengths_stay():
    x = torch.randn(5, 8, generator=torch.Generator().manual_seed(0))
    return torch.allclose(rotate(x).norm(dim=-1), x.norm(dim=-1), atol=1e-5)


def _bias_of_head_0(m, n):
    """Of four heads, whose slope is 1/4; the bias is in proportion to the slope."""
    return m * alibi_bias(4, n + 1)[0, 0, n, 0] / alibi_slopes(4)[0]


def _far_distances_share_a_bucket():
    found = relative_buckets(torch.tensor([[1, 2, 100, 101]]), 8, 16)[0].tolist()
    return found[0] != found[1] and found[2] == found[3]


CARDS = [
    card(
        "position-formula", "attention", "frequency", "002-80 002-89",
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
        "two-kinds-of-positions", "attention", "position", "002-80 002-89",
        "Positions by sines and cosines are computed by a fixed formula. The other "
        "common kind of positional vectors is ...?",
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
        "without-positions", "attention", "position", "002-80",
        "True or false: without positions and without a mask, self-attention on shuffled words "
        "gives the same outputs, shuffled in the same way.",
        statement(True, "Nothing in the formula knows where a token stands.",
                  _swapping_inputs_swaps_outputs),
        "That is why order has to be put in.",
    ),
    card(
        "rotary-both-moved", "attention", "position", "002-80",
        "Rotary positions: a query and a key, three places apart, both move 100 places further on. "
        "Their score:",
        Choice(["it changes", "it stays as it was"], "b",
               {"a": "Both turn by the same angle, and that changes no dot product."},
               _both_moved_by_100),
        "Query and key are turned by their positions, so that only the difference counts.",
    ),
    card(
        "rotary-lengths", "attention", "position", "002-80",
        "True or false: rotary positions change the direction of a query, not its length.",
        statement(True, "A rotation keeps lengths.", _lengths_stay),
        "Nothing is added to the vector; each pair of its columns is turned.",
    ),
    card(
        "alibi-bias", "attention", "position", "002-80",
        "ALiBi, slope m: what is added to the score of a key that stands n steps before the query?",
        Expression("-m * n", Inputs("m n"), _bias_of_head_0, {
                       "m * n": "Distance lowers the score: mind the minus.",
                       "-n": "Each head has a slope of its own.",
                       "-m": "The cost grows with each step.",
                   }, ["-(n * m)"]),
        "Nothing is trained; the slopes are fixed, another one in each head.",
    ),
    card(
        "t-five-buckets", "attention", "position", "002-80",
        "True or false: in T5 near distances have a trained number each, and far ones share one.",
        statement(True, "Buckets grow wider with the distance.", _far_distances_share_a_bucket),
        "So there is a number for every distance, also for those that no training text reached.",
    ),
    card(
        "beyond-the-trained-length", "attention", "position", "002-80 002-89",
        "A learned positional embedding with max_len = 10 meets a sentence of 11 tokens:",
        Choice(["it computes the 11th vector", "it fails: there is no 11th vector"], "b",
               {"a": "Only the sinusoidal formula can go on."}, _longer_than_trained),
        "A table ends; a formula does not (though a model may still be bad beyond its training).",
    ),
]  # fmt: skip
