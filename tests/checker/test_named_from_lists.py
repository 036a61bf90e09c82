"""Slips that strangers made, once without a name, and right answers that were doubted."""

import math

import pytest
import torch
import torch.nn.functional as F

from course_utils.checker import catalogue, check
from course_utils.checker.exercise import REGISTRY
from course_utils.checker.resized import sums_to_one


def one_softmax_over_the_queries(scores, mask):
    powers = torch.exp(scores.masked_fill(~mask, -1e9))
    return powers / (powers.sum(dim=1, keepdim=True) + 1e-12)


def hidden_behind_powers(scores, mask):
    powers = torch.exp(scores) * mask
    return powers / (powers.sum(dim=-1, keepdim=True) + 1e-9)


def in_turn(x, there, back):
    return torch.stack([there(x), back(x.flip(1)).flip(1)], dim=-1).flatten(2)


def at_their_ends(x, there, back):
    return torch.cat([there(x)[:, -1], back(x.flip(1))[:, -1]], dim=-1)


def h_rows_a_head(W_o, kept, num_heads):
    new = torch.zeros_like(W_o)
    for head in kept:
        rows = slice(head * num_heads, (head + 1) * num_heads)
        new[rows] = W_o[rows]
    return new


def the_first_heads(W_o, kept, num_heads):
    new, end = torch.zeros_like(W_o), len(kept) * len(W_o) // num_heads
    new[:end] = W_o[:end]
    return new


def of_the_tile_and_the_output(scores, log_sum, values, grad, output):
    d_weights = output @ values.T
    return scores.softmax(-1) * (d_weights - (grad * output).sum(-1, keepdim=True))


def only_the_first_product(scores, log_sum, values, grad, output):
    weights = (scores - log_sum[:, None]).exp()
    return weights * (grad @ values.T) - (grad * output).sum(-1, keepdim=True)


def without_a_tensor(probabilities, chosen):
    return REGISTRY["load_balance"].solution(probabilities, chosen).item()


def rows_of_one_row(W, num_heads):
    return torch.cat([W[0::2], W[1::2]], dim=0)


def slices_of_features(queries, keys, values, weights, num_heads):
    W_q, W_k, W_v, W_o = weights
    heads = []
    for s in torch.arange(len(W_q)).chunk(num_heads):
        q, k, v = (x[..., s] @ W[s][:, s] for x, W in ((queries, W_q), (keys, W_k), (values, W_v)))
        heads.append((q @ k.mT / math.sqrt(len(s))).softmax(-1) @ v)
    return torch.cat(heads, dim=-1) @ W_o


def at_most_two_bytes_wait(pieces):
    shown, waiting = [], b""
    for piece in pieces:
        waiting += piece
        for end in range(len(waiting), max(len(waiting) - 3, -1), -1):
            try:
                shown.append(waiting[:end].decode())
                waiting = waiting[end:]
                break
            except UnicodeDecodeError:
                continue
        else:
            shown.append("")
    return shown


def bicubic_to_the_corners(positions, old, new):
    grid = positions[1:].T.reshape(1, -1, *old)
    grid = F.interpolate(grid, size=new, mode="bicubic", align_corners=True)
    return torch.cat([positions[:1], grid[0].flatten(1).T])


def in_one_row(prompt, more, page):
    return prompt // page + math.ceil(sum(more) / page)


def after_attention_without_a_norm(x, attention, ffn, norm, mask):
    x = x + attention(x, x, x, mask)
    return x + ffn(norm(x))


@pytest.mark.parametrize(
    ("name", "answer", "parts"),
    [
        (
            "softmax_with_mask",
            one_softmax_over_the_queries,
            ("over the queries", "exp is taken"),
        ),
        ("softmax_with_mask", hidden_behind_powers, ("exp is taken of the scores",)),
        ("both_ways", in_turn, ("in turn",)),
        ("both_ways", at_their_ends, ("at its end",)),
        ("keep_heads", h_rows_a_head, ("h rows",)),
        ("keep_heads", the_first_heads, ("as many as are named",)),
        ("score_gradient", of_the_tile_and_the_output, ("tile alone", "output times the value")),
        ("score_gradient", only_the_first_product, ("only dweight",)),
        ("load_balance", without_a_tensor, ("gradient is cut off",)),
        ("neighbours_to_halves", rows_of_one_row, ("rearranged as one", "rows")),
        ("multi_head", slices_of_features, ("its own slice",)),
        ("shown_so_far", at_most_two_bytes_wait, ("what is complete waits",)),
        ("resized_positions", bicubic_to_the_corners, ("bicubic", "corners")),
        ("pages_taken", in_one_row, ("one row", "without the tokens of the begun page")),
        ("parallel_block", after_attention_without_a_norm, ("comes after", "without its norm")),
    ],
)
def test_these_slips_have_names(name, answer, parts):
    named = " + ".join(check(name, answer).mistakes)
    assert all(part in named for part in parts), named


@pytest.mark.parametrize(
    ("name", "typed", "parts"),
    [
        ("adam_walk", 10 * 0.1 * 0.001, ("goes up", "plain gradient descent")),
        ("adam_walk", -0.1 * 0.001, ("one update", "plain gradient descent")),
        ("adam_walk", 10.0, ("goes up", "learning rate is left out")),
        ("square_takes_over", 192, ("a third of the rest", "turned round")),
        ("square_takes_over", 6, ("d is left out",)),
        ("pipeline_bubble", 3 / 30, ("of one direction",)),
        ("pipeline_bubble", 6 / 15, ("of both directions",)),
        ("pipeline_bubble", 4 / 12, ("busy ones", "one stage too many")),
        ("best_without_order", 0.55, ("30 reviews",)),
        ("best_without_order", 0.75, ("equally large",)),
        ("peak_learning_rate", 1024**0.5 * 4000**-0.5, ("minus of one exponent",)),
    ],
)
def test_these_numbers_have_names(name, typed, parts):
    named = " + ".join(check(name, typed).mistakes)
    assert all(part in named for part in parts), named


@pytest.mark.parametrize("start", ["in turn", "in a row"])
def test_three_rounds_of_swaps_are_too_few_wherever_they_begin(start):
    def three_rounds(logits):
        N, E = logits.shape
        room, chosen = [math.ceil(N / E)] * E, []
        for i, row in enumerate(logits):
            best = row.argsort(descending=True).tolist()
            full = next(e for e in best if room[e])
            chosen.append(full if start == "in turn" else i // math.ceil(N / E))
            room[full] -= 1
        for _ in range(3):
            for i in range(N):
                for j in range(i):
                    a, b = chosen[i], chosen[j]
                    if logits[i, b] + logits[j, a] > logits[i, a] + logits[j, b] + 1e-6:
                        chosen[i], chosen[j] = b, a
        return torch.tensor(chosen)

    said = str(check("fair_router", three_rounds))
    assert "but not with 24 tokens" in said
    assert "go through all pairs again until there are none" in said


def test_what_isclose_takes_for_rounding_is_an_influence():
    def compared_by_isclose(layer, x):
        columns = []
        for j in range(len(x)):
            changed = x.clone()
            changed[j] = torch.randn(x.shape[1])
            columns.append(~torch.isclose(layer(changed), layer(x)).all(1))
        return torch.stack(columns, dim=1)

    assert check("influence", compared_by_isclose).status != "right"


def test_a_length_that_counts_is_not_put_down_to_a_lost_sign():
    def pressed_together(queries, keys):
        return 5 * torch.tanh(queries @ F.normalize(keys, dim=-1).mT)

    said = str(check("fair_score", pressed_together))
    assert "The length of a query counts" in said
    assert "is a sign dropped" not in said


def test_a_loop_that_rounding_keeps_going_far_away_is_no_mistake():
    def best_swap_first(logits):
        chosen, rows = torch.arange(len(logits)) % logits.shape[1], torch.arange(len(logits))
        while True:
            own, crossed = logits[rows, chosen], logits[:, chosen]
            gain = crossed + crossed.T - own[:, None] - own
            if gain.max() <= 1e-6:
                return chosen
            i, j = divmod(int(gain.argmax()), len(chosen))
            chosen[i], chosen[j] = int(chosen[j]), int(chosen[i])

    assert check("fair_router", best_swap_first)


def test_weights_of_probes_are_weights_throughout():
    for exercise in catalogue():
        for column in zip(*exercise.probes):
            tensors = [x for x in column if isinstance(x, torch.Tensor) and x.numel()]
            shares = [sums_to_one(x) for x in tensors if x.is_floating_point() and x.dim()]
            assert all(shares) or sum(shares) <= len(shares) / 2, exercise.name
