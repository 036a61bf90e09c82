"""Where no name fits: the one change in the learner's own code after which it is right.

What is said was measured: with this change, and no other, the answer gives what is due on every
input tried. The change itself is not shown, only its place and its kind.
"""

import ast
import re
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from course_utils.checker.edits import Code, Edit, Together, code_of
from course_utils.checker.exercise import Exercise, Mistake
from course_utils.checker.runner import outcome, play_batch
from course_utils.checker.slips import NO_SMALL
from course_utils.checker.values import Raised, gap
from course_utils.checker.widen import drawn, widened

_EACH = 0.3  # seconds for one change
_RUNS = 0.12  # of computing, for one that is right on all inputs
_LEAST = 12  # inputs: on fewer a change may be right by chance
# changes beside which a known mistake may stand; others may make the known mistake themselves
_SWAP = re.compile(
    "number is due|function is due|comparison|`.+=`|exchange of|sides are exchanged|"
    "brackets are too|a copy"
)
_LINE, _CONDITION = "this line is too many", "a part of the condition is too many"
_NUMBER, _COPY = "another number is due", "a step is missing (a copy)"
_FIRST = (_NUMBER, NO_SMALL)  # of several changes these are told
_FACTOR = "a step is missing (a factor"  # moves a comparison past what was tried, for any reason
_LONGEST = 60  # characters of code that are shown
# code that does more than compute is not run with changes in it
_MORE_THAN_COMPUTING = {"open", "exec", "eval", "os", "sys", "shutil", "subprocess", "pathlib"}


def repair(
    exercise: Exercise,
    answer: Any,
    inputs: list[tuple],
    due: Callable[[tuple[Mistake, ...], int], Any],
    end: float,
    in_place: bool = False,
    further: Sequence[tuple] = (),
) -> str:
    """One sentence on the change that makes the answer right, or makes a known mistake of it.

    Args:
        exercise, answer: what is checked.
        inputs: what it must be right on, one on which it is wrong first.
        due: what the reference gives on input i when it makes these mistakes.
        end: when the search ends, on the clock of the process.
        in_place: an argument is changed, so that a copy is what is missing.
        further: more inputs, on which a change that is told must not be wrong either.
    """
    code = code_of(answer)
    if code is None or len(inputs) < _LEAST or not _only_computes(code):
        return ""
    only = _COPY if in_place else "" if _tells_much(due((), 0)) else _NUMBER
    few = _only_truths(due((), 0))
    edits: list[Edit] = []
    first: list[Any] = []  # what each edit gives on the first input
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some changes make odd code
        for some in (code.edits(0), code.edits(1), code.together(), code.edits(2)):
            more = [e for e in some if only in ("", e.words)]
            more = [e for e in more if not (few and e.words.startswith(_FACTOR))]
            more.sort(key=lambda e: e.words.startswith("one "))  # names, of which there are many
            jobs = [_job(exercise, code, edit, inputs, lambda i: due((), i)) for edit in more]
            found = play_batch(jobs, _EACH, end)
            good = [e for e, x in zip(more, found) if x is True]
            if good:
                less = _left_out(good, code)
                jobs = [_job(exercise, code, e, inputs, lambda i: due((), i)) for e in less]
                gone = [e for e, x in zip(less, play_batch(jobs, _EACH, end)) if x is True]
                good = gone or good
                good = _right_on(further, good, exercise, code, end)
            if good:
                tried = f"it is right on all {len(inputs)} inputs tried"
                several = isinstance(_least(good), Together)
                one = "the same change in each of them" if several else "this one change"
                return f"{_place(good, code)}: with {one} {tried}"
            edits, first = edits + more, first + found
            if time.process_time() >= end:
                break
        if only == _NUMBER or type(due((), 0)) is int:  # made in many ways
            return ""
        wrong = due((), 0), outcome(exercise.play, answer, inputs[0], 0)
        for mistake in exercise.mistakes:
            if time.process_time() >= end:
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
            jobs = [
                _job(exercise, code, e, inputs, lambda i, m=mistake: due((m,), i)) for e in near
            ]
            good = [e for e, x in zip(near, play_batch(jobs, _EACH, end)) if x is True]
            if (
                good
                and play_batch([_nearer(exercise, answer, inputs, due, mistake)], _EACH, end)[0]
            ):
                name = mistake.name[:1].upper() + mistake.name[1:]
                return (
                    f"{_place(good, code)}. With that change, what is left is this mistake: "
                    f"{name}. {mistake.why}"
                )
    return ""


def inputs_from(exercise: Exercise, first: tuple, in_time: bool) -> tuple[list[tuple], list[tuple]]:
    """The inputs that a change must be right on: `first`, the probes, and as many as are quick.

    Then those that are left, for the few changes that are right on these.

    Unless `in_time`, the widened ones are left out: what time is left is for the search.
    """
    inputs = [first, *(args for args in exercise.probes if args is not first)]
    begun = time.process_time()
    for k, args in enumerate(inputs):
        outcome(exercise.play, exercise.variant(), args, k)
    each = (time.process_time() - begun) / len(inputs)
    further = [*drawn(exercise)]
    if in_time or len(inputs) + len(further) < _LEAST:
        further += [args for _, args in widened(exercise) if args is not first]
    most = max(_LEAST, int(_RUNS / each))
    every = -(-len(further) // most) or 1
    left = [args for k, args in enumerate(further) if k % every]
    return inputs + further[::every], left


def _job(
    exercise: Exercise, code: Code, edit: Edit, inputs: Sequence[tuple], due: Callable[[int], Any]
) -> Callable[[], Any]:
    """Whether an edit gives what is due: True, or else what it gives on the first input, and on."""

    def is_right() -> Any:
        changed, given = code.answer(edit), []
        for i, args in enumerate(inputs):
            value = outcome(exercise.play, changed, args, i, kept=True)
            given.append(value)
            if gap(due(i), value).size > 1:
                return given
        return True

    return is_right


def _right_on(
    inputs: Sequence[tuple], good: list[Edit], exercise: Exercise, code: Code, end: float
) -> list[Edit]:
    """The edits that are not seen to be wrong on these inputs."""
    if not inputs:
        return good
    due = [outcome(exercise.play, exercise.variant(), x, k) for k, x in enumerate(inputs)]
    jobs = [_job(exercise, code, e, inputs, due.__getitem__) for e in good]
    found = play_batch(jobs, _EACH, end)
    return [e for e, x in zip(good, found) if x is None or x is True]


def _left_out(good: list[Edit], code: Code) -> list[Edit]:
    """Edits that leave out a line or condition in which a good edit lies.

    Such an edit may be good for no other reason than that it keeps the line from doing anything.
    """
    changed = {id(e.node) for e in good}
    return [
        e
        for e in code.edits(1)
        if e.words in (_LINE, _CONDITION) and changed & {id(n) for n in ast.walk(e.node)}
    ]


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


def _tells_much(value: Any) -> bool:
    """Whether an outcome holds numbers, and not only what is true of them."""
    if isinstance(value, (list, tuple, dict)):
        return any(map(_tells_much, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, (bool, str)) and value is not None


def _only_truths(value: Any) -> bool:
    """Whether an outcome is a table of what is true and what is not."""
    return isinstance(value, Tensor) and value.dtype == torch.bool


def _wrong(right: Any, given: Any) -> float:
    """How many of the numbers are wrong: 0 to 1."""
    if isinstance(right, Tensor) and isinstance(given, Tensor) and right.shape == given.shape:
        a, b = right.double(), given.double()
        near = ((a - b).abs() <= 1e-4 * (1 + a.abs())) | (a == b)
        return 1 - near.double().mean().item() if right.numel() else 0.0
    return float(gap(right, given).size > 1)


def _only_computes(code: Code) -> bool:
    names = {
        getattr(n, "id", None) or getattr(n, "attr", None)
        for n in ast.walk(code.tree)
        if isinstance(n, (ast.Name, ast.Attribute))
    }
    imports = any(isinstance(n, (ast.Import, ast.ImportFrom)) for n in ast.walk(code.tree))
    return not imports and not names & _MORE_THAN_COMPUTING


def _switches_off(edit: Edit) -> bool:
    """A limit moved so far that what it guards happens always or never."""
    return edit.words == _NUMBER and isinstance(getattr(edit.node, "value", None), float)


def _least(good: list[Edit]) -> Edit:
    """The change of the smallest piece of code, of a number first."""
    return min(good, key=lambda e: (e.words not in _FIRST, len(ast.unparse(e.node))))


def _place(good: list[Edit], code: Code) -> str:
    """Where the change of the smallest piece of code is, and of what kind."""
    edit = _least(good)
    shown = ast.unparse(edit.node).split("\n")[0]
    shown = shown if len(shown) <= _LONGEST else shown[: _LONGEST - 4] + " ..."
    alike = sorted(
        n.col_offset
        for n in ast.walk(code.tree)
        if getattr(n, "lineno", 0) == edit.node.lineno and ast.dump(n) == ast.dump(edit.node)
    )
    which = alike.index(edit.node.col_offset) + 1 if len(set(alike)) > 1 else 0
    shown = f"`{shown}` (number {which} of {len(alike)})" if which else f"`{shown}`"
    return f"In line {edit.node.lineno}, at {shown}, {edit.words}"
