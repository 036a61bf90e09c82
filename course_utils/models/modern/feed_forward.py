"""Feed-forward networks with a gate: SwiGLU and its relatives, and the square of ReLU."""

import torch.nn.functional as F
from torch import Tensor, nn


def squared_relu(x: Tensor) -> Tensor:
    """max(0, x)^2, an activation for `PositionWiseFFN` (So et al. 2021, Primer, section 4.1)."""
    return F.relu(x).square()


def gated_size(d_ff: int) -> int:
    """The hidden size that gives three matrices the weights of two of size d_ff: 2/3 of it.

    >>> gated_size(512)
    341
    """
    return max(1, round(2 * d_ff / 3))


class GatedFFN(nn.Module):
    """W_down(activation(W_gate x) * W_up x): one half decides how much of the other passes.

    With SiLU, z * sigmoid(z), it is SwiGLU; with GELU, GEGLU; with the sigmoid, the GLU of 2017;
    with the identity, a product of two linear maps. Source: Shazeer 2020, section 2. Biases are
    left out, as there.

    Args:
        d_model: size of input and output.
        d_ff: size in between; `gated_size` makes it fair beside `PositionWiseFFN`.
        dropout: share of the hidden units that is dropped in training.
        activation: of the gate.
    """

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0, activation=F.silu):
        super().__init__()
        self.W_gate = nn.Linear(d_model, d_ff, bias=False)
        self.W_up = nn.Linear(d_model, d_ff, bias=False)
        self.W_down = nn.Linear(d_ff, d_model, bias=False)
        self.activation = activation
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, d_model) -> (B, T, d_model)."""
        return self.W_down(self.dropout(self.activation(self.W_gate(x)) * self.W_up(x)))
