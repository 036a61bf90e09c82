"""Names for the parts of an outcome, where none fits the whole of it.

An answer that gives back several things may go wrong in each of them in its own way, one with a
switch on either side of it, and an open task is judged by several properties, of which some may
hold.
"""

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from course_utils.checker.exercise import Exercise, Mistake
from course_utils.checker.generic_inputs import part_of, parts
from course_utils.checker.properties import is_of_properties
from course_utils.checker.runner import outcome
from course_utils.checker.values import gap
from course_utils.checker.verdict import explains, outcome_of
from course_utils.checker.wording import capital, in_words, mistakes_are

_MOST_PARTS, _MOST_WAYS, _MOST_THREES = 4, 24, 5000
Some = tuple[Mistake, ...]


def name_each_part(
    exercise: Exercise, given: list[Any], end: float, holds: Callable[..., bool]
) -> tuple[Some, tuple[str, ...]]:
    """Mistakes that together explain an outcome, part by part; else sentences on single parts.

    Args:
        given: what came on the probes.
        end: when the search ends, on the clock of the process.
        holds: `holds(mistakes, part)` tells whether they fit further inputs; None is the whole.
    """
    ways: dict[Any, list[Some]] = {}
    wrong = [*_wrong_parts(exercise, given)]
    for key in wrong:
        for possible in ([(m,) for m in exercise.mistakes], exercise.pairs()):
            fitting = [some for some in possible if _fits(exercise, some, given, key, end)]
            ways[key] = [some for some in fitting if holds(some, key)]
            if ways[key]:
                break
    certain = {key: _certain(found) for key, found in ways.items()}
    if len(ways) > 1 and all(certain.values()):
        for some in itertools.islice(itertools.product(*ways.values()), _MOST_WAYS):
            together = tuple(dict.fromkeys(m for mistakes in some for m in mistakes))
            if not _agree(together) or time.process_time() > end:
                continue
            if explains(exercise, together, given) and holds(together, None):
                return together, ()
    for key, found in ways.items():
        certain[key] = _certain([x for x in found if _alone(exercise, x, given, key, wrong)])
    said = tuple(
        f"{_place(key)} what comes out when {mistakes_are(len(names))} made: "
        + " ".join(f"{capital(m.name)}. {m.why}" for m in names)
        for key, names in certain.items()
        if names
    )
    return (), said


def name_each_side(
    exercise: Exercise, given: list[Any], end: float, holds: Callable[..., bool]
) -> tuple[str, ...]:
    """Sentences on the two sides of a switch among the arguments: the mistakes made on each.

    Where several mistakes explain a side, one that shows on this side alone goes before others.
    """
    for i, column in enumerate(zip(*exercise.probes)):
        if {*map(type, column)} != {bool} or len({*column}) < 2:
            continue
        name, said = f"where `{exercise.argument(i)}` is", []
        for side in (True, False):
            on = [k for k, x in enumerate(column) if x is side]
            names = _of_side(exercise, given, on, end, holds, (i, side))
            what = f"{mistakes_are(len(names))} made:"
            whys = " ".join(f"{capital(m.name)}. {m.why}" for m in names)
            said += [f"{name} {side}: {what} {whys}"] if names else []
        if said:
            return tuple(said)
    return ()


def _of_side(
    exercise: Exercise, given: list[Any], on: list[int], end: float, holds: Callable, where: tuple
) -> Some:
    """The mistakes behind what came on the probes `on`; none where these are right."""

    def explains_on(probes: Iterable[int], some: Some, outcomes: list[Any]) -> bool:
        return all(gap(outcome_of(exercise, some, k), outcomes[k]).size <= 1 for k in probes)

    due = [outcome_of(exercise, (), k) for k in range(len(given))]
    if explains_on(on, (), given):
        return ()
    off = [k for k in range(len(given)) if k not in on]
    for possible in ([(m,) for m in exercise.mistakes], exercise.pairs()):
        in_time = itertools.takewhile(lambda _: time.process_time() < end, possible)
        fitting = [some for some in in_time if explains_on(on, some, given)]
        fitting = [some for some in fitting if holds(some, None, where)]
        if fitting:
            return _certain([some for some in fitting if explains_on(off, some, due)] or fitting)
    return ()


def name_three(
    exercise: Exercise, given: list[Any], end: float, holds: Callable[..., bool]
) -> Some:
    """Three mistakes that together explain an outcome; none where several threes do."""
    found: list[Some] = []
    for some in itertools.islice(itertools.combinations(exercise.mistakes, 3), _MOST_THREES):
        if time.process_time() > end or len(found) > _MOST_WAYS:
            return ()
        names, keys = {m.name for m in some}, [key for m in some for key in m.switches]
        if len(names) == 3 and len({*keys}) == len(keys):
            answer = exercise.combine(*some).answer
            made = (outcome(exercise.play, answer, p, i) for i, p in enumerate(exercise.probes))
            fits = all(gap(x, came).size <= 1 for x, came in zip(made, given))
            found += [some] if fits and holds(some, None) else []
    certain = _certain(found)
    return certain if len(certain) == 3 else ()


def what_does_not_hold(exercise: Exercise, given: list[Any]) -> tuple[str, ...]:
    """Of an open task, each property that is lacking in some outcome, and what is due there.

    None where an outcome is anything else than a number of truths.
    """
    lacking = _lacking(given)
    alone: dict[str, dict[str, str]] = {}  # of each property: the mistakes that break only that
    for mistake in exercise.mistakes if lacking else ():
        made = [outcome_of(exercise, (mistake,), i) for i in range(len(exercise.probes))]
        if len(broken := _lacking(made)) == 1:
            alone.setdefault(broken[0], {})[mistake.name] = mistake.why
    whys = {key: [*names.values()][0] for key, names in alone.items() if len(names) == 1}
    return tuple(f"this does not hold: {key}. {whys.get(key, '')}".rstrip() for key in lacking)


def _lacking(outcomes: list[Any]) -> list[str]:
    """The properties that do not hold; of what is no number nothing else can be asked."""
    if not all(map(is_of_properties, outcomes)):
        return []
    lost = [key for key in outcomes[0] if not all(x.get(key, True) for x in outcomes)]
    return [key for key in lost if "NaN" in key] or lost


def _wrong_parts(exercise: Exercise, given: list[Any]) -> Iterator[Any]:
    """The keys of the parts that are wrong on some probe; none where the parts do not match."""
    rows = [[*parts(outcome_of(exercise, (), i), came)] for i, came in enumerate(given)]
    keys = [key for key, *_ in rows[0]]
    whole = keys == [None] or not 1 < len(keys) <= _MOST_PARTS
    if whole or any([key for key, *_ in row] != keys for row in rows):
        return
    if all(type(right) is bool for _, right, _ in rows[0]):
        return
    for column in zip(*rows):
        if any(gap(right, came).size > 1 for _, right, came in column):
            yield column[0][0]


def _fits(exercise: Exercise, some: Some, given: list[Any], key: Any, end: float) -> bool:
    return time.process_time() < end and all(
        gap(part_of(outcome_of(exercise, some, i), key), part_of(came, key)).size <= 1
        for i, came in enumerate(given)
    )


def _changed(exercise: Exercise, some: Some) -> list[Any]:
    """The keys of the parts that mistakes change."""
    every = range(len(exercise.probes))
    both = [(outcome_of(exercise, (), i), outcome_of(exercise, some, i)) for i in every]
    return [
        key
        for key, *_ in parts(both[0][0], both[0][0])
        if any(gap(part_of(due, key), part_of(made, key)).size > 1 for due, made in both)
    ]


def _alone(exercise: Exercise, some: Some, given: list[Any], key: Any, wrong: list[Any]) -> bool:
    """Whether mistakes may be told of one part, whatever came in the others.

    What they change besides came so as well; or it is wrong in another way, and this part is one
    that no mistake changes without others, as weights from which an output is made.
    """
    others = [
        other
        for other in _changed(exercise, some)
        if other != key and not _fits(exercise, some, given, other, math.inf)
    ]
    single = others and any(_changed(exercise, (m,)) == [key] for m in exercise.mistakes)
    return not single and all(other in wrong for other in others)


def _certain(fitting: list[Some]) -> Some:
    """The mistakes that all explanations of a part contain."""
    if not fitting:
        return ()
    names = set.intersection(*({m.name for m in some} for some in fitting))
    return tuple(m for m in fitting[0] if m.name in names)


def _agree(mistakes: Some) -> bool:
    """Whether no switch is turned two ways."""
    turned: dict[str, Any] = {}
    return all(
        turned.setdefault(key, value) == value
        for m in mistakes
        for key, value in m.switches.items()
    )


def _place(key: Any) -> str:
    place = f"`{key}`"
    if str(key).startswith("entry "):
        place = in_words(int(key.removeprefix("entry ")))
    return f"{place} is"
