"""Exercises of notebook 16: the formulas of the whole course, from memory and together."""

import math

import torch

from course_utils.checker.common import (
    DIVIDED_AGAIN,
    NOT_LOW,
    lowered,
    not_low_enough,
    not_shifted,
    softmax_of_hidden,
    unshifted,
    worked_out,
)
from course_utils.checker.exercise import exercise, wrong
from course_utils.checker.probes import draw, far_apart

NOTEBOOK = "16_recall"


def _attention(
    Q, K, V, mask, *, scale="root", axis=-1, hide="before", meaning="may look", mix="V", ask="Q"
):
    if ask == "K":
        Q, K, V = K, Q, V
    d_k, d_v = Q.shape[-1], V.shape[-1]
    divisors = {"root": d_k**0.5, "d": d_k, "none": 1.0, "values": d_v**0.5, "times": d_k**-0.5}
    divisors |= {"keys": K.shape[-2] ** 0.5, "heads": (Q.shape[1] * d_k) ** 0.5, "after": 1.0}
    scores = Q @ K.mT / divisors[scale]
    seen = mask if meaning == "may look" else ~mask
    if hide == "zero":
        scores = scores.masked_fill(~seen, 0.0)
    if hide == "added":
        scores = scores + seen
    if hide == "before":
        scores = scores.masked_fill(~seen, -math.inf)
    if hide == "before, with -1e9":  # where nothing is visible that is no NaN
        scores = scores.masked_fill(~seen, -1e9)
    if hide in NOT_LOW:
        scores = lowered(scores, ~seen, hide)
    weights = torch.softmax(scores, dim=axis).nan_to_num(0.0)
    if hide == "unshifted":
        weights = unshifted(scores, seen)
    weights = weights / d_k**0.5 if scale == "after" else weights
    if hide == "after":
        weights = weights.masked_fill(~seen, 0.0)
    if hide in DIVIDED_AGAIN:
        weights = weights * seen
        weights = weights / DIVIDED_AGAIN[hide](weights, seen)
    return weights if mix == "none" else weights @ (K if mix == "K" else V)


_Q, _K, _V = draw(161, (1, 1, 3, 4), (1, 1, 3, 4), (1, 1, 3, 4))
_Q2, _K2, _V2 = draw(162, (2, 2, 4, 9), (2, 2, 4, 9), (2, 2, 4, 9))
_Q3, _K3, _V3 = draw(163, (2, 3, 4, 8), (2, 3, 5, 8), (2, 3, 5, 3))
_TRIANGLE = torch.ones(4, 4, dtype=torch.bool).tril()[None, None]
_REAL = (torch.arange(5) < torch.tensor([[3], [5]]))[:, None, None]  # (2, 1, 1, 5)


@exercise(
    notebook=NOTEBOOK,
    minutes=4,
    difficulty=1,
    trains="the formula of attention",
    asks="practice",
    text="""
    Scaled dot-product attention with a mask, from memory, however far apart the scores lie. One
    line is enough.
    """,
    reference=_attention,
    probes=[
        (_Q, _K, _V, torch.tensor([[True, False, False], [True, True, False], [True] * 3])),
        (_Q2, _K2, _V2, _TRIANGLE),
        (_Q3, _K3, _V3, _REAL),
        (*(x[None, None] for x in far_apart(4, 4)), *draw(164, (1, 1, 4, 4)), _TRIANGLE),
    ],
    mistakes=[
        wrong(
            "the scores are not scaled",
            "scale",
            "Divide by the square root of d_k.",
            scale="none",
        ),
        wrong(
            "the scores are divided by d_k, not by its root",
            "scale",
            "The spread of a dot product is the square root of d_k.",
            scale="d",
        ),
        wrong(
            "the scores are multiplied by the root",
            "scale",
            "Divide: the scores are too large, not too small.",
            scale="times",
        ),
        wrong(
            "the root is taken of the size of a value",
            "scale",
            "The scores are dot products of queries and keys; their size counts.",
            scale="values",
        ),
        wrong(
            "softmax runs over the queries",
            "softmax axis",
            "Each query shares out a weight of 1 among the keys: dim=-1.",
            axis=-2,
        ),
        wrong(
            "the mask comes after the softmax",
            "mask timing",
            "Then the visible weights no longer sum to 1.",
            hide="after",
        ),
        wrong(
            "hidden scores become 0",
            "mask timing",
            "exp(0) = 1 is a weight; -inf gives none.",
            hide="zero",
        ),
        not_low_enough("hide", "at -1", "at -100"),
        not_low_enough("hide", "by 10000", scale="root", axis=-1),
        softmax_of_hidden("hide", axis=-1),
        not_shifted(hide="unshifted", axis=-1),
        wrong(
            "the mask is not used",
            "mask missing",
            "Where the mask is False, the key gets no weight.",
            hide="never",
        ),
        wrong(
            "the mask is inverted",
            "mask meaning",
            "True = may look.",
            {"hide": "before, with -1e9"},
            meaning="hide",
        ),
        wrong(
            "V is missing",
            "role of q, k, v",
            "The weights are not the output: they average the values.",
            mix="none",
        ),
        wrong(
            "the keys are averaged",
            "role of q, k, v",
            "Keys are compared; values are passed on.",
            mix="K",
        ),
        wrong(
            "the scale comes after the softmax",
            "scale",
            "Divide the scores: weights that are divided no longer sum to 1.",
            scale='after',
        ),
        wrong(
            "the root of the number of keys is taken",
            "scale",
            "A dot product has d_k terms, however many keys there are.",
            scale='keys',
        ),
        wrong(
            "the root is that of all heads together",
            "scale",
            "Each head has dot products of d_k terms; d_model is h times as large.",
            scale='heads',
        ),
        wrong(
            "the softmax runs over the heads",
            "softmax axis",
            "Each query of each head shares out a weight of 1 among the keys: dim=-1.",
            axis=1,
        ),
        wrong(
            "the mask is added as 0 and 1",
            "mask timing",
            "Adding 1 to the visible scores hides nothing: add 0 and -inf, or use "
            "masked_fill.",
            hide='added',
        ),
    ],
    hints=[
        "Scores, mask, softmax, average: four steps in this order.",
        "The scores of all pairs are one matrix product with the transpose of K.",
        "masked_fill takes the places to overwrite: those where the mask is False.",
    ],
    right_variants=[
        lambda Q, K, V, mask: (
            lambda e: e / e.sum(-1, keepdim=True) @ V
        )(
            (lambda s: (s - s.amax(-1, keepdim=True)).exp())(
                torch.where(mask, Q @ K.mT / math.sqrt(K.shape[-1]), -math.inf)
            )
        ),
        lambda Q, K, V, mask: torch.nn.functional.scaled_dot_product_attention(
            Q, K, V, attn_mask=mask
        ),
        lambda Q, K, V, mask: torch.einsum(
            "bhqk,bhkv->bhqv",
            (
                torch.einsum("bhqd,bhkd->bhqk", Q, K) * Q.shape[-1] ** -0.5
                + torch.zeros(mask.shape).masked_fill(~mask, -math.inf)
            ).softmax(-1),
            V,
        ),
    ],
)  # fmt: skip
def attention_in_one_line(Q, K, V, mask):
    """softmax(Q K^T / sqrt(d_k)) V, without what the mask hides.

    Q: (B, h, Tq, d_k), K: (B, h, Tk, d_k), V: (B, h, Tk, d_v); mask: boolean, True = may look,
    broadcasts to (B, h, Tq, Tk), at least one True in a row. Returns (B, h, Tq, d_v).
    """
    scores = Q @ K.transpose(-2, -1) / math.sqrt(Q.shape[-1])  # (B, h, Tq, Tk)
    return torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1) @ V


def _shapes(B, Tq, Tk, d_model, h, *, size="share", order="heads first", scores="Tq Tk",
            merged="d_model", length="Tq", maps="per head"):  # fmt: skip
    d = {"share": d_model // h, "whole": d_model, "heads": h, "float": d_model / h}[size]
    queries = {
        "heads first": (B, h, Tq, d), "not split": (B, Tq, d_model), "whole": (B, h, Tq, d_model)
    }.get(order, (B, Tq, h, d))  # fmt: skip
    rows = {"Tq Tk": (Tq, Tk), "Tk Tq": (Tk, Tq), "Tq Tq": (Tq, Tq), "d d": (d, d)}[scores]
    joined = {"d_model": d_model, "one head": d, "h": h, "h times d": h * d}.get(merged)
    out, rows_of_heads = {"Tq": (Tq, Tq), "Tk": (Tk, Tk), "heads": (Tq, Tk)}[length]
    shapes = {
        "queries": queries,
        "scores": (B, h, *rows) if maps == "per head" else (B, *rows),
        "heads": queries if order == "positions first twice" else (B, h, rows_of_heads, d),
        "output": (B, h, out, d) if merged == "not" else (B, out, joined),
    }
    if maps == "no batch":
        return {name: shape[1:] for name, shape in shapes.items()}
    if maps == "in the batch":
        return {n: (B * h, *s[2:]) if len(s) == 4 else s for n, s in shapes.items()}
    return shapes


def play_shapes(answer, B, Tq, Tk, d_model, h):
    """The shapes, and of what type the sizes in them are: a shape has no 3.0 in it."""
    shapes = answer(B, Tq, Tk, d_model, h)
    if not isinstance(shapes, dict):
        return shapes
    sizes = [n for shape in shapes.values() if isinstance(shape, (list, tuple)) for n in shape]
    return {**shapes, "type of the sizes": "/".join(sorted({type(n).__name__ for n in sizes}))}


@exercise(
    notebook=NOTEBOOK,
    minutes=5,
    difficulty=2,
    trains="shapes through a multi-head layer",
    text="""
    Tensors of queries `(B, Tq, d_model)` and of keys and values `(B, Tk, d_model)` go through
    multi-head attention. Which shapes come up on the way?
    """,
    reference=_shapes,
    play=play_shapes,
    probes=[(2, 3, 5, 12, 4), (1, 7, 4, 30, 5), (6, 2, 9, 64, 8)],
    mistakes=[
        wrong(
            "each head is as wide as the model",
            "head layout",
            "The heads share d_model: each has d_model / h features.",
            {"merged": "h times d"},
            size="whole",
        ),
        wrong(
            "each head has h features",
            "head layout",
            "h is the number of heads; each has d_model / h features.",
            size="heads",
        ),
        wrong(
            "heads and positions are not swapped",
            "head layout",
            "After the split the heads stand beside the batch: (B, h, Tq, d_model / h).",
            {"order": "positions first twice"},
            order="positions first",
        ),
        wrong(
            "the queries are not split into heads",
            "head layout",
            "Asked are the queries after the split: (B, h, Tq, d_model / h).",
            order="not split",
        ),
        wrong(
            "the queries of a head are as wide as the model",
            "head layout",
            "The split leaves d_model / h features to each head, in the queries as well.",
            order="whole",
        ),
        wrong(
            "rows and columns of the scores are swapped",
            "role of q, k, v",
            "Queries are the rows, keys the columns.",
            scores="Tk Tq",
        ),
        wrong(
            "the scores are square",
            "role of q, k, v",
            "Queries may be more or fewer than keys.",
            scores="Tq Tq",
        ),
        wrong(
            "the scores compare features",
            "score",
            "Q K^T compares positions: Tq times Tk.",
            scores="d d",
        ),
        wrong(
            "the heads are added, not joined",
            "head merging",
            "Side by side they give h · d_model / h = d_model features again.",
            {"merged": "h"},
            merged="one head",
        ),
        wrong(
            "there is an output for each key",
            "role of q, k, v",
            "Every query gets an output.",
            length="Tk",
        ),
        wrong(
            "one map for all heads",
            "head layout",
            "Each head has scores of its own.",
            maps="one",
        ),
        wrong(
            "each head has a row for each key",
            "role of q, k, v",
            "A head averages values into one row for each query, so it gives Tq rows.",
            length="heads",
        ),
        wrong(
            "a size is no whole number",
            "head layout",
            "d_model / h is a float such as 3.0, and no tensor can have that size: use //.",
            {"merged": "h times d"},
            size="float",
        ),
        wrong(
            "the heads are not joined",
            "head merging",
            "At the end the heads stand side by side: three axes, (B, Tq, d_model).",
            merged="not",
        ),
        wrong(
            "batch and heads are one axis",
            "head layout",
            "d2l does so, B * h; here they are two axes, (B, h, ...).",
            maps="in the batch",
        ),
        wrong(
            "the batch is left out",
            "head layout",
            "Every tensor has the sentences as its first axis.",
            maps="no batch",
        ),
    ],
    hints=[
        "Which axis do the heads get, and what is left of d_model for each?",
        "A score for each head, query and key.",
        "The output has the shape of the queries that came in.",
    ],
    right_variants=[
        lambda B, Tq, Tk, d_model, h: {
            "queries": [B, h, Tq, d_model // h],
            "scores": [B, h, Tq, Tk],
            "heads": [B, h, Tq, d_model // h],
            "output": [B, Tq, d_model],
        },
        lambda B, Tq, Tk, d_model, h: {
            "queries": torch.zeros(B, Tq, h, d_model // h).transpose(1, 2).shape,
            "scores": torch.zeros(B, h, Tq, Tk).shape,
            "heads": torch.zeros(B, h, Tq, d_model // h).shape,
            "output": torch.zeros(B, Tq, d_model).shape,
        },
        lambda B, Tq, Tk, d_model, h: (
            lambda q: {
                "queries": q,
                "scores": (*q[:3], Tk),
                "heads": q,
                "output": (q[0], q[2], q[1] * q[3]),
            }
        )((B, h, Tq, d_model // h)),
    ],
)
def multi_head_shapes(B, Tq, Tk, d_model, h):
    """The shapes on the way through multi-head attention.

    Returns a dictionary of four tuples: "queries", projected and split into heads; "scores";
    "heads", what they give, before they are joined; "output", after W_o.
    """
    return {
        "queries": (B, h, Tq, d_model // h),
        "scores": (B, h, Tq, Tk),
        "heads": (B, h, Tq, d_model // h),
        "output": (B, Tq, d_model),
    }


def _count(d_model, d_ff, layers, vocabulary, *, attention=4, cross=True, biases=True, norm=2,
           ffn=2, embeddings=1, stacks=2, norms=3, output_bias=False, last_norms=0,
           repeated=True):  # fmt: skip
    d = d_model
    of_map = {False: 0, "network": 0, "one number each": 1}.get(biases, d)
    behind = {
        False: 0, "attention": 0, "twice d_ff": 2 * d_ff, "twice d": 2 * d, "second": d,
        "one number each": 2,
    }.get(biases, d_ff + d)  # fmt: skip
    attend = attention * (d * d + of_map)
    forward = ffn * d * d_ff + behind
    of_norm = 2 if norm == "one number each" else norm * d
    layers = layers if repeated else 1
    encoder = attend + forward + 2 * of_norm
    decoder = (2 if cross else 1) * attend + forward + (norms if cross else 2) * of_norm
    blocks = layers * (encoder + (decoder if stacks == 2 else 0))
    blocks += last_norms * 2 * d
    return blocks + embeddings * vocabulary * d + (vocabulary if output_bias else 0)


@exercise(
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=3,
    trains="where the parameters are",
    asks="transfer",
    text="""
    Count a whole Transformer: `layers` encoder blocks and as many decoder blocks, post-norm, all
    linear maps of the blocks with biases, and **one** embedding that source, target and output
    share; so the output layer has no bias.
    `transformer_parameters(512, 2048, 6, 37000)` is the base model of the paper.
    """,
    reference=_count,
    probes=[(4, 16, 2, 11), (512, 2048, 6, 37000), (10, 30, 3, 7)],
    mistakes=[
        wrong(
            "the decoder has no cross-attention",
            "counting",
            "A decoder block has two attentions and three norms.",
            cross=False,
        ),
        wrong(
            "W_o is forgotten",
            "projection",
            "Four maps: queries, keys, values, and the joined heads.",
            attention=3,
        ),
        wrong(
            "the biases are forgotten",
            "counting",
            "d_model for each of the four maps of an attention, d_ff and d_model in the network.",
            biases=False,
        ),
        wrong(
            "the biases of attention are forgotten",
            "counting",
            "Each of its four maps has d_model of them.",
            biases="network",
        ),
        wrong(
            "the biases of the network are forgotten",
            "counting",
            "Its first map has d_ff outputs and its second d_model: d_ff + d_model biases.",
            biases="attention",
        ),
        wrong(
            "the bias of the network's first map is forgotten",
            "counting",
            "Its first map has d_ff outputs and its second d_model: d_ff + d_model biases.",
            biases="second",
        ),
        wrong(
            "each bias is counted as one number",
            "counting",
            "A bias is a vector, with one number for each output of its map.",
            biases="one number each",
        ),
        wrong(
            "the two biases of the network are taken to be equally long",
            "counting",
            "Its first map has d_ff outputs and its second d_model: d_ff + d_model biases.",
            {"biases": "twice d"},
            biases="twice d_ff",
        ),
        wrong(
            "the norms are forgotten",
            "counting",
            "Each LayerNorm has a scale and a shift for every feature.",
            norm=0,
        ),
        wrong(
            "a norm is counted as d_model",
            "counting",
            "A LayerNorm has a scale and a shift: 2 · d_model.",
            norm=1,
        ),
        wrong(
            "scale and shift of a norm are counted as one number each",
            "counting",
            "Both are vectors, with one number for each feature: 2 · d_model.",
            norm="one number each",
        ),
        wrong(
            "a decoder block has two norms",
            "counting",
            "It has three sub-layers, and a norm stands after each. Another way to these numbers: "
            "the bias of the network's second map is forgotten.",
            norms=2,
        ),
        wrong(
            "the output has a bias",
            "counting",
            "The output is the shared embedding, a matrix without a bias.",
            output_bias=True,
        ),
        wrong(
            "the feed-forward network has one matrix",
            "counting",
            "It goes from d_model to d_ff and back.",
            ffn=1,
        ),
        wrong(
            "the embeddings are forgotten",
            "counting",
            "vocabulary · d_model: almost a third of the base model.",
            embeddings=0,
        ),
        wrong(
            "the embedding is counted more than once",
            "sharing",
            "Source, target and output share one matrix.",
            {"embeddings": 3},
            embeddings=2,
        ),
        wrong(
            "only the encoder is counted",
            "counting",
            "There are as many decoder blocks.",
            stacks=1,
        ),
        wrong(
            "a norm stands behind each stack",
            "norm place",
            "That belongs to pre-norm; in post-norm every block ends with its norm already.",
            last_norms=2,
        ),
        wrong(
            "one block of each stack is counted",
            "counting",
            "There are `layers` of them in each stack.",
            repeated=False,
        ),
    ],
    hints=[
        "Write one line each for an attention, a feed-forward network and a norm.",
        "An encoder block has one attention and two norms; what has a decoder block?",
        "For the base model 63 082 496 should come out.",
    ],
    right_variants=[
        lambda d, f, n, v: n * (12 * d * (d + 1) + 2 * (2 * d * f + f + d) + 10 * d) + v * d,
        lambda d_model, d_ff, layers, vocabulary: float(
            sum([3 * 4 * (d_model**2 + d_model), 2 * (d_ff * (2 * d_model + 1) + d_model),
                 5 * 2 * d_model]) * layers + vocabulary * d_model
        ),
        lambda d, f, n, v: n * sum(
            p.numel()
            for layer in (torch.nn.TransformerEncoderLayer, torch.nn.TransformerDecoderLayer)
            for p in layer(d, 1, f, device="meta").parameters()
        ) + v * d,
    ],
)  # fmt: skip
def transformer_parameters(d_model, d_ff, layers, vocabulary):
    """The number of parameters of an encoder-decoder with `layers` blocks in each stack."""
    attention = 4 * (d_model * d_model + d_model)  # W_q, W_k, W_v, W_o
    network = d_model * d_ff + d_ff + d_ff * d_model + d_model
    norm = 2 * d_model
    encoder = attention + network + 2 * norm
    decoder = 2 * attention + network + 3 * norm
    return layers * (encoder + decoder) + vocabulary * d_model


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=4,
    difficulty=2,
    trains="the cost of decoding",
    asks="transfer",
    text="""
    A decoder with 6 layers of 8 heads writes 10 tokens with a key-value cache. How many scores
    does its **self-attention** compute in all?
    """,
    mistakes=[
        *worked_out(
            lambda *, maps=6 * 8, keys=55: maps * keys,
            wrong(
                "every step has ten scores",
                "cache",
                "Step t has t scores: one for each key so far.",
                keys=100,
            ),
            wrong(
                "every step has one score",
                "cache",
                "The new query meets all keys in the cache, not only its own.",
                keys=10,
            ),
            wrong(
                "the heads are forgotten",
                "counting",
                "Each of the 8 heads has scores of its own.",
                maps=6,
            ),
            wrong(
                "the layers are forgotten",
                "counting",
                "Each of the 6 layers has scores of its own.",
                maps=8,
            ),
            wrong(
                "one head of one layer is counted",
                "counting",
                "There are 8 heads in each of 6 layers.",
                maps=1,
            ),
            wrong(
                "a token does not look at itself",
                "off by one",
                "Step t sees t keys, its own included: 1 + 2 + ... + 10.",
                keys=45,
            ),
            wrong(
                "the cache is not used",
                "cache",
                "With a cache there is one new query a step; without it all t are asked again.",
                keys=385,
            ),
            wrong(
                "one step too many is counted",
                "off by one",
                "There are 10 steps: 1 + 2 + ... + 10.",
                keys=66,
            ),
            wrong(
                "layers and heads are added",
                "counting",
                "There are 8 heads in each of 6 layers: 6 times 8.",
                maps=6 + 8,
            ),
        ),
    ],
    hints=[
        "How many keys are in the cache when token t is written, its own included?",
        "Add up 1 + 2 + ... + 10 for one head of one layer.",
        "Every head of every layer does the same.",
    ],
)
def scores_in_causal_decoding():
    """Scores of the self-attention of 6 layers with 8 heads for 10 tokens:"""
    return 6 * 8 * 10 * 11 // 2


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=4,
    difficulty=2,
    trains="where the n² begins to count",
    text="""
    One encoder block, `d_model` = 256, `d_ff` = 1024. At which length n do scores and average
    cost as many multiplications as all linear maps of the block together?
    """,
    mistakes=[
        wrong(
            "only the scores are counted",
            "counting",
            "The average with V costs n² d again.",
            answer=12 * 256,
        ),
        wrong(
            "only the projections are counted",
            "counting",
            "The feed-forward network has linear maps, too: 8 n d².",
            answer=2 * 256,
        ),
        wrong(
            "only the feed-forward network is counted",
            "counting",
            "The four projections are linear maps, too: 4 n d².",
            answer=4 * 256,
        ),
        wrong(
            "the output projection is left out",
            "counting",
            "Besides W_q, W_k and W_v there is W_o: 4 n d².",
            {"answer": 3 * 128},
            answer=11 * 128,
        ),
        wrong(
            "the output projection and one map of the network are left out",
            "counting",
            "Four projections take 4 n d², and the network 4 n d² each way.",
            answer=7 * 128,
        ),
        wrong(
            "the first length is given at which scores and average cost more",
            "off by one",
            "Asked is where they cost as much.",
            answer=6 * 256 + 1,
        ),
        wrong(
            "only the scores stand against the network alone",
            "counting",
            "The average with V costs n² d again, and the projections are linear maps, too.",
            answer=8 * 256,
        ),
        wrong(
            "two of the four projections are left out",
            "counting",
            "W_q, W_k, W_v and W_o: 4 n d².",
            answer=5 * 256,
        ),
        wrong(
            "n² and d are compared",
            "counting",
            "2 n² d stands against 12 n d².",
            {"answer": 6},
            answer=256,
        ),
    ],
    hints=[
        "Scores and average: n² d each. A linear map from d to e: n d e.",
        "Set 2 n² d equal to the sum of the maps.",
        "Divide both sides by 2 n d.",
    ],
)
def where_attention_costs_most():
    """The length n at which 2 n² d equals the cost of the linear maps, d = 256:"""
    return 6 * 256
