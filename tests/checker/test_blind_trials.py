"""What strangers' answers showed: holes that were closed, right answers that were refused."""

import ast
import contextlib
import math
import re

import numpy as np
import pytest
import torch

from course_utils.checker import catalogue, check
from course_utils.checker.edits import code_of
from course_utils.checker.exercise import REGISTRY
from course_utils.checker.one_change import place
from course_utils.checker.shown import first_difference
from course_utils.checker.smaller import smaller
from course_utils.checker.verdict import turns_round


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("what_fits", "ED"),
        ("what_fits", "e, d"),
        ("peak_learning_rate", 4.94e-4),
        ("next_merge", lambda words, times: np.array(_next(words, times))),
        ("next_merge", lambda words, times: torch.tensor(_next(words, times))),
    ],
)
def test_the_form_of_a_right_answer_is_free(name, answer):
    assert check(name, answer).status == "right"


def _next(words, times):
    pairs = [p for w, n in zip(words, times) for p in [*zip(w, w[1:])] * n]
    best = min(pairs, key=lambda p: (-pairs.count(p), p))
    return [*best, pairs.count(best)]


@pytest.mark.parametrize("rate", [0.0, 1e-6, 4.85e-4, 5.0e-4, 1e-7])
def test_of_small_typed_numbers_the_digits_count(rate):
    result = check("peak_learning_rate", rate)
    assert result.status == "wrong"
    assert not result.mistakes
    assert "given     0.0\n" not in str(result) or rate == 0


@pytest.mark.parametrize(
    ("name", "answer", "part"),
    [
        ("largest_difference", 1, "one score is bounded"),
        ("attention_multiplications", 10 * 64 * 64, "length and size are exchanged"),
        ("multi_head_parameters", 3 * (64 * 64 + 64), "biases are counted"),
        ("peak_learning_rate", 512**-0.5 * 4000**-1.5, "the width of the base model is used"),
    ],
)
def test_a_number_that_two_slips_make_is_not_put_down_to_one(name, answer, part):
    (mistake,) = check(name, answer).mistakes
    assert part in mistake
    assert ", and " in mistake


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("my_sampler", lambda probs: _cut(probs, 0.1)),
        ("my_sampler", lambda probs: _cut(probs, 0.005)),
        ("my_sampler", lambda probs: _cut(probs, 0.1 * probs.max())),
        ("find_rate", lambda train: _best_of(train, 12)),
        ("find_rate", lambda train: _best_of(train, 11)),
        ("bits_per_byte", lambda x, text: x.sum() / math.log(2) / len(text.strip().encode())),
    ],
)
def test_answers_that_once_passed_are_named(name, answer):
    assert len(check(name, answer).mistakes) == 1


def _cut(probs, limit):
    kept = probs * (probs >= limit)
    return kept / kept.sum(-1, keepdim=True)


def _best_of(train, count):
    losses = {10 ** (-5 + 5 * i / (count - 1)): 0.0 for i in range(count)}
    for rate in losses:
        loss = train(rate)
        losses[rate] = math.inf if math.isnan(loss) else loss
    return min(losses, key=losses.get)


@pytest.mark.parametrize("group", ["left", "right"])
def test_lost_spaces_are_not_taken_for_cut_words(group):
    def pieces(text):
        kept = "".join(c if c.isalnum() else " " for c in text).split()
        found = []
        for run in kept:
            first = len(run) % 3 if group == "right" and run.isdigit() else 0
            size = 3 if run.isdigit() else len(run)
            found += [run[:first]] * (first > 0)
            found += [run[i : i + size] for i in range(first, len(run), size)]
        return found

    text = str(check("split_fairly", pieces))
    assert "cuts no word: False" not in text
    assert "Words are cut" not in text


def test_a_piece_of_code_that_stands_twice_in_a_line_is_counted():
    code = code_of(_twice)
    edits = [e for e in code.edits(0) if ast.unparse(e.node) == "0"]
    assert {place([e], code).split(",")[1] for e in edits} == {
        " at `0` (number 1 of 3)",
        " at `0` (number 2 of 3)",
        " at `0` (number 3 of 3)",
    }


def _twice(x):
    return (x != 0).cumsum(0).clamp(min=0)


def _kept(weights, budget):
    back = torch.arange(len(weights))[:, None] - torch.arange(len(weights))
    first = torch.arange(len(weights)) == 0
    near = (back >= 0) & (back < budget - 1) | (first & (back >= 0))
    window = (back >= 0) & (back < budget)
    return [(weights * mask).sum() / len(weights) for mask in (window, near)]


@pytest.mark.parametrize(
    "form",
    [tuple, list, torch.stack, np.array, lambda x: (x[0].item(), x[1].item())],
    ids=["tuple", "list", "tensor", "array", "floats"],
)
def test_a_short_vector_may_come_in_any_form(form):
    assert check("kept_by_bets", lambda w, b: form(_kept(w, b))).status == "right"


def test_of_another_kind_of_thing_no_mistake_is_made_up():
    text = str(check("softmax_with_mask", lambda scores, mask: scores.tolist()))
    assert "list or tuple, not a tensor" in text
    assert "times what it should be" not in text


def _naive(x):
    powers = (x @ x.mT).exp()
    weights = powers / powers.sum(-1, keepdim=True)
    return weights @ x, weights


def _beside(layer, x):
    before, columns = layer(x), []
    for j in range(len(x)):
        changed = x.clone()
        changed[j] = x[j - 1]
        columns.append((layer(changed) - before).abs().amax(-1) > 1e-6)
    return torch.stack(columns, 1)


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("basic_attention", _naive, "first subtract the largest"),
        ("influence", _beside, "holds the same at 0 and 1"),
        (
            "brevity_penalty",
            lambda c, r: 1.0 if c >= r - 1 else math.exp(1 - r / c),
            "where `candidate_length` + 1 is `reference_length`",
        ),
    ],
)
def test_widened_inputs_refuse_what_is_right_by_luck(name, answer, words):
    result = check(name, answer)
    assert result.status == "wrong"
    assert words in str(result)


def _in_place(model, ids, mask_id):
    total = 0.0
    for i in range(1, len(ids) - 1):
        word = ids[i]
        ids[i] = mask_id
        total = total + model(ids[None])[0, i].log_softmax(-1)[word]
        ids[i] = word
    return total


def test_a_missing_copy_is_called_a_copy():
    assert "a step is missing (a copy)" in str(check("score_by_hiding", _in_place))


def _bits(segments):
    near = (segments[:, :, None] & segments[:, None]) > 0
    return near & torch.ones(2 * segments.shape[1:], dtype=torch.bool).tril()


def test_no_known_mistake_is_told_that_is_further_from_what_is_right():
    assert "what is left is this mistake" not in str(check("own_sentence", _bits))


def test_a_lost_axis_is_no_wrong_average():
    text = str(check("pooled", lambda weights, values: (weights @ values[:, None]).squeeze()))
    assert "The numbers are right" in text
    assert "Two things together" not in text


# ---------------------------------------------------------------- a sweep of chapters 13 to 16


def _rest_taken_twice(merged, old_A, old_B, new_A, new_B, alpha):
    without = merged - alpha % len(old_A) * old_B @ old_A
    return without + alpha % len(new_A) * new_B @ new_A


def _sum_over_an_axis_twice(weights, budget):
    back = torch.arange(len(weights))[:, None] - torch.arange(len(weights))
    near, fewer = (back >= 0) & (back < budget), (back >= 0) & (back < budget - 1)
    fewer[:, 0] = True
    return torch.stack([(weights * near).mean(-1).mean(), (weights * fewer).mean(-1).mean()])


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("switch_task", _rest_taken_twice, "another operation is due, here and at 1 more place"),
        ("kept_by_bets", _sum_over_an_axis_twice, "another function is due, here and at 1 more"),
    ],
)
def test_a_slip_that_was_copied_is_found_in_all_its_places(name, answer, words, patient_search):
    text = str(check(name, answer))
    assert words in text
    assert "with the same change in each of them it is right" in text


def _one_bias(num, size):
    layers = torch.nn.ModuleList(torch.nn.Linear(size, size) for _ in range(num))
    for layer in layers[1:]:
        layer.bias = layers[0].bias
    return layers


def _first_left_out(weights, budget):
    window, sink = 0.0, 0.0
    for t in range(len(weights)):
        window += weights[t, max(0, t - budget + 1) : t + 1].sum()
        sink += weights[t, max(1, t - budget + 2) : t + 1].sum()
        sink += weights[t, 0] if t >= budget else 0
    return torch.stack([window, sink]) / len(weights)


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("own_linears", _one_bias, "too many"),
        ("kept_by_bets", _first_left_out, "the branch after `else` is too many"),
    ],
)
def test_a_line_too_many_is_told_and_not_what_keeps_it_from_acting(
    name, answer, words, patient_search
):
    assert words in str(check(name, answer))


def _clamped(queries, keys, values):
    q, k = (torch.where(x > 0, x + 1, x.exp()) for x in (queries, keys))
    state = torch.einsum("td,tv->tdv", k, values).cumsum(0)
    total = (q * k.cumsum(0)).sum(-1, keepdim=True)
    return torch.einsum("td,tdv->tv", q, state) / total.clamp(min=1.0)


def _floats_of_none(num_tokens, radius, global_positions):
    at = torch.arange(num_tokens)
    mask = (at[:, None] - at).abs() <= radius
    chosen = torch.tensor(global_positions)
    mask[chosen], mask[:, chosen] = True, True
    return mask


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("running_attention", _clamped, "is negative throughout"),
        ("sparse_pattern", _floats_of_none, "not where `global_positions` is empty"),
    ],
)
def test_edges_are_tried_once_all_else_is_right(name, answer, words):
    assert words in str(check(name, answer))


class _Turned(torch.nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base, self.half = base.requires_grad_(False), base.out_features // 2
        self.angle = torch.nn.Parameter(torch.zeros(self.half))
        self.factor = torch.nn.Parameter(torch.ones(base.out_features % 2))

    def forward(self, x):
        y = self.base(x)
        a, b, rest = y.split([self.half, self.half, y.shape[1] - 2 * self.half], dim=1)
        cos, sin = self.angle.cos(), self.angle.sin()
        return torch.cat([cos * a - sin * b, sin * a + cos * b, self.factor * rest], dim=1)


class _OneColumn(torch.nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.add = torch.nn.Linear(1, base.out_features, bias=False)
        torch.nn.init.zeros_(self.add.weight)

    def forward(self, x):
        return self.base(x) + self.add(x.mean(-1, keepdim=True))


@pytest.mark.parametrize("answer", [_Turned, _OneColumn])
def test_every_way_of_tuning_may_take_steps_of_its_own_size(answer):
    assert check("OwnTuning", answer).status == "right"


def test_of_parts_that_are_equal_no_sign_is_said_to_be_wrong():
    def shapes(B, Tq, Tk, d_model, h):
        d = d_model // h
        heads = (B, Tq, d, h)
        return {"queries": heads, "scores": heads, "heads": heads, "output": (B, Tq, d_model)}

    assert "signs" not in str(check("multi_head_shapes", shapes))
    assert "no part called heads" in str(
        check("multi_head_shapes", lambda *_: {"queries": 1, "scores": 1, "output": 1})
    )


def test_two_numbers_that_differ_are_shown_with_digits_that_do():
    due, given = torch.tensor([1.5, 1.17486]), torch.tensor([1.5, 1.17506])
    said = first_difference(due, given, (1,)).split("expected ")[1].split(", given ")
    assert [round(float(x), 5) for x in said] == [1.17486, 1.17506]


@pytest.mark.filterwarnings("ignore::SyntaxWarning")  # some edits make odd code
def test_code_is_as_before_when_edits_were_tried():
    for answer in (_in_place, _twice, _clamped, _first_left_out):
        code = code_of(answer)
        before = ast.dump(code.tree)
        for edit in (*code.edits(0), *code.edits(1), *code.together()):
            with contextlib.suppress(Exception):
                code.answer(edit)
            assert ast.dump(code.tree) == before, edit.words


def _shown_without_marks(pieces):
    whole = [b"".join(pieces[: i + 1]).decode(errors="replace").rstrip("\ufffd")
             for i in range(len(pieces))]  # fmt: skip
    return [text[len(before) :] for before, text in zip(["", *whole], whole)]


def _next_of_different_words(words, times):
    often = dict(zip(map(tuple, words), times))
    return _next([list(word) for word in often], [*often.values()])


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("shown_so_far", _shown_without_marks, "U+FFFD is a character like any other"),
        ("next_merge", _next_of_different_words, "`words` holds the same at 0 and 1"),
        (
            "gated_network",
            lambda x, gate, up, down: (
                (x @ gate) * (x @ gate).exp() / (1 + (x @ gate).exp()) * (x @ up) @ down
            ),
            "a sigmoid is 1 / (1 + exp(-z))",
        ),
        (
            "rms_normalise",
            lambda x, w, eps: x * w * (x.shape[-1] / (x.square().sum(-1, True) + eps)).sqrt(),
            "in the sum it counts only as eps / d",
        ),
    ],
)
def test_what_a_trial_on_todays_blocks_and_tokens_let_pass(name, answer, words):
    result = check(name, answer)
    assert result.status in ("wrong", "mistake")
    assert words in str(result)


def _one_variable(clean, corrupted, patched):
    return (patched.mean(0) - clean.mean()) / (clean.mean() - corrupted.mean())


def _non_zero(x, valid_lens):
    real = torch.arange(x.shape[1]) < valid_lens[:, None]
    x = x.masked_fill(~real[..., None], 0)
    return x.sum(1) / (x != 0).sum(1)


def _second_layer(hidden, outputs, lengths, score):
    scores = score(hidden[1][:, None], outputs)
    hidden_keys = torch.arange(outputs.shape[1]) >= lengths[:, None, None]
    return (scores.masked_fill(hidden_keys, -math.inf).softmax(-1) @ outputs)[:, 0]


def _gone_through_once(word, merges):
    ids, i = list(word), 0
    while i < len(ids) - 1:
        if (ids[i], ids[i + 1]) in merges:
            ids[i : i + 2] = [256 + merges.index((ids[i], ids[i + 1]))]
        else:
            i += 1
    return ids


def _as_sets(word, merges):
    ids = list(word)
    for k, pair in enumerate(merges):
        i = 0
        while i < len(ids) - 1:
            if set(ids[i : i + 2]) == set(pair):
                ids[i : i + 2] = [256 + k]
            i += 1
    return ids


def _all_queries(scores, log_sum, values, grad, output):
    return torch.exp(scores - log_sum[:, None]) * (grad @ values.T - (grad * output).sum())


@pytest.mark.parametrize(
    ("name", "answer", "mistake"),
    [
        ("effects_of_many", _one_variable, "the difference above is between patched and clean"),
        ("mean_of_real", _non_zero, "zeros are taken for padding"),
        ("decoder_context", _second_layer, "the second layer asks"),
        ("encode_word", _gone_through_once, "the word is gone through once, from left to right"),
        ("encode_word", _as_sets, "a pair is joined in either order"),
        ("score_gradient", _all_queries, "gradient times output is summed over all queries"),
    ],
)
def test_one_slip_gets_one_name(name, answer, mistake):
    assert check(name, answer).mistakes == (mistake,)


def test_a_tiny_number_is_added_to_divisors_roots_and_logarithms_alone():
    def code(x, y):
        return (x * y).sum() / y.norm() + y.log() + torch.sqrt(x)

    made = {ast.unparse(e.new) for e in code_of(code).edits(2)}
    assert {text for text in made if "1e-06" in text} == {
        "(x * y).sum() / (y.norm() + 1e-06)",
        "(y + 1e-06).log()",
        "torch.sqrt(x + 1e-06)",
    }

    def with_a_trick(x, valid_lens):
        return _non_zero(x + 1e-6, valid_lens)

    assert check("mean_of_real", with_a_trick).status != "right"


def test_one_change_is_told_before_two_mistakes_of_which_one_only_turns_the_signs():
    exercise = REGISTRY["effects_of_many"]
    by_name = {m.name: m for m in exercise.mistakes}
    turned = by_name["the difference below has the wrong sign"]
    other = by_name["what is still missing is counted"]
    assert turns_round(exercise, (turned, other))
    assert not turns_round(exercise, (turned,))
    assert not turns_round(exercise, (other, by_name["effects are cut off at 0 and 1"]))


def test_nothing_depends_on_an_argument_is_told_first():
    said = str(
        check("effects_of_many", lambda clean, corrupted, patched: patched.mean(0) ** 3 - 7.3)
    )
    assert "does not change when `clean` changes; it should" in said
    assert "does not depend on row" not in said


def test_what_is_ruled_out_stands_in_the_text():
    forbidding = [e for e in catalogue() if e.forbids]
    assert len(forbidding) > 4
    for exercise in forbidding:
        for name in exercise.forbids:
            bare = re.search(r"\w+(?=\)$)|\w+$", name).group()
            assert re.search(rf"\b{bare}`", exercise.text), (exercise.name, name)


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("fair_router", lambda z: z.argmax(1).numpy(), "a result of type ndarray came back"),
        ("fair_router", lambda z: torch.zeros(z.shape), "here (2,), and (2, 2) came back"),
        ("fair_router", lambda z: z.argmax(1) + 9, "Experts are numbers from 0 to"),
    ],
)
def test_a_result_of_another_form_is_no_error(name, answer, said):
    result = check(name, answer)
    assert result.status == "wrong"
    assert said in " ".join(str(result).split())
    assert "raised" not in str(result)


def test_of_several_calls_the_one_that_differs_is_shown_with_its_inputs():
    def kept_at_the_edge(p, q, drafted, u, v):
        if u <= p[drafted] / q[drafted]:
            return drafted
        upto = (p - q).clamp(min=0).cumsum(0)
        return int((upto <= v * upto[-1]).sum())

    result = check("keep_or_draw", kept_at_the_edge)
    assert result.mistakes == ("u may be as large as the probability",)
    rows = dict(result._case_rows())
    assert rows["u"] == "0.0"
    assert rows["expected"] == "1"
    assert rows["given"] == "0"


def _all_false(base, loss, allowed):
    return (base - loss > allowed) & (base - loss.diagonal() <= allowed)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("hidden_partners", _all_false),
        ("hidden_partners", lambda b, loss, a: loss - b > 2 * a),
        ("draft_ahead", lambda kept, cost, most: 0),
    ],
)
def test_what_explains_a_few_cases_by_chance_is_not_told(name, answer):
    result = check(name, answer)
    assert not result.mistakes
    assert not re.search("are exchanged|too (small|large)", str(result))


@pytest.mark.parametrize("half", [torch.triu, torch.tril])
def test_half_of_a_symmetric_result_is_told_as_that(half):
    solution = REGISTRY["hidden_partners"].solution
    result = check("hidden_partners", lambda *args: half(solution(*args)))
    assert result.mistakes == ("a pair is given in one order only",)


def test_a_mistake_in_another_form_is_shown_where_its_plain_form_shows():
    def loop_over_pairs(ids, pair, new):
        return [new if (ids[i], ids[i + 1]) == tuple(pair) else ids[i] for i in range(len(ids) - 1)]

    result = check("merge_pair", loop_over_pairs)
    assert result.mistakes == ("the second id of the pair stays", "the last id is lost")
    assert len(result.verdict.case.args[0]) > 1


def test_a_small_example_keeps_numbers_of_a_row_apart():
    exercise = REGISTRY["expert_shares"]
    for i in range(len(exercise.probes)):
        for logits, _ in smaller(exercise, i):
            assert all(len(row.unique()) == len(row) for row in logits)


@pytest.mark.parametrize(
    ("name", "answer", "where"),
    [
        (
            "expert_shares",
            lambda z, k: z.where(z >= z.topk(k).values[:, -1:], torch.tensor(-250.0)).softmax(1),
            "where `logits` is near -256 throughout",
        ),
        (
            "bits_per_byte",
            lambda x, text: (
                x.sum() / math.log(2) / sum(1 + (ord(c) > 127) + (ord(c) > 2047) for c in text)
            ),
            "where `text` holds a character of four bytes",
        ),
        (
            "bits_per_byte",
            lambda x, text: torch.log2(x.exp().prod()) / len(text.encode()),
            "where the text is long",
        ),
    ],
)
def test_ends_and_far_inputs_are_tried(name, answer, where):
    result = check(name, answer)
    assert result.status == "wrong"
    assert where in str(result)


def test_ids_are_labels_0_and_large_ones_too():
    def compared_by_is(ids, pair, new):
        out, i = [], 0
        while i < len(ids):
            hit = i + 1 < len(ids) and ids[i] is pair[0] and ids[i + 1] is pair[1]
            out.append(new if hit else ids[i])
            i += 1 + hit
        return out

    assert "where ids are above 1000" in str(check("merge_pair", compared_by_is))


def test_of_equal_rates_either_may_be_given():
    def the_last(kept, cost, most):
        rates = [sum(kept**i for i in range(k + 1)) / (1 + k * cost) for k in range(most + 1)]
        return max(range(most, -1, -1), key=rates.__getitem__)

    assert check("draft_ahead", the_last)


def test_a_name_that_got_no_value_on_the_way_is_not_called_unknown():
    def when_to_stop(losses, patience):
        best, bad = 0, 0
        for i in range(1, len(losses)):
            best, bad = (i, 0) if losses[i] < losses[best] else (best, bad + 1)
            if bad == patience:
                break
        return best, i

    said = str(check("when_to_stop", when_to_stop))
    assert "not where one loss is all there is" in said
    assert "nothing was assigned to that name before" in said
    assert "No cell has defined" not in said


@pytest.mark.parametrize(
    ("name", "answer", "part"),
    [
        ("best_without_order", 0.6, "all reviews of the pairs are counted"),
        ("unsplit_scale", 512, "a number of features is given"),
    ],
)
def test_a_number_gets_the_words_that_fit_it(name, answer, part):
    assert part in str(check(name, answer)).lower()


def test_no_change_that_is_tried_takes_a_power_without_end():
    """With ** for each * a formula of sizes would have more digits than can be counted."""

    def transformer_parameters(d_model, d_ff, layers, vocabulary):
        attention = 4 * (d_model * d_model + d_model)
        ffn = d_model * d_ff + d_ff + d_ff * d_model + d_model
        norm = 2 * d_model
        encoder = attention + ffn + 2 * norm
        decoder = attention + ffn + 3 * norm
        return layers * (encoder + decoder) + vocabulary * d_model

    assert check("transformer_parameters", transformer_parameters).status == "wrong"
