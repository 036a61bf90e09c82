"""Attention in tiles: equal to the plain one, forward and backward; memory and traffic counted."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.models.attention import DotProductAttention
from course_utils.models.long_attention import bytes_kept
from course_utils.models.masks import causal_mask
from course_utils.models.modern.tiles import (
    online_softmax,
    tile_forward,
    tiled_attention,
)
from course_utils.models.modern.traffic import plain_traffic, tile_bytes, tiled_traffic

few = settings(deadline=None, max_examples=15, derandomize=True)
close = torch.testing.assert_close
plain = DotProductAttention()


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def inputs(num_queries, num_keys, seed=0):
    shapes = ((2, 3, num_queries, 4), (2, 3, num_keys, 4), (2, 3, num_keys, 5))
    return [numbers(*s, seed=seed + i).requires_grad_() for i, s in enumerate(shapes)]


def assert_same(num_queries, num_keys, tile, mask=None):
    ours, theirs = inputs(num_queries, num_keys), inputs(num_queries, num_keys)
    a, b = tiled_attention(*ours, mask, tile=tile), plain(*theirs, mask)
    close(a, b, rtol=0, atol=1e-12)
    g = numbers(*a.shape, seed=9)
    a.backward(g)
    b.backward(g)
    for x, y in zip(ours, theirs, strict=True):
        close(x.grad, y.grad, rtol=0, atol=1e-12)


@few
@given(
    n=st.integers(1, 40), scale=st.sampled_from([1e-3, 1.0, 300.0, 1e6]), seed=st.integers(0, 99)
)
def test_online_softmax_equals_softmax(n, scale, seed):
    scores = scale * numbers(3, n, seed=seed)
    close(online_softmax(scores), scores.softmax(-1), rtol=1e-12, atol=1e-12)
    close(online_softmax(scores.sort().values), scores.sort().values.softmax(-1))


@few
@given(queries=st.integers(1, 9), keys=st.integers(1, 9), tile=st.integers(1, 10))
def test_tiles_equal_plain_attention_for_any_lengths(queries, keys, tile):
    assert_same(queries, keys, tile)


@few
@given(queries=st.integers(1, 7), more=st.integers(0, 4), tile=st.integers(1, 8))
def test_causal(queries, more, tile):
    assert_same(queries, queries + more, tile, causal_mask(queries, queries + more))


@few
@given(
    seed=st.integers(0, 999), tile=st.integers(1, 7), axes=st.sampled_from([(2, 3), (2, 1), (1, 1)])
)
def test_any_mask_fully_masked_rows_and_keys_included(seed, tile, axes):
    mask = numbers(*axes, 5, 6, seed=seed) > 0
    mask[:, :, 1] = False
    mask[..., 4] = False
    assert_same(5, 6, tile, mask)
    output = tiled_attention(*inputs(5, 6), mask, tile=tile)
    assert not output[:, :, 1].any()


def test_padding_and_blind_queries_keep_nan_out_of_outputs_and_gradients():
    q, k, v = inputs(3, 4)
    mask = torch.tensor([[True, True, False, True], [False] * 4, [True, False, False, True]])
    with torch.no_grad():
        k[:, :, 2], v[:, :, 2], q[:, :, 1] = torch.nan, torch.inf, torch.nan
    output = tiled_attention(q, k, v, mask, tile=2)
    output.sum().backward()
    assert all(x.isfinite().all() for x in (output, q.grad, k.grad, v.grad))


def test_large_scores_do_not_overflow():
    q, k, v = (x.detach() for x in inputs(4, 6))
    close(tiled_attention(1e4 * q, k, v, tile=2), plain(1e4 * q, k, v))


def test_the_second_value_is_the_log_sum_exp_and_gives_every_weight():
    q, k, v = (x.detach() for x in inputs(4, 6))
    mask = torch.ones(4, 6, dtype=torch.bool)
    _, log_sum = tile_forward(q, k, v, mask, 4)
    scores = q @ k.mT / 2
    close(log_sum, scores.logsumexp(-1, keepdim=True))
    close((scores - log_sum).exp(), scores.softmax(-1))


def test_gradients_of_gradients_are_refused_not_wrong():
    q, k, v = inputs(2, 3)
    (first,) = torch.autograd.grad(tiled_attention(q, k, v).sum(), q, create_graph=True)
    with pytest.raises(RuntimeError):
        first.sum().backward()


def test_what_is_kept_grows_with_n_not_with_its_square():
    def kept(n, layer):
        x = torch.zeros(1, 1, n, 8)
        return bytes_kept(layer, x, x, x)

    assert kept(256, tiled_attention) == 4 * (2 * 8 + 1) * 256 + 1  # x, output, log-sum-exp
    assert kept(256, lambda *x: plain(*x, return_weights=True)[0]) > 4 * 256 * 256


def test_bad_tiles_and_masks_are_refused():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        tiled_attention(*inputs(2, 2), tile=0)
    with pytest.raises(ValueError, match="does not broadcast"):
        tiled_attention(*inputs(2, 2), torch.ones(3, 2, dtype=torch.bool))


def test_traffic_is_what_the_papers_formulas_say():
    n, d, tile = 64, 8, 16
    t = plain_traffic(n, n, d)
    assert (t.loaded, t.stored) == (4 * (3 * n * d + 2 * n * n), 4 * (n * d + 2 * n * n))
    t = tiled_traffic(n, n, d, tile)
    assert t.loaded == 4 * (n * d + n // tile * 2 * n * d)  # keys and values once a row of tiles
    assert t.stored == 4 * (n * d + n)
    assert t.total == t.loaded + t.stored
    assert plain_traffic(n, n, d, torch.float16).total * 2 == plain_traffic(n, n, d).total
    assert tile_bytes(16, 8) == 4 * (4 * 16 * 8 + 16 * 16)
    assert tiled_traffic(64, 100, 8, 16).loaded == 4 * (64 * 8 + 4 * 200 * 8)


def test_a_tile_of_one_row_moves_more_than_the_plain_one():
    assert tiled_traffic(64, 64, 32, 1).total > plain_traffic(64, 64, 32).total
    assert tiled_traffic(512, 512, 32, 64).total < plain_traffic(512, 512, 32).total / 3
