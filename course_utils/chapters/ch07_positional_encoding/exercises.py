"""Exercises of notebook 07: sinusoids, rotations, rotary positions and biases of the scores."""

import math

import torch

from course_utils.checker.common import worked_out
from course_utils.checker.exercise import exercise, wrong
from course_utils.checker.probes import as_asked, draw
from course_utils.models.modern.rotary import rotate

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
    asks="practice",
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
            matrix[c, s] = sign * torch.sin(a) * (1 if entries == "of one sign" else -1)
    return (factor * matrix).T.float()  # for codes as rows


def _shift_by_blocks(k, d):
    blocks = []
    for i in range(0, d, 2):
        a = k / 10000 ** (i / d)
        blocks.append(torch.tensor([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]]))
    return torch.block_diag(*blocks)


def _shift_by_exponential(k, d):
    generator = torch.zeros(d, d, dtype=torch.float64)
    for i in range(0, d, 2):
        generator[i + 1, i] = 10000 ** (-i / d)
        generator[i, i + 1] = -(10000 ** (-i / d))
    return torch.linalg.matrix_exp(k * generator)


def _shift_by_least_squares(k, d):
    speed = 10000 ** (-torch.arange(0, d, 2).double() / d)
    angles = torch.outer(torch.arange(400 + k).double(), speed)
    pairs = torch.stack([angles.sin(), angles.cos()], dim=2).transpose(0, 1)  # (d / 2, n, 2)
    found = [torch.linalg.lstsq(pair[:400], pair[k:]).solution for pair in pairs]
    return torch.block_diag(*found).float()


@exercise(
    notebook=NOTEBOOK,
    minutes=15,
    difficulty=3,
    trains="relative position as a rotation",
    text="""
    A step of `k` positions is one fixed matrix: find `R` with `table[p + k] = table[p] @ R` for
    **every** `p`. Each pair of columns is rotated by its own angle.
    """,
    reference=_shift,
    probes=[(1, 2), (1, 4), (3, 6), (100, 6)],
    edges=[
        (
            "with 64 columns: the last pairs hardly turn, so a matrix that is fitted to a table of "
            "all columns at once is not theirs",
            (3, 64),
        )
    ],
    mistakes=[
        wrong(
            "the rotation goes backwards",
            "sine and cosine",
            "This one leads from p to p - k: in table[p] @ R the plus is bottom left.",
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
            {"turn": "backward"},
            entries="of one sign",
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
    """The matrix R with table[p + k] = table[p] @ R for every position p.

    k: number of steps, d_model: even. Returns (d_model, d_model).
    """
    angle = k * 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)  # (d_model / 2,)
    R = torch.zeros(d_model, d_model)
    even, odd = torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)
    R[even, even] = R[odd, odd] = torch.cos(angle)
    R[odd, even] = torch.sin(angle)
    R[even, odd] = -torch.sin(angle)
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
    if start == "pieces":
        rows = table[offset * x.shape[1] : (offset + 1) * x.shape[1]]
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
        (*draw(79, (2, 3, 4), (9, 4)), 6),
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
            "offset is counted in pieces as long as x",
            "position",
            "It counts tokens: row offset comes first, not row offset times T.",
            start="pieces",
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
        wrong(
            "the larger number stands first",
            "position",
            "These are the columns; the answer wants the smaller number first.",
            answer=(7, 6),
        ),
        wrong(
            "the fastest pair is given, counted from 1",
            "frequency",
            "Pair 0 in columns 0 and 1 turns fastest.",
            answer=(1, 2),
        ),
        wrong(
            "the columns are taken from two blocks, and count from 1",
            "sine and cosine",
            "The sine and the cosine of a frequency stand side by side, and columns are "
            "numbered from 0.",
            answer=(4, 8),
        ),
        wrong(
            "the fastest frequency is given, in two blocks",
            "frequency",
            "Pair 0 turns fastest, and a pair stands side by side.",
            answer=(0, 4),
        ),
        wrong(
            "a middle pair is given, counted from 1",
            "frequency",
            "10000^(-2i/d) falls with i up to the last pair, and columns are numbered from 0.",
            {"answer": (5, 6)},
            answer=(3, 4),
        ),
        *(
            wrong(
                f"{what}, and the larger number stands first",
                "position",
                f"{why} And the smaller number is asked first.",
                answer=answer,
            )
            for what, why, answer in (
                ("the columns count from 1", "The columns are numbered 0 to 7.", (8, 7)),
                ("the fastest pair is given", "Pair 0 turns fastest.", (1, 0)),
                (
                    "the columns are taken from two blocks",
                    "The sine and the cosine of a frequency stand side by side.",
                    (7, 3),
                ),
                (
                    "the columns are taken from two blocks, and count from 1",
                    "The sine and the cosine of a frequency stand side by side, and columns are "
                    "numbered from 0.",
                    (8, 4),
                ),
            )
        ),
        wrong(
            "two sines or two cosines are given",
            "sine and cosine",
            "A frequency has one column of sines and one of cosines, side by side.",
            {"answer": (4, 6)},
            answer=(5, 7),
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


def _wave(*, turn=2 * math.pi, power=4 / 8, sign=1):
    return turn * 10000 ** (sign * power)


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
        *worked_out(
            _wave,
            wrong(
                "the full turn of 2 pi is forgotten",
                "frequency",
                "100 positions turn the pair by one radian; a full turn has 2 pi of them.",
                turn=1.0,
            ),
            wrong(
                "half a turn is given",
                "frequency",
                "After pi the sine is back at 0, but the cosine is at -1.",
                turn=math.pi,
            ),
            wrong(
                "degrees are counted",
                "frequency",
                "Positions times frequencies are radians: a full turn is 2 pi, not 360.",
                turn=360.0,
            ),
            wrong(
                "the exponent is i / d, not 2i / d",
                "frequency",
                "Columns 4 and 5 are pair i = 2, so the exponent is 4 / 8.",
                power=2 / 8,
            ),
            wrong(
                "the exponent is 4i / d, not 2i / d",
                "frequency",
                "Columns 4 and 5 are pair i = 2, so the exponent is 4 / 8.",
                power=8 / 8,
            ),
            wrong(
                "the exponent counts the column, not the pair",
                "frequency",
                "Columns 4 and 5 turn at one speed: pair i = 2, so the exponent of both is 4 / 8.",
                power=5 / 8,
            ),
            wrong(
                "the wavelength of a neighbouring pair is given",
                "off by one",
                "Columns 4 and 5 are pair i = 2: pairs count from 0.",
                {"power": 2 / 8},
                power=6 / 8,
            ),
            wrong(
                "the power is turned round",
                "frequency",
                "10000^(-4/8) is the angle of one step; how many steps make a full turn?",
                sign=-1,
            ),
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


def _look_back(k, d, *, looks="back", extra=0, given="key", layout="pairs", speeds="own"):
    steps = {"ahead": -1, "at itself": 0}.get(looks, 1) * (k + extra)
    power = torch.arange(0, d, 2, dtype=torch.float64) / d
    angle = steps * 10000.0 ** -(power * {"own": 1, "halved": 0.5, "doubled": 2}[speeds])
    own, other = int(layout != "both in halves"), int(layout == "pairs")
    plain = torch.stack([torch.ones_like(angle), torch.zeros_like(angle)], dim=own).flatten()
    turned = torch.stack([angle.cos(), angle.sin()], dim=other).flatten()
    return (plain, turned) if given == "key" else (turned, plain)


def _turned(x, positions):
    """One vector (d,) at each of the positions (T,), pairs (0, 1), (2, 3), ... turned: (T, d)."""
    omega = 10000.0 ** (-torch.arange(0, len(x), 2, dtype=torch.float64) / len(x))
    angle = positions[:, None] * omega
    a, b = x.double().view(-1, 2).unbind(-1)
    turned = a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()
    return torch.stack(turned, dim=-1).flatten(1)


def _steps_back(look_back, steps, d):
    """For each query, how many steps back stands the key that it likes best."""
    query, key = look_back(steps, d)
    positions = torch.arange(30)
    scores = _turned(query, positions) @ _turned(key, positions).T  # (30, 30)
    back = (positions - scores.argmax(dim=-1))[12:18]  # of those with room on both sides
    shapes = {"shape of q": list(query.shape), "shape of k": list(key.shape)}
    return shapes | {"steps back of the best key": back}


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=3,
    trains="setting a rotary head by hand",
    text="""
    In a head with rotary positions every token has the same query vector `q` and the same key
    vector `k`, so it sees places only. Choose the two so that each query scores the key `steps`
    before it, if it has one, higher than all other keys (nothing is masked). Pairs are columns
    (0, 1), (2, 3), ...; pair $i$ of a vector at position $p$ is turned by $p \\cdot 10000^{-2i/d}$.
    Many answers are right; the check runs the head and looks where it looks.
    """,
    reference=_look_back,
    play=_steps_back,
    probes=[(1, 4), (2, 8), (3, 8), (5, 16)],
    mistakes=[
        wrong(
            "the head looks ahead",
            "position",
            "The best key stands behind the query: the turn goes the wrong way, or is given to "
            "the other of the two vectors.",
            {"looks": "back", "given": "query"},
            looks="ahead",
            given="key",
            layout="pairs",  # of two halves the direction makes no difference
        ),
        wrong(
            "the head looks at the token itself",
            "position",
            "Where q and k point the same way they agree best at distance 0: one has to be turned.",
            looks="at itself",
            given="key",
            layout="pairs",
            speeds="own",
            extra=0,
        ),
        wrong(
            "the head looks one step too far back",
            "off by one",
            "The turn makes up for `steps` positions, not one more.",
            extra=1,
        ),
        wrong(
            "the head looks one step too little back",
            "off by one",
            "The turn makes up for `steps` positions, not one less.",
            extra=-1,
        ),
        wrong(
            "pairs are taken from the two halves of the columns",
            "position",
            "Here the columns (0, 1), (2, 3), ... are the pairs: cosine and sine stand in turn.",
            {"layout": "one in halves"},
            {"given": "query"},
            layout="both in halves",
            speeds="own",
        ),
        wrong(
            "the angles do not fall as those of the head do",
            "frequency",
            "Pair i turns by 10000^(-2i/d) a step; torch.arange(0, d, 2) is 2i already.",
            {"speeds": "doubled"},
            speeds="halved",
        ),
    ],
    hints=[
        "Take d = 2. If q = (1, 0), the query at m points to the angle m. Where must the key at "
        "m - steps point?",
        "A key at n points to its own angle plus n. At n = m - steps the sum has to be m.",
        "With more pairs do the same in each, with the angle of that pair.",
    ],
    right_variants=[
        lambda k, d: tuple(x.float() for x in _look_back(k, d)),
        lambda k, d: tuple(3 * x for x in _look_back(-k, d, given="query")),
        lambda k, d: (
            torch.eye(d)[0],
            math.cos(k) * torch.eye(d)[0] + math.sin(k) * torch.eye(d)[1],
        ),
    ],
)
def look_back(steps, d):
    """Query and key of a rotary head that looks `steps` positions back.

    steps: integer, d: even. Returns two tensors (d,): q and k.
    """
    angle = steps * 10000.0 ** (-torch.arange(0, d, 2) / d)  # (d / 2,)
    q = torch.tensor([1.0, 0.0]).repeat(d // 2)
    k = torch.stack([torch.cos(angle), torch.sin(angle)], dim=1).flatten()
    return q, k


def _halves(
    x, positions, *, pairs="halves", turn=1, speeds="own", start="given", order="halves",
    signs="rotation", angles="as a whole",
):  # fmt: skip
    d = x.shape[-1]
    pair = torch.arange(d // 2, dtype=torch.float64)
    factor = {"own": -2, "halved": -1, "doubled": -4}[speeds]
    in_turn = torch.arange(len(positions))
    places = {"given": positions, "zero": in_turn, "first": positions[:1] + in_turn}[start]
    angle = turn * places.double()[:, None] * 10000.0 ** (factor * pair / d)
    cos, sin = angle.cos(), angle.sin()
    x = x.double()
    a, b = (x[..., 0::2], x[..., 1::2]) if pairs == "neighbours" else x.chunk(2, dim=-1)
    if angles == "each twice":  # laid out for neighbours: 0, 0, 1, 1, ...
        (cos, cos_b), (sin, sin_b) = (z.repeat_interleave(2, -1).chunk(2, -1) for z in (cos, sin))
    else:
        cos_b, sin_b = cos, sin
    new_a = a * cos - b * sin
    new_b = (b * cos_b - a * sin_b) if signs == "both minus" else (a * sin_b + b * cos_b)
    new_b = new_a * sin_b + b * cos_b if signs == "of the new" else new_b
    new_b = a * cos_b + b * sin_b if signs == "exchanged below" else new_b
    new_a = a * cos + b * sin if signs == "both plus" else new_a
    if order == "neighbours":
        return torch.stack([new_a, new_b], dim=-1).flatten(-2).float()
    return torch.cat([new_a, new_b], dim=-1).float()


def _halves_by_complex(x, positions):
    a, b = x.double().chunk(2, dim=-1)
    speed = 10000.0 ** (-torch.arange(a.shape[-1], dtype=torch.float64) / a.shape[-1])
    angle = torch.outer(positions.double(), speed)
    turned = torch.complex(a, b) * torch.polar(torch.ones_like(angle), angle)
    return torch.cat([turned.real, turned.imag], dim=-1)


def _halves_by_swapping(x, positions):
    half = x.shape[-1] // 2
    angle = positions[:, None] * 10000.0 ** (-torch.arange(half) / half)
    angle = torch.cat([angle, angle], dim=-1)
    swapped = torch.cat([-x[..., half:], x[..., :half]], dim=-1)
    return x * angle.cos() + swapped * angle.sin()


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=2,
    trains="rotary positions in the other layout",
    text="""
    Many published models pair the columns in another way: column `i` turns together with column
    `i + d/2`, so that the first half of a vector holds the one part of all pairs and the second
    half the other. Pair `i` turns by `positions * 10000 ** (-2 * i / d)`, in the same direction as
    in this chapter: the pair (1, 0) becomes (cos, sin). Turn `x` in this layout.
    """,
    reference=_halves,
    probes=[
        (torch.tensor([[1.0, 2.0, 0.0, 0.0]]), torch.tensor([1])),
        (*draw(75, (3, 4)), torch.tensor([0, 1, 5])),
        (*draw(76, (2, 4, 6)), torch.tensor([3, 4, 5, 6])),
        (*draw(77, (3, 8)), torch.tensor([7, 2, 0])),
    ],
    mistakes=[
        wrong(
            "neighbouring columns are paired",
            "sine and cosine",
            "Here column i belongs to column i + d/2, not to the one beside it.",
            {"order": "halves"},
            pairs="neighbours",
            order="neighbours",
        ),
        wrong(
            "the pairs are laid side by side at the end",
            "sine and cosine",
            "The first parts of all pairs fill the first half, the second parts the second.",
            order="neighbours",
        ),
        wrong(
            "the rotation goes backwards",
            "sine and cosine",
            "The pair (1, 0) has to become (cos, sin), and it becomes (cos, -sin).",
            turn=-1,
        ),
        wrong(
            "both off-diagonal entries have the same sign",
            "sine and cosine",
            "A rotation gives (a cos - b sin, a sin + b cos): one minus only.",
            {"signs": "both plus"},
            signs="both minus",
        ),
        wrong(
            "the exponent is i / d, not 2i / d",
            "frequency",
            "Pair i turns by 10000^(-2i/d), and i counts pairs from 0 to d/2 - 1.",
            speeds="halved",
        ),
        wrong(
            "the exponent is 4i / d, not 2i / d",
            "frequency",
            "arange(0, d, 2) already holds 2i; it must not be doubled again.",
            speeds="doubled",
        ),
        wrong(
            "positions count from 0 whatever is given",
            "position",
            "The positions are an argument: a cached sentence goes on at a later place.",
            start="zero",
        ),
        wrong(
            "positions count on from the first one",
            "position",
            "Each row has the position that is given for it: they may jump, or go back.",
            start="first",
        ),
        wrong(
            "sine and cosine change places in the second part",
            "sine and cosine",
            "Turned by nothing, the second part is itself: it goes with the cosine, the first part "
            "with the sine.",
            signs="exchanged below",
        ),
        wrong(
            "the second part is made of the first after its turn",
            "sine and cosine",
            "Both parts come from those before the turn: keep the old first part until the second "
            "is made.",
            signs="of the new",
        ),
        wrong(
            "the angles are laid out for neighbours",
            "frequency",
            "Columns i and i + d/2 turn by one angle: torch.cat([angle, angle], -1), not "
            "repeat_interleave.",
            angles="each twice",
            pairs="halves",
            order="halves",
        ),
    ],
    hints=[
        "x.chunk(2, dim=-1) gives the two parts of all pairs.",
        "The angles have the shape (T, d/2); each part is (..., T, d/2).",
        "First parts become a cos - b sin. What becomes of the second, and how are they joined?",
    ],
    right_variants=[
        _halves_by_complex,
        _halves_by_swapping,
        lambda x, positions: rotate(x, positions, layout="halves"),
    ],
)
def turn_halves(x, positions):
    """Rotary positions with the pairs (0, d/2), (1, d/2 + 1), ...

    x: (..., T, d), d even; positions: (T,). Returns the shape of x.
    """
    d = x.shape[-1]
    angle = positions[:, None] * 10000.0 ** (-torch.arange(0, d, 2) / d)  # (T, d / 2)
    cos, sin = torch.cos(angle), torch.sin(angle)
    a, b = x.chunk(2, dim=-1)  # (..., T, d / 2) each
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


def _two_sided(T, back, ahead, *, sign=-1, sides="own", extra=0, power=1, ahead_is="counted"):
    positions = torch.arange(T, dtype=torch.float64)
    before = positions[:, None] - positions  # query minus key
    if sides == "swapped":
        before = before.T
    steps = before.abs() ** power + extra
    cost_ahead = {"counted": ahead, "free": 0.0, "as back": back}[ahead_is]
    return (sign * torch.where(before >= 0, back * steps, cost_ahead * steps)).float()


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=6,
    difficulty=2,
    trains="a bias that tells before from after",
    text="""
    An encoder looks in both directions, and our ALiBi's bias is alike on both: it cannot tell
    before from after. Make one that can. A key that stands n steps *before* the query gets
    `-back * n`, one that stands n steps *after* it `-ahead * n`; the token itself gets 0.
    """,
    reference=_two_sided,
    probes=[(3, 1.0, 0.25), (4, 0.5, 2.0), (6, 0.125, 0.5)],
    mistakes=[
        wrong(
            "what is far is preferred",
            "position",
            "The bias is added to the score, so distance has to lower it: mind the minus.",
            sign=1,
        ),
        wrong(
            "before and after are exchanged",
            "position",
            "Rows are queries: in row 0 all other keys stand after the query.",
            sides="swapped",
        ),
        wrong(
            "looking ahead costs nothing",
            "position",
            "Keys after the query get -ahead for each step, too.",
            ahead_is="free",
        ),
        wrong(
            "both sides cost the same",
            "position",
            "Keys before the query cost `back` a step, keys after it `ahead`.",
            ahead_is="as back",
        ),
        wrong(
            "distances count from 1",
            "off by one",
            "The token itself has distance 0 and gets no bias.",
            extra=1,
        ),
        wrong(
            "the distance is squared",
            "position",
            "ALiBi's cost grows in a line: twice as far costs twice as much.",
            power=2,
        ),
    ],
    hints=[
        "positions[:, None] - positions is query minus key. Where is it negative?",
        "torch.where picks one of two formulas, entry by entry.",
        "Past: minus back times the difference. Future: the difference is below 0 already.",
    ],
    right_variants=[
        lambda T, back, ahead: torch.tensor(
            [[-back * (q - k) if k <= q else -ahead * (k - q) for k in range(T)] for q in range(T)]
        ),
        lambda T, back, ahead: (
            -(
                back * (torch.arange(T)[:, None] - torch.arange(T)).clamp(min=0)
                + ahead * (torch.arange(T) - torch.arange(T)[:, None]).clamp(min=0)
            )
        ),
        lambda T, back, ahead: (
            -torch.cdist(*2 * [torch.arange(T).double()[:, None]])
            * (back * torch.ones(T, T).tril() + ahead * torch.ones(T, T).triu(1))
        ),
    ],
    map_of=lambda bias: bias,
)
def two_sided_bias(T, back, ahead):
    """A bias of the scores that costs `back` a step before the query, `ahead` a step after it.

    T: number of tokens; back, ahead: above 0. Returns (T, T), queries down, keys across.
    """
    positions = torch.arange(T)
    before = positions[:, None] - positions  # query minus key: below 0 in the future
    return torch.where(before >= 0, -back * before, ahead * before)


def _ratio(*, slope=0.5, steps=6, base=math.e, sign=1):
    cost = sign * slope * steps
    return cost if base == "none" else base**cost


@exercise(
    kind="value",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=3,
    difficulty=2,
    trains="from a slope to weights",
    text="""
    A head with ALiBi has the slope 1/2. All keys are equally good by what they say. How many times
    as much weight does the token itself get as the key 6 steps before it? An expression with
    `math.exp` is welcome.
    """,
    mistakes=[
        *worked_out(
            _ratio,
            wrong(
                "the difference of the scores is given",
                "normalisation",
                "The scores differ by that much; weights go through a softmax, so take e to it.",
                base="none",
            ),
            wrong(
                "the ratio is upside down",
                "position",
                "That is how much the far key gets of the near one's weight.",
                sign=-1,
            ),
            wrong(
                "a power of 2 is taken",
                "normalisation",
                "Softmax raises e to the scores; powers of 2 stand in the slopes only.",
                base=2.0,
            ),
            wrong(
                "the slope is forgotten",
                "scale",
                "Each step costs 1/2, not 1.",
                slope=1.0,
            ),
            wrong(
                "steps are divided by the slope",
                "scale",
                "n steps cost the slope times n: 6 steps at 1/2 make 3.",
                slope=2.0,
            ),
            wrong(
                "the slope is raised to a power",
                "scale",
                "Multiply the slope by the number of steps, and raise e to that.",
                slope=1.0,
                base=0.5,
            ),
            wrong(
                "the distance is off by one",
                "off by one",
                "6 steps back is a distance of 6, and the token itself has the distance 0.",
                {"steps": 7},
                steps=5,
            ),
        ),
    ],
    hints=[
        "What is added to the score of the key 6 steps back, and what to that of the token itself?",
        "Two weights of one row have the same denominator; it drops out of their ratio.",
        "The ratio of the weights is e to the difference of the scores.",
    ],
)
def weight_ratio():
    """Weight of the token itself divided by that of the key 6 steps before it"""
    return math.exp(3)


@exercise(
    kind="value",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=4,
    difficulty=2,
    trains="reading the kind of positions off a map",
    text="""
    One head reads the same word five times, *no no no no no*, without a mask. Its **scores**,
    before the softmax:

    |  | 0 | 1 | 2 | 3 | 4 |
    |---|---|---|---|---|---|
    | **0** | 0.4 | 0.9 | 0.2 | -0.6 | -0.8 |
    | **1** | 0.1 | 0.7 | 0.6 | 0.1 | -0.3 |
    | **2** | -0.2 | 0.2 | 0.7 | 0.8 | 0.5 |
    | **3** | -0.3 | -0.2 | 0.5 | 1.1 | 0.9 |
    | **4** | -0.1 | -0.2 | 0.1 | 0.8 | 0.8 |

    How does this model know positions? `"a"`: not at all. `"b"`: codes are added to the
    embeddings. `"c"`: rotary positions. `"d"`: a bias of the scores that depends on distance.
    """,
    mistakes=[
        wrong(
            "a model without positions is seen",
            "position",
            "Without positions equal words get equal scores, and all 25 would be one number.",
            answer="a",
        ),
        wrong(
            "rotary positions are seen",
            "position",
            "Equal words, turned: their score depends on distance only, so each diagonal would "
            "hold one number.",
            answer="c",
        ),
        wrong(
            "a bias of the scores is seen",
            "position",
            "Equal words plus a number per distance: each diagonal would hold one number.",
            answer="d",
        ),
    ],
    hints=[
        "The words are equal, so all differences come from the places.",
        "Follow a diagonal: its cells have one distance. Do they have one score?",
        "Which of the ways depends on where the two stand, and not on their distance alone?",
    ],
)
def map_of_places():
    """The letter of the way in which this model knows positions"""
    return "b"


def _later(n):
    """Positions from n on: all to 2,000, and those where a code of a round length begins again."""
    round_lengths = (k * 10**e for e in (3, 4) for k in range(1, 11))
    powers = (2**e for e in range(10, 18))
    starts = torch.tensor([*round_lengths, *powers])
    return torch.cat([torch.arange(n, 2001), starts[starts > 2000]])


def _what_holds(answer, n, d):
    """What is asked of a code, whatever its design: each demand, and whether it is met."""
    codes = answer(torch.arange(n), d)
    codes = as_asked(codes, "a tensor (n, d)", (n, d), nan_is_measured=True).double()
    some, beyond = torch.tensor([7, 3, n // 2]), torch.arange(100_000, 100_010)
    alone, far = answer(some, d).double(), answer(beyond, d).double()
    later = answer(_later(n), d).double()
    step = (codes[1:] - codes[:-1]).norm(dim=1)
    finite = (codes.isfinite().all() & far.isfinite().all()).item()
    codes, far = codes.nan_to_num(), far.nan_to_num()
    return {
        "keeps any two codes at least 0.05 apart": torch.pdist(codes).min().item() >= 0.05,
        "has finite numbers, far away too": finite,
        "keeps all numbers between -1 and 1, far away too": bool(
            max(codes.abs().max(), far.abs().max()) <= 1 + 1e-4
        ),
        "makes each step as long as any other, within 5 %": bool(step.max() <= 1.05 * step.min()),
        "gives a position one code, whoever stands beside it": torch.allclose(
            alone, codes[some], atol=1e-4
        ),
        "has codes at positions that nobody trained": far.unique(dim=0).shape[0] == len(far),
        "never begins again": torch.cdist(codes[:2], later.nan_to_num()).min().item() >= 1e-3,
        "is not the table of this chapter": bool(
            torch.cdist(codes.T, _table(n, d).double().T, p=math.inf).amin(0).max() > 1e-2
        ),  # whatever the order of its columns
    }


def _own_code(positions, d, *, design="waves", given="positions", ends=False, loud=False):
    where = positions.double()
    if given == "share":
        where = where / where.max().clamp(min=1) * 50
    if given == "rows":
        where = torch.arange(len(positions)).double()
    if given == "drawn":
        generator = torch.Generator().manual_seed(int(where.sum()))
        return torch.rand(len(positions), d, generator=generator) * 2 - 1
    if ends:
        where = where.clamp(max=2000)
    if given == "modulo":
        where = where % 1000
    if given == "half":
        where = positions.half().double()
    speeds = {
        "waves": 100.0 ** (-torch.arange(0, d, 2).double() / d),
        "table": 10000.0 ** (-torch.arange(0, d, 2).double() / d),
        "one speed": torch.ones(d // 2).double(),
    }.get(design)
    if design == "binary":
        code = ((where.long()[:, None] >> torch.arange(d)) & 1).double()
    else:
        angle = where[:, None] * speeds
        code = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
    return (3 * code if loud else code).float()


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=15,
    difficulty=3,
    trains="designing a code of positions to order",
    text="""
    **An open task**: many codes are right, and only what is asked here is checked. Invent a code of
    positions of your own with these properties, tried for 800 positions and d = 16 and 32: (1) any
    two codes are at least 0.05 apart; (2) all numbers lie between -1 and 1, at position 100,000
    too; (3) the longest step from one code to the next is at most 5 % longer than the shortest;
    (4) the code of a position depends on nothing else; (5) it differs from position to position
    beyond 100,000 too, and never begins again; (6) it is not the table of this chapter, nor
    that with its columns in another order.
    """,
    reference=_own_code,
    play=_what_holds,
    probes=[(800, 16), (800, 32)],
    mistakes=[
        wrong(
            "it is the table of this chapter",
            "frequency",
            "Property 6, in whatever order its columns are: 10000 is only one choice, and so are "
            "the powers. Which others keep the demands?",
            design="table",
        ),
        wrong(
            "two positions have nearly the same code",
            "frequency",
            "Property 1: print torch.pdist(codes).min(). Among sines and cosines, hands of one "
            "speed come round together.",
            design="one speed",
        ),
        wrong(
            "the steps are of different lengths",
            "position",
            "Property 3: print the lengths of codes[1:] - codes[:-1]. A pair of sine and cosine "
            "moves by the same amount everywhere; a digit that jumps does not.",
            design="binary",
        ),
        wrong(
            "the code of a position depends on the others",
            "position",
            "Property 4: make it of the position's own number alone: no row number, no length or "
            "largest position of what was given, no new draw of random numbers.",
            {"given": "rows", "design": "waves", "ends": False},
            {"given": "drawn", "design": "waves", "ends": False, "loud": False},
            given="share",
        ),
        wrong(
            "far positions are not finite numbers",
            "overflow",
            "Property 2: look at the codes beyond position 100,000. A power of a position "
            "overflows, and float16 ends at 65504: count positions in float32 or float64.",
            given="half",
            design="waves",
            ends=False,
            loud=False,
        ),
        wrong(
            "the code ends",
            "position",
            "Property 5: positions that nobody trained need codes of their own, not one for all.",
            ends=True,
        ),
        wrong(
            "the code begins again",
            "position",
            "Property 5: a position counted modulo some number has the code of an earlier one, and "
            "so it is with waves whose lengths all divide one number.",
            given="modulo",
            design="waves",
            ends=False,
            loud=False,
        ),
        wrong(
            "numbers are larger than 1",
            "position",
            "Property 2: nothing may leave -1 to 1; a sine never does.",
            loud=True,
        ),
    ],
    hints=[
        "Go through the demands with sines and cosines in mind: which ones use that the base is "
        "10000, and which do not?",
        "A pair (sin, cos) of any speed moves by the same length at each step. Which sets of "
        "speeds come round together too early?",
        "The order of the columns is free as well, and so is what multiplies them, if it is not "
        "above 1.",
    ],
    right_variants=[
        lambda p, d: torch.cat(
            [
                f(p[:, None] * 500.0 ** (-torch.arange(d // 2) / (d // 2)))
                for f in (torch.cos, torch.sin)
            ],
            dim=1,
        ),
        lambda p, d: _own_code(p, d) @ _turning(d),
        lambda p, d: torch.stack(
            [
                f(p[:, None].double() * 0.618 ** torch.arange(d // 2))
                for f in (torch.sin, torch.cos)
            ],
            -1,
        ).flatten(1),
    ],
)
def own_code(positions, d):
    """A code of positions that meets all six demands.

    positions: whole numbers (n,), in any order; d: even, at least 8. Returns (n, d).
    """
    speeds = 100.0 ** (-torch.arange(0, d, 2) / d)  # (d / 2,): another base than the chapter's
    angle = positions[:, None].double() * speeds  # (n, d / 2)
    return torch.cat([angle.sin(), angle.cos()], dim=1)


def _turning(d):
    """An orthogonal matrix (d, d), so scaled that no code leaves -1 to 1."""
    q, _ = torch.linalg.qr(draw(78, (d, d))[0])
    return q / math.sqrt(d / 2)
