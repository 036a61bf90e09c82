"""Exercises of notebook 12: Adam, rates, schedules, smoothing, decay, stopping in time."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from course_utils.checker.common import worked_out
from course_utils.checker.exercise import exercise, wrong
from course_utils.checker.probes import draw

NOTEBOOK = "12_training_in_practice"


def _walked(*, sign=-1, rate=0.1, steps=10, by="both means"):
    lengths = {
        "both means": lambda t: 1.0,
        "nothing": lambda t: 0.001,
        "no root": lambda t: 1000.0,
        "uncorrected": lambda t: (1 - 0.9**t) / math.sqrt(1 - 0.999**t),
    }
    return sign * rate * sum(lengths[by](t) for t in range(1, steps + 1))


@exercise(
    kind="value",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=5,
    difficulty=2,
    trains="predicting what Adam does with a tiny gradient",
    text="""
    Predict first, then run it with torch. A weight starts at 0. Adam updates it ten times, and each
    time its gradient is exactly 0.001. The learning rate is 0.1, the betas are 0.9 and 0.999, the
    epsilon hardly counts, and there is no weight decay. Where is the weight afterwards?
    """,
    mistakes=[
        *worked_out(
            _walked,
            wrong("the weight goes up the gradient", "gradient",
                  "The gradient is positive, so the weight becomes smaller.", sign=1),
            wrong("the steps are those of plain gradient descent", "learning rate",
                  "Adam divides by the size of the gradients, so that a tiny one steps as far as a "
                  "large one.", by="nothing"),
            wrong("one update is made", "off by one",
                  "There are ten, and each of them is as long as the first.", steps=1),
            wrong("there is one update too many or too few", "off by one",
                  "There are ten: the first one moves the weight already.", {"steps": 9}, steps=11),
            wrong("the learning rate is left out", "learning rate",
                  "A corrected step is as long as the learning rate, 0.1.", rate=1.0),
            wrong("the running means are not corrected", "averaging",
                  "Both means start at 0; m / (1 - beta1^t) and v / (1 - beta2^t) mend that.",
                  by="uncorrected"),
            wrong("the mean of the squares has no root taken", "gradient norm",
                  "Adam divides by the root of the mean of the squares: 0.001 / 0.001.",
                  by="no root"),
        ),
        wrong("a tiny gradient is taken to move nothing", "gradient",
              "Adam divides by the size of the gradients: however small they are, a step is as "
              "long as the learning rate.", answer=0.0),
    ],
    hints=[
        "With equal gradients, what is the corrected mean of them? And of their squares?",
        "Adam divides the one by the root of the other.",
        "How long is each update, then? There are ten of them, all in one direction.",
    ],
)  # fmt: skip
def adam_walk():
    """Where the weight is after ten updates:"""
    return -1.0


def _rate(step, peak, warmup, *, decay="root", rise="line", pick="min", count=0, scale="peak"):
    step = step + count
    early, late = max(0, step - 1), warmup / max(1, step - warmup)
    up = {"line": step / warmup, "from 0": early / warmup, "late": step / (warmup + 1),
          "whole": step // warmup, "square": (step / warmup) ** 2, "none": 1.0}[rise]  # fmt: skip
    down = {
        "root": math.sqrt(warmup / step) if step else math.inf,
        "linear": warmup / step if step else math.inf,
        "none": 1.0,
        "own root": 1 / math.sqrt(step) if step else math.inf,
        "since the peak": 1 / math.sqrt(max(0, step - warmup) + 1),
        "since the peak, from 0": 1 / math.sqrt(max(1, step - warmup)),
        "since the warm-up": math.sqrt(late) if step > warmup else 1.0,
    }[decay]
    if pick == "cases":
        share = up if step <= warmup else down
    elif pick == "the peak by its decay":
        share = up if step < warmup else down
    else:
        share = min(up, down) if pick == "min" else max(up, down)
    scales = {"peak": peak, "share": 1.0, "paper": peak / math.sqrt(warmup)}
    return share * scales[scale]


@exercise(
    notebook=NOTEBOOK,
    minutes=6,
    difficulty=1,
    trains="warm-up and inverse square root",
    text="""
    The learning rate of update `step` (1, 2, 3, ...): from `peak / warmup` up in a line to `peak`
    at `step = warmup`, then down with the inverse square root of the step, without a jump.
    """,
    reference=_rate,
    probes=[
        (1, 0.5, 4),
        (4, 0.5, 4),
        (16, 0.5, 4),
        (90, 0.8, 10),
        (3, 0.8, 10),
        (13, 0.8, 10),
        (2000, 0.5, 4),
    ],
    mistakes=[
        wrong(
            "steps are counted from 0",
            "off by one",
            "The first update is step 1, so it has the rate peak / warmup and not 0.",
            {"count": 0, "rise": "from 0"},
            {"count": 0, "rise": "from 0", "pick": "the peak by its decay"},
            count=-1,
        ),
        wrong(
            "the step is one too large",
            "off by one",
            "Here steps count from 1 already.",
            count=1,
        ),
        wrong(
            "the decay is 1 / step",
            "learning rate",
            "The root is missing: after 4 times the warm-up the rate is half of the peak.",
            decay="linear",
        ),
        wrong(
            "the decay does not start at the peak",
            "learning rate",
            "1 / sqrt(step) is far below 1 at the end of the warm-up; use sqrt(warmup / step).",
            {"pick": "cases"},
            decay="own root",
        ),
        wrong(
            "the decay counts steps from the peak",
            "learning rate",
            "The root is that of the step itself, sqrt(warmup / step); 1 / sqrt(step - warmup + 1) "
            "falls much faster.",
            {"decay": "since the peak, from 0"},
            decay="since the peak",
        ),
        wrong(
            "nothing decays",
            "learning rate",
            "After the warm-up the rate falls as the inverse root of the step.",
            decay="none",
        ),
        wrong(
            "there is no warm-up",
            "learning rate",
            "The first updates are small: the rate rises in a line.",
            rise="none",
        ),
        wrong(
            "the warm-up is not a line",
            "learning rate",
            "Half-way through the warm-up the rate is half of the peak.",
            rise="square",
        ),
        wrong(
            "the larger of the two branches is taken",
            "learning rate",
            "Before the warm-up ends the line is lower, after it the root: take the minimum.",
            pick="max",
        ),
        wrong(
            "the share of the peak is given",
            "learning rate",
            "Multiply the share by the peak.",
            scale="share",
        ),
        wrong(
            "the warm-up is taken off the step",
            "learning rate",
            "sqrt(warmup / (step - warmup)) jumps up behind the peak; take the step itself.",
            {"pick": "cases"},
            decay="since the warm-up",
        ),
        wrong(
            "the peak comes one step late",
            "off by one",
            "At step = warmup the rate is the peak itself: step / warmup.",
            rise="late",
        ),
        wrong(
            "the rise is cut to whole numbers",
            "learning rate",
            "// gives 0 until the warm-up is over: use /.",
            rise="whole",
        ),
        wrong(
            "the paper's formula is multiplied by the peak",
            "learning rate",
            "min(s^-0.5, s w^-1.5) is w^-0.5 at its highest, not 1: times the root of warmup.",
            scale="paper",
        ),
    ],
    hints=[
        "Write the two branches as shares of the peak; both are 1 at step = warmup.",
        "Rising: step / warmup. Falling: which root is 1 at step = warmup?",
        "The smaller of the two is always the right one.",
    ],
    right_variants=[
        lambda s, p, w: p * s / w if s < w else p * (w / s) ** 0.5,
        lambda s, p, w: p * w**0.5 * min(s**-0.5, s * w**-1.5),
        lambda s, p, w: torch.tensor([s / w, math.sqrt(w / s)], dtype=torch.float64).min() * p,
    ],
)
def warmup_inverse_sqrt(step, peak, warmup):
    """The learning rate of update `step`, which counts from 1."""
    return peak * min(step / warmup, math.sqrt(warmup / step))


def _peak(*, width=1024, of_width=-0.5, of_steps=-0.5):
    return width**of_width * 4000.0**of_steps


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=3,
    difficulty=1,
    trains="the peak of the paper's schedule",
    text="""
    A wider model, `d_model = 1024`, with a warm-up of 4000 steps: how large is its learning rate at
    the peak, by the paper's $d^{-0.5} \\min(s^{-0.5}, s\\,w^{-1.5})$? Three digits are enough.
    """,
    mistakes=[
        *worked_out(
            _peak,
            wrong(
                "the width of the base model is used",
                "learning rate",
                "d_model is 1024 here; the wider model gets the lower peak.",
                width=512,
            ),
            wrong(
                "the factor of the width is left out",
                "learning rate",
                "The warm-up gives 4000^-0.5; multiply it by d_model^-0.5.",
                of_width=0,
            ),
            wrong(
                "the root of the width is forgotten",
                "learning rate",
                "The factor is d_model^-0.5, one over the root of 1024.",
                of_width=-1,
            ),
            wrong(
                "the factor of the warm-up is left out",
                "learning rate",
                "At the peak, s = 4000, the minimum is 4000^-0.5.",
                of_steps=0,
            ),
            wrong(
                "the root of the warm-up is forgotten",
                "learning rate",
                "At the peak, s = 4000, the minimum is 4000^-0.5, one over a root.",
                of_steps=-1,
            ),
            wrong(
                "the rate of the first step is given",
                "learning rate",
                "The peak is at s = w = 4000.",
                of_steps=-1.5,
            ),
            wrong(
                "the minus of the exponents is lost",
                "learning rate",
                "x^-0.5 is one over the root of x.",
                of_width=0.5,
                of_steps=0.5,
            ),
            wrong(
                "the minus of one exponent is lost",
                "learning rate",
                "x^-0.5 is one over the root of x, for the width and for the steps.",
                {"of_width": -0.5, "of_steps": 0.5},
                of_width=0.5,
                of_steps=-0.5,
            ),
        ),
    ],
    hints=[
        "At which step are the two branches of the minimum equal?",
        "There the minimum is the inverse root of the warm-up.",
        "So one over the root of a product of two numbers.",
    ],
)
def peak_learning_rate():
    """The learning rate at the peak:"""
    return (1024 * 4000) ** -0.5


def _smooth(logits, targets, smoothing, *, others="V", right="keeps", mean="rows", logs="softmax",
            minus=True, less="nothing"):  # fmt: skip
    rows, size = logits.shape
    share = {"V": smoothing / size, "V - 1": smoothing / (size - 1), "whole": smoothing,
             "N": smoothing / rows}[others]  # fmt: skip
    kept = 1 - smoothing
    top = {"loses": kept, "all": 1.0, "more than all": 1 + share}.get(right, kept + share)
    target = torch.full((rows, size), share)
    target[torch.arange(rows), targets] = top
    if right == "turned":
        target = smoothing * F.one_hot(targets, size) + (1 - smoothing) / size
    if logs == "smoothed":
        log_probs = ((1 - smoothing) * logits.softmax(-1) + smoothing / size).log()
        return F.nll_loss(log_probs, targets)
    log_probs = {
        "softmax": logits.log_softmax(-1),
        "columns": logits.log_softmax(0),
        "none": logits.softmax(-1),
        "twice": logits.softmax(-1).log_softmax(-1),
        "of the softmax": logits.softmax(-1).log(),
    }.get(logs)
    if log_probs is None:  # the small number that is put under the logarithm
        log_probs = (logits.softmax(-1) + logs).log()
    loss = -(target * log_probs).sum()
    if less == "entropy":
        loss = loss + torch.xlogy(target, target).sum()
    loss = loss if minus else -loss
    return loss / {"rows": rows, "entries": rows * size, "none": 1}[mean]


@exercise(
    notebook=NOTEBOOK,
    asks="practice",
    minutes=8,
    difficulty=1,
    trains="label smoothing by hand",
    text="""
    Label smoothing: every token gets `smoothing / V` of the probability, the right one
    `1 - smoothing` on top of that. Give back the mean cross-entropy against these targets, from the
    logits, which may lie hundreds apart, and without torch's `label_smoothing`.
    """,
    reference=_smooth,
    forbids=["cross_entropy(label_smoothing)"],
    probes=[
        (draw(121, (1, 3))[0], torch.tensor([2]), 0.3),
        (draw(122, (3, 5), scale=2.0)[0], torch.tensor([4, 0, 1]), 0.1),
        (draw(123, (2, 6))[0], torch.tensor([5, 5]), 0.2),
        (torch.tensor([[200.0, 0.0, -1.0], [1.0, 2.0, 0.5]]), torch.tensor([0, 1]), 0.3),
    ],
    mistakes=[
        wrong(
            "the logarithm is taken of a softmax that is 0",
            "log probabilities",
            "Far below the largest logit a probability is 0 in float32, and its logarithm "
            "infinite: log_softmax takes the logits themselves.",
            logs="of the softmax",
        ),
        wrong(
            "a small number under the logarithm bounds the loss",
            "log probabilities",
            "A probability can be far smaller than that number, and then so much of its loss is "
            "cut off: log_softmax needs no such number.",
            *({"logs": 10.0**-n} for n in (6, 7, 8, 10, 12)),
            logs=1e-9,
        ),
        wrong(
            "the smoothed share is split among V - 1 tokens, but the right one gets a part too",
            "smoothing",
            "The share is spread over all V tokens, the right one included.",
            others="V - 1",
        ),
        wrong(
            "every token gets the whole share",
            "smoothing",
            "The V tokens share it: smoothing / V for each.",
            others="whole",
        ),
        wrong(
            "the share is split by the number of predictions",
            "smoothing",
            "It is spread over the V tokens of the vocabulary: smoothing / V.",
            others="N",
        ),
        wrong(
            "the right token gets nothing of the smoothed share",
            "smoothing",
            "The right token has 1 - smoothing and, like all the others, smoothing / V.",
            right="loses",
        ),
        wrong(
            "the right token keeps a probability of 1",
            "smoothing",
            "The target sums to 1: what the others get, the right token gives.",
            {"right": "more than all"},
            right="all",
        ),
        wrong(
            "the loss is not averaged",
            "averaging",
            "Divide the sum by the number of tokens to predict.",
            mean="none",
        ),
        wrong(
            "the mean is over the vocabulary, too",
            "averaging",
            "Sum over the vocabulary (it is one expectation), then average over the tokens.",
            mean="entries",
        ),
        wrong(
            "the softmax runs over the tokens",
            "softmax axis",
            "Probabilities sum to 1 over the vocabulary, the last axis.",
            logs="columns",
        ),
        wrong(
            "probabilities stand where their logarithms belong",
            "log probabilities",
            "Cross-entropy is minus the sum of target times log probability.",
            logs="none",
        ),
        wrong(
            "the share is split among the other V - 1 tokens only",
            "smoothing",
            "Some write it so, but here all V tokens get smoothing / V, the right one on top "
            "of its own.",
            others="V - 1",
            right="loses",
            logs="softmax",
        ),
        wrong(
            "smoothing and 1 - smoothing change places",
            "smoothing",
            "The right token keeps 1 - smoothing; smoothing is the small part, which is spread.",
            right="turned",
        ),
        wrong(
            "the prediction is smoothed, not the target",
            "smoothing",
            "The model's probabilities stay as they are; only the target is mixed with 1 / V.",
            logs="smoothed",
            right="keeps",
        ),
        wrong(
            "the KL divergence is given",
            "smoothing",
            "It is smaller by the entropy of the targets; the cross-entropy alone is asked for.",
            less="entropy",
        ),
        wrong(
            "the softmax is taken twice",
            "log probabilities",
            "log_softmax takes logits, not probabilities.",
            logs="twice",
        ),
        wrong(
            "the minus sign is missing",
            "log probabilities",
            "Log probabilities are negative, and a loss is minus their mean.",
            minus=False,
        ),
    ],
    hints=[
        "First make the target distribution, (N, V); each of its rows sums to 1.",
        "F.one_hot(targets, V) is the target without smoothing. How do you mix it with 1 / V?",
        "log_softmax of the logits, times the target, summed over V; the sign; the mean over N.",
    ],
    right_variants=[
        lambda x, y, s: (1 - s) * F.cross_entropy(x, y) - s * x.double().log_softmax(-1).mean(),
        lambda x, y, s: (
            x.logsumexp(-1) - (1 - s) * x.gather(1, y[:, None])[:, 0] - s * x.mean(-1)
        ).mean(),
        lambda x, y, s: (
            sum(
                -log_p * (s / len(row) + (1 - s) * (v == t))
                for row, t in zip(x.double().log_softmax(-1).tolist(), y.tolist(), strict=True)
                for v, log_p in enumerate(row)
            )
            / len(x)
        ),
    ],
)
def label_smoothed_loss(logits, targets, smoothing):
    """Mean cross-entropy against smoothed targets.

    logits: (N, V), targets: (N,) ids, smoothing: a number in 0..1. Returns one number.
    """
    size = logits.shape[-1]
    target = F.one_hot(targets, size) * (1 - smoothing) + smoothing / size  # (N, V)
    return -(target * logits.log_softmax(dim=-1)).sum(dim=-1).mean()


def _stop(losses, patience, *, against="best", extra=0, ties="no", kept="seen", gives="indices",
          order="best first", waits="anew", end="last"):  # fmt: skip
    best, waited, last = 0, 0, 0
    for i, loss in enumerate(losses[1:], start=1):
        last = i
        reached = losses[i - 1] if against == "previous" else losses[best]
        if loss < reached or (ties == "count" and loss == reached):
            best, waited = i, 0 if waits == "anew" else waited
        else:
            waited += 1
        if waited == patience + extra:
            break
    else:
        last = len(losses) if end == "behind" else last
    if kept == "all":
        best = min(range(len(losses)), key=losses.__getitem__)
    if kept == "last":
        best = last
    found = (losses[best], losses[last]) if gives == "losses" else (best, last)
    return found if order == "best first" else found[::-1]


def _stop_by_slices(losses, patience):
    for last in range(len(losses)):
        seen = [float(x) for x in losses[: last + 1]]
        best = seen.index(min(seen))
        if last - best == patience:
            break
    return [best, last]


def _stop_with_tensors(losses, patience):
    lowest = torch.tensor(losses).cummin(0)
    since = torch.tensor([i - losses.index(v) for i, v in enumerate(_running_minima(losses))])
    ends = (since >= patience).nonzero()
    last = int(ends[0]) if len(ends) else len(losses) - 1
    return losses.index(min(losses[: last + 1])), torch.tensor(last) + 0 * len(lowest.values)


def _running_minima(losses):
    return [min(losses[: i + 1]) for i in range(len(losses))]


def _stop_while(losses, patience):
    i = best = 0
    while i + 1 < len(losses) and i - best < patience:
        i += 1
        best = i if losses[i] < losses[best] else best
    return best, i


@exercise(
    notebook=NOTEBOOK,
    asks="transfer",
    minutes=8,
    difficulty=2,
    trains="early stopping with patience",
    text="""
    A training measures its held-out loss from time to time and keeps the weights of the lowest one.
    Nobody wants to wait for the end: it stops as soon as `patience` measurements in a row were not
    lower than the lowest so far. Give back two positions in `losses`, counted from 0: whose weights
    are kept, and which measurement is the last that is made.
    """,
    reference=_stop,
    probes=[
        ([3.0, 2.0, 2.5, 2.2, 1.0], 2),
        ([4.0, 3.0, 3.2, 2.9, 3.1, 3.05, 3.0, 2.0], 3),
        ([3.0, 2.0, 2.0, 2.5, 1.0], 2),
        ([5.0, 4.0, 3.0], 2),
        ([3.0, 2.0, 2.0, 1.5, 1.6, 1.55, 1.7, 1.2, 1.1], 2),
        ([2.0, 2.5, 2.4, 2.3, 2.2, 2.1, 1.0], 4),
        ([3.0, 2.0, 2.5, 2.2], 3),
    ],
    edges=[
        ("where 60 losses fall", ([3.0 - k / 32 for k in range(60)], 4)),
        ("where one loss is all there is", ([3.0], 2)),
    ],
    mistakes=[
        wrong("a loss is compared with the one before", "stopping",
              "Lower than the last one is not enough: it has to beat the lowest so far.",
              against="previous"),
        wrong("it stops one measurement late", "off by one",
              "With patience 2 the second measurement without progress is the last.", extra=1),
        wrong("it stops one measurement early", "off by one",
              "With patience 2 one measurement without progress is borne.", extra=-1),
        wrong("an equal loss counts as progress", "stopping",
              "It has to be lower.", ties="count"),
        wrong("the lowest of all is kept", "stopping",
              "Measurements after the stop are never made, so they cannot be kept.", kept="all"),
        wrong("the weights at the stop are kept", "stopping",
              "The lowest loss so far came earlier; its weights were stored.", kept="last"),
        wrong("the waiting goes on when a lower loss comes", "stopping",
              "`patience` measurements in a row: progress starts the count anew.", waits="on"),
        wrong("where it never stops the position is one too large", "off by one",
              "Positions are counted from 0: the last is len(losses) - 1.", end="behind",
              gives="indices"),
        wrong("losses are given back", "stopping",
              "Two positions are asked for, not what stands there.", gives="losses"),
        wrong("the two positions change places", "stopping",
              "First whose weights are kept, then the last measurement.", order="last first"),
    ],
    hints=[
        "Go along the losses and remember two things: where the lowest is, and how long ago.",
        "What happens to the waiting when a lower loss comes?",
        "Stop when the distance from the lowest is the patience; else at the end of the list.",
    ],
    right_variants=[_stop_by_slices, _stop_with_tensors, _stop_while],
)  # fmt: skip
def when_to_stop(losses, patience):
    """Whose weights are kept, and the last measurement that is made.

    losses: a list of held-out losses, patience: at least 1. Returns two positions, from 0.
    """
    best = 0
    for last, loss in enumerate(losses):
        if loss < losses[best]:
            best = last
        if last - best == patience:
            break
    return best, last


class _Tied(nn.Module):
    """Something with all kinds of parameters: a table used twice, a block, a frozen matrix."""

    def __init__(self, bias):
        super().__init__()
        self.table = nn.Embedding(5, 4)
        self.inner = nn.Sequential(nn.Linear(4, 8, bias=bias), nn.ReLU(), nn.LayerNorm(8))
        self.scores = nn.Parameter(torch.ones(2, 4, 4))
        self.temperature = nn.Parameter(torch.tensor(1.0))
        self.norm = nn.LayerNorm(4)
        self.frozen = nn.Linear(8, 8)
        self.frozen.requires_grad_(False)
        self.narrow = nn.Linear(4, 1)
        self.output = nn.Linear(4, 5, bias=False)
        self.output.weight = self.table.weight


def _groups(
    model, *, by="axes", frozen="neither", twice="no", order="decayed first", lost="nothing"
):
    named = list(model.named_parameters(remove_duplicate=twice == "no"))
    if frozen == "neither":
        named = [(name, p) for name, p in named if p.requires_grad]
    linear, table = (
        {id(m.weight) for m in model.modules() if isinstance(m, kind)}
        for kind in (nn.Linear, nn.Embedding)
    )
    is_decayed = {
        "axes": lambda name, p: p.dim() >= 2,
        "exactly two axes": lambda name, p: p.dim() == 2,
        "no bias": lambda name, p: not name.endswith("bias"),
        "names": lambda name, p: "bias" not in name and "norm" not in name,
        "weight": lambda name, p: name.endswith("weight"),
        "linear": lambda name, p: id(p) in linear and id(p) not in table,
        "no scalar": lambda name, p: p.dim() >= 1,
        "numbers": lambda name, p: p.numel() > max(p.shape, default=1),
    }[by]
    if lost == "numbers":
        named = [(name, p) for name, p in named if p.dim()]
    groups = (
        [n for n, p in named if is_decayed(n, p)],
        [n for n, p in named if not is_decayed(n, p)],
    )
    return groups if order == "decayed first" else groups[::-1]


def play_groups(answer, kind):
    """The two lists of names, each sorted, for one of some models."""
    model = {
        "linear": lambda: nn.Linear(3, 2),
        "norm": lambda: nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2)),
        "tied": lambda: _Tied(bias=True),
        "tied, no bias": lambda: _Tied(bias=False),
    }[kind]()
    decayed, spared = answer(model)
    return {"decayed": sorted(decayed), "spared": sorted(spared)}


def _groups_in_a_loop(model):
    groups = {True: [], False: []}
    for name, p in model.named_parameters():
        if p.requires_grad:
            groups[len(p.shape) > 1].append(name)
    return groups[True], groups[False]


def _groups_by_sets(model):
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    spared = {name for name, p in trained.items() if p.ndim in (0, 1)}
    return set(trained) - spared, spared


@exercise(
    notebook=NOTEBOOK,
    asks="transfer",
    minutes=8,
    difficulty=2,
    trains="choosing which parameters decay",
    text="""
    Many trainings let only matrices decay: weights of linear layers, embedding tables, whatever has
    two axes or more. Biases, the gains and shifts of norms, and single numbers are spared. Sort a
    model's parameters by name into those that decay and those that are spared. What is frozen
    (needs no gradient) belongs to neither, and a parameter that is used twice stands once.
    """,
    reference=_groups,
    play=play_groups,
    probes=[("linear",), ("norm",), ("tied",), ("tied, no bias",)],
    mistakes=[
        wrong("only biases are spared", "scale and shift",
              "The gain of a norm is a vector called weight, too: go by the number of axes.",
              by="no bias"),
        wrong("it goes by names", "scale and shift",
              "A norm need not have norm in its name: go by the number of axes.", by="names"),
        wrong("whatever is called weight decays", "scale and shift",
              "The gain of a norm is called weight, too, and has one axis.", by="weight"),
        wrong("only tensors with exactly two axes decay", "scale and shift",
              "A parameter may stack several matrices: two axes or more.", by="exactly two axes"),
        wrong("only linear layers decay", "scale and shift",
              "Embedding tables have two axes and decay as well.", by="linear"),
        wrong("vectors decay", "scale and shift",
              "Biases, gains and shifts have one axis, and are spared.", by="no scalar"),
        wrong("a matrix of one row or column is taken for a vector", "scale and shift",
              "It has two axes, of which one has size 1: go by the number of axes.", by="numbers"),
        wrong("single numbers are left out", "scale and shift",
              "A parameter without axes is spared, and is to be named there.", lost="numbers"),
        wrong("frozen parameters are sorted in", "frozen base",
              "What needs no gradient is not trained, and would shrink under decay.",
              frozen="sorted"),
        wrong("a parameter that is used twice stands twice", "sharing",
              "An optimiser refuses the same tensor in two places; named_parameters() gives it "
              "once.", twice="yes"),
        wrong("the two lists change places", "scale and shift",
              "First those that decay, then those that are spared.", order="spared first"),
    ],
    hints=[
        "model.named_parameters() gives names and tensors, each tensor once.",
        "What tells a matrix from a bias, whatever its name is?",
        "Leave out what has requires_grad False; then sort by the number of axes.",
    ],
    right_variants=[
        _groups_in_a_loop,
        _groups_by_sets,
        lambda model: tuple(
            [n for n, p in model.named_parameters() if p.requires_grad and (p.dim() < 2) == spared]
            for spared in (False, True)
        ),
    ],
)  # fmt: skip
def decay_groups(model):
    """The names of the parameters that decay, and of those that are spared.

    model: an nn.Module. Returns two lists of names, as in model.named_parameters().
    """
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    decayed = [name for name, p in named if p.dim() >= 2]
    return decayed, [name for name, p in named if p.dim() < 2]


class _Training:
    """train(lr) of a probe: lowest at 10 ** best, a loss of NaN well above; it counts its calls."""

    def __init__(self, best, edge):
        self.best, self.edge, self.calls = best, edge, 0

    def __call__(self, lr):
        self.calls += 1
        if not lr > 0:
            return math.nan
        away = math.log10(lr) - self.best
        return math.nan if away > self.edge else min(5.7, 2.0 + 3.0 * away**2)


def _search(train, *, form="right"):
    decades = [10.0**e for e in range(-5, 1)]
    if form == "fixed":
        return 1e-3
    grid = {
        "line": [1e-5 + i * (1 - 1e-5) / 11 for i in range(12)],
        "many": [10 ** (-5 + i / 8) for i in range(41)],
        "few": [1e-4, 1e-3, 1e-2],
    }.get(form, decades)
    if isinstance(form, int):
        grid = [10 ** (-5 + 5 * i / (form - 1)) for i in range(form)]
    found = {}
    for lr in grid:
        loss = train(lr)
        if loss == loss or form == "NaN":
            found[lr] = loss
    if form == "NaN":  # min keeps a NaN that it meets first
        return min(sorted(found, reverse=True), key=found.get)
    if form == "largest":
        return max(found)
    if form == "right":
        for factor in (10**0.5, 10**0.25):
            centre = min(found, key=found.get)
            for lr in (centre / factor, centre * factor):
                loss = train(lr)
                found |= {lr: loss} if loss == loss else {}
    best = min(found, key=found.get, default=1e-3)
    return {"exponent": math.log10(best), "loss": found.get(best)}.get(form, best)


def play_search(answer, best, edge):
    """What holds of the rate that was found, and of the way to it."""
    train = _Training(best, edge)
    rate = float(answer(train))
    calls, loss = train.calls, train(rate)
    return {
        "train was called": calls > 0,
        "at most 12 times": calls <= 12,
        "the rate is above 0": rate > 0,
        "training with it ends in a number": loss == loss,
        "its loss is within 0.1 of the lowest": loss <= 2.1,
    }


def _search_by_tens(train):
    tried = []

    def at(lr):
        loss = train(lr)
        tried.append((math.inf if math.isnan(loss) else loss, lr))
        return min(tried)[1]

    best = [at(lr) for lr in (1.0, 0.1, 0.01, 0.001, 0.0001, 0.00001)][-1]
    best = [at(lr) for lr in (best / 3, best * 3)][-1]
    return [at(lr) for lr in (best / 1.6, best * 1.6)][-1]


def _search_by_thirds(train):
    low, high = -5.0, 0.0
    tried = {}

    def at(exponent):
        loss = float(train(10**exponent))
        tried[exponent] = math.inf if math.isnan(loss) else loss
        return tried[exponent]

    for exponent in (-4.5, -3.5, -2.5, -1.5, -0.5):
        at(exponent)
    centre = min(tried, key=tried.get)
    for exponent in (centre - 0.33, centre + 0.33):
        at(min(high, max(low, exponent)))
    centre = min(tried, key=tried.get)
    for exponent in (centre - 0.16, centre + 0.16):
        at(exponent)
    return 10 ** min(tried, key=tried.get)


@exercise(
    notebook=NOTEBOOK,
    asks="transfer",
    minutes=15,
    difficulty=3,
    trains="searching for a learning rate",
    text="""
    An open task: **your own search for a learning rate**. `train(lr)` trains a new model and gives
    its held-out loss. It is dear, so you may call it 12 times at most. The best rate lies
    somewhere between 0.00001 and 1; at rates well above it the loss is NaN. Any way is right that
    gives back a rate whose loss is within 0.1 of the lowest possible. In every training that is
    tried here, a rate that is off by a factor of 1.5 is still near enough, and one that is off by
    a factor of 2 is not.
    """,
    reference=_search,
    play=play_search,
    probes=[(-2.0, 0.6), (-1.0, 5.0), (-3.0, 1.2), (-3.5, 0.4), (-4.9, 0.3), (-1.4, 0.3),
            (-2.05, 0.5), (-2.25, 0.6)],
    mistakes=[
        wrong("rates are tried along a line", "search",
              "Between 0.00001 and 1 nearly all of a line lies above 0.1: go by factors.",
              form="line"),
        wrong("train is called too often", "search",
              "Twelve trainings are allowed: first coarsely, then finely near the best.",
              form="many"),
        wrong("the whole powers of ten are all that is tried", "search",
              "The best may lie between two of them: try some more near the best one.",
              form="coarse"),
        wrong("one grid of rates is all that is tried", "search",
              "Twelve rates over five powers of ten lie too far apart: keep some of the trainings "
              "for a second search, near the best of the first.",
              {"form": 11}, {"form": 10}, {"form": 9}, {"form": 8}, {"form": 7},
              form=12),
        wrong("the middle of the range is all that is tried", "search",
              "The best may be as small as 0.00001 or as large as 1.", form="few"),
        wrong("nothing is tried", "search",
              "No rate is right for every training: call train.", form="fixed"),
        wrong("NaN passes for the lowest", "search",
              "Every comparison with NaN is False, so min() may keep it: leave NaN out.",
              form="NaN"),
        wrong("the largest rate that still trains is taken", "search",
              "It is near the edge, where the loss is higher again: take the lowest loss.",
              form="largest"),
        wrong("the exponent is given back", "search",
              "The rate itself is asked for, 10 to that power.", form="exponent"),
        wrong("the loss is given back", "search",
              "The rate is asked for that led to it.", form="loss"),
    ],
    hints=[
        "How many powers of ten lie in the range? That is a first, coarse search.",
        "Around the best of them go on with smaller factors, such as the root of ten.",
        "A loss of NaN is worse than any number; math.isnan tells.",
    ],
    right_variants=[
        _search_by_thirds,
        _search_by_tens,
        lambda train: torch.tensor(_search(train)),
    ],
)  # fmt: skip
def find_rate(train):
    """A learning rate that trains well, found in at most 12 trainings.

    train(lr) -> the held-out loss, which may be NaN. Returns the learning rate.
    """
    losses = {}
    for step in (1.0, 0.5, 0.25):  # of the exponent: powers of ten, their roots, the roots of these
        best = min(losses, key=losses.get, default=None)
        exponents = range(-5, 1) if best is None else (best - step, best + step)
        for exponent in exponents:
            loss = float(train(10.0**exponent))
            losses[exponent] = math.inf if math.isnan(loss) else loss
    return 10.0 ** min(losses, key=losses.get)
