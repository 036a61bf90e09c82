"""What is said is true on the input shown, of every answer: blind trials found where it was not."""

import math

import pytest
import torch
import torch.nn.functional as F

from course_utils.checker import check
from course_utils.checker.exercise import REGISTRY
from course_utils.checker.judge import _Judge
from course_utils.checker.runner import run_answer
from course_utils.checker.widen import widened


def test_a_mean_over_the_queries_is_two_slips_and_both_are_told():
    result = check("pooled", lambda weights, values: (weights * values).mean(0))
    assert {"the sum runs over the queries", "the weighted values are averaged once more"} == {
        *result.mistakes
    }
    assert "plain form" not in str(result)


def test_names_that_leave_something_open_are_shown_where_that_can_be_seen():
    exercise = REGISTRY["pooled"]
    (some,) = (m for m in exercise.mistakes if m.name == "the sum runs over the queries")
    (mean,) = (m for m in exercise.mistakes if "averaged once more" in m.name)
    answer = exercise.combine(some, mean).answer
    session = run_answer(exercise.play, answer, exercise.probes, 5.0, whole=True)
    judge = _Judge(exercise, answer, session, math.inf)
    i = judge._telling((some,), complete=False)
    case, _ = judge._small(i, (some,), complete=False)
    assert not judge._is_plain((some,), exercise.probes[i], judge.given[i])
    assert not judge._is_plain((some,), case.args, case.given)
    one_query = (torch.tensor([[0.5, 0.5]]), torch.tensor([1.0, 2.0]))  # a mean of one is a sum
    assert judge._is_plain((some,), one_query, torch.tensor([0.5, 1.0]))


def _cosines(queries, keys):
    units = (x / x.norm(dim=-1, keepdim=True) for x in (queries, keys))
    return torch.einsum("bqd,bkd->bqk", *units)


@pytest.mark.parametrize("factor", [3.5, 5.0])
def test_a_cosine_needs_no_epsilon_where_no_vector_is_zero(factor):
    assert check("fair_score", lambda q, k: factor * _cosines(q, k)).status == "right"
    inputs = [
        *REGISTRY["fair_score"].probes,
        *(args for _, args in widened(REGISTRY["fair_score"])),
    ]
    assert all(x.norm(dim=-1).min() > 0 for args in inputs for x in args)


@pytest.mark.parametrize("name", ["fair_score", "ordered_pool", "grid_code"])
def test_properties_that_fail_by_nan_are_told_as_nan(name):
    solution = REGISTRY[name].solution
    said = str(check(name, lambda *args: solution(*args) * math.nan))
    assert "NaN is among what came back" in said
    assert "does not hold" not in said


def _short_keys(queries, keys):
    return queries @ F.normalize(keys, dim=-1).mT


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (lambda q, k: _short_keys(q, k).clamp(-5, 5), "the length of a query counts"),
        (lambda q, k: 5 * _short_keys(q, k).tanh(), "the length of a query counts"),
        (lambda q, k: 5 * _short_keys(q, k), "the length of a query counts"),
        (lambda q, k: 1.2 * _cosines(q, k), "the range is too narrow to choose"),
    ],
)
def test_the_name_of_an_open_task_is_that_of_the_slip(answer, name):
    result = check("fair_score", answer)
    assert result.mistakes == (name,)
    assert "The same properties are lacking when this mistake is made" in str(result)


def _one_letter_for_queries_and_keys(queries, keys, M):
    pairs = torch.einsum("bqi,ij,bqj->bq", queries, M, keys)
    return pairs[:, :, None].expand(-1, -1, keys.shape[1])


def _one_letter_for_their_sizes(queries, keys, M):
    return torch.einsum("bqi,ii,bki->bqk", queries, M, keys)


def test_a_condition_is_told_only_where_its_own_sizes_decide():
    said = str(check("bilinear_scores", _one_letter_for_queries_and_keys))
    assert "RuntimeError" in said
    assert "It stops where" not in said  # Tq is not Tk, and neither is 1
    said = str(check("bilinear_scores", _one_letter_for_their_sizes))
    assert "It stops where `k` is not `q`" in said


def _leaks(logits_of, target, vocabulary, first):
    before, changed = logits_of(target)[0], target.clone()
    leaks = torch.zeros(target.shape[1], target.shape[1], dtype=torch.bool)
    for s in range(first, target.shape[1]):
        changed[0, s] = (changed[0, s] + 1) % vocabulary
        leaks[:s, s] = (logits_of(changed)[0] - before)[:s].abs().amax(-1) > 1e-4
    return leaks


def _seen(model, tokens, other):
    poked, columns = tokens.clone(), []
    for s in range(tokens.shape[1]):
        poked[0, s] = other
        columns.append((model(poked) != model(tokens)).any(-1)[0])
    return torch.stack(columns, dim=1)


def _reached(layer, x):
    changed, columns = x.clone(), []
    for j in range(len(x)):
        changed[j] += 1.0 + torch.arange(x.shape[1])
        columns.append((layer(changed) - layer(x)).abs().amax(1) > 1e-6)
    return torch.stack(columns, dim=1)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("leaking_pairs", lambda f, target, V: _leaks(f, target, V, 0)),
        ("leaking_pairs", lambda f, target, V: _leaks(f, target, V, 1)),
        ("what_it_sees", _seen),
        ("influence", _reached),
    ],
)
def test_changes_that_pile_up_have_a_name(name, answer):
    assert check(name, answer).mistakes == ("changed tokens stay changed",)


def _by_products_of_ids(subjects, verdicts, asked, scale):
    scores = scale * (subjects * asked[:, None]).float()
    return (scores.softmax(-1) * verdicts).sum(-1)


def _few_of_each(scores, log_probs, width):
    offered, tokens = (scores[:, None] + log_probs).topk(2, dim=1)
    best, at = offered.flatten().topk(min(width, offered.numel()))
    return best, at // 2, tokens.flatten()[at]


def _as_many_as_padding(tokens, pad):
    lengths = (tokens == pad).sum(-1)
    return (torch.arange(tokens.shape[1]) < lengths[:, None])[:, None, None]


def _behind_the_padding(tokens, pad):
    first = (tokens == pad).sum(-1)
    return (torch.arange(tokens.shape[1]) >= first[:, None])[:, None, None]


def _by_last_words(candidate, reference, n):
    grams, known = ([x[i + n - 1] for i in range(len(x) - n + 1)] for x in (candidate, reference))
    matches = sum(min(grams.count(word), known.count(word)) for word in {*grams})
    return matches / max(len(grams), 1)


@pytest.mark.parametrize(
    ("name", "answer", "mistake"),
    [
        ("read_the_list", _by_products_of_ids, "ids are taken for amounts"),
        ("beam_step", _few_of_each, "each beam offers only a few continuations"),
        ("padding_visible", _as_many_as_padding,
         "the number of padding tokens is taken for the length"),
        ("padding_visible", _behind_the_padding, "padding is taken to stand in front"),
        ("clipped_precision", _by_last_words, "one word of an n-gram is compared, not all of them"),
    ],
)  # fmt: skip
def test_likely_slips_have_a_name(name, answer, mistake):
    assert check(name, answer).mistakes == (mistake,)
