"""What is said of a design, of a part or of hidden scores is true of every answer it is said of."""

import math

import pytest
import torch
import torch.nn.functional as F

from course_utils.checker import catalogue, check
from course_utils.checker.exercise import REGISTRY, call
from course_utils.checker.findings import right_parts
from course_utils.checker.generic_inputs import Trial, generic
from course_utils.checker.properties import is_of_properties
from course_utils.checker.runner import outcome
from course_utils.checker.verdict import outcome_of
from course_utils.checker.widen import drawn

OPEN = [
    e for e in catalogue()
    if e.kind != "value" and e.play is not call and is_of_properties(outcome_of(e, (), 0))
]  # fmt: skip
LOW = [e for e in catalogue() if "hidden scores are not low enough" in {m.name for m in e.mistakes}]
# their texts bound the scores, or what is hidden is always the lowest
BOUNDED = {"leave_one_out": "within 13 widths", "next_token_probabilities": "most probable"}
HIDDEN_TOO = "the maximum of a row is taken over hidden keys too"


@pytest.mark.parametrize("exercise", OPEN, ids=lambda e: e.name)
def test_properties_that_two_mistakes_lose_are_not_called_a_third_mistake(exercise):
    def lost(some):
        return tuple(repr(outcome_of(exercise, some, i)) for i in range(len(exercise.probes)))

    alone = {}
    for mistake in exercise.mistakes:
        alone.setdefault(lost((mistake,)), set()).add(mistake.name)
    for a, b in exercise.pairs():
        single = alone.get(lost((a, b)), set())
        assert not single or single & {a.name, b.name}, (single, a.name, b.name)


@pytest.mark.parametrize("exercise", OPEN, ids=lambda e: e.name)
def test_a_design_is_shown_on_an_input_that_properties_are_asked_of(exercise):
    case = check(exercise.name, exercise.combine(exercise.mistakes[-1]).answer).verdict.case
    assert any(case.args is probe for probe in exercise.probes)


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        (lambda x: x / (x.abs().sum(-1, keepdim=True) + 1e-6), {"the numbers are too small"}),
        (
            lambda x: x.abs() / (x.abs().sum(-1, keepdim=True) + 1e-6),
            {"the numbers are too small", "signs are lost"},
        ),
    ],
)
def test_small_numbers_are_not_called_vectors_of_length_1(answer, names):
    result = check("own_norm", answer)
    assert set(result.mistakes) == names
    assert "have length 1" not in str(result)


def test_weights_without_a_softmax_are_not_said_to_have_one_along_columns():
    result = check("look_elsewhere", lambda x: (x @ x.mT).sigmoid() * 2 / len(x))
    assert not result
    assert "columns sum to 1" not in str(result)


def by_turns(logits, room):
    left = torch.full((logits.shape[1],), room)
    chosen = torch.zeros(len(logits), dtype=torch.long)
    for i in range(len(logits)):
        chosen[i] = logits[i].masked_fill(left <= 0, -math.inf).argmax()
        left[chosen[i]] -= 1
    return chosen


def test_a_part_is_right_already_only_if_it_is_in_every_size():
    crowded = check("fair_router", lambda z: by_turns(z, max(1, len(z) // z.shape[1])))
    fair = check("fair_router", lambda z: by_turns(z, math.ceil(len(z) / z.shape[1])))
    held = "no expert gets more than ceil(N / E) tokens"
    assert held in fair.verdict.held
    assert held not in crowded.verdict.held


def test_one_of_two_results_is_right_only_if_it_is_on_inputs_drawn_afresh():
    exercise = REGISTRY["attend_with_roles"]

    def play_right(inputs):
        return [outcome(call, exercise.solution, args, 0) for args in inputs]

    def second_right_on(known):
        def play(inputs):
            return [
                [2 * y, w if any(args is x for x in known) else 2 * w]
                for args, (y, w) in zip(inputs, play_right(inputs))
            ]

        return play

    inputs = [*generic(exercise)]
    for known, said in ((inputs, None), ([*inputs, *drawn(exercise)], "second result is right")):
        play = second_right_on(known)
        trial = Trial(exercise, inputs, play_right(inputs), play(inputs), play_right, play)
        told = right_parts(trial)
        assert told is None if said is None else said in told


@pytest.mark.parametrize("exercise", LOW, ids=lambda e: e.name)
def test_scores_lowered_by_much_stay_visible_where_scores_lie_far_apart(exercise):
    if exercise.name in BOUNDED:
        assert BOUNDED[exercise.name] in f"{exercise.text} {exercise.solution.__doc__}"
        return
    assert any("by 10000" in m.switches.values() for m in exercise.mistakes)
    assert HIDDEN_TOO in {m.name for m in exercise.mistakes} or exercise.name == "TinyMultiHead"


def attention(weights_of):
    def answer(Q, K, V, mask):
        return weights_of(Q @ K.mT / math.sqrt(Q.shape[-1]), mask) @ V

    return answer


def causal(weights_of):
    def answer(q, k, v):
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        weights = weights_of(scores, torch.ones(scores.shape[-2:]).tril().bool())
        return weights @ v, weights

    return answer


def of_lengths(weights_of):
    return lambda x, n: weights_of(x, torch.arange(x.shape[-1]) < n[:, None, None])


TASKS = {
    "attention_in_one_line": attention,
    "causal_attention": causal,
    "softmax_with_lengths": of_lengths,
}


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("much", [50.0, 1e3, 1e4])
def test_scores_lowered_by_a_number_have_their_name(name, much):
    def weights(scores, visible):
        return (scores - much * ~visible).softmax(-1)

    assert check(name, TASKS[name](weights)).mistakes == ("hidden scores are not low enough",)


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("least", [0.0, 1e-9])
def test_weights_that_are_divided_again_have_their_name(name, least):
    def weights(scores, visible):
        left = scores.softmax(-1) * visible
        return left / (left.sum(-1, keepdim=True) + least)

    assert check(name, TASKS[name](weights)).mistakes == (HIDDEN_TOO,)


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("low", [-1e9, -math.inf])
def test_scores_that_are_far_below_all_others_are_right(name, low):
    def weights(scores, visible):
        return scores.masked_fill(~visible, low).softmax(-1)

    assert check(name, TASKS[name](weights))


@pytest.mark.parametrize(
    ("name", "answer", "called"),
    [
        (
            "normalise_tokens",
            lambda x, g, b, eps: F.group_norm(x.flatten(0, 1), 1, eps=eps).view_as(x) * g + b,
            "group_norm",
        ),
        (
            "normalise_tokens",
            lambda x, g, b, eps: torch.native_layer_norm(x, g.shape, g, b, eps)[0],
            "native_layer_norm",
        ),
        (
            "normalise_tokens",
            lambda x, g, b, eps: F.rms_norm(x - x.mean(-1, keepdim=True), g.shape, g, eps) + b,
            "rms_norm",
        ),
        ("rms_normalise", lambda x, w, eps: torch.rms_norm(x, w.shape, w, eps), "rms_norm"),
    ],
)
def test_other_names_of_a_function_that_is_ruled_out_are_ruled_out(name, answer, called):
    result = check(name, answer)
    assert result.status == "borrowed"
    assert f"`{called}`" in str(result)


def jacobian_above(least):
    def answer(layer, x):
        return torch.autograd.functional.jacobian(layer, x).abs().amax(dim=(1, 3)) > least

    return answer


def of_gradients(layer, x):
    x = x.clone().requires_grad_()
    y = layer(x).cumsum(-1).sum(-1)
    rows = [torch.autograd.grad(out, x, retain_graph=True)[0] for out in y]
    return torch.stack([(row != 0).any(-1) for row in rows])


def test_an_influence_has_a_least_size_and_is_not_a_sum():
    assert "1e-6" in REGISTRY["influence"].text
    for least in (0.0, 1e-7, 1e-6):
        assert check("influence", jacobian_above(least))
    for least in (1e-5, 1e-4, 1e-3):
        result = check("influence", jacobian_above(least))
        assert result.mistakes == ("a weak influence is overlooked",)
    assert check("influence", of_gradients).mistakes == ("differences are added with their signs",)


def column_by_column(rows, columns, d):
    code = torch.zeros(columns, rows, d)
    down, right = torch.arange(rows) * 0.3, torch.arange(columns)[:, None] * 0.3
    code[..., 0], code[..., 1] = down.sin(), down.cos()
    code[..., 2], code[..., 3] = right.sin(), right.cos()
    return code.flatten(0, 1)


def a_sum(rows, columns, d):
    at = torch.arange(rows * columns)[:, None]
    speeds = 10_000.0 ** (-torch.arange(d // 4) / (d // 4))
    angles = (at // columns) * speeds, (at % columns) * speeds
    both = sum(torch.cat([a.sin(), a.cos()], dim=1) for a in angles)
    return F.pad(both, (0, d - both.shape[1]))


def test_likely_slips_in_designs_of_positions_have_names():
    (name,) = check("grid_code", column_by_column).mistakes
    assert name == "the patches are numbered column by column"
    (name,) = check("grid_code", a_sum).mistakes
    assert name == "row and column share their features"


def largest_weights(weights, budget):
    return torch.stack([weights.topk(budget).values.sum(-1).mean(), bet_2(weights, budget)])


def bet_2(weights, budget):
    return REGISTRY["kept_by_bets"].solution(weights, budget)[1]


def as_many_as_possible(kept, cost, most):
    return most if kept == 1 else REGISTRY["draft_ahead"].solution(kept, cost, most)


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("kept_by_bets", largest_weights, "the largest weights are taken, not the newest keys"),
        (
            "draft_ahead",
            as_many_as_possible,
            "where no token is thrown away, as many as possible are drafted",
        ),
        (
            "where_attention_costs_most",
            1537,
            "the first length is given at which scores and average cost more",
        ),
        ("gated_network", lambda x, g, u, w: (F.relu6(x @ g) * (x @ u)) @ w, "the activation is "
         "not SiLU"),
        ("gated_network", lambda x, g, u, w: (F.hardtanh(x @ g) * (x @ u)) @ w, "the activation "
         "is not SiLU"),
    ],
)  # fmt: skip
def test_likely_slips_have_names(name, answer, said):
    assert check(name, answer).mistakes == (said,)


def test_a_prefix_at_different_ends_shows_beside_a_wrong_scale():
    def answer(queries, keys, values, prefix_keys, prefix_values, real_keys):
        batch, m = len(keys), len(prefix_keys)
        k = torch.cat([keys, prefix_keys.expand(batch, -1, -1)], 1)
        v = torch.cat([prefix_values.expand(batch, -1, -1), values], 1)
        scores = queries @ k.mT / k.shape[1] ** 0.5
        mask = torch.cat([torch.ones(batch, m, dtype=torch.bool), real_keys], 1)
        return scores.masked_fill(~mask[:, None], -math.inf).softmax(-1) @ v

    assert set(check("prefix_attend", answer).mistakes) == {
        "the prefix stands at one end of the keys and at the other of the values",
        "the root of the number of keys is taken",
    }
