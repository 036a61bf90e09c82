"""Exercises of notebook 17: norms, gates, rotary caches, shared key heads, and routers."""

import math

import torch
import torch.nn.functional as F

from course_utils.checker.common import worked_out
from course_utils.checker.exercise import exercise, wrong
from course_utils.checker.probes import NotAsAsked, as_asked, draw
from course_utils.models.modern.rotary import rotate

NOTEBOOK = "17_todays_blocks"


def _rms(
    x, weight, eps,
    *, centred=False, root="of the mean", where="inside", axis=-1, factor="weight", divide=True,
):  # fmt: skip
    if centred is True:
        x = x - x.mean(-1, keepdim=True)
    power = x.abs() if root == "of absolute values" else x.square()
    if centred in ("below", "below, by d - 1"):
        power = (x - x.mean(-1, keepdim=True)).square()
        power = power * x.shape[-1] / (x.shape[-1] - (centred == "below, by d - 1"))
    mean = power.sum(axis, keepdim=True) if root == "of the sum" else power.mean(axis, keepdim=True)
    if axis in ((-2, -1), (0, 1, 2)):
        mean = power.mean(axis, keepdim=True)
    if root == "of the squared mean":
        mean = x.mean(axis, keepdim=True).square()
    if where in ("inside", "in the sum"):
        size = (mean + (eps if where == "inside" else eps / x.shape[-1])).sqrt()
    elif where == "outside":
        size = mean.sqrt() + eps
    elif where == "under its own root":
        size = mean.sqrt() + eps**0.5
    else:
        size = mean.sqrt()
    if root in ("none", "of absolute values"):
        size = size.square()
    y = x / size if divide else x * size
    return {"weight": y * weight, "none": y, "divided": y / weight, "one more": y * (1 + weight)}[
        factor
    ]


def _norm_probe(seed, *shape, eps):
    x, weight = draw(seed, shape, shape[-1:])
    return (x + 1, (weight + 2).round(decimals=2), eps)


@exercise(
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="RMSNorm, to the last term",
    text="""
    RMSNorm without `nn.RMSNorm`, `F.rms_norm` and the other norms of torch: divide every token
    vector by the root of the mean of its squares, and multiply each feature by its own weight. ε is
    added to the mean, under the root. The check uses a large ε, so that its place shows.
    """,
    reference=_rms,
    probes=[
        _norm_probe(0, 1, 1, 4, eps=0.5),
        _norm_probe(1, 2, 3, 4, eps=0.5),
        _norm_probe(2, 2, 5, 6, eps=0.1),
    ],
    forbids=["rms_norm"],
    mistakes=[
        wrong(
            "the mean is subtracted",
            "norm statistics",
            "That is what LayerNorm does; RMSNorm leaves the mean where it is.",
            centred=True,
        ),
        wrong(
            "the variance is taken, not the mean of the squares",
            "norm statistics",
            "A variance is measured from the mean; here the numbers are squared as they are.",
            {"centred": "below, by d - 1"},
            centred="below",
            axis=-1,
        ),
        wrong(
            "the squares are summed, not averaged",
            "norm statistics",
            "The *mean* of the squares: then the entries have size 1, whatever d is.",
            root="of the sum",
        ),
        wrong(
            "the root is missing",
            "norm statistics",
            "Divide by the root of the mean of the squares, not by that mean.",
            root="none",
        ),
        wrong(
            "absolute values are averaged, not squares",
            "norm statistics",
            "Root, mean, square: square first, then take the mean, then the root.",
            root="of absolute values",
            where="inside",
            axis=-1,
        ),
        wrong(
            "the mean is squared, not the numbers",
            "norm statistics",
            "First square every number, then take the mean: else signs cancel.",
            root="of the squared mean",
            axis=-1,
        ),
        wrong(
            "eps is added outside the root",
            "norm statistics",
            "It belongs to the mean of the squares: sqrt(mean + eps).",
            where="outside",
        ),
        wrong(
            "eps has a root of its own",
            "norm statistics",
            "One root is taken, of the sum: sqrt(mean + eps), not sqrt(mean) + sqrt(eps).",
            where="under its own root",
        ),
        wrong(
            "eps is added to the sum of the squares, before it is divided",
            "norm statistics",
            "It belongs to the mean: in the sum it counts only as eps / d.",
            where="in the sum",
        ),
        wrong(
            "eps is left out",
            "norm statistics",
            "Without it a vector of zeros is divided by zero.",
            where="nowhere",
        ),
        wrong(
            "the mean runs over the tokens",
            "norm statistics",
            "Each token has its own mean, over its features: the last axis.",
            {"axis": (-2, -1)},
            {"axis": (0, 1, 2)},
            axis=-2,
        ),
        wrong(
            "the weight is left out",
            "scale and shift",
            "After the division each feature is multiplied by its weight.",
            factor="none",
        ),
        wrong(
            "one is added to the weight",
            "scale and shift",
            "Some models store the weight minus one; here it is the factor itself.",
            factor="one more",
        ),
        wrong(
            "it is multiplied where it should be divided",
            "norm statistics",
            "rsqrt already is one over the root; x times sqrt makes long vectors longer.",
            divide=False,
        ),
    ],
    hints=[
        "Three steps: square, take the mean of each token, divide by the root.",
        "Which axis holds the features of one token? Keep it, so that the division broadcasts.",
        "x.square().mean(-1, keepdim=True) is one number a token; add eps to it.",
    ],
    right_variants=[
        lambda x, w, eps: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w,
        lambda x, w, eps: w * x / torch.sqrt((x * x).sum(-1, keepdim=True) / x.shape[-1] + eps),
        lambda x, w, eps: torch.einsum(
            "bti,i->bti", x, w
        ) / (x.norm(dim=-1, keepdim=True).square() / len(w) + eps) ** 0.5,
    ],
)  # fmt: skip
def rms_normalise(x, weight, eps):
    """Root mean square normalisation of every token.

    x: (B, T, d), weight: (d,), eps: a number. Returns (B, T, d).
    """
    mean_square = x.square().mean(dim=-1, keepdim=True)  # (B, T, 1)
    return x / torch.sqrt(mean_square + eps) * weight


_ACTIVATIONS = {
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
    "relu": F.relu,
    "gelu": F.gelu,
    "tanh": torch.tanh,
    "elu": F.elu,
    "softplus": F.softplus,
    "leaky": F.leaky_relu,
    "hard": F.hardswish,
    "relu6": F.relu6,
    "flat": F.hardtanh,
    "gate": F.hardsigmoid,
    "softmax": lambda z: z.softmax(-1),
    "none": lambda z: z,
}


_NO_SILU = ("gelu", "tanh", "elu", "softplus", "leaky", "hard", "relu6", "gate", "flat")


def _gated(x, W_gate, W_up, W_down, *, on="gate", activation="silu", join="product", last=True,
           residual=False):  # fmt: skip
    act = _ACTIVATIONS[activation]
    gate, up = x @ W_gate, x @ W_up
    if on in ("gate", "both"):
        gate = act(gate)
    if on in ("up", "both"):
        up = act(up)
    hidden = gate + up if join == "sum" else gate * up
    if join == "no up":
        hidden = gate
    if on == "product":
        hidden = act(hidden)
    result = hidden @ W_down if last else hidden
    result = act(result) if on == "result" else result
    return x + result if residual else result


@exercise(
    notebook=NOTEBOOK,
    minutes=6,
    difficulty=1,
    trains="the gated feed-forward network",
    text="""
    SwiGLU: two linear maps of the same token, of which the one called *gate* goes through SiLU,
    $z \\cdot \\sigma(z)$. They are multiplied entry by entry, and a third matrix leads back.
    Matrices are applied from the right: `x @ W_up`.
    """,
    reference=_gated,
    probes=[
        draw(3, (1, 1, 2), (2, 3), (2, 3), (3, 2)),
        draw(4, (1, 2, 3), (3, 4), (3, 4), (4, 3)),
        draw(5, (2, 3, 4), (4, 6), (4, 6), (6, 4)),
    ],
    mistakes=[
        wrong(
            "the gate's activation sits on the wrong branch",
            "activation",
            "SiLU belongs to x @ W_gate; what comes from W_up passes as it is.",
            on="up",
        ),
        wrong(
            "both branches are activated",
            "activation",
            "Only the gate goes through SiLU.",
            on="both",
        ),
        wrong(
            "the activation is applied to the product",
            "activation",
            "First activate the gate, then multiply.",
            on="product",
        ),
        wrong(
            "the activation comes last",
            "activation",
            "SiLU belongs to x @ W_gate, before anything is multiplied.",
            on="result",
        ),
        wrong(
            "the sigmoid is not multiplied by its input",
            "activation",
            "SiLU is z times sigmoid(z); with the sigmoid alone it is the GLU of 2017.",
            activation="sigmoid",
        ),
        wrong(
            "the activation is not SiLU",
            "activation",
            "ReLU and GELU make relatives of SwiGLU (ReGLU, GEGLU), with other numbers.",
            *({"activation": other} for other in _NO_SILU),
            activation="relu",
        ),
        wrong(
            "a softmax stands in for the activation",
            "activation",
            "Each entry of a gate opens by itself: SiLU, z times sigmoid(z).",
            activation="softmax",
        ),
        wrong(
            "there is no activation",
            "activation",
            "Without SiLU the product of two linear maps is left.",
            activation="none",
        ),
        wrong(
            "the branches are added",
            "activation",
            "A gate multiplies: where it is 0, nothing passes.",
            join="sum",
        ),
        wrong(
            "one branch is missing",
            "activation",
            "The gate alone is a plain network; it must be multiplied by x @ W_up.",
            join="no up",
        ),
        wrong(
            "the way back to d is missing",
            "projection",
            "The product has d_ff entries; W_down leads back to d.",
            last=False,
            residual=False,
        ),
        wrong(
            "x is added to the result",
            "residual",
            "The residual connection belongs to the block around the network, not to the network.",
            residual=True,
        ),
    ],
    hints=[
        "Compute the two branches first, each (B, T, d_ff).",
        "F.silu(z) is z * torch.sigmoid(z). Which branch gets it?",
        "The product is entry by entry, with *; only then comes W_down.",
    ],
    right_variants=[
        lambda x, g, u, d: (F.silu(x @ g) * (x @ u)) @ d,
        lambda x, g, u, d: torch.einsum(
            "btf,fd->btd", (x @ u) * (x @ g) / (1 + torch.exp(-(x @ g))), d
        ),
        lambda x, g, u, d: F.linear(
            F.linear(x, u.T) * F.silu(F.linear(x, g.T)), d.T
        ),
    ],
)  # fmt: skip
def gated_network(x, W_gate, W_up, W_down):
    """The feed-forward network SwiGLU.

    x: (B, T, d), W_gate and W_up: (d, d_ff), W_down: (d_ff, d). Returns (B, T, d).
    """
    gate = x @ W_gate  # (B, T, d_ff)
    return (gate * torch.sigmoid(gate) * (x @ W_up)) @ W_down


def _order(d, how):
    even = torch.cat([torch.arange(0, d, 2), torch.arange(1, d, 2)])
    return {
        "to halves": even,
        "back": even.argsort(),
        "odd first": even.roll(d // 2),
        "reversed": even.flip(0),
        "as it was": torch.arange(d),
    }[how]


def _to_halves(W, num_heads, *, order="to halves", heads="each", axis="columns"):
    if axis == "rows":
        if len(W) % (2 * num_heads):
            raise ValueError("such rows cannot be cut into heads and pairs")
        return _to_halves(W.T, num_heads, order=order, heads=heads).T
    d = W.shape[1]
    if heads == "copied":
        first = W[:, : d // num_heads]
        return first[:, _order(first.shape[1], order)].repeat(1, num_heads)
    if heads == "together":
        return W[:, _order(d, order)]
    size = d // num_heads
    if heads == "as wide as there are":
        cut = W.unflatten(1, (size, num_heads))
        return torch.cat([cut[..., ::2], cut[..., 1::2]], dim=-1).flatten(1)
    if heads == "one alone":
        return W[:, _order(size, order)]
    if heads == "side by side":
        return W[:, torch.cat([_order(size, order) + h for h in range(num_heads)])]
    if heads == "in turn":
        return W.unflatten(1, (size, num_heads))[:, _order(size, order)].flatten(1)
    if heads == "first":
        return torch.cat([W[:, _order(size, order)], W[:, size:]], dim=1)
    return W.unflatten(1, (num_heads, size))[:, :, _order(size, order)].flatten(1)


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=3,
    trains="carrying rotary weights from one layout to the other",
    text="""
    You get the matrix `W` of the queries (or of the keys) of a model that turns neighbours: in each
    head the pairs are columns (0, 1), (2, 3), ... Your own code turns halves: (0, d/2),
    (1, d/2 + 1), ..., where d is the size of one head. Rearrange `W` so that your code gives the
    scores of that model. The heads stand side by side in the columns of `x @ W`.
    """,
    reference=_to_halves,
    probes=[
        (torch.arange(16.0).view(4, 4), 1),
        (torch.arange(96.0).view(8, 12), 2),
        (torch.arange(128.0).view(8, 16), 2),
        (torch.arange(216.0).view(12, 18), 3),
    ],
    mistakes=[
        wrong(
            "the order leads the wrong way",
            "frequency",
            "Even columns of a head come first, then the odd ones; this takes halves apart into "
            "neighbours.",
            order="back",
        ),
        wrong(
            "each head begins one column behind the last",
            "head layout",
            "Head h begins at column h * d, d the size of a head.",
            heads="side by side",
            axis="columns",
        ),
        wrong(
            "the odd columns come first",
            "frequency",
            "Of a pair the even column comes first: it belongs to the first half. Exchanged, the "
            "pair turns backwards.",
            order="odd first",
        ),
        wrong(
            "all heads are rearranged as one",
            "head layout",
            "Each head has its own pairs: cut the columns into heads first.",
            heads="together",
        ),
        wrong(
            "every h-th column is taken for a head",
            "head layout",
            "The heads stand side by side: head 0 is the first d columns.",
            heads="in turn",
        ),
        wrong(
            "the size of a head and the number of heads are exchanged",
            "head layout",
            "W.unflatten(1, (num_heads, -1)): first an axis of the heads, then one of the columns "
            "of each.",
            heads="as wide as there are",
            order="to halves",
        ),
        wrong(
            "one head alone is given",
            "head layout",
            "An order of d numbers takes d columns: each head needs them, from its own column on.",
            heads="one alone",
            axis="columns",
        ),
        wrong(
            "only the first head is rearranged",
            "head layout",
            "Every head needs the new order.",
            heads="first",
        ),
        wrong(
            "every head gets the columns of the first",
            "head layout",
            "The columns of head i begin at i times the size of a head: add that to their numbers.",
            heads="copied",
        ),
        wrong(
            "the rows are rearranged",
            "projection",
            "Rows belong to the features of x, columns to those of the queries.",
            axis="rows",
        ),
        wrong(
            "nothing is rearranged",
            "frequency",
            "Then columns that belonged together turn with others, at other speeds.",
            order="as it was",
        ),
    ],
    hints=[
        "Take one head of size 6. Which two columns turn together there, and where must each go?",
        "In that head the new order is 0, 2, 4, 1, 3, 5.",
        "W.unflatten(1, (num_heads, -1)) has an axis for the heads; index its last axis.",
    ],
    right_variants=[
        lambda W, h: torch.cat(
            [torch.cat([part[:, 0::2], part[:, 1::2]], 1) for part in W.chunk(h, dim=1)], 1
        ),
        lambda W, h: W.view(len(W), h, -1, 2).transpose(2, 3).reshape(W.shape),
        lambda W, h: W[
            :,
            [
                i * (W.shape[1] // h) + j
                for i in range(h)
                for start in (0, 1)
                for j in range(start, W.shape[1] // h, 2)
            ],
        ],
    ],
)
def neighbours_to_halves(W, num_heads):
    """The columns of W, head by head, in the order of the layout with halves.

    W: (d_model, num_heads * d), applied as x @ W; d is even. Returns the shape of W.
    """
    heads = W.unflatten(1, (num_heads, -1, 2))  # (d_model, h, d / 2, 2): a pair is the last axis
    return heads.transpose(2, 3).flatten(1)


def _new_scores(
    q, k, cached,
    *, queries="turned", key="turned", cache="as it is", at="own", scale="root",
    layout="neighbours", order="old first", speed=2, softmax=False,
):  # fmt: skip
    P, d = cached.shape[-2], q.shape[-1]
    place = {"own": P, "one late": P + 1, "one early": P - 1, "first": 0}[at]
    torn = layout == "torn"
    layout = {"neighbours": "interleaved", "torn": "interleaved", "halves": "halves"}[layout]

    def turn(x, how, first):
        if how == "not":
            return x
        where = torch.arange(first, first + x.shape[-2])
        where = -where if how == "backwards" else where
        if speed != 2:  # 10000 to the power of -speed * i / d
            angles = where[:, None] * 10_000.0 ** (-speed * torch.arange(d // 2) / d)
            pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
            return torch.view_as_real(pairs * torch.exp(1j * angles)).flatten(-2)
        x = rotate(x, where, layout=layout)
        return torch.cat([x[..., 0::2], x[..., 1::2]], dim=-1) if torn else x

    new = turn(k, key, place)
    old = cached if cache == "as it is" else turn(cached, "turned", 0)
    keys = {"old first": [old, new], "new first": [new, old], "old only": [old]}[order]
    keys = torch.cat(keys, dim=-2)
    scores = turn(q, queries, place) @ keys.mT
    scores = scores / {"root": math.sqrt(d), "none": 1.0, "d": d}[scale]
    return scores.softmax(-1) if softmax else scores


def _cache_probe(seed, heads, past, d):
    q, k, cached = draw(seed, (1, heads, 1, d), (1, heads, 1, d), (1, heads, past, d))
    return q, k, rotate(cached).round(decimals=2)


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=3,
    trains="rotary positions with a key-value cache",
    text="""
    A decoder with rotary positions writes one more token. Its cache holds the keys of positions 0
    to P - 1, each turned already when it was stored. The query and the key of the new token,
    position P, are not turned yet. Compute the scaled scores of the query with all P + 1 keys.
    Pairs are neighbours (0, 1), (2, 3), ..., the base is 10000; you may use the `rotate` of this
    chapter.
    """,
    reference=_new_scores,
    probes=[_cache_probe(6, 1, 1, 2), _cache_probe(7, 2, 3, 4), _cache_probe(8, 2, 5, 6)],
    edges=[("where the cache is still empty", _cache_probe(9, 2, 0, 4))],
    mistakes=[
        wrong(
            "the new key is not turned",
            "position",
            "Queries *and* keys are turned, or the score depends on more than the distance.",
            key="not",
        ),
        wrong(
            "the query is not turned",
            "position",
            "Queries *and* keys are turned, or the score depends on more than the distance.",
            queries="not",
        ),
        wrong(
            "the cached keys are turned once more",
            "cache",
            "They were turned when they were stored; twice puts them at twice their position.",
            cache="again",
        ),
        wrong(
            "query and new key stand at position 0, where nothing turns",
            "position",
            "P tokens stand before the new one: turn both to position P.",
            at="first",
        ),
        wrong(
            "the new token's position is one too large",
            "off by one",
            "Positions count from 0: after P tokens comes position P.",
            at="one late",
        ),
        wrong(
            "the new token's position is one too small",
            "off by one",
            "Position P - 1 is that of the last key in the cache.",
            at="one early",
        ),
        wrong(
            "the angles are negated",
            "sine and cosine",
            "The cached keys were turned forwards, (1, 0) to (cos, sin): so must these be.",
            queries="backwards",
            key="backwards",
        ),
        wrong(
            "pairs are taken from the two halves",
            "frequency",
            "Here neighbouring columns turn together, as in the cached keys.",
            layout="halves",
        ),
        wrong(
            "pairs are neighbours before the turn, and halves after it",
            "frequency",
            "Put each turned pair back where it came from: stack the two parts on a new last axis, "
            "then flatten it.",
            layout="torn",
        ),
        wrong(
            "the speeds fall too slowly or too fast",
            "frequency",
            "Pair i turns by P * 10000^(-2i/d), i from 0 to d/2 - 1; torch.arange(0, d, 2) is 2i.",
            {"speed": 4},
            speed=1,
            layout="neighbours",
        ),
        wrong(
            "a softmax is taken of the scores",
            "normalisation",
            "Asked are the scores themselves; their softmax comes later.",
            softmax=True,
        ),
        wrong(
            "the scores are not divided by the root of d",
            "scale",
            "Rotary positions change nothing there: divide by the root of d.",
            {"scale": "d"},
            scale="none",
        ),
        wrong(
            "the new key comes first",
            "cache",
            "It stands behind those of the cache, in the order of positions.",
            order="new first",
        ),
        wrong(
            "the new token does not see itself",
            "cache",
            "Its own key is one of the P + 1: join it to those of the cache.",
            order="old only",
        ),
    ],
    hints=[
        "What is the position of the new token if the cache holds P keys?",
        "Turn q and k by P positions; leave the cache as it is.",
        "Join the keys along the axis of positions, dim=-2, and multiply by their transpose.",
    ],
    right_variants=[
        lambda q, k, c: (
            rotate(q, torch.tensor([c.shape[2]]))
            @ torch.cat([c, rotate(k, torch.tensor([c.shape[2]]))], 2).mT
            / q.shape[-1] ** 0.5
        ),
        lambda q, k, c: (
            torch.cat(
                [
                    rotate(q, torch.tensor([float(c.shape[2])])) @ c.transpose(2, 3),
                    (q * k).sum(-1, keepdim=True),
                ],
                dim=-1,
            )
            / math.sqrt(q.shape[-1])
        ),
        lambda q, k, c: torch.einsum(
            "bhqd,bhkd->bhqk",
            rotate(q / math.sqrt(q.shape[3]), torch.full((1,), c.shape[-2])),
            torch.cat((c, rotate(k, torch.full((1,), c.shape[-2]))), dim=-2),
        ),
    ],
)
def cached_scores(q, k, cached):
    """Scores of a new token's query with the cached keys and its own key.

    q, k: (B, h, 1, d), not yet turned; cached: (B, h, P, d), turned; P is 0 for the first token.
    Returns (B, h, 1, P + 1).
    """
    P, d = cached.shape[2], q.shape[-1]
    speed = 10000.0 ** (-torch.arange(0, d, 2) / d)  # (d / 2,)

    def turn(x):
        a, b = x[..., 0::2], x[..., 1::2]
        cos, sin = (P * speed).cos(), (P * speed).sin()
        return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)

    keys = torch.cat([cached, turn(k)], dim=2)  # (B, h, P + 1, d)
    return turn(q) @ keys.mT / math.sqrt(d)


def _grouped(
    q, k, v,
    *, share="repeated", values="as keys", scale="root", axis=-1, order="own", future="seen",
):  # fmt: skip
    h, g, d = q.shape[1], k.shape[1], q.shape[-1]
    if share in ("queries averaged", "averages repeated"):
        q = q.unflatten(1, (g, -1)).mean(2)
        q = q.repeat_interleave(h // g, 1) if share == "averages repeated" else q
        h = q.shape[1]

    def spread(x, how):
        if how == "tiled":
            return x.repeat(1, h // g, 1, 1)
        if how == "first":
            return x[:, :1].expand(-1, h, -1, -1)
        if how == "by g":
            return x[:, torch.arange(h) // g % g]
        if how == "mean":
            return x.mean(1, keepdim=True).expand(-1, h, -1, -1)
        return x.repeat_interleave(h // g, dim=1)

    k, v = spread(k, share), spread(v, share if values == "as keys" else values)
    sizes = {"none": 1, "d": d**2, "heads": h * d, "number of heads": h, "T": q.shape[2]}
    scores = q @ k.mT / math.sqrt(sizes.get(scale, d))
    if future == "hidden":
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -math.inf)
    out = scores.softmax(axis) @ v
    return out.unflatten(1, (g, -1)).transpose(1, 2).flatten(1, 2) if order == "mixed" else out


@exercise(
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=2,
    trains="query heads that share key heads",
    text="""
    Attention with h query heads and only g key and value heads; nothing is masked. Query heads 0 to
    h/g - 1 use key head 0, the next h/g use key head 1, and so on. Write it without
    `F.scaled_dot_product_attention`.
    """,
    reference=_grouped,
    probes=[
        draw(9, (1, 4, 2, 2), (1, 2, 2, 2), (1, 2, 2, 2)),
        draw(10, (1, 4, 3, 2), (1, 2, 3, 2), (1, 2, 3, 2)),
        draw(11, (2, 6, 4, 3), (2, 3, 4, 3), (2, 3, 4, 3)),
    ],
    forbids=["scaled_dot_product_attention"],
    mistakes=[
        wrong(
            "the key heads are tiled, not repeated",
            "head layout",
            "repeat gives 0, 1, 0, 1, so that neighbours use different key heads; "
            "repeat_interleave gives 0, 0, 1, 1.",
            share="tiled",
        ),
        wrong(
            "keys are repeated, values are tiled",
            "head layout",
            "Keys and values belong together: spread both in the same way.",
            values="tiled",
        ),
        wrong(
            "all query heads use key head 0",
            "head layout",
            "That is multi-query attention on the first head; there are g of them.",
            share="first",
        ),
        wrong(
            "query heads are counted off by g, not by h/g",
            "head layout",
            "h/g query heads share a key head: query head i uses key head i // (h // g).",
            share="by g",
        ),
        wrong(
            "the key heads are averaged",
            "head layout",
            "Nothing is averaged: each query head reads one key head.",
            share="mean",
        ),
        wrong(
            "the query heads of a group are averaged",
            "head layout",
            "Only keys and values are shared: all h query heads keep their own scores and results.",
            {"share": "averages repeated"},
            share="queries averaged",
            values="as keys",
            order="own",
        ),
        wrong(
            "the heads of the result stand in another order",
            "head layout",
            "Query head i is head i of the result: first all heads of group 0, then those of 1.",
            order="mixed",
        ),
        wrong(
            "the future is hidden",
            "mask direction",
            "Nothing is masked here: every query sees all T keys.",
            future="hidden",
        ),
        wrong(
            "the scores are not divided by the root of d",
            "scale",
            "d is the size of one head: divide by its root.",
            {"scale": "d"},
            {"scale": "heads"},
            {"scale": "number of heads"},
            {"scale": "T"},
            scale="none",
        ),
        wrong(
            "the softmax runs over the queries",
            "softmax axis",
            "Each query shares out a weight of 1 over its keys, dim=-1.",
            axis=-2,
        ),
    ],
    hints=[
        "How many times must each key head be used? Then everything is plain attention.",
        "repeat and repeat_interleave differ in the order; try both on torch.arange(2).",
        "k.repeat_interleave(times, dim=1) has as many heads as q; do the same with v.",
    ],
    right_variants=[
        lambda q, k, v: (
            F.softmax(
                q @ k.repeat_interleave(q.shape[1] // k.shape[1], 1).mT / q.shape[-1] ** 0.5, dim=-1
            )
            @ v.repeat_interleave(q.shape[1] // k.shape[1], 1)
        ),
        lambda q, k, v: torch.stack(
            [
                (q[:, i] @ k[:, i * k.shape[1] // q.shape[1]].mT / math.sqrt(q.shape[3])).softmax(
                    -1
                )
                @ v[:, i * k.shape[1] // q.shape[1]]
                for i in range(q.shape[1])
            ],
            dim=1,
        ),
        lambda q, k, v: (
            (
                torch.einsum("bgrqd,bgkd->bgrqk", q.unflatten(1, (k.shape[1], -1)), k)
                / math.sqrt(q.shape[-1])
            ).softmax(-1)
            @ v[:, :, None]
        ).flatten(1, 2),
    ],
)
def grouped_attention(q, k, v):
    """Attention in which groups of query heads share a key and a value head.

    q: (B, h, T, d), k and v: (B, g, T, d), g divides h. Returns (B, h, T, d).
    """
    times = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(times, dim=1), v.repeat_interleave(times, dim=1)
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # (B, h, T, T)
    return scores.softmax(dim=-1) @ v


def _heads_that_fit(*, parts=2, bytes_each=2, layers=24, gib=2**30, heads=1):
    return 3 * gib // (parts * bytes_each * layers * heads * 64 * 65_536)


@exercise(
    asks="transfer",
    kind="value",
    notebook=NOTEBOOK,
    minutes=4,
    difficulty=2,
    trains="key heads from a budget of memory",
    text="""
    A model of 24 layers has 16 query heads of size 64 and stores its cache in half precision, 2
    bytes a number. It is to read 65,536 tokens, and its cache may take 3 GiB (3 · $2^{30}$ bytes).
    How many key heads a layer can it have at most?
    """,
    mistakes=worked_out(
        _heads_that_fit,
        wrong(
            "values are forgotten",
            "counting",
            "A cache holds keys and values: two tensors.",
            parts=1,
        ),
        wrong(
            "numbers take four bytes",
            "memory",
            "Half precision takes 2 bytes a number.",
            bytes_each=4,
        ),
        wrong(
            "numbers are counted, not bytes",
            "memory",
            "A number takes 2 bytes in half precision.",
            bytes_each=1,
        ),
        wrong(
            "one layer is counted",
            "counting",
            "Each of the 24 layers has a cache of its own.",
            layers=1,
        ),
        wrong(
            "a GiB is taken for a billion bytes",
            "memory",
            "A GiB is 2^30 bytes, 7 % more than a billion.",
            gib=10**9,
        ),
        wrong(
            "the query heads are counted as well",
            "counting",
            "Asked is how many key heads fit: divide by what one of them takes, of size 64.",
            heads=16,
        ),
    ),
    hints=[
        "How many numbers does one key head store for one token, in one layer?",
        "Keys and values, 64 numbers each, 2 bytes each, 24 layers, 65,536 tokens.",
        "One key head costs 3/8 of a GiB in all.",
    ],
)
def key_heads_that_fit():
    """Key heads with which the cache takes 3 GiB."""
    return 3 * 2**30 // (2 * 24 * 64 * 65_536 * 2)


def _shares(
    logits, k,
    *, renormalise="yes", which="largest", axis=-1, softmax="over all", hide="the others",
    places="kept",
):  # fmt: skip
    if axis == 0:
        return _shares(logits.T, min(k, len(logits)), renormalise=renormalise, which=which,
                       softmax=softmax, places=places).T  # fmt: skip
    if hide == "zeros":
        values, places = logits.topk(k, dim=-1)
        z = torch.zeros_like(logits).scatter(-1, places, values)
        return z.masked_fill(z == 0, -torch.inf).softmax(-1)
    if type(hide) is float:
        last = logits.topk(k, dim=-1).values[:, -1:]
        return logits.masked_fill(logits < last, hide).softmax(-1)
    if softmax == "none":
        p = logits
    elif softmax == "over tokens":
        p = logits.softmax(0)
    elif softmax == "sigmoid":
        p = torch.sigmoid(logits)
    else:
        p = logits.softmax(-1)
    best = p.topk(k, dim=-1)
    chosen = best.indices if which == "largest" else p.topk(k, dim=-1, largest=False).indices
    kept = torch.zeros_like(p).scatter(-1, chosen, p.gather(-1, chosen))
    if which == "fewer":
        kept = kept * (p > best.values[:, -1:])
    if which == "by the experts":
        taken = p.topk(min(k, len(p)), dim=0).indices
        kept = torch.zeros_like(p).scatter(0, taken, p.gather(0, taken))
    if which == "all":
        return p / best.values.sum(-1, keepdim=True)
    if places == "lost":
        kept = p.gather(-1, chosen)
    if renormalise == "equal":
        return (kept != 0) / k
    if renormalise == "softmax":
        return kept.softmax(-1)
    if renormalise == "softmax of the kept":
        return kept.masked_fill(kept == 0, -math.inf).softmax(-1)
    if renormalise == "over all tokens":
        return kept / kept.sum()
    return kept / kept.sum(-1, keepdim=True) if renormalise == "yes" else kept


@exercise(
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="a router's shares",
    text="""
    A router gives each of N tokens E logits, one for each expert. Return the share that every
    expert has in the output of every token: a softmax over the experts, the k largest kept, all
    others 0, and what is kept scaled so that it sums to 1. Logits may be far below 0; no two of a
    token are equal.
    """,
    reference=_shares,
    probes=[
        (draw(12, (1, 3))[0], 2),
        (draw(13, (3, 4))[0], 2),
        (draw(14, (4, 5))[0], 3),
        (draw(15, (3, 6))[0], 1),
        (torch.tensor([[0.0, 1.0, -1.0], [-2.0, 0.0, -1.0]]), 2),  # a logit of 0 is none to hide
        (torch.tensor([[-200.0, -201.0, -200.5], [-1.0, 0.5, 1.0]]), 2),
    ],
    mistakes=[
        wrong(
            "the shares of the k best are not renormalised",
            "normalisation",
            "What is kept of the softmax sums to less than 1: divide by the sum.",
            renormalise="no",
        ),
        wrong(
            "the least probable experts are kept",
            "sampling",
            "Those with the largest logits should get the token.",
            which="smallest",
        ),
        wrong(
            "the others are not set to 0",
            "sampling",
            "Only the k best get the token: the shares of all others are 0.",
            which="all",
            renormalise="yes",
            places="kept",
        ),
        wrong(
            "one expert too few is kept",
            "off by one",
            "The k-th largest is kept, too: compare with >=, or use its place.",
            which="fewer",
        ),
        wrong(
            "each expert chooses tokens",
            "softmax axis",
            "Each token chooses k experts: topk runs over the experts, the last axis.",
            which="by the experts",
        ),
        wrong(
            "all tokens share one sum",
            "normalisation",
            "Each row sums to 1: divide it by its own sum, with keepdim=True.",
            renormalise="over all tokens",
        ),
        wrong(
            "tokens compete for an expert",
            "softmax axis",
            "Experts compete for a token: softmax and topk run over the experts, the last axis.",
            {"axis": -1, "softmax": "over tokens"},
            axis=0,
        ),
        wrong(
            "a kept logit of 0 is taken for one that is hidden",
            "mask meaning",
            "0 is a logit like any other: hide by place (a mask, scatter into -inf), not by value.",
            hide="zeros",
            renormalise="yes",
            which="largest",
            axis=-1,
            softmax="over all",
        ),
        wrong(
            "hidden logits are not low enough",
            "mask meaning",
            "All logits may be as low as that: hide with -inf, or keep probabilities by place.",
            *({"hide": -x} for x in (20.0, 50.0)),
            hide=-100.0,
            renormalise="yes",
            which="largest",
            axis=-1,
            softmax="over all",
            places="kept",
        ),
        wrong(
            "what is hidden counts as a logit of 0",
            "mask meaning",
            "exp(0) is 1, so the softmax gives it a share: hide with -inf, or set shares to 0.",
            hide=0.0,
            renormalise="yes",
            which="largest",
            axis=-1,
            softmax="over all",
            places="kept",
        ),
        wrong(
            "the k shares are not put back in their places",
            "normalisation",
            "The result is (N, E): scatter them into zeros, where their experts stand.",
            places="lost",
            hide="the others",
        ),
        wrong(
            "the softmax is missing",
            "normalisation",
            "Logits may be negative; shares come from their softmax.",
            softmax="none",
        ),
        wrong(
            "a sigmoid stands in for the softmax",
            "normalisation",
            "Some later models do so; here it is the softmax over the experts.",
            softmax="sigmoid",
        ),
        wrong(
            "the k best share equally",
            "normalisation",
            "The more probable expert gets the larger share.",
            renormalise="equal",
        ),
        wrong(
            "a second softmax follows",
            "normalisation",
            "Divide what is kept by its sum; a softmax of shares makes them nearly equal.",
            {"renormalise": "softmax of the kept"},
            renormalise="softmax",
        ),
    ],
    hints=[
        "topk gives the values and the places of the k largest.",
        "A tensor of zeros and scatter put them back where they belong.",
        "Divide by the sum over the experts last, with keepdim=True.",
    ],
    right_variants=[
        lambda z, k: z.masked_fill(z < z.topk(k).values[:, -1:], -torch.inf).softmax(-1),
        lambda z, k: torch.zeros_like(z).scatter(
            1, z.topk(k).indices, z.topk(k).values.softmax(-1)
        ),
        lambda z, k: F.normalize(
            z.softmax(-1) * (z.argsort(descending=True).argsort() < k), p=1, dim=-1
        ),
    ],
)
def expert_shares(logits, k):
    """The share of each expert in the output of each token.

    logits: (N, E), k: 1 to E. Returns (N, E); rows sum to 1.
    """
    values, chosen = logits.softmax(dim=-1).topk(k, dim=-1)  # (N, k) each
    values = values / values.sum(dim=-1, keepdim=True)
    return torch.zeros_like(logits).scatter(-1, chosen, values)


def _balance(p, chosen, *, times="E", visits="shares", what="product", mean="mean", carries="p"):
    N, E = p.shape
    k = chosen.shape[1]
    load = chosen.flatten().bincount(minlength=E) / (N * k)
    if visits in ("k times", "counts"):
        load = load * (k if visits == "k times" else N * k)
    if visits in ("first", "first of all"):
        load = chosen[:, 0].bincount(minlength=E) / (N if visits == "first" else N * k)
    if visits == "likeliest":
        load = p.argmax(1).bincount(minlength=E) / N
    if visits == "probabilities":
        load = torch.zeros_like(p).scatter(1, chosen, p.gather(1, chosen)).sum(0)
        load = load / load.sum()
    average = p.mean(0) if mean == "mean" else p.sum(0)
    if mean == "of the chosen":
        average = (p * torch.zeros_like(p).scatter(1, chosen, 1.0)).mean(0)
    if visits == "some experts":
        load = load[: chosen.max() + 1]
    if carries == "nothing":
        average = average.detach()
    total = {
        "product": load * average,
        "visits": load * load + 0 * average,
        "probabilities": average * average,
    }[what].sum()
    factors = {"E": E, "1": 1.0, "k": k, "N": N, "1 / E": 1 / E, "seen": chosen.max() + 1}
    return factors[times] * total


def _loss_and_gradient(answer, probabilities, chosen):
    p = probabilities.detach().clone().requires_grad_()
    loss = answer(p, chosen)
    if isinstance(loss, torch.Tensor) and loss.requires_grad:
        loss.backward()
    return {"loss": loss, "gradient": torch.zeros_like(p) if p.grad is None else p.grad}


def _visits(seed, number, experts, k):
    p = draw(seed, (number, experts), scale=1.5)[0].softmax(-1)
    return p, p.topk(k, dim=-1).indices


@exercise(
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=2,
    trains="a loss that keeps experts busy",
    text="""
    The balance loss of a mixture: E times the sum over the experts of (share of all N · k visits
    that the expert got) times (its mean probability). Shares of visits are counts and carry no
    gradient; the probabilities carry it. The check compares the loss *and* its gradient.
    """,
    reference=_balance,
    play=_loss_and_gradient,
    probes=[
        _visits(16, 2, 3, 2),
        _visits(17, 4, 3, 2),
        _visits(18, 6, 4, 2),
        _visits(19, 5, 4, 3),
        (torch.tensor([[0.5, 0.4, 0.1], [0.3, 0.6, 0.1]]), torch.tensor([[0, 1], [1, 0]])),
    ],
    mistakes=[
        wrong(
            "each token's k visits count k times",
            "counting",
            "Shares of all N · k visits sum to 1; divided by N alone they sum to k, and the loss "
            "is k times as large.",
            visits="k times",
        ),
        wrong(
            "a division by N · k is missing",
            "counting",
            "Shares of visits are counts divided by all N · k visits, and probabilities are a mean "
            "over N tokens: a larger batch must not cost more.",
            visits="counts",
        ),
        wrong(
            "the counts end at the last expert that was visited",
            "counting",
            "An expert may get nothing: bincount needs minlength=E.",
            visits="some experts",
        ),
        wrong(
            "only probabilities of chosen experts are averaged",
            "averaging",
            "The mean probability of an expert runs over all N tokens, also those that went "
            "elsewhere.",
            mean="of the chosen",
        ),
        wrong(
            "only the first choices are counted",
            "counting",
            "Every one of the k visits of a token keeps an expert busy.",
            {"visits": "first of all"},
            visits="first",
        ),
        wrong(
            "the likeliest expert of each token is counted, not those in `chosen`",
            "counting",
            "`chosen` says where each token went: k visits for each.",
            visits="likeliest",
        ),
        wrong(
            "probabilities are summed where visits are counted",
            "gradient",
            "A visit is a visit, however sure the router was: count, and no gradient flows there.",
            visits="probabilities",
            carries="p",
        ),
        wrong(
            "the factor E is missing, or a mean stands for the sum",
            "counting",
            "E times the sum is 1 when both are even, whatever the number of experts.",
            times="1",
        ),
        wrong(
            "it is divided by E, not multiplied",
            "counting",
            "E times the sum is 1 when both are even, whatever the number of experts.",
            times="1 / E",
        ),
        wrong(
            "the number of tokens stands in the place of E",
            "counting",
            "E is the number of experts, the size of the last axis of the probabilities.",
            times="N",
        ),
        wrong(
            "k stands in the place of E",
            "counting",
            "E is the number of experts, the size of the last axis of the probabilities; k is how "
            "many a token visits.",
            times="k",
        ),
        wrong(
            "the number of experts is read from `chosen`",
            "counting",
            "The last expert may get nothing: E is the size of the last axis of the probabilities.",
            times="seen",
        ),
        wrong(
            "the probabilities are summed, not averaged",
            "averaging",
            "The mean over the tokens: a larger batch must not cost more.",
            mean="sum",
        ),
        wrong(
            "the gradient is cut off",
            "gradient",
            "The loss has the right value and changes nothing: do not detach the probabilities.",
            carries="nothing",
        ),
        wrong(
            "the shares of visits are squared",
            "gradient",
            "Counts have no gradient, so that loss would move nothing: one factor has to be the "
            "mean probability.",
            what="visits",
        ),
        wrong(
            "the mean probabilities are squared",
            "counting",
            "One factor is what really happened: the share of visits.",
            what="probabilities",
        ),
    ],
    hints=[
        "bincount counts; give it minlength=E, since an expert may get nothing.",
        "Two vectors (E,), each summing to 1: shares of visits, and mean probabilities.",
        "If both are even, every product is 1 / E²; the loss has to be 1 then.",
    ],
    right_variants=[
        lambda p, c: p.shape[1] * (F.one_hot(c, p.shape[1]).float().mean((0, 1)) @ p.mean(0)),
        lambda p, c: (
            c.flatten().bincount(minlength=p.shape[1]) * p.sum(0)
        ).sum() * p.shape[1] / len(p) / c.numel(),
        lambda p, c: torch.einsum(
            "e,ne->", torch.stack([(c == e).float().mean() for e in range(p.shape[1])]), p
        ) / len(p) * p.shape[1],
    ],
    allows=lambda p, c: c.sort(dim=1).values.diff(dim=1).gt(0).all(),  # no expert twice
)  # fmt: skip
def load_balance(probabilities, chosen):
    """The balance loss of N tokens among E experts.

    probabilities: (N, E), chosen: (N, k) numbers of experts, all different within a row.
    Returns one number, a tensor.
    """
    N, E = probabilities.shape
    visits = chosen.flatten().bincount(minlength=E) / chosen.numel()  # (E,), sums to 1
    return E * (visits * probabilities.mean(dim=0)).sum()


def _what_a_router_does(answer, logits):
    """What is asked of an assignment, whatever its method: each property, and whether it has it."""
    N, E = logits.shape
    chosen = as_asked(answer(logits.clone()), "a tensor (N,)", (N,))
    if chosen.min() < 0 or chosen.max() >= E:
        raise NotAsAsked(f"experts are numbers from 0 to {E - 1}, and others came back")
    got = logits.gather(1, chosen[:, None].long())[:, 0]  # (N,)
    # logits[i, chosen[j]]: what token i would have with the expert of token j
    other = logits[:, chosen.long()]
    gain = other + other.T - got - got[:, None]
    return {
        "holds whole numbers": not chosen.is_floating_point(),
        "no expert gets more than ceil(N / E) tokens": (
            chosen.long().bincount(minlength=E).max().item() <= math.ceil(N / E)
        ),
        "no two tokens would gain together by a swap": gain.max().item() < 1e-4,
    }


def _improve(logits, chosen, rounds):
    for _ in range(rounds):
        got = logits.gather(1, chosen[:, None])[:, 0]
        other = logits[:, chosen]
        gain = other + other.T - got - got[:, None]
        best = gain.argmax().item()
        i, j = divmod(best, len(chosen))
        if gain[i, j] <= 1e-6:
            break
        chosen[i], chosen[j] = chosen[j].item(), chosen[i].item()
    return chosen


def _in_turn(logits):
    """Each token takes the best expert that still has room."""
    N, E = logits.shape
    room = torch.full((E,), math.ceil(N / E))
    chosen = torch.zeros(N, dtype=torch.long)
    for i in range(N):
        chosen[i] = logits[i].masked_fill(room == 0, -math.inf).argmax()
        room[chosen[i]] -= 1
    return chosen


def _best_swaps(logits):
    """The best swap first; an error where rounding alone, above 1e-6, goes on swapping."""
    chosen, own = torch.arange(len(logits)) % logits.shape[1], torch.arange(len(logits))
    for _ in range(500):
        got, other = logits[own, chosen], logits[:, chosen]
        gain = other + other.T - got[:, None] - got
        if gain.max() <= 1e-6:
            return chosen
        i, j = divmod(gain.argmax().item(), len(chosen))
        chosen[[i, j]] = chosen[[j, i]]
    raise ValueError("the loop does not end")


_SLOPE = 0.01 * torch.arange(24)[:, None] * torch.arange(6)  # no two logits are equal


def _even_router(logits, *, start="in turn", swaps=True, form="whole"):
    N, E = logits.shape
    chosen = {
        "in turn": lambda: _in_turn(logits),
        "favourites": lambda: logits.argmax(1),
        "round": lambda: torch.arange(N) % E,
        "worst": lambda: _in_turn(-logits),
    }[start]()
    if swaps:
        chosen = _improve(logits, chosen, 1000)
    return chosen.float() if form == "float" else chosen


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=20,
    difficulty=3,
    trains="designing a router that cannot be unfair",
    text="""
    **An open task**: many answers are right, and only what is asked here is checked. A balance
    loss asks experts to share the work; it cannot promise it. Write a router for one expert a
    token that *cannot* be unfair: (1) no expert gets more than `ceil(N / E)` of the N tokens; (2)
    no two tokens could swap their experts so that the sum of their two logits grows.
    """,
    reference=_even_router,
    play=_what_a_router_does,
    probes=[
        (torch.tensor([[2.0, 1.0], [3.0, 0.0]]),),
        (torch.tensor([[1.0, 0.9, 0.0], [2.0, 0.0, 1.0], [3.0, 2.9, 0.0], [1.0, 0.0, 0.5]]),),
        (draw(20, (8, 4))[0] + torch.tensor([2.0, 0.0, 0.0, 0.0]),),
        (draw(21, (10, 3))[0] + torch.tensor([0.0, 1.0, 0.0]),),
    ],
    edges=[
        ("with logits that are all below 0", (draw(22, (9, 4))[0] - 5,)),
        # wherever one begins, on one of them two tokens still gain after three rounds
        *(("with 24 tokens", (draw(seed, (24, 6))[0] + _SLOPE,)) for seed in (14, 81, 96)),
    ],
    mistakes=[
        wrong(
            "an expert gets too many tokens",
            "counting",
            "Property 1: look at chosen.bincount(minlength=E); none may be above ceil(N / E).",
            start="favourites",
        ),
        wrong(
            "two tokens would gain by a swap",
            "search",
            "Property 2: exchange a pair where the sum of its two logits grows, by however little. "
            "One exchange may make another one worth it, so go through all pairs again until there "
            "are none.",
            {"start": "round"},
            {"start": "worst"},
            swaps=False,
        ),
        wrong(
            "the experts are not whole numbers",
            "counting",
            "They are numbers of experts, which index: use dtype=torch.long.",
            form="float",
        ),
    ],
    hints=[
        "First fair, then good: give each token, in turn, the best expert that has room.",
        "A swap changes no counts. When does it pay for tokens i and j?",
        "Every swap that pays raises the sum of all logits, so the loop over pairs must end.",
    ],
    right_variants=[
        lambda z: _improve(z, torch.arange(len(z)) % z.shape[1], 1000),
        lambda z: _improve(z, _in_turn(-z), 1000),
        lambda z: _improve(z, _in_turn(z.flip(0)).flip(0), 1000),
        _best_swaps,
    ],
)
def fair_router(logits):
    """One expert for every token, none of them crowded.

    logits: (N, E). Returns (N,) int64, the expert of each token.
    """
    N, E = logits.shape
    room = torch.full((E,), math.ceil(N / E))
    chosen = torch.zeros(N, dtype=torch.long)
    for i in range(N):  # in turn: the best expert that has room
        best = logits[i].argsort(descending=True).tolist()
        chosen[i] = next(expert for expert in best if room[expert] > 0)
        room[chosen[i]] -= 1
    gains = True
    while gains:
        gains = False
        for i in range(N):
            for j in range(i):
                a, b = chosen[i].item(), chosen[j].item()
                if logits[i, b] + logits[j, a] > logits[i, a] + logits[j, b] + 1e-6:
                    chosen[i], chosen[j], gains = b, a, True
    return chosen
