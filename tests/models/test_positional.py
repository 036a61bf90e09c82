"""Sinusoidal and learned positional encodings."""

import math

import d2l.torch as d2l
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.models.positional import (
    LearnedPositionalEmbedding,
    PositionalEncoding,
    sinusoidal_table,
)

few = settings(deadline=None, max_examples=30, derandomize=True)
close = torch.testing.assert_close
both = pytest.mark.parametrize("layer", [PositionalEncoding, LearnedPositionalEmbedding])


@few
@given(position=st.integers(0, 999), pair=st.integers(0, 15))
def test_table_entries_follow_the_formula(position, pair):
    table = sinusoidal_table(1000, 32)
    angle = position / 10000 ** (2 * pair / 32)
    assert table[position, 2 * pair].item() == pytest.approx(math.sin(angle), abs=1e-7)
    assert table[position, 2 * pair + 1].item() == pytest.approx(math.cos(angle), abs=1e-7)


def test_table_starts_with_zeros_and_ones_and_is_float32():
    table = sinusoidal_table(3, 4)
    assert table.dtype == torch.float32
    assert table[0].tolist() == [0, 1, 0, 1]
    close(table[1], torch.tensor([math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)]))


def test_table_equals_d2l():
    theirs = d2l.PositionalEncoding(32, 0.0, max_len=1000).P[0]
    close(sinusoidal_table(1000, 32), theirs, rtol=0, atol=2e-4)  # d2l divides in float32
    close(sinusoidal_table(60, 32), theirs[:60], rtol=0, atol=1e-5)


@few
@given(position=st.integers(0, 80), shift=st.integers(0, 19))
def test_a_shift_is_the_same_rotation_at_every_position(position, shift):
    table = sinusoidal_table(100, 16).double()
    frequency = 10000.0 ** (-torch.arange(0, 16, 2).double() / 16)
    sin, cos = torch.sin(shift * frequency), torch.cos(shift * frequency)
    even, odd = table[position, 0::2], table[position, 1::2]
    close(table[position + shift, 0::2], even * cos + odd * sin, rtol=0, atol=1e-6)
    close(table[position + shift, 1::2], odd * cos - even * sin, rtol=0, atol=1e-6)


@pytest.mark.parametrize("d_model", [1, 7, 0, -2])
def test_an_odd_width_is_refused_with_the_reason(d_model):
    with pytest.raises(ValueError, match=f"even.*pairs, got {d_model}"):
        sinusoidal_table(4, d_model)
    with pytest.raises(ValueError, match="even"):
        PositionalEncoding(d_model=d_model)


def test_a_table_has_at_least_one_row():
    with pytest.raises(ValueError, match="max_len must be at least 1, got 0"):
        sinusoidal_table(0, 4)


def test_encoding_adds_the_table():
    layer, x = PositionalEncoding(d_model=8, max_len=10), torch.randn(2, 6, 8)
    close(layer(x) - x, sinusoidal_table(10, 8)[:6].expand(2, 6, 8))


@both
def test_offset_continues_the_sequence(layer):
    layer, x = layer(d_model=8, max_len=10), torch.randn(2, 10, 8)
    steps = [layer(x[:, i : i + 1], offset=i) for i in range(10)]
    assert torch.cat(steps, dim=1).equal(layer(x))


@both
def test_inputs_are_not_changed_and_dropout_is_off_in_eval_mode(layer):
    layer, x = layer(d_model=8, dropout=0.5, max_len=10), torch.randn(2, 6, 8)
    kept = x.clone()
    assert layer(x).eq(0).any()
    layer.eval()
    close(layer(x), x + layer.table[:6])
    assert x.equal(kept)


@both
@pytest.mark.parametrize(("length", "offset"), [(11, 0), (1, 10), (3, 8), (2, -1)])
def test_positions_beyond_max_len_are_named(layer, length, offset):
    layer = layer(d_model=8, max_len=10)
    last = offset + length - 1
    with pytest.raises(ValueError, match=rf"{offset}\.\.{last} .*max_len = 10.*larger max_len"):
        layer(torch.zeros(1, length, 8), offset)


@both
@pytest.mark.parametrize("shape", [(2, 6, 1), (2, 6, 9), (6, 8), (2, 2, 6, 8)])
def test_embeddings_of_another_shape_are_named(layer, shape):
    with pytest.raises(ValueError, match="d_model = 8, got"):
        layer(d_model=8, max_len=10)(torch.zeros(shape))


@both
def test_no_tokens_are_no_error(layer):
    assert layer(d_model=8, max_len=10)(torch.zeros(2, 0, 8)).shape == (2, 0, 8)
    assert layer(d_model=8, max_len=10)(torch.zeros(0, 3, 8)).shape == (0, 3, 8)


def test_sinusoidal_table_is_a_buffer_that_moves_and_is_neither_trained_nor_saved():
    layer = PositionalEncoding(d_model=8, max_len=10)
    assert [name for name, _ in layer.named_buffers()] == ["table"]
    assert list(layer.parameters()) == []
    assert layer.state_dict() == {}
    layer.double()
    assert layer.table.dtype == torch.float64
    assert layer(torch.zeros(1, 3, 8).double()).dtype == torch.float64
    assert layer.to("meta").table.device.type == "meta"


def test_weights_saved_with_one_max_len_load_into_another():
    small, large = (PositionalEncoding(8, max_len=n) for n in (100, 200))
    large.load_state_dict(small.state_dict())
    assert large.table.shape == (200, 8)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_encoding_keeps_the_type_of_the_embeddings(dtype):
    layer, x = PositionalEncoding(8, max_len=10), torch.zeros(1, 3, 8, dtype=dtype)
    assert layer(x).dtype == dtype


def test_learned_positions_are_one_trained_vector_each():
    layer = LearnedPositionalEmbedding(d_model=8, max_len=10)
    assert {name: tuple(p.shape) for name, p in layer.named_parameters()} == {"table": (10, 8)}
    x = torch.randn(3, 6, 8)
    output = layer(x)
    close(output, x + layer.table[:6])
    output.sum().backward()
    close(layer.table.grad, torch.tensor([3.0] * 6 + [0.0] * 4)[:, None].expand(10, 8))
