"""Exercises of notebook 06: set heads by hand, split, attend, merge, and tell heads apart."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from course_utils.checker.common import (
    NOT_LOW,
    SOFTMAX_OF_THE_MAP,
    SOFTMAX_TWICE,
    lowered,
    not_low_enough,
    worked_out,
)
from course_utils.checker.exercise import exercise, wrong
from course_utils.checker.probes import draw

NOTEBOOK = "06_multi_head_attention"


def _split(x, num_heads, *, layout="right", pieces="blocks", steps=None):
    batch, own_steps, d_model = x.shape
    steps = own_steps if steps is None else steps
    d_head = d_model // num_heads
    if pieces == "in turn":  # features h, 2h, ... to head 0
        x = x.unflatten(-1, (d_head, num_heads)).mT.flatten(-2)
    if layout == "viewed":
        return x.reshape(batch, num_heads, steps, d_head)
    if layout == "interleaved":
        return x.reshape(batch, steps, d_head, num_heads).permute(0, 3, 1, 2)
    if layout == "sizes exchanged":
        return x.reshape(batch, steps, d_head, num_heads).transpose(1, 2)
    if layout == "sizes exchanged, not swapped":
        return x.reshape(batch, steps, d_head, num_heads)
    if layout == "size left open":
        return x.reshape(batch, steps, num_heads, -1).transpose(1, 2)
    if layout == "all to each":
        return x[:, None].expand(-1, num_heads, -1, -1)
    split = x.reshape(batch, steps, num_heads, d_head)
    if layout == "not swapped":
        return split
    if layout == "folded":
        return split.transpose(1, 2).reshape(batch * num_heads, steps, d_head)
    if layout == "heads outside":
        return split.permute(2, 0, 1, 3)
    if layout == "folded, heads outside":
        return split.permute(2, 0, 1, 3).flatten(0, 1)
    if layout == "features first":
        return split.permute(0, 2, 3, 1)
    return split.transpose(1, 2)


_SPLIT_MISTAKES = [
    wrong(
        "heads split without the transpose",
        "head layout",
        "view(B, h, T, d_head) cuts along the positions, so tokens get mixed; "
        "view as (B, T, h, d_head), then swap axes 1 and 2.",
        layout="viewed",
    ),
    wrong(
        "features are dealt out to the heads in turn",
        "head layout",
        "Head 0 gets the first d_head features, head 1 the next; the view has (h, d_head) last.",
        layout="interleaved",
    ),
]


@exercise(
    asks="practice",
    notebook=NOTEBOOK,
    minutes=5,
    difficulty=1,
    trains="the layout of heads",
    text="""
    Cut the last axis into `num_heads` pieces and bring the heads to the front. Each head must see
    every token.
    """,
    reference=_split,
    probes=[
        (torch.arange(12.0).reshape(1, 3, 4), 2),
        (torch.arange(72.0).reshape(2, 3, 12), 2),
        (torch.arange(60.0).reshape(1, 5, 12), 3),
    ],
    mistakes=[
        _SPLIT_MISTAKES[0],
        wrong(
            "features are dealt out to the heads in turn",
            "head layout",
            "Head 0 gets the first d_head features, head 1 the next: (h, d_head) stand last.",
            pieces="in turn",
        ),
        wrong(
            "heads and positions are not swapped",
            "head layout",
            "The result is (B, T, h, d_head); attention needs (B, h, T, d_head).",
            layout="not swapped",
        ),
        wrong(
            "the heads are folded into the batch",
            "head layout",
            "Some code does it, (B·h, T, d_head); here batch and heads stay two axes.",
            {"layout": "folded, heads outside"},
            layout="folded",
        ),
        wrong(
            "the heads stand before the batch",
            "head layout",
            "The result is (h, B, T, d_head): stack the pieces along axis 1, behind the batch.",
            layout="heads outside",
        ),
        wrong(
            "the number of heads and their size are exchanged",
            "head layout",
            "The last axis becomes (h, d_head): num_heads pieces of d_model / num_heads.",
            layout="sizes exchanged",
            pieces="blocks",
        ),
        wrong(
            "the number of heads and their size are exchanged, and no axes are swapped",
            "head layout",
            "The last axis becomes (h, d_head), and then heads and positions change places.",
            layout="sizes exchanged, not swapped",
            pieces="blocks",
        ),
        wrong(
            "each head gets all features",
            "head layout",
            "The features are shared out: each head gets d_model / num_heads of them.",
            layout="all to each",
            pieces="blocks",
        ),
        wrong(
            "features stand before positions",
            "head layout",
            "Each head must hold rows of tokens: (T, d_head), not (d_head, T).",
            layout="features first",
        ),
    ],
    hints=[
        "Two steps: first give the last axis two axes, then move one of them.",
        "reshape(B, T, h, d_model // h) keeps each token's numbers together.",
        "transpose(1, 2) swaps positions and heads.",
    ],
    right_variants=[
        lambda x, h: x.unflatten(-1, (h, -1)).permute(0, 2, 1, 3),
        lambda x, h: torch.stack(x.chunk(h, dim=-1), dim=1),
        lambda x, h: torch.stack(
            [x[..., i * x.shape[2] // h : (i + 1) * x.shape[2] // h] for i in range(h)], 1
        ),
    ],
)
def into_heads(x, num_heads):
    """Split the features into heads.

    x: (B, T, d_model). Returns (B, h, T, d_model / h).
    """
    batch, steps, d_model = x.shape
    return x.reshape(batch, steps, num_heads, d_model // num_heads).transpose(1, 2)


def _join(x, *, joined="right", tokens="inside"):
    y = _merge(x, joined=joined)
    return y.transpose(0, 1).reshape(y.shape) if tokens == "outside" and y.dim() == 3 else y


def _merge(x, *, joined="right"):
    batch, heads, steps, d_head = x.shape
    if joined == "without transpose":
        return x.reshape(batch, steps, heads * d_head)
    if joined == "viewed":
        return x.transpose(1, 2).view(batch, steps, heads * d_head)
    if joined == "interleaved":
        return x.permute(0, 2, 3, 1).reshape(batch, steps, heads * d_head)
    if joined == "positions and features":
        return x.transpose(2, 3).reshape(batch, steps, heads * d_head)
    if joined == "not joined":
        return x.transpose(1, 2)
    if joined == "along positions":
        return x.flatten(1, 2)
    if joined == "sum":
        return x.sum(1)
    if joined == "mean":
        return x.mean(1)
    return x.transpose(1, 2).reshape(batch, steps, heads * d_head)


_MERGE_MISTAKES = [
    wrong(
        "heads merged without the transpose",
        "head merging",
        "Reshaping (B, h, T, d_head) directly joins pieces of different tokens; "
        "swap heads and positions first.",
        joined="without transpose",
    ),
    wrong(
        "a transposed tensor is viewed",
        "head merging",
        "After a transpose the memory is out of order: .contiguous().view(...) or .reshape(...).",
        joined="viewed",
    ),
]


@exercise(
    asks="practice",
    notebook=NOTEBOOK,
    minutes=5,
    difficulty=1,
    trains="putting heads back together",
    text="Undo `into_heads`: join the heads so that each token gets its features back.",
    reference=_join,
    probes=[
        (torch.arange(12.0).reshape(1, 2, 3, 2),),
        (torch.arange(72.0).reshape(2, 2, 3, 6),),
        (torch.arange(60.0).reshape(1, 3, 5, 4),),
    ],
    mistakes=[
        *_MERGE_MISTAKES,
        wrong(
            "features of the heads are interleaved",
            "head merging",
            "The features of head 0 come first, then those of head 1: (T, h, d_head) before "
            "the last two axes are joined.",
            joined="interleaved",
        ),
        wrong(
            "positions and features are swapped",
            "head merging",
            "The axes to swap are heads (1) and positions (2).",
            joined="positions and features",
        ),
        wrong(
            "the heads are added or averaged",
            "head merging",
            "Heads are put side by side, so the result has h · d_head features.",
            {"joined": "mean"},
            joined="sum",
        ),
        wrong(
            "the tokens stand before the sentences",
            "head merging",
            "(T, B, ...) reshaped to (B, T, ...) mixes sentences; the batch stays the first axis.",
            tokens="outside",
        ),
        wrong(
            "heads and features stay two axes",
            "head merging",
            "After the swap, (h, d_head) at the end still becomes one axis of h · d_head.",
            joined="not joined",
        ),
        wrong(
            "the heads are put one after the other along the positions",
            "head merging",
            "(B, h · T, d_head) has each token h times; heads are joined along the features.",
            joined="along positions",
        ),
    ],
    hints=[
        "Which axis must stand next to d_head before the two can be joined?",
        "transpose(1, 2) brings (B, h, T, d_head) to (B, T, h, d_head).",
        "A transposed tensor cannot be viewed; reshape copies where it must.",
    ],
    right_variants=[
        lambda x: x.transpose(1, 2).contiguous().view(x.shape[0], x.shape[2], -1),
        lambda x: x.permute(0, 2, 1, 3).flatten(2),
        lambda x: torch.cat(list(x.unbind(1)), dim=-1),
    ],
)
def from_heads(x):
    """Join the heads again.

    x: (B, h, T, d_head). Returns (B, T, h * d_head).
    """
    batch, heads, steps, d_head = x.shape
    return x.transpose(1, 2).reshape(batch, steps, heads * d_head)


def _repeat(lengths, num_heads, *, order="interleaved", amount="kept"):
    if amount == "multiplied":
        lengths = lengths * num_heads
    if amount == "divided":
        lengths = lengths // num_heads
    if order == "tiled":
        return lengths.repeat(num_heads, *(1,) * (lengths.dim() - 1))
    if order == "once":
        return lengths
    if order == "new axis":
        return lengths[:, None].repeat(1, num_heads, *(1,) * (lengths.dim() - 1))
    if order == "flattened":
        return lengths.repeat_interleave(num_heads)
    if order == "tiled at the end":
        return lengths.repeat(num_heads)
    if order == "tiled at the end, rows too":
        return lengths.tile(num_heads)
    if order == "flattened and tiled":
        return lengths.flatten().repeat(num_heads)
    if order == "inside":
        return lengths.repeat_interleave(num_heads, dim=-1)
    return lengths.repeat_interleave(num_heads, dim=0)


@exercise(
    notebook=NOTEBOOK,
    minutes=4,
    difficulty=2,
    trains="lengths for folded heads",
    text="""
    Some programs fold the heads into the batch: `(B·h, T, d_head)`, all heads of sentence 0
    first. Repeat the valid lengths so that every head of a sentence gets that sentence's length.
    """,
    reference=_repeat,
    probes=[
        (torch.tensor([2, 3]), 2),
        (torch.tensor([4, 1, 3]), 2),
        (torch.tensor([[1, 2], [3, 4], [2, 2]]), 3),
    ],
    mistakes=[
        wrong(
            "the lengths are tiled over the heads in the wrong order",
            "head layout",
            "repeat gives [2, 3, 2, 3]; all heads of one sentence stand together, so [2, 2, 3, 3].",
            order="tiled",
        ),
        wrong(
            "the lengths are tiled, and a table of them is not provided for",
            "head layout",
            "repeat(h) gives [2, 3, 2, 3], not [2, 2, 3, 3], and with two axes, (B, Tq), it asks "
            "for two numbers and stops.",
            order="tiled at the end",
        ),
        wrong(
            "lengths are tiled along the last axis",
            "head layout",
            "What is repeated are sentences, axis 0, each h times before the next: tile(h) repeats "
            "the last axis, of (B, Tq) that of the queries.",
            order="tiled at the end, rows too",
        ),
        wrong(
            "lengths (B, Tq) are flattened",
            "head layout",
            "repeat_interleave without dim makes one row of all lengths; say dim=0.",
            order="flattened",
        ),
        wrong(
            "lengths are flattened and tiled",
            "head layout",
            "All lengths in one row, repeated in turn: keep the rows of (B, Tq), and let all heads "
            "of one sentence stand together.",
            order="flattened and tiled",
        ),
        wrong(
            "the lengths of the queries are repeated",
            "head layout",
            "With lengths (B, Tq) whole rows are repeated, dim=0; the queries stay Tq.",
            order="inside",
        ),
        wrong(
            "the lengths are divided among the heads",
            "head layout",
            "Heads share out features, not positions: each head sees the whole sentence.",
            {"order": "once"},
            amount="divided",
        ),
        wrong(
            "the lengths are not repeated",
            "head layout",
            "There are B · h maps to hide keys in, so as many lengths are needed.",
            order="once",
        ),
        wrong(
            "the heads get an axis of their own",
            "head layout",
            "In this layout batch and heads are one axis of size B · h.",
            order="new axis",
        ),
        wrong(
            "the lengths are multiplied",
            "head layout",
            "The lengths stay as they are; each one is needed h times.",
            {"order": "once"},
            amount="multiplied",
        ),
    ],
    hints=[
        "Write the rows of the folded tensor in order: sentence 0 head 0, sentence 0 head 1, ...",
        "So which length must stand second: that of sentence 0 or of sentence 1?",
        "torch has two functions that repeat; one repeats each entry, one the whole list.",
    ],
    right_variants=[
        lambda n, h: torch.stack([row for row in n for _ in range(h)]),
        lambda n, h: n[torch.arange(len(n) * h) // h],
        lambda n, h: n.unsqueeze(1).expand(-1, h, *n.shape[1:]).flatten(0, 1),
    ],
)
def lengths_for_heads(lengths, num_heads):
    """One length for each head of each sentence, the heads of a sentence together.

    lengths: (B,) or (B, Tq). Returns (B * h,) or (B * h, Tq).
    """
    return lengths.repeat_interleave(num_heads, dim=0)


def _multi_head(
    queries,
    keys,
    values,
    weights,
    num_heads,
    *,
    layout="right",
    joined="right",
    scale="d_head",
    axis=-1,
    order="xW",
    shared="none",
    out=True,
    project="all",
    source="own",
    normalise="once",
    steps="own",
):
    W_q, W_k, W_v, W_o = weights
    if shared == "all":
        W_k = W_v = W_o = W_q
    elif shared == "qkv":
        W_k = W_v = W_q
    elif shared == "qk":
        W_k = W_q
    elif shared == "kv":
        W_v = W_k
    elif shared == "k and v exchanged":
        W_k, W_v = W_v, W_k
    elif shared == "q and k exchanged":
        W_q, W_k = W_k, W_q
    if order in ("xWT", "not W_o"):
        W_q, W_k, W_v = W_q.T, W_k.T, W_v.T
    if order in ("xWT", "W_o"):
        W_o = W_o.T
    if project == "slices":
        size = len(W_q) // num_heads
        own = torch.block_diag(*(torch.ones(size, size) for _ in range(num_heads)))
        W_q, W_k, W_v = W_q * own, W_k * own, W_v * own
    joined_queries = queries
    queries, keys, values = _SOURCES[source](queries, keys, values)
    q = queries @ W_q if project != "not q" else queries
    k = keys @ W_k if project != "not k" else keys
    v = values @ W_v if project != "queries and keys" else values
    if layout == "one head":
        num_heads, layout = 1, "right"
    steps = queries.shape[1] if steps == "of the queries" else None
    q, k, v = (
        _split(x, num_heads, layout=layout, steps=steps) for x in (q, k, v)
    )  # (B, h, T, d_head)
    scores = q @ k.mT / _divisor(scale, q, k, num_heads)  # (B, h, Tq, Tk)
    heads = _weights(scores, normalise, axis, q.shape[-1]) @ v
    merged = _merge(heads, joined=joined)
    y = merged @ W_o if out else merged
    return joined_queries + y if out == "added" else y


_SOURCES = {  # what queries, keys and values are made of
    "own": lambda q, k, v: (q, k, v),
    "values of keys": lambda q, k, v: (q, k, k),
    "keys of values": lambda q, k, v: (q, v, v),
    "keys and values exchanged": lambda q, k, v: (q, v, k),
}


def _divisor(scale, q, k, num_heads):
    """By what the scores of the heads (B, h, T, d_head) are divided."""
    d_head = q.shape[-1]
    size = {
        "d_model": d_head * num_heads,
        "none": 1,
        "root twice": d_head**2,
        "inverse": 1 / d_head,
        "number of queries": q.shape[-2],
        "number of keys": k.shape[-2],
        "number of heads": num_heads,
    }
    return math.sqrt(size.get(scale, d_head))


def _weights(scores, normalise, axis, d_head):
    """Weights (B, h, Tq, Tk) of scores, in some ways that are wrong."""
    weights = torch.softmax(scores, dim=axis)
    return {
        "twice": lambda: torch.softmax(weights, dim=axis),
        "never": lambda: scores,
        "then divided": lambda: weights / math.sqrt(d_head),
        "of the map": lambda: torch.softmax(scores.flatten(2), dim=-1).view_as(scores),
    }.get(normalise, lambda: weights)()


def _head_by_head(q, k, v, weights, h):
    W_q, W_k, W_v, W_o = weights
    pieces = [m.split(m.shape[1] // h, dim=1) for m in (W_q, W_k, W_v)]
    rows = W_o.split(W_o.shape[0] // h, dim=0)
    return sum(
        F.scaled_dot_product_attention(q @ a, k @ b, v @ c) @ row
        for a, b, c, row in zip(*pieces, rows, strict=True)
    )


def _by_einsum(q, k, v, weights, h):
    W_q, W_k, W_v, W_o = (w.double() for w in weights)
    per_head = [w.reshape(w.shape[0], h, -1) for w in (W_q, W_k, W_v)]
    q, k, v = (
        torch.einsum("btd,dhe->bhte", x.double(), w)
        for x, w in zip((q, k, v), per_head, strict=True)
    )
    attention = (torch.einsum("bhqe,bhke->bhqk", q, k) / q.shape[-1] ** 0.5).softmax(-1)
    return torch.einsum("bhqk,bhke,hed->bqd", attention, v, W_o.reshape(h, -1, W_o.shape[1]))


def _by_torch(q, k, v, weights, h):
    d = q.shape[-1]
    layer = nn.MultiheadAttention(d, h, bias=False, batch_first=True)
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.cat([w.T for w in weights[:3]]))
        layer.out_proj.weight.copy_(weights[3].T)
    return layer(q, k, v, need_weights=False)[0]


_LAYER_MISTAKES = [
    *_SPLIT_MISTAKES,
    wrong(
        "features are dealt out to the heads in turn, and back",
        "head layout",
        "This holds together, but the columns of W_q, W_k and W_v belong to other heads then: head "
        "0 gets the first d_head features, head 1 the next.",
        layout="interleaved",
        joined="interleaved",
    ),
    *_MERGE_MISTAKES,
    wrong(
        "heads are split and joined by a view alone",
        "head layout",
        "view(B, h, T, d_head) gives a head pieces of several tokens, and the way back does not "
        "mend it: view as (B, T, h, d_head), swap axes 1 and 2, and swap back before joining.",
        layout="viewed",
        joined="without transpose",
    ),
    wrong(
        "the heads are not split",
        "head layout",
        "One wide head attends with all features; split d_model into num_heads pieces first.",
        layout="one head",
    ),
    wrong(
        "the scores are not scaled",
        "scale",
        "Divide the dot products by the square root of d_head.",
        scale="none",
    ),
    wrong(
        "scaled by d_model, not by d_head",
        "scale",
        "The dot products run over d_head entries, so the square root of d_head is due.",
        scale="d_model",
    ),
    wrong(
        "the scores are divided by d_head, not by its root",
        "scale",
        "The spread of a dot product is the square root of its size.",
        scale="root twice",
    ),
    wrong(
        "the softmax runs over the queries",
        "softmax axis",
        "Each query shares out its own weight over the keys, the last axis.",
        axis=-2,
    ),
    wrong(
        "the softmax runs over the heads",
        "softmax axis",
        "Heads attend independently; the softmax runs over the keys, the last axis.",
        axis=1,
    ),
    wrong(
        "the last projection is missing",
        "projection",
        "The joined heads still go through W_o, which mixes them.",
        out=False,
    ),
    wrong(
        "scaled by the number of queries",
        "scale",
        "What counts is the size of a query in one head, its last axis, not how many there are.",
        scale="number of queries",
    ),
    wrong(
        "scaled by the number of keys",
        "scale",
        "What counts is the size of a key in one head, its last axis, not how many there are.",
        scale="number of keys",
    ),
    wrong(
        "scaled by the number of heads",
        "scale",
        "The dot products run over d_head = d_model / h entries; their root is due.",
        scale="number of heads",
    ),
    wrong(
        "the scores are multiplied by the root",
        "scale",
        "They must be divided: the larger d_head, the larger dot products already are.",
        scale="inverse",
    ),
    wrong(
        "the weights are scaled, not the scores",
        "scale",
        "After the softmax it is too late: the rows no longer sum to 1.",
        normalise="then divided",
        scale="none",
    ),
    SOFTMAX_TWICE,
    SOFTMAX_OF_THE_MAP,
    wrong(
        "the values are made of the keys",
        "role of q, k, v",
        "W_v is applied to the values; only where keys and values are the same is that alike.",
        source="values of keys",
    ),
    wrong(
        "the keys are made of the values",
        "role of q, k, v",
        "W_k is applied to the keys; only where keys and values are the same is that alike.",
        source="keys of values",
    ),
    wrong(
        "keys and values are exchanged",
        "role of q, k, v",
        "Keys are compared with the queries, values are mixed.",
        source="keys and values exchanged",
    ),
    wrong(
        "the queries are added to the result",
        "residual",
        "A residual connection belongs to the block around attention, not here.",
        out="added",
    ),
    wrong(
        "keys and values are cut as if there were as many as queries",
        "head layout",
        "Queries may be fewer or more than keys: take the number of steps from what is cut, "
        "x.shape[1].",
        {"layout": "size left open"},
        steps="of the queries",
        layout="right",
    ),
]


def _matrices(seed, d_model):
    return draw(seed, *[(d_model, d_model)] * 4, scale=0.7)


@exercise(
    notebook=NOTEBOOK,
    minutes=20,
    difficulty=3,
    trains="multi-head attention from first to last line",
    text="""
    All of it: project, split, attend in every head, merge, mix. The four matrices are given; apply
    them from the right, `queries @ W_q`.
    """,
    reference=_multi_head,
    probes=[
        (*draw(61, (1, 1, 4), (1, 2, 4), (1, 2, 4)), _matrices(62, 4), 2),
        (*draw(63, (2, 3, 6), (2, 5, 6), (2, 5, 6)), _matrices(64, 6), 2),
        (*draw(65, (1, 2, 6), (1, 4, 6), (1, 4, 6)), _matrices(66, 6), 3),
    ],
    mistakes=[
        *_LAYER_MISTAKES,
        wrong(
            "q, k and v share one weight",
            "sharing",
            "Queries, keys and values are all projected with W_q.",
            {"shared": "all"},
            shared="qkv",
        ),
        wrong(
            "each head projects its own slice of the features",
            "projection",
            "Every head reads all the features: project first, then split.",
            project="slices",
        ),
        wrong(
            "queries and keys share one weight",
            "sharing",
            "Both are projected with W_q; the keys have W_k.",
            shared="qk",
        ),
        wrong(
            "keys and values share one weight",
            "sharing",
            "Both are projected with W_k; the values have W_v.",
            shared="kv",
        ),
        wrong(
            "two of the matrices are exchanged",
            "projection",
            "The order of the weights is W_q, W_k, W_v, W_o.",
            {"shared": "q and k exchanged"},
            shared="k and v exchanged",
        ),
        wrong(
            "the queries or the keys are not projected",
            "projection",
            "Queries go through W_q and keys through W_k before the heads are split.",
            {"project": "not k"},
            project="not q",
        ),
        wrong(
            "there is no softmax",
            "normalisation",
            "Scores are no weights: a softmax makes them positive, and each row sum to 1.",
            normalise="never",
            axis=-1,
        ),
        wrong(
            "the values are not projected",
            "projection",
            "Values go through W_v before the heads are split.",
            project="queries and keys",
        ),
        wrong(
            "the matrices are transposed",
            "projection",
            "Here they are applied as x @ W; nn.Linear stores the transpose of that.",
            {"order": "not W_o"},
            order="xWT",
        ),
        wrong(
            "W_o is transposed",
            "projection",
            "Here it is applied as joined @ W_o; nn.Linear stores the transpose of that.",
            order="W_o",
        ),
    ],
    hints=[
        "You have all the parts: into_heads, scaled attention, from_heads. In which order?",
        "Project before you split: one matrix product serves all heads.",
        "The scores of all heads are one @ of (B, h, Tq, e) and (B, h, e, Tk); e = d_model / h.",
        "After merging comes W_o.",
    ],
    right_variants=[_head_by_head, _by_einsum, _by_torch],
)
def multi_head(queries, keys, values, weights, num_heads):
    """Multi-head attention without a mask.

    queries: (B, Tq, d_model), keys and values: (B, Tk, d_model),
    weights: (W_q, W_k, W_v, W_o), each (d_model, d_model). Returns (B, Tq, d_model).
    """
    W_q, W_k, W_v, W_o = weights

    def split(x):
        return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)  # (B, h, T, d_head)

    q, k, v = split(queries @ W_q), split(keys @ W_k), split(values @ W_v)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, h, Tq, Tk)
    heads = torch.softmax(scores, dim=-1) @ v  # (B, h, Tq, d_head)
    return heads.transpose(1, 2).flatten(2) @ W_o


class _Layer(nn.Module):
    """The switchable layer: each class attribute is a switch."""

    made = "four"
    biased = False
    mask = "keys"
    meaning = "look"
    layout = joined = "right"
    scale = "d_head"
    source = "own"
    normalise = "once"
    axis = -1
    out = True
    graph = "kept"
    empty = "zero"
    steps = "own"
    swept = False  # the weights of hidden keys are set to 0 once more

    def __init__(self, d_model, num_heads):
        if self.made != "before the module":
            super().__init__()
        self.num_heads = num_heads

        def linear():
            if self.made == "no sizes":
                return nn.Linear()
            size = d_model // (num_heads if self.made == "narrow" else 1)
            return nn.Linear(d_model, size, bias=self.biased)

        if self.made == "before the module":
            self.map = linear()
        elif self.made == "plain list":
            self.maps = [linear() for _ in range(4)]
        elif self.made == "one in a plain list":
            self.maps = [linear()] * 4
        elif self.made == "shared":
            self.maps = nn.ModuleList([linear()] * 4)
        else:
            count = 3 if self.made == "three" else 4
            self.maps = nn.ModuleList(linear() for _ in range(count))

    def forward(self, *args):
        with torch.set_grad_enabled(self.graph == "kept"):
            return self.attend(*args)

    def attend(self, queries, keys, values, real_keys):
        W_q, W_k, W_v, W_o = (*self.maps, None)[:4]
        joined_queries = queries
        if self.meaning == "hide throughout":
            real_keys = ~real_keys
        queries, keys, values = _SOURCES[self.source](queries, keys, values)
        heads = 1 if self.layout == "one head" else self.num_heads
        layout = "right" if self.layout == "one head" else self.layout
        if self.mask == "values":
            values = values.masked_fill(self._hidden(real_keys), 0.0)
        steps = queries.shape[1] if self.steps == "of the queries" else None
        q, k, v = (
            _split(linear(x), heads, layout=layout, steps=steps)
            for linear, x in ((W_q, queries), (W_k, keys), (W_v, values))
        )
        scores = q @ k.mT / _divisor(self.scale, q, k, heads)
        if self.mask == "zero":
            scores = scores * ~self._hidden(real_keys)
        elif self.mask in NOT_LOW:
            scores = lowered(scores, self._hidden(real_keys), self.mask)
        elif self.mask not in ("none", "values", "behind the maximum"):
            scores = scores.masked_fill(self._hidden(real_keys), -1e9)
        weights = _weights(scores, self.normalise, self.axis, q.shape[-1])
        if self.mask == "behind the maximum":
            weights = (scores - scores.amax(-1, keepdim=True)).exp() * ~self._hidden(real_keys)
            weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-30)
        blind = ~real_keys.any(-1)[:, None, None, None]
        if self.empty == "zero" and self.mask == "keys":
            weights = weights.masked_fill(blind, 0.0)
        elif self.empty == "NaN":
            weights = weights.masked_fill(blind, math.nan)
        if self.swept:
            weights = weights.masked_fill(self._hidden(real_keys), 0.0)
        merged = _merge(weights @ v, joined=self.joined)
        y = W_o(merged) if self.out and W_o is not None else merged
        return joined_queries + y if self.out == "added" else y

    def _hidden(self, real_keys):
        hidden = real_keys if self.meaning == "hide" else ~real_keys
        return {
            "tiled": hidden.repeat(self.num_heads, 1).view(len(hidden), -1, 1, hidden.shape[1]),
            "as it is": hidden,
            "one axis": hidden[:, None],
            "queries": hidden[:, None, :, None],
            "values": hidden[:, :, None],
        }.get(self.mask, hidden[:, None, None])


def play_layer(answer, d_model, num_heads, queries, keys, values, real_keys):
    """Build the learner's layer, give it known weights, and run it."""
    layer = answer(d_model, num_heads).eval()
    named = dict(layer.named_parameters())
    matrices = [p for p in named.values() if p.dim() == 2]
    usual = [f"W_{x}.weight" for x in "qkvo"]
    if len(matrices) == 4 and all(name in named for name in usual):
        matrices = [named[name] for name in usual]
    outcome = {"matrices": len(matrices), "biases": sum(p.dim() == 1 for p in named.values())}
    if any(p.shape != (d_model, d_model) for p in matrices):
        return outcome | {"sizes": "others than d_model x d_model"}
    with torch.no_grad():
        for p in named.values():
            p.zero_()
        for p, known in zip(matrices, _matrices(67, d_model), strict=False):
            p.copy_(known)
    if matrices:
        output = layer(queries, keys, values, real_keys)
        outcome["trains"] = bool(
            getattr(output, "requires_grad", False) or not real_keys.any()
        )  # without a real key the result is zeros, whatever the weights
        outcome["output"] = output
    return outcome


class _ThreeInOne(nn.Module):
    """A right variant: named attributes, made in another order, weights applied by hand."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.h = num_heads
        self.W_o = nn.Linear(d_model, d_model, bias=False)
        self.W_v = nn.Linear(d_model, d_model, bias=False)
        self.W_k = nn.Linear(d_model, d_model, bias=False)
        self.W_q = nn.Linear(d_model, d_model, bias=False)

    def forward(self, q, k, v, keep):
        q, k, v = (
            torch.stack(f(x).chunk(self.h, dim=-1), dim=1)
            for f, x in ((self.W_q, q), (self.W_k, k), (self.W_v, v))
        )
        heads = F.scaled_dot_product_attention(q, k, v, attn_mask=keep.view(len(keep), 1, 1, -1))
        heads = heads.masked_fill(~keep.any(-1)[:, None, None, None], 0.0)
        return self.W_o(torch.cat(heads.unbind(1), dim=-1))


class _OneHeadAfterTheOther(nn.Module):
    """A right variant: a ModuleList and a loop over the heads."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.linears = nn.ModuleList(nn.Linear(d_model, d_model, bias=False) for _ in range(4))

    def forward(self, queries, keys, values, real_keys):
        maps = (f(x) for f, x in zip(self.linears, (queries, keys, values), strict=False))
        heads = []
        for q, k, v in zip(
            *(x.split(x.shape[-1] // self.num_heads, -1) for x in maps), strict=True
        ):
            scores = torch.bmm(q, k.transpose(1, 2)) / q.shape[-1] ** 0.5
            scores[~real_keys[:, None].expand_as(scores)] = float("-inf")
            heads.append(torch.bmm(scores.softmax(2).nan_to_num(), v))
        return self.linears[3](torch.cat(heads, 2))


class _OfTheLibrary(nn.Module):
    """A right variant: parameters instead of layers, einsum instead of reshapes."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.h = num_heads
        for name in "qkvo":
            self.register_parameter(name, nn.Parameter(torch.empty(d_model, d_model)))

    def forward(self, queries, keys, values, real_keys):
        out = _by_einsum_masked(
            queries, keys, values, (self.q.T, self.k.T, self.v.T, self.o.T), self.h, real_keys
        )
        return out.float()


def _by_einsum_masked(q, k, v, weights, h, keep):
    q, k, v = (_split(x @ w, h) for x, w in zip((q, k, v), weights[:3], strict=True))
    scores = torch.einsum("bhqe,bhke->bhqk", q, k) / math.sqrt(q.shape[-1])
    keep = keep[:, None, None]
    shares = torch.where(keep, scores, torch.tensor(-1e30)).softmax(-1) * keep
    return _merge(shares @ v) @ weights[3]


def _low_scores(seed):
    """Queries, keys and values such that key 0 gets scores below -30,000 in both heads."""
    W_q, W_k = _matrices(67, 6)[:2]  # what the layer gets for its maps in `play_layer`
    keys, values = draw(seed, (1, 4, 6), (1, 4, 6))
    against_key_0 = -(keys[:, :1] @ W_k.T @ W_q.T.inverse()).round(decimals=2)
    return torch.cat([against_key_0, 1.5 * against_key_0], dim=1), 1e5 * keys, values


_ROWS = [[1, 1, 1, 0, 0], [1, 0, 0, 0, 0], [1, 1, 1, 1, 0]]
_EMPTY = [[1, 1, 0, 0], [0, 0, 0, 0]]
_REAL = [torch.tensor(rows).bool() for rows in ([[1, 1, 1, 0]], _ROWS, _EMPTY)]


@exercise(
    kind="class",
    notebook=NOTEBOOK,
    minutes=25,
    difficulty=3,
    trains="the layer, and the usual mistakes",
    text="""
    The layer from memory, with padding: `real_keys` is True where a key is a real token. Make four
    `nn.Linear` maps, for queries, keys, values and output, in this order (or call them `W_q`,
    `W_k`, `W_v`, `W_o`). A sentence without any real key gets zeros, not NaN. All mistakes
    of this chapter are known here.
    """,
    reference=_Layer,
    play=play_layer,
    probes=[
        (6, 2, *draw(68, (1, 2, 6), (1, 4, 6), (1, 4, 6)), _REAL[0]),
        (6, 2, *draw(69, (3, 5, 6), (3, 5, 6), (3, 5, 6)), _REAL[1]),
        (6, 3, *draw(70, (3, 4, 6), (3, 5, 6), (3, 5, 6)), _REAL[1]),
        (6, 2, *_low_scores(71), torch.tensor([[True, False, False, False]])),
        (6, 2, *draw(72, (2, 3, 6), (2, 4, 6), (2, 4, 6)), _REAL[2]),
    ],
    mistakes=[
        wrong(
            "nn.Linear is made without its sizes",
            "projection",
            "nn.Linear(d_model, d_model): it needs the size of its input and of its output.",
            made="no sizes",
        ),
        wrong(
            "one Linear is used four times",
            "sharing",
            "[nn.Linear(...)] * 4 repeats one and the same layer; make four with a comprehension.",
            made="shared",
        ),
        wrong(
            "the layers are hidden in a plain list",
            "sharing",
            "A plain list registers no parameters, so nothing would be trained: use nn.ModuleList.",
            {"made": "one in a plain list"},
            made="plain list",
        ),
        wrong(
            "super().__init__() is not called first",
            "sharing",
            "It makes the place where layers are registered: call it before the first nn.Linear.",
            made="before the module",
        ),
        wrong(
            "the maps are not of size d_model x d_model",
            "projection",
            "nn.Linear(d_model, d_model), four times: each map serves all heads and one role.",
            made="narrow",
        ),
        wrong(
            "the maps have biases",
            "projection",
            "The maps of this layer are matrices alone: nn.Linear(d_model, d_model, bias=False).",
            biased=True,
        ),
        wrong(
            "the output has lost its gradient",
            "gradient",
            "With no_grad, detach or .data inside forward no weight of the layer is trained.",
            graph="cut",
        ),
        *_LAYER_MISTAKES,
        wrong(
            "the last projection is missing",
            "projection",
            "There is no fourth map; the joined heads still go through one that mixes them.",
            made="three",
        ),
        wrong(
            "the mask is not lined up with the scores",
            "mask axis",
            "A mask (B, Tk) must become (B, 1, 1, Tk) before it meets scores (B, h, Tq, Tk).",
            {"mask": "one axis"},
            mask="as it is",
        ),
        wrong(
            "mask applied to rows, not columns",
            "mask axis",
            "Padding hides keys, the last axis of the scores, not queries.",
            mask="queries",
        ),
        wrong(
            "the mask is inverted",
            "mask meaning",
            "real_keys is True where a key may be looked at.",
            {"meaning": "hide throughout", "empty": "NaN"},
            {"meaning": "hide"},
            meaning="hide throughout",
        ),
        wrong(
            "the padding is not hidden",
            "mask missing",
            "real_keys is not used: padding takes its share of the weight.",
            mask="none",
        ),
        wrong(
            "a sentence without real keys does not get zeros",
            "empty row",
            "With -inf its softmax is NaN, with -1e9 it is even; set its weights to 0 afterwards.",
            {"empty": "NaN"},
            empty="even",
        ),
        wrong(
            "values or weights of padding are set to 0, its scores are not hidden",
            "mask timing",
            "Padding still takes its share of the weight, so the real keys' weights sum to less "
            "than 1: hide the scores.",
            mask="values",
        ),
        wrong(
            "hidden scores are set to 0",
            "mask timing",
            "A score of 0 is an ordinary score, exp(0) = 1; it must be very negative to vanish.",
            mask="zero",
        ),
        wrong(
            "the maximum is taken over hidden scores, too",
            "mask timing",
            "Where padding has a far higher score, exp of all real ones is 0: hide the scores "
            "first, then take the maximum.",
            mask="behind the maximum",
            axis=-1,
            normalise="once",
            empty="zero",
        ),
        wrong(
            "the softmax runs over the queries",
            "softmax axis",
            "Each query shares out its own weight over the keys, the last axis.",
            axis=-2,
            swept=True,
        ),
        wrong(
            "the softmax runs over the heads",
            "softmax axis",
            "Heads attend independently; the softmax runs over the keys, the last axis.",
            axis=1,
            swept=True,
        ),
        not_low_enough("mask", "at -1", "at -100", "at -10000"),
        not_low_enough("mask", "by 10000", axis=-1),
        wrong(
            "the mask is tiled over the heads in the wrong order",
            "head layout",
            "In (B·h, ...) all heads of one sentence stand together: repeat_interleave, not "
            "repeat.",
            mask="tiled",
        ),
    ],
    hints=[
        "In __init__: super().__init__(), the number of heads, and four maps made one by one.",
        "forward is multi_head with maps instead of matrices, and one line more.",
        "The extra line hides scores: real_keys[:, None, None] lines up with (B, h, Tq, Tk).",
    ],
    right_variants=[_ThreeInOne, _OneHeadAfterTheOther, _OfTheLibrary],
)
class TinyMultiHead(nn.Module):
    """Multi-head attention with its own weights and a padding mask."""

    def __init__(self, d_model, num_heads):
        """Four maps d_model -> d_model without bias: W_q, W_k, W_v, W_o."""
        super().__init__()
        self.num_heads = num_heads
        self.W_q = nn.Linear(d_model, d_model, bias=False)
        self.W_k = nn.Linear(d_model, d_model, bias=False)
        self.W_v = nn.Linear(d_model, d_model, bias=False)
        self.W_o = nn.Linear(d_model, d_model, bias=False)

    def forward(self, queries, keys, values, real_keys):
        """queries: (B, Tq, d_model), keys and values: (B, Tk, d_model), real_keys: (B, Tk) boolean.

        Returns (B, Tq, d_model).
        """
        q, k, v = (
            x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)  # (B, h, T, d_head)
            for x in (self.W_q(queries), self.W_k(keys), self.W_v(values))
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, h, Tq, Tk)
        hidden = ~real_keys[:, None, None]  # (B, 1, 1, Tk)
        weights = scores.masked_fill(hidden, torch.finfo(scores.dtype).min).softmax(-1)
        heads = weights.masked_fill(hidden, 0.0) @ v  # (B, h, Tq, d_head)
        return self.W_o(heads.transpose(1, 2).flatten(2))


def _parameters(*, kinds=3, heads=4, size=16, out=64 * 64, biased=False):
    """Of multi-head attention with d_model = 64: maps of each head, then W_o."""
    biases = kinds * heads * size + 64 * (out > 0)
    return kinds * heads * 64 * size + out + biased * biases


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=2,
    difficulty=1,
    trains="counting parameters",
    text="""
    How many parameters has multi-head attention with `d_model=64` and 4 heads, without biases?
    """,
    mistakes=[
        *worked_out(
            _parameters,
            wrong(
                "W_o is forgotten",
                "counting",
                "Besides W_q, W_k and W_v there is a fourth matrix after the heads are joined.",
                out=0,
            ),
            wrong(
                "W_o is given the size of one head",
                "counting",
                "W_o reads the joined heads, 4 · 16 = 64 features, and gives 64: it is 64 x 64.",
                out=16 * 64,
            ),
            wrong(
                "every head is given full-size matrices",
                "counting",
                "A head maps 64 to 64 / 4 = 16 features; all heads together make one 64 x 64 "
                "matrix.",
                {"out": 4 * 64 * 64},
                size=64,
            ),
            wrong(
                "only one head is counted",
                "counting",
                "64 x 16 is the share of one head; there are 4.",
                heads=1,
            ),
            wrong(
                "queries, keys and values are given one matrix",
                "counting",
                "Queries, keys and values have a matrix each.",
                kinds=1,
            ),
            wrong(
                "biases are counted",
                "counting",
                "They would add 64 for each matrix, but there are none.",
                biased=True,
            ),
        ),
        wrong(
            "one matrix is counted",
            "counting",
            "64 x 64 is one projection; queries, keys, values and output each have one.",
            answer=64 * 64,
        ),
    ],
    hints=[
        "Does the count depend on the number of heads at all?",
        "Four heads that map 64 to 16 each are one matrix that maps 64 to 64.",
        "Queries, keys, values, output: how many such matrices?",
    ],
)
def multi_head_parameters():
    """Parameters of multi-head attention with d_model = 64 and 4 heads, no biases:"""
    return 4 * 64 * 64


def _mirror(num_words, num_places, *, to="mirror", reads="place", hands="word", factor=1000.0):
    words, places = torch.eye(num_words), torch.eye(num_places)
    no_words, no_places = torch.zeros(num_words, num_places), torch.zeros(num_places, num_words)
    asks_for = {
        "itself": places,
        "next": places.roll(1, 1),
        "previous": places.roll(-1, 1),
        "off by one": places.flip(0).roll(1, 1),
        "off by one, place 0 nowhere": places.flip(0).roll(1, 1)
        * (torch.arange(num_places) > 0)[:, None],
        "first": places[:1].expand(num_places, -1),
    }.get(to, places.flip(0))
    if reads == "word":
        W_q = W_k = torch.cat([words, no_places])
        W_q = factor * W_q
    else:
        rows = (
            (lambda x: torch.cat([x, no_words]))
            if reads == "first rows"
            else (lambda x: torch.cat([no_words, x]))
        )
        W_q, W_k = factor * rows(asks_for), rows(places)
    place, word = torch.cat([no_words, places]), torch.cat([words, no_places])
    W_v = {
        "place": place,
        "both": torch.eye(num_words + num_places),
        "last rows": torch.cat([no_places, words]),
    }.get(hands, word)
    return W_q, W_k, W_v


def play_mirror(answer, num_words, num_places, ids):
    """Run the head that the learner's matrices make on one sentence."""
    W_q, W_k, W_v = (W.double() for W in answer(num_words, num_places))
    x = torch.cat([F.one_hot(ids, num_words), torch.eye(num_places)], dim=1).double()
    weights = torch.softmax((x @ W_q) @ (x @ W_k).T / math.sqrt(W_q.shape[1]), dim=-1)
    even = weights.amax(-1) - weights.amin(-1) < 1e-6  # such a place looks nowhere, -1
    sharp = bool((weights.amax(-1) > 0.99)[~even].all()) and not bool(even.all())
    looks_at = torch.where(even, -1, weights.argmax(-1))
    return {"looks at": looks_at, "sharp": sharp, "hands over": x @ W_v}


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=2,
    trains="setting a head by hand",
    text="""
    A palindrome reads the same from both ends. To test for one, each token must see its mirror
    image: of T tokens, the one at place p looks at place T - 1 - p. Set the matrices of such a
    head. A token is a row of `num_words + num_places` numbers: which word it is, then at which
    place it stands, both one-hot. The head hands over the word; its weights must exceed 0.99.
    """,
    reference=_mirror,
    play=play_mirror,
    probes=[
        (5, 4, torch.tensor([0, 3, 4, 1])),
        (4, 5, torch.tensor([1, 3, 0, 1, 2])),
        (6, 6, torch.tensor([2, 2, 0, 5, 0, 1])),
        (3, 24, torch.arange(24) % 5 % 3),
    ],
    mistakes=[
        wrong(
            "each token looks at itself",
            "role of q, k, v",
            "The query names its own place; it has to name the mirror image of that place.",
            to="itself",
        ),
        wrong(
            "each token looks at a neighbour",
            "role of q, k, v",
            "That is a head with an offset; here the distance differs from place to place.",
            {"to": "previous"},
            to="next",
        ),
        wrong(
            "the mirror image is off by one",
            "off by one",
            "Places count from 0, so the mirror image of place 0 is T - 1.",
            {"to": "off by one, place 0 nowhere"},
            to="off by one",
        ),
        wrong(
            "every token looks at the first place",
            "role of q, k, v",
            "Each query names a place of its own, so its rows in W_q differ.",
            to="first",
        ),
        wrong(
            "queries and keys read the word",
            "role of q, k, v",
            "Who stands there does not matter: the numbers of the place have to be compared.",
            reads="word",
        ),
        wrong(
            "the head hands over the place",
            "role of q, k, v",
            "W_v decides what is handed over: the numbers of the word, not those of the place.",
            hands="place",
        ),
        wrong(
            "the head hands over word and place",
            "role of q, k, v",
            "Only the word is asked for, num_words numbers.",
            hands="both",
        ),
        wrong(
            "the weights are not sharp",
            "scale",
            "A lead of 1, divided by the root of the columns, is little for a softmax: make the "
            "queries larger.",
            factor=1.0,
        ),
        wrong(
            "the weights are sharp for few places only",
            "scale",
            "Scores are divided by the root of the number of columns, and more places share "
            "the weight: what does for 6 places is too little for 24.",
            factor=20.0,
        ),
        wrong(
            "W_q and W_k read the wrong rows",
            "role of q, k, v",
            "The word stands first, then the place: their first num_words rows are zero.",
            reads="first rows",
        ),
        wrong(
            "W_v reads the wrong rows",
            "role of q, k, v",
            "The word stands first: its numbers are handed over by the first num_words rows.",
            hands="last rows",
        ),
    ],
    hints=[
        "Each matrix has num_words + num_places rows. Which of them must be zero in W_q and W_k?",
        "W_k may say 'I stand at place p', one column a place. Which place must row p of W_q name?",
        "torch.eye(n).flip(0) has its ones on the other diagonal; torch.cat stacks rows.",
    ],
    right_variants=[
        lambda w, n: (
            torch.cat([torch.zeros(w, n), 50.0 * torch.eye(n)]),
            torch.cat([torch.zeros(w, n), torch.eye(n).flip(1)]),
            torch.eye(w + n)[:, :w],
        ),
        lambda w, n: (
            torch.cat([torch.zeros(w, n), 30.0 * (2 * torch.eye(n).flip(0) - 1)]),
            torch.cat([torch.zeros(w, n), torch.eye(n)]),
            torch.cat([torch.eye(w), torch.zeros(n, w)]),
        ),
        lambda w, n: (
            F.pad(20.0 * torch.eye(n).flip(0), (0, 0, w, 0)),
            F.pad(20.0 * torch.eye(n), (0, 0, w, 0)),
            F.pad(torch.eye(w), (0, 0, 0, n)),
        ),
    ],
)
def mirror_head(num_words, num_places):
    """The matrices of a head by which place p looks at place num_places - 1 - p.

    Returns W_q, W_k and W_v, each with num_words + num_places rows; W_q and W_k have as many
    columns as each other, W_v has num_words.
    """
    places = torch.eye(num_places)
    no_words, no_places = torch.zeros(num_words, num_places), torch.zeros(num_places, num_words)
    W_q = 50 * num_places * torch.cat([no_words, places.flip(0)])
    W_k = torch.cat([no_words, places])
    W_v = torch.cat([torch.eye(num_words), no_places])
    return W_q, W_k, W_v


def _written(heads, W_o, *, rows="blocks", shape="per head", divided=False):
    h, d_head = heads.shape[1], heads.shape[3]
    if rows == "columns":
        blocks = W_o.T.reshape(h, d_head, -1)
    elif rows == "dealt out":
        blocks = W_o.reshape(d_head, h, -1).transpose(0, 1)
    else:
        blocks = W_o.reshape(h, d_head, -1)  # (h, d_head, d_model)
    if rows == "first":
        blocks = blocks[:1].expand(h, -1, -1)
    written = heads @ blocks / (h if divided else 1)  # (B, h, T, d_model)
    if shape == "summed":
        return written.sum(1)
    if shape == "even":
        return written.mean(1, keepdim=True).expand_as(written)
    if shape == "whole":
        return written.sum(1, keepdim=True).expand_as(written)
    if shape == "heads last":
        return written.transpose(1, 2)
    return written


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=3,
    trains="what each head adds to the output",
    text="""
    The output of the layer is a sum of what its heads write. Take it apart: given what the heads
    have found, before they are joined, and the matrix `W_o` that is applied as `joined @ W_o`,
    return what each head adds. The sum over the heads must be the output of the layer.
    """,
    reference=_written,
    probes=[
        (*draw(73, (1, 2, 3, 2), (4, 4)),),
        (*draw(74, (2, 3, 4, 2), (6, 6)),),
        (*draw(75, (2, 2, 3, 3), (6, 5)),),
    ],
    mistakes=[
        wrong(
            "the rows of W_o are dealt out to the heads in turn",
            "head layout",
            "Joined, head 0 comes first: the first d_head rows of W_o are its rows.",
            rows="dealt out",
        ),
        wrong(
            "the columns of W_o are shared out, not its rows",
            "head layout",
            "joined @ W_o: a number of `joined` meets a row of W_o.",
            rows="columns",
        ),
        wrong(
            "every head goes through the rows of head 0",
            "projection",
            "Each head has its own d_head rows of W_o.",
            rows="first",
        ),
        wrong(
            "the contributions are already added up",
            "head merging",
            "That is the output of the layer; keep the axis of the heads: (B, h, T, d_model).",
            shape="summed",
        ),
        wrong(
            "every head gets an equal share of the output",
            "head merging",
            "Heads do not write equal parts; multiply each by its own rows of W_o.",
            shape="even",
            divided=False,
        ),
        wrong(
            "every head gets the whole output",
            "head merging",
            "Then the sum over the heads is h times too large.",
            shape="whole",
            divided=False,
        ),
        wrong(
            "heads and positions are exchanged",
            "head merging",
            "The result is (B, T, h, d_model); the heads stay in front of the positions.",
            shape="heads last",
        ),
        wrong(
            "what the heads write is divided by their number",
            "averaging",
            "The output is the sum of the heads, not their mean.",
            divided=True,
        ),
    ],
    hints=[
        "Write joined @ W_o as a sum over the numbers of `joined`. Which rows does head 0 meet?",
        "Cut W_o into h blocks of d_head rows: (h, d_head, d_model).",
        "A matrix product works on the last two axes; what stands in front must line up.",
    ],
    right_variants=[
        lambda y, W: torch.einsum("bhte,hed->bhtd", y, W.unflatten(0, (y.shape[1], -1))),
        lambda y, W: torch.stack(
            [p @ r for p, r in zip(y.unbind(1), W.split(y.shape[3]), strict=True)], dim=1
        ),
        lambda y, W: torch.stack(
            [
                (y * F.one_hot(torch.tensor(i), y.shape[1]).view(1, -1, 1, 1))
                .transpose(1, 2)
                .flatten(2)
                @ W
                for i in range(y.shape[1])
            ],
            dim=1,
        ),
    ],
)
def written_by_heads(heads, W_o):
    """What each head adds to the output of the layer.

    heads: (B, h, T, d_head), W_o: (h * d_head, d_model). Returns (B, h, T, d_model).
    """
    rows = W_o.unflatten(0, (heads.shape[1], -1))  # (h, d_head, d_model)
    return heads @ rows


@exercise(
    kind="value",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=4,
    difficulty=2,
    trains="reading a layout off its numbers",
    text="""
    To test a colleague's code for two heads, you number the features of three tokens: token 0
    holds 0, 1, 2, 3, token 1 holds 10, 11, 12, 13, and token 2 holds 20, 21, 22, 23. After the
    split, the heads hold

    | | token 0 | token 1 | token 2 |
    |---|---|---|---|
    | **head 0** | 0, 2 | 10, 12 | 20, 22 |
    | **head 1** | 1, 3 | 11, 13 | 21, 23 |

    What happened? `"a"`: it is right. `"b"`: a view to (B, h, T, d_head), without a transpose.
    `"c"`: the features went to the heads in turn. `"d"`: the heads stand behind the tokens.
    """,
    mistakes=[
        wrong(
            "the layout is taken for the right one",
            "head layout",
            "Right is 0, 1 for head 0 and 2, 3 for head 1: the first d_head features, then the "
            "next.",
            answer="a",
        ),
        wrong(
            "tokens are taken to be mixed",
            "head layout",
            "Each head holds all three tokens here, so nothing was cut along the tokens.",
            answer="b",
        ),
        wrong(
            "heads and tokens are taken to be exchanged",
            "head layout",
            "The first axis has two entries with three tokens each, so the heads stand in front.",
            answer="d",
        ),
    ],
    hints=[
        "Does each head see all tokens? That decides between a mix of tokens and one of features.",
        "Which features of token 0 should head 0 get?",
        "view(B, T, d_head, h) instead of view(B, T, h, d_head): what would that give?",
    ],
)
def layout_mistake():
    """The letter of what happened to the features"""
    return "c"


@exercise(
    kind="value",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=6,
    difficulty=2,
    trains="what a linear reader makes of two heads",
    text="""
    Every guest shall name three people: L on the left, O opposite, and R on the right. Two heads
    are set by hand: head 0 hands over half of L's name and half of O's, head 1 half of O's and half
    of R's. A linear reader scores each name with a · (its amount in head 0) + b · (its amount in
    head 1). With which a and b does L get the highest score of all names? `"a"`: a = 1, b = 0.
    `"b"`: a = 1, b = 1. `"c"`: a = 1, b = -1. `"d"`: a = -1, b = 1.
    """,
    mistakes=[
        wrong(
            "head 0 alone is taken to tell L from O",
            "head layout",
            "In head 0 both come in the same amount, so their scores are equal.",
            answer="a",
        ),
        wrong(
            "the sum of both heads is taken to favour L",
            "head layout",
            "O comes in both heads, so the sum names O.",
            answer="b",
        ),
        wrong(
            "the roles of the two heads are exchanged",
            "head layout",
            "L stands in head 0; a negative number there lowers its score.",
            answer="d",
        ),
    ],
    hints=[
        "Write down both amounts for L, for O, for R, and for somebody not looked at.",
        "O stands in both heads and L in one. How can the second head be used against O?",
        "Compute four scores for each choice; somebody not looked at always gets 0.",
    ],
)
def reader_of_two_heads():
    """The letter of the reader that names the person on the left"""
    return "c"
