"""Learning-rate schedules."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.training.schedules import (
    cosine,
    inverse_sqrt,
    noam,
    scheduler,
    warmup_then_decay,
    warmup_then_decay_after,
)

few = settings(deadline=None, max_examples=50, derandomize=True)
steps = st.integers(1, 10**6)


def test_numbers_of_the_paper():
    assert noam(4000) == pytest.approx(6.99e-4, rel=1e-3)
    assert noam(4000) == max(noam(step) for step in range(1, 20_000))
    assert noam(1) == pytest.approx(1.75e-7, rel=2e-3)
    assert noam(16_000) == pytest.approx(noam(4000) / 2)


@few
@given(steps, st.integers(1, 10_000), st.sampled_from([64, 512, 1024]))
def test_noam_is_the_formula(step, warmup, d_model):
    formula = d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
    assert noam(step, d_model, warmup) == pytest.approx(formula, rel=1e-12)


@few
@given(steps, st.integers(1, 10_000), st.floats(0, 0.5))
def test_shares_stay_within_floor_and_peak(step, warmup, floor):
    assert 0 < inverse_sqrt(step, warmup) <= 1 == inverse_sqrt(warmup, warmup)
    share = cosine(step, warmup, 3 * warmup, floor)
    assert min(floor, 1 / warmup) <= share <= 1 == cosine(warmup, warmup, 3 * warmup, floor)
    if step > warmup:
        assert share <= cosine(step - 1, warmup, 3 * warmup, floor)


def test_cosine_is_torchs_after_the_warmup():
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=90, eta_min=0.05)
    for step in range(10, 101):
        ours = 0.5 * cosine(step, 10, 100, floor=0.1)
        assert ours == pytest.approx(theirs.get_last_lr()[0], abs=1e-12)
        optimizer.step()
        theirs.step()
    assert cosine(55, 10, 100) == pytest.approx(0.5)
    assert cosine(1000, 10, 100, floor=0.1) == pytest.approx(0.1)


def test_a_straight_way_down_by_hand():
    got = [warmup_then_decay(step, warmup=4, total=10) for step in range(1, 11)]
    assert got == pytest.approx([1 / 4, 2 / 4, 3 / 4, 1, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6])


@few
@given(total=st.integers(1, 200), share=st.floats(0.0, 1.0))
def test_a_straight_way_rises_to_one_then_falls_and_is_never_zero(total, share):
    warmup = max(1, round(share * total))
    rates = [warmup_then_decay(step, warmup, total) for step in range(1, total + 1)]
    assert max(rates) == 1
    assert min(rates) > 0
    peak = rates.index(1)
    assert rates[: peak + 1] == sorted(rates[: peak + 1])
    assert rates[peak:] == sorted(rates[peak:], reverse=True)
    assert rates == [warmup_then_decay_after(done, warmup, total) for done in range(total)]


def test_the_first_update_gets_the_first_share():
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.2)
    schedule, rates = scheduler(optimizer, lambda step: inverse_sqrt(step, 4)), []
    for _ in range(16):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert rates == pytest.approx([0.2 * min(s / 4, math.sqrt(4 / s)) for s in range(1, 17)])


@pytest.mark.parametrize(
    "call",
    [
        lambda: noam(0),
        lambda: noam(1, d_model=0),
        lambda: inverse_sqrt(3, 0),
        lambda: cosine(0, 5, 10),
        lambda: cosine(3, 10, 10),
        lambda: warmup_then_decay(0, 5, 10),
    ],
)
def test_nonsense_is_refused(call):
    with pytest.raises(ValueError, match="got"):
        call()
