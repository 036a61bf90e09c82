"""Whole numbers and numbers with a point that are given by themselves: others in their place."""

import inspect
import itertools
import time
from collections.abc import Iterator

from course_utils.checker.exercise import Exercise
from course_utils.checker.resized import ids_in
from course_utils.checker.runner import outcome
from course_utils.checker.stated_sizes import is_tried_for_few, tensors_in
from course_utils.checker.values import Raised, numbers_in

IDS = ("pad", "bos", "eos", "unk", "mask_id")
_SMALL = 64  # the largest whole number that has its neighbours tried, and about the largest size
_FACTORS = (10.0, 100.0, 0.1, 0.01)
_QUICK = 0.02  # seconds of computing for what is due where a size is large
_MOST_NUMBERS = 20_000  # in what is due there
Input = tuple[str, tuple]  # in words how it was made, and the arguments


def of_plain_numbers(exercise: Exercise, probe: tuple) -> Iterator[Input]:
    """Others in the place of one or two of them, as they may be by the probes."""
    counts = _counts(exercise, probe)
    made = [(i, probe[i] + step) for i in counts for step in (1, -1)]
    if len(counts) == 2:
        for i, j in (counts, counts[::-1]):
            made += [(i, probe[j] + step) for step in (-1, 0, 1)]
    for i, count in made:
        if count > 1:
            words = f"where `{exercise.argument(i)}` is {count}"
            yield words, (*probe[:i], count, *probe[i + 1 :])
    yield from _times_as_large(exercise, probe)


def of_large_sizes(exercise: Exercise, probe: tuple) -> Iterator[Input]:
    """Whole numbers far larger than in a probe, where what is due is small and comes quickly.

    Beside a tensor a number may be a place in it, so nothing but plain numbers may be given.
    """
    plain = all(type(x) in (int, float, bool, str) for x in probe)
    for i in _counts(exercise, probe) if plain else ():
        if not is_own(exercise, i) or is_tried_for_few(exercise, exercise.argument(i)):
            continue
        size = probe[i] * (_SMALL // probe[i])
        args = (*probe[:i], size, *probe[i + 1 :])
        begun = time.process_time()
        due = outcome(exercise.play, exercise.solution, args, 0)
        quick = time.process_time() - begun < _QUICK
        if quick and not isinstance(due, Raised) and numbers_in(due) <= _MOST_NUMBERS:
            yield f"where `{exercise.argument(i)}` is {size}", args


def _counts(exercise: Exercise, probe: tuple) -> list[int]:
    """The places of small whole numbers that are no ids."""
    ids = {x for arg in tensors_in(probe) for x in ids_in(arg)}
    return [
        i
        for i, x in enumerate(probe)
        if type(x) is int and 1 < x <= _SMALL and exercise.argument(i) not in IDS and x not in ids
    ]


def is_own(exercise: Exercise, i: int) -> bool:
    """Whether the answer itself is given this argument, and not only what `play` makes of it."""
    return exercise.argument(i) in inspect.signature(exercise.solution).parameters


def _times_as_large(exercise: Exercise, probe: tuple) -> Iterator[Input]:
    """Numbers with a point, one or two of them 10 or 100 times as large or as small.

    What holds on all probes and edges still holds: which number is the larger of two, and on which
    side of 0 and of 1 it lies.
    """
    floats = [i for i, x in enumerate(probe) if type(x) is float and is_own(exercise, i)]
    known = (*exercise.probes, *(args for _, args in exercise.edges))
    seen = set().union(*(_order(args, floats) for args in known))
    for some in (*itertools.combinations(floats, 1), *itertools.combinations(floats, 2)):
        for factor in _FACTORS:
            args = tuple(x * factor if i in some else x for i, x in enumerate(probe))
            if _order(args, floats) <= seen:
                names = " and ".join(f"`{exercise.argument(i)}`" for i in some)
                times = f"{factor:g} times as large"
                yield f"where {names} {'is' if len(some) == 1 else 'are'} {times}", args


def _order(args: tuple, places: list[int]) -> set[tuple]:
    """Of every two of these numbers, and of each with 0 and 1, whether one is the larger."""
    numbers = {**{i: args[i] for i in places}, "0": 0.0, "1": 1.0}
    pairs = itertools.combinations(numbers, 2)
    return {(a, b, numbers[a] < numbers[b], numbers[a] == numbers[b]) for a, b in pairs}
