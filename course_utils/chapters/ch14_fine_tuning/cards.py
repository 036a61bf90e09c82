"""The recall cards of chapter 14."""

import torch
from torch import nn

from course_utils.models.attention import MultiHeadAttention
from course_utils.models.fine_tuning import Adapter, LoRALinear, PrefixAttention
from course_utils.recall.card import card
from course_utils.recall.chosen import Choice, Keyword
from course_utils.recall.computed import Expression, Inputs, Number, Shape


def _trained(module):
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


def _first_to_move():
    """The letters of the matrices that the first update changes."""
    layer = LoRALinear(nn.Linear(5, 4), rank=2)
    layer(torch.randn(3, 5)).square().sum().backward()
    moved = [name for name in "AB" if bool(getattr(layer, name).grad.any())]
    return {("B",): "b", ("A",): "a", ("A", "B"): "c"}.get(tuple(moved), "d")


def _bytes_of_a_trained_number():
    """Weight, gradient and Adam's state of one number in float32."""
    weight = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.Adam([weight])
    weight.sum().backward()
    optimizer.step()
    state = [t for name, t in optimizer.state[weight].items() if name != "step"]
    return sum(t.numel() * t.element_size() for t in (weight, weight.grad, *state))


CARDS = [
    card(
        "lora-size", "sizes", "counting", "002-45",
        "LoRA of rank r stands beside a frozen weight of n x m. How many numbers are trained?",
        Expression("r * (n + m)", Inputs("n m r"),
                   lambda n, m, r: _trained(LoRALinear(nn.Linear(m, n, bias=False), r)),
                   {"r * n * m": "A has r rows and B has r columns: the sizes add.",
                    "n * m": "That is the frozen weight itself."}),
        "A is (r, m) and B is (n, r).",
    ),
    card(
        "lora-first-step", "idea", "neutral start", "002-45",
        "LoRA starts with A drawn at random and B = 0. Which of the two does the first update "
        "move?",
        Choice(["A", "B", "both", "neither"], "b",
               {"a": "A gets its gradient through B, which is 0.",
                "c": "A gets its gradient through B, which is 0.",
                "d": "B gets its gradient through A, which is not 0."}, _first_to_move),
        "Each gets its gradient through the other one; from the second update on both move.",
    ),
    card(
        "free-in-use", "cost", "low rank", "002-43 C-72",
        "Which of these adds no work when the tuned model is used?",
        Choice(["an adapter", "a prefix", "LoRA after merging", "a prompt"], "c",
               {"a": "It stays an extra layer.", "b": "Every query has more keys to look at.",
                "d": "All blocks work on more positions."}),
        "W + (alpha / r) B A is one matrix of the old size.",
    ),
    card(
        "adapter-in-the-way", "modules", "activation", "002-44",
        "What in an adapter keeps it from being merged into the linear layer before it?",
        Keyword("its ReLU", ["relu", "the activation", "activation function", "nonlinearity",
                             "the non-linearity", "激活函数"],
                {"residual connection": "That alone would be linear: (I + UD) W.",
                 "the bottleneck": "A product of two thin matrices can be added, as in LoRA."}),
        "Without it the adapter would be one linear map, and two linear maps are one.",
    ),
    card(
        "adapter-size", "sizes", "counting", "002-44",
        "An adapter with biases reads d = 64 features and has a bottleneck of 16. How many numbers "
        "does it train?",
        Number(lambda: _trained(Adapter(64, 16)),
               {2048: "Two biases are missing, of 16 and of 64 numbers.",
                1024: "There is a way down and a way up."}),
        "64 x 16 + 16 down, 16 x 64 + 64 up.",
    ),
    card(
        "prefix-weights", "attention", "prefix", "002-46",
        "Attention over T tokens gets a prefix of m trained keys and values. What is the shape of "
        "its weights?",
        Shape("(B, h, T, m + T)", Inputs("B h T m _d", {"_D": "h * _d"}),
              lambda B, h, T, m, _D, **_: tuple(PrefixAttention(MultiHeadAttention(_D, h), m)(
                  *[torch.randn(B, T, _D)] * 3, return_weights=True)[1].shape),
              {"(B, h, m + T, m + T)": "The prefix has keys and values, but no queries."}),
        "Only keys and values grow; there is still one row per token.",
    ),
    card(
        "bytes-while-training", "cost", "memory", "002-42",
        "In 32 bits, with Adam: how many bytes does each trained number take, its gradient and "
        "Adam's state included?",
        Number(_bytes_of_a_trained_number,
               {4: "That is the number alone.", 8: "Adam keeps two more numbers for each.",
                12: "Weight, gradient, and two running means."}),
        "4 for the weight, 4 for the gradient, 8 for the two running means.",
    ),
    card(
        "small-but-not-fast", "cost", "gradient", "002-43 C-72",
        "LoRA trains 1 % of a model's numbers. Why does an update not cost 1 %?",
        Choice(["the loss is carried back through the frozen layers",
                "the frozen weights get gradients, too",
                "Adam has to update the frozen weights"], "a",
               {"b": "Just those are left out.", "c": "It is only given what is trained."}),
        "Forward and backward pass still run through the whole model.",
    ),
]  # fmt: skip
