"""Exercises of notebook 13: sparse patterns, running sums, a memory, and what things cost."""

import math

import torch
import torch.nn.functional as F

from course_utils.checker.common import (
    NOT_LOW,
    lowered,
    not_low_enough,
    not_shifted,
    unshifted,
)
from course_utils.checker.model import exercise, wrong
from course_utils.checker.probes import draw

NOTEBOOK = "13_long_sequences"


def _window(num_tokens, radius, *, side="both", width="radius", bound=0, itself=True, ends="cut",
            meaning="look", shape="near", sign="lost", end="exact", start="cut"):  # fmt: skip
    at = torch.arange(num_tokens)
    behind = at[:, None] - at[None, :]
    if ends == "joined":
        behind = (behind + num_tokens // 2) % num_tokens - num_tokens // 2
    sizes = {"whole": radius // 2, "twice": 2 * radius, "squared": math.isqrt(radius)}
    reach = sizes.get(width, radius) + bound
    near = behind.abs() <= reach
    if ends == "moved":
        start = (at - reach).clamp(max=num_tokens - 1 - 2 * reach).clamp(min=0)[:, None]
        near = (at >= start) & (at <= start + 2 * reach)
    if sign != "lost":
        near = behind <= reach if sign == "kept" else -behind <= reach
    if end == "one short":
        near = near & (behind != -reach)
    if end == "first short":
        near = near & (behind != reach)
    if end == "one long":
        near = near | (behind == -reach - 1)
    if end == "first long":
        near = near | (behind == reach + 1)
    if start == "negative":  # a slice that starts at -2 starts at the last column but one
        first = torch.where(at < reach, at - reach + num_tokens, 0)
        near = near & (at[None, :] >= first[:, None])
    if shape == "blocks":
        near = at[:, None] // max(1, reach) == at[None, :] // max(1, reach)
    if side == "past":
        near = near & (behind >= 0)
    if side == "future":
        near = near & (behind <= 0)
    if not itself:
        near = near & (behind != 0)
    return ~near if meaning == "hide" else near


_SLICE_MISTAKES = [
    wrong(
        "the distance keeps its sign",
        "mask direction",
        "i - j is negative for all keys on one side, so all of them are seen: take the absolute "
        "value.",
        {"sign": "turned"},
        sign="kept",
    ),
    wrong(
        "one end of the window is a key short",
        "off by one",
        "A slice stops before its end: the keys i - radius and i + radius are both visible.",
        {"end": "first short"},
        end="one short",
    ),
    wrong(
        "one end of the window is a key too long",
        "off by one",
        "Both ends are `radius` away from the query, so the window has 2 * radius + 1 keys.",
        {"end": "first long"},
        end="one long",
    ),
    wrong(
        "a slice starts below 0",
        "off by one",
        "For the first rows i - radius is negative and counts from the end: take max(0, i - "
        "radius).",
        start="negative",
    ),
]
_WINDOW_MISTAKES = [
    wrong(
        "the window reaches back only",
        "mask direction",
        "Here no one predicts a next token: `radius` keys before the query and as many after it.",
        side="past",
    ),
    wrong(
        "the window reaches ahead only",
        "mask direction",
        "The keys before the query are near, too: take the absolute value of the distance.",
        side="future",
    ),
    wrong(
        "the radius is taken for the whole width",
        "off by one",
        "A radius of 2 shows 2 keys on each side and the query's own: 5 in all.",
        width="whole",
    ),
    wrong(
        "the window is one key short at each end",
        "off by one",
        "The key at a distance of exactly `radius` is visible: compare with <=.",
        bound=-1,
    ),
    wrong(
        "the window is one key too long at each end",
        "off by one",
        "Count the visible keys of a row in the middle: there must be 2 * radius + 1.",
        bound=1,
    ),
    wrong(
        "a token may not look at itself",
        "self exclusion",
        "A distance of 0 is the nearest there is.",
        itself=False,
    ),
    wrong(
        "the ends of the text are joined",
        "locality",
        "Position 0 is not a neighbour of the last one: torch.roll wraps round.",
        ends="joined",
    ),
    *_SLICE_MISTAKES,
    wrong(
        "the mask is inverted",
        "mask meaning",
        "True = may look: near keys are True.",
        meaning="hide",
    ),
]


@exercise(
    notebook=NOTEBOOK,
    minutes=6,
    difficulty=1,
    trains="a sliding window of exact width",
    text="""
    Let each token look at the keys that are at most `radius` positions away, on both sides.
    """,
    reference=_window,
    probes=[(4, 1), (9, 2), (12, 3), (5, 7)],
    mistakes=[
        *_WINDOW_MISTAKES,
        wrong(
            "the text is cut into blocks",
            "locality",
            "A window slides: each query stands in the middle of its own.",
            shape="blocks",
        ),
        wrong(
            "the window is moved inside at the ends",
            "locality",
            "At the ends it is cut: the first token has no neighbours before it, and none instead.",
            ends="moved",
        ),
        wrong(
            "the radius is doubled",
            "off by one",
            "The distance is at most `radius` on each side; the whole width is 2 * radius + 1.",
            width="twice",
        ),
        wrong(
            "the square of the distance is compared",
            "off by one",
            "Compare the distance itself with the radius: abs, or the root of the square.",
            width="squared",
        ),
    ],
    hints=[
        "Write the position of the query minus that of the key as a (T, T) tensor.",
        "torch.arange(T)[:, None] and [None, :] give the two positions.",
        "Near means: the absolute value of the difference is small enough.",
    ],
    right_variants=[
        lambda n, r: torch.ones(n, n).tril(r).triu(-r).bool(),
        lambda n, r: torch.tensor([[i - r <= j <= i + r for j in range(n)] for i in range(n)]),
        lambda n, r: (
            torch.cdist(torch.arange(float(n))[:, None], torch.arange(float(n))[:, None]) <= r
        ),
    ],
    map_of=lambda mask: mask,
)
def neighbour_window(num_tokens, radius):
    """True where a query may look at a key: at most `radius` positions away.

    Returns a boolean mask (T, T), T = num_tokens.
    """
    at = torch.arange(num_tokens)
    return (at[:, None] - at[None, :]).abs() <= radius


def _sparse(num_tokens, radius, global_positions, *, globals="both", joined="or", places="given",
            local=True, **switches):  # fmt: skip
    near = _window(num_tokens, radius, **switches)
    chosen = torch.zeros(num_tokens, dtype=torch.bool)
    if places == "first":
        chosen[: len(global_positions)] = True
    elif places == "shifted":
        chosen[[p - 1 for p in global_positions]] = True
    elif places == "only one":
        chosen[global_positions[0]] = True
    elif places in ("near", "next"):
        aside = radius if places == "near" else 1
        for p in global_positions:
            chosen[max(0, p - aside) : p + aside + 1] = True
    else:
        chosen[global_positions] = True
    rows, columns = chosen[:, None].expand_as(near), chosen[None, :].expand_as(near)
    far = {"both": rows | columns, "apart": rows ^ columns, "rows": rows,
           "columns": columns, "crossing": rows & columns,
           "themselves": rows & torch.eye(num_tokens).bool()}  # fmt: skip
    if not local:
        return far[globals]
    return near & far[globals] if joined == "and" else near | far[globals]


@exercise(
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="window and global tokens",
    text="""
    Longformer's pattern: the window of `neighbour_window`, and a few global tokens, which look at
    every key and which every query may look at.
    """,
    reference=_sparse,
    probes=[(5, 1, [2]), (9, 2, [0, 4]), (12, 3, [5, 11])],
    mistakes=[
        *_WINDOW_MISTAKES[:6],
        *_SLICE_MISTAKES,
        wrong(
            "global tokens look at all, but are not looked at",
            "mask axis",
            "The rows of the global tokens are full; their columns must be, too.",
            globals="rows",
        ),
        wrong(
            "global tokens are looked at, but do not look",
            "mask axis",
            "The columns of the global tokens are full; their rows must be, too.",
            globals="columns",
        ),
        wrong(
            "only global tokens see global tokens",
            "mask meaning",
            "Row and column are joined with and; a pair is visible if either token is global.",
            globals="crossing",
        ),
        wrong(
            "window and global tokens are joined with and",
            "mask meaning",
            "A key is visible if it is near or if one of the two tokens is global.",
            joined="and",
        ),
        wrong(
            "the window is missing",
            "mask missing",
            "The global tokens come on top of the window.",
            local=False,
        ),
        wrong(
            "the first tokens are made global",
            "position",
            "`global_positions` lists which tokens are global.",
            places="first",
        ),
        wrong(
            "positions are counted from 1",
            "off by one",
            "Position 0 is the first token.",
            places="shifted",
        ),
        wrong(
            "global tokens meet only themselves",
            "mask axis",
            "mask[g, g] pairs its two lists up and sets single entries; whole rows are mask[g], "
            "whole columns mask[:, g].",
            globals="themselves",
        ),
        wrong(
            "only the first global token is used",
            "mask missing",
            "All of `global_positions` are global.",
            places="only one",
        ),
        wrong(
            "the neighbours of a global token are global, too",
            "locality",
            "Only the listed tokens have full rows and columns.",
            {"places": "next"},
            places="near",
        ),
        wrong(
            "global tokens do not see each other",
            "mask meaning",
            "Both being global must not switch the pair off: join with or, not xor or a sum of 1.",
            globals="apart",
        ),
        wrong(
            "the radius is doubled",
            "off by one",
            "The distance is at most `radius` on each side; the whole width is 2 * radius + 1.",
            width="twice",
        ),
    ],
    hints=[
        "Start from the window, and fill rows and columns.",
        "A list of positions can stand as an index: mask[positions] are whole rows.",
        "mask[:, positions] are the columns of the same tokens.",
    ],
    right_variants=[
        lambda n, r, g: torch.tensor(
            [[abs(i - j) <= r or i in g or j in g for j in range(n)] for i in range(n)]
        ),
        lambda n, r, g: (
            torch.ones(n, n).tril(r).triu(-r).bool()
            | torch.isin(torch.arange(n), torch.tensor(g))[:, None]
            | torch.isin(torch.arange(n), torch.tensor(g))
        ),
        lambda n, r, g: (
            torch.ones(n, n)
            .tril(r)
            .triu(-r)
            .index_fill(0, torch.tensor(g), 1.0)
            .index_fill(1, torch.tensor(g), 1.0)
            .bool()
        ),
    ],  # fmt: skip
    map_of=lambda mask: mask,
)
def sparse_pattern(num_tokens, radius, global_positions):
    """True where a query may look at a key: near, or one of the two is global.

    global_positions: list of positions. Returns a boolean mask (T, T), T = num_tokens.
    """
    at = torch.arange(num_tokens)
    mask = (at[:, None] - at[None, :]).abs() <= radius
    mask[global_positions] = True
    mask[:, global_positions] = True
    return mask


def _running(queries, keys, values, *, feature="elu + 1", on="both", sums="past", total="past",
             scale=False):  # fmt: skip
    phi = {
        "elu + 1": lambda x: F.elu(x) + 1,
        "elu": F.elu,
        "relu": F.relu,
        "exp": torch.exp,
        "softmax": lambda x: x.softmax(-1),
        "softplus": F.softplus,
        "1 inside": lambda x: F.elu(x + 1),
    }.get(feature)
    if feature in ("map", "scaled map", "of the products"):
        scores = queries @ keys.T
        if feature == "of the products":
            weights = (F.elu(scores) + 1).tril()
            return weights / weights.sum(-1, keepdim=True) @ values
        scores = scores / queries.shape[-1] ** 0.5 if feature == "scaled map" else scores
        hidden = torch.ones_like(scores).triu(1).bool()
        return scores.masked_fill(hidden, -math.inf).softmax(-1) @ values
    queries = queries / queries.shape[-1] ** 0.5 if scale else queries
    q = queries if on == "keys" else phi(queries)
    k = keys if on == "queries" else phi(keys)
    values = phi(values) if on == "all three" else values
    outer = k[:, :, None] * values[:, None, :]  # (T, d, v)
    state = {
        "past": outer.cumsum(0),
        "all": outer.sum(0).expand_as(outer),
        "without the present": outer.cumsum(0) - outer,
        "present": outer,
    }[sums]
    output = (q[:, None] @ state)[:, 0]
    normaliser = {
        "past": (q * k.cumsum(0)).sum(-1, keepdim=True),
        "all": (q * k.sum(0)).sum(-1, keepdim=True),
        "queries": (q * q.cumsum(0)).sum(-1, keepdim=True),
        "keys only": k.cumsum(0).sum(-1, keepdim=True),
        "count": torch.arange(1.0, len(q) + 1)[:, None],
        "present": (q * k).sum(-1, keepdim=True),
        "without the present": (q * (k.cumsum(0) - k)).sum(-1, keepdim=True),
        "from 1": (q * (k.cumsum(0) + 1)).sum(-1, keepdim=True),
        "not phi": (queries * k.cumsum(0)).sum(-1, keepdim=True),
    }
    return output if total == "none" else output / normaliser[total]


def _running_by_map(q, k, v):
    weights = ((F.elu(q) + 1) @ (F.elu(k) + 1).T).tril()
    return weights / weights.sum(-1, keepdim=True) @ v


def _running_by_einsum(q, k, v):
    q, k = (torch.where(x > 0, x + 1, x.exp()) for x in (q, k))
    state = torch.einsum("td,tv->tdv", k, v).cumsum(0)
    return torch.einsum("td,tdv->tv", q, state) / torch.einsum("td,td->t", q, k.cumsum(0))[:, None]


def _running_with_ones(q, k, v):
    v = torch.cat([v, torch.ones(len(v), 1)], dim=1)  # the last column sums the weights
    both = torch.stack(
        [(F.elu(q[t]) + 1) @ sum(torch.outer(F.elu(k[s]) + 1, v[s]) for s in range(t + 1))
         for t in range(len(q))]
    )  # fmt: skip
    return both[:, :-1] / both[:, -1:]


@exercise(
    notebook=NOTEBOOK,
    minutes=15,
    difficulty=3,
    trains="linear attention as a recurrence",
    text=r"""
    Causal linear attention with φ(x) = elu(x) + 1, in one pass over the tokens and without any
    T × T map: keep the running sums $S_t = \sum_{s \le t} φ(k_s) v_s^T$ and
    $z_t = \sum_{s \le t} φ(k_s)$. The output at t is $φ(q_t) S_t$ divided by $φ(q_t) \cdot z_t$.
    """,
    reference=_running,
    probes=[
        draw(131, (2, 2), (2, 2), (2, 1)),
        draw(132, (4, 3), (4, 3), (4, 2)),
        draw(133, (6, 2), (6, 2), (6, 5)),
    ],
    mistakes=[
        wrong(
            "the features can be negative",
            "normalisation",
            "elu alone goes down to -1, and so could a weight: add 1.",
            feature="elu",
        ),
        wrong(
            "the features are those of a relu",
            "score",
            "relu is 0 for all negative numbers; here φ(x) = elu(x) + 1.",
            feature="relu",
        ),
        wrong(
            "the features are plain exponentials",
            "score",
            "φ(x) = elu(x) + 1 is exp(x) for negative numbers only, and x + 1 for others.",
            feature="exp",
        ),
        wrong(
            "the features are softmaxes",
            "score",
            "φ works on each number alone, elu(x) + 1; the weights are normalised at the end.",
            feature="softmax",
        ),
        wrong(
            "only the queries go through φ",
            "score",
            "The keys need their features as well, in both sums.",
            on="queries",
        ),
        wrong(
            "only the keys go through φ",
            "score",
            "The queries need their features as well, above and below the line.",
            on="keys",
        ),
        wrong(
            "the sum of values runs over all tokens",
            "mask direction",
            "S must hold the tokens up to t only, or the future leaks in.",
            sums="all",
        ),
        wrong(
            "the sum of values stops before the present",
            "off by one",
            "Add the present key and value before you use S.",
            sums="without the present",
        ),
        wrong(
            "the sum of values is not handed on",
            "state",
            "S at t is S at t - 1 plus the present product.",
            sums="present",
        ),
        wrong(
            "the weights are not normalised",
            "normalisation",
            "Divide by φ(q) · z, or the output grows with t.",
            total="none",
        ),
        wrong(
            "the normaliser runs over all tokens",
            "normalisation",
            "z must hold the tokens up to t only, as S does.",
            total="all",
        ),
        wrong(
            "the normaliser forgets the query",
            "normalisation",
            "The weight of key s is φ(q) · φ(k_s), so their sum is φ(q) · z.",
            total="keys only",
        ),
        wrong(
            "the sum is divided by the number of tokens",
            "normalisation",
            "The weights sum to φ(q) · z, not to t.",
            total="count",
        ),
        wrong(
            "the normaliser sums queries",
            "role of q, k, v",
            "z is the sum of φ(k_s), the keys; the present query only multiplies it.",
            total="queries",
        ),
        wrong(
            "the queries are scaled",
            "scale",
            "There is no root of d in φ(q) · φ(k).",
            scale=True,
        ),
        wrong(
            "ordinary attention is computed",
            "score",
            "A softmax needs the T × T map; here φ(q) · φ(k) takes its place, so that sums "
            "can run.",
            {"feature": "map"},
            feature="scaled map",
        ),
        wrong(
            "φ is applied to the products",
            "score",
            "φ(q · k) needs all pairs; φ(q) · φ(k) can be summed over the keys first.",
            feature="of the products",
        ),
        wrong(
            "1 is added inside the elu",
            "score",
            "φ(x) = elu(x) + 1 is positive; elu(x + 1) is not.",
            feature="1 inside",
        ),
        wrong(
            "the features are softplus",
            "score",
            "Also positive, but another function: here φ(x) = elu(x) + 1.",
            feature="softplus",
        ),
        wrong(
            "the values go through φ, too",
            "role of q, k, v",
            "φ makes weights of queries and keys; values are averaged as they are.",
            on="all three",
        ),
        wrong(
            "the sum of keys is not handed on",
            "state",
            "z at t is z at t - 1 plus φ(k_t), as S is.",
            total="present",
        ),
        wrong(
            "the sum of keys stops before the present",
            "off by one",
            "Add the present key before you use z; the first token has no other.",
            total="without the present",
        ),
        wrong(
            "the sum of keys starts at 1",
            "state",
            "S and z both start at zero, or the weights do not sum to 1.",
            total="from 1",
        ),
        wrong(
            "the query below the line is not φ(q)",
            "normalisation",
            "The same φ(q) stands above and below the line.",
            total="not phi",
        ),
    ],
    hints=[
        "Write it as a loop first: S and z start at zero, and each step adds to both.",
        "φ(k) v^T is an outer product: torch.outer(phi_k, v) of shape (d, v).",
        "Instead of a loop, cumsum along the tokens gives all running sums at once.",
    ],
    right_variants=[_running_by_map, _running_by_einsum, _running_with_ones],
)
def running_attention(queries, keys, values):
    """Causal linear attention with features elu(x) + 1.

    queries, keys: (T, d), values: (T, v). Returns (T, v).
    """
    state = torch.zeros(keys.shape[1], values.shape[1])  # S: (d, v)
    total = torch.zeros(keys.shape[1])  # z: (d,)
    outputs = []
    for q, k, v in zip(F.elu(queries) + 1, F.elu(keys) + 1, values):
        state = state + torch.outer(k, v)
        total = total + k
        outputs.append(q @ state / (q @ total))
    return torch.stack(outputs)


def _segment(x, memory, weights, *, context="both", asks="segment", triangle="right",
             scale="root", keeps="both", what="inputs", end="last", gradient="cut", axis=-1,
             through="all", fill="-inf"):  # fmt: skip
    if through == "nothing":
        x = x.detach()
    W_q, W_k, W_v = weights
    joined = {
        "both": torch.cat([memory, x]),
        "raw memory": torch.cat([memory, x]),
        "segment": x,
        "memory last": torch.cat([x, memory]),
        "memory only": memory,
    }[context]
    joined = joined.detach() if through == "queries" else joined
    asking = torch.cat([memory, x]) if asks == "all" else x
    q, k, v = asking @ W_q, joined @ W_k, joined @ W_v
    if context == "raw memory":
        k, v = torch.cat([memory, x @ W_k]), torch.cat([memory, x @ W_v])
    reach = k.shape[0] - q.shape[0] if triangle in ("right", "band") else 0
    if context == "memory only":
        reach = k.shape[0]
    if triangle == "strict":
        reach = k.shape[0] - q.shape[0] - 1
    if triangle == "segment":
        reach = x.shape[0]
    mask = torch.ones(q.shape[0], k.shape[0], dtype=torch.bool).tril(reach)
    if triangle == "none":
        mask = torch.ones_like(mask)
    if triangle == "band":
        mask = mask.triu()
    divisors = {"none": 1, "d": q.shape[1], "keys": k.shape[0] ** 0.5}
    scores = q @ k.T / divisors.get(scale, q.shape[1] ** 0.5)
    filled = scores.masked_fill(~mask, -math.inf)
    if fill in NOT_LOW:
        filled = lowered(scores, ~mask, fill)
    weights = unshifted(scores, mask) if fill == "unshifted" else filled.softmax(axis)
    output = weights @ v
    size = memory.shape[0]
    new = {"inputs": x, "outputs": output[-x.shape[0] :], "keys": x @ W_k}[what]
    held = {"both": torch.cat([memory, new]), "segment": new, "memory": memory}[keeps]
    held = held[-size:] if end == "last" else held
    return output, held if gradient == "kept" else held.detach()


def play_segment(answer, x, memory, weights):
    """Read a segment whose tokens need a gradient, and see where it comes through."""
    output, kept = answer(x.requires_grad_(), memory, weights)
    gradient = torch.zeros_like(x)
    if output.requires_grad:
        found = torch.autograd.grad(output.mean(), x, retain_graph=True, allow_unused=True)
        gradient = gradient if found[0] is None else found[0]
    return {
        "output": output,
        "memory": kept,
        "memory needs a gradient": kept.requires_grad,
        "gradient of x": gradient,
    }


def _segment_fused(x, memory, weights):
    context = torch.cat((memory, x), dim=0)
    q, k, v = (a @ w for a, w in zip((x, context, context), weights))
    late = torch.arange(len(context)) > torch.arange(len(x))[:, None] + len(memory)
    out = F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=~late)[0]
    return out, context.detach()[len(context) - len(memory) :]


def _segment_row_by_row(x, memory, weights):
    W_q, W_k, W_v = weights
    context, rows = torch.cat([memory, x]), []
    for i in range(len(x)):
        seen = context[: len(memory) + i + 1]
        w = torch.softmax((seen @ W_k) @ (x[i] @ W_q) / math.sqrt(W_q.shape[1]), 0)
        rows.append(w @ (seen @ W_v))
    return torch.stack(rows), context[len(x) :].clone().detach()


def _segment_without_grad(x, memory, weights):
    context = torch.cat([memory, x])
    q, k, v = x @ weights[0], context @ weights[1], context @ weights[2]
    scores = q @ k.T * q.shape[1] ** -0.5
    scores = scores + torch.full_like(scores, -math.inf).triu(1 + len(memory))
    with torch.no_grad():
        kept = context[-len(memory) :].clone()
    return scores.softmax(1) @ v, kept


@exercise(
    notebook=NOTEBOOK,
    minutes=15,
    difficulty=3,
    trains="the memory of a Transformer-XL",
    text="""
    One head of a layer that reads a text segment by segment. Each token looks at the whole memory
    and at its own segment up to itself, in scaled dot-product attention. The new memory holds the
    last M tokens of what the layer has read, old memory and segment together, where M is the length
    of the old one, and no gradient flows back through it. (Positions are left out here.)
    """,
    reference=_segment,
    play=play_segment,
    probes=[
        (*draw(134, (2, 2), (1, 2)), draw(135, *[(2, 2)] * 3)),
        (*draw(136, (3, 4), (2, 4)), draw(137, *[(4, 4)] * 3)),
        (*draw(138, (2, 4), (5, 4)), draw(139, *[(4, 4)] * 3)),
        (  # scores near -30,000 that rise by 25 from key to key
            torch.tensor([[149.875, 0.5], [149.75, -1.2], [149.625, 2.0]]),
            torch.tensor([[150.0, 1.5]]),
            (
                torch.tensor([[-1.875, 0.0], [0.0, 0.0]]),
                torch.tensor([[1.0, 0.0], [0.0, 0.0]]),
                torch.tensor([[0.0, 0.0], [1.0, -1.0]]),
            ),
        ),
    ],
    mistakes=[
        wrong(
            "the memory is not looked at",
            "cache",
            "Keys and values come from memory and segment together.",
            context="segment",
        ),
        wrong(
            "the memory stands behind the segment",
            "cache",
            "The memory was read earlier: torch.cat([memory, x]).",
            context="memory last",
        ),
        wrong(
            "the tokens of the memory ask again",
            "role of q, k, v",
            "Queries come from the segment alone; the memory has had its outputs.",
            asks="all",
        ),
        wrong(
            "the triangle starts at the memory",
            "mask direction",
            "Token 0 of the segment stands at position M: tril needs M as its second argument.",
            triangle="shifted",
        ),
        wrong(
            "the triangle is moved by the length of the segment",
            "mask direction",
            "The segment starts behind the memory, so it is moved by M: tril(len(memory)).",
            triangle="segment",
        ),
        wrong(
            "the memory is not projected",
            "projection",
            "The memory holds inputs: its keys and values are made with W_k and W_v, too.",
            context="raw memory",
        ),
        wrong(
            "the future is not hidden",
            "mask missing",
            "A token sees the memory and its own segment up to itself.",
            triangle="none",
        ),
        not_low_enough("fill"),
        not_shifted(fill="unshifted", axis=-1),
        wrong(
            "the scores are not scaled",
            "scale",
            "Divide the dot products by the square root of their size.",
            scale="none",
        ),
        wrong(
            "the new memory forgets the old one",
            "cache",
            "With a segment shorter than M some of the old memory must stay.",
            keeps="segment",
        ),
        wrong(
            "the memory stays what it was",
            "cache",
            "The segment moves in and the oldest tokens out: keep the last M of both.",
            keeps="memory",
        ),
        wrong(
            "the new memory holds outputs",
            "cache",
            "A layer remembers what it has read, for that is what its keys are made from.",
            what="outputs",
        ),
        wrong(
            "the new memory holds keys",
            "cache",
            "That is the cache of decoding; here the layer's inputs are kept.",
            what="keys",
        ),
        wrong(
            "the memory grows",
            "length",
            "Keep M tokens, however many there were.",
            end="all",
        ),
        wrong(
            "the memory carries a gradient",
            "cache",
            "Without .detach() the next backward pass would run through all earlier segments.",
            gradient="kept",
        ),
        wrong(
            "a token does not see itself",
            "off by one",
            "Token i of the segment stands at M + i and may look at that place, too: tril(M), "
            "triu(M + 1).",
            triangle="strict",
        ),
        wrong(
            "each token sees only the M tokens before it",
            "locality",
            "Each token sees the whole memory, however far on in the segment it stands.",
            triangle="band",
        ),
        wrong(
            "the segment is not looked at",
            "cache",
            "Keys and values come from memory and segment together.",
            context="memory only",
        ),
        wrong(
            "the softmax runs over the queries",
            "softmax axis",
            "Each query shares out its weight over the keys, the last axis.",
            axis=0,
        ),
        wrong(
            "the scores are divided by d, not by its root",
            "scale",
            "The spread of a dot product is the square root of its size.",
            scale="d",
        ),
        wrong(
            "the root of the number of keys is taken",
            "scale",
            "A dot product has d terms, however many keys there are.",
            scale="keys",
        ),
        wrong(
            "no gradient comes through keys and values",
            "gradient",
            "Only the new memory is detached; the segment itself is trained through its keys "
            "and values.",
            through="queries",
        ),
        wrong(
            "no gradient comes through at all",
            "gradient",
            "detach or no_grad belongs to the new memory alone, not to the output.",
            through="nothing",
        ),
    ],
    hints=[
        "What is looked at is one tensor: the memory and the segment, in the order of the text.",
        "The mask is (S, M + S). Which keys may token 0 of the segment look at?",
        "The new memory is a slice of that same tensor, cut off from the graph.",
    ],
    right_variants=[_segment_fused, _segment_row_by_row, _segment_without_grad],
)
def read_segment(x, memory, weights):
    """One head reads a segment with a memory.

    x: (S, d), memory: (M, d) with M >= 1, weights: (W_q, W_k, W_v), each (d, d), x @ W.
    Returns the output (S, d) and the new memory (M, d).
    """
    W_q, W_k, W_v = weights
    context = torch.cat([memory, x])  # (M + S, d)
    q, k, v = x @ W_q, context @ W_k, context @ W_v
    mask = torch.ones(len(x), len(context), dtype=torch.bool).tril(len(memory))
    scores = (q @ k.T / math.sqrt(q.shape[1])).masked_fill(~mask, -math.inf)  # (S, M + S)
    return torch.softmax(scores, dim=-1) @ v, context[-len(memory) :].detach()


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=3,
    difficulty=1,
    trains="predicting where the square takes over",
    text="""
    A layer has d_model = 768 and d_ff = 4 · 768. At which length n do its two products with n² in
    them (scores, and weights times values) cost as many multiply-adds as all the rest, the four
    projections and the feed-forward network?
    """,
    mistakes=[
        wrong(
            "the weights times the values are left out",
            "counting",
            "QK^T and the weighted sum cost n²d each, so 2n²d in all.",
            answer=9216,
        ),
        wrong(
            "the feed-forward network is left out",
            "counting",
            "The rest is 4nd² for the projections and 8nd² for the feed-forward network.",
            answer=1536,
        ),
        wrong(
            "only d_model is compared",
            "counting",
            "n²d and nd² are equal at n = d, but they occur 2 and 12 times.",
            answer=768,
        ),
        wrong(
            "a third of the rest is left out",
            "counting",
            "Four projections take 4nd², and the network, d to 4d and back, twice 4nd²: 12nd².",
            answer=4 * 768,
        ),
    ],
    hints=[
        "Count multiply-adds matrix by matrix: (n, d) times (d, d) takes n·d·d.",
        "The products between tokens take 2n²d. What do six (or so) weight matrices take?",
        "Divide both sides of 2n²d = 12nd² by 2nd.",
    ],
)
def square_takes_over():
    """Tokens at which the square costs as much as the rest."""
    return 6 * 768


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=3,
    difficulty=2,
    trains="predicting what a window keeps",
    text="""
    A sliding window of radius 4 over 1000 tokens, no global tokens. How many of the 1,000,000
    scores does it keep? Mind the ends of the text.
    """,
    mistakes=[
        wrong(
            "the ends are forgotten",
            "off by one",
            "The first token has no neighbour before it: the first and last 4 rows are shorter.",
            answer=9000,
        ),
        wrong(
            "a token does not see itself",
            "self exclusion",
            "4 keys on each side and the query's own: 9 in a full row.",
            {"answer": 8000},
            answer=7980,
        ),
        wrong(
            "the window has one side only",
            "mask direction",
            "Radius 4 means 4 keys before and 4 after.",
            {"answer": 5000},
            answer=4990,
        ),
        wrong(
            "only one end is counted",
            "off by one",
            "Both ends lack 4 + 3 + 2 + 1 scores.",
            answer=8990,
        ),
        wrong(
            "all scores are counted",
            "counting",
            "That is full attention; a window keeps at most 9 in a row.",
            answer=1_000_000,
        ),
    ],
    hints=[
        "How many keys does a token in the middle see?",
        "Token 0 sees 4 fewer than that, token 1 sees 3 fewer.",
        "So 4 + 3 + 2 + 1 scores are missing at each end.",
    ],
)
def scores_in_window():
    """Scores that are kept."""
    return 1000 * 9 - 2 * (4 + 3 + 2 + 1)


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=3,
    difficulty=2,
    trains="predicting what a key-value cache leaves to do",
    text="""
    A decoder writes 100 tokens with a key-value cache; at step t the new token looks at all t
    tokens so far, itself included. How many scores does one head compute in all?
    """,
    mistakes=[
        wrong(
            "one score a step is counted",
            "cache",
            "The new query is compared with every cached key, not only with its own.",
            answer=100,
        ),
        wrong(
            "the whole square is counted",
            "counting",
            "Step t has t keys, not 100: half of the square is never computed.",
            answer=10_000,
        ),
        wrong(
            "a token does not see itself",
            "self exclusion",
            "Step t has t keys with the present one: 1 + 2 + ... + 100.",
            answer=4950,
        ),
        wrong(
            "the cache is not used",
            "cache",
            "With a cache there is one new query a step; without it all t are asked again.",
            {"answer": 171_700},
            answer=338_350,
        ),
    ],
    hints=[
        "With a cache, how many queries has step t, and how many keys?",
        "Add up the keys of all steps: 1 + 2 + ... + 100.",
        "The first and the last step together have 101, and there are 50 such pairs.",
    ],
)
def scores_with_cache():
    """Scores of one head in all steps."""
    return 100 * 101 // 2
