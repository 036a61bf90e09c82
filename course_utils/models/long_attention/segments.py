"""A long text read segment by segment, with the hidden states of the last one (Transformer-XL)."""

import math

import torch
from torch import Tensor, nn

from course_utils.models.attention import masked_softmax
from course_utils.models.masks import causal_mask, check_mask, combine_masks
from course_utils.models.positional import sinusoidal_table
from course_utils.models.transformer import AddNorm, PositionWiseFFN


class RelativeAttention(nn.Module):
    """Causal multi-head attention whose scores know distances, not positions.

        score(i, j) = (q_i + u) . k_j + (q_i + v) . r_(i - j), divided by the root of d / h

    So a remembered token needs no position of its own: only its distance counts.
    Source: Transformer-XL (Dai et al. 2019), section 3.3.

    Args:
        d_model: size of a token, even.
        num_heads: h; must divide d_model.
    """

    def __init__(self, d_model: int, num_heads: int):
        super().__init__()
        if num_heads < 1 or d_model % num_heads:
            raise ValueError(f"num_heads = {num_heads} must divide d_model = {d_model}")
        self.num_heads = num_heads
        self.W_q, self.W_k, self.W_v, self.W_o, self.W_r = (
            nn.Linear(d_model, d_model, bias=False) for _ in range(5)
        )
        self.u = nn.Parameter(torch.zeros(num_heads, 1, d_model // num_heads))
        self.v = nn.Parameter(torch.zeros(num_heads, 1, d_model // num_heads))

    def forward(self, x: Tensor, memory: Tensor | None = None, mask: Tensor | None = None):
        """Look at the memory and at the own past.

        Args:
            x: (B, T, d_model), the segment.
            memory: (B, M, d_model), what stood before it.
            mask: more to hide, broadcastable to (B, h, T, M + T); the future is hidden anyway.

        Returns:
            (B, T, d_model).
        """
        context = x if memory is None else torch.cat([memory, x], dim=1)  # (B, M + T, d_model)
        steps, reach = x.shape[1], context.shape[1]
        if mask is not None:
            mask = check_mask(mask, len(x), self.num_heads, steps, reach)
        mask = combine_masks(causal_mask(steps, reach, x.device), mask)
        q, k, v = (self._split(y) for y in (self.W_q(x), self.W_k(context), self.W_v(context)))
        table = sinusoidal_table(reach, x.shape[2]).to(x)  # row n: n positions back
        r = self._split(self.W_r(table)[None])  # (1, h, M + T, d / h)
        at = torch.arange(reach, device=x.device)
        distance = (at[reach - steps :, None] - at).clamp(min=0)  # (T, M + T)
        by_distance = (q + self.v) @ r.mT  # (B, h, T, M + T)
        scores = (q + self.u) @ k.mT + by_distance.gather(-1, distance.expand_as(by_distance))
        weights = masked_softmax(scores / math.sqrt(q.shape[-1]), mask=mask)
        return self.W_o((weights @ v).transpose(1, 2).flatten(2))

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)  # (B, h, T, d / h)


class SegmentLayer(nn.Module):
    """Relative attention and feed-forward network, each with AddNorm (post-norm)."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int):
        super().__init__()
        self.attention = RelativeAttention(d_model, num_heads)
        self.ffn = PositionWiseFFN(d_model, d_ff)
        self.addnorm_attention, self.addnorm_ffn = AddNorm(d_model), AddNorm(d_model)

    def forward(self, x: Tensor, memory: Tensor | None = None, mask: Tensor | None = None):
        x = self.addnorm_attention(x, self.attention(x, memory, mask))
        return self.addnorm_ffn(x, self.ffn(x))


class SegmentReader(nn.Module):
    """A stack that hands on what each layer read, without gradient.

    Args:
        memory_len: how many tokens each layer remembers.
    """

    def __init__(self, d_model: int, num_heads: int, d_ff: int, num_layers: int, memory_len: int):
        super().__init__()
        if memory_len < 0:
            raise ValueError(f"memory_len must be 0 or more, got {memory_len}")
        self.memory_len = memory_len
        self.layers = nn.ModuleList(
            SegmentLayer(d_model, num_heads, d_ff) for _ in range(num_layers)
        )

    def forward(
        self, x: Tensor, memory: list[Tensor] | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """Read one segment.

        Args:
            x: (B, T, d_model).
            memory: one (B, M, d_model) a layer, as the last call returned it.
            mask: see `RelativeAttention`.

        Returns:
            (B, T, d_model), and the memory for the next segment.
        """
        memory = [x[:, :0]] * len(self.layers) if memory is None else memory
        remembered = []
        for layer, old in zip(self.layers, memory, strict=True):
            seen = torch.cat([old, x], dim=1)
            remembered.append(seen[:, max(0, seen.shape[1] - self.memory_len) :].detach())
            x = layer(x, old, mask)
        return x, remembered
