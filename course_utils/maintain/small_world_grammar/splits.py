"""Which split a sentence is drawn for: a stable rule, whatever size or seed is asked for."""

from __future__ import annotations

import zlib

SPLITS = ("train", "random", "compositional")

# Words and patterns that never stand together in training, in whatever form: the compositional
# split. Each of them is common in training with others. A pattern is a construction or a tense.
HELD_OUT = {
    # a verb, and its object or place
    "eat": ("cheese", "tomato"),
    "drink": ("tea",),
    "buy": ("dress", "piano"),
    "read": ("letter",),
    "see": ("horse",),
    "sell": ("car",),
    "lose": ("umbrella",),
    "take": ("train",),
    "wear": ("coat",),
    "wash": ("cup",),
    "open": ("window",),
    "work": ("at home",),
    "live": ("in Japan",),
    "stay": ("in London",),
    # an adjective and its noun
    "red": ("car", "bag"),
    "old": ("house",),
    "beautiful": ("city",),
    "expensive": ("watch",),
    "cold": ("soup",),
    "French": ("movie",),
    "small": ("table",),
    # a tense, or a construction, and a word
    "going to": ("visit", "call"),
    "want to": ("help",),
    "can": ("swim",),
    "past": ("tennis",),
    "past event": ("drink",),
    "past motion": ("to the beach",),
    "negation": ("walk",),
    "reflexive": ("going to",),
    "likes": ("dance",),
    "polite wish": ("coffee",),
    "giving": ("flower",),
    "quantity": ("milk",),
    "feelings": ("hungry",),
    "there is": ("key",),
    "for ten years": ("play",),
    "comparing people": ("tall",),
    "exclamation": ("garden",),
    "command": ("close",),
    "suggestion": ("drink",),
    "yes no question": ("dance",),
    "yes no be question": ("tired",),
    "which question": ("book",),
    "how many question": ("apple",),
    "while clauses": ("sleep",),
    "because": ("thirsty",),
    "if": ("snow",),
    "when": ("rain",),
    "relative subject": ("girl",),
}

_ONE_IN = 15  # of the other sentences, those that the random split takes


def split_of(source: str, marks: frozenset[str]) -> str:
    """The split of a sentence, from its text and from the words and patterns it is made of."""
    if any(not marks.isdisjoint(HELD_OUT[mark]) for mark in marks if mark in HELD_OUT):
        return "compositional"
    held_out = zlib.crc32(source.encode("utf-8")) % _ONE_IN == 0
    return "random" if held_out else "train"
