"""Rules of the checker that hold for every exercise, each seen on one that once broke it."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_utils.checker import catalogue, check, runner
from course_utils.checker.findings import some_inputs
from course_utils.checker.generic_inputs import Trial, generic
from course_utils.checker.gradients import cut_off, due_gradients, of_inputs
from course_utils.checker.values import gap

BY_NAME = {e.name: e for e in catalogue()}


@pytest.fixture(autouse=True)
def _patient(patient_search):
    """However busy the machine is."""


# ---------------------------------------------------------------- typed answers


@pytest.mark.parametrize("number", [4.2, 8, 10.5])
def test_small_whole_numbers_are_not_put_down_to_two_slips(number):
    text = str(check("layers_to_connect", number))
    assert "slips together" not in text
    assert ("whole number" in text) == (number != int(number))


def test_where_pairs_were_worked_out_no_others_are_guessed():
    assert "slips together" not in str(check("multi_head_parameters", 1024))
    assert ", and " in check("attention_multiplications", 3520).mistakes[0]
    two_ways = check("attention_multiplications", 41_060)
    assert not two_ways.mistakes
    assert "One way to this number: " in str(two_ways)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("where_attention_costs_most", 2048),  # 3072 + 512 - 1536, and only the scores: no, 1024
        ("pipeline_bubble", 13 / 15),  # the two slips make 11 / 15
        ("best_without_order", 0.55),  # they make 0.7
        ("best_without_order", 0.25),  # the square of what is due, but nothing there has a root
    ],
)
def test_what_two_slips_make_is_not_guessed_from_what_each_makes(name, answer):
    text = str(check(name, answer))
    assert "slips" not in text
    assert "root" not in text


@pytest.mark.parametrize(("name", "answer"), [("weight_ratio", 20), ("residual_gradient", 2.6)])
def test_a_number_rounded_too_far_is_told_so(name, answer):
    assert "less than 1 % too" in str(check(name, answer))


def test_a_letter_that_is_no_answer_is_told_the_answers():
    assert "The answers are a, b, c, d, e." in str(check("leak_past_the_mask", "f"))
    assert "The answers are" not in str(check("stream_of_stack", "CDB"))


# ---------------------------------------------------------------- facts


def _half(positions, d):
    angle = positions[:, None].half() * 100.0 ** (-torch.arange(0, d, 2) / d)
    return 2 * torch.cat([angle.sin(), angle.cos()], dim=1)


def test_of_several_properties_all_that_fail_are_told():
    result = check("own_code", lambda p, d: (p[:, None] % 7 / 7 * torch.arange(1, d + 1)).sin() * 2)
    told = [fact for fact in result.verdict.facts if fact.startswith("this does not hold")]
    assert result.mistakes or len(told) > 1


def test_numbers_that_are_not_finite_are_not_called_large():
    result = check("own_code", lambda p, d: _half(p, d) / 2)
    assert result.mistakes == ("far positions are not finite numbers",)


def test_no_input_is_called_wrong_on_which_nothing_was_tried():
    """Right on all generic inputs, wrong on the one that is shown: nothing tells the two apart."""
    exercise = BY_NAME["TinyMultiHead"]
    inputs = list(generic(exercise))
    due = [runner.outcome(exercise.play, exercise.variant(), args, 0) for args in inputs]
    shown = ((inputs[0], due[0], {"output": torch.zeros(1)}),)
    assert some_inputs(Trial(exercise, inputs, due, due, None, None, shown)) is None


def test_a_number_that_is_not_used_is_told():
    def own(x, gamma, beta, eps):
        mean = x.mean(-1, keepdim=True)
        spread = (x.square().mean(-1, keepdim=True) - mean**2).clamp(min=0)
        return gamma * (x - mean) / torch.sqrt(spread + 0.25**2) + beta

    text = str(check("normalise_tokens", own))
    assert "does not change when `eps` changes; it should" in text
    assert text.count("`eps`") == 1


def test_a_whole_number_has_no_bits_turned_in_a_repair():
    def look_back(steps, d):
        angle = -(steps + 1) * 10000.0 ** (-torch.arange(0, d, 2) / d)
        key = torch.stack([angle.cos(), angle.sin()], dim=1).flatten()
        return torch.tensor([1.0, 0.0] * (d // 2)), key

    result = check("look_back", look_back)
    assert set(result.mistakes) == {"the head looks ahead", "the head looks one step too far back"}


# ---------------------------------------------------------------- gradients


def _detached(x, sublayer, norm, norm_first):
    y = sublayer(norm(x) if norm_first else x).detach()
    return x + y if norm_first else norm(x + y)


def _by_numpy(x):
    weights = torch.softmax(x @ x.mT, -1).detach().numpy()
    return torch.from_numpy(weights @ x.detach().numpy()), torch.from_numpy(weights)


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("add_and_norm", _detached, "part of the gradient does not flow back"),
        ("basic_attention", _by_numpy, "no gradient flows back"),
    ],
)
def test_a_right_function_that_cuts_the_gradient_off_gets_a_remark(name, answer, words):
    result = check(name, answer)
    assert result.status == "right"
    assert words in str(result)


class _Cut(BY_NAME["TinyDecoderBlock"].solution):
    def forward(self, x, memory, target_mask, source_mask):
        read = self.norms[0](x)
        x = x + self.self_attention(read, read, read, target_mask)
        x = x + self.cross_attention(self.norms[1](x), memory, memory, source_mask)
        return x + self.ffn(self.norms[2](x.detach()))


def test_a_module_that_cuts_part_of_the_gradient_off_is_not_right():
    result = check("TinyDecoderBlock", _Cut)
    assert not result
    assert "part of the gradient does not flow back" in str(result)


@pytest.fixture
def warnings_of_torch(recwarn):
    """All of them, also those that torch gives once in a process."""
    torch.set_warn_always(True)
    yield recwarn
    torch.set_warn_always(False)


def test_right_answers_have_the_gradient_that_is_due(warnings_of_torch):
    known = 0
    for exercise in BY_NAME.values():
        due = due_gradients.__wrapped__(exercise, False) if exercise.kind != "value" else None
        known += due is not None
        if due is not None:
            played = of_inputs(exercise.play)
            given = runner.outcome(played, exercise.solution, exercise.probes[-1], 0)
            assert cut_off(due, given) == ""
    assert known >= 30
    assert not [str(w.message) for w in warnings_of_torch if issubclass(w.category, UserWarning)]


# ---------------------------------------------------------------- right answers


def test_large_floats_are_measured_and_whole_numbers_counted():
    due = torch.tensor(2.7669754e13)  # in float32 a whole number, as all of this size
    assert gap(due, 27669850750976.0).size < 1
    assert gap(due, 1.01 * due.item()).size > 1
    assert gap(2**24, 2**24 + 1).size == math.inf
    assert gap(7, 8.0).size == math.inf


def _perplexity(logits, targets, pad):
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=pad)
    return loss.exp().item()


def test_a_large_right_number_may_be_pythons():
    assert "\u2713" in str(check("text_perplexity", _perplexity))


def _by_sums():
    W_q, W_k = torch.zeros(2, 6, 6)
    W_q[1, 0], W_q[1, 1] = 20.0, -20.0
    W_k[0, 0] = W_k[1, 1] = 3.0
    return W_q, W_k, torch.diag(torch.tensor([0.0, 0, 0, 1, 1, 1]))


def test_inputs_that_a_statement_rules_out_refuse_no_right_answer():
    """A sentence that is cut has no noun any more: no answer is tried on it."""
    assert check("head_by_hand", _by_sums).status == "right"


class _InvertedAndMerged(BY_NAME["TinyMultiHead"].solution):
    def forward(self, queries, keys, values, real_keys):
        q, k, v = (
            x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for x in (self.W_q(queries), self.W_k(keys), self.W_v(values))
        )
        scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(
            real_keys[:, None, None], -math.inf
        )
        return self.W_o((scores.softmax(-1).nan_to_num() @ v).reshape(queries.shape))


def test_two_mistakes_of_a_module_are_both_named():
    result = check("TinyMultiHead", _InvertedAndMerged)
    assert set(result.mistakes) == {"the mask is inverted", "heads merged without the transpose"}


def _shrunk(block):
    for weight in (block.attention.W_o.weight, block.ffn.output.weight):
        weight.data *= 1e-7
    nn.init.zeros_(block.ffn.output.bias)


def test_tiny_is_not_zero():
    assert check("start_as_identity", _shrunk).mistakes == ("the last weights are tiny, not zero",)
