"""Where no name fits: the one change in the learner's own code after which it is right.

What is said was measured: with this change, and no other, the answer gives what is due on every
input tried. The change itself is not shown, only its place and its kind.
"""

import ast
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from course_utils.checker.edits import Code, Edit, Together, code_of
from course_utils.checker.exercise import Exercise, Mistake
from course_utils.checker.left_over import what_is_left
from course_utils.checker.mistaken import NUMBERS
from course_utils.checker.one_change import EACH, NUMBER, around, job, least, place, takes_away
from course_utils.checker.runner import outcome, play_batch
from course_utils.checker.slips import OTHER_NAME, OTHER_OPERATION, is_small
from course_utils.checker.widen import drawn, far_longer, widened

_RUNS = 0.12  # of computing, for one that is right on all inputs
_LEAST = 12  # inputs: on fewer a change may be right by chance
_WHOLE = re.compile("(line|branch|condition).* too many")
_COPY = "a step is missing (a copy)"
# of a table of truths: they move a comparison past what was tried, for any reason
_ANY = ("a factor", "an exp", "a function of each", "a sum", "a division", "a subtraction",
        "a running sum", "a softmax", "a change of sign", "1 minus", "1 divided")  # fmt: skip
_FACTORS = tuple(f"a step is missing ({kind}" for kind in _ANY)
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
    only = _COPY if in_place else "" if _tells_much(due((), 0)) else NUMBER
    few = _only_truths(due((), 0))
    if few and any(map(callable, inputs[0])):  # what an experiment finds, many others find by luck
        return ""
    named = {exercise.argument(i): x for i, x in enumerate(inputs[0])}
    real = {n for n, x in named.items() if isinstance(x, Tensor) and x.is_floating_point()}
    edits: list[Edit] = []
    first: list[Any] = []  # what each edit gives on the first input

    def tried(some: list[Edit]) -> list[Any]:
        jobs = [job(exercise, code, edit, inputs, lambda i: due((), i)) for edit in some]
        return play_batch(jobs, EACH, end)

    def right(some: list[Edit]) -> list[Edit]:
        good = [e for e, x in zip(some, tried(some)) if x is True]
        return _right_on(further, good, exercise, code, end)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some changes make odd code
        for some in (code.edits(0), code.edits(1), code.together(), code.edits(2)):
            more = [e for e in some if only in ("", e.words) and _may_be_written(e)]
            more = [e for e in more if not (few and e.words.startswith(_FACTORS))]
            more = [e for e in more if not _keeps_apart(e, real)]
            more.sort(key=lambda e: e.words.startswith("one "))  # names, of which there are many
            found = tried(more)
            good = [e for e, x in zip(more, found) if x is True]
            gone = (right(less) for less in _without(good, code, not edits)) if good else ()
            good = next(filter(None, gone), None) or _right_on(further, good, exercise, code, end)
            if good:
                on_all = f"it is right on all {len(inputs)} inputs tried"
                several = isinstance(least(good), Together)
                one = "the same change in each of them" if several else "this one change"
                return f"{place(good, code)}: with {one} {on_all}"
            edits, first = edits + more, first + found
            if time.process_time() >= end:
                break
        if only == NUMBER or type(due((), 0)) is int:  # made in many ways
            return ""
        search = exercise, answer, code, inputs, due, end
        return what_is_left(*search, edits, first)


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
    inputs += far_longer(exercise)
    most = max(_LEAST, int(_RUNS / each))
    every = -(-len(further) // most) or 1
    left = [args for k, args in enumerate(further) if k % every]
    return inputs + further[::every], left


def _right_on(
    inputs: Sequence[tuple], good: list[Edit], exercise: Exercise, code: Code, end: float
) -> list[Edit]:
    """The edits that are not seen to be wrong on these inputs."""
    if not inputs:
        return good
    due = [outcome(exercise.play, exercise.variant(), x, k) for k, x in enumerate(inputs)]
    jobs = [job(exercise, code, e, inputs, due.__getitem__) for e in good]
    found = play_batch(jobs, EACH, end)
    return [e for e, x in zip(good, found) if x is None or x is True]


def _without(good: list[Edit], code: Code, simplest: bool) -> Iterator[list[Edit]]:
    """Edits that may be told in place of good ones: they only take something away.

    What is superfluous is often put out of action by another number, or another name, as well: a
    factor by 1, an axis to turn by one that does not matter, a condition by a limit that no number
    reaches. First come the lines, branches and conditions in which a good edit lies: it may be good
    for no other reason than that it keeps them from doing anything. Last come comparisons that a
    good edit makes tell nothing.

    Args:
        simplest: whether the good ones are of rank 0, so that no others were tried.
    """
    yield [e for e in around(good, code.edits(1)) if _WHOLE.search(e.words)]
    yield [e for e in good if takes_away(e)]
    if simplest:
        yield [e for e in code.edits(1) if takes_away(e)]
    several = isinstance(least(good), Together)
    yield around(good, code.together((3,)) if several else code.edits(3))


def _tells_much(value: Any) -> bool:
    """Whether an outcome holds numbers, and not only what is true of them."""
    if isinstance(value, (list, tuple, dict)):
        return any(map(_tells_much, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, (bool, str)) and value is not None


def _only_truths(value: Any) -> bool:
    """Whether an outcome is a table of what is true and what is not."""
    return isinstance(value, Tensor) and value.dtype == torch.bool


def _may_be_written(edit: Edit | Together) -> bool:
    """Whether no part is right by luck alone: numbers that nobody writes, names for what is true.

    No number below 0 stands where something is added or multiplied, and none but 0 in the place of
    a tiny one, which is not there to be multiplied by either. Another name is no cure where only
    the truth of a name counts.
    """
    return not any(map(_by_luck, getattr(edit, "parts", [edit])))


def _by_luck(part: Edit) -> bool:
    parent, new = part.parent, part.new
    if part.words == OTHER_NAME:
        return isinstance(parent, ast.BoolOp) or getattr(parent, "test", None) is part.node
    if part.words == OTHER_OPERATION:
        return is_small(part.node.right)
    if part.words != NUMBER or not isinstance(parent, ast.BinOp) or isinstance(parent.op, ast.Pow):
        return False
    if isinstance(new, ast.UnaryOp):
        return new.operand.value <= -min(NUMBERS)
    return is_small(part.node) and bool(new.value)


def _keeps_apart(edit: Edit | Together, real: set[str]) -> bool:
    """Whether a step more only keeps the real numbers that were tried from being equal to one."""
    return edit.words.startswith("a step is missing") and any(
        isinstance(part.parent, ast.Compare)
        and isinstance(part.parent.ops[0], (ast.Eq, ast.NotEq))
        and getattr(part.parent.left, "id", None) in real
        for part in getattr(edit, "parts", [edit])
    )


def _only_computes(code: Code) -> bool:
    names = {
        getattr(n, "id", None) or getattr(n, "attr", None)
        for n in ast.walk(code.tree)
        if isinstance(n, (ast.Name, ast.Attribute))
    }
    imports = any(isinstance(n, (ast.Import, ast.ImportFrom)) for n in ast.walk(code.tree))
    return not imports and not names & _MORE_THAN_COMPUTING
