"""Diagram of the sequence classifier, charts of the trainings of a notebook, names of places."""

import torch

from course_utils.models.classifier import SequenceClassifier
from course_utils.models.token_encoder import TokenEncoder
from course_utils.text.text import tokenize
from course_utils.viz import plot_curves
from course_utils.viz.canvas import FAINT, INK, KEY, LEARNED, RESULT, SMALL, STEP, Canvas
from course_utils.viz.drawings import Drawing


def draw_losses(losses, floor, width=25):
    """Training losses over updates, each point the mean of `width`, beside the floor without order.

    losses: positions -> one number per update.
    """
    curves, updates = {}, max(map(len, losses.values()))
    for name, values in losses.items():
        width = min(width, len(values))
        ends = list(range(width, len(values) + 1, width))
        means = [sum(values[end - width : end]) / width for end in ends]
        curves[f"positions: {name}"] = ends, means
    curves["floor without order"] = [0, updates], [floor, floor]
    plot_curves(None, curves, "updates", "training loss", ylim=(0, 0.85))


def draw_race(races, seen):
    """Accuracy over updates, then over time, for each kind of model the mean of its runs.

    races: kind -> names of runs; seen: name -> (updates, seconds, accuracy), one after another.
    """
    means = {
        kind: torch.tensor([seen[name] for name in names]).mean(0)  # (points, 3)
        for kind, names in races.items()
    }
    for axis, label in ((0, "updates"), (1, "seconds of processor time")):
        curves = {kind: (mean[:, axis], mean[:, 2]) for kind, mean in means.items()}
        plot_curves(None, curves, label, "held-out accuracy", ylim=(0.4, 1.02))


def place_names(words, reviews):
    """Number and word of each place of a review, with "etc." where other reviews have other words.

    words: of one review; reviews: others with as many tokens.
    """
    texts = [tokenize(review.text, "en") for review in reviews]
    names = []
    for place, (word, *others) in enumerate(zip(words, *texts, strict=True)):
        more = "" if set(others) <= {word} else " etc."
        names.append(f"{place} {word}{more}")
    return names


def sequence_classifier():
    """From five tokens and one pad to two logits, upwards."""
    sheet = Canvas(8, 5.2)
    xs = [1.0 + 0.95 * i for i in range(6)]
    sheet.frame(0.4, 0.75, 6.25, 3.35)
    sheet.text(6.13, 3.2, TokenEncoder.__name__, bold=True, align="right")
    blocks = sheet.box(3.375, 2.1, "num_layers × EncoderBlock, pads hidden", LEARNED, 5.5, 0.42)
    pooled = sheet.box(3.375, 3.8, "mean over the real tokens", STEP, 3.6, 0.36)
    for i, (x, word) in enumerate(zip(xs, "not dull but funny . <pad>".split(), strict=True)):
        pad = word == "<pad>"
        sheet.text(x, 0.3, word, SMALL, FAINT if pad else INK)
        vector = sheet.box(x, 1.2, f"word + {i}", KEY, 0.82, 0.34, SMALL, dashed=pad)
        output = sheet.box(x, 2.75, f"$y_{i}$", RESULT, 0.55, 0.32, dashed=pad)
        sheet.arrow((x, 0.45), vector.bottom, dashed=pad)
        sheet.arrow(vector.top, (x, blocks.bottom[1]), dashed=pad)
        sheet.arrow((x, blocks.top[1]), output.bottom, dashed=pad)
        if not pad:
            sheet.arrow(output.top, (1.85 + 0.75 * i, pooled.bottom[1]))
    head = sheet.box(3.375, 4.4, "Linear: d_model to classes", LEARNED, 2.4, 0.36)
    logits = sheet.box(3.375, 4.95, "logits", RESULT, 1.2, 0.32)
    sheet.arrow(pooled.top, head.bottom)
    sheet.arrow(head.top, logits.bottom)
    sheet.text(0.4, 4.95, SequenceClassifier.__name__, bold=True, align="left")
    for y, text in (
        (0.3, "ids (B, T)"),
        (1.2, "(B, T, d_model)"),
        (2.75, "(B, T, d_model)"),
        (3.8, "(B, d_model)"),
        (4.4, "(B, classes)"),
        (4.95, "(B, classes)"),
    ):
        sheet.text(6.45, y, text, SMALL, align="left")
    return sheet


FIGURES = {
    "sequence_classifier.svg": Drawing(
        sequence_classifier,
        "The sequence classifier, from below: the tokens not dull but funny . and one pad become "
        "vectors, word plus position, (B, T, d_model); the encoder blocks, from which the pad is "
        "hidden, give one output per token; the mean over the five real outputs (B, d_model) goes "
        "through one linear layer to logits, (B, classes).",
    ),
}
