"""What the cells of chapter 13 only call: heads of the translator, two tables, a race."""

import torch
import torch.nn.functional as F

from course_utils.models.long_attention import (
    RandomFeatures,
    block_summary_attention,
    linear_attention,
    low_rank_attention,
    lsh_attention,
    mean_pooling,
    multiply_adds,
    seconds,
    window_attention,
)
from course_utils.training.translation import load_translator


class Reading:
    """What the heads of the shipped translator do with a sentence and its translation.

    Attributes:
        words: the pieces at the rows of a map, by family ("encoder", "decoder").
        maps: the model's own weights, by family (layers, heads, T, T).
    """

    def __init__(self, english, french):
        real, self._out = load_translator("fra-eng"), {}
        families = {
            "encoder": [block.attention for block in real.model.encoder],
            "decoder": [block.self_attention for block in real.model.decoder],
        }
        for family, layers in families.items():
            for number, attention in enumerate(layers):
                for role in ("W_q", "W_k"):
                    getattr(attention, role).register_forward_hook(
                        self._note((family, number, role))
                    )
        self.num_heads = families["encoder"][0].num_heads
        self.maps, read, said = real.attention_maps(english, french)
        self.words = {"encoder": read, "decoder": ["<bos>", *said[:-1]]}

    def _note(self, key):
        def hook(module, inputs, output):
            self._out[key] = output.detach().float()

        return hook

    def head(self, family, layer, number):
        """Queries and keys (1, 1, T, d_head) of one head, and what it may look at (T, T)."""
        q, k = (
            self._out[family, layer, role]
            .unflatten(-1, (self.num_heads, -1))
            .transpose(1, 2)[:, number, None]
            for role in ("W_q", "W_k")
        )
        may = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool)
        return q, k, may.tril() if family == "decoder" else may


def print_board(board):
    """A row a method, a column a head: the share of the weight that it misplaces."""
    heads = list(next(iter(board.values())))
    print(f"{'misplaced':24}", *[f"{head:>5}" for head in heads])
    for name, lost in board.items():
        cells = [f"{lost[head]:5.2f}" if head in lost else "    -" for head in heads]
        print(f"{name:24}", *cells)


def race(written_out, n, r, d):
    """Seven ways to attend: multiply-adds of the method, those of our code, milliseconds.

    written_out: the first of them, a function of q, k and v. n tokens of size d; windows reach r
    tokens, mixtures are r, blocks r long, random features and buckets 2 r.
    """
    E, turn, features = mean_pooling(r, n), torch.randn(d, n // (4 * r)), RandomFeatures(d, 2 * r)
    contest = {
        "written out": (2 * n * n * d, written_out),
        "fused": (2 * n * n * d, F.scaled_dot_product_attention),
        "window": (2 * n * (2 * r + 1) * d, lambda q, k, v: window_attention(q, k, v, r)),
        "summaries": (
            2 * n * (r + n // r - 1) * d + n * d,
            lambda q, k, v: block_summary_attention(q, k, v, r),
        ),
        "low rank": (4 * n * r * d, lambda q, k, v: low_rank_attention(q, k, v, E)),
        "random features": (4 * n * 2 * r * d, lambda q, k, v: linear_attention(q, k, v, features)),
        "hashing": (2 * n * 2 * r * d, lambda q, k, v: lsh_attention(q, v, turn, 2 * r)),
    }
    x = [torch.randn(1, 1, n, d) for _ in range(3)]
    return {
        name: (needed, multiply_adds(f, *x), 1e3 * seconds(f, *x))
        for name, (needed, f) in contest.items()
    }
