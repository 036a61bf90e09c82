"""The recall cards of chapter 17."""

import torch
from torch import nn

from course_utils.models.modern.block import DecoderConfig
from course_utils.models.modern.decoder_only import cache_bytes
from course_utils.models.modern.experts import route
from course_utils.models.modern.feed_forward import gated_size
from course_utils.models.modern.norms import RMSNorm
from course_utils.recall.card import card
from course_utils.recall.chosen import Choice, Keyword
from course_utils.recall.computed import Number


def _after_rms():
    return RMSNorm(2, eps=0.0)(torch.tensor([3.0, 4.0])).norm().item() ** 2


def _even_balance():
    """Eight tokens, four experts, each chosen twice as first and twice as second, all sure."""
    logits = torch.full((4, 4), -30.0)
    for token in range(4):
        logits[token, token] = logits[token, (token + 1) % 4] = 0.0
    return round(route(logits, 2).balance_loss().item(), 4)


CARDS = [
    card(
        "rms-norm-leaves-out", "block", "norm statistics", "",
        "RMSNorm beside LayerNorm: what is left out?",
        Choice(["the division by the spread", "the mean and the shift β", "the scale γ"], "b",
               {"a": "The division is what RMSNorm keeps.",
                "c": "γ, one number a feature, stays."},
               lambda: "b" if len(list(RMSNorm(4).parameters())) == 1
               and len(list(nn.LayerNorm(4).parameters())) == 2 else "a"),
        "x / sqrt(mean(x²) + ε) · γ: nothing is subtracted, nothing added.",
    ),
    card(
        "rms-norm-length", "block", "norm statistics", "",
        "RMSNorm (weights 1, ε = 0) reads (3, 4). What is the sum of the squares of what comes "
        "out?",
        Number(_after_rms,
               {1: "The *mean* of the squares becomes 1, not their sum.",
                25: "That is the sum of the squares before."}),
        "d: the mean of the squares becomes 1, so each vector has the length of the root of d.",
    ),
    card(
        "swiglu-width", "block", "counting", "",
        "A plain feed-forward network has d_ff = 1536. Which hidden size gives SwiGLU as many "
        "weights?",
        Number(lambda: gated_size(1536),
               {1536: "Three matrices of that size weigh half as much again as two.",
                768: "2/3, not 1/2: three matrices instead of two.",
                512: "3 matrices of 2/3 weigh what 2 weigh; 1/3 is too little."}),
        "Two thirds: 3 · 2/3 = 2.",
    ),
    card(
        "what-rotary-turns", "modules", "role of q, k, v", "",
        "What do rotary positions turn?",
        Choice(["queries, keys and values", "queries and keys", "the embeddings, once"], "b",
               {"a": "Values carry what is said; they are not turned.",
                "c": "Embeddings are left alone; each attention turns anew."}),
        "Queries and keys, in every attention, just before the scores.",
    ),
    card(
        "cached-rotary-keys", "decoder", "cache", "",
        "A cache holds keys that were turned when stored. A new token comes. What must be turned?",
        Choice(["its query and key", "all keys", "its query only"], "a",
               {"b": "Cached keys keep the position that they have.",
                "c": "Its own key is not turned yet, either."}),
        "Only what is new: its query and its key, to its position.",
    ),
    card(
        "grouped-cache", "attention", "counting", "",
        "32 query heads, 8 key heads. By which factor is the cache smaller than with 32?",
        Number(lambda: cache_bytes(DecoderConfig(9, 64, 32), 5)
               / cache_bytes(DecoderConfig(9, 64, 32, 8), 5),
               {8: "8 are left of 32.", 24: "Divide, do not subtract."}),
        "h / h_kv = 4.",
    ),
    card(
        "which-key-head", "attention", "head layout", "",
        "8 query heads share 2 key heads. Which key head does query head 3 read? (Heads count "
        "from 0.)",
        Number(lambda: torch.arange(2).repeat_interleave(4)[3].item(),
               {1: "3 mod 2 would be tiling; groups are neighbours: 0 to 3, 4 to 7.",
                3: "There are only two: 0 and 1."}),
        "i // (h / h_kv): heads 0 to 3 read key head 0.",
    ),
    card(
        "experts-work", "block", "counting", "",
        "Eight experts, two for each token, each half as wide as the plain network. How many times "
        "its weights do they have together?",
        Number(lambda: 8 * 0.5,
               {8: "Each is half as wide.", 1: "That is the work, not the weights.",
                2: "All eight have weights, used or not."}),
        "4 times the weights, for the work of one.",
    ),
    card(
        "balance-when-even", "block", "averaging", "",
        "Four experts get even loads and even mean probabilities. What is the balance loss, "
        "E · Σ load · probability?",
        Number(_even_balance,
               {0.25: "Times E = 4.", 0: "It is smallest at 1, not at 0.",
                4: "Each product is 1/16, and there are four."}),
        "1, whatever E is.",
    ),
    card(
        "router", "block", "counting", "",
        "A mixture of experts: what is the small linear layer called that chooses experts for a "
        "token?",
        Keyword("router", ["the router", "gating network", "gate"],
                {"expert": "The experts are what is chosen.",
                 "attention": "Attention chooses tokens; here a network is chosen."}),
        "The router, in older papers the gating network: a softmax over the experts, the best k.",
    ),
]  # fmt: skip
