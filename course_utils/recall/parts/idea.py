"""Cards on note 002, sections 1, 2 and 10: the idea, what runs in parallel, the three modes."""

import torch

from course_utils.decoding import greedy_decode
from course_utils.recall.chosen import Choice, Keyword, statement
from course_utils.recall.computed import Number
from course_utils.recall.model import card
from course_utils.transformer import EncoderBlock, Transformer, TransformerConfig

_MODES = ["encoder-decoder", "encoder-only", "decoder-only"]


def _layers_until_reached():
    """Layers after which the last of 50 tokens depends on the first, by the gradient."""
    x = torch.randn(1, 50, 8, generator=torch.Generator().manual_seed(0), requires_grad=True)
    y, layers = x, 0
    while True:
        y, layers = EncoderBlock(8, 2, 16)(y), layers + 1
        if torch.autograd.grad(y[0, -1, 0], x, retain_graph=True)[0][0, 0].any():
            return layers


def count_calls(max_len):
    """How often encoder and decoder run while a sentence of `max_len` tokens is written."""
    model, calls = Transformer(TransformerConfig(9, 9, d_model=8, d_ff=8)), {}
    for name in ("encode", "decode"):
        run = getattr(model, name)

        def counted(*args, _run=run, _name=name, **words):
            calls[_name] = calls.get(_name, 0) + 1
            return _run(*args, **words)

        setattr(model, name, counted)
    source = torch.tensor([[3, 4, 5]])
    greedy_decode(model, source, torch.tensor([3]), bos=1, eos=-1, max_len=max_len)
    return calls


CARDS = [
    card(
        "core-mechanism", "05_self_attention", "", "002-64 002-85",
        "Which mechanism takes the place of recurrence and convolution in the Transformer?",
        Keyword("attention", ["self-attention", "multi-head attention",
                              "multi-head self-attention", "dot-product attention",
                              "scaled dot-product attention", "注意力", "自注意力"],
                {"MLP": "The feed-forward network is there too, but no position sees another in "
                 "it."}),
        "Every position looks at every other in one step.",
    ),
    card(
        "path-length", "05_self_attention", "", "002-64 002-85 002-93",
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
        "parallel-where", "05_self_attention", "teacher forcing", "002-67 002-97 002-85 C-73",
        "What does a Transformer compute at once that a recurrent network must compute one after "
        "the other?",
        Choice(["different sentences of a batch",
                "all positions of a sentence, in training",
                "all tokens of a sentence that is being generated"], "b",
               {"a": "A recurrent network does that, too.",
                "c": "Generation stays sequential: each token needs the one before it."}),
        "In training the whole target is known, so all its positions go through at once.",
        "\"parallel across sequences (跨序列并行)\" (002-67): it is across the positions within "
        "one sequence, and only in training.",
    ),
    card(
        "decoder-calls", "09_transformer_translation", "stopping", "002-67 C-73 002-99",
        "A translation of 12 tokens, `<eos>` counted, is decoded greedily. How often does the "
        "decoder run?",
        Number(lambda: count_calls(12)["decode"],
               {1: "That is training, where the whole target is known.",
                11: "The last run gives <eos>; it counts too.",
                13: "<bos> is given, not computed."}),
        "One run a token: generation cannot be made parallel along the sentence.",
    ),
    card(
        "encoder-calls", "09_transformer_translation", "cache", "002-99 002-101 002-109",
        "A translation of 12 tokens is decoded greedily. How often does the encoder run?",
        Number(lambda: count_calls(12)["encode"],
               {12: "The source does not change: its encoding is kept.",
                0: "The source must be read once."}),
        "The source is encoded once; every step of the decoder looks at the same vectors.",
    ),
    card(
        "largest-advantage", "13_long_sequences", "", "002-97 002-67 002-68",
        "Note 002 names one greatest advantage and one greatest bottleneck. Which two?",
        Choice(["training in parallel",
                "few parameters",
                "attention that costs O(n²) in the length n",
                "no need for positions"], "ac",
               {"b": "A Transformer has many.",
                "d": "Self-attention alone sees no order, so positions must be added."}),
        "Both come from the same thing: all pairs of positions are compared at once.",
    ),
    card(
        "mode-of-bert", "11_three_modes", "", "002-85 002-92",
        "Which of the three modes is BERT, made for understanding: classification, retrieval, "
        "question answering?",
        Choice(_MODES, "b", {"c": "GPT is decoder-only.", "a": "T5 is encoder-decoder."}),
        "It reads the whole text at once, so every token sees both sides.",
    ),
    card(
        "mode-of-gpt", "11_three_modes", "", "002-85 002-92",
        "Which of the three modes is GPT, made to continue a text?",
        Choice(_MODES, "c", {"b": "BERT is encoder-only.", "a": "T5 is encoder-decoder."}),
        "There is no source of its own: prompt and answer are one sequence, read left to right.",
    ),
    card(
        "mode-of-translation", "11_three_modes", "", "002-85 002-92",
        "Which of the three modes has the original Transformer, and T5: translation, summaries?",
        Choice(_MODES, "a", {"b": "BERT is encoder-only.", "c": "GPT is decoder-only."}),
        "One stack reads the source, the other writes the target and looks at the source.",
    ),
    card(
        "modes-without-cross-attention", "11_three_modes", "role of q, k, v", "002-85 002-90",
        "Which modes have no cross-attention?",
        Choice(_MODES, "bc", {"a": "Here the decoder has to look at the encoder's output."}),
        "Cross-attention joins two stacks; with one stack there is nothing to join.",
    ),
    card(
        "decoder-only-mask", "11_three_modes", "mask missing", "002-85 002-96",
        "A decoder-only model is trained on one text without padding. Which mask does it need?",
        Choice(["none", "a mask on a random 15 % of the words", "a causal mask"], "c",
               {"a": "Then it would see the token that it has to predict.",
                "b": "Hiding words from the input is BERT's training, not an attention mask."}),
        "\"Decoder-only\" means: one stack of encoder blocks under a causal mask.",
    ),
    card(
        "bert-sees-both-sides", "11_three_modes", "mask direction", "002-85",
        "True or false: BERT needs no causal mask.",
        statement(True, "It fills gaps, so it may and should look at both sides."),
        "Only padding is hidden from it.",
    ),
]  # fmt: skip
