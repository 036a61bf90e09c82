"""An answer that comes back on the usual inputs and not on a further one, and one that is slow."""

import math
import time

import pytest
import torch

from course_utils.checker import check
from course_utils.checker.endless import hangs
from course_utils.checker.runner import Run


def router_that_swaps_for_ever(logits):
    """A gain is never below 0 in it: among logits below 0 every swap seems to pay."""
    N, E = logits.shape
    chosen = torch.arange(N) % E
    gains = True
    while gains:
        gains = False
        for i in range(N):
            for j in range(i):
                a, b = chosen[i].item(), chosen[j].item()
                after = (logits[i, b] + logits[j, a]).relu()
                if after > logits[i, a] + logits[j, b] + 1e-6:
                    chosen[i], chosen[j], gains = b, a, True
    return chosen


def test_a_loop_that_ends_only_on_the_usual_inputs_is_not_accepted():
    result = check("fair_router", router_that_swaps_for_ever)
    assert result.status == "time"
    assert "not with logits that are all below 0" in str(result)
    assert "It did not come back there: does a loop never stop?" in str(result)
    assert "expected" not in str(result)


def test_a_slow_answer_is_right_and_what_was_not_tried_is_said():
    def answer(scores, mask):
        end = time.process_time() + 0.15
        while time.process_time() < end:
            pass
        return torch.softmax(scores.masked_fill(~mask, -math.inf), -1).nan_to_num(0.0)

    result = check("softmax_with_mask", answer)
    assert result.status == "right"
    assert "It is slow: " in str(result)
    assert "further inputs were not tried" in str(result)
    assert result.verdict.tried < check("softmax_with_mask", solved).verdict.tried


def solved(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, -math.inf), -1).nan_to_num(0.0)


@pytest.mark.parametrize(
    ("args", "seconds", "hung"),
    [
        ((torch.zeros(4, 4),), 0.4, False),  # too short to tell
        ((torch.zeros(4, 4),), 0.6, True),
        ((torch.zeros(40, 4),), 0.6, False),  # ten times the numbers, a hundred times the time
        ((4, [1] * 12), 1.0, True),
        ((400, [1] * 12), 1.0, False),
    ],
)
def test_slow_on_a_larger_input_is_not_endless(args, seconds, hung):
    known = [((torch.zeros(4, 4),), Run(seconds=0.01)), ((4, [1] * 12), Run(seconds=0.01))]
    assert hangs(known, args, Run(timed_out=True, seconds=seconds)) is hung
