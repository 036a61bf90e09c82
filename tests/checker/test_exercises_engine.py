"""Whatever an answer does, `check` says something true, in time, and the kernel stays usable."""

import math
import os
import random
import re
import sys
import threading
import time
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn

from course_utils.checker import catalogue, check, judge, runner, source
from course_utils.checker.exercise import Exercise, call, exercise, wrong
from course_utils.checker.report import Result
from course_utils.checker.shown import show
from course_utils.checker.values import Opaque, Raised, freeze, gap
from course_utils.checker.verdict import outcome_of

pytestmark = pytest.mark.usefixtures("patient_search")
MASK = "softmax_with_mask"


def right(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, -1e9), -1) * mask


def test_right_answer_says_what_it_proves_and_what_comes_next(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.jsonl"))  # nothing solved yet
    result = check(MASK, right)
    assert result
    first, tried, then = str(result).splitlines()
    assert first == f"✓ {MASK}: right"
    assert re.fullmatch(r"  It gave what is due on \d\d inputs, small and large\.", tried)
    assert re.fullmatch(r"  02_masked_softmax: \d+ of \d+ solved. Next: `\w+`\.", then)


def test_an_endless_loop_is_stopped():
    def endless(scores, mask):
        while True:
            pass

    before = threading.active_count()
    result = check(MASK, endless, seconds=0.3)
    assert result.status == "time"
    assert "did not end within 0.3 seconds" in str(result)
    assert threading.active_count() == before


def test_python_reports_no_exception_that_ends_an_answer(capsys):
    class Long:
        def __del__(self):  # the exception lands here, where Python drops it
            for _ in range(10**6):
                pass

    def endless(scores, mask):
        while True:
            Long()

    result = check(MASK, endless, seconds=0.2)
    assert result.status == "time"
    assert "ignored" not in str(result) + "".join(capsys.readouterr())


def catching(scores, mask):
    while True:
        try:
            print("no")
        except BaseException:
            scores = scores + 1


def catching_twice(scores, mask):
    while True:
        try:
            while True:
                try:
                    scores = scores + 1
                except BaseException:
                    scores = scores - 1
        except BaseException:
            continue


def catching_in_plain_python(scores, mask):
    number = 0
    while True:
        try:
            while True:
                try:
                    number = 1 - number
                except BaseException:
                    number = 0
        except BaseException:
            continue


@pytest.mark.parametrize("stubborn", [catching, catching_twice, catching_in_plain_python])
def test_a_loop_that_catches_everything_is_stopped(stubborn):
    result = check(MASK, stubborn, seconds=0.2)
    assert result.status == "time"
    assert "cannot be stopped" not in str(result)
    used = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - used < 0.1
    assert check(MASK, right)


def test_what_no_exception_reaches_is_said_and_falls_asleep_later(monkeypatch, capsys):
    monkeypatch.setattr(runner, "_GRACE", 0.1)
    monkeypatch.setattr(runner, "_PATIENCE", 1)

    def away(scores, mask):
        time.sleep(0.6)  # no Python code runs meanwhile
        print("too late")

    assert "cannot be stopped" in str(check(MASK, away, seconds=0.1))
    assert check(MASK, right)
    time.sleep(0.7)
    assert capsys.readouterr().out == ""


def test_megabytes_of_print_are_cut():
    def chatty(scores, mask):
        for _ in range(200):
            print("x" * 50_000)
        return scores

    result = check(MASK, chatty)
    assert "characters in all" in str(result)
    assert len(str(result)) < 3000
    assert len(result._repr_html_()) < 8000


def test_what_a_right_answer_prints_is_shown_once_and_nowhere_else(capsys):
    def chatty(scores, mask):
        print("shape", tuple(scores.shape))
        return right(scores, mask)

    result = check(MASK, chatty)
    assert result
    assert "It printed: shape (1, 2, 3)" in str(result)
    assert capsys.readouterr().out == ""


class Unprintable(Exception):
    def __str__(self):
        raise ValueError("no words")


@pytest.mark.parametrize(
    "error",
    [ValueError("no"), SystemExit(3), KeyboardInterrupt(), GeneratorExit(), Unprintable()],
    ids=lambda e: type(e).__name__,
)
def test_any_exception_is_reported(error):
    def raising(scores, mask):
        raise error

    result = check(MASK, raising)
    assert result.status == "error"
    assert f"It raised {type(error).__name__}" in str(result)


def test_an_error_names_its_line_and_what_it_means():
    def misfit(scores, mask):
        return scores + torch.zeros(17)

    text = str(check(MASK, misfit))
    assert "return scores + torch.zeros(17)" in text
    assert "do not broadcast" in text


def test_endless_recursion_is_an_error():
    def deep(scores, mask):
        return deep(scores, mask)

    assert "RecursionError" in str(check(MASK, deep))


@pytest.mark.parametrize(
    ("give", "fact"),
    [
        (lambda s, m: None, "It returned None: is a `return` missing?"),
        (lambda s, m: s * math.inf, "4 of 4 entries are NaN or infinite"),
        (lambda s, m: "weights", "It returned a str, not a tensor"),
        (lambda s, m: right(s, m).tolist(), "It returned a list or tuple, not a tensor"),
        (lambda s, m: right(s, m).numpy(), "It returned a ndarray, not a tensor"),
        (lambda s, m: (right(s, m), m), "It returns 2 things; due is one tensor"),
        (lambda s, m: right, "It returned a function, not a tensor"),
        (lambda s, m: right(s, m)[0], "The shape is (2, 2), not (2, "),
        (lambda s, m: right(s, m)[:, :1], "The shape is (1, 1, 2), not (1, 2, 2)"),
        (lambda s, m: right(s, m).round().long(), "The dtype is int64"),
        (lambda s, m: right(s, m) > 0.5, "The dtype is bool"),
        (lambda s, m: right(s, m).half(), "The dtype is float16, which keeps only 3 digits"),
        (lambda s, m: right(s, m) + 0j, "The dtype is complex64"),
        (lambda s, m: right(s, m) * 1.1, "In line"),
        (lambda s, m: right(s, m).flip(-1), "a step is too many"),
        (lambda s, m: (right(s, m) + 0.1 * s) ** 2, "The first difference is at [0, 0, 0]"),
    ],
)
def test_odd_results_get_a_fact_and_no_name(give, fact):
    result = check(MASK, give)
    assert result.status == "wrong"
    assert result.mistakes == ()
    assert fact in str(result)


def halved(e):
    """The solution of an exercise in half precision, None where it is no function to a tensor."""
    plain = e.kind == "function" and e.play is call
    result = outcome_of(e, (), 0) if plain else None
    floats = isinstance(result, torch.Tensor) and result.is_floating_point()
    return (lambda *args: e.solution(*args).to(torch.bfloat16)) if floats else None


@pytest.mark.parametrize(
    "exercise",
    [
        pytest.param(e, id=e.name, marks=[pytest.mark.long] if k % 4 else [])
        for k, e in enumerate(e for e in catalogue() if halved(e))
    ],
)
def test_a_right_result_in_half_precision_is_told_its_dtype_and_nothing_else(exercise):
    result = check(exercise.name, halved(exercise))
    if result.status != "right":
        assert (result.status, result.mistakes, result.verdict.measured) == ("wrong", (), ())
        assert "The dtype is bfloat16, which keeps only 3 digits." in str(result)


@pytest.mark.filterwarnings("ignore:Sparse CSR", "ignore:The PyTorch API of nested")
def test_a_sparse_result_is_judged_by_its_numbers():
    for layout in ("to_sparse", "to_sparse_csr", "to_mkldnn"):
        assert freeze(getattr(torch.eye(2), layout)()).layout == torch.strided
    assert freeze(torch.nested.nested_tensor([torch.ones(1)])) == Opaque("nested tensor")
    assert check(MASK, lambda s, m: right(s, m).to_sparse())
    assert check("dot_product_variance", torch.tensor([64.0]).to_sparse())
    assert check(MASK, lambda s, m: s.to_sparse()).status == "wrong"
    assert check("dot_product_variance", torch.tensor([8.0]).to_sparse()).status == "mistake"


HUGE = {"int": 10**400, "longer": -(10**5000), "fraction": Fraction(10**400)}


@pytest.mark.parametrize("huge", HUGE.values(), ids=HUGE)
def test_numbers_that_no_float_can_hold_are_said(huge):
    for answer in (huge, [huge], {"a": huge}):
        assert check("dot_product_variance", answer).status == "wrong"
    assert "It is an int too large for a float." in str(check("dot_product_variance", huge))
    assert check(MASK, lambda s, m: huge).status == "wrong"
    assert check("text_perplexity", lambda *_: huge).status == "wrong"
    assert not check("slowest_columns", (huge, 7))


@pytest.mark.parametrize("seconds", [-1, 0, "a", None, True, math.nan, math.inf, 10**400, [1]])
def test_a_time_limit_that_is_none_is_refused(seconds):
    said = check(MASK, right, seconds=seconds)
    assert said.startswith("seconds is the time limit, a number above 0 such as 10, not ")


def test_the_working_folder_and_print_options_come_back(tmp_path):
    def meddling(scores, mask):
        os.chdir(tmp_path)
        torch.set_printoptions(precision=9, sci_mode=True, linewidth=33)
        np.set_printoptions(precision=1)
        return right(scores, mask)

    numbers, folder = torch.tensor([0.123456789, 12345.0]), os.getcwd()
    before = repr(numbers), np.get_printoptions()
    assert check(MASK, meddling)
    assert (repr(numbers), np.get_printoptions()) == before
    assert os.getcwd() == folder


def test_a_working_folder_that_is_gone_harms_nobody(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    try:
        (tmp_path / "gone").rmdir()
    except OSError:  # Windows keeps a folder in which somebody works
        return
    assert check(MASK, right)


def test_float64_and_gradients_are_fine():
    assert check(MASK, lambda s, m: right(s.double().requires_grad_(), m))


def test_a_changed_input_is_seen_even_when_the_result_is_right():
    def in_place(scores, mask):
        scores.masked_fill_(~mask, -1e9)
        return torch.softmax(scores, -1) * mask

    result = check(MASK, in_place)
    assert result.status == "wrong"
    assert "It changes its input scores in place" in str(result)


def test_a_mistake_and_a_changed_input_are_both_told():
    def in_place(scores, mask):
        scores[~mask.expand_as(scores)] = -1e9
        return scores.softmax(-1)

    result = check(MASK, in_place)
    assert result.mistakes == ("a query with no visible key spreads its weight evenly",)
    assert "And besides: it changes its input scores in place" in str(result)


def test_random_answers_are_told_from_wrong_ones():
    def dropping(scores, mask):
        return nn.functional.dropout(right(scores, mask), 0.5)

    assert "is it random?" in str(check(MASK, dropping))


def test_global_state_comes_back():
    def meddling(scores, mask):
        torch.manual_seed(1)
        random.seed(1)
        np.random.seed(1)
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        return right(scores, mask)

    def state():
        return torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist()

    before = state()
    check(MASK, meddling)
    check("dot_product_variance", 8)
    assert state() == before
    assert torch.get_default_dtype() == torch.float32
    assert torch.is_grad_enabled()


def test_a_right_answer_above_a_raise_that_is_still_there():
    def unfinished(scores, mask):
        weights = right(scores, mask)
        raise NotImplementedError("your turn")
        return weights

    result = check(MASK, unfinished)
    assert result.status == "unfinished"
    assert "the line with `raise NotImplementedError` is still run" in str(result)
    assert 'raise NotImplementedError("your turn")' in str(result)


def test_other_raises_are_no_stubs():
    def raising(scores, mask):
        raise SystemError("your turn")

    assert check(MASK, raising).status == "error"


@pytest.mark.parametrize(
    "raising",
    [
        lambda s, m: torch.softmax(m.expand_as(s), -1),
        lambda s, m: torch.softmax(s.long(), -1),
        lambda s, m: s.to("meta").cpu(),
        lambda s, m: torch.empty_like(s, device="meta"),
        lambda s, m: (_ for _ in ()).throw(NotImplementedError),
    ],
)
def test_an_error_of_torch_is_no_stub(raising):
    result = check(MASK, raising)
    assert result.status == "error"
    assert "is still run" not in str(result)
    assert re.search("NotImplementedError|not implemented for", str(result))  # by version of torch


@pytest.mark.parametrize(
    ("raising", "advice"),
    [
        (lambda s, m: torch.softmax(m.expand_as(s), -1), "convert to float first"),
        (lambda s, m: torch.softmax(s.long(), -1), "convert to float first"),
        (lambda s, m: torch.softmax(s.int(), -1), "convert to float first"),
        (lambda s, m: s.long().mean(-1), "convert to float first"),
        (lambda s, m: torch.empty_like(s, device="meta"), "has a shape but no numbers"),
    ],
)
def test_what_torch_cannot_do_is_explained(raising, advice):
    assert advice in str(check(MASK, raising))


def test_a_function_with_too_few_arguments_is_an_error_with_words():
    result = check(MASK, lambda scores: scores)
    assert result.status == "error"
    assert "positional argument" in str(result)


@pytest.mark.parametrize("answer", [3, "text", None, torch.ones(2)])
def test_what_is_no_function_is_not_checked(answer):
    assert check(MASK, answer).status == "not checked"


def test_a_class_is_wanted_where_a_class_is_wanted():
    assert check("TinyMultiHead", lambda d, h: None).status == "not checked"


def test_unknown_names_are_answered():
    assert "Did you mean softmax_with_mask" in check("softmax_with_masks", right)
    assert "There is no exercise 'right'" in check(right)
    assert "There is no exercise 'int'" in check(5)
    assert "Give the answer too" in check(MASK)


def test_names_are_found_from_functions_classes_and_modules():
    def scaled_attention(q, k, v):
        return q

    class TinyMultiHead(nn.Module):
        pass

    class causal_attention(nn.Module):
        def forward(self, q, k, v):
            return q

    assert check(scaled_attention).exercise.name == "scaled_attention"
    assert check(TinyMultiHead).exercise.name == "TinyMultiHead"
    assert check(causal_attention()).exercise.name == "causal_attention"


def test_a_fault_of_the_check_does_not_raise(monkeypatch):
    def broken(*_):
        raise ZeroDivisionError

    monkeypatch.setattr("course_utils.checker.judge_answer", broken)
    assert "a fault of the check" in check(MASK, right)


def test_interrupting_the_kernel_ends_the_check(monkeypatch):
    def wait(worker, seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "_wait", wait)

    def endless(scores, mask):
        while True:
            pass

    assert "You interrupted it" in str(check(MASK, endless))


def test_the_text_does_not_depend_on_earlier_attempts():
    def wrong_axis(scores, mask):
        return torch.softmax(scores.masked_fill(~mask, -1e9), -2) * mask

    assert str(check(MASK, wrong_axis)) == str(check(MASK, wrong_axis))


def test_two_explanations_name_what_they_share():
    """A pair that agrees with another pair: only the mistake in both is certain."""
    before = dict(sys.modules["course_utils.checker.exercise"].REGISTRY)
    found = _ambiguous()
    sys.modules["course_utils.checker.exercise"].REGISTRY.clear()
    sys.modules["course_utils.checker.exercise"].REGISTRY.update(before)
    from course_utils.checker.judge import judge_answer

    verdict = judge_answer(found, lambda x: 2 * x + 100)
    assert [m.name for m in verdict.mistakes] == ["a"]
    assert "it would give something else than what came" in " ".join(verdict.facts)
    assert "This mistake is made:" in str(Result(found, verdict))
    assert judge_answer(found, lambda x: 7 * x).status == "wrong"


def _ambiguous() -> Exercise:
    def reference(x, *, a=1.0, b=0.0, c=0.0):
        extra = 100.0 if a > 1 and (b or c) else b * x**2 + c * x**3
        return a * x + extra

    @exercise(
        notebook="99_for_the_test",
        minutes=1,
        difficulty=1,
        trains="nothing",
        text="x",
        reference=reference,
        probes=[(torch.tensor([1.0, 2.0]),)],
        mistakes=[
            wrong("a", "scale", "A.", a=2.0),
            wrong("b", "scale", "B.", b=1.0),
            wrong("c", "scale", "C.", c=1.0),
        ],
        hints=["1.", "2.", "3."],
    )
    def ambiguous(x):
        """x"""
        return x

    return catalogue() and sys.modules["course_utils.checker.exercise"].REGISTRY["ambiguous"]


def test_wrong_refuses_unknown_tags_and_no_switch():
    with pytest.raises(ValueError, match="unknown tag 'sclae'"):
        wrong("x", "sclae", "y", a=1)
    with pytest.raises(ValueError, match="turns no switch"):
        wrong("x", "scale", "y")


def test_maps_stand_side_by_side_with_numbers_and_marks():
    result = check("scaled_attention", lambda q, k, v: (q, torch.softmax(q @ k.mT, -1)))
    html = result._repr_html_()
    assert html.count("<table><caption>expected map") == 1
    assert html.count("<caption>given map") == 1
    assert "*" in html.split("given map")[1]
    assert "*" not in html.split("expected map")[1].split("given map")[0]
    assert "expected map" in str(result)


def test_of_a_batch_the_entry_that_differs_is_drawn():
    def second_sentence_wrong(scores, mask):
        weights = right(scores, mask)
        weights[1:] = 0.125
        return weights

    result = check(MASK, second_sentence_wrong)
    assert result.status == "wrong"
    expected, given = result._maps()
    assert (given == 0.125).all()
    assert not torch.equal(expected, given)


def test_equal_parts_are_only_listed():
    def shapes(B, Tq, Tk, d_model, h):
        d = d_model // h
        return {
            "queries": (B, h, Tq, d),
            "scores": (B, h, Tq, Tk),
            "heads": (B, h, Tq, d),
            "output": (B, Tq, d_model + 1),
        }

    text = str(check("multi_head_shapes", shapes))
    assert re.search(r"expected +output: \[2, 3, 12\]\n  given +output: \[2, 3, 13\]\n", text)
    assert re.search("right already  queries, scores, heads", text)


def test_facts_say_which_entry_of_several_differs():
    def one_token_off(scores, log_probs, width):
        flat = (scores[:, None] + log_probs).flatten().topk(width)
        size = log_probs.shape[1]
        return flat.values, flat.indices // size, flat.indices % size * 7 + 5

    def too_few(*args):
        return one_token_off(*args)[:1]

    text = str(check("beam_step", one_token_off))
    assert "The first difference is in the third result, at [0]: expected" in text
    assert "It returns one thing in brackets; due are 3 things." in str(check("beam_step", too_few))


def test_maps_can_be_drawn_as_figures(monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "course_utils.viz.show_heatmaps", lambda matrices, **k: drawn.append(matrices.shape)
    )
    check("scaled_attention", lambda q, k, v: (q, torch.softmax(q @ k.mT, -1))).draw()
    check("dot_product_variance", 8).draw()
    assert [shape[:3] for shape in drawn] == [(1, 2, 3)]  # due and given; of the other, none


def test_html_is_escaped_and_labelled():
    result = check("dot_product_variance", "<script>alert(1)</script>")
    html = result._repr_html_()
    assert "<script>" not in html
    assert 'role="group"' in html
    assert 'aria-label="check of dot_product_variance"' in html


def test_a_prediction_does_not_give_the_answer_away():
    text = str(check("keys_without_cache", 200)) + check("keys_without_cache", 7)._repr_html_()
    assert "210" not in text


@pytest.mark.parametrize(
    "answer", [64, 64.0, np.int64(64), np.float32(64), torch.tensor(64), torch.tensor([64.0])]
)
def test_numbers_come_in_many_types(answer):
    assert check("dot_product_variance", answer)


@pytest.mark.parametrize("answer", [(6, 7), [6, 7], torch.tensor([6, 7])])
def test_pairs_come_in_many_types(answer):
    assert check("slowest_columns", answer)


@pytest.mark.parametrize("answer", [True, None, "64", [64], {"a": 64}, 64j, object()])
def test_what_is_no_number_is_said(answer):
    assert check("dot_product_variance", answer).status == "wrong"


def test_three_digits_are_enough():
    assert check("bleu_of_two", 0.366)
    assert not check("bleu_of_two", 0.36)


def test_values_are_frozen_compared_and_shown():
    assert freeze((torch.ones(2, requires_grad=True), 3))[0].requires_grad is False
    assert freeze(object()) == Opaque("object")
    assert gap([1, 2], [1, 2]).size == 0
    assert gap({"a": 1.0}, {"a": 1.0}).size == 0
    assert gap({"a": 1.0}, {"b": 1.0}).size == math.inf
    assert gap(Raised("E", "size 3"), Raised("E", "size 4")).size == 0
    assert gap(Raised("E", "size 3"), Raised("E", "other")).size == math.inf
    assert gap(torch.tensor([math.inf]), torch.tensor([math.inf])).size == 0
    assert gap(torch.zeros(0), torch.zeros(0)).size == 0
    assert show(torch.tensor([[-0.0, 0.25], [math.nan, 2.0]])) == "[[0.0, 0.25],\n [nan, 2.0]]"
    assert show(torch.zeros(4, 30), (2, 1)).startswith("[2] = [0.0")


def test_what_is_cut_says_so():
    assert "0.0, ...] of shape (4, 30)" in show(torch.zeros(4, 30), (2, 1))
    assert "..." not in show(torch.zeros(12, 12), (2, 1))
    assert show("x" * 300).endswith(" ...")
    assert show("x" * 100) == repr("x" * 100)

    def long_words(scores, mask):
        raise ValueError("x" * 400)

    assert "x" * 300 + " ..." in str(check("softmax_with_mask", long_words))

    def six_shapes(scores, mask):
        a = b = c = d = scores
        return a + b[1:] + c + d + scores + mask

    assert "and 2 more" in str(check("softmax_with_mask", six_shapes))


def test_stub_of_marked_lines_keeps_the_rest():
    marked = "def f(x):\n    # >>> one line\n    y = 2 * x\n    # <<<\n    return y\n"
    assert source._BLOCK.sub(rf"\1{source._TODO}\n", marked) == (
        'def f(x):\n    raise NotImplementedError("your turn")\n    return y\n'
    )


@pytest.fixture
def imports(tmp_path, monkeypatch):
    """A function that imports a module which takes half a second to load."""
    (tmp_path / "slow_to_come.py").write_text(
        "import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end:\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "slow_to_come", raising=False)

    def answer(x):
        import slow_to_come

        return slow_to_come.end > x

    return answer


def test_an_import_costs_an_answer_nothing_and_is_not_ended_half_way(imports):
    """Half an import would leave a broken module behind, for everybody."""
    session = runner.run_answer(lambda answer, x: answer(x), imports, [(0.0,)], seconds=0.2)
    assert session.runs[0].value is True
    assert not session.runs[0].timed_out


def test_our_own_jobs_do_not_end_an_import_half_way_either(imports):
    assert runner.play_batch([lambda: imports(0.0)], 0.1, time.process_time() + 9) == [True]


def test_nothing_is_judged_where_the_reference_fails(monkeypatch):
    monkeypatch.setattr(judge, "outcome_of", lambda *_: Raised("AttributeError", "broken"))
    result = check("softmax_with_mask", lambda scores, mask: scores / 0)
    assert result.status == "not checked"
    assert "restart the kernel" in str(result)
