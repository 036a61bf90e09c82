"""Masked softmax and the attention layers: values, gradients, masks, and bad input."""

import math
import warnings

import d2l.torch as d2l
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from parity import assert_same_gradients, copy_weights, d2l_attention_pairs, torch_attention_pairs
from torch import nn

from course_utils.models.attention import (
    AdditiveAttention,
    DotProductAttention,
    MultiHeadAttention,
    masked_softmax,
)
from course_utils.models.masks import build_mask, causal_mask, mask_from_valid_lens

few = settings(deadline=None, max_examples=25, derandomize=True)
close = torch.testing.assert_close
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
B, H, TQ, TK, D = 3, 2, 4, 5, 8


def randn(*shape, dtype=torch.float64, grad=False):
    return torch.randn(*shape, dtype=dtype).requires_grad_(grad)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def make(kind, dropout=0.0, dtype=torch.float64):
    layer = {
        "additive": lambda: AdditiveAttention(
            key_size=D, query_size=D, num_hiddens=6, dropout=dropout
        ),
        "dot": lambda: DotProductAttention(dropout=dropout),
        "multi-head": lambda: MultiHeadAttention(
            d_model=D, num_heads=H, dropout=dropout, bias=True
        ),
    }[kind]()
    return layer.to(dtype)


KINDS = ["additive", "dot", "multi-head"]
every_kind = pytest.mark.parametrize("kind", KINDS)
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype)[6:])


def random_mask(*shape):
    """Every query may look at something."""
    mask = torch.rand(*shape) > 0.4
    mask[..., 0] |= ~mask.any(dim=-1)
    return mask


# ---------------------------------------------------------------- masked softmax


def test_masked_softmax_by_hand():
    scores = torch.tensor([[[1.0, 2.0, 3.0]], [[1.0, 2.0, 3.0]]])
    weights = masked_softmax(scores, torch.tensor([0, 2]))
    close(weights, torch.tensor([[[0.0, 0.0, 0.0]], [[0.2689, 0.7311, 0.0]]]), rtol=0, atol=5e-5)


def test_masked_softmax_pattern_of_the_notes():
    """Notes 001-28: with lengths 2 and 3, columns from the length on are 0, rows sum to 1."""
    weights = masked_softmax(torch.rand(2, 2, 4), torch.tensor([2, 3]))
    assert weights.shape == (2, 2, 4)
    assert weights[0, :, 2:].eq(0).all()
    assert weights[1, :, 3:].eq(0).all()
    assert weights[0, :, :2].gt(0).all()
    assert weights[1, :, :3].gt(0).all()
    close(weights.sum(dim=-1), torch.ones(2, 2))


def test_masked_softmax_with_one_length_a_query():
    weights = masked_softmax(torch.zeros(2, 2, 4), torch.tensor([[1, 3], [2, 4]]))
    assert weights[0, 0].tolist() == [1, 0, 0, 0]
    close(weights[0, 1], torch.tensor([1 / 3, 1 / 3, 1 / 3, 0]))
    assert weights[1, 0].tolist() == [0.5, 0.5, 0, 0]
    assert weights[1, 1].tolist() == [0.25] * 4


@pytest.mark.parametrize("shape", [(3,), (3, 4)])
def test_masked_softmax_equals_d2l(shape):
    scores, twin = (randn(B, TQ, TK).requires_grad_() for _ in range(2))
    with torch.no_grad():
        twin.copy_(scores)
    lens = torch.randint(1, TK + 1, shape)
    ours = masked_softmax(scores, lens)
    theirs = d2l.masked_softmax(twin.clone(), lens)  # a clone: d2l overwrites its input
    close(ours, theirs, rtol=0, atol=1e-12)
    upstream = randn(B, TQ, TK)
    (ours * upstream).sum().backward()
    (theirs * upstream).sum().backward()
    close(scores.grad, twin.grad, rtol=0, atol=1e-12)


def test_masked_softmax_without_mask_is_softmax():
    scores = randn(2, 3, 4)
    assert masked_softmax(scores).equal(F.softmax(scores, dim=-1))


def test_masked_softmax_combines_lengths_and_mask():
    scores = randn(2, 3, 3)
    got = masked_softmax(scores, torch.tensor([2, 3]), mask=causal_mask(3)[0])
    lens = mask_from_valid_lens(torch.tensor([2, 3]), 3)[:, 0]
    close(got, masked_softmax(scores, mask=lens & causal_mask(3)[0]), rtol=0, atol=0)


def test_masked_softmax_takes_lengths_with_heads():
    scores, lens = randn(B, H, TQ, TK), torch.randint(1, TK + 1, (B, TQ))
    for head in range(H):
        close(masked_softmax(scores, lens)[:, head], masked_softmax(scores[:, head], lens))


@few
@given(data=st.data())
def test_masked_softmax_rows_sum_to_one_or_are_all_zero(data):
    dtype = data.draw(st.sampled_from(DTYPES))
    batch, rows, keys = (data.draw(st.integers(1, 4)) for _ in range(3))
    size = data.draw(st.sampled_from([1.0, 30.0, 1e4]))
    bits = data.draw(st.lists(st.booleans(), min_size=rows * keys, max_size=rows * keys))
    scores = (torch.rand(batch, rows, keys) * 2 - 1).mul(size).to(dtype).requires_grad_()
    mask = torch.tensor(bits).reshape(rows, keys)
    kept = scores.detach().clone()
    weights = masked_softmax(scores, mask=mask)
    assert weights.dtype == dtype
    assert weights.masked_select(~mask).eq(0).all()  # exactly
    sums = mask.any(dim=-1).to(torch.float64).expand(batch, rows)
    close(weights.detach().double().sum(dim=-1), sums, rtol=0, atol=2e-2)
    (weights * torch.randn_like(weights)).sum().backward()
    assert scores.grad.isfinite().all()
    assert scores.grad.masked_select(~mask).eq(0).all()
    assert scores.equal(kept)


@few
@given(
    shift=st.floats(-1e3, 1e3),
    order=st.permutations(range(5)),
    lens=st.lists(st.integers(0, 5), min_size=2, max_size=2),
)
def test_masked_softmax_ignores_a_shift_and_follows_a_permutation_of_keys(shift, order, lens):
    scores, mask = randn(2, 3, 5), mask_from_valid_lens(torch.tensor(lens), 5)[:, 0]
    weights = masked_softmax(scores, mask=mask)
    close(masked_softmax(scores + shift, mask=mask), weights, rtol=0, atol=1e-9)
    moved = masked_softmax(scores[..., order], mask=mask[..., order])
    close(moved, weights[..., order], rtol=0, atol=1e-12)


@every_dtype
@pytest.mark.parametrize("hidden", [math.inf, -math.inf, math.nan, "max", "min"])
def test_hidden_scores_of_any_size_leave_no_trace(dtype, hidden):
    limits = torch.finfo(dtype)
    hidden = {"max": limits.max, "min": limits.min}.get(hidden, hidden)
    scores = torch.tensor([[[1.0, 2.0, hidden]]], dtype=dtype, requires_grad=True)
    weights = masked_softmax(scores, torch.tensor([2]))
    close(weights[0, 0, :2], F.softmax(scores[0, 0, :2], dim=-1))
    assert weights[0, 0, 2] == 0
    weights[0, 0, 0].backward()
    assert scores.grad.isfinite().all()


@every_dtype
def test_visible_scores_at_the_lower_end_still_win_over_hidden_ones(dtype):
    low = torch.finfo(dtype).min
    scores = torch.tensor([[[low, low, 5.0]]], dtype=dtype)
    assert masked_softmax(scores, torch.tensor([2])).tolist() == [[[0.5, 0.5, 0.0]]]


@every_dtype
def test_half_precision_lengths_one_three_and_none(dtype):
    scores = torch.randn(3, 2, 4).to(dtype)
    weights = masked_softmax(scores, torch.tensor([1, 3, 0]))
    assert weights.dtype == dtype
    assert weights[0].tolist() == [[1, 0, 0, 0]] * 2
    assert weights[1, :, 3].eq(0).all()
    assert weights[2].eq(0).all()
    close(weights[1].double().sum(dim=-1), torch.ones(2).double(), rtol=0, atol=1e-2)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: masked_softmax(s.long()), TypeError, "floating-point, got torch.int64"),
        (lambda s: masked_softmax(s, mask=torch.ones(3, 4)), TypeError, "boolean.*float32"),
        (lambda s: masked_softmax(s, mask=[True]), TypeError, "boolean.*list"),
        (
            lambda s: masked_softmax(s, mask=torch.ones(2, 4, dtype=torch.bool)),
            ValueError,
            r"\(2, 4\) does not broadcast to the scores' \(2, 3, 4\)",
        ),
        (
            lambda s: masked_softmax(s, mask=torch.ones(2, 2, 3, 4, dtype=torch.bool)),
            ValueError,
            r"\(2, 2, 3, 4\) does not broadcast",
        ),
        (lambda s: masked_softmax(s, torch.tensor([1.0, 2.0])), TypeError, "float32.*long"),
        (lambda s: masked_softmax(s, torch.tensor([1, 5])), ValueError, r"0\.\.4.*\[1, 5\]"),
        (lambda s: masked_softmax(s, torch.tensor([1, 2, 3])), ValueError, r"B = 2.*\(3,\)"),
        (lambda s: masked_softmax(s[0], torch.tensor([1, 2])), ValueError, r"got \(3, 4\).*mask="),
    ],
)
def test_masked_softmax_says_what_does_not_fit(call, error, message):
    with pytest.raises(error, match=message):
        call(torch.zeros(2, 3, 4))


def test_a_fully_masked_row_makes_no_nan_even_on_the_way_back():
    """torch's anomaly detection, with which a learner looks for NaN, must find none."""
    scores = torch.randn(2, 3, 4, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that detection is on
        with torch.autograd.detect_anomaly():
            weights = masked_softmax(scores, torch.tensor([0, 2]))
            (weights * torch.randn(2, 3, 4)).sum().backward()
    assert scores.grad[0].eq(0).all()
    assert scores.grad[1, :, :2].ne(0).all()


# ---------------------------------------------------------------- numbers of the notes


@pytest.mark.parametrize("kind", ["additive", "dot"])
def test_scoring_functions_on_the_shapes_of_the_notes(kind):
    """Notes 001-39, 001-45: equal keys give the mean of the first 2 and the first 6 values."""
    if kind == "additive":
        layer, queries = AdditiveAttention(2, 20, 8, dropout=0.1), torch.randn(2, 1, 20)
    else:
        layer, queries = DotProductAttention(dropout=0.5), torch.randn(2, 1, 2)
    keys = torch.ones(2, 10, 2)
    values = torch.arange(40.0).reshape(1, 10, 4).repeat(2, 1, 1)
    output, weights = layer.eval()(
        queries, keys, values, valid_lens=torch.tensor([2, 6]), return_weights=True
    )
    close(output, torch.tensor([[[2.0, 3.0, 4.0, 5.0]], [[10.0, 11.0, 12.0, 13.0]]]))
    close(weights[0, 0, 0], torch.tensor([0.5] * 2 + [0.0] * 8))
    close(weights[1, 0, 0], torch.tensor([1 / 6] * 6 + [0.0] * 4))


def test_dot_product_by_hand():
    queries, keys = torch.tensor([[[2.0, 0.0]]]), torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    values = torch.tensor([[[1.0], [0.0]]])
    wanted = 1 / (1 + math.exp(-2 / math.sqrt(2)))
    close(DotProductAttention()(queries, keys, values), torch.tensor([[[wanted]]]))


def test_additive_by_hand():
    layer = AdditiveAttention(key_size=1, query_size=1, num_hiddens=1)
    with torch.no_grad():
        layer.W_q.weight.fill_(2)
        layer.W_k.weight.fill_(3)
        layer.w_v.weight.fill_(4)
    queries, keys = torch.tensor([[[0.1]]]), torch.tensor([[[0.2], [-0.3]]])
    a, b = 4 * math.tanh(0.2 + 0.6), 4 * math.tanh(0.2 - 0.9)
    first = math.exp(a) / (math.exp(a) + math.exp(b))
    _, weights = layer(queries, keys, keys, return_weights=True)
    close(weights, torch.tensor([[[[first, 1 - first]]]]))


def test_multi_head_attention_on_the_shapes_of_the_notes():
    """Notes 001-70: 100 units, 5 heads, 4 queries, 6 keys."""
    layer = MultiHeadAttention(d_model=100, num_heads=5, dropout=0.5).eval()
    queries, keys = torch.ones(2, 4, 100), torch.ones(2, 6, 100)
    output, weights = layer(
        queries, keys, keys, valid_lens=torch.tensor([3, 2]), return_weights=True
    )
    assert output.shape == (2, 4, 100)
    assert weights.shape == (2, 5, 4, 6)


def test_multi_head_attention_is_a_loop_over_heads():
    layer = make("multi-head")
    q, k, v = randn(B, TQ, D), randn(B, TK, D), randn(B, TK, D)
    mask = random_mask(B, H, TQ, TK)
    output, weights = layer(q, k, v, mask, return_weights=True)
    size, heads = D // H, []
    for i in range(H):
        rows = slice(i * size, (i + 1) * size)
        qi, ki, vi = (
            x @ w.weight[rows].T + w.bias[rows]
            for x, w in ((q, layer.W_q), (k, layer.W_k), (v, layer.W_v))
        )
        scores = (qi @ ki.mT / math.sqrt(size)).masked_fill(~mask[:, i], -math.inf)
        close(weights[:, i], scores.softmax(dim=-1), rtol=0, atol=1e-12)
        heads.append(weights[:, i] @ vi)
    close(output, layer.W_o(torch.cat(heads, dim=-1)), rtol=0, atol=1e-12)


def test_multi_head_attention_has_four_matrices_and_bias_only_when_asked():
    def sizes(bias):
        layer = MultiHeadAttention(d_model=8, num_heads=2, bias=bias)
        return {name: p.numel() for name, p in layer.named_parameters()}

    names = ("W_q", "W_k", "W_v", "W_o")
    assert sizes(False) == {f"{name}.weight": 64 for name in names}
    assert sizes(True) == sizes(False) | {f"{name}.bias": 8 for name in names}


# ---------------------------------------------------------------- parity with d2l and torch


def twins(*shapes):
    """The same random tensors twice, each pair a leaf of its own graph."""
    ours = [randn(*shape, grad=True) for shape in shapes]
    return ours, [x.detach().clone().requires_grad_() for x in ours]


def assert_parity(ours, theirs, inputs, their_inputs, pairs=(), tolerance=1e-10):
    """Same output, same gradients of inputs and weights for one random upstream gradient."""
    close(ours, theirs, rtol=0, atol=tolerance)
    upstream = torch.randn_like(ours)
    ours.backward(upstream)
    theirs.backward(upstream)
    for mine, other in zip(inputs, their_inputs, strict=True):
        assert mine.grad.abs().max() > 0
        close(mine.grad, other.grad, rtol=0, atol=tolerance)
    if pairs:
        assert_same_gradients(pairs, tolerance)


lens_kinds = pytest.mark.parametrize("lens_kind", ["none", "per sentence", "per query"])


def draw_lens(kind):
    shape = {"none": None, "per sentence": (B,), "per query": (B, TQ)}[kind]
    return shape and torch.randint(1, TK + 1, shape)


@lens_kinds
@every_kind
def test_parity_with_d2l(kind, lens_kind):
    ours = make(kind)
    theirs = {
        "additive": lambda: d2l.AdditiveAttention(D, D, 6, 0.0),
        "dot": lambda: d2l.DotProductAttention(0.0),
        "multi-head": lambda: d2l.MultiHeadAttention(D, D, D, D, H, 0.0, bias=True),
    }[kind]().double()
    pairs = list(d2l_attention_pairs(ours, theirs))
    copy_weights(pairs)
    lens = draw_lens(lens_kind)
    for with_weights in (False, True):
        ours.zero_grad()
        theirs.zero_grad()
        mine, other = twins((B, TQ, D), (B, TK, D), (B, TK, D))
        output = ours(*mine, valid_lens=lens, return_weights=with_weights)
        if with_weights:
            output, weights = output
            core = theirs if kind != "multi-head" else theirs.attention
        reference = theirs(*other, lens)
        if with_weights:
            close(weights, core.attention_weights.reshape(weights.shape), rtol=0, atol=1e-12)
        # a key bias moves all scores of a query alike, so its true gradient is 0
        with_gradient = [pair for pair in pairs if pair[0] is not _key_bias(ours)]
        assert_parity(output, reference, mine, other, with_gradient)


def _key_bias(layer):
    return getattr(getattr(layer, "W_k", None), "bias", None)


def test_additive_parity_with_d2l_when_queries_keys_and_values_differ_in_size():
    ours = AdditiveAttention(key_size=3, query_size=7, num_hiddens=6).double()
    theirs = d2l.AdditiveAttention(3, 7, 6, 0.0).double()
    pairs = list(d2l_attention_pairs(ours, theirs))
    copy_weights(pairs)
    mine, other = twins((B, TQ, 7), (B, TK, 3), (B, TK, 4))
    lens = draw_lens("per query")
    assert_parity(ours(*mine, valid_lens=lens), theirs(*other, lens), mine, other, pairs)


@pytest.mark.parametrize("with_weights", [False, True])
@pytest.mark.parametrize("shape", [None, (B, 1, 1, TK), (1, 1, TQ, TK), (B, H, TQ, TK)])
def test_parity_of_dot_product_with_scaled_dot_product_attention(shape, with_weights):
    mask = shape and random_mask(*shape)
    mine, other = twins((B, H, TQ, D), (B, H, TK, D), (B, H, TK, 6))
    output = DotProductAttention()(*mine, mask, return_weights=with_weights)
    reference = F.scaled_dot_product_attention(*other, attn_mask=mask)
    assert_parity(output[0] if with_weights else output, reference, mine, other)


@pytest.mark.parametrize("with_weights", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("mask_kind", ["none", "padding", "per head"])
def test_parity_with_torch_multihead_attention(mask_kind, bias, with_weights):
    ours = MultiHeadAttention(d_model=D, num_heads=H, bias=bias).double()
    theirs = nn.MultiheadAttention(D, H, bias=bias, batch_first=True).double()
    if bias:
        for layer in (ours.W_q, ours.W_k, ours.W_v, ours.W_o):
            nn.init.normal_(layer.bias)
    pairs = list(torch_attention_pairs(ours, theirs))
    copy_weights(pairs)
    mine, other = twins((B, TQ, D), (B, TK, D), (B, TK, D))
    mask, options = None, {}
    if mask_kind == "padding":  # torch: True = may NOT look, (B, Tk)
        mask = mask_from_valid_lens(draw_lens("per sentence"), TK)
        options["key_padding_mask"] = ~mask[:, 0, 0]
    elif mask_kind == "per head":  # torch: (B * h, Tq, Tk)
        mask = random_mask(B, H, TQ, TK)
        options["attn_mask"] = ~mask.flatten(0, 1)
    output = ours(*mine, mask, return_weights=with_weights)
    reference, their_weights = theirs(*other, average_attn_weights=False, **options)
    if with_weights:
        output, weights = output
        close(weights, their_weights, rtol=0, atol=1e-12)
    with_gradient = [pair for pair in pairs if pair[0] is not ours.W_k.bias]
    assert_parity(output, reference, mine, other, with_gradient)


@every_kind
def test_gradients_agree_with_finite_differences(kind):
    layer, lens = make(kind), torch.tensor([1, 3, 5])
    inputs = [randn(B, 2, D, grad=True), randn(B, TK, D, grad=True), randn(B, TK, D, grad=True)]
    assert torch.autograd.gradcheck(lambda *x: layer(*x, valid_lens=lens), inputs, atol=1e-6)


# ---------------------------------------------------------------- the contract of every layer


@every_kind
@few
@given(data=st.data())
def test_any_mask_gives_the_same_output_with_and_without_weights(kind, data):
    batch, num_queries, num_keys = (data.draw(st.integers(1, 4)) for _ in range(3))
    heads = H if kind == "multi-head" else 1
    full = (batch, heads, num_queries, num_keys)
    shape = [size if data.draw(st.booleans()) else 1 for size in full]
    size = math.prod(shape)
    bits = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    mask = torch.tensor(bits).reshape(shape)
    layer = make(kind)
    x = [
        randn(batch, num_queries, D),
        randn(batch, num_keys, D),
        randn(batch, num_keys, D),
    ]
    kept = [t.clone() for t in (*x, mask)]
    output, weights = layer(*x, mask, return_weights=True)
    close(layer(*x, mask), output, rtol=0, atol=1e-12)
    assert weights.shape == full
    assert weights.masked_select(~mask).eq(0).all()
    sums = mask.any(dim=-1).double().expand(full[:3])
    close(weights.sum(dim=-1), sums, rtol=0, atol=1e-12)
    assert all(a.equal(b) for a, b in zip((*x, mask), kept, strict=True))


@every_kind
def test_valid_lens_and_mask_mean_the_same_and_combine(kind):
    layer, x = make(kind), [randn(B, TK, D) for _ in range(3)]
    lens = torch.tensor([2, 5, 3])
    as_mask = mask_from_valid_lens(lens, TK)
    close(layer(*x, valid_lens=lens), layer(*x, as_mask), rtol=0, atol=0)
    both = layer(*x, causal_mask(TK), valid_lens=lens)
    close(both, layer(*x, causal_mask(TK) & as_mask), rtol=0, atol=0)


@every_kind
def test_weights_are_those_of_each_head_and_rows_sum_to_one(kind):
    layer = make(kind)
    _, weights = layer(randn(B, 3, D), randn(B, TK, D), randn(B, TK, D), return_weights=True)
    heads = H if kind == "multi-head" else 1
    assert weights.shape == (B, heads, 3, TK)
    close(weights.sum(dim=-1), torch.ones(B, heads, 3, dtype=torch.float64))
    if heads > 1:
        assert not torch.allclose(weights[:, 0], weights[:, 1])


@pytest.mark.parametrize("kind", ["additive", "dot"])
def test_inputs_with_heads_are_attended_head_by_head(kind):
    layer, mask = make(kind), random_mask(B, H, TQ, TK)
    x = [randn(B, H, TQ, D), randn(B, H, TK, D), randn(B, H, TK, 6)]
    output, weights = layer(*x, mask, return_weights=True)
    assert output.shape == (B, H, TQ, 6)
    for head in range(H):
        one, one_weights = layer(
            *(t[:, head] for t in x), mask[:, head : head + 1], return_weights=True
        )
        close(output[:, head], one, rtol=0, atol=1e-12)
        close(weights[:, head], one_weights[:, 0], rtol=0, atol=1e-12)


@every_dtype
@every_kind
@pytest.mark.parametrize("with_weights", [False, True])
def test_a_query_with_nothing_to_look_at_gets_zero_and_finite_gradients(kind, dtype, with_weights):
    layer = make(kind, dtype=dtype)
    x = [torch.randn(2, 3, D).to(dtype).requires_grad_() for _ in range(3)]
    lens = torch.tensor([[0, 2, 3], [0, 0, 0]])
    output = layer(*x, valid_lens=lens, return_weights=with_weights)
    if with_weights:
        output, weights = output
        assert weights[0, :, 0].eq(0).all()
        assert weights[1].eq(0).all()
        assert weights[0, :, 1].ne(0).any()
    assert output.dtype == dtype
    assert output[0, 0].eq(0).all()  # multi-head attention has a bias here
    assert output[1].eq(0).all()
    assert output.isfinite().all()
    output.float().square().sum().backward()
    for tensor in (*x, *layer.parameters()):
        assert tensor.grad.isfinite().all()
    assert x[0].grad[1].eq(0).all()
    assert x[1].grad[1].eq(0).all()
    assert x[2].grad[1].eq(0).all()


@every_dtype
@every_kind
@pytest.mark.parametrize("with_weights", [False, True])
@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf, "max"])
def test_what_stands_in_hidden_positions_reaches_no_output_and_no_gradient(
    kind, dtype, with_weights, poison
):
    """Keys that no query sees, and queries that see no key, may hold anything."""
    layer, lens = make(kind, dtype=dtype), torch.tensor([3, 5])
    poison = torch.finfo(dtype).max if poison == "max" else poison
    mask = mask_from_valid_lens(lens, TK).expand(2, 1, TQ, TK).clone()
    mask[1, :, 2] = False
    clean = [torch.randn(2, n, D).to(dtype) for n in (TQ, TK, TK)]
    bad = [x.clone() for x in clean]
    bad[0][1, 2] = poison
    bad[1][0, 3:] = poison
    bad[2][0, 3:] = poison
    results = []
    for x in (clean, bad):
        layer.zero_grad()
        x = [t.clone().requires_grad_() for t in x]
        output = layer(*x, mask, return_weights=with_weights)
        outputs = output if with_weights else (output,)
        outputs[0].float().square().sum().backward()
        gradients = [t.grad for t in (*x, *layer.parameters())]
        results.append([t.detach() for t in (*outputs, *gradients)])
    for wanted, got in zip(*results, strict=True):
        assert wanted.isfinite().all()
        assert got.equal(wanted)


@every_kind
def test_huge_scores_do_not_lift_a_masked_key_above_exactly_zero(kind):
    layer = make(kind, dtype=torch.float32)
    q, k, v = torch.randn(2, TQ, D), torch.randn(2, TK, D), torch.randn(2, TK, D)
    k[:, 2] *= 1e15
    mask = torch.ones(TQ, TK, dtype=torch.bool)
    mask[:3, 2] = False  # the last query does see the huge key
    output, weights = layer(q, k, v, mask, return_weights=True)
    assert weights[:, :, :3, 2].eq(0).all()
    close(weights.sum(dim=-1), torch.ones_like(weights[..., 0]))
    assert output.isfinite().all()
    close(layer(q, k, v, mask), output)


@every_kind
def test_a_causal_mask_keeps_the_past_bit_for_bit(kind):
    layer, x = make(kind, dtype=torch.float32), torch.randn(B, TK, D)
    changed = x.clone()
    changed[:, -1] = 100 * torch.randn(B, D)
    for options in ({}, {"return_weights": True}):
        a = layer(x, x, x, causal_mask(TK), **options)
        b = layer(changed, changed, changed, causal_mask(TK), **options)
        a, b = (a[0], b[0]) if options else (a, b)
        assert a[:, :-1].equal(b[:, :-1])
        assert not a[:, -1].equal(b[:, -1])


@every_kind
@few
@given(lens=st.lists(st.integers(0, 5), min_size=3, max_size=3), extra=st.integers(0, 4))
def test_more_padding_changes_nothing(kind, lens, extra):
    layer, lens = make(kind), torch.tensor(lens)
    q, k, v = randn(B, TQ, D), randn(B, TK, D), randn(B, TK, D)
    longer = [torch.cat([x, randn(B, extra, D)], dim=1) for x in (k, v)]
    close(layer(q, *longer, valid_lens=lens), layer(q, k, v, valid_lens=lens), rtol=0, atol=1e-12)


@every_kind
@few
@given(order=st.permutations(range(5)))
def test_the_order_of_the_keys_does_not_matter(kind, order):
    layer, mask = make(kind), random_mask(B, 1, TQ, TK)
    q, k, v = randn(B, TQ, D), randn(B, TK, D), randn(B, TK, D)
    moved = layer(q, k[:, order], v[:, order], mask[..., order])
    close(moved, layer(q, k, v, mask), rtol=0, atol=1e-12)


@every_kind
def test_a_sentence_means_the_same_alone_and_in_a_batch(kind):
    layer, lens = make(kind), torch.tensor([2, 5, 3])
    q, k, v = randn(B, TQ, D), randn(B, TK, D), randn(B, TK, D)
    together = layer(q, k, v, valid_lens=lens)
    for i, n in enumerate(lens.tolist()):
        alone = layer(q[i : i + 1], k[i : i + 1, :n], v[i : i + 1, :n])
        close(together[i : i + 1], alone, rtol=0, atol=1e-12)


@every_kind
@pytest.mark.parametrize("with_weights", [False, True])
def test_eval_mode_switches_dropout_off_in_both_paths(kind, with_weights):
    torch.manual_seed(1)
    layer = make(kind, dropout=0.5)
    without = make(kind)
    without.load_state_dict(layer.state_dict())
    x = [randn(B, TK, D) for _ in range(3)]

    def run(module):
        output = module(*x, return_weights=with_weights)
        return output[0] if with_weights else output

    assert not run(layer).equal(run(layer))  # training mode: random
    layer.eval()
    assert run(layer).equal(run(layer))
    close(run(layer), run(without), rtol=0, atol=1e-12)


@every_kind
def test_dropout_falls_on_the_weights_with_the_right_rate_and_scale(kind):
    """One-hot values show the dropped weights themselves; kept ones grow by 1 / (1 - p)."""
    layer = make("dot" if kind == "multi-head" else kind, dropout=0.25)
    n = 40
    q, k = randn(4, n, D), randn(4, n, D)
    values = torch.eye(n, dtype=torch.float64).expand(4, n, n)
    clean = layer.eval()(q, k, values)
    layer.train()
    for options in ({}, {"return_weights": True}):
        got = layer(q, k, values, **options)
        got, weights = got if options else (got, clean)
        close(weights, clean.reshape(weights.shape))  # returned before dropout
        kept = got.ne(0)
        assert abs(kept.double().mean().item() - 0.75) < 0.03
        close(got[kept], (clean / 0.75)[kept], rtol=1e-9, atol=0)


@every_kind
def test_non_contiguous_and_expanded_inputs(kind):
    layer = make(kind)
    time_major = [randn(n, B, D).transpose(0, 1) for n in (TQ, TK, TK)]
    expanded = [randn(1, n, D).expand(B, n, D) for n in (TQ, TK, TK)]
    strided = [randn(B, n, 2 * D)[..., ::2] for n in (TQ, TK, TK)]
    mask = random_mask(1, 1, TQ, TK).expand(B, 1, TQ, TK)
    for x in (time_major, expanded, strided):
        assert not all(t.is_contiguous() for t in x)
        for options in ({}, {"return_weights": True}):
            got = layer(*x, mask, **options)
            wanted = layer(*(t.contiguous() for t in x), mask.contiguous(), **options)
            close(got, wanted, rtol=0, atol=1e-12)


@every_kind
def test_inputs_are_never_changed(kind):
    layer, lens = make(kind), torch.tensor([0, 2, 5])
    x, mask = [randn(B, TQ, D), randn(B, TK, D), randn(B, TK, D)], random_mask(B, 1, TQ, TK)
    kept = [t.clone() for t in (*x, mask, lens)]
    for with_weights in (False, True):
        layer(*x, mask, valid_lens=lens, return_weights=with_weights)
    assert all(a.equal(b) for a, b in zip((*x, mask, lens), kept, strict=True))


@pytest.mark.parametrize("kind", ["dot", "multi-head"])
def test_the_fused_kernel_runs_exactly_when_no_weights_are_asked_for(kind, monkeypatch):
    calls = []
    kernel = F.scaled_dot_product_attention

    def spy(*args, **options):
        calls.append(options.get("dropout_p"))
        return kernel(*args, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", spy)
    layer, x = make(kind, dropout=0.5), randn(B, TK, D)
    layer(x, x, x, return_weights=True)
    assert calls == []
    layer(x, x, x)
    layer.eval()(x, x, x, causal_mask(TK))
    assert calls == [0.5, 0.0]


@pytest.mark.parametrize("padded", [False, True])
def test_without_weights_nothing_of_size_tq_times_tk_is_kept(padded):
    n, d = 300, 4
    layer = MultiHeadAttention(d_model=d, num_heads=1)
    x = torch.randn(1, n, d, requires_grad=True)
    lens = torch.tensor([n - 7]) if padded else None

    def kept(**options):
        sizes = []
        hooks = torch.autograd.graph.saved_tensors_hooks(
            lambda t: (sizes.append(t.untyped_storage().nbytes()), t)[1], lambda t: t
        )
        with hooks:
            layer(x, x, x, valid_lens=lens, **options)
        return max(sizes)

    assert kept(return_weights=True) >= 4 * n * n
    assert kept() < n * n


@every_kind
@pytest.mark.parametrize("with_weights", [False, True])
def test_empty_batches_queries_and_keys_have_stated_results(kind, with_weights):
    """No key: like a query that may look at none. No query or sentence: an empty result."""
    layer, x = make(kind), randn(2, 3, D)
    heads = H if kind == "multi-head" else 1
    cases = [
        ((x, x[:, :0], x[:, :0]), (2, 3, D), (2, heads, 3, 0)),
        ((x[:, :0], x, x), (2, 0, D), (2, heads, 0, 3)),
        ((x[:0], x[:0], x[:0]), (0, 3, D), (0, heads, 3, 3)),
    ]
    for inputs, shape, weights_shape in cases:
        lens = torch.full((len(inputs[0]),), inputs[1].shape[1])
        for options in ({}, {"valid_lens": lens}):
            output = layer(*inputs, return_weights=with_weights, **options)
            if with_weights:
                assert output[1].shape == weights_shape
                output = output[0]
            assert output.shape == shape
    for options in ({}, {"mask": torch.ones(1, 1, dtype=torch.bool)}):
        assert layer(*cases[0][0], **options).eq(0).all()


@pytest.mark.parametrize("options", [{}, {"return_weights": True}])
@every_kind
def test_shapes_that_do_not_fit_are_named(kind, options):
    layer = make(kind)
    q, k, v = randn(B, TQ, D), randn(B, TK, D), randn(B, TK, D)
    shape = rf"\({B}, {TK}, {D}\)"
    wrong = [
        ((q[:2], k, v), rf"same B.*\(2, {TQ}, {D}\), keys {shape}"),
        ((q, k, v[:, :3]), rf"every key needs one value.*values \({B}, 3, {D}\)"),
        ((q, k, v[0]), rf"must.*\({TK}, {D}\)"),
        ((q[0, 0], k[0, 0], v[0, 0]), rf"must.*\({D},\)"),
        ((q[..., :3], k, v), "3"),
        ((q, k[..., :3], v), "3"),
    ]
    for inputs, message in wrong:
        with pytest.raises(ValueError, match=message):
            layer(*inputs, **options)
    with pytest.raises(ValueError, match=rf"\(2, {TK}\).*\({B}, [12], {TQ}, {TK}\)"):
        layer(q, k, v, torch.ones(2, TK, dtype=torch.bool), **options)
    with pytest.raises(TypeError, match="boolean.*float64"):
        layer(q, k, v, torch.ones(TQ, TK).double(), **options)
    with pytest.raises(ValueError, match=rf"0\.\.{TK}.*\[1, 2, 6\]"):
        layer(q, k, v, valid_lens=torch.tensor([1, 2, 6]), **options)


@pytest.mark.parametrize(("d_model", "num_heads"), [(10, 4), (8, 0), (8, -2), (4, 8)])
def test_heads_must_divide_d_model(d_model, num_heads):
    with pytest.raises(ValueError, match=f"d_model = {d_model} .* num_heads = {num_heads}"):
        MultiHeadAttention(d_model=d_model, num_heads=num_heads)


def test_three_axis_masks_are_never_guessed():
    layer, x = MultiHeadAttention(d_model=8, num_heads=2), torch.randn(2, 3, 8)
    with pytest.raises(ValueError, match="per sentence or per head"):
        layer(x, x, x, torch.ones(2, 3, 3, dtype=torch.bool))
    per_head = random_mask(2, 3, 3)
    x = torch.randn(4, 3, 8)
    close(layer(x, x, x, per_head), layer(x, x, x, per_head[None].expand(4, 2, 3, 3)))
    with pytest.raises(ValueError, match=r"\(4, 3, 3\).*\(4, 2, 3, 3\)"):
        layer(x, x, x, torch.ones(4, 3, 3, dtype=torch.bool))


def test_a_query_that_some_head_lets_see_is_not_fully_masked():
    layer, x = make("multi-head"), randn(1, 3, D)
    mask = torch.zeros(1, H, 3, 3, dtype=torch.bool)
    mask[0, 1, 0, 2] = True
    output = layer(x, x, x, mask)
    wanted = layer.W_o.bias + layer.W_o.weight[:, D // H :] @ layer.W_v(x)[0, 2, D // H :]
    close(output[0, 0], wanted)
    assert output[0, 1:].eq(0).all()


def test_a_three_axis_mask_on_scores_with_heads_is_never_guessed():
    scores, mask = randn(2, 2, 3, 3), random_mask(2, 3, 3)
    for lens in (None, torch.tensor([2, 3])):
        with pytest.raises(ValueError, match="per sentence or per head"):
            masked_softmax(scores, lens, mask=mask)
    per_sentence = masked_softmax(scores, mask=mask[:, None])
    per_head = masked_softmax(scores, mask=mask[None])
    for i in range(2):
        close(per_sentence[i], masked_softmax(scores[i], mask=mask[i]))
        close(per_head[:, i], masked_softmax(scores[:, i], mask=mask[i]))
    for batch, heads in ((3, 2), (1, 2), (1, 1)):  # one reading only
        scores = randn(batch, heads, 3, 3)
        close(masked_softmax(scores, mask=mask[:heads])[:, -1],
              masked_softmax(scores[:, -1], mask=mask[heads - 1]))  # fmt: skip
    with pytest.raises(ValueError, match=r"\(3, 3, 3\) does not broadcast"):
        masked_softmax(randn(3, 2, 3, 3), mask=random_mask(3, 3, 3))


def test_attend_takes_the_mask_that_the_whole_layer_would_build():
    layer, x, mask = make("multi-head"), randn(H, 3, D), random_mask(3, 3)
    built = build_mask(mask, None, (H, H, 3, 3))
    close(layer.attend(x, *layer.project(x, x), built)[0], layer(x, x, x, mask))
