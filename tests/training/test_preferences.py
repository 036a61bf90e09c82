"""Reward model, policy gradient with a KL term, and DPO, on a few answers."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.training.preferences import (
    best_policy,
    bradley_terry_loss,
    dpo_loss,
    draw_preferences,
    kl_divergence,
    policy_gradient,
)

REFERENCE = torch.tensor([0.5, 0.3, 0.15, 0.05], dtype=torch.float64).log()
REWARDS = torch.tensor([0.0, 1.0, 0.5, 2.0], dtype=torch.float64)


def objective(log_policy, beta):
    return log_policy.exp() @ REWARDS - beta * kl_divergence(log_policy, REFERENCE)


def test_the_loss_of_a_known_pair():
    loss = bradley_terry_loss(torch.tensor([math.log(3.0)]), torch.tensor([0.0]))
    assert loss.item() == pytest.approx(math.log(4 / 3))  # P = 3 / (3 + 1)
    far = bradley_terry_loss(torch.tensor([-200.0]), torch.tensor([200.0]))
    assert far.item() == pytest.approx(400.0)


def test_the_loss_is_cross_entropy_of_two_classes():
    a, b = torch.randn(2, 7, generator=torch.Generator().manual_seed(0))
    wanted = F.cross_entropy(torch.stack([a, b], 1), torch.zeros(7, dtype=torch.long))
    torch.testing.assert_close(bradley_terry_loss(a, b), wanted)


def test_rewards_are_recovered_from_preferences_up_to_a_constant():
    generator = torch.Generator().manual_seed(0)
    pairs = draw_preferences(REWARDS, torch.zeros(4).log_softmax(0), 20_000, generator)
    assert (pairs[:, 0] != pairs[:, 1]).all()
    learned = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([learned], lr=0.1)
    for _ in range(150):
        optimizer.zero_grad()
        bradley_terry_loss(learned[pairs[:, 0]], learned[pairs[:, 1]]).backward()
        optimizer.step()
    learned = learned.detach()
    torch.testing.assert_close(learned - learned[0], REWARDS - REWARDS[0], atol=0.15, rtol=0)


def test_pairs_come_from_the_policy():
    policy = torch.tensor([0.5, 0.5, 0.0, 0.0]).log()
    pairs = draw_preferences(REWARDS, policy, 4_000, torch.Generator().manual_seed(0))
    assert pairs.max() == 1
    share = (pairs[:, 0] == 1).double().mean().item()
    assert share == pytest.approx(torch.sigmoid(torch.tensor(1.0)).item(), abs=0.03)


@settings(deadline=None, derandomize=True, max_examples=50)
@given(
    st.lists(st.floats(-3, 3), min_size=4, max_size=4), st.floats(0.1, 5.0), st.integers(0, 1000)
)
def test_no_policy_beats_the_closed_form(logits, beta, seed):
    best = best_policy(REFERENCE, REWARDS, beta)
    other = torch.tensor(logits, dtype=torch.float64).log_softmax(0)
    assert objective(other, beta) <= objective(best, beta) + 1e-9
    gap = objective(best, beta) - objective(other, beta)  # and it falls short by beta * KL
    assert gap.item() == pytest.approx(beta * kl_divergence(other, best).item(), abs=1e-8)


def test_kl_is_zero_at_home_and_positive_elsewhere():
    assert kl_divergence(REFERENCE, REFERENCE) == 0
    expected = F.kl_div(REFERENCE, best_policy(REFERENCE, REWARDS, 1.0).exp(), reduction="sum")
    assert kl_divergence(best_policy(REFERENCE, REWARDS, 1.0), REFERENCE) == pytest.approx(
        expected.item()
    )


@pytest.mark.parametrize("beta", [0.5, 2.0])
def test_policy_gradient_reaches_the_closed_form(beta):
    generator = torch.Generator().manual_seed(0)
    found = policy_gradient(REFERENCE, REWARDS, beta, generator=generator)
    assert found.exp().sum().item() == pytest.approx(1)
    assert kl_divergence(found, best_policy(REFERENCE, REWARDS, beta)) < 0.01
    assert REFERENCE.grad is None


def test_without_the_kl_term_one_answer_takes_all():
    generator = torch.Generator().manual_seed(0)
    assert policy_gradient(REFERENCE, REWARDS, 0.0, generator=generator)[3].exp() > 0.95
    with pytest.raises(ValueError, match="above 0, got 0"):
        best_policy(REFERENCE, REWARDS, 0)


def test_dpo_has_the_same_optimum():
    """With as many wins of each side as Bradley-Terry expects, the gradient is 0 there."""
    beta = 0.7
    best = best_policy(REFERENCE, REWARDS, beta).requires_grad_()
    i, j = torch.triu_indices(4, 4, offset=1)
    chance = torch.sigmoid(REWARDS[i] - REWARDS[j])
    total = torch.zeros((), dtype=torch.float64)
    for a, b, p in zip(i, j, chance, strict=True):
        for pair, share in (((a, b), p), ((b, a), 1 - p)):
            total = total + share * dpo_loss(best, REFERENCE, torch.tensor([pair]), beta)
    (gradient,) = torch.autograd.grad(total, best)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), atol=1e-12, rtol=0)
