"""Other people's modules with our weights: which parameter of theirs belongs to which of ours.

Each `..._pairs(ours, theirs)` yields (our parameter, their parameter, rows): `rows` is the part of
theirs that ours stands for, since torch stacks the three input projections in one matrix.
"""

from collections.abc import Iterator
from types import SimpleNamespace

import torch
from torch import nn

ALL = slice(None)
Pairs = Iterator[tuple[nn.Parameter, nn.Parameter, slice]]


def copy_weights(pairs: Pairs) -> None:
    """Our values into their parameters."""
    with torch.no_grad():
        for ours, theirs, rows in pairs:
            assert ours.shape == theirs[rows].shape
            theirs[rows] = ours


def assert_same_gradients(pairs: Pairs, tolerance: float = 1e-10) -> None:
    """Every parameter got a gradient that is not all zero, and the same one on both sides."""
    pairs = list(pairs)
    assert pairs
    for ours, theirs, rows in pairs:
        assert ours.grad is not None
        assert ours.grad.abs().max() > 0
        torch.testing.assert_close(ours.grad, theirs.grad[rows], rtol=0, atol=tolerance)


def linear_pairs(ours: nn.Module, theirs: nn.Module, rows: slice = ALL) -> Pairs:
    """Two modules with a weight and perhaps a bias: Linear, LayerNorm, Embedding."""
    yield ours.weight, theirs.weight, rows
    if getattr(ours, "bias", None) is not None:
        yield ours.bias, theirs.bias, rows


def d2l_attention_pairs(ours, theirs) -> Pairs:
    """Additive and multi-head attention: d2l's names are ours."""
    for name in ("W_q", "W_k", "W_v", "W_o", "w_v"):
        if hasattr(ours, name):
            yield from linear_pairs(getattr(ours, name), getattr(theirs, name))


def d2l_block_pairs(ours, theirs) -> Pairs:
    """An encoder block of d2l."""
    yield from d2l_attention_pairs(ours.attention, theirs.attention)
    yield from linear_pairs(ours.ffn.hidden, theirs.ffn.dense1)
    yield from linear_pairs(ours.ffn.output, theirs.ffn.dense2)
    yield from linear_pairs(ours.addnorm1.norm, theirs.addnorm1.ln)
    yield from linear_pairs(ours.addnorm2.norm, theirs.addnorm2.ln)


def torch_attention_pairs(ours, theirs: nn.MultiheadAttention) -> Pairs:
    """torch stacks W_q, W_k and W_v, in this order, in `in_proj_weight`."""
    stacked = SimpleNamespace(weight=theirs.in_proj_weight, bias=theirs.in_proj_bias)
    d = ours.d_model
    for i, name in enumerate(("W_q", "W_k", "W_v")):
        yield from linear_pairs(getattr(ours, name), stacked, slice(i * d, (i + 1) * d))
    yield from linear_pairs(ours.W_o, theirs.out_proj)


def torch_encoder_layer_pairs(ours, theirs: nn.TransformerEncoderLayer) -> Pairs:
    yield from torch_attention_pairs(ours.attention, theirs.self_attn)
    yield from _feed_forward_pairs(ours, theirs)
    yield from linear_pairs(ours.addnorm1.norm, theirs.norm1)
    yield from linear_pairs(ours.addnorm2.norm, theirs.norm2)


def torch_decoder_layer_pairs(ours, theirs: nn.TransformerDecoderLayer) -> Pairs:
    yield from torch_attention_pairs(ours.self_attention, theirs.self_attn)
    yield from torch_attention_pairs(ours.cross_attention, theirs.multihead_attn)
    yield from _feed_forward_pairs(ours, theirs)
    for i in (1, 2, 3):
        yield from linear_pairs(getattr(ours, f"addnorm{i}").norm, getattr(theirs, f"norm{i}"))


def torch_transformer_pairs(ours, theirs: nn.Transformer) -> Pairs:
    """The two stacks; embeddings and the output layer are not part of torch's module."""
    for mine, other in zip(ours.encoder, theirs.encoder.layers, strict=True):
        yield from torch_encoder_layer_pairs(mine, other)
    for mine, other in zip(ours.decoder, theirs.decoder.layers, strict=True):
        yield from torch_decoder_layer_pairs(mine, other)
    if theirs.encoder.norm is not None:
        yield from linear_pairs(ours.encoder_norm, theirs.encoder.norm)
        yield from linear_pairs(ours.decoder_norm, theirs.decoder.norm)


def _feed_forward_pairs(ours, theirs) -> Pairs:
    yield from linear_pairs(ours.ffn.hidden, theirs.linear1)
    yield from linear_pairs(ours.ffn.output, theirs.linear2)
