"""When a cause, a change or a name may be told, and what two arguments hide together."""

import math

import pytest
import torch
import torch.nn.functional as F

from course_utils.checker import catalogue, check
from course_utils.checker.widen import widened
from course_utils.checker.wording import capital
from course_utils.models.modern.rotary import rotate

BY_NAME = {e.name: e for e in catalogue()}


def one_head_alone(W, num_heads):
    d = W.shape[1] // num_heads
    order = torch.arange(d).view(-1, 2).T.flatten()
    return W[:, order]


def turned_and_not_shared_out(p, q, drafted, u, v):
    if u < min(1, p[drafted] * p[drafted] / q[drafted]):
        return drafted
    upto = torch.clamp(q - p, min=0).cumsum(0)
    return int((upto > v).int().argmax())


@pytest.mark.parametrize(
    ("name", "answer"),
    [("neighbours_to_halves", one_head_alone), ("keep_or_draw", turned_and_not_shared_out)],
)
def test_a_change_that_undoes_the_answers_own_work_is_not_told(name, answer, patient_search):
    result = check(name, answer)
    assert not result
    assert "what is left" not in str(result)


def of_the_batch_and_of_the_mean(subjects, verdicts, asked, scale):
    same = (subjects == asked[:, None]).float()
    weights = torch.softmax(scale * same, dim=0)
    return (weights * verdicts).mean(-1)


def an_axis_too_few(lengths, num_heads):
    return lengths.unsqueeze(0).expand(num_heads, *lengths.shape)


@pytest.mark.parametrize(
    ("name", "answer", "change", "left"),
    [
        ("read_the_list", of_the_batch_and_of_the_mean, "another function", "over the batch"),
        ("lengths_for_heads", an_axis_too_few, "an exchange of two axes", "an axis of their own"),
    ],
)
def test_two_slips_at_two_places_are_both_told(name, answer, change, left, patient_search):
    said = str(check(name, answer))
    assert change in said
    assert "what is left is this mistake" in said
    assert left in said


def of_all_patches(encoded, real):
    return encoded[:, 1:][real].mean(0).expand(len(encoded), -1)


def counted_on(x, positions):
    positions = positions[len(positions) // 2] + torch.arange(len(positions))
    return BY_NAME["turn_halves"].solution(x, positions - len(positions) // 2)


@pytest.mark.parametrize(
    ("name", "answer", "each"),
    [("mean_readout", of_all_patches, "entry of the batch"), ("turn_halves", counted_on, "row")],
)
def test_what_comes_out_right_alone_is_called_what_it_is(name, answer, each, patient_search):
    said = str(check(name, answer))
    assert f"Each {each} alone comes out right; together they do not." in said


def divided_by_the_keys(q, k, cached):
    P = cached.shape[2]
    at = torch.tensor([P])
    keys = torch.cat([cached, rotate(k, at)], dim=2)
    return rotate(q, at) @ keys.mT / math.sqrt(keys.shape[2])


def test_sizes_that_are_equal_by_chance_are_named_as_the_cause():
    said = str(check("cached_scores", divided_by_the_keys))
    assert "It is right on the usual inputs, but not where P + 1 is not d." in said


@pytest.mark.parametrize(
    ("name", "due"),
    [
        ("a query looks ahead", "A query looks ahead"),
        ("post-norm is taken", "Post-norm is taken"),
        ("queries, keys and values", "Queries, keys and values"),
        ("w_v is forgotten", "w_v is forgotten"),
        ("k stands in the place of E", "k stands in the place of E"),
        ("n² and d are compared", "n² and d are compared"),
        ("u and v are exchanged", "u and v are exchanged"),
        ("nn.Linear is not used", "nn.Linear is not used"),
        ("φ is applied to the products", "φ is applied to the products"),
        ("it's short", "It's short"),
    ],
)
def test_symbols_keep_their_small_letters(name, due):
    assert capital(name) == due


def kept_above_a_tenth(queries, keys, values):
    q, k = (F.elu(x) + 1 for x in (queries, keys))
    sums = (k[:, :, None] * values[:, None]).cumsum(0)
    return torch.einsum("td,tdv->tv", q, sums) / (q * k.cumsum(0)).sum(-1, True).clamp(min=0.1)


def cut_at_300(out1, log1, out2, log2):
    share = torch.stack([log1, log2]).clamp(-300, 300).softmax(0)[..., None]
    return (share * torch.stack([out1, out2])).sum(0), torch.logaddexp(log1, log2)


def loud_for_few(places):
    n = len(places)
    return 9.0 * torch.eye(n)[places], 9.0 * torch.eye(n), torch.full((n,), -6.0)


def noun_above_itself():
    W_q = 10.0 * torch.eye(6)
    W_q[1, 0] = 60.0
    return W_q, torch.eye(6), torch.eye(6)


@pytest.mark.parametrize(
    ("name", "answer", "where"),
    [
        ("running_attention", kept_above_a_tenth, "all numbers are near -4"),
        ("join_halves", cut_at_300, "the numbers of `log1` and `log2` are near -4096"),
        ("word_order", loud_for_few, "`places` has 60 entries"),
        ("head_by_hand", noun_above_itself, "the noun's word is the opposite of the others"),
    ],
)
def test_what_hides_until_two_arguments_or_all_places_go_along(name, answer, where):
    assert f"It is right on the usual inputs, but not where {where}" in str(check(name, answer))


def test_numbers_stay_in_the_range_that_a_text_states():
    words = [args[1] for _, args in widened(BY_NAME["head_by_hand"])]
    assert all((x.abs() <= 1).all() for x in words)
    assert any((x.abs() == 1).all() for x in words)


def divided_once_more(logits, k):
    values, places = (logits / logits.shape[-1] ** 0.5).topk(k)
    return torch.zeros_like(logits).scatter(-1, places, values.softmax(-1))


def test_what_a_softmax_does_not_see_is_called_too_many_and_not_another_operation(patient_search):
    said = str(check("expert_shares", divided_once_more))
    assert "at `logits / logits.shape[-1] ** 0.5`, a step is too many" in said


def bounded(logits, targets, pad):
    losses = -torch.log(torch.softmax(logits, -1) + 1e-9).gather(-1, targets[..., None])[..., 0]
    return losses[targets != pad].mean()


def cut_off(logits, targets, pad):
    losses = -logits.softmax(-1).clamp(min=1e-9).log().gather(-1, targets[..., None])[..., 0]
    return losses[targets != pad].mean()


@pytest.mark.parametrize("answer", [bounded, cut_off])
def test_the_logarithm_of_a_softmax_is_due_as_log_softmax(answer, patient_search):
    said = str(check("token_loss", answer))
    assert "`log_softmax` is due, for a softmax can be 0 in float32: with this one change" in said


def test_bytes_stay_bytes():
    words = [args[0] for _, args in widened(BY_NAME["encode_word"])]
    assert max(map(max, filter(None, words))) < 256


def at_most_a_byte(word, merges):
    assert all(0 <= number < 256 for number in word)
    return BY_NAME["encode_word"].solution(word, merges)


def test_an_answer_may_rely_on_what_a_text_says_of_ids():
    assert check("encode_word", at_most_a_byte).status == "right"
