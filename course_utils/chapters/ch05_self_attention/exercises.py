"""Exercises of notebook 05: self-attention with and without parameters, and what it costs."""

import math

import torch
import torch.nn.functional as F

from course_utils.checker.common import SOFTMAX_OF_THE_MAP, SOFTMAX_TWICE, worked_out
from course_utils.checker.exercise import exercise, wrong
from course_utils.checker.probes import as_asked, draw

NOTEBOOK = "05_self_attention"


_TURNED = {  # (B, T, d) made ready for a product with queries (B, T, d)
    "last two": lambda keys: keys.mT,
    "all": lambda keys: keys.permute(2, 1, 0),
    "reshaped": lambda keys: keys.reshape(len(keys), keys.shape[2], keys.shape[1]),
}
_MISTURNED = [
    wrong(
        "the axis of the batch is turned as well",
        "score",
        "On three axes .T turns all of them round; swap the last two only: .transpose(1, 2).",
        turned="all",
    ),
    wrong(
        "the keys are reshaped, not transposed",
        "score",
        "reshape and view fill the new form in the old order, so numbers of several tokens are "
        "mixed: swap the axes with .transpose(1, 2).",
        turned="reshaped",
    ),
]


def _basic(
    x, *, compare="dot", scale="none", own="included", normalise="softmax", axis=-1, mix="rows",
    give="output first", turned="last two",
):  # fmt: skip
    a = F.normalize(x, dim=-1) if compare == "cosine" else x
    if compare == "features":
        a = x.mT
    size = {"root d": math.sqrt(x.shape[-1]), "d": x.shape[-1], "root T": math.sqrt(x.shape[1])}
    scores = a @ _TURNED[turned](a) / size.get(scale, 1.0)
    if compare == "distance":
        scores = -torch.cdist(x, x)
    every = torch.ones(scores.shape[-2:], dtype=torch.bool)
    hidden = {"excluded": every.tril().triu(), "none later": every.triu(1)}.get(own, ~every)
    scores = scores.masked_fill(hidden, -1e9)
    weights = {
        "softmax": lambda: torch.softmax(scores, dim=axis),
        "none": lambda: scores,
        "sum": lambda: scores / scores.sum(axis, keepdim=True),
        "exp": lambda: scores.exp(),
        "twice": lambda: scores.softmax(axis).softmax(axis),
        "of the map": lambda: scores.flatten(1).softmax(-1).view_as(scores),
    }[normalise]()
    y = x @ weights if compare == "features" else weights @ x
    if mix == "columns":
        y = weights.mT @ x
    if mix == "added":
        y = y + x
    return (y, weights) if give == "output first" else (weights, y)


def _basic_by_loops(x):
    y, weights = torch.zeros_like(x), torch.zeros(*x.shape[:2], x.shape[1])
    for b, sentence in enumerate(x):
        for i, query in enumerate(sentence):
            scores = torch.stack([(query * key).sum() for key in sentence])
            weights[b, i] = (scores - scores.logsumexp(0)).exp()
            y[b, i] = sum(w * value for w, value in zip(weights[b, i], sentence, strict=True))
    return y, weights


def _basic_with_the_kernel(x):
    identity = torch.eye(x.shape[1]).expand(len(x), -1, -1)
    weights = F.scaled_dot_product_attention(x, x, identity, scale=1.0)
    return F.scaled_dot_product_attention(x, x, x, scale=1.0), weights


@exercise(
    asks="practice",
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=1,
    trains="two products and a softmax",
    text="""
    Self-attention in its barest form: every token asks all tokens, no matrices to learn, no
    scaling. Give back the outputs *and* the weights.
    """,
    reference=_basic,
    probes=[
        (torch.tensor([[[1.0, 0.5], [0.0, 1.0], [-1.0, 0.3]]]),),
        draw(501, (2, 3, 4), scale=0.8),
        draw(502, (3, 5, 2), scale=0.9),
    ],
    mistakes=[
        wrong(
            "the softmax runs over the queries",
            "softmax axis",
            "Each query shares out a weight of 1 over the keys, the last axis of (B, T, T).",
            axis=-2,
        ),
        wrong(
            "the softmax runs over the sentences",
            "softmax axis",
            "Axis 0 is the batch: sentences have nothing to do with each other.",
            axis=0,
        ),
        wrong(
            "the scores are scaled",
            "scale",
            "Dividing them by a root comes later; here the dot products stay as they are.",
            {"scale": "d"},
            {"scale": "root T"},
            scale="root d",
        ),
        SOFTMAX_TWICE,
        SOFTMAX_OF_THE_MAP,
        wrong(
            "later tokens are hidden",
            "mask meaning",
            "That is the decoder's causal mask; here every token looks at all tokens.",
            own="none later",
        ),
        wrong(
            "columns of the weights mix the tokens, not rows",
            "role of q, k, v",
            "Output i is row i of the weights times all x_j: weights @ x, without a transpose.",
            mix="columns",
            compare="dot",
        ),
        wrong(
            "the input is added to the output",
            "residual",
            "A residual connection belongs to the block around attention, not here.",
            mix="added",
            compare="dot",
        ),
        wrong(
            "weights and outputs are exchanged in the result",
            "role of q, k, v",
            "The outputs come first, then the weights.",
            give="weights first",
        ),
        wrong(
            "distances are compared, not dot products",
            "score",
            "A negative distance is the score of the kernel in chapter 01.",
            compare="distance",
            scale="none",
        ),
        wrong(
            "the dot products are used as weights",
            "normalisation",
            "Scores can be negative and sum to anything; a softmax makes weights of them.",
            normalise="none",
        ),
        wrong(
            "the scores are divided by their sum",
            "normalisation",
            "Without the exponential a weight can be negative, and the sum can be 0.",
            normalise="sum",
        ),
        wrong(
            "the exponentials are not divided by their sum",
            "normalisation",
            "The weights of a row must sum to 1.",
            normalise="exp",
        ),
        wrong(
            "a token does not look at itself",
            "role of q, k, v",
            "Every x_j is a key of every query, so x_i is also its own key.",
            own="excluded",
        ),
        wrong(
            "cosines are compared, not dot products",
            "score",
            "The lengths of the vectors count too: long vectors get larger scores.",
            compare="cosine",
        ),
        wrong(
            "features are compared, not tokens",
            "score",
            "x.mT @ x has shape (B, d, d); weights are between tokens, (B, T, T).",
            compare="features",
        ),
        *_MISTURNED,
    ],
    hints=[
        "Three lines: scores, weights, outputs. Write the shape of each beside it.",
        "All dot products of (B, T, d) with itself: a product with its own transpose, (B, d, T).",
        "Which axis of (B, T, T) belongs to the keys? Along it the weights sum to 1.",
    ],
    right_variants=[
        _basic_by_loops,
        _basic_with_the_kernel,
        lambda x: (lambda w: (torch.einsum("bij,bjk->bik", w, x), w))(
            torch.einsum("bik,bjk->bij", x, x).softmax(2)
        ),
    ],
    map_of=lambda outcome: outcome[1][0],
)
def basic_attention(x):
    """Self-attention without parameters.

    x: (B, T, d). Returns outputs (B, T, d) and weights (B, T, T).
    """
    scores = torch.bmm(x, x.transpose(1, 2))  # (B, T, T)
    weights = F.softmax(scores, dim=2)
    return torch.bmm(weights, x), weights


def _roles(
    x, W_q, W_k, W_v, *, order="xW", shared="none", project="all", roles="right", scale="root",
    axis=-1, normalise="once", mix="rows", give="output first", turned="last two",
):  # fmt: skip
    if shared == "all":
        W_k = W_v = W_q
    elif shared == "q and k":
        W_k = W_q
    if order == "xWT":
        W_q, W_k, W_v = W_q.T, W_k.T, W_v.T
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    q = x if project == "not q" else q
    k = x if project == "not k" else k
    v = x if project == "not v" else v
    if roles == "q and k swapped":
        q, k = k, q
    elif roles == "k and v swapped":
        k, v = v, k
    elif roles == "q and v swapped":
        q, v = v, q
    root = math.sqrt(q.shape[-1])
    size = {
        "root": root, "d": root**2, "inverse": 1 / root, "root T": math.sqrt(x.shape[1])
    }.get(scale, 1.0)  # fmt: skip
    scores = q @ _TURNED[turned](k) / size
    weights = {
        "once": lambda: torch.softmax(scores, dim=axis),
        "twice": lambda: torch.softmax(torch.softmax(scores, dim=axis), dim=axis),
        "of the map": lambda: torch.softmax(scores.flatten(1), dim=-1).view_as(scores),
        "never": lambda: scores,
    }[normalise]()
    if scale == "on weights":
        weights = weights / root
    y = {
        "rows": lambda: weights @ v,
        "columns": lambda: weights.mT @ v,
        "added": lambda: x + weights @ v,
        "projected twice": lambda: weights @ v @ W_v,
    }[mix]()
    return (y, weights) if give == "output first" else (weights, y)


def _roles_token_by_token(x, W_q, W_k, W_v):
    columns = x.unsqueeze(-1)  # (B, T, d, 1): each token as a column
    q, k, v = ((W.T @ columns).squeeze(-1) for W in (W_q, W_k, W_v))
    rows = []
    for i in range(x.shape[1]):
        scores = (q[:, i : i + 1] * k).sum(-1) * q.shape[-1] ** -0.5  # (B, T)
        rows.append(scores.softmax(-1))
    weights = torch.stack(rows, dim=1)
    return (weights.unsqueeze(-1) * v.unsqueeze(1)).sum(2), weights


def _roles_in_one_product(x, W_q, W_k, W_v):
    q, k, v = (x @ torch.cat([W_q, W_k, W_v], dim=1)).chunk(3, dim=-1)
    identity = torch.eye(x.shape[1]).expand(len(x), -1, -1)
    return (
        F.scaled_dot_product_attention(q, k, v),
        F.scaled_dot_product_attention(q, k, identity),
    )


@exercise(
    asks="practice",
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=2,
    trains="a matrix for each role",
    text="""
    Self-attention with a matrix for each role, applied from the right (`x @ W_q`), and with the
    scores divided by the root of the size of a query. Give back the outputs and the weights.
    """,
    reference=_roles,
    probes=[
        (
            torch.tensor([[[1.0, 0.0], [0.5, -1.0], [-1.0, 2.0]]]),
            *draw(503, (2, 2), (2, 2), (2, 2)),
        ),
        draw(504, (2, 3, 4), *[(4, 4)] * 3, scale=0.8),
        draw(505, (1, 5, 3), *[(3, 3)] * 3),
    ],
    mistakes=[
        wrong(
            "the scores are not scaled",
            "scale",
            "Divide the dot products by the square root of the size of a query.",
            scale="none",
        ),
        wrong(
            "the scores are divided by the size, not by its root",
            "scale",
            "The spread of a dot product of d terms is the root of d.",
            scale="d",
        ),
        wrong(
            "the scores are scaled by the number of tokens",
            "scale",
            "What counts is the size d of a query, its last axis, not how many there are.",
            scale="root T",
        ),
        wrong(
            "the scores are multiplied by the root",
            "scale",
            "They must be divided: the larger d, the larger dot products already are.",
            scale="inverse",
        ),
        wrong(
            "the weights are scaled, not the scores",
            "scale",
            "After the softmax it is too late: the rows no longer sum to 1.",
            scale="on weights",
        ),
        wrong(
            "the softmax runs over the queries",
            "softmax axis",
            "Each query shares out a weight of 1 over the keys, the last axis.",
            axis=-2,
        ),
        wrong(
            "the softmax runs over the sentences",
            "softmax axis",
            "Axis 0 is the batch: sentences have nothing to do with each other.",
            axis=0,
        ),
        SOFTMAX_OF_THE_MAP,
        SOFTMAX_TWICE,
        wrong(
            "the scores are used as weights",
            "normalisation",
            "Scores can be negative and sum to anything; a softmax makes weights of them.",
            normalise="never",
            axis=-1,
            scale="root",
        ),
        wrong(
            "columns of the weights mix the values, not rows",
            "role of q, k, v",
            "Output i is row i of the weights times all values: weights @ values.",
            mix="columns",
        ),
        wrong(
            "the input is added to the output",
            "residual",
            "A residual connection belongs to the block around attention, not here.",
            mix="added",
        ),
        wrong(
            "the values are projected twice",
            "projection",
            "W_v is applied once, to x before mixing or to what was mixed.",
            mix="projected twice",
            project="all",
        ),
        wrong(
            "weights and outputs are exchanged in the result",
            "role of q, k, v",
            "The outputs come first, then the weights.",
            give="weights first",
        ),
        wrong(
            "queries and keys are swapped",
            "role of q, k, v",
            "Row i belongs to query i: scores are queries times keys transposed.",
            roles="q and k swapped",
        ),
        wrong(
            "keys and values are swapped",
            "role of q, k, v",
            "Keys are compared with the query, values are mixed.",
            roles="k and v swapped",
        ),
        wrong(
            "queries and values are swapped",
            "role of q, k, v",
            "W_q makes what asks, W_v what is mixed.",
            roles="q and v swapped",
        ),
        wrong(
            "queries, keys and values share one matrix",
            "sharing",
            "Each role has a matrix of its own; with one for all the scores are symmetric.",
            shared="all",
        ),
        wrong(
            "queries and keys share one matrix",
            "sharing",
            "Keys go through W_k; with one matrix for both the scores are symmetric.",
            shared="q and k",
        ),
        wrong(
            "the values are not projected",
            "projection",
            "What is mixed is x @ W_v, not x itself.",
            project="not v",
        ),
        wrong(
            "the keys are not projected",
            "projection",
            "What is compared with the queries is x @ W_k, not x itself.",
            project="not k",
        ),
        wrong(
            "the queries are not projected",
            "projection",
            "What asks is x @ W_q, not x itself.",
            project="not q",
        ),
        wrong(
            "the matrices are transposed",
            "projection",
            "Here they are applied as x @ W; nn.Linear stores the transpose of that.",
            order="xWT",
        ),
        *_MISTURNED,
    ],
    hints=[
        "First make three tensors of the shape of x: queries, keys, values.",
        "Then it is the bare form, with each of the three x replaced by the one for its role.",
        "Which of the three meet in the dot products, and which one is mixed by the weights?",
    ],
    right_variants=[
        _roles_token_by_token,
        _roles_in_one_product,
        lambda x, A, B, C: (lambda w: (w @ x @ C, w))(
            torch.einsum("bik,kl,ml,bjm->bij", x, A, B, x).div(len(A) ** 0.5).softmax(-1)
        ),
    ],
    map_of=lambda outcome: outcome[1][0],
)
def attend_with_roles(x, W_q, W_k, W_v):
    """Self-attention with a learned matrix for each role.

    x: (B, T, d), W_q, W_k, W_v: (d, d). Returns outputs (B, T, d) and weights (B, T, T).
    """
    queries, keys, values = x @ W_q, x @ W_k, x @ W_v
    scores = queries @ keys.transpose(1, 2) / math.sqrt(queries.shape[-1])  # (B, T, T)
    weights = torch.softmax(scores, dim=-1)
    return weights @ values, weights


def attention_layer(x):
    """(T, d) -> (T, d): bare self-attention, which does not know places."""
    return torch.softmax(x @ x.T, dim=-1) @ x


def running_sum_layer(x):
    """(T, d) -> (T, d): each output is the sum up to its own place."""
    return x.cumsum(0)


def place_layer(x):
    """(T, d) -> (T, d): row i is multiplied by i + 1."""
    return x * torch.arange(1, len(x) + 1)[:, None]


def _gap(
    layer, x, order, *,
    inside="order", outside="order", axis=0, distance="max", sign="dropped",
):  # fmt: skip
    def permuted(y, how):
        rows = {"order": order, "inverse": order.argsort(), "none": torch.arange(len(order))}[how]
        return y[rows] if axis == 0 else y[:, rows]

    first, second = layer(permuted(x, inside)), permuted(layer(x), outside)
    difference = first - second
    signed = {"dropped": difference.abs(), "kept": difference, "turned": -difference}[sign]
    return {
        "max": signed.max,
        "mean": signed.mean,
        "sum": signed.sum,
        "norm": difference.norm,
        "norm of a token": lambda: difference.norm(dim=1).max(),
        "squared": difference.square().max,
        "mean square": difference.square().mean,
        "root mean square": lambda: difference.square().mean().sqrt(),
        "of absolutes": lambda: (first.abs() - second.abs()).abs().max(),
        "of the largest": lambda: (first.max() - second.max()).abs(),
        "relative": lambda: difference.abs().max() / layer(x).abs().max(),
        "entry by entry": lambda: (difference / permuted(layer(x), outside)).abs().max(),
        "yes or no": lambda: difference.abs().max() < 1e-5,
        "per token": signed.amax(1).mean,
    }[distance]().item()


def _gap_by_rows(layer, x, order):
    first, second = layer(torch.stack([x[i] for i in order])), layer(x)
    return max((first[place] - second[i]).abs().max() for place, i in enumerate(order.tolist()))


def _gap_by_a_matrix(layer, x, order):
    P = F.one_hot(order, len(order)).to(x.dtype)  # P @ x puts row order[i] at place i
    return torch.linalg.vector_norm(layer(P @ x) - P @ layer(x), ord=math.inf)


@exercise(
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="testing for permutation equivariance",
    text="""
    Is a layer permutation equivariant? Measure how far it is from it: the largest absolute
    difference between "permute, then layer" and "layer, then permute". The check tries layers that
    are equivariant and layers that are not.
    """,
    reference=_gap,
    probes=[
        (running_sum_layer, torch.tensor([[1.0, 2.0], [3.0, 5.0], [8.0, 4.5]]),
         torch.tensor([1, 2, 0])),
        (attention_layer, *draw(618, (3, 5)), torch.tensor([2, 0, 1])),
        (place_layer, *draw(507, (4, 6)), torch.tensor([1, 3, 0, 2])),
        (running_sum_layer, *draw(518, (4, 5)), torch.tensor([3, 0, 1, 2])),
    ],
    mistakes=[
        wrong(
            "the outputs are not permuted",
            "position",
            "That tests whether nothing changes at all (invariance); here outputs move along.",
            outside="none",
        ),
        wrong(
            "the inputs are not permuted",
            "position",
            "One of the two runs must get the permuted tokens, x[order].",
            inside="none",
        ),
        wrong(
            "one of the two outputs is permuted the wrong way",
            "position",
            "layer(x[order]) has at place i what belongs to token order[i]: compare it with "
            "layer(x)[order]. Only order.argsort() would put it back.",
            outside="inverse",
        ),
        wrong(
            "the inputs are permuted by the inverse",
            "position",
            "Inputs and outputs are permuted by the same order.",
            inside="inverse",
        ),
        wrong(
            "features are permuted, not tokens",
            "position",
            "Tokens are the rows, axis 0 of (T, d).",
            axis=1,
        ),
        wrong(
            "the sign is kept",
            "averaging",
            "A large negative difference is a difference too: take the absolute value first.",
            {"sign": "turned"},
            sign="kept",
        ),
        wrong(
            "the differences are averaged",
            "averaging",
            "Asked for is the largest difference, not the mean.",
            distance="mean",
        ),
        wrong(
            "the differences are added",
            "averaging",
            "Asked for is the largest difference, not the sum.",
            distance="sum",
        ),
        wrong(
            "the length of the difference is measured",
            "averaging",
            "Asked for is the largest difference of one entry, not the root of the sum or of the "
            "mean of squares.",
            {"distance": "root mean square"},
            {"distance": "norm of a token"},
            distance="norm",
            sign="dropped",
        ),
        wrong(
            "the difference is squared",
            "averaging",
            "Asked for is the largest absolute difference, not its square.",
            {"distance": "mean square"},
            distance="squared",
            axis=0,
            sign="dropped",
        ),
        wrong(
            "the difference is divided by the size of the output",
            "averaging",
            "Asked for is the absolute difference, not the relative one.",
            {"distance": "entry by entry"},
            distance="relative",
            axis=0,
            sign="dropped",
        ),
        wrong(
            "the largest outputs are subtracted, not the outputs",
            "averaging",
            "Subtract entry by entry, and take the largest difference then.",
            distance="of the largest",
            sign="dropped",
            axis=0,
        ),
        wrong(
            "absolute values are taken before the subtraction",
            "averaging",
            "Subtract first: 2 and -2 are 4 apart, their absolute values are equal.",
            distance="of absolutes",
            sign="dropped",
        ),
        wrong(
            "yes or no is given back",
            "averaging",
            "Asked for is how far, one number; 0 (up to rounding) is a yes.",
            distance="yes or no",
            sign="dropped",
            inside="order",
            outside="order",
        ),
        wrong(
            "the largest differences of the tokens are averaged",
            "averaging",
            "Asked for is the largest of all, over tokens and features.",
            distance="per token",
        ),
    ],
    hints=[
        "Run the layer twice: once on x[order], once on x.",
        "In which order do the rows of layer(x) have to stand to be compared with the first run?",
        "Then subtract, take absolute values, and keep the largest.",
    ],
    right_variants=[
        _gap_by_rows,
        _gap_by_a_matrix,
        lambda layer, x, order: torch.dist(
            layer(x.index_select(0, order)), layer(x).index_select(0, order), p=math.inf
        ),
    ],
)  # fmt: skip
def equivariance_gap(layer, x, order):
    """How far a layer is from being permutation equivariant.

    layer: a function (T, d) -> (T, d), x: (T, d), order: (T,) a permutation of 0 to T - 1.
    Returns one number, 0 (up to rounding) for an equivariant layer.
    """
    return (layer(x[order]) - layer(x)[order]).abs().max()


def _multiplications(
    *, n=10, d=64, products=2, pairs=None, dot=None, maps=0, each=1, scaled=False, second=None
):
    """What n tokens of size d take: products of all pairs, projections, and the scaling."""
    pairs = pairs or n * n
    one = pairs * (dot or d)
    both = products * one if second is None else one + second
    return each * both + maps * n * d * d + scaled * pairs


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=3,
    difficulty=1,
    trains="counting the multiplications of attention",
    text="""
    A sentence of `n = 10` tokens of size `d = 64` goes through self-attention without parameters.
    How many multiplications is that? Leave the softmax out.
    """,
    mistakes=[
        *worked_out(
            _multiplications,
            wrong(
                "only one of the two products is counted",
                "counting",
                "Scores take n · n · d multiplications, and the weighted sums as many again.",
                products=1,
            ),
            wrong(
                "length and size are exchanged",
                "counting",
                "Every token meets every token: the length is squared, not the size.",
                n=64,
                d=10,
            ),
            wrong(
                "a dot product is counted as one multiplication",
                "counting",
                "A dot product of two vectors of size d takes d multiplications.",
                dot=1,
            ),
            wrong(
                "length and size are exchanged in one of the two products",
                "counting",
                "Both products take n · n · d: the weighted sums have n terms for each of n · d "
                "numbers.",
                products=2,
                second=10 * 64 * 64,
            ),
            wrong(
                "one of the two products is counted as one multiplication for each pair",
                "counting",
                "A score takes d multiplications, and so does a weight times a vector of size d.",
                products=2,
                second=10 * 10,
            ),
            wrong(
                "projections are counted",
                "counting",
                "Without parameters there is no W_q, W_k, W_v or W_o.",
                {"maps": 4},
                {"maps": 1},
                maps=3,
            ),
            wrong(
                "a third product is counted",
                "counting",
                "Queries, keys and values are all x, but there are two products: scores and "
                "weighted sums.",
                products=3,
            ),
            wrong(
                "additions are counted too",
                "counting",
                "Asked are multiplications alone; a dot product of size d has d of them.",
                each=2,
            ),
            wrong(
                "only half of the pairs are counted",
                "counting",
                "Nothing is hidden here: every token meets every token, itself as well.",
                {"pairs": 45},
                pairs=55,
            ),
            wrong(
                "a token does not meet itself",
                "self exclusion",
                "Every token meets all tokens, itself as well: n · n pairs.",
                {"pairs": 90, "products": 1},
                pairs=90,
            ),
            wrong(
                "the scaling is counted",
                "counting",
                "It would add one operation for each score; asked are those of the two products "
                "of vectors alone.",
                scaled=True,
            ),
        ),
    ],
    hints=[
        "How many scores are there, and what does one of them cost?",
        "The outputs: 10 sums of 10 vectors of size 64, each vector times its weight.",
        "Both products have the same three sizes in another order.",
    ],
)
def attention_multiplications():
    """Multiplications of self-attention without parameters, n = 10, d = 64:"""
    return 2 * 10 * 10 * 64


def _crossover(*, maps=4, products=2, dot=64, every_token=True, ratio="right"):
    """The n at which n tokens through maps of 64 x 64 cost what products of n x n pairs cost."""
    n = maps * 64 * 64 / (products * dot)
    n = n if every_token else math.sqrt(n)
    return 64 * 64 / n if ratio == "turned" else n


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=4,
    difficulty=2,
    trains="where the quadratic part takes over",
    text="""
    An attention layer with `d = 64` has four projections of d x d (queries, keys, values, output)
    and the two products that grow with n². At which length n do both parts cost the same?
    """,
    mistakes=[
        *worked_out(
            _crossover,
            wrong(
                "only one of the two products is counted",
                "counting",
                "Scores and weighted sums cost n²d each, 2n²d in all.",
                products=1,
            ),
            wrong(
                "a third product is counted",
                "counting",
                "There are two products of tokens with tokens: scores and weighted sums.",
                products=3,
            ),
            wrong(
                "the output projection is forgotten",
                "counting",
                "Besides W_q, W_k and W_v there is W_o.",
                maps=3,
            ),
            wrong(
                "one projection is counted",
                "counting",
                "There are four: queries, keys, values and output.",
                maps=1,
            ),
            wrong(
                "a dot product is counted as one multiplication",
                "counting",
                "Scores of size d cost d multiplications each: 2n²d, not 2n².",
                dot=1,
            ),
            wrong(
                "the projections of one token are counted",
                "counting",
                "Each of the n tokens goes through all four: 4nd², not 4d².",
                every_token=False,
            ),
            wrong(
                "the ratio is turned round",
                "counting",
                "4 n d d = 2 n n d: divide both sides by 2 n d, and n is left alone.",
                ratio="turned",
            ),
        ),
        wrong(
            "one projection for each product is counted",
            "counting",
            "There are four projections and two products.",
            answer=64,
        ),
        wrong(
            "the number of products is added, not compared",
            "counting",
            "Set the whole cost of the projections equal to the whole cost of the products.",
            answer=4 * 64 * 64,
        ),
    ],
    hints=[
        "One projection of n tokens costs n · d · d.",
        "Write both parts with n and d, and set them equal.",
        "Divide by everything that stands on both sides.",
    ],
)
def crossover_length():
    """Length at which projections and attention products cost the same, d = 64:"""
    return 2 * 64


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=3,
    difficulty=2,
    trains="how far a convolution sees",
    text="""
    Convolutions of width 5 are stacked on a sentence of 21 tokens. How many layers does it take
    until the last output can depend on the first token?
    """,
    mistakes=[
        wrong(
            "a layer is taken to reach as far as it is wide",
            "off by one",
            "Width 5 reaches 2 tokens to the left and 2 to the right, not 5 to the left.",
            answer=20 // 5,
        ),
        wrong(
            "both sides of the kernel are counted",
            "position",
            "Of the 4 neighbours that a kernel of width 5 sees, only 2 lie to the left.",
            answer=20 // 4,
        ),
        wrong(
            "a layer is taken to reach as far as it is wide, and tokens are counted, not gaps",
            "off by one",
            "Width 5 reaches 2 tokens to the left, and the first token is 20 places away.",
            answer=math.ceil(21 / 5),
        ),
        wrong(
            "both sides of the kernel are counted, and tokens, not the gaps between them",
            "off by one",
            "Only 2 of the 4 neighbours lie to the left, and the first token is 20 places away.",
            answer=math.ceil(21 / 4),
        ),
        wrong(
            "the token itself is counted into the reach",
            "off by one",
            "Width 5 is the token itself and 2 on each side: a layer goes 2 places, not 3.",
            answer=math.ceil(20 / 3),
        ),
        wrong(
            "every layer goes one token further",
            "position",
            "That is width 3, or a recurrence; width 5 reaches 2 tokens to each side.",
            {"answer": 21},
            answer=20,
        ),
        wrong(
            "a layer too few is counted",
            "off by one",
            "Nine layers of reach 2 cross 18 places, and there are 20.",
            answer=9,
        ),
        wrong(
            "tokens are counted, not the gaps between them",
            "off by one",
            "From the first of 21 tokens to the last there are 20 places to go.",
            answer=11,
        ),
        wrong(
            "the reach is taken to multiply from layer to layer",
            "position",
            "That needs dilated kernels; plain ones add the same reach in each layer.",
            {"answer": 3},
            answer=2,
        ),
        wrong(
            "the answer for self-attention is given",
            "position",
            "Only attention connects all tokens in one layer.",
            answer=1,
        ),
    ],
    hints=[
        "From the middle of the kernel, how many tokens does it reach to the left?",
        "How far is the last of 21 tokens from the first?",
        "Every layer adds the same reach.",
    ],
)
def layers_to_connect():
    """Layers of width 5 until the last of 21 outputs depends on the first token:"""
    return 10


_LEADS = {"weak": 1.0, "weak in long sentences": 9.0, "weak in the longest": 12.0}


def _head(*, asks="right", hands="word"):
    W_q, W_k, W_v = torch.zeros(3, 6, 6)
    W_q[1, 0] = _LEADS.get(asks, 30.0)  # a verb asks ...
    W_k[0, 0] = 1.0  # ... and a noun answers
    W_v[3:, 3:] = torch.eye(3)
    W_q, W_k = {
        "roles": lambda: (W_k * 30, W_q),
        "nothing": lambda: (0 * W_q, W_k),
        "itself": lambda: (30 * torch.eye(6), torch.eye(6)),
        "places": lambda: (W_q, W_k[[1, 2, 0, 3, 4, 5]]),
        "negative": lambda: (-W_q, W_k),
    }.get(asks, lambda: (W_q, W_k))()
    W_v = {
        "kind": W_v.roll(3, 0),
        "nothing": 0 * W_v,
        "turned round": torch.cat([W_v[:, :3], W_v[:, 3:].flip(1)], 1),
    }.get(hands, W_v)
    return W_q, W_k, W_v


def _read_at_the_verb(answer, kinds, words):
    """Where the verb looks, with how much of its weight, and what arrives there.

    kinds: (T,), all different: 1 is the noun, 2 the verb, 3 the place; words: (T, 3).
    """
    if kinds.tolist().count(1) != 1 or kinds.tolist().count(2) != 1 or len(kinds) != len(words):
        raise ValueError("a sentence has one noun and one verb, and a word for each token")
    kinds = torch.stack([kinds == kind for kind in (1, 2, 3)], dim=1).float()
    x = torch.cat([kinds, words.float()], dim=1)
    W_q, W_k, W_v = (W.float() for W in answer())
    weights = torch.softmax((x @ W_q) @ (x @ W_k).T / math.sqrt(W_q.shape[1]), dim=-1)
    verb, noun = x[:, 1].argmax().item(), x[:, 0].argmax().item()
    values = (x @ W_v)[:, -3:]
    heavy = bool(weights[verb, noun] > 0.9)
    output = (weights @ values)[verb]
    return {
        "the verb looks at": _looks_at(weights, x, verb, noun),
        "the noun gets more than 0.9 of its weight": heavy,
        "the last three numbers of a value are": next(
            (
                what
                for what, due in (("the word", x[:, 3:]), ("zero", 0.0), ("the kind", kinds))
                if ((values - due).abs() < 0.2).all()
            ),
            "others",
        ),
        "the noun's word arrives": heavy and bool(((output - x[noun, 3:]).abs() < 0.1).all()),
    }


def _looks_at(weights, x, verb, noun):
    """In words, the tokens to which a row of weights gives most."""

    def most(row):
        return set((row > row.max() - 1e-4).nonzero().flatten().tolist())

    seen, places = most(weights[verb]), set(x[:, 2].nonzero().flatten().tolist())
    if len(seen) == len(x):
        asked = most(weights[noun]) == {verb}
        return "all alike, but the noun looks at the verb" if asked else "all alike"
    known = {"the noun": {noun}, "itself": {verb}, "the places": places}
    known["all but the noun"] = {*range(len(x))} - {noun}
    return next((words for words, tokens in known.items() if seen == tokens), "others")


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=3,
    trains="setting the three matrices by hand",
    text="""
    Set a head by hand. A token is six numbers: is it a noun, is it a verb, is it a place (1 or 0),
    and three numbers between -1 and 1 that say which word it is, such as

    |  | noun? | verb? | place? | which word | | |
    |---|---|---|---|---|---|---|
    | **cat** | 1 | 0 | 0 | 0.5 | 0.1 | -0.7 |
    | **walks** | 0 | 1 | 0 | -0.4 | 0.8 | 0.2 |

    Find matrices with which **the verb fetches the noun**: it gives the noun more than 0.9 of its
    weight, and the last three numbers of its output are those of the noun (to within 0.1), wherever
    the two stand. A sentence has one noun and one verb, and up to 60 tokens. Attention is
    `softmax(x @ W_q @ (x @ W_k).T / sqrt(6)) @ (x @ W_v)`. Any such matrices are right. (The
    check calls the last three columns `words`; all `words` lie between -1 and 1. It writes the
    others as one number, `kinds`: 1 is a noun, 2 a verb, 3 a place, any other none.)
    """,
    reference=_head,
    play=_read_at_the_verb,
    probes=[
        (torch.tensor(kinds), draw(550 + i, (len(kinds), 3), scale=0.5)[0].clamp(-1, 1))
        for i, kinds in enumerate(
            (
                [0, 1, 2, 3], [3, 2, 0, 1], [2, 0, 3, *range(4, 60), 1], [2, 0, 3, 4, 5, 1, 6],
                [1, 0, 3, 2, 4], [0, 4, 2, 3, 1, 5],
            )
        )
    ],
    edges=[
        (f"where the noun's word is {what}", (torch.tensor([2, 1, 3, 0]), torch.tensor(words)))
        for what, words in (
            ("the opposite of the others", [[1.0] * 3, [-1.0] * 3, [1.0] * 3, [1.0] * 3]),
            ("that of all the others", [[1.0] * 3] * 4),
        )
    ],
    mistakes=[
        wrong(
            "the scores are too close together",
            "scale",
            "Right word, but too little weight: the division by √6 is still to come, and up to 59 "
            "other tokens share what is left; ask louder.",
            {"asks": "weak in long sentences"},
            {"asks": "weak in the longest"},
            asks="weak",
        ),
        wrong(
            "the noun asks and the verb answers",
            "role of q, k, v",
            "W_q belongs to the one that asks, here the verb; W_k to the one that is found.",
            asks="roles",
        ),
        wrong(
            "the verb asks for nothing that tells the tokens apart",
            "role of q, k, v",
            "Row 1 of W_q is what a verb asks for, row 0 of W_k what a noun answers: both must be "
            "large in one and the same column.",
            asks="nothing",
        ),
        wrong(
            "the verb finds the place",
            "role of q, k, v",
            "The key that answers must be made from the first number, is it a noun.",
            asks="places",
        ),
        wrong(
            "the verb looks at itself",
            "score",
            "Equal vectors fit best if W_q and W_k are alike; a verb asks for something else.",
            asks="itself",
        ),
        wrong(
            "the verb looks everywhere but at the noun",
            "score",
            "The score of the noun is the lowest: softmax prefers large scores.",
            asks="negative",
        ),
        wrong(
            "the kind is handed over, not the word",
            "projection",
            "W_v decides what arrives; the last three numbers must pass through it.",
            hands="kind",
        ),
        wrong(
            "the word does not get through W_v",
            "projection",
            "The last three numbers of every value are 0: rows 3 to 5 of W_v have to lead to the "
            "last three columns.",
            hands="nothing",
        ),
        wrong(
            "W_v hands over other numbers than the word",
            "projection",
            "The last three numbers of a token have to arrive as they are, in their own places.",
            hands="turned round",
        ),
    ],
    hints=[
        "x @ W_q: row n of W_q says what a token with feature n asks for.",
        "Let a verb's query and a noun's key be large in one and the same number, all others 0.",
        "W_v has to let three numbers pass. And how far above 0 must one score be to win 0.9?",
    ],
    right_variants=[
        lambda: (60 * torch.eye(6)[[1, 2, 0, 3, 4, 5]] * (torch.arange(6) == 1)[:, None],
                 torch.zeros(6, 6).index_put((torch.tensor(0), torch.tensor(2)), torch.tensor(1.0)),
                 torch.eye(6)),
        lambda: tuple(
            torch.einsum("ij,->ij", W, torch.tensor(c))
            for W, c in zip(_head(), (2.0, 1.0, 1.0), strict=True)
        ),
        lambda: tuple(W.double() for W in _head()),
    ],
)  # fmt: skip
def head_by_hand():
    """Matrices W_q, W_k, W_v (6, 6) with which the verb fetches the noun."""
    W_q, W_k, W_v = torch.zeros(3, 6, 6)
    W_q[1, 0] = 30.0  # a verb's query: 30 in number 0
    W_k[0, 0] = 1.0  # a noun's key: 1 in number 0, all others 0
    W_v[3:, 3:] = torch.eye(3)  # which word it is
    return W_q, W_k, W_v


def neighbour_layer(x):
    """(T, d) -> (T, d): each output is a mean of the token and the one before it."""
    return (x + torch.cat([x[:1], x[:-1]])) / 2


def reading_layer(x):
    """(T, d) -> (T, d): the sum so far of feature 1 alone, in all features."""
    return x[:, 1:2].cumsum(0).expand_as(x)


def writing_layer(x):
    """(T, d) -> (T, d): the sum so far of all features, in feature 1 alone."""
    return x.sum(1, keepdim=True).cumsum(0) * (torch.arange(x.shape[1]) == 1)


def relative_layer(x):
    """(T, d) -> (T, d): the sum so far of how far feature i lies from feature 0, times i + 1."""
    return (x - x[:, :1]).cumsum(0) * torch.arange(1, x.shape[1] + 1)


def ripple_layer(x):
    """(T, d) -> (T, d): the sum so far of feature 0, times 1, -2, 1 and zeros in the features."""
    return x[:, :1].cumsum(0) * F.pad(x.new_tensor([1.0, -2.0, 1.0]), (0, x.shape[1] - 3))


def post_norm_layer(x):
    """(T, d) -> (T, d): the sum so far of the squares, normalised."""
    return F.layer_norm(x.square().cumsum(0), x.shape[1:])


def faint_layer(x):
    """(T, d) -> (T, d): each output is its token, and a little of the sum up to its own place."""
    return x + 1e-4 * x.cumsum(0)


def very_faint_layer(x):
    """(T, d) -> (T, d): each output is its token, and very little of the first token."""
    return x + 3e-6 * x[:1]


def causal_attention_layer(x):
    """(T, d) -> (T, d): bare self-attention; a query sees the keys up to its own place."""
    later = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
    return torch.softmax((x @ x.T).masked_fill(later, -math.inf), dim=-1) @ x


def own_weight_layer(x):
    """(T, d) -> (T, d): weights of 1 for the own place and 0 for all others, times the tokens."""
    return torch.eye(len(x), dtype=x.dtype) @ x


def watchful_layer(x):
    """(T, d) -> (T, d): as long as the tokens are large, each output is the sum of all."""
    return x + (x.abs().amax() > 10) * x.sum(0)


def _influence(
    layer, x, *,
    sides="right", change="one token", seen="any", diagonal="in", meaning="moved", least=1e-6,
    back=True,
):  # fmt: skip
    step = 1.0 + torch.arange(x.shape[1])  # (d,)
    one = torch.zeros(x.shape[1])
    one[{"feature 0": 0, "the last feature": -1}.get(change, 0)] = 1.0
    rows, changed = [], x.clone()
    for j in range(len(x)):
        changed = x.clone() if back else changed
        if change in ("doubled", "cleared"):
            changed[j] *= 2.0 if change == "doubled" else 0.0
        elif change in ("nan", "inf"):
            changed[j] = float(change)
        elif change == "one and all after":
            changed[j:] += step
        else:
            alike = torch.ones_like(step)
            steps = {"one token": step, "all alike": alike, "by 1e-3": 1e-3 * alike}
            changed[j] += steps.get(change, one)
        difference = layer(changed) - layer(x)  # (T, d)
        limit = 1e-8 + 1e-5 * layer(x).abs() if least == "a share" else least
        moved = ~(difference.abs() <= limit)  # NaN is no longer the number that it was
        rows.append(
            {
                "any": moved.any(1),
                "all tokens": moved.any().expand(len(x)),
                "feature 0": moved[:, 0],
                "the last feature": moved[:, -1],
                "summed": difference.sum(1).abs() > 1e-5,
                "weighed": (difference * step.flip(0)).sum(1).abs() > 1e-5,
            }[seen]
        )
    reached = torch.stack(rows, dim=1)  # column j: the outputs that noticed token j
    reached = reached.T if sides == "swapped" else reached
    if diagonal == "out":
        reached = reached & ~torch.eye(len(x), dtype=torch.bool)
    return ~reached if meaning == "inverted" else reached


_jacobian = torch.autograd.functional.jacobian  # of a layer at x: (T, d, T, d)


def _influence_by_gradient(layer, x):
    return (_jacobian(layer, x).abs() > 1e-7).any(dim=3).any(dim=1)


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=2,
    trains="measuring which token reaches which output",
    text="""
    A layer is handed to you as a function from (T, d) to (T, d); you cannot look inside. Find out
    **which token reaches which output**: a table that is True at `[i, j]` if output i depends on
    token j, however weakly: for a step of 1, only what moves by less than 1e-6 may be rounding.
    The check hands you attention, a convolution and others.
    """,
    reference=_influence,
    edges=[
        (
            "where the layer mixes large tokens only: it is asked about the tokens as given",
            (watchful_layer, torch.tensor([[40.0, 30.0], [-20.0, 50.0], [60.0, -40.0]])),
        )
    ],
    probes=[
        (running_sum_layer, *draw(521, (2, 2))),
        (attention_layer, *draw(522, (3, 4), scale=0.5)),
        (very_faint_layer, torch.tensor([[2.0, -2.5, 3.0], [-2.5, 3.0, -2.0]])),
        (own_weight_layer, *draw(533, (2, 2))),
        (causal_attention_layer, *draw(532, (3, 4), scale=0.5)),
        (neighbour_layer, *draw(523, (4, 3))),
        (place_layer, *draw(524, (4, 2))),
        (reading_layer, *draw(525, (4, 3))),
        (writing_layer, *draw(528, (3, 3))),
        (relative_layer, (4 * draw(526, (3, 4))[0]).round() / 4),
        (ripple_layer, *draw(534, (3, 3))),
        (post_norm_layer, *draw(529, (4, 4))),
        (post_norm_layer, -draw(531, (3, 4))[0].abs()),
        (running_sum_layer, draw(527, (3, 3))[0] * torch.tensor([[1.0], [0.0], [1.0]])),
        (faint_layer, *draw(530, (3, 3))),
    ],
    mistakes=[
        wrong(
            "rows are tokens and columns are outputs",
            "role of q, k, v",
            "The output stands first, [i, j]: changing token j fills column j.",
            sides="swapped",
        ),
        wrong(
            "the table is inverted",
            "mask meaning",
            "True where the output does depend on the token.",
            meaning="inverted",
        ),
        wrong(
            "several tokens are changed at once",
            "position",
            "Change one token at a time and leave all others as they were.",
            change="one and all after",
            seen="any",
        ),
        wrong(
            "changed tokens stay changed",
            "position",
            "Start from x as it is for every token, or you see what several do together.",
            back=False,
        ),
        wrong(
            "any change anywhere counts for every output",
            "position",
            "Ask each output by itself whether it has changed: any(dim=1), not any().",
            seen="all tokens",
        ),
        wrong(
            "a token's own output is left out",
            "off by one",
            "An output may well depend on the token at its own place.",
            diagonal="out",
        ),
        wrong(
            "all features of a token are moved alike",
            "position",
            "A layer that begins with LayerNorm takes that out again: move each feature by "
            "another amount.",
            change="all alike",
        ),
        wrong(
            "only one feature of a token is changed",
            "position",
            "A layer may read the other features only: change them all.",
            {"change": "the last feature"},
            change="feature 0",
        ),
        wrong(
            "a token of zeros is not changed",
            "position",
            "Doubling it or setting it to 0 leaves it as it was: add something, or put another "
            "token there.",
            {"change": "cleared"},
            change="doubled",
        ),
        wrong(
            "only one feature of an output is looked at",
            "position",
            "The change may show in another feature: any(dim=1) asks them all.",
            {"seen": "the last feature"},
            seen="feature 0",
        ),
        wrong(
            "differences are added with their signs",
            "averaging",
            "They may cancel, as behind a LayerNorm: take absolute values before adding, or "
            "any(dim=1).",
            {"seen": "weighed"},
            seen="summed",
        ),
        wrong(
            "a weak influence is overlooked",
            "off by one",
            "What is larger than rounding, about 1e-6, is an influence, however weak; isclose "
            "overlooks a hundred-thousandth of an output.",
            {"least": "a share"},
            {"change": "by 1e-3", "least": 1e-4},
            {"least": 1e-4},
            {"least": 1e-5},
            least=0.02,
        ),
        wrong(
            "a token is replaced by NaN or infinity",
            "mask meaning",
            "A weight of 0 lets nothing through, but 0 times NaN is NaN, and so is 0 times "
            "infinity: put an ordinary number there.",
            {"change": "inf"},
            change="nan",
        ),
    ],
    hints=[
        "You may run the layer as often as you like, on inputs of your choice.",
        "Change one token, run again, and see which outputs have moved.",
        "That is one column of the table. How many runs does the whole table take?",
    ],
    right_variants=[
        _influence_by_gradient,
        lambda layer, x: _jacobian(layer, x).abs().sum(dim=(1, 3)) > 1e-6,
        lambda layer, x: (
            torch.stack(
                [
                    (
                        (
                            layer(x + e[:, None] * x.new_tensor([2.0, -1, 1, 4, 3])[: x.shape[1]])
                            - layer(x)
                        ).abs()
                        > 1e-6
                    ).any(1)
                    for e in torch.eye(len(x))
                ]
            ).T
        ),
        lambda layer, x: _influence(lambda y: layer(y.double()), x.double()),
    ],
)
def influence(layer, x):
    """Which token reaches which output.

    layer: a function (T, d) -> (T, d), x: (T, d).
    Returns booleans (T, T), True at [i, j] if output i depends on token j.
    """
    columns = []
    for j in range(len(x)):
        changed = x.clone()
        changed[j] += 1.0 + torch.arange(x.shape[1])  # another step for each feature
        columns.append((layer(changed) - layer(x)).abs().amax(dim=1) > 1e-6)  # (T,)
    return torch.stack(columns, dim=1)


@exercise(
    kind="value",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=4,
    difficulty=2,
    trains="reading a fault off a map",
    text="""
    Self-attention with a linear layer (with bias) for each role. Its map has **equal rows**, though
    the three words differ:

    |  | i | lost | . |
    |---|---|---|---|
    | **i** | 0.20 | 0.70 | 0.10 |
    | **lost** | 0.20 | 0.70 | 0.10 |
    | **.** | 0.20 | 0.70 | 0.10 |

    What has happened? `"a"`: the weight matrix of the queries is zero, only its bias is left.
    `"b"`: that of the keys is zero, only its bias is left. `"c"`: that of the values is zero.
    `"d"`: the softmax ran over the queries.
    """,
    mistakes=[
        wrong(
            "the keys are taken to be equal",
            "role of q, k, v",
            "Equal keys get equal scores: every row would be even, 0.33 each.",
            answer="b",
        ),
        wrong(
            "the values are taken to matter",
            "role of q, k, v",
            "Values have no part in the weights; the map would not show it.",
            answer="c",
        ),
        wrong(
            "the softmax is taken to run over the queries",
            "softmax axis",
            "Then the columns would sum to 1; the rows do.",
            answer="d",
        ),
    ],
    hints=[
        "A row belongs to a query, a column to a key. What do all queries agree on?",
        "The columns differ, so the keys do. What must the queries be?",
        "What does a layer give if its matrix is zero?",
    ],
)
def equal_rows():
    """The letter of what has happened"""
    return "a"


def _stack(*, layers=50, outputs=101, width=5, maps=64 * 64, each=1):
    return each * layers * outputs * width * maps


@exercise(
    kind="value",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=4,
    difficulty=2,
    trains="the cost of a stack that connects the ends",
    text="""
    A sentence of 101 tokens of size 64. Convolutions of width 5, from 64 to 64 features and padded,
    are stacked until the last output can depend on the first token. How many multiplications does
    **the whole stack** take?
    """,
    mistakes=[
        *worked_out(
            _stack,
            wrong(
                "one layer is counted",
                "counting",
                "One layer reaches two places to the left; count all layers that are needed.",
                layers=1,
            ),
            wrong(
                "the reach of a layer is taken to be its width",
                "position",
                "A kernel of width 5 is centred: it reaches 2 places to each side, not 5.",
                {"layers": 21},
                layers=20,
            ),
            wrong(
                "both sides of the kernel are counted",
                "position",
                "Of the 4 neighbours that a kernel of width 5 sees, only 2 lie to the left.",
                {"layers": 26},
                layers=25,
            ),
            wrong(
                "every layer goes one token further",
                "position",
                "That is width 3, or a recurrence; width 5 reaches 2 tokens to each side.",
                layers=100,
            ),
            wrong(
                "there is a layer for each token",
                "position",
                "Width 5 reaches 2 tokens to each side, so fewer layers are enough.",
                layers=101,
            ),
            wrong(
                "tokens are counted, not the gaps between them",
                "off by one",
                "From the first of 101 tokens to the last there are 100 places to go.",
                layers=51,
            ),
            wrong(
                "a layer too few is counted",
                "off by one",
                "50 layers of reach 2 cross 100 places, 49 only 98.",
                layers=49,
            ),
            wrong(
                "each feature is taken to meet itself only",
                "counting",
                "From 64 to 64 features: each new feature reads all 64 of each token.",
                maps=64,
            ),
            wrong(
                "one output for each layer is counted",
                "counting",
                "Every layer makes all 101 outputs.",
                outputs=1,
            ),
            wrong(
                "the outputs at the ends are left out",
                "counting",
                "The layers are padded: each makes 101 outputs, not 97.",
                outputs=97,
            ),
            wrong(
                "the width is forgotten in the cost",
                "counting",
                "Each output reads 5 tokens, each through a 64 x 64 matrix of its own.",
                width=1,
            ),
            wrong(
                "additions are counted too",
                "counting",
                "Asked are multiplications alone.",
                each=2,
            ),
        ),
    ],
    hints=[
        "How many places to the left does one layer of width 5 reach?",
        "So how many layers does it take to cross 100 places?",
        "One layer: for each of 101 outputs, 5 tokens through a matrix of 64 x 64.",
    ],
)
def stack_multiplications():
    """Multiplications of a stack of convolutions of width 5 that connects 101 tokens of size 64:"""
    return 50 * 101 * 5 * 64 * 64


def _elsewhere(x, *, made="diagonal hidden", sums="one"):
    T, d = x.shape
    scores = x @ x.T / math.sqrt(d)  # (T, T)
    itself = torch.eye(T, dtype=torch.bool)
    hidden = scores.masked_fill(itself, -math.inf)
    # the first token has no earlier one and the last no later one: each looks at itself
    ends = torch.zeros(T, dtype=torch.bool).index_fill(0, torch.tensor([0, T - 1]), True)
    alone = torch.where(itself & ends, 0.0, hidden)
    above = torch.ones(T, T, dtype=torch.bool).triu(1)
    weights = {
        "diagonal hidden": lambda: hidden.softmax(-1),
        "plain": lambda: scores.softmax(-1),
        "even": lambda: torch.full_like(scores, 1 / T),
        "the next": lambda: torch.eye(T, dtype=x.dtype).roll(1, dims=1),
        "earlier": lambda: alone.masked_fill(above, -math.inf).softmax(-1),
        "later": lambda: alone.masked_fill(above.T, -math.inf).softmax(-1),
        "neighbour asks": lambda: (x.roll(1, dims=0) @ x.T / math.sqrt(d)).softmax(-1),
        "drawn": lambda: (hidden + torch.randn_like(hidden)).softmax(-1),
        "columns": lambda: hidden.softmax(0),
        "no softmax": lambda: (
            scores.masked_fill(itself, 0.0) / scores.masked_fill(itself, 0.0).sum(-1, keepdim=True)
        ),
    }[made]()
    return weights * (1 - 1 / T) if sums == "less" else weights


def _what_weights_keep(answer, x):
    """What is asked of the weights, whatever their design: each property, and whether it holds."""
    weights = as_asked(answer(x), "a tensor (T, T)", (len(x), len(x)), nan_is_measured=True)
    order = torch.arange(len(x)).roll(3).flip(0)
    (many,) = draw(540, (40, 16))
    shuffled, others = answer(x[order]), (-2 * x[0], x[-1].roll(1))
    changed = [answer(torch.cat([other[None], x[1:]])) for other in others]
    sums = weights.sum(-1)
    as_tokens = torch.allclose(shuffled, weights[order][:, order], rtol=1e-2, atol=1e-4)
    return {
        "no weight is NaN or infinite": bool(weights.isfinite().all()),
        "no weight is negative": weights.min().item() >= 0,
        "each row sums to 1 at most": sums.max().item() < 1 + 1e-4,
        "each row sums to 1 at least": sums.min().item() > 1 - 1e-4,
        "is shuffled with the tokens": as_tokens,
        "looks at earlier tokens, too": as_tokens or weights.tril(-1).max().item() > 1e-6,
        "looks at later tokens, too": as_tokens or weights.triu(1).max().item() > 1e-6,
        "changes when a token changes": not all(
            torch.allclose(new, weights, atol=0.01) for new in changed
        ),
        "leaves at most 0.1 for the token itself": answer(many).diagonal().mean().item() <= 0.1,
    }


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=15,
    difficulty=3,
    trains="designing attention to order",
    text="""
    **An open task**: many answers are right, and only what is asked here is checked. Without
    matrices random tokens favour themselves. Cure that, without any trained number: design
    the weights (T, T) of self-attention for tokens `x` (T, d) with these properties: (1) no weight
    is negative, and each row sums to 1; (2) if the tokens are shuffled, rows and columns are
    shuffled in the same way; (3) the weights change when a token becomes another one; (4) of 40
    random tokens of 16 numbers, each keeps at most 0.1 of its weight for itself, on average.
    """,
    reference=_elsewhere,
    play=_what_weights_keep,
    probes=[draw(543, (4, 3)), draw(541, (5, 8)), draw(542, (20, 16))],
    edges=[
        (
            "where no two tokens have a dot product above 0",
            (torch.tensor([[1.0, 2.0], [-1.0, -2.0], [-2.0, 1.0]]),),
        ),
    ],
    mistakes=[
        wrong(
            "tokens still look at themselves",
            "score",
            "Property 4: print weights.diagonal().mean(). Dividing by a root does not help enough.",
            made="plain",
        ),
        wrong(
            "the weights ignore the tokens",
            "score",
            "Property 3: change a token, and something in the weights has to move.",
            made="even",
        ),
        wrong(
            "rows sum to less than 1",
            "mask timing",
            "Property 1: what is taken away after the softmax, as the diagonal, is missing from "
            "the sum of the row; and 1 / T is too little where fewer than T tokens are left.",
            sums="less",
        ),
        wrong(
            "the places decide, not the tokens",
            "position",
            "Properties 2 and 3: a neighbour is a place; the weights must come from x.",
            made="the next",
        ),
        wrong(
            "only earlier tokens are looked at",
            "mask direction",
            "Property 2: a causal mask tells places apart, so shuffling changes the weights.",
            made="earlier",
        ),
        wrong(
            "only later tokens are looked at",
            "mask direction",
            "Property 2: a mask by places tells them apart, so shuffling changes the weights.",
            made="later",
        ),
        wrong(
            "the weights hang on where a token stands",
            "position",
            "Property 2: a neighbour, a distance or a row number is a place, and chance is no "
            "better: shuffled tokens need the same weights, shuffled.",
            {"made": "drawn"},
            made="neighbour asks",
        ),
        wrong(
            "rows do not sum to 1",
            "softmax axis",
            "Property 1: the row belongs to the token that asks, so a softmax runs along it: "
            "dim=-1.",
            made="columns",
        ),
        wrong(
            "weights may be negative",
            "normalisation",
            "Property 1: scores of any sign become weights by a softmax.",
            made="no softmax",
        ),
    ],
    hints=[
        "Which scores are too high, and when must something be done to them: before the softmax?",
        "A mask may hide the diagonal. Or query and key may be made different without training.",
        "x.roll(1, dims=1) moves the numbers of each token on by one: a new vector, no parameter.",
    ],
    right_variants=[
        lambda x: (x @ x.T).masked_fill(torch.eye(len(x)) == 1, float("-inf")).softmax(-1),
        lambda x: (-x @ x.T / math.sqrt(x.shape[1])).softmax(-1),
        lambda x: (x @ x.T - 1e4 * torch.eye(len(x))).softmax(-1),
        lambda x: (-8 * F.normalize(x, dim=-1) @ F.normalize(x, dim=-1).T).softmax(-1),
        lambda x: (lambda d: d / d.sum(-1, keepdim=True))(torch.cdist(x, x) + 1e-20),
        lambda x: _elsewhere(x.double()),
    ],
)  # fmt: skip
def look_elsewhere(x):
    """Weights of self-attention in which a token does not mostly look at itself.

    x: (T, d). Returns weights (T, T).
    """
    # One of many: as a key, a token moves its numbers on by one, so it no longer fits itself best.
    scores = x @ x.roll(1, dims=1).T / math.sqrt(x.shape[1])  # (T, T)
    return scores.softmax(-1)
