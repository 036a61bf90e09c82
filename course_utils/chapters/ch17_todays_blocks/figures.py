"""How query heads share the heads of keys and values."""

from course_utils.viz.canvas import FAINT, KEY, QUERY, SMALL, Canvas
from course_utils.viz.drawings import Drawing

_HEADS = 4
_KINDS = (("multi-head", 4), ("grouped-query", 2), ("multi-query", 1))


def shared_key_heads():
    """Query heads below, key and value heads above; a line says which reads which."""
    sheet = Canvas(8, 2.55)
    for i, (name, kv) in enumerate(_KINDS):
        left = 0.95 + 2.45 * i
        middle = left + 0.5 * (_HEADS - 1) / 2
        sheet.text(middle, 2.3, name, bold=True)
        sheet.text(middle, 2.02, f"{kv} of {_HEADS} key heads cached", SMALL, FAINT)
        share = _HEADS // kv
        keys = [
            sheet.box(left + 0.5 * (share * j + (share - 1) / 2), 1.5, f"{j}", KEY, width=0.36)
            for j in range(kv)
        ]
        for head in range(_HEADS):
            query = sheet.box(left + 0.5 * head, 0.5, f"{head}", QUERY, width=0.36)
            sheet.arrow(query.top, keys[head // share].bottom)
    sheet.text(0.35, 1.5, "keys,\nvalues", SMALL)
    sheet.text(0.35, 0.5, "queries", SMALL)
    return sheet


FIGURES = {
    "shared_key_heads.svg": Drawing(
        shared_key_heads,
        "In multi-head attention each of four query heads reads a key and value head of its own. "
        "In grouped-query attention query heads 0 and 1 read key head 0, and 2 and 3 read key head "
        "1. In multi-query attention all four read one.",
    ),
}
