"""What can be known of an answer, and the names of its mistakes where they are certain."""

import functools
import math
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from course_utils.checker.exercise import Exercise, Mistake
from course_utils.checker.runner import outcome
from course_utils.checker.values import Typed, freeze, gap


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
    "time" (it did not end), "borrowed" (right, but by a function that the exercise rules out, or
    the library's own), "unfinished" (the placeholder still raises), "not attempted" and "not
    checked" (nothing to check was given). `measured` is what experiments tell of a wrong answer
    without a name; `held` names the parts of an outcome that are right on every input tried;
    `tried` counts the inputs on which a right one was right; `whole` tells whether the named
    mistakes explain all of what came.
    """

    status: str
    mistakes: tuple[Mistake, ...] = ()
    facts: tuple[str, ...] = ()
    case: Case | None = None
    printed: str = ""
    measured: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    tried: int = 0
    whole: bool = True


@functools.cache
def outcome_of(exercise: Exercise, mistakes: tuple[Mistake, ...], i: int) -> Any:
    """What the reference gives on probe `i` when it makes these mistakes; none: what is right."""
    answer = exercise.combine(*mistakes).answer
    return outcome(exercise.play, answer, exercise.probes[i], i)


def explains(exercise: Exercise, mistakes: tuple[Mistake, ...], given: list[Any]) -> bool:
    return all(gap(outcome_of(exercise, mistakes, i), g).size <= 1 for i, g in enumerate(given))


def name_mistakes(
    exercise: Exercise, given: list[Any], end: float, holds: Callable = lambda some: True
) -> tuple[tuple[Mistake, ...], bool]:
    """The mistakes that every fitting explanation contains, and whether they explain everything.

    One mistake is tried before two; nothing is named when no explanation fits, when those that
    fit have nothing in common, or when the time is up before one is found. `holds` tells whether
    an explanation that fits the probes fits further inputs.
    """
    for possible in ([(m,) for m in exercise.mistakes], *_pairs(exercise, given[0])):
        fitting = []
        for some in possible:
            if time.process_time() > end:
                break  # what was found is true, too
            fitting += [some] if explains(exercise, some, given) else []
        fitting = [some for some in fitting if holds(some)]
        if fitting:
            certain = set.intersection(*({m.name for m in some} for some in fitting))
            named = tuple(m for m in fitting[0] if m.name in certain)
            return named, len(named) == len(fitting[0])
    return (), False


def _pairs(exercise: Exercise, given: Any) -> tuple[list, list]:
    """The pairs of mistakes; last those of which one alone undoes a truth that came as due."""
    due, pairs = outcome_of(exercise, (), 0), exercise.pairs()
    if not isinstance(due, dict) or not isinstance(given, dict):
        return [*pairs], []
    kept = {key: x for key, x in due.items() if type(x) is bool and given.get(key) is x}
    undoing = set()
    for mistake in exercise.mistakes if kept else ():
        made = outcome_of(exercise, (mistake,), 0)
        if isinstance(made, dict) and any(made.get(key) is not x for key, x in kept.items()):
            undoing.add(mistake)
    likely = [pair for pair in pairs if not undoing & {*pair}]
    return likely, [pair for pair in pairs if undoing & {*pair}]


def turns_round(exercise: Exercise, named: tuple[Mistake, ...]) -> bool:
    """Whether one of two mistakes only turns all signs, or exchanges True and False everywhere.

    Then what comes of both may as well come of one slip that no name fits.
    """
    return len(named) == 2 and any(
        all(
            _opposite(outcome_of(exercise, (), i), outcome_of(exercise, (m,), i))
            for i in range(len(exercise.probes))
        )
        for m in named
    )


def _opposite(right: Any, given: Any) -> bool:
    if not isinstance(right, Tensor) or not isinstance(given, Tensor) or right.is_complex():
        return False
    turned = ~right if right.dtype == torch.bool else -right
    return gap(turned, given).size <= 1 < gap(right, given).size


def typed(expected: Any, given: Any, in_order: bool = True) -> Any:
    """A frozen answer that was typed, in the form of what is due where its meaning is plain.

    Letters may stand apart or in a list ("c, d, b, a"), a token without its brackets ("bos");
    where their order is not asked, they are put in order.
    """
    if not isinstance(expected, str):
        return given
    if isinstance(given, list) and given and all(isinstance(x, str) for x in given):
        given = "".join(given)
    if isinstance(given, str):
        words = re.findall(r"[^\W_]+", given)
        if not in_order and len(words) > 1 and max(map(len, words)) > 1:
            return given  # a sentence, no letters
        bare, own = (re.sub(r"[\W_]", "", text) for text in (given, expected))
        bare = bare if in_order else "".join(sorted(set(bare.lower())))
        if own and bare.lower() == own.lower():
            return expected
        return bare if own == expected else given
    return given


def asks_for_a_set(exercise: Exercise) -> bool:
    """Whether letters are asked for of which there may be more or fewer, in any order."""
    known = [exercise.solution(), *(m.switches["answer"] for m in exercise.mistakes)]
    letters = all(isinstance(x, str) and list(x) == sorted(set(x)) for x in known)
    return letters and len({len(x) for x in known}) > 1


# of bytes, or of times, there may be a part
_COUNTS = re.compile(r"[Hh]ow many (?!\w*B\b|times\b|bytes\b|bits\b)|whole number")
_MANY = 100  # from here on a whole number says where it comes from
_TURNS = (  # what a slip of arithmetic makes of a number
    ("a fraction is upside down", lambda x: 1 / x),
    ("a root is missing", lambda x: x**2),
    ("a root is too many", lambda x: x**0.5),
    ("a minus is in the wrong place", lambda x: -x),
    ("a factor of 2 is too many", lambda x: 2 * x),
    ("a factor of 2 is missing", lambda x: x / 2),
)
_TENS = (10.0, 100.0, 1000.0, 0.1, 0.01, 0.001)  # a point in another place
_SCALES = (  # what a number is where another scale is meant
    ("it is given in percent, and the share itself is due", lambda x: 100 * x if x < 1 else -x),
    ("the share itself is given, and percent are due", lambda x: x / 100 if 1 < x <= 100 else -x),
)


def wrong_letters(exercise: Exercise, given: Any) -> tuple[Mistake, ...]:
    """The mistakes behind several letters where one is asked; none if one of them is right."""
    answers = [exercise.solution(), *(m.switches["answer"] for m in exercise.mistakes)]
    single = all(isinstance(x, str) and len(x) == 1 for x in answers)
    if not single or not isinstance(given, str) or len(given) < 2:
        return ()
    known = {m.switches["answer"]: m for m in exercise.mistakes}
    named = {x: known.get(x) for x in given.lower()}
    return tuple(named.values()) if all(named.values()) else ()


def plain_slip(exercise: Exercise, given: Any) -> str:
    """A plain slip that makes the typed number of the right one, or a known one in another scale.

    Where several explanations fit, nothing is said; among small whole numbers too many fit by
    chance. What two known slips make together only an exercise knows (`worked_out`): neither the
    sum of their differences nor the product of their factors need be it.
    """
    due = exercise.solution()
    if any(not isinstance(x, (int, float)) or isinstance(x, bool) for x in (due, given)):
        return ""
    if isinstance(due, int) and (due < _MANY or not float(given).is_integer()):
        return ""
    if not 1e-12 < abs(due) < math.inf or not 1e-12 < abs(given) < math.inf:
        return ""

    def fits(number: float) -> bool:
        return gap(Typed(number), given).size <= (1 if float(number).is_integer() else 0.2)

    def is_about(number: float) -> bool:
        return gap(Typed(number), given).size <= 1

    about = " ".join([exercise.text, *exercise.hints, *(m.why for m in exercise.mistakes)])
    turns = [t for t in _TURNS if "root" not in t[0] or re.search("root|sqrt|√", about)]
    plain = [words for words, turn in turns if due > 0 and due != 1 and fits(turn(due))]
    plain += [words for words, turn in _SCALES if due > 0 and is_about(turn(due))]
    tens = [k for k in _TENS if not plain and due > 0 and is_about(due * k)]
    plain += [f"a power of ten is off, {max(k, 1 / k):.0f} times too {_side(k)}" for k in tens]
    if plain:
        return f"{plain[0]}: that alone makes this number" if len(plain) == 1 else ""
    scaled = [
        f"{m.name} ({m.why}); and {words}"
        for m in exercise.mistakes
        for words, turn in _SCALES
        if type(m.switches["answer"]) is type(due) is float
        if m.switches["answer"] > 0 < due and is_about(turn(m.switches["answer"]))
        if turn(due) > 0
    ]
    return f"two slips together lead to this: {scaled[0]}" if len(scaled) == 1 else ""


def _side(factor: float) -> str:
    return "large" if factor > 1 else "small"


def _of_several(exercise: Exercise, given: Any) -> str:
    """Whether what is due is among several numbers that were given where one is asked."""
    due = freeze(exercise.solution())
    number = isinstance(due, (int, float)) and not isinstance(due, bool)
    if not number or not isinstance(given, list) or not given:
        return ""
    right = [gap(Typed(due), x).size <= 1 for x in given]
    if all(right) and len(given) > 1:
        return "one number is asked; the one that stands here several times is right"
    return f"one number is asked; {'one of these' if any(right) else 'none of these'} is right"


def typed_fact(exercise: Exercise, given: Any, of_form: str = "") -> str:
    """Something true and of use about a typed answer that is wrong, perhaps in its form."""
    if said := _of_several(exercise, given) or of_form:
        return said
    due = freeze(exercise.solution())
    known = [due, *(freeze(m.switches["answer"]) for m in exercise.mistakes)]
    letters = sorted(x for x in known if isinstance(x, str) and len(x) == 1)
    if len(letters) == len(known) and isinstance(given, str) and len(given) == 1:
        return f"the answers are {', '.join(letters)}"
    if isinstance(given, (str, list)) and type(given) is type(due):
        sizes, size = {len(x) for x in known}, len(due)
        words = isinstance(due, str) and not all(x.isalpha() and len(x) < 8 for x in known)
        if len(sizes) > 1 or words:
            return ""
        what = ("letter" if isinstance(due, str) else "number") + "s" * (size > 1)
        if len(given) != size:
            return f"{size} {what} {'are' if size > 1 else 'is'} asked"
        once = isinstance(due, str) and all(Counter(x) == Counter(due) for x in known)
        if once and Counter(given.lower()) != Counter(due.lower()):
            return f"each of the letters {', '.join(sorted(due))} stands once"
        same = sum(gap(a, b).size <= 1 for a, b in zip(due, given))
        if size > 1:
            return f"of the {size} {what}, {same or 'none'} {'is' if same < 2 else 'are'} right"
    numbers = all(isinstance(x, (int, float)) and type(x) is not bool for x in (due, given))
    if not numbers or not (math.isfinite(given) and math.isfinite(due)):
        return ""
    fractions = any(type(x) is float and not x.is_integer() for x in known)  # may come out, too
    counts = _COUNTS.search(" ".join(exercise.text.split()))
    if type(due) is int and counts and not fractions and not float(given).is_integer():
        return "a whole number is asked"
    if due * given < 0:
        return f"it is {'below' if given < 0 else 'above'} 0; what is due is not"
    if due and abs(given / due - 1) < 0.01 and type(due) is float:
        return f"it is less than 1 % too {_side(given / due)}: are there digits missing?"
    far = "far " if due and not 0.01 < given / due < 100 else ""
    return f"it is {far}too {'large' if given > due else 'small'}"
