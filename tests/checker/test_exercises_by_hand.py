"""Mistakes as a learner writes them, not as switches; and solutions against the library.

The reference of an exercise and its switches know nothing of this code, so a name that is found
here was not put there.
"""

import math
from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_utils.checker import catalogue, check
from course_utils.checker.probes import draw

pytestmark = pytest.mark.usefixtures("patient_search")
SOLUTION = {e.name: e.solution for e in catalogue()}


def causal_without_scale_and_on_the_wrong_axis(q, k, v):
    mask = torch.tril(torch.ones(q.size(1), q.size(1))) == 0
    weights = F.softmax(torch.bmm(q, k.transpose(1, 2)).masked_fill(mask, -1e9), dim=1)
    return torch.bmm(weights, v), weights


def causal_with_triu_of_ones(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(torch.triu(torch.ones_like(scores)).bool(), -1e9)
    weights = scores.softmax(-1)
    return weights @ v, weights


def causal_with_zeros(q, k, v):
    scores = torch.tril(q @ k.mT / q.shape[-1] ** 0.5)
    weights = scores.softmax(-1)
    return weights @ v, weights


def causal_with_torchs_other_mask(q, k, v):
    hidden = torch.ones(q.shape[1], q.shape[1]).triu(1).bool()
    eye = torch.eye(k.shape[1]).expand(len(k), -1, -1)
    blind = F.scaled_dot_product_attention(q, k, eye, attn_mask=hidden)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=hidden), blind


def scaled_by_keys_count(q, k, v):
    weights = (q @ k.mT / math.sqrt(q.shape[1])).softmax(-1)
    return weights @ v, weights


def lengths_ignored_in_the_sum(logits, targets, pad):
    losses = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    losses[targets.flatten() == pad] = 0
    return losses.mean()


def loss_of_probabilities(logits, targets, pad):
    probabilities = logits.softmax(-1)
    return F.cross_entropy(probabilities.transpose(1, 2), targets, ignore_index=pad)


def heads_by_view(x, h):
    return x.view(x.shape[0], h, x.shape[1], x.shape[2] // h)


def merged_by_reshape(x):
    b, h, t, d = x.shape
    return x.reshape(b, t, h * d)


def merged_by_view(x):
    b, h, t, d = x.shape
    return x.permute(0, 2, 1, 3).view(b, t, h * d)


def tiled_lengths(lengths, heads):
    return torch.cat([lengths] * heads)


def table_in_halves(n, d):
    angles = torch.arange(n)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)
    return torch.cat((angles.sin(), angles.cos()), 1)


def table_with_doubled_exponent(n, d):
    position = torch.arange(n).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d, 2) * 2 * (-math.log(10000.0) / d))
    pe = torch.zeros(n, d)
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe


def table_from_one(n, d):
    angles = torch.arange(1, n + 1)[:, None] * 10000.0 ** (-torch.arange(0, d, 2) / d)
    return torch.stack((angles.sin(), angles.cos()), -1).reshape(n, d)


def rotation_for_column_vectors(k, d):
    blocks = []
    for i in range(d // 2):
        a = torch.tensor(k * 10000.0 ** (-2 * i / d))
        blocks.append(torch.stack([a.cos(), a.sin(), -a.sin(), a.cos()]).reshape(2, 2))
    return torch.block_diag(*blocks)


def blind_rows_are_nan(scores, mask):
    return torch.where(mask, scores, -math.inf).softmax(-1)


def softmax_by_hand(scores, mask):
    e = torch.exp(scores) * mask
    return e / e.sum(-1, keepdim=True)


def masks_joined_with_plus(lengths, steps):
    causal = torch.ones(steps, steps).tril()
    real = (torch.arange(steps) < lengths[:, None])[:, None]
    return ((causal + real) > 0)[:, None]


def additive_without_tanh(q, k, A, B, v):
    return ((q @ A).unsqueeze(2) + (k @ B).unsqueeze(1)) @ v


def kernel_without_square(q, k, width):
    raw = torch.exp(-0.5 * ((q.reshape(-1, 1) - k) / width).abs())
    return raw / raw.sum(1, keepdim=True)


def own_value_kept(x, y, width):
    raw = torch.exp(-0.5 * ((x[:, None] - x) / width) ** 2)
    return (raw * y).sum(1) / raw.sum(1)


def bottom_layer_asks(hidden, outputs, lengths, score):
    scores = score(hidden[0].unsqueeze(1), outputs).squeeze(1)
    scores[torch.arange(outputs.shape[1]) >= lengths[:, None]] = -1e9
    return torch.einsum("bs,bsn->bn", scores.softmax(1), outputs)


def never_moves_on(inputs, state, outputs, attend, cell):
    found = []
    for t in range(inputs.shape[1]):
        new = cell(torch.cat((attend(state, outputs), inputs[:, t]), -1), state)
        found.append(new)
    return torch.stack(found, 1)


def unclipped(candidate, reference, n):
    grams = [candidate[i : i + n] for i in range(len(candidate) - n + 1)]
    known = [reference[i : i + n] for i in range(len(reference) - n + 1)]
    return sum(g in known for g in grams) / max(1, len(grams))


def one_gram_short(candidate, reference, n):
    def grams(words):
        return Counter(" ".join(words[i : i + n]) for i in range(len(words) - n))

    made, known = grams(candidate), grams(reference)
    return sum((made & known).values()) / max(1, sum(made.values()))


def endless_greedy(next_logits, bos, eos, max_len):
    out = [bos]
    while out[-1] != eos:
        out.append(next_logits(out).argmax().item())
    return out[1:-1]


def greedy_with_both_ends(next_logits, bos, eos, max_len):
    out = [bos]
    for _ in range(max_len):
        out.append(next_logits(out).argmax().item())
        if out[-1] == eos:
            break
    return out


def beams_apart(scores, log_probs, width):
    best, tokens = (scores[:, None] + log_probs).max(1)
    return best, torch.arange(len(scores)), tokens


def cache_at_position_zero(x, cache, table, W_q, W_k, W_v):
    x = x + table[: x.shape[1]]
    keys, values = torch.cat((cache[0], x @ W_k), 1), torch.cat((cache[1], x @ W_v), 1)
    return F.scaled_dot_product_attention(x @ W_q, keys, values), (keys, values)


def cache_with_a_causal_flag(x, cache, table, W_q, W_k, W_v):
    x = x + table[cache[0].shape[1]]
    keys, values = torch.cat((cache[0], x @ W_k), 1), torch.cat((cache[1], x @ W_v), 1)
    return F.scaled_dot_product_attention(x @ W_q, keys, values, is_causal=True), (keys, values)


class _Layer(nn.Module):
    """The layer of the notes, with its parts to be spoiled."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.h, self.d_k = num_heads, d_model // num_heads
        self.linears = nn.ModuleList([nn.Linear(d_model, d_model, bias=False) for _ in range(4)])

    def line_up(self, mask):
        return mask.unsqueeze(1).unsqueeze(1)

    def scale(self, scores):
        return scores / math.sqrt(self.d_k)

    def join(self, x):
        return x.transpose(1, 2).contiguous().view(x.shape[0], -1, self.h * self.d_k)

    def forward(self, q, k, v, mask):
        b = q.size(0)
        q, k, v = (
            f(x).view(b, -1, self.h, self.d_k).transpose(1, 2)
            for f, x in zip(self.linears, (q, k, v))
        )
        scores = self.scale(torch.matmul(q, k.transpose(-2, -1)))
        hidden = self.line_up(mask) == 0
        weights = scores.masked_fill(hidden, -1e9).softmax(-1).masked_fill(hidden, 0.0)
        return self.linears[-1](self.join(torch.matmul(weights, v)))


class NoSizes(_Layer):
    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)
        self.linears = nn.ModuleList([nn.Linear() for _ in range(4)])


class Shared(_Layer):
    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)
        self.linears = nn.ModuleList([nn.Linear(d_model, d_model, bias=False)] * 4)


class PlainList(_Layer):
    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)
        del self.linears
        self.linears = [nn.Linear(d_model, d_model, bias=False) for _ in range(4)]


class MaskNotLinedUp(_Layer):
    def line_up(self, mask):
        return mask


class NoScale(_Layer):
    def scale(self, scores):
        return scores


class NotContiguous(_Layer):
    def join(self, x):
        return x.transpose(1, 2).view(x.shape[0], -1, self.h * self.d_k)


class ReshapedOnly(_Layer):
    def join(self, x):
        return x.reshape(x.shape[0], -1, self.h * self.d_k)


class NoSplit(_Layer):
    def __init__(self, d_model, num_heads):
        super().__init__(d_model, 1)


class NoSplitButScaled(NoSplit):
    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)
        self.root = math.sqrt(d_model // num_heads)

    def scale(self, scores):
        return scores / self.root


MISTAKES = [
    ("causal_attention", causal_without_scale_and_on_the_wrong_axis,
     ["the scores are not scaled", "the softmax runs over the queries"]),
    ("causal_attention", causal_with_triu_of_ones, ["a position may not look at itself"]),
    ("causal_attention", causal_with_zeros, ["hidden scores are set to 0"]),
    ("scaled_attention", scaled_by_keys_count, ["the scores are scaled by the number of queries"]),
    ("token_loss", lengths_ignored_in_the_sum,
     ["the sum over real tokens is divided by all positions"]),
    ("token_loss", loss_of_probabilities, ["a softmax is applied twice"]),
    ("into_heads", heads_by_view, ["heads split without the transpose"]),
    ("from_heads", merged_by_reshape, ["heads merged without the transpose"]),
    ("from_heads", merged_by_view, ["a transposed tensor is viewed"]),
    ("lengths_for_heads", tiled_lengths,
     ["the lengths are tiled over the heads in the wrong order"]),
    ("position_table", table_in_halves, ["all sines stand before all cosines"]),
    ("position_table", table_with_doubled_exponent, ["the exponent is 4i / d, not 2i / d"]),
    ("position_table", table_from_one, ["positions count from 1"]),
    ("shift_matrix", rotation_for_column_vectors, ["the rotation goes backwards"]),
    ("softmax_with_mask", blind_rows_are_nan, ["a query with no visible key gets NaN"]),
    ("softmax_with_mask", softmax_by_hand,
     ["a query with no visible key gets NaN", "exp is taken of the scores as they are"]),
    ("causal_and_padding", masks_joined_with_plus, ["the two masks are joined with or"]),
    ("additive_scores", additive_without_tanh, ["the tanh is missing"]),
    ("gaussian_weights", kernel_without_square, ["the distance is not squared"]),
    ("leave_one_out", own_value_kept, ["each point uses its own value"]),
    ("decoder_context", bottom_layer_asks, ["the bottom layer asks"]),
    ("run_decoder", never_moves_on, ["the state is not carried on"]),
    ("clipped_precision", unclipped, ["the counts are not clipped"]),
    ("clipped_precision", one_gram_short, ["the last n-gram is left out"]),
    ("greedy_tokens", endless_greedy, ["the loop has no bound"]),
    ("greedy_tokens", greedy_with_both_ends,
     ["<bos> is part of the result", "<eos> is part of the result"]),
    (
        "beam_step",
        beams_apart,
        ["as many continuations as beams are kept", "every beam keeps its own best"],
    ),
    ("cached_step", cache_at_position_zero, ["every token stands at position 0"]),
    ("cached_step", cache_with_a_causal_flag,
     ["a causal mask hides all but the first key"]),
    ("TinyMultiHead", NoSizes, ["nn.Linear is made without its sizes"]),
    ("TinyMultiHead", Shared, ["one Linear is used four times"]),
    ("TinyMultiHead", PlainList, ["the layers are hidden in a plain list"]),
    ("TinyMultiHead", MaskNotLinedUp, ["the mask is not lined up with the scores"]),
    ("TinyMultiHead", NoScale, ["the scores are not scaled"]),
    ("TinyMultiHead", NotContiguous, ["a transposed tensor is viewed"]),
    ("TinyMultiHead", ReshapedOnly, ["heads merged without the transpose"]),
    ("TinyMultiHead", NoSplit, ["the heads are not split"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "answer", "mistakes"), MISTAKES, ids=lambda x: getattr(x, "__name__", str(x)[:60])
)
def test_a_learners_mistake_gets_its_name(name, answer, mistakes):
    result = check(name, answer)
    assert sorted(result.mistakes) == sorted(mistakes), str(result)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("scaled_attention", lambda q, k, v: (v[:, :1].expand(len(q), q.shape[1], -1), q @ k.mT)),
        ("into_heads", lambda x, h: x.roll(1, 1).unflatten(-1, (h, -1)).transpose(1, 2)),
        ("position_table", lambda n, d: SOLUTION["position_table"](n, d).flip(0)),
        ("token_loss", lambda x, y, p: F.mse_loss(x, F.one_hot(y, x.shape[-1]).float())),
        ("greedy_tokens", lambda f, b, e, n: [5]),
        ("clipped_precision", lambda c, r, n: 0.5),
        ("beam_step", lambda s, p, k: (s[:k], torch.arange(k), torch.zeros(k).long())),
    ],
)
def test_an_unknown_mistake_gets_no_name(name, answer):
    result = check(name, answer)
    assert result.status == "wrong"
    assert result.mistakes == ()
    told = result.verdict.facts or result.verdict.measured
    assert told or not result.verdict.case.index  # a single number speaks


def close(a, b):
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_masks_are_those_of_the_library():
    from course_utils.models.masks import (
        causal_mask,
        combine_masks,
        mask_from_valid_lens,
        padding_mask,
    )

    lengths = torch.tensor([3, 1, 5])
    tokens = torch.tensor([[4, 2, 0], [3, 0, 0]])
    assert torch.equal(SOLUTION["padding_visible"](tokens, 0), padding_mask(tokens, 0))
    assert torch.equal(
        SOLUTION["lengths_to_mask"](lengths, 5), mask_from_valid_lens(lengths, 5)[:, 0]
    )
    both = combine_masks(causal_mask(5), mask_from_valid_lens(lengths, 5))
    assert torch.equal(SOLUTION["causal_and_padding"](lengths, 5), both)
    source, own = SOLUTION["translation_masks"](tokens, tokens, 0)
    assert torch.equal(source, padding_mask(tokens, 0))
    assert torch.equal(own, combine_masks(causal_mask(3), padding_mask(tokens, 0)))


def test_softmaxes_are_those_of_the_library():
    from course_utils.models.attention import masked_softmax

    (scores,) = draw(201, (3, 4, 5))
    lengths = torch.tensor([2, 5, 1])
    mask = draw(202, (3, 4, 5))[0] > 0.6
    close(SOLUTION["softmax_with_lengths"](scores, lengths), masked_softmax(scores, lengths))
    close(SOLUTION["softmax_with_mask"](scores, mask), masked_softmax(scores, mask=mask))


def test_attentions_are_those_of_the_library():
    from course_utils.models.attention import AdditiveAttention, DotProductAttention
    from course_utils.models.masks import causal_mask

    q, k, v = draw(203, (2, 5, 4), (2, 5, 4), (2, 5, 3))
    layer = DotProductAttention()
    for name, mask in (("scaled_attention", None), ("causal_attention", causal_mask(5))):
        output, weights = layer(q, k, v, mask=mask, return_weights=True)
        ours = SOLUTION[name](q, k, v)
        close(ours[0], output)
        close(ours[1], weights[:, 0])
    additive = AdditiveAttention(key_size=4, query_size=4, num_hiddens=6)
    scores = SOLUTION["additive_scores"](
        q, k, additive.W_q.weight.T, additive.W_k.weight.T, additive.w_v.weight[0]
    )
    close(scores, additive.score(q, k))


def test_heads_are_those_of_the_library():
    from course_utils.models.attention import MultiHeadAttention

    x, other = draw(204, (2, 3, 8), (2, 5, 8))
    layer = MultiHeadAttention(d_model=8, num_heads=2)
    assert torch.equal(SOLUTION["into_heads"](x, 2), layer.split_heads(x))
    assert torch.equal(SOLUTION["from_heads"](layer.split_heads(x)), x)
    weights = [getattr(layer, f"W_{c}").weight.T for c in "qkvo"]
    close(SOLUTION["multi_head"](x, other, other, weights, 2), layer(x, other, other))
    tiny = SOLUTION["TinyMultiHead"](8, 2)
    tiny.load_state_dict(layer.state_dict())
    real = torch.tensor([[1, 1, 1, 0, 0], [1, 0, 0, 0, 0]]).bool()
    close(tiny(x, other, other, real), layer(x, other, other, mask=real[:, None, None]))
    assert SOLUTION["multi_head_parameters"]() == sum(
        p.numel() for p in MultiHeadAttention(d_model=64, num_heads=4).parameters()
    )


def test_predictions_come_true():
    from course_utils.models.attention import AdditiveAttention
    from course_utils.models.kernel_regression import kernel_weights
    from course_utils.models.positional import sinusoidal_table

    keys, values = torch.tensor([0.0, 1.0, 6.0]), torch.tensor([10.0, 20.0, 60.0])
    query = torch.tensor([4.0])
    for name, width in (("narrow_kernel_answer", 0.1), ("average_pooling_answer", 1e4)):
        close(kernel_weights(query, keys, width) @ values, torch.tensor([float(SOLUTION[name]())]))
    close(torch.full((4,), -1e9).softmax(0), torch.full((4,), SOLUTION["empty_row_weight"]()))
    layer = AdditiveAttention(key_size=2, query_size=20, num_hiddens=8)
    assert SOLUTION["additive_parameters"]() == sum(p.numel() for p in layer.parameters())
    q, k = torch.randn(2, 20000, 64, generator=torch.Generator().manual_seed(0))
    assert (q * k).sum(-1).var().item() == pytest.approx(
        SOLUTION["dot_product_variance"](), rel=0.05
    )
    table = sinusoidal_table(2, 8)
    moved = (table[1] - table[0]).abs().reshape(4, 2).amax(1)
    slowest = int(moved.argmin())
    assert SOLUTION["slowest_columns"]() == (2 * slowest, 2 * slowest + 1)
    turns = SOLUTION["wavelength"]()
    steps = sinusoidal_table(round(turns) + 1, 8)[:, 4:6]
    assert (steps[round(turns)] - steps[0]).abs().max() < 0.01


def test_positions_are_those_of_the_library():
    from course_utils.models.positional import PositionalEncoding, sinusoidal_table

    table = sinusoidal_table(20, 8)
    close(SOLUTION["position_table"](20, 8), table)
    R = SOLUTION["shift_matrix"](4, 8)
    close(table[4:], table[:-4] @ R)
    (x,) = draw(205, (2, 3, 8))
    close(SOLUTION["add_positions"](x, table, 5), PositionalEncoding(8)(x, offset=5))


def test_kernel_and_leave_one_out_are_those_of_the_library():
    from course_utils.models.kernel_regression import kernel_weights

    x, q, y = draw(206, (6,), (3,), (6,))
    close(SOLUTION["gaussian_weights"](q, x, 0.7), kernel_weights(q, x, 0.7))
    one_by_one = [
        kernel_weights(x[i : i + 1], torch.cat([x[:i], x[i + 1 :]]), 0.7)
        @ torch.cat([y[:i], y[i + 1 :]])
        for i in range(6)
    ]
    close(SOLUTION["leave_one_out"](x, y, 0.7), torch.cat(one_by_one))


def test_loss_and_bleu_are_those_of_the_references():
    from sacrebleu.metrics import BLEU

    from course_utils.training.losses import masked_cross_entropy

    (logits,) = draw(207, (3, 4, 6))
    targets = torch.tensor([[1, 2, 0, 0], [3, 4, 5, 1], [2, 0, 0, 0]])
    close(SOLUTION["token_loss"](logits, targets, 0), masked_cross_entropy(logits, targets, pad=0))
    candidate, reference = "a b b e d".split(), "a b c d e f".split()
    metric = BLEU(max_ngram_order=2, smooth_method="none", tokenize="none")
    score = metric.corpus_score([" ".join(candidate)], [[" ".join(reference)]])
    precisions = [100 * SOLUTION["clipped_precision"](candidate, reference, n) for n in (1, 2)]
    assert precisions == pytest.approx(score.precisions)
    assert SOLUTION["brevity_penalty"](5, 6) == pytest.approx(score.bp)
    assert 100 * SOLUTION["bleu_of_two"]() == pytest.approx(score.score)


def test_a_cache_gives_what_the_full_pass_gives():
    x, table, W_q, W_k, W_v = draw(208, (2, 5, 6), (8, 6), (6, 4), (6, 4), (6, 4))
    cache, outputs = (torch.empty(2, 0, 4), torch.empty(2, 0, 4)), []
    for t in range(5):
        output, cache = SOLUTION["cached_step"](x[:, t : t + 1], cache, table, W_q, W_k, W_v)
        outputs.append(output)
    placed = x + table[:5]
    full = SOLUTION["causal_attention"](placed @ W_q, placed @ W_k, placed @ W_v)[0]
    close(torch.cat(outputs, 1), full)
    assert SOLUTION["keys_without_cache"]() == sum(range(21))


def test_beam_of_one_is_greedy():
    from course_utils.chapters.ch09_transformer_translation.exercises import toy_model

    model = toy_model(91, 4)
    prefix = [1]
    while prefix[-1] != 2 and len(prefix) < 9:
        log_probs = model(prefix).log_softmax(-1)[None]
        _, _, token = SOLUTION["beam_step"](torch.zeros(1), log_probs, 1)
        prefix.append(int(token))
    assert SOLUTION["greedy_tokens"](model, 1, 2, 8) == prefix[1:-1]
