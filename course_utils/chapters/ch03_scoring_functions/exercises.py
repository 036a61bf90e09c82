"""Exercises of notebook 03: additive, dot-product and bilinear scores, and their scale."""

import math

import torch
import torch.nn.functional as F

from course_utils.checker.common import (
    DIVIDED_AGAIN,
    KEPT,
    NOT_LOW,
    SOFTMAX_OF_THE_MAP,
    SOFTMAX_TWICE,
    lowered,
    not_low_enough,
    not_shifted,
    softmax_of_hidden,
    unshifted,
    worked_out,
)
from course_utils.checker.exercise import exercise, wrong
from course_utils.checker.probes import as_asked, draw, far_apart

NOTEBOOK = "03_scoring_functions"
_CURVES = {
    "tanh": torch.tanh,
    "none": lambda x: x,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "hard": F.hardtanh,
    "softsign": F.softsign,
    "gelu": F.gelu,
    "silu": F.silu,
}


def _additive(
    queries,
    keys,
    W_q,
    W_k,
    w_v,
    *,
    join="sum",
    curve="tanh",
    curve_at="features",
    reduce="w_v",
    swapped=False,
    transposed=False,
    after="none",
):
    if swapped:
        W_q, W_k = W_k, W_q
    a, b = queries @ W_q, keys @ W_k
    if join != "same place":
        a, b = a[:, :, None], b[:, None]  # (B, Tq, 1, n), (B, 1, Tk, n)
    if curve_at == "parts":
        a, b = _CURVES[curve](a), _CURVES[curve](b)
    if curve_at == "weighed parts":
        a, b = a * w_v, b * w_v
    features = {"product": lambda: a * b, "difference": lambda: a - b}.get(join, lambda: a + b)()
    if curve_at in ("features", "weighed parts"):
        features = _CURVES[curve](features)
    weighed = reduce == "w_v" and curve_at != "weighed parts"
    scores = features @ w_v if weighed else features.sum(-1)  # (B, Tq, Tk)
    if curve_at == "score":
        scores = _CURVES[curve](scores)
    if after == "softmax":
        scores = torch.softmax(scores, dim=-1)
    if after in ("root n", "n"):
        scores = scores / (len(w_v) if after == "n" else math.sqrt(len(w_v)))
    return scores.mT if transposed else scores


def _additive_by_loops(queries, keys, W_q, W_k, w_v):
    scores = torch.empty(len(queries), queries.shape[1], keys.shape[1])
    for b in range(len(queries)):
        for i, q in enumerate(queries[b]):
            for j, k in enumerate(keys[b]):
                scores[b, i, j] = torch.dot(w_v, torch.tanh(W_q.T.mv(q) + W_k.T.mv(k)))
    return scores


def _additive_by_modules(queries, keys, W_q, W_k, w_v):
    joined = torch.nn.Linear(W_q.shape[0] + W_k.shape[0], len(w_v), bias=False)
    joined.weight.data = torch.cat([W_q, W_k]).T
    size = (len(queries), queries.shape[1], keys.shape[1], -1)
    pairs = torch.cat([queries[:, :, None].expand(size), keys[:, None].expand(size)], dim=-1)
    return (joined(pairs).tanh() * w_v).sum(-1)


@exercise(
    asks="practice",
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=2,
    trains="additive scores, by broadcasting",
    text="""
    The additive score $a(q, k) = \\tanh(q\\, W_q + k\\, W_k)\\, w_v$ for every query and every key
    at once. Queries and keys may have different sizes: as with the bilinear score.
    """,
    reference=_additive,
    probes=[
        draw(31, (1, 1, 2), (1, 2, 2), (2, 2), (2, 2), (2,)),
        draw(32, (2, 3, 4), (2, 5, 4), (4, 6), (4, 6), (6,)),
        draw(33, (2, 3, 4), (2, 5, 2), (4, 6), (2, 6), (6,)),
    ],
    mistakes=[
        wrong(
            "the tanh is missing",
            "score",
            "Without it a query adds one amount to all its scores, and a softmax ignores that.",
            curve="none",
        ),
        wrong(
            "another curve stands in place of tanh",
            "score",
            "The hidden features go through tanh, not through a ReLU, a sigmoid or another curve.",
            *({"curve": other} for other in ("sigmoid", "hard", "softsign", "gelu", "silu")),
            curve="relu",
        ),
        wrong(
            "the tanh is applied to the score",
            "score",
            "It belongs inside, on the hidden features, before w_v weighs them.",
            curve_at="score",
        ),
        wrong(
            "the tanh is applied to each part before adding",
            "score",
            "Add q W_q and k W_k first, then tanh: otherwise query and key never meet inside it.",
            curve_at="parts",
        ),
        wrong(
            "w_v is applied inside the tanh",
            "score",
            "It weighs the features that the tanh has made; the tanh sees q W_q + k W_k.",
            curve_at="weighed parts",
            reduce="w_v",
        ),
        wrong(
            "each query is added to the key at its own place only",
            "score",
            "Every query meets every key: (B, Tq, 1, n) + (B, 1, Tk, n), by broadcasting.",
            join="same place",
            transposed=False,
            after="none",
        ),
        wrong(
            "projected queries and keys meet in a dot product",
            "score",
            "That is the other family of scores; here they are added, bent by tanh and weighed.",
            join="product",
            curve="none",
            reduce="sum",
            curve_at="features",
        ),
        wrong(
            "the score is divided as a dot product is",
            "scale",
            "tanh keeps the features between -1 and 1, so this score is not scaled.",
            {"after": "n"},
            after="root n",
        ),
        wrong(
            "query and key features are multiplied",
            "score",
            "This score adds them; the product is the other family of scores.",
            join="product",
        ),
        wrong(
            "key features are subtracted",
            "score",
            "q W_q and k W_k are added.",
            join="difference",
        ),
        wrong(
            "w_v is left out",
            "score",
            "The features are summed with equal weights; w_v gives each its own.",
            reduce="sum",
        ),
        wrong(
            "W_q and W_k are swapped",
            "role of q, k, v",
            "W_q belongs to the queries and W_k to the keys.",
            swapped=True,
        ),
        wrong(
            "rows are keys and columns are queries",
            "role of q, k, v",
            "Scores have a row for each query and a column for each key.",
            transposed=True,
        ),
        wrong(
            "a softmax is applied already",
            "normalisation",
            "Scores are wanted here, weights come later.",
            after="softmax",
        ),
    ],
    hints=[
        "Project first: queries (B, Tq, n) and keys (B, Tk, n) then have features of one size.",
        "To add every query to every key, give them shapes (B, Tq, 1, n) and (B, 1, Tk, n).",
        "After the tanh, a product with w_v removes the last axis.",
    ],
    right_variants=[
        lambda q, k, A, B, v: torch.einsum(
            "bijn,n->bij",
            torch.tanh(
                torch.einsum("bid,dn->bin", q, A).unsqueeze(2)
                + torch.einsum("bjd,dn->bjn", k, B).unsqueeze(1)
            ),
            v,
        ),
        _additive_by_loops,
        _additive_by_modules,
    ],
    map_of=lambda scores: scores[0],
)
def additive_scores(queries, keys, W_q, W_k, w_v):
    """The score of every query for every key.

    queries: (B, Tq, q), keys: (B, Tk, k), W_q: (q, n), W_k: (k, n), w_v: (n,).
    Returns scores (B, Tq, Tk), before any softmax.
    """
    query_features = queries @ W_q  # (B, Tq, n)
    key_features = keys @ W_k  # (B, Tk, n)
    features = torch.tanh(query_features[:, :, None] + key_features[:, None])  # (B, Tq, Tk, n)
    return features @ w_v


TURNED = {  # (B, Tk, k) made ready for a product with queries (B, Tq, k)
    "last two": lambda keys: keys.mT,
    "all": lambda keys: keys.permute(2, 1, 0),
    "reshaped": lambda keys: keys.reshape(len(keys), keys.shape[2], keys.shape[1]),
}


def _attention(
    queries,
    keys,
    values,
    *,
    causal=False,
    scale="root d",
    axis=-1,
    normalise="once",
    compare="qk",
    average="values",
    scale_at="scores",
    hide="before",
    diagonal=0,
    future=False,
    give="output first",
    turned="last two",
):
    if compare == "kq":
        queries, keys = keys, queries
    num_queries, d = queries.shape[-2:]
    root = math.sqrt(d)
    factors = {
        "root d": 1 / root,
        "none": 1.0,
        "d": 1 / d,
        "inverse": root,
        "length": 1 / math.sqrt(num_queries),
        "keys": 1 / math.sqrt(keys.shape[-2]),
        "batch": 1 / math.sqrt(len(queries)),
        "size of values": 1 / math.sqrt(values.shape[-1]),
    }
    scores = {
        "qk": queries @ TURNED[turned](keys),
        "kq": queries @ keys.mT,
        "cosine": F.normalize(queries, dim=-1) @ F.normalize(keys, dim=-1).mT,
        "distance": -torch.cdist(queries, keys),
        "distance itself": torch.cdist(queries, keys),
        "squared distance": -torch.cdist(queries, keys).square(),
    }[compare]  # (B, Tq, Tk)
    if scale_at == "scores":
        scores = scores * factors[scale]
    visible = torch.ones(scores.shape[-2:], dtype=torch.bool)
    if causal:
        visible = visible.triu(-diagonal) if future else visible.tril(diagonal)

    def share(scores):
        if normalise == "of the map":
            return torch.softmax(scores.flatten(1), dim=-1).view_as(scores)
        if normalise in ("never", "by sum"):
            return scores / scores.sum(-1, keepdim=True) if normalise == "by sum" else scores
        weights = torch.softmax(scores, dim=axis)
        return torch.softmax(weights, dim=axis) if normalise == "twice" else weights

    if hide in ("after", "never"):
        weights = share(scores)
        weights = weights * visible if hide == "after" else weights
    elif hide == "after, then again":
        weights = share(share(scores) * visible)
    elif hide in ("unshifted", KEPT):
        weights = unshifted(scores, visible, hide)
    elif hide in _DIVISORS:
        weights = share(scores) * visible
        weights = weights / _DIVISORS[hide](weights, visible)
    else:
        weights = share(_hidden(scores, visible, hide))
    if scale_at == "weights":
        weights = weights * factors[scale]
    output = weights @ (values if average == "values" else keys)
    return (output, weights) if give == "output first" else (weights, output)


_DIVISORS = DIVIDED_AGAIN | {
    "over the map": lambda weights, visible: weights.sum((-2, -1), keepdim=True),
    "over the batch": lambda weights, visible: weights.sum(),
    "by count": lambda weights, visible: visible.sum(-1, keepdim=True),
}


def _hidden(scores, visible, how):
    """The scores that the softmax sees."""
    if how == "zero":
        return scores * visible
    if how == "added":
        return scores + visible.float()
    if how in NOT_LOW:
        return lowered(scores, ~visible, how)
    return scores.masked_fill(~visible, -math.inf if how == "-inf" else -1e9)


def _causal(queries, keys, values, **switches):
    return _attention(queries, keys, values, causal=True, **switches)


MISTURNED = [
    wrong(
        "the axis of the batch is turned as well",
        "score",
        "On three axes .T turns all of them round; swap the last two only: keys.transpose(-2, -1).",
        turned="all",
        compare="qk",
    ),
    wrong(
        "the keys are reshaped, not transposed",
        "score",
        "reshape and view fill the new form in the old order, so numbers of several keys are "
        "mixed: swap the axes with keys.transpose(-2, -1).",
        turned="reshaped",
        compare="qk",
    ),
]
_SCALE_MISTAKES = [
    wrong(
        "the scores are not scaled",
        "scale",
        "The dot products grow with the size d; divide them by the square root of d.",
        scale="none",
    ),
    wrong(
        "the scores are divided by d, not by its root",
        "scale",
        "The variance of a dot product is d, its spread is the square root of d.",
        scale="d",
    ),
    wrong(
        "the scores are multiplied by the root of d",
        "scale",
        "They must be divided: the larger d, the larger dot products already are.",
        scale="inverse",
    ),
    wrong(
        "the scores are scaled by the number of queries",
        "scale",
        "What counts is the size d of a query, its last axis, not how many there are.",
        scale="length",
    ),
    wrong(
        "the softmax runs over the queries",
        "softmax axis",
        "Columns sum to 1; each query shares out its own weight, so rows must.",
        axis=-2,
    ),
    wrong(
        "the softmax runs over the batch",
        "softmax axis",
        "Axis 0 counts sentences; weights are shared out over the keys, the last axis.",
        axis=0,
    ),
    SOFTMAX_OF_THE_MAP,
    SOFTMAX_TWICE,
    *MISTURNED,
    wrong(
        "the weights are scaled, not the scores",
        "scale",
        "After the softmax it is too late: the rows no longer sum to 1.",
        scale_at="weights",
    ),
    wrong(
        "weights and output are exchanged in the result",
        "role of q, k, v",
        "The output comes first, then the weights.",
        give="weights first",
    ),
]
_VALUES_ARE_KEYS = wrong(
    "the keys are averaged, not the values",
    "role of q, k, v",
    "Keys only decide the weights; what the weights average is the values.",
    average="keys",
)


def _by_pairs(queries, keys, values):
    """Attention written with plain loops over queries and keys."""
    weights = torch.zeros(len(queries), queries.shape[1], keys.shape[1], dtype=torch.float64)
    for b, (some_queries, some_keys) in enumerate(zip(queries, keys, strict=True)):
        for i, q in enumerate(some_queries):
            for j, k in enumerate(some_keys):
                weights[b, i, j] = float(q @ k) / len(q) ** 0.5
            weights[b, i] = (weights[b, i] - weights[b, i].max()).exp()
            weights[b, i] /= weights[b, i].sum()
    return torch.bmm(weights, values.double()), weights


class _AsModule(torch.nn.Module):
    def forward(self, q, k, v):
        identity = torch.eye(k.shape[1]).expand(len(k), -1, -1)
        weights = F.scaled_dot_product_attention(q, k, identity)
        return F.scaled_dot_product_attention(q, k, v), weights


@exercise(
    asks="practice",
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=2,
    trains="the formula softmax(QKᵀ/√d) V",
    text="""
    Scaled dot-product attention in full. Give back the output *and* the weights, so that you can
    look at them.
    """,
    reference=_attention,
    probes=[
        (
            torch.tensor([[[1.0, 0.0]]]),
            torch.tensor([[[1.0, 1.0], [0.0, 2.0], [2.0, 1.0]]]),
            torch.tensor([[[10.0, 1.0], [20.0, 2.0], [30.0, 5.0]]]),
        ),
        draw(34, (2, 3, 4), (2, 5, 4), (2, 5, 4)),
        draw(35, (2, 3, 4), (2, 5, 4), (2, 5, 2)),
        (*(x[None] for x in far_apart(3, 4)), *draw(38, (1, 4, 2))),
    ],
    mistakes=[
        *_SCALE_MISTAKES,
        not_shifted({"hide": KEPT}, hide="unshifted", normalise="once", axis=-1),
        wrong(
            "there is no softmax",
            "normalisation",
            "Scores are no weights: a softmax makes them positive, and each row sum to 1.",
            {"normalise": "by sum"},
            normalise="never",
            axis=-1,
            scale="root d",
        ),
        wrong(
            "the scores are scaled by the number of keys",
            "scale",
            "What counts is the size d of a key, its last axis, not how many there are.",
            scale="keys",
        ),
        wrong(
            "the scores are scaled by the size of the batch",
            "scale",
            "What counts is the size d of a query, queries.shape[-1]; len(queries) is the batch.",
            scale="batch",
        ),
        wrong(
            "the scores are scaled by the size of the values",
            "scale",
            "Queries and keys make the dot products, so their size d is under the root.",
            scale="size of values",
        ),
        _VALUES_ARE_KEYS,
        wrong(
            "cosines are compared, not dot products",
            "score",
            "Here the length of queries and keys counts too; only the factor 1/√d is taken out.",
            compare="cosine",
        ),
        wrong(
            "distances are compared, not dot products",
            "score",
            "A negative distance is the score of the kernel in chapter 01.",
            {"compare": "squared distance"},
            {"compare": "distance itself"},
            compare="distance",
        ),
    ],
    hints=[
        "keys.transpose(-2, -1) swaps the last two axes; then one @ makes all dot products.",
        "Which size goes under the root: the number of keys, or the size of one key?",
        "The softmax makes each row of the (Tq, Tk) scores sum to 1. Then average the values.",
    ],
    right_variants=[
        lambda q, k, v: (lambda w: (torch.einsum("bij,bjv->biv", w, v), w))(
            torch.einsum("bid,bjd->bij", q / math.sqrt(q.shape[2]), k).softmax(2)
        ),
        _by_pairs,
        _AsModule(),
    ],
    map_of=lambda outcome: outcome[1][0],
)
def scaled_attention(queries, keys, values):
    """Attend from every query to every key.

    queries: (B, Tq, d), keys: (B, Tk, d), values: (B, Tk, v).
    Returns output (B, Tq, v) and weights (B, Tq, Tk).
    """
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(queries.shape[-1])  # (B, Tq, Tk)
    weights = torch.softmax(scores, dim=-1)
    return weights @ values, weights


def _causal_by_prefix(queries, keys, values):
    """Each query attends to the keys up to its own, one after the other."""
    weights = torch.zeros(len(queries), queries.shape[1], keys.shape[1])
    for t in range(queries.shape[1]):
        scores = (queries[:, t : t + 1] * keys[:, : t + 1]).sum(-1) / queries.shape[-1] ** 0.5
        weights[:, t, : t + 1] = torch.softmax(scores, dim=1)
    return weights @ values, weights


@exercise(
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=3,
    trains="mask, scale and softmax in the right order",
    text="""
    Scaled dot-product attention for a decoder: query `i` may look at keys `0` to `i` only, however
    far apart the scores lie. More than twenty ways of getting this wrong are known to the check.
    """,
    reference=_causal,
    probes=[
        (
            torch.tensor([[[1.0, 0.0, 1.0], [0.0, 2.0, 0.0]]]),
            torch.tensor([[[1.0, 1.0, 0.0], [2.0, 1.0, 1.0]]]),
            torch.tensor([[[10.0, 1.0, 3.0], [20.0, 2.0, 6.0]]]),
        ),
        draw(36, (1, 3, 4), (1, 3, 4), (1, 3, 4)),
        draw(37, (2, 5, 4), (2, 5, 4), (2, 5, 4)),
        (*(x[None] for x in far_apart(4, 4)), *draw(39, (1, 4, 4))),
    ],
    mistakes=[
        *_SCALE_MISTAKES,
        _VALUES_ARE_KEYS,
        wrong(
            "queries and keys are swapped",
            "role of q, k, v",
            "Row i must hold the scores of query i: queries on the left of the product.",
            compare="kq",
        ),
        wrong(
            "rows look at the future",
            "mask direction",
            "The triangle keeps the keys from the own position on; it must keep those up to it.",
            future=True,
        ),
        wrong(
            "a position may not look at itself",
            "off by one",
            "The diagonal is hidden; position i sees 0 to i.",
            {"hide": "-inf"},
            diagonal=-1,
        ),
        wrong(
            "the mask is inverted",
            "mask meaning",
            "masked_fill fills where its mask is True: give it what is to be hidden.",
            {"hide": "-inf"},
            future=True,
            diagonal=-1,
        ),
        wrong(
            "a position sees one step ahead",
            "off by one",
            "The triangle reaches one key too far.",
            diagonal=1,
        ),
        wrong(
            "the future is not hidden",
            "mask missing",
            "No mask is applied.",
            hide="never",
        ),
        wrong(
            "the weights are hidden after the softmax",
            "mask timing",
            "Later keys took their share first, so the rows no longer sum to 1.",
            hide="after",
        ),
        wrong(
            "hidden scores are set to 0",
            "mask timing",
            "A score of 0 is an ordinary score, exp(0) = 1; it must be very negative to vanish.",
            hide="zero",
        ),
        not_low_enough("hide", "at -1", "at -100"),
        not_low_enough("hide", "by 10000", scale="root d", axis=-1),
        softmax_of_hidden("hide", normalise="once", axis=-1),
        not_shifted({"hide": KEPT}, hide="unshifted", normalise="once", axis=-1),
        wrong(
            "a second softmax follows the hiding",
            "mask timing",
            "A weight of 0 gets exp(0) = 1 there; hide the scores instead.",
            hide="after, then again",
        ),
        wrong(
            "what is left is divided by the sum over many rows",
            "normalisation",
            "Each row must sum to 1 by itself: sum over the keys, with keepdim=True.",
            {"hide": "over the batch"},
            hide="over the map",
        ),
        wrong(
            "what is left is divided by the number of visible keys",
            "normalisation",
            "Weights sum to 1; divide by the sum of the visible ones, not by how many there are.",
            hide="by count",
        ),
        wrong(
            "the mask is added to the scores as 0 and 1",
            "mask meaning",
            "That raises visible scores by 1 and hides nothing; an added mask has 0 and -inf.",
            hide="added",
        ),
    ],
    hints=[
        "Start from scaled_attention: one line has to come between the scores and the softmax.",
        "torch.ones(T, T, dtype=torch.bool).tril() is True where a query may look.",
        "The scores of all other keys must be -inf (or very negative) when the softmax sees them.",
    ],
    right_variants=[
        _causal_by_prefix,
        lambda q, k, v: (
            F.scaled_dot_product_attention(q, k, v, is_causal=True),
            F.scaled_dot_product_attention(
                q, k, torch.eye(k.shape[1]).expand(len(k), -1, -1), is_causal=True
            ),
        ),
        lambda q, k, v: _causal(q.double(), k.double(), v.double()),
    ],
    map_of=lambda outcome: outcome[1][0],
)
def causal_attention(queries, keys, values):
    """Scaled dot-product attention in which no position looks at a later one.

    queries, keys: (B, T, d), values: (B, T, v).
    Returns output (B, T, v) and weights (B, T, T).
    """
    num_steps, d = queries.shape[-2:]
    visible = torch.ones(num_steps, num_steps, dtype=torch.bool).tril()  # (T, T)
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(d)  # (B, T, T)
    weights = torch.softmax(scores.masked_fill(~visible, -math.inf), dim=-1)
    return weights @ values, weights


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=3,
    difficulty=1,
    trains="predicting a variance",
    text="""
    Queries and keys of size 64, all entries independent with mean 0 and variance 1. Which variance
    do their dot products have, before any scaling?
    """,
    mistakes=[
        wrong(
            "the spread is given, not the variance",
            "variance",
            "8 is the standard deviation, the square root of the variance.",
            answer=8,
        ),
        wrong(
            "the variance after scaling is given",
            "variance",
            "It is 1 once the dot product is divided by the root of 64; before, it is larger.",
            answer=1,
        ),
        wrong(
            "the variance is squared",
            "variance",
            "64 terms of variance 1 are added; nothing is squared.",
            answer=4096,
        ),
        wrong(
            "the variance of both vectors is added",
            "variance",
            "The dot product has 64 terms, one for each pair of entries, not 128.",
            answer=128,
        ),
        wrong(
            "the mean is given",
            "variance",
            "0 is the mean of the dot product.",
            answer=0,
        ),
        wrong(
            "the spread of 128 terms is given",
            "variance",
            "That is the root of 128: no root is asked for, and there are 64 terms, not 128.",
            answer=128**0.5,
        ),
        wrong(
            "a factor of the scaling is given",
            "variance",
            "Dividing by 8 takes the numbers times 1/8 and their variance times 1/64, which makes "
            "it 1; asked is what it was before.",
            {"answer": 1 / 64},
            answer=1 / 8,
        ),
    ],
    hints=[
        "The dot product is a sum of 64 products q_i k_i.",
        "Which variance has one product of two independent entries with mean 0 and variance 1?",
        "Variances of independent terms add up.",
    ],
)
def dot_product_variance():
    """The variance of q . k for vectors of 64 independent entries, mean 0 and variance 1:"""
    return 64


def _parameters(*, queries=True, keys=True, last="row", biases="none"):
    """How many numbers maps from 20 and 2 to 8, and from 8 to 1, have."""
    third = {"row": 8, "none": 0, "square": 64, "one number": 1}[last]
    of_third = {"none": 0, "square": 8}.get(last, 1)
    hidden = 8 * queries + 8 * keys
    return 160 * queries + 16 * keys + third + {
        "none": 0, "all": hidden + of_third, "hidden": hidden, "last": of_third
    }[biases]  # fmt: skip


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=3,
    difficulty=1,
    trains="counting parameters",
    text="""
    How many parameters does `AdditiveAttention(key_size=2, query_size=20, num_hiddens=8)` have?
    None of its three linear maps has a bias.
    """,
    mistakes=[
        *worked_out(
            _parameters,
            wrong(
                "w_v is forgotten",
                "counting",
                "The 8 hidden features still have to become one number.",
                last="none",
            ),
            wrong(
                "w_v is counted as one number",
                "counting",
                "It is a vector: one weight for each of the 8 hidden features.",
                last="one number",
            ),
            wrong(
                "w_v is counted as a square matrix",
                "counting",
                "It makes one number of the 8 hidden features: 8 weights, not 8 x 8.",
                last="square",
            ),
            wrong(
                "biases are counted",
                "counting",
                "The three maps are made with bias=False.",
                {"biases": "hidden"},
                {"biases": "last"},
                biases="all",
            ),
            wrong(
                "W_k is forgotten",
                "counting",
                "Queries and keys have a matrix each: 20 x 8 and 2 x 8.",
                keys=False,
            ),
            wrong(
                "W_q is forgotten",
                "counting",
                "Queries and keys have a matrix each: 20 x 8 and 2 x 8.",
                queries=False,
            ),
        ),
        wrong(
            "a bilinear form is counted",
            "counting",
            "There is no matrix from queries to keys; both go to the hidden features.",
            {"answer": 48},
            answer=40,
        ),
        wrong(
            "the sizes are multiplied together",
            "counting",
            "Each map has its own matrix, inputs times outputs, and the three are added.",
            answer=320,
        ),
        wrong(
            "the sizes are added",
            "counting",
            "A map has inputs times outputs weights, and the three are added.",
            answer=30,
        ),
    ],
    hints=[
        "Three matrices: W_q, W_k and w_v.",
        "W_q takes 20 numbers to 8.",
        "w_v takes 8 numbers to 1.",
    ],
)
def additive_parameters():
    """Parameters of AdditiveAttention(key_size=2, query_size=20, num_hiddens=8), no biases:"""
    return 20 * 8 + 2 * 8 + 8


def _bilinear(
    queries, keys, M, *, matrix="M", transposed=False, divided="no", bent=False, softmax=False,
    between="pairs", turned="last two",
):  # fmt: skip
    used = {"M": M, "transposed": M.T, "both": (M + M.T) / 2 if M.shape[0] == M.shape[1] else M}
    projected = queries if matrix == "none" else queries @ used[matrix]  # (B, Tq, k)
    if between == "same place":
        keys = keys.mean(1, keepdim=True).expand(-1, keys.shape[1], -1)
    scores = projected @ TURNED[turned](keys)
    by = {"key": math.sqrt(keys.shape[-1]), "query": math.sqrt(queries.shape[-1])}
    scores = scores / by.get(divided, 1)
    scores = torch.tanh(scores) if bent else scores
    scores = torch.softmax(scores, dim=-1) if softmax else scores
    return scores.mT if transposed else scores


def _bilinear_by_loops(queries, keys, M):
    scores = torch.zeros(len(queries), queries.shape[1], keys.shape[1])
    for b in range(len(queries)):
        for i, q in enumerate(queries[b]):
            for j, k in enumerate(keys[b]):
                scores[b, i, j] = torch.outer(q, k).mul(M).sum()
    return scores


@exercise(
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="a score with a matrix between query and key",
    text="""
    The bilinear score puts a learned matrix between query and key: $a(q, k) = q\\, M\\, k^\\top$.
    Compute it for every query and every key at once; queries and keys may have different sizes. A
    query is a row here, so for one pair it is `q @ M @ k`.
    """,
    reference=_bilinear,
    probes=[
        draw(331, (1, 1, 2), (1, 3, 2), (2, 2)),
        draw(332, (2, 3, 4), (2, 5, 4), (4, 4)),
        draw(333, (2, 3, 5), (2, 4, 2), (5, 2)),
    ],
    mistakes=[
        wrong(
            "M is transposed",
            "projection",
            "Rows of M belong to the query's numbers, columns to the key's: q @ M @ k.",
            matrix="transposed",
        ),
        wrong(
            "M is left out",
            "score",
            "That is the plain dot product; M says which numbers of query and key meet.",
            matrix="none",
        ),
        wrong(
            "M is made symmetric",
            "score",
            "M need not be symmetric: what a query asks and what a key answers may differ.",
            matrix="both",
        ),
        wrong(
            "the keys are averaged first",
            "score",
            "Every query meets every key, one score for each pair.",
            between="same place",
            transposed=False,
            softmax=False,
        ),
        wrong(
            "the scores are scaled",
            "scale",
            "Nothing is divided here: M can learn the scale.",
            {"divided": "query"},
            divided="key",
        ),
        wrong(
            "a softmax is applied already",
            "normalisation",
            "Scores are wanted here, weights come later.",
            softmax=True,
        ),
        wrong(
            "the scores go through tanh",
            "score",
            "The tanh belongs to the additive score.",
            bent=True,
        ),
        wrong(
            "rows are keys and columns are queries",
            "role of q, k, v",
            "Scores have a row for each query and a column for each key.",
            transposed=True,
        ),
        wrong(
            "the axis of the batch is turned as well",
            "score",
            "On three axes .T turns all of them round; swap the last two only: "
            "keys.transpose(-2, -1).",
            turned="all",
        ),
        wrong(
            "the keys are reshaped, not transposed",
            "score",
            "reshape and view fill the new form in the old order, so numbers of several keys "
            "are mixed: swap the axes with keys.transpose(-2, -1).",
            turned="reshaped",
        ),
    ],
    hints=[
        "One product at a time: what shape has queries @ M?",
        "After it, each query has the size of a key, so dot products exist.",
        "All dot products of (B, Tq, k) with (B, Tk, k): which axes of the keys must swap?",
    ],
    right_variants=[
        lambda q, k, M: torch.einsum("bip,pr,bjr->bij", q, M, k),
        lambda q, k, M: (k @ M.T @ q.mT).mT,
        _bilinear_by_loops,
    ],
    map_of=lambda scores: scores[0],
)
def bilinear_scores(queries, keys, M):
    """The score q @ M @ k of every query for every key.

    queries: (B, Tq, q), keys: (B, Tk, k), M: (q, k). Returns scores (B, Tq, Tk).
    """
    return queries @ M @ keys.transpose(-2, -1)


def _matrix(wanted, *, looks="wanted", size=10.0, sign=1.0):
    d = len(wanted)
    M = torch.zeros(d, d)
    M[torch.arange(d), wanted] = 1.0
    M = {"wanted": M, "turned": M.T, "itself": torch.eye(d), "first only": M}[looks]
    if looks == "first only":
        M = M * (torch.arange(d) == 0)[:, None]
    return sign * size * M


def _looked_up(answer, wanted):
    """Which keys get the largest weight of a one-hot query, and whether one gets more than 0.9."""
    one_hot = torch.eye(len(wanted))
    weights = torch.softmax(one_hot @ answer(wanted).float() @ one_hot.T, dim=-1)  # (d, d)
    largest = weights >= weights.amax(-1, keepdim=True) - 1e-4
    return {"the key with the largest weight": largest, "more than 0.9": weights.amax(-1) > 0.9}


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=3,
    trains="setting a score by hand",
    text="""
    Set the matrix of a bilinear score by hand. There are d words, at most 200; as a query and as a
    key, word i is the one-hot vector with its 1 at place i. `wanted[i]` is the word that word i
    must look at. Find an M with which each word gives **more than 0.9** of its weight to the wanted
    one, after a plain softmax over `q @ M @ k`. Any such M is right.
    """,
    reference=_matrix,
    play=_looked_up,
    probes=[
        (torch.tensor([1, 2, 0]),),
        (torch.arange(200).roll(1),),
        (torch.tensor([2, 0, 3, 4, 1]),),
        (torch.tensor([1, 1, 3, 1]),),
    ],
    mistakes=[
        wrong(
            "keys look at queries",
            "projection",
            "The matrix is transposed: the row belongs to the word that asks.",
            looks="turned",
        ),
        wrong(
            "the scores are too close together",
            "scale",
            "A lead of s gives e^s times the weight of each other word, and of these there may be "
            "many: make it larger.",
            {"size": 3.0},
            {"size": 5.0},
            size=1.0,
        ),
        wrong(
            "each word looks at itself",
            "score",
            "With the identity matrix the score is the plain dot product of one-hot vectors.",
            looks="itself",
        ),
        wrong(
            "the sign is wrong",
            "score",
            "The wanted word gets the lowest score of its row; softmax prefers the highest.",
            sign=-1.0,
            size=10.0,
        ),
        wrong(
            "only the first word has its wish",
            "score",
            "The other rows of M are zero, so their words spread the weight evenly.",
            looks="first only",
        ),
    ],
    hints=[
        "What is q @ M for a one-hot query? Which row of M?",
        "So M[i, j] is the score that word i gives word j. Which one of row i must win?",
        "By how much must it win? One score s among d - 1 zeros gets e^s / (e^s + d - 1).",
    ],
    right_variants=[
        lambda wanted: 9.5 * F.one_hot(wanted, len(wanted)).float(),
        lambda wanted: torch.stack([25 * torch.eye(len(wanted))[j] - 3 for j in wanted]),
        lambda wanted: torch.zeros(len(wanted), len(wanted)).index_put(
            (torch.arange(len(wanted)), wanted), torch.tensor(40.0)
        ),
    ],
)
def look_at(wanted):
    """A matrix M (d, d) with which one-hot word i gives more than 0.9 to word wanted[i].

    wanted: (d,) integers. Returns a tensor of floats (d, d).
    """
    M = torch.zeros(len(wanted), len(wanted))
    M[torch.arange(len(wanted)), wanted] = 10.0
    return M


@exercise(
    kind="value",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=4,
    difficulty=2,
    trains="reading a score off a map",
    text="""
    Two queries, three keys, and the weights that somebody found (rounded):

    |  | key (1, 1) | key (2, 2) | key (4, 4) |
    |---|---|---|---|
    | **query (-2, -2)** | 0.03 | 0.12 | 0.85 |
    | **query (4, 4)** | 0.33 | 0.33 | 0.33 |

    Which score was it? `"a"`: minus half the squared distance. `"b"`: the scaled dot product.
    `"c"`: cosine similarity. `"d"`: the additive score with identity matrices and
    $w_v = (1, 1)$.
    """,
    mistakes=[
        wrong(
            "the distance is taken for the score",
            "score",
            "The second query *is* the third key; a distance would give that key nearly all.",
            answer="a",
        ),
        wrong(
            "the dot product is taken for the score",
            "score",
            "The first query points away from all keys; its dot product is lowest with (4, 4).",
            answer="b",
        ),
        wrong(
            "the cosine is taken for the score",
            "score",
            "All keys point the same way, so a cosine would make both rows even.",
            answer="c",
        ),
    ],
    hints=[
        "Take the second row: under which scores are three such different keys equal?",
        "Two scores are left. Which of them could prefer (4, 4) in the first row?",
        "What does tanh make of 5, 6 and 8?",
    ],
)
def which_score():
    """The letter of the score that made the map"""
    return "d"


@exercise(
    kind="value",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=4,
    difficulty=2,
    trains="the variance of scores under another assumption",
    text="""
    Queries and keys of size 100. All entries are independent with mean 0, but those of the queries
    have standard deviation 2 and those of the keys 1. By which number must the dot products be
    divided so that their variance is 1?
    """,
    mistakes=[
        wrong(
            "the root of d is given",
            "variance",
            "√100 assumes entries of variance 1; each product has variance 4 here.",
            answer=10,
        ),
        wrong(
            "the variance is given",
            "variance",
            "400 is the variance; dividing by its root brings it to 1.",
            answer=400,
        ),
        wrong(
            "the factor is squared twice",
            "variance",
            "A factor 2 enters the variance squared, so each product has variance 4, not 16.",
            answer=40,
        ),
        wrong(
            "the standard deviation is taken for the variance",
            "variance",
            "One product of entries has variance 2² · 1, not 2.",
            {"answer": 14.142},
            {"answer": 14},
            answer=200**0.5,
        ),
        wrong(
            "the standard deviation is taken for the variance, and the root is left out",
            "variance",
            "One product of entries has variance 2² · 1, not 2; and a divisor enters squared.",
            answer=200,
        ),
        wrong(
            "the variances of query and key are added",
            "variance",
            "The variance of a product of independent entries with mean 0 is the product 4 · 1.",
            {"answer": 500},
            answer=500**0.5,
        ),
        wrong(
            "the standard deviation is divided by",
            "variance",
            "Larger entries make larger dot products, so the divisor grows with them.",
            {"answer": 50},
            answer=5,
        ),
        wrong(
            "only the size is seen",
            "variance",
            "The entries of the queries have standard deviation 2, and d stands under a root.",
            answer=100,
        ),
        wrong(
            "only one product of entries is seen",
            "variance",
            "100 of them are added, and so are their variances.",
            {"answer": 4},
            answer=2,
        ),
    ],
    hints=[
        "Which variance has one product q_i k_i?",
        "100 such products are added; their variances add up.",
        "A divisor enters the variance squared.",
    ],
)
def right_divisor():
    """The divisor that gives these dot products variance 1"""
    return 20


def _most_apart(*, scores=2, sizes="sizes"):
    """How far apart two scores with w_v = (1, -0.5, 0.5) can be."""
    one = {"sizes": 2, "signed": 1, "counted": 3, "no bound": math.inf, "positive": 1.5,
           "squares": 1.5, "length": 1.5**0.5}[sizes]  # fmt: skip
    return scores * one


@exercise(
    kind="value",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=4,
    difficulty=2,
    trains="how far apart additive scores can be",
    text="""
    An additive score has three hidden features and $w_v = (1, -0.5, 0.5)$. However large queries,
    keys and matrices may be, the scores of two keys never differ by more than some number. Which is
    the smallest such number?
    """,
    mistakes=[
        *worked_out(
            _most_apart,
            wrong(
                "one score is bounded, not the difference of two",
                "score",
                "A score lies between -2 and 2; two of them can lie at opposite ends.",
                scores=1,
            ),
            wrong(
                "the signs of w_v are kept",
                "score",
                "A feature can be -1 as well as 1, so a negative weight adds as much.",
                sizes="signed",
            ),
            wrong(
                "the features are counted",
                "score",
                "Each feature counts as much as its weight in w_v.",
                sizes="counted",
            ),
            wrong(
                "no bound is seen",
                "score",
                "tanh never leaves -1 to 1, so large inputs change a score less and less.",
                sizes="no bound",
            ),
            wrong(
                "the negative weight is left out",
                "score",
                "With its feature at -1 it adds as much as a positive one.",
                sizes="positive",
            ),
            wrong(
                "the weights are added by their squares",
                "score",
                "That is for a length. Each feature reaches -1 and 1 by itself, so the sizes of "
                "the weights are added, not squared.",
                {"sizes": "squares"},
                sizes="length",
            ),
        ),
    ],
    hints=[
        "Between which two numbers does tanh lie?",
        "What is the largest score, and with which signs of the features is it reached?",
        "And the smallest? How far apart are they?",
    ],
)
def largest_difference():
    """The least number that two additive scores with this w_v never differ by more than"""
    return 4


def _cosines(queries, keys):
    return F.normalize(queries, dim=-1) @ F.normalize(keys, dim=-1).mT  # (B, Tq, Tk)


def _fair(queries, keys, *, made="cosines", factor=5, sign="kept"):
    if made == "cosines":
        cosines = factor * _cosines(queries, keys)
        return {"kept": cosines, "negative": -cosines, "dropped": cosines.abs()}[sign]
    return {
        "longest key": lambda: (
            5 * F.normalize(queries, dim=-1) @ (keys / keys.norm(dim=-1).max()).mT
        ),
        "all keys": lambda: 5 * F.normalize(queries, dim=-1) @ (keys / keys.norm()).mT,
        "over tokens": lambda: 5 * F.normalize(queries, dim=1) @ F.normalize(keys, dim=1).mT,
        "dot": lambda: queries @ keys.mT,
        "scaled": lambda: queries @ keys.mT / math.sqrt(queries.shape[-1]),
        "distance": lambda: -torch.cdist(queries, keys).square() / 2,
        "bent": lambda: 5 * torch.tanh(queries @ keys.mT),
        "short queries": lambda: 5 * F.normalize(queries, dim=-1) @ keys.mT,
        "short keys": lambda: 5 * queries @ F.normalize(keys, dim=-1).mT,
        "short keys, tanh": lambda: 5 * (queries @ F.normalize(keys, dim=-1).mT).tanh(),
        "short keys, clamped": lambda: (queries @ F.normalize(keys, dim=-1).mT).clamp(-5, 5),
    }[made]()


def _what_a_score_keeps(answer, queries, keys):
    """What is asked of the score, whatever its design: each property, and whether it has it."""

    def score(queries, keys):
        wanted = (*queries.shape[:2], keys.shape[1])
        return as_asked(answer(queries, keys), "a tensor (B, Tq, Tk)", wanted)

    scores = score(queries, keys)
    unit_q, unit_k = F.normalize(queries, dim=-1), F.normalize(keys, dim=-1)
    d = queries.shape[-1]
    lines = torch.eye(d, dtype=queries.dtype)[None, :4]  # at right angles; the query is the first
    short, long = (score(r * lines[:, :1], 3 * lines)[0, 0].softmax(-1) for r in (0.1, 30.0))
    longer = [3.0 ** (torch.arange(keys.shape[1]) == i)[:, None] for i in range(keys.shape[1])]
    angles = (unit_q @ unit_k.mT).argsort(dim=-1)  # keys from the widest angle to the smallest
    return {
        "gives a longer key the same score": all(  # each key alone, and all together
            torch.allclose(score(queries, keys * factor), scores, atol=1e-3)
            for factor in (*longer, 3.0)
        ),
        "stays between -5 and 5 for short vectors": score(unit_q, unit_k).abs().max().item()
        <= 5.001,
        "stays between -5 and 5 for long queries": score(100 * queries, unit_k).abs().max().item()
        <= 5.001,
        "rises as the angle shrinks": torch.equal(scores.argsort(dim=-1), angles),
        "prefers a key in its direction to one at a right angle": (long[0] > long[1]).item(),
        "can choose": long[0].item() > 0.9,
        "can choose for short queries as for long ones": (
            short[0].item() > 0.9 or long[0].item() <= 0.9
        ),
    }


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=15,
    difficulty=3,
    trains="designing a score to order",
    text="""
    **An open task**: many scores are right, and only what is asked here is checked. Design a score
    without parameters for queries and keys of one size d, with these properties: (1) a key that is
    three times as long gets the same score; (2) no score leaves the range from -5 to 5, however
    long queries and keys are; (3) of two keys, the one at the smaller angle to the query has the
    higher score; (4) it can choose: a key in the direction of the query gets more than 0.9 of the
    weight, after a softmax, beside three keys at right angles to it.
    """,
    reference=_fair,
    play=_what_a_score_keeps,
    probes=[draw(332, (1, 2, 4), (1, 6, 4), scale=2.0), draw(331, (2, 3, 4), (2, 5, 4))],
    mistakes=[
        wrong(
            "the length of a key counts",
            "score",
            "Property 1: make one key three times as long, and no score may change: the length of "
            "each key, over its features, has to be taken out.",
            {"made": "scaled"},
            {"made": "distance"},
            {"made": "bent"},
            {"made": "short queries"},
            {"made": "longest key"},
            {"made": "all keys"},
            {"made": "over tokens"},
            made="dot",
            factor=5,
            sign="kept",
        ),
        wrong(
            "the length of a query counts",
            "score",
            "Properties 2 and 4 are due for queries of any length, for 100 * queries and for "
            "0.01 * queries: take the length of a query out as well.",
            {"made": "short keys, tanh"},
            {"made": "short keys, clamped"},
            made="short keys",
            factor=5,
            sign="kept",
        ),
        wrong(
            "the range is too wide",
            "scale",
            "Property 2: print the largest score of vectors of length 1.",
            factor=20,
        ),
        wrong(
            "the range is too narrow to choose",
            "scale",
            "Property 4: a score of 1 beside three zeros gives e / (e + 3) of the weight.",
            factor=1,
        ),
        wrong(
            "the sign is wrong",
            "score",
            "Property 3: the smaller the angle, the higher the score.",
            sign="negative",
        ),
        wrong(
            "an opposite key scores like one in the direction of the query",
            "score",
            "Property 3: the score falls until the angle is 180 degrees, the widest: keep signs, "
            "and let no two angles run into one score.",
            sign="dropped",
        ),
    ],
    hints=[
        "Properties 1 and 2 speak of lengths, 3 of angles. Which number knows the angle only?",
        "F.normalize(x, dim=-1) gives every vector the length 1.",
        "With four keys, how far must the best score stand above the others for a weight of 0.9?",
    ],
    right_variants=[
        lambda q, k: 5 - 10 * _cosines(q, k).clamp(-1, 1).acos() / math.pi,
        lambda q, k: 4.5 * torch.tanh(3 * _cosines(q, k)),
        lambda q, k: 5 * F.cosine_similarity(q[:, :, None], k[:, None], dim=-1),
        lambda q, k: 4 * _cosines(q.double(), k.double()),
        lambda q, k: 4.5 * torch.bmm(F.normalize(q, dim=-1), F.normalize(k, dim=-1).mT),
        lambda q, k: 5 * (q / q.norm(dim=-1, keepdim=True))
        @ (k / k.norm(dim=-1, keepdim=True)).mT,
    ],
    allows=lambda q, k: min(q.norm(dim=-1).min(), k.norm(dim=-1).min()) > 0,  # zero has no angle
)  # fmt: skip
def fair_score(queries, keys):
    """A bounded score that knows the angle between query and key, and no length.

    queries: (B, Tq, d), keys: (B, Tk, d). Returns scores (B, Tq, Tk).
    """
    return 5 * F.normalize(queries, dim=-1) @ F.normalize(keys, dim=-1).mT
