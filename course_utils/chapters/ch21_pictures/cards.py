"""The recall cards of chapter 21."""

from course_utils.models.modern.patches import VisionEncoder
from course_utils.recall.card import card
from course_utils.recall.chosen import Choice
from course_utils.recall.computed import Number


def _words(size, patch):
    return len(VisionEncoder(size, patch, 2, d_model=4, num_heads=1, num_layers=1).positions)


CARDS = [
    card(
        "words-of-a-picture", "sizes", "counting", "",
        "A picture of 32 x 32 pixels, patches of 8. How many vectors does a vision Transformer's "
        "encoder read, class token included?",
        Number(lambda: _words(32, 8),
               {16: "Sixteen patches, and the class token before them.",
                4: "Four patches a side make sixteen, and the class token comes before them.",
                5: "Patches are counted in both directions."}),
        "(32 / 8) * (32 / 8) patches and one class token.",
    ),
    card(
        "half-the-patch", "cost", "counting", "",
        "Patches of half the side: by what factor does the number of patches grow?",
        Number(lambda: (_words(32, 4) - 1) / (_words(32, 8) - 1),
               {2: "Halved in both directions.",
                16: "That is the factor of a map of weights, nearly."}),
        "Twice as many in each direction; a map of weights gets nearly 16 times as many entries.",
    ),
    card(
        "patches-by-convolution", "modules", "patches", "",
        "Which convolution does the same as cutting into patches of p pixels and one linear map?",
        Choice(["window p, stride 1", "window p, stride p", "window 1, stride p",
                "window 3, stride 1, as in a convolutional net"], "b",
               {"a": "Its windows overlap: it gives far more words.",
                "c": "It sees one pixel of each patch.",
                "d": "Its windows overlap, and they are not patches."}),
        "The window is the linear map's weight, laid out as a square; it moves by its own width.",
    ),
    card(
        "slip-of-reshape", "sizes", "patches", "",
        "A grey picture (16, 16) is reshaped into 16 \"patches\" of 16 numbers. What is row 5?",
        Choice(["patch 5", "line 5 of the picture", "column 5 of the picture"], "b",
               {"a": "A patch of 4 x 4 pixels has parts of four lines.",
                "c": "Memory runs along the lines."}),
        "reshape moves nothing; to bring squares together, axes have to be swapped in between.",
    ),
    card(
        "pictures-without-positions", "modules", "position", "",
        "A vision Transformer without positions: the patches of a picture are shuffled. What "
        "happens to its answer?",
        Choice(["nothing, up to rounding", "it gets worse", "it becomes random"], "a",
               {"b": "It never knew their order.", "c": "It never knew their order."}),
        "Attention and everything else treats the patches as a set.",
    ),
    card(
        "one-shuffle-for-all", "modules", "position", "",
        "The patches of all pictures, of training and of test, are shuffled in one and the same "
        "way. Who can tell?",
        Choice(["a vision Transformer with learned positions", "a convolutional net",
                "both", "neither"], "b",
               {"a": "It begins without knowing where a position lies, and learns what it meets.",
                "c": "The Transformer learns its positions either way.",
                "d": "The windows of a convolution run over the borders of patches."}),
        "To the encoder a place is a number in a table; the neighbourhood is not given.",
    ),
    card(
        "mean-and-class-token", "modules", "class token", "",
        "The encoder's output x is (B, 1 + N, d), class token first. Which is the mean over the "
        "patches?",
        Choice(["x.mean(1)", "x[:, 1:].mean(1)", "x[:, :-1].mean(1)", "x[:, 1:].mean(-1)"], "b",
               {"a": "The class token is in it.", "c": "The last patch is left out.",
                "d": "That averages over features."}),
        "Patches begin at 1.",
    ),
    card(
        "what-convolution-is-given", "idea", "locality", "",
        "What does a convolutional net know of pictures before it has seen one?",
        Choice(["which shapes there are", "that neighbouring pixels belong together",
                "that a pattern is the same wherever it lies", "where the object lies"], "bc",
               {"a": "It learns them.", "d": "It learns that, or averages it away."}),
        "Its window is small, and the same everywhere.",
    ),
]  # fmt: skip
