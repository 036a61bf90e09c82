"""The recall cards of chapter 09."""

import torch

from course_utils.chapters.observed import count_calls, tiny_model
from course_utils.models.masks import causal_mask
from course_utils.models.transformer import DecoderBlock
from course_utils.recall.card import card
from course_utils.recall.chosen import Choice, Keyword
from course_utils.recall.computed import Expression, Inputs, Number, Shape

_SIZES = Inputs("B Ts Tt h _half V", {"d_model": "2 * h * _half"})
_SEES = ["the whole source", "target tokens up to itself", "the whole target"]


def _ids(B, T):
    return torch.full((B, T), 1), torch.full((B,), T)


def _memory_shape(B, Ts, h, d_model, **_):
    return tuple(tiny_model(d_model, h).encode(*_ids(B, Ts)).shape)


def _cross_shape(B, Ts, Tt, h, d_model, **_):
    model = tiny_model(d_model, h)
    state = model.start(*_ids(B, Ts))
    return tuple(model.decode(_ids(B, Tt)[0], state, return_weights=True)[3][0].shape)


def _logits_shape(B, Ts, Tt, V, **_):
    model = tiny_model(vocabulary=V)
    return tuple(model.decode(_ids(B, Tt)[0], model.start(*_ids(B, Ts)))[0].shape)


def _leaks(masked):
    """Whether an earlier output of a decoder block changes when a later input does."""
    torch.manual_seed(0)
    block, x = DecoderBlock(8, 2, 16).eval(), torch.randn(1, 4, 8)
    source, later = block.project_source(torch.randn(1, 3, 8)), x.clone()
    later[0, 3] += 1
    mask = causal_mask(4) if masked else None
    before, after = (block(y, source, target_mask=mask)[0] for y in (x, later))
    return not torch.allclose(before[:, :3], after[:, :3], atol=1e-6)


def _steps_without_mask_agree():
    """Whether decoding token by token, where nothing is masked, equals one masked pass."""
    model, tokens = tiny_model(), torch.tensor([[1, 4, 5, 6]])
    state = model.start(*_ids(1, 3))
    whole, steps = model.decode(tokens, state)[0], []
    for token in tokens[0]:
        logits, state = model.decode(token.view(1, 1), state)
        steps.append(logits)
    return torch.allclose(torch.cat(steps, 1), whole, atol=1e-5)


CARDS = [
    card(
        "decoder-calls", "idea", "stopping", "002-67 C-73 002-99",
        "A translation of 12 tokens, `<eos>` counted, is decoded greedily. How often does the "
        "decoder run?",
        Number(lambda: count_calls(12)["decode"],
               {1: "That is training, where the whole target is known.",
                11: "The last run gives <eos>; it counts too.",
                13: "<bos> is given, not computed."}),
        "One run a token: generation cannot be made parallel along the sentence.",
    ),
    card(
        "encoder-calls", "idea", "cache", "002-99 002-101 002-109",
        "A translation of 12 tokens is decoded greedily. How often does the encoder run?",
        Number(lambda: count_calls(12)["encode"],
               {12: "The source does not change: its encoding is kept.",
                0: "The source must be read once."}),
        "The source is encoded once; every step of the decoder looks at the same vectors.",
    ),
    card(
        "when-the-mask-matters", "decoder", "teacher forcing",
        "002-96 002-113 002-82",
        "When would a decoder see the future if there were no causal mask?",
        Choice(["in training, where the whole target is fed in",
                "in generation, token by token", "in both"], "a",
               {"b": "There the future does not exist yet.",
                "c": "In generation the future does not exist yet."},
               lambda: "a" if _leaks(False) and _steps_without_mask_agree() else "c"),
        "Teacher forcing hands over the whole target at once; the mask makes each position predict "
        "from its own past.",
        "\"the mask ensures that generation cannot see the future\": it is needed in "
        "training; step by step there is no future to hide.",
    ),
    card(
        "purpose-of-the-causal-mask", "decoder", "mask direction",
        "002-96 002-106 002-113",
        "Which factors does a causal mask make the outputs into?",
        Choice(["P(y_i | all of y, x)", "P(y_i | y_1, ..., y_(i-1), x)", "P(y_i | x)"], "b",
               {"a": "Then the answer would be in the input.",
                "c": "What was said before counts, too."}),
        "Their product is P(y | x): that is what \"autoregressive\" means.",
    ),
    card(
        "cross-attention-roles", "decoder", "role of q, k, v",
        "002-82 002-90 002-102 002-103",
        "In cross-attention, what comes from the encoder?",
        Choice(["queries", "keys", "values"], "bc", {"a": "The decoder asks."}),
        "The target asks, the source answers.",
    ),
    card(
        "cross-attention-map", "decoder", "head layout", "002-90 002-110",
        "Source (B, Ts), target (B, Tt), h heads: the shape of the cross-attention weights?",
        Shape("(B, h, Tt, Ts)", _SIZES, _cross_shape,
              {"(B, h, Ts, Tt)": "Queries are the rows: the target asks.",
               "(B, h, Tt, Tt)": "That is the decoder's self-attention.",
               "(B, Tt, Ts)": "Each head has a map of its own."}),
        "A row for each target token, a column for each source token.",
    ),
    card(
        "table-self-attention", "decoder", "mask direction",
        "002-104 002-100 002-102",
        "In its self-attention, what does a position of the *decoder* see?",
        Choice(_SEES, "b", {"a": "Not in self-attention; cross-attention sees the source.",
                            "c": "Then it would see the word that it has to predict."},
               lambda: "c" if _leaks(True) else "b"),
        "In the encoder a position sees the whole source.",
    ),
    card(
        "table-cross-attention", "decoder", "role of q, k, v", "002-104",
        "In its cross-attention, what does a position of the decoder see?",
        Choice(_SEES, "a", {"b": "That is its self-attention.", "c": "That it never sees."}),
        "All of it at every step, padding excepted. The encoder has no cross-attention.",
    ),
    card(
        "encoder-output", "decoder", "", "002-101 002-104 002-99 002-109",
        "Source ids (B, Ts) go into the encoder. The shape of what comes out?",
        Shape("(B, Ts, d_model)", _SIZES, _memory_shape,
              {"(B, d_model)": "A vector for each token, not one for the sentence.",
               "(B, Ts, V)": "It predicts no words.",
               "(B, Tt, d_model)": "The encoder does not know the target."}),
        "One vector for each source token, made in the light of all others.",
    ),
    card(
        "decoder-output", "decoder", "", "002-104 002-103 002-99",
        "In *training*: the shape of the decoder's logits for target inputs (B, Tt) "
        "and a vocabulary of V words?",
        Shape("(B, Tt, V)", _SIZES, _logits_shape,
              {"(B, V)": "In training all positions are predicted in one pass.",
               "(B, 1, V)": "So it is in generation, one step at a time.",
               "(B, Ts, V)": "There is one prediction for each target position.",
               "(B, Tt, d_model)": "The output layer turns vectors into scores of words."}),
        "All next tokens at once.",
        "\"the decoder predicts token by token\": only in generation.",
    ),
    card(
        "encoder-in-a-sentence", "decoder", "", "002-109 002-110 002-99 002-113",
        "In one sentence, the encoder ...",
        Choice(["makes a contextual vector of each source token, by global self-attention",
                "compresses the source into one vector",
                "writes the target, token by token"], "a",
               {"b": "That was the plain RNN encoder, without attention.",
                "c": "That is the decoder."}),
        "It is there to understand the input: no token of the target is needed.",
    ),
    card(
        "decoder-in-a-sentence", "decoder", "",
        "002-109 002-110 002-99 002-103 002-113",
        "In one sentence, the decoder predicts the next token from ...",
        Choice(["the source alone", "the tokens so far alone",
                "the tokens so far, by masked self-attention, and the source, by cross-attention"],
               "c", {"a": "What was said already counts.",
                     "b": "That is a decoder-only model."}),
        "Conditional generation: what to say next, given what was asked.",
    ),
    card(
        "what-prevents-leakage", "decoder", "mask missing", "002-111 002-113",
        "What keeps the target's future from leaking into a prediction?",
        Choice(["the division of labour between encoder and decoder", "the causal mask",
                "cross-attention", "the padding mask"], "b",
               {"a": "A decoder without the mask leaks, whatever the encoder does.",
                "c": "It looks at the source.", "d": "It hides padding."},
               lambda: "b" if _leaks(False) and not _leaks(True) else "a"),
        "Take the mask away and an earlier output changes when a later input does.",
        "\"the division of labour avoids leakage\": not without the mask.",
    ),
    card(
        "without-cross-attention", "decoder", "role of q, k, v",
        "002-103 002-111",
        "A decoder's cross-attention is switched off. What can it still write?",
        Choice(["nothing", "sentences of the target language, whatever the source says",
                "a correct translation"], "b",
               {"a": "Its masked self-attention still knows what was said.",
                "c": "It no longer knows what to translate."}),
        "It is a language model then.",
    ),
    card(
        "runs-while-writing", "decoder", "cache", "002-99 002-109",
        "Writing 20 tokens: how many runs of the encoder and of the decoder? Two numbers.",
        Number(lambda: (count_calls(20)["encode"], count_calls(20)["decode"]),
               {(20, 20): "The source is encoded once.", (1, 1): "That is training.",
                (20, 1): "The other way round."}, count=2),
        "Encode once, decode in a loop.",
    ),
    card(
        "cache-and-quadratic", "cost", "cache", "002-83 002-91",
        "n tokens are decoded with a key-value cache. How many scores does one head of one layer "
        "compute in all?",
        Expression("n * (n + 1) / 2", Inputs("n"), lambda n: int(causal_mask(n).sum()), {
            "n": "Step t has t scores, one for each key in the cache.",
            "n**2": "Step t sees only t keys.",
            "n * (n - 1) / 2": "Each token also looks at itself.",
        }, ["(n² + n) / 2"]),
        "Still quadratic: the cache saves computing keys and values anew, not the scores.",
        "\"a cache takes away the n²\": it takes away repeated work.",
    ),
    card(
        "objective-of-translation", "sizes", "teacher forcing", "002-85",
        "In training the decoder reads the *true* target words, not its own guesses. The name of "
        "this?",
        Keyword("teacher forcing", ["教师强制", "强制教学"],
                {"label smoothing": "That softens the targets.",
                 "autoregression": "That is feeding its own guesses back, in generation."}),
        "So all positions can be trained at once.",
    ),
]  # fmt: skip
