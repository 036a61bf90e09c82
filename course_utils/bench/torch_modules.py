"""torch.nn.Transformer as a translation model, written as PyTorch's tutorial has it."""

from torch import Tensor, nn

from course_utils.bench.usual import last_tokens
from course_utils.models.masks import causal_mask
from course_utils.models.positional import sinusoidal_table
from course_utils.models.transformer import TransformerConfig
from course_utils.text.vocab import Vocab


class TorchModules(nn.Module):
    """torch.nn.Transformer between embeddings and an output layer.

    Args:
        config: the sizes; of its dropouts and switches torch knows `dropout` alone.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        c = config
        self.source = nn.Embedding(c.src_vocab_size, c.d_model)
        self.target = nn.Embedding(c.tgt_vocab_size, c.d_model)
        self.register_buffer("table", sinusoidal_table(c.max_len, c.d_model))
        self.dropout = nn.Dropout(c.dropout)
        self.body = nn.Transformer(
            c.d_model, c.num_heads, c.num_encoder_layers, c.num_decoder_layers, c.d_ff, c.dropout,
            batch_first=True,
        )  # fmt: skip
        self.output = nn.Linear(c.d_model, c.tgt_vocab_size)

    def embed(self, ids: Tensor, embedding: nn.Embedding) -> Tensor:
        """(B, T) -> (B, T, d_model), positions added."""
        scaled = embedding(ids) * embedding.embedding_dim**0.5
        return self.dropout(scaled + self.table[: ids.shape[1]])

    def encode(self, src: Tensor, hidden: Tensor) -> Tensor:
        """(B, Ts) -> (B, Ts, d_model); `hidden` (B, Ts) is True at padding, as torch has it."""
        return self.body.encoder(self.embed(src, self.source), src_key_padding_mask=hidden)

    def read(self, tgt: Tensor, memory: Tensor, hidden: Tensor) -> Tensor:
        """(B, Tt) -> (B, Tt, d_model)."""
        future = ~causal_mask(tgt.shape[1], device=tgt.device)[0, 0]  # torch: True = hidden
        return self.body.decoder(
            self.embed(tgt, self.target), memory, tgt_mask=future, tgt_is_causal=True,
            memory_key_padding_mask=hidden,
        )  # fmt: skip

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Logits (B, Tt, vocab_size) of the token after each target token."""
        hidden = src.eq(Vocab.pad)
        return self.output(self.read(tgt, self.encode(src, hidden), hidden))

    def greedy(self, src: Tensor, steps: int) -> Tensor:
        """(B, Ts) -> (B, steps), the likeliest tokens; each step reads all before it again."""
        hidden = src.eq(Vocab.pad)
        memory = self.encode(src, hidden)

        def logits_after(tokens: Tensor) -> Tensor:
            return self.output(self.read(tokens, memory, hidden)[:, -1])

        return last_tokens(logits_after, len(src), steps, src.device)
