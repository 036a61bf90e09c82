"""The recall cards of chapter 07."""

import torch

from course_utils.models.attention import MultiHeadAttention
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
        "without-positions", "attention", "position", "002-80",
        "True or false: without positions and without a mask, self-attention on shuffled words "
        "gives the same outputs, shuffled in the same way.",
        statement(True, "Nothing in the formula knows where a token stands.",
                  _swapping_inputs_swaps_outputs),
        "That is why order has to be put in.",
    ),
    card(
        "beyond-the-trained-length", "attention", "position", "002-80 002-89",
        "A learned positional embedding with max_len = 10 meets a sentence of 11 tokens:",
        Choice(["it computes the 11th vector", "it fails: there is no 11th vector"], "b",
               {"a": "Only the sinusoidal formula can go on."}, _longer_than_trained),
        "A table ends; a formula does not (though a model may still be bad beyond its training).",
    ),
]  # fmt: skip
