"""Answers without a name: the single slip that they come to, and what experiments tell of them."""

import ast
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_utils.checker import catalogue, check, runner
from course_utils.checker.findings import Trial, findings
from course_utils.checker.judge import judge_answer, outcome_of
from course_utils.checker.mutants import likeness, search
from course_utils.checker.mutants.program import Program
from course_utils.checker.values import Raised, gap

pytestmark = pytest.mark.usefixtures("patient_search")
BY_NAME = {e.name: e for e in catalogue()}
EXACT = "On all inputs tried it gives what a right answer gives in which "
SAMPLE = (
    "gaussian_weights",
    "causal_attention",
    "run_decoder",
    "TinyMultiHead",
    "normalise_tokens",
    "greedy_tokens",
    "next_token_pairs",
    "running_attention",
)


def outcomes(exercise, answer):
    runs = runner.run_answer(exercise.play, answer, exercise.probes, 5.0).runs
    return [run.value for run in runs[: len(exercise.probes)]]


def wrong_mutants(exercise, most):
    """Mutants of the solution, spread over all slips, that run and are wrong on some probe."""
    program = search.programs(exercise)[0]
    likely = [m for rank in (0, 1, 2) for m in search.mutants(program, rank)]
    right = [outcome_of(exercise, (), i) for i in range(len(exercise.probes))]
    found = []
    for mutant in likely[:: max(1, len(likely) // 16)]:
        try:
            given = outcomes(exercise, mutant.answer)
        except (SyntaxError, ValueError, TypeError):
            continue
        if any(isinstance(x, Raised) or x is None for x in given) or len(given) < len(right):
            continue
        if any(gap(a, b).size > 1 for a, b in zip(right, given)):
            found.append((mutant, given))
    return found[:: max(1, len(found) // most)][:most]


@pytest.mark.parametrize("name", SAMPLE)
def test_a_mutant_given_as_the_answer_is_recognised(name):
    exercise = BY_NAME[name]
    for mutant, given in wrong_mutants(exercise, 2):
        verdict = judge_answer(exercise, mutant.answer)
        if verdict.status == "mistake":  # the catalogue knows it: then it gives the same numbers
            if len(verdict.mistakes) == 1:
                forms = [m for m in exercise.mistakes if m.name == verdict.mistakes[0].name]
                same = [
                    all(
                        gap(outcome_of(exercise, (m,), i), g).size <= 1 for i, g in enumerate(given)
                    )
                    for m in forms
                ]
                assert any(same) or verdict.facts, mutant.sentence
            continue
        assert verdict.status == "wrong"
        assert verdict.measured[0].startswith(EXACT), mutant.sentence
        assert len(verdict.measured) == 1


@pytest.mark.parametrize("name", SAMPLE)
def test_what_is_reported_gives_the_same_numbers_and_not_the_right_ones(name, monkeypatch):
    """Every mutant that is found alike does on all probes what was given, and that is wrong."""
    exercise = BY_NAME[name]
    chosen = []
    monkeypatch.setattr(search, "_sentence", lambda alike: chosen.extend(alike) or "x")
    ((mutant, given),) = wrong_mutants(exercise, 1)
    likeness(exercise, mutant.answer, given, _first_wrong(exercise, given))
    assert chosen
    for mutant in chosen[:3]:
        again = outcomes(exercise, mutant.answer)
        assert all(gap(a, b).size <= 1 for a, b in zip(given, again))


def _first_wrong(exercise, given):
    gaps = [gap(outcome_of(exercise, (), i), g).size for i, g in enumerate(given)]
    return next(i for i, size in enumerate(gaps) if size > 1)


def test_solutions_can_be_mutated():
    for exercise in [e for e in BY_NAME.values() if e.kind != "value"][::5]:
        programs = search.programs(exercise)
        assert programs, exercise.name
        assert programs[0].name == exercise.name


def test_what_is_only_partly_alike_gets_no_slip():
    def nearly(queries, keys, values):  # as without the scale, but not for every size
        scores = queries @ keys.mT / (math.sqrt(5.0) if keys.shape[1] > 3 else 1.0)
        weights = scores.softmax(-1)
        return weights @ values, weights

    text = str(check("scaled_attention", nearly))
    assert EXACT not in text


def test_an_answer_that_raises_or_returns_nothing_gets_no_slip():
    exercise = BY_NAME["scaled_attention"]
    assert likeness(exercise, lambda q, k, v: None, [None] * len(exercise.probes), 0) == ""
    raised = [Raised("ValueError", "x")] * len(exercise.probes)
    assert likeness(exercise, lambda q, k, v: None, raised, 0) == ""


class _Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.h = num_heads
        for name in ("W_q", "W_k", "W_v", "W_o"):
            setattr(self, name, nn.Linear(d_model, d_model, bias=False))

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.h, -1).transpose(1, 2)

    def forward(self, queries, keys, values, real_keys):
        q, k, v = map(
            self.split, (self.W_q(queries), self.W_k(keys), self.W_v(self.read(keys, values)))
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.size(q))
        scores = scores.masked_fill(~real_keys[:, None, None, :], float("-inf"))
        return self.W_o((torch.softmax(scores, dim=-1) @ v).transpose(1, 2).flatten(2))

    def read(self, keys, values):
        return values

    def size(self, q):
        return q.shape[-1]


class _ValuesFromKeys(_Attention):
    def read(self, keys, values):
        return keys


class _ScaledByQueries(_Attention):
    def size(self, q):
        return q.shape[2]


class _ResidualOfTheInput(nn.Module):
    def __init__(self, self_attention, cross_attention, ffn, norms):
        super().__init__()
        self.parts = nn.ModuleList([self_attention, cross_attention, ffn])
        self.norms = nn.ModuleList(norms)

    def forward(self, x, memory, target_mask, source_mask):
        y = self.norms[0](x)
        h = x + self.parts[0](y, y, y, target_mask)
        h = x + self.parts[1](self.norms[1](h), memory, memory, source_mask)
        return h + self.parts[2](self.norms[2](h))


def _gathered(probs, p):
    ordered, order = probs.sort(dim=-1, descending=True)
    kept = ordered.masked_fill(ordered.cumsum(-1) - ordered >= p, 0.0)
    return (kept / kept.sum(-1, keepdim=True)).gather(-1, order)


def _one_log_softmax_more(scores, log_probs, width):
    size = log_probs.shape[1]
    total = F.log_softmax((scores[:, None] + log_probs).flatten(), dim=0)
    best, index = total.topk(width)
    return best, index // size, index % size


def _padding_summed(weight, micro_batches, pad):
    w = weight.detach().clone().requires_grad_()
    tokens = sum((targets != pad).sum() for _, targets in micro_batches)
    for x, targets in micro_batches:
        loss = F.cross_entropy((x @ w).flatten(0, 1), targets.flatten(), reduction="sum")
        (loss / tokens).backward()
    return w.grad


def _by_sentences(weight, micro_batches, pad):
    w = weight.detach().clone().requires_grad_()
    sentences = sum(len(x) for x, _ in micro_batches)
    for x, targets in micro_batches:
        loss = F.cross_entropy((x @ w).flatten(0, 1), targets.flatten(), ignore_index=pad)
        (loss * len(x) / sentences).backward()
    return w.grad


def _diagonal_hidden(x, memory, weights):
    both = torch.cat([memory, x])
    q, k, v = x @ weights[0], both @ weights[1], both @ weights[2]
    hidden = torch.triu(torch.ones(len(x), len(both)), diagonal=len(memory)).bool()
    scores = (q @ k.T / math.sqrt(q.shape[-1])).masked_fill(hidden, float("-inf"))
    return torch.softmax(scores, dim=-1) @ v, both[-len(memory) :].detach()


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("TinyMultiHead", _ValuesFromKeys, "`self.W_v(keys)` in place of `self.W_v(values)`"),
        ("TinyMultiHead", _ScaledByQueries, "`math.sqrt(q.shape[2])` in place of"),
        ("TinyDecoderBlock", _ResidualOfTheInput, "`earlier_x` is `x` before"),
        ("beam_step", _one_log_softmax_more, "log_softmax"),
        ("nucleus", _gathered, "`gather` is taken for `scatter`"),
        ("accumulated_gradient", _padding_summed, "`ignore_index=` is left out"),
        ("accumulated_gradient", _by_sentences, "len("),
        ("read_segment", _diagonal_hidden, "`torch.ones(...).tril(len(memory) - 1)` in place of"),
    ],
)
def test_slips_of_others_are_put_in_words(name, answer, words):
    """Also where the catalogue knows the mistake, its slip is found."""
    exercise = BY_NAME[name]
    given = outcomes(exercise, answer)
    sentence = likeness(exercise, answer, given, _first_wrong(exercise, given))
    assert sentence.startswith(EXACT)
    assert words in sentence


def test_the_sentence_is_the_headline_in_text_and_html():
    def flipped(scores, mask):
        return torch.softmax(scores.masked_fill(~mask, -1e9), -1).masked_fill(~mask, 0.0).flip(-1)

    result = check("softmax_with_mask", flipped)
    first, second = str(result).split("\n")[:2]
    assert first.endswith("not right yet, and here is what was found")
    assert second.strip().startswith(EXACT)
    assert "<code>weights.masked_fill(~mask, 0.0).flip(-1)</code>" in result._repr_html_()
    assert result.mistakes == ()


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (torch.ones(2), torch.ones(2), True),
        ([1.0, 1.0], torch.ones(2), False),
        ([torch.ones(2)], [[1.0, 1.0]], False),
        ({"output": [1.0]}, {"output": torch.ones(1)}, False),
        ({"output": 1.0}, {"output": torch.tensor(1.0)}, True),
    ],
)
def test_a_slip_must_give_the_same_form(a, b, same):
    assert search._same_form(a, b) is search._same_form(b, a) is same


def test_an_endless_mutant_is_given_up():
    def endless():
        while True:
            pass

    end = runner.time.process_time() + 20
    assert runner.play_batch([lambda: 1, endless, lambda: 1 / 0, lambda: 2], 0.2, end) == [
        1,
        None,
        None,
        2,
    ]
    assert runner.play_batch([lambda: 1], 0.2, runner.time.process_time() - 1) == [None]


def test_earlier_values_are_kept_and_change_nothing():
    source = "def f(x):\n    for i in range(3):\n        x = x + i\n    return x\n"
    program = Program(source, "f", {})
    assert "earlier_x_ = x" in ast.unparse(program.tree)
    assert program.answer()(1) == 4


def found(name, answer):
    """What experiments tell of an answer, whether or not it has a name."""
    exercise = BY_NAME[name]

    def right(args):
        return runner.outcome(exercise.play, exercise.variant(), args, 0)

    def again(inputs):
        runs = runner.run_answer(exercise.play, answer, inputs).runs
        return [run.value for run in runs[: len(inputs)]]

    given = outcomes(exercise, answer)
    expected = [outcome_of(exercise, (), i) for i in range(len(exercise.probes))]
    first = _first_wrong(exercise, given)
    return " | ".join(findings(Trial(exercise, expected, given, first, right, again)))


def solution(name):
    return BY_NAME[name].solution


def _batch_statistics(x, gamma, beta, eps):
    mean, spread = x.mean((0, 2), keepdim=True), x.var((0, 2), keepdim=True, unbiased=False)
    return gamma * (x - mean) / torch.sqrt(spread + eps) + beta


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        (
            "scaled_attention",
            lambda q, k, v: solution("scaled_attention")(q, k, torch.ones_like(v)),
            "does not change when `values` changes; it should",
        ),
        (
            "into_heads",
            lambda x, h: solution("into_heads")(x, h) * math.sqrt(2),
            "every number is 1.414 (√2) times what it should be",
        ),
        (
            "into_heads",
            lambda x, h: solution("into_heads")(x, h) / x.shape[-1] ** 0.5,
            "every number is 1 / the square root of the size of axis -1 of `x` times",
        ),
        ("into_heads", lambda x, h: -solution("into_heads")(x, h), "the opposite sign"),
        ("into_heads", lambda x, h: solution("into_heads")(x, h) + 0.5, "is 0.5 too large"),
        ("into_heads", lambda x, h: solution("into_heads")(x, h).flip(1), "at other places"),
        (
            "running_attention",
            lambda q, k, v: solution("running_attention")(q, k, v) + 0.1 * v.sum(0),
            "row 0 of the result depends on row 1 of `",
        ),
        (
            "gaussian_weights",
            lambda q, k, w: solution("gaussian_weights")(q, k, w) + torch.rand(1).item() * 0 + 0.1,
            "should sum to 1, it sums to",
        ),
        (
            "hide_tokens",
            lambda *a: (solution("hide_tokens")(*a)[0], solution("hide_tokens")(*a)[1] * 7 + 1),
            "entry 0 is right, entry 1 is not",
        ),
        (
            "add_and_norm",
            lambda x, s, n, norm_first: (
                solution("add_and_norm")(x, s, n, norm_first) if norm_first else x * x
            ),
            "right on those where `norm_first` is True, wrong on those where `norm_first` is False",
        ),
        (
            "position_table",
            lambda n, d: solution("position_table")(n, d) * (torch.arange(n) != 1)[:, None],
            "only index 1 of axis 0",
        ),
        ("normalise_tokens", _batch_statistics, "; it must not"),
    ],
)
def test_experiments_tell_the_truth(name, answer, words):
    assert words in found(name, answer)


def test_a_batch_whose_entries_are_mixed_up_is_seen():
    def one_cut(probs, p):
        ordered = probs.sort(dim=-1, descending=True).values
        n = int((ordered.cumsum(-1) < p).sum(-1).max()) + 1
        top = probs.topk(min(n, probs.shape[-1]), dim=-1)
        kept = torch.zeros_like(probs).scatter(-1, top.indices, top.values)
        return kept / kept.sum(-1, keepdim=True)

    assert "each entry of the batch alone comes out right" in found("nucleus", one_cut)
