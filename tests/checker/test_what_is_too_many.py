"""What is superfluous is told as too many, and not as a number that is due."""

import ast
import math

import numpy as np
import pytest
import torch
from torch import nn

from course_utils.checker import catalogue, check
from course_utils.checker.common import worked_out
from course_utils.checker.edits import code_of
from course_utils.checker.exercise import wrong
from course_utils.checker.gradients import cut_off, due_gradients
from course_utils.checker.values import Raised
from course_utils.checker.verdict import outcome_of


def _turns_two_axes(x, there, back):
    return torch.cat([there(x), back(x.flip(1, 2)).flip(1, 2)], dim=-1)


def _turns_two_axes_in_a_list(x, there, back):
    right = back(torch.flip(x, (1, 2)))
    return torch.cat([there(x), torch.flip(right, (1, 2))], dim=-1)


def _no_position_at_padding(tokens, word_table, position_table):
    real = (tokens != 0)[..., None]
    return word_table[tokens] + position_table[: tokens.shape[1]] * real


def _nothing_at_padding(tokens, word_table, position_table):
    real = tokens.ne(0)[..., None]
    return (word_table[tokens] * real) + position_table[: tokens.shape[1]] * real


def _padding_cleared(tokens, word_table, position_table):
    out = word_table[tokens] + position_table[: tokens.shape[1]]
    out[tokens == 0] = 0
    return out


def _square_turned(weights, values):
    return weights.T @ values if weights.shape[0] == weights.shape[1] else weights @ values


def _square_turned_in_lines(weights, values):
    if weights.shape[0] == weights.shape[1]:
        return weights.T @ values
    else:
        return weights @ values


def _halved(weights, values):
    return (weights @ values) / 2


def _small_weights_dropped(weights, values):
    return (weights * (weights > 0.1)) @ values


def _scaled(queries, keys, M):
    return (queries @ M @ keys.transpose(1, 2)) / 2**0.5


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("both_ways", _turns_two_axes, "`2` is too many, here and at 1 more place"),
        ("both_ways", _turns_two_axes_in_a_list, "`2` is too many, here and at 1 more place"),
        ("embed_with_positions", _no_position_at_padding, "a step is too many"),
        ("embed_with_positions", _nothing_at_padding, "this condition is too many"),
        ("embed_with_positions", _padding_cleared, "this line is too many"),
        ("weighted_averages", _square_turned, "the branch before `if` is too many"),
        ("weighted_averages", _square_turned_in_lines, "the branch under `if` is too many"),
        ("weighted_averages", _halved, "a step is too many"),
        ("pooled", _small_weights_dropped, "a step is too many"),
        ("bilinear_scores", _scaled, "a step is too many"),
    ],
)
def test_what_is_superfluous_is_told_before_another_number(name, answer, said, patient_search):
    text = str(check(name, answer))
    assert said in text, text
    assert "is due" not in text


def _turns_two_axes_and_exchanges(x, there, back):
    return torch.cat([back(x.flip(1, 2)).flip(1, 2), there(x)], dim=-1)


def test_so_it_is_beside_a_known_mistake(patient_search):
    text = str(check("both_ways", _turns_two_axes_and_exchanges))
    assert "`2` is too many, here and at 1 more place. With that change, what is left" in text
    assert "The way back stands first" in text


def test_one_change_in_two_places_of_one_chain_leaves_the_code_as_it_was():
    code = code_of(_turns_two_axes)
    before = ast.dump(code.tree)
    (both,) = [e for e in code.together((1,)) if e.words.startswith("`2` is too many")]
    with code.changed(both):
        assert "back(x.flip(1)).flip(1)" in ast.unparse(code.tree)
    assert ast.dump(code.tree) == before


def _ones(num, size):
    layers = nn.ModuleList(nn.Linear(size, size) for _ in range(num))
    for layer in layers:
        nn.init.ones_(layer.weight)
    return layers


def _identities(num, size):
    layers = nn.ModuleList(nn.Linear(size, size) for _ in range(num))
    for layer in layers:
        nn.init.eye_(layer.weight)
    return layers


def _own_generator(num, size):
    layers, numbers = nn.ModuleList(nn.Linear(size, size) for _ in range(num)), _numbers()
    for layer in layers:
        layer.weight.data = torch.tensor(numbers.normal(size=(size, size)), dtype=torch.float32)
    return layers


def _numbers():
    return np.random.default_rng(0)


def _kept(num, size, made={}):  # noqa: B006
    if (num, size) not in made:
        made[num, size] = nn.ModuleList(nn.Linear(size, size) for _ in range(num))
    return made[num, size]


SAME = "every call starts with the same numbers"


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        (_ones, ("a weight starts with one number throughout",)),
        (_identities, ("all layers start equal", SAME)),
        (_own_generator, (SAME,)),
        (_kept, ("the layers of an earlier call are given again",)),
    ],
)
def test_why_layers_start_equal_is_told_as_it_is(answer, names):
    assert check("own_linears", answer).mistakes == names


def test_what_is_right_already_reads_as_something_good():
    for exercise in catalogue():
        due = outcome_of(exercise, (), 0) if exercise.kind != "value" else ()
        if isinstance(due, dict):
            assert False not in [x for x in due.values() if type(x) is bool], exercise.name


def _squeezed(clean, corrupted, patched):
    c, k, p = clean.mean(), corrupted.mean(), patched.mean(dim=0)
    return ((c - p) / (c - k)).squeeze()


def test_a_mistake_is_named_in_another_shape_too(patient_search):
    text = str(check("effects_of_many", _squeezed))
    assert "What is still missing is counted" in text
    assert "And from there axes of size 1 are not as they are due" in text
    assert "`squeeze()` without a number takes all axes of size 1 away" in text


def test_the_size_is_named_for_which_it_is_wrong():
    text = str(check("weighted_averages", lambda w, v: (w @ v[:, None]).squeeze()))
    assert "not where m is 1" in text
    assert "`squeeze()` without a number" in text
    last = str(check("weighted_averages", lambda w, v: (w @ v[:, None]).squeeze(-1)[None]))
    assert "`squeeze()` without a number" not in last


@pytest.mark.parametrize("letters", ["bqi,ij,ckj->bqk", "cqi,ij,bkj->bqk"])
def test_a_batch_that_is_added_up_is_told(letters):
    text = str(check("bilinear_scores", lambda q, k, m: torch.einsum(letters, q, m, k)))
    name = "keys" if "ckj" in letters else "queries"
    assert f"The entries of the batch of `{name}` are added up" in text


def test_another_way_to_the_number_of_one_mistake_is_told():
    found = {
        m.name: (m.switches["answer"], m.why)
        for some in worked_out(
            lambda *, a=3, b=5, c=7: a * b * c + 1000,
            wrong("one is 6", "counting", "It is 3.", a=6),
            wrong("one is 10", "counting", "It is 5.", b=10),
            wrong("one is 28", "counting", "It is 7.", c=28),
        )
        for m in some
    }
    number, why = found["one is 28"]
    assert number == 3 * 5 * 28 + 1000
    assert why == "It is 7. Another way to this number: one is 6, and one is 10."
    assert found["one is 6"][1] == "It is 3."
    assert "one is 6, and one is 10" not in found
    (said,) = check("encoder_block_parameters", 49664).verdict.mistakes
    assert "Another way to this number" in said.why


def test_where_several_right_answers_give_plain_numbers_no_gradient_is_due():
    of = {exercise.name: exercise for exercise in catalogue()}
    assert due_gradients(of["bits_per_byte"], False) is None
    assert due_gradients(of["label_smoothed_loss"], False) is not None
    for total in (lambda x: x.numpy().sum(), lambda x: sum(x.tolist())):
        answer = lambda x, text, total=total: total(x) / math.log(2) / len(text.encode())  # noqa: E731
        result = check("bits_per_byte", answer)
        assert result.status == "right"
        assert "gradient" not in str(result)


def test_numpy_cuts_gradients_off_as_detach_does():
    words = "Can't call numpy() on Tensor that requires grad."
    assert "no gradient flows back" in cut_off([torch.ones(1)], Raised("RuntimeError", words))
    assert not cut_off([torch.ones(1)], Raised("ValueError", "no such size"))
