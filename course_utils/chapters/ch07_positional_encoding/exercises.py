"""Exercises of notebook 07: sinusoidal positions, rotations, and where to start counting."""

import math

import torch

from course_utils.checker.model import exercise, wrong
from course_utils.checker.probes import draw

NOTEBOOK = "07_positional_encoding"


def _table(
    max_len,
    d_model,
    *,
    columns="in turn",
    first=0,
    exponent="2i",
    base=10000.0,
    direction="divide",
    transposed=False,
):
    positions = torch.arange(max_len, dtype=torch.float64)[:, None]
    positions = positions / max_len if first == "share" else positions + first
    pair = torch.arange(d_model // 2, dtype=torch.float64)
    column = torch.arange(d_model, dtype=torch.float64)
    if exponent in ("column", "column doubled"):  # every column turns at its own speed
        powers = column / d_model * (2 if exponent == "column doubled" else 1)
        slow_sin, slow_cos = powers[0::2], powers[1::2]
    else:
        power = {"i": pair, "4i": 4 * pair, "from 1": 2 * (pair + 1)}.get(exponent, 2 * pair)
        slow_sin = slow_cos = power / d_model
        if exponent == "whole":
            slow_sin = slow_cos = power // d_model
        if exponent == "to the end":
            slow_sin = slow_cos = pair / (d_model // 2 - 1)
    if direction in ("d outside", "d below"):
        slow_sin, slow_cos = slow_sin * d_model, slow_cos * d_model
    factor = {"turns": 2 * math.pi, "d outside": d_model, "d below": 1 / d_model}
    angles = positions * factor.get(direction, 1.0)
    sign = 1 if direction == "multiply" else -1
    sines = torch.sin(angles * base ** (sign * slow_sin))
    cosines = torch.cos(angles * base ** (sign * slow_cos))
    if columns == "swapped":
        sines, cosines = cosines, sines
    if columns == "sines only":
        cosines = sines
    if columns == "in blocks":
        table = torch.cat([sines, cosines], dim=1)
    else:
        table = torch.stack([sines, cosines], dim=2).flatten(1)
    return (table.T if transposed else table).float()


def _entry_by_entry(n, d):
    return torch.tensor(
        [
            [(math.cos if j % 2 else math.sin)(p / 10000 ** ((j - j % 2) / d)) for j in range(d)]
            for p in range(n)
        ]
    )


def _by_exp(n, d):
    position = torch.arange(n).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d, 2).float() * -(math.log(10000.0) / d))
    pe = torch.zeros(n, d)
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe


def _by_complex_numbers(n, d):
    speed = torch.pow(10000.0, -torch.arange(0, d, 2, dtype=torch.float64) / d)
    turning = torch.polar(
        torch.ones(n, d // 2).double(), torch.outer(torch.arange(n).double(), speed)
    )
    return torch.view_as_real(turning).flip(-1).reshape(n, d)


@exercise(
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=2,
    trains="the sinusoidal formula",
    text="""
    The table of the Transformer paper,
    $PE_{p, 2i} = \\sin(p / 10000^{2i/d})$ and $PE_{p, 2i+1} = \\cos(p / 10000^{2i/d})$.
    """,
    reference=_table,
    probes=[(3, 4), (5, 8), (12, 6)],
    mistakes=[
        wrong(
            "sine and cosine are swapped",
            "sine and cosine",
            "Even columns hold sines, so row 0 reads 0, 1, 0, 1.",
            columns="swapped",
        ),
        wrong(
            "all sines stand before all cosines",
            "sine and cosine",
            "The two alternate: columns 2i and 2i + 1 belong to one frequency.",
            columns="in blocks",
        ),
        wrong(
            "there are no cosines",
            "sine and cosine",
            "Odd columns hold cosines.",
            columns="sines only",
        ),
        wrong(
            "positions count from 1",
            "off by one",
            "The first token stands at position 0, so row 0 reads 0, 1, 0, 1.",
            first=1,
        ),
        wrong(
            "the exponent is i / d, not 2i / d",
            "frequency",
            "Pair i belongs to columns 2i and 2i + 1, and the exponent counts columns.",
            exponent="i",
        ),
        wrong(
            "the exponent is 4i / d, not 2i / d",
            "frequency",
            "arange(0, d, 2) already holds 2i; it must not be doubled again.",
            exponent="4i",
        ),
        wrong(
            "each column has a frequency of its own",
            "frequency",
            "The sine and the cosine of a pair turn at one speed; only i counts pairs.",
            {"exponent": "column doubled"},
            exponent="column",
        ),
        wrong(
            "pairs count from 1",
            "off by one",
            "The first pair has i = 0 and turns by one radian a step.",
            exponent="from 1",
        ),
        wrong(
            "the angle is multiplied by the power",
            "frequency",
            "The power of 10000 divides: later pairs turn more slowly.",
            direction="multiply",
        ),
        wrong(
            "d divides outside the exponent",
            "frequency",
            "The exponent is (2i / d); without the brackets 10000 ** 2i is divided by d.",
            {"direction": "d below"},
            direction="d outside",
            exponent="2i",
            base=10000.0,
        ),
        wrong(
            "the exponent is divided without remainder",
            "frequency",
            "2i // d is 0 for every pair: divide with /.",
            exponent="whole",
            base=10000.0,
            direction="divide",
        ),
        wrong(
            "the last pair is given the whole power of 10000",
            "frequency",
            "Some libraries divide by d/2 - 1, so that the last exponent is 1; here it is 2i / d.",
            exponent="to the end",
        ),
        wrong(
            "a full turn is put into the angle",
            "frequency",
            "Positions times frequencies are radians already; no 2 pi is due.",
            direction="turns",
        ),
        wrong(
            "positions are shares of the table's length",
            "position",
            "Row p belongs to position p itself, in a table of any length.",
            first="share",
        ),
        wrong(
            "the base is not 10000",
            "frequency",
            "The paper's base is 10000 (four zeros).",
            {"base": 100000.0},
            {"base": math.e},
            base=1000.0,
        ),
        wrong(
            "rows are columns",
            "position",
            "The table has one row for each position.",
            transposed=True,
        ),
    ],
    hints=[
        "Positions as a column (n, 1), frequencies as a row (d/2,): their product is all angles.",
        "torch.arange(0, d_model, 2) holds the numbers 2i.",
        "table[:, 0::2] are the even columns, table[:, 1::2] the odd ones.",
    ],
    right_variants=[_entry_by_entry, _by_exp, _by_complex_numbers],
)
def position_table(max_len, d_model):
    """Sinusoidal positional encodings.

    max_len: number of positions, d_model: even. Returns (max_len, d_model).
    """
    position = torch.arange(max_len)[:, None]  # (max_len, 1)
    frequency = 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)  # (d_model / 2,)
    table = torch.empty(max_len, d_model)
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)
    return table


def _shift(
    steps, d_model, *,
    turn="forward", speeds="own", columns="in turn", extra=0, entries="all", times="angle",
):  # fmt: skip
    pair = torch.arange(d_model // 2, dtype=torch.float64)
    pair = pair + 1 if speeds == "from 1" else pair
    factor = {"doubled": -4, "halved": -1, "upwards": 2}.get(speeds, -2)
    frequency = 10000.0 ** (factor * pair / d_model)
    if speeds == "first":
        frequency = torch.ones_like(frequency)
    factor = steps if times == "entries" else 1
    angle = (steps + extra) / factor * frequency
    if speeds == "degrees":
        angle = angle * math.pi / 180
    sign = 1 if turn == "forward" else -1
    matrix = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i, a in enumerate(angle):
        s, c = (i, i + d_model // 2) if columns == "in blocks" else (2 * i, 2 * i + 1)
        matrix[s, s] = matrix[c, c] = torch.cos(a)
        if entries == "exchanged":
            matrix[s, s] = matrix[c, c] = torch.sin(a)
            matrix[s, c], matrix[c, s] = sign * torch.cos(a), -sign * torch.cos(a)
            continue
        if entries != "diagonal":
            matrix[s, c] = sign * torch.sin(a)
            matrix[c, s] = torch.sin(a) if entries == "both plus" else -sign * torch.sin(a)
    return (factor * matrix).float()


def _shift_by_blocks(k, d):
    blocks = []
    for i in range(0, d, 2):
        a = k / 10000 ** (i / d)
        blocks.append(torch.tensor([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]]))
    return torch.block_diag(*blocks)


def _shift_by_exponential(k, d):
    generator = torch.zeros(d, d, dtype=torch.float64)
    for i in range(0, d, 2):
        generator[i, i + 1] = 10000 ** (-i / d)
        generator[i + 1, i] = -(10000 ** (-i / d))
    return torch.linalg.matrix_exp(k * generator)


def _shift_by_least_squares(k, d):
    speed = 10000 ** (-torch.arange(0, d, 2).double() / d)
    angles = torch.outer(torch.arange(6 * d + k).double(), speed)
    table = torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)
    return torch.linalg.lstsq(table[: 6 * d], table[k : 6 * d + k]).solution.T


@exercise(
    notebook=NOTEBOOK,
    minutes=15,
    difficulty=3,
    trains="relative position as a rotation",
    text="""
    A step of `k` positions is one fixed matrix: find `R` with `table[p + k] = R @ table[p]` for
    **every** `p`. Each pair of columns is rotated by its own angle.
    """,
    reference=_shift,
    probes=[(1, 2), (1, 4), (3, 6), (100, 6)],
    mistakes=[
        wrong(
            "the rotation goes backwards",
            "sine and cosine",
            "This one leads from p to p - k: with (sin, cos) as the pair the plus is top right.",
            turn="backward",
        ),
        wrong(
            "all pairs rotate by the same angle",
            "frequency",
            "Pair i turns by k · 10000^(-2i/d): later pairs turn less.",
            speeds="first",
        ),
        wrong(
            "the exponent is 4i / d, not 2i / d",
            "frequency",
            "range(0, d, 2) already holds 2i; it must not be doubled again.",
            speeds="doubled",
        ),
        wrong(
            "the exponent is i / d, not 2i / d",
            "frequency",
            "Pair i belongs to columns 2i and 2i + 1, and the exponent counts columns.",
            speeds="halved",
        ),
        wrong(
            "the matrix of one step is multiplied by k",
            "position",
            "k steps apply the matrix of one step k times: its power, or k times the angle.",
            times="entries",
        ),
        wrong(
            "the angle is taken in degrees",
            "frequency",
            "Positions times frequencies are radians already.",
            speeds="degrees",
        ),
        wrong(
            "pairs are taken from the two halves",
            "sine and cosine",
            "Columns 2i and 2i + 1 form a pair; they stand next to each other.",
            columns="in blocks",
        ),
        wrong(
            "the step is one too long",
            "off by one",
            "From p to p + k the angle is k times the frequency.",
            extra=1,
        ),
        wrong(
            "only the diagonal is filled",
            "sine and cosine",
            "sin(a + b) needs both sin a cos b and cos a sin b.",
            entries="diagonal",
        ),
        wrong(
            "both off-diagonal entries have the same sign",
            "sine and cosine",
            "cos(a + b) = cos a cos b - sin a sin b: one of the two carries a minus.",
            entries="both plus",
        ),
        wrong(
            "sine and cosine are exchanged",
            "sine and cosine",
            "With k = 0 nothing turns, so the diagonal holds the cosines.",
            entries="exchanged",
        ),
        wrong(
            "pairs count from 1",
            "off by one",
            "The first pair has i = 0 and turns by one radian a step.",
            speeds="from 1",
        ),
        wrong(
            "later pairs turn faster",
            "frequency",
            "The exponent is negative, -2i/d: the first pair is the fastest.",
            speeds="upwards",
        ),
    ],
    hints=[
        "Start with d_model = 2: the pair is (sin p, cos p). What is sin(p + k)?",
        "sin(p + k) = sin p cos k + cos p sin k, and cos(p + k) likewise: a 2 x 2 matrix.",
        "For more columns put one such block on the diagonal for each pair, with its own angle.",
    ],
    right_variants=[_shift_by_blocks, _shift_by_exponential, _shift_by_least_squares],
)
def shift_matrix(k, d_model):
    """The matrix R with table[p + k] = R @ table[p] for every position p.

    k: number of steps, d_model: even. Returns (d_model, d_model).
    """
    angle = k * 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)  # (d_model / 2,)
    R = torch.zeros(d_model, d_model)
    even, odd = torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)
    R[even, even] = R[odd, odd] = torch.cos(angle)
    R[even, odd] = torch.sin(angle)
    R[odd, even] = -torch.sin(angle)
    return R


def _add(
    x, table, offset, *, start="offset", along="positions", shift=0, join="add", count="tokens"
):
    first = (offset if start == "offset" else 0) + shift
    rows = table[first : first + x.shape[_COUNTS[count]]]  # (T, d)
    if start == "number":
        rows = rows + offset
    if start == "short":
        rows = table[offset : x.shape[1]]
    if start == "last":
        rows = table[-x.shape[1] :]
    if along == "batch":
        rows = table[offset : offset + len(x)][:, None]
    if along == "one":
        rows = table[offset]
    return {
        "add": lambda: x + rows,
        "multiply": lambda: x * rows,
        "replace": lambda: rows.expand_as(x),
        "scaled": lambda: x * math.sqrt(x.shape[-1]) + rows,
        "side by side": lambda: torch.cat([x, rows.expand_as(x)], dim=-1),
    }[join]()


_COUNTS = {"sentences": 0, "tokens": 1, "features": 2}


@exercise(
    notebook=NOTEBOOK,
    minutes=5,
    difficulty=1,
    trains="where to start counting",
    text="""
    Add the encodings to a batch of embeddings whose first token stands at position `offset`. While
    decoding token by token, `offset` is the number of tokens already seen.
    """,
    reference=_add,
    probes=[
        (torch.ones(1, 1, 2), torch.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 6.0]]), 1),
        (*draw(71, (2, 3, 4), (9, 4)), 4),
        (*draw(72, (3, 2, 4), (9, 4)), 0),
        (*draw(73, (1, 3, 4), (9, 4)), 2),
        (*draw(74, (2, 2, 4), (9, 4)), 5),
    ],
    mistakes=[
        wrong(
            "positions start at 0 again",
            "position",
            "The first token stands at position offset, not 0: in a cache the past counts.",
            start="zero",
        ),
        wrong(
            "offset is added to the numbers of the table",
            "position",
            "It says which row comes first: take rows from offset on, not row 0 plus offset.",
            start="number",
        ),
        wrong(
            "as many rows are taken as there are sentences",
            "position",
            "x is (B, T, d): the number of tokens is x.shape[1], while len(x) is the batch.",
            count="sentences",
        ),
        wrong(
            "as many rows are taken as there are features",
            "position",
            "x is (B, T, d): the number of tokens is x.shape[1], the last axis holds features.",
            count="features",
        ),
        wrong(
            "the slice ends at T, not at offset + T",
            "position",
            "T rows from offset on end before row offset + T.",
            start="short",
        ),
        wrong(
            "the positions are one too large",
            "off by one",
            "The first token takes row offset, not offset + 1.",
            shift=1,
        ),
        wrong(
            "the last rows of the table are used",
            "position",
            "Rows offset to offset + T - 1 are due, wherever the table ends.",
            start="last",
        ),
        wrong(
            "each sentence gets one position",
            "position",
            "The encoding follows the tokens, axis 1, not the batch, axis 0.",
            along="batch",
        ),
        wrong(
            "all tokens get the same position",
            "position",
            "Token t of the batch stands at position offset + t.",
            along="one",
        ),
        wrong(
            "the encodings are multiplied in",
            "position",
            "They are added to the embeddings.",
            join="multiply",
        ),
        wrong(
            "the embeddings are multiplied by the root of d first",
            "scale",
            "The model does that where it embeds the tokens; here x is taken as it is.",
            join="scaled",
        ),
        wrong(
            "the encodings are put beside the embeddings",
            "position",
            "They are added, so that the size stays d.",
            join="side by side",
        ),
        wrong(
            "the embeddings are lost",
            "position",
            "Only the encodings come back; add them to x.",
            join="replace",
        ),
    ],
    hints=[
        "Which rows of the table belong to T tokens that start at position offset?",
        "A slice table[a : b] holds b - a rows.",
        "(T, d) is broadcast over the batch by itself.",
    ],
    right_variants=[
        lambda x, pe, o: x + pe[o + torch.arange(x.shape[1])],
        lambda x, pe, o: torch.stack([x[:, t] + pe[o + t] for t in range(x.shape[1])], dim=1),
        lambda x, pe, o: x.double() + pe.narrow(0, o, x.size(1)).unsqueeze(0),
    ],
)
def add_positions(x, table, offset):
    """Add positional encodings to embeddings.

    x: (B, T, d), table: (max_len, d), offset: position of the first token. Returns (B, T, d).
    """
    return x + table[offset : offset + x.shape[1]]


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=2,
    difficulty=1,
    trains="reading the table of positions",
    text="""
    Which two columns of the table change most slowly from row to row when `d_model = 8`? Answer
    with a tuple of column numbers, the smaller first.
    """,
    mistakes=[
        wrong(
            "the fastest pair is given",
            "frequency",
            "Pair 0 turns by one radian a step, faster than all others.",
            answer=(0, 1),
        ),
        wrong(
            "the columns are taken from two blocks",
            "sine and cosine",
            "The sine and the cosine of a frequency stand side by side.",
            answer=(3, 7),
        ),
        wrong(
            "the columns count from 1",
            "off by one",
            "The columns are numbered 0 to 7.",
            answer=(7, 8),
        ),
        wrong(
            "a middle pair is given",
            "frequency",
            "10000^(-2i/d) falls with i up to the last pair.",
            {"answer": (4, 5)},
            answer=(2, 3),
        ),
    ],
    hints=[
        "Four pairs of columns, i = 0 to 3, each with one frequency.",
        "The frequency of pair i is 10000^(-2i/8). When is it smallest?",
        "Pair i stands in columns 2i and 2i + 1.",
    ],
)
def slowest_columns():
    """The two columns that change most slowly for d_model = 8, smaller number first:"""
    return (6, 7)


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=3,
    difficulty=2,
    trains="from frequency to wavelength",
    text="""
    After how many positions do columns 4 and 5 come back to where they started, when `d_model = 8`?
    An expression with `math.pi` is welcome.
    """,
    mistakes=[
        wrong(
            "the full turn of 2 pi is forgotten",
            "frequency",
            "100 positions turn the pair by one radian; a full turn has 2 pi of them.",
            answer=100.0,
        ),
        wrong(
            "half a turn is given",
            "frequency",
            "After pi the sine is back at 0, but the cosine is at -1.",
            answer=100 * math.pi,
        ),
        wrong(
            "the exponent is i / d, not 2i / d",
            "frequency",
            "Columns 4 and 5 are pair i = 2, so the exponent is 4 / 8.",
            answer=2 * math.pi * 10,
        ),
        wrong(
            "the exponent is 4i / d, not 2i / d",
            "frequency",
            "Columns 4 and 5 are pair i = 2, so the exponent is 4 / 8.",
            answer=2 * math.pi * 10000,
        ),
        wrong(
            "the wavelength of a neighbouring pair is given",
            "off by one",
            "Columns 4 and 5 are pair i = 2: pairs count from 0.",
            answer=2 * math.pi * 10000 ** (6 / 8),
        ),
        wrong(
            "the frequency is given",
            "frequency",
            "1/100 is the angle of one step; how many steps make a full turn?",
            {"answer": 2 * math.pi / 100},
            answer=0.01,
        ),
    ],
    hints=[
        "Which pair i do columns 4 and 5 form?",
        "One step turns the pair by 10000^(-2i/8) radians.",
        "A full turn has 2 pi radians.",
    ],
)
def wavelength():
    """Positions until columns 4 and 5 come round again for d_model = 8:"""
    return 2 * math.pi * 10000 ** (4 / 8)
