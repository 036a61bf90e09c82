"""What holds for the probes alone is not enough: other plain numbers, sizes and logits are tried.

And what is said of typed numbers, of gradients and of errors is true however the answer looks.
"""

import math

import pytest
import torch
import torch.nn.functional as F

from course_utils.checker import catalogue, check
from course_utils.checker.causes import stops_where
from course_utils.checker.common import worked_out
from course_utils.checker.exercise import wrong
from course_utils.checker.gradients import cut_off, of_inputs
from course_utils.checker.plain_inputs import _times_as_large, of_large_sizes
from course_utils.checker.runner import outcome
from course_utils.checker.slips import _shorter_and_swapped
from course_utils.checker.special_inputs import of_logits
from course_utils.checker.stated_sizes import as_stated
from course_utils.checker.values import Raised
from course_utils.checker.verdict import name_mistakes, outcome_of
from course_utils.checker.widen import usual, widened

EXERCISES = {e.name: e for e in catalogue()}


def by_search(low, high):
    def width_for_ratio(near, far, ratio):
        a, b = low, high
        for _ in range(100):
            middle = math.sqrt(a * b)
            large = (far**2 - near**2) / (2 * middle**2) > math.log(ratio)
            a, b = (middle, b) if large else (a, middle)
        return middle

    return width_for_ratio


@pytest.mark.parametrize(("low", "high"), [(1e-2, 10.0), (1e-1, 1e6), (1e-6, 20.0)])
def test_a_search_between_fixed_ends_is_no_answer(low, high):
    assert check("width_for_ratio", by_search(low, high)).status != "right"
    assert check("width_for_ratio", by_search(1e-9, 1e9)).status == "right"


def test_other_plain_numbers_keep_the_order_of_the_probes():
    exercise = EXERCISES["width_for_ratio"]
    made = [args for p in exercise.probes for _, args in _times_as_large(exercise, p)]
    assert len(made) > 20
    assert all(0 < near < far and ratio > 1 for near, far, ratio in made)
    hidden = EXERCISES["find_rate"]  # its numbers are not the answer's to see
    assert not [*_times_as_large(hidden, hidden.probes[0])]
    smooth = EXERCISES["label_smoothed_loss"]
    shares = [x[2] for p in smooth.probes for _, x in _times_as_large(smooth, p)]
    assert shares
    assert all(0 < share < 1 for share in shares)


def test_sizes_far_larger_than_the_probes_are_tried_where_a_text_allows_them():
    exercise = EXERCISES["shift_matrix"]
    assert [args for _, args in of_large_sizes(exercise, exercise.probes[0])] == [(1, 64)]
    for name in ("own_code", "score_gradient", "find_rate"):
        assert not [*of_large_sizes(EXERCISES[name], EXERCISES[name].probes[0])]


def test_a_fit_that_is_right_for_small_tables_only_is_no_answer():
    def shift_matrix(k, d_model):
        speed = 10000 ** (-torch.arange(0, d_model, 2).double() / d_model)
        angles = torch.outer(torch.arange(100 + k).double(), speed)
        table = torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)
        inverse = torch.linalg.pinv(table[:100], rtol=1e-9)
        return (inverse @ table[k:]).float()

    result = check("shift_matrix", shift_matrix)
    assert result.status != "right"
    assert "with 64 columns" in str(result)


def smoothed_by_log(logits, targets, smoothing):
    size = logits.shape[1]
    wanted = (1 - smoothing) * F.one_hot(targets, size) + smoothing / size
    return -(wanted * logits.softmax(-1).log()).sum(-1).mean()


def perplexity_by_log(logits, targets, pad):
    chances = logits.softmax(-1).gather(-1, targets[..., None]).squeeze(-1)
    return (-chances[targets != pad].log().mean()).exp()


@pytest.mark.parametrize(
    ("name", "answer"),
    [("label_smoothed_loss", smoothed_by_log), ("text_perplexity", perplexity_by_log)],
)
def test_the_logarithm_of_a_softmax_that_is_0_is_named(name, answer):
    assert check(name, answer).mistakes == ("the logarithm is taken of a softmax that is 0",)


def test_one_logit_far_above_the_others_is_tried():
    logits = torch.tensor([[0.5, -1.0, 2.0], [0.0, 1.0, -1.0]])
    made = [x for _, x in of_logits("logits", logits)]
    assert [x[0].argmax().item() for x in made] == [1, 2]
    assert all(x[0].softmax(-1).min() == 0 and x[1].equal(logits[1]) for x in made)
    assert [x.argmax().item() for _, x in of_logits("next_logits", logits[0])] == [1, 2]
    assert not [*of_logits("scores", logits)]
    for name in ("label_smoothed_loss", "text_perplexity", "token_loss", "expert_shares"):
        assert any("above the others" in words for words, _ in widened(EXERCISES[name])), name


def parts_of(weights, budget):
    back = torch.arange(len(weights))[:, None] - torch.arange(len(weights))
    first = torch.arange(len(weights)) == 0
    near = (back >= 0) & (back < budget - 1) | (first & (back >= 0))
    return weights, ((back >= 0) & (back < budget), near)


def sums(weights, masks):
    return [(weights * mask).sum(1).mean() for mask in masks]


@pytest.mark.parametrize(
    "answer",
    [
        lambda w, b: tuple(sums(*parts_of(w, b))),
        lambda w, b: sums(*parts_of(w, b)),
        lambda w, b: tuple(torch.stack(sums(*parts_of(w, b)))),
        lambda w, b: torch.stack([1 - x for x in sums(w, [~m for m in parts_of(w, b)[1]])]),
    ],
    ids=["tuple", "list", "unpacked", "of what is lost"],
)
def test_of_a_whole_gradient_nothing_is_said_to_be_lost(answer):
    exercise = EXERCISES["kept_by_bets"]
    assert check("kept_by_bets", answer).status == "right"
    due, given = (
        outcome(of_inputs(exercise.play), x, exercise.probes[-1], 0)
        for x in (exercise.variant(), answer)
    )
    assert due[0].any()
    assert not cut_off(due, given)


def test_a_part_of_a_gradient_that_is_lost_is_still_told():
    text = str(check("bilinear_scores", lambda q, k, m: q @ m @ k.detach().mT))
    assert "part of the gradient does not flow back" in text


def test_a_number_that_two_slips_make_in_two_ways_is_not_put_down_to_one():
    result = check("keys_without_cache", 380)
    assert not result.mistakes
    assert "the last or the first step is left out, and the half is forgotten" in str(result)
    assert "the last or the first step is left out, and values are counted" in str(result)


def test_two_pairs_of_slips_with_one_number_are_both_kept():
    made = worked_out(
        lambda *, a=7, b=1, c=1: a * b * c,
        wrong("a", "counting", "A.", a=5),
        wrong("b", "counting", "B.", b=3),
        wrong("c", "counting", "C.", c=3),
    )
    names = {m.name for (m,) in made if m.switches["answer"] == 15}
    assert names == {"a, and b", "a, and c"}


def test_several_wrong_letters_where_one_is_asked_get_their_names():
    for given in (["b", "d"], "bd", "B, D"):
        result = check("weights_mistake", given)
        assert len(result.mistakes) == 2, given
        assert "1 letter is asked" in str(result)
    assert not check("weights_mistake", "bc").mistakes  # one of them is right


def test_where_an_answer_stops_is_said_in_words():
    def neighbour_window(num_tokens, radius):
        mask = torch.zeros(num_tokens, num_tokens)
        for r in range(-radius, radius + 1):
            mask += torch.diag(torch.ones(num_tokens - abs(r)), r)
        return mask.bool()

    said = str(check("neighbour_window", neighbour_window))
    assert "It stops where `radius` is larger than `num_tokens`" in said
    exercise, error = EXERCISES["neighbour_window"], Raised("ValueError", "")
    assert not stops_where(exercise, [error] * len(exercise.probes), lambda inputs: [])
    some = [error, *[None] * (len(exercise.probes) - 1)]
    assert not stops_where(exercise, some, lambda inputs: [])


def test_what_is_tried_and_shown_lies_within_what_a_text_says():
    for exercise in EXERCISES.values():
        if exercise.kind != "value":
            known = [*exercise.probes, *(args for _, args in exercise.edges)]
            assert all(as_stated(exercise, args) for args in known), exercise.name
    exercise = EXERCISES["read_once"]
    every = [*exercise.probes, *(args for _, args in widened(exercise)), *usual(exercise, 100)]
    assert all(scores.abs().max() <= 2000 for (scores,) in every)
    assert not as_stated(exercise, (torch.tensor([2001.0]),))


def test_which_arguments_change_places_is_said():
    def put_together(patches, rows):
        side, columns = math.isqrt(patches.shape[1]), len(patches) // rows
        grid = patches.reshape(columns, rows, side, side)
        return grid.permute(0, 2, 1, 3).reshape(rows * side, columns * side)

    said = str(check("put_together", put_together))
    assert "`columns` and `rows` have to change places" in said
    assert not [*_shorter_and_swapped([])]


def test_two_mistakes_of_a_block_are_named_of_its_truths_none_undone():
    exercise = EXERCISES["TinyDecoderBlock"]
    some = [
        next(m for m in exercise.mistakes if m.name == name)
        for name in (
            "the third residual connection is missing",
            "not all that self-attention reads is normalised",
        )
    ]
    given = [outcome_of(exercise, tuple(some), i) for i in range(len(exercise.probes))]
    named, whole = name_mistakes(exercise, given, math.inf)
    assert whole
    assert {m.name for m in named} == {m.name for m in some}


def numbered(rows, columns, d):
    angles = torch.arange(rows * columns)[:, None] * 10000 ** (-torch.arange(0, d, 2) / d)
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def by_size(rows, columns, d):
    row = torch.arange(rows).repeat_interleave(columns) * math.pi / rows
    column = torch.arange(columns).repeat(rows) * math.pi / columns
    return F.pad(torch.stack([row.sin(), row.cos(), column.sin(), column.cos()], 1), (0, d - 4))


def one_run(W_o, kept, num_heads):
    new, size = W_o.clone(), len(W_o) // num_heads
    off = [h for h in range(num_heads) if h not in kept]
    if off:
        new[min(off) * size : (max(off) + 1) * size] = 0
    return new


def without_itself(weights, budget):
    first, second = [], []
    for t in range(len(weights)):
        first.append(weights[t, max(0, t - budget) : t].sum())
        second.append(weights[t, max(0, t - budget + 1) : t].sum() + weights[t, 0])
    return torch.stack([torch.stack(first).mean(), torch.stack(second).mean()])


@pytest.mark.parametrize(
    ("name", "answer", "mistakes"),
    [
        ("grid_code", numbered, {"the patches are numbered through, as if in one line"}),
        ("grid_code", by_size, {"how far a step leads depends on the size of the grid"}),
        ("keep_heads", one_run, {"all heads from the first to the last that are off are off"}),
        (
            "kept_by_bets",
            without_itself,
            {"the first token is counted twice", "a query does not look at itself"},
        ),
    ],
)
def test_likely_slips_have_a_name(name, answer, mistakes):
    assert {*check(name, answer).mistakes} == mistakes
