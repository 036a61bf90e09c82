"""Author-side proof of every exercise: right answers pass, wrong ones get their own name.

The known mistakes are told apart pair by pair, with a margin of a hundred tolerances. In chapters
whose exercises changed (tests/support/proved_pairs.py) and in `make test-long` that is tried of two
at once as well, and all known wrong answers are; elsewhere every fourth.
"""

import functools
import math
import re

import pytest
import torch
import torch.nn.functional as F
from proved_pairs import stale
from torch import nn

from course_utils.checker import catalogue, check, source, statement, stub
from course_utils.checker.exercise import TAGS
from course_utils.checker.runner import outcome
from course_utils.checker.smaller import smaller
from course_utils.checker.stated_sizes import as_stated
from course_utils.checker.values import ATOL, RTOL, Raised, freeze, gap
from course_utils.checker.verdict import outcome_of
from course_utils.checker.widen import widened

EXERCISES = catalogue()
BY_NAME = {e.name: e for e in EXERCISES}
MARGIN = 100.0  # tolerances between any two known answers
STALE = stale()  # chapters that changed since their pairs were proved


def each(attribute, step=1):
    """Parameters (exercise, item) for every item of some attribute of every exercise.

    In chapters that did not change only every so manieth is tried by `make test`.
    """
    return [
        pytest.param(e, item, id=f"{e.name}-{i}", marks=[pytest.mark.long] if skips else [])
        for e in EXERCISES
        for i, item in enumerate(getattr(e, attribute))
        for skips in [i % step and e.notebook not in STALE]
    ]


every_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)


def run_cell(text):
    """What a cell defines when the notebook has imported what every notebook imports."""
    names = {"math": math, "torch": torch, "F": F, "nn": nn}
    exec(compile(text, "<cell>", "exec"), names)
    return names


def test_there_are_enough():
    assert len(EXERCISES) >= 100
    assert len(BY_NAME) == len(EXERCISES)
    assert sum(len({m.name for m in e.mistakes}) for e in EXERCISES) >= 650
    per_notebook = {e.notebook: 0 for e in EXERCISES}
    for e in EXERCISES:
        per_notebook[e.notebook] += 1
    assert per_notebook.pop("00_start_here") == 1  # the first of all, to see how it goes
    assert min(per_notebook.values()) >= 3


@every_exercise
def test_exercise_is_complete(exercise):
    assert 1 <= exercise.difficulty <= 3
    assert 1 <= exercise.minutes <= 60
    assert exercise.trains
    assert len(exercise.hints) >= 3
    assert len({m.name for m in exercise.mistakes}) >= 3
    assert set(exercise.tags) <= TAGS.keys()
    assert exercise.kind == "value" or len(exercise.right_variants) >= 3
    assert statement(exercise.name).startswith(f"**Exercise `{exercise.name}`**")
    for sentence in [m.why for m in exercise.mistakes] + list(exercise.hints):
        assert sentence[-1] in ".?!", sentence


@every_exercise
def test_solution_passes(exercise):
    answer = run_cell(source.solved(exercise))[exercise.name]
    assert check(exercise.name, answer).status == "right"


@every_exercise
def test_untouched_stub_is_not_attempted(exercise):
    text = stub(exercise.name)
    answer = run_cell(text)[exercise.name]
    assert check(exercise.name, answer).status == "not attempted"
    assert "# >>>" not in text + source.solved(exercise)
    if exercise.kind != "value":
        assert text.count("raise NotImplementedError") == (1 if exercise.kind == "function" else 2)


@every_exercise
def test_hints_do_not_hold_the_solution(exercise):
    lines = {line.strip() for line in source.solved(exercise).splitlines()}
    lines -= {line.strip() for line in stub(exercise.name).splitlines()}
    for line in lines:
        code = line.removeprefix("return ").split("  #")[0]
        if len(code) > 25:
            assert not any(code in hint for hint in exercise.hints), code


@pytest.mark.parametrize(("exercise", "answer"), each("right_variants"))
def test_right_variant_passes(exercise, answer):
    result = check(exercise.name, answer)
    assert result.status == "right", str(result)


@every_exercise
def test_every_input_is_as_stated_and_no_edge_is_dropped(exercise):
    """Widened inputs are those on which all right answers agree; the written ones must be such."""
    further = widened(exercise)
    assert all(words.startswith(("where ", "with ")) for words, _ in further)
    assert {id(args) for _, args in exercise.edges} <= {id(args) for _, args in further}
    smallest = smaller(exercise, len(exercise.probes) - 1) if exercise.kind != "value" else ()
    for args in (*exercise.probes, *(args for _, args in further), *smallest):
        assert as_stated(exercise, args)


@pytest.mark.parametrize(("exercise", "wrong"), each("wrong_answers", step=4))
def test_wrong_answer_gets_its_name(exercise, wrong):
    result = check(exercise.name, wrong.answer)
    assert wrong.message in str(result)
    same = [w for w in exercise.wrong_answers if exercise.kind == "value"]
    given = freeze(exercise.play(wrong.answer)) if same else None
    same = [w for w in same if gap(given, freeze(exercise.play(w.answer))).size <= 1]
    if len({w.name for w in same}) > 1:  # a number to which several slips lead: all are told
        assert all(w.name in str(result) for w in same)
    else:
        assert result.status == "mistake"
        assert result.mistakes == wrong.mistakes
    named, case = result.verdict.mistakes, result.verdict.case
    if exercise.kind != "value" and len(named) == 1:  # it explains the input that is shown
        made = outcome(exercise.play, exercise.combine(*named).answer, case.args, 0)
        assert gap(made, case.given).size <= 1


def solutions_that_fill():
    """Exercises whose solution fills hidden scores with -inf, with the fillers that are too high.

    `leave_one_out` is about kernel values, exp of a score, which end at exp(-87) in float32.
    """
    for e in EXERCISES:
        if e.kind != "value" and "-math.inf)" in source.solved(e):
            for filler in (-30.0,) if e.name == "leave_one_out" else (-30.0, -100.0, -1e4):
                yield pytest.param(e, filler, id=f"{e.name}{filler}")


# so low that the known fillers are wrong on inputs where this one is right: no name is told
SO_LOW = {
    (name, -1e4)
    for name in (
        "causal_attention",
        "read_segment",
        "attention_in_one_line",
        "softmax_with_lengths",
    )
}


@pytest.mark.parametrize(("exercise", "filler"), list(solutions_that_fill()))
def test_a_filler_that_scores_can_fall_below_is_named(exercise, filler):
    text = source.solved(exercise).replace("-math.inf)", f"{filler})")
    result = check(exercise.name, run_cell(text)[exercise.name])
    named = () if (exercise.name, filler) in SO_LOW else ("hidden scores are not low enough",)
    assert result.mistakes == named, str(result)
    assert not result


def test_hidden_scores_that_are_only_lowered_are_named():
    for e in EXERCISES:
        if e.kind != "value":
            text = source.solved(e)
            changed = re.sub(r"\.masked_fill\((.+), -math\.inf\)", r" - 50.0 * (\1)", text)
            if changed != text:
                result = check(e.name, run_cell(changed)[e.name])
                named = ("hidden scores are not low enough",)
                if e.name == "next_token_probabilities":  # they are lower there to begin with
                    assert "`temperature` is 10 times as large" in str(result)
                else:
                    assert result.mistakes == named, str(result)


def test_masks_are_found_in_every_chapter_that_attends():
    names = {param.values[0].name for param in solutions_that_fill()}
    assert len(names) >= 9
    assert names > {"softmax_with_lengths", "decoder_context", "prefix_attend"}


def form_and_numbers(outcomes):
    """The form of outcomes (shapes, kinds, errors) and all their numbers in one row."""
    form, numbers = [], []

    def walk(value):
        if isinstance(value, torch.Tensor):
            kind = "float" if value.is_floating_point() else str(value.dtype)
            form.append((tuple(value.shape), kind))
            numbers.append(value.double().flatten())
        elif isinstance(value, (list, tuple)):
            form.append(len(value))
            for item in value:
                walk(item)
        elif isinstance(value, dict):
            form.append(tuple(value))
            for item in value.values():
                walk(item)
        elif isinstance(value, float):
            form.append("number")
            numbers.append(torch.tensor([value], dtype=torch.float64))
        else:
            form.append(value)

    walk(outcomes)
    return tuple(form), torch.cat(numbers) if numbers else torch.zeros(0)


def distances(all_outcomes):
    """Between every two answers: the largest difference in tolerances, infinite for other forms."""
    table = torch.full((len(all_outcomes), len(all_outcomes)), math.inf)
    groups = {}
    for i, outcomes in enumerate(all_outcomes):
        form, numbers = form_and_numbers(outcomes)
        groups.setdefault(form, []).append((i, numbers))
    for members in groups.values():
        rows = torch.tensor([i for i, _ in members])
        x = torch.stack([numbers for _, numbers in members])
        a, b = x[:, None], x[None]
        size = (a - b).abs() / (ATOL + RTOL * torch.maximum(a.abs(), b.abs()))
        size[(a == b) | (a.isnan() & b.isnan())] = 0.0
        worst = (
            size.nan_to_num(nan=math.inf).amax(-1) if x.shape[1] else x.new_zeros(len(x), len(x))
        )
        table[rows[:, None], rows] = worst.float()
    return table


def known_answers(exercise, pairs=True):
    """The right answer, every mistake and, if asked, every pair of them, with their outcomes."""
    return [
        (some, [outcome_of(exercise, some, i) for i in range(len(exercise.probes))])
        for some in [(), *((m,) for m in exercise.mistakes), *(exercise.pairs() if pairs else ())]
    ]


def names(mistakes):
    return {m.name for m in mistakes}


def test_distances_are_those_of_the_judge():
    answers = known_answers(BY_NAME["gaussian_weights"])[:8]
    table = distances([outcomes for _, outcomes in answers])
    for i, (_, a) in enumerate(answers):
        for j, (_, b) in enumerate(answers):
            largest = max(gap(x, y).size for x, y in zip(a, b))
            assert table[i, j] <= largest * 1.001
            assert (table[i, j] < 1) == (largest < 1)


@pytest.mark.deeper
@every_exercise
def test_known_mistakes_are_told_apart(exercise, request):
    """No two single mistakes agree, and no two answers are nearly but not quite equal."""
    thorough = request.config.getoption("hypothesis_profile", None) == "long"
    pairs = thorough or exercise.notebook in STALE
    if exercise.kind == "value":
        answers = known_answers(exercise, pairs)
        outcomes = [found[0] for _, found in answers]
        for i, a in enumerate(outcomes):
            for j, b in enumerate(outcomes):
                same = i == j or names(answers[i][0]) == names(answers[j][0])
                far = gap(a, b).size > 5 or (i > 0 and j > 0 and gap(a, b).size == 0)
                assert same or far, (answers[i][0], answers[j][0])
        return
    answers, table = compared(exercise.name, pairs)
    doubtful = (table > 0.1) & (table < MARGIN)
    assert not doubtful.any(), [(answers[i], answers[j]) for i, j in doubtful.nonzero()]
    for i, a in enumerate(answers):
        for j, b in enumerate(answers[:i]):
            if len(a) <= 1 and len(b) <= 1 and names(a) != names(b):
                assert table[i, j] >= MARGIN, (a, b)


@functools.cache  # the numbers of one exercise serve two tests, its outcomes none after them
def compared(name, pairs):
    """The known answers of an exercise, and the distances between their outcomes."""
    answers = known_answers(BY_NAME[name], pairs)
    return [some for some, _ in answers], distances([found for _, found in answers])


def separable_pairs(exercise):
    """Pairs of mistakes whose result no answer with other mistakes has; forms do not matter."""
    answers, table = compared(exercise.name, True)
    return [
        some
        for some, near in zip(answers, table < 1)
        if len(some) == 2 and all(names(answers[j]) == names(some) for j in near.nonzero())
    ]


@pytest.mark.parametrize(
    "exercise",
    [
        pytest.param(
            e, id=e.name, marks=getattr(pytest.mark, "deeper" if e.notebook in STALE else "long")
        )
        for e in EXERCISES
        if e.pairs()
    ],
)
def test_two_mistakes_at_once_are_both_named(exercise):
    pairs = separable_pairs(exercise)
    assert len(pairs) >= len(exercise.pairs()) * 0.5
    for some in pairs[:: max(1, len(pairs) // 3)]:
        result = check(exercise.name, exercise.combine(*some).answer)
        assert set(result.mistakes) == names(some)
        assert "these 2 mistakes are" in str(result)


def test_smallest_probe_comes_first():
    def size(x):
        if isinstance(x, torch.Tensor):
            return x.numel()
        return sum(map(size, x)) if isinstance(x, (list, tuple)) else 0

    for exercise in EXERCISES:
        sizes = [size(probe) for probe in exercise.probes]
        assert sizes[0] == min(sizes), exercise.name
        assert sizes[0] <= 100, exercise.name


def test_no_exercise_hides_a_piece_of_the_library():
    from course_utils.models import attention, kernel_regression, masks, positional, transformer
    from course_utils.training import loops, metrics

    modules = (attention, masks, metrics, kernel_regression, positional, loops, transformer)
    taken = {name for module in modules for name in vars(module)}
    assert not taken & BY_NAME.keys()


@every_exercise
def test_no_known_mistake_is_a_fault_of_its_own_reference(exercise):
    """An error by which a mistake is known is one that a learner's code would raise."""
    for mistake in exercise.mistakes if exercise.kind != "value" else ():
        for i in range(len(exercise.probes)):
            made = outcome_of(exercise, (mistake,), i)
            if isinstance(made, Raised):
                own = {"KeyError", "NameError", "UnboundLocalError", "AssertionError"}
                assert made.type_name not in own, (mistake, made)


def test_errors_of_probes_are_meant():
    """The reference itself never raises."""
    for exercise in EXERCISES:
        for i in range(len(exercise.probes)):
            assert not isinstance(outcome_of(exercise, (), i), Raised), exercise.name
