"""Exercises of chapter 08: mistakes as a learner writes them, and solutions against the library."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_utils.checker import catalogue, check
from course_utils.checker.probes import draw
from course_utils.models.masks import causal_mask, mask_from_valid_lens
from course_utils.models.transformer import DecoderBlock, EncoderBlock, PositionWiseFFN

SOLUTION = {e.name: e.solution for e in catalogue() if e.notebook == "08_transformer_blocks"}


def close(a, b):
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def with_x_std(x, gamma, beta, eps):
    """As in a well-known tutorial: torch's own std, and eps outside."""
    return gamma * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps) + beta


def like_batch_norm(x, gamma, beta, eps):
    return F.batch_norm(x.mT, None, None, gamma, beta, training=True, eps=eps).mT


def over_the_sentence(x, gamma, beta, eps):
    return F.layer_norm(x, x.shape[1:], eps=eps) * gamma + beta


def linear_twice(x, W_1, b_1, W_2, b_2):
    return F.linear(F.linear(x, W_1.T, b_1), W_2.T, b_2)


def relu_last(x, W_1, b_1, W_2, b_2):
    return ((x @ W_1 + b_1) @ W_2 + b_2).relu()


def weights_as_linear_keeps_them(x, W_1, b_1, W_2, b_2):
    return F.linear(F.relu(F.linear(x, W_1, b_1)), W_2, b_2)


def stream_is_overwritten(x, sublayer, norm, norm_first):
    if norm_first:
        x = norm(x)
        return x + sublayer(x)
    return norm(x + sublayer(x))


def norm_of_the_branch(x, sublayer, norm, norm_first):
    return x + (sublayer(norm(x)) if norm_first else norm(sublayer(x)))


def same_residual_twice(x, attention, ffn, norm_1, norm_2, mask):
    y = norm_1(x + attention(x, x, x, mask))
    return norm_2(x + ffn(y))


def no_mask_and_no_residual(x, attention, ffn, norm_1, norm_2, mask):
    y = norm_1(attention(x, x, x) + x)
    return norm_2(ffn(y))


class Decoder(nn.Module):
    def __init__(self, self_attention, cross_attention, ffn, norms):
        super().__init__()
        self.a, self.c, self.f, self.n = self_attention, cross_attention, ffn, norms

    def forward(self, x, memory, target_mask, source_mask):
        n = self.n[0](x)
        x = x + self.a(n, n, n, target_mask)
        x = x + self.c(self.n[1](x), memory, memory, source_mask)
        return x + self.f(self.n[2](x))


class PostNormDecoder(nn.Module):
    def __init__(self, self_attention, cross_attention, ffn, norms):
        super().__init__()
        self.a, self.c, self.f = self_attention, cross_attention, ffn
        self.n1, self.n2, self.n3 = norms

    def forward(self, x, memory, target_mask, source_mask):
        y = self.n1(x + self.a(x, x, x, target_mask))
        z = self.n2(y + self.c(y, memory, memory, source_mask))
        return self.n3(z + self.f(z))


@pytest.mark.parametrize(
    ("name", "answer", "mistakes"),
    [
        ("normalise_tokens", with_x_std,
         ["the variance is unbiased", "eps stands outside the root"]),
        ("normalise_tokens", like_batch_norm, ["the statistics are those of BatchNorm"]),
        ("normalise_tokens", over_the_sentence,
         ["the statistics run over positions and features"]),
        ("feed_forward", linear_twice, ["the activation is missing"]),
        ("feed_forward", relu_last, ["the activation comes after the second layer"]),
        ("feed_forward", weights_as_linear_keeps_them, ["the matrices are transposed"]),
        ("add_and_norm", stream_is_overwritten,
         ["the residual connection carries the normalised stream"]),
        ("add_and_norm", norm_of_the_branch, ["post-norm normalises before it adds"]),
        ("encoder_block", same_residual_twice, ["the second residual connection starts from x"]),
        ("encoder_block", no_mask_and_no_residual,
         ["the mask is not passed on", "the second residual connection is missing"]),
        ("TinyDecoderBlock", Decoder, ["the norms are hidden in a plain list"]),
        ("TinyDecoderBlock", PostNormDecoder, ["the block is written as post-norm"]),
    ],
)  # fmt: skip
def test_a_learners_mistake_gets_its_name(name, answer, mistakes):
    result = check(name, answer)
    assert sorted(result.mistakes) == sorted(mistakes), str(result)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("normalise_tokens", lambda x, gamma, beta, eps: F.normalize(x, dim=-1)),
        ("feed_forward", lambda x, W_1, b_1, W_2, b_2: x.flip(1)),
        ("add_and_norm", lambda x, sublayer, norm, norm_first: norm(x - sublayer(x))),
        ("encoder_block", lambda x, attention, ffn, norm_1, norm_2, mask: ffn(norm_2(x))),
    ],
)
def test_an_unknown_mistake_gets_no_name(name, answer):
    result = check(name, answer)
    assert result.status == "wrong"
    assert result.mistakes == ()


def test_pieces_are_those_of_the_library():
    x, gamma, beta = draw(301, (2, 5, 8), (8,), (8,))
    close(
        SOLUTION["normalise_tokens"](x, gamma, beta, 1e-5), F.layer_norm(x, (8,), gamma, beta, 1e-5)
    )
    ffn = PositionWiseFFN(8, 12)
    weights = ffn.hidden.weight.T, ffn.hidden.bias, ffn.output.weight.T, ffn.output.bias
    close(SOLUTION["feed_forward"](x, *weights), ffn(x))


@pytest.mark.parametrize("norm_first", [False, True])
def test_add_and_norm_is_that_of_the_library(norm_first):
    (x,) = draw(302, (2, 5, 8))
    block = EncoderBlock(8, 2, 12, norm_first=norm_first)
    addnorm, mask = block.addnorm1, causal_mask(5)

    def attend(z):
        return block.attention(z, z, z, mask)

    y = SOLUTION["add_and_norm"](x, attend, addnorm.norm, norm_first)
    close(y, addnorm(x, attend(addnorm.before(x))))
    y = SOLUTION["add_and_norm"](y, block.ffn, block.addnorm2.norm, norm_first)
    close(y, block(x, mask))


def test_blocks_are_those_of_the_library():
    x, memory = draw(303, (2, 5, 8), (2, 4, 8))
    source_mask = mask_from_valid_lens(torch.tensor([4, 2]), 4)
    encoder = EncoderBlock(8, 2, 12)
    pieces = encoder.attention, encoder.ffn, encoder.addnorm1.norm, encoder.addnorm2.norm
    close(SOLUTION["encoder_block"](memory, *pieces, source_mask), encoder(memory, source_mask))

    decoder = DecoderBlock(8, 2, 12, norm_first=True)
    norms = [decoder.addnorm1.norm, decoder.addnorm2.norm, decoder.addnorm3.norm]
    tiny = SOLUTION["TinyDecoderBlock"](
        decoder.self_attention, decoder.cross_attention, decoder.ffn, norms
    )
    masks = causal_mask(5), source_mask
    expected, _ = decoder(x, decoder.project_source(memory, source_mask), None, *masks)
    close(tiny(x, memory, *masks), expected)
    assert len(list(tiny.parameters())) == len(list(decoder.parameters()))


def test_predictions_come_true():
    parameters = EncoderBlock(64, 4, 256).parameters()
    assert SOLUTION["encoder_block_parameters"]() == sum(p.numel() for p in parameters)
    x = torch.randn(2, 100, 24)
    _, means, _ = torch.native_layer_norm(x, [24], None, None, 1e-5)
    assert SOLUTION["layer_norm_means"]() == means.numel()
    batch_norm = nn.BatchNorm1d(24)
    assert batch_norm(x.mT).shape == (2, 24, 100)
    assert SOLUTION["batch_norm_means"]() == batch_norm.running_mean.numel()
    start = torch.tensor(1.0, requires_grad=True, dtype=torch.float64)
    y = start
    for _ in range(10):
        y = y + 0.1 * y
    y.backward()
    assert SOLUTION["residual_gradient"]() == pytest.approx(start.grad.item())
