"""Play the mutants of the right answers and keep those that do what the learner's answer does."""

import ast
import functools
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from course_utils.checker.model import Exercise
from course_utils.checker.mutants import wording
from course_utils.checker.mutants.further_inputs import further_inputs
from course_utils.checker.mutants.operators import OPERATORS
from course_utils.checker.mutants.program import Place, Program
from course_utils.checker.mutants.sources import right_sources
from course_utils.checker.mutants.whole_statements import STATEMENTS
from course_utils.checker.runner import outcome, play_batch, run_answer
from course_utils.checker.values import Opaque, Raised, freeze, fresh, gap

SECONDS = 3.0  # of computing, for the mutants of one exercise
_EACH = 0.15  # seconds for one mutant


@dataclass(eq=False)
class Mutant:
    """A right answer with one slip, and what it gave on the inputs tried so far."""

    program: Program
    words: str
    place: Place
    new: Any
    about: Any = None  # the statement concerned, where a list of statements is changed
    outcomes: dict[int, Any] = field(default_factory=dict)

    @functools.cached_property
    def answer(self) -> Any:
        """The function or class with the slip in it."""
        with self.program.changed(self.place, self.new):
            return self.program.answer()

    @property
    def line(self) -> int:
        """Where in the program the slip is."""
        return getattr(self.about or self.place.node, "lineno", 0)

    @functools.cached_property
    def sentence(self) -> str:
        """What differs from the right answer, as the end of a sentence."""
        function = self.place.function
        if self.about is not None:
            line = wording.first_line(self.about)
            return f"{self.words}: `{line}`{wording.glosses(self.program, function, line)}"
        old, new = wording.pair(self.program, self.place, self.new)
        gloss = wording.glosses(self.program, function, old, new)
        return f"{self.words}: `{new}` in place of `{old}`{gloss}"


@functools.cache
def programs(exercise: Exercise) -> tuple[Program, ...]:
    """The right answers that have a source and do, watched, what the reference does."""
    sources = right_sources(exercise)
    found = [Program(source, name, names) for source, name, names in sources]
    probes = range(len(exercise.probes))
    return tuple(p for p in found if all(_is_right(exercise, p, i) for i in probes))


def _is_right(exercise: Exercise, program: Program, i: int) -> bool:
    def run(answer):
        return outcome(exercise.play, answer, exercise.probes[i], i)

    right = outcome(exercise.play, exercise.variant(), exercise.probes[i], i)
    try:
        return gap(right, program.watch(run)).size <= 1
    except Exception:  # a source that cannot stand alone, such as one that needs its surroundings
        return False


@functools.cache
def mutants(program: Program, rank: int) -> tuple[Mutant, ...]:
    """The mutants of a right answer by the slips of one rank."""
    return tuple(_all(program, rank))


def _all(program: Program, rank: int) -> Iterator[Mutant]:
    for place in program.places:
        if isinstance(place.node, list):
            for operator in STATEMENTS.get(rank, ()):
                for words, about, new in operator(place.node):
                    yield Mutant(program, words, place, new, about)
            continue
        seen = set()
        for operator in OPERATORS[rank]:
            for words, new in operator(place.node, place.function, program):
                text = ast.dump(new)
                if text not in seen:
                    yield Mutant(program, words, place, new)
                seen.add(text)


def _stages(exercise: Exercise) -> Iterator[tuple[Mutant, ...]]:
    """The likely slips in the solution, then those in other right answers, the far ones last."""
    first, *others = programs(exercise)  # the first is the solution
    for rank in sorted(OPERATORS)[:-1]:
        yield mutants(first, rank)
    for rank in sorted(OPERATORS)[:-1]:
        for program in others:
            yield mutants(program, rank)
    yield mutants(first, max(OPERATORS))


def likeness(exercise: Exercise, answer: Any, given: list[Any], first: int) -> str:
    """One sentence on the single slip that gives just what was given, or nothing.

    Args:
        exercise, answer: what is checked.
        given: what the answer gave on every probe.
        first: the first probe on which that is wrong.
    """
    if not (exercise.kind != "value" and all(map(_has_values, given)) and programs(exercise)):
        return ""
    inputs = [*exercise.probes, *further_inputs(exercise)]
    wanted = dict(enumerate(given))
    order = [first, *(i for i in wanted if i != first)]
    end = time.process_time() + SECONDS
    for candidates in _stages(exercise):
        alike = _alike(exercise, candidates, inputs, wanted, order, end)
        if alike:
            runs = run_answer(exercise.play, answer, inputs, SECONDS).runs
            wanted |= dict(enumerate(run.value for run in runs[: len(inputs)]))
            alike = _alike(exercise, alike, inputs, wanted, list(wanted), end + SECONDS)
        if alike:
            return _sentence(alike)
    return ""


def _sentence(alike: list[Mutant]) -> str:
    """The likeliest slip in words, and another that comes to the same, if it is elsewhere."""
    chosen = sorted(alike, key=lambda m: len(m.sentence))
    lines = {}
    for mutant in chosen:
        lines.setdefault(mutant.line, mutant.sentence)
    slips = ", or ".join([*lines.values()][:2])
    return f"On all inputs tried it gives what a right answer gives in which {slips}"


def _alike(
    exercise: Exercise,
    candidates: Sequence[Mutant],
    inputs: list[tuple],
    wanted: dict[int, Any],
    order: list[int],
    end: float,
) -> list[Mutant]:
    """The mutants that give what is wanted on all the inputs in the order."""

    def job(mutant: Mutant) -> Callable[[], bool]:
        def agrees() -> bool:
            outcomes = (_outcome(exercise, mutant, inputs, i) for i in order)
            return all(
                gap(x, wanted[i]).size <= 1 and _same_form(x, wanted[i])
                for i, x in zip(order, outcomes)
            )

        return agrees

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some mutants are odd code
        verdicts = play_batch([job(m) for m in candidates], _EACH, end)
    return [m for m, verdict in zip(candidates, verdicts) if verdict is True]


def _outcome(exercise: Exercise, mutant: Mutant, inputs: list[tuple], i: int) -> Any:
    if i not in mutant.outcomes:
        torch.default_generator.manual_seed(i)  # torch.manual_seed formats a stack for each device
        try:
            mutant.outcomes[i] = freeze(exercise.play(mutant.answer, *fresh(inputs[i])))
        except Exception as error:
            mutant.outcomes[i] = Raised(type(error).__name__, "")
    return mutant.outcomes[i]


def _same_form(a: Any, b: Any) -> bool:
    """Whether no list stands where the other outcome has a tensor of the same numbers."""
    if isinstance(a, list) and isinstance(b, list):
        return all(map(_same_form, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return all(_same_form(a[key], b[key]) for key in a)
    return isinstance(a, list) == isinstance(b, list)


def _has_values(given: Any) -> bool:
    if isinstance(given, (list, dict)):
        return all(map(_has_values, given.values() if isinstance(given, dict) else given))
    return given is not None and not isinstance(given, (Raised, Opaque))
