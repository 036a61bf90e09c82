"""What experiments tell of an answer that equals no known wrong one: what it depends on, and how.

A finding is a function `(trial) -> sentence or None`. Each plays the answer and the right one on
the same changed inputs, so every sentence is a measurement. FINDINGS lists the most telling first.
"""

from collections.abc import Callable

from course_utils.checker.findings.amounts import (
    one_factor,
    one_shift,
    sums_of_rows,
    wrong_signs,
)
from course_utils.checker.findings.influence import batch_mixed_up, no_influence, rows_mixed_up
from course_utils.checker.findings.places import (
    only_one_row,
    other_places,
    right_parts,
    some_inputs,
)
from course_utils.checker.findings.trial import Trial

_MOST = 2  # sentences that are shown


FINDINGS: tuple[Callable[[Trial], str | None], ...] = (
    no_influence,
    batch_mixed_up,
    rows_mixed_up,
    one_factor,
    one_shift,
    wrong_signs,
    sums_of_rows,
    other_places,
    right_parts,
    some_inputs,
    only_one_row,
)


def findings(trial: Trial) -> list[str]:
    """The first sentences that hold, at most two."""
    found = []
    for finding in FINDINGS:
        sentence = finding(trial) if len(found) < _MOST else None
        found += [sentence] if sentence else []
    return found
