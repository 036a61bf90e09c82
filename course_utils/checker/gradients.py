"""Whether a loss of the result reaches what went in, as it does with the right answers."""

import functools
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_utils.checker.exercise import Exercise
from course_utils.checker.resized import sums_to_one
from course_utils.checker.runner import outcome, run_answer
from course_utils.checker.shown import show
from course_utils.checker.stated_sizes import tensors_in
from course_utils.checker.values import Raised, gap
from course_utils.checker.widen import doubled

_CUT = "detach, .data, .item(), no_grad and numpy cut it off"
_ROUNDING = 1e-2  # of the largest number: so far float32 may go


def of_inputs(play: Callable) -> Callable:
    """Plays an answer and gives the gradients of its floats, weighted and summed up.

    One for each tensor of floats among the arguments; an empty list where nothing can be trained.
    The weight of a number is that of its place, whether it comes in one tensor or in several.
    """

    def played(answer: Any, *args) -> list[Tensor]:
        leaves = [x.requires_grad_() for x in tensors_in(args) if x.is_floating_point()]
        value = play(answer, *args)
        value = [*value.values()] if isinstance(value, dict) else value
        made = [y for y in tensors_in(value) if y.is_floating_point()]
        if not leaves or not any(y.requires_grad for y in made):
            return []
        flat = torch.cat([y.flatten().double() for y in made])
        total = (flat * torch.linspace(0.5, 1.5, len(flat), dtype=flat.dtype)).sum()
        found = torch.autograd.grad(total, leaves, allow_unused=True)
        return [_along(x, torch.zeros_like(x) if g is None else g) for x, g in zip(leaves, found)]

    return played


def _along(x: Tensor, gradient: Tensor) -> Tensor:
    """The gradient as far as `x` may move: weights keep their zeros and the sums of their rows."""
    if not sums_to_one(x):
        return gradient
    there = (x > 0).to(gradient.dtype)
    return (
        gradient - (gradient * there).sum(-1, keepdim=True) / there.sum(-1, keepdim=True)
    ) * there


@functools.cache
def due_gradients(exercise: Exercise, exact: bool) -> list[Tensor] | None:
    """The gradients on the last probe that all right answers agree on; None where none are.

    `exact` makes the probe one in float64. Where several right answers let none through, a number
    is measured, and none are due.
    """
    right = (exercise.variant(), exercise.solution, *exercise.right_variants)
    play, probe = of_inputs(exercise.play), _last(exercise, exact)
    with warnings.catch_warnings():  # nobody's answer is at work: nothing is to be read
        warnings.simplefilter("ignore")
        found = [outcome(play, answer, probe, 0) for answer in right]
    first, second, *others = found
    if any(isinstance(x, Raised) or not x for x in (first, second)) or found.count([]) > 1:
        return None
    if any(gap(first, x).size > 1 for x in (second, *others) if x and not isinstance(x, Raised)):
        return None
    return first if any(g.any() and g.isfinite().all() for g in first) else None


def _last(exercise: Exercise, exact: bool) -> tuple:
    probe = exercise.probes[-1]
    return tuple(map(doubled, probe)) if exact else probe


def what_is_cut(exercise: Exercise, answer: Any, seconds: float) -> str:
    """What is wrong with the gradients of a right answer, or "".

    They are taken in float64, where no rounding looks like a cut, and else, where the answer or
    the right ones cannot work in it, in float32.
    """
    for exact in (True, False):
        due = due_gradients(exercise, exact) if exercise.kind != "value" else None
        if due is None:
            continue
        played = of_inputs(exercise.play)
        (run,) = run_answer(played, answer, [_last(exercise, exact)], seconds).runs
        if run.timed_out:
            return ""
        if not (exact and (isinstance(run.value, Raised) or not _is_right(exercise, answer))):
            return cut_off(due, run.value)
    return ""


def _is_right(exercise: Exercise, answer: Any) -> bool:
    """Whether it is right in float64 as well: if not, its gradients there are no cut."""
    probe = _last(exercise, True)
    due, given = (outcome(exercise.play, x, probe, 0) for x in (exercise.variant(), answer))
    return gap(due, given).size <= 1


def cut_off(due: list[Tensor], given: Any) -> str:
    """In words, what is wrong with the gradients of an answer whose numbers are right, or ""."""
    if isinstance(given, Raised) or given is None:
        stops = given is not None and "numpy()" in given.message
        return f"no gradient flows back through it: it raises {show(given)}" if stops else ""
    if not given:
        return f"no gradient flows back through it ({_CUT})"
    wrong = len(given) == len(due) and gap(due, given).size > 1
    wrong = wrong and not all(_by_rounding(a, b) for a, b in zip(due, given))
    finite = all(g.isfinite().all() for g in given)
    return (
        f"part of the gradient does not flow back through it ({_CUT})" if wrong and finite else ""
    )


def _by_rounding(due: Tensor, given: Tensor) -> bool:
    """Whether two gradients in float32 are as near as its rounding may leave them."""
    if due.dtype == torch.float64 or due.shape != given.shape:
        return gap(due, given).size <= 1
    return not due.numel() or bool((due - given).abs().max() <= _ROUNDING * due.abs().max())
