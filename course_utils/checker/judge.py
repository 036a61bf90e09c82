"""Tell right from wrong, and name the mistake when exactly one explanation fits every probe.

Better no name than a wrong one: an answer that agrees with no known mistake on all probes gets
only facts, each of them measured.
"""

import functools
import operator
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from course_utils.checker.facts import advice
from course_utils.checker.findings import Trial, findings
from course_utils.checker.model import Exercise, Mistake
from course_utils.checker.mutants import likeness
from course_utils.checker.runner import SECONDS, Session, outcome, run_answer
from course_utils.checker.source import WORDS, is_untouched
from course_utils.checker.values import Gap, Raised, gap, number, numbers_in, show


@dataclass(frozen=True)
class Case:
    """One input with what was expected and what was given."""

    args: tuple
    expected: Any
    given: Any
    index: tuple = ()


@dataclass(frozen=True)
class Verdict:
    """What is known of an answer.

    `status` is one of "right", "mistake" (named), "wrong" (facts only), "error" (it raised),
    "time" (it did not end), "unfinished" (the placeholder still raises), "not attempted" and
    "not checked" (nothing to check was given). `measured` is what experiments tell of a wrong
    answer without a name.
    """

    status: str
    mistakes: tuple[Mistake, ...] = ()
    facts: tuple[str, ...] = ()
    case: Case | None = None
    printed: str = ""
    measured: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Measured:
    """What experiments tell; exact when they explain every number."""

    sentences: tuple[str, ...] = ()
    exact: bool = False


@functools.cache
def outcome_of(exercise: Exercise, mistakes: tuple[Mistake, ...], i: int) -> Any:
    """What the reference gives on probe `i` when it makes these mistakes; none: what is right."""
    answer = exercise.combine(*mistakes).answer
    return outcome(exercise.play, answer, exercise.probes[i], i)


def _explains(exercise: Exercise, mistakes: tuple[Mistake, ...], given: list[Any]) -> bool:
    return all(gap(outcome_of(exercise, mistakes, i), g).size <= 1 for i, g in enumerate(given))


def name_mistakes(exercise: Exercise, given: list[Any]) -> tuple[tuple[Mistake, ...], bool]:
    """The mistakes that every fitting explanation contains, and whether they explain everything.

    One mistake is tried before two; nothing is named when no explanation fits, or when those that
    fit have nothing in common.
    """
    for possible in ([(m,) for m in exercise.mistakes], exercise.pairs()):
        fitting = [some for some in possible if _explains(exercise, some, given)]
        if fitting:
            certain = set.intersection(*({m.name for m in some} for some in fitting))
            named = tuple(m for m in fitting[0] if m.name in certain)
            return named, len(named) == len(fitting[0])
    return (), False


def judge_answer(exercise: Exercise, answer: Any, seconds: float = SECONDS) -> Verdict:
    """Run an answer on all probes and say what is known of it."""
    if is_untouched(exercise, answer):
        return Verdict("not attempted")
    problem = _unsuitable(exercise, answer)
    if problem:
        return Verdict("not checked", facts=(problem,))
    session = run_answer(exercise.play, answer, exercise.probes, seconds)
    for run, args in zip(session.runs, exercise.probes):
        if run.timed_out:
            return _out_of_time(session, args, seconds)
    return _judge_runs(exercise, answer, session)


def _unsuitable(exercise: Exercise, answer: Any) -> str:
    if exercise.kind == "class" and not isinstance(answer, type):
        return f"give the class itself: check({exercise.name!r}, YourClass)"
    if exercise.kind == "function" and not callable(answer):
        return f"a function is wanted here, this is of type {type(answer).__name__}"
    return ""


def _out_of_time(session: Session, args: tuple, seconds: float) -> Verdict:
    if session.interrupted:
        facts = ["you interrupted it"]
    else:
        facts = [f"it did not end within {number(float(seconds))} seconds: does a loop never stop?"]
    if session.stuck:
        facts.append("it still runs, in code that cannot be stopped; it ends with the kernel")
    return Verdict("time", facts=tuple(facts), case=Case(args, None, None), printed=session.printed)


def _judge_runs(exercise: Exercise, answer: Any, session: Session) -> Verdict:
    *runs, repeated = session.runs
    given = [run.value for run in runs]
    expected = [outcome_of(exercise, (), i) for i in range(len(exercise.probes))]
    gaps = [gap(a, b) for a, b in zip(expected, given, strict=True)]
    for run in runs:
        is_error = isinstance(run.value, Raised)
        if is_error and run.value == Raised("NotImplementedError", WORDS):
            return Verdict("unfinished", facts=(run.where,) if run.where else ())
    side_effects = _side_effects(exercise, runs)
    repeats = gap(given[0], repeated.value).size <= 1
    if not repeats:
        side_effects.append("it gives different answers to the same input: is it random?")
    if all(g.size <= 1 for g in gaps) and not side_effects:
        return Verdict("right", printed=session.printed)
    wrong = [i for i, g in enumerate(gaps) if g.size > 1]
    first = min(wrong, key=lambda i: numbers_in(exercise.probes[i]), default=0)
    case = Case(exercise.probes[first], expected[first], given[first], gaps[first].index)
    mistakes, complete = name_mistakes(exercise, given)
    if mistakes:
        if not complete:
            side_effects.append("something else is wrong too, and several things could explain it")
        return Verdict("mistake", mistakes, tuple(side_effects), case, session.printed)
    measured = _Measured()
    if isinstance(case.given, Raised):
        facts = [f"it raised {show(case.given)}", runs[first].where, advice(case.given)]
        status = "error"
    else:
        if gaps[first].size > 1 and repeats and not gaps[first].of_dtype:
            measured = _measured(exercise, answer, expected, given, first)
        facts = [] if measured.exact else _facts(exercise, answer, case, gaps[first])
        status = "wrong"
    facts = tuple(f for f in facts + side_effects if f)
    return Verdict(status, (), facts, case, session.printed, measured.sentences)


def _side_effects(exercise: Exercise, runs: list) -> list[str]:
    changed = sorted({i for run in runs for i in run.changed})
    names = [exercise.argument(i) for i in changed]
    return [f"it changes its input {name} in place: work on a copy" for name in names]


def _measured(
    exercise: Exercise, answer: Any, expected: list, given: list, first: int
) -> _Measured:
    """The slip that the answer comes to, else what it depends on; nothing where it raises."""
    if exercise.kind == "value" or any(isinstance(x, Raised) or x is None for x in given):
        return _Measured()
    slip = likeness(exercise, answer, given, first)
    if slip:
        return _Measured((slip,), exact=True)

    def right(args: tuple) -> Any:
        return outcome(exercise.play, exercise.variant(), args, 0)

    def again(inputs: list[tuple]) -> list[Any]:
        runs = run_answer(exercise.play, answer, inputs, 2.0).runs
        return [run.value for run in runs[: len(inputs)] if not run.timed_out]

    return _Measured(tuple(findings(Trial(exercise, expected, given, first, right, again))))


def _facts(exercise: Exercise, answer: Any, case: Case, found: Gap) -> list[str]:
    if found.size <= 1:
        return []

    def play_again(*args):
        return run_answer(exercise.play, answer, [args], 2.0).runs[0].value

    facts = [found.fact]
    facts += [fact(play_again, case.args, case.expected, case.given) for fact in exercise.facts]
    if found.index and not found.fact:
        part, index = "at", found.index
        several = isinstance(case.expected, list) and isinstance(case.expected[index[0]], Tensor)
        if several and index[1:]:
            part, index = f"in entry {index[0]} of what is returned, at", index[1:]
        where = ", ".join(str(step) for step in index)
        expected, given = (
            show(functools.reduce(operator.getitem, found.index, x))
            for x in (case.expected, case.given)
        )
        facts.append(
            f"the first difference is {part} [{where}]: expected {expected}, given {given}"
        )
    return facts
