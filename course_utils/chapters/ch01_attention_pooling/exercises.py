"""Exercises of notebook 01: attention as a weighted average, from Nadaraya and Watson on."""

import math

import torch

from course_utils.checker.common import (
    KEPT,
    NOT_LOW,
    lowered,
    not_low_enough,
    not_shifted,
    unshifted,
)
from course_utils.checker.exercise import exercise, wrong
from course_utils.checker.probes import draw

NOTEBOOK = "01_attention_pooling"


def _pool(weights, values, *, how="sum", along="keys", divided="no", again=False):
    if again:
        weights = torch.softmax(weights, dim=-1)
    if how == "hard":
        return values[weights.argmax(-1)]
    products = weights * values  # (Tq, Tk)
    if how == "none":
        return products
    axis = {"keys": -1, "queries": 0, "both": (0, 1)}[along]
    by = {
        "by all weights": weights.sum(),
        "by how many": products.numel() / products.sum(axis).numel(),
    }
    return products.sum(axis, keepdim=how == "as a column") / by.get(divided, 1)


@exercise(
    notebook=NOTEBOOK,
    minutes=3,
    difficulty=1,
    trains="the weighted sum",
    text="Average the values with the attention weights: one number for each query.",
    reference=_pool,
    probes=[
        (torch.tensor([[0.5, 0.5, 0.0]]), torch.tensor([1.0, 2.0, 6.0])),
        (torch.softmax(draw(11, (2, 4))[0], -1), draw(12, (4,))[0]),
        (torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([1.0, 3.0])),  # the largest first
    ],
    mistakes=[
        wrong(
            "the weighted values are averaged once more",
            "averaging",
            "The weights sum to 1 already, so add the products; a mean divides once more.",
            divided="by how many",
        ),
        wrong(
            "the weighted values are not added up",
            "averaging",
            "One number per query is wanted: the sum of weight times value over the keys.",
            how="none",
            along="keys",
            divided="no",
        ),
        wrong(
            "only the value with the largest weight is taken",
            "averaging",
            "Attention is soft: every value counts, in proportion to its weight.",
            how="hard",
            along="keys",
            divided="no",
        ),
        wrong(
            "a softmax goes over the weights",
            "normalisation",
            "They are weights already; another softmax pulls them all towards 1/Tk.",
            again=True,
        ),
        wrong(
            "the sum runs over the queries",
            "averaging",
            "Queries have nothing to do with each other; add along the keys, the last axis.",
            along="queries",
        ),
        wrong(
            "the result is divided by the sum of all weights",
            "normalisation",
            "Each row sums to 1 by itself; the whole map sums to Tq, and that is no divisor.",
            divided="by all weights",
            along="keys",  # along the queries it is a mean
        ),
        wrong(
            "the values are made a column, and the result stays one",
            "averaging",
            "One number per query is wanted, (Tq,); the axis of size 1 is left over.",
            how="as a column",
            along="keys",
        ),
        wrong(
            "all products are added into one number",
            "averaging",
            "Each query gets a number of its own: add along the keys, the last axis, only.",
            along="both",
        ),
    ],
    hints=[
        "Each row of the weights belongs to one query.",
        "Multiply every value by its weight; what has to happen along the keys?",
        "A product of a matrix and a vector multiplies and adds in one step.",
    ],
    right_variants=[
        lambda w, v: (w * v).sum(dim=1),
        lambda w, v: torch.einsum("qk,k->q", w, v),
        lambda w, v: torch.stack([sum(a * b for a, b in zip(row, v, strict=True)) for row in w]),
    ],
)
def pooled(weights, values):
    """The weighted average of the values for each query.

    weights: (Tq, Tk), rows sum to 1; values: (Tk,). Returns (Tq,).
    """
    return weights @ values


def _kernel(
    queries,
    keys,
    width,
    *,
    power=2,
    factor=0.5,
    width_in="divide",
    sign=-1,
    norm="keys",
    transposed=False,
    hide_self="no",
):
    distance = queries[:, None] - keys  # (Tq, Tk)
    length = (lambda u: u) if power == "signed" else (lambda u: u.abs() ** power)
    scaled = {
        "divide": length(distance / width),
        "multiply": length(distance * width),
        "not squared": length(distance) / width,
        "ignored": length(distance),
    }[width_in]
    scores = sign * scaled * factor
    own = torch.eye(*scores.shape, dtype=torch.bool)
    if hide_self in ("next", "previous"):
        own = own.roll(1 if hide_self == "next" else -1, dims=1)
    if hide_self == "same x":
        own = distance == 0
    if hide_self in ("before", "next", "previous", "same x"):
        scores = scores.masked_fill(own, -math.inf)
    if hide_self in NOT_LOW:
        scores = lowered(scores, own, hide_self)
    weights = {
        "keys": lambda: torch.softmax(scores, dim=1),
        "queries": lambda: torch.softmax(scores, dim=0),
        "all": lambda: torch.softmax(scores.flatten(), dim=0).view_as(scores),
        "none": scores.exp,
        "unshifted": lambda: unshifted(scores),
        KEPT: lambda: unshifted(scores, how=KEPT),
        "density": lambda: scores.exp() / math.sqrt(2 * math.pi),
        "normal density": lambda: scores.exp() / (width * math.sqrt(2 * math.pi)),
        "largest": lambda: scores.exp() / scores.exp().amax(1, keepdim=True),
        "of kernel values": lambda: torch.softmax(scores.exp(), dim=1),
        "twice": lambda: torch.softmax(torch.softmax(scores, dim=1), dim=1),
        "even": lambda: torch.softmax(torch.where(scores.isinf(), scores, 0.0), dim=1),
        "own subtracted": lambda: _own_subtracted(scores, own),
    }[norm]()
    if hide_self == "after":
        weights = weights.masked_fill(own, 0.0)
    return weights.T if transposed else weights


def _own_subtracted(scores, own):
    kernel = scores.double().exp()
    return ((kernel - own.double()) / (kernel.sum(1, keepdim=True) - 1)).to(scores.dtype)


_SCORE_MISTAKES = [
    wrong(
        "the distance is not squared",
        "score",
        "The Gaussian kernel is exp(-u²/2), with u = distance / width.",
        power=1,
    ),
    wrong(
        "the distance keeps its sign",
        "score",
        "A key is as far to the left as to the right: the kernel takes the square, -u²/2.",
        power="signed",
    ),
    wrong(
        "the half is missing",
        "score",
        "The exponent is -u²/2; without the half the kernel is narrower.",
        factor=1.0,
    ),
    wrong(
        "the 2 is squared along with the width",
        "scale",
        "The exponent is -d²/(2w²); (2w)² is twice as much, and the kernel too wide.",
        factor=0.25,
    ),
    wrong(
        "the distance is multiplied by the width",
        "scale",
        "A wide kernel reaches far, so distances are divided by the width.",
        width_in="multiply",
    ),
    wrong(
        "the width is not squared",
        "scale",
        "Divide by the width first and square then, or divide the square by width².",
        width_in="not squared",
    ),
    wrong(
        "the width is not used",
        "scale",
        "Distances are measured in widths of the kernel.",
        width_in="ignored",
    ),
    wrong(
        "the exponent is positive",
        "locality",
        "The exponent must be negative, so that weight falls with distance.",
        sign=1,
    ),
]
_NORM_MISTAKES = [
    wrong(
        "each key shares out its weight over the queries",
        "softmax axis",
        "Columns sum to 1; for each query the weights over the keys must.",
        norm="queries",
    ),
    wrong(
        "the whole map sums to 1",
        "softmax axis",
        "Each row is a distribution of its own.",
        norm="all",
    ),
    wrong(
        "the kernel values are not divided by their sum",
        "normalisation",
        "Kernel values become weights when each row is divided by its sum.",
        {"norm": "density"},
        {"norm": "normal density"},
        norm="none",
    ),
    wrong(
        "each row is divided by its largest entry",
        "normalisation",
        "Then the nearest key always gets 1; weights are shares, so divide by the row's sum.",
        norm="largest",
    ),
    wrong(
        "the weights are normalised twice",
        "normalisation",
        "A softmax takes the exponents -u²/2, not the kernel values or weights made of them.",
        {"norm": "twice"},
        norm="of kernel values",
    ),
]


def _kernel_by_loops(x, xs, sigma):
    table = [[math.exp(-((float(a) - float(b)) ** 2) / (2 * sigma**2)) for b in xs] for a in x]
    return torch.tensor([[entry / sum(row) for entry in row] for row in table])


@exercise(
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=1,
    trains="a kernel as attention weights",
    text="""
    Nadaraya-Watson with a Gaussian kernel: the weight that a query gives to a key falls with the
    distance between them, measured in widths, $K(u) = e^{-u^2/2}$.
    """,
    reference=_kernel,
    probes=[
        (torch.tensor([0.0]), torch.tensor([0.0, 1.0, 3.0]), 2.0),
        (torch.tensor([0.5, 2.0]), torch.tensor([0.0, 1.0, 1.5, 3.0]), 0.5),
        (torch.tensor([1.0, -0.5, 0.2]), torch.tensor([0.3, 1.1, -1.0, 0.8]), 1.6),
        (torch.tensor([40.0, 0.6]), torch.tensor([0.3, 1.1, -1.0]), 1.6),  # far from all keys
    ],
    mistakes=[
        *_SCORE_MISTAKES,
        *_NORM_MISTAKES,
        not_shifted(
            {"norm": KEPT, "power": 2, "width_in": "divide", "factor": 0.5}, norm="unshifted"
        ),
        wrong(
            "rows are keys and columns are queries",
            "role of q, k, v",
            "The map has a row for each query and a column for each key.",
            transposed=True,
        ),
    ],
    hints=[
        "queries[:, None] - keys is the table of all differences: (Tq, Tk).",
        "The exponent is minus one half of the squared distance, measured in widths.",
        "exp and dividing by the row's sum is what torch.softmax does; along which axis?",
    ],
    right_variants=[
        lambda q, k, w: torch.softmax(-((q.unsqueeze(1) - k.unsqueeze(0)) ** 2) / (2 * w**2), -1),
        _kernel_by_loops,
        lambda q, k, w: (lambda table: table / table.sum(1, keepdim=True))(
            torch.distributions.Normal(0.0, w).log_prob((q[:, None] - k).double()).exp()
        ),
    ],
    map_of=lambda weights: weights,
)
def gaussian_weights(queries, keys, width):
    """Attention weights of a Gaussian kernel.

    queries: (Tq,), keys: (Tk,), width: a positive number. Returns (Tq, Tk), rows sum to 1.
    """
    u = (queries[:, None] - keys) / width  # (Tq, Tk)
    return torch.softmax(-(u**2) / 2, dim=1)


def _leave_one_out(x, y, width, *, hide_self="before", average="values", **switches):
    weights = _kernel(x, x, width, hide_self=hide_self, **switches)
    predictions = weights @ (x if average == "inputs" else y)
    return {
        "errors": predictions - y,
        "errors turned": y - predictions,
        "loss": (predictions - y).square().mean(),
        "summed loss": (predictions - y).square().sum(),
    }.get(average, predictions)


def _by_deleting(x, y, width):
    predictions = []
    for i in range(len(x)):
        others = [j for j in range(len(x)) if j != i]
        weights = torch.exp(-(((x[others] - x[i]) / width) ** 2) / 2)
        predictions.append((weights @ y[others]) / weights.sum())
    return torch.stack(predictions)


def _by_clearing(x, y, width):
    kernel = torch.exp(-0.5 * ((x[:, None] - x[None]) / width).square()).fill_diagonal_(0.0)
    return kernel @ y / kernel.sum(1)


@exercise(
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=2,
    trains="training without one's own key",
    text="""
    To choose a width by its error we predict every training point **from all the others**: a
    point that may use its own value is predicted best by a width near 0, which copies it.
    """,
    reference=_leave_one_out,
    probes=[
        (torch.tensor([0.0, 1.0, 3.0]), torch.tensor([1.0, 2.0, 6.0]), 2.0),
        (torch.tensor([0.0, 0.6, 1.1, 2.5]), torch.tensor([1.3, -0.4, 2.0, 0.7]), 0.8),
        (torch.tensor([0.2, 0.9, 0.2, 2.0]), torch.tensor([1.1, -0.7, 3.0, 0.4]), 0.7),
        (torch.tensor([0.0, 1.0, 2.0]), torch.tensor([1.0, -2.0, 4.0]), 0.08),  # scores near -78
    ],
    mistakes=[
        wrong(
            "each point uses its own value",
            "self exclusion",
            "The own key has distance 0 and the largest weight; it must be left out.",
            hide_self="no",
        ),
        wrong(
            "the own weight is removed without sharing it out again",
            "mask timing",
            "Set to 0 after the softmax it leaves rows that sum to less than 1.",
            hide_self="after",
        ),
        not_low_enough("hide_self", "at -1"),
        not_low_enough("hide_self", "by 50", factor=0.5),
        wrong(
            "the own weight is subtracted after the sum",
            "self exclusion",
            "With a small width the others' weights vanish beside 1, and 1 + 1e-34 - 1 is 0: leave "
            "the own weight out of the sum.",
            norm="own subtracted",
            hide_self="no",
        ),
        wrong(
            "the neighbour is left out instead of the point itself",
            "off by one",
            "Row i must leave out column i, the diagonal.",
            {"hide_self": "previous"},
            hide_self="next",
        ),
        wrong(
            "other points with the same x are left out too",
            "self exclusion",
            "Only the point itself must go, place i for point i: another one may have the same x.",
            hide_self="same x",
        ),
        wrong(
            "the inputs are averaged, not their values",
            "role of q, k, v",
            "x gives the weights, y is what they average.",
            average="inputs",
        ),
        wrong(
            "errors are given back, not predictions",
            "averaging",
            "The comparison with y comes later; here the prediction for each point is wanted.",
            {"average": "errors turned"},
            {"average": "loss"},
            {"average": "summed loss"},
            average="errors",
        ),
        *_SCORE_MISTAKES,
        *_NORM_MISTAKES,
        wrong(
            "the others are averaged evenly",
            "locality",
            "Near points count more than far ones: the kernel gives the weights, and the width "
            "its reach.",
            norm="even",
            hide_self="before",
        ),
    ],
    hints=[
        "The training inputs are queries and keys at once: a square map of weights.",
        "Which entries of the map belong to a point and itself?",
        "torch.eye(n, dtype=torch.bool) marks them; hide their scores before the softmax.",
    ],
    right_variants=[
        _by_deleting,
        _by_clearing,
        lambda x, y, w: _leave_one_out(x.double(), y.double(), w),
    ],
)
def leave_one_out(x, y, width):
    """Predict each y[i] from all the other points.

    x, y: (n,), width: a positive number; the kernel is that of `gaussian_weights`, and each point
    has another one within 13 widths. Returns (n,).
    """
    scores = -(((x[:, None] - x) / width) ** 2) / 2  # (n, n)
    itself = torch.eye(len(x), dtype=torch.bool)
    return torch.softmax(scores.masked_fill(itself, -math.inf), dim=1) @ y


# keys 0, 1, 6 with values 10, 20, 60: what a Gaussian kernel of width 1 predicts at 4
_OF_WIDTH_1 = sum(
    value * weight / sum(math.exp(-(d**2) / 2) for d in (4, 3, 2))
    for value, weight in zip((10, 20, 60), (math.exp(-(d**2) / 2) for d in (4, 3, 2)))
)


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=1,
    difficulty=1,
    trains="what average pooling ignores",
    text="""
    Keys 0, 1, 6 carry the values 10, 20, 60. What does *average pooling* predict for the query 4?
    """,
    mistakes=[
        wrong(
            "the value of the nearest key is given",
            "averaging",
            "Average pooling does not look at keys at all.",
            answer=60,
        ),
        wrong(
            "the sum is given",
            "averaging",
            "Each of the three values gets a weight of 1/3.",
            answer=90,
        ),
        wrong(
            "one value is given, not an average",
            "averaging",
            "Average pooling weighs all three values alike.",
            answer=10,
        ),
        wrong(
            "the median is given",
            "averaging",
            "The values are averaged, not put in order.",
            answer=20,
        ),
        wrong(
            "a straight line between neighbours is drawn",
            "averaging",
            "That would use the keys; average pooling ignores them and the query.",
            answer=44,
        ),
        wrong(
            "only the two neighbours of the query are averaged",
            "averaging",
            "Average pooling asks for no neighbours: all three values count.",
            answer=40,
        ),
        wrong(
            "the smallest and the largest value are averaged",
            "averaging",
            "There are three values, and each has a weight of 1/3.",
            answer=35,
        ),
        wrong(
            "the sum is divided by another number than 3",
            "averaging",
            "There are three values, so each has a weight of 1/3.",
            {"answer": 90 / 4},
            answer=45,
        ),
        wrong(
            "the value of key 0 is left out of the sum",
            "averaging",
            "Key 0 is a key like the others, and its value, 10, counts.",
            answer=80 / 3,
        ),
        wrong(
            "the values are weighted by their keys",
            "averaging",
            "Average pooling does not look at keys: all weights are 1/3.",
            {"answer": 380},
            answer=380 / 7,
        ),
        wrong(
            "the values are weighted by how near or how far their keys are",
            "averaging",
            "Average pooling ignores the query, and so all distances: all weights are 1/3.",
            {"answer": (10 / 4 + 20 / 3 + 60 / 2) / (1 / 4 + 1 / 3 + 1 / 2)},
            {"answer": (4 * 10 + 3 * 20 + 2 * 60) / 9},
            answer=_OF_WIDTH_1,
        ),
        wrong(
            "the query is averaged with the values",
            "role of q, k, v",
            "A query asks; what is averaged are the three values.",
            answer=(10 + 20 + 60 + 4) / 4,
        ),
        wrong(
            "the keys are averaged, not their values",
            "role of q, k, v",
            "Keys say where, values say what: the values are averaged.",
            {"answer": 7},
            answer=7 / 3,
        ),
        wrong(
            "the keys are averaged, not their values, and only the two neighbours",
            "role of q, k, v",
            "Keys say where, values say what; and all three values count.",
            answer=3.5,
        ),
        wrong(
            "the query is given",
            "role of q, k, v",
            "A prediction is made of values: their mean, whatever the query.",
            answer=4,
        ),
    ],
    hints=[
        "Which part of the question does average pooling not use?",
        "All weights are equal and sum to 1.",
        "So every query gets the same answer: the mean of the values.",
    ],
)
def average_pooling_answer():
    """Keys 0, 1, 6 with values 10, 20, 60: average pooling predicts for the query 4"""
    return (10 + 20 + 60) / 3


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=2,
    difficulty=1,
    trains="what the width of a kernel does",
    text="""
    Keys 0, 1, 6 carry the values 10, 20, 60. Now a *Gaussian kernel* weighs them, and its width
    goes to 0. To which number does the prediction for the query 4 go?
    """,
    mistakes=[
        wrong(
            "the plain average is given",
            "locality",
            "All weights become equal when the width goes to infinity, not to 0.",
            answer=30,
        ),
        wrong(
            "the nearest key is given, not its value",
            "role of q, k, v",
            "Keys decide the weights; values are what is averaged.",
            answer=6,
        ),
        wrong(
            "a key is given, not a value, and not the nearest",
            "role of q, k, v",
            "Keys decide the weights, the nearest most of all; values are what is averaged.",
            {"answer": 0.5},
            answer=1,
        ),
        wrong(
            "a straight line between neighbours is drawn",
            "locality",
            "The ratio of two Gaussian weights goes to 0 or infinity, not to a ratio of distances.",
            answer=44,
        ),
        wrong(
            "the two neighbours are averaged",
            "locality",
            "Their distances 3 and 2 differ, so the nearer one wins in the end.",
            answer=40,
        ),
        wrong(
            "all weights are taken to go to 0, or their quotients to be 0 / 0",
            "normalisation",
            "Kernel values all go to 0, but their ratios do not; the softmax keeps only ratios.",
            {"answer": 0},
            answer=math.nan,
        ),
        wrong(
            "the farther neighbour is taken for the nearer",
            "locality",
            "From 4 it is 2 to the key 6 and 3 to the key 1: the nearest key wins.",
            answer=20,
        ),
        wrong(
            "the farthest key is taken",
            "locality",
            "The kernel falls with the distance: the nearest key has the largest weight.",
            answer=10,
        ),
        wrong(
            "the values are added",
            "normalisation",
            "Weights sum to 1: as the width goes to 0 one key gets all of it.",
            answer=90,
        ),
        wrong(
            "keys are averaged",
            "role of q, k, v",
            "Values are what is averaged; and as the width goes to 0, all the weight goes to one.",
            {"answer": 3.5},
            answer=7 / 3,
        ),
        wrong(
            "the weights go with the distance itself",
            "locality",
            "A Gaussian falls faster than any power: the ratio of two goes to 0 or infinity.",
            {"answer": (4 * 10 + 3 * 20 + 2 * 60) / 9},
            answer=(10 / 4 + 20 / 3 + 60 / 2) / (1 / 4 + 1 / 3 + 1 / 2),
        ),
        wrong(
            "a width of 1 is taken",
            "locality",
            "That is the prediction on the way there; let the width go on to 0.",
            answer=_OF_WIDTH_1,
        ),
    ],
    hints=[
        "How far is the query from each key?",
        "What happens to exp(-2²/2w²) / exp(-3²/2w²) when w gets small?",
        "In the end one key has all the weight; the prediction is its value.",
    ],
)
def narrow_kernel_answer():
    """Keys 0, 1, 6 with values 10, 20, 60: as the width goes to 0, the prediction at 4 goes to"""
    return 60


@exercise(
    kind="value",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=4,
    difficulty=2,
    trains="reading a mistake off a map",
    text="""
    Somebody weighs the keys 0, 1 and 4 for three queries with a Gaussian kernel of width 1, and
    gets this map (a row for each query):

    |  | key 0 | key 1 | key 4 |
    |---|---|---|---|
    | **query 0** | 0.10 | 0.16 | 0.74 |
    | **query 1** | 0.10 | 0.16 | 0.74 |
    | **query 4** | 0.10 | 0.16 | 0.74 |

    Which mistake was made? `"a"`: none. `"b"`: the softmax ran over the queries. `"c"`: the
    difference of query and key was not squared. `"d"`: the width was far too large.
    """,
    mistakes=[
        wrong(
            "the map is taken for a right one",
            "locality",
            "For the query 0 the key 0 is nearest, and must get the largest weight of its row.",
            answer="a",
        ),
        wrong(
            "the sums of the columns are taken to be 1",
            "softmax axis",
            "A softmax over the queries makes columns sum to 1; here the rows do.",
            answer="b",
        ),
        wrong(
            "equal rows are taken for equal weights",
            "locality",
            "A kernel far too wide gives every key the same weight, 1/3; here the key 4 gets 0.74.",
            answer="d",
        ),
    ],
    hints=[
        "All queries get the same row. What must have happened to the query on the way?",
        "Adding one number to all scores of a row does not change its softmax.",
        "Write out -(q - k) / 2: which part of it is the same for all keys of a query?",
    ],
)
def weights_mistake():
    """The letter of the mistake that the map shows"""
    return "c"


def _width_of(near, far, ratio, *, squares="each", half=True, log="e", root=True, turned=False):
    gap = {
        "each": far**2 - near**2,
        "of the difference": (far - near) ** 2,
        "none": far - near,
    }[squares]
    logs = {"e": math.log(ratio), "10": math.log10(ratio), "2": math.log2(ratio), "none": ratio}
    square = gap / ((2 if half else 1) * logs[log])
    found = math.sqrt(square) if root else square
    return 1 / found if turned else found


def _width_by_halving(near, far, ratio):
    low = high = far
    while math.exp(min(700, (far**2 - near**2) / (2 * high**2))) > ratio:
        high *= 2
    while math.exp(min(700, (far**2 - near**2) / (2 * low**2))) < ratio:
        low /= 2
    for _ in range(200):
        middle = math.sqrt(low * high)
        log_ratio = (far**2 - near**2) / (2 * middle**2)
        low, high = (middle, high) if log_ratio > math.log(ratio) else (low, middle)
    return low


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="what a width means, in numbers",
    text="""
    How wide is a kernel that makes a near key count, say, four times as much as a far one? A query
    has a key at distance `near` and another at distance `far`. Find the width of the Gaussian
    kernel that gives the near key `ratio` times the weight of the far key.
    """,
    reference=_width_of,
    probes=[(1.0, 2.0, 4.0), (0.5, 3.0, 10.0), (0.2, 0.9, 1.5)],
    edges=[("where the width is about 40: no fixed ends hold for a search", (3.0, 50.0, 2.0))],
    mistakes=[
        wrong(
            "the difference of the distances is squared",
            "score",
            "Each distance has a square of its own: far² - near² is not (far - near)².",
            squares="of the difference",
        ),
        wrong(
            "the distances are not squared",
            "score",
            "The kernel is exp(-d²/(2 width²)): the squares of the distances are compared.",
            squares="none",
        ),
        wrong(
            "the half is missing",
            "score",
            "The exponent is -d²/(2 width²); its 2 stands below the line of the answer, too.",
            half=False,
        ),
        wrong(
            "the logarithm has another base",
            "score",
            "The kernel is a power of e, so the natural logarithm undoes it.",
            {"log": "2"},
            log="10",
        ),
        wrong(
            "the logarithm is missing",
            "score",
            "The ratio of two exponentials is the exponential of a difference: take the logarithm.",
            log="none",
        ),
        wrong(
            "the root is missing",
            "scale",
            "The width stands in the formula as a square; take its root at the end.",
            root=False,
        ),
        wrong(
            "the inverse of the width is given",
            "scale",
            "w = 1 / width is what multiplies distances; here the width is wanted.",
            turned=True,
        ),
    ],
    hints=[
        "Two weights of one query have the ratio of their kernel values: the sum cancels.",
        "exp(-near²/(2 h²)) / exp(-far²/(2 h²)) is a single exponential. Of what?",
        "Take the logarithm of both sides, and solve for h².",
    ],
    right_variants=[
        _width_by_halving,
        lambda near, far, ratio: ((far - near) * (far + near) / (2 * math.log(ratio))) ** 0.5,
        lambda near, far, ratio: (
            ((torch.tensor(far) ** 2 - torch.tensor(near) ** 2) / (2 * torch.tensor(ratio).log()))
            .sqrt()
            .item()
        ),
    ],
)
def width_for_ratio(near, far, ratio):
    """The width at which the near key weighs `ratio` times as much as the far one.

    near, far: distances, 0 <= near < far; ratio: above 1. Returns a number.
    """
    return math.sqrt((far**2 - near**2) / (2 * math.log(ratio)))


def _nearest(
    queries, keys, k, *,
    by="distance", last=False, more=0, share="equal", along="keys", ranked="by place",
):  # fmt: skip
    apart = queries[:, None] - keys  # (Tq, Tk)
    rank_of = {"distance": apart.abs(), "signed": apart, "key": keys.abs().expand_as(apart)}[by]
    axis = 1 if along == "keys" else 0
    order = rank_of.argsort(axis, descending=last)
    chosen = (order if ranked == "once" else order.argsort(axis)) < k + more
    if ranked == "for all queries":
        chosen = chosen.any(0).expand_as(chosen)
        return chosen / (k if share == "k" else chosen.sum(1, keepdim=True))
    if ranked == "by one limit":
        chosen = rank_of <= rank_of.gather(axis, order).narrow(axis, 0, k + more).max()
        return chosen / (k if share == "k" else chosen.sum(1, keepdim=True))
    scores = {"softmax": -(apart**2) / 2, "softmax of distances": -apart.abs()}
    if share in scores:
        return torch.softmax(scores[share].masked_fill(~chosen, -math.inf), dim=1)
    if share == "by all keys":
        return chosen.float() / len(keys)
    return chosen.float() if share == "none" else chosen / (k + more)


def _nearest_by_loops(queries, keys, k):
    weights = torch.zeros(len(queries), len(keys))
    for i, query in enumerate(queries.tolist()):
        order = sorted(range(len(keys)), key=lambda j: abs(query - float(keys[j])))
        for j in order[:k]:
            weights[i, j] = 1 / k
    return weights


def _nearest_by_topk(queries, keys, k):
    places = torch.cdist(keys[:, None], queries[:, None]).topk(k, dim=0, largest=False).indices
    return torch.zeros(len(keys), len(queries)).scatter(0, places, 1 / k).T


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=2,
    trains="another rule for the weights",
    text="""
    A kernel of fixed width sees many keys where they lie close, and few where they are rare.
    Another rule adapts by itself: each query looks at its `k` nearest keys, and at those alike.
    Make its weights. No two keys are equally far from a query.
    """,
    reference=_nearest,
    probes=[
        (torch.tensor([1.2]), torch.tensor([0.0, 1.0, 3.0]), 2),
        (torch.tensor([0.4, 2.2, -1.3, 4.1]), torch.tensor([2.0, -0.5, 0.9, 3.1, 1.6]), 3),
        (torch.tensor([-0.7, 1.9]), torch.tensor([0.2, 2.6, -1.8, 1.1, 0.5, -3.0]), 1),
    ],
    mistakes=[
        wrong(
            "the farthest keys are chosen",
            "locality",
            "The nearest keys have the *smallest* distances.",
            last=True,
        ),
        wrong(
            "the distance keeps its sign",
            "score",
            "A key is as far to the left as to the right: rank by the absolute difference.",
            by="signed",
        ),
        wrong(
            "keys are ranked by their own size",
            "locality",
            "Near to the query, not near to 0: the distance to each query decides.",
            by="key",
        ),
        wrong(
            "one key too many is chosen",
            "off by one",
            "The ranks 0 to k - 1 are k keys.",
            more=1,
        ),
        wrong(
            "the weights do not sum to 1",
            "normalisation",
            "k keys share a weight of 1: each gets 1/k.",
            {"share": "by all keys"},
            share="none",
        ),
        wrong(
            "the chosen keys get unequal weights",
            "averaging",
            "Here all k count alike; how near they are has done its work when they were chosen.",
            {"share": "softmax of distances"},
            share="softmax",
        ),
        wrong(
            "the places of keys are taken for their ranks",
            "locality",
            "argsort gives the place of the nearest key first, not the rank of key 0: write 1/k at "
            "the first k of these places.",
            ranked="once",
            along="keys",
        ),
        wrong(
            "one distance is the limit for all queries",
            "locality",
            "Each query has a k-th distance of its own: keep the axis, with .values[:, -1:].",
            {"share": "k"},
            ranked="by one limit",
            along="keys",
            share="equal",
            last=False,
        ),
        wrong(
            "a key that one query chooses counts for all",
            "locality",
            "weights[:, places] writes into every row: scatter writes the places of a query into "
            "its own row.",
            {"share": "k"},
            ranked="for all queries",
            along="keys",
            share="equal",
            last=False,
        ),
        wrong(
            "each key chooses its nearest queries",
            "softmax axis",
            "The query chooses among the keys: rank along the keys, the last axis.",
            along="queries",
        ),
    ],
    hints=[
        "Start from the table of absolute distances, (Tq, Tk).",
        "torch.topk(..., largest=False) gives the places of the smallest entries of each row.",
        "zeros.scatter(1, places, number) writes one number at those places. Which number?",
    ],
    right_variants=[
        _nearest_by_loops,
        _nearest_by_topk,
        lambda q, keys, k: (
            (
                (q[:, None] - keys).abs()
                <= (q[:, None] - keys).abs().sort(dim=1).values[:, k - 1 : k]
            ).float()
            / k
        ),
    ],
    map_of=lambda weights: weights,
    allows=lambda q, k, _: (q[:, None] - k).abs().sort(dim=1).values.diff(dim=1).gt(0).all(),
)
def nearest_weights(queries, keys, k):
    """Weights that look at the k nearest keys of each query, and at those alike.

    queries: (Tq,), keys: (Tk,), k: an integer from 1 to Tk. Returns (Tq, Tk), rows sum to 1.
    """
    nearest = (queries[:, None] - keys).abs().topk(k, dim=1, largest=False).indices  # (Tq, k)
    return torch.zeros(len(queries), len(keys)).scatter(1, nearest, 1 / k)
