"""Answers without a name: what is said is measured, general, and about the learner's own code."""

import math
import time
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_utils.checker import catalogue, check, hint, judge, repair, runner
from course_utils.checker.edits import code_of
from course_utils.checker.findings import findings
from course_utils.checker.generic_inputs import Trial, generic
from course_utils.checker.values import gap
from course_utils.checker.widen import in_float64
from course_utils.models import attention

BY_NAME = {e.name: e for e in catalogue()}
FUNCTIONS = [e for e in BY_NAME.values() if e.kind != "value"]


@pytest.fixture(autouse=True)
def _patient(patient_search):
    """However busy the machine is."""


def solution(name):
    return BY_NAME[name].solution


def numbered(name):
    """The lines of a function of this file, found by a comment."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(i for i, line in enumerate(lines, 1) if line.endswith(f"# {name}"))


# ---------------------------------------------------------------- one change in the learner's code


def softmax_over_queries(q, k, v):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores + 0 * v.sum(), dim=1)  # here: axis
    return weights @ v, weights


def values_turned(q, k, v):
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
    return weights @ v.flip(1), weights  # here: flip


def one_too_far(prefix_free, bos, eos, max_len):
    tokens = [bos]
    while len(tokens) <= max_len + 1 - 1 + 1:  # here: bound
        token = int(prefix_free(tokens).argmax())
        if token == eos:
            break
        tokens.append(token)
    return tokens[1:]


@pytest.mark.parametrize(
    ("name", "answer", "here", "words"),
    [
        ("scaled_attention", values_turned, "flip", "`v.flip(1)`, a step is too many"),
    ],
)
def test_the_one_change_is_placed_in_the_learners_own_line(name, answer, here, words):
    result = check(name, answer)
    if result.status == "mistake":
        return
    (said,) = result.verdict.measured
    assert words in said
    assert here is None or f"In line {numbered('here: ' + here)}, " in said
    assert "right on all" in said


def test_a_repair_is_right_on_every_input_and_quotes_the_learner(monkeypatch):
    """Whatever is found: the code that is shown stands in the learner's source."""
    sources = {
        "scaled_attention": lambda q, k, v: (q, torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1)),
        "into_heads": lambda x, h: x.reshape(len(x), x.shape[1], h, -1).transpose(1, 3),
        "position_table": lambda n, d: torch.stack(
            [
                (torch.arange(n)[:, None] / 10000.0 ** (torch.arange(0, d, 2) / d)).sin(),
                (torch.arange(n)[:, None] / 10000.0 ** (torch.arange(0, d, 2) / d)).cos(),
            ],
            0,
        ).flatten(1),
    }
    for name, answer in sources.items():
        for said in check(name, answer).verdict.measured:
            if not said.startswith("In line"):
                continue
            shown = said.split("`")[1]
            text = "".join(Path(__file__).read_text(encoding="utf-8").split())
            assert "".join(shown.removesuffix("...").split()).strip("()") in text


def test_code_that_does_more_than_compute_is_not_run_with_changes():
    def writes(q, k, v):
        open("nothing.txt", encoding="utf-8").close()
        return q, k

    assert not repair._only_computes(code_of(writes))
    assert repair._only_computes(code_of(values_turned))


def test_closures_and_unknown_sources_get_no_change():
    inner = torch.ones(1)
    assert code_of(lambda q: q + inner) is None
    assert code_of(eval("lambda q: q")) is None
    assert code_of(torch.softmax) is None


def test_an_endless_mutant_is_given_up():
    def endless():
        while True:
            pass

    end = time.process_time() + 20
    jobs = [lambda: 1, endless, lambda: 1 / 0, lambda: 2]
    assert runner.play_batch(jobs, 0.2, end) == [1, None, None, 2]
    assert runner.play_batch([lambda: 1], 0.2, time.process_time() - 1) == [None]


# ---------------------------------------------------------------- what experiments tell


def found(name, answer):
    exercise = BY_NAME[name]

    def right(inputs):
        return [runner.outcome(exercise.play, exercise.variant(), args, 0) for args in inputs]

    def again(inputs):
        return [run.value for run in runner.run_answer(exercise.play, answer, inputs).runs]

    return " | ".join(findings(Trial.of(exercise, right, again)))


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
            "every number is 1 / the root of the size of axis -1 of `x` times",
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
            lambda q, k, w: solution("gaussian_weights")(q, k, w) + 0.1 * q.abs()[:, None],
            "the sums of rows are wrong",
        ),
        (
            "hide_tokens",
            lambda *a: (solution("hide_tokens")(*a)[0], solution("hide_tokens")(*a)[1] * 7 + 1),
            "the first result is right, the second result is not",
        ),
        (
            "add_and_norm",
            lambda x, s, n, norm_first: (
                solution("add_and_norm")(x, s, n, norm_first) if norm_first else x * x
            ),
            "right on those where `norm_first` is True, wrong on those where `norm_first` is False",
        ),
        ("normalise_tokens", _batch_statistics, "; it must not"),
    ],
)
def test_experiments_tell_the_truth(name, answer, words):
    assert words in found(name, answer)


def _divided(queries, keys, width):
    return torch.softmax(queries[:, None] * keys / width, dim=1)


def _one_sentence_only(*args):
    out = solution("prefix_attend")(*args)
    return torch.cat([out[:1], out[1:] * 0.9])


@pytest.mark.parametrize(
    ("name", "answer", "never"),
    [  # seen on a query of 0, on saturated scores, on a row that is hidden
        ("gaussian_weights", _divided, "does not depend"),
        ("softmax_with_mask", lambda s, m: s.softmax(-1) * m, "does not depend on row 0"),
        (
            "next_token_pairs",
            lambda ids, length: solution("next_token_pairs")(ids, length + 1),
            "odd",
        ),
    ],
)
def test_what_holds_on_a_degenerate_input_only_is_not_told(name, answer, never):
    assert never not in found(name, answer)
    assert never not in str(check(name, answer))


def test_generic_inputs_have_no_zeros_and_nothing_saturated():
    for exercise in FUNCTIONS:
        for original, args in zip(
            [p for p in exercise.probes for _ in range(2)], generic(exercise), strict=False
        ):
            for before, after in zip(original, args):
                drawn = isinstance(after, torch.Tensor) and after is not before
                if drawn:
                    assert (after != 0).all()
                    assert after.abs().max() < 6


# ---------------------------------------------------------------- form first


def _one_tensor(x, memory, weights):
    return solution("read_segment")(x, memory, weights)[0]


class _BlockAndMemory(nn.Module):
    def __init__(self, *parts):
        super().__init__()
        self.inner = solution("TinyDecoderBlock")(*parts)

    def forward(self, x, memory, target_mask, source_mask):
        return self.inner(x, memory, target_mask, source_mask), memory


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("read_segment", _one_tensor, "; due are 2 things"),
        ("TinyDecoderBlock", _BlockAndMemory, "It returns 2 things; due is one tensor"),
        (
            "cached_step",
            lambda *a: (*solution("cached_step")(*a), 1),
            "It returns 3 things; due are 2 things",
        ),
        (
            "mean_of_real",
            lambda *args: solution("mean_of_real")(*args)[None],
            "axes of size 1 are too many",
        ),
    ],
)
def test_how_many_things_came_back_is_settled_first(name, answer, words):
    text = str(check(name, answer))
    assert words in text
    for never in ("too many values to unpack", "Trains: it is", "signs", "`stack`"):
        assert never not in text


def test_nothing_returned_and_truth_values_are_said_in_words():
    said = str(check("scaled_attention", lambda q, k, v: None))
    assert "It returned None: is a `return` missing?" in said
    assert gap({"trains": True}, {"trains": False}).fact == "trains: it is False, not True"


def test_an_error_of_shape_is_no_error_of_signs():
    def bare_squeeze(hidden, outputs, lengths, score):
        return solution("decoder_context")(hidden, outputs, lengths, score).squeeze()

    text = str(check("decoder_context", bare_squeeze))
    assert "signs" not in text
    assert "shape" in text or "a step is too many" in text


def test_a_number_that_several_slips_give_lists_them():
    text = str(check("pipeline_bubble", 12 / 16))
    assert "the idle share of a single batch is given" in text
    assert "the busy share of 16 ticks is given" in text


def test_none_for_a_number_is_no_missing_return():
    assert "None was given, not a number" in str(check("stack_multiplications", None))


# ---------------------------------------------------------------- errors


def test_errors_read_the_learners_line_and_call():
    def misspelt(scores, mask):
        return torch.softmax(scroes, -1)  # noqa: F821

    def wrong_method(scores, mask):
        return scores.sofmax(-1)

    def other_parameter(scores, mask):
        return attention.masked_softmax(scores, mask)

    def misfit(scores, mask):
        twice = torch.cat([mask, mask], -1)
        return scores + twice

    assert "Did you mean `scores`?" in str(check("softmax_with_mask", misspelt))
    assert "Did you mean `softmax`?" in str(check("softmax_with_mask", wrong_method))
    text = str(check("softmax_with_mask", other_parameter))
    assert "`mask` went to the parameter `valid_lens` of `masked_softmax`" in text
    assert "must be boolean" not in text
    text = str(check("softmax_with_mask", misfit))
    assert "In that line the shapes are `scores` (1, 2, 2), `twice` (1, 2, 4)" in text


def test_where_the_example_is_square_an_input_is_shown_where_the_slip_shows():
    def transposed(queries, keys, W_q, W_k, w_v):
        W_q, W_k = W_q.T, W_k.T
        hidden = torch.tanh((queries @ W_q).unsqueeze(2) + (keys @ W_k).unsqueeze(1))
        return hidden @ w_v

    text = str(check("additive_scores", transposed))
    assert "it stops with an error" in text
    assert "`W_q` (3, 2)" in text


# ---------------------------------------------------------------- holes


def _by_size_of_values(q, k, v):
    hidden = torch.ones(q.shape[1], q.shape[1]).triu(1).bool()
    scores = (q @ k.mT / v.shape[-1] ** 0.5).masked_fill(hidden, -math.inf)
    return scores.softmax(-1) @ v, scores.softmax(-1)


def _safe_division(queries, keys, width):
    kernel = torch.exp(-(((queries[:, None] - keys) / width) ** 2) / 2)
    return kernel / (kernel.sum(1, keepdim=True) + 1e-8)


def _plain_division(queries, keys, width):
    kernel = torch.exp(-(((queries[:, None] - keys) / width) ** 2) / 2)
    return kernel / kernel.sum(1, keepdim=True)


def _keeps_the_gradient(weight, micro_batches, pad):
    weight.requires_grad_()
    count = 0
    for x, targets in micro_batches:
        logits = (x @ weight).flatten(0, 1)
        F.cross_entropy(logits, targets.flatten(), ignore_index=pad, reduction="sum").backward()
        count += int((targets != pad).sum())
    return weight.grad / count


def _usual_eos(next_logits, bos, eos, max_len):
    return solution("greedy_tokens")(next_logits, bos, 2, max_len)


class _Biased(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.inner = solution("TinyMultiHead")(d_model, num_heads)
        for name in ("W_q", "W_k", "W_v", "W_o"):
            setattr(self.inner, name, nn.Linear(d_model, d_model))

    def forward(self, *args):
        return self.inner(*args)


class _NeedsABias(solution("LoRAForTwo")):
    def forward(self, x):
        return super().forward(x) + 0 * self.base.bias.sum()


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("causal_attention", _by_size_of_values, "but not where d is not v"),
        ("gaussian_weights", _safe_division, ""),
        ("gaussian_weights", _plain_division, "NaN"),
        ("accumulated_gradient", _keeps_the_gradient, "once more with the same tensors"),
        ("greedy_tokens", _usual_eos, ""),
        ("TinyMultiHead", _Biased, "the maps have biases"),
        ("LoRAForTwo", _NeedsABias, "AttributeError"),
        ("softmax_with_mask", lambda s, m: s.masked_fill(~m, -1e6).softmax(-1) * m, ""),
    ],
)
def test_no_hole(name, answer, words):
    result = check(name, answer)
    assert not result
    assert words.casefold() in str(result).casefold()


def test_what_the_text_rules_out_is_noticed_by_its_calls():
    def by_module(x, gamma, beta, eps):
        norm = nn.LayerNorm(x.shape[-1], eps=eps)
        norm.weight.data, norm.bias.data = gamma, beta
        return norm(x)

    def by_keyword(logits, targets, smoothing):
        return nn.CrossEntropyLoss(label_smoothing=smoothing)(logits, targets)

    result = check("normalise_tokens", by_module)
    assert result.status == "borrowed"
    assert "It calls `layer_norm`, which the exercise rules out" in str(result)
    assert check("label_smoothed_loss", by_keyword).status == "borrowed"


def test_the_librarys_own_function_is_noticed():
    def own_words(scores, mask):
        return attention.masked_softmax(scores, mask=mask.expand_as(scores))

    def own_work_on_top(scores, mask):
        return attention.masked_softmax(scores, mask=mask.expand_as(scores)) * 1.0

    text = str(check("softmax_with_mask", own_words))
    assert "not by your own work" in text
    assert "what `masked_softmax` of the course's library gives" in text
    assert check("softmax_with_mask", own_work_on_top)
    for exercise in FUNCTIONS:
        assert "Transformer" not in judge.may_borrow(exercise)


def test_a_right_answer_that_fails_in_float64_is_right_and_told_so():
    def in_float32(scores, mask):
        return (scores.masked_fill(~mask, -1e9).softmax(-1) * mask) @ torch.eye(scores.shape[-1])

    result = check("softmax_with_mask", in_float32)
    assert result
    assert "on inputs in float64 it raises RuntimeError" in str(result)
    assert in_float64(BY_NAME["softmax_with_mask"]) is not None


# ---------------------------------------------------------------- help in place, time


def test_help_folds_out_one_step_inside_the_other():
    html = check("scaled_attention", values_turned)._repr_html_()
    assert html.count("<details") == html.count("</details") == 4
    assert html.index("Hint 1 of 3") < html.index("Hint 3 of 3") < html.index("Solution")
    assert "<details" not in check("scaled_attention", solution("scaled_attention"))._repr_html_()
    assert "hint('scaled_attention')" not in html
    assert hint("scaled_attention", 1)


def test_nothing_of_the_solution_is_told_before_its_fold():
    def inverted(tokens, pad):
        return (tokens == pad)[:, None, None, :]

    for result in (check("padding_visible", inverted), check("scaled_attention", values_turned)):
        text = str(result)
        for line in code_lines(BY_NAME[result.exercise.name]):
            assert line not in text


def code_lines(exercise):
    from course_utils.checker import source

    stub = source.stub(exercise).splitlines()
    lines = [x for x in source.solved(exercise).splitlines() if x not in stub]
    return [x.strip().removeprefix("return ").split("  #")[0] for x in lines if len(x) > 20]


def test_the_smallest_input_is_small_and_of_whole_numbers():
    result = check("scaled_attention", values_turned)
    queries, keys, values = result.verdict.case.args
    assert queries.numel() <= 4
    assert keys.shape[1] == 2
    assert (keys == keys.round()).all()


def test_a_line_says_that_it_is_still_looking(capsys, monkeypatch):
    pauses = [1.5]

    def slow(scores, mask):
        time.sleep(pauses.pop() if pauses else 0)
        return solution("softmax_with_mask")(scores, mask)

    assert check("softmax_with_mask", slow, seconds=60)
    assert not pauses
    err = capsys.readouterr().err
    assert err.startswith("softmax_with_mask: still looking ...\r")
    assert err.endswith(" \r")
    monkeypatch.setenv("COURSE_HEADLESS", "1")
    pauses += [1.5]
    assert check("softmax_with_mask", slow, seconds=60)
    assert not pauses
    assert capsys.readouterr().err == ""


def test_a_loop_ends_by_its_computing_time():
    def endless(scores, mask):
        while True:
            pass

    assert check("softmax_with_mask", endless).status == "time"


def test_random_numbers_stay_where_they_were():
    torch.manual_seed(3)
    state = torch.get_rng_state()
    catalogue()
    check("scaled_attention", values_turned)
    assert torch.equal(state, torch.get_rng_state())


def test_gap_of_shapes_says_what_is_certain():
    assert "axes of size 1 are too many" in gap(torch.ones(1, 2), torch.ones(1, 1, 2)).fact
    assert "sizes of axes 0 and 1 are exchanged" in gap(torch.ones(3, 2), torch.ones(2, 3)).fact
    assert gap(torch.ones(3, 2), torch.ones(6)).fact == "the shape is (6,), not (3, 2)"
