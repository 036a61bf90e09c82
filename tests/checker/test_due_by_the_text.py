"""What a text leaves open is right in every form, and what is said of an answer is true of it."""

import re

import pytest
import torch
import torch.nn.functional as F

from course_utils.checker import catalogue, check
from course_utils.checker.exercise import REGISTRY, call
from course_utils.checker.gradients import cut_off
from course_utils.checker.runner import outcome
from course_utils.checker.widen import widened

NUMBERS = [e.name for e in catalogue() if e.kind == "value" and type(e.solution()) is float]


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_rounded_to_three_digits_is_right(name):
    exercise = REGISTRY[name]
    rounded = float(f"{exercise.solution():.2e}")
    assert check(name, rounded).status == "right"
    assert all(check(name, m.switches["answer"]).status != "right" for m in exercise.mistakes)


def test_a_text_that_asks_for_digits_asks_for_three():
    said = [f"{e.text} {e.solution.__doc__}" for e in catalogue()]
    asked = re.findall(r"(\w+) digits\s+(?:are enough|after the point)", " ".join(said))
    assert len(asked) >= 3
    assert {word.lower() for word in asked} == {"three"}


@pytest.mark.parametrize("most", [1.0, 6.0])
def test_an_upper_bound_of_an_activation_has_a_name(most):
    def answer(x, W_1, b_1, W_2, b_2):
        return (x @ W_1 + b_1).clamp(0, most) @ W_2 + b_2

    assert check("feed_forward", answer).mistakes == ("large numbers are cut off",)


def test_the_base_forgotten_for_one_head_and_a_pair_of_which_one_is_harmless():
    def answer(base, loss, allowed):
        alone = loss.diagonal() <= allowed
        return (alone[:, None] | alone) & (loss - base > allowed)

    assert set(check("hidden_partners", answer).mistakes) == {
        "one of the two may be missed alone",
        "losses are not compared with the base",
    }


def test_the_value_of_key_0_forgotten():
    (name,) = check("average_pooling_answer", (20 + 60) / 3).mistakes
    assert "key 0 is left out" in name


def test_what_is_said_of_repeat_and_of_tile_is_what_torch_does():
    rows = torch.tensor([[1, 2], [3, 4]])
    with pytest.raises(RuntimeError):
        rows.repeat(2)
    assert rows.tile(2).tolist() == [[1, 2, 1, 2], [3, 4, 3, 4]]
    tiled = check("lengths_for_heads", lambda lengths, h: lengths.tile(h))
    assert tiled.mistakes == ("lengths are tiled along the last axis",)
    repeated = check("lengths_for_heads", lambda lengths, h: lengths.repeat(h).reshape(-1))
    assert "it asks for two numbers and stops" in str(repeated)


# ---------------------------------------------------------------- open tasks


def _truths(exercise, args):
    found = outcome(exercise.play, exercise.solution, args, 0)
    return [x for x in found.values() if type(x) is bool] if isinstance(found, dict) else []


OPEN = [
    e for e in catalogue()
    if e.kind == "function" and e.play is not call and all(_truths(e, e.probes[0]) or [False])
]  # fmt: skip


@pytest.mark.parametrize("exercise", OPEN, ids=lambda e: e.name)
def test_no_property_is_asked_where_the_solution_lacks_it(exercise):
    assert all(all(_truths(exercise, args)) for _, args in widened(exercise))


@pytest.mark.parametrize(
    "design",
    [
        lambda x: (-8 * F.normalize(x, dim=-1) @ F.normalize(x, dim=-1).T).softmax(-1),
        lambda x: (lambda d: d / d.sum(1, keepdim=True))(torch.cdist(x, x) + 1e-20),
        lambda x: (lambda d: (3 * d / d.amax(1, keepdim=True).clamp(min=1e-12)).softmax(-1))(
            torch.cdist(x, x)
        ),
    ],
    ids=["directions", "distances", "the farthest is 1"],
)
def test_weights_may_be_the_same_for_tokens_of_any_size(design):
    assert check("look_elsewhere", design).status == "right"


def test_of_numbers_that_are_none_this_alone_is_told_and_no_number_that_mends_by_luck():
    def look_elsewhere(x):
        likes = F.relu(x @ x.T)
        likes.fill_diagonal_(0)
        return likes / likes.sum(dim=1, keepdim=True)

    said = str(check("look_elsewhere", look_elsewhere))
    assert "no weight is NaN or infinite" in said
    assert "no weight is negative." not in said
    assert "is due" not in said


# ---------------------------------------------------------------- ranges, lengths, gradients


def _with_lead(lead):
    def head_by_hand():
        W_q, W_k, W_v = torch.zeros(3, 6, 6)
        W_q[1, 0], W_k[0, 0], W_v[3:, 3:] = lead, 1.0, torch.eye(3)
        return W_q, W_k, W_v

    return head_by_hand


@pytest.mark.parametrize("lead", [16.0, 17.2, 25.0, 200.0])
def test_a_lead_that_is_enough_for_60_tokens_is_right(lead):
    assert check("head_by_hand", _with_lead(lead)).status == "right"


@pytest.mark.parametrize("lead", [2.0, 9.0, 10.5, 15.0])
def test_a_lead_that_is_too_small_for_the_longest_sentence_is_told_so(lead):
    assert check("head_by_hand", _with_lead(lead)).mistakes == (
        "the scores are too close together",
    )


def test_gradients_that_differ_by_rounding_are_not_cut_off():
    def gaussian_weights(queries, keys, width):
        d = -0.5 * ((queries[:, None] - keys) / width) ** 2
        return torch.exp(d - torch.logsumexp(d, 1, keepdim=True))

    assert "gradient" not in str(check("gaussian_weights", gaussian_weights))
    due = torch.tensor([1000.0, 1e-3])
    assert not cut_off([due], [due + 1e-2])
    assert cut_off([due.double()], [due.double() + 1e-2])
    assert cut_off([due, torch.ones(2)], [due, torch.tensor([1.0, 0.0])])


# ---------------------------------------------------------------- where an answer stops


def test_a_condition_is_told_that_no_other_input_belies():
    def put_together(patches, rows):
        side = int(patches.shape[1] ** 0.5)
        grid = patches.reshape(rows, rows, side, side)
        return grid.permute(0, 2, 1, 3).reshape(rows * side, rows * side)

    said = str(check("put_together", put_together))
    assert "side * side`, and" not in said
    assert "stops where `N` is not `rows * rows`" in said
