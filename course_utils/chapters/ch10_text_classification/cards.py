"""The recall cards of chapter 10."""

import torch

from course_utils.models.classifier import SequenceClassifier, masked_mean
from course_utils.models.token_encoder import TokenEncoder
from course_utils.recall.card import card
from course_utils.recall.chosen import Choice, Keyword, statement
from course_utils.recall.computed import Inputs, Number, Shape


def _classifier(classes=2, positions="none"):
    torch.manual_seed(0)
    return SequenceClassifier(
        TokenEncoder(20, d_model=8, num_heads=2, d_ff=16, num_layers=2, positions=positions),
        classes,
    ).eval()


def _order_counts(positions):
    """Whether shuffled words get other logits."""
    words, model = torch.tensor([[3, 4, 5, 6, 7]]), _classifier(positions=positions)
    return not torch.allclose(model(words), model(words[:, [4, 2, 0, 3, 1]]), atol=1e-5)


def _mean_of_three(length):
    """The mean of 6, 6 and 6, filled up to six steps with zeros."""
    x = torch.tensor([6.0, 6, 6, 0, 0, 0]).view(1, 6, 1)
    return masked_mean(x, torch.tensor([length])).item()


CARDS = [
    card(
        "logits-of-reviews", "modules", "averaging", "003-76 003-77",
        "B reviews of T words are sorted into C classes by an encoder, a mean and a linear layer. "
        "The shape of the logits?",
        Shape("(B, C)", Inputs("B T C"),
              lambda B, T, C: tuple(_classifier(C)(torch.ones(B, T, dtype=torch.long)).shape),
              {"(B, T, C)": "One label for a review, not for each word.",
               "(B, T)": "The mean takes the axis of the words away."}),
        "The mean makes one vector of many; the linear layer scores it.",
    ),
    card(
        "mean-of-real-words", "modules", "averaging", "003-77 C-125",
        "Three words have the feature 6, three steps of padding have 0. What is the mean that the "
        "classifier should use?",
        Number(lambda: _mean_of_three(3),
               {3: "That is the mean over padding, too.", 18: "That is the sum."}),
        "Divide by the number of real words; padding stays out of sum and count.",
        "\"average over the time axis\": only where all sentences have one length.",
    ),
    card(
        "shuffled-reviews", "idea", "position", "003-78",
        "True or false: an encoder without positions, followed by a mean, gives a review and its "
        "shuffled words the same logits.",
        statement(True, "The encoder moves its outputs along, and a mean has no order.",
                  lambda: not _order_counts("none")),
        "So it cannot tell \"not good but bad\" from \"not bad but good\", however long it trains.",
    ),
    card(
        "order-comes-back", "idea", "position", "003-78 003-79",
        "What must be added so that such a classifier can use the order of the words?",
        Choice(["more heads", "a second layer", "positions", "a padding mask"], "c",
               {"a": "Every head treats all places alike.",
                "b": "The outputs of the first layer are only moved along.",
                "d": "It hides padding; the real words stay a set."},
               lambda: "c" if _order_counts("learned") and not _order_counts("none") else "a"),
        "Added to the embeddings, learned or sinusoidal.",
    ),
    card(
        "many-to-one", "modules", "averaging", "003-76 003-77",
        "The step that makes one vector for the whole text out of one for each word is called ...?",
        Keyword("pooling", ["average pooling", "mean pooling", "global average pooling", "汇聚",
                            "全局平均汇聚", "池化"],
                {"padding": "That fills up short sentences.",
                 "projection": "That comes afterwards and makes the scores."}),
        "Others take the vector of a special first token, as BERT does.",
    ),
]  # fmt: skip
