"""The recall cards of chapter 18."""

import math

import torch

from course_utils.models.modern.block import DecoderConfig
from course_utils.models.modern.decoder_only import cache_bytes
from course_utils.models.modern.traffic import plain_traffic, tiled_traffic
from course_utils.recall.card import card
from course_utils.recall.chosen import Choice
from course_utils.recall.computed import Number
from course_utils.training.speculative import expected_tokens, overlap

CARDS = [
    card(
        "running-sum", "attention", "state", "",
        "A softmax in one pass: the running sum is 3 and the maximum rises by log(2). What does "
        "the sum become, before the new score is added?",
        Number(lambda: 3 * math.exp(-math.log(2)),
               {6: "From a higher maximum all that was summed looks smaller.",
                3: "It was measured from the old maximum and has to shrink."}, within=1e-6,
               shown="1.5"),
        "It shrinks by exp(old - new), here a half.",
    ),
    card(
        "tiles-save", "cost", "memory", "",
        "Attention in tiles, forward pass: what does it save?",
        Choice(["multiply-adds", "the table of weights, and its way to memory and back",
                "keys and values"], "b",
               {"a": "All scores are computed, exactly as many as before.",
                "c": "They are read, even several times."}),
        "All n x n scores are computed; a tile at a time is held.",
    ),
    card(
        "one-number-a-query", "cost", "gradient", "",
        "Besides its inputs and its output, how many numbers a query does attention in tiles save "
        "for the backward pass?",
        Number(lambda: 1, {2: "Maximum and sum make one number: maximum + log(sum)."}),
        "The log-sum-exp: exp(score - log-sum-exp) is the weight again.",
    ),
    card(
        "traffic-doubles", "cost", "memory", "",
        "The text doubles from 2048 to 4096 tokens, d = 64. By what factor do the bytes that plain "
        "attention moves grow? (To the nearest whole number.)",
        Number(lambda: round(plain_traffic(4096, 4096, 64).total
                             / plain_traffic(2048, 2048, 64).total),
               {2: "The table of scores has n x n entries."}),
        "The table dominates, and it grows with the square of n.",
    ),
    card(
        "twice-the-tile", "cost", "memory", "",
        "Tiles grow from 64 to 128 queries and keys. By what factor does the reading of keys and "
        "values shrink?",
        Number(lambda: (tiled_traffic(1024, 1024, 64, 64).loaded - 1024 * 64 * 4)
               / (tiled_traffic(1024, 1024, 64, 128).loaded - 1024 * 64 * 4),
               {4: "They are read once for each tile of queries, and there are half as many."}),
        "Keys and values are read once for every tile of queries.",
    ),
    card(
        "cache-in-bytes", "decoder", "cache", "",
        "4 layers, 4 heads of size 16, numbers of 4 bytes. How many bytes does the key-value cache "
        "grow by with each token?",
        Number(lambda: cache_bytes(DecoderConfig(10, d_model=64, num_heads=4, num_layers=4), 1),
               {1024: "Keys and values: twice as much.",
                512: "That is one layer.", 4096: "That is twice too much."}),
        "2 · layers · heads · size · bytes a number.",
    ),
    card(
        "page-table", "decoder", "cache", "",
        "A key-value cache in pages: what does the page table of a text hold?",
        Choice(["keys and values", "numbers of pages, in the order of the text",
                "the lengths of all texts"], "b",
               {"a": "Those stand in the pages.", "c": "Each text knows its own length."}),
        "So two texts with the same beginning can name the same pages.",
    ),
    card(
        "kept-probability", "decoder", "sampling", "",
        "p = (0.5, 0.3, 0.2), q = (0.2, 0.2, 0.6). With what probability is a token that was "
        "drafted from q kept?",
        Number(lambda: float(overlap(torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.2, 0.6]))),
               {0.4: "That is the probability that it is replaced."}, within=1e-3, shown="0.6"),
        "The sum of min(p, q), token by token.",
    ),
    card(
        "after-a-rejection", "decoder", "sampling", "",
        "A drafted token was rejected. From what is its replacement drawn?",
        Choice(["from p", "from q", "from max(0, p - q), divided by its sum"], "c",
               {"a": "Then tokens with p below q come too often.",
                "b": "That is the draft again."}),
        "What the draft gave already, min(p, q), plus what is missing makes p.",
    ),
    card(
        "tokens-a-round", "decoder", "counting", "",
        "Each drafted token is kept with probability 0.5, and 2 are drafted. How many tokens does "
        "a step of the large model add, on average?",
        Number(lambda: expected_tokens(0.5, 2),
               {2: "The second is kept only if the first was.",
                0.75: "One more is always added.", 1: "One more is always added."}),
        "1 + 0.5 + 0.25.",
    ),
]  # fmt: skip
