"""The recall cards of chapter 02."""

import torch
import torch.nn.functional as F

from course_utils.models.attention import masked_softmax
from course_utils.models.masks import causal_mask
from course_utils.recall.card import card
from course_utils.recall.chosen import Choice, Keyword
from course_utils.recall.computed import Number


def _axis_of_ones():
    """The axis along which the weights sum to 1."""
    weights = masked_softmax(torch.randn(2, 3, 4, 5))
    return next(a for a in range(4) if torch.allclose(weights.sum(a), torch.ones(())))


def _half_precision():
    try:
        torch.zeros(1, dtype=torch.float16).masked_fill(torch.tensor([True]), -1e9)
    except RuntimeError:
        return "c"
    return "a"


CARDS = [
    card(
        "sum-of-weights", "attention", "normalisation", "002-78 002-87",
        "One sentence, 8 heads, 5 queries, 7 keys. What do all the weights sum to?",
        Number(lambda: round(float(masked_softmax(torch.randn(1, 8, 5, 7)).sum())),
               {1: "Each query has a 1 of its own to share out.", 5: "In every one of the 8 heads.",
                56: "Rows belong to queries: 8 x 5.", 8: "There are 5 queries in each head."}),
        "1 for each head and query.",
    ),
    card(
        "softmax-axis", "attention", "softmax axis", "002-78",
        "Scores are (B, h, Tq, Tk). Which axis does the softmax run over? Answer with its index.",
        Number(_axis_of_ones,
               {2: "Then the weights of one key sum to 1 over the queries.",
                -2: "Then the weights of one key sum to 1 over the queries."}, same=[-1]),
        "Over the keys: the last axis, dim=-1.",
    ),
    card(
        "mask-before-softmax", "attention", "mask timing", "002-78 C-57",
        "A key is hidden. When, and how?",
        Choice(["before the softmax: its score becomes -inf",
                "after the softmax: its weight becomes 0",
                "before the softmax: its score becomes 0"], "a",
               {"b": "Then the visible weights no longer sum to 1.",
                "c": "A score of 0 still gets weight: exp(0) = 1."}),
        "exp(-inf) = 0, and the softmax shares out the 1 among the others.",
    ),
    card(
        "minus-infinity-everywhere", "attention", "empty row", "C-57",
        "All keys of a query are hidden with -inf. What does `F.softmax` give for its weights?",
        Keyword("NaN", ["not a number", "all of them NaN", "NaN everywhere"],
                {"0": "That is what masked_softmax of this course gives; F.softmax does not.",
                 "1/n": "That is what a finite filler such as -1e9 gives."}),
        "-inf minus the maximum -inf is no number. This course's `masked_softmax` gives zeros.",
        "\"fill with -1e9, or with -∞\": the two differ in exactly this row.",
    ),
    card(
        "large-number-everywhere", "attention", "empty row", "C-57",
        "All 4 keys of a query are hidden with -1e9. What weight does `F.softmax` give each?",
        Number(lambda: F.softmax(torch.full((4,), -1e9), dim=-1)[0].item(),
               {0: "All scores are equal, so the softmax cannot tell that they were hidden."}),
        "Equal scores, equal weights: padding is looked at as if nothing had been hidden.",
        "\"hidden keys get nothing\": true as long as one key of the row is visible.",
    ),
    card(
        "half-precision-filler", "attention", "overflow", "C-57",
        "`scores.masked_fill(mask == 0, -1e9)` with scores in float16:",
        Choice(["works as in float32", "fills with -65504", "raises an error"], "c",
               {"a": "The smallest float16 is -65504.", "b": "Nothing is clipped in silence."},
               _half_precision),
        "-1e9 does not fit into float16; bfloat16 has the range of float32 and takes it.",
        "\"fill with -1e9\": not in float16, in which large models may run.",
    ),
    card(
        "true-means", "attention", "mask meaning", "002-78",
        "True in a boolean mask: what does it mean in this course (and in "
        "`F.scaled_dot_product_attention`)?",
        Choice(["may look", "must not look"], "a",
               {"b": "So it is in nn.MultiheadAttention."},
               lambda: "a" if masked_softmax(
                   torch.zeros(1, 1, 2), mask=torch.tensor([[True, False]])).flatten()[0] else "b"),
        "`nn.MultiheadAttention` has it the other way round.",
    ),
    card(
        "visible-keys", "decoder", "mask direction", "002-96 002-102",
        "Under a causal mask: how many keys may position 3 look at? (The first is position 0.)",
        Number(lambda: int(causal_mask(8)[0, 0, 3].sum()),
               {3: "Itself is visible, too: 0, 1, 2, 3.",
                5: "That would be the future of 8 tokens: the mask is the other way round."}),
        "0 to 3, itself included; the input is shifted, so \"itself\" is the word before.",
    ),
    card(
        "hidden-cells", "decoder", "off by one", "002-96",
        "How many of the 36 cells of a causal 6 x 6 map are hidden?",
        Number(lambda: int((~causal_mask(6)).sum()),
               {21: "Those are the visible ones.",
                18: "The diagonal is visible, so fewer than half are hidden."}),
        "n(n - 1) / 2: all above the diagonal.",
    ),
]  # fmt: skip
