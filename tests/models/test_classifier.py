"""The sequence classifier: pooling, padding, order, and what it is proved equal to."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from parity import assert_same_gradients, copy_weights, linear_pairs, torch_encoder_layer_pairs
from torch import nn

from course_utils.models.classifier import SequenceClassifier, masked_mean
from course_utils.models.token_encoder import TokenEncoder
from course_utils.training.loops import fit
from course_utils.training.seeds import set_seed

ATOL = 1e-10


def classifier(positions="sinusoidal", num_classes=3, **options):
    set_seed(0)
    encoder = TokenEncoder(20, 8, 2, 16, 2, 0.0, max_len=12, positions=positions, **options)
    return SequenceClassifier(encoder, num_classes).double().eval()


def ids(batch, steps):
    return torch.randint(4, 20, (batch, steps), generator=torch.Generator().manual_seed(1))


# ---------------------------------------------------------------- the mean


@given(st.data())
def test_the_mean_is_that_of_each_sequence_alone(data):
    batch, steps = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 6))
    lens = torch.tensor(data.draw(st.lists(st.integers(1, steps), min_size=batch, max_size=batch)))
    x = torch.randn(batch, steps, 3, dtype=torch.double)
    want = torch.stack([row[:n].mean(0) for row, n in zip(x, lens.tolist(), strict=True)])
    torch.testing.assert_close(masked_mean(x, lens), want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("junk", [1e30, float("inf"), float("nan")])
def test_padding_reaches_neither_the_mean_nor_a_gradient(junk):
    x = torch.tensor([[[1.0, 2.0], [3.0, 5.0], [junk, junk]]], requires_grad=True)
    mean = masked_mean(x, torch.tensor([2]))
    assert mean.tolist() == [[2.0, 3.5]]
    mean.sum().backward()
    assert x.grad.tolist() == [[[0.5, 0.5], [0.5, 0.5], [0.0, 0.0]]]


@pytest.mark.parametrize(
    ("lens", "error", "message"),
    [
        (torch.tensor([0, 2]), ValueError, r"at least one token, got \[0, 2\]"),
        (torch.tensor([4, 2]), ValueError, r"must lie in 0\.\.3"),
        (torch.tensor([2]), ValueError, r"B = 2.*got \(1,\)"),
        (torch.tensor([[1, 2, 3], [1, 2, 3]]), ValueError, r"shape \(B,\), got \(2, 3\)"),
        (torch.tensor([1.0, 2.0]), TypeError, "must hold integers"),
    ],
)
def test_lengths_that_do_not_fit_are_refused(lens, error, message):
    with pytest.raises(error, match=message):
        masked_mean(torch.ones(2, 3, 1), lens)


# ---------------------------------------------------------------- the classifier


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "none"])
@pytest.mark.parametrize("norm_first", [True, False])
def test_padding_never_changes_the_answer(positions, norm_first):
    model = classifier(positions, norm_first=norm_first)
    tokens, lens = ids(3, 7), torch.tensor([7, 4, 1])
    alone = torch.cat([model(row[None, :n]) for row, n in zip(tokens, lens.tolist(), strict=True)])
    torch.testing.assert_close(model(tokens, lens), alone, rtol=0, atol=ATOL)
    longer = F.pad(tokens, (0, 5), value=9)
    torch.testing.assert_close(model(longer, lens), alone, rtol=0, atol=ATOL)


def test_without_positions_order_is_invisible_and_with_them_it_is_not():
    tokens = ids(2, 6)
    shuffled = tokens[:, torch.tensor([3, 0, 5, 1, 4, 2])]
    blind, seeing = classifier("none"), classifier("sinusoidal")
    torch.testing.assert_close(blind(tokens), blind(shuffled), rtol=0, atol=ATOL)
    assert (seeing(tokens) - seeing(shuffled)).abs().max() > 1e-3


def test_weights_come_back_per_layer_and_head():
    model, lens = classifier(), torch.tensor([5, 2])
    logits, maps = model(ids(2, 5), lens, return_weights=True)
    assert logits.shape == (2, 3)
    assert [tuple(m.shape) for m in maps] == [(2, 2, 5, 5)] * 2
    assert (maps[0][1, :, :, 2:] == 0).all()
    torch.testing.assert_close(logits, model(ids(2, 5), lens), rtol=0, atol=ATOL)


@pytest.mark.parametrize("norm_first", [True, False])
def test_parity_with_torch(norm_first):
    ours = classifier(norm_first=norm_first)
    layers = [
        nn.TransformerEncoderLayer(
            8, 2, 16, dropout=0.0, batch_first=True, norm_first=norm_first, dtype=torch.double
        )
        for _ in range(2)
    ]
    norm = nn.LayerNorm(8, dtype=torch.double) if norm_first else None
    pairs = [p for m, t in zip(ours.encoder.blocks, layers, strict=True)
             for p in torch_encoder_layer_pairs(m, t)]  # fmt: skip
    if norm is not None:
        pairs += linear_pairs(ours.encoder.norm, norm)
    copy_weights(pairs)
    for layer in layers:
        nn.init.zeros_(layer.self_attn.in_proj_bias)
        nn.init.zeros_(layer.self_attn.out_proj.bias)

    tokens, lens = ids(3, 6), torch.tensor([6, 3, 1])
    hidden = torch.arange(6) >= lens[:, None]
    x = ours.encoder.positions(ours.encoder.embedding(tokens) * math.sqrt(8)).detach()
    for layer in layers:
        x = layer(x, src_key_padding_mask=hidden)
    x = x if norm is None else norm(x)
    pooled = torch.stack([row[:n].mean(0) for row, n in zip(x, lens.tolist(), strict=True)])
    theirs, mine = ours.head(pooled), ours(tokens, lens)
    torch.testing.assert_close(mine, theirs, rtol=0, atol=ATOL)

    labels = torch.tensor([0, 2, 1])
    F.cross_entropy(theirs, labels).backward()
    ours.zero_grad()
    F.cross_entropy(mine, labels).backward()
    assert_same_gradients(pairs)


def test_it_learns_which_of_two_tokens_comes_first():
    set_seed(0)
    encoder = TokenEncoder(8, 16, 2, 16, 1, 0.0, max_len=6)
    model = SequenceClassifier(encoder)
    tokens = torch.tensor([[4, 5, 6], [6, 5, 4], [5, 4, 6], [6, 4, 5]])
    labels = torch.tensor([1, 0, 1, 0])  # 4 before 6
    losses = fit(model, [None] * 60, lambda _: F.cross_entropy(model(tokens), labels), lr=1e-2)
    assert losses[-1] < 0.05 < losses[0]
