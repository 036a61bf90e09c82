"""Diagram of attention in tiles: which tile is worked on, what is carried, what is kept."""

from course_utils.viz.canvas import FAINT, KEY, QUERY, SMALL, VALUE, WEIGHT, Canvas, tint
from course_utils.viz.drawings import Drawing

_TILES, _SIDE = 5, 0.5  # tiles a row, and inches
_ROW, _COLUMN = 3, 2  # the tile in work
_NOTHING = "#F2F2F2"


def tiles_of_attention():
    """The table as a grid of tiles, which is never held, and the running results beside it."""
    sheet = Canvas(8, 3.9)
    left, top = 1.35, 3.0
    grid = sheet.cells(left, top, [[_colour(r, c) for c in range(_TILES)] for r in range(_TILES)],
                       _SIDE)  # fmt: skip
    keys = sheet.cells(left, top + 0.4, [[_part(KEY, c == _COLUMN) for c in range(_TILES)]],
                       _SIDE, 0.28)  # fmt: skip
    sheet.text(keys.x, keys.y + 0.3, "keys and values, a tile at a time", SMALL)
    queries = sheet.cells(left - 0.4, top, [[_part(QUERY, r == _ROW)] for r in range(_TILES)],
                          0.28, _SIDE)  # fmt: skip
    sheet.text(queries.x - 0.32, queries.y, "queries", SMALL, rotation=90)
    sheet.text(grid.x, 0.26, "the n × n table: never held", SMALL, FAINT)

    y = top - (_ROW + 0.5) * _SIDE
    sheet.arrow((left + (_COLUMN + 1) * _SIDE, y), (4.75, y))
    sheet.text(5.75, y + 0.62, "carried along the row", SMALL, bold=True)
    sheet.box(5.2, y, "output", VALUE, 0.85)
    sheet.box(6.1, y, "max", WEIGHT, 0.65)
    sheet.box(6.9, y, "sum", WEIGHT, 0.65)
    sheet.text(6.0, y - 0.42, "old ones shrink by exp(old − new max)", SMALL, FAINT)

    sheet.text(5.75, 3.42, "kept when a row is done", SMALL, bold=True)
    sheet.box(5.3, 2.9, "output / sum", VALUE, 1.2)
    sheet.box(6.85, 2.9, "max + log(sum)", WEIGHT, 1.4)
    sheet.text(6.85, 2.52, "one number a query", SMALL, FAINT)
    return sheet


def _colour(row, column):
    """Of a tile: above the diagonal skipped, in work, done in this row, done before, to come."""
    if column > row:
        return None
    if (row, column) == (_ROW, _COLUMN):
        return tint(WEIGHT, 0.15)
    if row == _ROW and column < _COLUMN:
        return tint(WEIGHT, 0.6)
    return tint(WEIGHT, 0.85) if row < _ROW else _NOTHING


def _part(colour, active):
    return tint(colour, 0.2 if active else 0.75)


FIGURES = {
    "tiles_of_attention.svg": Drawing(
        tiles_of_attention,
        "Tiles of queries and keys. Along a row of tiles the output, the maximum and the sum of "
        "what was seen so far are carried from tile to tile.",
    ),
}
