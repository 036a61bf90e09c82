"""What each way to make attention cheaper keeps of the full map."""

import torch

from course_utils.models.long_attention import global_mask, random_mask, segment_mask, window_mask
from course_utils.viz.canvas import KEY, SMALL, VALUE, WEIGHT, Canvas, tint
from course_utils.viz.drawings import Drawing
from course_utils.viz.style import BLUE, GREEN, ORANGE, VERMILION

_TOKENS, _CELL = 12, 0.11  # of a map, and inches
_NOTHING = "#F2F2F2"
_BUCKETS = [0, 1, 2, 0, 3, 1, 1, 2, 3, 0, 2, 3]  # where a hash may have put the twelve tokens
_BEST = [(0, 3), (1, 6), (0, 2), (3, 9), (4, 8), (1, 5), (5, 6), (2, 7), (4, 8), (0, 9), (7, 10),
         (8, 11)]  # fmt: skip


def long_attention():
    """Ten small maps, queries down and keys across; a coloured cell is a score that is computed."""
    sheet = Canvas(8, 4.75)
    near, first = window_mask(_TOKENS, 1), global_mask(_TOKENS, [0])
    extra = random_mask(_TOKENS, 2, seed=2)
    kinds = near.int()
    kinds = kinds.masked_fill(first & ~near, 2)
    with_random = kinds.masked_fill(extra & (kinds == 0), 3)
    bucket = torch.tensor(_BUCKETS)
    colours = [BLUE, VERMILION, GREEN, ORANGE]
    panels = [
        ("full", "n²", _map(torch.ones(_TOKENS, _TOKENS))),
        ("window", "n (2r + 1)", _map(near[0, 0])),
        ("window + global", "n (2r + 1) + 2 n g", _map(kinds[0, 0])),
        ("… + random", "n (2r + 1 + 2 g + a)", _map(with_random[0, 0])),
        ("blocks + summaries", "n (b + n / b)", _summaries(3)),
        ("low rank", "n r", None),
        ("kernel", "2 n m numbers, no map", None),
        ("hashing", "n · bucket size",
         [[tint(colours[b], 0.25) if b == c else _NOTHING for c in bucket] for b in bucket]),
        ("segments + memory", "n · (1 to 2 segments)", _segments(4)),
        ("best k", "n k kept, n² searched",
         [[tint(WEIGHT, 0.2) if k in best else _NOTHING for k in range(_TOKENS)]
          for best in _BEST]),
    ]  # fmt: skip
    for i, (title, cost, cells) in enumerate(panels):
        left, top = 0.14 + 1.6 * (i % 5), 4.36 - 2.36 * (i // 5)
        middle = left + _TOKENS * _CELL / 2
        sheet.text(middle, top + 0.18, title, SMALL + 0.5, bold=True)
        sheet.text(middle, top - _TOKENS * _CELL - 0.2, cost, SMALL)
        if cells is not None:
            sheet.cells(left, top, cells, _CELL)
    _low_rank(sheet, 0.14, 2.0)
    _kernel(sheet, 1.74, 2.0)
    return sheet


def _map(kinds):
    shades = [_NOTHING, tint(BLUE, 0.2), tint(VERMILION, 0.3), tint(GREEN, 0.3)]
    return [[shades[int(kind)] for kind in row] for row in kinds]


def _summaries(block):
    """The own block in full colour; one shade for every other block, which counts as one key."""
    own, others = tint(BLUE, 0.2), (tint(GREEN, 0.55), tint(GREEN, 0.75))
    return [
        [own if q // block == k // block else others[k // block % 2] for k in range(_TOKENS)]
        for q in range(_TOKENS)
    ]


def _segments(segment):
    seen, own = segment_mask(_TOKENS, segment)[0, 0], segment_mask(_TOKENS, segment, before=0)[0, 0]
    return _map(seen.int() * 3 - own.int() * 2)  # the own segment blue, the memory green


def _low_rank(sheet, left, top, rank=3):
    """Each query against r mixtures, which were made from all keys."""
    sheet.cells(left, top, [[tint(BLUE, 0.2)] * rank] * _TOKENS, _CELL)
    sheet.text(left + 0.46, top - 0.69, "×", SMALL)
    mix = sheet.cells(left + 0.58, top - 0.52, [[tint(KEY, 0.45)] * 7] * rank, _CELL)
    sheet.text(mix.x, mix.y + 0.3, "r mixtures", SMALL)
    sheet.text(mix.x, mix.y - 0.3, "of n keys", SMALL)


def _kernel(sheet, left, top, features=4):
    """The features of the queries against one small matrix, which was summed over all keys."""
    sheet.cells(left, top, [[tint(BLUE, 0.2)] * features] * _TOKENS, _CELL)
    sheet.text(left + 0.58, top - 0.69, "×", SMALL)
    state = sheet.cells(left + 0.75, top - 0.46, [[tint(VALUE, 0.4)] * 4] * features, _CELL)
    sheet.text(state.x, state.y + 0.36, "Σ φ(k) vᵀ", SMALL)
    sheet.text(state.x, state.y - 0.36, "m × v", SMALL)


FIGURES = {
    "long_attention.svg": Drawing(
        long_attention,
        "Ten maps: full, window, global token, random keys, summaries, low rank, kernel, hashing, "
        "segments, best k.",
    ),
}
