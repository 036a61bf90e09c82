"""Exercises of notebook 18: one pass, tiles, pages, and drafts that change nothing."""

import functools
import gc
import math
import weakref

import torch

from course_utils.checker.exercise import exercise, wrong
from course_utils.checker.probes import draw

NOTEBOOK = "18_exact_and_fast"


class _Score(float):
    """A score of which it can be known whether somebody still holds it."""


def _one_by_one(scores):
    """Each score once; an error where many of those gone by are kept, or a list of their copies."""
    passed = weakref.WeakSet()
    for number in scores:
        score = _Score(number)
        passed.add(score)
        if len(passed) > 4:
            raise ValueError("more scores are kept than two numbers can hold")
        yield score
    young = [x for x in gc.get_objects(generation=0) if type(x) is list and x is not scores]
    if len(scores) > 4 and any({*map(type, x)} == {float} and x == scores for x in young):
        raise ValueError("more scores are kept than two numbers can hold")


def _passing_by(answer, scores):
    return answer(_one_by_one(scores.tolist()))


def _read(
    scores, *, shrink="old", start=-math.inf, shift=True, result="whole", exp="python",
    reading="once",
):  # fmt: skip
    if reading == "kept":
        scores = list(scores)
    if reading == "twice":
        start, shrink = max(scores), "never"
    if reading == "first lost":
        start = float(next(scores))

    def power(x):
        if exp == "torch":
            return float(torch.tensor(x).exp())
        return math.exp(x)

    top, total = start, 0.0
    for score in scores:
        higher = max(top, score) if shift else 0.0
        if shrink == "old":
            total = total * power(top - higher if shift else 0.0) + power(score - higher)
        elif shrink == "never":
            total = total + power(score - higher)
        elif shrink == "the new one, too":
            total = (total + power(score - higher)) * power(top - higher)
        elif shrink == "the new one lost":
            total = total * power(top - higher) + (power(score - higher) if score <= top else 0.0)
        else:  # the wrong way round: grown, where it should shrink
            total = total * (power(higher - top) if total else 0.0) + power(score - higher)
        top = higher
    if result == "sum":
        return total
    log = (
        math.log(total)
        if exp == "python"
        else float(torch.tensor(total, dtype=torch.float64).log())
    )
    return log if result == "no top" else top + log


_READ_PLAINLY = {"shrink": "old", "start": -math.inf, "shift": True, "result": "whole"}


@exercise(
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=2,
    trains="a running maximum and a running sum",
    text="""
    The scores of one query come by one at a time, and each can be read **once**: `scores` is an
    iterator, and what has gone by is gone. Return their log-sum-exp, log(e^s0 + e^s1 + ...), with
    two numbers in your hands and no more, and without torch's `logsumexp`, `softmax` and
    `log_softmax`. Scores may be as large as 2000 or as low as -2000, and
    `math.exp(2000)` is an error.
    """,
    reference=_read,
    play=_passing_by,
    probes=[
        (torch.tensor([0.5, 1.5]),),
        (torch.tensor([-1.0, 2.0, 0.5, 3.0, 2.5, 1.0, 3.5]),),
        (torch.tensor([3.0, 1.0, 2.0]),),
        (torch.tensor([1999.0, 1997.0, 2000.0]),),
        (torch.tensor([-1999.0, -2000.0, -1998.0, -1999.0]),),
    ],
    forbids=("logsumexp", "log_softmax", "softmax"),
    mistakes=[
        wrong(
            "the sum does not shrink when the maximum rises",
            "state",
            "What was summed so far is measured from the old maximum: multiply it by "
            "exp(old - new) before you add.",
            shrink="never",
        ),
        wrong(
            "the factor at a new maximum is upside down",
            "state",
            "From a higher maximum everything looks smaller: the factor is exp(old - new), never "
            "above 1.",
            shrink="reversed",
        ),
        wrong(
            "a score that is a new maximum is not counted",
            "state",
            "It counts exp(0) = 1: let the sum shrink, and then add the power of every score.",
            shrink="the new one lost",
            shift=True,
            reading="once",
        ),
        wrong(
            "the new score shrinks as well",
            "state",
            "Only what was summed before is measured from the old maximum: let that shrink, then "
            "add.",
            shrink="the new one, too",
            shift=True,
            reading="once",
        ),
        wrong(
            "the maximum starts too high",
            "overflow",
            "Scores may all lie far below it, and then every power is 0: start at -math.inf.",
            {"exp": "torch"},
            {"start": -1000.0},
            {"start": -1000.0, "exp": "torch"},
            start=0.0,
            shift=True,
        ),
        wrong(
            "all scores are kept",
            "state",
            "A list of them is what there is no room for: two numbers, a maximum and a sum, are "
            "enough.",
            reading="kept",
            **_READ_PLAINLY,
        ),
        wrong(
            "the scores are read twice",
            "state",
            "max(scores) reads them all, and then none is left: find maximum and sum in one pass.",
            reading="twice",
            **_READ_PLAINLY,
        ),
        wrong(
            "the first score is not counted",
            "off by one",
            "It was taken as the first maximum; in the sum it counts exp(0) = 1.",
            reading="first lost",
            start=-math.inf,
        ),
        wrong(
            "no maximum is subtracted",
            "overflow",
            "exp of 2000 is too large for a float, and exp of -2000 is 0.",
            {"exp": "torch"},
            shift=False,
            shrink="old",
        ),
        wrong(
            "the logarithm is not taken",
            "log probabilities",
            "The sum is measured from the maximum: the log-sum-exp is maximum + log(sum).",
            result="sum",
        ),
        wrong(
            "the maximum is not added back",
            "log probabilities",
            "The powers were taken of score - maximum, so log(sum) is the log-sum-exp less the "
            "maximum.",
            result="no top",
        ),
    ],
    hints=[
        "Carry the largest score so far, and the sum of exp(score - largest) so far.",
        "When a larger score comes, every power in the sum is off by the same factor. Which one?",
        "exp(s - new) = exp(s - old) * exp(old - new), for all s at once.",
    ],
    right_variants=[
        lambda scores: functools.reduce(
            lambda a, b: max(a, b) + math.log1p(math.exp(-abs(a - b))), scores
        ),
        lambda scores: (lambda found: found[0] + math.log(found[1]))(
            functools.reduce(
                lambda x, s: (
                    (x[0], x[1] + math.exp(s - x[0]))
                    if s <= x[0]
                    else (s, x[1] * math.exp(x[0] - s) + 1.0)
                ),
                scores,
                (-math.inf, 0.0),
            )
        ),
        lambda scores: float(
            functools.reduce(
                lambda a, s: torch.logaddexp(a, torch.tensor(s, dtype=torch.float64)),
                scores,
                torch.tensor(-math.inf, dtype=torch.float64),
            )
        ),
    ],
)
def read_once(scores):
    """The log-sum-exp of scores that can be read once.

    scores: an iterator over one number or more. Returns a number.
    """
    top, total = -math.inf, 0.0
    for score in scores:
        higher = max(top, score)
        total = total * math.exp(top - higher) + math.exp(score - higher)
        top = higher
    return top + math.log(total)


def _in_tiles(answer, queries, keys, values, size):
    def tiles():  # a tile's memory is used again: who still holds it finds no numbers there
        for tile in zip(keys.split(size), values.split(size), strict=True):
            read = [x.clone() for x in tile]
            yield tuple(read)
            for x in read:
                x.detach().fill_(math.nan)

    return answer(queries, tiles())


def _from_tiles(
    queries, tiles, *, scale="root", shrink="both", shift=True, axis="keys", divide="at last",
    keep="all", start=-math.inf,
):  # fmt: skip
    d = queries.shape[-1]
    top = torch.full((len(queries), 1), start)
    total, output, parts = torch.zeros(len(queries), 1), 0.0, []
    for keys, values in list(tiles) if keep == "the tiles" else tiles:
        sizes = {"none": 1, "d": d**2, "root of v": values.shape[-1], "root of c": len(keys)}
        scores = queries @ keys.T / sizes.get(scale, d) ** 0.5  # (Tq, c)
        if axis == "queries":
            output = output + scores.softmax(0) @ values
            total = torch.ones(len(queries), 1)
            continue
        if divide == "each":
            parts.append(scores.softmax(-1) @ values)
            continue
        if keep == "last":
            total, output = torch.zeros_like(total), 0.0
        higher = torch.maximum(top, scores.amax(-1, keepdim=True))
        if shift == "one for all":
            higher = torch.maximum(top, scores.max())
        if shift == "of the tile":
            higher = scores.amax(-1, keepdim=True)
        higher = higher if shift else torch.zeros_like(top)
        factor = torch.exp(top - higher) if shift else torch.ones_like(top)
        weights = torch.exp(scores - higher)
        total = total * (factor if shrink in ("both", "sum") else 1) + weights.sum(-1, keepdim=True)
        output = output * (factor if shrink in ("both", "output") else 1) + weights @ values
        output = output / total if divide == "in the loop" else output
        top = higher
    if divide == "each":
        return torch.stack(parts).sum(0) if keep == "summed" else torch.stack(parts).mean(0)
    return output if divide in ("never", "in the loop") else output / total


_PLAIN = {"shrink": "both", "divide": "at last", "shift": True, "keep": "all"}


@exercise(
    notebook=NOTEBOOK,
    minutes=15,
    difficulty=2,
    trains="attention from tiles that are seen once",
    text="""
    Attention without a mask, from tiles: `tiles` is an iterator over pairs, some keys `(c, d)` and
    their values `(c, v)`. Each pair comes **once**; the last tile may be shorter. Never hold more
    than one tile: the next one is read into the same memory. Divide the scores by the root of d.
    """,
    reference=_from_tiles,
    play=_in_tiles,
    too_large=("a tensor with all scores, keys or values in it", (4,)),
    probes=[
        (
            torch.tensor([[20.0, 0.0], [0.0, 1.0]]),
            torch.tensor([[10.0, 0.0], [9.0, 1.0], [-10.0, 2.0], [-9.0, 0.0]]),
            torch.tensor([[1.0], [2.0], [4.0], [-1.0]]),
            2,
        ),
        (
            torch.tensor([[-32.0, 2.0, 0.0, 1.0]]),
            torch.tensor([[62.5, 0.5, 1.0, 0.0], [62.5, 1.0, 0.0, 0.0], [62.5, 0.0, 0.0, 0.0]]),
            torch.tensor([[1.0], [3.0], [-2.0]]),
            2,
        ),
        (*draw(0, (2, 3), (4, 3), (4, 2)), 2),
        (*draw(1, (3, 4), (7, 4), (7, 2), scale=1.5), 3),
        (*draw(2, (2, 2), (5, 2), (5, 3), scale=2.0), 1),
        (*draw(3, (3, 2), (6, 2), (6, 2), scale=30.0), 4),
    ],
    mistakes=[
        wrong(
            "the scores are not divided by the root of d",
            "scale",
            "They are plain dot products; divide by math.sqrt(queries.shape[-1]).",
            scale="none",
        ),
        wrong(
            "the scores are divided by d, not by its root",
            "scale",
            "The spread of a dot product grows with the root of d.",
            scale="d",
        ),
        wrong(
            "the scores are divided by the root of v, the size of a value",
            "scale",
            "A score is a sum over the d features of query and key; values have no part in it.",
            scale="root of v",
        ),
        wrong(
            "the scores are divided by the root of the number of keys in a tile",
            "scale",
            "A score is a sum over the d features of query and key: divide by the root of d.",
            scale="root of c",
        ),
        wrong(
            "all tiles are held",
            "memory",
            "When the next tile is read, the one before is gone: its memory holds nan here. Carry "
            "maximum, sum and output from tile to tile, and no keys or values.",
            keep="the tiles",
            axis="keys",
            divide="at last",
            shrink="both",
            shift=True,
        ),
        wrong(
            "the running sum does not shrink when the maximum rises",
            "state",
            "The output so far shrinks, the sum so far does not: both are measured from the old "
            "maximum.",
            shrink="output",
            axis="keys",
        ),
        wrong(
            "the running output does not shrink when the maximum rises",
            "state",
            "The sum so far shrinks, the output so far does not: both are measured from the old "
            "maximum.",
            shrink="sum",
            axis="keys",
        ),
        wrong(
            "nothing shrinks when the maximum rises",
            "state",
            "Sum and output are left as they were, so early tiles count too much.",
            shrink="none",
            axis="keys",
        ),
        wrong(
            "no maximum is subtracted",
            "overflow",
            "exp of a score above 88 is infinite in float32: subtract the running maximum.",
            shift=False,
            axis="keys",
            shrink="both",
        ),
        wrong(
            "one maximum is subtracted for all queries",
            "overflow",
            "A query whose scores lie far below it gets 0 everywhere, and 0 / 0: each query has a "
            "maximum of its own.",
            shift="one for all",
            axis="keys",
            shrink="both",
        ),
        wrong(
            "the maximum falls with a tile of lower scores",
            "overflow",
            "Then exp(old - new) can be infinite: take the larger one of old maximum and new.",
            shift="of the tile",
            axis="keys",
            shrink="both",
        ),
        wrong(
            "the maximum starts too high",
            "overflow",
            "All scores may lie below the number it starts at, and then every power is 0: start at "
            "minus infinity.",
            {"start": -100.0},
            start=0.0,
            shift=True,
            axis="keys",
        ),
        wrong(
            "the softmax runs over the queries",
            "softmax axis",
            "Each query shares out its 1 among the keys, the last axis of the scores.",
            axis="queries",
            **_PLAIN,
        ),
        wrong(
            "each tile is divided by its own sum, and the tiles are averaged or added",
            "normalisation",
            "A tile of high scores has to count for more: divide once, after the last tile.",
            {"keep": "summed"},
            divide="each",
            axis="keys",
            shrink="both",
            shift=True,
            keep="all",
        ),
        wrong(
            "the output is not divided by the sum",
            "normalisation",
            "The weights sum to 1 only after the division by the sum of all powers.",
            divide="never",
            axis="keys",
        ),
        wrong(
            "the output is divided by the sum after every tile",
            "normalisation",
            "What was divided once is divided again by the next sum: divide once, after the last "
            "tile.",
            divide="in the loop",
            axis="keys",
        ),
        wrong(
            "only the last tile is left",
            "state",
            "Sum and output are set to 0 within the loop; they begin at 0 once, before it.",
            keep="last",
            axis="keys",
            divide="at last",
            shrink="both",
            shift=True,
        ),
    ],
    hints=[
        "Carry three things from tile to tile: the largest score of each query, a sum, an output.",
        "Shapes: the largest score and the sum are (Tq, 1), so that they broadcast over keys and "
        "values.",
        "Two things have to shrink before a tile is added. Then add its powers, and its powers "
        "times its values.",
    ],
    right_variants=[
        lambda q, tiles: functools.reduce(
            lambda state, tile: (
                lambda s: (
                    lambda all_: (
                        all_,
                        state[1] * (state[0] - all_).exp() + (s - all_).exp() @ tile[1],
                    )
                )(torch.logaddexp(state[0], s.logsumexp(1, keepdim=True)))
            )(torch.einsum("qd,cd->qc", q, tile[0]) / q.shape[1] ** 0.5),
            tiles,
            (torch.full((len(q), 1), -math.inf), 0.0),
        )[1],
        lambda q, tiles: (
            lambda parts: (
                torch.stack([o for o, _ in parts], 0)
                .mul(torch.stack([s for _, s in parts]).softmax(0))
                .sum(0)
            )
        )(
            [
                (s.softmax(-1) @ v, s.logsumexp(-1, keepdim=True))
                for k, v in tiles
                for s in [q @ k.T * q.shape[-1] ** -0.5]
            ]
        ),
        lambda q, tiles: (lambda found: found[1] / found[2])(
            functools.reduce(
                lambda state, tile: (
                    lambda s, old: (
                        lambda new: (
                            new,
                            state[1] * (old - new).exp() + (s - new).exp() @ tile[1],
                            state[2] * (old - new).exp() + (s - new).exp().sum(1, keepdim=True),
                        )
                    )(torch.maximum(old, s.max(1, keepdim=True).values))
                )(q @ tile[0].T / math.sqrt(q.size(1)), state[0]),
                tiles,
                (torch.full((len(q), 1), -math.inf), torch.zeros(()), torch.zeros(())),
            )
        ),
    ],
)
def from_tiles(queries, tiles):
    """Attention from tiles of keys and values that can be read once.

    queries: (Tq, d), tiles: an iterator over pairs of keys (c, d) and values (c, v).
    Returns (Tq, v).
    """
    top = torch.full((len(queries), 1), -torch.inf)  # (Tq, 1)
    total, output = torch.zeros_like(top), 0.0
    for keys, values in tiles:
        scores = queries @ keys.T / math.sqrt(queries.shape[-1])  # (Tq, c)
        higher = torch.maximum(top, scores.amax(-1, keepdim=True))
        shrink, weights = torch.exp(top - higher), torch.exp(scores - higher)
        total = total * shrink + weights.sum(-1, keepdim=True)
        output = output * shrink + weights @ values  # (Tq, v)
        top = higher
    return output / total


def _join(out1, log1, out2, log2, *, weigh="powers", shift=True, log="joint", turned=False):
    logs = torch.stack([log1, log2])  # (2, Tq)
    top = {True: logs.amax(0), "one for all": logs.max(), False: torch.tensor(0.0)}[shift]
    powers = (logs - top).exp()
    weights = {
        "powers": lambda: powers / powers.sum(0),
        "equally": lambda: torch.full_like(logs, 0.5),
        "logs": lambda: logs / logs.sum(0),
        "logs by the joint one": lambda: logs / logs.logsumexp(0),
        "undivided": lambda: logs.exp(),
        "by the larger one alone": lambda: powers,
        "over the queries": lambda: logs.softmax(1),
    }[weigh]()
    if turned:
        weights = weights.flip(0)
    output = weights[0][:, None] * out1 + weights[1][:, None] * out2
    found = {
        "joint": powers.sum(0).log() + top,
        "top lost": powers.sum(0).log(),
        "sum": logs.sum(0),
        "largest": logs.amax(0),
        "halved": logs.mean(0),
        "powers": logs.exp().sum(0),
    }[log]
    return output, found


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=2,
    trains="what two halves of a text have to tell each other",
    text="""
    A text is too long for one machine. Machine 1 holds the first half of the keys, machine 2 the
    second; each answers the same queries with its own half and hands you its outputs `(Tq, v)` and
    the log-sum-exp of its scores `(Tq,)`. From these alone make the output over **all** keys, and
    its log-sum-exp. A log-sum-exp may be any number, far above 300 or far below -300.
    """,
    reference=_join,
    probes=[
        (*draw(4, (2, 2), (2,)), *draw(5, (2, 2), (2,))),
        (*draw(6, (3, 2), (3,), scale=2.0), *draw(7, (3, 2), (3,), scale=2.0)),
        (*draw(8, (2, 3)), torch.tensor([299.0, 300.0]), *draw(9, (2, 3)),
         torch.tensor([300.0, 298.5])),
        (*draw(10, (2, 2)), torch.tensor([300.0, 1.0]), *draw(11, (2, 2)),
         torch.tensor([299.0, 2.0])),
    ],
    mistakes=[
        wrong(
            "the two outputs are averaged",
            "normalisation",
            "The half with the higher scores has to count for more: weigh by exp(log-sum-exp).",
            weigh="equally",
            turned=False,
        ),
        wrong(
            "the outputs are weighed by the log-sum-exps themselves",
            "normalisation",
            "A log-sum-exp is a logarithm and may be negative; the sums are exp of it.",
            {"weigh": "logs by the joint one"},
            weigh="logs",
            turned=False,
        ),
        wrong(
            "the weights of the two halves do not sum to 1",
            "normalisation",
            "Each output was divided by its own sum; now divide by both sums together.",
            {"weigh": "by the larger one alone"},
            weigh="undivided",
            turned=False,
        ),
        wrong(
            "the weights are shared out among the queries, not between the halves",
            "softmax axis",
            "For each query the weights of the two halves sum to 1.",
            weigh="over the queries",
        ),
        wrong(
            "the weights of the two halves are swapped",
            "normalisation",
            "The output of a half goes with its own log-sum-exp.",
            turned=True,
            weigh="powers",
        ),
        wrong(
            "exp is taken without a maximum subtracted",
            "overflow",
            "exp(300) is infinite in float32: torch.logsumexp, torch.logaddexp or a softmax over "
            "the two subtract the larger one first.",
            shift=False,
            log="joint",
            weigh="powers",
        ),
        wrong(
            "one maximum is subtracted for all queries",
            "overflow",
            "Beside a query of 300 one of 1 gets exp(-299), which is 0, and 0 / 0: each query has "
            "a maximum of its own.",
            shift="one for all",
            log="joint",
            weigh="powers",
        ),
        wrong(
            "the maximum that was subtracted is not added again",
            "log probabilities",
            "log(e^(a-m) + e^(b-m)) is m too small.",
            log="top lost",
            shift=True,
        ),
        wrong(
            "the log-sum-exps are added",
            "log probabilities",
            "The sums add up, not their logarithms: log(e^a + e^b).",
            log="sum",
        ),
        wrong(
            "the log-sum-exps are averaged",
            "log probabilities",
            "More keys make a larger sum: the log-sum-exp of all is log(e^a + e^b).",
            log="halved",
        ),
        wrong(
            "the sum is returned, not its logarithm",
            "log probabilities",
            "Asked is the log-sum-exp: log(e^a + e^b), taken without leaving the logarithms.",
            log="powers",
        ),
        wrong(
            "the larger log-sum-exp is returned",
            "log probabilities",
            "That leaves out one half's sum: log(e^a + e^b) is larger than both.",
            log="largest",
        ),
    ],
    hints=[
        "Multiply a half's output by its sum, and you have what it had before the division.",
        "The weight of half 1 is sum1 / (sum1 + sum2), with sum = exp(log-sum-exp).",
        "That is a softmax over two numbers, for each query; it is (Tq,), the outputs are (Tq, v).",
    ],
    right_variants=[
        lambda a, x, b, y: (
            torch.sigmoid(x - y)[:, None] * a + torch.sigmoid(y - x)[:, None] * b,
            torch.logaddexp(x, y),
        ),
        lambda a, x, b, y: (
            lambda m: (
                ((x - m).exp()[:, None] * a + (y - m).exp()[:, None] * b)
                / ((x - m).exp() + (y - m).exp())[:, None],
                m + ((x - m).exp() + (y - m).exp()).log(),
            )
        )(torch.maximum(x, y)),
        lambda a, x, b, y: (
            lambda both: (
                a * (x - both).exp().unsqueeze(1) + b * (y - both).exp().unsqueeze(1),
                both,
            )
        )(torch.stack([x, y]).logsumexp(0)),
    ],
)  # fmt: skip
def join_halves(out1, log1, out2, log2):
    """The output and log-sum-exp over all keys, from those over two halves.

    out1, out2: (Tq, v), log1, log2: (Tq,). Returns (Tq, v) and (Tq,).
    """
    log = torch.logaddexp(log1, log2)  # (Tq,)
    share1, share2 = torch.exp(log1 - log), torch.exp(log2 - log)  # they sum to 1
    return share1[:, None] * out1 + share2[:, None] * out2, log


@exercise(
    kind="value",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=6,
    difficulty=2,
    trains="choosing a test that can fail",
    text="""
    Somebody's loop reads one key at a time and has one slip. Two tests were run, on scores that
    fall and on scores that rise; "right" is what a softmax gives.

    | test | scores | its output | right |
    |---|---|---|---|
    | all values 1 | 3, 2, 1 | 1.00 | 1.00 |
    | all values 1 | 1, 2, 3 | 1.00 | 1.00 |
    | value 1 for the last key, else 0 | 3, 2, 1 | 0.09 | 0.09 |
    | value 1 for the last key, else 0 | 1, 2, 3 | 0.33 | 0.67 |

    Which slip? `"a"`: when the maximum rises, the sum does not shrink. `"b"`: the output does not
    shrink. `"c"`: neither does. `"d"`: no maximum is subtracted. `"e"`: the maximum starts at 0.
    """,
    mistakes=[
        wrong(
            "a sum that does not shrink would be too large",
            "state",
            "With rising scores and all values 1 the output would fall below 1, and the first test "
            "would show it.",
            answer="a",
        ),
        wrong(
            "an output that does not shrink would be too large",
            "state",
            "With rising scores and all values 1 the output would rise above 1, and the first test "
            "would show it.",
            answer="b",
        ),
        wrong(
            "without a maximum, scores of this size give the right result",
            "overflow",
            "exp(3) is no large number; that slip shows with scores in the hundreds.",
            answer="d",
        ),
        wrong(
            "a maximum that starts at 0 gives the right result here",
            "overflow",
            "It is a maximum too high at worst; that slip shows where all scores lie far below 0.",
            answer="e",
        ),
    ],
    hints=[
        "Each slip in turn: what would the sum and the output be after the scores 1, 2, 3?",
        "All values 1: output and sum are then the same number, unless they are treated "
        "differently.",
        "0.33 is a third. Which powers would have to be equal for that?",
    ],
)
def which_slip():
    """The letter of the slip"""
    # Each new score is the maximum, so its power is exp(0) = 1; if none of the old ones shrinks,
    # the three keys count 1 each. Falling scores never move the maximum, and all is right.
    return "c"


def _backward(answer, scores, values, grad, first, last):
    """The answer gets a tile of a row whose log-sum-exp and output were saved."""
    log_sum, output = scores.logsumexp(-1), scores.softmax(-1) @ values
    return answer(scores[:, first:last], log_sum, values[first:last], grad, output)


def _score_gradient(scores, log_sum, values, grad, output, *, weights="saved", mean="output",
                    factor="all", minus=True, d_weights="gradient"):  # fmt: skip
    w = {
        "saved": lambda: torch.exp(scores - log_sum[:, None]),
        "tile": lambda: scores.softmax(-1),
        "powers": lambda: torch.exp(scores),
        "over the logarithm": lambda: torch.exp(scores) / log_sum[:, None],
        "turned": lambda: torch.exp(log_sum[:, None] - scores),
    }[weights]()
    d_w = (output if d_weights == "output" else grad) @ values.T
    subtract = {
        "output": lambda: (grad * output).sum(-1, keepdim=True),
        "tile": lambda: (w * d_w).sum(-1, keepdim=True),
        "none": lambda: torch.zeros(len(grad), 1),
        "average": lambda: (grad * output).mean(-1, keepdim=True),
        "all queries": lambda: (grad * output).sum(),
        "own": lambda: w * d_w,
        "plain": lambda: d_w.mean(-1, keepdim=True),
        "squares": lambda: output.square().sum(-1, keepdim=True),
    }[mean]()
    if factor == "dweight alone":
        d_w = w * d_w
    inner = d_w - subtract if minus else d_w + subtract
    return w * inner if factor == "all" else inner


@exercise(
    notebook=NOTEBOOK,
    minutes=15,
    difficulty=3,
    trains="the backward pass of a tile, from one saved number a query",
    text="""
    The backward pass of one tile. You have `c` of a query's scores (never the others), its
    log-sum-exp over **all** keys, the values of the tile, the output that the forward pass gave,
    and the gradient of the loss with respect to that output. Return the gradient with respect to
    the scores of the tile. Two facts do it: weight_j = exp(score_j - log-sum-exp), and the gradient
    of a softmax is weight_j * (dweight_j - sum over **all** keys of weight_i * dweight_i), where
    dweight_j = gradient . value_j. That sum you cannot compute from the tile; find it in what you
    were given.
    """,
    reference=_score_gradient,
    play=_backward,
    probes=[
        (*draw(10, (2, 4), (4, 2), (2, 2)), 0, 2),
        (*draw(11, (3, 6), (6, 2), (3, 2), scale=1.5), 2, 5),
        (*draw(12, (2, 5), (5, 4), (2, 4)), 4, 5),
    ],
    mistakes=[
        wrong(
            "the softmax is taken over the tile alone",
            "normalisation",
            "The weights of a tile sum to less than 1; the saved log-sum-exp belongs to all keys.",
            weights="tile",
        ),
        wrong(
            "the powers are not divided by the sum",
            "normalisation",
            "exp(score - log-sum-exp) is the weight; exp(score) alone is not.",
            weights="powers",
        ),
        wrong(
            "the powers are divided by the logarithm of the sum",
            "log probabilities",
            "The log-sum-exp is a logarithm: subtract it before exp is taken.",
            weights="over the logarithm",
        ),
        wrong(
            "the log-sum-exp has the wrong sign",
            "log probabilities",
            "The weight is exp(score - log-sum-exp), at most 1.",
            weights="turned",
        ),
        wrong(
            "the sum of weight * dweight is taken over the tile alone",
            "gradient",
            "It runs over all keys, and weights times values are the output: it is the dot product "
            "of gradient and output.",
            mean="tile",
        ),
        wrong(
            "nothing is subtracted",
            "gradient",
            "When one weight grows the others must fall: subtract the weighted mean of dweight.",
            mean="none",
            minus=True,
        ),
        wrong(
            "the weighted mean of dweight is added, not subtracted",
            "gradient",
            "When one weight grows the others must fall: dweight minus the weighted mean.",
            minus=False,
        ),
        wrong(
            "gradient times output is averaged, not summed",
            "averaging",
            "A dot product is a sum over the features.",
            mean="average",
        ),
        wrong(
            "gradient times output is summed over all queries",
            "gradient",
            "It is one number for each query: sum over the features alone, the last axis.",
            mean="all queries",
        ),
        wrong(
            "each score is taken to move its own weight only",
            "gradient",
            "w (1 - w) is the softmax's diagonal; a score moves all weights of its row.",
            mean="own",
        ),
        wrong(
            "the plain mean of dweight is subtracted",
            "averaging",
            "The mean is weighted by the attention weights, and runs over all keys.",
            mean="plain",
        ),
        wrong(
            "the result is not multiplied by the weight",
            "gradient",
            "A key without weight does not care about its score: multiply by weight_j.",
            factor="none",
            weights="saved",
        ),
        wrong(
            "only dweight is multiplied by the weight",
            "gradient",
            "Brackets: weight_j times the difference, so the weighted mean is multiplied, too.",
            factor="dweight alone",
        ),
        wrong(
            "dweight is the output times the value",
            "gradient",
            "The gradient says how the loss changes with weight_j: dweight_j = gradient . value_j.",
            d_weights="output",
        ),
        wrong(
            "the output is multiplied by itself",
            "gradient",
            "sum of weight_i * (gradient . value_i) = gradient . (sum of weight_i * value_i): the "
            "gradient times the output.",
            mean="squares",
            minus=True,
        ),
    ],
    hints=[
        "First the weights (Tq, c), then dweight = grad @ values.T, of the same shape.",
        "sum_i weight_i * (grad . value_i) = grad . (sum_i weight_i * value_i). What is "
        "the bracket?",
        "It is one number a query: (Tq, 1), to be subtracted from every key's dweight.",
    ],
    right_variants=[
        lambda s, log, v, g, o: (s - log[:, None]).exp() * (g[:, None] * (v - o[:, None])).sum(-1),
        lambda s, log, v, g, o: (
            torch.exp(s - log.unsqueeze(1))
            * (torch.einsum("qv,cv->qc", g, v) - torch.einsum("qv,qv->q", g, o)[:, None])
        ),
        lambda s, log, v, g, o: torch.stack(
            [
                torch.stack(
                    [(s[i, j] - log[i]).exp() * (g[i] @ (v[j] - o[i])) for j in range(len(v))]
                )
                for i in range(len(s))
            ]
        ),
    ],
)
def score_gradient(scores, log_sum, values, grad, output):
    """The gradient with respect to the scores of one tile.

    scores: (Tq, c), log_sum: (Tq,), values: (c, v), grad, output: (Tq, v). Returns (Tq, c).
    """
    weights = torch.exp(scores - log_sum[:, None])  # (Tq, c)
    d_weights = grad @ values.T  # (Tq, c)
    mean = (grad * output).sum(-1, keepdim=True)  # (Tq, 1): over all keys
    return weights * (d_weights - mean)


def _pages(
    prompt, more, page, *, share="whole", tails="go on", rounds="up", each=True, own="given back"
):  # fmt: skip
    def whole(tokens, rounds=rounds):
        return -(-tokens // page) if rounds == "up" else tokens // page + (rounds == "one more")

    of_prompt = "down" if rounds == "down" else "up"

    full, rest = divmod(prompt, page)
    if own == "kept":
        full += rest > 0
    if tails.startswith("alone"):
        rest = 0
    if tails.endswith("as the longest"):
        more = [max(more)] * len(more)
    if share == "nothing":
        return sum(whole(prompt + m) for m in more)
    if share == "started":  # all write on into the one page that the prompt has begun
        begun = whole(prompt, "up")
        return begun + sum(max(0, whole(prompt + m) - begun) for m in more)
    if tails == "begin anew":
        return whole(prompt, of_prompt) + sum(map(whole, more))
    if not each:
        return full + whole(rest + sum(more))
    return full + sum(whole(rest + m) for m in more)


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=2,
    trains="what a shared beginning saves in pages",
    text="""
    One prompt of `prompt` tokens, and several answers that go on from it: answer i has `more[i]`
    tokens, at least one. Pages hold `page` tokens. The prompt's full pages are shared by all
    answers; a page that the prompt has only begun is **copied** for each answer before it writes
    there, and the prompt's own copy is given back. How many pages are taken in the end?
    """,
    reference=_pages,
    probes=[
        (5, [2], 4),
        (8, [1, 3], 4),
        (10, [2, 7, 1], 4),
        (7, [9, 9, 1, 5], 5),
        (3, [2, 30], 8),
        (64, [16, 17, 40], 16),
    ],
    mistakes=[
        wrong(
            "nothing is shared",
            "memory",
            "That is one whole text after another; the full pages of the prompt are taken once.",
            share="nothing",
            each=True,
        ),
        wrong(
            "all answers write into the page that the prompt has begun",
            "cache",
            "They would overwrite each other: each needs a copy of that page.",
            share="started",
            tails="go on",
            each=True,
        ),
        wrong(
            "every answer begins a page of its own",
            "cache",
            "An answer goes on where the prompt stopped, within the (copied) page.",
            tails="begin anew",
            share="whole",
            each=True,
        ),
        wrong(
            "a text that fills its last page is given one more",
            "off by one",
            "A page is taken when a token needs it: round up, but not beyond.",
            rounds="one more",
        ),
        wrong(
            "all answers are taken to be as long as the longest",
            "memory",
            "Each answer takes the pages that its own tokens need.",
            tails="as the longest",
            each=True,
        ),
        wrong(
            "pages are rounded down",
            "off by one",
            "A page that holds one token is a page: round up.",
            {"rounds": "down, of answers"},
            rounds="down",
        ),
        wrong(
            "the prompt's own begun page is counted as well",
            "memory",
            "It is given back once every answer has its copy: count the prompt's full pages alone.",
            own="kept",
            tails="go on",
            share="whole",
            each=True,
        ),
        wrong(
            "the tokens of the begun page are forgotten",
            "cache",
            "Each answer's copy holds them: its pages take prompt % page tokens and its own.",
            tails="alone",
            share="whole",
            each=True,
            own="given back",
        ),
        wrong(
            "the answers are laid into one row of pages",
            "cache",
            "Each answer is a text of its own, with its own last page.",
            each=False,
            share="whole",
            tails="go on",
        ),
        wrong(
            "the answers are laid into one row of pages, without the tokens of the begun page",
            "cache",
            "Each answer is a text of its own: its pages take prompt % page tokens and its own.",
            each=False,
            share="whole",
            tails="alone",
            own="given back",
        ),
        wrong(
            "the begun page is forgotten, and all answers are taken to be as long as the longest",
            "cache",
            "Each answer takes the pages that prompt % page tokens and its own tokens need.",
            each=True,
            share="whole",
            tails="alone, as the longest",
            own="given back",
        ),
    ],
    hints=[
        "How many pages has the prompt filled, and how many tokens stand in the one it has begun?",
        "divmod(prompt, page) gives both.",
        "Each answer takes pages for the begun tokens and its own together.",
    ],
    right_variants=[
        lambda p, more, s: p // s + sum(math.ceil((p % s + m) / s) for m in more),
        lambda p, more, s: sum(-(-(p + m) // s) for m in more) - (len(more) - 1) * (p // s),
        lambda p, more, s: len(
            {
                (-1 if t // s < p // s else i, t // s)
                for i, m in enumerate(more)
                for t in range(p + m)
            }
        ),
    ],
    allows=lambda prompt, more, page: all(tokens >= 1 for tokens in more),
)
def pages_taken(prompt, more, page):
    """Pages that some answers to one prompt take in all.

    prompt: tokens, more: a list of the tokens of each answer, page: tokens a page holds.
    Returns an integer.
    """
    full, begun = divmod(prompt, page)
    return full + sum(math.ceil((begun + tokens) / page) for tokens in more)


_KEEPS = (0.0, 0.061, 0.233, 0.413, 0.593, 0.773, 0.957)  # but for 0 no uniform number on any edge
_DRAWS = (0.0, 0.123, 0.311, 0.523, 0.709, 0.931)
_BOTH = [(u, v) for i, u in enumerate(_KEEPS) for j, v in enumerate(_DRAWS) if not (i + j) % 3]


def _all_cases(answer, p, q):
    return [int(answer(p, q, x, u, v)) for x in q.nonzero().flatten().tolist() for u, v in _BOTH]


def _keep(p, q, drafted, u, v, *, accept="ratio", rest="left", total="own", draw="v"):
    if accept == "v":
        u, v = v, u
    p_x, q_x = p[drafted].item(), q[drafted].item()
    ratio = p_x / q_x
    kept = {
        "ratio": u < ratio,
        "v": u < ratio,
        "equal": u <= ratio,
        "always": True,
        "never": False,
        "turned": u * p_x < q_x,
        "target": u < p_x,
        "larger": ratio >= 1,
        "swapped": u >= ratio,
        "swapped, but for equal ones": u > ratio,
    }[accept]
    if kept:
        return drafted
    weights = {
        "left": lambda: (p - q).clamp(min=0),
        "target": lambda: p,
        "weights of target": lambda: p * (p > q),
        "draft": lambda: q,
        "absolute": lambda: (p - q).abs(),
        "turned": lambda: (q - p).clamp(min=0),
        "rest of target": lambda: p.index_fill(0, torch.tensor(drafted), 0.0),
        "softmax": lambda: (p - q).clamp(min=0).softmax(0),
    }[rest]()
    if draw == "largest":
        return int(weights.argmax())
    upto = weights.cumsum(0)
    goal = (u if draw == "u" else v) * (upto[-1] if total == "own" else 1.0)
    found = int(((upto < goal) if draw == "reached" else (upto <= goal)).sum())
    found += draw == "one late"
    if total == "one, else the first" and found == len(p):
        return 0
    return found if total == "one, past the end" or draw == "one late" else min(found, len(p) - 1)


@exercise(
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=2,
    trains="keeping or replacing a drafted token",
    text="""
    A small model has drawn the token `drafted` from its probabilities `q`; the large one wants
    tokens distributed by `p`. Keep the drafted token with probability min(1, p/q), else draw
    another one from max(0, p - q). Both random numbers are given, uniform in [0, 1): keep if `u` is
    below the probability; and to draw by some weights, take the first token at which their running
    sum exceeds `v` times their total.
    """,
    reference=_keep,
    play=_all_cases,
    probes=[
        (torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.2, 0.6])),
        (torch.tensor([0.1, 0.15, 0.35, 0.4]), torch.tensor([0.45, 0.25, 0.25, 0.05])),
        (torch.tensor([0.0, 0.7, 0.2, 0.1]), torch.tensor([0.3, 0.3, 0.35, 0.05])),
        (torch.tensor([0.1, 0.05, 0.25, 0.6]), torch.tensor([0.5, 0.2, 0.0, 0.3])),
    ],
    mistakes=[
        wrong(
            "the drafted token is always kept",
            "sampling",
            "Then the small model writes the text: never is a token drawn again.",
            accept="always",
            rest="left",
            total="own",
        ),
        wrong(
            "the drafted token is never kept",
            "sampling",
            "Where p is at least q the token is always kept; else with probability p/q.",
            accept="never",
        ),
        wrong(
            "the ratio is turned: q/p",
            "sampling",
            "A token that the large model likes more than the small one must be kept for sure.",
            accept="turned",
        ),
        wrong(
            "u is compared with p, not with p/q",
            "sampling",
            "The token came with probability q already; to end at p it is kept with p/q.",
            accept="target",
        ),
        wrong(
            "a token is kept only where p is at least q",
            "sampling",
            "Where p is smaller it is still kept sometimes, with probability p/q.",
            accept="larger",
        ),
        wrong(
            "kept and replaced are swapped",
            "sampling",
            "u below p/q means kept.",
            {"accept": "swapped, but for equal ones"},
            accept="swapped",
        ),
        wrong(
            "u may be as large as the probability",
            "off by one",
            "Keep if u is below p/q: u can be 0, and a token of p = 0 must never be kept.",
            accept="equal",
        ),
        wrong(
            "u and v are exchanged",
            "sampling",
            "`u` decides whether the drafted token is kept, `v` draws another one.",
            accept="v",
            draw="v",
            total="own",
        ),
        wrong(
            "the new token is drawn from p",
            "sampling",
            "Tokens with p below q have had their share from the draft already; only max(0, p - q) "
            "is missing.",
            rest="target",
        ),
        wrong(
            "the new token is drawn from p where p is above q",
            "sampling",
            "There the draft has given q of p already; only p - q is missing.",
            rest="weights of target",
        ),
        wrong(
            "the new token is drawn from q",
            "sampling",
            "That is the small model again; what is missing is max(0, p - q).",
            rest="draft",
        ),
        wrong(
            "the new token is drawn from the absolute difference",
            "sampling",
            "Where p is below q nothing is missing: max(0, p - q) is 0 there.",
            rest="absolute",
        ),
        wrong(
            "the new token is drawn from q - p",
            "sampling",
            "What the draft gave too little of is p - q.",
            rest="turned",
        ),
        wrong(
            "the new token is drawn from p without the drafted token",
            "sampling",
            "Other tokens with p below q have had their share, too: draw from max(0, p - q).",
            rest="rest of target",
        ),
        wrong(
            "the weights' total is taken to be 1",
            "normalisation",
            "max(0, p - q) sums to less than 1: compare with v times its sum.",
            {"total": "one, past the end"},
            {"total": "one, else the first"},
            total="one",
            rest="left",
        ),
        wrong(
            "the new token is drawn from a softmax of what is missing",
            "normalisation",
            "Divide max(0, p - q) by its sum; a softmax gives weight to tokens of which nothing is "
            "missing.",
            rest="softmax",
        ),
        wrong(
            "the token with the most missing is taken",
            "sampling",
            "It is drawn, with `v`: a token of which less is missing must come sometimes, too.",
            draw="largest",
            total="own",
        ),
        wrong(
            "the number u is used for both draws",
            "sampling",
            "u has decided already, and is large whenever it comes to the second draw: take v.",
            draw="u",
            total="own",
        ),
        wrong(
            "a token without weight can be drawn",
            "off by one",
            "The running sum has to exceed v times the total: with v = 0 a first token of weight 0 "
            "would be taken where equality is enough.",
            draw="reached",
        ),
        wrong(
            "the token behind the right one is drawn",
            "off by one",
            "Tokens count from 0: as many as do not exceed the goal stand before the one drawn.",
            draw="one late",
            total="own",
        ),
    ],
    hints=[
        "u < p[drafted] / q[drafted] decides; a ratio above 1 keeps every time.",
        "(p - q).clamp(min=0) are the weights of the second draw.",
        "Their cumsum, compared with v times its last entry; count the entries that do not exceed "
        "it.",
    ],
    right_variants=[
        lambda p, q, x, u, v: (
            x
            if u * q[x] < p[x]
            else int(
                torch.searchsorted(
                    torch.relu(p - q).cumsum(0), v * torch.relu(p - q).sum(), right=True
                )
            )
        ),
        lambda p, q, x, u, v: (
            x
            if u < min(1.0, (p[x] / q[x]).item())
            else next(
                i
                for i in range(len(p))
                if sum(max(0.0, (p[j] - q[j]).item()) for j in range(i + 1))
                > v * sum(max(0.0, (p[j] - q[j]).item()) for j in range(len(p)))
            )
        ),
        lambda p, q, x, u, v: (
            lambda w: x if u < p[x] / q[x] else int((w.cumsum(0) / w.sum() <= v).sum())
        )(torch.maximum(p - q, torch.zeros(()))),
    ],
)
def keep_or_draw(p, q, drafted, u, v):
    """The token that is written, distributed as p.

    p, q: (V,) probabilities, drafted: a token with q > 0, u, v: uniform numbers in [0, 1).
    Returns an integer.
    """
    if u < p[drafted] / q[drafted]:
        return drafted
    upto = (p - q).clamp(min=0).cumsum(0)  # (V,)
    return int((upto <= v * upto[-1]).sum())


def _ahead(
    kept, cost, most, *, tokens="all", time="both", first=0, last=0, rate=False, sure="weighed"
):
    if sure == "most" and kept == 1:
        return most

    def gain(k):
        written = {
            "all": sum(kept**i for i in range(k + 1)),
            "drafts": sum(kept**i for i in range(1, k + 1)),
            "independent": 1 + k * kept,
            "every": k + 1,
            "the last": 1 + kept**k * (k > 0),
            "all or none": 1 + k * kept**k,
            "one too few": sum(kept**i for i in range(k)),
            "no full round": 1 + sum(i * kept**i * (1 - kept) for i in range(k)),
            "no full round, from 1": 1 + sum(i * kept**i * (1 - kept) for i in range(k + 1)),
            "one rejected": sum((i + 1) * kept**i * (1 - kept) for i in range(k + 1)),
            "weighted": 1 + sum(i * kept**i for i in range(k + 1)),
        }[tokens]
        spent = {
            "large": 1.0,
            "drafts": k * cost or 1.0,
            "once": 1 + cost * (k > 0),
            "of the kept": 1 + cost * written,
        }.get(time, 1 + k * cost)
        return written - k * cost if time == "subtracted" else written / spent

    best = max(range(first, most + 1 - last), key=gain)
    if rate == "index":  # in a list that begins with the first that is tried
        return best - first
    return gain(best) if rate else best


# Two of these at once mostly give what one gives alone, so all but two are made alone.
_ALL_TOKENS, _ALL_TIME = {"tokens": "all", "first": 0}, {"time": "both", "first": 0}


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=3,
    trains="when drafting pays, and how far ahead",
    text="""
    How far ahead should the small model draft? Each drafted token is kept with probability `kept`
    (it may be 0 or 1), whatever the others do; after the first that is not, the rest is thrown
    away. A step of the large model takes time 1, however many tokens it checks, and adds one token
    of its own. A step of the small model takes time `cost`. Return the k from 0 to `most` that
    writes the most tokens in a unit of time, on average; 0 means that drafting does not pay.
    """,
    reference=_ahead,
    probes=[
        (0.6, 0.1, 6),
        (0.3, 0.4, 5),
        (0.8, 0.05, 12),
        (0.9, 0.3, 12),
        (0.5, 0.02, 9),
        (0.7, 0.25, 8),
        (0.95, 0.6, 10),
        (0.3, 0.5, 5),
        (0.5, 1.25, 4),
        (0.9, 0.01, 6),
        (0.2, 1.0, 4),
        (1.0, 1.25, 4),
    ],
    mistakes=[
        wrong(
            "the small model's time does not grow by `cost` with every k",
            "counting",
            "Drafting k takes k times `cost`, kept or not, on top of the large model's step.",
            {"time": "of the kept"},
            time="large",
            **_ALL_TOKENS,
        ),
        wrong(
            "the small model's time is counted once, not k times",
            "counting",
            "It writes its k tokens one after the other.",
            time="once",
        ),
        wrong(
            "the large model's time is left out",
            "counting",
            "Every round has one step of the large model, of time 1.",
            time="drafts",
            **_ALL_TOKENS,
        ),
        wrong(
            "the large model's own token, or the last drafted one, is left out",
            "counting",
            "A round writes the kept tokens and one more, a replacement or one beyond the draft: "
            "1 + kept + ... + kept ** k.",
            {"tokens": "one too few"},
            {"tokens": "one too few", "first": 1, "rate": "index"},
            tokens="drafts",
            time="both",
        ),
        wrong(
            "tokens behind a rejected one are counted",
            "counting",
            "Token i is kept only if all before it were: kept ** i.",
            tokens="independent",
        ),
        wrong(
            "of the drafted tokens only the last is counted",
            "counting",
            "Each of them may be kept: kept + kept ** 2 + ... + kept ** k.",
            tokens="the last",
        ),
        wrong(
            "all drafted tokens are kept, or none",
            "counting",
            "The first few may be kept without the rest: kept + kept ** 2 + ... + kept ** k.",
            tokens="all or none",
            **_ALL_TIME,
        ),
        wrong(
            "the case that all k are kept is left out, or weighed by 1 - kept",
            "counting",
            "With probability kept ** k nothing is rejected, and then there is no factor 1 - kept.",
            {"tokens": "no full round, from 1"},
            {"tokens": "one rejected"},
            tokens="no full round",
            **_ALL_TIME,
        ),
        wrong(
            "token i is counted i times",
            "counting",
            "It is one token, kept with probability kept ** i: add kept ** i once for each i.",
            tokens="weighted",
            **_ALL_TIME,
        ),
        wrong(
            "tokens minus time is made largest, not tokens over time",
            "counting",
            "One more token that brings more than it costs makes the difference larger; asked are "
            "tokens in a unit of time, tokens over time.",
            time="subtracted",
            **_ALL_TOKENS,
        ),
        wrong(
            "all drafted tokens are taken to be kept",
            "counting",
            "Token i is kept with probability kept ** i.",
            tokens="every",
            **_ALL_TIME,
        ),
        wrong(
            "not drafting at all is not considered",
            "off by one",
            "k = 0 writes 1 token in a time of 1, and sometimes that is the best.",
            first=1,
            tokens="all",
            time="both",
        ),
        wrong(
            "the largest k is never tried",
            "off by one",
            "range(most) ends at most - 1; k may be `most` itself.",
            last=1,
            first=0,
        ),
        wrong(
            "where no token is thrown away, as many as possible are drafted",
            "counting",
            "Where `kept` is 1 and `cost` is larger, drafting takes longer than it saves.",
            sure="most",
        ),
        wrong(
            "the rate is returned, not the k that has it",
            "search",
            "max over the rates gives the largest rate; asked is at which k it stands.",
            rate=True,
        ),
    ],
    hints=[
        "Write two small formulas first: the tokens of a round, and its time.",
        "The tokens of a round: 1 + kept + kept ** 2 + ... + kept ** k. Why?",
        "Try every k from 0 to `most`, and take the one with the largest ratio.",
    ],
    right_variants=[
        lambda a, c, most: max(
            range(most + 1),
            key=lambda k: ((1 - a ** (k + 1)) / (1 - a) if a < 1 else k + 1) / (1 + k * c),
        ),
        lambda a, c, most: int(
            torch.argmax(
                torch.tensor([a**i for i in range(most + 1)], dtype=torch.float64).cumsum(0)
                / (1 + c * torch.arange(most + 1))
            )
        ),
        lambda a, c, most: max(  # the last of equal ones
            range(most, -1, -1), key=lambda k: sum(a**i for i in range(k + 1)) / (1 + k * c)
        ),
        lambda a, c, most: min(
            (((1 + k * c) / sum(a**i for i in range(k + 1))), k) for k in range(most + 1)
        )[1],
    ],
)
def draft_ahead(kept, cost, most):
    """How many tokens to draft, so that the most are written in a unit of time.

    kept: a probability, cost: of a step of the small model, most: the largest k.
    Returns an integer from 0 to most.
    """
    rates, tokens = [], 0.0
    for k in range(most + 1):
        tokens += kept**k  # the first k were kept
        rates.append(tokens / (1 + k * cost))
    return rates.index(max(rates))
