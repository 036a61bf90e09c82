"""The Transformer of the d2l book: its encoder is in the package, its decoder only in the book.

Built from the package's own parts. The decoder keeps what each block has read so far and projects
all of it to keys and values again at every step; and step by step it gives every token the first
position, for it counts from the tokens of one call.
"""

import math

import torch
from d2l import torch as d2l
from torch import Tensor, nn


class BookDecoderBlock(nn.Module):
    """Masked self-attention, attention to the encoder, feed-forward network; post-norm."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float):
        super().__init__()
        sizes = (d_model, d_model, d_model, d_model, num_heads, dropout)
        self.attention1 = d2l.MultiHeadAttention(*sizes)
        self.addnorm1 = d2l.AddNorm([d_model], dropout)
        self.attention2 = d2l.MultiHeadAttention(*sizes)
        self.addnorm2 = d2l.AddNorm([d_model], dropout)
        self.ffn = d2l.PositionWiseFFN(d_model, d_ff, d_model)
        self.addnorm3 = d2l.AddNorm([d_model], dropout)

    def forward(self, x: Tensor, memory: Tensor, source_lens: Tensor, past: Tensor | None):
        """(B, T, d_model) -> the same, and all that was read so far, (B, P + T, d_model)."""
        read = x if past is None else torch.cat((past, x), dim=1)
        seen = None
        if self.training:  # one step at a time there is no future to hide
            seen = torch.arange(1, x.shape[1] + 1).repeat(x.shape[0], 1)  # (B, T)
        y = self.addnorm1(x, self.attention1(x, read, read, seen))
        z = self.addnorm2(y, self.attention2(y, memory, memory, source_lens))
        return self.addnorm3(z, self.ffn(z)), read


class BookTransformer(nn.Module):
    """d2l's encoder and the book's decoder."""

    def __init__(
        self, vocab: int, d_model: int, num_heads: int, d_ff: int, layers: int, dropout: float
    ):
        super().__init__()
        self.d_model = d_model
        self.encoder = d2l.TransformerEncoder(
            vocab, d_model, d_model, d_model, d_model, [d_model], d_model, d_ff, num_heads, layers,
            dropout,
        )  # fmt: skip
        self.embedding = nn.Embedding(vocab, d_model)
        self.positions = d2l.PositionalEncoding(d_model, dropout)
        self.blocks = nn.ModuleList(
            BookDecoderBlock(d_model, num_heads, d_ff, dropout) for _ in range(layers)
        )
        self.dense = nn.Linear(d_model, vocab)

    def decode(self, tokens: Tensor, memory: Tensor, source_lens: Tensor, past: list):
        """(B, T) -> logits (B, T, V) and what each block has read."""
        x = self.positions(self.embedding(tokens) * math.sqrt(self.d_model))
        read = []
        for block, before in zip(self.blocks, past):
            x, so_far = block(x, memory, source_lens, before)
            read.append(so_far)
        return self.dense(x), read

    def forward(self, src: Tensor, src_lens: Tensor, tgt: Tensor) -> Tensor:
        """Teacher forcing: logits (B, Tt, V)."""
        memory = self.encoder(src, src_lens)
        return self.decode(tgt, memory, src_lens, [None] * len(self.blocks))[0]
