"""Every right answer with one small change in it: none may pass unless it still is right.

An answer that passes is compared with the reference on many further inputs, of other numbers, where
all right answers agree. Run by `make test-long`.
"""

import ast
import time
import warnings

import pytest
import torch

from course_utils.checker import catalogue, runner
from course_utils.checker.edits import code_of
from course_utils.checker.examined import nearly
from course_utils.checker.generic_inputs import is_floats
from course_utils.checker.judge import judge_answer
from course_utils.checker.stated_sizes import tensors_in
from course_utils.checker.values import Raised, gap
from course_utils.checker.widen import all_agree

DRAWS = 6
NEAR = 10  # tolerances that a millionth more may make
MOST = 400  # edits of one right answer, spread over all
FUNCTIONS = [e for e in catalogue() if e.kind != "value"]


def further(exercise):
    """The probes with other numbers, on which all right answers agree.

    Without those that hold numbers far out: there the rounding of equal answers differs.
    """
    generator = torch.Generator().manual_seed(1)

    def other(value):
        if isinstance(value, (list, tuple)):
            return type(value)(map(other, value))
        if not is_floats(value) or not (value < 0).any() or value.abs().max() > 1000:
            return value
        return (torch.randn(value.shape, generator=generator) * value.std().clamp(0.1, 3)).to(
            value.dtype
        )

    near = [p for p in exercise.probes if all(x.abs().max() <= 1000 for x in floats_in(p))]
    made = [tuple(map(other, p)) for p in near for _ in range(DRAWS)]
    return [args for args in made if all_agree(exercise, args)]


def floats_in(probe):
    """Its tensors of finite floats."""
    floats = [x for x in tensors_in(probe) if is_floats(x)]
    return [x for x in floats if x.numel() and x.isfinite().all()]


def same(due, given, near=1):
    """Whether two results are equal but for rounding: K - 1 for K moves all scores of a row alike.

    On far inputs, or where gradients grow, that is more than the probes have.
    """
    return gap(due, given).size <= near or nearly(due, given, 1e-3)


def passing(exercise, answer, inputs):
    """The edits of one right answer that `check` accepts although they differ from it."""
    code = code_of(answer)
    if code is None:
        return []
    every = [edit for rank in range(3) for edit in code.edits(rank)]
    right = [runner.outcome(exercise.play, exercise.variant(), args, 0) for args in inputs]
    found = []
    for edit in every[:: max(1, len(every) // MOST)]:
        try:
            changed = code.answer(edit)
        except Exception:  # an edit that is no program
            continue
        first = runner.play_batch(
            [lambda a=changed: [runner.outcome(exercise.play, a, p, i, kept=True)
                                for i, p in enumerate(exercise.probes)]],
            1.0, time.process_time() + 5,
        )[0]  # fmt: skip
        due = [runner.outcome(exercise.play, exercise.variant(), p, i)
               for i, p in enumerate(exercise.probes)]  # fmt: skip
        if first is None or any(gap(a, b).size > 1 for a, b in zip(due, first)):
            continue  # plainly wrong
        if judge_answer(exercise, changed).status != "right":
            continue
        given = runner.play_batch(  # one that never ends gives None
            [lambda a=changed, p=args: runner.outcome(exercise.play, a, p, 0) for args in inputs],
            3.0, time.process_time() + 30,
        )  # fmt: skip
        near = NEAR if isinstance(edit.new, ast.AST) and "1e-06" in ast.unparse(edit.new) else 1
        if any(
            b is None or isinstance(b, Raised) or not same(a, b, near) for a, b in zip(right, given)
        ):
            found.append(edit.words)
    return found


@pytest.mark.long
@pytest.mark.parametrize("exercise", FUNCTIONS, ids=lambda e: e.name)
def test_no_small_edit_of_a_right_answer_passes_unless_it_is_equal(exercise):
    inputs = further(exercise)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for answer in (exercise.solution, *exercise.right_variants):
            assert passing(exercise, answer, inputs) == []
