"""Exercises of notebook 19: scores of heads, ablation, patching, rollout, and what they show."""

import math

import torch
import torch.nn.functional as F

from course_utils.checker.common import mixed_up
from course_utils.checker.exercise import exercise, wrong
from course_utils.checker.probes import NotAsAsked, draw

NOTEBOOK = "19_what_heads_do"


def _shifted(T, *, back=1, strength=30.0, sign=1, first="its own", ends="open"):
    W_q = torch.zeros(T, T)
    for t in range(T):
        if ends == "all before":
            W_q[t, :t] = strength
        elif (0 <= t - back < T or ends == "joined") and not (ends == "one short" and t == T - 1):
            W_q[t, (t - back) % T] = sign * strength
    W_k = torch.eye(T)
    if first == "all":
        W_k[0] = 1.0
    return W_q, W_k


def _where_it_looks(answer, T):
    """Played: the weights of a causal head over one-hot positions, read in words."""
    W_q, W_k = (torch.as_tensor(W).float() for W in answer(T))
    for name, W in (("W_q", W_q), ("W_k", W_k)):
        if W.shape != (T, T):
            raise NotAsAsked(f"{name} of shape {(T, T)} is due, and {(*W.shape,)} came back")
    scores = (W_q @ W_k.T / math.sqrt(T)).masked_fill(
        torch.ones(T, T, dtype=torch.bool).triu(1), -math.inf
    )
    weights = scores.softmax(-1)[1:]
    most = weights.amax(-1, keepdim=True)
    return {
        "looks most at": [
            "place " + " and ".join(map(str, row.nonzero().flatten().tolist()))
            for row in weights > most - 1e-3
        ],
        "with over 0.99 of the weight": (most > 0.99).all().item(),
    }


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=2,
    trains="setting a head by hand",
    text="""
    Set a previous-token head by hand. Positions are one-hot: place t has the vector with a 1 at t,
    so the positions together are the identity (T, T). Queries are `positions @ W_q`, keys
    `positions @ W_k`; scores are scaled by $\\sqrt T$, the future is masked, and a softmax follows.
    Give `W_q` and `W_k`, (T, T) each, with which every query from place 1 on gives over 0.99 of its
    weight to the place just before it. Many answers are right. T is at most 8.
    """,
    reference=_shifted,
    play=_where_it_looks,
    probes=[(4,), (6,), (8,)],
    mistakes=[
        wrong(
            "each place looks at itself",
            "off by one",
            "With W_q and W_k alike, the own place fits best: shift one of them by a place.",
            back=0,
        ),
        wrong(
            "each place looks two back",
            "off by one",
            "The shift is one place too many.",
            back=2,
        ),
        wrong(
            "each place looks for the next one",
            "mask direction",
            "That key is hidden, so all visible keys fit alike: shift the other way.",
            {"ends": "joined"},
            {"ends": "joined", "strength": 1.0},
            back=-1,
            strength=30.0,
            sign=1,
        ),
        wrong(
            "each place looks at all places before it",
            "off by one",
            "Below the diagonal only one entry of each row is due, the one beside it.",
            ends="all before",
            back=1,
            sign=1,
            strength=30.0,
        ),
        wrong(
            "the last place is left out",
            "off by one",
            "Places 1 to T - 1 need a query each: range(1, T), not range(T - 1).",
            ends="one short",
        ),
        wrong(
            "the first place fits every query",
            "score",
            "The key of place 0 must fit query 1 alone: one number in its row.",
            first="all",
            back=1,
        ),
        wrong(
            "the weights are too soft",
            "scale",
            "The best key leads by too little: scores have to differ by far more than 1.",
            strength=1.0,
            sign=1,
        ),
        wrong(
            "the right key is the one that fits worst",
            "score",
            "A softmax gives weight to large scores: turn the sign.",
            sign=-1,
        ),
    ],
    hints=[
        "Let keys be their positions, W_k = identity. Which vector should query t be?",
        "Query t should be a large multiple of the one-hot vector of place t - 1.",
        "Row t of W_q is query t. A matrix with ones just below the diagonal: torch.diag.",
    ],
    right_variants=[
        lambda T: (torch.eye(T), 40.0 * torch.diag(torch.ones(T - 1), 1)),
        lambda T: (50.0 * torch.roll(torch.eye(T), -1, dims=1), torch.eye(T)),
        lambda T: (
            9.0 * torch.ones(T, T).tril(-1) - 9.0 * torch.ones(T, T).tril(-2),
            9.0 * torch.eye(T),
        ),
    ],
)
def previous_token_head(T):
    """Matrices of a head that looks at the place before.

    T: how many places. Returns W_q and W_k, (T, T) each.
    """
    return 30.0 * torch.diag(torch.ones(T - 1), -1), torch.eye(T)


def _back(
    map, distance,
    *, direction=1, off=0, at="distance", over="those that have it", heads="each", queries="mean",
    texts="mean", start="at distance",
):  # fmt: skip
    first, T = distance, map.shape[-1]
    distance = (1 if at == "one" else distance) + off
    weight = map.diagonal(-direction * distance, dim1=-2, dim2=-1)  # (B, h, T - distance)
    if at == "and farther":
        weight = map.tril(-direction * distance).sum(-1)[..., distance:]
    if over == "wrapped" or start == "as without the slip":
        query = torch.arange(0 if over == "wrapped" else first, T)
        weight = map[:, :, query, (query - direction * distance) % T]
    if start == "one late":
        weight = weight[..., 1:]
    if at == "any":
        weight = map[:, :, distance:, : T - distance].mean(-1)
    if at == "the largest":
        weight = map[:, :, distance:].amax(-1)
    by = {"sum": torch.sum, "largest": torch.amax}.get(queries, torch.mean)
    found = by(weight, dim=-1)
    if over == "all":
        found = found * weight.shape[-1] / T
    if over == "those above 0":  # counted in all texts together where they are averaged
        axes = (0, 2) if texts == "mean" else 2
        number = weight.ne(0).sum(axes, keepdim=True)
        found = (weight.sum(axes, keepdim=True) / number)[..., 0]
    if queries == "each":
        return weight.mean((0, 1)) if heads == "mean" else weight.mean(0)
    result = {"mean": found.mean(0), "sum": found.sum(0), "first": found[0], "each": found}[texts]
    if heads == "one number":
        return result.mean(-1)
    return result.mean(-1, keepdim=True).expand_as(result) if heads == "mean" else result


def _maps(seed, *shape, least=0.0):
    maps = draw(seed, shape, scale=1.5)[0].softmax(-1)
    return F.normalize(maps.where(maps >= least, 0.0), p=1, dim=-1)


@exercise(
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="a score that finds heads",
    text="""
    How much does each head look back by a fixed distance? For every query take the weight on the
    key `distance` places before it, and average over texts and queries. The first queries have no
    such key; they are not counted.
    """,
    reference=_back,
    probes=[
        (_maps(0, 1, 2, 4, 4), 1),
        (_maps(1, 2, 2, 5, 5), 1),
        (_maps(2, 3, 2, 7, 7), 2),
        (_maps(3, 2, 2, 6, 6, least=0.15), 1),  # rows with zeros
    ],
    mistakes=[
        wrong(
            "it looks forward",
            "mask direction",
            "map[..., q, k] is what query q gives key k; the key before has the smaller number.",
            direction=-1,
        ),
        wrong(
            "the distance is one too large",
            "off by one",
            "The key stands at query - distance.",
            {"start": "as without the slip"},
            off=1,
        ),
        wrong(
            "the distance is one too small",
            "off by one",
            "The key stands at query - distance.",
            {"start": "as without the slip"},
            off=-1,
        ),
        wrong(
            "queries without such a key are counted",
            "averaging",
            "Divide by the T - distance queries that have the key, not by T.",
            over="all",
        ),
        wrong(
            "queries that give the key a weight of 0 are not counted",
            "averaging",
            "They have such a key, and do not look at it: that counts, too. Divide by the number "
            "of queries, T - distance, not by that of weights above 0.",
            over="those above 0",
        ),
        wrong(
            "the first queries look at keys from the end",
            "off by one",
            "A negative index counts from the end: for queries below `distance` there is no key, "
            "so begin at query `distance`.",
            over="wrapped",
        ),
        wrong(
            "the first query that has such a key is left out",
            "off by one",
            "Query `distance` has key 0: begin there, not one later.",
            start="one late",
            over="those that have it",
        ),
        wrong(
            "the distance is always 1",
            "off by one",
            "Look `distance` places back: that is one place only where distance is 1.",
            at="one",
        ),
        wrong(
            "all keys that are farther back count, too",
            "averaging",
            "Of each query only the key exactly `distance` places before it counts.",
            at="and farther",
        ),
        wrong(
            "a whole block of the map is averaged",
            "averaging",
            "Cutting off rows and columns leaves a block; of each row only the key `distance` "
            "places before the query counts.",
            at="any",
            direction=1,
            over="those that have it",
            start="at distance",
        ),
        wrong(
            "the largest weight of each query counts",
            "averaging",
            "It may lie on any key: take the one `distance` places before the query.",
            at="the largest",
            direction=1,
            over="those that have it",
            start="at distance",
        ),
        wrong(
            "the heads are averaged, too",
            "averaging",
            "One score for each head: average over texts and queries alone.",
            {"heads": "one number"},
            heads="mean",
        ),
        wrong(
            "weights are summed over the queries, not averaged",
            "averaging",
            "A score must not grow with the length of the texts.",
            queries="sum",
        ),
        wrong(
            "weights are summed over the texts, not averaged",
            "averaging",
            "A score must not grow with the number of texts.",
            texts="sum",
        ),
        wrong(
            "weights are summed over texts and queries, not averaged",
            "averaging",
            "A score must not grow with the number of texts, or with their length.",
            texts="sum",
            queries="sum",
        ),
        wrong(
            "only the largest weight of a text counts",
            "averaging",
            "One sure query does not make a head: average over all.",
            queries="largest",
        ),
        wrong(
            "only the first text is read",
            "averaging",
            "Average over all B texts.",
            texts="first",
        ),
        wrong(
            "the queries are not averaged",
            "averaging",
            "One score for each head, (h,): the mean runs over the queries, not over the heads.",
            {"heads": "mean"},
            queries="each",
            heads="each",
            over="those that have it",
            texts="mean",
        ),
        wrong(
            "the texts are not averaged",
            "averaging",
            "One score for each head, (h,): the mean runs over the texts, too.",
            texts="each",
        ),
    ],
    hints=[
        "Which entries of one (T, T) map have a key that is `distance` less than the query?",
        "They lie on a line parallel to the diagonal, below it.",
        "map.diagonal(-distance, dim1=-2, dim2=-1) has shape (B, h, T - distance).",
    ],
    right_variants=[
        lambda map, n: torch.stack(
            [map[:, :, q, q - n] for q in range(n, map.shape[-1])]
        ).mean((0, 1)),
        lambda map, n: map[:, :, n:].gather(
            -1, torch.arange(map.shape[-1] - n).expand(*map.shape[:2], -1)[..., None]
        ).mean((0, 2, 3)),
        lambda map, n: torch.einsum(
            "bhqk,qk->h", map, torch.eye(map.shape[-1]).roll(n, 0).tril()
        ) / len(map) / (map.shape[-1] - n),
    ],
)  # fmt: skip
def weight_back(map, distance):
    """How much each head looks back by a distance.

    map: (B, h, T, T), distance: 1 to T - 1. Returns (h,).
    """
    T = map.shape[-1]
    query = torch.arange(distance, T)
    return map[:, :, query, query - distance].mean(dim=(0, 2))


def _off(parts, heads, *, value="mean", which="those", axes="all", of="its own"):
    parts = parts.clone()
    chosen = list(heads)
    if which == "others":
        chosen = [h for h in range(parts.shape[2]) if h not in chosen]
    if which == "up to":
        chosen = list(range(max(heads) + 1))
    if which == "between":
        chosen = list(range(min(heads), max(heads) + 1))
    if which == "first":
        chosen = chosen[:1]
    if which == "as many":
        chosen = list(range(len(heads)))
    if which == "all":
        chosen = list(range(parts.shape[2]))
    mean = {
        "all": parts.mean((0, 1), keepdim=True),
        "texts": parts.mean(0, keepdim=True),
        "places": parts.mean(1, keepdim=True),
        "features": parts.mean((0, 1, 3), keepdim=True),
        "heads": parts.mean((0, 1, 2), keepdim=True),
        "everything": parts.mean(),
        "these heads": parts[:, :, chosen].mean((0, 1, 2)),
        "all of these heads": parts[:, :, chosen].mean(),
    }[axes].expand_as(parts)
    if value == "median":
        mean = parts.flatten(0, 1).median(0).values.expand_as(parts)
    new = torch.zeros_like(parts) if value == "zero" else mean
    source = {
        "its own": chosen, "the first": [*range(len(chosen))], "turned": chosen[::-1],
        "the next": [(head + 1) % parts.shape[2] for head in chosen],
    }[of]  # fmt: skip
    if value == "taken off":
        new = parts - mean
    parts[:, :, chosen] = new[:, :, source]
    if value == "left out":
        parts = parts[:, :, [h for h in range(parts.shape[2]) if h not in chosen]]
    return parts


@exercise(
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="mean ablation",
    text="""
    Mean ablation, just before W_o: what the given heads say is replaced by the mean of it over all
    texts and all places; the other heads stay as they are. Each head and each of its features has a
    mean of its own. The input must not be changed.
    """,
    reference=_off,
    probes=[
        (draw(3, (1, 3, 2, 1))[0], [1]),
        (draw(4, (2, 3, 3, 2))[0], [0]),
        (draw(5, (3, 2, 4, 3))[0], [1, 3]),
    ],
    mistakes=[
        wrong(
            "the heads are set to zero",
            "importance",
            "Zero takes away the constant part, too: put the mean.",
            value="zero",
        ),
        wrong(
            "the other heads are ablated",
            "head layout",
            "The given heads lose their say; all others keep it.",
            which="others",
        ),
        wrong(
            "all heads are ablated",
            "head layout",
            "The given heads lose their say; all others keep it.",
            which="all",
        ),
        wrong(
            "the mean is subtracted, not put in the place",
            "importance",
            "That takes away what a head says on average; asked is to leave only that.",
            value="taken off",
        ),
        wrong(
            "the heads are taken out",
            "importance",
            "The shape stays (B, T, h, s): W_o reads all h heads.",
            value="left out",
        ),
        wrong(
            "all heads up to the given one are ablated",
            "head layout",
            "Only the heads in the list.",
            which="up to",
        ),
        wrong(
            "heads between those in the list are ablated, too",
            "head layout",
            "[1, 3] means heads 1 and 3, not 1 to 3: index by the list, not by a slice.",
            which="between",
        ),
        wrong(
            "only the first head in the list is ablated",
            "head layout",
            "`heads` may hold several: all of them lose their say.",
            which="first",
        ),
        wrong(
            "the first heads are ablated, as many as are listed",
            "head layout",
            "`heads` holds the numbers of the heads: loop over the list itself.",
            which="as many",
        ),
        wrong(
            "the median is put, not the mean",
            "averaging",
            "Half the numbers lie below the median; the mean is their sum, divided by how many.",
            value="median",
        ),
        wrong(
            "the mean is taken over the texts alone",
            "averaging",
            "One mean for all places, too: a mean at each place still tells where it is.",
            axes="texts",
        ),
        wrong(
            "the mean is taken over the places alone",
            "averaging",
            "A mean for each text still tells which text it is: average over texts, too.",
            axes="places",
        ),
        wrong(
            "all features of a head get one mean",
            "averaging",
            "Each feature keeps a mean of its own.",
            axes="features",
        ),
        wrong(
            "heads share one mean",
            "averaging",
            "What a head adds on average is its own mean, not that of several heads.",
            {"axes": "these heads"},
            axes="heads",
            of="its own",
        ),
        wrong(
            "heads and features share one mean",
            "averaging",
            "Each head and each of its features has a mean of its own, (h, s) in all.",
            {"axes": "all of these heads"},
            axes="everything",
            of="its own",
        ),
        wrong(
            "a head gets the mean of another head",
            "averaging",
            "The means (h, s) are indexed as the heads are: by the list, in its order.",
            {"of": "turned"},
            {"of": "the next"},
            of="the first",
        ),
    ],
    hints=[
        "Over which axes of (B, T, h, s) is the mean, and which stay?",
        "parts.mean((0, 1)) has shape (h, s); index it by the heads.",
        "Work on parts.clone(), and write into [:, :, heads].",
    ],
    right_variants=[
        lambda parts, heads: torch.where(
            torch.isin(torch.arange(parts.shape[2]), torch.tensor(heads))[:, None],
            parts.mean((0, 1)), parts,
        ),
        lambda parts, heads: torch.stack(
            [
                parts[:, :, h].mean((0, 1)).expand_as(parts[:, :, h]) if h in heads
                else parts[:, :, h]
                for h in range(parts.shape[2])
            ],
            dim=2,
        ),
        lambda parts, heads: parts.index_copy(
            2, torch.tensor(heads),
            parts.flatten(0, 1).mean(0)[heads].expand(*parts.shape[:2], -1, -1),
        ),
    ],
)  # fmt: skip
def without_heads(parts, heads):
    """Mean ablation of some heads.

    parts: (B, T, h, s), what each head gives to W_o; heads: a list. Returns (B, T, h, s).
    """
    parts = parts.clone()
    parts[:, :, heads] = parts.mean(dim=(0, 1))[heads]
    return parts


def _partners(
    base, loss, allowed, *, alone="both", together="missed", start="base", limit="allowed",
    order="any", own=False,
):  # fmt: skip
    zero = 0.0 if start in ("none", "share") else base
    if start == "share":
        loss = loss / base - 1
    if start == "either way":
        loss = base + (loss - base).abs()
    harmless = loss.diagonal() <= (0.0 if start == "none alone" else zero) + allowed
    if alone == "nothing":
        return loss > zero + allowed
    single = {
        "both": harmless[:, None] & harmless,
        "one": harmless[:, None] | harmless,
        "first": harmless[:, None].expand_as(loss),
        "second": harmless.expand_as(loss),
        "any": torch.ones_like(loss, dtype=torch.bool),
        "none": ~harmless[:, None] & ~harmless,
    }[alone]
    sums = loss.diagonal()[:, None] + loss.diagonal() - zero
    worse = torch.maximum(loss.diagonal()[:, None], loss.diagonal())
    highest = {
        "allowed": zero + allowed, "sums": sums, "sums and allowed": sums + allowed,
        "twice": zero + 2 * allowed, "allowed alone": allowed, "worse": worse + allowed,
    }.get(limit, worse)  # fmt: skip
    pair = loss <= highest if together == "harmless" else loss > highest
    if limit == "over the worse":
        pair = loss - worse > allowed
    diagonal = torch.eye(len(loss), dtype=torch.bool)
    found = single & pair if own == "as it comes" else single & pair & ~diagonal
    found = found | diagonal if own is True else found
    return {"once": found.triu(1), "lower": found.tril(-1), "any": found}[order]


def _pair_losses(base, alone, pairs):
    loss = torch.diag(torch.tensor(alone))
    for (i, j), value in pairs.items():
        loss[i, j] = loss[j, i] = value
    return base, loss


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=3,
    trains="finding heads that stand in for each other",
    text="""
    Somebody has switched off the heads of a layer, alone and in pairs: `loss[i, j]` is the loss
    without heads i and j, `loss[i, i]` that without head i alone, `base` that of the whole model. A
    rise of at most `allowed` is harmless, and so is any fall. Which heads stand in for each other:
    harmless alone, both of them, but not together?
    """,
    reference=_partners,
    probes=[
        (*_pair_losses(0.5, [0.5, 0.9, 0.5], {(0, 1): 1.2, (0, 2): 0.54, (1, 2): 1.2}), 0.1),
        (*_pair_losses(1.0, [1.05, 1.08, 2.0], {(0, 1): 3.0, (0, 2): 2.1, (1, 2): 2.0}), 0.2),
        (
            *_pair_losses(
                1.0,
                [1.1, 1.1, 1.05, 1.6],
                {
                    (0, 1): 1.19, (0, 2): 1.13, (0, 3): 1.6,
                    (1, 2): 1.27, (1, 3): 1.9, (2, 3): 1.62,
                },
            ),
            0.15,
        ),
        (
            *_pair_losses(
                0.2,
                [0.9, 0.8, 0.22, 0.25],
                {
                    (0, 1): 2.5, (0, 2): 0.9, (0, 3): 1.1, (1, 2): 0.8, (1, 3): 0.8, (2, 3): 0.26,
                },
            ),
            0.1,
        ),
        (*_pair_losses(1.0, [0.5, 1.1, 0.7], {(0, 1): 3.0, (0, 2): 0.25, (1, 2): 2.0}), 0.2),
        (*_pair_losses(0.05, [0.1, 0.2, 0.3], {(0, 1): 0.53, (0, 2): 0.7, (1, 2): 0.2}), 0.5),
        (*_pair_losses(0.5, [1.0, 0.9, 0.55], {(0, 1): 0.55, (0, 2): 1.0, (1, 2): 0.9}), 0.1),
        (*_pair_losses(0.5, [0.5, 0.5, 0.9], {(0, 1): 0.65, (0, 2): 1.1, (1, 2): 0.95}), 0.1),
    ],
    edges=[
        (
            "where a loss is a little below `base`",
            (*_pair_losses(1.0, [0.9, 1.1, 1.0], {(0, 1): 3.0, (0, 2): 0.5, (1, 2): 2.0}), 0.2),
        ),
    ],
    mistakes=[
        wrong(
            "one of the two may be missed alone",
            "importance",
            "A head that is missed alone hides behind nobody: both must be harmless alone.",
            {"alone": "first"},
            {"alone": "second"},
            alone="one",
        ),
        wrong(
            "what they do alone is not looked at",
            "importance",
            "A pair with a head that is missed alone is always missed: look at the diagonal.",
            {"alone": "nothing", "together": "missed", "limit": "allowed", "order": "any"},
            alone="any",
        ),
        wrong(
            "both are missed alone",
            "importance",
            "Asked are heads whose single ablation shows nothing.",
            alone="none",
        ),
        wrong(
            "pairs that are harmless together are given",
            "importance",
            "Then nobody needs either; asked are pairs that are missed together.",
            together="harmless",
        ),
        wrong(
            "losses are not compared with the base",
            "importance",
            "A loss is harmless when it is at most base + allowed.",
            {"start": "base", "limit": "allowed alone"},
            {"start": "none alone"},
            start="none",
        ),
        wrong(
            "a fall counts like a rise",
            "importance",
            "A loss below the base is no harm: compare the signed difference.",
            start="either way",
        ),
        wrong(
            "the rise is taken as a share of the base",
            "importance",
            "`allowed` is a rise of the loss itself: loss minus base, not divided by it.",
            start="share",
        ),
        wrong(
            "together is compared with the sum of the two rises",
            "importance",
            "Asked is whether together they are harmless: at most base + allowed, or not.",
            {"limit": "sums and allowed"},
            {"own": "as it comes"},
            {"limit": "sums and allowed", "own": "as it comes"},
            limit="sums",
        ),
        wrong(
            "together is compared with the worse of the two alone",
            "importance",
            "A rise is a rise from `base`, for a pair as for one head.",
            {"limit": "over the worse"},
            limit="worse",
        ),
        wrong(
            "a pair is allowed twice as much",
            "importance",
            "A rise of at most `allowed` is harmless, for a pair as for one head.",
            limit="twice",
            alone="both",
        ),
        wrong(
            "a pair is given in one order only",
            "importance",
            "Heads i and j stand in for each other: entries [i, j] and [j, i] are both True.",
            {"order": "lower"},
            order="once",
        ),
        wrong(
            "a head is taken for its own partner",
            "importance",
            "The diagonal is False: a head that is harmless alone is not missed.",
            own=True,
        ),
    ],
    hints=[
        "First a vector (h,): which heads are harmless alone? The diagonal says so.",
        "harmless[:, None] & harmless is True where both are.",
        "Then ask of each pair whether its loss is above base + allowed.",
    ],
    right_variants=[
        lambda base, loss, allowed: torch.tensor(
            [
                [
                    bool(
                        loss[i, i] - base <= allowed
                        and loss[j, j] - base <= allowed
                        and loss[i, j] - base > allowed
                    )
                    for j in range(len(loss))
                ]
                for i in range(len(loss))
            ]
        ),
        lambda base, loss, allowed: (
            (loss > base + allowed)
            & (torch.maximum(loss.diagonal()[:, None], loss.diagonal()) <= base + allowed)
        ),
        lambda base, loss, allowed: torch.outer(
            (loss.diagonal() <= base + allowed).float(), (loss.diagonal() <= base + allowed).float()
        ).bool().logical_and(loss - base > allowed),
    ],
)  # fmt: skip
def hidden_partners(base, loss, allowed):
    """Pairs of heads that stand in for each other.

    base: a number, loss: (h, h), symmetric, allowed: a number. Returns booleans (h, h).
    """
    harmful = loss > base + allowed
    alone = harmful.diagonal()
    return harmful & ~alone[:, None] & ~alone


def _recovered(
    clean, corrupted, patched, *, average="before", count="from corrupted", by="whole", cut=False
):
    if average == "after":
        return torch.stack(
            [
                _recovered(c[None], w[None], p[None], count=count, by=by, cut=cut)
                for c, w, p in zip(clean, corrupted, patched, strict=True)
            ]
        ).mean(0)
    c, w, p = clean.mean(), corrupted.mean(), patched.mean(0)
    if average == "median":
        c, w, p = clean.median(), corrupted.median(), patched.median(0).values
    if average == "of everything":
        p = patched.mean()
    gained = {
        "from corrupted": p - w, "from clean": c - p, "to clean": p - c, "from zero": p,
        "size": (p - w).abs(),
    }[count]  # fmt: skip
    whole = {
        "whole": c - w, "clean": c, "nothing": 1.0, "turned": w - c, "size": (c - w).abs(),
        "sizes": (clean - corrupted).abs().mean(), "patched": p - c,
    }[by]  # fmt: skip
    share = gained / whole
    return share.clamp(0, 1) if cut else share


def _runs(seed, B, layers, T):
    noise, at = draw(seed, (B,), (B, layers, T))
    clean = (3 + noise).round(decimals=2)
    corrupted = (0.5 + noise.flip(0) / 2).round(decimals=2)
    share = 0.5 + at  # some patches make it worse than the corrupted run, or better than the clean
    return clean, corrupted, (corrupted[:, None, None] * (1 - share) + 3 * share).round(decimals=2)


@exercise(
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="the effect of a patch, over many texts",
    text="""
    The effect of patching, over B pairs of texts. A single pair may have a clean and a corrupted
    answer that are nearly equal, and its quotient says nothing. So first average each of the three
    answers over the pairs, and then form the effect: 0 where nothing comes back, 1 where all does.
    """,
    reference=_recovered,
    probes=[
        _runs(6, 2, 1, 2),
        _runs(7, 3, 2, 4),
        _runs(8, 4, 3, 5),
        (
            torch.tensor([1.0, -2.0, 0.5]),
            torch.tensor([2.0, 1.5, -0.5]),
            torch.tensor([[[1.5, 0.0]], [[-1.0, 2.5]], [[0.5, 1.0]]]),
        ),
    ],
    mistakes=[
        wrong(
            "quotients are averaged",
            "averaging",
            "Average clean, corrupted and patched first; one pair with a small difference would "
            "rule the mean.",
            average="after",
        ),
        wrong(
            "what is still missing is counted",
            "importance",
            "The effect is what came back: patched minus corrupted.",
            count="from clean",
        ),
        wrong(
            "the difference above is between patched and clean",
            "importance",
            "What came back counts from the corrupted answer: patched minus corrupted.",
            count="to clean",
        ),
        wrong(
            "the difference below is between patched and clean",
            "importance",
            "Below stands the whole way, clean minus corrupted, the same for every patch.",
            by="patched",
        ),
        wrong(
            "the corrupted answer is not subtracted above",
            "importance",
            "Where the patch changes nothing, the effect has to be 0.",
            count="from zero",
        ),
        wrong(
            "the corrupted answer is not subtracted below",
            "importance",
            "Where all comes back, the effect has to be 1: divide by clean minus corrupted.",
            by="clean",
        ),
        wrong(
            "it is not divided by the whole difference",
            "importance",
            "An effect is a share of clean minus corrupted.",
            by="nothing",
        ),
        wrong(
            "the difference below has the wrong sign",
            "importance",
            "Clean minus corrupted: what there is to bring back.",
            by="turned",
        ),
        wrong(
            "the difference below loses its sign",
            "importance",
            "Where the corrupted answer is the larger one, clean minus corrupted is below 0, and "
            "has to stay so: take no abs.",
            {"by": "sizes"},
            by="size",
        ),
        wrong(
            "what came back loses its sign",
            "importance",
            "A patch may make the answer worse than the corrupted one: then the effect is below 0.",
            count="size",
        ),
        wrong(
            "effects are cut off at 0 and 1",
            "importance",
            "A patch may do harm (below 0), or more than bring all back (above 1): leave it so.",
            cut=True,
        ),
        wrong(
            "the median is taken, not the mean",
            "averaging",
            "Average is the mean: the sum over the pairs, divided by their number.",
            average="median",
        ),
        wrong(
            "all patches get one mean",
            "averaging",
            "Each layer and place has an effect of its own: average over the pairs alone, dim=0.",
            average="of everything",
        ),
    ],
    hints=[
        "Three means: two numbers, and one table (layers, T).",
        "Which mean is the zero of the scale, and which the one?",
        "patched.mean(0) is the table; subtract the zero, divide by the distance of the two.",
    ],
    right_variants=[
        lambda c, w, p: (p - w[:, None, None]).mean(0) / (c - w).mean(),
        lambda c, w, p: (p.sum(0) - w.sum()) / (c.sum() - w.sum()),
        lambda c, w, p: 1 - (c.mean() - p.mean(0)) / (c.mean() - w.mean()),
    ],
)
def effects_of_many(clean, corrupted, patched):
    """Effects of patches, over pairs of texts.

    clean, corrupted: (B,) answers, patched: (B, layers, T). Returns (layers, T).
    """
    best, worst = clean.mean(), corrupted.mean()
    return (patched.mean(dim=0) - worst) / (best - worst)


def _rolled(maps, *, residual="half", order="upwards", heads="mean", join="product"):
    if heads == "apart":
        every = [
            _rolled(one, residual=residual, order=order) for one in maps[:, :, :, None].unbind(2)
        ]
        return torch.stack(every).mean(0)
    eye, joint = torch.eye(maps.shape[-1]), torch.eye(maps.shape[-1])
    total = 0.0
    for i, map in enumerate(maps if order == "upwards" else maps.flip(0)):
        one = {
            "mean": map.mean(1), "sum": map.sum(1), "largest": map.amax(1), "first": map[:, 0],
            "of the texts": map.mean(0), "turned": map.mean(1).mT,
        }[heads]  # fmt: skip
        mixed = {
            "half": (one + eye) / 2, "none": one, "added": one + eye,
            "not in the first": (one + eye) / 2 if i else one,
            "by columns": (one + eye) / (one + eye).sum(-2, keepdim=True),
            "by rows": (one + eye) / (one + eye).sum(-1, keepdim=True),
            "of the words": one, "at the end": one, "everywhere": one / 2 + 0.5,
            "only in the first": one if i else (one + eye) / 2,
        }[residual]  # fmt: skip
        ends = i in (0, len(maps) - 1)
        if join.startswith("entry by entry"):
            joint = mixed * joint if i or join.endswith("identity") else mixed
        elif join != "ends" or ends:
            joint = mixed @ joint
        total = total + mixed
        if residual == "of the words":
            joint = (joint + eye) / 2
    joint = (joint + eye) / 2 if residual == "at the end" else joint
    return total / len(maps) if join == "mean" else joint


@exercise(
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=2,
    trains="attention rollout",
    text="""
    Attention rollout. In each layer take the mean of the heads' maps, and mix it half and half with
    the identity, for the residual path. Multiply these matrices so that row t of the result says
    how much of each input word is left at place t after the last layer. `maps[0]` is layer 0.
    """,
    reference=_rolled,
    probes=[
        (_maps(9, 2, 1, 2, 2, 2),),
        (_maps(10, 2, 2, 2, 3, 3),),
        (_maps(11, 3, 2, 3, 4, 4),),
        (_maps(12, 3, 1, 2, 2, 2),),
        (_maps(13, 2, 2, 2, 3, 3),),
        (_maps(14, 2, 3, 1, 3, 3),),
        (_maps(15, 4, 1, 2, 3, 3),),
        (_maps(16, 2, 1, 3, 4, 4),),
        (_maps(17, 3, 2, 1, 2, 2),),
        (_maps(18, 5, 1, 1, 3, 3),),
        (_maps(19, 2, 2, 3, 2, 2),),
    ],
    mistakes=[
        wrong(
            "the layers are multiplied in the wrong order",
            "block order",
            "The last layer looks at what the earlier ones have mixed: it stands on the left.",
            order="downwards",
        ),
        wrong(
            "the residual path is left out",
            "residual",
            "Half of each vector stays at its place: add the identity.",
            residual="none",
        ),
        wrong(
            "the identity is added and nothing is halved",
            "residual",
            "Rows have to sum to 1 again: divide by 2.",
            residual="added",
        ),
        wrong(
            "the first layer gets no residual path",
            "residual",
            "Every layer is mixed with the identity: start from the identity, not from maps[0].",
            residual="not in the first",
        ),
        wrong(
            "only the first layer has a residual path",
            "residual",
            "Every layer is mixed with the identity, half and half.",
            residual="only in the first",
        ),
        wrong(
            "the identity is mixed in once, behind the last layer",
            "residual",
            "Each layer has a residual path of its own: mix every map before you multiply.",
            residual="at the end",
            join="product",
        ),
        wrong(
            "one half is added to every weight",
            "residual",
            "Only a word's own place, the diagonal, gets it: 0.5 * torch.eye(T).",
            residual="everywhere",
        ),
        wrong(
            "columns are made to sum to 1, not rows",
            "residual",
            "A row of a map shares out 1 among its keys: divide map + identity by 2, or by the "
            "sums of its rows.",
            residual="by columns",
        ),
        wrong(
            "the residual path leads from the words, not from the layer below",
            "residual",
            "Each layer passes on what it was given: mix its map with the identity first, and then "
            "multiply.",
            residual="of the words",
            join="product",
        ),
        wrong(
            "the heads are summed",
            "averaging",
            "Take their mean, so that rows sum to 1.",
            heads="sum",
        ),
        wrong(
            "the largest weight of the heads is taken",
            "averaging",
            "Some variants do so; here it is the mean.",
            {"residual": "by rows"},
            heads="largest",
        ),
        wrong(
            "each head is followed through the layers by itself",
            "averaging",
            "A layer reads what all the heads below have mixed: average them in each layer, and "
            "then multiply.",
            heads="apart",
            join="product",
        ),
        wrong(
            "only head 0 is used",
            "averaging",
            "All heads count alike: their mean.",
            heads="first",
        ),
        wrong(
            "the mean runs over the texts, not over the heads",
            "averaging",
            "The heads are axis 1 of a layer's maps, (B, h, T, T); each text keeps its own.",
            heads="of the texts",
        ),
        wrong(
            "the maps are transposed",
            "role of q, k, v",
            "Row t of a map says what place t takes in, and so it stands in the product.",
            heads="turned",
        ),
        wrong(
            "the matrices are multiplied entry by entry",
            "block order",
            "A later layer mixes what earlier ones mixed: the product of matrices, @.",
            {"join": "entry by entry, from the identity"},
            join="entry by entry",
        ),
        wrong(
            "the layers are averaged",
            "block order",
            "A later layer reads what earlier ones mixed: multiply the matrices.",
            join="mean",
        ),
        wrong(
            "only the first and the last layer are multiplied",
            "block order",
            "All layers belong to the product, also where there are more than two.",
            join="ends",
        ),
    ],
    hints=[
        "Start with the identity (T, T): before the first layer each place holds its own word.",
        "One layer: (mean map + identity) / 2. Check that its rows sum to 1.",
        "A layer mixes what is there: its matrix times the result so far.",
    ],
    right_variants=[
        lambda maps: torch.linalg.multi_dot(
            [(m.mean(0) + torch.eye(m.shape[-1])) / 2 for m in maps[:, 0].flip(0)]
        )[None] if maps.shape[1] == 1 else torch.stack([
            torch.linalg.multi_dot(
                [(m.mean(0) + torch.eye(m.shape[-1])) / 2 for m in maps[:, b].flip(0)]
            )
            for b in range(maps.shape[1])
        ]),
        lambda maps: torch.stack([
            _product([0.5 * m + 0.5 * torch.eye(m.shape[-1]) for m in text])
            for text in maps.mean(2).transpose(0, 1)
        ]),
        lambda maps: _product(list(0.5 * (maps.mean(2) + torch.eye(maps.shape[-1])))),
        lambda maps: _product(
            [m / m.sum(-1, keepdim=True) for m in maps.mean(2) + torch.eye(maps.shape[-1])]
        ),
    ],
)  # fmt: skip
def rolled_out(maps):
    """How much of each word is left at each place, if attention alone moved them.

    maps: (layers, B, h, T, T). Returns (B, T, T); rows sum to 1.
    """
    joint = torch.eye(maps.shape[-1])
    for map in maps:
        joint = (map.mean(dim=1) + torch.eye(maps.shape[-1])) / 2 @ joint
    return joint


def _product(matrices):
    joint = matrices[0]
    for matrix in matrices[1:]:
        joint = matrix @ joint
    return joint


@exercise(
    asks="transfer",
    kind="value",
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="which head does what, from scores and ablations",
    text="""
    A detective case: four heads of one model that copies as ours does, and the rise of its loss
    when each is switched off. The first three columns say how much it looks there.

    | head | one back | behind the copy | the first word | rise alone | with head 2 off, too |
    |---|---|---|---|---|---|
    | 0 | 0.03 | 0.02 | 0.93 | 0.00 | 0.41 |
    | 1 | 0.95 | 0.01 | 0.03 | 2.60 | 2.70 |
    | 2 | 0.02 | 0.90 | 0.02 | 0.40 | |
    | 3 | 0.01 | 0.87 | 0.06 | 0.01 | 2.30 |

    Which is the previous-token head (`p`), which the induction head that is missed alone (`i`),
    which the one that stands in for it (`b`), and which only parks its weight (`s`)? Write the four
    letters in the order of the heads, such as `"pibs"`.
    """,
    mistakes=mixed_up(
        "spib",
        {
            "the head that parks": "Parking shows as weight on a word without use. Alone it costs "
            "nothing, and with head 2 off hardly more than head 2 costs by itself.",
            "the previous-token head": "The previous-token head looks one back.",
            "the induction head": "The induction head looks behind the copy, and is missed alone.",
            "the induction head's stand-in": "The stand-in looks behind the copy, too; it is "
            "missed only when the other is off.",
        },
        "importance",
    ),
    hints=[
        "One column of scores settles one head at once.",
        "Two heads look behind the copy. Which column tells them apart?",
        "The fourth head is left over: is it missed in any column of rises?",
    ],
)
def which_head():
    """Four letters, head 0 first."""
    return "spib"


@exercise(
    asks="transfer",
    kind="value",
    notebook=NOTEBOOK,
    minutes=4,
    difficulty=2,
    trains="what an ablation allows you to say",
    text="""
    A head of a translator lays 0.9 of its weight on the English word that the French word stands
    for, over many sentences. It is set to its mean, and the loss on those sentences rises by 0.01.
    Nothing else was tried. What follows? `"a"`: the head does nothing. `"b"`: the English word does
    not matter for the French one. `"c"`: on these sentences the rest of the model does without what
    this head says in particular. `"d"`: with zero in place of the mean the loss would rise by 0.01,
    too.
    """,
    mistakes=[
        [
            *wrong(
                "another head may do the same",
                "importance",
                "That it is not missed does not make it idle: a second head may stand in.",
                answer="a",
            ),
            *wrong(
                "a head was taken away, not the word",
                "importance",
                "The word is still read, by all other heads. Hide the word to test it.",
                answer="b",
            ),
            *wrong(
                "zero takes away more",
                "importance",
                "Zero removes the constant part, too; the rise may be larger.",
                answer="d",
            ),
        ]
    ],
    hints=[
        "What was changed, and what was left as it was?",
        "Could the same come out if the head does a lot? Think of the copier's layer 0.",
        "Choose the sentence that says no more than what was measured, and on what.",
    ],
)
def what_follows():
    """One letter."""
    return "c"
