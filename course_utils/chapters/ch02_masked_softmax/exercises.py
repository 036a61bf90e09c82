"""Exercises of notebook 02: masks, and a softmax that respects them."""

import math

import torch

from course_utils.checker.common import (
    DIVIDED_AGAIN,
    KEPT,
    NOT_LOW,
    lowered,
    not_low_enough,
    not_shifted,
    softmax_of_hidden,
)
from course_utils.checker.exercise import exercise, wrong
from course_utils.checker.probes import as_asked, draw, far_below

NOTEBOOK = "02_masked_softmax"
_AXES = {"keys": -1, "queries": -2, "batch": 0}


def _padding(tokens, pad, *, meaning="look", axis="keys", heads=True, compare="pad", dtype=None):
    mask = {
        "pad": tokens != pad,
        "zero": tokens != 0,
        "larger": tokens > pad,
        "smaller": tokens < pad,
        "length": torch.arange(tokens.shape[1]) < (tokens != pad).sum(1, keepdim=True),
        "count of padding": torch.arange(tokens.shape[1]) < (tokens == pad).sum(1, keepdim=True),
        "behind the padding": torch.arange(tokens.shape[1]) >= (tokens == pad).sum(1, keepdim=True),
        "first padding": (tokens == pad).cumsum(1) == 0,
    }[compare]  # (B, T)
    mask = ~mask if meaning == "hide" else mask
    mask = {
        "keys": mask[:, None],
        "queries": mask[:, :, None],
        "both": mask[:, None] & mask[:, :, None],
        "each query": mask[:, None].expand(-1, mask.shape[1], -1),
        "no batch": mask[None],
        "no keys": mask[:, :, None],
    }[axis]
    if heads:
        mask = {"no batch": mask[None], "no keys": mask[..., None]}.get(axis, mask[:, None])
    if dtype == "added":
        return torch.zeros(mask.shape).masked_fill(~mask, -math.inf)
    return mask.to(dtype or torch.bool)


@exercise(
    notebook=NOTEBOOK,
    minutes=5,
    difficulty=1,
    trains="where the axes of a mask stand",
    text="""
    Hide the padding: from a batch of token ids make a mask of shape `(B, 1, 1, T)`, True where the
    key is a real token. Every query gets the same row, so its axis has size 1; so has the axis in
    front of it, for the several maps per sentence that come in chapter 6.
    """,
    reference=_padding,
    probes=[
        (torch.tensor([[5, 7, 1], [4, 1, 1]]), 1),
        (torch.tensor([[0, 3, 9, 9], [2, 0, 6, 9]]), 9),
        (torch.tensor([[4, 4, 5, 2], [4, 3, 4, 6], [5, 3, 7, 2]]), 4),
        (torch.tensor([[3, 0, 8], [0, 2, 1]]), 0),
    ],
    mistakes=[
        wrong(
            "the mask is inverted",
            "mask meaning",
            "It is True at padding; here True marks the real tokens, which may be looked at.",
            meaning="hide",
        ),
        wrong(
            "queries are hidden instead of keys",
            "mask axis",
            "The tokens lie along the axis of the queries; the keys are the last axis.",
            axis="queries",
        ),
        wrong(
            "queries are hidden as well",
            "mask axis",
            "Padding hides keys only; a padding query keeps its row, else that row is empty.",
            axis="both",
        ),
        wrong(
            "the row is written out for every query",
            "mask axis",
            "All queries see the same keys: an axis of size 1, which broadcasting repeats.",
            axis="each query",
        ),
        wrong(
            "the new axes stand before the batch",
            "mask axis",
            "(1, 1, B, T) takes sentences for queries; the batch stays the first axis.",
            axis="no batch",
        ),
        wrong(
            "the new axes stand behind the tokens",
            "mask axis",
            "(B, T, 1, 1) takes tokens for heads; the keys are the last axis.",
            axis="no keys",
        ),
        wrong(
            "the axis of the heads is missing",
            "mask axis",
            "Three axes do not line up with scores (B, h, Tq, Tk): one map serves all heads, "
            "so that axis has size 1.",
            heads=False,
        ),
        wrong(
            "tokens are compared with 0, not with the padding id",
            "mask missing",
            "Which id is padding is given as an argument; 0 may be a word.",
            compare="zero",
        ),
        wrong(
            "ids are compared by size with the padding id",
            "mask missing",
            "Ids are names, not amounts: a real token is one that is not equal to pad.",
            {"compare": "smaller"},
            compare="larger",
        ),
        wrong(
            "padding is taken to stand at the end",
            "mask missing",
            "Real tokens may stand behind padding, too: compare token by token.",
            {"compare": "first padding"},
            compare="length",
        ),
        wrong(
            "padding is taken to stand in front",
            "mask missing",
            "Padding may stand anywhere: compare token by token.",
            compare="behind the padding",
        ),
        wrong(
            "the number of padding tokens is taken for the length",
            "mask missing",
            "As many tokens are visible as there are padding tokens; compare token by token: a "
            "real token is one that is not equal to pad.",
            compare="count of padding",
        ),
        wrong(
            "the mask holds numbers, not booleans",
            "mask meaning",
            "Numbers are added to the scores or inverted bit by bit elsewhere; keep it boolean.",
            {"dtype": torch.int64},
            {"dtype": "added"},
            dtype=torch.float32,
        ),
    ],
    hints=[
        "Comparing a tensor with a number gives a boolean tensor of the same shape.",
        "The scores have four axes. Which two of them does the padding of the keys not depend on?",
        "Indexing with None adds an axis of size 1: put two between the batch and the tokens.",
    ],
    right_variants=[
        lambda ids, p: (ids != p).unsqueeze(1).unsqueeze(2),
        lambda ids, p: torch.logical_not(ids == p).view(len(ids), 1, 1, -1),
        lambda ids, p: torch.tensor([[[[i != p for i in row]]] for row in ids.tolist()]),
    ],
)
def padding_visible(tokens, pad):
    """True where the key is a real token.

    tokens: (B, T) ids, pad: the id of padding. Returns a boolean mask (B, 1, 1, T).
    """
    return (tokens != pad)[:, None, None, :]


def _from_lengths(
    lengths, num_keys, *,
    first=0, bound="<", meaning="look", rows="own", two="own", axes="three", side="left",
    width="num_keys",
):  # fmt: skip
    num_keys = int(lengths.max()) if width == "longest" else num_keys
    positions = torch.arange(first, num_keys + first)
    if side == "right":
        positions = positions.flip(0)
    if lengths.dim() == 2:
        lengths = {
            "first": lengths[:, :1],
            "first, written out": lengths[:, :1].expand_as(lengths),
            "longest": lengths.amax(1, keepdim=True),
            "longest, written out": lengths.amax(1, keepdim=True).expand_as(lengths),
            "flat": lengths.flatten(),
            "two more axes": lengths[..., None],
            "axes in between": lengths[:, None],
        }.get(two, lengths)
    one_axis = lengths.dim() >= 2 or axes == "one more"
    limit = lengths[:, None, None]
    if one_axis:
        limit = lengths[:, None] if two == "axes in between" else lengths[..., None]
    if rows != "own":
        limit = (limit[:1] if rows == "first" else limit.amax(0)).expand_as(limit)
    mask = positions <= limit if bound == "<=" else positions < limit
    return ~mask if meaning == "hide" else mask


@exercise(
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="broadcasting lengths against positions",
    text="""
    A sentence of length 3 may use keys 0, 1 and 2. Turn lengths into a mask (it takes no loop):
    True where the position of the key is smaller than the length. Lengths `(B,)` hold one number
    per sentence, which counts for all its queries; lengths `(B, Tq)` one number for each query.
    """,
    reference=_from_lengths,
    probes=[
        (torch.tensor([2]), 3),
        (torch.tensor([1, 3]), 4),
        (torch.tensor([[1, 2, 4, 0, 3, 2], [3, 1, 2, 4, 4, 1]]), 5),
        (torch.tensor([3, 0, 4]), 4),
    ],
    mistakes=[
        wrong(
            "one key too many is visible",
            "off by one",
            "Position and length are compared with <=; positions count from 0, so the last visible "
            "one is length - 1.",
            bound="<=",
        ),
        wrong(
            "one key too few is visible",
            "off by one",
            "The positions count from 1; with < they must count from 0.",
            first=1,
        ),
        wrong(
            "the mask is inverted",
            "mask meaning",
            "It is True beyond the length; here True marks the keys that may be looked at.",
            meaning="hide",
        ),
        wrong(
            "every sentence gets the length of the first",
            "mask missing",
            "Each sentence of the batch has a length of its own.",
            rows="first",
        ),
        wrong(
            "every sentence gets the length of the longest",
            "mask missing",
            "Each sentence of the batch has a length of its own, and its padding starts there.",
            rows="longest",
        ),
        wrong(
            "the last keys are visible, not the first",
            "mask axis",
            "Positions 0 to length - 1 are the real tokens; padding stands behind them.",
            side="right",
        ),
        wrong(
            "every query gets the length of the first query",
            "mask missing",
            "Lengths of shape (B, Tq) hold one length for each query.",
            {"two": "first, written out"},
            two="first",
        ),
        wrong(
            "every query gets the largest length of its sentence",
            "mask missing",
            "Lengths of shape (B, Tq) hold one length for each query; none of them is joined.",
            {"two": "longest, written out"},
            two="longest",
        ),
        wrong(
            "lengths (B, Tq) do not get just one new axis, at the end",
            "mask axis",
            "They have the axis of the queries already and need only a last one: "
            "look at lengths.dim().",
            {"two": "axes in between"},
            two="two more axes",
        ),
        wrong(
            "batch and queries are put into one axis",
            "mask axis",
            "That is how d2l does it inside masked_softmax; here they stay two axes.",
            two="flat",
            axes="one more",
        ),
        wrong(
            "the axis of the queries is missing for lengths (B,)",
            "mask axis",
            "unsqueeze(-1) makes (B, 1) of lengths (B,), and so a mask (B, Tk): "
            "the queries need an axis of size 1.",
            axes="one more",
        ),
        wrong(
            "the mask is as wide as the longest length",
            "mask axis",
            "Its last axis has num_keys places, whether or not a sentence fills them.",
            width="longest",
        ),
    ],
    hints=[
        "torch.arange(num_keys) holds the position of every key: shape (Tk,).",
        "Compare positions and lengths; for that the lengths need a last axis of size 1.",
        "Lengths (B,) need two new axes, lengths (B, Tq) only one: look at lengths.dim().",
    ],
    right_variants=[
        lambda n, t: torch.arange(t)[None, None] < n.reshape(len(n), -1, 1),
        lambda n, t: n.view(len(n), -1)[:, :, None].gt(torch.arange(t)),
        lambda n, t: torch.stack(
            [
                torch.tensor([[k < m for k in range(t)] for m in torch.atleast_1d(row).tolist()])
                for row in n
            ]
        ),
    ],
)
def lengths_to_mask(lengths, num_keys):
    """True for the first `length` keys.

    lengths: integers (B,) or (B, Tq), each from 0 to num_keys.
    Returns a boolean mask (B, 1, num_keys) or (B, Tq, num_keys).
    """
    positions = torch.arange(num_keys)  # (Tk,)
    if lengths.dim() == 1:
        lengths = lengths[:, None]  # (B, 1): one row for all queries
    return positions < lengths[:, :, None]


_DIVISORS = {  # by which visible weights are divided when the softmax saw all keys
    "over the map": lambda weights, mask: weights.sum(),
    "per sentence": lambda weights, mask: weights.sum((-2, -1), keepdim=True),
    "by count": lambda weights, mask: mask.sum(-1, keepdim=True).clamp(min=1),
    "by count or NaN": lambda weights, mask: mask.sum(-1, keepdim=True),
} | DIVIDED_AGAIN
_ONLY = {"empty": "zero", "exp": "safe"}  # with these, empty rows and sizes make no difference


def _masked(scores, mask, *, meaning="look", hide="before", axis="keys", empty="zero", exp="safe"):
    if meaning == "hide":
        mask = ~mask
    mask = mask.broadcast_to(scores.shape)

    def softmax(x):
        if axis == "all":
            return torch.softmax(x.flatten(1), dim=-1).view_as(x)
        if exp in ("naive", KEPT):
            total = x.exp().sum(_AXES[axis], keepdim=True)
            return x.exp() / (total + (1e-9 if exp == KEPT else 0.0))
        return torch.softmax(x, dim=_AXES[axis])

    if hide == "never":
        return softmax(scores)
    if hide == "after":
        return softmax(scores) * mask
    if hide == "zero":
        return softmax(scores * mask)
    if hide == "added":
        return softmax(scores + mask.float())
    if hide == "softmax again":
        return softmax(softmax(scores) * mask)
    if hide == "minus infinity":
        return softmax(softmax(scores).masked_fill(~mask, -math.inf))
    if hide in _DIVISORS:
        weights = softmax(scores) * mask
        return weights / _DIVISORS[hide](weights, mask)
    fully_masked = ~mask.any(-1, keepdim=True)
    if exp not in ("safe", "naive", KEPT):
        top = scores.amax() if exp.startswith("one") else scores.amax(_AXES[axis], keepdim=True)
        if exp == "less the visible maximum":
            top = scores.masked_fill(~mask, -1e9).amax(_AXES[axis], keepdim=True)
        raw = (scores - (0 if exp.startswith("multiplied") else top)).exp() * mask
        total = raw.sum(_AXES[axis], keepdim=True)
        floor = float(exp.split(" at least ")[1]) if " at least " in exp else 0.0
        weights = raw / total.clamp(min=floor)
        weights = weights.nan_to_num() if exp.endswith("or 0") else weights
        weights = (
            weights.masked_fill(fully_masked, 1 / mask.shape[-1]) if empty == "uniform" else weights
        )
    else:
        low = -1e9 if empty == "uniform" else -math.inf
        filled = scores.masked_fill(~mask, low)
        weights = softmax(lowered(scores, ~mask, hide) if hide in NOT_LOW else filled)
    cleared = {"zero": fully_masked, "cleared": ~mask}.get(empty)
    return weights if cleared is None else weights.masked_fill(cleared, 0.0)


_HIDING_MISTAKES = [
    wrong(
        "the hidden keys are not hidden", "mask missing",
        "The softmax runs over all keys; padding takes its share of the weight.",
        hide="never",
    ),
    wrong(
        "the weights are hidden after the softmax", "mask timing",
        "Hidden weights are set to 0 afterwards, so the visible ones no longer sum to 1; "
        "hide the scores before the softmax.",
        hide="after",
    ),
    wrong(
        "hidden scores are set to 0", "mask timing",
        "A score of 0 is an ordinary score, exp(0) = 1; only a very negative one gets no weight.",
        hide="zero",
    ),
    wrong(
        "a second softmax follows the hiding", "mask timing",
        "A weight of 0 gets exp(0) = 1 there; hide the scores, before the one softmax.",
        {"hide": "minus infinity"},
        hide="softmax again",
        **_ONLY,
    ),
    wrong(
        "what is left is divided by the sum over many rows", "normalisation",
        "Each row must sum to 1 by itself: sum over the keys, with keepdim=True.",
        {"hide": "per sentence"},
        hide="over the map",
        **_ONLY,
    ),
    wrong(
        "what is left is divided by the number of visible keys", "normalisation",
        "Weights sum to 1; divide by the sum of the visible ones, not by how many there are.",
        {"hide": "by count or NaN"},
        hide="by count",
        **_ONLY,
    ),
    wrong(
        "the mask is added to the scores as 0 and 1", "mask meaning",
        "That raises visible scores by 1 and hides nothing; an added mask has 0 and -inf.",
        hide="added",
        **_ONLY,
    ),
    wrong(
        "the mask is inverted", "mask meaning",
        "What should be seen is hidden and the other way round.",
        meaning="hide",
    ),
    wrong(
        "the softmax runs over the queries", "softmax axis",
        "Columns sum to 1; each query shares out its own weight, so rows must.",
        {"empty": "cleared", "hide": "before", "exp": "safe"},
        axis="queries",
    ),
    wrong(
        "the softmax runs over the batch", "softmax axis",
        "The first axis counts sentences; weights are shared out over the keys, the last axis.",
        {"empty": "cleared", "hide": "before", "exp": "safe"},
        axis="batch",
    ),
    wrong(
        "one softmax runs over queries and keys together", "softmax axis",
        "Each row must sum to 1, not the whole map.",
        axis="all",
    ),
]  # fmt: skip


# where every key of a softmax is lowered, rounding shows in what is due alike
_HIDDEN_KEYS = {"axis": "keys", "who": "keys", "whose": "own", "bound": "<"}
_ONE_MAXIMUM = wrong(
    "one maximum is subtracted from all rows",
    "overflow",
    "In a row far below it every exp becomes 0: each row has its own maximum.",
    {"exp": "one maximum, at least 1e-12"},
    {"exp": "one maximum, or 0", "meaning": "look", "empty": "zero"},
    exp="one maximum",
    hide="before",
    axis="keys",
)


def _by_length(scores, lengths, *, bound="<", who="keys", whose="own", **switches):
    if whose != "own":
        lengths = (lengths[0] if whose == "first" else lengths.max()).expand_as(lengths)
    axis = (
        torch.arange(scores.shape[1])[:, None]
        if who == "queries"
        else torch.arange(scores.shape[2])
    )
    limit = lengths[:, None, None] - int(bound == "one less")
    return _masked(scores, axis <= limit if bound == "<=" else axis < limit, **switches)


def _python_softmax(scores, lengths):
    out = torch.zeros_like(scores)
    for b, length in enumerate(lengths.tolist()):
        for q in range(scores.shape[1]):
            seen = scores[b, q, :length].tolist()
            parts = [math.exp(s - max(seen)) for s in seen]
            out[b, q, :length] = torch.tensor(parts) / sum(parts)
    return out


@exercise(
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=2,
    asks="practice",
    trains="a softmax that obeys lengths, from memory",
    text="""
    A softmax over the keys in which only the first `lengths[b]` keys of sentence `b` take part,
    however far apart the scores lie. Use what you wrote above, or start from the scores.
    """,
    reference=_by_length,
    probes=[
        (torch.tensor([[[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]]]), torch.tensor([2])),
        (*draw(21, (3, 2, 5)), torch.tensor([2, 4, 1])),
        (far_below(3, 3, 4), torch.tensor([1, 3, 4])),
        (draw(25, (2, 2, 4))[0] - torch.tensor([[300.0], [0.0]]), torch.tensor([2, 3])),
    ],
    mistakes=[
        *_HIDING_MISTAKES,
        not_low_enough("hide", "at -1", "at -100"),
        not_low_enough("hide", "by 10000", **_HIDDEN_KEYS),
        softmax_of_hidden("hide", **_HIDDEN_KEYS),
        not_shifted({"exp": KEPT}, exp="naive"),
        wrong(
            "one key too many is visible",
            "off by one",
            "Position and length are compared with <=; the last visible position is length - 1.",
            bound="<=",
        ),
        wrong(
            "one key too few is visible",
            "off by one",
            "Positions count from 0, so those smaller than the length are real.",
            {"empty": "uniform"},
            {"empty": "nan"},
            bound="one less",
            empty="zero",
        ),
        _ONE_MAXIMUM,
        wrong(
            "queries are hidden instead of keys",
            "mask axis",
            "The lengths cut rows; padding stands among the keys, the last axis.",
            {"empty": "uniform"},
            {"empty": "nan"},
            who="queries",
        ),
        wrong(
            "every sentence gets one length",
            "mask missing",
            "Each sentence has a length of its own: lengths[b], not the first or the largest.",
            {"whose": "longest"},
            whose="first",
        ),
    ],
    hints=[
        "First build a boolean mask (B, 1, Tk): which positions are smaller than the length?",
        "Scores that must get no weight have to be very negative *before* the softmax.",
        "masked_fill(~mask, -math.inf) returns a new tensor; along which axis then the softmax?",
    ],
    right_variants=[
        lambda x, n: torch.softmax(
            torch.where(torch.arange(x.shape[-1]) < n[:, None, None], x, torch.tensor(-1e9)), -1
        ),
        lambda x, n: _by_length(x.double(), n),
        _python_softmax,
    ],
    map_of=lambda weights: weights[0],
)
def softmax_with_lengths(scores, lengths):
    """Attention weights in which only the first `length` keys of each sentence take part.

    scores: (B, Tq, Tk), lengths: integers (B,), each from 1 to Tk. Returns (B, Tq, Tk).
    """
    visible = torch.arange(scores.shape[-1]) < lengths[:, None, None]  # (B, 1, Tk)
    return torch.softmax(scores.masked_fill(~visible, -math.inf), dim=-1)


_MASK = torch.tensor([[[1, 1, 0], [0, 0, 0]]], dtype=torch.bool)
_MASKS = torch.tensor(
    [
        [[1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 0, 1]],
        [[0, 1, 1, 0], [1, 0, 0, 0], [0, 1, 1, 1]],
    ],
    dtype=torch.bool,
)


@exercise(
    notebook=NOTEBOOK,
    minutes=15,
    difficulty=3,
    asks="practice",
    trains="empty rows and large scores, without looking up",
    text="""
    Now any mask, and two corners where code often breaks: a query that may look at **nothing**
    gets a row of zeros, and scores in the hundreds must not overflow.
    """,
    reference=_masked,
    probes=[
        (torch.tensor([[[1.0, 2.0, 3.0], [0.0, 1.0, 2.0]]]), _MASK),
        (*draw(22, (2, 3, 4)), _MASKS),
        (*draw(23, (2, 3, 4)), _MASKS[:1]),
        (draw(24, (2, 3, 4))[0] + torch.tensor([0.0, 200.0, 201.0, 199.0]), _MASKS),
        (draw(26, (2, 3, 4))[0] - torch.tensor([[300.0], [0.0], [310.0]]), _MASKS),
        (*draw(27, (3, 2, 6)), torch.tensor([True, False, True, True, False, True])),
        (far_below(2, 3, 4, step=30.0), _MASKS[:, :, [0, 2, 1, 3]]),
        (far_below(2, 3, 4), _MASKS[:, :, [0, 2, 1, 3]]),
    ],
    mistakes=[
        *_HIDING_MISTAKES,
        not_low_enough("hide", "at -1", "at -100", "at -1000", "by 50"),
        not_low_enough("hide", "at -1", "at -100", "at -1000", "by 50", empty="cleared"),
        not_low_enough("hide", "by 10000", axis="keys"),
        not_low_enough("hide", "by 10000", axis="keys", empty="cleared"),
        wrong(
            "a query with no visible key gets NaN",
            "empty row",
            "A softmax over nothing but -inf is 0 / 0; such a row must be set to 0.",
            empty="nan",
        ),
        wrong(
            "a query with no visible key spreads its weight evenly",
            "empty row",
            "With equal very negative scores the softmax gives 1/n to each hidden key; "
            "such a row must be set to 0.",
            empty="uniform",
        ),
        wrong(
            "exp is taken of the scores as they are",
            "overflow",
            "exp(200) is infinite in float32; subtract the row's maximum, or use torch.softmax.",
            {"exp": "multiplied"},
            {"exp": "multiplied, at least 1e-9"},
            {"exp": KEPT},
            exp="naive",
        ),
        wrong(
            "the maximum of a row is taken over hidden keys too",
            "overflow",
            "Below a huge hidden score every visible exp becomes 0: hide first, then subtract the "
            "maximum of what is left.",
            *(
                {"exp": f"below, {floor}", "meaning": "look", "empty": "zero"}
                for floor in ("at least 1e-12", "at least 1e-9", "at least 1e-30", "or 0")
            ),
            exp="below the hidden maximum",
            hide="before",
            axis="keys",
        ),
        _ONE_MAXIMUM,
        wrong(
            "exp is taken of hidden scores",
            "overflow",
            "It is infinite for one far above the visible scores, and inf * 0 is NaN: hide the "
            "scores before exp.",
            {"empty": "nan"},
            exp="less the visible maximum",
            empty="zero",
            hide="before",
            axis="keys",
        ),
    ],
    hints=[
        "Do the ordinary rows first: hide, then torch.softmax, which subtracts the maximum.",
        "mask.any(dim=-1, keepdim=True) tells which queries have something to look at.",
        "Whatever the softmax made of the hidden entries, one last masked_fill can mend it.",
    ],
    right_variants=[
        lambda x, m: torch.softmax(x.masked_fill(~m, -1e9), -1) * m,
        lambda x, m: torch.nan_to_num(torch.softmax(x.masked_fill(~m, float("-inf")), -1)),
        lambda x, m: _shifted_exp(x.double(), m),
    ],
    map_of=lambda weights: weights[0],
)
def softmax_with_mask(scores, mask):
    """Attention weights over the visible keys; a row of zeros where no key is visible.

    scores: (B, Tq, Tk), mask: boolean, True = may look, broadcastable to the scores.
    Returns (B, Tq, Tk).
    """
    weights = torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)
    return weights.masked_fill(~mask, 0.0)


def _shifted_exp(scores, mask):
    scores = scores.masked_fill(~mask, -torch.inf)
    exps = torch.exp(scores - scores.amax(-1, keepdim=True).nan_to_num(neginf=0.0))
    return exps / exps.sum(-1, keepdim=True).clamp(min=1e-300)


def visible_keys(
    lengths, num_steps, *,
    triangle="past", diagonal=0, padding="keys", bound="<", join="and", meaning="look", heads=True,
    length="own", side="right", thin=False,
):  # fmt: skip
    """The switchable causal and padding mask, also used by chapter 09."""
    every = torch.ones(num_steps, num_steps, dtype=torch.bool)
    if triangle == "none":
        causal = every
    elif triangle == "future":
        causal = every.triu(-diagonal)
    else:
        causal = every.tril(diagonal)
    positions = torch.arange(num_steps)
    if side == "left":
        positions = positions.flip(0)
    limit = lengths[:, None]
    if length == "longest":
        limit = limit.max().expand_as(limit)
    real = positions <= limit if bound == "<=" else positions < limit  # (B, T)
    real = {
        "keys": real[:, None],
        "queries": real[:, :, None],
        "both": real[:, None] & real[:, :, None],
        "none": torch.tensor(True),
    }[padding]
    mask = (causal & real if join == "and" else causal | real).expand(len(lengths), -1, -1)
    mask = ~mask if meaning == "hide" else mask
    if thin:  # an axis along which nothing changes has size 1
        mask = mask[:, :1] if triangle == "none" else mask[:1] if padding == "none" else mask
    if heads:
        mask = mask[None] if heads == "first" else mask[:, None]
    if meaning in ("float", "int"):
        return mask.float() if meaning == "float" else mask.int()
    return torch.zeros(mask.shape).masked_fill(~mask, -math.inf) if meaning == "added" else mask


CAUSAL_MISTAKES = [
    wrong(
        "rows look at the future", "mask direction",
        "The triangle keeps the keys from the own position on; it must keep those up to it.",
        triangle="future",
    ),
    wrong(
        "the future is not hidden", "mask missing",
        "Only the padding is hidden; a decoder must not see later positions either.",
        triangle="none",
    ),
    wrong(
        "a position may not look at itself", "off by one",
        "The diagonal is hidden; position i sees 0 to i, and row 0 would see nothing.",
        diagonal=-1,
    ),
    wrong(
        "a position sees one step ahead", "off by one",
        "The triangle reaches one key too far: position i sees 0 to i, not i + 1.",
        diagonal=1,
    ),
    wrong(
        "the padding is not hidden", "mask missing",
        "The mask is causal only; padding keys at earlier positions stay visible.",
        padding="none",
    ),
    wrong(
        "rows of padding queries are hidden", "mask axis",
        "Padding hides keys, the columns; a padding query keeps its row, and with it the real "
        "keys before it.",
        {"padding": "both"},
        padding="queries",
    ),
    wrong(
        "the two masks are joined with or", "mask meaning",
        "A key is visible only if both masks allow it, so True and False give False.",
        join="or",
    ),
    wrong(
        "the mask is inverted", "mask meaning",
        "It is True where a key must be hidden; here True = may look.",
        meaning="hide",
    ),
]  # fmt: skip


@exercise(
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=2,
    trains="combining masks",
    text="""
    The mask of a decoder for a batch: position `i` may look at positions `0` to `i`, but never at
    padding. One map per sentence, with an axis of size 1 behind the batch: `(B, 1, T, T)`.
    """,
    reference=visible_keys,
    probes=[(torch.tensor([2]), 3), (torch.tensor([3, 1, 2]), 4)],
    mistakes=[
        *CAUSAL_MISTAKES,
        wrong(
            "one key too many is visible",
            "off by one",
            "Position and length are compared with <=; the last real position is length - 1.",
            bound="<=",
        ),
        wrong(
            "the axis of the heads is missing",
            "mask axis",
            "(B, T, T) does not line up with scores (B, h, T, T): heads need an axis of size 1.",
            heads=False,
        ),
        wrong(
            "the axis of the heads stands before the batch",
            "mask axis",
            "(1, B, T, T) takes sentences for heads: the batch comes first, then the heads.",
            heads="first",
        ),
        wrong(
            "the future is not hidden",
            "mask missing",
            "Only the padding is hidden; a decoder must not see later positions either.",
            triangle="none",
            thin=True,
        ),
        wrong(
            "the padding is not hidden",
            "mask missing",
            "The mask is causal only; padding keys at earlier positions stay visible.",
            padding="none",
            thin=True,
        ),
        wrong(
            "the mask holds numbers, not booleans",
            "mask meaning",
            "0 and 1, or 0 and -inf, are no boolean mask; here True = may look.",
            {"meaning": "float"},
            {"meaning": "int"},
            meaning="added",
        ),
        wrong(
            "every sentence gets the length of the longest",
            "mask missing",
            "Each sentence of the batch has a length of its own, and its padding starts there.",
            length="longest",
        ),
        wrong(
            "padding is hidden on the left",
            "mask axis",
            "Positions 0 to length - 1 are the real tokens; padding stands behind them.",
            side="left",
        ),
    ],
    hints=[
        "Make two masks, each as simple as possible: one (T, T), one (B, 1, T).",
        "torch.ones(T, T, dtype=torch.bool).tril() keeps the diagonal and what is below it.",
        "A key is visible if both masks say so; broadcasting makes (B, T, T), one axis is missing.",
    ],
    right_variants=[
        lambda n, t: (
            (torch.arange(t)[:, None] >= torch.arange(t))
            & (torch.arange(t) < n[:, None, None, None])
        ),
        lambda n, t: torch.stack(
            [torch.tensor([[[k <= q and k < m for k in range(t)] for q in range(t)]]) for m in n]
        ),
        lambda n, t: (
            torch.minimum(torch.arange(1, t + 1)[None], n[:, None])[:, None, :, None]
            > torch.arange(t)
        ),
    ],
    map_of=lambda mask: mask[0, 0],
)
def causal_and_padding(lengths, num_steps):
    """True where position q may look at position k: k is not later than q, and not padding.

    lengths: integers (B,), each from 1 to num_steps; num_steps: T.
    Returns a boolean mask (B, 1, T, T).
    """
    positions = torch.arange(num_steps)  # (T,)
    causal = positions <= positions[:, None]  # (T, T)
    real = positions < lengths[:, None, None]  # (B, 1, T)
    return (causal & real)[:, None]


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=2,
    difficulty=1,
    trains="predicting what -1e9 does to an empty row",
    text="""
    Before you run it: all 4 scores of a row are hidden by setting them to -1e9, and a softmax
    follows. Which weight does each key get?
    """,
    mistakes=[
        wrong(
            "the weight is taken to be 0",
            "empty row",
            "exp(-1e9) is 0 on its own, but a softmax subtracts the row's maximum first.",
            answer=0.0,
        ),
        wrong(
            "the weight is taken to be NaN",
            "empty row",
            "NaN comes from -inf - (-inf) or from 0 / 0; -1e9 is an ordinary number, and a softmax "
            "subtracts the largest score before the exp.",
            answer=math.nan,
        ),
        wrong(
            "the weight is taken to be 1",
            "normalisation",
            "Each shifted exponential is exp(0) = 1, but they are still divided by their sum.",
            answer=1.0,
        ),
        wrong(
            "the keys are miscounted",
            "normalisation",
            "The row has 4 scores, and equal scores get equal weights.",
            {"answer": 1 / 5},
            {"answer": 1 / 2},
            answer=1 / 3,
        ),
        wrong(
            "the weight is taken to be -1e9",
            "normalisation",
            "That is the score; after a softmax weights lie between 0 and 1.",
            answer=-1e9,
        ),
        wrong(
            "the scores are shared out, not weights",
            "normalisation",
            "Weights lie between 0 and 1 and sum to 1: the softmax makes them of the scores.",
            {"answer": -4e9},
            {"answer": 1e9 / 4},
            answer=-1e9 / 4,
        ),
    ],
    hints=[
        "Which of the four hidden keys is preferred over the others?",
        "Adding one number to all scores of a row does not change its softmax.",
        "So the row has the same softmax as [0, 0, 0, 0].",
    ],
)
def empty_row_weight():
    """A row of 4 scores, all set to -1e9, then a softmax: the weight of each key is"""
    return 1 / 4


@exercise(
    kind="value",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=4,
    difficulty=2,
    trains="finding the leak in a given mask",
    text="""
    A decoder reads `<bos> i am home <pad>` under this mask (rows are queries, 1 = may look).
    Exactly one cell lets a query see what it must not. Which one? Answer `[row, column]`,
    counted from 0.

    |  | `<bos>` | i | am | home | `<pad>` |
    |---|---|---|---|---|---|
    | **`<bos>`** | 1 | 0 | 0 | 0 | 0 |
    | **i** | 1 | 1 | 0 | 0 | 0 |
    | **am** | 1 | 1 | 1 | 1 | 0 |
    | **home** | 1 | 1 | 1 | 1 | 0 |
    | **`<pad>`** | 1 | 1 | 1 | 1 | 0 |
    """,
    mistakes=[
        wrong(
            "row and column are swapped",
            "mask axis",
            "The query stands at the left and comes first, the key above it.",
            answer=[3, 2],
        ),
        wrong(
            "the cell is counted from 1",
            "off by one",
            "Positions count from 0: <bos> is position 0.",
            answer=[3, 4],
        ),
        wrong(
            "looking at oneself is taken for a leak",
            "mask direction",
            "A causal mask lets each position look at itself: its word is already known.",
            {"answer": [3, 3]},
            {"answer": [1, 1]},
            {"answer": [0, 0]},
            answer=[2, 2],
        ),
        wrong(
            "the row of the padding is taken for a leak",
            "mask axis",
            "Nobody uses what a padding query finds; what has to be hidden is the padding key.",
            {"answer": [4, 0]},
            {"answer": [4, 1]},
            {"answer": [4, 2]},
            {"answer": [4, 4]},
            answer=[4, 3],
        ),
        wrong(
            "row and column are swapped, and the cell is counted from 1",
            "off by one",
            "The query stands at the left and comes first, and positions count from 0.",
            answer=[4, 3],
        ),
        wrong(
            "the counting starts behind <bos>",
            "off by one",
            "<bos> is a position like any other, and it is position 0.",
            {"answer": [2, 1]},
            answer=[1, 2],
        ),
        wrong(
            "a cell that hides its key is given",
            "mask meaning",
            "That cell holds a 0: the query may not look there, and so nothing leaks.",
            *(
                {"answer": [q, k]}
                for q, k in ((0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4), (2, 4))
            ),
            answer=[0, 1],
        ),
        wrong(
            "looking back is taken for a leak",
            "mask direction",
            "A query may look at every real token that stands before it.",
            *({"answer": [q, k]} for q, k in ((2, 0), (2, 1), (3, 0), (3, 1), (3, 2))),
            answer=[1, 0],
        ),
    ],
    hints=[
        "Two kinds of keys must stay hidden. Which columns, and which triangle?",
        "No key may stand to the right of the diagonal: go through the rows from above.",
        "One row has as many ones as the row below it, although it stands one word earlier.",
    ],
)
def leak_at():
    """[row, column] of the one cell that leaks, counted from 0"""
    return [2, 3]


@exercise(
    kind="value",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=4,
    difficulty=2,
    trains="reading a mistake off a map",
    text="""
    A colleague shows you the attention weights of `i lost . <pad>` in a decoder, rounded:

    |  | i | lost | . | `<pad>` |
    |---|---|---|---|---|
    | **i** | 0.24 | 0 | 0 | 0 |
    | **lost** | 0.08 | 0.61 | 0 | 0 |
    | **.** | 0.05 | 0.15 | 0.40 | 0 |
    | **`<pad>`** | 0.20 | 0.07 | 0.20 | 0 |

    Which mistake was made? `"a"`: none. `"b"`: padding was hidden, the future was not. `"c"`: the
    weights were hidden after the softmax. `"d"`: the softmax ran over the queries.
    """,
    mistakes=[
        wrong(
            "the map is taken for a right one",
            "normalisation",
            "Add up a row: the weights of a query sum to 1.",
            answer="a",
        ),
        wrong(
            "a hidden future is not seen",
            "mask direction",
            "Above the diagonal stand only zeros: the future is hidden here.",
            answer="b",
        ),
        wrong(
            "the sums of the columns are taken to be 1",
            "softmax axis",
            "A softmax over the queries makes columns sum to 1; that of `lost` sums to 0.83.",
            answer="d",
        ),
    ],
    hints=[
        "The zeros are where they should be. So look at the numbers that are not zero.",
        "What do the weights of one query have to sum to?",
        "Where is the missing part of each row: at no key, or at keys set to 0 too late?",
    ],
)
def map_mistake():
    """The letter of the mistake that the map shows"""
    return "c"


def _packed(
    segments, *, triangle="past", diagonal=0, same="equal", padding="hidden", meaning="look"
):
    keys, queries = segments[:, None, :], segments[:, :, None]
    own = {
        "equal": keys == queries,
        "any": torch.ones_like(keys == queries),
        "earlier": keys <= queries,
        "bits": (keys & queries) > 0,
        "both real": (keys != 0) & (queries != 0),
        "batch": segments[:1, None, :] == segments[:1, :, None],
    }[same]
    every = torch.ones(segments.shape[1], segments.shape[1], dtype=torch.bool)
    order = {"past": every.tril(diagonal), "future": every.triu(-diagonal), "none": every}[triangle]
    mask = own & order
    if padding == "hidden":
        mask = mask & (keys != 0)
    if padding == "of the first":
        mask = mask & (keys[:1] != 0)
    if padding == "from the first on":
        first = (keys == 0).int().argmax(-1, keepdim=True)  # 0 where there is none
        mask = mask & (torch.arange(segments.shape[1]) < first)
    mask = mask.expand(len(segments), -1, -1)
    return ~mask if meaning == "hide" else mask


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=3,
    trains="a mask for several sentences in one row",
    text="""
    Padding wastes room, so many models are trained on rows that hold several sentences one behind
    the other. `segments` says which sentence a token belongs to, such as `[1, 1, 1, 2, 2, 0]`; 0 is
    padding. Make the causal mask for such rows: a query looks at its own sentence only, at itself
    and what stands before it, and nobody looks at padding.
    """,
    reference=_packed,
    probes=[
        (torch.tensor([[1, 1, 2, 2, 0]]),),
        (torch.tensor([[1, 2, 2, 2, 3, 3, 0, 0], [1, 1, 1, 2, 3, 3, 3, 3]]),),
        (torch.tensor([[2, 2, 1, 1, 1, 3, 0], [4, 1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 2, 2]]),),
    ],
    mistakes=[
        wrong(
            "other sentences of the row are visible",
            "mask missing",
            "A key counts only if its segment is the query's own.",
            {"same": "both real", "padding": "hidden"},
            same="any",
        ),
        wrong(
            "segments are compared by size",
            "mask missing",
            "Numbers of segments are names: <= shows every sentence of a smaller number.",
            same="earlier",
        ),
        wrong(
            "two numbers of segments are joined with &",
            "mask missing",
            "Between whole numbers & compares bit by bit, and 1 and 3 share a bit: ask with == "
            "whether they are equal.",
            same="bits",
            padding="hidden",
        ),
        wrong(
            "every row of the batch gets the segments of the first",
            "mask missing",
            "Each row of the batch is packed in its own way.",
            {"padding": "of the first"},
            same="batch",
        ),
        wrong(
            "rows look at the future",
            "mask direction",
            "The triangle keeps the keys from the own position on; it must keep those up to it.",
            triangle="future",
        ),
        wrong(
            "the future is not hidden",
            "mask missing",
            "Within its sentence a query still must not see later positions.",
            triangle="none",
        ),
        wrong(
            "a position may not look at itself",
            "off by one",
            "The diagonal is hidden; then the first token of each sentence sees nothing.",
            diagonal=-1,
        ),
        wrong(
            "the padding is not hidden",
            "mask missing",
            "Padding tokens share the segment 0, so they see each other unless 0 is shut out.",
            padding="seen",
        ),
        wrong(
            "the padding of the first row is taken for that of all rows",
            "mask missing",
            "Each row of the batch has padding at places of its own.",
            padding="of the first",
        ),
        wrong(
            "a row without padding is hidden whole",
            "mask missing",
            "argmax gives 0 where nothing is found, as if the padding began at 0: ask of each key "
            "whether its segment is 0.",
            padding="from the first on",
        ),
        wrong(
            "the mask is inverted",
            "mask meaning",
            "It is True where a key must be hidden; here True = may look.",
            meaning="hide",
        ),
    ],
    hints=[
        "Three conditions, and a key must meet them all: own sentence, not later, not padding.",
        "Give the segments of keys and of queries an axis each and compare them for equality.",
        "segments[:, None, :] holds the keys, (B, 1, T); what shape must the queries get?",
    ],
    right_variants=[
        lambda s: (
            (s[:, None] == s[:, :, None])
            & (s[:, None] > 0)
            & torch.ones(s.shape[1:] * 2).tril().bool()
        ),
        lambda s: torch.tensor(
            [
                [[r[k] == r[q] != 0 and k <= q for k in range(len(r))] for q in range(len(r))]
                for r in s.tolist()
            ]
        ),
        lambda s: torch.stack(
            [
                (r == r[:, None])
                * (r != 0)
                * (torch.arange(len(r))[:, None] >= torch.arange(len(r)))
                for r in s
            ]
        ),
    ],
    map_of=lambda mask: mask[0],
)
def own_sentence(segments):
    """True where the key is of the query's own sentence, not later, and not padding.

    segments: integers (B, T), 0 = padding. Returns a boolean mask (B, T, T).
    """
    keys, queries = segments[:, None, :], segments[:, :, None]  # (B, 1, T), (B, T, 1)
    positions = torch.arange(segments.shape[1])
    not_later = positions <= positions[:, None]  # (T, T)
    return (keys == queries) & not_later & (keys != 0)


def _what_holds(answer, num_steps):
    """What is asked of a mask, whatever its design: each property, and whether it has it."""
    mask = as_asked(answer(num_steps), "a boolean tensor (T, T)", (num_steps, num_steps))
    look = mask.bool()  # (T, T)
    past = torch.ones_like(look).tril()
    two = look.float() @ look.float() + look.float()  # (T, T): in how many ways, in 1 or 2 looks
    return {
        "is boolean": mask.dtype == torch.bool,
        "shows nothing that comes later": not (look & ~past).any().item(),
        "shows each position to itself": look.diagonal().all().item(),
        "shows at most 2 * ceil(sqrt(T)) keys a row": (
            look.sum(-1).max().item() <= 2 * math.ceil(math.sqrt(num_steps))
        ),
        "reaches every earlier position in two looks": (two > 0)[past].all().item(),
    }


def _thrifty(num_steps, *, sees="both", later=False, itself=True, form=torch.bool):
    block = math.ceil(math.sqrt(num_steps))
    positions = torch.arange(num_steps)
    own = positions // block == positions[:, None] // block
    mask = {
        "both": own | (positions % block == block - 1),
        "all": torch.ones_like(own),
        "near": own,
    }[sees]
    mask = mask if later else mask.tril()
    return (mask if itself else mask & ~torch.eye(num_steps, dtype=torch.bool)).to(form)


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=20,
    difficulty=3,
    trains="designing a mask to order",
    text="""
    **An open task**: many masks are right, and only what is asked here is checked. Under a causal
    mask the last of T positions looks at T keys, which is dear when a text is long. Design a mask
    for `num_steps` = T positions with these properties: (1) no position sees what comes later;
    (2) each sees itself; (3) none sees more than `2 * ceil(sqrt(T))` keys; (4) nothing is out of
    reach for two layers, one behind the other: for every earlier position k, position q looks at k,
    or at some position that looks at k.
    """,
    reference=_thrifty,
    play=_what_holds,
    probes=[(9,), (16,), (14,), (30,)],
    mistakes=[
        wrong(
            "something that comes later is visible",
            "mask direction",
            "Property 1: no key may stand to the right of the diagonal.",
            later=True,
        ),
        wrong(
            "a position does not see itself",
            "off by one",
            "Property 2: the diagonal has to be True from the first row to the last.",
            itself=False,
        ),
        wrong(
            "a row shows too many keys",
            "mask missing",
            "Property 3: print mask.sum(-1).max() beside 2 * ceil(sqrt(T)).",
            sees="all",
        ),
        wrong(
            "an earlier position is out of reach",
            "mask missing",
            "Property 4: with m = mask.float(), every entry of m @ m on and below the diagonal has "
            "to be larger than 0 (as long as each position sees itself).",
            sees="near",
        ),
        wrong(
            "the mask is not boolean",
            "mask meaning",
            "Here a mask is a boolean tensor: True = may look.",
            form=torch.float32,
        ),
    ],
    hints=[
        "Draw T = 9 on paper; a row may show 6 keys. What does a window of the last 3 leave out?",
        "Cut the positions into blocks of ceil(sqrt(T)). How many blocks are there, and which one "
        "position of a block has seen all of it?",
        "Half of the keys a row may show serve its own block, the other half one key in each "
        "earlier block.",
    ],
    right_variants=[
        lambda t: torch.tensor(
            [
                [
                    k <= q and ((q - k) % (w := math.ceil(t**0.5)) == 0 or q - k < w)
                    for k in range(t)
                ]
                for q in range(t)
            ]
        ),
        lambda t: (
            (torch.arange(t)[:, None] - torch.arange(t) < math.ceil(t**0.5))
            | ((torch.arange(t) + 1) % math.ceil(t**0.5) == 0)
        ).tril(),
        lambda t: torch.stack(
            [
                torch.tensor(
                    [k <= q and (k // w == q // w or k % w == w - 1) for k in range(t)]
                )
                for w in [math.isqrt(t - 1) + 1]
                for q in range(t)
            ]
        ),
    ],
)  # fmt: skip
def thrifty_mask(num_steps):
    """A causal mask with few keys a row, through which two layers still reach all that is earlier.

    Returns a boolean mask (T, T) with T = num_steps, True = may look.
    """
    # One of many, after Child et al., Generating Long Sequences with Sparse Transformers, 2019:
    # each position sees its own block so far, and the last position of every earlier block.
    block = math.ceil(math.sqrt(num_steps))
    positions = torch.arange(num_steps)  # (T,)
    own = positions // block == positions[:, None] // block  # (T, T)
    last = positions % block == block - 1  # (T,)
    return (own | last).tril()
