"""Exercises of notebook 09: masks of a Transformer, decoding, and the key-value cache."""

import math

import torch

from course_utils.chapters.ch02_masked_softmax.exercises import CAUSAL_MISTAKES, visible_keys
from course_utils.checker.model import exercise, wrong
from course_utils.checker.probes import draw

NOTEBOOK = "09_transformer_translation"


def _masks(source, target, pad, *, cross="source", zero="nowhere", made_of="target", heads=True,
           given="source first", numbers=False, **switches):  # fmt: skip
    target_pad = 0 if zero in ("both", "target") else pad
    pad = 0 if zero in ("both", "source") else pad
    keys = target != target_pad
    if made_of != "target":  # an error, unless the two are equally long
        _ = (source != pad)[:, None, None] & torch.ones(2 * target.shape[1:]).bool()
        keys = source != pad if made_of == "source" else keys
    own = visible_keys(keys.sum(1), target.shape[1], heads=heads, **switches)
    real = {"source": source != pad, "target": target != target_pad, "inverted": source == pad}
    words = real.get(cross, source != pad)[:, None, None]  # (B, 1, 1, S)
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


def toy_model(seed, stops_at, vocabulary=6, eos=2):
    """A next-token model for probes: it depends on the whole prefix and stops by itself, or not."""
    by_last, by_sum = draw(seed, (vocabulary, vocabulary), (7, vocabulary))

    def next_logits(prefix):
        if len(prefix) > 30:
            raise RuntimeError(_TOO_LONG)
        last = prefix[-1] if len(prefix) else 0
        logits = by_last[last] + 2.0 * by_sum[sum(prefix) % 7]
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
):
    tokens = [bos]
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
        (toy_model(96, 3, eos=4), 3, 4, 6),  # other ids than usual
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
            pool="each beam",
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
        weights = scores.exp() / scores.exp().sum(-1, keepdim=True)
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
        wrong(
            "the number with a cache is given",
            "cache",
            "With a cache each key is computed once, 20 in all; without it again at every step.",
            answer=20,
        ),
        wrong(
            "every step is taken to be full length",
            "cache",
            "The prefix grows: step t computes t keys, not 20.",
            answer=400,
        ),
        wrong(
            "the last or the first step is left out",
            "off by one",
            "1 + 2 + ... + 20 has 20 terms.",
            {"answer": 209},
            answer=190,
        ),
        wrong(
            "values are counted, too",
            "counting",
            "Each token has a key and a value; only the keys are asked for.",
            answer=420,
        ),
        wrong(
            "the average is taken to be 10",
            "off by one",
            "The mean of 1 to 20 is 10.5.",
            answer=200,
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
