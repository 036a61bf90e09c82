"""What is said of the inputs on which an answer is wrong is a rule, and shows on the one shown."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_utils.checker import catalogue, check

BY_NAME = {e.name: e for e in catalogue()}


@pytest.fixture(autouse=True)
def _patient(patient_search):
    """However busy the machine is."""


def one_less_is_enough(candidate_length, reference_length):
    if candidate_length >= reference_length - 1:
        return 1.0
    return min(1.0, math.exp(1 - reference_length / candidate_length))


def rounded(candidate_length, reference_length):
    ratio = round(reference_length / candidate_length, 1)
    return min(1.0, math.exp(1 - ratio))


def groups_of_two(q, k, v):
    k, v = (z.repeat_interleave(2, 1) for z in (k, v))
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v


def squared_norm(gradients, limit):
    total = sum((g**2).sum() for g in gradients)
    if total > limit:
        return [g * limit / total.sqrt() for g in gradients]
    return [g.clone() for g in gradients]


@pytest.mark.parametrize(
    ("name", "answer", "where"),
    [
        ("brevity_penalty", one_less_is_enough, "where `candidate_length` + 1 is `reference_leng"),
        ("brevity_penalty", rounded, "on this one."),
        ("grouped_attention", groups_of_two, "where h / g is not 2."),
        ("clip_by_norm", squared_norm, "on this one."),
    ],
)
def test_a_condition_is_told_that_tells_right_inputs_from_wrong_ones(name, answer, where):
    assert f"It is right on the usual inputs, but not {where}" in str(check(name, answer))


def test_a_changed_input_is_shown_where_it_changes():
    def in_place(x, sublayer, norm, norm_first):
        if norm_first:
            x += sublayer(norm(x))
            return x
        return norm(x + sublayer(x))

    case = check("add_and_norm", in_place).verdict.case
    assert case.args[3] is True


def test_a_gradient_that_is_right_of_the_plain_sum_alone_is_not_called_right():
    class KeysGetIt(nn.Module):
        def __init__(self, base, rank, alpha):
            super().__init__()
            self.base, d = base.requires_grad_(False), base.in_features
            self.scale = alpha / rank
            self.A_q, self.A_v = (nn.Parameter(torch.randn(rank, d)) for _ in range(2))
            self.B_q, self.B_v = (nn.Parameter(torch.randn(d, rank)) for _ in range(2))

        def forward(self, x):
            q, k, v = self.base(x).chunk(3, dim=-1)
            q = q + self.scale * (x @ self.A_q.T @ self.B_q.T)
            return torch.cat([q, k + self.scale * (x @ self.A_v.T @ self.B_v.T), v], dim=-1)

    assert "gradient of x" not in check("LoRAForTwo", KeysGetIt).verdict.held


def test_an_error_says_why_and_not_the_reason_of_an_input():
    def unguarded(kept, cost, most):
        rate = [(1 - kept ** (k + 1)) / (1 - kept) / (1 + k * cost) for k in range(most + 1)]
        return max(range(most + 1), key=lambda k: rate[k])

    text = str(check("draft_ahead", unguarded))
    assert "ZeroDivisionError" in text
    assert "thrown away" not in text


def test_no_number_below_0_is_due_where_something_is_taken_away():
    def of_rows(rows, columns, d):
        code = torch.zeros(rows, columns, d)
        step = math.pi / (rows - 1)
        r, c = step * torch.arange(rows)[:, None], step * torch.arange(columns)
        code[..., 0], code[..., 1], code[..., 2], code[..., 3] = r.cos(), r.sin(), c.cos(), c.sin()
        return code.flatten(0, 1)

    assert "another number is due" not in str(check("grid_code", of_rows))


def by_a_tenth(layer, x):
    base, out = layer(x), torch.zeros(len(x), len(x), dtype=torch.bool)
    for j in range(len(x)):
        y = x.clone()
        y[j] = y[j] + 0.1
        out[:, j] = ~torch.isclose(layer(y), base).all(dim=-1)
    return out


def by_its_neighbour(layer, x):
    before, columns = layer(x), []
    for j in range(len(x)):
        changed = x.clone()
        changed[j] = x[j - 1]
        columns.append((layer(changed) - before).abs().amax(-1) > 1e-6)
    return torch.stack(columns, 1)


@pytest.mark.parametrize("answer", [by_a_tenth, by_its_neighbour])
def test_no_change_mends_an_experiment_by_luck(answer):
    assert "with this one change" not in str(check("influence", answer))


def test_a_missing_division_is_called_that():
    def by_the_largest(logits, k):
        p = logits.softmax(-1)
        v, i = p.topk(k)
        v = v / v.max(-1, keepdim=True).values
        return torch.zeros_like(p).scatter(1, i, v)

    text = str(check("expert_shares", by_the_largest))
    assert "a step is missing (a division by its sum)" in text


def test_no_map_of_weights_is_drawn_of_what_is_only_true():
    def too_close(wanted):
        return F.one_hot(wanted, len(wanted)).float()

    assert "map" not in str(check("look_at", too_close))


def large_bias(d):
    eye, zero, much = torch.eye(d), torch.zeros(d), torch.full((d,), 1e4)
    return torch.cat([eye, eye], 1), torch.cat([zero, much]), torch.cat([2 * eye, -eye]), much


def test_what_is_nearly_right_is_shown_where_it_is_far_off():
    verdict = check("absolute_network", large_bias).verdict
    assert "no bias is large enough for every `x`" in str(verdict.facts)
    assert verdict.case.expected.max() == 1e6


def by_names(model):
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    spared = [n for n, _ in named if "bias" in n or "norm" in n]
    return [n for n, _ in named if n not in spared], spared


def hidden_by_zero(logits, k):
    values, places = logits.topk(k)
    return torch.zeros_like(logits).scatter(1, places, values).softmax(-1)


def averaged_queries(q, k, v):
    n = q.shape[1] // k.shape[1]
    mean = q.unflatten(1, (-1, n)).mean(2)
    return ((mean @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v).repeat_interleave(n, 1)


def last_of_the_way_back(x, there, back):
    first = there(x)
    return torch.cat([first, back(x.flip(1))[:, -1:].expand_as(first)], -1)


def sum_of_both(base, loss, allowed):
    alone = loss.diagonal() - base
    fine = alone <= allowed
    return fine[:, None] & fine & (loss - base > alone[:, None] + alone)


def written_in_every_row(queries, keys, k):
    distance = (queries[:, None] - keys).abs()
    weights = torch.zeros_like(distance)
    weights[:, distance.argsort(dim=1)[:, :k]] = 1 / k
    return weights


def cut_the_other_way(W, num_heads):
    heads = W.reshape(W.shape[0], -1, num_heads)
    return torch.cat([heads[..., ::2], heads[..., 1::2]], -1).reshape(W.shape)


def _own_table(order):
    def code(positions, d):
        speeds = 10000.0 ** (-torch.arange(0, d, 2) / d)
        angle = positions[:, None] * speeds
        waves = {"sines": angle.sin(), "cosines": angle.cos()}
        first, second = (waves[name] for name in order)
        return torch.cat([first, second], 1)

    return code


class EachNormIsKept(nn.Module):
    def __init__(self, self_attention, cross_attention, ffn, norms):
        super().__init__()
        self.look_around, self.look, self.ffn = self_attention, cross_attention, ffn
        self.norm1, self.norm2, self.norm3 = norms

    def forward(self, x, memory, target_mask, source_mask):
        x = self.norm1(x)
        x = x + self.look_around(x, x, x, target_mask)
        x = self.norm2(x)
        x = x + self.look(x, memory, memory, source_mask)
        x = self.norm3(x)
        return x + self.ffn(x)


@pytest.mark.parametrize(
    ("name", "answer", "mistake"),
    [
        ("nearest_weights", written_in_every_row, "a key that one query chooses counts for all"),
        (
            "neighbours_to_halves",
            cut_the_other_way,
            "the size of a head and the number of heads are exchanged",
        ),
        ("own_code", _own_table(["sines", "cosines"]), "it is the table of this chapter"),
        ("own_code", _own_table(["cosines", "sines"]), "it is the table of this chapter"),
        (
            "TinyDecoderBlock",
            EachNormIsKept,
            "every residual connection carries the normalised stream",
        ),
        ("decay_groups", by_names, "it goes by names"),
        ("expert_shares", hidden_by_zero, "what is hidden counts as a logit of 0"),
        ("grouped_attention", averaged_queries, "the query heads of a group are averaged"),
        ("both_ways", last_of_the_way_back, "only what a reader knows at its end is given"),
        ("hidden_partners", sum_of_both, "together is compared with the sum of the two rises"),
        ("best_without_order", 0.35, "what can be right is halved once more"),
    ],
)
def test_a_likely_slip_has_a_name_of_its_own(name, answer, mistake):
    assert check(name, answer).mistakes == (mistake,)


def test_a_long_piece_of_code_is_shown_with_both_its_ends():
    def one_less(free, layers, heads, sharing, d_head, batch, number):
        return free // (2 * layers * (heads // sharing) * d_head * batch * number) - 1

    (change,) = check("longest_text", one_less).verdict.measured
    assert "- 1`, a step is too many" in change


def _of(tokens, time):
    def draft(kept, cost, most):
        rates = [tokens(kept, k) / time(kept, cost, k) for k in range(most + 1)]
        return rates.index(max(rates))

    return draft


def _plain(kept, cost, k):
    return 1 + k * cost


def _geometric(kept, k):
    return sum(kept**i for i in range(k + 1))


def _until_the_first_rejected(kept, k):
    return 1 + sum(i * kept**i * (1 - kept) for i in range(k))


def from_one(kept, cost, most):
    rates = [_geometric(kept, k - 1) / (1 + k * cost) for k in range(1, most + 1)]
    return rates.index(max(rates))


@pytest.mark.parametrize(
    ("answer", "mistake"),
    [
        (_of(lambda kept, k: 1 + k * kept**k, _plain), "all drafted tokens are kept, or none"),
        (
            _of(_until_the_first_rejected, _plain),
            "the case that all k are kept is left out, or weighed by 1 - kept",
        ),
        (
            _of(lambda kept, k: 1 + sum(i * kept**i for i in range(k + 1)), _plain),
            "token i is counted i times",
        ),
        (
            _of(_geometric, lambda kept, cost, k: 1 + cost * _geometric(kept, k)),
            "the small model's time does not grow by `cost` with every k",
        ),
        (from_one, "the large model's own token, or the last drafted one, is left out"),
    ],
)
def test_what_gives_one_choice_has_one_name_that_is_true_of_all(answer, mistake):
    assert check("draft_ahead", answer).mistakes == (mistake,)


def test_a_pool_is_not_called_right_for_padding_that_holds_what_is_real():
    def unmasked(x, valid_lens):
        weights = torch.arange(1.0, x.shape[1] + 1)
        return (x * (weights / weights.sum())[:, None]).sum(1)

    assert (
        "gives v where all real outputs are v" not in check("ordered_pool", unmasked).verdict.held
    )


def true_of_0(ids, pair, new):
    out, last = [], None
    for x in ids:
        if last and last == pair[0] and x == pair[1]:
            out[-1] = new
            last = None
        else:
            out.append(x)
            last = x
    return out


def test_a_name_that_is_only_asked_whether_it_is_true_is_not_exchanged():
    said = str(check("merge_pair", true_of_0).verdict.measured)
    assert "`last is not None` is due, for 0 is False" in said
