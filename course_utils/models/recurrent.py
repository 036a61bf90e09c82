"""Translation with GRUs: an encoder, and decoders without and with Bahdanau attention.

Both decoders fit the same `Seq2Seq` shell, which is used like `Transformer`: `model(src, src_lens,
tgt)` under teacher forcing, `model.start` and `model.decode` step by step. Shapes: B sentences,
Ts source and Tt target tokens, n hidden units, L layers.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from course_utils.models.attention import AdditiveAttention
from course_utils.models.masks import check_tokens, mask_from_lengths, mask_from_valid_lens


class GRUEncoder(nn.Module):
    """Read the source; padding is left out, so a sentence means the same in any batch.

    Source of encoder, decoder and GRU: Cho et al. 2014; read both ways: Bahdanau et al. 2015.

    Args:
        vocab_size, embed_size, num_hiddens, num_layers: sizes.
        dropout: between the layers, in training.
        two_way: read from both ends, each way with half of the hidden units, so that the outputs
            are as wide as those of a GRU that reads from the left only.

    Raises:
        ValueError: two ways cannot share an odd number of hidden units.
    """

    def __init__(
        self, vocab_size, embed_size, num_hiddens, num_layers=1, dropout=0.0, two_way=False
    ):
        super().__init__()
        if two_way and num_hiddens % 2:
            raise ValueError(f"two ways share num_hiddens={num_hiddens}: make it even")
        self.embedding = nn.Embedding(vocab_size, embed_size)
        self.num_hiddens, ways = num_hiddens, 2 if two_way else 1
        self.gru = nn.GRU(
            embed_size,
            num_hiddens // ways,
            num_layers,
            batch_first=True,
            dropout=dropout if num_layers > 1 else 0.0,
            bidirectional=two_way,
        )

    def forward(self, src: Tensor, src_lens: Tensor) -> tuple[Tensor, Tensor]:
        """(B, Ts) ids, (B,) lengths -> outputs (B, Ts, n) and the last state (L, B, n).

        Outputs beyond a sentence's length are zero; its last state is that of its last real token,
        beside which stands, for the way back, that of its first token.
        """
        check_tokens(src, self.embedding.num_embeddings)
        mask_from_valid_lens(src_lens, src.shape[1], len(src))  # says what does not fit
        if not len(src) or int(src_lens.min()) < 1:
            lengths = src_lens.tolist()
            raise ValueError(f"a GRU needs one sentence or more, none empty, got lengths {lengths}")
        packed = pack_padded_sequence(
            self.embedding(src), src_lens.cpu(), batch_first=True, enforce_sorted=False
        )
        outputs, state = self.gru(packed)
        outputs, _ = pad_packed_sequence(outputs, batch_first=True, total_length=src.shape[1])
        if self.gru.bidirectional:  # (L * 2, B, n / 2): the ways of a layer follow each other
            state = torch.cat([state[0::2], state[1::2]], dim=-1)
        return outputs, state


@dataclass
class RecurrentState:
    """What decoding remembers: encoder outputs (B, Ts, n), their mask (B, 1, 1, Ts), the hidden
    state (L, B, n), and the context (B, n) in which the source was summed up at the start."""

    outputs: Tensor
    mask: Tensor
    hidden: Tensor
    context: Tensor

    def select(self, rows: Tensor) -> "RecurrentState":
        """The state of some sentences, in the order of `rows`; beam search needs it."""
        return RecurrentState(
            self.outputs[rows], self.mask[rows], self.hidden[:, rows], self.context[rows]
        )


class GRUDecoder(nn.Module):
    """Decode with one context for all steps: the encoder's last state.

    Args:
        vocab_size, embed_size, num_hiddens, num_layers: sizes; the last two as the encoder's.
        dropout: between the layers, in training.
        deep_output: predict the next token from the hidden state, the context and the token just
            read (Bahdanau et al. 2015, appendix A.2.2), and not from the hidden state alone. It
            learns several times faster.
    """

    def __init__(
        self, vocab_size, embed_size, num_hiddens, num_layers=1, dropout=0.0, deep_output=False
    ):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_size)
        between = dropout if num_layers > 1 else 0.0
        self.gru = nn.GRU(
            embed_size + num_hiddens, num_hiddens, num_layers, batch_first=True, dropout=between
        )
        self.num_hiddens, self.deep_output = num_hiddens, deep_output
        read_size = num_hiddens + embed_size if deep_output else 0
        self.output = nn.Linear(num_hiddens + read_size, vocab_size)

    def predict(self, outputs: Tensor, read: Tensor) -> Tensor:
        """GRU outputs (B, T, n) and what the GRU read (B, T, n + embed) -> logits (B, T, V)."""
        return self.output(torch.cat([outputs, read], dim=-1) if self.deep_output else outputs)

    def forward(self, tgt: Tensor, state: RecurrentState, *, return_weights: bool = False):
        """(B, T) ids -> logits (B, T, vocabulary) and the next state; it has no weights (None)."""
        check_tokens(tgt, self.embedding.num_embeddings, len(state.mask))
        context = state.context.unsqueeze(1).expand(-1, tgt.shape[1], -1)  # (B, T, n)
        read = torch.cat([context, self.embedding(tgt)], dim=-1)  # (B, T, n + embed)
        outputs, hidden = self.gru(read, state.hidden)
        logits, state = self.predict(outputs, read), replace(state, hidden=hidden)
        return (logits, state, None) if return_weights else (logits, state)


class BahdanauDecoder(GRUDecoder):
    """Decode with a new context at every step: attention over all encoder outputs.

    Source: Bahdanau et al. 2015. The query is the decoder's last hidden state, keys and values are
    the encoder outputs.
    """

    def __init__(
        self, vocab_size, embed_size, num_hiddens, num_layers=1, dropout=0.0, deep_output=False
    ):
        super().__init__(vocab_size, embed_size, num_hiddens, num_layers, dropout, deep_output)
        self.attention = AdditiveAttention(num_hiddens, num_hiddens, num_hiddens, dropout)

    def forward(self, tgt: Tensor, state: RecurrentState, *, return_weights: bool = False):
        """(B, T) ids -> logits (B, T, vocabulary), the next state, and weights (B, 1, T, Ts)."""
        check_tokens(tgt, self.embedding.num_embeddings, len(state.mask))
        hidden, read, outputs, maps = state.hidden, [], [], []
        for x in self.embedding(tgt).unbind(dim=1):  # (B, embed), one step at a time
            query = hidden[-1].unsqueeze(1)  # (B, 1, n): the top layer's state before this step
            context, weights = self.attention(
                query, state.outputs, state.outputs, state.mask, return_weights=True
            )  # (B, 1, n), (B, 1, 1, Ts)
            read.append(torch.cat([context, x.unsqueeze(1)], dim=-1))  # (B, 1, n + embed)
            output, hidden = self.gru(read[-1], hidden)
            outputs.append(output)
            maps.append(weights)
        logits = self.predict(torch.cat(outputs, dim=1), torch.cat(read, dim=1))
        state = replace(state, hidden=hidden)
        return (logits, state, torch.cat(maps, dim=2)) if return_weights else (logits, state)


class Seq2Seq(nn.Module):
    """An encoder and one of the decoders above, used like a `Transformer`.

    Raises:
        ValueError: the two differ in num_layers or num_hiddens.
    """

    def __init__(self, encoder: GRUEncoder, decoder: GRUDecoder):
        super().__init__()
        sizes = [(part.gru.num_layers, part.num_hiddens) for part in (encoder, decoder)]
        if sizes[0] != sizes[1]:
            raise ValueError(
                "encoder and decoder must have the same num_layers and num_hiddens, got "
                f"{sizes[0]} and {sizes[1]}"
            )
        self.encoder, self.decoder = encoder, decoder

    def start(self, src: Tensor, src_lens: Tensor) -> RecurrentState:
        """Encode the source and be ready for the first target token."""
        check_tokens(src, self.encoder.embedding.num_embeddings)
        src_lens = torch.as_tensor(src_lens)
        mask = mask_from_lengths(src_lens, src.shape[1], len(src))  # (B, 1, 1, Ts)
        outputs, hidden = self.encoder(src, src_lens)
        return RecurrentState(outputs, mask, hidden, hidden[-1])

    def decode(self, tgt: Tensor, state: RecurrentState):
        """Read (B, T) tokens that follow those already read -> logits (B, T, V), next state.

        Raises:
            TypeError, ValueError: the tokens do not fit, or there are none.
        """
        self._check_steps(tgt)
        return self.decoder(tgt, state)

    def forward(self, src: Tensor, src_lens: Tensor, tgt: Tensor) -> Tensor:
        """Logits (B, Tt, vocabulary) of the token after each target token (teacher forcing)."""
        return self.decode(tgt, self.start(src, src_lens))[0]

    def attention_maps(self, src: Tensor, src_lens: Tensor, tgt: Tensor) -> dict[str, Tensor]:
        """{"cross": (1, B, 1, Tt, Ts)}, or {} for a decoder without attention."""
        self._check_steps(tgt)
        weights = self.decoder(tgt, self.start(src, src_lens), return_weights=True)[2]
        return {} if weights is None else {"cross": weights[None]}

    def _check_steps(self, tgt: Tensor) -> None:
        check_tokens(tgt, self.decoder.embedding.num_embeddings)
        if not tgt.shape[1]:
            raise ValueError(f"a GRU needs a token or more to read, got {tuple(tgt.shape)}")
