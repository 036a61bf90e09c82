"""The recall cards of chapter 06."""

import torch

from course_utils.models.attention import DotProductAttention, MultiHeadAttention
from course_utils.models.parameters import count_parameters, on_meta
from course_utils.recall.card import card
from course_utils.recall.chosen import Choice, Keyword, statement
from course_utils.recall.computed import Expression, Inputs, Number, Shape

_SIZES = Inputs("B h T d_k", {"d_model": "h * d_k"})
_MODEL = Inputs("h d_k", {"d_model": "h * d_k"})
_HEADS = Inputs(
    "T d_k d_model",
    tensors={"head_1": "T d_k", "head_2": "T d_k", "W_o": "_both d_model"},
    tied={"_both": "2 * d_k"},
)
_HEAD = Inputs("T _h d_k", {"d_model": "_h * d_k"}, {
    "Q": "T d_model", "K": "T d_model", "V": "T d_model",
    "W_q": "d_model d_k", "W_k": "d_model d_k", "W_v": "d_model d_k",
})  # fmt: skip


def _attention(q, k, v):
    return DotProductAttention()(q[None], k[None], v[None])[0]


def _merged(head_1, head_2, W_o, **_):
    """What the layer makes of two heads with this W_o."""
    layer = on_meta(lambda: MultiHeadAttention(W_o.shape[0], 2))
    return layer.merge_heads(torch.stack([head_1, head_2])[None])[0] @ W_o


def _first_head(Q, K, V, W_q, W_k, W_v, d_k, d_model, _h, **_):
    """What a layer with these weights in its first head gives as that head."""
    layer = MultiHeadAttention(d_model, _h).double().requires_grad_(False)
    for linear, W in zip((layer.W_q, layer.W_k, layer.W_v), (W_q, W_k, W_v)):
        linear.weight[:d_k] = W.T
    layer.W_o.weight.copy_(torch.eye(d_model))
    return layer(Q[None], K[None], V[None])[0, :, :d_k]


def _layer(h, d_k, d_model, bias=False):
    return count_parameters(on_meta(lambda: MultiHeadAttention(d_model, h, bias=bias)))


def _view_alone_is_wrong():
    """Whether .view(B, h, T, d_k) gives other heads than .view(B, T, h, d_k).transpose(1, 2)."""
    x = torch.arange(24.0).reshape(1, 3, 8)
    return torch.equal(x.view(1, 2, 3, 4), MultiHeadAttention(8, 2).split_heads(x))


CARDS = [
    card(
        "head-size", "heads", "head layout", "002-84 002-88",
        "d_model = 512, 8 heads: how many numbers has the query of one head?",
        Number(lambda: MultiHeadAttention(512, 8).split_heads(torch.zeros(1, 1, 512)).shape[-1],
               {512: "The heads share d_model out among themselves.",
                4096: "The heads share d_model out; they do not multiply it.",
                8: "That is the number of heads."}),
        "d_k = d_model / h.",
    ),
    card(
        "multi-head-formula", "heads", "projection", "002-79 002-88",
        "Two heads have given head_1 and head_2, both (T, d_k). The output of the layer, with "
        "W_o? (concat(a, b) joins along the features.)",
        Expression("concat(head_1, head_2) @ W_o", _HEADS, _merged, {
            "concat(head_1, head_2)": "W_o is missing: the last linear map mixes the heads.",
            "concat(head_2, head_1) @ W_o": "The heads stand in their order.",
        }, ["cat((head_1, head_2), -1) @ W_o", "MultiHead(Q, K, V) = Concat(head_1, head_2) W^O"]),
        "Side by side, then mixed: the sum of heads times their rows of W_o.",
    ),
    card(
        "head-formula", "heads", "projection", "002-79 002-88",
        "One head of Q, K, V with its W_q, W_k, W_v. (attention(q, k, v) is at hand.)",
        Expression("attention(Q @ W_q, K @ W_k, V @ W_v)", _HEAD,
                _first_head, {
                    "attention(Q, K, V)": "The projections are missing.",
                    "attention(Q @ W_q, K @ W_k, V)": "Values are projected, too.",
                    "attention(Q, K, V) @ W_v": "Queries and keys are projected, too.",
                    "attention(Q @ W_q, K @ W_q, V @ W_q)": "Each has a matrix of its own.",
                    "attention(K @ W_k, Q @ W_q, V @ W_v)": "Queries ask, keys are compared.",
                }, ["softmax((Q @ W_q) @ (K @ W_k).T / sqrt(d_k)) @ (V @ W_v)",
                    "Attention(Q W_q, K W_k, V W_v)"], {"attention": _attention}),
        "Every head looks at the same tokens through three matrices of its own.",
    ),
    card(
        "shape-after-split", "heads", "head layout", "002-73 002-79",
        "Queries (B, T, d_model) are split into heads, ready for Q @ K.T. Their shape?",
        Shape("(B, h, T, d_k)", _SIZES,
              lambda B, h, T, d_model, **_: tuple(
                  MultiHeadAttention(d_model, h).split_heads(torch.zeros(B, T, d_model)).shape),
              {"(B, T, h, d_k)": "So it is after .view; the transpose is still to come.",
               "(B, h, d_k, T)": "That is a transposed key.",
               "(B, h, T, d_model)": "Each head has its share of d_model."},
              ["(B, h, T, d_model / h)", "(B, h, T, d_model // h)"]),
        "Heads beside the batch, so that one matmul serves all heads.",
    ),
    card(
        "shape-of-scores", "heads", "head layout", "002-73 002-78",
        "Self-attention of x (B, T, d_model) with h heads: the shape of the scores?",
        Shape("(B, h, T, T)", _SIZES,
              lambda B, h, T, d_model, **_: tuple(MultiHeadAttention(d_model, h)(
                  *[torch.zeros(B, T, d_model)] * 3, return_weights=True)[1].shape),
              {"(B, T, T)": "Each head has a map of its own.",
               "(B, h, d_k, d_k)": "That would be K.T @ Q; the scores are Q @ K.T.",
               "(B, T, h, h)": "Without the transpose heads attend to heads."}),
        "A map for each head.",
    ),
    card(
        "shape-after-merge", "heads", "head merging", "002-79 002-88",
        "The heads (B, h, T, d_k) are joined again. The shape that goes into W_o?",
        Shape("(B, T, d_model)", _SIZES,
              lambda B, h, T, d_k, d_model: tuple(
                  MultiHeadAttention(d_model, h).merge_heads(torch.zeros(B, h, T, d_k)).shape),
              {"(B, h, T, d_k)": "They are still apart.",
               "(B, T, d_k)": "The heads are put side by side, not added.",
               "(B, h, d_model)": "The positions stay."},
              ["(B, T, h * d_k)"]),
        ".transpose(1, 2), then flatten the last two axes.",
    ),
    card(
        "why-view-and-transpose", "heads", "head layout", "002-73",
        "Why `.view(B, T, h, d_k).transpose(1, 2)` and not `.view(B, h, T, d_k)`?",
        Choice(["it is faster", "a view alone would put pieces of other positions into a head",
                "a view alone would copy the tensor"], "b",
               {"a": "It only changes the strides, as the other does.",
                "c": "A view never copies."}),
        "The features of one token lie together; .view cuts them into heads, transpose sorts them.",
    ),
    card(
        "view-alone", "heads", "head layout", "002-73",
        "True or false: `.view(B, h, T, d_k)` gives the same numbers in the same places.",
        statement(False, "The shape is the same, the contents are not.", _view_alone_is_wrong),
        "Right shape, wrong contents: no error tells you.",
    ),
    card(
        "multi-head-parameters", "heads", "counting", "002-79 002-84",
        "Parameters of multi-head attention without biases, in d_model (and h, if you need it).",
        Expression("4 * d_model**2", _MODEL, lambda **sizes: _layer(**sizes), {
            "3 * d_model**2": "W_o is the fourth matrix.",
            "4 * h * d_model**2": "The heads share the matrices; they do not multiply them.",
            "3 * h * d_model**2 + d_model**2": "The heads share the matrices.",
            "4 * d_model * d_k": "That is the share of one head.",
            "4 * d_model**2 + 4 * d_model": "There are no biases here.",
        }, ["4d_model²", "4 * d_model * h * d_k"]),
        "W_q, W_k, W_v, W_o, each d_model x d_model.",
    ),
    card(
        "multi-head-parameters-with-bias", "heads", "counting", "002-79 002-84",
        "Parameters of multi-head attention *with* a bias in each of its four linear "
        "maps.",
        Expression("4 * d_model**2 + 4 * d_model", _MODEL,
                lambda **sizes: _layer(**sizes, bias=True), {
                 "4 * d_model**2": "The biases are missing: d_model for each map.",
                 "4 * d_model**2 + d_model": "Each of the four maps has a bias.",
                 "4 * d_model**2 + 3 * d_model": "W_o has one, too.",
                 "4 * d_model**2 + 4": "A bias has d_model numbers."},
                ["4 * d_model * (d_model + 1)"]),
        "1 050 624 for d_model = 512.",
    ),
    card(
        "heads-cost-nothing", "heads", "counting", "002-65 002-79",
        "True or false: 8 heads have 8 times the parameters of 1 head.",
        statement(False, "The heads split d_model: each has matrices of an eighth of the width.",
                  lambda: _layer(8, 64, 512) == 8 * _layer(1, 512, 512)),
        "The count does not depend on h at all.",
    ),
    card(
        "why-heads", "heads", "head layout", "002-65 002-79 002-88 002-94",
        "What can two heads do that one head of full width cannot?",
        Choice(["give a token two different rows of weights at once",
                "see positions that are further away", "train without a residual connection",
                "hide the future"], "a",
               {"b": "One head sees every position, too.", "c": "That is another matter.",
                "d": "The mask does that."}),
        "One softmax gives one row of weights; with h heads a word can look for its subject in one "
        "and for its object in another.",
        "\"each head learns different features\", \"heads make training stable\": heads "
        "*can* differ, nothing makes them; trained models have redundant ones.",
    ),
    card(
        "after-the-heads", "heads", "projection", "002-79 002-88",
        "Heads are joined by concatenation. What comes then?",
        Keyword("a linear map", ["linear", "linear mapping", "linear transformation",
                                 "linear transform", "linear projection", "projection",
                                 "output projection", "W_o", "W^O", "dense", "fully connected",
                                 "线性变换", "线性层"],
                {"softmax": "The softmax is inside each head.",
                 "FFN": "That is the next sub-layer.",
                 "add & norm": "First the heads are mixed."}),
        "W_o lets every output feature draw on all heads.",
    ),
]  # fmt: skip
