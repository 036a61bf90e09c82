"""Diagram of the chapters, in the order in which they build on each other."""

import textwrap

from course_utils.chapters import CHAPTERS, by_part
from course_utils.viz.canvas import Canvas
from course_utils.viz.drawings import Drawing
from course_utils.viz.style import BLUE, GREEN, ORANGE, PINK, SKY, VERMILION, darker

COLOURS = (BLUE, ORANGE, GREEN, PINK, VERMILION, SKY)  # of the parts, in turn
SAME_TASK = ("04_bahdanau_translation", "09_transformer_translation")
ACROSS = 5  # chapters in a row
LEFT, STEP, DOWN, TOP, BOTTOM = 0.86, 1.57, 1.75, 1.05, 0.75  # inches


def course_map(chapters=CHAPTERS):
    """The chapters in their order, a row for each part; dashed: two that share a task."""
    parts = [
        (name, colour, members[start : start + ACROSS])
        for (name, members), colour in zip(by_part(chapters), COLOURS * len(chapters))
        for start in range(0, len(members), ACROSS)
    ]
    sheet = Canvas(8, TOP + DOWN * (len(parts) - 1) + BOTTOM)
    boxes = {}
    for row, (name, colour, members) in enumerate(parts):
        y = sheet.height - TOP - DOWN * row
        for column, chapter in enumerate(members):
            before = list(boxes.values())[-1:]
            box = boxes[chapter.name] = _box(sheet, LEFT + STEP * column, y, colour, chapter)
            for last in before:
                if column:
                    sheet.arrow(last.right, box.left)
                else:
                    _turn(sheet, last, box)
        left, top = boxes[members[0].name].at(-1, 1)
        sheet.text(left, top + 0.16, name, colour=darker(colour), align="left", bold=True)
    old, new = (boxes[name] for name in SAME_TASK)
    start, end = old.at(0.6, -1), new.at(1, 0.4)
    sheet.arrow(start, (start[0], end[1]), end, dashed=True, text="same task", side="above")
    return sheet


def _box(sheet, x, y, colour, chapter):
    box = sheet.box(x, y, colour=colour, width=1.3, height=1.15)
    sheet.text(x, y + 0.4, chapter.name[:2], bold=True)
    sheet.text(x, y + 0.07, "\n".join(textwrap.wrap(chapter.title, 16)), 9)
    sheet.text(x, y - 0.37, chapter.note, 7.5)
    return box


def _turn(sheet, last, first):
    """From the end of one row to the beginning of the next."""
    start, end = last.at(-0.4, -1), first.at(0.8, 1)
    middle = (start[1] + end[1]) / 2 + 0.02
    sheet.arrow(start, (start[0], middle), (end[0], middle), end)


def in_words(chapters=CHAPTERS):
    """What the map shows: every part with its chapters."""
    parts = [
        f"{part}: {', '.join(f'{chapter.name[:2]} {chapter.title}' for chapter in members)}."
        for part, members in by_part(chapters)
    ]
    again = " and ".join(name[:2] for name in SAME_TASK)
    return f"Map of the course. {' '.join(parts)} {again} share a task."


FIGURES = {"course_map.svg": Drawing(course_map, in_words())}
