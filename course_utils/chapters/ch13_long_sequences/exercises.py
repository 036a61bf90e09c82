"""Exercises of notebook 13: sparse patterns, running sums, a memory, and what things cost."""

import math

import torch
import torch.nn.functional as F

from course_utils.checker.common import (
    DIVIDED_AGAIN,
    NOT_LOW,
    lowered,
    mixed_up,
    not_low_enough,
    not_shifted,
    softmax_of_hidden,
    unshifted,
    worked_out,
)
from course_utils.checker.exercise import exercise, wrong
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
        chosen[global_positions[:1]] = True
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
    Longformer's pattern: the window of `neighbour_window`, and a few global tokens, or none, which
    look at every key and which every query may look at.
    """,
    reference=_sparse,
    probes=[(5, 1, [2]), (9, 2, [0, 4]), (12, 3, [5, 11])],
    edges=[("where `global_positions` is empty", (6, 1, []))],
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
            .index_fill(0, torch.tensor(g, dtype=torch.long), 1.0)
            .index_fill(1, torch.tensor(g, dtype=torch.long), 1.0)
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
        "sigmoid": torch.sigmoid,
        "1 inside": lambda x: F.elu(x + 1),
        "relu + 1": lambda x: F.relu(x) + 1,
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
        "without the present, kept from 0 / 0": (q * (k.cumsum(0) - k)).sum(-1, keepdim=True)
        + 1e-9,
        "from 1": (q * (k.cumsum(0) + 1)).sum(-1, keepdim=True),
        "not phi": (queries * k.cumsum(0)).sum(-1, keepdim=True),
    }
    return output if total == "none" else output / normaliser[total]


def _running_by_pairs(q, k, v):
    q, k, rows = F.elu(q.double()) + 1, F.elu(k.double()) + 1, []
    for t in range(len(q)):
        weights = [q[t] @ k[s] for s in range(t + 1)]
        rows.append(sum(w * x for w, x in zip(weights, v)) / sum(weights))
    return torch.stack(rows).to(v.dtype)


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
        draw(131, (3, 2), (3, 2), (3, 1)),
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
            "the features are those of a relu, plus 1",
            "score",
            "Then all negative numbers count alike, as 1; here φ(x) = elu(x) + 1, with elu.",
            feature="relu + 1",
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
            "both sums run over all tokens",
            "mask direction",
            "S and z must hold the tokens up to t only, or the future leaks in.",
            sums="all",
            total="all",
        ),
        wrong(
            "both sums stop before the present",
            "off by one",
            "Add the present key and value to S, and the key to z, before you use them.",
            {"total": "without the present, kept from 0 / 0"},
            sums="without the present",
            total="without the present",
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
            "another positive function stands for φ",
            "score",
            "Softplus and sigmoid are positive, too; here φ(x) = elu(x) + 1.",
            {"feature": "sigmoid"},
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
    right_variants=[_running_by_pairs, _running_by_einsum, _running_with_ones],
    too_large=("a T × T map", (3, 3)),
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
             through="all", fill="-inf", matrices="qkv"):  # fmt: skip
    if through == "nothing":
        x = x.detach()
    W_q, W_k, W_v = (weights["qkv".index(letter)] for letter in matrices)
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
    filled = scores.masked_fill(~mask, 0.0 if fill == "zero" else -math.inf)
    if fill in NOT_LOW:
        filled = lowered(scores, ~mask, fill)
    weights = unshifted(scores, mask) if fill == "unshifted" else filled.softmax(axis)
    if fill in DIVIDED_AGAIN:
        weights = scores.softmax(axis) * mask
        weights = weights / DIVIDED_AGAIN[fill](weights, mask)
    output = weights @ v
    size = memory.shape[0]
    new = {"inputs": x, "outputs": output[-x.shape[0] :], "keys": x @ W_k}[what]
    oldest = torch.cat([memory[: max(0, size - len(new))], new])
    held = {"segment": new, "memory": memory, "oldest": oldest}.get(keeps, torch.cat([memory, new]))
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
        "memory needs no gradient": not kept.requires_grad,
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


def _segment_by_einsum(x, memory, weights):
    both = torch.vstack([memory, x])
    q = torch.einsum("sd,de->se", x, weights[0])
    k, v = (torch.einsum("nd,de->ne", both, W) for W in weights[1:])
    seen = torch.hstack([torch.ones(len(x), len(memory)), torch.ones(len(x), len(x)).tril()]).bool()
    output = F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=seen)[0]
    return output, both.detach()[len(x) :]


@exercise(
    notebook=NOTEBOOK,
    minutes=15,
    difficulty=3,
    trains="the memory of a Transformer-XL",
    text="""
    One head of a layer that reads a text segment by segment. Each token looks at the whole memory
    and at its own segment up to itself, in scaled dot-product attention. The new memory holds the
    last M tokens of what the layer has read, old memory and segment together, where M is the length
    of the old one, and no gradient flows back through it. Scores may lie far apart. (Positions are
    left out here.)
    """,
    reference=_segment,
    play=play_segment,
    probes=[
        (*draw(134, (2, 2), (1, 2)), draw(135, *[(2, 2)] * 3)),
        (*draw(136, (3, 4), (2, 4)), draw(137, *[(4, 4)] * 3)),
        (*draw(138, (2, 4), (5, 4)), draw(139, *[(4, 4)] * 3)),
        (  # scores near -3e6 that rise by 1e5 from key to key
            torch.tensor([[2.875, 0.5], [2.75, -1.2], [2.625, 2.0]]),
            torch.tensor([[3.0, 1.5]]),
            (
                torch.tensor([[-500_000.0, 0.0], [0.0, 0.0]]),
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
        softmax_of_hidden("fill", axis=-1),
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
            {"end": "all"},
            keeps="segment",
        ),
        wrong(
            "the oldest tokens of the memory stay, the newest go",
            "cache",
            "The new memory ends with the segment, and before it stand the newest of the old one.",
            keeps="oldest",
        ),
        wrong(
            "hidden scores become 0",
            "mask timing",
            "exp(0) = 1 is a weight; -inf gives none.",
            fill="zero",
        ),
        wrong(
            "queries and keys exchange their matrices",
            "role of q, k, v",
            "The weights come as W_q, W_k, W_v: queries are x @ W_q, keys context @ W_k.",
            matrices="kqv",
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
            "the memory is not cut",
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
    right_variants=[
        _segment_fused,
        _segment_row_by_row,
        _segment_without_grad,
        _segment_by_einsum,
    ],
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
        *worked_out(
            lambda *, rest=12, square=2, d=768, way="down": (
                d * (rest / square if way == "down" else square / rest)
            ),
            wrong(
                "the weights times the values are left out",
                "counting",
                "QK^T and the weighted sum cost n²d each, so 2n²d in all.",
                square=1,
            ),
            wrong(
                "the feed-forward network is left out",
                "counting",
                "The rest is 4nd² for the projections and 8nd² for the feed-forward network.",
                rest=4,
            ),
            wrong(
                "a third of the rest is left out",
                "counting",
                "Four projections take 4nd², and the network, d to 4d and back, twice 4nd²: 12nd².",
                rest=8,
            ),
            wrong(
                "one of the four projections is left out",
                "counting",
                "Queries, keys, values and output: 4nd².",
                rest=11,
            ),
            wrong(
                "one projection stands for four",
                "counting",
                "Queries, keys, values and output: 4nd².",
                rest=9,
            ),
            wrong(
                "the network is taken to be as wide as the stream",
                "counting",
                "d_ff is 4d: d to 4d and back takes 8nd².",
                rest=6,
            ),
            wrong(
                "additions are counted on one side only",
                "counting",
                "Both sides are counted in multiply-adds.",
                rest=24,
            ),
            wrong(
                "the ratio is turned round",
                "counting",
                "2n²d = 12nd²: divide both sides by 2nd, and n is left alone.",
                way="up",
            ),
            wrong(
                "d_ff stands where d_model should",
                "counting",
                "12nd² and 2n²d are both counted with d = d_model = 768.",
                d=4 * 768,
            ),
            wrong(
                "d is left out",
                "counting",
                "2n²d = 12nd²: divided by 2nd, one d is left on the right.",
                d=1,
            ),
        ),
        wrong(
            "only d_model is compared",
            "counting",
            "n²d and nd² are equal at n = d, but they occur 2 and 12 times.",
            answer=768,
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


def _in_window(*, before=4, after=4, itself=1, ends="short"):
    lost = {
        "short": math.comb(before + 1, 2) + math.comb(after + 1, 2),
        "one": math.comb(before + 1, 2),
        "one key a row": before + after,
        "a side a row": before**2 + after**2,
        "the first is forgotten": 2 * math.comb(before, 2),
        "a key more": math.comb(before + 2, 2) + math.comb(after + 2, 2) - 2,
        "left out": (before + after) * (before + itself + after),
        "whole": 0,
    }[ends]
    return 1000 * (before + itself + after) - lost


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
        *worked_out(
            _in_window,
            wrong(
                "the ends are forgotten",
                "off by one",
                "The first token has no neighbour before it: 4 rows at each end are shorter.",
                ends="whole",
            ),
            wrong(
                "only one end is counted",
                "off by one",
                "Both ends lack 4 + 3 + 2 + 1 scores.",
                ends="one",
            ),
            wrong(
                "each short row is taken to lack one key",
                "off by one",
                "The rows at an end lack 4, 3, 2 and 1 keys.",
                ends="one key a row",
            ),
            wrong(
                "at each end one short row is forgotten",
                "off by one",
                "At each end 4 rows are short: they lack 4, 3, 2 and 1 keys.",
                ends="the first is forgotten",
            ),
            wrong(
                "each short row is taken to lack a key too many",
                "off by one",
                "The first token lacks 4 keys, for it sees itself and 4 after it: 5 of 9.",
                ends="a key more",
            ),
            wrong(
                "the rows at the ends are not counted",
                "off by one",
                "They are shorter, but not empty: 5, 6, 7 and 8 keys.",
                ends="left out",
            ),
            wrong(
                "each short row is taken to lack a whole side",
                "off by one",
                "Only the first and the last token lack 4 keys; the next lack 3, 2 and 1.",
                ends="a side a row",
            ),
            wrong(
                "a token does not see itself",
                "self exclusion",
                "4 keys on each side and the query's own: 9 in a full row.",
                itself=0,
            ),
            wrong(
                "the window has one side only",
                "mask direction",
                "Radius 4 means 4 keys before and 4 after.",
                after=0,
            ),
            wrong(
                "the radius is taken for the whole width",
                "off by one",
                "A radius of 4 shows 4 keys on each side.",
                before=2,
                after=2,
            ),
            wrong(
                "the window is a key too short or too long on each side",
                "off by one",
                "The key at a distance of exactly 4 is visible, and none beyond.",
                {"before": 5, "after": 5},
                before=3,
                after=3,
            ),
        ),
        wrong(
            "all scores are counted",
            "counting",
            "That is full attention; a window keeps at most 9 in a row.",
            answer=1_000_000,
        ),
        wrong(
            "what is left out is counted",
            "counting",
            "Asked is how many scores are kept, not how many are spared.",
            answer=1_000_000 - 8_980,
        ),
        wrong(
            "one row is counted",
            "counting",
            "9 is what a token in the middle keeps; there are 1000 tokens.",
            answer=9,
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
        *worked_out(
            lambda *, last=100, half=2, each=1: last * (last + 1) // half * each,
            wrong(
                "a token does not see itself",
                "self exclusion",
                "Step t has t keys with the present one: 1 + 2 + ... + 100.",
                last=99,
            ),
            wrong(
                "one step too many is counted",
                "off by one",
                "There are 100 steps: 1 + 2 + ... + 100.",
                last=101,
            ),
            wrong(
                "the half is forgotten",
                "averaging",
                "1 + 2 + ... + n is n (n + 1) / 2.",
                half=1,
            ),
            wrong(
                "products with the values are counted, too",
                "counting",
                "A score is the product of a query and a key.",
                each=2,
            ),
        ),
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
            "exactly half of the square is counted",
            "off by one",
            "1 to 100 are 50.5 on average: the diagonal is whole.",
            answer=5_000,
        ),
        wrong(
            "the cache is not used",
            "cache",
            "With a cache there is one new query a step; without it all t are asked again.",
            {"answer": 171_700},
            answer=338_350,
        ),
        wrong(
            "the cache is not used, and a token does not see itself",
            "cache",
            "With a cache step t has one new query, and t keys with the present one.",
            answer=328_350,
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


@exercise(
    kind="value",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=5,
    difficulty=2,
    trains="choosing the approximation that suits a map",
    text="""
    Look at the four maps above, and predict before the bets are measured. Each leaves a query at
    most eight weights: **w**, on the eight nearest keys; **f**, on the first token and the seven
    nearest keys; **m**, on eight mixtures, each the mean of four neighbouring keys; **b**, on the
    eight keys with the largest scores, found by computing all. Give each head another one, so that
    as little as possible is lost in all. Write four letters, for the heads A, B, C and D in turn.
    """,
    mistakes=[
        wrong(
            "the heads A and B are exchanged",
            "locality",
            "One of the two has a bright first column all the way down; a window cannot see it.",
            answer="fwmb",
        ),
        wrong(
            "the heads C and D are exchanged",
            "low rank",
            "A mean of four neighbours cannot single out one key, and one of the two heads gives "
            "nearly all to a few.",
            answer="wfbm",
        ),
        wrong(
            "the near head gets the best keys and the head of few keys the window",
            "locality",
            "In its lower half, head D looks at a few words, however far away they are.",
            answer="bfmw",
        ),
        wrong(
            "the broad head gets the window",
            "locality",
            "Head C spreads its weight over the whole sentence; nearness tells nothing there.",
            {"answer": "bfwm"},
            answer="mfwb",
        ),
        wrong(
            "the broad head gets the nearest keys and the first",
            "locality",
            "Head C spreads its weight over the whole sentence; its first column is not bright.",
            {"answer": "bmfw"},
            answer="wmfb",
        ),
        *mixed_up(
            "wfmb",
            {
                "head A": "Head A is bright along its diagonal.",
                "head B": "Head B has a bright first column.",
                "head C": "Head C spreads its weight over the whole sentence.",
                "head D": "Head D gives nearly all to a few words, however far away.",
            },
            "locality",
            but=("fwmb", "wfbm", "bfmw", "bfwm", "mfwb", "bmfw", "wmfb"),
        ),
    ],
    hints=[
        "Where is each map bright: at the diagonal, in a column, in spots, or nowhere much?",
        "A bright column far from the diagonal needs a key that every query may reach.",
        "Means of neighbours do least harm where neighbouring columns are alike.",
    ],
)
def suits_the_map():
    """Four letters, for the heads A, B, C and D."""
    return "wfmb"


def _kept(weights, budget, *, more=0, first="within", mean="queries", given="kept", order="right",
          start="cut", own=True, back=0, newest=True):  # fmt: skip
    steps = len(weights)
    at = torch.arange(steps)
    behind = at[:, None] - at
    sees_itself = own is not False
    near = (behind >= 1 - sees_itself) & (behind < budget + more + back)
    fewer = (behind >= 1 - sees_itself) & (behind < budget - 1 + more + back)
    if start != "cut":  # a slice that starts at -1 starts at the last column, and is empty
        near = near & (at + 1 >= budget + more)[:, None]
    if start == "negative":
        fewer = fewer & (at + 1 >= budget - 1 + more)[:, None]
    at_first = torch.zeros_like(near)
    at_first[:, 0] = True
    masks = {"on top": near, "alone": at_first & False}
    with_first = masks.get(first, fewer) | at_first
    before = (behind > 0) & (behind <= budget + more)
    window = before if own == "beside the first" else near
    window, sink = ((weights * mask).sum(-1) for mask in (window, with_first))
    if newest is not True:
        window = weights.topk(min(budget, steps)).values.sum(-1)
    if not newest:
        sink = weights[:, 0] + weights[:, 1:].topk(min(budget, steps) - 1).values.sum(-1)
    if first == "twice":
        sink = (weights * fewer).sum(-1) + weights[:, 0]
    if mean == "last row":
        window, sink = window[-1:], sink[-1:]
    both = torch.stack([window.mean(), sink.mean()])
    if mean == "cells":
        both = torch.stack([weights[near].mean(), weights[with_first].mean()])
    both = both * steps if mean == "none" else both
    both = 1 - both if given == "lost" else both
    return both.flip(0) if order == "exchanged" else both


def _causal_map(seed, steps, towards_first=0.0):
    (scores,) = draw(seed, (steps, steps))
    scores[:, 0] += towards_first
    return scores.masked_fill(torch.ones(steps, steps).triu(1).bool(), -math.inf).softmax(-1)


@exercise(
    notebook=NOTEBOOK,
    asks="transfer",
    minutes=10,
    difficulty=2,
    trains="measuring what a bet keeps of a map",
    text="""
    Before you build anything sparse into a trained causal model, measure on its maps what would be
    lost. You are given one map and a budget of `budget` keys a query. How much of a query's weight
    is kept, as a mean over all queries, if it may look at (1) the `budget` newest keys up to
    itself, or (2) the first token and the `budget` - 1 newest keys up to itself? No key counts
    twice.
    """,
    reference=_kept,
    probes=[
        (_causal_map(311, 4), 2),
        (_causal_map(312, 6, 2.0), 3),
        (_causal_map(313, 9, 1.0), 4),
    ],
    mistakes=[
        wrong("the first token comes on top of the budget", "counting",
              "With the first token only budget - 1 newest keys are left.", first="on top"),
        wrong("the first token is counted twice", "counting",
              "In the first rows the window holds it already.", first="twice"),
        wrong("the window is missing beside the first token", "locality",
              "The first token takes one key of the budget; the newest take the rest.",
              first="alone"),
        wrong("the window has a key too many", "off by one",
              "`budget` keys with the query's own: the oldest is budget - 1 positions back.",
              more=1),
        wrong("the window has a key too few", "off by one",
              "`budget` keys, the query's own among them.", more=-1),
        wrong("a query does not look at itself", "self exclusion",
              "A slice stops before its end: the newest key of query t is t itself.",
              {"back": 1}, {"own": "beside the first"}, own=False),
        wrong("the largest weights are taken, not the newest keys", "locality",
              "A bet is made before the weights are known: `budget` keys by their places.",
              {"newest": "in the second bet"}, newest=False, first="within", more=0, own=True,
              back=0, order="right"),
        wrong("a slice starts below 0", "off by one",
              "In the first rows t - budget + 1 is negative and counts from the end: take max(0, "
              "...).",
              {"start": "negative in the window"}, start="negative"),
        wrong("only the last query is measured", "averaging",
              "Take the mean over all queries, the early ones included.", mean="last row"),
        wrong("the mean is taken over cells", "averaging",
              "Sum over the keys first: each query has a weight of 1 to keep.", mean="cells"),
        wrong("the queries are summed up", "averaging",
              "Divide by the number of queries.", mean="none"),
        wrong("what is lost is returned", "counting",
              "Asked is the weight that is kept: 1 minus that.", given="lost"),
        wrong("the two bets are exchanged", "position",
              "First the window alone, then the window with the first token.", order="exchanged"),
    ],
    hints=[
        "Each bet is a mask; what it keeps of a row is a sum over the row's visible keys.",
        "How far back does the oldest of `budget` newest keys lie?",
        "If the first token is inside the window already, an `or` of two masks counts it once.",
    ],
    right_variants=[
        lambda w, b: torch.tensor(
            [
                sum(w[i, max(0, i - b + 1) : i + 1].sum().item() for i in range(len(w))) / len(w),
                sum(
                    sum(w[i, j].item() for j in {0, *range(max(0, i - b + 2), i + 1)})
                    for i in range(len(w))
                )
                / len(w),
            ]
        ),
        lambda w, b: torch.stack([w.tril().triu(1 - b).sum(), torch.cat(
            [w[:, :1], w.tril().triu(2 - b)[:, 1:]], 1).sum()]) / len(w),
        lambda w, b: torch.tensor(
            [
                w.triu(1 - b).sum(1).mean().item(),
                (w.triu(2 - b).sum(1) + w[:, 0] * (torch.arange(len(w)) > b - 2)).mean().item(),
            ]
        ),
    ],
)  # fmt: skip
def kept_by_bets(weights, budget):
    """What a window, and a window with the first token, keep of a causal map.

    weights: (T, T), rows sum to 1 and nothing looks ahead; budget: keys a query, 2 or more.
    Returns two numbers, (2,): the mean kept weight of bet (1) and of bet (2).
    """
    at = torch.arange(len(weights))
    behind = at[:, None] - at  # (T, T)
    window = (behind >= 0) & (behind < budget)
    with_first = (behind >= 0) & (behind < budget - 1)
    with_first[:, 0] = True
    return torch.stack([(weights * mask).sum(-1).mean() for mask in (window, with_first)])


def _context(
    free, layers, heads, sharing, d_head, batch, number, *,
    vectors=2, stack="all", shared="heads / sharing", size="d_head", texts="all", of="bytes",
    rounded="down",
):  # fmt: skip
    kept = {"no": heads, "sharing": sharing, "one": 1}.get(shared, heads // sharing)
    each = vectors * kept * (layers if stack == "all" else 1) * (batch if texts == "all" else 1)
    each *= {"left out": 1, "d_model": d_head * heads}.get(size, d_head)
    each *= {"bytes": number, "numbers": 1, "bits": 8 * number}[of]
    if size == "square":
        return math.isqrt(free // (layers * heads * batch * number))
    return -(-free // each) if rounded == "up" else free // each


@exercise(
    notebook=NOTEBOOK,
    asks="transfer",
    minutes=8,
    difficulty=2,
    trains="the memory of a key-value cache",
    text="""
    A model is loaded, and so many bytes are free. It shall write several texts of equal length at
    the same time, with a key-value cache. In each layer `sharing` query heads share one head of
    keys and values. How many whole tokens can each text have, prompt included, until the memory is
    full?
    """,
    reference=_context,
    probes=[
        (10_000, 2, 4, 2, 8, 3, 2),
        (16 * 2**30, 32, 32, 4, 128, 5, 2),
        (1_000_003, 6, 12, 12, 16, 7, 4),
        (5_555_555, 3, 8, 1, 40, 2, 1),
    ],
    mistakes=[
        wrong("the values are left out", "memory",
              "Keys and values are kept, two vectors a token and head.", vectors=1),
        wrong("one layer is counted", "memory",
              "Every layer keeps keys and values of its own.", stack="one"),
        wrong("every query head is given keys of its own", "sharing",
              "`sharing` query heads share one head of keys and values.", shared="no"),
        wrong("`sharing` is taken for the number of heads that are kept", "sharing",
              "heads / sharing heads of keys and values are kept.", shared="sharing"),
        wrong("one head is counted", "memory",
              "heads / sharing heads of keys and values are kept in each layer.", shared="one"),
        wrong("one text is counted", "memory",
              "Each text of the batch has a cache of its own.", texts="one"),
        wrong("numbers are counted, not bytes", "memory",
              "A number takes `number` bytes.", of="numbers"),
        wrong("bits are counted", "memory",
              "`number` is in bytes, and so is `free`.", of="bits"),
        wrong("the last token does not fit", "off by one",
              "Whole tokens: round down.", rounded="up"),
        wrong("a map is taken to be kept", "memory",
              "A cache keeps no weights; it grows with the length, not with its square.",
              size="square", vectors=2, stack="all", shared="heads / sharing", texts="all",
              of="bytes", rounded="down"),
        wrong("the size of a head is left out", "memory",
              "A key is d_head numbers, not one.", size="left out"),
    ],
    hints=[
        "What does one token add to the cache of one layer, for one text?",
        "How many heads of keys are there, if groups of `sharing` query heads have one together?",
        "Bytes a token, over layers and texts; then see how often that goes into what is free.",
    ],
    right_variants=[
        lambda free, layers, heads, sharing, d, batch, number: int(
            free // (layers * (heads // sharing) * d * 2) // batch // number
        ),
        lambda free, layers, heads, sharing, d, batch, number: math.floor(
            free * sharing / (2 * number * batch * d * heads * layers)
        ),
        lambda free, layers, heads, sharing, d, batch, number: torch.tensor(
            free // (torch.zeros(2, 1, heads // sharing, d).numel() * layers * batch * number)
        ),
    ],
)  # fmt: skip
def longest_text(free, layers, heads, sharing, d_head, batch, number):
    """How many tokens each text may have.

    free: bytes; layers, heads: of the model; sharing: query heads to one head of keys and values;
    d_head: size of a head; batch: texts; number: bytes a number takes. Returns an integer.
    """
    a_token = 2 * layers * (heads // sharing) * d_head * number  # bytes, keys and values
    return free // (batch * a_token)


def _undo(f, g, y1, y2, d1, d2, *, again_f=False, again_g=False, g_sign=-1, f_sign=-1, f_reads="x2",
          into_y1="both", into_x2="both", f_gets="both", order="right", summed=""):  # fmt: skip
    for function in [f] * again_f + [g] * again_g:
        function(y1)
    with torch.enable_grad():
        leaf1 = y1.detach().requires_grad_()
        from_g = g(leaf1)
    x2 = y2 + g_sign * from_g.detach()
    with torch.enable_grad():
        leaf2 = (y2 if f_reads == "y2" else x2).detach().requires_grad_()
        from_f = f(leaf2)
    x1 = y1 + f_sign * from_f.detach()
    by_g = _pulled(from_g, leaf1, d2, "g" in summed)
    into = {"own": d1, "through g": by_g}.get(into_y1, d1 + by_g)
    by_f = _pulled(from_f, leaf2, d1 if f_gets == "d1" else into, "f" in summed)
    onwards = {"own": d2, "through f": by_f}.get(into_x2, d2 + by_f)
    if order == "exchanged":
        return x2, x1, onwards, into
    return x1, x2, into, onwards


def _pulled(out, leaf, gradient, summed):
    if summed:
        return torch.autograd.grad(out.sum(), leaf)[0] * gradient
    return torch.autograd.grad(out, leaf, gradient)[0]


def play_undo(answer, A, B, x1, x2, d1, d2):
    """Undo one block, and count how often its two functions are run."""
    runs = {"f": 0, "g": 0}

    def f(x):
        runs["f"] += 1
        return torch.tanh(x @ A)

    def g(x):
        runs["g"] += 1
        return torch.sin(x @ B)

    y1 = x1 + torch.tanh(x2 @ A)
    y2 = x2 + torch.sin(y1 @ B)
    a1, a2, b1, b2 = answer(f, g, y1.clone(), y2.clone(), d1, d2)
    return {
        "x1": a1.detach(), "x2": a2.detach(), "gradient of x1": b1.detach(),
        "gradient of x2": b2.detach(), "runs of f": runs["f"], "runs of g": runs["g"],
    }  # fmt: skip


def _undo_with_hooks(f, g, y1, y2, d1, d2):
    a = y1.detach().clone().requires_grad_(True)
    with torch.enable_grad():
        out = g(a)
        out.backward(d2)
    x2 = (y2 - out).detach().requires_grad_(True)
    top = d1 + a.grad
    with torch.enable_grad():
        out = f(x2)
        out.backward(top)
    return (y1 - out).detach(), x2.detach(), top, d2 + x2.grad


def _undo_by_vjp(f, g, y1, y2, d1, d2):
    from_g, by_g = torch.autograd.functional.vjp(g, y1, d2)
    x2, d_x1 = y2 - from_g, d1 + by_g
    from_f, by_f = torch.autograd.functional.vjp(f, x2, d_x1)
    return y1 - from_f, x2, d_x1, d2 + by_f


def _undo_whole(f, g, y1, y2, d1, d2):
    with torch.enable_grad():
        one = y1.detach().requires_grad_()
        out_g = g(one)
        two = (y2 - out_g).detach().requires_grad_()
        out_f = f(two)
        up = torch.autograd.grad((out_g * d2).sum(), one)[0] + d1
        down = torch.autograd.grad((out_f * up).sum(), two)[0] + d2
    return (y1 - out_f).detach(), two.detach(), up, down


@exercise(
    notebook=NOTEBOOK,
    asks="transfer",
    minutes=15,
    difficulty=3,
    trains="rebuilding and differentiating in one run",
    text="""
    The way back through a reversible block. The plain way runs f and g once to rebuild the inputs
    and once more to differentiate, though one run of each can serve for both. You are given the
    outputs y₁ = x₁ + f(x₂) and y₂ = x₂ + g(y₁), and the gradients of the loss for y₁ and y₂. Return
    the inputs and their gradients, and **run f and g once each**. (Gradients of weights are left
    out.)
    """,
    reference=_undo,
    play=play_undo,
    probes=[
        draw(321, (2, 2), (2, 2), (1, 2), (1, 2), (1, 2), (1, 2)),
        draw(322, (3, 3), (3, 3), (2, 3), (2, 3), (2, 3), (2, 3)),
        draw(323, (4, 4), (4, 4), (3, 4), (3, 4), (3, 4), (3, 4)),
    ],
    mistakes=[
        wrong("a function is run more than once", "counting",
              "The run of f that rebuilds x₁, and that of g that rebuilds x₂, can be "
              "differentiated, if they are recorded.",
              {"again_f": True, "again_g": False}, {"again_f": False, "again_g": True},
              again_f=True, again_g=True),
        wrong("g is added instead of subtracted", "residual",
              "y₂ = x₂ + g(y₁), so x₂ = y₂ - g(y₁).", g_sign=1),
        wrong("f is added instead of subtracted", "residual",
              "y₁ = x₁ + f(x₂), so x₁ = y₁ - f(x₂).", f_sign=1),
        wrong("f is applied to y₂", "residual",
              "f reads x₂, which has to be rebuilt first.", f_reads="y2"),
        wrong("the gradient that comes through g is lost", "gradient",
              "y₁ feeds g, so the loss depends on it through y₂, too.", into_y1="own"),
        wrong("only the gradient through g is kept", "gradient",
              "y₁ is an output itself: its own gradient is added.", into_y1="through g"),
        wrong("f gets the gradient of y₁ as it was given", "gradient",
              "What comes through g is part of it: both arrive at y₁ = x₁ + f(x₂).",
              f_gets="d1"),
        wrong("the gradient of a sum is multiplied by what came", "gradient",
              "One number of x moves several of f(x): hand the gradient of the result to the "
              "backward pass, torch.autograd.grad(out, x, d).",
              {"summed": "g"}, {"summed": "f"}, summed="f, g"),
        wrong("the gradient that comes through f is lost", "gradient",
              "x₂ feeds f, too, and not only y₂.", into_x2="own"),
        wrong("only the gradient through f is kept", "gradient",
              "x₂ goes into y₂ as it is: the gradient of y₂ is added.", into_x2="through f"),
        wrong("the two streams are exchanged", "position",
              "Return x₁, x₂, the gradient of x₁, the gradient of x₂.", order="exchanged"),
    ],
    hints=[
        "Which of the two can be rebuilt first, from y₁ and y₂ alone?",
        "Make y₁ a leaf that needs a gradient before g reads it; then the run is recorded.",
        "y₁ gets its own gradient and what comes through g; x₁ gets that sum, and so does f.",
    ],
    right_variants=[_undo_with_hooks, _undo_by_vjp, _undo_whole],
)  # fmt: skip
def undo_in_one_run(f, g, y1, y2, d1, d2):
    """The inputs of a reversible block and their gradients.

    f, g: functions (T, d) -> (T, d); y1, y2: the outputs, d1, d2: gradients of the loss for them,
    all (T, d). Returns x1, x2, the gradient of x1, the gradient of x2.
    """
    with torch.enable_grad():
        y1 = y1.detach().requires_grad_()
        from_g = g(y1)
        x2 = (y2 - from_g).detach().requires_grad_()
        from_f = f(x2)
    x1 = (y1 - from_f).detach()
    d_x1 = d1 + torch.autograd.grad(from_g, y1, d2)[0]
    d_x2 = d2 + torch.autograd.grad(from_f, x2, d_x1)[0]
    return x1, x2.detach(), d_x1, d_x2


def _pattern(num_tokens, *, form="own block and last", side="past", itself=True, holds="truth"):
    at = torch.arange(num_tokens)
    size = math.isqrt(num_tokens - 1) + 1
    behind = at[:, None] - at
    own = at[:, None] // size == at // size
    last = (at + 1) % size == 0
    mask = {
        "full": behind >= 0,
        "window": behind < size,
        "first": (behind < size) | (at == 0),
        "blocks": own,
        "first of a block": own | (at % size == 0),
        "stride": (behind % size == 0),
        "globals": (behind < size) | (at < size // 2 + 1),
        "fixed size": (at[:, None] // 4 == at // 4) | ((at + 1) % 4 == 0),
    }.get(form, own | last)
    mask = mask & (behind >= 0) if side != "ahead" else mask
    mask = mask if itself else mask & (behind != 0)
    mask = mask.T if side == "turned" else mask
    return mask.float() if holds == "numbers" else mask


def play_pattern(answer, num_tokens):
    """What holds of a pattern."""
    mask = answer(num_tokens)
    if tuple(mask.shape) != (num_tokens, num_tokens):
        return {"its shape is (T, T)": False}
    seen = mask.double()
    reached = (seen @ seen) > 0
    ahead = torch.ones(num_tokens, num_tokens, dtype=torch.bool).triu(1)
    root = math.isqrt(num_tokens - 1) + 1
    most = 2 * root + 1
    return {
        "its shape is (T, T)": True,
        "it is boolean": mask.dtype == torch.bool,
        "nothing looks ahead": bool((seen.triu(1) == 0).all()),
        "each token sees itself": bool((seen.diagonal() > 0).all()),
        "no query has more than 2√T + 1 keys": bool((seen > 0).sum(-1).max() <= most),
        "each token hears of the one before it": bool(reached.diagonal(-1).all()),
        "each token hears of the one √T before it": bool(reached.diagonal(-root).all()),
        "the last token hears of the first": bool(reached[-1, 0]),
        "two layers connect each token with all before it": bool(reached[~ahead].all()),
    }  # fmt: skip


@exercise(
    notebook=NOTEBOOK,
    asks="transfer",
    minutes=15,
    difficulty=3,
    trains="designing a sparse pattern",
    text="""
    An open task: **your own sparse pattern** for a language model. Any pattern is right that has
    these properties, for every length T from 4 on: nothing looks ahead; each token sees itself; no
    query has more than 2√T + 1 keys (with √T rounded up); and after two layers each token has heard
    of every token before it: from each key to each later query there is a path of two steps (a
    step may stay where it is). Blocks, strides, hubs: what you like.
    """,
    reference=_pattern,
    play=play_pattern,
    probes=[(4,), (9,), (50,), (100,)],
    mistakes=[
        wrong("a query has too many keys", "counting",
              "A query may have 2√T + 1 keys at most.", form="full"),
        wrong("two layers do not reach the beginning", "locality",
              "Two layers of a window alone reach two windows back.", form="window"),
        wrong("some earlier tokens are out of reach", "locality",
              "Two layers have to connect all pairs, not the ends alone. The first tokens are no "
              "hubs in a causal model: a hub has to come later than what it passes on.",
              {"form": "globals"}, form="first"),
        wrong("blocks are handed on by their first token", "locality",
              "In a causal model the first token of a block has not heard of the rest of it: let "
              "the last one speak for the block.",
              form="first of a block"),
        wrong("some tokens hear neither of their neighbour nor of the beginning", "locality",
              "Blocks alone never meet: a token hears nothing of the others, however many layers.",
              form="blocks"),
        wrong("some tokens do not hear of the one before them", "locality",
              "Steps of one length alone never reach what lies between them.", form="stride"),
        wrong("the pattern looks ahead", "mask direction",
              "This is for a language model: query t may look at keys 0 to t.", side="ahead"),
        wrong("a token does not see itself", "self exclusion",
              "Its own word is already known, and a path may stay where it is.",
              itself=False),
        wrong("long texts get too many keys a query", "length",
              "Keys may grow like √T only: blocks of fixed size, for one, have T / size summaries.",
              form="fixed size"),
        wrong("queries and keys are exchanged", "mask axis",
              "Row t belongs to query t, so only its first t + 1 columns may be True.",
              side="turned", form="own block and last"),
        wrong("the mask holds numbers", "mask meaning",
              "A mask is boolean: True = may look.", holds="numbers"),
    ],
    hints=[
        "With half of the keys close by, and the other half spread over the past, what could the "
        "spread ones have heard?",
        "Let each block of about √T tokens have one token that has seen all of its block.",
        "Causal, so only the last token of a block has seen it whole. Or: a window, and a stride "
        "as long as the window.",
    ],
    right_variants=[
        lambda n: torch.tensor(
            [
                [j <= i and (i - j < math.isqrt(n) + 1 or (i - j) % (math.isqrt(n) + 1) == 0)
                 for j in range(n)]
                for i in range(n)
            ]
        ),
        lambda n: torch.ones(n, n).tril().triu(1 - math.ceil(n**0.5)).bool() | (
            (torch.arange(n) % math.ceil(n**0.5) == math.ceil(n**0.5) - 1)
            & torch.ones(n, n).tril().bool()
        ),
        lambda n: sum(
            torch.eye(n).roll(-s, 1).tril()
            for s in [*range(math.ceil(n**0.5)),
                      *range(math.ceil(n**0.5), n, math.ceil(n**0.5))]
        ).bool(),
    ],
)  # fmt: skip
def my_pattern(num_tokens):
    """A sparse causal pattern of your own.

    num_tokens: T, 4 or more. Returns a boolean mask (T, T), True = may look.
    """
    size = math.isqrt(num_tokens - 1) + 1  # the root of T, rounded up
    at = torch.arange(num_tokens)
    own_block = at[:, None] // size == at // size
    ends_a_block = (at + 1) % size == 0  # has seen its whole block
    return (own_block | ends_a_block) & (at[:, None] >= at)
