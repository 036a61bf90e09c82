"""The Transformer of Vaswani et al. 2017, from sub-layers to the encoder-decoder.

Shapes: B sentences, Ts source tokens, Tt target tokens, h heads. The decoder runs through one
method, `Transformer.decode`, for whole sentences (teacher forcing) and for single steps (cache).
"""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.models.attention import MultiHeadAttention
from course_utils.models.cache import KeyValueCache
from course_utils.models.masks import (
    build_mask,
    causal_mask,
    check_tokens,
    hide_unseen,
    mask_from_lengths,
)
from course_utils.models.trunk import initialise, last_norm, position_layer, run_blocks


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes and switches of a Transformer; the defaults train in a minute on a laptop."""

    src_vocab_size: int
    tgt_vocab_size: int
    d_model: int = 128  # size of every token vector between layers
    num_heads: int = 4  # attention heads; must divide d_model
    d_ff: int = 512  # hidden size of the feed-forward network, usually 4 * d_model
    num_encoder_layers: int = 2
    num_decoder_layers: int = 2
    dropout: float = 0.1  # of embeddings and sub-layer outputs
    inner_dropout: float | None = None  # of attention weights and hidden units; None: as dropout
    cross_dropout: float | None = None  # of cross-attention weights; None: as inner_dropout
    max_len: int = 256  # longest sentence, source or target
    norm_first: bool = True  # pre-norm; False is the paper's post-norm, as in the notes' code
    positions: str = "sinusoidal"  # or "learned"
    bias: bool = False  # of the attention projections
    tie_output: bool = True  # the output layer shares the target embedding's weights

    def __post_init__(self):
        sizes = ("src_vocab_size", "tgt_vocab_size", "d_model", "num_heads", "d_ff", "max_len")
        for name in (*sizes, "num_encoder_layers", "num_decoder_layers"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.positions not in ("sinusoidal", "learned"):
            raise ValueError(f"positions must be 'sinusoidal' or 'learned', got {self.positions!r}")

    def of_block(self) -> dict:
        """What every block is built from, by the names of its arguments."""
        names = ("d_model", "num_heads", "d_ff", "dropout", "norm_first", "bias", "inner_dropout")
        return {name: getattr(self, name) for name in names}


class PositionWiseFFN(nn.Module):
    """Two linear layers applied to every position on its own.

    Source: Vaswani et al. 2017, section 3.3.

    Args:
        d_model: size of input and output.
        d_ff: size in between.
        dropout: share of the hidden units that is dropped in training.
        activation: F.relu as in the paper, or F.gelu as in BERT and GPT.
    """

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0, activation=F.relu):
        super().__init__()
        self.hidden = nn.Linear(d_model, d_ff)
        self.output = nn.Linear(d_ff, d_model)
        self.activation = activation
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, d_model) -> (B, T, d_model)."""
        return self.output(self.dropout(self.activation(self.hidden(x))))


class AddNorm(nn.Module):
    """Residual connection and layer normalisation around one sub-layer.

    Post-norm (the paper): LayerNorm(x + dropout(sublayer(x))).
    Pre-norm (`norm_first`): x + dropout(sublayer(LayerNorm(x))).
    A sub-layer is therefore written `addnorm(x, sublayer(addnorm.before(x)))` for both. Source: He
    et al. 2016; Ba et al. 2016; of the two orders Xiong et al. 2020.

    Args:
        normalized_shape: d_model; the statistics are taken per token.
        dropout: share of the sub-layer's output that is dropped in training.
    """

    def __init__(self, normalized_shape: int, dropout: float = 0.0, norm_first: bool = False):
        super().__init__()
        self.norm = nn.LayerNorm(normalized_shape)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def before(self, x: Tensor) -> Tensor:
        """What the sub-layer reads."""
        return self.norm(x) if self.norm_first else x

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The stream `x` and the sub-layer's output `y`, both (B, T, d_model), joined."""
        summed = x + self.dropout(y)
        return summed if self.norm_first else self.norm(summed)


class EncoderBlock(nn.Module):
    """Self-attention, then the feed-forward network; the shape stays (B, Ts, d_model).

    Source: Vaswani et al. 2017, section 3.1.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.0,
        norm_first: bool = False,
        bias: bool = False,
        inner_dropout: float | None = None,
    ):
        super().__init__()
        inner_dropout = dropout if inner_dropout is None else inner_dropout
        self.attention = MultiHeadAttention(d_model, num_heads, inner_dropout, bias)
        self.addnorm1 = AddNorm(d_model, dropout, norm_first)
        self.ffn = PositionWiseFFN(d_model, d_ff, inner_dropout)
        self.addnorm2 = AddNorm(d_model, dropout, norm_first)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        *,
        valid_lens: Tensor | None = None,
        return_weights: bool = False,
    ):
        """(B, Ts, d_model) -> (B, Ts, d_model), and the weights (B, h, Ts, Ts) when asked for."""
        read = self.addnorm1.before(x)
        attended = self.attention(
            read, read, read, mask, valid_lens=valid_lens, return_weights=return_weights
        )
        attended, weights = attended if return_weights else (attended, None)
        x = self.addnorm1(x, attended)
        x = self.addnorm2(x, self.ffn(self.addnorm2.before(x)))
        return (x, weights) if return_weights else x


class DecoderBlock(nn.Module):
    """Masked self-attention, cross-attention, feed-forward network.

    The same block serves whole sentences and single steps: it returns the self-attention keys and
    values of all positions so far, and takes those of earlier positions as `past`. The keys and
    values of the source are projected once per sentence, by `project_source`. Source: Vaswani et
    al. 2017, section 3.1.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.0,
        norm_first: bool = False,
        bias: bool = False,
        inner_dropout: float | None = None,
        cross_dropout: float | None = None,
    ):
        super().__init__()
        inner_dropout = dropout if inner_dropout is None else inner_dropout
        cross_dropout = inner_dropout if cross_dropout is None else cross_dropout
        self.self_attention = MultiHeadAttention(d_model, num_heads, inner_dropout, bias)
        self.addnorm1 = AddNorm(d_model, dropout, norm_first)
        self.cross_attention = MultiHeadAttention(d_model, num_heads, cross_dropout, bias)
        self.addnorm2 = AddNorm(d_model, dropout, norm_first)
        self.ffn = PositionWiseFFN(d_model, d_ff, inner_dropout)
        self.addnorm3 = AddNorm(d_model, dropout, norm_first)

    def project_source(
        self, memory: Tensor, source_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Encoder output (B, Ts, d_model) -> cross-attention keys and values, (B, h, Ts, d/h).

        What the mask (B, 1, 1, Ts) hides is zeroed here, once a sentence.
        """
        memory = hide_unseen(memory.unsqueeze(1), source_mask).squeeze(1)
        return self.cross_attention.project(memory, memory)

    def forward(
        self,
        x: Tensor,
        source: tuple[Tensor, Tensor],
        past: KeyValueCache | None = None,
        target_mask: Tensor | None = None,
        source_mask: Tensor | None = None,
        *,
        return_weights: bool = False,
    ):
        """One block.

        Args:
            x: (B, T, d_model), the new target positions.
            source: keys and values of the source, from `project_source`.
            past: self-attention keys and values of P earlier positions.
            target_mask, source_mask: (B or 1, 1, T, P + T) and (B, 1, 1, Ts).

        Returns:
            (B, T, d_model), the cache of all P + T positions, and with
            `return_weights` the self- and cross-attention weights, (B, h, T, P + T) and
            (B, h, T, Ts).
        """
        read = self.addnorm1.before(x)
        new = self.self_attention.project(read, read)  # (B, h, T, d/h) each
        cache = KeyValueCache(*new) if past is None else past.append(*new)
        batch, heads, steps, num_keys = *new[0].shape[:3], source[0].shape[2]
        target_mask = build_mask(target_mask, None, (batch, heads, steps, cache.keys.shape[2]))
        source_mask = build_mask(source_mask, None, (batch, heads, steps, num_keys))
        attended, self_weights = self.self_attention.attend(
            read, cache.keys, cache.values, target_mask, return_weights
        )
        x = self.addnorm1(x, attended)
        attended, cross_weights = self.cross_attention.attend(
            self.addnorm2.before(x), *source, source_mask, return_weights
        )
        x = self.addnorm2(x, attended)
        x = self.addnorm3(x, self.ffn(self.addnorm3.before(x)))
        return (x, cache, self_weights, cross_weights) if return_weights else (x, cache)


@dataclass
class DecoderState:
    """What decoding remembers: the encoded source, and keys and values of the target so far.

    source: per layer, keys and values (B, h, Ts, d/h); source_mask: (B, 1, 1, Ts), or None where
    nothing is hidden.
    target: per layer, the cache of the T positions so far, or None before the first token.
    """

    source: list[tuple[Tensor, Tensor]]
    source_mask: Tensor | None
    target: list[KeyValueCache | None]
    length: int = 0

    def select(self, rows: Tensor) -> "DecoderState":
        """The state of some sentences, in the order of `rows`; beam search needs it."""
        return replace(
            self,
            source=[(keys[rows], values[rows]) for keys, values in self.source],
            source_mask=None if self.source_mask is None else self.source_mask[rows],
            target=[None if cache is None else cache.select(rows) for cache in self.target],
        )


class Transformer(nn.Module):
    """Encoder and decoder for translation (Vaswani et al. 2017).

    `model(src, src_lens, tgt)` gives the logits of every next token under teacher forcing.
    `model.start(src, src_lens)` and `model.decode(tokens, state)` decode step by step.

    Args:
        config: sizes and switches; kept as `model.config`.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.config = c = config
        self.src_embedding = nn.Embedding(c.src_vocab_size, c.d_model)
        self.tgt_embedding = nn.Embedding(c.tgt_vocab_size, c.d_model)
        self.src_positions, self.tgt_positions = (
            position_layer(c.positions, c.d_model, c.dropout, c.max_len) for _ in range(2)
        )
        self.encoder = nn.ModuleList(
            EncoderBlock(**c.of_block()) for _ in range(c.num_encoder_layers)
        )
        self.decoder = nn.ModuleList(
            DecoderBlock(**c.of_block(), cross_dropout=c.cross_dropout)
            for _ in range(c.num_decoder_layers)
        )
        self.encoder_norm, self.decoder_norm = (
            last_norm(c.d_model, c.norm_first) for _ in range(2)
        )
        self.output = nn.Linear(c.d_model, c.tgt_vocab_size, bias=False)
        initialise(self)
        if c.tie_output:
            self.output.weight = self.tgt_embedding.weight

    def _embed(self, tokens: Tensor, embedding: nn.Embedding, positions, offset: int = 0) -> Tensor:
        return positions(embedding(tokens) * self.config.d_model**0.5, offset)  # (B, T, d_model)

    def _source_mask(self, src: Tensor, src_lens: Tensor) -> Tensor | None:
        """(B, 1, 1, Ts), or None where no sentence is padded: attention is cheaper without."""
        mask = mask_from_lengths(src_lens, src.shape[1], len(src))
        return None if mask.numel() and mask.all() else mask

    def encode(self, src: Tensor, src_lens: Tensor, *, return_weights: bool = False):
        """(B, Ts) ids and (B,) lengths -> (B, Ts, d_model), and a list of (B, h, Ts, Ts)."""
        check_tokens(src, self.config.src_vocab_size)
        x = self._embed(src, self.src_embedding, self.src_positions)
        mask = self._source_mask(src, src_lens)  # (B, 1, 1, Ts)
        x, maps = run_blocks(self.encoder, x, mask, return_weights=return_weights)
        x = self.encoder_norm(x)
        return (x, maps) if return_weights else x

    def start(self, src: Tensor, src_lens: Tensor, memory: Tensor | None = None) -> DecoderState:
        """Encode the source (or take its encoding) and be ready for the first target token."""
        memory = self.encode(src, src_lens) if memory is None else memory
        mask = self._source_mask(src, src_lens)  # (B, 1, 1, Ts)
        return DecoderState(
            source=[block.project_source(memory, mask) for block in self.decoder],
            source_mask=mask,
            target=[None] * len(self.decoder),
        )

    def decode(
        self,
        tgt: Tensor,
        state: DecoderState,
        *,
        keep: Tensor | None = None,
        return_weights: bool = False,
    ):
        """Read (B, T) target tokens that follow those already in the state.

        Args:
            keep: (B, T) boolean, the positions whose logits are wanted; by default all.

        Returns:
            logits (B, T, vocabulary) of the token after each, or (kept, vocabulary), and the
            longer state; with `return_weights` also two lists of (B, h, T, T_so_far) and
            (B, h, T, Ts).

        Raises:
            TypeError, ValueError: the tokens, or `keep`, are of another kind or shape.
        """
        check_tokens(tgt, self.config.tgt_vocab_size, len(state.source[0][0]))
        if keep is not None and (keep.dtype != torch.bool or keep.shape != tgt.shape):
            raise ValueError(
                f"keep must be boolean, in the shape {tuple(tgt.shape)} of the tokens, got "
                f"{keep.dtype} in the shape {tuple(keep.shape)}"
            )
        x = self._embed(tgt, self.tgt_embedding, self.tgt_positions, state.length)
        steps, so_far = tgt.shape[1], state.length + tgt.shape[1]
        mask = causal_mask(steps, so_far, tgt.device) if steps > 1 else None  # (1, 1, T, T_so_far)
        target, self_maps, cross_maps = [], [], []
        for block, source, past in zip(self.decoder, state.source, state.target, strict=True):
            x, cache, *weights = block(
                x, source, past, mask, state.source_mask, return_weights=return_weights
            )
            target.append(cache)
            if return_weights:
                self_maps.append(weights[0])
                cross_maps.append(weights[1])
        x = x if keep is None else x[keep]
        logits = self.output(self.decoder_norm(x))
        state = replace(state, target=target, length=so_far)
        return (logits, state, self_maps, cross_maps) if return_weights else (logits, state)

    def forward(
        self, src: Tensor, src_lens: Tensor, tgt: Tensor, keep: Tensor | None = None
    ) -> Tensor:
        """Logits (B, Tt, vocabulary) of the token after each target token (teacher forcing).

        With `keep` (B, Tt) those of some positions only, (kept, vocabulary): the output layer is
        the widest, and at padding its work is for nothing.
        """
        return self.decode(tgt, self.start(src, src_lens), keep=keep)[0]

    def attention_maps(self, src: Tensor, src_lens: Tensor, tgt: Tensor) -> dict[str, Tensor]:
        """Weights of all three families, each (layers, B, h, Tq, Tk).

        Keys: "encoder" (Ts x Ts), "decoder" (Tt x Tt) and "cross" (Tt x Ts).
        """
        memory, encoder_maps = self.encode(src, src_lens, return_weights=True)
        state = self.start(src, src_lens, memory)
        _, _, self_maps, cross_maps = self.decode(tgt, state, return_weights=True)
        maps = {"encoder": encoder_maps, "decoder": self_maps, "cross": cross_maps}
        return {family: torch.stack(layers) for family, layers in maps.items()}
