"""Exercises of notebook 21: patches, the sequence that the encoder reads, positions on a grid."""

import math

import torch
import torch.nn.functional as F

from course_utils.checker.exercise import exercise, wrong
from course_utils.checker.probes import as_asked, draw

NOTEBOOK = "21_pictures"


def _patches(
    picture, patch, *, kept="squares", order="rows", pixels="rows", inside="first", step="whole",
    flat=True,
):  # fmt: skip
    picture = picture[:1] if kept == "channel 0" else picture
    channels = len(picture)
    if kept == "lines":
        return picture.reshape(channels, -1, patch * patch).transpose(0, 1).flatten(1)
    if kept == "reshaped":
        return picture.reshape(-1, channels * patch * patch)
    if kept == "cut apart":
        sizes = picture.shape[1] // patch, picture.shape[2] // patch
        return picture.reshape(channels, *sizes, -1).permute(1, 2, 0, 3).flatten(2).flatten(0, 1)
    if kept == "spread":
        grid = picture.unflatten(1, (patch, -1)).unflatten(3, (patch, -1))
        return grid.permute(2, 4, 0, 1, 3).flatten(2).flatten(0, 1)
    if kept == "no edge":
        picture = picture[:, : picture.shape[1] - patch, : picture.shape[2] - patch]
    if kept == "as many columns as rows":
        picture = picture[:, :, : picture.shape[1]]
    if kept == "as many rows as columns":
        picture = picture[:, : picture.shape[2]]
    if kept == "grid first":
        grid = picture.unfold(1, patch, patch).unfold(2, patch, patch)
        return grid.reshape(-1, channels * patch * patch)
    stride = {"whole": patch, "one": 1}[step]
    grid = picture.unfold(1, patch, stride).unfold(2, patch, stride)  # (C, h, w, p, p)
    if pixels == "columns":
        grid = grid.transpose(-1, -2)
    if order == "columns":
        grid = grid.transpose(1, 2)
    grid = grid.permute(1, 2, 3, 4, 0) if inside == "last" else grid.permute(1, 2, 0, 3, 4)
    found = grid.flatten(0, 1)  # (N, C, p, p)
    return found.flatten(1) if flat else found


_AS_SQUARES = {"order": "rows", "pixels": "rows", "inside": "first"}


@exercise(
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=2,
    trains="cutting a picture into patches",
    text="""
    Cut a picture `(C, H, W)` into squares of `patch` times `patch` pixels that do not overlap. Each
    becomes one row of the result: all pixels of channel 0, line by line, then those of channel 1,
    and so on. Patches follow each other as you read: from left to right, then the next row of
    patches.
    """,
    reference=_patches,
    probes=[
        (torch.arange(16.0).view(1, 4, 4), 2),
        (torch.arange(24.0).view(1, 4, 6), 2),
        (torch.arange(48.0).view(2, 4, 6), 2),
        (torch.arange(48.0).view(2, 6, 4), 2),
        (*draw(1, (3, 6, 9)), 3),
    ],
    mistakes=[
        wrong(
            "patches are runs of pixels along a line, not squares",
            "patches",
            "reshape takes pixels in the order of memory, line after line; a square takes a few "
            "from each of several lines. Split both axes first, then bring the pieces together.",
            {"kept": "reshaped"},
            {"kept": "cut apart"},
            kept="lines",
            **_AS_SQUARES,
        ),
        wrong(
            "a patch takes pixels from all over the picture",
            "patches",
            "Line y is line y % patch of grid row y // patch: split H into (H / patch, patch), in "
            "this order.",
            kept="spread",
            **_AS_SQUARES,
        ),
        wrong(
            "the last row and the last column of patches are missing",
            "off by one",
            "range stops before its end: the last patch begins at H - patch, so end at H.",
            kept="no edge",
        ),
        wrong(
            "only channel 0 is cut",
            "patches",
            "A row holds the pixels of all channels, one channel after the other.",
            kept="channel 0",
            inside="first",
        ),
        wrong(
            "the grid is taken to be square",
            "counting",
            "A picture has H / patch rows of patches and W / patch columns: each from its own "
            "axis.",
            {"kept": "as many rows as columns"},
            kept="as many columns as rows",
        ),
        wrong(
            "each channel is cut into patches of its own",
            "patches",
            "One row holds a square of all channels: bring the axes of the grid before that of the "
            "channels, then reshape.",
            kept="grid first",
            **_AS_SQUARES,
        ),
        wrong(
            "the patches follow each other column by column",
            "patches",
            "Patch 1 is the one to the right of patch 0, not the one below it.",
            order="columns",
        ),
        wrong(
            "each patch is transposed",
            "patches",
            "Within a patch the pixels are read line by line; here its columns are read.",
            pixels="columns",
        ),
        wrong(
            "the channels of a pixel stand side by side",
            "patches",
            "All pixels of channel 0 come first, then those of channel 1: the axis of the channels "
            "stands before the two of the pixels.",
            inside="last",
        ),
        wrong(
            "the patches overlap, so there are too many",
            "counting",
            "The next patch begins `patch` pixels on: there are (H / patch) * (W / patch).",
            step="one",
        ),
        wrong(
            "a patch is not yet one row of numbers",
            "patches",
            "The result has two axes: (N, C * patch * patch).",
            flat=False,
        ),
    ],
    hints=[
        "Line 5 of a picture with patches of 4 is line 1 of the patches in grid row 1. So the axis "
        "of lines splits into two: which row of patches, and which line within.",
        "Split H into (H / patch, patch) and W into (W / patch, patch): five axes with the "
        "channels.",
        "Bring the two axes of the grid to the front with permute, then flatten twice.",
    ],
    right_variants=[
        lambda x, p: F.unfold(x[None], p, stride=p)[0].T,
        lambda x, p: torch.stack(
            [
                x[:, i : i + p, j : j + p].reshape(-1)
                for i in range(0, x.shape[1], p)
                for j in range(0, x.shape[2], p)
            ]
        ),
        lambda x, p: torch.cat(
            [torch.stack([t.flatten() for t in row.split(p, 2)]) for row in x.split(p, 1)]
        ),
    ],
)
def patches_of(picture, patch):
    """Squares of a picture, one a row.

    picture: (C, H, W), with sides that are multiples of patch. Returns (N, C * patch * patch).
    """
    channels, height, width = picture.shape
    grid = picture.reshape(channels, height // patch, patch, width // patch, patch)
    return grid.permute(1, 3, 0, 2, 4).flatten(2).flatten(0, 1)


def _together(patches, rows, *, order="rows", pixels="rows", kept="squares", grid="own"):
    number, side = len(patches), round(patches.shape[1] ** 0.5)
    columns = number // rows
    if grid == "swapped":
        rows, columns = columns, rows
    if kept == "lines":
        return patches.reshape(rows * side, columns * side)
    parts = patches.reshape(number, side, side)
    if pixels == "columns":
        parts = parts.transpose(1, 2)
    if order == "columns":
        parts = parts.reshape(columns, rows, side, side).transpose(0, 1)
    else:
        parts = parts.reshape(rows, columns, side, side)
    return parts.transpose(1, 2).reshape(rows * side, columns * side)


@exercise(
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="the way back from patches to a picture",
    text="""
    The way back: from the patches of a grey picture, one a row and in the order in which you read,
    make the picture again. `rows` is the number of rows of patches; patches are squares.
    """,
    reference=_together,
    probes=[
        (torch.arange(16.0).view(4, 4), 2),
        (torch.arange(24.0).view(6, 4), 2),
        (*draw(2, (6, 9)), 3),
    ],
    mistakes=[
        wrong(
            "the patches are laid out line after line, as if each were a run of pixels",
            "patches",
            "The pixels of one patch end up in several lines of the picture: swap the axes before "
            "you reshape.",
            kept="lines",
        ),
        wrong(
            "the patches are laid out column by column",
            "patches",
            "Patch 1 belongs to the right of patch 0.",
            order="columns",
        ),
        wrong(
            "each patch is transposed",
            "patches",
            "The pixels of a patch come line by line.",
            pixels="columns",
        ),
        wrong(
            "rows and columns of the grid are taken for each other",
            "patches",
            "`rows` counts the rows of patches; there are len(patches) / rows in each.",
            grid="swapped",
        ),
    ],
    hints=[
        "Make four axes of two: (rows, columns, side, side).",
        "A line of the picture runs through all patches of a row: which two axes have to stand "
        "side by side at the end?",
        "Only one swap of axes is needed, then one reshape.",
    ],
    right_variants=[
        lambda x, rows: (lambda p, n: F.fold(x.T[None], (rows * p, n * p), p, stride=p)[0, 0])(
            math.isqrt(x.shape[1]), len(x) // rows
        ),
        lambda x, rows: torch.cat(
            [
                torch.cat([p.view(math.isqrt(x.shape[1]), -1) for p in row], dim=1)
                for row in x.split(len(x) // rows)
            ]
        ),
        lambda x, rows: (
            x.unflatten(0, (rows, -1))
            .unflatten(2, (math.isqrt(x.shape[1]), -1))
            .permute(0, 2, 1, 3)
            .flatten(2)
            .flatten(0, 1)
        ),
    ],
)
def put_together(patches, rows):
    """A grey picture from its patches.

    patches: (N, side * side). Returns (rows * side, N / rows * side).
    """
    side = round(patches.shape[1] ** 0.5)
    grid = patches.reshape(rows, -1, side, side)  # (rows, columns, side, side)
    return grid.transpose(1, 2).reshape(rows * side, -1)


def _sequence(patches, class_token, positions, *, at="front", own=True, added="all", to="each",
              times=0.0):  # fmt: skip
    batch, number, d = patches.shape
    patches, class_token = (x * d**times for x in (patches, class_token))
    token = class_token.expand(batch, 1, -1)
    if to == "first":
        token = torch.cat([token[:1], torch.zeros_like(token[1:])])
    if at == "all in front":
        rows = torch.cat([token[:, 0], patches.reshape(-1, patches.shape[-1])])
        return rows.view(batch, number + 1, -1) + positions
    if at == "added":
        return patches + class_token + (positions[1:] if added == "all" else 0)
    if added == "never":
        positions = torch.zeros_like(positions)
    if added == "the first":
        positions = positions[:1].expand_as(positions)
    if added == "one early":
        positions = torch.cat([positions[:1], positions[:-1]])
    if added == "class last":
        positions = positions.roll(1, 0)
    if added == "backwards":
        positions = positions.flip(0)
    if not own:
        rest = {"all": positions[1:], "first N": positions[:number]}.get(added, positions[1:])
        none = torch.zeros_like(positions[:1])
        positions = torch.cat([none, rest] if at == "front" else [rest, none])
    parts = [token, patches] if at == "front" else [patches, token]
    found = torch.cat(parts, dim=1)
    return found * positions if added == "multiplied" else found + positions


@exercise(
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=1,
    trains="the sequence that the encoder reads",
    text="""
    Make the sequence that the encoder reads: the class token before the patches of each picture,
    and to every one of these N + 1 vectors its position. `positions[0]` belongs to the class token.
    """,
    reference=_sequence,
    probes=[
        (
            torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]),
            torch.tensor([9.0, 8.0]),
            torch.tensor([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]),
        ),
        draw(3, (2, 3, 4), (4,), (4, 4)),
        draw(4, (3, 4, 2), (2,), (5, 2)),
    ],
    mistakes=[
        wrong(
            "the class token stands at the end",
            "class token",
            "It comes first, so that it is found at 0 whatever the number of patches.",
            at="end",
        ),
        wrong(
            "the class token is added to the patches, not put before them",
            "class token",
            "It is one more word, with a vector of its own: join along the axis of the words.",
            at="added",
        ),
        wrong(
            "the class token gets no position",
            "class token",
            "There are N + 1 positions for N + 1 vectors; positions[0] is the class token's.",
            {"added": "first N"},
            own=False,
            added="all",
        ),
        wrong(
            "the class token gets the last position",
            "class token",
            "positions[0] is the class token's, and those of the patches begin at 1.",
            added="class last",
            own=True,
        ),
        wrong(
            "the positions are not added",
            "position",
            "Without them the encoder sees a bag of patches.",
            added="never",
            own=True,
        ),
        wrong(
            "all vectors get the position of the class token",
            "position",
            "Each of the N + 1 vectors has a row of its own in `positions`.",
            added="the first",
        ),
        wrong(
            "the first patch gets the position of the class token",
            "off by one",
            "positions[0] is the class token's, and those of the patches begin at 1.",
            added="one early",
            own=True,
        ),
        wrong(
            "the positions are read backwards",
            "position",
            "positions[0] belongs to the first vector, the class token, and so on in order.",
            added="backwards",
            own=True,
        ),
        wrong(
            "vectors are multiplied by the root of d",
            "scale",
            "The Transformer of 2017 does that to its embeddings of words; here a position is "
            "added, and nothing else.",
            times=0.5,
        ),
        wrong(
            "vectors are multiplied by their positions",
            "position",
            "A position is added: a vector of d numbers to a vector of d numbers.",
            added="multiplied",
            own=True,
        ),
        wrong(
            "the class tokens of all pictures stand in front of all patches",
            "class token",
            "A reshape of (B + B N, d) cuts in the wrong places and mixes the pictures: join along "
            "the axis of the words.",
            at="all in front",
            own=True,
            added="all",
        ),
        wrong(
            "only the first picture gets the class token",
            "class token",
            "Every picture of the batch needs its copy: expand it over the batch.",
            to="first",
            at="front",
        ),
    ],
    hints=[
        "The class token has shape (d,); it has to become (B, 1, d).",
        "torch.cat joins along an existing axis: which one is that of the words?",
        "The positions (N + 1, d) broadcast over the batch, once both parts are joined.",
    ],
    right_variants=[
        lambda x, c, p: torch.stack([torch.cat([c[None], each]) + p for each in x]),
        lambda x, c, p: torch.cat([(c + p[0]).repeat(len(x), 1, 1), x + p[1:]], 1),
        lambda x, c, p: F.pad(x, (0, 0, 1, 0)) + F.pad(c[None], (0, 0, 0, x.shape[1])) + p,
    ],
)
def sequence_of(patches, class_token, positions):
    """What the encoder reads.

    patches: (B, N, d), class_token: (d,), positions: (N + 1, d). Returns (B, N + 1, d).
    """
    first = class_token.expand(len(patches), 1, -1)
    return torch.cat([first, patches], dim=1) + positions


def _mean(
    encoded, real,
    *, over="patches", hidden=True, divide="real", shift=0, way="mean", order="any",
):  # fmt: skip
    if order == "first":
        real = torch.arange(real.shape[1]) < real.sum(1, keepdim=True)
    if way == "token":
        return encoded[:, 0]
    patches = encoded[:, 1:] if shift == 0 else encoded[:, :-1]
    keep = {True: real, False: torch.ones_like(real), "the real ones": ~real}[hidden]
    if over == "all":
        patches, keep = encoded, torch.cat([torch.ones_like(keep[:, :1]), keep], dim=1)
    if way == "median":
        return patches.masked_fill(~keep[..., None], math.nan).nanmedian(1).values
    if way == "max":
        return patches.masked_fill(~keep[..., None], -math.inf).amax(1)
    total = (patches * keep[..., None]).sum(1)
    if divide == "sum":
        return total
    count = keep.sum(1, keepdim=True) if divide == "real" else keep.shape[1]
    count = keep.sum() if divide == "all real" else count
    count = real.sum(1, keepdim=True) if divide == "patches alone" else count
    if divide == "not 0":
        count = (patches * keep[..., None] != 0).sum(1)
    if divide == "not a row of 0":
        count = (patches * keep[..., None] != 0).any(-1).sum(1, keepdim=True)
    return total / count


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=2,
    trains="an answer from the mean of the patches",
    text="""
    Many vision Transformers answer from the mean of their patches instead. The encoder gives
    `encoded` with the class token at 0. Some pictures were smaller and filled up with empty
    patches; `real` is True for those that belong to the picture, at least one in each. Return the
    mean vector of its real patches for each picture.
    """,
    reference=_mean,
    probes=[
        (
            torch.tensor([[[9.0, 9.0], [1.0, 0.0], [3.0, 4.0], [50.0, 60.0]]]),
            torch.tensor([[True, True, False]]),
        ),
        (
            torch.tensor([[[9.0, 9.0], [0.0, 0.0], [3.0, 4.0], [50.0, 60.0]]]),
            torch.tensor([[True, True, False]]),
        ),
        (*draw(5, (2, 5, 3)), torch.tensor([[True] * 4, [False, True, False, True]])),
        (
            *draw(6, (3, 4, 5)),
            torch.tensor([[True, False, False], [True] * 3, [False, True, True]]),
        ),
    ],
    mistakes=[
        wrong(
            "the mean includes the class token",
            "class token",
            "The class token is no part of the picture: the patches begin at 1.",
            {"divide": "patches alone"},
            over="all",
            shift=0,
        ),
        wrong(
            "the empty patches are averaged, not the real ones",
            "mask meaning",
            "`real` is True for what belongs to the picture: keep those.",
            hidden="the real ones",
        ),
        wrong(
            "empty patches are in the mean",
            "averaging",
            "Only those where `real` is True belong to the picture.",
            hidden=False,
        ),
        wrong(
            "the sum is divided by all patches, the empty ones too",
            "averaging",
            "What is in the count has to be in the sum: divide by the number of real ones.",
            divide="all",
        ),
        wrong(
            "the sum is not divided",
            "averaging",
            "A mean is a sum, divided by how many were summed.",
            divide="sum",
        ),
        wrong(
            "numbers that are 0 are not counted",
            "averaging",
            "A real patch may hold a 0: count where `real` is True, not what differs from 0.",
            {"divide": "not a row of 0"},
            divide="not 0",
        ),
        wrong(
            "the real patches of all pictures are counted together",
            "averaging",
            "Each picture has a count of its own: sum over the axis of the patches only, dim=1.",
            divide="all real",
        ),
        wrong(
            "the first patches are taken, as many as are real",
            "averaging",
            "The real ones may stand anywhere: choose by `real`, not by how many there are.",
            order="first",
        ),
        wrong(
            "`real` is off by one",
            "class token",
            "real[:, 0] speaks of the first patch, which is encoded[:, 1].",
            shift=1,
            over="patches",
        ),
        wrong(
            "the answer is the class token",
            "class token",
            "Here the patches themselves are averaged; the class token at 0 is left out.",
            way="token",
            over="patches",
            hidden=True,
            divide="real",
            shift=0,
            order="any",
        ),
        wrong(
            "the largest value is taken, not the mean",
            "averaging",
            "Add up the real patches and divide by their number.",
            way="max",
            divide="real",
        ),
        wrong(
            "the median is taken, not the mean",
            "averaging",
            "Add up the real patches and divide by their number.",
            way="median",
            divide="real",
        ),
    ],
    hints=[
        "encoded[:, 1:] and real have the same number of places.",
        "Multiply by real, with one more axis at its end, and the empty patches are 0.",
        "Divide by real.sum(1, keepdim=True), of shape (B, 1).",
    ],
    right_variants=[
        lambda x, r: torch.stack([e[1:][k].mean(0) for e, k in zip(x, r)]),
        lambda x, r: torch.einsum("bnd,bn->bd", x[:, 1:], r / r.sum(1, keepdim=True)),
        lambda x, r: x[:, 1:].masked_fill(~r.unsqueeze(-1), math.nan).nanmean(1),
    ],
)
def mean_readout(encoded, real):
    """The mean of the real patches.

    encoded: (B, 1 + N, d), real: booleans (B, N). Returns (B, d).
    """
    kept = encoded[:, 1:] * real[..., None]  # (B, N, d)
    return kept.sum(1) / real.sum(1, keepdim=True)


def _parameters(
    height, width, channels, patch, d, *,
    token=True, own=True, bias=True, area=True, colours=True, grid="both", table="used",
):  # fmt: skip
    number = {
        "both": (height // patch) * (width // patch),
        "one map each": (height // patch) * (width // patch),
        "one side": height // patch,
        "square": (height // patch) ** 2,
        "pixels": height * width,
        "area by side": height * width // patch,
    }[grid]
    pixels = {True: patch * patch, False: patch, "all": height * width}[area]
    inputs = pixels * (channels if colours else 1)
    linear = inputs * d + {True: d, False: 0, "of the pixels": inputs, "one": 1}[bias]
    linear = linear * number if grid == "one map each" else linear
    read = number + 1 if own else number
    positions = {"used": read * d, "left out": 0, "one number": read}[table]
    words = {True: d, False: 0, "for each patch": number * d, "one number": 1}[token]
    return linear, words, positions


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="counting what turns a picture into words",
    text="""
    How many trained numbers stand before the first block? Return three numbers: those of the
    linear map of the patches with its bias, of the class token, and of the learned positions, one
    for each vector that the encoder reads.
    """,
    reference=_parameters,
    probes=[
        (8, 12, 1, 4, 10),
        (8, 12, 3, 4, 10),
        (224, 224, 3, 16, 768),
        (30, 20, 2, 5, 7),
    ],
    mistakes=[
        wrong(
            "the class token has no position in the count",
            "class token",
            "The encoder reads N + 1 vectors, and each has a position.",
            own=False,
            table="used",
        ),
        wrong(
            "the class token itself is missing",
            "class token",
            "It is a trained vector of d numbers, besides its position.",
            token=False,
        ),
        wrong(
            "the class token is counted as one number",
            "class token",
            "It is a vector like those of the patches: d numbers.",
            token="one number",
        ),
        wrong(
            "each patch is given a class token",
            "class token",
            "One class token serves the whole picture: d numbers.",
            token="for each patch",
        ),
        wrong(
            "each position is counted as one number",
            "position",
            "A learned position is a vector of d numbers, to be added to a vector of d numbers.",
            table="one number",
        ),
        wrong(
            "the bias of the linear map is missing, or of another size",
            "counting",
            "A linear map into d features has d numbers of bias.",
            {"bias": "of the pixels"},
            {"bias": "one"},
            bias=False,
        ),
        wrong(
            "a patch is counted as one line of pixels",
            "counting",
            "A patch has patch * patch pixels.",
            area=False,
        ),
        wrong(
            "the whole picture is taken for one patch",
            "counting",
            "The linear map reads one patch at a time: channels * patch * patch numbers.",
            area="all",
        ),
        wrong(
            "the channels are not counted",
            "counting",
            "Each pixel has one number a channel, and each of them has its weights.",
            colours=False,
        ),
        wrong(
            "the number of patches is wrong",
            "counting",
            "There are height / patch rows of patches, and width / patch in each.",
            {"grid": "square"},
            {"grid": "pixels"},
            {"grid": "area by side"},
            grid="one side",
            table="used",
        ),
        wrong(
            "each patch is given a linear map of its own",
            "sharing",
            "One map serves all patches: its weights are counted once.",
            grid="one map each",
        ),
        wrong(
            "the positions are not counted",
            "position",
            "Learned positions are trained numbers: d for each vector that is read.",
            table="left out",
            grid="both",
            own=True,
        ),
    ],
    hints=[
        "Three parts: a matrix with a bias, one vector, a table.",
        "The matrix has one row for each number of a patch, and d columns.",
        "The table has one row more than there are patches.",
    ],
    right_variants=[
        lambda h, w, c, p, d: (d * (c * p**2 + 1), d, d * ((h // p) * (w // p) + 1)),
        lambda h, w, c, p, d: [
            sum(x.numel() for x in torch.nn.Linear(c * p * p, d).parameters()),
            d,
            d + d * (h * w // p**2),
        ],
        lambda h, w, c, p, d: torch.tensor(
            [(c * p * p + 1) * d, d, (len(range(0, h, p)) * len(range(0, w, p)) + 1) * d]
        ),
    ],
)
def embedding_parameters(height, width, channels, patch, d):
    """Trained numbers before the first block, for pictures (channels, height, width).

    Returns three whole numbers: of the linear map, the class token, the positions.
    """
    number = (height // patch) * (width // patch)
    return channels * patch * patch * d + d, d, (number + 1) * d


def _resized(
    positions, old, new, *,
    token="kept", grid="own", features="moved", mode="bilinear", corners=False, at="front",
    back="moved", size="new",
):  # fmt: skip
    d = positions.shape[1]
    rest = positions[1:] if token != "last" else positions[:-1]
    first = positions[:1] if token != "last" else positions[-1:]
    rows, columns = old if grid != "swapped" else old[::-1]
    new = new[::-1] if size == "swapped" else new
    if mode == "line":
        line = F.interpolate(rest.T[None], size=new[0] * new[1], mode="linear")[0].T
        found = line
    else:
        if features == "moved":
            image = rest.T.reshape(1, d, rows, columns)
        else:
            image = rest.reshape(1, d, rows, columns)
        image = image.mT if grid == "transposed" else image
        options = {"align_corners": corners} if mode != "nearest" else {}
        one = size == "one factor"
        options |= {"scale_factor": new[0] / rows} if one else {"size": tuple(new)}
        image = F.interpolate(image, mode=mode, **options)
        found = image[0].flatten(1).T
    if back == "reshaped":
        found = found.T.reshape(-1, d)
    if token == "dropped":
        return found
    return torch.cat([first, found] if at == "front" else [found, first])


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=3,
    trains="learned positions on a larger grid",
    text="""
    A model has learned positions for a grid of `old` = (rows, columns) patches, and now gets larger
    pictures with a grid of `new` patches. Stretch the table: the class token keeps its position,
    and the others, laid out as a picture with d channels, are resized with
    `F.interpolate(..., mode="bilinear", align_corners=False)`.
    """,
    reference=_resized,
    probes=[
        (torch.arange(14.0).view(7, 2).square() / 10, (2, 3), (4, 6)),
        (*draw(7, (7, 3)), (2, 3), (3, 5)),
        (*draw(8, (10, 4)), (3, 3), (4, 6)),
    ],
    mistakes=[
        wrong(
            "the class token's position is lost",
            "class token",
            "The table has one row more than patches, before and after.",
            token="dropped",
            at="front",
        ),
        wrong(
            "the last row is taken for the class token's",
            "class token",
            "The class token stands at 0; the patches begin at 1.",
            {"at": "end"},
            token="last",
            at="front",
        ),
        wrong(
            "the class token's position is put at the end",
            "class token",
            "It stays in row 0.",
            at="end",
            token="kept",
        ),
        wrong(
            "rows and columns of the old grid are taken for each other",
            "patches",
            "`old` is (rows, columns), and patches were read row by row.",
            grid="swapped",
            mode="bilinear",
        ),
        wrong(
            "rows and columns change places before the table is stretched",
            "patches",
            "`interpolate` takes (1, d, rows, columns): permute(2, 0, 1), not (2, 1, 0).",
            grid="transposed",
            size="new",
        ),
        wrong(
            "rows and columns of the new grid are taken for each other",
            "patches",
            "`new` is (rows, columns), as `interpolate` takes its size.",
            size="swapped",
            grid="own",
        ),
        wrong(
            "rows and columns of both grids are taken for each other",
            "patches",
            "`old` and `new` are (rows, columns), in the order in which `reshape` and "
            "`interpolate` take them.",
            grid="swapped",
            size="swapped",
            mode="bilinear",
        ),
        wrong(
            "rows and columns grow by one factor",
            "patches",
            "`new` may have another shape than `old`: give `size=new`, not one `scale_factor`.",
            size="one factor",
            mode="bilinear",
            grid="own",
        ),
        wrong(
            "features and places are mixed",
            "patches",
            "A reshape of (N, d) into (d, rows, columns) reads the numbers in the wrong order: the "
            "features are the last axis; move them to the front first, and back to the end "
            "afterwards.",
            {"back": "reshaped"},
            {"back": "reshaped", "features": "moved"},
            features="reshaped",
            mode="bilinear",
        ),
        wrong(
            "the table is stretched as one line",
            "position",
            "The last patch of a row and the first of the next are no neighbours in the picture: "
            "resize a grid.",
            mode="line",
            grid="own",
            features="moved",
            corners=False,
        ),
        wrong(
            "the blend is bicubic",
            "position",
            "Asked is mode=\"bilinear\", which blends the nearest old positions alone.",
            mode="bicubic",
        ),
        wrong(
            "positions are copied, not blended",
            "position",
            "A new patch between two old ones gets a blend of their positions: "
            "mode=\"bilinear\".",
            mode="nearest",
            corners=False,
        ),
        wrong(
            "the corners are aligned",
            "position",
            "With align_corners=True the patches at the edge keep their middles; asked is False.",
            corners=True,
        ),
    ],
    hints=[
        "Set row 0 aside, and put it back at the end.",
        "F.interpolate wants (1, d, rows, columns); you have (rows * columns, d).",
        "Transpose first, then reshape; on the way back flatten the grid, then transpose.",
    ],
    right_variants=[
        lambda p, old, new: torch.cat(
            [
                p[:1],
                F.interpolate(
                    p[1:].unflatten(0, old).permute(2, 0, 1)[None], new, mode="bilinear"
                )[0].permute(1, 2, 0).flatten(0, 1),
            ]
        ),
        lambda p, old, new: torch.cat(
            [
                p[:1],
                torch.stack(
                    [
                        F.interpolate(c.view(1, 1, *old), new, mode="bilinear").flatten()
                        for c in p[1:].T
                    ],
                    dim=1,
                ),
            ]
        ),
        lambda p, old, new: F.pad(
            F.interpolate(p[1:].T.unflatten(1, old)[None], new, mode="bilinear").flatten(2)[0].T,
            (0, 0, 1, 0),
        ) + F.pad(p[:1], (0, 0, 0, new[0] * new[1])),
    ],
)  # fmt: skip
def resized_positions(positions, old, new):
    """Learned positions for another grid.

    positions: (1 + rows * columns, d), old and new: pairs (rows, columns). Returns
    (1 + new rows * new columns, d).
    """
    grid = positions[1:].T.reshape(1, -1, *old)  # (1, d, rows, columns)
    grid = F.interpolate(grid, size=new, mode="bilinear", align_corners=False)
    return torch.cat([positions[:1], grid[0].flatten(1).T])


@exercise(
    kind="value",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=6,
    difficulty=2,
    trains="finding a slip from what a model does",
    text="""
    Somebody's vision Transformer has trained positions, and one slip. Three tests were run on
    pictures that it has not seen:

    | what was changed | its logits |
    |---|---|
    | the patches of each picture were shuffled | the same, up to rounding |
    | all positions were set to 0 | others |
    | the class token was set to 0 | others |

    Which slip? `"a"`: the positions are added after the last block. `"b"`: they are never added.
    `"c"`: the answer is read from the first patch. `"d"`: the "patches" are lines of pixels.
    `"e"`: the class token gets no position.
    """,
    mistakes=[
        wrong(
            "positions that are never added cannot change the logits",
            "position",
            "The second test changed them: somewhere they do come in.",
            answer="b",
        ),
        wrong(
            "the first patch is another one after the shuffle",
            "class token",
            "An answer read from it would change in the first test.",
            answer="c",
        ),
        wrong(
            "the lines of a shuffled picture are other lines",
            "patches",
            "A shuffle of the squares mixes parts of several lines: the first test would show it.",
            answer="d",
        ),
        wrong(
            "the patches would still have their positions",
            "position",
            "Then the encoder could tell a shuffled picture, and the first test would show it.",
            answer="e",
        ),
    ],
    hints=[
        "The first test says that the blocks treat the patches as a set. Which slips allow that?",
        "The second test says that positions reach the answer all the same.",
        "The answer is read from one vector. When does a position still change this one, and come "
        "too late for the patches?",
    ],
)
def slip_of_positions():
    """The letter of the slip"""
    # After the last block nothing looks at the patches any more: the class token's own position
    # still shifts the logits, and those of the patches come too late.
    return "a"


def _what_holds(answer, rows, columns, d):
    """What is asked of positions on a grid, whatever their design."""
    code = answer(rows, columns, d)
    code = as_asked(code, "a tensor (rows * columns, d)", (rows * columns, d)).double()
    at = torch.arange(rows * columns)
    row, column = at // columns, at % columns
    gaps = torch.cdist(code, code)  # (N, N)
    across = (row[:, None] - row).abs(), (column[:, None] - column).abs()
    kinds = [gaps[(across[0] == i) & (across[1] == j)] for i in range(rows) for j in range(columns)]
    of = {(i, j): kinds[i * columns + j] for i in range(rows) for j in range(columns)}
    apart = (at[:, None] - at).abs()
    numbered = [gaps[apart == k] for k in range(1, len(at))]  # patches in the order of reading
    spread = max(((k.amax() - k.amin()).item() for k in numbered), default=1)
    line = 1 in (rows, columns)
    differ = (gaps + torch.eye(len(at))).min().item() > 1e-3
    return {
        "gives no two patches the same vector": differ,
        "sees more than the number of a patch in the order of reading": (
            spread > 1e-3 or not differ or line
        ),
        "gives all patches vectors of one length": (
            code.norm(dim=1).amax() - code.norm(dim=1).amin()
        ).item()
        < 3e-3,
        "has a distance that depends on the step alone": (
            max((k.amax() - k.amin()).item() for k in kinds) < 1e-3
        ),
        "has one step down as far as one step to the right": (
            line or abs(of[1, 0].mean() - of[0, 1].mean()).item() < 1e-3
        ),
        "has one step nearer than two": all(
            (of[one].mean() + 1e-4 < of[two].mean()).item()
            for one, two in (((1, 0), (2, 0)), ((0, 1), (0, 2)))
            if two in of
        ),
    }


def _grid(
    rows, columns, d, *, sees="both", length="one", speed=0.3, turns="alike", order="row by row"
):
    at = torch.arange(rows * columns)
    row, column = (at // columns).float(), (at % columns).float()
    if order != "row by row":
        row, column = (at % rows).float(), (at // rows).float()
    code = torch.zeros(rows * columns, d)
    if sees == "a sum":
        for k, speed in enumerate((1.0, 0.1)):
            angles = speed * row, speed * column
            code[:, k], code[:, 2 + k] = (sum(map(f, angles)) for f in (torch.sin, torch.cos))
        return code
    if sees == "a slope":
        code[:, :3] = torch.nn.functional.normalize(
            torch.stack([torch.ones_like(row), row, column], dim=1), dim=1
        )
        return code
    if turns == "by size":
        row, column = row / rows * 3, column / columns * 3
    if turns == "not alike":
        column = column * 0.7
    if length == "grows":
        code[:, 0], code[:, 1] = (row, column) if sees == "both" else (at, 0)
        return code
    if sees == "index":
        code[:, 0], code[:, 1] = torch.sin(at * speed / 4), torch.cos(at * speed / 4)
        return code
    if sees == "index as in a line":
        angles = at[:, None] * 10000.0 ** (-torch.arange(0, d, 2) / d)
        return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)
    if sees == "random":
        return torch.nn.functional.normalize(
            torch.randn(rows * columns, d, generator=torch.Generator().manual_seed(0)), dim=1
        )
    code[:, 0], code[:, 1] = torch.sin(row * speed), torch.cos(row * speed)
    if sees == "both":
        code[:, 2], code[:, 3] = torch.sin(column * speed), torch.cos(column * speed)
    return code


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=15,
    difficulty=3,
    trains="designing positions for a grid",
    text="""
    **An open task**: many codes are right, and only what is asked here is checked. Invent positions
    without training for a grid of `rows` times `columns` patches, at most 8 each, with d = 8 or
    more features: (1) no two patches get the same vector; (2) all vectors have one length; (3) the
    distance of two patches' vectors depends only on how many rows and how many columns apart they
    are; (4) a step down is as far as a step to the right; (5) one step in a direction is nearer
    than two.
    """,
    reference=_grid,
    play=_what_holds,
    probes=[
        (3, 4, 8),
        (4, 4, 12),
        (8, 5, 8),
        (3, 3, 8),
        (2, 8, 10),
        (8, 3, 8),
        (1, 3, 8),
        (2, 1, 8),
        (1, 1, 8),
    ],
    mistakes=[
        wrong(
            "two patches get the same vector, or one direction does not count",
            "position",
            "Properties 1 and 4: row and column each have to leave a mark, in features of their "
            "own.",
            sees="rows",
            length="one",
            speed=0.3,
        ),
        wrong(
            "the patches are numbered through, as if in one line",
            "position",
            "Property 4: numbering the patches through makes the one below look far away. Code row "
            "and column apart, in the same way.",
            {"sees": "index as in a line"},
            sees="index",
        ),
        wrong(
            "how far a step leads depends on the size of the grid",
            "position",
            "Property 4: divided by rows and by columns, steps are alike in a square grid only. "
            "Take one angle for a step down and a step to the right.",
            turns="by size",
            sees="both",
            speed=0.3,
        ),
        wrong(
            "rows and columns are not coded alike",
            "position",
            "Property 4: a step down changes the code as much as a step to the right: one angle, "
            "and one size, for both.",
            turns="not alike",
            sees="both",
            speed=0.3,
        ),
        wrong(
            "the distance does not depend on the step alone",
            "position",
            "Property 3: the same step has to change the code by as much wherever it is made; with "
            "random vectors, or numbers that are divided by a length, it does not.",
            {"sees": "a slope"},
            sees="random",
            length="one",
            speed=0.3,
        ),
        wrong(
            "the vectors have different lengths",
            "position",
            "Property 2: plain numbers grow, and sums of codes have other lengths; a sine and a "
            "cosine of one angle, in features of their own, keep their length.",
            length="grows",
        ),
        wrong(
            "row and column share their features",
            "position",
            "Properties 1 and 2: a sum of two codes is the same for one step down and for one to "
            "the right, and its length changes. Put the codes side by side.",
            sees="a sum",
            length="one",
            speed=0.3,
        ),
        wrong(
            "the patches are numbered column by column",
            "position",
            "Row by row is due: patch i stands in row i // columns and column i % columns.",
            order="column by column",
        ),
        wrong(
            "two steps are nearer than one",
            "frequency",
            "Property 5: an angle that turns too fast comes round again. Let it turn by less than "
            "half a circle in all.",
            speed=2.5,
            sees="both",
            length="one",
        ),
    ],
    hints=[
        "What did chapter 7 do for a line, so that the distance depends on the step alone?",
        "Give half of the features to the row, half to the column.",
        "Sine and cosine of one angle make a vector of length 1; the angle may grow by pi / 8 a "
        "step at most.",
    ],
    right_variants=[
        lambda r, c, d: torch.tensor(
            [
                [f(0.2 * x) for x in (i, j) for f in (math.sin, math.cos)] + [1.0] * (d - 4)
                for i in range(r)
                for j in range(c)
            ]
        ),
        lambda r, c, d: torch.stack(
            [
                F.pad(torch.stack([a.cos(), b.cos(), a.sin(), b.sin()]), (0, d - 4))
                for a in torch.arange(r) / 3
                for b in torch.arange(c) / 3
            ]
        ),
        lambda r, c, d: torch.cat(
            [
                torch.stack([x.sin(), x.cos(), (2 * x).sin() / 9, (2 * x).cos() / 9], dim=1)
                for x in (torch.arange(r * c) // c / 4, torch.arange(r * c) % c / 4)
            ]
            + [torch.zeros(r * c, d - 8)] * (d > 8),
            dim=1,
        ),
    ],
)
def grid_code(rows, columns, d):
    """Positions for the patches of a grid, without training.

    rows, columns: at most 8, d: at least 8. Returns (rows * columns, d), row by row.
    """
    code = torch.zeros(rows, columns, d)
    down, right = torch.arange(rows) * 0.3, torch.arange(columns) * 0.3  # angles
    code[..., 0], code[..., 1] = down.sin()[:, None], down.cos()[:, None]
    code[..., 2], code[..., 3] = right.sin(), right.cos()
    return code.flatten(0, 1)
