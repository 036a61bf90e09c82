"""The recall cards of chapter 11."""

from course_utils.recall.card import card
from course_utils.recall.chosen import Choice, statement

_MODES = ["encoder-decoder", "encoder-only", "decoder-only"]

CARDS = [
    card(
        "mode-of-bert", "idea", "", "002-85 002-92",
        "Which of the three modes is BERT, made for understanding: classification, retrieval, "
        "question answering?",
        Choice(_MODES, "b", {"c": "GPT is decoder-only.", "a": "T5 is encoder-decoder."}),
        "It reads the whole text at once, so every token sees both sides.",
    ),
    card(
        "mode-of-gpt", "idea", "", "002-85 002-92",
        "Which of the three modes is GPT, made to continue a text?",
        Choice(_MODES, "c", {"b": "BERT is encoder-only.", "a": "T5 is encoder-decoder."}),
        "There is no source of its own: prompt and answer are one sequence, read left to right.",
    ),
    card(
        "mode-of-translation", "idea", "", "002-85 002-92",
        "Which of the three modes has the original Transformer, and T5: translation, summaries?",
        Choice(_MODES, "a", {"b": "BERT is encoder-only.", "c": "GPT is decoder-only."}),
        "One stack reads the source, the other writes the target and looks at the source.",
    ),
    card(
        "modes-without-cross-attention", "idea", "role of q, k, v", "002-85 002-90",
        "Which modes have no cross-attention?",
        Choice(_MODES, "bc", {"a": "Here the decoder has to look at the encoder's output."}),
        "Cross-attention joins two stacks; with one stack there is nothing to join.",
    ),
    card(
        "decoder-only-mask", "idea", "mask missing", "002-85 002-96",
        "A decoder-only model is trained on one text without padding. Which mask does it need?",
        Choice(["none", "a mask on a random 15 % of the words", "a causal mask"], "c",
               {"a": "Then it would see the token that it has to predict.",
                "b": "Hiding words from the input is BERT's training, not an attention mask."}),
        "\"Decoder-only\" means: one stack of encoder blocks under a causal mask.",
    ),
    card(
        "bert-sees-both-sides", "idea", "mask direction", "002-85",
        "True or false: BERT needs no causal mask.",
        statement(True, "It fills gaps, so it may and should look at both sides."),
        "Only padding is hidden from it.",
    ),
    card(
        "objective-of-bert", "sizes", "", "002-85",
        "What does BERT learn to predict?",
        Choice(["the next token", "hidden tokens of its input", "a translation"], "b",
               {"a": "That is GPT.", "c": "That is T5, or the original."}),
        "Masked language modelling; the first BERT also guessed whether two sentences belong "
        "together.",
    ),
    card(
        "objective-of-gpt", "sizes", "prefix", "002-85",
        "What does GPT learn to predict?",
        Choice(["the next token", "hidden tokens of its input", "a translation"], "a",
               {"b": "That is BERT.", "c": "That is T5, or the original."}),
        "Causal language modelling: every position predicts the token after it.",
    ),
]  # fmt: skip
