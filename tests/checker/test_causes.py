"""What is said to be why an answer is wrong, and the inputs on which that is seen."""

import math

import pytest
import torch

from course_utils.checker import catalogue, check
from course_utils.checker.causes import told
from course_utils.checker.examined import nearly
from course_utils.checker.resized import with_gaps, without_gaps
from course_utils.checker.values import gap
from course_utils.checker.widen import widened

BY_NAME = {e.name: e for e in catalogue()}


@pytest.fixture(autouse=True)
def _patient(patient_search):
    """However busy the machine is."""


# ---------------------------------------------------------------- sizes and other causes


def _prefix(queries, keys, values, prefix_keys, prefix_values, mask):
    keys = torch.cat([prefix_keys.expand(len(keys), -1, -1), keys], dim=1)
    values = torch.cat([prefix_values.expand(len(keys), -1, -1), values], dim=1)
    scores = queries @ keys.mT / math.sqrt(keys.shape[-1])
    return scores.masked_fill(~mask[:, None], -math.inf).softmax(-1) @ values


def real_keys_are_counted(queries, keys, values, prefix_keys, prefix_values, real_keys):
    lengths = real_keys.sum(dim=1) + len(prefix_keys)
    mask = torch.arange(len(prefix_keys) + keys.shape[1]) < lengths[:, None]
    return _prefix(queries, keys, values, prefix_keys, prefix_values, mask)


def nothing_beyond_the_fourth(queries, keys, values, prefix_keys, prefix_values, real_keys):
    mask = torch.cat([torch.ones(len(keys), len(prefix_keys)).bool(), real_keys], dim=1)
    mask[:, len(prefix_keys) + 4 :] = False
    return _prefix(queries, keys, values, prefix_keys, prefix_values, mask)


def test_what_a_mask_looks_like_is_not_put_down_to_its_size():
    text = str(check("prefix_attend", real_keys_are_counted))
    assert "not where `real_keys` holds a False before a True." in text
    assert "Tk is" not in text


def test_a_size_is_named_where_it_is_what_fails():
    text = str(check("prefix_attend", nothing_beyond_the_fourth))
    assert "It is right on the usual inputs, but not where Tk is 5." in text


def test_a_size_is_named_only_if_all_ordinary_inputs_of_it_fail():
    exercise = BY_NAME["prefix_attend"]
    at = next(made for made in widened(exercise) if made[0] == "where Tk is 5")
    gapped = (at[0], (*at[1][:-1], with_gaps(at[1][-1])))
    flat = ("where `keys` is 25 times as large", at[1])

    def play(answer):
        return lambda inputs: [answer(*args) for args in inputs]

    right, probes = play(exercise.solution), [("", args) for args in exercise.probes]
    assert told(exercise, [gapped], probes, right, play(real_keys_are_counted)) == (
        0,
        "on this one",
    )
    assert told(exercise, [gapped, flat], probes, right, play(real_keys_are_counted)) == (
        1,
        flat[0],
    )
    assert told(exercise, [at], probes, right, play(nothing_beyond_the_fourth)) == (
        0,
        "where Tk is 5",
    )
    assert told(exercise, [at], probes, right, lambda inputs: []) == (
        0,
        "on this one",
    )  # no time


def test_masks_with_gaps():
    mask = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1], [1, 0, 0, 0], [0, 0, 0, 0]]).bool()
    gaps = torch.tensor([[1, 1, 0, 1], [1, 1, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]]).bool()
    assert with_gaps(mask).equal(gaps)
    assert without_gaps(gaps).equal(mask)
    assert with_gaps(mask[0]).equal(gaps[0])


# ---------------------------------------------------------------- inputs that show the slip


def other_root(x, cache, table, W_q, W_k, W_v):
    keys, values = cache
    x = x + table[keys.shape[1]]
    keys, values = torch.cat([keys, x @ W_k], dim=1), torch.cat([values, x @ W_v], dim=1)
    scores = x @ W_q @ keys.mT / math.sqrt(x.shape[-1])
    return scores.softmax(-1) @ values, (keys, values)


def test_what_is_shown_differs_by_more_than_the_last_digit():
    case = check("cached_step", other_root).verdict.case
    assert not nearly(case.expected, case.given, 0.02)


def test_numbers_far_from_zero_show_what_rounding_does():
    def by_squares(queries, keys, k):
        square = queries[:, None] ** 2 + keys**2 - 2 * torch.outer(queries, keys)
        order = square.topk(k, dim=1, largest=False).indices
        return torch.zeros_like(square).scatter(1, order, 1 / k)

    text = str(check("nearest_weights", by_squares))
    assert "not where the numbers of `queries` and `keys` are near -4096." in text
    assert "In float64 it comes out right there" in text
    moved = [e.name for e in BY_NAME.values() if "are near 4096" in str(widened(e))]
    assert "nearest_weights" in moved
    assert "bilinear_scores" not in moved  # not only differences count


def test_codes_that_begin_again_are_found_wherever_they_do():
    for length in (801, 1000, 1024, 1999, 5000, 2**14, 10**5):

        def repeated(positions, d, length=length):
            angle = (positions % length)[:, None].double() * 0.6 ** torch.arange(d // 2)
            return torch.cat([angle.sin(), angle.cos()], dim=1)

        assert not check("own_code", repeated), length
    assert check("own_code", lambda p, d: repeated(p, d, 10**9))


# ---------------------------------------------------------------- code, errors, typed numbers


def by_index(sentence, bos, eos):
    full = [bos, *sentence, eos]
    return full[:-1], [full[full.index(token) + 1] for token in full[:-1]]


def by_index_of_words(model, ids, mask_id):
    total, words = 0.0, ids.tolist()
    for word in words[1:-1]:
        hidden = ids.clone()
        hidden[words.index(word)] = mask_id
        total += model(hidden[None])[0, words.index(word)].log_softmax(-1)[word].item()
    return total


def by_index_of_loss(losses, patience):
    best, bad = math.inf, 0
    for loss in losses:
        best, bad = (loss, 0) if loss < best else (best, bad + 1)
        if bad == patience:
            break
    return losses.index(best), losses.index(loss)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("shifted", by_index),
        ("score_by_hiding", by_index_of_words),
        ("when_to_stop", by_index_of_loss),
    ],
)
def test_the_first_of_equal_values_is_not_the_one_that_is_meant(name, answer):
    text = str(check(name, answer))
    assert "the first place is found of what may stand several times: with this" in text


def test_an_empty_slice_is_told():
    def by_pieces(x, table, offset):
        T = x.shape[1]
        return x * 1.5 + table[offset * T + 9 : (offset + 1) * T + 9]

    text = str(check("add_positions", by_pieces))
    assert "The slice `table[offset * T + 9:(offset + 1) * T + 9]` is empty here." in text
    assert "In that line the shapes are `x`" in text


@pytest.mark.parametrize("due", [0.3661, 0.0366])
def test_another_scale_is_told_alone_and_beside_a_mistake(due):
    text = str(check("bleu_of_two", round(100 * due, 1) if due > 0.1 else 44.7))
    assert "It is given in percent" in text or "and it is given in percent" in text
    assert "brevity penalty" in text or due > 0.1


def test_the_model_never_says_what_the_text_leaves_open():
    for next_logits, bos, eos, most in BY_NAME["greedy_tokens"].probes:
        assert bos not in BY_NAME["greedy_tokens"].solution(next_logits, bos, eos, most)

    def without_bos_anywhere(next_logits, bos, eos, max_len):
        prefix = [bos]
        while prefix[-1] != eos and len(prefix) <= max_len:
            prefix.append(int(next_logits(prefix).argmax()))
        return [token for token in prefix if token not in (bos, eos)]

    assert check("greedy_tokens", without_bos_anywhere)


def test_one_maximum_is_named_however_the_empty_rows_are_cleared():
    def by_where(scores, mask):
        e = (scores - scores.max()).exp() * mask
        total = e.sum(dim=-1, keepdim=True)
        return torch.where(total > 0, e / total, 0.0)

    assert check("softmax_with_mask", by_where).mistakes == (
        "one maximum is subtracted from all rows",
    )


def test_truths_and_numbers_are_compared_without_an_error():
    truths = torch.tensor([True, False])
    assert nearly(truths, truths)
    for given in (truths.double(), 1 - truths.double(), ~truths):
        assert nearly(truths, given) == (gap(truths, given).size <= 1)
        assert nearly(given, truths) == (gap(given, truths).size <= 1)
