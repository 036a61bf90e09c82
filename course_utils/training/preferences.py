"""Learning from preferences, on a toy: one question, K answers to choose from.

A reward is learned from pairs of which somebody prefers one (Bradley-Terry); then a policy, a
distribution over the answers, is moved towards high reward while a KL term holds it near the
reference. All of it is what RLHF does with whole texts instead of K answers.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def bradley_terry_loss(better: Tensor, worse: Tensor) -> Tensor:
    """Mean of -log P(better wins), where P(a wins against b) = sigmoid(reward_a - reward_b).

    Source: Bradley and Terry 1952; Ouyang et al. 2022, equation 1.

    Args:
        better, worse: (N,) rewards of the preferred and of the other answer of each pair.
    """
    return -F.logsigmoid(better - worse).mean()


def draw_preferences(
    utility: Tensor, log_policy: Tensor, pairs: int, generator: torch.Generator | None = None
) -> Tensor:
    """Ask somebody who values the answers by `utility` about pairs that a policy has given.

    Args:
        utility, log_policy: (K,); the answers of a pair are drawn from the policy, and differ.
        pairs: how many.

    Returns:
        (pairs, 2) answers, the preferred one first.
    """
    odds = log_policy.exp().expand(pairs, -1)
    first, second = torch.multinomial(odds, 2, generator=generator).unbind(1)  # no answer twice
    chance = torch.sigmoid(utility[first] - utility[second])
    wins = torch.rand(pairs, generator=generator) < chance
    return torch.stack([torch.where(wins, first, second), torch.where(wins, second, first)], 1)


def kl_divergence(log_policy: Tensor, log_reference: Tensor) -> Tensor:
    """KL(policy || reference) = sum of policy * (log policy - log reference), in nats."""
    return (log_policy.exp() * (log_policy - log_reference)).sum(-1)


def best_policy(log_reference: Tensor, rewards: Tensor, beta: float) -> Tensor:
    """The log-probabilities (K,) that maximise E[reward] - beta * KL(policy || reference).

    They are those of reference * exp(reward / beta), normalised.

    Raises:
        ValueError: beta is not above 0; without the KL term the best answer gets everything.
    """
    if beta <= 0:
        raise ValueError(f"beta must be above 0, got {beta}")
    return (log_reference + rewards / beta).log_softmax(-1)


def policy_gradient(
    log_reference: Tensor,
    rewards: Tensor,
    beta: float,
    *,
    steps: int = 400,
    samples: int = 256,
    lr: float = 0.05,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Train a policy by REINFORCE: draw answers, and make those above the average likelier.

    The score of an answer is its reward minus beta * log(policy / reference); the mean of the
    latter is the KL divergence. Source: Williams 1992; Ouyang et al. 2022, equation 2.

    Args:
        log_reference: (K,) where the policy starts, and what the KL term holds it near.
        rewards: (K,).

    Returns:
        (K,) log-probabilities.
    """
    logits = log_reference.clone().requires_grad_()
    optimizer = torch.optim.Adam([logits], lr=lr)
    for _ in range(steps):
        log_policy = logits.log_softmax(-1)  # (K,)
        answers = torch.multinomial(
            log_policy.detach().exp(), samples, replacement=True, generator=generator
        )
        score = rewards - beta * (log_policy - log_reference).detach()  # (K,)
        advantage = score[answers] - score[answers].mean()
        optimizer.zero_grad()
        (-advantage * log_policy[answers]).mean().backward()
        optimizer.step()
    return logits.detach().log_softmax(-1)


def dpo_loss(log_policy: Tensor, log_reference: Tensor, pairs: Tensor, beta: float) -> Tensor:
    """Bradley-Terry with the reward that the policy itself stands for.

    A policy is best for the reward beta * log(policy / reference), so that preferences train it
    without a reward model and without sampling. Source: Rafailov et al. 2023, equation 7.

    Args:
        log_policy, log_reference: (K,).
        pairs: (N, 2) answers, the preferred one first.
    """
    implied = beta * (log_policy - log_reference)  # (K,)
    return bradley_terry_loss(implied[pairs[:, 0]], implied[pairs[:, 1]])
