"""Exercises of notebook 15: code with a mistake, put right."""

import math

import torch
from torch import nn

from course_utils.checker.common import lowered, worked_out
from course_utils.checker.exercise import exercise, wrong
from course_utils.checker.probes import draw, far_below

NOTEBOOK = "15_mistakes_clinic"


def _any_width(max_len, d_model, *, last="sine", order="alternate", exponent="width", first=0,
               cosines_at="pair", base=10000.0):  # fmt: skip
    even = torch.arange(0, d_model, 2)
    sizes = {
        "width": d_model,
        "index": 2 * d_model,
        "pairs": d_model // 2,
        "even width": d_model - d_model % 2,
        "rounded up": d_model + d_model % 2,
        "last": max(1, d_model - 1),
    }
    size = sizes[exponent]
    position = torch.arange(first, first + max_len)[:, None]
    angles = position * base ** (-even / size)
    table = torch.zeros(max_len, d_model)
    sines, cosines = (1, 0) if order == "swapped" else (0, 1)
    if order == "blocks" and last == "zero":
        half = angles[:, : d_model // 2]
        table[:, : 2 * (d_model // 2)] = torch.cat([half.sin(), half.cos()], dim=1)
        return table
    if order == "blocks":
        table[:, : len(even)] = angles.sin()
        table[:, len(even) :] = angles[:, : d_model // 2].cos()
        return table
    if last == "as in the note":
        table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()
        return table
    if last == "one more column":
        table = torch.zeros(max_len, 2 * len(even))
        table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()
        return table
    turned = position * base ** (-(even + 1) / size) if cosines_at == "own" else angles
    if last == "left out":
        table = table[:, : d_model - d_model % 2]
    of_columns = [angles, turned]
    for start, values in ((sines, of_columns[sines].sin()), (cosines, of_columns[cosines].cos())):
        room = table[:, start::2].shape[1]
        table[:, start::2] = values[:, :room]
    if d_model % 2 and last == "zero":
        table[:, -1] = 0.0
    if d_model % 2 and last == "cosine":
        table[:, -1] = angles[:, -1].cos()
    if d_model % 2 and last == "repeated":
        table[:, -1] = table[:, -2]
    return table


def _width_entry_by_entry(rows, width):
    return torch.tensor(
        [
            [
                (math.cos if j % 2 else math.sin)(p / 10000 ** ((j - j % 2) / width))
                for j in range(width)
            ]
            for p in range(rows)
        ]
    )


def _width_by_shift(rows, width):
    columns = torch.arange(width)
    rate = 10000.0 ** (-(columns - columns % 2) / width)
    angles = torch.arange(rows).double()[:, None] * rate + (columns % 2) * math.pi / 2
    return torch.sin(angles)


def _width_cut_from_a_wider_one(rows, width):
    even = torch.arange(0, width, 2)
    angles = torch.arange(rows)[:, None] * torch.exp(even * (-math.log(10000.0) / width))
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :width]


@exercise(
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="the table of positions at its edges",
    asks="transfer",
    text="""
    The lines `pe[:, 0::2] = torch.sin(...)`, `pe[:, 1::2] = torch.cos(...)` of case *odd-width*
    break for an odd width. Write the table for any width: the last column of an odd one is a sine
    without its cosine.
    """,
    reference=_any_width,
    probes=[(3, 3), (4, 6), (5, 7), (2, 1)],
    mistakes=[
        wrong(
            "an odd width does not fit",
            "sine and cosine",
            "An odd width has one sine more than cosines: take only the first d // 2 frequencies.",
            last="as in the note",
        ),
        wrong(
            "the odd width is rounded up",
            "sine and cosine",
            "The table must have d_model columns, or it cannot be added to the embeddings.",
            last="one more column",
        ),
        wrong(
            "the last column of an odd width is empty",
            "sine and cosine",
            "The sine of the last frequency has its place there.",
            last="zero",
        ),
        wrong(
            "sine and cosine are swapped",
            "sine and cosine",
            "Even columns hold sines, so row 0 reads 0, 1, 0.",
            order="swapped",
        ),
        wrong(
            "all sines stand before all cosines",
            "sine and cosine",
            "They alternate: columns 2i and 2i + 1 belong to one frequency.",
            order="blocks",
        ),
        wrong(
            "the exponent is divided by the number of pairs",
            "frequency",
            "The exponent is 2i / d with d the width, not the number of pairs.",
            exponent="pairs",
        ),
        wrong(
            "the width in the exponent is rounded down",
            "frequency",
            "The formula takes d as it is, odd or even.",
            exponent="even width",
        ),
        wrong(
            "positions count from 1",
            "off by one",
            "The first token stands at position 0.",
            first=1,
        ),
        wrong(
            "the width in the exponent is rounded up",
            "frequency",
            "The exponent divides by d itself: a table of d + 1 columns, cut to d, has other "
            "frequencies.",
            exponent="rounded up",
        ),
        wrong(
            "the base is not 10000",
            "frequency",
            "The lowest frequency is near 1 / 10000, whatever the width.",
            {"base": 100000.0},
            base=1000.0,
        ),
        wrong(
            "the 2 in the exponent is missing",
            "frequency",
            "Pair i has the exponent 2i / d.",
            exponent="index",
        ),
        wrong(
            "a cosine has a frequency of its own",
            "frequency",
            "Columns 2i and 2i + 1 are sine and cosine of one and the same angle.",
            cosines_at="own",
        ),
        wrong(
            "the last column of an odd width is a cosine",
            "sine and cosine",
            "It is an even column, so it holds a sine.",
            last="cosine",
        ),
        wrong(
            "the last column of an odd width repeats the one before",
            "sine and cosine",
            "It starts a new pair: the sine of the next, the lowest frequency.",
            last="repeated",
            cosines_at="pair",
        ),
        wrong(
            "the odd width is rounded down",
            "sine and cosine",
            "The table must have d_model columns, or it cannot be added to the embeddings.",
            last="left out",
        ),
        wrong(
            "the exponent is divided by d - 1",
            "frequency",
            "The formula divides by d: even the lowest frequency stays above 1 / 10000.",
            exponent="last",
        ),
    ],
    hints=[
        "How many sines and how many cosines does a width of 7 have? The exponent stays 2i / 7.",
        "table[:, 1::2] has d_model // 2 columns, one fewer than there are frequencies.",
        "Cut the angles to that many columns before you take their cosine.",
    ],
    right_variants=[_width_entry_by_entry, _width_by_shift, _width_cut_from_a_wider_one],
)
def table_of_any_width(max_len, d_model):
    """Sines and cosines of positions 0..max_len - 1: (max_len, d_model), d_model odd or even."""
    even = torch.arange(0, d_model, 2)
    angles = torch.arange(max_len)[:, None] * 10000.0 ** (-even / d_model)
    table = torch.zeros(max_len, d_model)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles[:, : d_model // 2])
    return table


def _filled(scores, mask, *, fill="lowest", empty="zero", hides="right", axis=-1, when="before",
            dtype="kept"):  # fmt: skip
    scores = scores if dtype == "kept" else scores.to(dtype)
    visible = mask if hides == "right" else ~mask
    number = {"lowest": torch.finfo(scores.dtype).min, "notes": -1e9, "zero": 0.0, "inf": -math.inf,
              "low": -1e4, "half": -6e4}  # fmt: skip
    if when == "after":
        weights = torch.softmax(scores, dim=axis) * visible
    elif fill == "unshifted":
        powers = scores.exp() * visible
        weights = powers / powers.sum(dim=axis, keepdim=True).clamp_min(1e-6)
    elif fill == "by 50":
        weights = torch.softmax(lowered(scores, ~visible, fill), dim=axis)
    else:
        weights = torch.softmax(scores.masked_fill(~visible, number[fill]), dim=axis)
    seen = {
        "zero": visible.any(dim=axis, keepdim=True),
        "all": visible.all(dim=axis, keepdim=True),
        "hidden, too": visible,
    }
    return weights.masked_fill(~seen[empty], 0.0) if empty in seen else weights


def play_filled(answer, scores, mask):
    """The weights, and in which dtype they came."""
    weights = answer(scores, mask)
    dtype = str(getattr(weights, "dtype", "none")).removeprefix("torch.")
    return {"weights": weights, "dtype of the weights": dtype}


def _fill_then_clear(s, m):
    weights = torch.softmax(torch.where(m, s, torch.finfo(s.dtype).min), -1)
    return torch.where(m, weights, 0.0)


def _fill_in_double(s, m):
    weights = torch.softmax(s.double().masked_fill(~m, -math.inf), dim=-1).nan_to_num(0.0)
    return weights.to(s.dtype)


def _fill_by_hand(s, m):
    highest = s.float().masked_fill(~m, -1e30).amax(-1, keepdim=True)
    powers = torch.exp(s.float() - highest.clamp_min(-1e29)).clamp_max(1.0) * m
    return (powers / powers.sum(-1, keepdim=True).clamp_min(1e-20)).to(s.dtype)


_SEEN = torch.tensor([[True, True, False, False], [False, False, False, False], [True] * 4])


@exercise(
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="masks in every precision",
    asks="transfer",
    text="""
    Float16 cannot hold `-1e9` (case *half-precision*), and a row without a visible key looks at
    padding (case *nobody-left*). Write the masked softmax that works in every precision: the dtype
    stays, and an empty row gets weights of zero.
    """,
    reference=_filled,
    play=play_filled,
    probes=[
        (torch.zeros(3, 4, dtype=torch.float16), _SEEN),
        (*draw(150, (3, 4)), _SEEN),
        (*draw(151, (2, 3, 5), scale=2.0), torch.arange(30).reshape(2, 3, 5) % 4 != 1),
        (far_below(3, 4, step=25.0, lowest=-30_000.0), _SEEN),  # half precision ends at -65,504
        (far_below(3, 4), _SEEN),
        (torch.zeros(3, 4, dtype=torch.bfloat16), _SEEN),
    ],
    mistakes=[
        wrong(
            "the fill value does not fit into float16",
            "overflow",
            "float16 ends at 65504: take torch.finfo(scores.dtype).min.",
            fill="notes",
        ),
        wrong(
            "hidden scores are set to 0",
            "mask direction",
            "0, or finfo.tiny just above it, is a score like others; the fill must be the lowest.",
            {"empty": "hidden, too"},
            fill="zero",
        ),
        wrong(
            "the row's maximum is not subtracted",
            "overflow",
            "exp of a score far below 0 is 0, and of a large one infinite: subtract the row's "
            "maximum first, or use torch.softmax.",
            fill="unshifted",
            when="before",
        ),
        wrong(
            "an empty row shares its weight among hidden keys",
            "empty row",
            "Where a row of the mask has no True, all its weights are 0: look along the last axis.",
            empty="as it comes",
        ),
        wrong(
            "an empty row is NaN",
            "empty row",
            "With -inf in every place the softmax divides 0 by 0; clear such rows.",
            fill="inf",
            empty="as it comes",
        ),
        wrong(
            "the mask is inverted",
            "mask direction",
            "True means that the key may be looked at.",
            hides="inverted",
        ),
        wrong(
            "the softmax runs over the queries",
            "softmax axis",
            "Each query's weights sum to 1 over the keys, the last axis.",
            axis=-2,
        ),
        wrong(
            "the mask comes after the softmax",
            "mask timing",
            "Hidden keys have then taken their share, and the rest does not sum to 1.",
            when="after",
        ),
        wrong(
            "the dtype changes",
            "overflow",
            "Weights have the dtype of the scores: after a softmax in float32 convert them back.",
            {"dtype": torch.float64},
            dtype=torch.float32,
        ),
        wrong(
            "the fill value is not low enough",
            "overflow",
            "Scores may lie far below it; only the lowest number of the dtype is below all "
            "of them.",
            {"fill": "by 50"},
            {"empty": "hidden, too"},
            {"fill": "half"},
            {"fill": "half", "empty": "hidden, too"},
            fill="low",
            when="before",
        ),
        wrong(
            "rows with any hidden key are cleared",
            "empty row",
            "A row is empty only where no key is visible: any, not all.",
            empty="all",
        ),
    ],
    hints=[
        "torch.finfo(scores.dtype) knows the limits of a dtype.",
        "After the softmax, which rows are wrong? Those where mask.any(dim=-1) is False.",
        "masked_fill with a mask of shape (..., 1) clears whole rows.",
    ],
    right_variants=[_fill_then_clear, _fill_in_double, _fill_by_hand],
)
def safe_fill(scores, mask):
    """Scores (..., Tq, Tk) of any float dtype, mask the same with True = may look -> weights."""
    lowest = torch.finfo(scores.dtype).min
    weights = torch.softmax(scores.masked_fill(~mask, lowest), dim=-1)
    return weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)


_kept_linears: dict[tuple, list] = {}


def _linears(num, size, *, held="module list", made="one by one", count=0, bias=True,
             square=True, trained=True, seeded=False, kept=False):  # fmt: skip
    num, output = num + count, size if square else size * num
    if seeded:
        torch.manual_seed(0)
    layers = [nn.Linear(size, output, bias=bias) for _ in range(num)]
    if kept:
        layers = _kept_linears.setdefault((made, num, size, output, bias), layers)
    if made == "shared":
        layers = layers[:1] * num
    if made == "copies":
        for other in layers:
            other.load_state_dict(layers[0].state_dict())
    if made == "constant":
        for layer in layers:
            nn.init.zeros_(layer.weight)
    for layer in layers:
        layer.requires_grad_(trained)
    return layers if held == "list" else nn.ModuleList(layers)


def play_linears(answer, num, size):
    """What can be seen of the layers: how many, what is registered, and whether they differ."""
    layers, others = answer(num, size), answer(num, size)
    listed = [x.values() if isinstance(x, nn.ModuleDict) else x for x in (layers, others)]
    weights, later = ([layer.weight for layer in x] for x in listed)
    parameters = layers.parameters() if isinstance(layers, nn.Module) else ()
    return {
        "layers": len(weights),
        "shape of the first weight": list(weights[0].shape),
        "registered parameters": sum(p.numel() for p in parameters),
        "every weight needs a gradient": all(weight.requires_grad for weight in weights),
        "different layers": len({id(weight) for weight in weights}),
        "numbers in the first layer": sum(p.numel() for p in [*listed[0]][0].parameters()),
        "neighbours start with different numbers": not any(map(torch.equal, weights, weights[1:])),
        "the next call makes new layers": {*map(id, weights)}.isdisjoint(map(id, later)),
        "the next call starts with other numbers": not any(map(torch.equal, weights, later)),
        "a weight holds different numbers": all(len(weight.unique()) > 1 for weight in weights),
    }


def _linears_in_sequence(num, size):
    return nn.Sequential(*(nn.Linear(size, size) for _ in range(num)))


def _linears_appended(num, size):
    layers = nn.ModuleList()
    while len(layers) < num:
        layers.append(nn.Linear(size, size))
    return layers


def _linears_copied_and_drawn_anew(num, size):
    import copy

    first = nn.Linear(size, size)
    layers = nn.ModuleList(copy.deepcopy(first) for _ in range(num))
    for layer in layers:
        layer.reset_parameters()
    return layers


@exercise(
    notebook=NOTEBOOK,
    minutes=4,
    difficulty=1,
    trains="parameters of their own",
    text="""
    `[nn.Linear(8, 8)] * 4` registers nothing, and copies start equal (cases *times-four*,
    *copies*). Return `num` linear layers that a module which holds them would train, each with a
    start of its own, and with another one at the next call.
    """,
    reference=_linears,
    play=play_linears,
    probes=[(2, 3), (4, 5)],
    mistakes=[
        wrong(
            "a plain list registers nothing",
            "sharing",
            "The optimiser never hears of parameters in a list: use nn.ModuleList.",
            held="list",
        ),
        wrong(
            "all layers are one and the same",
            "sharing",
            "list * num repeats one object; make a new layer in each turn of a comprehension.",
            made="shared",
        ),
        wrong(
            "all layers start equal",
            "sharing",
            "Each draws numbers of its own: a copy keeps those of its model.",
            made="copies",
        ),
        wrong(
            "every call starts with the same numbers",
            "sharing",
            "Two blocks made in this way start equal: seed nothing inside the function, and give "
            "no numbers of your own.",
            seeded=True,
        ),
        wrong(
            "the layers of an earlier call are given again",
            "sharing",
            "Two blocks made in this way share their weights: make new layers at each call.",
            kept=True,
        ),
        wrong(
            "a weight starts with one number throughout",
            "sharing",
            "Equal weights get equal gradients: nn.Linear draws them, so leave them as they are.",
            made="constant",
        ),
        wrong("there is one layer too few", "off by one", "num layers are due.", count=-1),
        wrong("there is one layer too many", "off by one", "num layers are due.", count=1),
        wrong(
            "the layers have no bias",
            "counting",
            "nn.Linear(size, size) has a bias, unless it is told otherwise.",
            bias=False,
        ),
        wrong(
            "each layer is as wide as all together",
            "projection",
            "Each layer keeps the size: size numbers in, size numbers out.",
            square=False,
        ),
        wrong(
            "the layers are frozen",
            "frozen base",
            "They are to be trained, so each weight and bias needs a gradient.",
            trained=False,
        ),
    ],
    hints=[
        "What does a list know about parameters, and what does nn.ModuleList?",
        "x * 4 on a list repeats the reference, not the object.",
        "A generator inside nn.ModuleList(...) makes a new layer in each turn.",
    ],
    right_variants=[_linears_in_sequence, _linears_appended, _linears_copied_and_drawn_anew],
)
def own_linears(num, size):
    """num layers, size numbers in and out, each with registered, freshly drawn weights."""
    return nn.ModuleList(nn.Linear(size, size) for _ in range(num))


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=2,
    difficulty=2,
    trains="the scale of a head",
    text="""
    Scores are divided by the root of k, although the heads were split before (case
    *root-of-what*). With k = 512 and 8 heads: by which **factor** are they too small?
    """,
    mistakes=[
        *worked_out(
            lambda *, power=0.5, sign=1: (512 / 64) ** (sign * power),
            wrong(
                "the root is missing",
                "scale",
                "The factor is that of the two roots, not of the two sizes.",
                power=1,
            ),
            wrong(
                "the factor is turned round",
                "scale",
                "They were divided by too large a number; asked is right over given.",
                sign=-1,
            ),
        ),
        wrong(
            "the root of k is given",
            "scale",
            "That is the divisor; compare it with the divisor that is due.",
            answer=512**0.5,
        ),
        wrong(
            "a number of features is given",
            "scale",
            "The factor compares two roots, those of all 512 features and of the 64 of one head.",
            {"answer": 8.0 * 64},
            answer=64,
        ),
    ],
    hints=[
        "How many features has one head?",
        "By what should its scores be divided, and by what are they?",
        "Divide the one root by the other.",
    ],
)
def unsplit_scale():
    """The factor by which the scores are too small:"""
    return math.sqrt(512) / math.sqrt(512 / 8)
