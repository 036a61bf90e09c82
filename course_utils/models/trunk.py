"""What every stack of blocks shares: positions, blocks in a row, the last norm, first weights."""

from collections.abc import Iterable

from torch import Tensor, nn

from course_utils.models.positional import LearnedPositionalEmbedding, PositionalEncoding


def position_layer(name: str, d_model: int, dropout: float, max_len: int) -> nn.Module:
    """What adds positions to embeddings (B, T, d_model), and drops out.

    Args:
        name: "sinusoidal", "learned", or "none", which only drops out.

    Raises:
        ValueError: `name` is none of the three.
    """
    if name == "none":
        return nn.Dropout(dropout)
    kinds = {"sinusoidal": PositionalEncoding, "learned": LearnedPositionalEmbedding}
    if name not in kinds:
        raise ValueError(f"positions must be 'sinusoidal', 'learned' or 'none', got {name!r}")
    return kinds[name](d_model, dropout, max_len)


def last_norm(d_model: int, norm_first: bool) -> nn.Module:
    """The norm after the last block: pre-norm leaves the stream itself unnormalised."""
    return nn.LayerNorm(d_model) if norm_first else nn.Identity()


def run_blocks(
    blocks: Iterable[nn.Module],
    x: Tensor,
    mask: Tensor | None = None,
    *,
    return_weights: bool = False,
) -> tuple[Tensor, list[Tensor]]:
    """Encoder blocks one after the other: (B, T, d_model) -> (B, T, d_model) and their maps.

    The maps, one (B, h, T, T) a block, are collected only with `return_weights`.
    """
    maps = []
    for block in blocks:
        x = block(x, mask, return_weights=return_weights)
        if return_weights:
            x, weights = x
            maps.append(weights)
    return x, maps


def initialise(model: nn.Module) -> None:
    """Xavier weights and zero biases for linear layers; embeddings of variance 1 / d_model.

    The models multiply embeddings by sqrt(d_model), which brings their standard deviation to 1.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
