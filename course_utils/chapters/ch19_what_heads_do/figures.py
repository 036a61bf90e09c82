"""The circuit of two heads, the curves of the copiers, and words made of a translator's pieces."""

import torch
import torch.nn.functional as F

from course_utils.text.text import tokenize
from course_utils.viz import plot_curves
from course_utils.viz.canvas import FAINT, KEY, QUERY, RESULT, SMALL, VALUE, Canvas
from course_utils.viz.drawings import Drawing


def induction_circuit():
    """Words at the bottom, the stream above them, layer by layer."""
    sheet = Canvas(8, 3.5)
    places = {"house": 1.9, "river": 3.5, "…": 4.8, "house ": 6.1}
    for word, x in places.items():
        if word == "…":
            sheet.text(x, 0.4, word)
            continue
        colour = VALUE if word == "river" else QUERY
        bottom = sheet.box(x, 0.4, word.strip(), colour, 1.0, 0.38)
        if x > 1.9:  # what becomes of the first house is not shown
            sheet.arrow(bottom.top, (x, 1.42), colour=FAINT, head=False)
    for y, name in ((0.95, "layer 0"), (2.35, "layer 1")):
        sheet.text(0.6, y, name, SMALL, FAINT)
    note = sheet.box(3.5, 1.65, "house stood\nbefore me", KEY, 1.25, 0.46, SMALL)
    sheet.arrow((1.9, 0.59), (1.9, 1.65), note.left)
    sheet.text(1.8, 1.3, "previous-token\nhead", SMALL, align="right")
    asks = sheet.box(6.1, 1.65, "I am house: who has\nthat note?", QUERY, 1.75, 0.46, SMALL)
    answer = sheet.box(6.1, 2.95, "river", RESULT, 1.0, 0.38)
    sheet.arrow(asks.top, answer.bottom)
    sheet.arrow(note.top, (3.5, 2.35), (6.1, 2.35), (6.1, 2.72), head=False)
    sheet.text(4.8, 2.53, "induction head carries river", SMALL)
    sheet.text(7.05, 2.95, "comes next", SMALL, FAINT)
    return sheet


def draw_curves(runs, middle, over=10):
    """Loss on repeated words of each run, the mean of some batches, beside that by place alone.

    runs: {(layers, seed): (model, curve)} with curve (updates, 2), repeated words first.
    """
    smooth = {}
    for (layers, seed), (_, curve) in sorted(runs.items()):
        name = f"{layers} layer{'s' * (layers > 1)}, seed {seed}"
        smooth[name] = curve[:, 0].unfold(0, min(over, len(curve)), 1).mean(1)
    shown = len(smooth[name])
    updates = len(curve) - torch.arange(shown).flip(0)
    smooth["by place alone"] = torch.full((shown,), middle)
    return plot_curves(updates, smooth, "updates", "loss on repeated words",
                       f"mean of the last {over} batches", figsize=(8, 4.2))  # fmt: skip


def by_words(translator, pair):
    """How pieces make words, and which words are aligned; <eos> counts as a word.

    Returns the English and the French words, (pieces, words) of 0 and 1 for both, and gold
    (French, English).
    """
    english, french = tokenize(pair.source, "en"), tokenize(pair.target, "fr")
    of_source = _word_of(translator.source.tokens(pair.source), english)
    of_target = _word_of(translator.target.tokens(pair.target), french)
    gold = torch.zeros(len(french) + 1, len(english) + 1, dtype=torch.bool)
    for s, t in pair.alignment:
        gold[t, s] = True
    return [*english, "<eos>"], [*french, "<eos>"], of_source, of_target, gold


def _word_of(pieces, sentence):
    """(pieces + 1, words + 1): 1 where a piece belongs to a word; <eos> comes behind all words."""
    at, place, begun = [], 0, ""
    for piece in pieces:
        at.append(place)
        begun += piece.replace("·", "").lower()
        if begun == sentence[place]:
            place, begun = place + 1, ""
    return F.one_hot(torch.tensor([*at, len(sentence)])).double()


FIGURES = {
    "induction_circuit.svg": Drawing(
        induction_circuit,
        "In layer 0 a head at river looks back at house and notes: house stood before me. In "
        "layer 1 a head at the second house finds this note and carries river over.",
    ),
}
