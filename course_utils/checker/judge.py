"""Tell right from wrong, and name the mistake when exactly one explanation fits every probe.

Better no name than a wrong one: an answer that agrees with no known mistake on all probes gets
only facts, each of them measured. First it is settled how many things came back, then shapes, then
the dtype, then numbers.
"""

import dataclasses
import functools
import time
from typing import Any

import numpy as np

from course_utils.checker import by_part
from course_utils.checker.called_with import may_borrow, one_call, own_arguments, things_due
from course_utils.checker.causes import stops_where, told
from course_utils.checker.endless import NEVER_ENDS, hangs, out_of_time
from course_utils.checker.examined import Examined, error_facts, nearly, right_on
from course_utils.checker.exercise import Exercise, Mistake
from course_utils.checker.findings import ALL_BUT, EXACT, OF_FORM, Trial, findings
from course_utils.checker.gradients import what_is_cut
from course_utils.checker.repair import inputs_from, repair
from course_utils.checker.runner import SECONDS, Run, outcome, run_answer
from course_utils.checker.shown import first_difference, is_of_another_form, show, truths
from course_utils.checker.source import WORDS, is_untouched
from course_utils.checker.values import Gap, Raised, gap
from course_utils.checker.verdict import (
    Case,
    Verdict,
    explains,
    name_mistakes,
    outcome_of,
    plain_slip,
    turns_round,
    typed_fact,
    wrong_letters,
)
from course_utils.checker.watch import TURNED
from course_utils.checker.widen import in_float64, widened
from course_utils.checker.wording import capital

BUDGET = 2.4  # seconds of computing for one verdict


def judge_answer(exercise: Exercise, answer: Any, seconds: float = SECONDS) -> Verdict:
    """Run an answer on all probes and say what is known of it.

    Args:
        seconds: of computing, for the answer's own runs.
    """
    if is_untouched(exercise, answer):
        return Verdict("not attempted")
    if problem := _unsuitable(exercise, answer):
        return Verdict("not checked", facts=(problem,))
    if exercise.kind == "value" and isinstance(answer, np.ndarray):
        answer = answer.item() if answer.size == 1 else answer.tolist()
    due = [outcome_of(exercise, (), i) for i in range(len(exercise.probes))]
    if lost := [show(x) for x in due if isinstance(x, Raised)]:
        fact = f"what is right cannot be worked out here ({lost[0]}): restart the kernel"
        return Verdict("not checked", facts=(fact,))
    end = time.process_time() + BUDGET
    session = run_answer(exercise.play, answer, exercise.probes, seconds, whole=True)
    every = [*session.runs, session.again, session.repeated]
    for run, args in zip(every, [*exercise.probes, exercise.probes[0], exercise.probes[-1]]):
        if run and run.timed_out:
            return out_of_time(session, args, seconds)
    return _Judge(exercise, answer, session, end + session.loaded).verdict()


def _unsuitable(exercise: Exercise, answer: Any) -> str:
    if exercise.kind == "class" and not isinstance(answer, type):
        return f"give the class itself: check({exercise.name!r}, YourClass)"
    if exercise.kind == "function" and not callable(answer):
        return f"a function is wanted here, this is of type {type(answer).__name__}"
    return ""


class _Judge(Examined):
    """What is said of an answer."""

    def verdict(self) -> Verdict:
        """What is known of the answer."""
        exercise, given, holds = self.exercise, self.given, self._holds
        for run in self.session.runs:
            if run.value == Raised("NotImplementedError", WORDS):
                return Verdict("unfinished", facts=(run.where,) if run.where else ())
        if all(g.size <= 1 for g in self.gaps):
            if self.facts:
                i = next((i for i, run in enumerate(self.session.runs) if run.changed), 0)
                return self._wrong(Case(exercise.probes[i], self.due[i], self.given[i]))
            return self._accepted()
        named, complete = name_mistakes(exercise, given, self.end - BUDGET / 3, holds)
        lacking = () if named else by_part.what_does_not_hold(self.exercise, self.given)
        of_parts: tuple[str, ...] = ()
        if not named and not lacking and self.exercise.kind != "value":
            explained = exercise, given, self.end - BUDGET / 4, holds
            named, of_parts = by_part.name_each_part(*explained)
            named = named or (by_part.name_three(*explained) if of_parts else ())
            complete = True
        i = self._telling(named, complete)
        case, found = self._small(i, named, complete)
        if turns_round(self.exercise, named) and (one := self._repaired(self.exercise.probes[i])):
            return self._wrong(case, measured=[one])  # likelier than two that cancel in part
        if named:
            if not complete and not self._is_plain(named, case.args, case.given):
                self.facts.append("in its plain form it would give something else than what came")
            return dataclasses.replace(self._wrong(case, "mistake", named), whole=complete)
        if self.exercise.kind == "value":
            return self._wrong_value(case)
        if lacking or of_parts:
            self.facts = [*lacking, *self.facts]
            return self._wrong(case, measured=of_parts)
        return self._without_a_name(i, case, found)

    def _wrong(self, case: Case | None, status="wrong", named=(), measured=()) -> Verdict:
        if self.exercise.kind != "value" and TURNED in self.session.watch.calls:
            self.facts.append(
                "`.T` turns all the axes round where there are three; `.mT`, or "
                "`.transpose(-2, -1)`, exchanges the last two"
            )
        self.facts += self._lost(case) if case else []
        self.facts += [f"a warning came with it: {text}" for text in self.session.warned]
        facts = tuple(dict.fromkeys(f for f in self.facts if f))
        printed, held = self.session.printed, self._held(case)
        return Verdict(status, named, facts, case, printed, tuple(measured), held)

    def _accepted(self) -> Verdict:
        """Right on the probes: now on the widened ones, and by the learner's own work."""
        exercise, watch = self.exercise, self.session.watch
        further = widened(exercise)
        inputs = [args for _, args in further]
        runs = self._runs(inputs)
        if cut := runs.pop() if runs and runs[-1].timed_out else None:
            words, args = further[len(runs)]
            if hangs(zip([*exercise.probes, *inputs], [*self.session.runs, *runs]), args, cut):
                self.facts += [f"it is right on the usual inputs, but not {words}", NEVER_ENDS]
                return self._wrong(Case(args, None, None), "time")
        wrong, right = [], [("", args) for args in exercise.probes]
        for (words, args), due, run in zip(further, right_on(exercise, inputs), runs):
            if gap(due, run.value).size > 1 and not self._by_rounding(args, due, run.value):
                wrong.append((words, args, due, run))
            else:
                right.append((words, args))
        if wrong:
            k, words = told(exercise, [w[:2] for w in wrong], right, self._right, self._values)
            return self._wrong_further(words, *wrong[k][1:])
        if ruled_out := watch.ruled_out(exercise.forbids):
            self.facts.append(f"it calls `{ruled_out}`, which the exercise rules out")
            return self._wrong(None, "borrowed")
        if borrowed := sorted(watch.borrowed - may_borrow(exercise)):
            self.facts.append(
                f"they are what `{borrowed[0]}` of the course's library gives; the exercise is to "
                "write that yourself"
            )
            return self._wrong(None, "borrowed")
        cut, made = self._cut_off(), watch.made(exercise.too_large)
        if made or (cut and exercise.kind == "class"):
            self.facts.append(f"the numbers are right, but {made or cut}")
            return self._wrong(None)
        remarks = [f"one thing more: {cut}"] if cut else []
        remarks += [self._in_float64()] if exercise.kind == "function" else []
        if late := len(further) - len(runs):
            remarks.append(f"it is slow: {late} further inputs were not tried")
        facts = tuple(filter(None, remarks))
        tried = len(exercise.probes) + len(runs) if exercise.kind != "value" else 0
        return Verdict("right", facts=facts, printed=self.session.printed, tried=tried)

    def _wrong_further(self, words: str, args: tuple, due: Any, run: Run) -> Verdict:
        """Right on the probes, and wrong on an input about which `words` are true."""
        found, lacking = gap(due, run.value), ()
        words = "on this one" if own_arguments(self.exercise, args) else words
        words = words.split(":")[0] if isinstance(run.value, Raised) else words  # it says why
        self.facts.append(f"it is right on the usual inputs, but not {words}")
        if isinstance(run.value, Raised):
            self.facts += error_facts(run)
        else:
            lacking = by_part.what_does_not_hold(self.exercise, [run.value])
            self.facts += lacking or [found.fact]
        if not found.fact and self._is_right_in_float64(args):
            self.facts.append("in float64 it comes out right there: float32 loses the digits")
        change = "" if lacking else self._repaired(args)  # a design is mended by luck
        case = Case(args, due, run.value, found.index)
        return self._wrong(case, measured=[change] if change else [])

    def _cut_off(self) -> str:
        """What is wrong with the gradients of a right answer, or ""."""
        left = max(0.2, self.end - time.process_time())
        return what_is_cut(self.exercise, self.answer, left)

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

    def _wrong_value(self, case: Case) -> Verdict:
        fitting = [m for m in self.exercise.mistakes if explains(self.exercise, (m,), self.given)]
        if letters := wrong_letters(self.exercise, self.given[0]):
            self.facts.append(typed_fact(self.exercise, self.given[0]))
            return dataclasses.replace(self._wrong(case, "mistake", letters), whole=False)
        if len(fitting) > 1:
            ways = " Another way: ".join(f"{m.name}. {m.why}" for m in fitting)
            self.facts.append(f"one way to this number: {ways}")
        else:
            together = "" if self.gaps[0].fact else plain_slip(self.exercise, self.given[0])
            if together:
                return self._wrong(case, measured=[together])
            self.facts.append(typed_fact(self.exercise, self.given[0], self.gaps[0].fact))
        return self._wrong(case)

    def _without_a_name(self, i: int, case: Case, found: Gap) -> Verdict:
        run = self.session.runs[i]
        due_things, said = things_due(self.exercise, i), ""
        if None not in (due_things, run.things) and due_things[0] != run.things:
            said = f"it returns {run.form}; due {due_things[1]}"
        if run.form == "None" and (said or not isinstance(case.given, Raised)):
            said = "it returned None: is a `return` missing?"
        if said:
            self.facts.insert(0, said)
            return self._wrong(None)
        repeats = gap(self.given[-1], self.session.repeated.value).size <= 1
        look = repeats and not found.of_kind
        change = self._repaired(self.exercise.probes[i]) if look else ""
        if not change and repeats:
            explained = self.exercise, self.given, self.end - BUDGET / 12, self._holds
            if sides := by_part.name_each_side(*explained):
                return self._wrong(case, measured=sides)
            if three := by_part.name_three(*explained):
                return self._wrong(case, "mistake", three)
        if not change and repeats and not isinstance(case.given, Raised):
            change = self._known_and_more(OF_FORM if found.of_form else EXACT)
        if isinstance(case.given, Raised):
            if case.args is not self.exercise.probes[i]:  # told as it comes on what is shown
                run = next(iter(self._play([case.args])), run)
            status = "wrong" if is_of_another_form(case.given) else "error"
            self.facts = [*error_facts(run), *self.facts]
            if status == "error":
                self.facts += [stops_where(self.exercise, self.given, self._values, run.where)]
            return self._wrong(case, status, measured=[change] if change else [])
        told = truths(case.expected, case.given)
        self.facts[:0] = told or ([found.fact] if found.fact else [])
        if not found.fact and all(nearly(*pair) for pair in zip(self.due, self.given)):
            said, case = self._slightly(case)
            self.facts.append(said)
        measured = [change] if change else []
        if not change and repeats and (found.of_form or not found.fact):
            shown = ((case.args, case.expected, case.given),)
            trial = Trial.of(self.exercise, self._right, self._values, shown)
            measured = findings(trial, self.end, OF_FORM if found.of_form else None)
        alone = case.index and one_call(self.exercise, case.args, case.index[0])
        if case.index and not found.fact and not change and not alone:
            self.facts.insert(0, first_difference(case.expected, case.given, case.index))
        return self._wrong(case, measured=measured)

    def _repaired(self, first: tuple) -> str:
        """The change that mends the answer; it is wrong on `first`."""
        exercise, end = self.exercise, self.end - BUDGET / 4
        if time.process_time() > end:
            return ""
        in_time = time.process_time() < self.end - BUDGET / 2
        inputs, left = inputs_from(exercise, first, in_time)

        @functools.cache
        def due(mistakes: tuple[Mistake, ...], k: int) -> Any:
            answer = exercise.combine(*mistakes).answer
            return outcome(exercise.play, answer, inputs[k], k)

        for k in range(len(inputs)):  # now, and not in the short time of a change
            due((), k)
        changed = any(run.changed for run in self.session.runs)
        return repair(exercise, self.answer, inputs, due, end, changed, left)

    def _known_and_more(self, which: tuple) -> str:
        """A known mistake of which one simple thing more makes what came out, of a few things."""
        in_time = time.process_time() < self.end
        trial = Trial.of(self.exercise, self._right, self._values) if in_time else None
        off = trial and not all(nearly(*p) for p in [*trial.pairs, *zip(self.due, self.given)])
        alone = findings(trial, self.end, which)
        for mistake in self.exercise.mistakes if off and not alone else ():
            if time.process_time() > self.end:
                break
            made, also = (self._right(x, (mistake,)) for x in (trial.inputs, self.exercise.probes))
            if any(isinstance(x, Raised) for x in (*made, *also)):
                continue
            shown = tuple(zip(self.exercise.probes, also, self.given))
            known = dataclasses.replace(trial, due=made, shown=shown)
            if said := findings(known, self.end, which):
                name = capital(mistake.name)
                more = said[0].removeprefix(ALL_BUT)
                return f"two things together give this. {name}: {mistake.why} And from there {more}"
        return ""
