"""A change after which a known mistake is left: then two slips were made, and both are told.

Much code becomes a known mistake by a change that undoes the learner's own work. So a mistake is
told only if it stands in the code at another place: with both changes the answer is right.
"""

import ast
import re
import time
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from course_utils.checker.edits import Code, Edit, Together
from course_utils.checker.exercise import Exercise, Mistake
from course_utils.checker.one_change import (
    EACH,
    NUMBER,
    around,
    job,
    least_first,
    place,
    takes_away,
)
from course_utils.checker.runner import outcome, play_batch
from course_utils.checker.values import Raised, gap
from course_utils.checker.wording import capital

# changes beside which a known mistake may stand; others may make the known mistake themselves
_SWAP = re.compile(
    "number is due|function is due|comparison|`.+=`|exchange of|sides are exchanged|"
    "brackets are too|a copy"
)
_MOST = 3  # changes of which it is tried whether one more makes the answer right


def what_is_left(
    exercise: Exercise,
    answer: Any,
    code: Code,
    inputs: list[tuple],
    due: Callable[[tuple[Mistake, ...], int], Any],
    end: float,
    edits: Sequence[Edit],
    first: Sequence[Any],
) -> str:
    """One sentence on the change after which one known mistake is left; "" where there is none.

    Args:
        exercise, answer, code, inputs, due, end: as in `repair`.
        edits, first: the changes, and what each gives on the first inputs.
    """
    wrong = (
        due((), 0),
        *play_batch([lambda: outcome(exercise.play, answer, inputs[0], 0)], EACH, end),
    )
    left = _MOST
    for mistake in exercise.mistakes:
        if time.process_time() >= end or not left:
            break
        made = due((mistake,), 0)
        if isinstance(made, Raised) or any(gap(made, x).size <= 1 for x in wrong):
            continue
        near = [
            e
            for e, x in zip(edits, first)
            if _SWAP.search(e.words)
            and not _switches_off(e)
            and not _is_zero(e.new)
            and x
            and gap(made, x[0]).size <= 1
        ]
        if not near or _is_constant([due((mistake,), k) for k in range(len(inputs))]):
            continue  # of much code a constant comes, whatever is changed in it
        jobs = [job(exercise, code, e, inputs, lambda i, m=mistake: due((m,), i)) for e in near]
        good = [e for e, x in zip(near, play_batch(jobs, EACH, end)) if x is True]
        nearer = [_nearer(exercise, answer, inputs, due, mistake)] if good else []
        if not any(play_batch(nearer, EACH, end)):
            continue
        less = [
            e for e, x in zip(edits, first) if takes_away(e) and x and gap(made, x[0]).size <= 1
        ]
        less += around(good, code.edits(3))
        others = all(e.words.endswith(" is due") or isinstance(e, Together) for e in good)
        less = less if others else []  # told before another number or function that does as well
        jobs = [job(exercise, code, e, inputs, lambda i, m=mistake: due((m,), i)) for e in less]
        gone = [e for e, x in zip(less, play_batch(jobs, EACH, end)) if x is True]
        for edit in [*sorted(gone, key=least_first), *sorted(good, key=least_first)][:left]:
            left -= 1
            if _one_more(exercise, code, edit, inputs, due, end):
                name = capital(mistake.name)
                return (
                    f"{place([edit], code)}. With that change, what is left is this mistake: "
                    f"{name}. {mistake.why}"
                )
    return ""


def _one_more(
    exercise: Exercise, code: Code, edit: Edit, inputs: list[tuple], due: Callable, end: float
) -> bool:
    """Whether after an edit one more makes the answer right.

    It stands at another place, or is a step more; what was taken away is no step that is missing.
    """

    def more_of(other: Edit) -> bool:
        return not takes_away(edit) and _keeps(other.new, edit.new)

    with code.changed(edit):
        for some in (code.edits(0), code.edits(1), code.together(), code.edits(2)):
            more = [e for e in some if not e.places & edit.places or more_of(e)]
            jobs = [job(exercise, code, e, inputs, lambda i: due((), i)) for e in more]
            if True in play_batch(jobs, EACH, end):
                return True
    return False


def _keeps(new: Any, part: Any) -> bool:
    """Whether an expression is a step more than another."""
    return isinstance(new, ast.AST) and new is not part and any(n is part for n in ast.walk(new))


def _nearer(
    exercise: Exercise, answer: Any, inputs: list[tuple], due: Callable, mistake: Mistake
) -> Callable[[], bool]:
    """Whether what the mistake alone gives is no further from what is right than the answer."""

    def is_nearer() -> bool:
        left = sum(_wrong(due((), i), due((mistake,), i)) for i in range(len(inputs)))
        came = (outcome(exercise.play, answer, a, i, kept=True) for i, a in enumerate(inputs))
        return left <= sum(_wrong(due((), i), value) for i, value in enumerate(came))

    return is_nearer


def _is_constant(outcomes: list[Any]) -> bool:
    """Whether the same comes on all inputs, or on all that have outcomes of one form."""
    first: dict[Any, Any] = {}
    kept = [first.setdefault(_form(x), x) for x in outcomes]
    several = len(first) < len(outcomes)
    return several and all(gap(a, b).size <= 1 for a, b in zip(kept, outcomes))


def _form(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((key, _form(x)) for key, x in value.items())
    if isinstance(value, list):
        return tuple(map(_form, value))
    return tuple(value.shape) if isinstance(value, Tensor) else type(value)


def _is_zero(new: Any) -> bool:
    """Whether a number becomes 0, by which a whole term is lost."""
    return isinstance(new, ast.Constant) and new.value == 0


def _wrong(right: Any, given: Any) -> float:
    """How many of the numbers are wrong: 0 to 1."""
    if isinstance(right, Tensor) and isinstance(given, Tensor) and right.shape == given.shape:
        a, b = right.double(), given.double()
        near = ((a - b).abs() <= 1e-4 * (1 + a.abs())) | (a == b)
        return 1 - near.double().mean().item() if right.numel() else 0.0
    return float(gap(right, given).size > 1)


def _switches_off(edit: Edit) -> bool:
    """A limit moved so far that what it guards happens always or never."""
    return edit.words == NUMBER and isinstance(getattr(edit.node, "value", None), float)
