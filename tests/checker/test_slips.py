"""Slips that most inputs do not show, and kinds of slips that a change in the code tells."""

import ast
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from course_utils.chapters import contents
from course_utils.checker import catalogue, check
from course_utils.checker.resized import cut, sums_to_one
from course_utils.checker.slips import EXPRESSIONS, NO_SMALL
from course_utils.checker.slips_of_lines import statements
from course_utils.checker.special_inputs import at_limits, of_weights
from course_utils.checker.widen import all_agree, widened

BY_NAME = {e.name: e for e in catalogue()}


@pytest.fixture(autouse=True)
def _patient(patient_search):
    """However busy the machine is."""


# ------------------------------------------------------------------- inputs that are made by rule


def of_one_sentence(tokens, pad):
    return (tokens != pad).squeeze()[..., None, None, :]


def turned_where_square(weights, values):
    return weights.T @ values if len(weights) == len(values) else weights @ values


def of_fixed_ids(sentence, bos, eos):
    return [1, *sentence], [*sentence, 2]


def without_repeats(sentence, bos, eos):
    words = list(dict.fromkeys(sentence))
    return [bos, *words], [*words, eos]


def in_small_letters(candidate, reference, n):
    words = [[w.lower() for w in some] for some in (candidate, reference)]
    return BY_NAME["clipped_precision"].solution(*words, n)


def strictly_below(base, loss, allowed):
    rise = loss - base
    alone = rise.diagonal() < allowed
    return alone[:, None] & alone & (rise > allowed)


def allowed_is_missed(base, loss, allowed):
    rise = loss - base
    alone = rise.diagonal() <= allowed
    return (alone[:, None] & alone & (rise >= allowed)).fill_diagonal_(False)


def divided_by_the_norm(gradients, limit):
    norm = math.sqrt(sum(g.square().sum().item() for g in gradients))
    return [g * min(1.0, limit / norm) for g in gradients]


def lifted_by_a_bias(bias):
    def answer(d):
        eye, zeros = torch.eye(d), torch.zeros(d)
        lift = torch.full((d,), bias)
        W_2 = torch.cat([2 * eye, -eye])
        return torch.cat([eye, eye], 1), torch.cat([zeros, lift]), W_2, lift

    return answer


def of_weights_above_zero(map, distance):
    at = map.diagonal(-distance, dim1=-2, dim2=-1)
    return at.sum((0, 2)) / (at > 0).sum((0, 2))


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("padding_visible", of_one_sentence),
        ("pooled", turned_where_square),
        ("shifted", of_fixed_ids),
        ("shifted", without_repeats),
        ("clipped_precision", in_small_letters),
        ("hidden_partners", strictly_below),
        ("hidden_partners", allowed_is_missed),
        ("clip_by_norm", divided_by_the_norm),
        *(("absolute_network", lifted_by_a_bias(bias)) for bias in (5.0, 10.0, 100.0)),
    ],
)
def test_what_the_probes_have_in_common_does_not_let_a_slip_pass(name, answer):
    result = check(name, answer)
    assert not result
    assert "It is right on the usual inputs, but not " in str(result)


def test_weights_of_zero_count():
    slip = "queries that give the key a weight of 0 are not counted"
    assert check("weight_back", of_weights_above_zero).mistakes == (slip,)


def test_no_other_bias_is_said_to_be_due_where_none_is_right():
    def lifted(d):
        eye = torch.eye(d)
        b_1 = torch.cat([torch.zeros(d), torch.full((d,), 5.0)])
        W_2 = torch.cat([2 * eye, -eye])
        return torch.cat([eye, eye], 1), b_1, W_2, torch.full((d,), 5.0)

    said = str(check("absolute_network", lifted))
    assert "no bias is large enough for every `x`" in said
    assert "is due" not in said


def test_zeros_are_tried_where_something_is_divided_and_nothing_chosen():
    with_zeros = {
        name
        for name in ("clip_by_norm", "rms_normalise", "beam_step", "undo_in_one_run")
        if any("holds no number but 0" in words for words, _ in widened(BY_NAME[name]))
    }
    assert with_zeros == {"clip_by_norm", "rms_normalise"}


@pytest.mark.parametrize(("least", "right"), [(1e-4, True), (1e-3, False), (1e-2, False)])
def test_a_leak_counts_however_small_it_is(least, right):
    def leaks(logits_of, target, vocabulary):
        before, columns = logits_of(target)[0], []
        for s in range(target.shape[1]):
            other = target.clone()
            other[0, s] = (other[0, s] + 1) % vocabulary
            columns.append((logits_of(other)[0] - before).abs().amax(-1) > least)
        return torch.stack(columns, 1).triu(1)

    result = check("leaking_pairs", leaks)
    assert result.status == ("right" if right else "mistake")
    assert ("small changes are not counted" in result.mistakes) is not right


def test_no_right_answer_loads_what_takes_seconds_to_load():
    for _, module in contents("exercises"):
        tree = ast.parse(Path(module.__file__).read_text("utf-8"))
        used = {ast.unparse(n) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
        assert not used & {"torch.func", "torch.optim", "torch.compile", "torch.jit"}, module


def test_a_number_stands_exactly_at_a_limit_and_just_beyond_it():
    table = torch.tensor([[0.5, 0.9], [0.9, 0.5]])
    made = dict(at_limits(["base", "loss", "allowed"], (0.3, table, 0.1)))
    for words, limit in (("`allowed`", 0.125), ("`allowed` above `base`", 0.25 + 0.125)):
        at, beyond = (
            made[f"where a number of `loss` is {how} {words}"]
            for how in ("exactly", "just more than")
        )
        assert at[0] == 0.25
        assert at[2] == 0.125
        assert (at[1] == limit).any()
        assert at[1].equal(at[1].T)
        assert (beyond[1] == limit + 1 / 64).any()
        assert not (beyond[1] == limit).any()
    free = torch.tensor([[0.5, -0.9]])  # what may be of both signs is no amount
    assert not [*at_limits(["base", "weight", "allowed"], (0.3, free, 0.1))]
    assert not [*at_limits(["base", "loss", "width"], (0.3, table, 0.1))]


@pytest.mark.parametrize("name", ["weighted_averages", "load_balance", "nucleus", "weight_back"])
def test_weights_are_exactly_zero_on_some_inputs(name):
    words = " ".join(words for words, _ in widened(BY_NAME[name]))
    assert "gives each row's whole weight to one key" in words
    assert "has a weight of 0 in each row" in words


def test_weights_with_zeros_are_still_weights():
    maps = torch.rand(2, 3, 4, 4, generator=torch.Generator().manual_seed(0)).softmax(-1)
    made = dict(of_weights(maps))
    assert len(made) == 3
    assert all(sums_to_one(x) and (x == 0).any(-1).all() for x in made.values())
    assert (maps > 0).all()
    assert not [*of_weights(2 * maps)]


def test_no_further_input_is_beyond_what_the_text_allows():
    for name, argument, most in (("previous_token_head", 0, 8), ("grid_code", 1, 8)):
        assert all(args[argument] <= most for _, args in widened(BY_NAME[name]))
    assert all(args[2] >= 8 for _, args in widened(BY_NAME["grid_code"]))


def test_weights_that_are_cut_still_sum_to_1():
    weights = torch.tensor([[0.5, 0.25, 0.25], [0.0, 0.2, 0.8]])
    assert cut(weights, 3, 2).tolist() == [[pytest.approx(2 / 3), pytest.approx(1 / 3)], [0.0, 1.0]]
    assert not sums_to_one(torch.tensor([0.5, 0.6]))
    assert cut(torch.tensor([1.0, 3.0, 2.0]), 3, 2).tolist() == [1.0, 3.0]
    for name in ("weighted_averages", "pooled"):
        assert all(sums_to_one(args[0]) for _, args in widened(BY_NAME[name]))


def test_an_answer_that_uses_that_weights_sum_to_1_is_right():
    def averaged(weights, values):
        rows = [np.average(values.numpy(), weights=row) for row in weights.numpy()]
        return torch.tensor(rows, dtype=torch.float32)

    assert check("weighted_averages", averaged)


def test_further_inputs_find_the_same_random_numbers_whatever_their_place():
    seen = []

    def random(tokens, pad):
        seen.append(torch.rand(1).item())
        return (tokens != pad)[:, None, None]

    assert check("padding_visible", random)
    exercise = BY_NAME["padding_visible"]
    further = seen[len(exercise.probes) :]
    assert sum(x == seen[0] for x in further) >= len(widened(exercise))
    assert all(all_agree(exercise, args) for _, args in widened(exercise))


# ------------------------------------------------------------------------------ what is said of it


def test_what_only_further_inputs_show_is_mended_in_the_code():
    def early(candidate_length, reference_length):
        if candidate_length >= reference_length - 1:
            return 1.0
        return math.exp(1 - reference_length / candidate_length)

    text = str(check("brevity_penalty", early))
    assert "at `reference_length - 1`, a step is too many: with this one change it is" in text
    assert "It is right on the usual inputs, but not where" in text


def test_an_error_is_not_taken_for_a_missing_return():
    def of_three(places):
        three = torch.eye(3)
        return 3 * three[places], 3 * three, -20 * torch.ones(3)

    text = str(check("word_order", of_three))
    assert "return` missing" not in text
    assert "IndexError" in text


def turns_a_square(queries, keys, M):
    if M.shape[0] == M.shape[1]:
        M = M.T
    return queries @ M @ keys.mT


def sorts_the_values(weights, values):
    return weights @ values.sort().values


def leaves_out_small_weights(weights, values):
    rows = [
        [float(w * v) for w, v in zip(row, values, strict=True) if w > row.mean()]
        for row in weights
    ]
    return torch.tensor([sum(row) for row in rows])


def takes_the_last(hidden, outputs, lengths, score):
    made = []
    for b, n in enumerate(lengths.tolist()):
        scores = score(hidden[-1:, b, None], outputs[b : b + 1, :n]).flatten()
        made.append(scores.softmax(0) @ outputs[b, -n:])
    return torch.stack(made)


def keeps_a_divisor_from_0(queries, keys, values):
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    powers = (scores - scores.amax(-1, keepdim=True)).exp()
    weights = powers / (powers.sum(-1, keepdim=True) + 1e-3)
    return weights @ values, weights


def hides_not_low_enough(queries, keys, values):
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    hidden = torch.ones(scores.shape[1:]).tril() == 0
    scores[:, hidden] = -1e3
    weights = scores.softmax(-1)
    return weights @ values, weights


def sees_no_more_than_it_said(inputs, state, outputs, attend, cell):
    states = []
    for t in range(inputs.shape[1]):
        context = attend(state, outputs[:, : t + 1])
        state = cell(torch.cat([context, inputs[:, t]], -1), state)
        states.append(state)
    return torch.stack(states, 1)


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("bilinear_scores", turns_a_square, "at `M = M.T`, this line is too many"),
        ("pooled", sorts_the_values, "at `values.sort().values`, a step is too many"),
        (
            "weighted_averages",
            leaves_out_small_weights,
            "at `w > row.mean()`, this condition is too many",
        ),
        ("decoder_context", takes_the_last, "at `outputs[b, -n:]`, a slice begins or ends"),
        ("scaled_attention", keeps_a_divisor_from_0, "the small number is too many"),
        ("causal_attention", hides_not_low_enough, "another number is due"),
        ("run_decoder", sees_no_more_than_it_said, "at `(:, :t + 1)`, "),  # slow to play
    ],
)
def test_the_change_that_mends_it_is_told(name, answer, said):
    text = str(check(name, answer))
    assert said in text, text
    assert "with this one change it is right on all" in text


def test_break_and_continue_are_taken_for_each_other():
    loop = ast.parse("for x in y:\n    if x:\n        break\n").body[0]
    new = {words: body for words, _, body in statements(loop.body[0].body)}
    assert isinstance(new["`break` and `continue` are exchanged"][0], ast.Continue)


def test_a_small_number_may_be_too_many():
    for text in ("a + 1e-9", "a.clamp(min=1e-12)", "a - 1e-3"):
        node = ast.parse(text, mode="eval").body
        left = [
            ast.unparse(new) for words, new in EXPRESSIONS[0](node, [], []) if words == NO_SMALL
        ]
        assert left == ["a"]
    for text in ("a + 1.0", "a.clamp(min=0.5)"):
        node = ast.parse(text, mode="eval").body
        assert all(words != NO_SMALL for words, _ in EXPRESSIONS[0](node, [], []))


def test_a_whole_number_is_asked_only_where_no_slip_makes_a_fraction():
    assert "whole number" not in str(check("right_divisor", 1 / 19))
    assert "A whole number is asked" in str(check("additive_parameters", 171.5))


def test_two_mistakes_are_named_though_a_smaller_input_stops_the_answer():
    def one_more(queries, keys, k):  # of n keys there are no n + 1
        apart = (queries[:, None] - keys).abs()
        return torch.zeros_like(apart).scatter(1, apart.topk(k + 1, largest=False).indices, 1.0)

    names = {"one key too many is chosen", "the weights do not sum to 1"}
    assert set(check("nearest_weights", one_more).mistakes) == names
