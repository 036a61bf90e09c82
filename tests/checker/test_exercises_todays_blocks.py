"""Exercises of chapter 17: mistakes as a learner writes them, and solutions against the library."""

import math

import pytest
import torch
import torch.nn.functional as F

from course_utils.checker import catalogue, check
from course_utils.checker.probes import draw
from course_utils.models.modern.experts import route
from course_utils.models.modern.feed_forward import GatedFFN
from course_utils.models.modern.rotary import rotate

SOLUTION = {e.name: e.solution for e in catalogue() if e.notebook == "17_todays_blocks"}


def close(a, b):
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def attend(q, k, v, scale, axis=-1):
    return ((q @ k.mT) * scale).softmax(axis) @ v


def at(q, place):
    return torch.full(q.shape[2:3], place)


def turned(q, k, cached, q_at, k_at, scale=0.5):
    """Scores with the query and the new key at given places; None: not turned."""
    q, k = (x if p is None else rotate(x, at(x, p)) for x, p in ((q, q_at), (k, k_at)))
    return q @ torch.cat([cached, k], dim=2).mT * scale


def both_halves_negated(q, k, c):
    """A known slip: the halves of a vector are exchanged with two minus signs."""
    p, d = c.shape[2], q.shape[-1]
    angle = p * 10000.0 ** (-torch.arange(0, d, 2) / d)

    def turn(x):
        a, b = x[..., 0::2], x[..., 1::2]
        both = a * angle.cos() + b * angle.sin(), b * angle.cos() - a * angle.sin()
        return torch.stack(both, -1).flatten(-2)

    return turn(q) @ torch.cat([c, turn(k)], 2).mT / d**0.5


WRITTEN = [
    ("rms_normalise", lambda x, w, e: F.layer_norm(x, x.shape[-1:], w, None, e) * 1,
     "the mean is subtracted"),
    ("rms_normalise", lambda x, w, e: x / (x.pow(2).mean(-1, True).sqrt() + e) * w,
     "eps is added outside the root"),
    ("rms_normalise", lambda x, w, e: x / (x.pow(2).mean(-1, True) + e) * w,
     "the root is missing"),
    ("rms_normalise", lambda x, w, e: x / torch.sqrt(x.pow(2).sum(-1, True) + e) * w,
     "the squares are summed, not averaged"),
    ("rms_normalise", lambda x, w, e: x * torch.rsqrt(x.pow(2).mean(-1, True) + e),
     "the weight is left out"),
    ("gated_network", lambda x, g, u, d: (x @ g * F.silu(x @ u)) @ d,
     "the gate's activation sits on the wrong branch"),
    ("gated_network", lambda x, g, u, d: F.silu((x @ g) * (x @ u)) @ d,
     "the activation is applied to the product"),
    ("gated_network", lambda x, g, u, d: (torch.sigmoid(x @ g) * (x @ u)) @ d,
     "the sigmoid is not multiplied by its input"),
    ("gated_network", lambda x, g, u, d: (F.silu(x @ g) + x @ u) @ d,
     "the branches are added"),
    ("neighbours_to_halves", lambda W, h: torch.cat([W[:, 0::2], W[:, 1::2]], 1),
     "all heads are rearranged as one"),
    ("neighbours_to_halves",
     lambda W, h: W.unflatten(1, (h, 2, -1)).transpose(2, 3).flatten(1),
     "the order leads the wrong way"),
    ("cached_scores", lambda q, k, c: turned(q, k, c, c.shape[2], None, q.shape[-1] ** -0.5),
     "the new key is not turned"),
    ("cached_scores", lambda q, k, c: turned(q, k, c, None, c.shape[2], q.shape[-1] ** -0.5),
     "the query is not turned"),
    ("cached_scores", lambda q, k, c: turned(q, k, c, c.shape[2], c.shape[2], 1.0),
     "the scores are not divided by the root of d"),
    ("cached_scores",
     lambda q, k, c: turned(q, k, c, c.shape[2] + 1, c.shape[2] + 1, q.shape[-1] ** -0.5),
     "the new token's position is one too large"),
    ("cached_scores", both_halves_negated, "the angles are negated"),
    ("cached_scores",
     lambda q, k, c: rotate(q, at(q, c.shape[2]))
     @ rotate(torch.cat([c, k], 2)).mT / q.shape[-1] ** 0.5,
     "the cached keys are turned once more"),
    ("grouped_attention",
     lambda q, k, v: attend(q, *(x.repeat(1, q.shape[1] // k.shape[1], 1, 1) for x in (k, v)),
                            q.shape[-1] ** -0.5),
     "the key heads are tiled, not repeated"),
    ("grouped_attention",
     lambda q, k, v: attend(
         q, *(x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v)), 1.0),
     "the scores are not divided by the root of d"),
    ("grouped_attention",
     lambda q, k, v: attend(
         q, *(x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v)),
         q.shape[-1] ** -0.5, axis=-2),
     "the softmax runs over the queries"),
    ("expert_shares",
     lambda z, k: torch.zeros_like(z).scatter(1, z.topk(k).indices,
                                              z.softmax(-1).topk(k).values),
     "the shares of the k best are not renormalised"),
    ("expert_shares",
     lambda z, k: torch.zeros_like(z).scatter(1, z.topk(k).indices, 1 / k),
     "the k best share equally"),
    ("load_balance",
     lambda p, c: p.shape[1] * (F.one_hot(c, p.shape[1]).float().sum(1).mean(0) @ p.mean(0)),
     "each token's k visits count k times"),
    ("load_balance",
     lambda p, c: (F.one_hot(c, p.shape[1]).float().mean((0, 1)) * p.mean(0)).sum(),
     "the factor E is missing, or a mean stands for the sum"),
    ("load_balance",
     lambda p, c: p.shape[1] * (F.one_hot(c, p.shape[1]).float().mean((0, 1)) @ p.mean(0)).item()
     + torch.zeros(()),
     "the gradient is cut off"),
    ("fair_router", lambda z: z.argmax(1), "an expert gets too many tokens"),
    ("fair_router", lambda z: torch.arange(len(z)) % z.shape[1], "two tokens would gain by a swap"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "answer", "mistake"), WRITTEN, ids=[f"{w[0]}: {w[2]}" for w in WRITTEN]
)
def test_a_learners_mistake_gets_its_name(name, answer, mistake):
    result = check(name, answer)
    assert result.mistakes == (mistake,), str(result)


def test_norm_and_gate_are_those_of_the_library():
    x, weight = draw(0, (2, 3, 6), (6,))
    close(SOLUTION["rms_normalise"](x, weight, 0.1), F.rms_norm(x, (6,), weight, 0.1))
    ffn = GatedFFN(6, 5)
    matrices = [layer.weight.T for layer in (ffn.W_gate, ffn.W_up, ffn.W_down)]
    close(SOLUTION["gated_network"](x, *matrices), ffn(x))


def test_rearranged_weights_give_the_scores_of_the_other_layout():
    x, W_q, W_k = draw(1, (5, 4), (4, 12), (4, 12))

    def scores(W_q, W_k, layout):
        q, k = ((x @ W).unflatten(1, (2, 6)).transpose(0, 1) for W in (W_q, W_k))  # (h, T, d)
        return rotate(q, layout=layout) @ rotate(k, layout=layout).mT

    ours = [SOLUTION["neighbours_to_halves"](W, 2) for W in (W_q, W_k)]
    close(scores(*ours, "halves"), scores(W_q, W_k, "interleaved"))


def test_scores_from_a_cache_are_those_of_the_whole_text():
    q, k = draw(2, (1, 2, 6, 4), (1, 2, 6, 4))
    whole = rotate(q) @ rotate(k).mT / math.sqrt(4)
    last = SOLUTION["cached_scores"](q[:, :, 5:], k[:, :, 5:], rotate(k[:, :, :5]))
    close(last, whole[:, :, 5:])


def test_groups_and_balance_are_those_of_the_library():
    q, k, v = draw(3, (2, 6, 5, 4), (2, 3, 5, 4), (2, 3, 5, 4))
    close(SOLUTION["grouped_attention"](q, k, v),
          F.scaled_dot_product_attention(q, k, v, enable_gqa=True))  # fmt: skip
    (logits,) = draw(4, (7, 4))
    routing = route(logits, 2)
    shares = SOLUTION["expert_shares"](logits, 2)
    close(shares.gather(1, routing.chosen), routing.weights)
    close(SOLUTION["load_balance"](routing.probabilities, routing.chosen), routing.balance_loss())


def test_a_cache_of_so_many_heads_fits():
    heads = SOLUTION["key_heads_that_fit"]()
    a_head = 2 * 24 * 64 * 65_536 * 2
    assert heads * a_head <= 3 * 2**30 < (heads + 1) * a_head


def test_a_kept_logit_of_zero_is_one_like_any_other():
    def zero_is_hidden(logits, k):
        top = logits.topk(k, dim=-1).indices
        kept = logits * torch.zeros_like(logits).scatter(-1, top, 1.0)
        return kept.masked_fill(kept == 0, -torch.inf).softmax(-1)

    assert not check("expert_shares", zero_is_hidden)
