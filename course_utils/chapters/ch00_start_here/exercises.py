"""The first exercise: what attention answers, given its weights."""

import torch

from course_utils.checker.exercise import exercise, wrong
from course_utils.checker.probes import draw


def _averages(weights, values, *, uses="own", axis="keys", divided=False):
    shares = {
        "own": weights,
        "equal": torch.full_like(weights, 1 / weights.shape[-1]),
        "largest": torch.nn.functional.one_hot(weights.argmax(-1), weights.shape[-1]).float(),
        "first": weights[:1].expand_as(weights),
    }[uses]
    terms = shares * values  # (m, n)
    result = {"keys": terms.sum(-1), "queries": terms.sum(0), "all": terms.sum(), "none": terms}
    return result[axis] / len(values) if divided else result[axis]


@exercise(
    notebook="00_start_here",
    minutes=5,
    difficulty=1,
    trains="a weighted average for each query",
    text="""
    Now for several queries at once. `weights` has a row for each query and a column for each key,
    like the map above, and each row sums to 1; `values` holds one number for each key. Give each
    query its weighted average of the values.
    """,
    reference=_averages,
    probes=[
        (torch.tensor([[0.1, 0.9], [0.75, 0.25], [0.6, 0.4]]), torch.tensor([-2.0, 3.0])),
        (torch.tensor([[0.5, 0.25, 0.25], [0.0, 0.2, 0.8]]), torch.tensor([10.0, 20.0, 40.0])),
        (draw(901, (4, 4))[0].softmax(-1), draw(902, (4,))[0]),
    ],
    mistakes=[
        wrong(
            "the weights are not used",
            "averaging",
            "That is the plain mean, the same for every query; each value has to count as much as "
            "its weight says.",
            uses="equal",
        ),
        wrong(
            "only the value with the largest weight counts",
            "averaging",
            "The others have a share, too: multiply each value by its weight and add up.",
            uses="largest",
        ),
        wrong(
            "every query gets the weights of the first",
            "averaging",
            "Each query has a row of its own.",
            uses="first",
        ),
        wrong(
            "the sum runs over the queries",
            "softmax axis",
            "A query's answer adds up its own row, so the sum runs over the last axis.",
            axis="queries",
        ),
        wrong(
            "all rows are added up together",
            "softmax axis",
            "Each query gets an answer of its own: sum over the last axis only.",
            axis="all",
        ),
        wrong(
            "the products are not added up",
            "averaging",
            "Each value is multiplied by its weight; an average is the sum of these products.",
            axis="none",
        ),
        wrong(
            "the sum is divided by the number of values",
            "normalisation",
            "The weights sum to 1 already, so nothing is left to divide by.",
            divided=True,
        ),
    ],
    hints=[
        "Do it for one query first: 0.5 * 10 + 0.25 * 20 + 0.25 * 40.",
        "weights * values multiplies each row of the weights by the values.",
        "What is left is to add up each row: `sum` takes the axis to sum over.",
    ],
    right_variants=[
        lambda weights, values: weights @ values,
        lambda weights, values: torch.stack([torch.dot(row, values) for row in weights]),
        lambda weights, values: torch.tensor(
            [sum(w * v for w, v in zip(r, values.tolist())) for r in weights.tolist()]
        ),
    ],
)
def weighted_averages(weights, values):
    """What each query is answered.

    weights: (m, n), each row sums to 1; values: (n,). Returns (m,).
    """
    return (weights * values).sum(-1)
