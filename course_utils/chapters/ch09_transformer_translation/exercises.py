"""Exercises of notebook 09: masks, the whole model, leaks, heads, decoding, and the cache."""

import functools
import math

import torch
import torch.nn.functional as F

from course_utils.chapters.ch02_masked_softmax.exercises import CAUSAL_MISTAKES, visible_keys
from course_utils.checker.common import worked_out
from course_utils.checker.exercise import exercise, wrong
from course_utils.checker.probes import draw

NOTEBOOK = "09_transformer_translation"


def _masks(source, target, pad, *, cross="source", zero="nowhere", made_of="target", heads=True,
           given="source first", numbers=False, **switches):  # fmt: skip
    target_pad = 0 if zero in ("both", "target") else pad
    pad = 0 if zero in ("both", "source") else pad
    keys = target != target_pad
    is_real = {"by size": source > pad, "by size, turned": source < pad}.get(zero, source != pad)
    if made_of != "target":  # an error, unless the two are equally long
        _ = (source != pad)[:, None, None] & torch.ones(2 * target.shape[1:]).bool()
        keys = is_real if made_of == "source" else keys
    own = visible_keys(keys.sum(1), target.shape[1], heads=heads, **switches)
    real = {"target": target != target_pad, "inverted": ~is_real}
    words = real.get(cross, is_real)[:, None, None]  # (B, 1, 1, S)
    if cross == "none":
        words = torch.ones_like(words)
    if cross == "causal":
        words = words & torch.ones(target.shape[1], source.shape[1]).tril().bool()
    if cross == "queries":
        words = (target != target_pad)[:, None, :, None].expand(-1, -1, -1, source.shape[1])
    words = words if heads else words[:, 0]
    if numbers:
        words, own = words.to(numbers), own.to(numbers)
    return (words, own) if given == "source first" else (own, words)


@exercise(
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=2,
    trains="the masks of an encoder-decoder",
    text="""
    A decoder needs two masks: one for its look at the source, where only padding is hidden, and one
    for its look at itself, where padding and the future are.
    """,
    reference=_masks,
    probes=[
        (torch.tensor([[4, 6, 8, 0]]), torch.tensor([[5, 7, 0]]), 0),
        (
            torch.tensor([[4, 6, 8, 3, 0], [5, 3, 0, 0, 0]]),
            torch.tensor([[5, 6, 7, 0], [5, 0, 0, 0]]),
            0,
        ),
        (torch.tensor([[4, 1, 1], [0, 5, 1]]), torch.tensor([[5, 3, 7, 1], [4, 6, 1, 1]]), 1),
        (
            torch.tensor([[4, 6, 3, 0], [5, 0, 0, 0]]),
            torch.tensor([[5, 0, 0, 0], [5, 6, 7, 0]]),
            0,
        ),
    ],
    mistakes=[
        *CAUSAL_MISTAKES,
        wrong(
            "the look at the source is hidden by the target's padding",
            "mask axis",
            "There the keys are the words of the source, so its padding counts.",
            {"cross": "queries"},
            cross="target",
        ),
        wrong(
            "the look at the source is causal",
            "mask direction",
            "The whole source is known before the first word is translated.",
            cross="causal",
        ),
        wrong(
            "the padding of the source is not hidden",
            "mask missing",
            "The decoder must not look at padding of the source either.",
            cross="none",
        ),
        wrong(
            "the mask of the source is inverted",
            "mask meaning",
            "True = may look: at the real words.",
            cross="inverted",
        ),
        wrong(
            "the id of padding is taken to be 0",
            "mask missing",
            "The vocabulary decides which id it is; here it is the argument pad.",
            {"zero": "source"},
            {"zero": "target"},
            zero="both",
        ),
        wrong(
            "ids are compared by size with the id of padding",
            "mask missing",
            "Ids are names, not amounts: a real token is one that is not equal to pad.",
            {"zero": "by size, turned"},
            zero="by size",
        ),
        wrong(
            "the look at itself is hidden by the source's padding",
            "mask axis",
            "There the keys are the target's own tokens, so the target's padding counts.",
            made_of="source",
        ),
        wrong(
            "the triangle has the length of the source",
            "mask axis",
            "Queries and keys of the look at itself are the target's tokens: (T, T), not (S, S).",
            made_of="target with S",
        ),
        wrong(
            "the two masks are given in the wrong order",
            "mask axis",
            "First the mask for the look at the source, then the one for the target itself.",
            given="target first",
        ),
        wrong(
            "the axis of the heads is missing",
            "mask axis",
            "(B, T, S) does not line up with scores (B, h, T, S): heads need an axis of size 1.",
            heads=False,
        ),
        wrong(
            "the masks hold numbers",
            "mask meaning",
            "Make them boolean: masked_fill and ~ need True and False.",
            {"numbers": torch.long},
            numbers=torch.float32,
        ),
    ],
    hints=[
        "For the look at the source: which tokens are the keys there?",
        "For the look at itself: real target keys, and (T, T) ones below the diagonal, with and.",
        "Shapes: (B, 1, 1, S) and (B, 1, T, T).",
    ],
    right_variants=[
        lambda s, t, p: (
            s.ne(p).view(len(s), 1, 1, -1),
            t.ne(p).view(len(t), 1, 1, -1) & torch.ones(t.size(1), t.size(1)).tril().bool(),
        ),
        lambda s, t, p: (
            torch.stack([row != p for row in s])[:, None, None],
            ~((t == p)[:, None, None] | torch.ones(t.shape[1], t.shape[1]).triu(1).bool()),
        ),
        lambda s, t, p: (
            (s != p).unsqueeze(1).unsqueeze(1),
            torch.tensor(
                [
                    [[[k <= q and row[k] != p for k in range(len(row))] for q in range(len(row))]]
                    for row in t.tolist()
                ]
            ),
        ),
    ],
    map_of=lambda masks: masks[1][0, 0],
)
def translation_masks(source, target, pad):
    """The masks for the look at the source and for the look at the target itself.

    source: (B, S) ids, target: (B, T) ids as the decoder reads them, pad: the id of padding.
    Returns boolean masks (B, 1, 1, S) and (B, 1, T, T), True = may look.
    """
    steps = target.shape[1]
    to_source = (source != pad)[:, None, None]  # (B, 1, 1, S)
    causal = torch.ones(steps, steps, dtype=torch.bool).tril()  # (T, T)
    to_itself = (target != pad)[:, None, None] & causal  # (B, 1, T, T)
    return to_source, to_itself


_TOO_LONG = "the model was asked to go on after 30 tokens: what ends the loop?"


def toy_model(seed, stops_at, vocabulary=6, eos=2, bos=1):
    """A next-token model for probes: it depends on the whole prefix and stops by itself, or not.

    It never says <bos>: no text tells what a decoder would have to do with it.
    """
    by_last, by_sum = draw(seed, (vocabulary, vocabulary), (7, vocabulary))

    def next_logits(prefix):
        if len(prefix) > 30:
            raise RuntimeError(_TOO_LONG)
        last = prefix[-1] if len(prefix) else 0
        logits = by_last[last] + 2.0 * by_sum[sum(prefix) % 7]
        logits[bos] = -1.0 - logits.abs().sum()
        logits[eos] = 9.0 if len(prefix) == stops_at else logits.min() - 1.0
        return logits

    return next_logits


def _greedy(
    next_logits,
    bos,
    eos,
    max_len,
    *,
    stop="eos",
    start="left out",
    end="left out",
    prefix="whole",
    bound=0,
    pick="best",
    eos_id="given",
):
    tokens = [bos]
    eos = eos if eos_id == "given" else 2
    limits = {"none": math.inf, "at least one": max(max_len, 1)}
    limit = limits[bound] if bound in limits else max_len + bound
    while len(tokens) - 1 < limit:
        if len(tokens) > 30:
            raise RuntimeError(_TOO_LONG)
        seen = {"whole": tokens, "last": tokens[-1:], "bare": tokens[-1], "no bos": tokens[1:]}
        logits = next_logits(seen[prefix])
        token = int(logits.argmin() if pick == "worst" else logits.argmax())
        if token == eos and stop == "eos":
            if end == "kept":
                tokens.append(token)
            break
        tokens.append(token)
    if stop == "filtered":
        tokens = [token for token in tokens if token != eos]
    return tokens if start == "kept" else tokens[1:]


def _greedy_by_recursion(next_logits, bos, eos, max_len):
    def go(prefix):
        if len(prefix) > max_len:
            return []
        best = max(enumerate(next_logits(prefix).tolist()), key=lambda pair: pair[1])[0]
        return [] if best == eos else [best, *go([*prefix, best])]

    return go([bos])


def _greedy_as_tensor(next_logits, bos, eos, max_len):
    out = torch.full((max_len + 1,), bos)
    for t in range(max_len):
        out[t + 1] = torch.softmax(next_logits(out[: t + 1].tolist()), -1).topk(1).indices
        if out[t + 1] == eos:
            return out[1 : t + 1]
    return out[1:]


@exercise(
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=1,
    trains="decoding step by step",
    text="""
    Greedy decoding: always take the most likely next token, until `<eos>` or until `max_len` tokens
    are there. Give back the tokens without `<bos>` and `<eos>`.
    """,
    reference=_greedy,
    probes=[
        (toy_model(91, 3), 1, 2, 5),
        (toy_model(92, 5), 1, 2, 8),
        (toy_model(93, None), 1, 2, 6),
        (toy_model(94, 4), 1, 2, 4),
        (toy_model(95, 3), 1, 2, 0),
        (toy_model(96, 3, eos=4, bos=3), 3, 4, 6),  # other ids than usual
    ],
    mistakes=[
        wrong(
            "decoding does not stop at <eos>",
            "stopping",
            "What follows <eos> is no part of the translation.",
            {"stop": "filtered"},
            stop="never",
        ),
        wrong(
            "<bos> is part of the result",
            "stopping",
            "It only starts the decoder; the result begins after it.",
            start="kept",
        ),
        wrong(
            "<eos> is part of the result",
            "stopping",
            "It only says that the translation is complete.",
            end="kept",
        ),
        wrong(
            "the loop has no bound",
            "stopping",
            "A model may never say <eos>; stop after max_len tokens.",
            bound="none",
        ),
        wrong(
            "one token too many is allowed",
            "off by one",
            "max_len counts the tokens of the result, <bos> not included.",
            bound=1,
        ),
        wrong(
            "one token too few is allowed",
            "off by one",
            "max_len counts the tokens of the result; where <eos> never came, none is dropped.",
            bound=-1,
        ),
        wrong(
            "one token is taken before max_len is looked at",
            "stopping",
            "With a max_len of 0 the result is empty: look at the length before each step.",
            bound="at least one",
        ),
        wrong(
            "the model sees only the last token",
            "prefix",
            "Hand over the whole prefix, a list from <bos> on.",
            {"prefix": "bare"},
            prefix="last",
        ),
        wrong(
            "the least likely token is taken",
            "search",
            "argmin where argmax is due.",
            pick="worst",
        ),
        wrong(
            "the id of <eos> is taken to be 2",
            "stopping",
            "The vocabulary decides which id it is; here it is the argument eos.",
            eos_id="2",
        ),
        wrong(
            "the prefix does not start with <bos>",
            "prefix",
            "The first prefix is [bos]; the model sees it at every step.",
            prefix="no bos",
        ),
    ],
    hints=[
        "Start with the prefix [bos] and make it longer by one token at a time.",
        "When is the new token not added?",
        "Two reasons to leave the loop: <eos>, and max_len tokens.",
    ],
    right_variants=[
        _greedy_by_recursion,
        _greedy_as_tensor,
        lambda f, b, e, n: next(
            [*out[1:]]
            for out in [[b]]
            if all((t := f(out).argmax().item()) != e and not out.append(t) for _ in range(n))
            or True
        ),
    ],
)
def greedy_tokens(next_logits, bos, eos, max_len):
    """The most likely continuation, token by token.

    next_logits(prefix): scores (V,) of the next token after a list of ids that starts with bos.
    Returns a list of at most max_len ids, without bos and eos.
    """
    tokens = [bos]
    while len(tokens) <= max_len:
        token = int(next_logits(tokens).argmax())
        if token == eos:
            break
        tokens.append(token)
    return tokens[1:]


def _beam(
    scores,
    log_probs,
    width,
    *,
    add="sum",
    pool="all",
    split="V",
    largest=True,
    given="right",
    score="sum",
    keep="width",
):
    width = width if keep == "width" else len(scores)
    # along the tokens, an error, unless there are one beam or as many beams as tokens
    sums = (scores if add == "along the tokens" else scores[:, None]) + log_probs
    total = {
        "sum": sums,
        "along the tokens": sums,
        "again": sums.flatten().log_softmax(0).view_as(sums),
        "new only": log_probs,
        "product": scores[:, None] * log_probs,
        "probabilities": sums + log_probs.exp() - log_probs,
        "mean": sums / 2,
    }[add]
    size = log_probs.shape[1]
    if pool.startswith("each beam"):
        best, tokens = total.max(dim=1) if largest else total.min(dim=1)
        parents = torch.arange(len(scores))
        if pool == "each beam, sorted":
            parents = best.argsort(descending=largest)
            best, tokens = best[parents], tokens[parents]
        best, tokens, parents = best[:width], tokens[:width], parents[:width]
    elif pool == "beams alone":
        best, tokens = total.max(dim=1) if largest else total.min(dim=1)
        best, parents = best.topk(width, largest=largest)
        tokens = tokens[parents]
    elif pool.startswith("its best"):
        best, tokens = total.topk(min(width, size), dim=1, largest=largest)
        parents = torch.arange(len(scores))[:, None].expand_as(best)
        few = width if pool == "its best, cut" else None
        best, parents, tokens = (x.flatten()[:few] for x in (best, parents, tokens))
    elif type(pool) is int:  # of so many continuations of each beam; an error where they are few
        few = min(width, pool) if pool > 0 else max(1, width + pool)
        best, tokens = total.topk(min(few, size), dim=1, largest=largest)
        best, at = best.flatten().topk(width, largest=largest)
        parents, tokens = at // tokens.shape[1], tokens.flatten()[at]
    elif pool == "2 of each, as many as there are":
        best, tokens = total.topk(min(width, 2, size), dim=1, largest=largest)
        best, at = best.flatten().topk(min(width, best.numel()), largest=largest)
        parents, tokens = at // tokens.shape[1], tokens.flatten()[at]
    elif pool == "best beam":
        parent = int(scores.argmax())
        best, tokens = total[parent].topk(width, largest=largest)
        parents = torch.full_like(tokens, parent)
    else:
        table = total.T if split == "columns first" else total
        best, flat = table.flatten().topk(width, largest=largest)
        divisor = len(scores) if split == "beams" else size
        parents, tokens = flat // divisor, flat if split == "flat" else flat % divisor
    if score == "added afterwards":
        best = best + scores[parents]
    if score == "new only":
        best = log_probs.flatten()[flat]
    if score == "probability":
        best = best.exp()
    if given == "worst first":
        return best.flip(0), parents.flip(0), tokens.flip(0)
    if given == "swapped":
        parents, tokens = tokens, parents
    return best, parents, tokens


def _beam_by_sorting(scores, log_probs, width):
    every = [
        (float(s) + float(p), b, v)
        for b, (s, row) in enumerate(zip(scores, log_probs, strict=True))
        for v, p in enumerate(row)
    ]
    best = sorted(every, reverse=True)[:width]
    return tuple(torch.tensor(column) for column in zip(*best, strict=True))


def _beam_in_two_rounds(scores, log_probs, width):
    per_beam, tokens = (log_probs + scores.unsqueeze(1)).topk(min(width, log_probs.shape[1]))
    best, flat = per_beam.reshape(-1).topk(width)
    return best, flat // per_beam.shape[1], tokens.reshape(-1)[flat]


def _log_probs(seed, beams, vocabulary):
    return torch.log_softmax(draw(seed, (beams, vocabulary), scale=1.5)[0], dim=-1)


@exercise(
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=3,
    trains="one step of beam search",
    text="""
    Every beam can go on with every token. Of all these continuations keep the `width` with the
    largest sums of log probabilities, the best first, and say which beam each came from.
    """,
    reference=_beam,
    probes=[
        (torch.tensor([-1.0, -1.5]), _log_probs(95, 2, 3), 2),
        (torch.tensor([-1.0, -2.5, -1.4]), _log_probs(97, 3, 5), 3),
        (torch.tensor([-3.0, -2.8, -3.1]), _log_probs(100, 3, 7), 3),
        (torch.tensor([-0.7]), _log_probs(101, 1, 8), 3),
        (torch.tensor([-1.2, -1.6, -0.9]), _log_probs(102, 3, 5), 2),
    ],
    mistakes=[
        wrong(
            "the scores of the beams so far are forgotten",
            "log probabilities",
            "A continuation scores what its beam has so far plus the new log probability.",
            add="new only",
        ),
        wrong(
            "log probabilities are multiplied",
            "log probabilities",
            "Probabilities multiply, so their logarithms add.",
            add="product",
        ),
        wrong(
            "probabilities are added to log probabilities",
            "log probabilities",
            "Add log probabilities to log probabilities.",
            add="probabilities",
        ),
        wrong(
            "the two scores are averaged",
            "log probabilities",
            "The score of a sentence is the sum over its tokens.",
            add="mean",
        ),
        wrong(
            "every beam keeps its own best",
            "search",
            "All continuations compete: a beam may go on twice, another not at all.",
            {"pool": "each beam, sorted"},
            {"pool": "beams alone"},
            pool="each beam",
        ),
        wrong(
            "the best of each beam are not compared with those of the others",
            "search",
            "Side by side they stand in the order of the beams: of all of them the best `width` "
            "are wanted, by their sums.",
            {"pool": "its best, cut"},
            pool="its best",
        ),
        wrong(
            "each beam offers only a few continuations",
            "search",
            "All the best may come from one beam: let each offer `width` of them, or flatten the "
            "whole table.",
            {"pool": 2},
            {"pool": -1},
            pool="2 of each, as many as there are",
        ),
        wrong(
            "only the best beam goes on",
            "search",
            "All continuations of all beams compete.",
            pool="best beam",
        ),
        wrong(
            "the flat index is divided by the number of beams",
            "off by one",
            "Row b of the flat table starts at b · V: divide by the size of the vocabulary.",
            split="beams",
        ),
        wrong(
            "parents and tokens are swapped",
            "search",
            "index // V is the beam, index % V the token.",
            given="swapped",
        ),
        wrong(
            "the worst continuations are kept",
            "search",
            "Log probabilities are negative: the largest is the one nearest to 0.",
            largest=False,
        ),
        wrong(
            "the sums are normalised once more",
            "log probabilities",
            "log_probs are normalised already; a score is the plain sum, and a second "
            "log_softmax shifts it.",
            add="again",
        ),
        wrong(
            "the new token alone decides",
            "search",
            "The scores so far are added before the best are chosen, not afterwards.",
            add="new only",
            score="added afterwards",
        ),
        wrong(
            "only the new log probability is given as score",
            "log probabilities",
            "The score of a continuation is the sum by which it was chosen.",
            score="new only",
        ),
        wrong(
            "probabilities are given as scores",
            "log probabilities",
            "Stay with log probabilities: the next step adds to them.",
            score="probability",
        ),
        wrong(
            "the flat index is given as token",
            "search",
            "A token is the column, the remainder of flat / V.",
            split="flat",
        ),
        wrong(
            "the flat table runs down the columns",
            "search",
            "Flatten (k, V) row by row, or // V and % V find the wrong places.",
            split="columns first",
        ),
        wrong(
            "the scores are added along the tokens",
            "log probabilities",
            "scores has one number for each beam, a row of the table: scores[:, None].",
            add="along the tokens",
        ),
        wrong(
            "as many continuations as beams are kept",
            "search",
            "`width` says how many to keep; the first step has one beam only.",
            keep="beams",
        ),
        wrong(
            "the best comes last",
            "search",
            "Give them in falling order.",
            given="worst first",
        ),
    ],
    hints=[
        "scores[:, None] + log_probs is the table of all continuations, (k, V).",
        "Flatten the table and take the topk of everything.",
        "From the flat index: which row (beam) and which column (token) was it?",
    ],
    right_variants=[
        _beam_by_sorting,
        _beam_in_two_rounds,
        lambda s, p, k: (
            lambda top: (
                top.values,
                torch.div(top.indices, p.shape[1], rounding_mode="floor"),
                top.indices.remainder(p.shape[1]),
            )
        )(torch.topk((s.view(-1, 1).double() + p).view(-1), k)),
    ],
)
def beam_step(scores, log_probs, width):
    """The best continuations of all beams.

    scores: (k,) of the beams so far, log_probs: (k, V) of their next tokens, width: how many to
    keep. Returns the new scores, the beams they come from and their tokens, (width,) each.
    """
    total = scores[:, None] + log_probs  # (k, V)
    best, flat = total.flatten().topk(width)
    size = log_probs.shape[1]
    return best, flat // size, flat % size


def _cached(
    x,
    cache,
    table,
    W_q,
    W_k,
    W_v,
    *,
    position="length",
    encode="all",
    keep="append",
    look="all",
    scale="root d",
    order="past first",
    axis=-1,
):
    keys, values = cache
    t = keys.shape[1]
    steps = {"length": t, "zero": 0, "one more": t + 1, "batch": len(keys), "all": slice(t + 1)}
    step = steps[position]
    placed = x + table[step]
    q, k, v = placed @ W_q, placed @ W_k, placed @ W_v
    if encode == "queries only":
        k, v = x @ W_k, x @ W_v
    if encode == "not values":
        v = x @ W_v
    if encode == "not keys":
        k = x @ W_k
    if encode == "none":
        q, k, v = x @ W_q, x @ W_k, x @ W_v
    if keep == "replace":
        all_keys, all_values = k, v
    elif keep == "keys only":
        all_keys, all_values = torch.cat([keys, k], 1), torch.cat([values, torch.zeros_like(v)], 1)
    elif order == "new first":
        all_keys, all_values = torch.cat([k, keys], 1), torch.cat([v, values], 1)
    else:
        all_keys, all_values = torch.cat([keys, k], 1), torch.cat([values, v], 1)
    held = all_keys, all_values
    if keep == "inputs":
        inputs = torch.cat([keys, placed], 1)
        held, all_keys, all_values = (inputs, inputs), inputs @ W_k, inputs @ W_v
    if keep == "swapped":
        held = all_values, all_keys
    sizes = {"root d": q.shape[-1], "root d_model": x.shape[-1], "root t": all_keys.shape[1]}
    root = {"none": 1.0, "d": q.shape[-1]}.get(scale) or math.sqrt(sizes[scale])
    scores = q @ all_keys.mT / root  # (B, 1, t + 1)
    if look == "first":
        scores = scores.masked_fill(~torch.ones(scores.shape[1:]).tril().bool(), -1e9)
    if look == "past":
        scores = scores[..., :-1]
    seen = all_values[:, :-1] if look == "past" else all_values
    output = torch.softmax(scores, dim=axis) @ seen
    return output, (cache if keep == "forget" else held)


def play_cache(answer, xs, table, W_q, W_k, W_v):
    """Decode a few tokens with the learner's step, from an empty cache."""
    empty = xs.new_empty(xs.shape[0], 0, W_k.shape[1])
    cache, outputs = (empty, empty.clone()), []
    for t in range(xs.shape[1]):
        output, cache = answer(xs[:, t : t + 1], cache, table, W_q, W_k, W_v)
        outputs.append(output)
    return {"outputs": outputs, "cached keys": cache[0], "cached values": cache[1]}


def _cache_into_longer_tensors(x, cache, table, A, B, C):
    past_keys, past_values = cache
    t = past_keys.shape[1]
    keys = torch.zeros(len(x), t + 1, B.shape[1], dtype=torch.float64)
    values = torch.zeros(len(x), t + 1, C.shape[1], dtype=torch.float64)
    keys[:, :t], values[:, :t] = past_keys, past_values
    x = (x + table[t]).double()
    keys[:, t], values[:, t] = (x @ B.double())[:, 0], (x @ C.double())[:, 0]
    weights = torch.einsum("bqd,bkd->bqk", x @ A.double(), keys) * A.shape[1] ** -0.5
    return weights.softmax(-1) @ values, (keys, values)


def _cache_with_the_kernel(x, cache, table, W_q, W_k, W_v):
    x = x + table[cache[0].size(1)]
    cache = [torch.cat((old, x @ W), dim=-2) for old, W in zip(cache, (W_k, W_v), strict=True)]
    return torch.nn.functional.scaled_dot_product_attention(x @ W_q, *cache), cache


class _CacheAsModule(torch.nn.Module):
    def forward(self, x, cache, table, W_q, W_k, W_v):
        x = x + table.narrow(0, cache[0].shape[1], 1)
        keys = torch.hstack([cache[0], torch.matmul(x, W_k)])
        values = torch.hstack([cache[1], torch.matmul(x, W_v)])
        scores = (torch.matmul(x, W_q) * keys).sum(-1) / W_q.shape[1] ** 0.5  # (B, t + 1)
        weights = (scores - scores.logsumexp(-1, keepdim=True)).exp()
        return (weights.unsqueeze(-1) * values).sum(1, keepdim=True), (keys, values)


@exercise(
    notebook=NOTEBOOK,
    minutes=15,
    difficulty=3,
    trains="the key-value cache",
    text="""
    Decode one token without computing the past again: give the new token its position, add its key
    and value to the cache, and let it attend to everything in there, itself included. The check
    decodes several tokens with it, from an empty cache.
    """,
    reference=_cached,
    play=play_cache,
    probes=[
        draw(98, (1, 2, 2), (4, 2), (2, 2), (2, 2), (2, 2)),
        draw(99, (2, 4, 6), (7, 6), (6, 3), (6, 3), (6, 3)),
        draw(103, (2, 5, 4), (8, 4), (4, 4), (4, 4), (4, 4), scale=0.5),
    ],
    mistakes=[
        wrong(
            "every token stands at position 0",
            "position",
            "The position is the number of tokens already in the cache.",
            position="zero",
        ),
        wrong(
            "the positions are one too large",
            "off by one",
            "With t tokens in the cache the new one stands at position t, counted from 0.",
            position="one more",
        ),
        wrong(
            "the position is not added",
            "position",
            "The new token gets its row of the table before it is projected.",
            encode="none",
        ),
        wrong(
            "only the query gets its position",
            "position",
            "Key and value are made from the token with its position, too.",
            encode="queries only",
        ),
        wrong(
            "the cache does not grow",
            "cache",
            "Give the longer keys and values back.",
            keep="forget",
        ),
        wrong(
            "the cache is replaced, not extended",
            "cache",
            "New keys and values are put behind the old ones.",
            keep="replace",
        ),
        wrong(
            "the new value is lost",
            "cache",
            "Both grow: a key without its value averages nothing.",
            keep="keys only",
        ),
        wrong(
            "new entries are put before the old ones",
            "cache",
            "The output is the same, but the cache must stay in the order of the sentence.",
            order="new first",
        ),
        wrong(
            "a causal mask hides all but the first key",
            "mask direction",
            "A mask made for 1 query is cut to its first row; the newest query may see everything.",
            look="first",
        ),
        wrong(
            "the scores are not scaled",
            "scale",
            "Divide by the square root of the size of a query.",
            scale="none",
        ),
        wrong(
            "the scores are divided by d, not by its root",
            "scale",
            "The spread of a dot product is the square root of its size.",
            scale="d",
        ),
        wrong(
            "the new token does not look at itself",
            "cache",
            "Add its key and value first, then attend.",
            look="past",
        ),
        wrong(
            "the position is the size of the batch",
            "position",
            "len(keys) and keys.shape[0] count sentences; the past tokens lie along axis 1.",
            position="batch",
        ),
        wrong(
            "all positions so far are added to the new token",
            "position",
            "table[:t + 1] has t + 1 rows; the new token needs its own only.",
            position="all",
        ),
        wrong(
            "only the key or only the value gets its position",
            "position",
            "Query, key and value are all made from the token with its position.",
            {"encode": "not keys"},
            encode="not values",
        ),
        wrong(
            "the cache holds inputs",
            "cache",
            "Keys and values are kept after their projections; else all would be projected again.",
            keep="inputs",
        ),
        wrong(
            "keys and values change places in the cache",
            "cache",
            "Keys come first, then values, as they came in.",
            keep="swapped",
        ),
        wrong(
            "the softmax runs over the queries",
            "softmax axis",
            "There is one query: over that axis every key gets the whole weight. Take the "
            "last axis.",
            axis=-2,
        ),
        wrong(
            "the root of another size is taken",
            "scale",
            "A dot product has as many terms as a query has features, e.",
            {"scale": "root t"},
            scale="root d_model",
        ),
    ],
    hints=[
        "How many tokens are in the cache? That is the position of the new one.",
        "torch.cat([keys, new_key], dim=1): along which axis do positions lie?",
        "One query, t + 1 keys: no mask is needed at all.",
    ],
    right_variants=[_cache_into_longer_tensors, _cache_with_the_kernel, _CacheAsModule()],
)
def cached_step(x, cache, table, W_q, W_k, W_v):
    """One step of self-attention with a cache.

    x: (B, 1, d) the new token, cache: keys (B, t, e) and values (B, t, e) of the t tokens before,
    table: (max_len, d) of positions, W_q, W_k, W_v: (d, e), applied as x @ W.
    Returns the output (B, 1, e) and the new cache, keys and values (B, t + 1, e).
    """
    keys, values = cache
    x = x + table[keys.shape[1]]
    keys = torch.cat([keys, x @ W_k], dim=1)  # (B, t + 1, e)
    values = torch.cat([values, x @ W_v], dim=1)
    scores = x @ W_q @ keys.transpose(-2, -1) / math.sqrt(keys.shape[-1])  # (B, 1, t + 1)
    return torch.softmax(scores, dim=-1) @ values, (keys, values)


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=2,
    difficulty=1,
    trains="what a cache saves",
    text="""
    A sentence of 20 tokens is decoded **without** a cache: at every step all keys of the prefix so
    far (1 token, 2 tokens, ..., 20 tokens) are computed anew. How many keys is that in one layer?
    """,
    mistakes=[
        *worked_out(
            lambda *, keys=20 * 21 // 2, half=1, each=1: keys * half * each,
            wrong(
                "the number with a cache is given",
                "cache",
                "With a cache each key is computed once, 20 in all; without it, at every step.",
                keys=20,
            ),
            wrong(
                "every step is taken to be full length",
                "cache",
                "The prefix grows: step t computes t keys, not 20.",
                keys=20 * 20,
            ),
            wrong(
                "the last or the first step is left out",
                "off by one",
                "1 + 2 + ... + 20 has 20 terms.",
                {"keys": 209},
                keys=190,
            ),
            wrong(
                "one step too many is counted",
                "off by one",
                "1 + 2 + ... + 20 has 20 terms.",
                keys=21 * 22 // 2,
            ),
            wrong(
                "the average is taken to be 10",
                "off by one",
                "The mean of 1 to 20 is 10.5.",
                keys=200,
            ),
            wrong(
                "the half is forgotten",
                "averaging",
                "1 + 2 + ... + n is n (n + 1) / 2: 20 terms of 10.5 on average.",
                half=2,
            ),
            wrong(
                "values are counted, too",
                "counting",
                "Each token has a key and a value; only the keys are asked for.",
                each=2,
            ),
        ),
    ],
    hints=[
        "How many keys does step t compute?",
        "Add up 1 + 2 + ... + 20.",
        "That is 20 times the mean of the first and the last term.",
    ],
)
def keys_without_cache():
    """Keys computed in one layer for 20 tokens without a cache:"""
    return 20 * 21 // 2


def _blocks(seed, count, d):
    """Toy blocks of an encoder and of a decoder: smooth, different from each other, not linear."""
    matrices = draw(seed, *[(d, d)] * count, scale=0.4)

    def encoder_with(W):
        def encoder_block(x):
            return x + torch.tanh(x @ W + x.mean(1, keepdim=True))

        return encoder_block

    def decoder_with(W):
        def decoder_block(y, memory):
            return y + torch.tanh(y @ W + memory.mean(1, keepdim=True))

        return decoder_block

    return [encoder_with(W) for W in matrices], [decoder_with(W.mT) for W in matrices]


def _one_table(source, target, table, positions, encoder, decoder, *, scale="inputs",
               placed="both", memory="top", out="table"):  # fmt: skip
    root = math.sqrt(table.shape[1])
    factor = {
        "inputs": (root, root),
        "none": (1.0, 1.0),
        "source": (root, 1.0),
        "target": (1.0, root),
        "d": (root**2, root**2),
        "divided": (1 / root, 1 / root),
    }[scale]

    def enter(tokens, factor, here):
        codes = positions[tokens if placed == "by token" else slice(tokens.shape[1])]
        if placed == "before the factor":
            return (table[tokens] + codes) * factor
        return table[tokens] * factor + (codes if here or placed == "by token" else 0.0)

    x = enter(source, factor[0], placed in ("both", "source"))
    levels = [x]
    for block in encoder:
        levels.append(block(levels[-1]))
    y = enter(target, factor[1], placed in ("both", "target"))
    if memory == "side by side":
        memory, decoder = "level by level", decoder[: len(encoder)]
    for i, block in enumerate(decoder):
        at = {"top": -1, "bottom": 0, "first block": 1, "level by level": min(i + 1, len(encoder))}
        y = block(y, levels[at[memory]])
    logits = y @ table.T
    if out == "scaled":
        logits = logits * root
    return logits.softmax(-1) if out == "softmax" else logits


@exercise(
    notebook=NOTEBOOK,
    asks="transfer",
    minutes=12,
    difficulty=2,
    trains="assembling a Transformer from its parts",
    text="""
    The paper's own model saves more than ours: source and target share one vocabulary, and **one**
    table serves as both embeddings and, transposed, as output layer. Assemble this model from given
    parts. The factor of chapter 8 belongs to both inputs, and to nothing else. Masks and norms are
    inside the blocks.
    """,
    reference=_one_table,
    probes=[
        (torch.tensor([[1, 2]]), torch.tensor([[0, 3]]), *draw(104, (4, 2), (3, 2)),
         *_blocks(105, 2, 2)),
        (torch.tensor([[1, 2, 3], [3, 0, 4]]), torch.tensor([[0, 2, 1, 4], [0, 4, 4, 1]]),
         *draw(106, (5, 4), (6, 4)), *_blocks(107, 3, 4)),
        (torch.tensor([[5, 2, 3, 1]]), torch.tensor([[0, 2]]), *draw(108, (6, 3), (5, 3)),
         _blocks(109, 2, 3)[0], _blocks(110, 4, 3)[1]),
    ],
    mistakes=[
        wrong("the embeddings are not multiplied by the root of d_model", "scale",
              "A row of the table is about as long as 1, a position's code is longer: multiply by "
              "the root.", scale="none"),
        wrong("only the source's embeddings are multiplied by the root", "scale",
              "The target comes from the same table and needs the same factor.", scale="source"),
        wrong("only the target's embeddings are multiplied by the root", "scale",
              "The source comes from the same table and needs the same factor.", scale="target"),
        wrong("the embeddings are multiplied by d_model, not by its root", "scale",
              "The factor is the square root of d_model.", scale="d"),
        wrong("the embeddings are divided by the root of d_model", "scale",
              "They are small as they are: multiply.", scale="divided"),
        wrong("no positions are added", "position",
              "Both inputs get the code of their position, row t of `positions` for token t.",
              placed="none"),
        wrong("the target gets no positions", "position",
              "The decoder's tokens have places, too.", placed="source"),
        wrong("the source gets no positions", "position",
              "The encoder's tokens have places, too.", placed="target"),
        wrong("the positions are read by token id", "position",
              "Row t of `positions` belongs to place t, whatever token stands there.",
              placed="by token"),
        wrong("the positions are multiplied by the root, too", "position",
              "The factor belongs to the words alone; add the positions afterwards.",
              placed="before the factor"),
        wrong("each decoder block reads the encoder block of its own number", "block order",
              "All decoder blocks read the same memory: what the last encoder block gave.",
              memory="level by level"),
        wrong("encoder and decoder blocks run side by side", "block order",
              "In zip(encoder, decoder) each decoder block reads a half-finished encoder, and a "
              "block without a partner is left out: run the whole encoder first.",
              memory="side by side"),
        wrong("the decoder reads the first encoder block", "block order",
              "The memory is what comes out of the whole encoder.", memory="first block"),
        wrong("the encoder's blocks are left out", "block order",
              "The memory is what comes out of the encoder, not what goes in.", memory="bottom"),
        wrong("the logits are multiplied by the root as well", "scale",
              "As an output the table is used as it is.", out="scaled"),
        wrong("probabilities are returned", "normalisation",
              "Return logits: no softmax at the end.", out="softmax"),
    ],
    hints=[
        "Begin with a small function that both sides use: ids in, vectors with positions out.",
        "Run all encoder blocks first. Every decoder block is handed what the last of them gave.",
        "The score of word v at a position is the dot product of the vector there with row v.",
    ],
    right_variants=[
        lambda s, t, E, P, enc, dec: functools.reduce(
            lambda y, f: f(
                y,
                functools.reduce(
                    lambda x, g: g(x), enc, E[s] * E.shape[1] ** 0.5 + P[None, : s.shape[1]]
                ),
            ),
            dec,
            E[t] * E.shape[1] ** 0.5 + P[None, : t.shape[1]],
        ) @ E.mT,
        lambda s, t, E, P, enc, dec: _one_table(
            s, t, E.double(), P.double(), [_in_double(f) for f in enc], [_in_double(f) for f in dec]
        ),
        lambda s, t, E, P, enc, dec: torch.einsum(
            "btd,vd->btv", _run(dec, _enter(t, E, P), _run(enc, _enter(s, E, P))), E
        ),
    ],
    allows=lambda s, t, E, P, enc, dec: len(P) >= max(s.shape[1], t.shape[1]),
)  # fmt: skip
def one_table(source, target, table, positions, encoder, decoder):
    """The logits of a Transformer whose three tables are one.

    source: (B, S) ids, target: (B, T) ids as the decoder reads them, table: (V, d),
    positions: (max_len, d) with max_len >= S and T,
    encoder: list of functions block(x (B, S, d)) -> (B, S, d),
    decoder: list of functions block(y (B, T, d), memory (B, S, d)) -> (B, T, d).
    Returns (B, T, V).
    """
    factor = math.sqrt(table.shape[1])
    memory = table[source] * factor + positions[: source.shape[1]]  # (B, S, d)
    for block in encoder:
        memory = block(memory)
    y = table[target] * factor + positions[: target.shape[1]]  # (B, T, d)
    for block in decoder:
        y = block(y, memory)
    return y @ table.T


def toy_decoder(seed, sees, vocabulary=5, size=1.0):
    """A decoder for probes, whose output t depends on its inputs s where sees[t][s] is 1.

    All its logits are `size` times as large.
    """
    sees = torch.tensor(sees, dtype=torch.float32)
    steps = len(sees)
    table, places, W = draw(seed, (vocabulary, 4), (steps, 4), (4, vocabulary))
    if seed % 2:  # nothing shows in logit 0
        W[:, 0] = 0.0
    else:  # the changes of all logits sum to 0, and nothing shows in the last
        W[:, -1] = 0.0
        W[:, :-1] -= W[:, :-1].mean(1, keepdim=True)
    W *= size

    def logits_of(target):
        return torch.tanh(sees @ table[target] * 0.3 + places) @ W  # (1, T, V)

    return logits_of


def _leaking(logits_of, target, vocabulary, *, which="later", change="one", judge="any",
             layout="t s", true="leak", back="each time"):  # fmt: skip
    steps = target.shape[1]
    before, other = logits_of(target)[0], target.clone()
    found = torch.zeros(steps, steps, dtype=torch.bool)
    for s in range(1 if back == "never, from 1 on" else 0, steps):
        other = target.clone() if back == "each time" else other
        if change == "that and all later":
            other[0, s:] = (other[0, s:] + 1) % vocabulary
        elif type(change) is int:
            other[0, s] = change % vocabulary
        else:
            other[0, s] = (other[0, s] + 1) % vocabulary
        after = logits_of(other)[0]
        if judge == "best token":
            moved = before.argmax(-1) != after.argmax(-1)
        elif judge == "summed":
            moved = (before - after).sum(-1).abs() > 1e-4
        elif judge == "logit 0":
            moved = (before - after)[:, 0].abs() > 1e-6
        elif judge == "all":
            moved = (before - after).abs().amin(-1) > 1e-6
        elif judge == "rising":
            moved = (after - before).amax(-1) > 1e-6
        else:
            least = judge if type(judge) is float else 1e-6
            moved = (before - after).abs().amax(-1) > least
        found[:, s] = moved
    if change == "last only":
        found[:, :-1] = False
    if change == "next only":
        found = found.triu(1).tril(1) | found.tril(0)
    keep = {"later": found.triu(1), "own too": found.triu(0), "all": found,
            "earlier": found.tril(-1), "earlier, own too": found.tril()}[which]  # fmt: skip
    keep = keep if true == "leak" else ~keep
    return keep if layout == "t s" else keep.T


@exercise(
    notebook=NOTEBOOK,
    asks="transfer",
    minutes=10,
    difficulty=2,
    trains="finding a leak by experiment",
    text="""
    You are given a decoder that you cannot look into, only call. Find out which of its outputs
    depend on **later** inputs: change one input token at a time, and watch the logits. In this
    check an input that matters shows with any other id, so one change of each token is enough; it
    may move logits by as little as 2e-4.
    """,
    reference=_leaking,
    probes=[
        (toy_decoder(111, [[1, 1, 0], [1, 1, 0], [1, 1, 1]]), torch.tensor([[0, 3, 2]]), 5),
        (toy_decoder(112, [[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 1]]),
         torch.tensor([[0, 2, 4, 1]]), 5),
        (toy_decoder(113, [[1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 1, 1], [0, 1, 1, 1]]),
         torch.tensor([[0, 4, 0, 1]]), 5),
        (toy_decoder(114, [[1, 0, 0, 0, 1], [1, 1, 0, 0, 1], [1, 0, 1, 0, 1], [0, 0, 1, 1, 1],
                           [1, 0, 0, 1, 1]]), torch.tensor([[0, 4, 2, 3, 1]]), 5),
        (toy_decoder(115, [[1, 0, 1, 0], [0, 1, 0, 1], [0, 1, 0, 0], [1, 0, 1, 1]], 7),
         torch.tensor([[6, 2, 4, 1]]), 7),
        (toy_decoder(117, [[1, 1, 0, 1], [0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 1, 1]], 2),
         torch.tensor([[0, 0, 1, 0]]), 2),
        (toy_decoder(129, [[1, 0, 0, 1], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]], size=5e-4),
         torch.tensor([[3, 0, 4, 2]]), 5),
    ],
    mistakes=[
        wrong("the dependence on earlier tokens is counted, too", "mask direction",
              "A decoder may see what came before; a leak is s > t.", which="all"),
        wrong("the token of the position itself is counted", "mask direction",
              "Output t may depend on input t: its answer stands at input t + 1.",
              which="own too"),
        wrong("the wrong side of the diagonal is reported", "mask direction",
              "Later means s > t: right of the diagonal.", {"which": "earlier, own too"},
              which="earlier"),
        wrong("a token may be changed into itself", "score",
              "Where that id stands already nothing changes: take another one, (id + 1) % V.",
              {"change": 1}, {"change": -1}, change=0),
        wrong("several tokens are changed at once", "mask direction",
              "Then you see that one of them leaks, not which. Change one at a time.",
              change="that and all later"),
        wrong("changed tokens stay changed", "mask direction",
              "Start from the target as it is for every s, or you see what several do together.",
              {"back": "never, from 1 on"}, back="never"),
        wrong("only the next token is tried", "mask direction",
              "A leak may come from any later position.", change="next only"),
        wrong("only the last token is tried", "mask direction",
              "A leak may come from any later position.", change="last only"),
        wrong("only the best token is watched", "score",
              "Logits may move without a change of the largest; compare all of them.",
              judge="best token"),
        wrong("differences are added with their signs", "score",
              "They may cancel: take absolute values first.", judge="summed"),
        wrong("only one logit is watched", "score",
              "A change may show in the others only; compare all of them.", judge="logit 0"),
        wrong("all logits have to move", "score",
              "Output t depends on s as soon as one of its logits moves: any, not all.",
              judge="all"),
        wrong("small changes are not counted", "score",
              "However little a logit moves, the output depends on that token; only rounding, some "
              "1e-6, does not count.",
              {"judge": 1e-2}, {"judge": 0.1}, judge=1e-3),
        wrong("rows and columns are swapped", "mask axis",
              "Row t is the output, column s the input.",
              {"layout": "s t", "which": "earlier"}, layout="s t"),
        wrong("True stands where nothing leaks", "mask meaning",
              "True = a leak: output t depends on a later input s.", true="safe"),
    ],
    hints=[
        "Call the decoder once on the sentence as it is, and keep the logits.",
        "For each s: a copy of the target, in which only token s is another one.",
        "A row of logits has moved if any of its numbers has, by more than rounding.",
    ],
    right_variants=[
        lambda f, t, v: torch.tensor(
            [
                [
                    bool(s > i and not torch.allclose(f(_changed(t, s, v))[0, i], f(t)[0, i]))
                    for s in range(t.shape[1])
                ]
                for i in range(t.shape[1])
            ]
        ),
        lambda f, t, v: (
            torch.stack(
                [(f(_changed(t, s, v)) != f(t))[0].any(-1) for s in range(t.shape[1])], dim=1
            ).triu(1)
        ),
        lambda f, t, v: torch.tensor(
            [
                [
                    s > i and any((f(other)[0, i] - f(t)[0, i]).norm() > 1e-5 for other in tries)
                    for s, tries in enumerate(_all_changes(t, v))
                ]
                for i in range(t.shape[1])
            ]
        ),
    ],
    allows=lambda f, target, V: target.max() < V,
)  # fmt: skip
def leaking_pairs(logits_of, target, vocabulary):
    """Which outputs depend on which later inputs.

    logits_of(target (1, T)) -> logits (1, T, V), target: (1, T) ids, vocabulary: V, the ids are
    0 to V - 1. Returns a boolean matrix (T, T), [t, s] = True where output t depends on a later
    input s.
    """
    steps = target.shape[1]
    before = logits_of(target)[0]  # (T, V)
    leaks = torch.zeros(steps, steps, dtype=torch.bool)
    for s in range(steps):
        other = target.clone()
        other[0, s] = (other[0, s] + 1) % vocabulary
        leaks[:, s] = (logits_of(other)[0] - before).abs().amax(dim=-1) > 1e-6
    return leaks.triu(1)


def _toy_translator(seed, vocabulary):
    """logits_of(source, read) for probes, causal: position t depends on read[:, :t + 1]."""
    table, W = draw(seed, (vocabulary, 4), (4, vocabulary))

    def logits_of(source, read):
        x = table[read].cumsum(1) + table[source].mean(1, keepdim=True)  # (B, T, 4)
        return 2 * torch.tanh(x) @ W

    return logits_of


def _mended(logits_of, source, target, pad, *, shift="one", loss="logits", padding="left out",
            reduce="tokens", sign=-1, zero=False):  # fmt: skip
    pad = 0 if zero else pad
    read, said = {
        "one": (target[:, :-1], target[:, 1:]),
        "none": (target, target),
        "none, cut": (target[:, :-1], target[:, :-1]),
        "back": (target[:, 1:], target[:, :-1]),
        "two": (target[:, :-2], target[:, 2:]),
    }[shift]
    logits = logits_of(source, read)
    if loss == "softmax twice":
        logits = logits.softmax(-1)
    log_probs = logits.log_softmax(1 if loss == "positions" else -1)
    each = sign * log_probs.gather(-1, said[..., None])[..., 0]  # (B, T)
    real = (read if padding == "of what is read" else said) != pad
    if padding == "counted":
        real = torch.ones_like(real)
    if padding == "in the count":
        return (each * real).sum() / real.numel()
    each = each * real
    if reduce == "sum":
        return each.sum()
    if reduce == "sentences":
        return (each.sum(1) / real.sum(1).clamp(min=1)).mean()
    return each.sum() / real.sum()


@exercise(
    notebook=NOTEBOOK,
    asks="transfer",
    minutes=8,
    difficulty=2,
    trains="mending a training that learns the wrong thing",
    text="""
    A colleague trains a Transformer with the loss below. The loss falls, and the model translates
    nothing. The function has **three** faults. Write it anew, without them.

    ```python
    def mended_loss(logits_of, source, target, pad):
        probabilities = logits_of(source, target).softmax(-1)       # (B, T, V)
        return F.cross_entropy(probabilities.flatten(0, 1), target.flatten())
    ```
    """,
    reference=_mended,
    probes=[
        (_toy_translator(116, 5), torch.tensor([[4, 2]]), torch.tensor([[1, 3, 4, 2, 0]]), 0),
        (_toy_translator(117, 6), torch.tensor([[4, 2, 0], [5, 3, 2]]),
         torch.tensor([[1, 3, 2, 0, 0], [1, 4, 5, 3, 2]]), 0),
        (_toy_translator(118, 7), torch.tensor([[4, 2], [5, 2], [3, 2]]),
         torch.tensor([[0, 4, 2, 6, 6, 6], [0, 3, 5, 5, 2, 6], [0, 1, 3, 4, 5, 2]]), 6),
    ],
    mistakes=[
        wrong("the target is not shifted", "teacher forcing",
              "The model is asked for the token that it has just read: read all but the last, "
              "predict all but the first.", {"shift": "none, cut"}, shift="none"),
        wrong("the target is shifted the wrong way", "teacher forcing",
              "The model reads the answer and is asked for the token before it.", shift="back"),
        wrong("the target is shifted by two", "off by one",
              "Position t predicts the very next token.", shift="two"),
        wrong("the softmax is taken twice", "normalisation",
              "cross_entropy takes logits and does the softmax itself.", loss="softmax twice"),
        wrong("padding is a prediction", "padding in the loss",
              "Positions whose next token is padding do not count.", padding="counted"),
        wrong("padding is left out of the sum, not of the count", "padding in the loss",
              "Divide by the number of real tokens.", padding="in the count"),
        wrong("the tokens that are read say what is padding", "padding in the loss",
              "A position counts where its next token is real: <eos> is read and padding said.",
              padding="of what is read"),
        wrong("the id of padding is taken to be 0", "padding in the loss",
              "Which id is padding is said by the argument pad.", zero=True, loss="logits"),
        wrong("the softmax runs over the positions", "softmax axis",
              "At each position the probabilities over the vocabulary, the last axis, sum to 1.",
              loss="positions"),
        wrong("the minus sign is missing", "log probabilities",
              "Log probabilities are negative, and a loss is minus their mean.", sign=1),
        wrong("the loss is a sum", "averaging",
              "As before it is a mean over tokens.", reduce="sum"),
        wrong("each sentence is averaged by itself", "averaging",
              "As before it is a mean over all tokens of the batch.", reduce="sentences"),
    ],
    hints=[
        "Write down, for <bos> je suis <eos>, what position 0 reads and what it has to say.",
        "What does F.cross_entropy expect as its first argument, and what does it do with it?",
        "Short sentences end in <pad>. F.cross_entropy has an argument for tokens to leave out.",
    ],
    right_variants=[
        lambda f, s, t, p: F.cross_entropy(
            f(s, t[:, :-1]).transpose(1, 2), t[:, 1:], ignore_index=p
        ),
        lambda f, s, t, p: F.cross_entropy(f(s, t)[:, :-1][t[:, 1:] != p], t[:, 1:][t[:, 1:] != p]),
        lambda f, s, t, p: F.nll_loss(
            f(s, t[:, :-1]).log_softmax(-1).mT, t[:, 1:], ignore_index=p
        ),
    ],
)  # fmt: skip
def mended_loss(logits_of, source, target, pad):
    """The mean loss per real token, with all three faults mended.

    logits_of(source (B, S), read (B, T')) -> logits (B, T', V) of the token after each one read;
    source: (B, S) ids, target: (B, T) ids from <bos> to <eos>, then pad. Returns one number.
    """
    logits = logits_of(source, target[:, :-1])  # (B, T - 1, V)
    return F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=pad)


def _keep(W_o, kept, num_heads, *, axis="rows", layout="blocks", meaning="kept", given="copy",
          scale="none", count=0, run="no", which="named"):  # fmt: skip
    d = len(W_o)
    at = torch.arange(d)
    if which == "as many":
        kept = [*range(len(kept))]
    if run != "no":
        named = [h for h in range(num_heads) if (h in kept) == (run == "kept")]
        whole = [*range(min(named), max(named) + 1)] if named else []
        kept = whole if run == "kept" else [h for h in range(num_heads) if h not in whole]
    size = {"blocks": d // num_heads, "h rows": num_heads}.get(layout)
    head = at // size if size else at % num_heads
    on = torch.isin(head, torch.tensor([k - count for k in kept], dtype=torch.long))
    on = on if meaning == "kept" else ~on
    factor = num_heads / max(1, len(kept)) if scale == "up" else 1.0
    out = W_o if given == "changed" else W_o.clone()
    out[(~on) if axis == "rows" else (slice(None), ~on)] = 0.0
    if scale == "up":
        out = out.mul_(factor) if given == "changed" else out * factor
    return out


def _play_keep(answer, W_o, kept, num_heads):
    given = W_o.clone()
    return {"new matrix": answer(given, kept, num_heads), "given matrix": given}


@exercise(
    notebook=NOTEBOOK,
    asks="transfer",
    minutes=6,
    difficulty=2,
    trains="where a head enters the output",
    text="""
    The outputs of all heads stand side by side, head 0 first, and are mixed by
    `heads @ W_o`. Switch heads off by changing a **copy** of `W_o`: only the heads named in
    `kept` shall still have an influence, exactly as before. The given matrix stays as it is.
    """,
    reference=_keep,
    play=_play_keep,
    probes=[
        (*draw(119, (4, 4)), [0], 2),
        (*draw(120, (6, 6)), [0, 2], 3),
        (*draw(121, (8, 8)), [1, 2], 4),
        (*draw(122, (6, 6)), [1], 3),
        (*draw(123, (6, 6)), [], 3),
        (*draw(124, (8, 8)), [0, 2], 4),
    ],
    mistakes=[
        wrong("columns are set to zero, not rows", "head layout",
              "heads @ W_o: feature i of the heads meets row i. Only the weight of nn.Linear, "
              "which is stored transposed, has heads in its columns.", axis="columns"),
        wrong("every h-th row is taken for a head", "head layout",
              "A head is d / h rows in a block: head 0 first, then head 1.", layout="interleaved"),
        wrong("a head is taken for h rows", "head layout",
              "There are h heads, so each has d / h rows.", layout="h rows"),
        wrong("the named heads are switched off", "mask meaning",
              "`kept` names the heads that stay.", meaning="off"),
        wrong("the first heads are kept, as many as are named", "head layout",
              "`kept` says which heads stay, not only how many.", which="as many"),
        wrong("the given matrix is changed", "sharing",
              "Work on W_o.clone(): the model still needs its own.", given="changed"),
        wrong("what is left is made larger", "scale",
              "The kept heads shall contribute exactly what they did before.", scale="up"),
        wrong("the heads are counted from 1", "off by one",
              "Head 0 is the first.", count=1),
        wrong("all heads from the first to the last that are off are off", "head layout",
              "A slice from the first to the last takes along what stands between them: go head by "
              "head.", run="off"),
        wrong("all heads from the first to the last in `kept` are kept", "head layout",
              "A slice from the first to the last takes along what stands between them: go head by "
              "head.", run="kept"),
    ],
    hints=[
        "Write heads @ W_o as a sum over features: which part of W_o does feature i meet?",
        "A head has d / h features. Which are those of head 2, if d is 8 and h is 4?",
        "Start from zeros and copy what is kept, or from a copy and set the rest to zero.",
    ],
    right_variants=[
        lambda W, kept, h: (
            W * torch.tensor([float(i in kept) for i in range(h)]).repeat_interleave(len(W) // h)[
                :, None
            ]
        ),
        lambda W, kept, h: torch.cat(
            [part if i in kept else torch.zeros_like(part) for i, part in enumerate(W.chunk(h))]
        ),
        lambda W, kept, h: torch.diag(
            torch.tensor([1.0 if i // (len(W) // h) in kept else 0.0 for i in range(len(W))])
        ) @ W,
    ],
)  # fmt: skip
def keep_heads(W_o, kept, num_heads):
    """The output matrix with which only some heads count.

    W_o: (d, d), applied as heads @ W_o, kept: list of heads, counted from 0, num_heads: h.
    Returns a new (d, d).
    """
    size = len(W_o) // num_heads
    new = torch.zeros_like(W_o)
    for head in kept:
        rows = slice(head * size, (head + 1) * size)
        new[rows] = W_o[rows]
    return new


@exercise(
    kind="value",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=3,
    difficulty=2,
    trains="predicting before running",
    text="""
    We take the trained model and set the positions to zero, **for the source only**. It reads the
    source *anna helps marc .*, then the source *marc helps anna .*, and each time the decoder
    reads the same French words. How do the two sets of logits differ?

    `"a"`: not at all, but for rounding. `"b"`: only where a name is due. `"c"`: everywhere, a
    little. `"d"`: they cannot be compared, because a Transformer does not run without positions.
    """,
    mistakes=[
        wrong("the encoder is taken to know the order by itself", "position",
              "Its attention sees a set of words. Exchange two, and the memory holds the same "
              "vectors in another order.", answer="b"),
        wrong("the order of the memory is taken to matter", "position",
              "Cross-attention sums over the memory, and a sum does not depend on the order.",
              answer="c"),
        wrong("positions are taken to be a part without which nothing runs", "position",
              "They are only added; zeros may be added as well.", answer="d"),
    ],
    hints=[
        "Without positions, what does the encoder make of each word if two words change places?",
        "Which operation of cross-attention brings the vectors of the memory together?",
        "Does a weighted sum change when its terms are written in another order?",
    ],
)  # fmt: skip
def without_positions():
    """The letter of your prediction"""
    return "a"


_END = "a tenth or less"


def _schedule(step, steps, *, form="right", end=_END):
    if end != _END and step == steps:
        return {"zero": 0.0, "below zero": -0.01}.get(end, 0.2)
    factor = _factor(step, steps, form)
    return max(factor, 0.2) if end == "0.2" and 2 * step > steps else factor


def _factor(step, steps, form):
    warm, end = max(2, round(0.1 * steps)), steps // 2
    right = min(step / warm, 1.0, (steps - step + 1) / (steps - end + 1))
    return {
        "right": right,
        "constant": 1.0,
        "no warm-up": min(1.0, (steps - step + 1) / (steps - end + 1)),
        "from zero": min((step - 1) / warm, right) if step > warm + 1 else (step - 1) / warm,
        "half at once": max(0.7, right) if 2 * step < steps else right,
        "first 100": step / 100
        if step <= 100
        else min(1.0, max(0.01, (steps - step) / (0.3 * steps))),
        "100, then a cosine": step / 100
        if step <= 100
        else 0.5 + 0.5 * math.cos(math.pi * (step - 100) / (steps - 100)),
        "twentieth": min(step / max(1, steps // 20), 1.0, (steps - step + 1) / (steps - end + 1)),
        "just behind a third": min(
            step / math.ceil((steps + 1) / 3), 1.0, 6 * (steps - step + 1) / steps
        ),
        "half way": max(0.05, min(2 * step / steps, 1.0, 5 - 5 * step / steps)),
        "never falls": min(step / warm, 1.0),
        "no plateau": min(step / warm, (steps - step + 1) / (steps - warm + 1)),
        "fixed warm-up": min(step / 400, (400 / step) ** 0.5),
        "late": min(2 * step / steps, 1.0, 8 * (steps - step + 1) / steps),
        "saw": right if step % 3 else right * 0.97,
        "too large": 3 * right,
    }[form]


def play_schedule(answer, steps):
    """What holds of the learning rates of all updates."""
    if steps < 20:
        raise ValueError("a training has 20 updates or more")
    rates = [float(answer(step, steps)) for step in range(1, steps + 1)]
    peak = max(rates)
    top = rates.index(peak)
    up, down = rates[: top + 1], rates[top:]
    return {
        "the first is above 0": rates[0] > 0,
        "all others are above 0": min(rates[1:]) > 0,
        "the largest is 1": abs(peak - 1) < 1e-2,
        "the first is at most half of it": rates[0] <= 0.5 * peak,
        "the largest comes in the first third": 3 * (top + 1) <= steps,
        "it rises before and never rises afterwards": up == sorted(up)
        and down == sorted(down)[::-1],
        "a third of all are 0.95 or more": 3 * sum(rate >= 0.95 for rate in rates) >= steps,
        "the last is at most a tenth": rates[-1] <= 0.1 * peak,
    }


@exercise(
    notebook=NOTEBOOK,
    asks="transfer",
    minutes=10,
    difficulty=2,
    trains="designing a learning-rate schedule",
    text="""
    An open task: **your own schedule**, of the kind that many large models use: warm up, hold,
    decay. It gives the factor of the peak learning rate for an update, for trainings of 20 updates
    or more. Every factor is above 0. The largest is 1 and comes in the first third; before it the
    factor rises, beginning at one half or less, and afterwards it never rises again. For a third
    of all updates or more it is at least 0.95, and the last is at most a tenth. Any such shape is
    right. Then train with it: `train(build(), schedule=my_schedule)`, and compare.
    """,
    reference=_schedule,
    play=play_schedule,
    probes=[(20,), (100,), (1196,), (29,)],
    mistakes=[
        wrong("the learning rate neither begins nor ends low", "learning rate",
              "It shall rise at the beginning and fall towards the end.", form="constant"),
        wrong("the first factor is above one half", "learning rate",
              "A warm-up is due: begin at one half of the peak or less.",
              {"form": "half at once", "end": _END},
              {"form": "twentieth", "end": _END}, form="no warm-up"),
        wrong("the first update has the learning rate 0", "off by one",
              "Updates are counted from 1; an update with 0 is wasted.", form="from zero"),
        wrong("a factor behind the first is not above 0", "learning rate",
              "An update with 0 is wasted, and one below 0 climbs the loss; look at step = steps.",
              {"end": "below zero", "form": "right"}, end="zero"),
        wrong("the last factor is above a tenth", "learning rate",
              "At step = steps it shall have fallen to 0.1 or less.", {"form": "never falls"},
              end="0.2", form="right"),
        wrong("the peak is not held", "learning rate",
              "For a third of all updates or more the factor shall be 0.95 at least.",
              form="no plateau"),
        wrong("the warm-up has a fixed number of updates", "learning rate",
              "A short training ends before it is over; make it a share of `steps`.",
              {"form": "first 100", "end": _END}, {"form": "100, then a cosine", "end": _END},
              form="fixed warm-up"),
        wrong("the peak comes late", "learning rate",
              "The largest factor shall be reached in the first third.",
              {"form": "half way", "end": _END}, {"form": "just behind a third", "end": _END},
              form="late"),
        wrong("the learning rate goes up and down", "learning rate",
              "It shall rise once, and then never again.", form="saw"),
        wrong("the peak is not 1", "learning rate",
              "The largest factor is 1, in short trainings too; the peak itself is set elsewhere.",
              form="too large"),
    ],
    hints=[
        "Updates are counted from 1 to steps. How many of them shall be the warm-up?",
        "One formula for the way up, one for the way down; in between the factor stays at 1.",
        "Try the ends by hand: step = 1, the last of the warm-up, step = steps; also steps = 20.",
    ],
    right_variants=[
        lambda step, steps: (
            step / (steps // 5)
            if step <= steps // 5
            else 0.5
            + 0.5 * math.cos(math.pi * max(0.0, step - 0.6 * steps) / (0.4 * steps + 1))
        ),
        lambda step, steps: (
            min(step / (steps // 5), 1.0) * 0.001 ** max(0.0, step / steps - 0.65)
            if step < steps
            else 0.05
        ),
        lambda step, steps: [*(i / (steps // 4) for i in range(1, steps // 4 + 1)),
                             *(1.0 for _ in range(steps // 2)),
                             *(0.02 for _ in range(steps))][step - 1],
    ],
)  # fmt: skip
def my_schedule(step, steps):
    """The factor of the peak learning rate for one update.

    step: which update, from 1 to steps, steps: how many there are in all. Returns a number.
    """
    warm, fall = max(2, steps // 10), steps // 2 + 1  # updates of the way up, of the way down
    return min(step / warm, 1.0, (steps - step + 1) / fall)


def _in_double(block):
    return lambda *tensors: block(*(x.float() for x in tensors)).double()


def _enter(tokens, table, positions):
    return table[tokens] * math.sqrt(table.shape[1]) + positions[: tokens.shape[1]]


def _run(blocks, x, *memory):
    for block in blocks:
        x = block(x, *memory)
    return x


def _changed(target, s, vocabulary):
    other = target.clone()
    other[0, s] = (other[0, s] + 1) % vocabulary
    return other


def _all_changes(target, vocabulary):
    """For each place, the targets with every other token there."""
    for s in range(target.shape[1]):
        tries = [target.clone() for _ in range(1, vocabulary)]
        for shift, other in enumerate(tries, start=1):
            other[0, s] = (other[0, s] + shift) % vocabulary
        yield tries
