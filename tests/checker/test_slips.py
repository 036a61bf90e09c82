"""Slips that most inputs do not show, and kinds of slips that a change in the code tells."""

import ast
import math

import numpy as np
import pytest
import torch

from course_utils.checker import catalogue, check
from course_utils.checker.resized import cut, sums_to_one
from course_utils.checker.slips import EXPRESSIONS, NO_SMALL, statements
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


def one_maximum(queries, keys, values):
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    powers = torch.exp(scores - scores.amax((1, 2), keepdim=True)).tril()
    weights = powers / powers.sum(-1, keepdim=True)
    return weights @ values, weights


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("padding_visible", of_one_sentence),
        ("pooled", turned_where_square),
        ("shifted", of_fixed_ids),
        ("shifted", without_repeats),
        ("clipped_precision", in_small_letters),
        ("causal_attention", one_maximum),
    ],
)
def test_what_the_probes_have_in_common_does_not_let_a_slip_pass(name, answer):
    result = check(name, answer)
    assert not result
    assert "It is right on the usual inputs, but not " in str(result)


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
    assert "at `1`, another number is due: with this one change it is right" in text
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
        ("scaled_attention", keeps_a_divisor_from_0, "at `0.001`, another number is due"),
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
