"""An answer that does not come back: on the usual inputs, or only on a further one."""

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from course_utils.checker.runner import Run, Session
from course_utils.checker.shown import number
from course_utils.checker.verdict import Case, Verdict

_LOOP = "does a loop never stop?"
NEVER_ENDS = f"it did not come back there: {_LOOP}"
_SLOWER = 30  # times, which only a loop without an end makes on an input of the same size
_LEAST = 0.5  # seconds of computing


def out_of_time(session: Session, args: tuple, seconds: float) -> Verdict:
    """What is said of an answer that did not end on a usual input `args`."""
    if session.interrupted:
        facts = ["you interrupted it"]
    else:
        facts = [f"it did not end within {number(float(seconds))} seconds: {_LOOP}"]
    if session.stuck:
        facts.append("it still runs, in code that cannot be stopped; it ends with the kernel")
    return Verdict("time", facts=tuple(facts), case=Case(args, None, None), printed=session.printed)


def hangs(known: Iterable[tuple[tuple, Run]], args: tuple, cut: Run) -> bool:
    """Whether the run that was cut off would never have ended, as far as can be told.

    Slow is no fault. A loop over all pairs takes four times as long on twice the numbers: it hangs
    if it took thirty times longer than that.

    Args:
        known: inputs and the runs on them that came to an end.
        args, cut: the input on which it was cut off, and that run.
    """
    longest = max((run.seconds * (_size(args) / _size(a)) ** 2 for a, run in known), default=0.0)
    return cut.seconds > max(_LEAST, _SLOWER * longest)


def _size(value: Any) -> float:
    """How large an input is: the numbers that it holds, and what whole numbers count to."""
    if isinstance(value, Tensor):
        return 1.0 + value.numel()
    if isinstance(value, (list, tuple)):
        return 1.0 + sum(map(_size, value))
    if isinstance(value, str):
        return 1.0 + len(value)
    return 1.0 + (abs(value) if isinstance(value, int) else 0)
