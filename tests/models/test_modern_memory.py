"""Pages and bytes: the paged cache, int8 rows, int8 weights."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from course_utils.models.attention import DotProductAttention
from course_utils.models.modern.block import TODAY, DecoderConfig
from course_utils.models.modern.decoder_only import DecoderOnly
from course_utils.models.modern.int8 import Int8Linear, quantise_linears, weight_bytes
from course_utils.models.modern.paged_cache import PagedText, PagePool, quantise

few = settings(deadline=None, max_examples=25, derandomize=True)
close = torch.testing.assert_close


def filled(pool, rows):
    text = PagedText(pool)
    for k, v in zip(*rows):
        text.append(k, v)
    return text


def rows(n, seed=0):
    return torch.randn(2, n, 2, 4, generator=torch.Generator().manual_seed(seed))


@few
@given(
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=4),
    turns=st.randoms(use_true_random=False),
)
def test_interleaved_texts_read_what_was_written(lengths, turns):
    pool = PagePool(12, 3, 2, 4)
    data, texts = [rows(n, i) for i, n in enumerate(lengths)], [PagedText(pool) for _ in lengths]
    order = [i for i, n in enumerate(lengths) for _ in range(n)]
    turns.shuffle(order)
    for i in order:
        place = texts[i].length
        texts[i].append(data[i][0, place], data[i][1, place])
    for text, (keys, values), n in zip(texts, data, lengths):
        k, v = text.read()
        assert torch.equal(k, keys.transpose(0, 1))
        assert torch.equal(v, values.transpose(0, 1))
        assert len(text.table) == -(-n // 3)
        text.release()
    assert pool.free == 12


def test_a_fork_shares_pages_until_it_writes():
    pool = PagePool(6, 4, 2, 4)
    first, more = filled(pool, rows(6)), rows(2, 1)
    assert pool.free == 4
    second = first.fork()
    assert pool.free == 4
    second.append(more[0, 0], more[1, 0])  # the last page is copied, the first is not
    assert pool.free == 3
    assert second.table[0] == first.table[0]
    first.append(more[0, 1], more[1, 1])
    assert pool.free == 3
    assert torch.equal(first.read()[0][:, :6], second.read()[0][:, :6])
    assert torch.equal(first.read()[0][:, 6], more[0, 1])
    assert torch.equal(second.read()[0][:, 6], more[0, 0])
    first.release()
    assert pool.free == 4
    assert torch.equal(second.read()[1][:, :6], rows(6)[1].transpose(0, 1))


def test_a_full_pool_says_so_and_loses_nothing():
    pool = PagePool(1, 2, 2, 4)
    text, more = filled(pool, rows(2)), rows(1)
    with pytest.raises(MemoryError, match="all 1 pages"):
        text.append(more[0, 0], more[1, 0])
    assert text.length == 2
    assert torch.equal(text.read()[0], rows(2)[0].transpose(0, 1))


@few
@given(seed=st.integers(0, 99), scale=st.sampled_from([1e-20, 1.0, 1e20]))
def test_int8_rows_are_off_by_half_a_step_at_most(seed, scale):
    x = scale * torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(seed))
    q = quantise(x)
    step = x.abs().amax(-1, keepdim=True) / 127
    assert ((q.dequantise() - x).abs() <= 0.5001 * step).all()
    assert q.codes.abs().amax(-1).eq(127).all()
    assert q.nbytes == 3 * 5 * (8 + 4)
    assert not quantise(torch.zeros(2, 4)).dequantise().any()


def test_attention_on_a_quantised_cache_is_nearly_the_same():
    q, k, v = torch.randn(3, 1, 4, 30, 32, generator=torch.Generator().manual_seed(0))
    exact = DotProductAttention()(q, k, v)
    near = DotProductAttention()(q, quantise(k).dequantise(), quantise(v).dequantise())
    assert 0 < (near - exact).norm() / exact.norm() < 0.02
    assert quantise(k).nbytes / k.nbytes == (32 + 4) / (32 * 4)


def test_an_int8_linear_is_the_linear_with_dequantised_weights():
    torch.manual_seed(0)
    linear, x = nn.Linear(16, 6), torch.randn(2, 3, 16)
    layer = Int8Linear(linear)
    weight = quantise(linear.weight.detach()).dequantise()
    close(layer(x), nn.functional.linear(x, weight, linear.bias))
    assert (layer(x) - linear(x)).norm() / linear(x).norm() < 0.01
    assert weight_bytes(layer) == 16 * 6 + 4 * 6 + 4 * 6
    close(Int8Linear(nn.Linear(4, 2, bias=False))(torch.zeros(1, 4)), torch.zeros(1, 2))


def test_a_model_in_int8_says_nearly_the_same_in_fewer_bytes():
    torch.manual_seed(0)
    config = DecoderConfig(50, d_model=64, num_heads=4, d_ff=128, **TODAY, tie_output=False)
    model = DecoderOnly(config).eval()
    tokens = torch.randint(50, (2, 12))
    before, size = model(tokens), weight_bytes(model)
    number = quantise_linears(model)
    assert number == 2 * 7 + 1
    assert not any(type(m) is nn.Linear for m in model.modules())
    assert (model(tokens) - before).norm() / before.norm() < 0.03
    assert weight_bytes(model) < 0.4 * size
    assert set(model.state_dict())  # and it is saved with its codes
