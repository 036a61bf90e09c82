"""The recall cards of chapter 04."""

from course_utils.recall.card import card
from course_utils.recall.chosen import Keyword

CARDS = [
    card(
        "what-cross-attention-shows", "decoder", "", "002-90 002-110 002-103",
        "A map of cross-attention shows which source words each target word draws on. The word "
        "for such a pairing of words?",
        Keyword("alignment", ["word alignment", "soft alignment", "对齐"],
                {"attention": "It is attention; the pairing of words is meant.",
                 "translation": "The pairing of words is meant."}),
        "Nobody tells the model which words belong together; it learns that from translating.",
    ),
]  # fmt: skip
