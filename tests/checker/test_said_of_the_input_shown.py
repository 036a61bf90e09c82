"""Whatever a verdict says holds on the input that it shows, and beyond the inputs tried."""

import re
import time
import warnings

import pytest
import torch
import torch.nn.functional as F

from course_utils.checker import catalogue, check, judge, runner
from course_utils.checker.examined import nearly
from course_utils.checker.repair import repair
from course_utils.checker.runner import outcome
from course_utils.checker.stated_sizes import as_stated
from course_utils.checker.values import gap
from course_utils.checker.verdict import typed, typed_fact
from course_utils.checker.widen import drawn, widened

BY_NAME = {e.name: e for e in catalogue()}
FUNCTIONS = [e for e in BY_NAME.values() if e.kind != "value"]


@pytest.fixture(autouse=True)
def _patient(patient_search):
    """However busy the machine is."""


# ---------------------------------------------------------------- facts and the input shown


def columns_of_the_output_matrix(heads, W_o):
    _, h, _, d_head = heads.shape
    return torch.sin(heads @ W_o.T.reshape(h, d_head, -1))


def over_the_queries(weights, values):
    return torch.sin((weights * values).mean(0))


def weight_as_in_lora(weight, bias, down, down_bias, up, up_bias):
    whole = up @ down
    return weight + whole, bias + whole @ bias + up_bias


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("written_by_heads", columns_of_the_output_matrix),
        ("pooled", over_the_queries),
        ("merge_linear_adapter", weight_as_in_lora),
        ("softmax_with_mask", lambda s, m: (s.exp() * m) / s.exp().sum(-1, keepdim=True)),
        ("into_heads", lambda x, h: torch.stack([x[..., i::h] for i in range(h)], dim=2)),
    ],
)
def test_the_first_difference_and_the_shapes_are_those_of_the_input_shown(name, answer):
    verdict = check(name, answer).verdict
    case = verdict.case
    exercise = BY_NAME[name]
    assert gap(case.expected, outcome(exercise.play, exercise.variant(), case.args, 0)).size <= 1
    assert gap(case.given, outcome(exercise.play, answer, case.args, 0)).size <= 1
    told = gap(case.expected, case.given)
    for fact in verdict.facts:
        if fact.startswith("the first difference"):
            entry = case.expected, case.given
            index = [int(n) for n in re.findall(r"\d+", fact.split(":")[0])]
            for step in index:
                entry = entry[0][step], entry[1][step]
            assert f"{entry[0].item():.1f}"[:3] in fact or f"{entry[0].item():.4g}" in fact
        if "shape is" in fact:
            assert told.fact in fact


def test_where_a_probe_shows_another_form_that_probe_is_shown():
    """Heads dealt out in turn, and not swapped: with as many heads as tokens nobody sees that."""
    answer = lambda x, h: torch.stack([x[..., i::h] for i in range(h)], dim=2)  # noqa: E731
    case = check("into_heads", answer).verdict.case
    assert case.expected.shape != case.given.shape


def test_of_two_mistakes_both_show_on_the_input_shown():
    exercise = BY_NAME["next_token_probabilities"]
    tried = 0
    for pair in exercise.pairs()[::7]:
        verdict = check(exercise.name, exercise.combine(*pair).answer).verdict

        def both_show(args, named=verdict.mistakes):
            made = outcome(exercise.play, exercise.combine(*named).answer, args, 0)
            alone = [outcome(exercise.play, exercise.combine(m).answer, args, 0) for m in named]
            return all(gap(x, made).size > 1 for x in alone)

        if len(verdict.mistakes) == 2 and any(map(both_show, exercise.probes)):
            assert both_show(verdict.case.args)
            tried += 1
    assert tried > 2


def the_sine_of_a_back_reader_and_a_wrong_way_there(x, there, back):
    return torch.cat([torch.sin(back(x)), there(x.flip(1))], dim=-1)


def test_what_a_row_depends_on_holds_in_the_input_shown():
    """Of three tokens row 0 misses row 1; of the two that are shown it does not."""
    said = str(check("both_ways", the_sine_of_a_back_reader_and_a_wrong_way_there))
    assert "x         [[[2.0, -1.0],\n              [3.0, 2.0]]]" in said
    assert "does not depend on row 1" not in said


def test_exp_is_called_infinite_in_the_dtype_in_which_it_was_taken():
    def in_float64(out1, log1, out2, log2):
        a, b = log1.double().exp()[:, None], log2.double().exp()[:, None]
        out = (a * out1 + b * out2) / (a + b)
        return out.to(out1.dtype), (a + b).log()[:, 0].to(log1.dtype)

    said = str(check("join_halves", in_float64))
    assert "The first result: " in said
    assert "is infinite in float64, and of one far below 0 it is 0: for a softmax" in said
    assert "in float32" not in said


def test_what_comes_beside_a_named_mistake_is_told_apart_from_it():
    def in_place(parts, heads):
        for head in heads:
            parts[:, :, head] = parts[:, :, head].mean()
        return parts

    said = str(check("without_heads", in_place))
    assert "when this mistake is made" in said
    assert "And besides: it changes its input parts in place" in said


def test_right_already_is_what_is_right_on_every_input():
    def other_order(places):
        n = len(places)
        W_q = torch.zeros(n, n)
        W_q[places, range(n)] = 20.0  # the inverse of the order: the same where that is its own
        return W_q, 20 * torch.eye(n), -torch.ones(n)

    result = check("word_order", other_order)
    assert "right already  heaviest key" not in str(result)
    for name in ("own_norm", "fair_score"):
        exercise = BY_NAME[name]
        for m in exercise.mistakes[:4]:
            verdict = check(name, exercise.combine(m).answer).verdict
            for args in exercise.probes:
                due = outcome(exercise.play, exercise.variant(), args, 0)
                given = outcome(exercise.play, exercise.combine(m).answer, args, 0)
                assert all(gap(due[part], given[part]).size <= 1 for part in verdict.held)


# ---------------------------------------------------------------- chance


def clamped(segments):
    s = segments.clamp(min=1)
    return (s[:, :, None] == s[:, None, :]).tril()


def one_piece_too_few(ids, length):
    n = len(ids) // length - 1
    return ids[: n * length].view(n, length), ids[1 : n * length + 1].view(n, length)


def first_of_all_queries(lengths, num_keys):
    if lengths.dim() == 2:
        first = lengths[:, :1, None]
        return (torch.arange(num_keys) < first).expand(-1, lengths.shape[1], -1)
    return torch.arange(num_keys) < lengths[:, None, None]


@pytest.mark.parametrize(
    ("name", "answer", "never"),
    [  # with this change it is right on the exercise's own inputs by chance
        ("own_sentence", clamped, "at `s`"),
        ("next_token_pairs", one_piece_too_few, "at `len(ids)`"),
        ("lengths_to_mask", first_of_all_queries, "at `1`"),
    ],
)
def test_a_repair_by_chance_is_not_told(name, answer, never):
    assert never not in str(check(name, answer))


def test_on_few_inputs_no_repair_is_told():
    exercise = BY_NAME["own_sentence"]

    def turned(segments):
        return (segments[:, :, None] == segments[:, None, :]).triu() & (segments != 0)[:, :, None]

    def due(mistakes, i):
        return outcome(exercise.play, exercise.combine(*mistakes).answer, inputs[i], i)

    every = [*exercise.probes, *drawn(exercise)]
    for inputs in (every[:11], every):
        said = repair(exercise, turned, inputs, due, time.process_time() + 30)
        assert bool(said) == (len(inputs) >= 12)


@pytest.mark.parametrize("exercise", FUNCTIONS[::3], ids=lambda e: e.name)
def test_drawn_inputs_are_new_and_of_several_sizes(exercise):
    inputs = drawn(exercise)
    assert len(inputs) > 4
    for args in inputs[:4]:
        assert as_stated(exercise, args)


def test_a_name_holds_on_generic_inputs_and_on_the_one_shown():
    """The maximum of hidden scores too is subtracted: nothing is filled with a number too high."""

    def top_of_hidden(scores, mask):
        e = torch.exp(scores - scores.max(dim=-1, keepdim=True).values) * mask
        total = e.sum(dim=-1, keepdim=True)
        return torch.where(total > 0, e / total.clamp(min=1e-30), torch.zeros_like(e))

    result = check("softmax_with_mask", top_of_hidden)
    assert not result
    assert "hidden scores are not low enough" not in result.mistakes


# ---------------------------------------------------------------- two slips at once


def softmax_over_time_and_all_counted(logits, targets, pad):
    log_p = F.log_softmax(logits, dim=1)
    losses = -log_p.gather(2, targets[..., None]).squeeze(-1)
    losses = losses * (targets != pad)
    return losses.mean()


def transposed_and_inverted(layer, x):
    base = layer(x)
    rows = []
    for j in range(len(x)):
        y = x.clone()
        y[j] = y[j] + torch.randn_like(y[j])
        rows.append(torch.isclose(layer(y), base).all(dim=-1))
    return torch.stack(rows)


def first_mask_and_beta_outside(policy, reference, is_answer, beta):
    ratios = (policy - reference).masked_fill(~is_answer[0], 0.0).sum(dim=2)
    chosen, rejected = ratios
    return -beta * F.logsigmoid(chosen - rejected).mean()


def columns_and_divided(heads, W_o):
    _, h, _, d_head = heads.shape
    return heads @ W_o.T.reshape(h, d_head, -1) / h


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("token_loss", softmax_over_time_and_all_counted, "divided by all positions"),
        ("influence", transposed_and_inverted, "tokens and columns are outputs|is inverted"),
        ("dpo_of_texts", first_mask_and_beta_outside, "beta stands outside"),
        ("written_by_heads", columns_and_divided, "the columns of W_o|size of axis -3"),
        ("into_heads", lambda x, h: torch.stack([x[..., i::h] for i in range(h)], 2), "in turn"),
        ("pooled", lambda w, v: (w * v).mean(0), "averaged once more|over the queries"),
    ],
)
def test_a_known_mistake_and_one_thing_more(name, answer, words):
    text = str(check(name, answer))
    assert re.search(words, text, re.I), text
    assert re.search(
        "what is left is this|together|[23] mistakes|something else than what came", text
    ), text


def test_a_known_mistake_that_the_change_itself_makes_is_not_told():
    """Everything summed: to take the sum away makes another mistake, which nobody made."""
    assert "are not added up" not in str(check("pooled", lambda w, v: (w * v).sum()))


# ---------------------------------------------------------------- sizes as stated


def test_axes_of_one_name_grow_together():
    sizes = [(q.shape[0], k.shape[0]) for _, (q, k) in widened(BY_NAME["fair_score"])]
    assert all(a == b for a, b in sizes)
    assert {a for a, _ in sizes} > {1, 2}
    weights = [args[0].shape for _, args in widened(BY_NAME["merge_linear_adapter"])]
    assert all(a == b for a, b in weights)
    assert {a for a, _ in weights} > {4, 5, 6}


# ---------------------------------------------------------------- rounding


def test_what_float32_alone_makes_is_no_mistake():
    def by_other_routes(x, memory, weights):
        h = torch.vstack([memory, x])
        q = torch.einsum("sd,de->se", x, weights[0])
        k, v = (torch.einsum("nd,de->ne", h, W) for W in weights[1:])
        may = torch.ones(len(x), len(h), dtype=torch.bool).tril(len(memory))
        out = F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=may)[0]
        return out, h[len(x) :].detach().clone()

    assert check("read_segment", by_other_routes), str(check("read_segment", by_other_routes))


def test_rounding_is_small_and_finite():
    due = torch.tensor([1.0, 1e-3])
    assert nearly(due, torch.tensor([1.0, 1.1e-3]))
    assert not nearly(due, torch.tensor([0.9, 1e-3]))
    assert not nearly(due, torch.tensor([torch.nan, 1e-3]))
    assert not nearly({"a": due}, {"a": due * 1.1})
    assert not nearly(torch.tensor([True]), torch.tensor([False]))


# ---------------------------------------------------------------- what is typed


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("stream_of_stack", "c, d, b, a"),
        ("stream_of_stack", "C D B A"),
        ("diagnose_losses", ["B", "D", "A", "C"]),
        ("diagnose_losses", ("B", "D", "A", "C")),
        ("says_first", "BOS"),
        ("says_first", "<bos> "),
        ("leak_at", torch.tensor([2, 3]).numpy()),
        ("leak_at", (2, 3)),
        ("map_mistake", "(c)"),
    ],
)
def test_a_form_whose_meaning_is_plain_is_accepted(name, answer):
    assert check(name, answer), str(check(name, answer))


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("map_mistake", "queries", "1 letter is asked"),
        ("stream_of_stack", "CDB", "4 letters are asked"),
        ("stream_of_stack", "CDBE", "Each of the letters A, B, C, D stands once"),
        ("map_mistake", ("a", "c"), "1 letter is asked"),
        ("scores_with_cache", (1, 2), "One number is asked; none of these is right"),
        ("scores_with_cache", 3.5, "A whole number is asked"),
        ("scores_with_cache", -3, "It is below 0; what is due is not"),
        ("scores_with_cache", 10**9, "It is far too large"),
        ("leak_at", [7, 9], "Of the 2 numbers, none is right"),
        ("leak_at", torch.tensor([1, 2, 3]).numpy(), "It has 3 entries, not 2"),
    ],
)
def test_something_true_is_said_of_every_typed_answer(name, answer, words):
    text = str(check(name, answer))
    assert words in text
    assert "is it random" not in text
    assert "a list" not in text


def test_known_mistakes_are_known_in_every_form():
    right = BY_NAME["stream_of_stack"].solution()
    for m in BY_NAME["stream_of_stack"].mistakes:
        answer = m.switches["answer"]
        assert check("stream_of_stack", [*answer]).mistakes == (m.name,)
        assert check("stream_of_stack", ", ".join(answer.lower())).mistakes == (m.name,)
        assert typed_fact(BY_NAME["stream_of_stack"], answer)
    assert typed(right, "nothing of it") != right
    assert typed(1.5, "1.5") == "1.5"


def test_an_error_is_told_as_it_comes_on_the_input_shown():
    def too_few(scores, mask):
        raise ValueError(f"a mask of shape {tuple(mask.shape)}")

    result = check("softmax_with_mask", too_few)
    shown = f"a mask of shape {tuple(result.verdict.case.args[1].shape)}"
    assert str(result).count("a mask of shape (") == str(result).count(shown) == 2
    assert "what is left" not in str(result)


def test_digits_are_part_of_a_word_that_is_typed():
    assert typed("34512", "3, 4, 5, 1, 2") == "34512"
    assert typed("34512", "14532") != "34512"
    assert typed("B2", "b 2") == "B2"
    assert typed("B2", "B") != "B2"
    assert typed("...", "!") == "!"


# ---------------------------------------------------------------- advice


def test_a_transpose_of_all_axes_is_noticed_and_its_mending_named():
    result = check("bilinear_scores", lambda q, k, M: q @ M @ k.T)
    assert "`.mT`" in str(result)
    assert " ... (" not in str(result)
    assert "`.mT`" not in str(check("bilinear_scores", lambda q, k, M: q @ M.T @ k.mT))


def test_a_warning_is_told_whole():
    def warns(scores, mask):
        warnings.warn("look here " * 40, stacklevel=2)
        return scores

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        text = str(check("softmax_with_mask", warns))
    assert "A warning came with it: " + "look here " * 39 in text
    assert warnings.showwarning is not None
    assert runner.run_answer(lambda a: a(), lambda: None, [()]).warned == ()
    assert judge.BUDGET > 0


# ---------------------------------------------------------------- whose arguments are shown


def as_undone_before(f, g, y1, y2, d1, d2):
    return y1 - f(y2), y2 - g(y1), torch.sin(d1), d2


@pytest.mark.parametrize(
    ("name", "answer", "shown"),
    [
        ("undo_in_one_run", as_undone_before, ["f", "g", "y1", "y2", "d1", "d2"]),
        (
            "score_gradient",
            lambda s, log_sum, v, grad, output: torch.sin(s),
            ["scores", "log_sum", "values", "grad", "output"],
        ),
        ("from_tiles", lambda queries, tiles: queries, ["queries", "keys", "values", "size"]),
        ("softmax_with_mask", lambda scores, mask: scores, ["scores", "mask"]),
    ],
)
def test_the_arguments_shown_are_those_of_the_answer(name, answer, shown):
    """Where they are made of others, and can be shown; and then no sentence names the others."""
    result = check(name, answer)
    labels = [label for label, _ in result._case_rows()]
    assert labels[: len(shown) + 2] == [*shown, "expected", "given"]
    made = {BY_NAME[name].argument(i) for i in range(len(result.verdict.case.args))}
    for sentence in (*result.verdict.facts, *result.verdict.measured):
        assert not {f"`{x}`" for x in made - {*shown}} & {*re.findall("`[^`]+`", sentence)}
