"""The circuit of two heads that copies what came after the same word before."""

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


FIGURES = {
    "induction_circuit.svg": Drawing(
        induction_circuit,
        "Three words: house, river, and later house again, with the next word asked for. In layer "
        "0 a previous-token head at river looks at house and writes into river's place: house "
        "stood before me. In layer 1 an induction head at the second house looks for the place "
        "that holds this note, finds river, and carries it over: river comes next.",
    ),
}
