"""Listen to attention layers at work: each number on the way from a query to its output.

Nothing is computed beside the model: what went into `attend` and what came out of it is written
down there and then, and the steps between are the layer's own functions on these tensors.
"""

import math
from contextlib import contextmanager

import torch
from torch import Tensor

from course_utils.models.attention import AdditiveAttention

ONCE_PER_LAYER = ("k", "v", "w_v")  # the same at every step of a decoder that goes step by step


@contextmanager
def recording(layers):
    """Write down what each of some attention layers does inside the `with`.

    Args:
        layers: `DotProductAttention` or `AdditiveAttention` modules.

    Yields:
        One list a layer, with the `steps_of` each of its calls.
    """
    layers = list(layers)
    calls = [[] for _ in layers]
    for layer, own in zip(layers, calls, strict=True):
        layer.attend = _listening(layer, layer.attend, own)
    try:
        yield calls
    finally:
        for layer in layers:
            del layer.attend  # the method of its class shows again


def _listening(layer, attend, calls):
    def listening(queries, keys, values, mask=None, return_weights=True):
        output, weights = attend(queries, keys, values, mask, True)
        calls.append(steps_of(layer, queries, keys, values, mask, output, weights))
        return output, weights

    return listening


def steps_of(layer, queries, keys, values, mask, output, weights) -> dict[str, Tensor]:
    """The arithmetic of one call on one sentence, without its batch axis.

    Args:
        queries, keys, values: (1, h, Tq, .), (1, h, Tk, .), (1, h, Tk, v), as `attend` gets them.
        mask: of four axes, or None.
        output, weights: (1, h, Tq, v) and (1, h, Tq, Tk), what `attend` gave back.

    Returns:
        v (h, Tk, v), output (h, Tq, v); scores, visible, exps, weights (h, Tq, Tk), where exps are
        e^(score - largest visible score of the row), 0 where hidden; peaks and totals (h, Tq), that
        largest score and the sum of the exps. Before the scores come, for a dot product: q, k
        (h, T, d) and products (h, Tq, Tk), not yet divided; for additive attention: q, k (h, T, n)
        as projected, features (h, Tq, Tk, n), their tanh, and w_v (n).
    """
    scores = layer.score(queries, keys)
    visible = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
    visible = visible.broadcast_to(scores.shape)
    masked = scores.masked_fill(~visible, -math.inf)
    peaks = masked.amax(-1)
    peaks = peaks.masked_fill(peaks.isinf(), 0.0)  # of a query that may look at nothing
    exps = (masked - peaks.unsqueeze(-1)).exp()
    before = additive if isinstance(layer, AdditiveAttention) else dot_product
    steps = {
        **before(layer, queries, keys),
        "v": values, "scores": scores, "visible": visible, "peaks": peaks, "exps": exps,
        "totals": exps.sum(-1), "weights": weights, "output": output,
    }  # fmt: skip
    return {name: x.detach().cpu() if name == "w_v" else x[0].detach().cpu()
            for name, x in steps.items()}  # fmt: skip


def dot_product(layer, queries, keys) -> dict[str, Tensor]:
    """What a dot product computes before it divides by sqrt(d)."""
    return {"q": queries, "k": keys, "products": queries @ keys.transpose(-2, -1)}


def additive(layer, queries, keys) -> dict[str, Tensor]:
    """What additive attention computes before it sums up."""
    q, k = layer.W_q(queries), layer.W_k(keys)
    features = torch.tanh(q.unsqueeze(-2) + k.unsqueeze(-3))  # (1, h, Tq, Tk, n)
    return {"q": q, "k": k, "features": features, "w_v": layer.w_v.weight[0]}


def join(calls: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Calls with one query each, one after the other, as one call with all the queries."""
    return {
        name: x if name in ONCE_PER_LAYER else torch.cat([call[name] for call in calls], dim=1)
        for name, x in calls[0].items()
    }
