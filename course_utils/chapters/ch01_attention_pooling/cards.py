"""The recall cards of chapter 01."""

from course_utils.recall.card import card
from course_utils.recall.chosen import Choice

_ROLES = ["what is looked for", "what a query is compared with", "what is passed on",
          "where the token stands"]  # fmt: skip

CARDS = [
    card(
        "role-of-query", "attention", "role of q, k, v", "002-87",
        "What is a query?",
        Choice(_ROLES, "a", {"b": "That is a key.", "c": "That is a value.",
                             "d": "Positions are added to the tokens, earlier."}),
        "It asks; the keys decide who answers.",
    ),
    card(
        "role-of-key", "attention", "role of q, k, v", "002-87 C-80",
        "What is a key?",
        Choice(_ROLES, "b", {"a": "That is a query.", "c": "That is a value.",
                             "d": "A key is made from what the token says; see the correction."}),
        "How well it fits the query makes the weight of its value.",
        "\"a key is a candidate position (候选位置)\": it is content to be compared; only "
        "the positional encoding in it says where it stands.",
    ),
    card(
        "role-of-value", "attention", "role of q, k, v", "002-87",
        "What is a value?",
        Choice(_ROLES, "c", {"a": "That is a query.", "b": "That is a key.",
                             "d": "Positions are added to the tokens, earlier."}),
        "The output is a weighted mean of values.",
    ),
]  # fmt: skip
