"""Exercises of notebook 23: clipping, a loop to mend, accumulation, memory, bubble, diagnosis."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from course_utils.checker.common import mixed_up, worked_out
from course_utils.checker.exercise import exercise, wrong
from course_utils.checker.probes import draw

NOTEBOOK = "23_when_training_fails"


def _clip(gradients, limit, *, norm="joint", when="too large", how="scale", power=2):
    def size(tensors):
        if power == 1:
            return sum(g.abs().sum() for g in tensors)
        if power == "max":
            return torch.stack([g.abs().max() for g in tensors]).max()
        if power == "mean square":
            return torch.cat([g.flatten() for g in tensors]).square().mean().sqrt()
        if power == "squared":
            return sum(g.square().sum() for g in tensors)
        return torch.sqrt(sum(g.square().sum() for g in tensors))

    if how == "clamp":
        return [g.clamp(-limit, limit) for g in gradients]
    if how == "handed back" and size(gradients) <= limit:
        return gradients
    if how == "drop" and size(gradients) > limit:
        return [torch.zeros_like(g) for g in gradients]
    if norm == "rows":
        rows = [g.norm(dim=-1, keepdim=True) for g in gradients]
        return [g * (limit / n).clamp(max=1.0) for g, n in zip(gradients, rows, strict=True)]
    if how == "one after another":
        result = list(gradients)
        for i, g in enumerate(gradients):
            result[i] = g * min(1.0, limit / size(result))
        return result
    sizes = {
        "mean": [sum(size([g]) for g in gradients) / len(gradients)] * len(gradients),
        "joint": [size(gradients)] * len(gradients),
        "each": [size([g]) for g in gradients],
        "largest": [max(size([g]) for g in gradients)] * len(gradients),
        "sum": [sum(size([g]) for g in gradients)] * len(gradients),
    }[norm]
    factors = [limit / n for n in sizes]
    if when == "too large":
        factors = [min(1.0, f) for f in factors]
    if how == "divide":
        factors = [f / limit for f in factors] if factors[0] < 1 else factors
    if how == "turned":
        factors = [1 / f for f in factors]
    if how == "turned, at most 1":
        factors = [min(1.0, n / limit) for n in sizes]
    return [g * f for g, f in zip(gradients, factors, strict=True)]


def play_clip(answer, gradients, limit):
    """The result, and whether its tensors are new ones or those that were given."""
    output = answer(gradients, limit)
    given = {g.data_ptr() for g in gradients}
    tensors = [x for x in output if torch.is_tensor(x)] if isinstance(output, (list, tuple)) else []
    return {"output": output, "new tensors": not any(x.data_ptr() in given for x in tensors)}


def _clip_by_torch(gradients, limit):
    parameters = [nn.Parameter(torch.zeros_like(g)) for g in gradients]
    for p, g in zip(parameters, gradients, strict=True):
        p.grad = g.clone()
    nn.utils.clip_grad_norm_(parameters, limit)
    return [p.grad for p in parameters]


@exercise(
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="gradient clipping by norm",
    text="""
    Clip gradients by their **joint** norm: all tensors together are one long vector. When that
    vector is longer than `limit`, shorten it to `limit`, in the same direction; else leave it.
    """,
    reference=_clip,
    play=play_clip,
    probes=[
        ([torch.tensor([3.0, 0.5]), torch.tensor([[-4.0]])], 1.0),
        ([torch.tensor([0.3, -0.2]), torch.tensor([[0.1, 0.05]])], 2.0),
        (list(draw(124, (2, 3), (4,), (1, 2), scale=3.0)), 2.5),
    ],
    mistakes=[
        wrong(
            "every tensor is clipped by its own norm",
            "gradient norm",
            "One factor for all, or the direction of the step changes.",
            norm="each",
        ),
        wrong(
            "the norms of the tensors are added",
            "gradient norm",
            "Squares add: the root of the sum of all squares.",
            norm="sum",
        ),
        wrong(
            "the norm of the largest tensor is taken for all",
            "gradient norm",
            "All tensors count: the root of the sum of all squares.",
            norm="largest",
        ),
        wrong(
            "short gradients are made longer",
            "gradient norm",
            "A gradient below the limit stays as it is.",
            when="always",
        ),
        wrong(
            "entries are clamped one by one",
            "gradient norm",
            "That is clipping by value; it changes the direction.",
            how="clamp",
        ),
        wrong(
            "a long gradient is thrown away",
            "gradient norm",
            "It is shortened to the limit, not to zero.",
            how="drop",
        ),
        wrong(
            "short gradients are handed back themselves, not copies",
            "gradient norm",
            "New tensors are promised: whoever changes the result would change what was given.",
            how="handed back",
        ),
        wrong(
            "a long gradient is shortened to 1, whatever the limit",
            "gradient norm",
            "The new length is the limit: the factor is limit / norm.",
            how="divide",
        ),
        wrong(
            "the root of the sum of squares is missing",
            "gradient norm",
            "The norm is the square root of the sum of all squares.",
            power="squared",
        ),
        wrong(
            "the norm is the sum of absolute values",
            "gradient norm",
            "The length of a vector is the root of the sum of its squares.",
            power=1,
        ),
        wrong(
            "the norm is the largest entry",
            "gradient norm",
            "The length of a vector is the root of the sum of its squares.",
            power="max",
        ),
        wrong(
            "every row is clipped by its own norm",
            "gradient norm",
            "All entries of all tensors are one vector with one norm.",
            norm="rows",
            how="scale",
        ),
        wrong(
            "the norms of the tensors are averaged",
            "gradient norm",
            "All tensors count in full: the root of the sum of all squares.",
            norm="mean",
        ),
        wrong(
            "the norm is the root of the mean square",
            "gradient norm",
            "The length is the root of the sum of squares; no count divides it.",
            power="mean square",
        ),
        wrong(
            "the factor is turned over",
            "gradient norm",
            "limit / norm is below 1 and shortens; norm / limit lengthens.",
            {"how": "turned, at most 1"},
            how="turned",
        ),
        wrong(
            "the norm is taken anew after each tensor",
            "gradient norm",
            "Take the joint norm once, before anything is shortened.",
            how="one after another",
        ),
    ],
    hints=[
        "First one number: the length of the vector of all entries of all tensors.",
        "Which factor brings that length to the limit? When may it not be used?",
        "min(1, limit / length) covers both cases.",
    ],
    right_variants=[
        _clip_by_torch,
        lambda g, limit: [
            x / max(1.0, torch.cat([y.flatten() for y in g]).norm().item() / limit) for x in g
        ],
        lambda g, limit: (
            lambda n: tuple(x.clone() if n <= limit else x.double() * (limit / n) for x in g)
        )(math.hypot(*(float(y.norm()) for y in g))),
    ],
)
def clip_by_norm(gradients, limit):
    """Shorten gradients whose joint norm is above the limit.

    gradients: a list of tensors of any shapes, limit: a positive number.
    Returns new tensors of the same shapes; the given ones stay as they are.
    """
    length = torch.sqrt(sum(g.square().sum() for g in gradients))
    factor = min(1.0, limit / length)
    return [g * factor for g in gradients]


def _mend(weight, batches, lr, limit, *, logits="plain", left="nothing", clip="before",
          sign=-1.0, given="kept", reduce="mean", updates="each"):  # fmt: skip
    w = weight if given == "changed" else weight.detach().clone()
    before = torch.zeros_like(w)  # what stands in .grad when the next batch comes
    at_once, steps = w.clone(), torch.zeros_like(w)
    for x, targets in batches:
        w = w if updates == "each" else at_once
        scores = (x @ w).softmax(-1) if logits == "softmax" else x @ w
        error = scores.softmax(-1) - F.one_hot(targets, w.shape[1])  # (N, V)
        if logits == "softmax":
            error = scores * (error - (error * scores).sum(-1, keepdim=True))
        gradient = x.T @ error / (len(x) if reduce == "mean" else 1) + before
        if updates == "one":
            steps = steps + gradient
            continue
        short = gradient * (limit / gradient.norm()).clamp(max=1.0)
        if clip == "value":
            short = gradient.clamp(-limit, limit)
        if clip == "always":
            short = gradient * limit / gradient.norm()
        if clip == "to 1":
            short = gradient / gradient.norm().clamp(min=1.0) * limit
        step = gradient if clip == "after" else short
        before = short if left == "gradients" else before
        w.add_(step, alpha=sign * lr)
    if updates == "one":
        long = steps.norm() > limit or clip == "always"
        w = w.add(steps * limit / steps.norm() if long else steps, alpha=sign * lr)
    return w


def play_mended(answer, weight, batches, lr, limit):
    """The trained weight, and whether the one that was given is as before."""
    given = weight.clone()
    output = answer(given, batches, lr, limit)
    return {"output": output, "given weight unchanged": torch.equal(given.detach(), weight)}


def _mend_with_torch(weight, batches, lr, limit):
    w = nn.Parameter(weight.detach().clone())
    for x, targets in batches:
        w.grad = None
        F.cross_entropy(x @ w, targets).backward()
        nn.utils.clip_grad_norm_([w], limit)
        w.data.add_(w.grad, alpha=-lr)
    return w.detach()


def _mend_with_grad(weight, batches, lr, limit):
    for x, targets in batches:
        w = weight.detach().requires_grad_()
        (g,) = torch.autograd.grad(F.cross_entropy(x @ w, targets), w)
        weight = w.detach() - lr * g * min(1.0, limit / float(g.norm()))
    return weight


def _labelled(seed, sizes, d, vocabulary, scale):
    """Batches of x (N, d) and targets (N,)."""
    shapes = [(n, d) for n in sizes]
    return [
        (x * scale, (torch.arange(len(x)) * 2 + i) % vocabulary)
        for i, x in enumerate(draw(seed, *shapes))
    ]


@exercise(
    notebook=NOTEBOOK,
    asks="transfer",
    minutes=10,
    difficulty=2,
    trains="mending a training loop",
    text="""
    A colleague's loop trains one matrix, `logits = x @ weight`, by plain gradient descent with
    clipped gradients. It has **three** faults and also changes what it is given. Write it anew:
    one update a batch, with the gradient of that batch alone.

    ```python
    def mended_training(weight, batches, lr, limit):
        weight.requires_grad_()
        for x, targets in batches:
            loss = F.cross_entropy((x @ weight).softmax(-1), targets)
            loss.backward()
            weight.data -= lr * weight.grad
            nn.utils.clip_grad_norm_([weight], limit)
        return weight.detach()
    ```
    """,
    reference=_mend,
    play=play_mended,
    probes=[
        (draw(141, (2, 3))[0], _labelled(142, (3,), 2, 3, 3.0), 0.5, 0.4),
        (draw(143, (2, 3))[0], _labelled(144, (3, 4), 2, 3, 1.0), 0.5, 9.0),
        (draw(145, (3, 4))[0], _labelled(146, (2, 4, 3), 3, 4, 2.0), 0.8, 0.7),
    ],
    mistakes=[
        wrong("the softmax is taken twice", "log probabilities",
              "cross_entropy takes logits and does the softmax itself.", logits="softmax"),
        wrong("gradients of earlier batches stay", "gradient",
              "backward adds to .grad: reset it before each batch.", left="gradients"),
        wrong("the step is made with a gradient that is not clipped", "gradient norm",
              "What is shortened after the step, or never, has already done its harm.",
              clip="after"),
        wrong("entries are clamped one by one", "gradient norm",
              "clip_grad_norm_ shortens the whole gradient and keeps its direction.",
              clip="value"),
        wrong("short gradients are made longer", "gradient norm",
              "A gradient below the limit stays as it is.", clip="always"),
        wrong("the limit multiplies every gradient", "gradient norm",
              "A gradient is shortened where its norm is above the limit, and to the limit: times "
              "limit / norm; else it stays.", clip="to 1"),
        wrong("the losses of a batch are added", "averaging",
              "cross_entropy takes the mean over the batch; with a sum the step grows with it.",
              reduce="sum"),
        wrong("all batches make one update", "gradient",
              "One update a batch, each from the weight that the last one left.", updates="one"),
        wrong("the step goes up the gradient", "gradient",
              "The loss falls against the gradient.", sign=1.0),
        wrong("the given weight is changed", "state",
              "Work on a copy: whoever gave the weight may need it.", given="changed"),
    ],
    hints=[
        "Go through one update and ask of each line what it reads, and whether that is right then.",
        "What stands in weight.grad when the second batch has been through backward?",
        "The order: reset, backward, clip, step. And cross_entropy wants logits.",
    ],
    right_variants=[
        _mend_with_torch,
        _mend_with_grad,
        lambda weight, batches, lr, limit: _mend(
            weight.double(), [(x.double(), y) for x, y in batches], lr, limit
        ),
    ],
)  # fmt: skip
def mended_training(weight, batches, lr, limit):
    """The weight after one clipped step of gradient descent a batch.

    weight: (d, V), batches: a list of x (N, d) with targets (N,), lr: the learning rate, limit: of
    the gradient's norm. Returns a new tensor (d, V); the given one stays as it is.
    """
    weight = weight.detach().clone().requires_grad_()
    for x, targets in batches:
        weight.grad = None
        F.cross_entropy(x @ weight, targets).backward()
        nn.utils.clip_grad_norm_([weight], limit)
        weight.data -= lr * weight.grad
    return weight.detach()


def _accumulate(weight, micro_batches, pad, *, average="tokens", hide="loss", add="all",
                logits="plain", zero=False):  # fmt: skip
    pad = 0 if zero else pad
    gradients, counts = [], []
    for x, targets in micro_batches:
        w = weight.detach().clone().requires_grad_()
        scores = (x @ w).softmax(-1) if logits == "softmax" else x @ w
        losses = F.cross_entropy(scores.flatten(0, 1), targets.flatten(), reduction="none")
        real = targets != pad
        kept = losses if hide in ("nothing", "below only") else losses * real.flatten()
        if average == "each sentence":
            kept = kept.view_as(targets) / real.sum(1, keepdim=True)
        kept.sum().backward()
        gradients.append(w.grad)
        counts.append(real.numel() if hide in ("nothing", "above only") else int(real.sum()))
    if add == "last gradient":
        gradients = gradients[-1:]
    if add == "last":
        gradients, counts = gradients[-1:], counts[-1:]
    total = sum(gradients)
    if add == "twice":  # the sums so far are added up, as .grad holds them
        total = sum(sum(gradients[: i + 1]) for i in range(len(gradients)))
    means = [g / n for g, n in zip(gradients, counts)]
    sentences = [len(x) for x, _ in micro_batches][-len(means) :]
    positions = [targets.numel() for _, targets in micro_batches][-len(means) :]

    def weighed(sizes):
        return sum(mean * n for mean, n in zip(means, sizes)) / sum(sizes)

    return {
        "tokens": total / sum(counts),
        "means": sum(means) / len(micro_batches),
        "sum of means": sum(means),
        "sum": total,
        "micro-batches": total / len(micro_batches),
        "last count": total / counts[-1],
        "sentences": weighed(sentences),
        "positions": weighed(positions),
        "each sentence": total / sum(sentences),
    }[average]


def _accumulate_at_once(weight, micro_batches, pad):
    w = weight.double().requires_grad_()
    logits = torch.cat([(x.double() @ w).flatten(0, 1) for x, _ in micro_batches])
    targets = torch.cat([y.flatten() for _, y in micro_batches])
    return torch.autograd.grad(F.cross_entropy(logits, targets, ignore_index=pad), w)[0]


def _accumulate_by_formula(weight, micro_batches, pad):
    gradient, tokens = 0, 0
    for x, y in micro_batches:
        real = y != pad  # (B, T)
        error = (x @ weight).softmax(-1) - F.one_hot(y, weight.shape[1])  # (B, T, V)
        gradient = gradient + torch.einsum("btd,btv->dv", x * real[..., None], error)
        tokens = tokens + real.sum()
    return gradient / tokens


def _accumulate_weighted(weight, micro_batches, pad):
    w = nn.Parameter(weight.detach().clone())
    counts = [int((y != pad).sum()) for _, y in micro_batches]
    for (x, y), n in zip(micro_batches, counts, strict=True):
        loss = F.cross_entropy((x @ w).transpose(1, 2), y, ignore_index=pad)
        (loss * n / sum(counts)).backward()
    return w.grad


@exercise(
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=3,
    trains="accumulation with unequal token counts",
    text="""
    Gradient accumulation done right: the gradient of the mean loss **per real token** of the whole
    batch, from micro-batches that come one at a time and hold different numbers of real tokens.
    The model here is one matrix: `logits = x @ weight`.
    """,
    reference=_accumulate,
    probes=[
        (
            draw(125, (2, 3))[0],
            [
                (draw(126, (1, 2, 2))[0], torch.tensor([[1, 2]])),
                (draw(127, (1, 3, 2))[0], torch.tensor([[2, 0, 0]])),
            ],
            0,
        ),
        (
            draw(128, (3, 4))[0],
            [
                (draw(129, (2, 4, 3))[0], torch.tensor([[1, 2, 3, 1], [3, 1, 0, 0]])),
                (draw(130, (1, 2, 3))[0], torch.tensor([[3, 0]])),
                (draw(131, (2, 3, 3))[0], torch.tensor([[2, 2, 0], [1, 0, 0]])),
            ],
            0,
        ),
        (
            draw(132, (2, 3))[0],
            [
                (draw(133, (2, 3, 2))[0], torch.tensor([[0, 1, 2], [1, 2, 2]])),
                (draw(134, (1, 2, 2))[0], torch.tensor([[0, 2]])),
            ],
            2,
        ),
    ],
    mistakes=[
        wrong(
            "the mean of the micro-batches' means is taken",
            "averaging",
            "A token in a short micro-batch then counts more; divide the sum over all real tokens "
            "by their number.",
            average="means",
        ),
        wrong(
            "the means of the micro-batches are added",
            "averaging",
            "The gradient grows with the number of micro-batches.",
            average="sum of means",
        ),
        wrong(
            "the sum is not divided",
            "averaging",
            "Divide by the number of real tokens of the whole batch.",
            average="sum",
        ),
        wrong(
            "the sum is divided by the number of micro-batches",
            "averaging",
            "Divide by the number of real tokens of the whole batch.",
            average="micro-batches",
        ),
        wrong(
            "padding is counted below the line",
            "padding in the loss",
            "It adds no loss, so it may not be counted either.",
            hide="above only",
        ),
        wrong(
            "padding is predicted, too",
            "padding in the loss",
            "Leave positions out whose target is padding.",
            hide="nothing",
        ),
        wrong(
            "only the last micro-batch counts",
            "gradient",
            "Gradients of all micro-batches add up; do not reset between them.",
            {"add": "last gradient"},
            add="last",
        ),
        wrong(
            "the means are weighed by numbers of sentences",
            "averaging",
            "A sentence may be short: weigh each micro-batch by its number of real tokens.",
            average="sentences",
        ),
        wrong(
            "the means are weighed by numbers of positions",
            "padding in the loss",
            "Padding is among the positions: weigh each micro-batch by its number of real tokens.",
            average="positions",
        ),
        wrong(
            "every sentence counts alike",
            "averaging",
            "The mean is per real token: a longer sentence counts more.",
            average="each sentence",
        ),
        wrong(
            "padding is summed above the line",
            "padding in the loss",
            "Only real tokens are counted, so only their losses may be added (ignore_index).",
            hide="below only",
        ),
        wrong(
            "the count is that of the last micro-batch",
            "averaging",
            "The numbers of real tokens add up over the micro-batches, as the gradients do.",
            average="last count",
        ),
        wrong(
            "gradients are added twice",
            "gradient",
            ".grad holds the sum so far already; adding it to a sum of your own counts early "
            "ones again.",
            add="twice",
        ),
        wrong(
            "the softmax is taken twice",
            "log probabilities",
            "cross_entropy takes logits and does the softmax itself.",
            logits="softmax",
        ),
        wrong(
            "the id of padding is taken to be 0",
            "padding in the loss",
            "Which id is padding is said by the argument pad.",
            zero=True,
        ),
    ],
    hints=[
        "What must each micro-batch hand over so that the mean over all tokens can be formed?",
        'Losses with reduction="sum" add; so do numbers of real tokens.',
        "Call backward once a micro-batch; gradients add up in .grad; divide once at the end.",
    ],
    right_variants=[_accumulate_at_once, _accumulate_by_formula, _accumulate_weighted],
)
def accumulated_gradient(weight, micro_batches, pad):
    """The gradient of the mean loss per real token, micro-batch by micro-batch.

    weight: (d, V), micro_batches: a list of x (B, T, d) with targets (B, T), pad: the id of
    padding among the targets. Returns the gradient for weight, (d, V).
    """
    weight, tokens = weight.clone().requires_grad_(), 0
    for x, targets in micro_batches:
        logits = (x @ weight).flatten(0, 1)  # (B * T, V)
        F.cross_entropy(logits, targets.flatten(), ignore_index=pad, reduction="sum").backward()
        tokens += int((targets != pad).sum())
    return weight.grad / tokens


def _map_size(*, sentences=16, heads=8, queries=512, of_number=2, unit=2**20, rounded=False):
    size = sentences * heads * queries * 512 * of_number / unit
    return round(size) if rounded else size


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=3,
    difficulty=1,
    trains="the memory of a half-precision tensor",
    text="""
    The attention weights of one layer, for 16 sentences of 512 tokens and 8 heads, are kept in
    bfloat16. How many MiB (of $2^{20}$ bytes) is that?
    """,
    mistakes=worked_out(
        _map_size,
        wrong(
            "the size in float32 is given",
            "memory",
            "bfloat16 has 16 bits, 2 bytes; float32 has 4.",
            of_number=4,
        ),
        wrong(
            "one byte per number is taken",
            "memory",
            "16 bits are 2 bytes.",
            of_number=1,
        ),
        wrong(
            "the heads are left out",
            "memory",
            "Each head has a map of its own.",
            heads=1,
        ),
        wrong(
            "the sentences are left out",
            "memory",
            "Each sentence has maps of its own.",
            sentences=1,
        ),
        wrong(
            "millions of bytes are given",
            "memory",
            "A MiB has 2^20 = 1,048,576 bytes.",
            {"rounded": True},
            unit=10**6,
        ),
        wrong(
            "another unit is given",
            "memory",
            "Asked for are MiB of 2^20 bytes: not bytes, not KiB or GiB, and not bits.",
            {"unit": 2**10},
            {"unit": 2**30},
            {"unit": 2**17},
            unit=1,
        ),
        wrong(
            "the map is taken to be one row",
            "memory",
            "Each of the 512 queries has a weight for each of the 512 keys: T times T.",
            queries=1,
        ),
    ),
    hints=[
        "The weights have the shape (B, h, T, T).",
        "How many bytes has a number of 16 bits?",
        "All sizes are powers of 2: add the exponents and take 20 away.",
    ],
)
def attention_map_mebibytes():
    """MiB of the weights (16, 8, 512, 512) in bfloat16:"""
    return 64


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=3,
    difficulty=2,
    trains="the bubble of a pipeline",
    text="""
    A pipeline of 4 stages works on 12 micro-batches, all forward passes first and then all backward
    passes; every pass of a stage takes one tick. Which share of the ticks of a stage is idle?
    """,
    mistakes=[
        *worked_out(
            lambda *, idle=3, ticks=15: idle / ticks,
            wrong(
                "the idle share of a single batch is given",
                "pipeline",
                "Without micro-batches 3 of 4 ticks are idle; 12 of them fill the pipeline.",
                idle=3,
                ticks=4,
            ),
            wrong(
                "the idle ticks are compared with the busy ones",
                "pipeline",
                "Each way 3 ticks are idle for 12 busy ones: of all 15 that is another share.",
                ticks=12,
            ),
            wrong(
                "one stage too many is waited for",
                "pipeline",
                "The last stage waits for the 3 stages before it, so 3 ticks and not 4.",
                idle=4,
            ),
            wrong(
                "as many ticks are counted as stages and micro-batches together",
                "pipeline",
                "Each way a stage is busy for 12 ticks and idle for 3: that makes 15, not 16.",
                ticks=16,
            ),
            wrong(
                "the busy share is given",
                "pipeline",
                "Idle are 3 of 15 ticks, not 12 of 15.",
                idle=12,
                ticks=15,
            ),
            wrong(
                "stages and micro-batches change places",
                "pipeline",
                "The last stage waits for the other 3 stages; the 12 micro-batches keep it busy.",
                idle=11,
            ),
            wrong(
                "the idle ticks of one direction are compared with the ticks of both",
                "pipeline",
                "Forward 3 of 15 ticks are idle, and backward 3 of 15 again: 6 of 30.",
                idle=3,
                ticks=30,
            ),
            wrong(
                "the idle ticks of both directions are compared with the ticks of one",
                "pipeline",
                "Forward 3 of 15 ticks are idle, and backward 3 of 15 again: 6 of 30.",
                idle=6,
                ticks=15,
            ),
            wrong(
                "the pipeline is taken to fill once for both directions",
                "pipeline",
                "It empties before the backward passes begin, and fills again: 6 idle ticks for 24 "
                "busy ones.",
                idle=3,
                ticks=27,
            ),
        ),
        wrong(
            "the busy share of 16 ticks is given",
            "pipeline",
            "The last stage waits for 3 stages, so there are 15 ticks; and the idle ones are asked "
            "for.",
            answer=0.75,
        ),
    ],
    hints=[
        "Draw it: one row for each stage, one column for each tick.",
        "When does the last stage start? How many ticks of forward passes does it then have?",
        "Idle ticks over idle and busy ones; the backward half looks the same.",
    ],
)
def pipeline_bubble():
    """The idle share of a pipeline of 4 stages and 12 micro-batches:"""
    return 3 / 15


@exercise(
    kind="value",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=6,
    difficulty=2,
    trains="choosing the cure for a training from what it prints",
    text="""
    Five trainings of a language model with 300 ids (ln 300 is 5.7):

    | | first loss | norms of the first gradients | training loss, end | held out, lowest and end |
    |---|---|---|---|---|
    | **A** | 5.7 | 1.0, 1.0, 1.0 | 5.5 | 5.5, 5.5 |
    | **B** | 5.7 | 1.0, 9.0, 4000 | nan | 5.7, nan |
    | **C** | 41 | 90, 60, 50 | 3.4 | 3.5, 3.5 |
    | **D** | 5.7 | 1.0, 0.9, 0.8 | 0.4 | 3.0, 4.6 |
    | **E** | nan | nan, nan, nan | nan | nan, nan |

    What would you try first in each? **a** dropout, weight decay, or stopping early; **b** look for
    a fully masked row; **c** a larger learning rate; **d** a smaller learning rate, or clipping;
    **e** smaller logits at the start. Every cure serves once. Write five letters, for A to E.
    """,
    mistakes=[
        wrong("the rate that is too low and the one that is too high change places",
              "learning rate",
              "In A nothing happens; in B the norm of the gradient explodes.", answer="dceab"),
        wrong("the NaN before any update is laid to the learning rate", "empty row",
              "In E the very first loss is NaN, when no update had been made.", answer="cbead"),
        wrong("learning by heart and the bad start change places", "teacher forcing",
              "In D the two losses part; in C they stay close, and only the start is bad.",
              answer="cdaeb"),
        wrong("the bad start and the explosion change places", "gradient norm",
              "In C the norms are large and falling from the start; in B they grow.",
              answer="cedab"),
        wrong("learning by heart and learning nothing change places", "learning rate",
              "In A the model does not even learn the training text; in D it learns it too well.",
              answer="adecb"),
        *mixed_up(
            "cdeab",
            {
                "A": "A learns next to nothing, not even its own text.",
                "B": "In B the norms grow until all is NaN.",
                "C": "C starts far above ln 300, with large norms that fall.",
                "D": "In D the held-out loss rises while the training loss falls.",
                "E": "In E the very first loss is NaN, before any update.",
            },
            "gradient norm",
            but=("dceab", "cbead", "cdaeb", "cedab", "adecb"),
        ),
    ],
    hints=[
        "Two runs show NaN. Which of them was ill before the first update?",
        "ln V is the loss of one who knows nothing. Who starts much worse than that?",
        "Compare the training loss with the held-out loss in the other two.",
    ],
)  # fmt: skip
def diagnose_run():
    """Five letters: the cures for A, B, C, D, E, in quotation marks"""
    return "cdeab"
