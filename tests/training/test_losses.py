"""Label smoothing by hand against torch."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.training.losses import lowest_loss, smoothed_cross_entropy, smoothed_targets

few = settings(deadline=None, max_examples=30, derandomize=True)
close = torch.testing.assert_close


def test_a_smoothed_target_by_hand():
    close(
        smoothed_targets(torch.tensor([1]), 5, 0.1), torch.tensor([[0.02, 0.92, 0.02, 0.02, 0.02]])
    )
    close(smoothed_targets(torch.tensor([[1]]), 3, 0.0), torch.tensor([[[0.0, 1.0, 0.0]]]))


@few
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(2, 9), st.floats(0, 1))
def test_loss_and_gradient_are_torchs(seed, rows, size, smoothing):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(rows, 3, size, generator=generator, dtype=torch.float64)
    targets = torch.randint(size, (rows, 3), generator=generator)
    targets[0, 0] = 1
    for pad in (None, 0):
        ours, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
        one = smoothed_cross_entropy(ours, targets, smoothing, pad)
        two = F.cross_entropy(
            theirs.flatten(0, 1), targets.flatten(), label_smoothing=smoothing,
            ignore_index=-100 if pad is None else pad,
        )  # fmt: skip
        close(one, two)
        one.backward(), two.backward()
        close(ours.grad, theirs.grad)


@few
@given(st.integers(2, 100), st.floats(0, 1))
def test_the_target_itself_has_the_lowest_loss(size, smoothing):
    target = smoothed_targets(torch.tensor([0]), size, smoothing).double()
    loss = smoothed_cross_entropy(target.clamp_min(1e-30).log(), torch.tensor([0]), smoothing)
    floor = lowest_loss(size, smoothing)
    assert loss.item() == pytest.approx(floor, abs=1e-5)
    other = smoothed_cross_entropy(torch.randn(1, size).double(), torch.tensor([0]), smoothing)
    assert other.item() >= floor - 1e-5


def test_ends_of_the_range():
    assert lowest_loss(7, 0.0) == 0.0
    assert lowest_loss(7, 1.0) == pytest.approx(math.log(7))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: smoothed_targets(torch.tensor([0]), 5, 1.5), "0..1, got 1.5"),
        (lambda: smoothed_targets(torch.tensor([5]), 5), "0..4, got 5..5"),
        (lambda: smoothed_cross_entropy(torch.zeros(1, 5), torch.tensor([0]), pad=0), "padding"),
        (lambda: lowest_loss(5, -0.1), "0..1"),
    ],
)
def test_nonsense_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
