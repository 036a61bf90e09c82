"""Attention, decoding and loss against slow references in float64, over random inputs.

The references loop over sentences, heads and queries, and take only what may be seen. How many
inputs are drawn is set by hypothesis' profile: `make test-long` draws many more than `make test`.

Limits of a dtype are tried with numbers whose products and sums it holds exactly, so that a
reference in float64 and the library start from the same scores.
"""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_utils.models.attention import (
    AdditiveAttention,
    DotProductAttention,
    MultiHeadAttention,
    masked_softmax,
)
from course_utils.models.recurrent import BahdanauDecoder, GRUDecoder, GRUEncoder, Seq2Seq
from course_utils.models.transformer import Transformer, TransformerConfig
from course_utils.training.decoding import beam_search, greedy_decode
from course_utils.training.losses import masked_cross_entropy

pytestmark = pytest.mark.deeper
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
JUNK = [math.nan, math.inf, -math.inf]
BOS, EOS = 1, 2

seeds = st.integers(0, 2**32 - 1)
dtypes = st.sampled_from(DTYPES)
sizes = st.integers(0, 5)  # of any axis, 0 included


class Draw:
    """Random tensors of one seed."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape):
        return torch.randn(shape, generator=self.generator, dtype=torch.float64)

    def whole(self, low, high, *shape):
        """Whole numbers from low to high, both included."""
        return torch.randint(low, high + 1, shape, generator=self.generator)

    def below(self, limit):
        return int(torch.randint(limit, (), generator=self.generator))

    def mask(self, *shape):
        """A mask with any share of True; some axes may have size 1, and rows may be empty."""
        shape = [size if self.below(3) else 1 for size in shape]
        share = (0.0, 0.2, 0.5, 0.9, 1.0)[self.below(5)]
        return torch.rand(shape, generator=self.generator) < share

    def layout(self, x):
        """The same numbers, laid out in memory in one of four ways."""
        way = self.below(4)
        if way == 1 and x.dim() > 1:  # transposed
            return x.transpose(0, -1).contiguous().transpose(0, -1)
        if way == 2:  # every second number of a larger tensor
            return torch.stack([x, torch.zeros_like(x) - 1], dim=-1)[..., 0]
        if way == 3 and len(x):  # one sentence, repeated without a copy
            return x[:1].expand_as(x)
        return x


def spoil(x, hidden, draw):
    """Junk where `hidden`: NaN or an infinity."""
    return x.masked_fill(hidden, JUNK[draw.below(3)])


def leaf(x):
    """A leaf of the graph with the layout of `x`, expanded axes included."""
    return x.detach().requires_grad_()


def assert_near(got, wanted, tolerance):
    """`wanted` is in float64; `tolerance` counts in epsilons of `got`'s type."""
    assert got.isfinite().all()
    atol = tolerance * torch.finfo(got.dtype).eps
    torch.testing.assert_close(got.double(), wanted, rtol=0, atol=atol)


def assert_finite_gradients(output, *inputs):
    output.square().sum().backward()
    for x in inputs:
        assert x.grad.isfinite().all()


# ---------------------------------------------------------------- references


def reference_softmax(row, seen):
    """Lists of scores and of booleans -> list of weights."""
    highest = max((s for s, ok in zip(row, seen, strict=True) if ok), default=0.0)
    exps = [math.exp(s - highest) if ok else 0.0 for s, ok in zip(row, seen, strict=True)]
    total = math.fsum(exps)
    return [e / total if total else 0.0 for e in exps]


def reference_weights(scores, mask):
    """Scores (..., Tk) in float64 and a mask of the same shape -> weights, row by row."""
    rows = zip(scores.flatten(0, -2).tolist(), mask.flatten(0, -2).tolist(), strict=True)
    weights = [reference_softmax(*row) for row in rows]
    return torch.tensor(weights, dtype=torch.float64).reshape(scores.shape)


def reference_attention(score, queries, keys, values, mask):
    """(B, h, T, .) in float64 and the full mask (B, h, Tq, Tk) -> output and weights.

    `score` takes one query and one key; it is not called for what is hidden.
    """
    scores = torch.zeros(mask.shape, dtype=torch.float64)
    for b, h, i, j in mask.nonzero().tolist():
        scores[b, h, i, j] = score(queries[b, h, i], keys[b, h, j])
    weights = reference_weights(scores, mask)
    output = torch.zeros(*mask.shape[:3], values.shape[-1], dtype=torch.float64)
    for b, h, i, j in mask.nonzero().tolist():
        output[b, h, i] += weights[b, h, i, j] * values[b, h, j]
    return output, weights


def dot(q, k):
    return (q @ k) / math.sqrt(len(q))


# ---------------------------------------------------------------- masked softmax


@given(seeds, dtypes, st.lists(sizes, min_size=2, max_size=4), st.booleans())
def test_masked_softmax(seed, dtype, shape, junk):
    draw = Draw(seed)
    limit = torch.finfo(dtype).max
    scores = draw.normal(*shape) * (0.1, 1.0, 30.0, limit / 8)[draw.below(4)]
    scores = scores.clamp(-limit, limit).to(dtype)
    corner = scores.new_tensor([limit, -limit, 0.0])[draw.whole(0, 2, *shape)]
    scores = torch.where(draw.normal(*shape) > 1, corner, scores)  # some at the very limits
    mask = draw.mask(*shape)
    full = mask.expand(shape)
    if junk:
        scores = spoil(scores, ~full, draw)
    scores = leaf(draw.layout(scores))
    if junk and not scores.masked_select(full).isfinite().all():  # a repeated sentence moves junk
        return
    kept = scores.detach().clone()
    weights = masked_softmax(scores, mask=mask)
    assert weights.dtype == dtype
    assert weights.masked_select(~full).eq(0).all()  # exactly
    assert_near(weights, reference_weights(scores.detach().double(), full), 4)
    assert_finite_gradients(weights, scores)
    assert scores.grad.masked_select(~full).eq(0).all()
    torch.testing.assert_close(scores.detach(), kept, rtol=0, atol=0, equal_nan=True)


@given(seeds, dtypes, sizes, sizes, sizes)
def test_lengths_are_the_mask_they_stand_for(seed, dtype, batch, num_queries, num_keys):
    draw = Draw(seed)
    scores = draw.normal(batch, num_queries, num_keys).to(dtype)
    shape = (batch, num_queries) if draw.below(2) else (batch,)
    lens = draw.whole(0, num_keys, *shape)
    mask = torch.zeros(batch, num_queries, num_keys, dtype=torch.bool)
    for b, i in itertools.product(range(batch), range(num_queries)):
        mask[b, i, : lens[b, i] if lens.dim() == 2 else lens[b]] = True
    got = masked_softmax(spoil(scores, ~mask, draw), lens)
    assert_near(got, reference_weights(scores.double(), mask), 4)


# ---------------------------------------------------------------- attention


def attention_inputs(draw, dtype, heads, shape, make):
    """Queries, keys, values and a mask; junk where no query looks and in queries that see nothing.

    `make(T)` gives the queries or keys (B, h, T, d); the layouts differ.
    """
    batch, num_queries, num_keys = shape
    queries, keys = make(num_queries), make(num_keys)
    values = draw.normal(batch, heads, num_keys, (3, keys.shape[-1])[draw.below(2)])
    queries, keys, values = (draw.layout(x.to(dtype)) for x in (queries, keys, values))
    mask = draw.mask(batch, heads, num_queries, num_keys)
    full = mask.expand(batch, heads, num_queries, num_keys)
    if draw.below(2):
        unseen, blind = ~mask.any(dim=-2), ~mask.any(dim=-1)
        queries = spoil(queries, blind.unsqueeze(-1), draw)
        keys, values = (spoil(x, unseen.unsqueeze(-1), draw) for x in (keys, values))
    return [leaf(x) for x in (queries, keys, values)], mask, full


def check_attention(layer, score, inputs, mask, full, tolerance):
    """Output, weights and gradients, with and without weights."""
    wanted, wanted_weights = reference_attention(
        score, *(x.detach().double() for x in inputs), full
    )
    output, weights = layer(*inputs, mask, return_weights=True)
    assert weights.masked_select(~full).eq(0).all()
    assert_near(weights, wanted_weights, tolerance)
    for got in (output, layer(*inputs, mask)):
        assert got.dtype == inputs[0].dtype
        assert got.masked_select(~full.any(dim=-1, keepdim=True)).eq(0).all()
        assert_near(got, wanted, 4 * tolerance)
        for x in (*inputs, *layer.parameters()):
            x.grad = None
        assert_finite_gradients(got, *inputs)
        assert all(p.grad is None or p.grad.isfinite().all() for p in layer.parameters())


@given(seeds, dtypes, st.integers(1, 3), st.tuples(sizes, sizes, sizes), st.sampled_from([1, 16]))
def test_dot_product_attention(seed, dtype, heads, shape, d):
    draw = Draw(seed)
    # |score| <= d * 2 * 2 * scale^2 / sqrt(d) <= half the largest number, and is exact: torch may
    # multiply queries and keys by d^(-1/4) each, which is a power of two for these d
    most = 2.0 ** math.floor(math.log2(torch.finfo(dtype).max / (8 * d)) / 2)
    scale = (0.25, 1.0, most)[draw.below(3)]

    def make(steps):
        return draw.whole(-2, 2, shape[0], heads, steps, d).double() * scale

    inputs, mask, full = attention_inputs(draw, dtype, heads, shape, make)
    check_attention(DotProductAttention(), dot, inputs, mask, full, 8)


@given(seeds, dtypes, st.integers(1, 3), st.tuples(sizes, sizes, sizes))
def test_additive_attention(seed, dtype, heads, shape):
    draw, d, n = Draw(seed), 4, 3
    layer = AdditiveAttention(key_size=d, query_size=d, num_hiddens=n)
    with torch.no_grad():  # exact sums of halves
        for p in layer.parameters():
            p.copy_(draw.whole(-2, 2, *p.shape) / 2)
    layer = layer.to(dtype)
    w_q, w_k, w_v = (w.weight.detach().double() for w in (layer.W_q, layer.W_k, layer.w_v))

    def score(q, k):
        return w_v[0] @ torch.tanh(w_q @ q + w_k @ k)

    # sums of up to 8 products stay below the largest number
    most = 2.0 ** math.floor(math.log2(torch.finfo(dtype).max / 64))
    scale = (0.5, 1.0, most)[draw.below(3)]

    def make(steps):
        return draw.whole(-1, 1, shape[0], heads, steps, d).double() * scale

    inputs, mask, full = attention_inputs(draw, dtype, heads, shape, make)
    check_attention(layer, score, inputs, mask, full, 32)


@given(seeds, dtypes, st.integers(1, 3), st.tuples(sizes, sizes, sizes), st.booleans())
def test_multi_head_attention(seed, dtype, heads, shape, bias):
    draw, size = Draw(seed), 2
    d = heads * size
    layer = MultiHeadAttention(d, heads, bias=bias)
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(draw.whole(-1, 1, *p.shape))
    layer = layer.to(dtype)
    batch, num_queries, num_keys = shape
    x = [draw.whole(-1, 1, batch, n, d).double() / 2 for n in (num_queries, num_keys, num_keys)]
    mask = draw.mask(batch, heads, num_queries, num_keys)
    full = mask.expand(batch, heads, num_queries, num_keys)
    x = [draw.layout(t.to(dtype)) for t in x]
    hidden = [~mask.any(dim=1).any(dim=dim).unsqueeze(-1) for dim in (-1, -2, -2)]
    if draw.below(2):
        x = [spoil(t, where, draw) for t, where in zip(x, hidden, strict=True)]
    x = [leaf(t) for t in x]

    def project(linear, t):
        """(B, T, d) -> (B, h, T, d / h), head by head; junk is not multiplied."""
        y = t.detach().double().nan_to_num(0.0, 0.0, 0.0) @ linear.weight.detach().double().T
        y = y if linear.bias is None else y + linear.bias.detach().double()
        return torch.stack([y[..., h * size : (h + 1) * size] for h in range(heads)], dim=1)

    projected = [project(w, t) for w, t in zip((layer.W_q, layer.W_k, layer.W_v), x, strict=True)]
    by_head, wanted_weights = reference_attention(dot, *projected, full)
    joined = torch.cat([by_head[:, h] for h in range(heads)], dim=-1)  # (B, Tq, d)
    wanted = joined @ layer.W_o.weight.detach().double().T
    wanted = wanted if not bias else wanted + layer.W_o.bias.detach().double()
    wanted = wanted.masked_fill(~full.any(dim=-1).any(dim=1).unsqueeze(-1), 0.0)  # not the bias
    output, weights = layer(*x, mask, return_weights=True)
    assert weights.masked_select(~full).eq(0).all()
    assert_near(weights, wanted_weights, 16)
    for got in (output, layer(*x, mask)):
        assert got.dtype == dtype
        assert_near(got, wanted, 256)
        for t in (*x, *layer.parameters()):
            t.grad = None
        assert_finite_gradients(got, *x)
        assert all(p.grad is None or p.grad.isfinite().all() for p in layer.parameters())


# ---------------------------------------------------------------- decoding


def translation_model(kind, draw, vocab_size=5):
    """A small model in float64 whose logits are far apart."""
    model = {
        "transformer": lambda: Transformer(
            TransformerConfig(6, vocab_size, 4, 2, 8, 1, 2, dropout=0.2, max_len=16)
        ),
        "gru": lambda: Seq2Seq(GRUEncoder(6, 4, 4), GRUDecoder(vocab_size, 4, 4)),
        "bahdanau": lambda: Seq2Seq(GRUEncoder(6, 4, 4), BahdanauDecoder(vocab_size, 4, 4)),
    }[kind]().double()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(draw.normal(*p.shape))
    return model.eval()


kinds = st.sampled_from(["transformer", "gru", "bahdanau"])


def sources(draw, kind, batch, steps):
    """Ids (B, steps) and lengths; a GRU wants one sentence or more, and none empty."""
    least = 0 if kind == "transformer" else 1
    batch = max(batch, least)
    return draw.whole(0, 5, batch, steps), draw.whole(least, steps, batch)


@given(seeds, kinds, st.integers(1, 4), st.integers(1, 4), st.data())
def test_a_cache_gives_the_logits_of_every_prefix_read_alone(seed, kind, batch, steps, data):
    draw = Draw(seed)
    model = translation_model(kind, draw)
    src, lens = sources(draw, kind, batch, steps)
    length = 4
    tgt = draw.layout(draw.whole(0, 4, batch, length))
    cuts = sorted(data.draw(st.sets(st.integers(1, length - 1))))
    state, parts, rows = model.start(src, lens), [], torch.arange(batch)
    for start, end in itertools.pairwise([0, *cuts, length]):
        chosen = draw.whole(0, len(rows) - 1, draw.below(3) + 1) if draw.below(2) else None
        if chosen is not None:  # some sentences, repeated or in another order
            state, rows = state.select(chosen), rows[chosen]
            parts = [part[chosen] for part in parts]
        logits, state = model.decode(tgt[rows, start:end], state)
        parts.append(logits)
    got = torch.cat(parts, dim=1)
    for row, sentence in enumerate(rows.tolist()):
        n = int(lens[sentence])
        alone = src[sentence : sentence + 1, :n], lens[sentence : sentence + 1]
        for t in range(length):
            prefix = tgt[sentence : sentence + 1, : t + 1]
            assert_near(got[row, t], model(*alone, prefix)[0, -1].detach(), 1e5)


@given(seeds, dtypes, st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))
def test_a_transformer_of_any_sizes_and_types_gives_finite_logits(seed, dtype, batch, ts, tt):
    draw = Draw(seed)
    model = translation_model("transformer", draw)
    src, lens = sources(draw, "transformer", batch, ts)
    tgt = draw.whole(0, 4, batch, tt)
    wanted = model(src, lens, tgt).detach()
    logits = model.to(dtype)(src, lens, tgt)
    assert logits.shape == (batch, tt, 5)
    assert logits.dtype == dtype
    assert logits.isfinite().all()
    if dtype in (torch.float32, torch.float64):
        assert_near(logits, wanted, 1e4)
    assert_finite_gradients(logits.float(), *(p for p in model.parameters() if p.grad is not None))


def next_logs(model, src, lens, read):
    """Log-probabilities of the token after <bos> and `read`, all read anew."""
    with torch.no_grad():
        logits = model(src, lens, torch.tensor([[BOS, *read]]))[0, -1]
    return (logits - logits.exp().sum().log()).tolist()


def reference_greedy(model, src, lens, max_len):
    read = []
    while len(read) < max_len:
        logs = next_logs(model, src, lens, read)
        best = logs.index(max(logs))
        if best == EOS:
            break
        read.append(best)
    return read


def reference_beam(model, src, lens, beam, max_len, penalty):
    """The rule of `beam_search`'s docstring with lists, and without a cache."""
    unfinished, finished = [(0.0, [])], []
    for length in range(1, max_len + 1):
        longer = [
            (score + log, [*read, token])
            for score, read in unfinished
            for token, log in enumerate(next_logs(model, src, lens, read))
        ]
        best = sorted(longer, reverse=True)[:beam]
        finished += [(s / length**penalty, read[:-1]) for s, read in best if read[-1] == EOS]
        unfinished = [(s, read) for s, read in best if read[-1] != EOS]
        ahead = max((s for s, _ in unfinished), default=-math.inf) / length**penalty
        if not unfinished or (len(finished) >= beam and max(finished)[0] >= ahead):
            return max(finished)[1]
    finished += [(s / max_len**penalty, read) for s, read in unfinished]
    return max(finished)[1]


@given(seeds, kinds, st.integers(0, 3), st.integers(1, 4), st.integers(1, 5))
def test_greedy_decoding(seed, kind, batch, steps, max_len):
    draw = Draw(seed)
    model = translation_model(kind, draw)
    src, lens = sources(draw, kind, batch, steps)
    src = draw.layout(src)
    wanted = [
        reference_greedy(model, src[i : i + 1], lens[i : i + 1], max_len) for i in range(len(src))
    ]
    assert greedy_decode(model, src, lens, bos=BOS, eos=EOS, max_len=max_len) == wanted
    assert beam_search(model, src, lens, bos=BOS, eos=EOS, max_len=max_len, beam=1) == wanted


@given(
    seeds,
    kinds,
    st.integers(0, 2),
    st.integers(1, 6),
    st.integers(1, 7),
    st.sampled_from([0.0, 0.6, 1.0, 2.0]),
)
def test_beam_search(seed, kind, batch, beam, max_len, penalty):
    draw = Draw(seed)
    model = translation_model(kind, draw)
    (model.output if kind == "transformer" else model.decoder.output).weight.data *= 0.3
    src, lens = sources(draw, kind, batch, 3)
    wanted = [
        reference_beam(model, src[i : i + 1], lens[i : i + 1], beam, max_len, penalty)
        for i in range(len(src))
    ]
    ends = {"bos": BOS, "eos": EOS, "beam": beam, "max_len": max_len, "length_penalty": penalty}
    assert beam_search(model, src, lens, **ends) == wanted


# ---------------------------------------------------------------- loss


def reference_loss(logits, targets, pad, smoothing):
    """Mean over real tokens of (1 - s) * -log p(target) + s * mean of -log p."""
    losses = []
    for row, target in zip(logits.flatten(0, 1).tolist(), targets.flatten().tolist(), strict=True):
        if target == pad:
            continue
        highest = max(row)
        log_total = highest + math.log(math.fsum(math.exp(x - highest) for x in row))
        logs = [x - log_total for x in row]
        losses.append(-(1 - smoothing) * logs[target] - smoothing * math.fsum(logs) / len(logs))
    return math.fsum(losses) / len(losses)


@given(
    seeds,
    dtypes,
    st.integers(0, 4),
    sizes,
    st.integers(1, 6),
    st.sampled_from([0.0, 0.1, 0.5]),
)
def test_masked_cross_entropy(seed, dtype, batch, steps, classes, smoothing):
    draw = Draw(seed)
    pad = draw.below(classes)
    targets = draw.layout(draw.whole(0, classes - 1, batch, steps))
    # a log-probability is at least -2 * size, and torch adds those of 20 tokens and 6 classes
    size = (0.1, 1.0, 10.0, torch.finfo(dtype).max / 256)[draw.below(4)]
    logits = draw.whole(-4, 4, batch, steps, classes).double() / 4 * size
    logits = draw.layout(logits.to(dtype))
    if draw.below(2):
        logits = spoil(logits, targets.eq(pad).unsqueeze(-1), draw)
    logits = leaf(logits)
    if targets.eq(pad).all():
        with pytest.raises(ValueError, match="every target is padding"):
            masked_cross_entropy(logits, targets, pad=pad, label_smoothing=smoothing)
        return
    loss = masked_cross_entropy(logits, targets, pad=pad, label_smoothing=smoothing)
    wanted = reference_loss(logits.detach().double(), targets, pad, smoothing)
    assert loss.dtype == dtype
    assert_near(loss, torch.tensor(wanted, dtype=torch.float64), 16 * max(1.0, size))
    loss.backward()
    assert logits.grad.isfinite().all()
    assert logits.grad[targets.eq(pad)].eq(0).all()
