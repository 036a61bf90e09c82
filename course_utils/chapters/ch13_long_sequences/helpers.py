"""What the cells of chapter 13 only call: heads of the translator, a table, a race."""

import torch
import torch.nn.functional as F

from course_utils.models.long_attention import (
    elu_features,
    linear_attention,
    low_rank_attention,
    mean_pooling,
    multiply_adds,
    seconds,
    window_attention,
    window_mask,
)
from course_utils.training.translation import load_translator


class Reading:
    """What the heads of the shipped translator do with a sentence and its translation.

    Attributes:
        words: the pieces at the rows of a map, by family ("encoder", "decoder").
        maps: the model's own weights, by family (layers, heads, T, T).
    """

    def __init__(self, english, french):
        self._real, self._out = load_translator("fra-eng"), {}
        families = {
            "encoder": [block.attention for block in self._real.model.encoder],
            "decoder": [block.self_attention for block in self._real.model.decoder],
        }
        hooks = [
            getattr(attention, role).register_forward_hook(self._note((family, number, role)))
            for family, layers in families.items()
            for number, attention in enumerate(layers)
            for role in ("W_q", "W_k")
        ]
        self.num_heads = families["encoder"][0].num_heads
        self.maps, read, said = self._real.attention_maps(english, french)
        self.words = {"encoder": read, "decoder": ["<bos>", *said[:-1]]}
        for hook in hooks:
            hook.remove()

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

    def length(self, sentence):
        """How many keys the encoder has for it: its pieces, and <eos>."""
        return len(self._real.source.encode(sentence)) + 1

    def translate(self, sentence, radius=None):
        """Its translation; with a radius, no head of the encoder looks further on either side."""

        def narrow(module, inputs):
            queries, keys, values, mask = inputs
            near = window_mask(queries.shape[1], radius)
            return queries, keys, values, near if mask is None else mask & near

        layers = () if radius is None else self._real.model.encoder
        hooks = [layer.attention.register_forward_pre_hook(narrow) for layer in layers]
        (said,) = self._real.translate([sentence])
        for hook in hooks:
            hook.remove()
        return said


def print_board(board, new=None):
    """A row a method, a column a head: the share of the weight that it misplaces.

    new: print only the first row, which all have to beat, and the `new` last ones.
    """
    names, heads = list(board), list(next(iter(board.values())))
    print(f"{'misplaced':24}", *[f"{head:>5}" for head in heads])
    for name in names if new is None else [names[0], *names[1:][-new:]]:
        cells = [f"{board[name][head]:5.2f}" if head in board[name] else "    -" for head in heads]
        print(f"{name:24}", *cells)


def race(written_out, n, r, d):
    """Print of five ways to attend: multiply-adds of the method, those of our code, milliseconds.

    written_out: the first of them, a function of q, k and v; n tokens of size d. torch's counter
    does not look into the fused kernel.
    """
    E = mean_pooling(r, n)
    contest = {
        "written out": (2 * n * n * d, written_out),
        "fused": (2 * n * n * d, F.scaled_dot_product_attention),
        f"window, {r} keys on each side": (
            2 * n * (2 * r + 1) * d,
            lambda q, k, v: window_attention(q, k, v, r),
        ),
        f"low rank, {r} mixtures": (4 * n * r * d, lambda q, k, v: low_rank_attention(q, k, v, E)),
        "kernel, elu + 1": (
            2 * n * d * d,
            lambda q, k, v: linear_attention(q, k, v, elu_features),
        ),
    }
    x = [torch.randn(1, 1, n, d) for _ in range(3)]
    for name, (needed, f) in contest.items():
        ours = multiply_adds(f, *x)
        counted = f"{ours / 1e6:6.1f}" if ours else "not counted"
        time = 1e3 * seconds(f, *x)
        print(f"{name:29} needs {needed / 1e6:5.1f} million, ours {counted}, {time:5.1f} ms")
