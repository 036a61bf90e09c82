"""The recall cards of chapter 22."""

import torch

from course_utils.recall.card import card
from course_utils.recall.chosen import Choice
from course_utils.training.preferences import best_policy, kl_divergence


def _optimum():
    """The letter of the policy with the largest E[reward] - beta * KL."""
    reward, beta = torch.tensor([0.0, 1.0, 3.0]), 0.7
    log_reference = torch.tensor([0.7, 0.2, 0.1]).log()
    policies = {"a": best_policy(log_reference, reward, beta),
                "b": (reward / beta).log_softmax(-1),
                "c": (log_reference + beta * reward).log_softmax(-1)}  # fmt: skip
    return max(policies, key=lambda letter: float(
        policies[letter].exp() @ reward - beta * kl_divergence(policies[letter], log_reference)
    ))  # fmt: skip


CARDS = [
    card(
        "best-policy", "idea", "reference policy", "002-48",
        "Which policy maximises E[reward] - beta * KL(policy || reference)?",
        Choice(["proportional to reference * exp(reward / beta)",
                "proportional to exp(reward / beta)",
                "proportional to reference * exp(beta * reward)"], "a",
               {"b": "The KL term holds it near the reference.",
                "c": "A large beta holds it back, so the reward is divided."}, _optimum),
        "As beta goes to 0, all weight goes to the largest learned reward.",
    ),
    card(
        "no-reward-model", "idea", "preference", "002-48",
        "Which of these trains a policy on judged pairs without a reward model and without "
        "drawing answers?",
        Choice(["PPO", "DPO", "instruction tuning"], "b",
               {"a": "It draws answers and scores them by a reward model.",
                "c": "It learns from answers that somebody wrote, not from comparisons."}),
        "Its reward is implied: beta * (log policy - log reference).",
    ),
]  # fmt: skip
