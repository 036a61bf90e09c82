"""Mixture of experts (混合专家): many feed-forward networks, of which each token uses a few."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass
class Routing:
    """Where N tokens went, among E experts.

    probabilities: (N, E), the router's softmax. chosen: (N, k) int64, the experts of each token.
    weights: (N, k), their shares in its output, which sum to 1.
    """

    probabilities: Tensor
    chosen: Tensor
    weights: Tensor

    def load(self) -> Tensor:
        """The share of all N k visits that each expert got: (E,), sums to 1."""
        num_experts = self.probabilities.shape[1]
        return self.chosen.flatten().bincount(minlength=num_experts) / self.chosen.numel()

    def balance_loss(self) -> Tensor:
        """E * sum over experts of (share of visits) * (mean probability): 1 when both are even.

        The shares are counts and have no gradient; the probabilities carry it, and lose most
        where an expert is crowded. Source: Fedus et al. 2022, Switch Transformers, section 2.2.
        Shares of visits keep it at 1 for any k; where k visits a token count k times, as in
        `transformers`, it is k times as large.
        """
        num_experts = self.probabilities.shape[1]
        return num_experts * (self.load() * self.probabilities.mean(dim=0)).sum()


def route(logits: Tensor, top_k: int) -> Routing:
    """The `top_k` most probable experts of each token, (N, E) logits; their shares sum to 1.

    Source: Shazeer et al. 2017, section 2.1, without noise.

    Raises:
        ValueError: top_k is not in 1..E.
    """
    if not 1 <= top_k <= logits.shape[-1]:
        raise ValueError(f"top_k must lie in 1..{logits.shape[-1]}, the experts, got {top_k}")
    probabilities = logits.softmax(dim=-1)  # (N, E)
    weights, chosen = probabilities.topk(top_k, dim=-1)  # (N, k) each
    return Routing(probabilities, chosen, weights / weights.sum(dim=-1, keepdim=True))


class MixtureOfExperts(nn.Module):
    """A router sends each token to `top_k` experts and adds up their outputs, weighted.

    Parameters grow with E, work only with k. `routing` holds what the last call decided, for the
    loss that keeps the experts busy and for looking at.

    Args:
        d_model: size of a token.
        num_experts, top_k: E and k.
        build_expert: makes one expert, a module from (N, d_model) to (N, d_model).
    """

    def __init__(
        self, d_model: int, num_experts: int, top_k: int, build_expert: Callable[[], nn.Module]
    ):
        super().__init__()
        self.router = nn.Linear(d_model, num_experts, bias=False)
        self.experts = nn.ModuleList(build_expert() for _ in range(num_experts))
        self.top_k = top_k
        self.routing: Routing | None = None

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, d_model) -> (B, T, d_model)."""
        tokens = x.flatten(0, -2)  # (N, d_model)
        self.routing = routing = route(self.router(tokens), self.top_k)
        output = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            token, place = (routing.chosen == number).nonzero(as_tuple=True)  # (n,) each
            share = routing.weights[token, place, None]  # (n, 1)
            output = output.index_add(0, token, share * expert(tokens[token]))
        return output.view_as(x)


def balance_loss(model: nn.Module) -> Tensor:
    """The mean balance loss of all mixtures in a model, from its last call; 0 without any."""
    parts = [m.routing.balance_loss() for m in model.modules() if isinstance(m, MixtureOfExperts)]
    return torch.stack(parts).mean() if parts else torch.zeros(())
