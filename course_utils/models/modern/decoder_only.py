"""A small language model of modern blocks, with a cache."""

from torch import Tensor, nn

from course_utils.models.cache import KeyValueCache
from course_utils.models.masks import causal_mask, check_tokens
from course_utils.models.modern.block import NORMS, DecoderConfig, ModernBlock, score_bias
from course_utils.models.positional import LearnedPositionalEmbedding, PositionalEncoding
from course_utils.models.transformer import initialise

Caches = list[KeyValueCache]
_ADDED = {"sinusoidal": PositionalEncoding, "learned": LearnedPositionalEmbedding}


class DecoderOnly(nn.Module):
    """Embedding, blocks, norm, output layer: ids in, logits of the next token out.

    `model(tokens)` suits `perplexity` and `generate`; `model.decode` reads on from a cache.

    Args:
        config: sizes and switches; kept as `model.config`.
    """

    def __init__(self, config: DecoderConfig):
        super().__init__()
        self.config = c = config
        self.embedding = nn.Embedding(c.vocab_size, c.d_model)
        added = _ADDED.get(c.positions)
        self.positions = added(c.d_model, c.dropout, c.max_len) if added else None
        self.dropout = nn.Dropout(c.dropout)
        bias = score_bias(c)
        self.blocks = nn.ModuleList(ModernBlock(c, bias) for _ in range(c.num_layers))
        self.norm = NORMS[c.norm](c.d_model)
        self.output = nn.Linear(c.d_model, c.vocab_size, bias=False)
        initialise(self)
        if c.tie_output:
            self.output.weight = self.embedding.weight

    def decode(
        self, tokens: Tensor, past: Caches | None = None, *, return_weights: bool = False
    ) -> tuple[Tensor, Caches, list[Tensor | None]]:
        """Read (B, T) ids that follow the P positions of `past`.

        Returns:
            logits (B, T, V), one cache a layer of all P + T positions, and one (B, h, T, P + T) a
            layer, or None each when not asked for.

        Raises:
            TypeError, ValueError: the ids do not fit.
        """
        check_tokens(tokens, self.config.vocab_size)
        start, steps = len(past[0]) if past else 0, tokens.shape[1]
        x = self.embedding(tokens) * self.config.d_model**0.5  # (B, T, d_model)
        x = self.positions(x, start) if self.positions else self.dropout(x)
        mask = causal_mask(steps, start + steps, tokens.device) if steps > 1 else None
        caches, maps = [], []
        for block, before in zip(self.blocks, past or [None] * len(self.blocks), strict=True):
            x, cache, weights = block(x, mask, before, return_weights=return_weights)
            caches.append(cache)
            maps.append(weights)
        return self.output(self.norm(x)), caches, maps

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T) ids -> (B, T, V) logits of the token after each."""
        return self.decode(tokens)[0]


def cache_bytes(config: DecoderConfig, tokens: int, bytes_a_number: int = 4) -> int:
    """Bytes that the keys and values of `tokens` positions take in all layers."""
    heads = config.num_kv_heads or config.num_heads
    size = config.d_model // config.num_heads
    return 2 * config.num_layers * heads * size * tokens * bytes_a_number


def truncate(caches: Caches, length: int) -> Caches:
    """The first `length` positions of each layer's cache, as if the others had not been read."""
    return [KeyValueCache(c.keys[:, :, :length], c.values[:, :, :length]) for c in caches]
