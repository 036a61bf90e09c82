"""Tell right from wrong, and name the mistake when exactly one explanation fits every probe.

Better no name than a wrong one: an answer that agrees with no known mistake on all probes gets
only facts, each of them measured. First it is settled how many things came back, then shapes, then
the dtype, then numbers.
"""

import functools
import operator
import time
from typing import Any

from torch import Tensor

from course_utils.checker.exercise import Exercise
from course_utils.checker.findings import Trial, findings
from course_utils.checker.repair import repair
from course_utils.checker.runner import SECONDS, Run, Session, outcome, run_answer
from course_utils.checker.shown import number, show
from course_utils.checker.source import WORDS, is_untouched
from course_utils.checker.values import Gap, Raised, gap, numbers_in
from course_utils.checker.verdict import Case, Verdict, explains, name_mistakes, outcome_of
from course_utils.checker.watch import Watch, things
from course_utils.checker.widen import in_float64, smaller, widened

BUDGET = 2.8  # seconds of computing for one verdict


def judge_answer(exercise: Exercise, answer: Any, seconds: float = SECONDS) -> Verdict:
    """Run an answer on all probes and say what is known of it.

    Args:
        seconds: of computing, for the answer's own runs.
    """
    if is_untouched(exercise, answer):
        return Verdict("not attempted")
    if problem := _unsuitable(exercise, answer):
        return Verdict("not checked", facts=(problem,))
    end = time.process_time() + BUDGET
    session = run_answer(exercise.play, answer, exercise.probes, seconds, whole=True)
    every = [*session.runs, session.again, session.repeated]
    for run, args in zip(every, [*exercise.probes, *exercise.probes[:1] * 2]):
        if run and run.timed_out:
            return _out_of_time(session, args, seconds)
    return _Judge(exercise, answer, session, end).verdict()


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


class _Judge:
    """One answer with its runs; `end` is when everything must be said."""

    def __init__(self, exercise: Exercise, answer: Any, session: Session, end: float):
        self.exercise, self.answer, self.session, self.end = exercise, answer, session, end
        self.given = [run.value for run in session.runs]
        self.due = [outcome_of(exercise, (), i) for i in range(len(exercise.probes))]
        self.gaps = [gap(a, b) for a, b in zip(self.due, self.given, strict=True)]
        self.facts = self._side_effects()

    def verdict(self) -> Verdict:
        """What is known of the answer."""
        for run in self.session.runs:
            if run.value == Raised("NotImplementedError", WORDS):
                return Verdict("unfinished", facts=(run.where,) if run.where else ())
        if all(g.size <= 1 for g in self.gaps):
            if self.facts:
                return self._wrong(Case(self.exercise.probes[0], self.due[0], self.given[0]))
            return self._right()
        named, complete = name_mistakes(self.exercise, self.given, self.end - BUDGET / 3)
        i = self._telling()
        case = Case(self.exercise.probes[i], self.due[i], self.given[i], self.gaps[i].index)
        if named:
            if not complete:
                self.facts.append(
                    "something else is wrong too, and several things could explain it"
                )
            return self._wrong(self._small(case), "mistake", named)
        if self.exercise.kind == "value":
            return self._wrong_value(case)
        return self._without_a_name(i, case)

    def _wrong(self, case: Case | None, status="wrong", named=(), measured=()) -> Verdict:
        facts = tuple(dict.fromkeys(f for f in self.facts if f))
        return Verdict(status, named, facts, case, self.session.printed, tuple(measured))

    def _telling(self) -> int:
        """The input to show: one that raises, else one whose form differs, else the smallest."""
        wrong = [i for i, g in enumerate(self.gaps) if g.size > 1]
        return min(
            wrong,
            key=lambda i: (
                not isinstance(self.given[i], Raised),
                numbers_in(self.exercise.probes[i]),
            ),
        )

    def _side_effects(self) -> list[str]:
        found, session = [], self.session
        changed = sorted({i for run in session.runs for i in run.changed})
        for name in map(self.exercise.argument, changed):
            found.append(f"it changes its input {name} in place: work on a copy")
        first = self.given[0]
        if gap(first, session.repeated.value).size > 1:
            found.append("it gives different answers to the same input: is it random?")
        elif (
            not changed
            and self.gaps[0].size <= 1
            and gap(_twice(self.exercise), session.again.value).size > 1
        ):
            found.append("called once more with the same tensors it gives something else")
        return found

    def _right(self) -> Verdict:
        """Right on the probes: now on the widened ones, and by the learner's own work."""
        exercise, watch = self.exercise, self.session.watch
        further = widened(exercise)
        inputs = [args for _, args in further]
        runs = self._play(inputs)
        for (words, args), run in zip(further, runs):
            due = outcome(exercise.play, exercise.variant(), args, 0)
            found = gap(due, run.value)
            if found.size > 1:
                self.facts.append(f"it is right on the usual inputs, but not {words}")
                case = Case(args, due, run.value, found.index)
                self.facts += _error_facts(run) if isinstance(run.value, Raised) else [found.fact]
                return self._wrong(case)
        ruled_out = [name for name in exercise.forbids if name in watch.calls]
        if ruled_out:
            self.facts.append(f"it calls `{ruled_out[0]}`, which the exercise rules out")
            return self._wrong(None, "borrowed")
        if borrowed := sorted(watch.borrowed - may_borrow(exercise)):
            self.facts.append(
                f"they are what `{borrowed[0]}` of the course's library gives; the exercise is to "
                "write that yourself"
            )
            return self._wrong(None, "borrowed")
        remark = self._in_float64() if exercise.kind == "function" else ""
        facts = (remark,) if remark else ()
        tried = len(exercise.probes) + len(further) if exercise.kind != "value" else 0
        return Verdict("right", facts=facts, printed=self.session.printed, tried=tried)

    def _in_float64(self) -> str:
        """A remark where a right answer cannot take numbers in float64."""
        args = in_float64(self.exercise)
        runs = self._play([args]) if args else []
        if runs and isinstance(runs[0].value, Raised):
            line = f" ({runs[0].where})" if runs[0].where else ""
            return (
                f"one thing more: on inputs in float64 it raises {runs[0].value.type_name}{line}; "
                "a new tensor takes the dtype of x in x.new_zeros(...) or torch.ones(..., "
                "dtype=x.dtype)"
            )
        return ""

    def _play(self, inputs: list[tuple]) -> list[Run]:
        """The answer on other inputs; those runs that came to an end."""
        left = max(0.2, self.end - time.process_time())
        runs = run_answer(self.exercise.play, self.answer, inputs, left).runs
        return [run for run in runs if not run.timed_out]

    def _wrong_value(self, case: Case) -> Verdict:
        fitting = [m for m in self.exercise.mistakes if explains(self.exercise, (m,), self.given)]
        if fitting:
            slips = "; or ".join(f"{m.name} ({m.why})" for m in fitting)
            self.facts.append(f"several slips lead to this: {slips}")
        else:
            self.facts.append(self.gaps[0].fact)
        return self._wrong(case)

    def _without_a_name(self, i: int, case: Case) -> Verdict:
        run, found = self.session.runs[i], self.gaps[i]
        due_things, said = _things_due(self.exercise), ""
        if None not in (due_things, run.things) and due_things[0] != run.things:
            said = f"it returns {run.form}; due {due_things[1]}"
        if run.form == "None" and (said or not isinstance(case.given, Raised)):
            said = "it returned None: is a `return` missing?"
        if said:
            self.facts.insert(0, said)
            return self._wrong(None)
        repeats = gap(self.given[0], self.session.repeated.value).size <= 1
        change = self._repaired(i) if repeats and not found.of_dtype else ""
        if isinstance(case.given, Raised):
            self.facts = _error_facts(run) + self.facts
            return self._wrong(case, "error", measured=[change] if change else [])
        if found.fact:
            self.facts.insert(0, found.fact)
        measured = [change] if change else []
        if not change and repeats and not found.fact:
            measured = findings(self._trial(), self.end)
        if found.index and not found.fact and not change:
            self.facts.insert(0, _first_difference(case, found))
        return self._wrong(self._small(case), measured=measured)

    def _repaired(self, i: int) -> str:
        exercise = self.exercise
        order = [i, *(k for k in range(len(self.due)) if k != i)]
        inputs = [exercise.probes[k] for k in order] + [args for _, args in widened(exercise)]
        due = [self.due[k] for k in order]
        due += [outcome(exercise.play, exercise.variant(), x, 0) for x in inputs[len(due) :]]
        return repair(exercise, self.answer, inputs, due, self.end - BUDGET / 4)

    def _trial(self) -> Trial | None:
        def right(inputs: list[tuple]) -> list[Any]:
            answer = self.exercise.variant()
            return [outcome(self.exercise.play, answer, args, 0) for args in inputs]

        return Trial.of(self.exercise, right, lambda xs: [run.value for run in self._play(xs)])

    def _small(self, case: Case) -> Case:
        """The same with a smaller input on which it shows, whole numbers where that can be."""
        if self.exercise.kind == "value":
            return case
        for args in smaller(self.exercise, case.args):
            runs = self._play([args]) if time.process_time() < self.end else []
            if not runs or isinstance(runs[0].value, Raised) != isinstance(case.given, Raised):
                continue
            due = outcome(self.exercise.play, self.exercise.variant(), args, 0)
            found = gap(due, runs[0].value)
            if found.size > 1:
                return Case(args, due, runs[0].value, found.index)
        return case


@functools.cache
def _twice(exercise: Exercise) -> Any:
    """What is right on the second call with the tensors of the first probe."""
    return outcome(exercise.play, exercise.variant(), exercise.probes[0], 0, times=2)


@functools.cache
def _things_due(exercise: Exercise) -> tuple[int, str] | None:
    """How many things the solution returns, and that in words; None where it does not matter."""
    watch = Watch(exercise.solution)
    with watch.returns_noted() as answer:
        outcome(exercise.play, answer, exercise.probes[0], 0)
    due = things(watch.returned)
    words = "is one tensor" if isinstance(watch.returned, Tensor) else f"are {due} things"
    return None if due is None else (due, "is one thing" if due == 1 and "are" in words else words)


@functools.cache
def may_borrow(exercise: Exercise) -> frozenset[str]:
    """The library's functions and layers whose results right answers hand back as they are."""
    allowed: set[str] = set()
    for right in (exercise.solution, *exercise.right_variants):
        watch = Watch(right)
        with watch.returns_noted() as answer, watch.calls_noted():
            outcome(exercise.play, answer, exercise.probes[0], 0)
        allowed |= watch.borrowed
    return frozenset(allowed)


def _error_facts(run: Run) -> list[str]:
    return [f"it raised {show(run.value)}", run.where, *run.tips]


def _first_difference(case: Case, found: Gap) -> str:
    part, index = "at", found.index
    several = isinstance(case.expected, list) and isinstance(case.expected[index[0]], Tensor)
    if several and index[1:]:
        part, index = f"in entry {index[0]} of what is returned, at", index[1:]
    where = ", ".join(str(step) for step in index)
    expected, given = (
        show(functools.reduce(operator.getitem, found.index, x))
        for x in (case.expected, case.given)
    )
    return f"the first difference is {part} [{where}]: expected {expected}, given {given}"
