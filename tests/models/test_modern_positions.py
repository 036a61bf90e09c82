"""Rotary positions, ALiBi, and T5's relative bias."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.models.modern.biases import (
    RelativeBias,
    alibi_bias,
    alibi_slopes,
    distances,
    relative_buckets,
)
from course_utils.models.modern.rotary import LAYOUTS, halves_from_interleaved, rotate
from course_utils.models.positional import frequencies, sinusoidal_table

few = settings(deadline=None, max_examples=30, derandomize=True)
close = torch.testing.assert_close
each_layout = pytest.mark.parametrize("layout", LAYOUTS)


def vectors(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_first_pair_turns_by_one_radian_a_position_by_hand():
    x = torch.tensor([[1.0, 0.0, 1.0, 0.0]]).double()
    turned = rotate(x, torch.tensor([3]))
    slow = 3 * 10_000 ** (-2 / 4)
    wanted = [[math.cos(3), math.sin(3), math.cos(slow), math.sin(slow)]]
    close(turned, torch.tensor(wanted).double())
    halves = rotate(
        torch.tensor([[1.0, 1.0, 0.0, 0.0]]).double(), torch.tensor([3]), layout="halves"
    )
    close(halves, turned[:, [0, 2, 1, 3]])


@each_layout
@few
@given(query=st.integers(0, 500), key=st.integers(0, 500), shift=st.integers(0, 10_000))
def test_a_score_depends_on_the_distance_only(layout, query, key, shift):
    q, k = vectors(2, 1, 16).unbind()

    def score(m, n):
        a, b = (rotate(x, torch.tensor([p]), layout=layout) for x, p in ((q, m), (k, n)))
        return (a @ b.T).item()

    assert score(query + shift, key + shift) == pytest.approx(score(query, key), abs=1e-9)


@each_layout
def test_the_score_does_depend_on_the_distance_and_on_its_sign(layout):
    q, k = vectors(2, 1, 16).unbind()
    scores = [(rotate(q, torch.tensor([5]), layout=layout) @ rotate(k, torch.tensor([n]),
               layout=layout).T).item() for n in range(11)]  # fmt: skip
    assert len({round(s, 6) for s in scores}) == 11


@each_layout
def test_lengths_stay_position_zero_changes_nothing_and_minus_undoes(layout):
    x = vectors(2, 3, 7, 8)
    turned = rotate(x, layout=layout)
    close(turned.norm(dim=-1), x.norm(dim=-1))
    close(turned[..., 0, :], x[..., 0, :])
    assert (turned[..., 1:, :] - x[..., 1:, :]).abs().amin() > 1e-6
    close(rotate(turned, -torch.arange(7), layout=layout), x)


def test_the_layouts_differ_by_an_order_of_columns_only():
    x, order = vectors(2, 5, 12), halves_from_interleaved(12)
    assert order.tolist() == [0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11]
    close(rotate(x)[..., order], rotate(x[..., order], layout="halves"), rtol=0, atol=0)
    assert not torch.allclose(rotate(x), rotate(x, layout="halves"))
    q, k = vectors(2, 5, 12)
    scores = rotate(q) @ rotate(k).T
    carried = rotate(q[:, order], layout="halves") @ rotate(k[:, order], layout="halves").T
    close(scores, carried)


def test_the_sinusoidal_table_is_a_rotated_vector():
    start = torch.tensor([0.0, 1.0]).repeat(8).expand(20, 16)  # sin 0, cos 0
    turned = rotate(start, -torch.arange(20))  # sine first: it turns the other way
    close(turned, sinusoidal_table(20, 16))
    assert frequencies(16)[0] == 1.0
    assert len(frequencies(16)) == 8


def test_positions_may_differ_by_sentence_and_go_on_behind_a_cache():
    x = vectors(2, 3, 6, 8)  # (B, h, T, d)
    close(rotate(x)[:, :, 4:], rotate(x[:, :, 4:], torch.arange(4, 6)), rtol=0, atol=0)
    starts = torch.tensor([0, 9])[:, None, None] + torch.arange(6)  # (B, 1, T)
    both = rotate(x, starts)
    close(both[1], rotate(x[1], torch.arange(9, 15)), rtol=0, atol=0)
    close(
        rotate(x, torch.arange(6) / 2)[..., 2, :],
        rotate(x[..., 2:3, :], torch.tensor([1]))[..., 0, :],
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_dtype_stays_and_far_positions_are_exact(dtype):
    x = torch.ones(1, 2, dtype=dtype)
    turned = rotate(x, torch.tensor([1_000_000]))
    assert turned.dtype == dtype
    wanted = torch.tensor([[math.cos(1e6) - math.sin(1e6), math.sin(1e6) + math.cos(1e6)]])
    close(turned.double(), wanted.double(), rtol=0, atol=4 * torch.finfo(dtype).eps)


def test_bad_rotations_are_refused():
    with pytest.raises(ValueError, match="even.*got 5"):
        rotate(vectors(3, 5))
    with pytest.raises(ValueError, match="'interleaved' or 'halves', got 'pairs'"):
        rotate(vectors(3, 4), layout="pairs")


def test_alibi_by_hand():
    assert alibi_slopes(8).tolist() == [2.0**-i for i in range(1, 9)]
    assert alibi_slopes(2).tolist() == [2.0**-4, 2.0**-8]
    assert alibi_slopes(3).tolist() == [2.0**-4, 2.0**-8, 2.0**-2]
    bias = alibi_bias(8, 3)
    assert bias.shape == (1, 8, 3, 3)
    assert bias[0, 0].tolist() == [[0, -0.5, -1], [-0.5, 0, -0.5], [-1, -0.5, 0]]
    assert torch.equal(alibi_bias(4, 1, 6), alibi_bias(4, 6)[:, :, -1:])  # behind a cache
    with pytest.raises(ValueError, match="at least 1"):
        alibi_slopes(0)


@few
@given(heads=st.integers(1, 40))
def test_every_alibi_head_has_a_slope_of_its_own(heads):
    slopes = alibi_slopes(heads).tolist()
    assert len(set(slopes)) == heads
    assert all(2.0**-8 <= s < 1 for s in slopes)


def test_buckets_are_exact_near_and_logarithmic_far():
    far = relative_buckets(torch.arange(300))
    assert far[:16].tolist() == list(range(16))
    assert (far.diff() >= 0).all()
    assert far[127:].unique().tolist() == [31]
    assert far.unique().tolist() == list(range(32))
    assert relative_buckets(torch.tensor([-5])).item() == 0  # the future, hidden anyway
    two_way = relative_buckets(torch.tensor([3, -3, 0, 500, -500]), causal=False)
    assert two_way.tolist() == [3, 19, 0, 15, 31]
    with pytest.raises(ValueError, match="fewer than max_distance = 16"):
        RelativeBias(2, num_buckets=32, max_distance=16)


@pytest.mark.parametrize("causal", [True, False])
def test_buckets_equal_transformers(causal):
    pytest.importorskip("transformers")
    from transformers.models.t5.modeling_t5 import T5Attention

    far = torch.arange(-400, 400)
    for sizes in ((32, 128), (8, 20), (16, 64)):
        theirs = T5Attention._relative_position_bucket(-far, not causal, *sizes)
        assert torch.equal(relative_buckets(far, *sizes, causal=causal), theirs)


def test_a_relative_bias_is_trained_and_the_same_along_diagonals():
    layer = RelativeBias(4)
    assert layer(3).shape == (1, 4, 3, 3)
    assert not layer(3).any()
    torch.nn.init.normal_(layer.table)
    bias = layer(6)
    assert torch.equal(bias[..., 1:, 1:], bias[..., :-1, :-1])
    assert torch.equal(layer(2, 6), bias[:, :, -2:])
    bias.sum().backward()
    assert layer.table.grad[0].tolist() == [21.0] * 4  # the diagonal and all that lies ahead


def test_distances_put_the_last_query_at_the_last_key():
    assert distances(2, 4).tolist() == [[2, 1, 0, -1], [3, 2, 1, 0]]
