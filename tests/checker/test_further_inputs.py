"""What is told must hold on further inputs: repairs, sizes, long lists, and rare words."""

import math

import pytest
import torch
import torch.nn.functional as F

import course_utils.checker.repair as repair
from course_utils.checker import catalogue, check, left_over
from course_utils.checker.edits import code_of
from course_utils.checker.exercise import REGISTRY
from course_utils.checker.long_lists import of_long_lists
from course_utils.checker.special_inputs import of_log_probs
from course_utils.checker.stated_sizes import as_stated, in_range, ranges
from course_utils.checker.widen import drawn, usual, widened
from course_utils.models.attention import masked_softmax


def by_the_loss(logits, targets, pad):
    losses = F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=pad, reduction="none")
    return losses.sum() / losses.count_nonzero()


def by_a_mean_of_a_mean(logits, targets, pad):
    losses = F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=pad)
    return losses.sum() / losses.count_nonzero()


def with_lead(size):
    def look_at(wanted):
        return size * F.one_hot(wanted, len(wanted)).float()

    return look_at


def shared_halves(sign):
    def look_back(steps, d):
        angle = sign * steps * 10000.0 ** (-torch.arange(0, d, 2) / d)
        k = torch.cat([torch.ones(d // 2), torch.zeros(d // 2)])
        return torch.cat([angle.cos(), angle.sin()]), k

    return look_back


def up_to_the_first_padding(segments):
    T = segments.shape[1]
    same = segments[:, :, None] == segments[:, None, :]
    real = torch.arange(T) < (segments == 0).int().argmax(dim=1)[:, None]
    return same & torch.ones(T, T).tril().bool() & real[:, None, :]


def longest_source(prefix_lens, num_steps):
    mask = torch.ones(len(prefix_lens), 1, num_steps, num_steps, dtype=torch.bool).tril()
    mask[..., : int(prefix_lens.max())] = True
    return mask


def root_of_the_product(logits, targets, pad):
    chances = logits.softmax(-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)[targets != pad]
    return chances.prod() ** (-1 / len(chances))


def sums_compared(model, tokens, other):
    columns = []
    for s in range(tokens.shape[1]):
        changed = tokens.clone()
        changed[0, s] = other
        columns.append(model(changed)[0].sum(-1) != model(tokens)[0].sum(-1))
    return torch.stack(columns, dim=1)


@pytest.mark.parametrize(
    ("name", "answer", "mistake"),
    [
        ("token_loss", by_the_loss, "a loss of 0 is taken for padding"),
        ("look_at", with_lead(5.0), "the scores are too close together"),
        ("look_back", shared_halves(1), "pairs are taken from the two halves of the columns"),
        ("look_back", shared_halves(-1), "pairs are taken from the two halves of the columns"),
        ("own_sentence", up_to_the_first_padding, "a row without padding is hidden whole"),
        ("prefix_mask", longest_source, "all sentences get the longest source length"),
        (
            "text_perplexity",
            root_of_the_product,
            "all probabilities are multiplied, and the product underflows",
        ),
        ("what_it_sees", sums_compared, "differences are added with their signs"),
    ],
)
def test_a_slip_that_few_inputs_show_is_named(name, answer, mistake):
    assert check(name, answer).mistakes == (mistake,)


@pytest.mark.parametrize("number", [134.217728, 134.2, 134])
def test_two_slips_of_a_typed_number_are_named_rounded_too(number):
    (mistake,) = check("attention_map_mebibytes", number).mistakes
    assert mistake == "the size in float32 is given, and millions of bytes are given"


def test_a_whole_number_is_asked_only_where_the_text_asks_how_many():
    assert "A whole number is asked" not in str(check("attention_map_mebibytes", 77.7))
    assert "A whole number is asked" in str(check("scores_with_cache", 3.5))


def test_an_answer_that_is_right_but_where_nothing_is_lost_is_refused():
    result = check("token_loss", by_a_mean_of_a_mean)
    assert result.status == "wrong"
    assert "every real token is certain" in str(result)


def test_logarithms_of_very_small_probabilities_are_tried():
    def there_and_back(log_policy, log_reference, beta):
        reward = beta * (log_policy.exp() / log_reference.exp()).log()
        return reward - reward[0]

    result = check("reward_behind", there_and_back)
    assert result.status == "wrong"
    assert "far below 0 is 0" in str(result)
    assert "infinite in" not in str(result)
    rows = torch.randn(2, 4, generator=torch.Generator().manual_seed(1)).log_softmax(-1)
    ((_, rare),) = of_log_probs("x", rows)
    assert rare.amin() < -100
    torch.testing.assert_close(rare.exp().sum(-1), torch.ones(2))
    assert not [*of_log_probs("x", rows - 1)]
    assert len([*of_log_probs("log_probs", rows - 1)]) == 1


def test_a_list_that_is_all_that_is_given_is_tried_long():
    only, more = (torch.tensor([1, 2, 0]),), (torch.tensor([1, 2]), 5)
    ((_, (long,)),) = of_long_lists(REGISTRY["look_at"], only)
    assert sorted(long.tolist()) == [*range(60)]
    assert not [*of_long_lists(REGISTRY["look_at"], more)]


@pytest.mark.parametrize("size", [2, 6])
def test_the_sizes_of_the_vectors_are_part_of_the_task(size):
    def look_back(steps, d):
        k = F.one_hot(torch.tensor(0), size).float()
        q = k.clone()
        q[0], q[1] = math.cos(steps), -math.sin(steps)
        return q, k

    result = check("look_back", look_back)
    assert result.status != "right"
    assert "shape of q" in str(result)


def test_a_change_that_is_wrong_on_further_inputs_is_not_kept():
    exercise = REGISTRY["token_loss"]
    code = code_of(by_the_loss)
    every = [*code.edits(1)]
    due = [args for _, args in exercise.edges]
    too_many = [e for e in every if e.words == "`reduction=` is too many"]
    assert too_many
    end = float("inf")
    assert repair._right_on([], too_many, exercise, code, end) == too_many
    assert repair._right_on(due, too_many, exercise, code, end) == []


def test_what_is_the_same_everywhere_is_constant_form_by_form():
    ones, more = torch.ones(3), torch.ones(4)
    assert left_over._is_constant([ones, ones, more])
    assert not left_over._is_constant([ones, more])  # each form once: nothing is known
    assert not left_over._is_constant([ones, 2 * ones, more])
    assert left_over._is_constant([{"a": ones}, {"a": ones}])


def test_a_number_that_was_copied_is_told_with_its_name():
    def sized(x, d):
        return x[:4] + x.reshape(-1)[:4] * 4

    words = {e.words for e in code_of(sized).together()}
    assert "`d` is due, not one number, here and at 2 more places" in words
    assert not any(w.startswith("a name is due") for w in words)


def test_whole_numbers_stay_in_the_range_that_is_stated():
    with_ranges, counted = [], set()
    for e in catalogue():
        for i, value in enumerate(e.probes[0]):
            if "len" in e.argument(i) and isinstance(value, torch.Tensor):
                counted.add(e.name)
        if e.kind == "value" or not any(ranges(e, args) for args in e.probes):
            continue
        with_ranges.append(e.name)
        for args in (*e.probes, *drawn(e), *usual(e), *(args for _, args in widened(e))):
            for i, (low, high) in ranges(e, args).items():
                assert low <= torch.as_tensor(args[i]).min(), (e.name, args[i])
                assert torch.as_tensor(args[i]).max() <= high, (e.name, args[i])
    assert counted - {*with_ranges} == {"lengths_for_heads"}  # there no axis is counted
    assert len(with_ranges) >= 8


def test_lengths_are_cut_down_with_the_axis_that_they_count():
    e = REGISTRY["decoder_context"]
    hidden, outputs, _, score = e.probes[2]
    beyond = hidden, outputs[:, :4], torch.tensor([0, 5]), score
    assert ranges(e, beyond) == {2: (1, 4)}
    assert not as_stated(e, beyond)
    assert in_range(e, beyond)[2].tolist() == [1, 4]
    assert as_stated(e, in_range(e, beyond))
    reviews = torch.randn(1, 9, 2)
    assert not as_stated(REGISTRY["ordered_pool"], (reviews, torch.tensor([9])))
    assert as_stated(REGISTRY["ordered_pool"], (reviews[:, :8], torch.tensor([8])))


def test_an_answer_that_relies_on_the_stated_range_is_right():
    def decoder_context(hidden, outputs, lengths, score):
        assert lengths.max() <= outputs.shape[1]
        scores = score(hidden[-1].unsqueeze(1), outputs)
        return torch.bmm(masked_softmax(scores, lengths), outputs).squeeze(1)

    assert check("decoder_context", decoder_context).status == "right"
