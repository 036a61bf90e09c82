"""What is told as the reason holds of any input, not only of those that were tried."""

import math

import pytest
import torch

from course_utils.checker import catalogue, check
from course_utils.checker.exercise import REGISTRY

catalogue()


def _asks_for_the_object(ids, pair, new):
    out, i = [], 0
    while i < len(ids):
        if i + 1 < len(ids) and ids[i] is pair[0] and ids[i + 1] is pair[1]:
            out.append(new)
            i += 2
        else:
            out.append(ids[i])
            i += 1
    return out


def _takes_out(ids, pair, new):
    out = list(ids)
    for i in range(len(out) - 1):
        if out[i] == pair[0] and out[i + 1] == pair[1]:
            out[i] = new
            del out[i + 1]
    return out


def _reads_behind(ids, pair, new):
    i, out = 0, []
    while i < len(ids):
        if ids[i] == pair[0] and ids[i + 1] == pair[1]:
            out.append(new)
            i += 2
        else:
            out.append(ids[i])
            i += 1
    return out


def _counts_all(x, valid_lens):
    mask = torch.arange(x.shape[1]) < valid_lens[:, None]
    return x.masked_fill(~mask[..., None], 0).sum(1) / mask.sum()


def _a_wave(x, valid_lens):
    at = torch.arange(x.shape[1])
    weights = ((at * math.pi / 4).cos() + 2) * (at < valid_lens[:, None])
    return ((weights / weights.sum(1, keepdim=True))[..., None] * x).sum(1)


def _fixed(step, steps):
    if step <= 100:
        return step / 100
    return 0.5 * (1 + math.cos(math.pi * (step - 100) / (steps - 100)))


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("merge_pair", _asks_for_the_object, "`==` is due, for `is` asks whether"),
        ("merge_pair", _takes_out, "`out` gets shorter in the loop"),
        ("merge_pair", _reads_behind, "`ids[i + 1]` asks for place 3, and `ids` ends at place 2"),
        ("mean_of_real", _counts_all, "at `mask.sum()`, two arguments are missing"),
        ("ordered_pool", _a_wave, "Two places have the same weight"),
        ("my_schedule", _fixed, "The warm-up has a fixed number of updates"),
    ],
)
def test_a_likely_slip_is_named(name, answer, said):
    assert said in str(check(name, answer))


def test_no_step_is_missing_that_only_keeps_the_numbers_tried_from_being_0():
    def mean_of_real(x, valid_lens):
        mask = torch.arange(x.shape[1]) < valid_lens[:, None]
        x = (x + 1e-6).masked_fill(~mask[..., None], 0)
        return x.sum(1) / (x != 0).sum(1)

    assert "with this one change" not in str(check("mean_of_real", mean_of_real))


def test_padding_that_counts_does_not_keep_v():
    def pool(x, valid_lens):
        weights = torch.arange(1.0, x.shape[1] + 1)
        return (x * (weights / weights.sum())[:, None]).sum(1)

    text = str(check("ordered_pool", pool))
    assert "Padding counts" in text
    assert "gives v" not in text.split("right already")[1]


def test_a_factor_that_never_falls_is_not_said_to_fall():
    text = str(check("my_schedule", lambda step, steps: min(step / (steps // 10), 1.0)))
    assert "falls" not in text
    assert "it rises before and never rises afterwards" in text


def test_several_heads_are_more_than_two():
    """With one or two, the number of heads can be taken for the size of a pair, or for a shift."""
    heads = {
        name: [args[i] for args in exercise.probes]
        for name, exercise in REGISTRY.items()
        for i in range(len(exercise.probes[0]))
        if exercise.kind == "function" and exercise.argument(i) in ("num_heads", "h", "heads")
    }
    few = [name for name, of in heads.items() if type(of[0]) is int and max(of) < 3]
    assert heads
    assert not few
