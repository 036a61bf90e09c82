"""The trunk of all models with one stack: token ids in, one vector per token out.

With a padding mask it reads like BERT, with a causal mask like GPT; what stands on top (a
classifier, a prediction of hidden or of next tokens) makes the model.
"""

from torch import Tensor, nn

from course_utils.models.masks import build_mask, check_tokens
from course_utils.models.transformer import EncoderBlock
from course_utils.models.trunk import initialise, last_norm, position_layer, run_blocks


class TokenEncoder(nn.Module):
    """Embedding, positions and encoder blocks.

    Args:
        vocab_size: number of token ids.
        d_model, num_heads, d_ff, num_layers, dropout: as in `TransformerConfig`.
        max_len: longest sequence.
        positions: "sinusoidal", "learned" or "none".
        norm_first: pre-norm with a norm at the end; False is post-norm.
        bias: of the attention projections.

    Raises:
        ValueError: `positions` is none of the three.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int = 64,
        num_heads: int = 4,
        d_ff: int = 256,
        num_layers: int = 2,
        dropout: float = 0.1,
        max_len: int = 256,
        positions: str = "sinusoidal",
        norm_first: bool = True,
        bias: bool = False,
    ):
        super().__init__()
        self.vocab_size, self.d_model, self.num_heads = vocab_size, d_model, num_heads
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.positions = position_layer(positions, d_model, dropout, max_len)
        self.blocks = nn.ModuleList(
            EncoderBlock(d_model, num_heads, d_ff, dropout, norm_first, bias)
            for _ in range(num_layers)
        )
        self.norm = last_norm(d_model, norm_first)
        initialise(self)

    def forward(
        self,
        tokens: Tensor,
        mask: Tensor | None = None,
        *,
        valid_lens: Tensor | None = None,
        return_weights: bool = False,
    ):
        """Read whole sequences.

        Args:
            tokens: (B, T) ids.
            mask: boolean, True = may look, broadcastable to (B, h, T, T), such as a causal mask.
            valid_lens: (B,) number of real tokens; what follows them is looked at by none.

        Returns:
            (B, T, d_model), and with `return_weights` one (B, h, T, T) a layer.
        """
        x, mask = self.embed(tokens, mask, valid_lens)
        x, maps = run_blocks(self.blocks, x, mask, return_weights=return_weights)
        x = self.norm(x)
        return (x, maps) if return_weights else x

    def embed(
        self, tokens: Tensor, mask: Tensor | None, valid_lens: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """What the first block reads, (B, T, d_model), and one mask of four axes, or None."""
        check_tokens(tokens, self.vocab_size)
        batch, steps = tokens.shape
        mask = build_mask(mask, valid_lens, (batch, self.num_heads, steps, steps))
        return self.positions(self.embedding(tokens) * self.d_model**0.5), mask


def tied_output(encoder: TokenEncoder) -> nn.Linear:
    """The layer from (B, T, d_model) to logits (B, T, V), with the weights of the embedding."""
    output = nn.Linear(encoder.d_model, encoder.vocab_size, bias=False)
    output.weight = encoder.embedding.weight
    return output
