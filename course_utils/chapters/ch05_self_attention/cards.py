"""The recall cards of chapter 05."""

import torch

from course_utils.models.transformer import EncoderBlock
from course_utils.recall.card import card
from course_utils.recall.chosen import Choice, Keyword
from course_utils.recall.computed import Number


def _layers_until_reached():
    """Layers after which the last of 50 tokens depends on the first, by the gradient."""
    x = torch.randn(1, 50, 8, generator=torch.Generator().manual_seed(0), requires_grad=True)
    y, layers = x, 0
    while True:
        y, layers = EncoderBlock(8, 2, 16)(y), layers + 1
        if torch.autograd.grad(y[0, -1, 0], x, retain_graph=True)[0][0, 0].any():
            return layers


CARDS = [
    card(
        "core-mechanism", "idea", "", "002-64 002-85",
        "Which mechanism takes the place of recurrence and convolution in the Transformer?",
        Keyword("attention", ["self-attention", "multi-head attention",
                              "multi-head self-attention", "dot-product attention",
                              "scaled dot-product attention", "注意力", "自注意力"],
                {"MLP": "The feed-forward network is there too, but no position sees another in "
                 "it."}),
        "Every position looks at every other in one step.",
    ),
    card(
        "path-length", "idea", "", "002-64 002-85 002-93",
        "A sentence has 50 tokens. Through how many layers of self-attention must what the first "
        "token says pass, at least, until it is in the vector of the last one?",
        Number(_layers_until_reached,
               {49: "That is the path in a recurrence, from step to step.",
                50: "That is the path in a recurrence, from step to step.",
                0: "The vectors must meet at least once."}),
        "Any two positions are one layer apart, however long the sentence is: this is what "
        "\"direct\" means.",
    ),
    card(
        "parallel-where", "idea", "teacher forcing", "002-67 002-97 002-85 C-73",
        "What does a Transformer compute at once that a recurrent network must compute one after "
        "the other?",
        Choice(["different sentences of a batch",
                "all positions of a sentence that is known",
                "all tokens of a sentence that is being generated"], "b",
               {"a": "A recurrent network does that, too.",
                "c": "Generation stays sequential: each token needs the one before it."}),
        "In training the whole target is known, so all its positions go through at once; so do "
        "those of a source sentence or a prompt, at any time.",
        "\"parallel across sequences (跨序列并行)\": it is across the positions within one "
        "sequence, as far as they are known.",
    ),
]  # fmt: skip
