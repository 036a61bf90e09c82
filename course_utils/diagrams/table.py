"""Which function draws which file in figures/, and the alt text of each."""

from collections.abc import Callable
from typing import NamedTuple

from course_utils.diagrams import (
    architecture,
    attention,
    blocks,
    classifier,
    course,
    decoding_cost,
    heads,
    memory_card,
    modes,
    patterns,
    sequences,
)
from course_utils.diagrams.canvas import Canvas
from course_utils.diagrams.self_attention import self_attention


class Drawing(NamedTuple):
    """A figure: the function that draws it, and what it shows, in words."""

    draw: Callable[[], Canvas]
    alt: str


FIGURES = {
    "course_map.svg": Drawing(
        course.course_map,
        "Map of the course. Attention: 00 start here, 01 attention pooling, 02 masked softmax, "
        "03 scoring functions, 04 Bahdanau translation. Self-attention: 05 self-attention, "
        "06 multi-head attention, 07 positional encoding. Transformer: 08 Transformer blocks, "
        "09 Transformer translation, which takes up the task of 04, 10 text classification, "
        "11 three modes. In use: 12 training in practice, 13 long sequences, 14 fine-tuning, "
        "15 mistakes clinic, 16 recall.",
    ),
    "soft_lookup.svg": Drawing(
        attention.soft_lookup,
        "Two look-ups. A dictionary compares the query cat with the keys dog, cat and car, gives "
        "the equal key weight 1 and the others 0, and returns chat. Attention compares a query "
        "vector with three key vectors, gives them weights of 0.18, 0.74 and 0.08, and returns "
        "the values mixed by these weights.",
    ),
    "attention_pooling.svg": Drawing(
        attention.attention_pooling,
        "Attention pooling: a score compares the query with each of three keys, softmax turns the "
        "scores into weights that sum to 1, each value is multiplied by its weight, and the sum "
        "is the output.",
    ),
    "scoring_functions.svg": Drawing(
        attention.scoring_functions,
        "Two scoring functions. Additive: query of size 20 and key of size 2 go through W_q and "
        "W_k to size n, are added, then tanh and w_v give one score. Scaled dot product: query "
        "and key of one size d are multiplied, variance d, and divided by the root of d, "
        "variance 1.",
    ),
    "scaled_dot_product_attention.svg": Drawing(
        attention.scaled_dot_product_attention,
        "Scaled dot-product attention from below: queries (B, h, Tq, d) and keys (B, h, Tk, d) "
        "are multiplied to scores (B, h, Tq, Tk), scaled by the root of d, masked if wanted, put "
        "through softmax, and multiplied with the values (B, h, Tk, d): output (B, h, Tq, d).",
    ),
    "self_attention.svg": Drawing(
        self_attention,
        "Self-attention for the output y_2 of four inputs. Left, without parameters: the dot "
        "product of x_2 with each x_j, then softmax, gives the weights w_21 to w_24; each x_j is "
        "multiplied by its weight, and the sum is y_2. Right: the same with a query q_2, and a "
        "key k_j and a value v_j of every input, made by W_q, W_k and W_v.",
    ),
    "multi_head_attention.svg": Drawing(
        heads.multi_head_attention,
        "Multi-head attention with 4 heads: W_q projects x (B, T, d_model) to the queries, whose "
        "columns are split into 4 heads (B, h, T, d_model / h). Each head attends on its own, the "
        "results are merged to (B, T, d_model) and W_o mixes them. Keys and values go the same "
        "way.",
    ),
    "masks.svg": Drawing(
        heads.masks,
        "Three masks of je suis ici <pad> <pad>, queries down and keys across. The padding mask "
        "hides the last two columns, the causal mask hides all above the diagonal, and both "
        "together leave the lower triangle without the last two columns.",
    ),
    "three_modes.svg": Drawing(
        modes.three_modes,
        "Three modes from the same parts, from below. Encoder-only: the <mask> is red goes through "
        "self-attention over all positions and a feed-forward network and gives cat. Decoder-only: "
        "<bos> the cat goes through masked self-attention and a feed-forward network and gives the "
        "cat is. Encoder-decoder: an encoder turns le chat est rouge into a memory, which gives "
        "keys and values to the cross-attention of a decoder; that stands between its masked "
        "self-attention and its feed-forward network.",
    ),
    "sequence_models.svg": Drawing(
        sequences.sequence_models,
        "Three ways from five inputs to five outputs. Convolution links neighbours: path O(n/k), "
        "cost O(k n d²). Recurrence passes from output to output: path and steps O(n), cost "
        "O(n d²). Self-attention links everything with everything: path O(1), cost O(n² d).",
    ),
    "bahdanau_step.svg": Drawing(
        sequences.bahdanau_step,
        "One step of the Bahdanau decoder. The GRU encoder's outputs h1 to h4 for i'm home . "
        "<eos> are keys and values, the decoder's last state is the query, and additive attention "
        "gives most weight to h2, home. The context is joined with the embedding of suis, goes "
        "through the GRU, and the linear layer says chez.",
    ),
    "positional_encoding.svg": Drawing(
        sequences.positional_encoding,
        "Left: the sinusoidal table of 60 positions and 32 dimensions; left columns change at "
        "every position, right ones hardly at all. Right: three pairs of columns as hands of a "
        "clock that turn once in 6, 63 and 628 positions.",
    ),
    "encoder_block.svg": Drawing(
        blocks.encoder_block,
        "Encoder block, from below: multi-head self-attention with a mask (B, 1, 1, Ts), then the "
        "feed-forward network, each with a residual connection. Post-norm has the LayerNorm after "
        "each sum, pre-norm before each sub-layer. All arrows carry (B, Ts, d_model).",
    ),
    "decoder_block.svg": Drawing(
        blocks.decoder_block,
        "Decoder block, from below: masked self-attention with the causal mask (1, 1, Tt, Tt), "
        "cross-attention whose keys and values are the encoder's memory (B, Ts, d_model), then "
        "the feed-forward network, each with a residual connection; LayerNorm after each sum "
        "(post-norm) or before each sub-layer (pre-norm). All arrows carry (B, Tt, d_model).",
    ),
    "transformer.svg": Drawing(
        architecture.architecture,
        "The Transformer with the class of every part. Left, the encoder: Embedding, "
        "PositionalEncoding, then num_encoder_layers times an EncoderBlock of MultiHeadAttention, "
        "AddNorm, PositionWiseFFN, AddNorm. Right, the decoder: the same with DecoderBlocks that "
        "also have cross-attention to the encoder's memory, then Linear to logits over the target "
        "vocabulary. A box lists the fields of TransformerConfig.",
    ),
    "sequence_classifier.svg": Drawing(
        classifier.sequence_classifier,
        "The sequence classifier, from below: the tokens not dull but funny . and one pad become "
        "vectors, word plus position, (B, T, d_model); the encoder blocks, from which the pad is "
        "hidden, give one output per token; the mean over the five real outputs (B, d_model) goes "
        "through one linear layer and log_softmax to (B, classes).",
    ),
    "long_attention.svg": Drawing(
        patterns.long_attention,
        "What ten kinds of attention compute of the map of twelve queries and keys: full, all of "
        "it; a window, a band; window and global, a band with one full row and column; the same "
        "with random keys; blocks with summaries, squares on the diagonal and one score for each "
        "other block; low rank, scores against r mixtures of the keys; kernel, features against "
        "one small matrix and no map; hashing, scattered cells of equal buckets; segments with "
        "memory, a staircase two segments wide; best k, two keys a query.",
    ),
    "memory_card.svg": Drawing(
        memory_card.memory_card,
        "The Transformer on one page: the formula softmax(Q K^T / root of d_k) V with shapes and "
        "roles; heads; positions, FFN, LayerNorm, post-norm and pre-norm; the order of modules in "
        "the encoder and decoder block; the masks of encoder-decoder, encoder-only and "
        "decoder-only; sizes: base 63 M parameters, big 214 M, 24 encoder layers 302 M; cost: "
        "2 n² d for attention, 12 n d² for the rest, equal at 3072 tokens for d = 512; remedies.",
    ),
    "decoding_cost.svg": Drawing(
        decoding_cost.decoding_cost,
        "Seconds to decode 64 sentences greedily against the number of steps, both axes "
        "logarithmic. nn.Transformer rises steepest; d2l, ours and Marian rise about as the steps "
        "do; the matrix products alone lie below all of them.",
    ),
}
