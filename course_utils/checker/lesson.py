"""What a lesson says and asks while it runs: `claim`, `guess` and `compare`.

claim(weights[0] > weights[1], "the near key gets more than the far one",
      otherwise=f"here the far key gets {weights[1]:.2f}")

With the numbers as stored a claim prints one line. With a learner's own numbers it may no longer
hold: then it says so in a sentence, says what is there instead, and the notebook runs on. Where
COURSE_HEADLESS is set (tests, stored outputs) the same claim raises.

guess("share of <pad>", ...)       # the learner puts a number in place of the dots
compare("share of <pad>", weights[3], "Nothing told the softmax which key is padding.")
"""

import os
from collections.abc import Callable
from numbers import Real
from typing import Any

import torch

from course_utils.checker import log

HEADLESS = "COURSE_HEADLESS"
NO_LONGER = "With these numbers it no longer holds that"
_guesses: dict[str, Any] = {}  # of this kernel: what was guessed last


def claim(holds: Any, text: str, otherwise: str | Callable[[], str]) -> None:
    """Say what holds, or, with other numbers, what no longer holds and what is there instead.

    Args:
        holds: whether it holds: a boolean or a tensor of booleans, all of which must be True. A
            function of no arguments is called; give one where computing it may fail with other
            numbers, as an index or a comparison of shapes may.
        text: what holds, a clause that fits behind "it holds that": "each row sums to 1".
        otherwise: what is there instead, a clause: "here the rows sum to 0.5 and 2". A function
            is called only when it is needed.

    Raises:
        AssertionError: it does not hold, and COURSE_HEADLESS is set.
    """
    reason = None
    try:
        holds = holds() if callable(holds) else holds
        holds = bool(torch.as_tensor(holds).all())
    except Exception as error:
        holds, reason = False, f"it cannot even be checked here ({_in_short(error)})"
    if holds:
        print(f"✓ {text}")
        return
    reason = reason or _said(otherwise)
    if os.environ.get(HEADLESS):
        raise AssertionError(f"the lesson claims that {text}, but {reason}")
    print(f"○ {NO_LONGER} {text}: {reason.rstrip('.')}.")


def guess(name: str, value: Any) -> None:
    """Keep what the learner expects, in this kernel and in the log, before a cell shows it.

    Args:
        name: what is guessed, in a few words; no two guesses of the course have the same.
        value: a number, a word, a truth value, or a list of them; `...` is no guess yet.
    """
    if value is ...:
        _guesses.pop(name, None)
        print(f"No guess yet ({name}): write yours in place of the dots, or simply go on.")
        return
    _guesses[name] = value = _plain(value)
    note = log.write("guess", guess=name, value=_show(value))
    print("\n".join(filter(None, [f"Noted ({name}): {_show(value)}.", note])))


def compare(name: str, came: Any, why: str = "", *, within: float = 0.05) -> None:
    """Put what came out beside the guess of that name, if there is one.

    Args:
        name: as it was given to `guess`.
        came: a number, a word, a truth value, a list of them, or a tensor.
        why: one sentence that explains what came out; it must hold with other numbers, too.
        within: a guess of a number is right when it is off by at most this share of it.
    """
    came = _plain(came)
    result = f"{name}: {_show(came)}."
    if name not in _guesses:
        print(" ".join(filter(None, [result, why])))
        return
    guessed = _guesses[name]
    close = _close(guessed, came, within)
    verdict = "that is it" if close else _off(guessed, came)
    said = f"{name}: {_show(came)}. You guessed {_show(guessed)}: {verdict}."
    note = log.write("outcome", guess=name, value=_show(guessed), came=_show(came), close=close)
    print("\n".join(filter(None, [" ".join(filter(None, [said, why])), note])))


def _said(otherwise: str | Callable[[], str]) -> str:
    try:
        return otherwise() if callable(otherwise) else otherwise
    except Exception as error:
        return f"what is there instead cannot be told ({_in_short(error)})"


def _in_short(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}"


def _plain(value: Any) -> Any:
    """Tensors and arrays as numbers or lists."""
    return value.tolist() if hasattr(value, "tolist") else value


def _show(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_show, value)) + "]"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)[:200]


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _close(guessed: Any, came: Any, within: float) -> bool:
    if _is_number(guessed) and _is_number(came):
        return guessed == came or abs(guessed - came) <= max(within * abs(came), 0.005)
    if isinstance(guessed, (list, tuple)) and isinstance(came, (list, tuple)):
        same_length = len(guessed) == len(came)
        return same_length and all(_close(g, c, within) for g, c in zip(guessed, came))
    return type(guessed) is type(came) and _bare(guessed) == _bare(came)


def _bare(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


def _off(guessed: Any, came: Any) -> str:
    known = _is_number(guessed) and _is_number(came)
    if not known or guessed != guessed or came != came:  # NaN differs from itself
        return "it came out otherwise"
    return f"too {'low' if guessed < came else 'high'} by {_show(float(abs(guessed - came)))}"
