"""An answer with its runs: what it gives on the probes and on further inputs, and what is due."""

import functools
import itertools
import time
from typing import Any

from torch import Tensor

from course_utils.checker.exercise import Exercise, Mistake, call
from course_utils.checker.generic_inputs import part_of
from course_utils.checker.properties import is_of_properties
from course_utils.checker.runner import Run, Session, outcome, run_answer
from course_utils.checker.shown import is_of_another_form, show
from course_utils.checker.side_effects import global_state_kept
from course_utils.checker.smaller import smaller
from course_utils.checker.values import Gap, Raised, gap, numbers_in
from course_utils.checker.verdict import Case, asks_for_a_set, outcome_of, typed
from course_utils.checker.widen import FAR, doubled, drawn, usual, widened

_SEEN = 0.02  # a difference that is seen in few digits, as a part of the largest number
_TO_WIDEN = 1.2  # seconds that must be left for all the widened inputs
_LITTLE = "no number is off by more than 1 % of the largest"
_SLIGHTLY = f"{_LITTLE}: is one rounded, or a small one added?"
_SEVERAL = 4  # inputs on which a part is right that is called so, and small ones for a name


class Examined:
    """One answer with its runs; `end` is when everything must be said."""

    def __init__(self, exercise: Exercise, answer: Any, session: Session, end: float):
        self.exercise, self.answer, self.session, self.end = exercise, answer, session, end
        self.given = [run.value for run in session.runs]
        self.due = [outcome_of(exercise, (), i) for i in range(len(exercise.probes))]
        if exercise.kind == "value":
            in_order = not asks_for_a_set(exercise)
            self.given = [typed(*pair, in_order) for pair in zip(self.due, self.given)]
        self.gaps = [gap(a, b) for a, b in zip(self.due, self.given, strict=True)]
        self.facts = self._side_effects()

    def _held(self, case: Case | None) -> tuple[str, ...]:
        """The parts of an outcome that are right on every input, and there are several."""
        if case is None or not isinstance(case.expected, dict):
            return ()
        if time.process_time() > self.end - _TO_WIDEN:
            return ()
        inputs = [*usual(self.exercise), *(args for _, args in widened(self.exercise))]
        due, came = right_on(self.exercise, inputs), self._values(inputs)
        pairs = [*zip(self.due, self.given), *zip(due, came)]
        few = len(came) < len(inputs) or len(pairs) < _SEVERAL
        if few or not all(isinstance(x, dict) for pair in pairs for x in pair):
            return ()
        return tuple(
            part for part in case.expected
            if all(gap(a.get(part), b.get(part)).size <= 1 for a, b in pairs)
        )  # fmt: skip

    def _telling(self, named: tuple[Mistake, ...] = (), complete: bool = True) -> int:
        """The input to show: one that raises, else one whose form differs, else the smallest.

        Of two mistakes both show on it, and of one in another form its plain form as well; where
        the names are not `complete`, it shows that they do not explain everything.
        """
        alone = [(m,) for m in named if len(named) > 1]
        plain = [self._plain(m) for m in named]
        wrong = [i for i, g in enumerate(self.gaps) if g.size > 1]
        return min(
            wrong,
            key=lambda i: (
                not complete and self._is_plain(named, self.exercise.probes[i], self.given[i]),
                any(gap(outcome_of(self.exercise, m, i), self.due[i]).size <= 1 for m in plain),
                any(gap(outcome_of(self.exercise, m, i), self.given[i]).size <= 1 for m in alone),
                not isinstance(self.given[i], Raised),
                not self.gaps[i].of_form,
                "axes of size 1" in self.gaps[i].fact,  # by chance, where not on every probe
                nearly(self.due[i], self.given[i], _SEEN),
                numbers_in(self.exercise.probes[i]),
            ),
        )

    def _plain(self, mistake: Mistake) -> tuple[Mistake, ...]:
        """The plain form of a mistake, the first under its name."""
        return (next(m for m in self.exercise.mistakes if m.name == mistake.name),)

    def _is_plain(self, named: tuple[Mistake, ...], args: tuple, given: Any) -> bool:
        """Whether the plain forms of the mistakes give on this input what came."""
        plain = tuple(m for mistake in named for m in self._plain(mistake))
        return gap(*self._right([args], plain), given).size <= 1

    def _holds(self, some: tuple[Mistake, ...], part: Any = None, where: tuple = ()) -> bool:
        """Whether mistakes that explain the probes explain further inputs as well.

        On generic inputs, and on those that may be shown, they give what came; where numbers are
        large they are not wrong where the answer is right. `part` is the key of one part of the
        outcomes, and none of all; `where` is the place of an argument and the value that it has on
        the inputs that count.
        """
        further, answer = self._further, self.exercise.combine(*some).answer
        with global_state_kept():
            for args, *outcomes, as_given in further:
                if where and args[where[0]] is not where[1]:
                    continue
                outcomes += [outcome(self.exercise.play, answer, args, 0, kept=True)]
                kept = [part_of(x, part) for x in outcomes]
                due, came, made = outcomes if any(x is None for x in kept) else kept
                if as_given and gap(made, came).size > 1 and not _raised(made, came):
                    return False
                if not as_given and gap(due, came).size <= 1 < gap(due, made).size:
                    return False
        return True

    @functools.cached_property
    def _further(self) -> list[tuple[tuple, Any, Any, bool]]:
        """More inputs, what is due and given, and whether an explanation must give that too."""
        exercise = self.exercise
        if exercise.kind == "value":
            return []
        small = itertools.islice(smaller(exercise, self._telling()), _SEVERAL)
        others = drawn(exercise) if exercise.play is call else ()
        ordinary = usual(exercise) or others
        inputs = [*ordinary, *small, *usual(exercise, FAR), *usual(exercise, 4 * FAR)]
        large = len(inputs) - len(usual(exercise, FAR)) - len(usual(exercise, 4 * FAR))
        rows = zip(inputs, right_on(exercise, inputs), self._values(inputs))
        return [
            (args, due, came, k < large)
            for k, (args, due, came) in enumerate(rows)
            if not len(ordinary) <= k < large or gap(due, came).size > 1
        ]

    def _right(self, inputs: list[tuple], mistakes: tuple[Mistake, ...] = ()) -> list[Any]:
        """What the reference gives, with mistakes or without."""
        answer = self.exercise.combine(*mistakes).answer
        with global_state_kept():
            return [outcome(self.exercise.play, answer, args, 0, kept=True) for args in inputs]

    def _values(self, inputs: list[tuple]) -> list[Any]:
        """What the answer gives, as far as it comes in time."""
        return [run.value for run in self._play(inputs)]

    def _lost(self, case: Case) -> list[str]:
        """By which function something is lost that the facts speak of, on the input shown."""
        watch, left = self.session.watch, self.end - time.process_time()
        if left > 0 and any("NaN" in fact for fact in self.facts):
            once = run_answer(self.exercise.play, self.answer, [case.args], left, whole=True)
            watch = once.watch
        return watch.lost(self.facts, case.args)

    def _side_effects(self) -> list[str]:
        found, session = [], self.session
        if self.exercise.kind == "value":
            return found
        changed = sorted({i for run in session.runs for i in run.changed})
        for name in map(self.exercise.argument, changed):
            found.append(f"it changes its input {name} in place: work on a copy")
        if gap(self.given[-1], session.repeated.value).size > 1:
            found.append("it gives different answers to the same input: is it random?")
        elif (
            not changed
            and self.gaps[0].size <= 1
            and gap(_twice(self.exercise), session.again.value).size > 1
        ):
            found.append("called once more with the same tensors it gives something else")
        return found

    def _by_rounding(self, args: tuple, due: Any, given: Any) -> bool:
        """Whether in float64 it is right, and in float32 off by what its own rounding makes."""
        return self._is_right_in_float64(args) and nearly(due, given)

    def _is_right_in_float64(self, args: tuple) -> bool:
        exact = doubled(args)
        right, own = self._right([exact]), self._values([exact])
        ran = own and not isinstance(right[0], Raised)
        return bool(ran) and gap(right[0], own[0]).size <= 1

    def _slightly(self, case: Case) -> tuple[str, Case]:
        """What is said of an answer that is off by little, and an input on which it is far off."""
        inputs = [args for _, args in self.exercise.edges]
        rows = zip(self.exercise.edges, right_on(self.exercise, inputs), self._values(inputs))
        for (words, args), due, given in rows:
            if not nearly(due, given) and not isinstance(given, Raised):
                said = f"on the usual inputs {_LITTLE}, but not {words}"
                return said, Case(args, due, given, gap(due, given).index)
        return _SLIGHTLY, case

    def _play(self, inputs: list[tuple]) -> list[Run]:
        """The answer on other inputs; those runs that came to an end."""
        return [run for run in self._runs(inputs) if not run.timed_out]

    def _runs(self, inputs: list[tuple]) -> list[Run]:
        """As many as came to an end in time, and the one that did not."""
        left = max(0.2, self.end - time.process_time())
        return run_answer(self.exercise.play, self.answer, inputs, left, numbered=False).runs

    def _small(self, i: int, named: tuple[Mistake, ...], complete: bool) -> tuple[Case, Gap]:
        """Probe `i`, or a smaller input on which the same shows, whole numbers where that can be.

        Of two mistakes both show on it: neither alone gives what was given. Where the names are not
        `complete`, all of them together do not.
        """
        exercise, given, found = self.exercise, self.given[i], self.gaps[i]
        case, at_first = Case(exercise.probes[i], self.due[i], given, found.index), None
        whole = exercise.kind == "value" or is_of_properties(self.due[i])  # asked of the probes
        for args in () if whole else smaller(exercise, i):
            values = self._values([args]) if time.process_time() < self.end else []
            if not values or isinstance(values[0], Raised) != isinstance(given, Raised):
                continue
            (due,), alone = right_on(exercise, [args]), [(m,) for m in named if len(named) > 1]
            plain = [self._plain(m) for m in named]
            less = gap(due, values[0])
            both = all(gap(*self._right([args], m), values[0]).size > 1 for m in alone)
            both &= all(gap(*self._right([args], m), due).size > 1 for m in plain)
            both &= complete or not self._is_plain(named, args, values[0])
            if less.size > 1 and bool(less.fact) == bool(found.fact) and both:
                made = Case(args, due, values[0], less.index), less
                if not nearly(due, values[0], _SEEN):
                    return made
                at_first = at_first or made
        if at_first and nearly(self.due[i], given, _SEEN):
            return at_first
        return case, found


def _raised(*values: Any) -> bool:
    return any(isinstance(x, Raised) for x in values)


@functools.cache
def _known(exercise: Exercise) -> dict[int, tuple[tuple, Any]]:
    """What is right on inputs of an exercise, by their identity; they are kept beside it."""
    return {}


def right_on(exercise: Exercise, inputs: list[tuple]) -> list[Any]:
    """What is right on inputs that are kept for all answers, worked out once for each."""
    known, answer = _known(exercise), exercise.variant()
    if new := [args for args in inputs if id(args) not in known]:
        with global_state_kept():
            for args in new:
                known[id(args)] = args, outcome(exercise.play, answer, args, 0, kept=True)
    return [known[id(args)][1] for args in inputs]


@functools.cache
def _twice(exercise: Exercise) -> Any:
    """What is right on the second call with the tensors of the first probe."""
    return outcome(exercise.play, exercise.variant(), exercise.probes[0], 0, times=2)


def nearly(expected: Any, given: Any, much: float = 1e-2) -> bool:
    """Whether all numbers are finite, and off by a small part of the largest that is due."""
    if isinstance(expected, Tensor) and isinstance(given, Tensor):
        floats = expected.is_floating_point() and given.is_floating_point()
        if expected.shape != given.shape or not floats or not given.numel():
            return gap(expected, given).size <= 1
        return bool((given - expected).abs().max() <= much * expected.abs().max())
    if isinstance(expected, dict) and isinstance(given, dict):
        expected, given = [*expected.values()], [*given.values()]
    if isinstance(expected, list) and isinstance(given, list) and len(expected) == len(given):
        return all(nearly(a, b, much) for a, b in zip(expected, given))
    number = type(expected) is type(given) is float
    return (
        abs(given - expected) <= much * abs(expected) if number else gap(expected, given).size <= 1
    )


def error_facts(run: Run) -> list[str]:
    """What is told of an answer that raised."""
    if is_of_another_form(run.value):
        return [run.value.message]
    return [f"it raised {show(run.value)}", run.where, *run.tips]
