"""Exercises of notebook 04: teacher forcing, the loss, Bahdanau's decoder, two ways, BLEU."""

import math
from collections import Counter

import torch
import torch.nn.functional as F

from course_utils.checker.common import (
    DIVIDED_AGAIN,
    KEPT,
    NOT_LOW,
    lowered,
    not_low_enough,
    not_shifted,
    softmax_of_hidden,
    unshifted,
    worked_out,
)
from course_utils.checker.exercise import exercise, wrong
from course_utils.checker.probes import draw, far_below

NOTEBOOK = "04_bahdanau_translation"


def _shift(sentence, bos, eos, *, inputs="bos first", targets="eos last", form="two lists"):
    """Both sequences; `form` says in which order, or how they are put together."""
    made = {
        "bos first": [bos, *sentence],
        "eos last": [*sentence, eos],
        "both": [bos, *sentence, eos],
        "plain": list(sentence),
        "without last": [bos, *sentence[:-1]],
        "without first": [bos, *sentence[1:]],
        "reversed": [bos, *sentence[::-1]],
        "from second": [*sentence[1:], eos],
        "eos first": [eos, *sentence],
        "eos first, bos last": [eos, *sentence, bos],
        "bos last": [*sentence, bos],
        "nested after bos": [bos, sentence],
        "nested before eos": [sentence, eos],
    }
    both = made[inputs], made[targets]
    if form == "exchanged":
        return both[::-1]
    return list(zip(*both, strict=False)) if form == "pairs" else both


@exercise(
    notebook=NOTEBOOK,
    minutes=4,
    difficulty=1,
    trains="teacher forcing",
    text="""
    In training the decoder reads the *right* sentence, one token behind what it has to predict.
    Make both sequences from a sentence of token ids.
    """,
    reference=_shift,
    probes=[([7], 1, 2), ([5, 8, 4], 1, 2)],
    edges=[("where `sentence` is empty", ([], 1, 2))],
    mistakes=[
        wrong(
            "the inputs are not shifted",
            "teacher forcing",
            "At each place the decoder would read the very token that it has to predict there.",
            {"inputs": "both", "targets": "both"},
            inputs="eos last",
        ),
        wrong(
            "the shift goes the wrong way",
            "teacher forcing",
            "The inputs start with <bos> and the targets end with <eos>, not the other way round.",
            form="exchanged",
        ),
        wrong(
            "<bos> is missing in the inputs",
            "teacher forcing",
            "The first token is predicted from <bos>.",
            inputs="plain",
        ),
        wrong(
            "the first token is never predicted",
            "teacher forcing",
            "The input starts with <bos>, not with the sentence: from <bos> the first token is "
            "predicted.",
            inputs="plain",
            targets="from second",
        ),
        wrong(
            "the first token is missing in the targets",
            "teacher forcing",
            "From <bos> the first token is predicted: it is the first target.",
            targets="from second",
        ),
        wrong(
            "the last token is missing in the inputs",
            "teacher forcing",
            "It is read as well: from the last token <eos> is predicted.",
            inputs="without last",
        ),
        wrong(
            "the first token is missing in the inputs",
            "teacher forcing",
            "All tokens are read, behind <bos>.",
            inputs="without first",
        ),
        wrong(
            "inputs and targets have one token too few",
            "teacher forcing",
            "Each has one entry more than the sentence: <bos> and all tokens are read, all tokens "
            "and <eos> are predicted.",
            inputs="without last",
            targets="from second",
        ),
        wrong(
            "<eos> is read as an input",
            "teacher forcing",
            "After <eos> nothing is predicted, so it is a target only.",
            inputs="both",
        ),
        wrong(
            "<eos> is missing in the targets",
            "teacher forcing",
            "The decoder must learn to stop: the last target is <eos>.",
            {"inputs": "without last"},
            targets="plain",
        ),
        wrong(
            "<bos> stands in the targets",
            "teacher forcing",
            "<bos> is given, never predicted.",
            {"targets": "bos first"},
            targets="both",
        ),
        wrong(
            "the inputs start with <eos>",
            "teacher forcing",
            "Some libraries start with <eos>; here the decoder's first input is <bos>.",
            inputs="eos first",
        ),
        wrong(
            "<bos> and <eos> are exchanged",
            "teacher forcing",
            "<bos> begins the sentence that is read, <eos> ends the one that is predicted.",
            {"inputs": "eos first, bos last", "targets": "eos last"},
            inputs="eos first",
            targets="bos last",
        ),
        wrong(
            "the sentence stays a list inside the list",
            "teacher forcing",
            "[bos, sentence] has two entries; [bos, *sentence] or [bos] + sentence joins them.",
            inputs="nested after bos",
            targets="nested before eos",
        ),
        wrong(
            "pairs of input and target are given back",
            "teacher forcing",
            "Two lists are wanted: all inputs, then all targets.",
            form="pairs",
        ),
    ],
    hints=[
        "What does the decoder see when it has to say the first token?",
        "And what must it say after the last one?",
        "Both sequences have one entry more than the sentence.",
    ],
    right_variants=[
        lambda s, b, e: ([b] + s, s + [e]),
        lambda s, b, e: ((b, *s), (*s, e)),
        lambda s, b, e: (lambda full: (full[:-1], full[1:]))([b, *s, e]),
    ],
)
def shifted(sentence, bos, eos):
    """What the decoder reads and what it has to predict.

    sentence: a list of token ids, of any length, 0 too; bos, eos: the ids of <bos> and <eos>.
    Returns two lists, inputs and targets.
    """
    return [bos, *sentence], [*sentence, eos]


_BASES = {"e": 1.0, "10": math.log(10), "2": math.log(2)}
_SURE = torch.tensor([[[0.0, 60.0, 1.0], [1.0, 0.5, 0.0], [2.0, 0.0, 1.0]]])  # of the first token
_WORDS = torch.tensor([[1, 3], [2, 0]])


def _loss(
    logits, targets, pad, *,
    padding="left out", reduce="mean", into="log softmax", sign=-1, base="e",
):  # fmt: skip
    if into == "softmax twice":
        logits = torch.softmax(logits, dim=-1)
    if into == "one step late":
        logits, targets = logits[:, :-1], targets[:, 1:]
    if into == "viewed":
        logits = logits.reshape(len(logits), logits.shape[2], -1).mT
    if into == "without pad":
        logits = logits.index_fill(-1, torch.tensor([pad]), -1e9)
    if padding == "zero scores":
        logits = logits * (targets != pad)[..., None]
    predicted = (
        torch.softmax(logits, dim=-1)
        if into == "probabilities"
        else F.log_softmax(logits, dim={"wrong axis": 0, "over time": 1}.get(into, -1))
    )
    asked = predicted.argmax(-1) if into == "own choice" else targets
    loss = sign / _BASES[base] * predicted.gather(-1, asked[..., None]).squeeze(-1)  # (B, T)
    if into == "all scores":
        loss = sign * predicted.mean(-1)
    real = (logits.argmax(-1) if padding == "by prediction" else targets) != pad
    if padding == "id 0":
        real = targets != 0
    if padding == "and what follows":
        real = (targets == pad).cumsum(1) == 0
    if padding in ("in both", "zero scores"):
        real = torch.ones_like(real)
    if padding == "only padding":
        real = ~real
    loss = loss * real
    counts = {"in the count": torch.ones_like(real), "by the loss": loss != 0}
    count = counts.get(padding, real)
    if reduce == "sum":
        return loss.sum()
    if reduce == "per sentence":
        return (loss.sum(1) / count.sum(1)).mean()
    if reduce == "per position":
        return (loss.sum(0) / count.sum(0).clamp(min=1)).mean()
    if reduce == "by sentences":
        return loss.sum() / len(loss)
    if reduce == "by positions":
        return loss.sum() / loss.shape[1]
    if reduce == "none":
        return loss
    mean = loss.sum() / count.sum()
    if reduce == "detached":
        return mean.detach()
    return mean.exp() if reduce == "perplexity" else mean


def play_loss(answer, logits, targets, pad):
    """The loss, and whether it can be trained on."""
    loss = answer(logits, targets, pad)
    again = answer(logits.clone().requires_grad_(), targets, pad)
    return {"loss": loss, "has a gradient": bool(getattr(again, "requires_grad", False))}


@exercise(
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="a loss without padding",
    text="""
    Cross-entropy, averaged over the **real** tokens of a padded batch. Padding must change neither
    the sum nor the count.
    """,
    reference=_loss,
    play=play_loss,
    probes=[
        (torch.tensor([[[2.0, 0.0, 1.0], [0.0, 1.0, 0.0]]]), torch.tensor([[1, 0]]), 0),
        (_SURE, torch.tensor([[1, 2, 0]]), 0),
        (*draw(41, (3, 4, 5)), torch.tensor([[1, 3, 0, 2], [4, 0, 0, 0], [2, 2, 1, 0]]), 0),
        (*draw(42, (2, 3, 5)), torch.tensor([[1, 4, 4], [0, 3, 2]]), 4),
    ],
    edges=[("where every real token is certain", (1000 * F.one_hot(_WORDS, 4).float(), _WORDS, 0))],
    mistakes=[
        wrong(
            "padding counts as a prediction",
            "padding in the loss",
            "The mean runs over all positions; leave those out whose target is padding.",
            padding="in both",
        ),
        wrong(
            "the sum over real tokens is divided by all positions",
            "padding in the loss",
            "Padding is out of the sum, but still in the count.",
            padding="in the count",
        ),
        wrong(
            "only padding is counted",
            "padding in the loss",
            "The mask is inverted: real tokens are those that differ from pad.",
            padding="only padding",
        ),
        wrong(
            "padding is judged by the predictions",
            "padding in the loss",
            "Leave out what is padding in the targets, not where the model says padding.",
            padding="by prediction",
        ),
        wrong(
            "a loss of 0 is taken for padding",
            "padding in the loss",
            "A real token that is certain costs 0 as well, and it counts: count the targets that "
            "are not pad.",
            padding="by the loss",
            reduce="mean",
        ),
        wrong(
            "padding is taken to have the id 0",
            "padding in the loss",
            "Which id is padding is given as an argument; 0 may be a word.",
            padding="id 0",
        ),
        wrong(
            "what stands behind the first padding is left out",
            "padding in the loss",
            "Padding need not stand at the end: ask of each target whether it is pad.",
            padding="and what follows",
            into="log softmax",
            reduce="mean",
        ),
        wrong(
            "the logarithm has another base",
            "log probabilities",
            "Cross-entropy takes the natural logarithm, as log_softmax does.",
            {"base": "2"},
            base="10",
            into="log softmax",
        ),
        wrong(
            "scores at padding are set to 0, but still counted",
            "padding in the loss",
            "Equal scores still cost log V at each padded position: leave the loss out, not "
            "the scores.",
            padding="zero scores",
        ),
        wrong(
            "the losses are added, not averaged",
            "averaging",
            "Divide by the number of real tokens.",
            reduce="sum",
        ),
        wrong(
            "each sentence is averaged on its own first",
            "averaging",
            "Then a token of a short sentence weighs more; all real tokens count alike.",
            reduce="per sentence",
        ),
        wrong(
            "the sum is divided by the number of sentences",
            "averaging",
            "The mean is per token: divide by the number of real tokens.",
            reduce="by sentences",
        ),
        wrong(
            "the sum is divided by the number of positions in a sentence",
            "averaging",
            "The mean is per token: divide by the number of real tokens in the whole batch.",
            reduce="by positions",
        ),
        wrong(
            "each position is averaged over the batch first",
            "averaging",
            "Then a token late in a long sentence weighs more; all real tokens count alike.",
            reduce="per position",
        ),
        wrong(
            "there is no mean, one loss for each position is given back",
            "averaging",
            "One number is wanted: the sum over real tokens, divided by their number.",
            reduce="none",
        ),
        wrong(
            "the loss has lost its gradient",
            "gradient",
            "A number from .item(), .detach() or no_grad cannot be trained on: return the tensor.",
            reduce="detached",
        ),
        wrong(
            "the perplexity is given back",
            "perplexity",
            "That is e to the power of the loss; the mean itself is wanted.",
            reduce="perplexity",
        ),
        wrong(
            "a softmax is applied twice",
            "log probabilities",
            "cross_entropy and log_softmax expect scores, not probabilities.",
            into="softmax twice",
        ),
        wrong(
            "the logarithm is missing",
            "log probabilities",
            "The loss of a token is minus the logarithm of its probability.",
            into="probabilities",
        ),
        wrong(
            "the sign is wrong",
            "log probabilities",
            "Logarithms of probabilities are negative; the loss is their negative.",
            sign=1,
        ),
        wrong(
            "the softmax runs over the batch",
            "softmax axis",
            "The words of the vocabulary share out the probability: the last axis.",
            into="wrong axis",
        ),
        wrong(
            "the words are brought to the front by a reshape",
            "softmax axis",
            "That deals the scores of one position out to others: exchange the axes, with "
            "logits.transpose(1, 2).",
            into="viewed",
        ),
        wrong(
            "the targets are shifted once more",
            "teacher forcing",
            "Libraries that shift inside do that; here targets[:, t] belongs to logits[:, t].",
            into="one step late",
        ),
        wrong(
            "padding is taken out of the vocabulary",
            "padding in the loss",
            "The softmax runs over all V scores; what is left out are positions, not a word.",
            into="without pad",
        ),
        wrong(
            "the loss is that of the model's own choice",
            "log probabilities",
            "What counts is the probability of the target, not the largest one.",
            into="own choice",
        ),
        wrong(
            "the mean runs over the vocabulary too",
            "log probabilities",
            "Of the V log-probabilities at a position only that of the target counts.",
            into="all scores",
            reduce="mean",
        ),
        wrong(
            "the softmax runs over the positions",
            "softmax axis",
            "The words of the vocabulary share out the probability: the last axis, not that of "
            "time.",
            into="over time",
        ),
    ],
    hints=[
        "First the loss of every position, (B, T); no mean yet.",
        "targets != pad says which of them count.",
        "Add up the losses that count and divide by how many there are.",
    ],
    right_variants=[
        lambda x, y, p: F.cross_entropy(x.transpose(1, 2), y, ignore_index=p),
        lambda x, y, p: F.cross_entropy(x[y != p], y[y != p]),
        lambda x, y, p: (
            -torch.stack(
                [
                    x[b, t].double().log_softmax(0)[y[b, t]]
                    for b in range(len(y))
                    for t in range(y.shape[1])
                    if y[b, t] != p
                ]
            ).mean()
        ),
    ],
)
def token_loss(logits, targets, pad):
    """Mean cross-entropy over the targets that are no padding.

    logits: (B, T, V), targets: (B, T) ids, pad: the id of padding. Returns one number, shape ().
    """
    losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")  # (B, T)
    real = targets != pad
    return losses[real].sum() / real.sum()


def fit(queries, keys):
    """The score function that the probes hand over: (B, 1, n), (B, Ts, n) -> (B, 1, Ts)."""
    weight = torch.linspace(-1.0, 1.0, queries.shape[-1])
    return torch.tanh(queries[:, :, None] + 2.0 * keys[:, None]) @ weight


def low_scores(queries, keys):
    """Another score function of the probes, far below 0: (B, 1, n), (B, Ts, n) -> (B, 1, Ts)."""
    return far_below(len(keys), 1, keys.shape[1])


def _context(
    hidden, outputs, lengths, score, *, query="top layer", hide="before", bound="<", shape="flat",
    axis=-1, length="own", values="outputs",
):  # fmt: skip
    asked = hidden[1] if query == "second layer" else {
        "top layer": hidden[-1],
        "bottom layer": hidden[0],
        "mean of layers": hidden.mean(0),
        "last sentence": hidden[:, -1],
        "first sentence": hidden[:, 0],
        "last encoder output": outputs[:, -1],
    }[query]  # fmt: skip
    scores = score(asked[:, None], outputs)[:, 0]  # (B, Ts)
    positions = torch.arange(outputs.shape[1])
    limit = lengths[:, None]
    if length != "own":
        limit = (limit[:1] if length == "first" else limit.amax(0)).expand_as(limit)
    visible = {
        "<": positions < limit, "<=": positions <= limit, "one less": positions + 1 < limit
    }[bound]  # fmt: skip
    if hide == "inverted":
        visible = ~visible
    if hide in ("before", "inverted"):
        scores = scores.masked_fill(~visible, -math.inf)
    if hide == "zero":
        scores = scores * visible
    if hide in NOT_LOW:
        scores = lowered(scores, ~visible, hide)
    if axis == "single query":
        weights = torch.softmax(scores[:, None], dim=1)[:, 0]
    elif axis == "single query, -1e9":
        weights = torch.ones(scores.shape)
    elif hide in ("unshifted", KEPT):
        weights = unshifted(scores, visible, hide)
    else:
        weights = torch.softmax(scores, dim=axis)
    if hide == "after" or hide in DIVIDED_AGAIN:
        weights = weights * visible
    if hide in DIVIDED_AGAIN:
        weights = weights / DIVIDED_AGAIN[hide](weights, visible)
    averaged = outputs if values == "outputs" else asked[:, None]
    parts = weights[..., None] * averaged  # (B, Ts, n)
    context = {"flat": parts.sum(1), "unsummed": parts, "mean": parts.mean(1)}
    return context["flat"][:, None] if shape == "with step" else context[shape]


@exercise(
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=2,
    trains="the context vector of Bahdanau",
    text="""
    The context of one decoder step: the state of the decoder's **top** layer asks, the encoder's
    outputs are keys and values, and padding of the source is hidden, however far apart the scores
    lie.
    """,
    reference=_context,
    probes=[
        (*draw(43, (2, 1, 2), (1, 3, 2)), torch.tensor([2]), fit),
        (*draw(44, (2, 3, 4), (3, 5, 4)), torch.tensor([4, 2, 5]), fit),
        (*draw(45, (3, 2, 4), (2, 6, 4)), torch.tensor([1, 5]), fit),
        (*draw(46, (2, 2, 3), (2, 4, 3)), torch.tensor([1, 4]), low_scores),
    ],
    mistakes=[
        wrong(
            "the bottom layer asks",
            "state",
            "hidden[0] is the first layer; the last one, hidden[-1], asks.",
            query="bottom layer",
        ),
        wrong(
            "the second layer asks",
            "state",
            "hidden[1] is the top layer where there are two; hidden[-1] always is.",
            query="second layer",
        ),
        wrong(
            "the query is averaged, not the outputs",
            "role of q, k, v",
            "The weights belong to the encoder's outputs: what they average is outputs.",
            values="query",
            hide="before",
            bound="<",
            length="own",
            axis=-1,
        ),
        wrong(
            "all layers ask together",
            "state",
            "The layers are averaged; only the top layer, hidden[-1], asks.",
            query="mean of layers",
        ),
        wrong(
            "the encoder asks itself",
            "role of q, k, v",
            "The query is the state of the decoder.",
            query="last encoder output",
        ),
        wrong(
            "the padding is not hidden",
            "mask missing",
            "Positions from lengths[b] on are padding and get no weight.",
            hide="never",
        ),
        wrong(
            "the weights are hidden after the softmax",
            "mask timing",
            "Then they no longer sum to 1; hide the scores.",
            hide="after",
        ),
        wrong(
            "hidden scores are set to 0",
            "mask timing",
            "A score of 0 is an ordinary score; it must be very negative to vanish.",
            hide="zero",
        ),
        not_low_enough("hide"),
        softmax_of_hidden("hide", axis=-1),
        not_shifted({"hide": KEPT}, hide="unshifted", axis=-1),
        wrong(
            "one key too many is visible",
            "off by one",
            "The last real position is length - 1.",
            bound="<=",
        ),
        wrong(
            "one key too few is visible",
            "off by one",
            "Positions count from 0, so those smaller than the length are real.",
            bound="one less",
        ),
        wrong(
            "real tokens are hidden, not the padding",
            "mask meaning",
            "masked_fill fills where its mask is True: give it what is to be hidden.",
            hide="inverted",
        ),
        wrong(
            "every sentence gets one length",
            "mask missing",
            "Each sentence has a length of its own: lengths[b], not the first or the largest.",
            {"length": "longest"},
            length="first",
        ),
        wrong(
            "a sentence of the batch asks, not a layer",
            "state",
            "hidden is (layers, B, n): the top layer is hidden[-1], for all sentences.",
            {"query": "first sentence"},
            query="last sentence",
        ),
        wrong(
            "the softmax runs over the axis of the single query",
            "softmax axis",
            "Along an axis of size 1 every weight is 1; the source positions are the last axis.",
            {"axis": "single query, -1e9"},
            axis="single query",
            hide="before",
            bound="<",
            length="own",
        ),
        wrong(
            "the softmax runs over the batch",
            "softmax axis",
            "Weights are shared out over the positions of one source sentence.",
            axis=0,
        ),
        wrong(
            "the weighted outputs are not added up",
            "averaging",
            "The context is one vector per sentence: the sum over the source.",
            shape="unsummed",
        ),
        wrong(
            "the weighted outputs are averaged once more",
            "averaging",
            "The weights sum to 1 already.",
            shape="mean",
        ),
        wrong(
            "the axis of the single query is kept",
            "averaging",
            "The context is (B, n); take away the axis of size 1.",
            shape="with step",
        ),
    ],
    hints=[
        "The query needs an axis for the single step: (B, 1, n).",
        "score gives (B, 1, Ts). Hide the padding before the softmax.",
        "Weights (B, 1, Ts) @ outputs (B, Ts, n) adds up over the source; one axis is left over.",
    ],
    right_variants=[
        lambda h, e, n, f: torch.einsum(
            "bs,bsd->bd",
            f(h[-1].unsqueeze(1), e)
            .squeeze(1)
            .masked_fill(torch.arange(e.shape[1]) >= n[:, None], -1e9)
            .softmax(1),
            e,
        ),
        lambda h, e, n, f: torch.stack(
            [
                f(h[-1:, b : b + 1].transpose(0, 1), e[b : b + 1, :m]).softmax(-1)[0, 0] @ e[b, :m]
                for b, m in enumerate(n.tolist())
            ]
        ),
        lambda h, e, n, f: _context(h, e, n, f).double(),
    ],
)
def decoder_context(hidden, outputs, lengths, score):
    """The context of one decoder step.

    hidden: (layers, B, n) state of the decoder, outputs: (B, Ts, n) of the encoder,
    lengths: (B,) of the source, each from 1 to Ts,
    score(queries (B, 1, n), keys (B, Ts, n)) -> (B, 1, Ts). Returns (B, n).
    """
    scores = score(hidden[-1][:, None], outputs)  # (B, 1, Ts)
    visible = torch.arange(outputs.shape[1]) < lengths[:, None, None]  # (B, 1, Ts)
    weights = torch.softmax(scores.masked_fill(~visible, -math.inf), dim=-1)
    return (weights @ outputs)[:, 0]


def attend(query, outputs):
    """The attention that the probes hand over: (B, n), (B, Ts, n) -> context (B, n)."""
    weights = torch.softmax((outputs @ query[..., None]).squeeze(-1), dim=-1)
    return (weights[:, None] @ outputs)[:, 0]


def cell(x, state):
    """The recurrent cell that the probes hand over: (B, n + e), (B, n) -> state (B, n)."""
    size = state.shape[-1]
    into = torch.linspace(-1.0, 1.5, x.shape[-1] * size).reshape(-1, size).sin()
    return torch.tanh(x @ into + 0.5 * state.roll(1, dims=-1))


def _run(
    inputs,
    state,
    outputs,
    attend,
    cell,
    *,
    query="state",
    restart="never",
    order="context first",
    context="attention",
    result="states",
    axis=1,
    graph="kept",
):
    initial, old, made = state, state, []
    late = torch.zeros_like(state)  # the context that the step before has left
    for x in inputs.unbind(1):
        if graph == "cut":
            state = state.detach()
        asked = {"initial": initial, "input": x, "one step late": old}.get(query, state)
        old = state
        c = {
            "attention": attend(asked, outputs),
            "last": outputs[:, -1],
            "mean": outputs.mean(1),
            "none yet": late,
        }[context]
        joined = torch.cat([c, x] if order == "context first" else [x, c], dim=-1)
        before = state
        if query == "and cell, exchanged":
            state = cell(torch.cat([state, x], dim=-1), c)
        else:
            state = cell(joined, initial if restart == "cell" else state)
        late = attend(state, outputs)
        made.append({"contexts": c, "before": before}.get(result, state))
        if restart == "all":
            state = initial
        if graph == "cut behind":
            state = state.detach()
    if result.startswith("last"):
        return state[:, None] if result == "last, with an axis" else state
    if result == "with the first":
        made.insert(0, initial)
    return torch.cat(made, dim=axis) if result == "joined" else torch.stack(made, dim=axis)


def play_run(answer, inputs, state, outputs, attend, cell):
    """The states, and how much of each comes back to the first state as a gradient."""
    states = answer(inputs, state, outputs, attend, cell)
    first = state.clone().requires_grad_()
    again = answer(inputs, first, outputs, attend, cell)
    if not getattr(again, "requires_grad", False):
        return {"states": states, "gradient": "none"}
    counts = torch.linspace(0.5, 1.5, again.numel()).view_as(again)
    gradient = torch.autograd.grad((again * counts).sum(), first, allow_unused=True)[0]
    return {"states": states, "gradient": "none" if gradient is None else gradient}


@exercise(
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=2,
    trains="the loop of a recurrent decoder",
    text="""
    Run the decoder over a sentence. At every step the state *before* the step asks for a context;
    context and input go into the cell together, in this order, and give the next state.
    """,
    reference=_run,
    play=play_run,
    probes=[
        (*draw(46, (1, 2, 2), (1, 2), (1, 3, 2)), attend, cell),
        (*draw(47, (2, 4, 3), (2, 3), (2, 5, 3)), attend, cell),
    ],
    mistakes=[
        wrong(
            "the state is not carried on",
            "state",
            "Every step starts from the first state; it must start from the one before it.",
            {"restart": "cell"},
            restart="all",
        ),
        wrong(
            "every step asks with the first state",
            "state",
            "The query must follow the decoder: ask with the state of the step before.",
            query="initial",
        ),
        wrong(
            "the state that asks is one step too old",
            "state",
            "Before step t the state is the one that step t - 1 has left: it asks, and goes into "
            "the cell.",
            query="one step late",
        ),
        wrong(
            "the input asks, not the state",
            "role of q, k, v",
            "In Bahdanau's decoder the recurrent state is the query.",
            query="input",
        ),
        wrong(
            "there is no attention, only the last output of the encoder",
            "state",
            "That is the fixed context of the plain encoder-decoder.",
            context="last",
        ),
        wrong(
            "there is no attention, only the mean of the encoder's outputs",
            "state",
            "Then every step gets the same context, and the state asks for nothing.",
            context="mean",
        ),
        wrong(
            "input and context are joined in the wrong order",
            "state",
            "The cell expects the context first, then the input.",
            order="input first",
        ),
        wrong(
            "the contexts are given back, not the states",
            "state",
            "The states after each step are wanted.",
            result="contexts",
        ),
        wrong(
            "steps and batch are swapped in the result",
            "averaging",
            "Stack along axis 1, so that the result is (B, T, n).",
            axis=0,
        ),
        wrong(
            "the first context is zero",
            "state",
            "The context of a step comes before its cell: already the first state asks for one.",
            context="none yet",
            query="state",
        ),
        wrong(
            "only the last state is given back",
            "state",
            "The states after all steps are wanted, (B, T, n): collect them.",
            {"result": "last, with an axis"},
            result="last",
            axis=1,
        ),
        wrong(
            "the states before each step are given back",
            "off by one",
            "A state is collected after its cell has run: the last one belongs to it, too.",
            result="before",
        ),
        wrong(
            "the first state is part of the result",
            "off by one",
            "T steps make T states; the one handed over comes before the first of them.",
            result="with the first",
        ),
        wrong(
            "the states are joined end to end",
            "averaging",
            "torch.cat makes one long row of them; torch.stack gives the steps an axis.",
            result="joined",
            axis=1,
        ),
        wrong(
            "the state is cut from the graph at every step",
            "state",
            "With detach or no_grad no gradient comes back through time, so nothing is learnt "
            "from later words.",
            {"graph": "cut behind"},
            graph="cut",
        ),
        wrong(
            "context and state are exchanged in the cell",
            "state",
            "cell(x, state): the context goes in beside the input, and the state is what the "
            "cell carries on.",
            query="and cell, exchanged",
            order="context first",
            restart="never",
        ),
    ],
    hints=[
        "inputs[:, t] is the input of step t for the whole batch.",
        "In each step: context, join, cell. Which of the three changes the state?",
        "Collect the states in a list and use torch.stack with the right dim.",
    ],
    right_variants=[
        lambda x, s, e, a, c: torch.stack(
            [s := c(torch.cat((a(s, e), x[:, t]), 1), s) for t in range(x.size(1))], 1
        ),
        lambda x, s, e, a, c: _run_recursively(x, s, e, a, c),
        lambda x, s, e, a, c: _run_into_buffer(x, s, e, a, c),
    ],
)
def run_decoder(inputs, state, outputs, attend, cell):
    """All states of a recurrent decoder with attention.

    inputs: (B, Tt, e), state: (B, n) before the first step, outputs: (B, Ts, n) of the encoder,
    attend(query (B, n), outputs) -> context (B, n), cell(x (B, n + e), state (B, n)) -> new state.
    Returns the states after each step, (B, Tt, n).
    """
    states = []
    for t in range(inputs.shape[1]):
        context = attend(state, outputs)  # (B, n)
        state = cell(torch.cat([context, inputs[:, t]], dim=-1), state)
        states.append(state)
    return torch.stack(states, dim=1)


def _run_recursively(inputs, state, outputs, attend, cell):
    if not inputs.shape[1]:
        return state.new_empty(len(state), 0, state.shape[1])
    state = cell(torch.hstack([attend(state, outputs), inputs[:, 0]]), state)
    rest = _run_recursively(inputs[:, 1:], state, outputs, attend, cell)
    return torch.cat([state[:, None], rest], dim=1)


def _run_into_buffer(inputs, state, outputs, attend, cell):
    states = torch.zeros(*inputs.shape[:2], state.shape[1])
    for t, x in enumerate(inputs.transpose(0, 1)):
        states[:, t] = state = cell(torch.cat([attend(state, outputs), x], -1), state)
    return states


def _precision(
    candidate, reference, n, *,
    clip="reference", over="candidate", size="n", windows="all", gram="tuple",
):  # fmt: skip
    n = 1 if size == "words" else n
    less = {"one less": 1, "to the end": 1 - n}.get(windows, 0)
    step = n if windows == "apart" else 1
    sizes = range(1, n + 1) if size == "up to n" else [n]
    grams, known = (
        [tuple(words[i : i + m]) for m in sizes for i in range(0, len(words) - m + 1 - less, step)]
        for words in (candidate, reference)
    )
    if gram == "sorted":
        grams, known = ([tuple(sorted(words)) for words in some] for some in (grams, known))
    if gram in ("first word", "last word"):
        k = 0 if gram == "first word" else -1
        grams, known = ([words[k] for words in some] for some in (grams, known))
    if gram == "joined":
        grams, known = (["".join(words) for words in some] for some in (grams, known))
    counts, limits = Counter(grams), Counter(known)
    if clip == "reference":
        hits = sum((counts & limits).values())
    elif clip == "once":
        hits = len(counts.keys() & limits.keys())
    elif clip == "the other way":
        hits = sum(gram in counts for gram in known)
    elif clip == "positions":
        hits = sum(a == b for a, b in zip(grams, known, strict=False))
    else:
        hits = sum(count for gram, count in counts.items() if gram in limits)
    total = {
        "reference": len(known), "words of the reference": len(reference),
        "kinds": len(counts), "words": len(candidate),
    }.get(over, len(grams))  # fmt: skip
    return hits / total if total or over == "whatever there is" else 0.0


def _by_crossing_out(candidate, reference, n):
    left = [reference[i : i + n] for i in range(len(reference) - n + 1)]
    grams = [candidate[i : i + n] for i in range(len(candidate) - n + 1)]
    hits = 0
    for gram in grams:
        if gram in left:
            left.remove(gram)
            hits += 1
    return hits / max(len(grams), 1)


def _by_strings(candidate, reference, n):
    made = [" ".join(candidate[i:][:n]) for i in range(len(candidate) - n + 1)]
    known = [" ".join(reference[i:][:n]) for i in range(len(reference) - n + 1)]
    if not made:
        return torch.tensor(0.0)
    return torch.tensor(sum(min(made.count(g), known.count(g)) for g in set(made)) / len(made))


@exercise(
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=2,
    trains="the heart of BLEU",
    text="""
    Which share of the candidate's n-grams stands in the reference? An n-gram counts **at most as
    often as it stands there**: otherwise "the the the" would be perfect.
    """,
    reference=_precision,
    probes=[
        ("the the cat".split(), "the cat sat".split(), 1),
        ("a b a b a b c".split(), "b a b a c d".split(), 2),
        ("x y x y z x y".split(), "x y z z x y w x y".split(), 2),
        ("a a a b c".split(), "a a b c d c".split(), 1),
        ("a b".split(), "a b c".split(), 3),
        ("a b c d b c d".split(), "b c d e b c d b".split(), 3),
        ("x ab c d ab c e".split(), "a bc d x ab c d".split(), 2),
        ("b a c b d a".split(), "a b c d a".split(), 2),
    ],
    mistakes=[
        wrong(
            "the counts are not clipped",
            "clipping",
            "An n-gram that the reference holds once may score once, however often it is repeated.",
            clip="never",
        ),
        wrong(
            "each n-gram scores only once",
            "clipping",
            "It may score as often as it stands in the reference, which can be more than once.",
            clip="once",
        ),
        wrong(
            "n-grams must stand at the same place",
            "clipping",
            "Only how often an n-gram occurs is compared, not where.",
            clip="positions",
        ),
        wrong(
            "the matches are divided by what the reference holds",
            "averaging",
            "That is recall; precision is a share of the candidate.",
            {"over": "words of the reference"},
            over="reference",
        ),
        wrong(
            "repeated n-grams are counted once in the total",
            "averaging",
            "Every n-gram of the candidate counts below the line, repeated ones too.",
            over="kinds",
        ),
        wrong(
            "the last n-gram is left out",
            "off by one",
            "A sentence of m words has m - n + 1 n-grams.",
            windows="one less",
        ),
        wrong(
            "shorter pieces at the end are counted as n-grams",
            "off by one",
            "The last n - 1 words begin no n-gram: a sentence of m words has m - n + 1.",
            windows="to the end",
        ),
        wrong(
            "the reference's n-grams are looked up in the candidate",
            "clipping",
            "Then one of the candidate scores as often as the reference holds it; it scores at "
            "most as often as it stands in both.",
            clip="the other way",
        ),
        wrong(
            "single words are compared for every n",
            "clipping",
            "n words in a row make one n-gram.",
            size="words",
        ),
        wrong(
            "one word of an n-gram is compared, not all of them",
            "clipping",
            "Two n-grams are the same when all their n words are, in their order.",
            {"gram": "last word"},
            gram="first word",
        ),
        wrong(
            "the words of an n-gram are joined without a gap",
            "clipping",
            "Then (ab, c) and (a, bc) are the same; keep tuples, or join with a space.",
            gram="joined",
        ),
        wrong(
            "the order of the words in an n-gram is ignored",
            "clipping",
            "(a, b) and (b, a) are different: an n-gram is n words in their order.",
            gram="sorted",
        ),
        wrong(
            "n-grams do not overlap",
            "clipping",
            "An n-gram starts at every word: m - n + 1 of them, not m / n.",
            windows="apart",
        ),
        wrong(
            "shorter n-grams are counted as well",
            "clipping",
            "The precision of one n: BLEU takes those of all n apart and multiplies them.",
            size="up to n",
        ),
        wrong(
            "the matches are divided by the number of words",
            "averaging",
            "m words have m - n + 1 n-grams, and that is the count below the line.",
            over="words",
        ),
        wrong(
            "a candidate without n-grams is divided by zero",
            "averaging",
            "One that is shorter than n has no n-gram: its precision is 0.",
            over="whatever there is",
        ),
    ],
    hints=[
        "Write down the n-grams of both sentences; how many does a sentence of m words have?",
        "collections.Counter counts them; of two counts of one n-gram the smaller one scores.",
        "What if the candidate is shorter than n?",
    ],
    right_variants=[
        _by_crossing_out,
        _by_strings,
        lambda c, r, n: _precision(tuple(c), tuple(r), n),
    ],
)
def clipped_precision(candidate, reference, n):
    """Clipped n-gram precision of a candidate translation.

    candidate, reference: lists of words, n: at least 1. Returns a number from 0 to 1, and 0 when
    the candidate has no n-gram.
    """
    grams, known = (
        [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
        for words in (candidate, reference)
    )
    matches = sum(min(grams.count(gram), known.count(gram)) for gram in set(grams))
    return matches / len(grams) if grams else 0.0


def _penalty(
    candidate, reference, *, punish="short", ratio="r/c", curve="exp", cap=True, base=math.e
):
    c, r = (candidate, reference) if punish == "short" else (reference, candidate)
    exponent = 1 - (r / c if ratio == "r/c" else c / r)
    exponent = {
        "difference": c - r, "whole": 1 - r // c, "without 1": -r / c, "turned": r / c - 1
    }.get(ratio, exponent)  # fmt: skip
    value = {
        "exp": base**exponent, "ratio": c / r, "plain": exponent, "at least 0": max(0.0, exponent)
    }[curve]  # fmt: skip
    return 1.0 if cap and c >= r else value


@exercise(
    notebook=NOTEBOOK,
    minutes=5,
    difficulty=1,
    trains="the other half of BLEU",
    text="""
    Precision alone loves short translations. The brevity penalty is 1 for a candidate at least as
    long as the reference, and $e^{1 - r/c}$ for a shorter one ($c$, $r$: lengths).
    """,
    reference=_penalty,
    probes=[(4, 6), (6, 4), (5, 5), (2, 9)],
    mistakes=[
        wrong(
            "the two lengths change places",
            "length",
            "The penalty is for a candidate shorter than the reference; longer ones lose precision "
            "already.",
            punish="long",
            cap=True,
        ),
        wrong(
            "the fraction is upside down",
            "length",
            "The exponent 1 - r/c is negative for a short candidate; 1 - c/r would be positive.",
            ratio="c/r",
        ),
        wrong(
            "lengths are subtracted, not divided",
            "length",
            "One word less matters more in a short sentence: 1 - r/c.",
            ratio="difference",
        ),
        wrong(
            "the lengths are divided without remainder",
            "length",
            "// drops the remainder, 6 // 4 is 1: divide with /.",
            ratio="whole",
        ),
        wrong(
            "the 1 of the exponent is forgotten",
            "length",
            "With r = c the exponent 1 - r/c is 0 and the penalty 1.",
            ratio="without 1",
        ),
        wrong(
            "the exponent has the wrong sign",
            "length",
            "For a short candidate r/c is above 1, and 1 - r/c negative, as it must be.",
            ratio="turned",
        ),
        wrong(
            "the exponential is missing",
            "length",
            "The penalty is e to the power 1 - r/c.",
            {"curve": "plain"},
            {"curve": "at least 0"},
            curve="ratio",
        ),
        wrong(
            "another number than e is raised to the power",
            "length",
            "The penalty is e to the power 1 - r/c: math.exp.",
            {"base": 10.0},
            base=2.0,
        ),
        wrong(
            "the limit of 1 is missing",
            "length",
            "A candidate at least as long as the reference has the penalty 1, without the formula.",
            cap=False,
        ),
    ],
    hints=[
        "There are two cases. Which one needs no formula?",
        "For c = 4 and r = 6 the exponent is 1 - 6/4 = -0.5.",
        "math.exp, and never more than 1.",
    ],
    right_variants=[
        lambda c, r: math.exp(min(0, 1 - r / c)),
        lambda c, r: torch.tensor(1 - r / c).clamp(max=0).exp(),
        lambda c, r: 1 if c > r else math.e ** (1 - r / c),
    ],
)
def brevity_penalty(candidate_length, reference_length):
    """The factor by which BLEU punishes short candidates. Returns a number from 0 to 1."""
    if candidate_length >= reference_length:
        return 1.0
    return math.exp(1 - reference_length / candidate_length)


_PENALTY = math.exp(1 - 6 / 5)


def _bleu(*, penalty=_PENALTY, words=4 / 5, pairs=1 / 4, mean="geometric"):
    means = {
        "geometric": (words * pairs) ** 0.5,
        "product": words * pairs,
        "plain": (words + pairs) / 2,
        "d2l": words**0.5 * pairs**0.25,
    }
    return penalty * means[mean]


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=6,
    difficulty=2,
    trains="BLEU by hand",
    text="""
    Candidate `a b b e d`, reference `a b c d e f`. Work out BLEU with n-grams of up to **two**
    words: the brevity penalty times the geometric mean of both clipped precisions. Three digits
    after the point are enough when you type an expression; `math.exp` and `**` are welcome.
    """,
    mistakes=[
        *worked_out(
            _bleu,
            wrong(
                "the brevity penalty is forgotten",
                "length",
                "The candidate has 5 words, the reference 6.",
                penalty=1.0,
            ),
            wrong(
                "the fraction in the penalty is upside down",
                "length",
                "The exponent is 1 - r/c with r = 6 and c = 5.",
                penalty=math.exp(1 - 5 / 6),
            ),
            wrong(
                "the exponent of the penalty has the wrong sign",
                "length",
                "The exponent 1 - r/c is 1 - 6/5, and so the penalty is below 1.",
                penalty=math.exp(6 / 5 - 1),
            ),
            wrong(
                "the missing word is divided by the reference's length",
                "length",
                "The exponent is 1 - 6/5 = -1/5: the divisor is c, the candidate's length.",
                penalty=math.exp(-1 / 6),
            ),
            wrong(
                "the 1 in the exponent of the penalty is forgotten",
                "length",
                "The exponent is 1 - r/c, that is 1 - 6/5, not -6/5.",
                penalty=math.exp(-6 / 5),
            ),
            wrong(
                "the exponential of the penalty is missing",
                "length",
                "The penalty is e to the power 1 - r/c.",
                {"penalty": 1 - 6 / 5},
                penalty=5 / 6,
            ),
            wrong(
                "the counts are not clipped",
                "clipping",
                "b stands twice in the candidate but once in the reference, so 4 of 5 words score.",
                words=5 / 5,
            ),
            wrong(
                "words must stand at the same place",
                "clipping",
                "Only how often a word occurs is compared, not where: d and e score too.",
                words=2 / 5,
            ),
            wrong(
                "a word that stands more than once does not score at all",
                "clipping",
                "b scores as often as it stands in the reference, which is once: 4 of 5 words.",
                words=3 / 5,
            ),
            wrong(
                "the order of the words in a pair is ignored",
                "clipping",
                "The reference holds d e, not e d: one pair of four scores.",
                pairs=2 / 4,
            ),
            wrong(
                "matches are divided by the length of the reference",
                "averaging",
                "Precision is a share of the candidate: it has 5 words and 4 pairs.",
                words=4 / 6,
                pairs=1 / 5,
            ),
            wrong(
                "pairs are divided by the number of words",
                "averaging",
                "5 words have 4 pairs.",
                pairs=1 / 5,
            ),
            wrong(
                "the precisions are multiplied without a root",
                "averaging",
                "The geometric mean of two numbers is the root of their product.",
                mean="product",
            ),
            wrong(
                "the plain mean of the precisions is taken",
                "averaging",
                "BLEU takes the geometric mean.",
                mean="plain",
            ),
            wrong(
                "the weights of d2l's bleu are used",
                "averaging",
                "d2l takes p_1^(1/2) p_2^(1/4); BLEU weighs all n alike, p_1^(1/2) p_2^(1/2).",
                mean="d2l",
            ),
        ),
        wrong(  # the fourth root alone is too near the penalty of the wrong sign
            "the brevity penalty is forgotten, and the fourth root is taken",
            "averaging",
            "The candidate has 5 words, the reference 6. There are two precisions, so it is the "
            "square root of their product.",
            answer=(4 / 5 * 1 / 4) ** 0.25,
        ),
    ],
    hints=[
        "Words: a b b e d. How often may b score?",
        "Pairs: ab, bb, be, ed. Which of them stand in the reference?",
        "The penalty is exp(1 - 6/5); the geometric mean of two numbers is a square root.",
    ],
)
def bleu_of_two():
    """BLEU up to pairs of words for the candidate a b b e d and the reference a b c d e f:"""
    return math.exp(1 - 6 / 5) * (4 / 5 * 1 / 4) ** 0.5


def _leaky(x, sign):
    """A recurrent reader, (B, T, e) -> (B, T, 2): each state is half of the last, and the input."""
    into = torch.linspace(-1.0, 1.5, x.shape[-1] * 2).reshape(-1, 2) * sign
    state, states = torch.zeros(len(x), 2), []
    for now in (x @ into).unbind(1):
        state = 0.5 * state + now.tanh()
        states.append(state)
    return torch.stack(states, dim=1)


def read_one(x):
    """The reader of the way there that the probes hand over."""
    return _leaky(x, 1.0)


def read_two(x):
    """The reader of the way back that the probes hand over, with weights of its own."""
    return _leaky(x.square(), -0.7)


def _both(
    x, there, back, *,
    turned="time", restored="time", reader="own", join="features", order="there first",
):  # fmt: skip
    axis = {"time": 1, "batch": 0, "features": 2}
    if reader == "exchanged":
        there, back = back, there
    first, backwards = there(x), x.flip(axis[turned]) if turned != "never" else x
    second = (there if reader == "same" else back)(backwards)
    second = second.flip(axis[restored]) if restored != "never" else second
    both = [first, second] if order == "there first" else [second, first]
    if join == "sum":
        return first + second
    if join == "mean":
        return (first + second) / 2
    if join == "in turn":
        return torch.stack(both, dim=-1).flatten(2)
    if join == "the last of the way back":
        both = [first, second[:, -1:].expand_as(first)]
    if join in ("the last", "the last, everywhere"):
        last = torch.cat([part[:, -1] for part in both], dim=-1)  # (B, 2n)
        return last if join == "the last" else last[:, None].expand(-1, x.shape[1], -1)
    return torch.cat(both, dim=1 if join == "time" else -1)


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="reading a sentence from both ends",
    text="""
    Two readers, `there` and `back`, both run from the first position of what they are given to the
    last. Let `there` read the sentence as it is and `back` read it from its end, and put side by
    side what the two know at each token, that of `there` first. All sentences are equally long.
    """,
    reference=_both,
    probes=[
        (*draw(51, (1, 3, 2)), read_one, read_two),
        (*draw(52, (2, 4, 3)), read_one, read_two),
        (*draw(53, (3, 5, 2)), read_one, read_two),
    ],
    mistakes=[
        wrong(
            "what the way back says is not turned round again",
            "position",
            "Its first output belongs to the last token: turn the outputs, too.",
            restored="never",
        ),
        wrong(
            "both readers read from the left",
            "position",
            "Turn the sentence round along the axis of the tokens before back reads it.",
            {"turned": "batch", "restored": "batch"},
            turned="never",
            restored="never",
        ),
        wrong(
            "only the outputs are turned round",
            "position",
            "Then back has read from the left; turn the sentence before it reads, too.",
            turned="never",
        ),
        wrong(
            "the sentences of the batch are turned round",
            "position",
            "Axis 0 holds the sentences; the tokens stand along axis 1.",
            turned="batch",
            restored="never",
        ),
        wrong(
            "the numbers of each token are turned round",
            "position",
            "The last axis holds the numbers of one token; the tokens stand along axis 1.",
            {"turned": "features", "restored": "never"},
            turned="features",
            restored="features",
        ),
        wrong(
            "one reader reads both ways",
            "sharing",
            "The way back has a reader of its own, with its own weights: back.",
            reader="same",
        ),
        wrong(
            "the two readers are exchanged",
            "sharing",
            "there reads the sentence as it is, and back reads it from its end.",
            reader="exchanged",
        ),
        wrong(
            "the two ways are added or averaged",
            "averaging",
            "Put them side by side with torch.cat: 2n numbers for each token.",
            {"join": "mean"},
            join="sum",
        ),
        wrong(
            "the way back follows the way there",
            "averaging",
            "Joined along axis 1 it makes 2T tokens; join along the last axis.",
            join="time",
        ),
        wrong(
            "the numbers of the two stand in turn",
            "averaging",
            "First all n numbers of there, then all n of back: torch.cat along the last axis.",
            join="in turn",
        ),
        wrong(
            "only what a reader knows at its end is given",
            "state",
            "What both know is due for each of the T tokens, (B, T, 2n): keep all the outputs.",
            {"join": "the last, everywhere"},
            {"restored": "never"},
            {"join": "the last, everywhere", "restored": "never"},
            {"join": "the last of the way back"},
            {"join": "the last of the way back", "restored": "never"},
            join="the last",
        ),
        wrong(
            "the way back stands first",
            "averaging",
            "The numbers of there come first.",
            order="back first",
        ),
    ],
    hints=[
        "x.flip(1) turns the sentences round. What is then the first output of back about?",
        "At position t both halves must be about token t.",
        "So two things are turned round: what back reads, and what it gives.",
    ],
    right_variants=[
        lambda x, a, b: torch.cat((a(x), torch.flip(b(torch.flip(x, [1])), [1])), dim=2),
        lambda x, a, b: torch.cat(
            [a(x), b(x[:, range(x.shape[1])[::-1]])[:, range(x.shape[1])[::-1]]], -1
        ),
        lambda x, a, b: torch.stack(
            [
                torch.cat([a(x[:, : t + 1])[:, -1], b(x[:, t:].flip(1))[:, -1]], dim=-1)
                for t in range(x.shape[1])
            ],
            dim=1,
        ),
    ],
)
def both_ways(x, there, back):
    """What two readers know at each token, one from the left and one from the right.

    x: (B, T, e), there and back: readers (B, T, e) -> (B, T, n). Returns (B, T, 2n).
    """
    return torch.cat([there(x), back(x.flip(1)).flip(1)], dim=-1)  # (B, T, 2n)


@exercise(
    kind="value",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=3,
    difficulty=2,
    trains="what an unshifted target teaches",
    text="""
    Somebody forgets the shift and trains a decoder with `tgt_in` as inputs *and* as targets. The
    loss falls to almost 0. Then it decodes greedily, as in this chapter. Which token does it say
    first? Answer with the token, such as `"je"`.
    """,
    mistakes=[
        wrong(
            "the decoder is taken to translate",
            "teacher forcing",
            "It was never asked for the next token, so it has no reason to know it.",
            {"answer": "suis"},
            answer="je",
        ),
        wrong(
            "the decoder is taken to stop at once",
            "teacher forcing",
            "tgt_in holds no <eos>, so this decoder has never been asked to say it.",
            answer="<eos>",
        ),
        wrong(
            "padding is taken for the answer",
            "teacher forcing",
            "Padding has no part in the loss, so nothing teaches a decoder to say it.",
            answer="<pad>",
        ),
        wrong(
            "the source is taken to be copied",
            "teacher forcing",
            "The decoder has never been asked for a word of the source; its inputs are the "
            "targets.",
            {"answer": "i'm"},
            answer="i",
        ),
        wrong(
            "the unknown word is given",
            "teacher forcing",
            "It stands in the targets only where a word is rare; what is repeated is what was "
            "just read.",
            answer="<unk>",
        ),
    ],
    hints=[
        "Write down inputs and targets of je suis chez moi . below each other.",
        "With which rule, simpler than translating, can such a loss come down to 0?",
        "What is the first thing that a decoder reads?",
    ],
)
def says_first():
    """The first token that the decoder says, in quotes"""
    return "<bos>"


@exercise(
    kind="value",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=3,
    difficulty=2,
    trains="finding a fault by what it depends on",
    text="""
    A trained translator, in evaluation mode, says *j'ai perdu .* for *i lost .* when the sentence
    comes alone, and something else when it stands in a batch beside a longer one. Which fault
    explains that? `"a"`: padding counted in the loss when it was trained. `"b"`: the encoder's last
    state is taken at the last column of the batch. `"c"`: the decoder was trained by teacher
    forcing. `"d"`: too few updates.
    """,
    mistakes=[
        wrong(
            "the loss is blamed",
            "padding in the loss",
            "That changes the weights, but after training they are the same for every batch.",
            answer="a",
        ),
        wrong(
            "teacher forcing is blamed",
            "teacher forcing",
            "It makes a decoder rely on a right beginning, alone and in a batch alike.",
            answer="c",
        ),
        wrong(
            "too short a training is blamed",
            "state",
            "Then the translation may be bad, but the neighbours in the batch would not change it.",
            answer="d",
        ),
    ],
    hints=[
        "What differs between the two runs, although the sentence is the same?",
        "Only one of the four does something when the model is used.",
        "Where does the short sentence end in the longer batch, and what stands behind it?",
    ],
)
def batch_matters():
    """The letter of the fault"""
    return "b"


def _by_hand(places, *, sign=-1.0, meet="places", size=20.0):
    n = len(places)
    one_hot, nothing = torch.eye(n), torch.zeros(n, n)
    queries, keys = {
        "places": (one_hot[places], one_hot),
        "turned round": (one_hot[places].T, one_hot),
        "own place": (one_hot, one_hot),
        "keys only": (nothing, one_hot),
        "queries only": (one_hot, nothing),
    }[meet]
    return 3.0 * queries, 3.0 * keys, sign * size * torch.ones(n)


def play_by_hand(answer, places):
    """Where each query looks with these matrices, and whether it is sure of it."""
    W_q, W_k, w_v = (torch.as_tensor(x).float() for x in answer(places))
    one_hot = torch.eye(len(places))
    scores = torch.tanh((one_hot @ W_q)[:, None] + (one_hot @ W_k)[None]) @ w_v.flatten()
    weights = torch.softmax(scores, dim=-1)  # (Tq, Tk)
    flat = weights.amax(-1) - weights.amin(-1) < 1e-4
    heaviest = [-1 if even else k for k, even in zip(weights.argmax(-1).tolist(), flat)]
    return {"heaviest key": heaviest, "weight of 0.9 or more": (weights.amax(-1) >= 0.9).tolist()}


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=3,
    trains="an additive score by hand",
    text="""
    *a red car* is *une voiture rouge*: query 1 must look at key 2, query 2 at key 1. Set the
    matrices of an additive score by hand so that query t looks at key `places[t]`, with a weight
    of at least 0.9, in sentences of up to 60 words. Queries and keys are one-hot: query t and key t
    are both row t of the identity. The score is $\\tanh(q W_q + k W_k)\\, w_v$. Each place is
    named once. The number of hidden units is yours to choose.
    """,
    reference=_by_hand,
    play=play_by_hand,
    probes=[([1, 2, 0],), ([0, 3, 1, 2],), ([3, 0, 4, 2, 1],), ([*range(5, 20), *range(5)],)],
    mistakes=[
        wrong(
            "the key that matches gets the lowest score",
            "score",
            "Where query and key meet in one unit, tanh is near 1 once; where they do not, "
            "two units are near 1. So a sum prefers those that do not meet.",
            sign=1.0,
            size=20.0,
        ),
        wrong(
            "the order is turned round the wrong way",
            "role of q, k, v",
            "places[t] is the key of query t: row t of W_q has to meet row places[t] of W_k.",
            meet="turned round",
        ),
        wrong(
            "each query looks at its own place",
            "role of q, k, v",
            "That is the order of the source; row t of W_q has to meet row places[t] of W_k.",
            meet="own place",
        ),
        wrong(
            "all keys get the same score",
            "role of q, k, v",
            "A score that leaves out the queries or the keys cannot tell which belong together.",
            {"meet": "keys only"},
            meet="queries only",
            size=20.0,
        ),
        wrong(
            "no weight reaches 0.9",
            "scale",
            "The pair that meets leads by one unit of about 1: times w_v that has to be enough "
            "for 0.9 among up to 60 keys.",
            {"size": 3.1},
            {"size": 3.45},
            {"size": 4.0},
            size=1.0,
        ),
    ],
    hints=[
        "Give each key a hidden unit of its own, and let each query switch on the unit of its key.",
        "How many units are near 1 when query and key meet in one unit, and how many if not?",
        "The pair that meets has the smaller sum of tanh. Which sign of w_v makes it win, and how "
        "large must w_v be for 0.9?",
    ],
    right_variants=[
        lambda p: (
            9.0 * torch.eye(len(p))[p], 9.0 * torch.eye(len(p)), torch.full((len(p),), -30.0)
        ),
        lambda p: (
            -4.0 * torch.eye(len(p))[p], -4.0 * torch.eye(len(p)), torch.full((len(p), 1), 12.0)
        ),
        lambda p: (
            2.0 * torch.eye(len(p)),
            2.0 * torch.eye(len(p))[torch.tensor(p).argsort()],
            -25.0 * torch.ones(len(p)),
        ),
    ],
)  # fmt: skip
def word_order(places):
    """Matrices of an additive score with which query t looks at key places[t].

    places: list of n positions, each named once. Returns W_q (n, h), W_k (n, h) and w_v (h,).
    """
    n = len(places)
    W_q = 3.0 * torch.eye(n)[places]  # row t switches on unit places[t]
    return W_q, 3.0 * torch.eye(n), -20.0 * torch.ones(n)
