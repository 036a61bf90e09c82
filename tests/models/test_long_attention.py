"""Attention over long sequences: each method is exact where it should be, and its costs."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from course_utils.models.attention import DotProductAttention, MultiHeadAttention
from course_utils.models.long_attention import (
    RandomFeatures,
    RelativeAttention,
    ReversibleBlock,
    ReversibleStack,
    SegmentReader,
    block_summary_attention,
    bytes_held,
    bytes_kept,
    elu_features,
    global_mask,
    linear_attention,
    low_rank_attention,
    lsh_attention,
    lsh_buckets,
    lsh_mask,
    mean_pooling,
    multiply_adds,
    random_mask,
    seconds,
    segment_mask,
    top_k_attention,
    window_attention,
    window_mask,
)
from course_utils.models.masks import causal_mask
from course_utils.models.transformer import PositionWiseFFN

few = settings(deadline=None, max_examples=30, derandomize=True)
close = torch.testing.assert_close
exact = DotProductAttention()


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def inputs(length=12, d=4, v=5, batch=2, heads=3):
    shapes = ((batch, heads, length, d), (batch, heads, length, d), (batch, heads, length, v))
    return tuple(draw(*shape, seed=i) for i, shape in enumerate(shapes))


def rotation(d=4, half=2, seed=0):
    return draw(d, half, seed=seed)


METHODS = {
    "window": lambda q, k, v: window_attention(q, k, v, 2),
    "window + global": lambda q, k, v: window_attention(q, k, v, 2, num_global=2),
    "summaries": lambda q, k, v: block_summary_attention(q, k, v, 4),
    "low rank": lambda q, k, v: low_rank_attention(q, k, v, mean_pooling(4, 12).double()),
    "kernel": linear_attention,
    "kernel, causal": lambda q, k, v: linear_attention(q, k, v, causal=True),
    "random features": lambda q, k, v: linear_attention(q, k, v, RandomFeatures(4, 16)),
    "hashing": lambda q, k, v: lsh_attention(q + k, v, rotation(), 4),
    "top k": lambda q, k, v: top_k_attention(q, k, v, 3),
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


# -- what holds for all -----------------------------------------------------------------------


@every_method
def test_constant_values_come_back(method):
    q, k, _ = inputs()
    ones = torch.ones(2, 3, 12, 5, dtype=torch.float64)
    close(method(q, k, ones), ones)  # weights sum to 1


@every_method
def test_the_identity_as_values_gives_the_map(method):
    q, k, v = inputs()
    weights = method(q, k, torch.eye(12).double().expand(2, 3, 12, 12))
    assert (weights >= 0).all()
    close(weights @ v, method(q, k, v))


@every_method
def test_gradients_are_finite_and_inputs_stay(method):
    given_in = inputs()
    leaves = [x.clone().requires_grad_() for x in given_in]
    method(*leaves).square().sum().backward()
    for leaf, before in zip(leaves, given_in, strict=True):
        assert torch.equal(leaf, before)
        assert leaf.grad.isfinite().all()
        assert leaf.grad.abs().sum() > 0


@pytest.mark.parametrize(
    "name", sorted(METHODS.keys() - {"low rank", "hashing"})
)  # given float64 matrices
def test_the_dtype_stays(name):
    q, k, v = (x.bfloat16() for x in inputs())
    assert METHODS[name](q, k, v).dtype == torch.bfloat16


WRONG_SHAPES = {
    "three axes": lambda q, k, v: (q[0], k[0], v[0]),
    "cross-attention": lambda q, k, v: (q[:, :, :6], k, v),
    "sizes": lambda q, k, v: (q[..., :2], k, v),
    "values": lambda q, k, v: (q, k, v[:, :, :6]),
}


@pytest.mark.parametrize("spoil", WRONG_SHAPES.values(), ids=WRONG_SHAPES)
@pytest.mark.parametrize("name", ["window", "summaries", "low rank", "kernel"])
def test_wrong_shapes_are_refused(name, spoil):
    with pytest.raises(ValueError, match="queries .* keys .* values"):
        METHODS[name](*spoil(*inputs()))


# -- patterns ---------------------------------------------------------------------------------


@few
@given(length=st.integers(1, 30), radius=st.integers(0, 35), causal=st.booleans())
def test_a_window_is_as_wide_as_it_says(length, radius, causal):
    mask = window_mask(length, radius, causal=causal)
    assert mask.shape == (1, 1, length, length)
    for i, row in enumerate(mask[0, 0]):
        first, last = max(0, i - radius), i if causal else min(length - 1, i + radius)
        assert row.nonzero().flatten().tolist() == list(range(first, last + 1))


@pytest.mark.parametrize(("length", "count"), [(64, 674), (128, 1378), (256, 2786), (512, 5602)])
def test_window_and_one_global_token_keep_a_linear_number(length, count):
    assert (window_mask(length, 4) | global_mask(length, [0])).sum() == count


def test_global_tokens_look_and_are_looked_at():
    mask = global_mask(5, [1, 3])[0, 0]
    assert mask[[1, 3]].all()
    assert mask[:, [1, 3]].all()
    assert mask.sum() == 25 - 3 * 3


def test_random_keys_are_as_many_as_asked_and_repeat():
    mask = random_mask(20, 3, seed=1)
    assert (mask.sum(-1) == 3).all()
    assert torch.equal(mask, random_mask(20, 3, seed=1))
    assert not torch.equal(mask, random_mask(20, 3, seed=2))


def test_segments_see_themselves_and_the_one_before():
    mask = segment_mask(7, 3)[0, 0]
    assert mask[6].nonzero().flatten().tolist() == [3, 4, 5, 6]
    assert mask[4].nonzero().flatten().tolist() == [0, 1, 2, 3, 4]
    assert torch.equal(segment_mask(7, 3, before=0)[0, 0, 6].nonzero().flatten(), torch.tensor([6]))
    assert torch.equal(segment_mask(7, 7), causal_mask(7))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: window_mask(4, -1), "radius"),
        (lambda: global_mask(4, [4]), r"position 4 is not in 0\.\.3"),
        (lambda: global_mask(4, [-1]), "position -1"),
        (lambda: random_mask(4, 5), r"0\.\.4, got 5"),
        (lambda: segment_mask(4, 0), "segment"),
        (lambda: segment_mask(4, 2, before=-1), "before at least 0, got 2 and -1"),
        (lambda: window_mask(0, 1), "num_tokens must be at least 1, got 0"),
        (lambda: global_mask(0, []), "num_tokens"),
        (lambda: random_mask(0, 0), "num_tokens"),
        (lambda: segment_mask(0, 1), "num_tokens"),
    ],
)
def test_patterns_that_cannot_be_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


# -- windows ----------------------------------------------------------------------------------


@few
@given(
    length=st.integers(1, 17),
    radius=st.integers(1, 20),
    num_global=st.integers(0, 4),
    causal=st.booleans(),
    hidden=st.integers(0, 3),
)
def test_window_attention_equals_masked_attention(length, radius, num_global, causal, hidden):
    q, k, v = inputs(length)
    num_global = min(num_global, length)
    keys = torch.arange(length) < length - torch.tensor([0, min(hidden, length)])[:, None]
    keys = keys[:, None, None]  # (B, 1, 1, T)
    mask = (window_mask(length, radius) | global_mask(length, range(num_global))) & keys
    if causal:
        mask = mask & causal_mask(length)
    fast = window_attention(q, k, v, radius, num_global=num_global, causal=causal, mask=keys)
    close(fast, exact(q, k, v, mask))


def test_a_window_over_all_is_exact():
    q, k, v = inputs()
    close(window_attention(q, k, v, 11), exact(q, k, v))
    close(window_attention(q, k, v, 1, num_global=12), exact(q, k, v))


def test_what_no_query_may_look_at_does_not_matter():
    q, k, v = inputs()
    seen = (torch.arange(12) != 5)[None, None, None]
    for function in (lambda *x: window_attention(*x, 2, mask=seen),
                     lambda *x: linear_attention(*x, mask=seen)):  # fmt: skip
        spoilt = [x.clone() for x in (k, v)]
        spoilt[0][:, :, 5], spoilt[1][:, :, 5] = math.inf, math.nan
        close(function(q, *spoilt), function(q, k, v))


@pytest.mark.parametrize(
    "function", [lambda *x, **o: window_attention(*x, 2, **o), linear_attention]
)
def test_masks_that_differ_between_queries_are_refused(function):
    with pytest.raises(ValueError, match="one row a query"):
        function(*inputs(), mask=causal_mask(12))
    with pytest.raises(TypeError, match="boolean"):
        function(*inputs(), mask=torch.ones(1, 1, 1, 12))
    with pytest.raises(ValueError, match="does not broadcast"):
        function(*inputs(), mask=torch.ones(2, 12, dtype=torch.bool))


@pytest.mark.parametrize(
    "function", [lambda *x, **o: window_attention(*x, 2, **o), linear_attention]
)
def test_no_key_to_look_at_gives_zero(function):
    none = torch.zeros(2, 1, 1, 1, dtype=torch.bool)
    assert (function(*inputs(), mask=none) == 0).all()


@pytest.mark.parametrize(("radius", "num_global"), [(0, 0), (2, 13), (2, -1)])
def test_window_sizes_are_checked(radius, num_global):
    with pytest.raises(ValueError, match="radius must be 1 or more"):
        window_attention(*inputs(), radius, num_global=num_global)


def test_summaries_are_exact_for_one_block_and_for_equal_keys():
    q, k, v = inputs()
    close(block_summary_attention(q, k, v, 12), exact(q, k, v))
    close(block_summary_attention(q, k, v, 1), exact(q, k, v))
    alike = k[:, :, ::4].repeat_interleave(4, dim=2)
    close(block_summary_attention(q, alike, v, 4), exact(q, alike, v))
    with pytest.raises(ValueError, match="block = 5 .* divide the length 12"):
        block_summary_attention(q, k, v, 5)


# -- low rank and kernels ---------------------------------------------------------------------


def test_low_rank_with_the_identity_is_exact():
    q, k, v = inputs()
    close(low_rank_attention(q, k, v, torch.eye(12).double()), exact(q, k, v))


def test_low_rank_is_attention_over_mixtures():
    q, k, v = inputs()
    mix_keys, mix_values = draw(5, 12, seed=8), draw(5, 12, seed=9)
    wanted = exact(q, mix_keys @ k, mix_values @ v)
    close(low_rank_attention(q, k, v, mix_keys, mix_values), wanted)
    close(mean_pooling(3, 12).double() @ v, v.unflatten(2, (3, 4)).mean(3))


def test_low_rank_serves_one_length_only():
    with pytest.raises(ValueError, match=r"\(r, 8\).*one length"):
        low_rank_attention(*inputs(8), mean_pooling(4, 12).double())
    with pytest.raises(ValueError, match="num_groups = 5"):
        mean_pooling(5, 12)


def kernel_weights(q, k, features, mask):
    weights = (features(q) @ features(k).mT) * mask
    return weights / weights.sum(-1, keepdim=True)


@few
@given(length=st.integers(1, 15), causal=st.booleans())
def test_linear_attention_equals_its_map(length, causal):
    q, k, v = inputs(length)
    mask = causal_mask(length) if causal else torch.ones(1, 1, length, length, dtype=torch.bool)
    for features in (elu_features, RandomFeatures(4, 8)):
        wanted = kernel_weights(q, k, features, mask) @ v
        close(linear_attention(q, k, v, features, causal=causal), wanted)


@pytest.mark.parametrize("causal", [False, True])
def test_masked_padding_changes_nothing(causal):
    q, k, v = inputs(7)
    seen = (torch.arange(7) < 4)[None, None, None]
    padded = linear_attention(q, k, v, causal=causal, mask=seen)[:, :, :4]
    close(padded, linear_attention(*(x[:, :, :4] for x in (q, k, v)), causal=causal))


def test_random_features_have_the_softmax_kernel_as_their_mean():
    q, k = (F.normalize(draw(20, 4, seed=i), dim=-1) for i in (1, 2))
    kernel = torch.exp(q @ k.T / 2)
    for orthogonal in (True, False):
        features = RandomFeatures(4, 60_000, orthogonal=orthogonal)
        ratio = features(q) @ features(k).T / kernel
        ratio = ratio / ratio.mean()  # one factor, the lowered exponents, is common
        assert (ratio - 1).abs().mean() < 0.02


def test_more_random_features_are_better_and_orthogonal_ones_better_still():
    q, k, v = inputs(64, d=16, v=8)
    q, k = (2 * F.normalize(x, dim=-1) for x in (q, k))
    errors = {}
    for orthogonal in (False, True):
        for count in (16, 64, 256, 1024):
            outputs = [
                linear_attention(q, k, v, RandomFeatures(16, count, seed, orthogonal=orthogonal))
                for seed in range(8)
            ]
            errors[orthogonal, count] = sum((o - exact(q, k, v)).norm().item() for o in outputs)
    for orthogonal in (False, True):
        falling = [errors[orthogonal, count] for count in (16, 64, 256, 1024)]
        assert all(a > 1.3 * b for a, b in zip(falling, falling[1:]))  # 2 if like 1 / sqrt(m)
    larger = (64, 256, 1024)
    assert sum(errors[True, n] for n in larger) < sum(errors[False, n] for n in larger)


def test_orthogonal_directions_are_at_right_angles():
    directions = RandomFeatures(6, 6, seed=3).directions
    gram = directions @ directions.T
    close(gram, gram.diagonal().diag(), rtol=0, atol=1e-5)
    many = RandomFeatures(3, 9000).directions
    close(many.mean(0), torch.zeros(3), rtol=0, atol=0.05)  # no side is preferred
    close(many.T @ many / 9000, torch.eye(3), rtol=0, atol=0.06)


def test_exponents_of_random_features_do_not_overflow():
    q, k, v = (x.float() * 5 for x in inputs())
    features = RandomFeatures(4, 32)
    assert features(q).isfinite().all()
    assert linear_attention(q, k, v, features).isfinite().all()


@pytest.mark.parametrize("size", [1, 30, 300])
def test_a_long_query_is_not_lost_among_short_ones(size):
    q, k, v = (x.float() for x in inputs())
    features = RandomFeatures(4, 32)
    alone = linear_attention(q[:, :, :1].repeat(1, 1, 12, 1) * size, k, v, features)[:, :, :1]
    q[:, :, 0] *= size
    together = linear_attention(q, k, v, features)
    close(together[:, :, :1], alone)
    ones = linear_attention(q, k, torch.ones_like(v), features)
    close(ones, torch.ones_like(v))


@pytest.mark.parametrize("causal", [False, True])
def test_hidden_keys_set_no_scale(causal):
    """Long keys have small features; those of hidden keys must not make them smaller still."""
    q, k, v = (x.float() for x in inputs(7))
    k, features = 60 * F.normalize(k, dim=-1), RandomFeatures(4, 32)
    seen = (torch.arange(7) < 4)[None, None, None]
    padded = linear_attention(q, k, v, features, causal=causal, mask=seen)[:, :, :4]
    close(padded, linear_attention(*(x[:, :, :4] for x in (q, k, v)), features, causal=causal))
    nobody = linear_attention(q, k * math.nan, v, features, causal=causal, mask=seen & False)
    assert nobody.eq(0).all()


# -- hashing ----------------------------------------------------------------------------------


def shared(x, v, mask=None):
    return exact(x, F.normalize(x, dim=-1), v, mask)


def test_one_bucket_and_one_chunk_are_exact():
    x, _, v = inputs()
    close(lsh_attention(x, v, rotation(half=0), 12), shared(x, v))


def test_one_chunk_equals_the_mask_of_the_buckets():
    x, _, v = inputs()
    close(lsh_attention(x, v, rotation(), 12), shared(x, v, lsh_mask(x, [rotation()])))


@pytest.mark.parametrize("chunk", [2, 3, 4, 6])
def test_chunks_equal_their_mask(chunk):
    x, _, v = inputs()
    buckets = lsh_buckets(x, rotation())
    place = buckets.argsort(dim=-1, stable=True).argsort(-1) // chunk
    behind = place.unsqueeze(-1) - place.unsqueeze(-2)
    mask = lsh_mask(x, [rotation()]) & ((behind == 0) | (behind == 1))
    close(lsh_attention(x, v, rotation(), chunk), shared(x, v, mask))


def test_buckets_heed_the_direction_alone():
    x = draw(50, 4)
    buckets = lsh_buckets(x, rotation(half=3))
    assert set(buckets.tolist()) == set(range(6))
    assert torch.equal(buckets, lsh_buckets(7 * x, rotation(half=3)))
    assert torch.equal((buckets + 3) % 6, lsh_buckets(-x, rotation(half=3)))


def test_near_vectors_share_a_bucket_more_often_and_rounds_help():
    x = draw(1, 1, 200, 8)
    near = x + 0.1 * draw(1, 1, 200, 8, seed=1)
    both = torch.cat([x, near], 2)
    rounds = [rotation(8, 4, seed) for seed in range(4)]
    one, four = (lsh_mask(both, rounds[:n])[0, 0, :200, 200:].double() for n in (1, 4))
    pairs = torch.eye(200, dtype=torch.bool)
    assert one[pairs].mean() > 0.75
    assert one[~pairs].mean() < 0.2
    assert four[pairs].mean() > 0.99
    assert four[~pairs].mean() > one[~pairs].mean()


def test_a_chunk_must_divide_the_length():
    x, _, v = inputs()
    with pytest.raises(ValueError, match="chunk = 5"):
        lsh_attention(x, v, rotation(), 5)


# -- retrieval --------------------------------------------------------------------------------


def test_the_best_keys_are_kept_and_all_keys_are_exact():
    q, k, v = inputs()
    close(top_k_attention(q, k, v, 12), exact(q, k, v))
    scores = q @ k.mT
    mask = scores >= scores.topk(3).values[..., -1:]
    close(top_k_attention(q, k, v, 3), exact(q, k, v, mask))
    close(top_k_attention(q[:, :, :2], k, v, 3), exact(q, k, v, mask)[:, :, :2])
    for wrong in (0, 13):
        with pytest.raises(ValueError, match=rf"1\.\.12.*{wrong}"):
            top_k_attention(q, k, v, wrong)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda q, k, v: (q, k[:1], v[:1]),
        lambda q, k, v: (q[:, :1], k, v),
        lambda q, k, v: (q[..., :2], k, v),
        lambda q, k, v: (q, k, v[:, :, :6]),
        lambda q, k, v: (q, k, v[:, :1]),
        lambda q, k, v: (q[0], k[0], v[0]),
    ],
)
def test_inputs_that_do_not_fit_are_not_broadcast(spoil):
    with pytest.raises(ValueError, match="queries .* keys .* values"):
        top_k_attention(*spoil(*inputs()), 1)


# -- reversible layers ------------------------------------------------------------------------


def blocks(count, d=6):
    torch.manual_seed(0)
    make = lambda: PositionWiseFFN(d, 2 * d, activation=torch.tanh)  # noqa: E731
    return [ReversibleBlock(make(), make()).double() for _ in range(count)]


def test_a_reversible_block_can_be_undone():
    block = blocks(1)[0]
    x = draw(2, 3, 6), draw(2, 3, 6, seed=1)
    close(block.inverse(*block(*x)), x, rtol=0, atol=1e-14)


def test_rebuilding_gives_the_gradients_of_keeping():
    stack = ReversibleStack(blocks(4))
    streams = [draw(2, 3, 6, seed=i).requires_grad_() for i in range(2)]

    def gradients(run):
        y1, y2 = run(*streams)
        loss = (y1 * y2.sin()).sum()
        return loss, *torch.autograd.grad(loss, [*streams, *stack.parameters()])

    def kept(x1, x2):
        for block in stack.blocks:
            x1, x2 = block(x1, x2)
        return x1, x2

    close(gradients(stack), gradients(kept), rtol=1e-9, atol=1e-12)


def test_a_reversible_stack_keeps_as_much_at_any_depth():
    x = draw(2, 50, 6)
    two, eight = (bytes_kept(ReversibleStack(blocks(n)), x, x.clone()) for n in (2, 8))
    assert two == eight == 2 * x.numel() * 8


@pytest.mark.parametrize("frozen", ["f", "g", "block", "all"])
def test_a_frozen_part_gets_no_gradient_and_the_others_theirs(frozen):
    stacks = [ReversibleStack(blocks(3)) for _ in range(2)]
    results = []
    for stack, rebuilt in zip(stacks, (True, False), strict=True):
        part = {"f": stack.blocks[1].f, "g": stack.blocks[0].g, "block": stack.blocks[2]}
        part.get(frozen, stack).requires_grad_(False)
        streams = [draw(2, 3, 6, seed=i).requires_grad_() for i in range(2)]
        y = streams
        if rebuilt:
            y = stack(*y)
        else:
            for block in stack.blocks:
                y = block(*y)
        (y[0] * y[1].sin()).sum().backward()
        results.append([x.grad for x in (*streams, *stack.parameters())])
    for ours, wanted in zip(*results, strict=True):
        assert (ours is None) is (wanted is None)
        if ours is not None:
            close(ours, wanted, rtol=1e-9, atol=1e-12)


RANDOM = {
    "dropout": nn.Dropout(0.1),
    "dropout of channels": nn.Dropout1d(0.1),
    "alpha dropout": nn.AlphaDropout(0.1),
    "torch's attention": nn.MultiheadAttention(4, 2, dropout=0.5),
    "ours": MultiHeadAttention(4, 2, dropout=0.5),
    "a recurrent net": nn.GRU(4, 4, 2, dropout=0.5),
    "a random slope": nn.RReLU(),
}


@pytest.mark.parametrize("module", RANDOM.values(), ids=RANDOM)
def test_what_is_random_cannot_be_rebuilt(module):
    for pair in ((nn.Linear(4, 4), module), (nn.Sequential(module), nn.Linear(4, 4))):
        with pytest.raises(ValueError, match="dropout=0"):
            ReversibleBlock(*pair)


def test_dropout_of_nothing_is_allowed():
    ReversibleBlock(MultiHeadAttention(4, 2), nn.Sequential(nn.Dropout(0), nn.GRU(4, 4, 2)))


# -- segments ---------------------------------------------------------------------------------


def reader(memory_len, layers=3):
    torch.manual_seed(0)
    made = SegmentReader(8, 2, 16, layers, memory_len).double()
    with torch.no_grad():
        for name, p in made.named_parameters():
            if name.endswith((".u", ".v")):
                p.normal_()
    return made


def read(model, x, segment):
    memory, outputs = None, []
    for part in x.split(segment, dim=1):
        y, memory = model(part, memory)
        outputs.append(y)
    return torch.cat(outputs, 1), memory


def test_a_long_memory_equals_one_long_pass():
    x, model = draw(2, 12, 8), reader(memory_len=12)
    close(read(model, x, 4)[0], model(x)[0])
    close(read(model, x, 5)[0], model(x)[0])


def test_a_memory_of_one_segment_equals_the_long_pass_with_the_segment_mask():
    x, model = draw(2, 12, 8), reader(memory_len=4)
    close(read(model, x, 4)[0], model(x, mask=segment_mask(12, 4))[0])
    assert not torch.allclose(read(model, x, 4)[0], model(x)[0])
    alone = reader(memory_len=0)
    close(read(alone, x, 4)[0], alone(x, mask=segment_mask(12, 4, before=0))[0])


@pytest.mark.parametrize(("layers", "reach"), [(1, 4), (2, 8), (3, 12)])
def test_each_layer_reaches_one_segment_further(layers, reach):
    x, model = draw(1, 20, 8), reader(4, layers)
    before = read(model, x, 4)[0][0, -4:]
    moved = []
    for i in range(16):
        changed = x.clone()
        changed[0, i] += 1.0
        moved.append(not torch.equal(read(model, changed, 4)[0][0, -4:], before))
    assert moved == [i >= 16 - reach for i in range(16)]


def test_memory_is_what_the_layers_read_and_has_no_gradient():
    x, model = draw(1, 8, 8).requires_grad_(), reader(memory_len=3)
    _, memory = model(x[:, :4])
    close(memory[0], x[:, 1:4].detach())
    assert [m.shape for m in memory] == [(1, 3, 8)] * 3
    assert not any(m.requires_grad for m in memory)
    y, _ = model(x[:, 4:], memory)
    (gradient,) = torch.autograd.grad(y.square().sum(), x)
    assert (gradient[:, :4] == 0).all()
    assert (gradient[:, 4:] != 0).any()


def test_only_distances_count():
    torch.manual_seed(0)
    layer = RelativeAttention(8, 2).double()
    with torch.no_grad():
        layer.u.normal_(), layer.v.normal_()
    x = draw(1, 5, 8)
    mask = torch.tensor([False, False] + [True] * 5)[None, None, None]
    close(layer(x, draw(1, 2, 8), mask), layer(x))  # two hidden tokens before it change nothing


def test_relative_scores_follow_the_formula():
    torch.manual_seed(0)
    layer = RelativeAttention(4, 1).double()
    with torch.no_grad():
        layer.u.normal_(), layer.v.normal_()
        layer.W_v.weight.copy_(torch.eye(4)), layer.W_o.weight.copy_(torch.eye(4))
    x = draw(1, 3, 4)
    place = [[0.0, 1.0, 0.0, 1.0], [math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)]]
    place.append([math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)])
    q, u, v = layer.W_q(x[0, 2]), layer.u[0, 0], layer.v[0, 0]
    scores = []
    for j in range(3):
        r = layer.W_r(torch.tensor(place[2 - j]).double())
        scores.append(((q + u) @ layer.W_k(x[0, j]) + (q + v) @ r) / 2)
    close(layer(x)[0, 2], torch.stack(scores).softmax(0) @ x[0])


def test_segment_sizes_are_checked():
    with pytest.raises(ValueError, match="num_heads = 3"):
        RelativeAttention(8, 3)
    with pytest.raises(ValueError, match="memory_len"):
        SegmentReader(8, 2, 16, 1, -1)


# -- costs ------------------------------------------------------------------------------------


def by_hand(q, k, v):
    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v


def test_multiply_adds_are_counted():
    q, k, v = (torch.randn(1, 2, 64, 8) for _ in range(3))
    assert multiply_adds(by_hand, q, k, v) == 2 * 2 * 64 * 64 * 8
    assert multiply_adds(linear_attention, q, k, v) == 2 * (2 * 64 * 8 * 8 + 64 * 8)
    assert multiply_adds(lambda *x: low_rank_attention(*x, mean_pooling(4, 64)), q, k, v) == (
        4 * 2 * 64 * 4 * 8
    )


def test_bytes_kept_are_counted():
    q, k, v = (torch.randn(1, 2, 64, 8) for _ in range(3))
    kept = bytes_kept(by_hand, q, k, v)
    assert kept >= 4 * 2 * 64 * 64  # the weights
    fused = bytes_kept(F.scaled_dot_product_attention, q, k, v)
    assert fused <= 4 * (4 * q.numel() + 2 * 64 + 64)  # q, k, v, the output, a number a row
    assert all(x.grad_fn is None and not x.requires_grad for x in (q, k, v))


def test_seconds_are_those_of_the_fastest_run():
    calls = []
    assert 0 <= seconds(calls.append, torch.ones(1), repeats=2) < 1
    assert len(calls) == 3


def test_bytes_held_sees_what_is_filled_and_given_back():
    q = torch.randn(1, 1, 1024, 64)
    map_of_one_head = 4 * 1024**2

    def written_out(q, k, v):
        return (q @ k.mT).softmax(-1) @ v

    def impostor(q, k, v):
        torch.ones(map_of_one_head)  # 16 MiB, given back at once
        return F.scaled_dot_product_attention(q, k, v)

    bytes_held(written_out, q, q, q)  # what ran before must not hide what comes after
    assert map_of_one_head <= bytes_held(written_out, q, q, q) <= 3 * map_of_one_head
    assert bytes_held(F.scaled_dot_product_attention, q, q, q) < map_of_one_head / 2
    assert bytes_held(impostor, q, q, q) >= 4 * map_of_one_head


def test_bytes_held_leaves_stderr_as_it_was(capfd):
    import os

    bytes_held(torch.sum, torch.ones(3))
    os.write(2, b"still there")
    assert capfd.readouterr().err == "still there"
