"""The block of a decoder-only language model, from that of 2017 to today's, one switch a change."""

from dataclasses import dataclass
from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.models.cache import KeyValueCache
from course_utils.models.modern.biases import RelativeBias, alibi_bias
from course_utils.models.modern.experts import MixtureOfExperts
from course_utils.models.modern.feed_forward import GatedFFN, gated_size, squared_relu
from course_utils.models.modern.grouped_query import GroupedQueryAttention
from course_utils.models.modern.norms import RMSNorm
from course_utils.models.transformer import PositionWiseFFN

NORMS = {"layer": nn.LayerNorm, "rms": RMSNorm}
PLAIN = {"relu": F.relu, "gelu": F.gelu, "relu2": squared_relu}
GATED = {"swiglu": F.silu, "geglu": F.gelu}
POSITIONS = ("none", "sinusoidal", "learned", "rotary", "alibi", "relative")
TODAY = {"norm": "rms", "ffn": "swiglu", "positions": "rotary"}  # most models of 2023 and later


@dataclass(frozen=True)
class DecoderConfig:
    """Sizes and switches. The defaults are the pre-norm block of chapter 8."""

    vocab_size: int
    d_model: int = 128
    num_heads: int = 4
    num_kv_heads: int | None = None  # heads of keys and values; None: num_heads
    d_ff: int = 512  # hidden size of a plain network; a gated one gets 2/3, so equal weights
    num_layers: int = 2
    dropout: float = 0.0
    max_len: int = 256  # of sinusoidal and learned positions; the others have no limit
    norm: str = "layer"  # or "rms"
    ffn: str = "relu"  # or "gelu", "relu2", "swiglu", "geglu", or "none": attention only
    positions: str = "sinusoidal"  # or one of POSITIONS
    layout: str = "interleaved"  # of rotary positions, or "halves"
    num_experts: int = 0  # 0: one feed-forward network
    top_k: int = 2  # experts that a token uses
    tie_output: bool = True  # the output layer shares the embedding's weights

    def __post_init__(self):
        for name in ("vocab_size", "d_model", "num_heads", "d_ff", "num_layers", "max_len"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        known = {"norm": NORMS, "ffn": (*PLAIN, *GATED, "none"), "positions": POSITIONS}
        for name, choices in known.items():
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"{name} must be one of {', '.join(choices)}, got {getattr(self, name)!r}"
                )


def feed_forward(config: DecoderConfig) -> nn.Module | None:
    """The network between two attentions: plain, gated, several as experts, or none."""
    c = config
    if c.ffn == "none":
        return None
    if c.ffn in GATED:
        build = partial(GatedFFN, c.d_model, gated_size(c.d_ff), c.dropout, GATED[c.ffn])
    else:
        build = partial(PositionWiseFFN, c.d_model, c.d_ff, c.dropout, PLAIN[c.ffn])
    return MixtureOfExperts(c.d_model, c.num_experts, c.top_k, build) if c.num_experts else build()


def score_bias(config: DecoderConfig):
    """What is added to the scores, as a function of (Tq, Tk), or None."""
    if config.positions == "alibi":
        return partial(alibi_bias, config.num_heads)
    return RelativeBias(config.num_heads) if config.positions == "relative" else None


class ModernBlock(nn.Module):
    """x + attention(norm(x)), then x + ffn(norm(x)); what each of them is, the config says.

    Source of the switches together: Touvron et al. 2023, LLaMA, section 2.2.

    Args:
        config: sizes and switches.
        bias: of the scores, from `score_bias`; one for all blocks, as in T5.
    """

    def __init__(self, config: DecoderConfig, bias=None):
        super().__init__()
        c = config
        rotary = c.layout if c.positions == "rotary" else None
        self.norm1 = NORMS[c.norm](c.d_model)
        self.attention = GroupedQueryAttention(
            c.d_model, c.num_heads, c.num_kv_heads, c.dropout, rotary=rotary, score_bias=bias
        )
        self.ffn = feed_forward(c)
        self.norm2 = NORMS[c.norm](c.d_model) if self.ffn else None
        self.dropout = nn.Dropout(c.dropout)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        past: KeyValueCache | None = None,
        *,
        return_weights: bool = False,
    ) -> tuple[Tensor, KeyValueCache, Tensor | None]:
        """One block.

        Args:
            x: (B, T, d_model), the new positions.
            mask: (B or 1, 1, T, P + T), True = may look.
            past: keys and values of P earlier positions.

        Returns:
            (B, T, d_model), the cache of all P + T positions, and the weights (B, h, T, P + T),
            or None when not asked for.
        """
        read = self.norm1(x)
        new = self.attention.project(read, read, start=0 if past is None else len(past))
        cache = KeyValueCache(*new) if past is None else past.append(*new)  # (B, h_kv, P + T, d/h)
        attended, weights = self.attention.attend(
            read, cache.keys, cache.values, mask, return_weights
        )
        x = x + self.dropout(attended)
        if self.ffn:
            x = x + self.dropout(self.ffn(self.norm2(x)))
        return x, cache, weights
