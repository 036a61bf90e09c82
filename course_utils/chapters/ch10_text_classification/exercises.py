"""Exercises of notebook 10: positions, pooling, the head, accuracy, importance of words."""

import math

import torch
import torch.nn.functional as F

from course_utils.checker.exercise import exercise, wrong
from course_utils.checker.probes import draw

NOTEBOOK = "10_text_classification"


def _with_positions(
    tokens, word_table, position_table, *, at="place", start=0, join="added", words="kept", rows="T"
):
    steps = tokens.shape[1]
    place = torch.arange(steps).expand_as(tokens)  # (B, T)
    place = {
        "place": place + start,
        "token": tokens,
        "from the end": place.flip(1),
        "review": torch.arange(len(tokens))[:, None].expand_as(tokens),
        "first": torch.zeros_like(tokens),
        "through": torch.arange(tokens.numel()).view_as(tokens),
    }[at]
    word, position = word_table[tokens], position_table[place]
    if rows == "all":  # an error, unless max_len is T
        return word + position_table
    if words == "scaled":
        word = word * math.sqrt(word.shape[-1])
    if words == "padding lost":
        word = word * (tokens != 0)[..., None]
    if words == "lost":
        return position
    if join == "multiplied":
        return word * position
    if join == "averaged":
        return (word + position) / 2
    if join == "concatenated":
        return torch.cat([word, position], dim=-1)
    return word + position


@exercise(
    notebook=NOTEBOOK,
    minutes=5,
    difficulty=1,
    trains="words with positions",
    text="""
    The input of the classifier: the vector of each word plus the vector of its place, counted from
    0. All reviews of the batch share the places.
    """,
    reference=_with_positions,
    probes=[
        (torch.tensor([[3, 1]]), *draw(1001, (4, 2), (5, 2))),
        (torch.tensor([[2, 0, 4], [1, 1, 3]]), *draw(1002, (6, 3), (7, 3))),
    ],
    mistakes=[
        wrong(
            "the position table is read by token id",
            "position",
            "The table of positions is read at 0, 1, 2, ..., whatever the words are.",
            at="token",
        ),
        wrong(
            "positions are counted from 1",
            "off by one",
            "The first token stands at position 0, so row 0 is used, too.",
            start=1,
        ),
        wrong(
            "positions are counted from the end",
            "position",
            "The first token of the review gets row 0.",
            at="from the end",
        ),
        wrong(
            "every token gets the position of its review in the batch",
            "position",
            "Places run along axis 1, the tokens; axis 0 is the reviews.",
            at="review",
        ),
        wrong(
            "every token stands at position 0",
            "position",
            "Each place needs a row of its own, or order is invisible.",
            at="first",
        ),
        wrong(
            "words and positions are multiplied",
            "position",
            "The two vectors are added.",
            join="multiplied",
        ),
        wrong(
            "words and positions are averaged",
            "position",
            "Add the two vectors; nothing is halved.",
            join="averaged",
        ),
        wrong(
            "words and positions are concatenated",
            "position",
            "Added vectors keep the size d; concatenated ones have 2 d.",
            join="concatenated",
        ),
        wrong(
            "the words are missing",
            "position",
            "The position is added to the vector of the word.",
            words="lost",
        ),
        wrong(
            "the words are scaled by the root of d",
            "scale",
            "The paper does so; here the two vectors are added as they are.",
            words="scaled",
        ),
        wrong(
            "id 0 is taken for padding",
            "position",
            "Here every id is a word, so id 0 keeps its vector.",
            words="padding lost",
        ),
        wrong(
            "positions run on from one review to the next",
            "position",
            "Each review starts at position 0 again.",
            at="through",
        ),
        wrong(
            "the whole position table is added",
            "position",
            "It has max_len rows; T of them are needed.",
            rows="all",
        ),
    ],
    hints=[
        "A table indexed by a tensor of ids gives one row for each id: (B, T) -> (B, T, d).",
        "Which rows of the position table do the T places of a review need?",
        "(B, T, d) + (T, d) broadcasts over the batch.",
    ],
    right_variants=[
        lambda t, w, p: F.embedding(t, w) + F.embedding(torch.arange(t.shape[1]), p)[None],
        lambda t, w, p: torch.stack(
            [torch.stack([w[i] + p[n] for n, i in enumerate(row)]) for row in t.tolist()]
        ),
        lambda t, w, p: (
            F.one_hot(t, len(w)).double() @ w.double()
            + p.narrow(0, 0, t.size(1)).expand(len(t), -1, -1)
        ),
    ],
)
def embed_with_positions(tokens, word_table, position_table):
    """Word vectors plus position vectors.

    tokens: (B, T) ids, word_table: (V, d), position_table: (max_len, d) with max_len >= T.
    Returns (B, T, d).
    """
    return word_table[tokens] + position_table[: tokens.shape[1]]  # (B, T, d) + (T, d)


def _mean(x, valid_lens, *, real="tokens", hide="fill", pool="mean", extra=0):
    batch, steps, d = x.shape
    mask = (torch.arange(steps) < (valid_lens + extra)[:, None])[..., None]  # (B, T, 1)
    if real == "padding":
        mask = ~mask
    if real == "longest":
        mask = (torch.arange(steps) < valid_lens.max()).expand(batch, steps)[..., None]
    if real == "all":
        mask, valid_lens = torch.ones_like(mask), torch.full_like(valid_lens, steps)
    kept = x.masked_fill(~mask, 0.0)
    if hide == "multiply":
        kept = x * mask
    if hide == "clamp and multiply":
        kept = x.clamp(-1e9, 1e9) * mask
    if isinstance(hide, float):
        kept = x.masked_fill(~mask, hide)
    if pool == "first":
        return kept[:, 0]
    if pool == "last":
        return kept[torch.arange(batch), (valid_lens + extra - 1).clamp(0, steps - 1)]
    if pool == "max":
        return x.masked_fill(~mask, float("-inf")).amax(1)
    if pool == "features":
        return kept.mean(2)
    if pool == "batch":
        return kept.sum((0, 1)) / valid_lens.sum()
    if pool == "wrong axis":  # an error, unless there are as many reviews as features
        return kept.sum(1) / valid_lens
    counts = {"mean": mask.sum(1), "padded": steps, "sum": 1, "by features": d}
    counts |= {"by reviews": batch, "by the longest": valid_lens.max()}
    return kept.sum(1) / counts[pool]


@exercise(
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="pooling over real tokens only",
    text="""
    Average the outputs of each review over its real tokens. What stands in the padding must not
    count, **whatever it is**: one probe has infinity there.
    """,
    reference=_mean,
    probes=[
        (torch.tensor([[[1.0, 2.0], [3.0, 6.0], [9.0, 7.0]]]), torch.tensor([2])),
        (*draw(1003, (3, 5, 2)), torch.tensor([4, 5, 1])),
        (*draw(1004, (2, 4, 3)), torch.tensor([3, 2])),
        (
            torch.tensor([[[1.0, 2.0], [4.0, 1.0], [torch.inf, 0.0]], [[2.0, 5.0]] * 3]),
            torch.tensor([2, 3]),
        ),
        (
            torch.tensor([[[1.0, 3.0], [0.0, torch.nan], [-torch.inf, 2.0]], [[4.0, 6.0]] * 3]),
            torch.tensor([1, 3]),
        ),
    ],
    mistakes=[
        wrong(
            "padding is averaged, too",
            "mask missing",
            "x.mean(1) lets the number of pads change the answer; use real tokens only.",
            real="all",
        ),
        wrong(
            "the sum is divided by the padded length",
            "averaging",
            "Hidden tokens are not in the sum, so they must not be in the count either.",
            pool="padded",
        ),
        wrong(
            "the sum is not divided",
            "averaging",
            "A sum grows with the length of the review; divide by the number of real tokens.",
            pool="sum",
        ),
        wrong(
            "the sum is divided by the number of features",
            "averaging",
            "The mean is taken over tokens, so count tokens.",
            pool="by features",
        ),
        wrong(
            "padding is multiplied by 0",
            "mask missing",
            "0 times infinity is NaN, and so is 0 times NaN: replace what is hidden (masked_fill, "
            "where).",
            {"hide": "clamp and multiply"},
            hide="multiply",
        ),
        wrong(
            "the padding is averaged and the tokens are hidden",
            "mask meaning",
            "Real tokens are those whose position is below the length.",
            real="padding",
        ),
        wrong(
            "one token too many is counted",
            "off by one",
            "Positions 0 to length - 1 are real.",
            extra=1,
        ),
        wrong(
            "the last real token is left out",
            "off by one",
            "Positions 0 to length - 1 are real, the last one included.",
            extra=-1,
        ),
        wrong(
            "only the first token is used",
            "averaging",
            "That is how BERT pools; here all real tokens are averaged.",
            pool="first",
        ),
        wrong(
            "only the last token is used",
            "averaging",
            "All real tokens are averaged.",
            pool="last",
        ),
        wrong(
            "the largest value is taken",
            "averaging",
            "This is max pooling; the mean is asked for.",
            pool="max",
        ),
        wrong(
            "the features are averaged, not the tokens",
            "averaging",
            "The tokens lie along axis 1; the result is (B, d).",
            pool="features",
        ),
        wrong(
            "all reviews share one mean",
            "averaging",
            "Each review has a mean of its own: (B, d).",
            pool="batch",
        ),
        wrong(
            "every review is averaged up to the length of the longest",
            "mask missing",
            "Each review has a length of its own, and its padding starts there.",
            real="longest",
        ),
        wrong(
            "the sum is divided by the length of the longest review",
            "averaging",
            "Divide each sum by its own number of real tokens.",
            pool="by the longest",
        ),
        wrong(
            "the sum is divided by the number of reviews",
            "averaging",
            "The mean is taken over tokens, so count the tokens of each review.",
            pool="by reviews",
        ),
        wrong(
            "the lengths stand beside the features",
            "averaging",
            "(B, d) / (B,) lines the lengths up with the features: valid_lens[:, None].",
            pool="wrong axis",
        ),
        wrong(
            "hidden tokens get a very low number",
            "mask timing",
            "That is for scores before a softmax; in a sum a hidden token must add 0.",
            {"hide": -1e9},
            hide=-math.inf,
        ),
    ],
    hints=[
        "Which positions of a row are real? Compare torch.arange(T) with the length.",
        "Bring that (B, T) mask to (B, T, 1), and put 0 where it is False.",
        "Sum over axis 1. How many terms did each sum really have?",
    ],
    right_variants=[
        lambda x, n: torch.stack([row[: int(k)].mean(0) for row, k in zip(x, n, strict=True)]),
        lambda x, n: torch.where(
            (torch.arange(x.shape[1])[None] < n[:, None])[..., None], x, torch.nan
        ).nanmean(1),
        lambda x, n: torch.cat(
            [row.double().narrow(0, 0, k).sum(0, keepdim=True) / k for row, k in zip(x, n.tolist())]
        ),
    ],
)
def mean_of_real(x, valid_lens):
    """Mean over the real tokens of each review.

    x: (B, T, d), valid_lens: (B,) integers from 1 to T. Returns (B, d).
    """
    real = torch.arange(x.shape[1]) < valid_lens[:, None]  # (B, T)
    return x.masked_fill(~real[..., None], 0.0).sum(dim=1) / valid_lens[:, None]


def _log_probabilities(
    pooled,
    W,
    b,
    *,
    bias="added",
    axis=-1,
    kind="log_softmax",
    order="xW",
    base=math.e,
    sign=1,
    before="nothing",
):
    logits = pooled @ (W.T if order == "xWT" else W)
    logits = {"added": logits + b, "subtracted": logits - b}.get(bias, logits)
    if bias == "after":
        return sign * (torch.log_softmax(logits, axis) / math.log(base) + b)
    logits = {
        "nothing": logits,
        "relu": logits.relu(),
        "tanh": logits.tanh(),
        "root": logits / math.sqrt(pooled.shape[-1]),
        "softmax": logits.softmax(axis),
    }[before]
    if kind == "logits":
        return logits
    if kind == "less the largest":
        return logits - logits.amax(axis, keepdim=True)
    if kind == "probabilities":
        return torch.softmax(logits, axis)
    if kind == "sigmoid":
        return F.logsigmoid(logits)
    return sign * torch.log_softmax(logits, axis) / math.log(base)


@exercise(
    notebook=NOTEBOOK,
    minutes=5,
    difficulty=1,
    trains="from a vector to log-probabilities",
    text="""
    The head of the classifier: one linear layer, applied as `pooled @ W + b`, then the natural
    logarithm of the softmax over the classes.
    """,
    reference=_log_probabilities,
    probes=[
        draw(1012, (1, 2), (2, 2), (2,)),
        draw(1005, (3, 2), (2, 2), (2,)),
        draw(1006, (2, 3), (3, 3), (3,)),
    ],
    mistakes=[
        wrong(
            "probabilities are returned, not their logarithms",
            "log probabilities",
            "Take log_softmax; its values are 0 or below.",
            kind="probabilities",
        ),
        wrong(
            "logits are returned",
            "log probabilities",
            "exp of the result has to sum to 1 over the classes: log_softmax is missing.",
            kind="logits",
        ),
        wrong(
            "each class gets a sigmoid of its own",
            "log probabilities",
            "Exactly one class is right, so the classes share a sum of 1: softmax.",
            kind="sigmoid",
        ),
        wrong(
            "the softmax runs over the batch",
            "softmax axis",
            "Each review shares out its own probability over the classes, the last axis.",
            axis=0,
        ),
        wrong(
            "the matrix is transposed",
            "projection",
            "W is applied as pooled @ W here; nn.Linear stores the transpose of that.",
            order="xWT",
        ),
        wrong(
            "the bias is missing",
            "projection",
            "pooled @ W + b: the bias is the answer for an empty mind.",
            bias="none",
        ),
        wrong(
            "the bias is subtracted",
            "projection",
            "pooled @ W + b.",
            bias="subtracted",
        ),
        wrong(
            "the sign is turned round",
            "log probabilities",
            "The loss has a minus; the log-probability itself is 0 or below.",
            sign=-1,
        ),
        wrong(
            "the logarithm has another base",
            "log probabilities",
            "log_softmax, and nll_loss after it, use the natural logarithm.",
            {"base": 10},
            base=2,
        ),
        wrong(
            "the softmax is taken twice",
            "log probabilities",
            "log_softmax takes logits; probabilities given to it come out far too even.",
            before="softmax",
        ),
        wrong(
            "an activation stands before the softmax",
            "activation",
            "A logit may be any number; the head is one linear layer and nothing more.",
            {"before": "tanh"},
            before="relu",
        ),
        wrong(
            "the logits are scaled",
            "scale",
            "The root of d belongs to attention scores, not to the logits of classes.",
            before="root",
        ),
        wrong(
            "the bias is added to the log-probabilities",
            "log probabilities",
            "Add it to the logits, before the softmax, or the probabilities do not sum to 1.",
            bias="after",
        ),
        wrong(
            "only the largest logit is subtracted",
            "log probabilities",
            "That avoids overflow; the logarithm of the sum of all exponentials goes as well.",
            kind="less the largest",
        ),
    ],
    hints=[
        "Two lines: logits (B, c), then a function of torch that takes an axis.",
        "Over which axis must the probabilities of one review sum to 1?",
        "log_softmax(z) is z minus logsumexp(z), with the axis kept.",
    ],
    right_variants=[
        lambda p, W, b: F.log_softmax(F.linear(p, W.T, b), dim=1),
        lambda p, W, b: (z := torch.addmm(b, p, W)) - z.logsumexp(1, keepdim=True),
        lambda p, W, b: torch.stack(
            [(row @ W + b).double().softmax(0).log().log_softmax(0) for row in p]
        ),
    ],
)
def log_probabilities(pooled, W, b):
    """Log-probabilities of the classes.

    pooled: (B, d), W: (d, c), b: (c,). Returns (B, c); exp of each row sums to 1.
    """
    return torch.log_softmax(pooled @ W + b, dim=-1)


def _share(log_probs, labels, *, pick="largest", count="share", over="all", axis=1):
    predicted = log_probs.argmin(1) if pick == "smallest" else log_probs.argmax(1)
    if axis == 0:
        predicted = log_probs.argmax(0)
        labels = labels[: len(predicted)]
        predicted = predicted[: len(labels)]
    if pick == "probability":
        return log_probs.exp().gather(1, labels[:, None]).mean()
    if pick in ("half", "log half"):
        predicted = ((log_probs.exp() if pick == "half" else log_probs)[:, 1] > 0.5).long()
    right = predicted == labels
    if pick == "value":
        right = log_probs.amax(1) == labels
    if pick == "all pairs":
        right = predicted[:, None] == labels
    if pick == "label half":
        right = log_probs.exp().gather(1, labels[:, None])[:, 0] > 0.5
    if over == "predicted":
        right = right[predicted == 1]
    if over == "labelled":
        right = right[labels == 1]
    share, number = right.float().mean(), right.sum()
    if count == "classes":
        return torch.stack([right[labels == c].float().mean() for c in labels.unique()]).mean()
    if count == "whole":
        return number // len(log_probs)
    return {"share": share, "number": number, "percent": 100 * share, "errors": 1 - share}[count]


@exercise(
    notebook=NOTEBOOK,
    minutes=4,
    difficulty=1,
    trains="what accuracy counts",
    text="The share of reviews whose most probable class is their label, between 0 and 1.",
    reference=_share,
    probes=[
        (torch.tensor([[-0.1, -2.3], [-1.6, -0.2], [-0.5, -0.9]]), torch.tensor([0, 1, 1])),
        (torch.log_softmax(draw(1007, (7, 2))[0], 1), torch.tensor([1, 0, 1, 1, 1, 1, 0])),
        (torch.log_softmax(draw(1008, (9, 3))[0], 1), torch.tensor([1, 0, 2, 1, 1, 1, 0, 1, 2])),
        (
            torch.tensor([[-0.1, -2.3], [-2.0, -0.15], [-0.9, -0.5], [-0.2, -1.7]]),
            torch.tensor([0, 1, 1, 0]),
        ),
    ],
    mistakes=[
        wrong(
            "the least probable class is taken",
            "search",
            "argmin where argmax is due.",
            pick="smallest",
        ),
        wrong(
            "the largest is looked for along the batch",
            "softmax axis",
            "Each review picks among its own classes, axis 1.",
            axis=0,
        ),
        wrong(
            "the number of right answers is given",
            "averaging",
            "Divide by the number of reviews.",
            count="number",
        ),
        wrong(
            "the share is given in percent",
            "averaging",
            "A share lies between 0 and 1.",
            count="percent",
        ),
        wrong(
            "the errors are counted",
            "averaging",
            "This is the error rate, 1 minus the accuracy.",
            count="errors",
        ),
        wrong(
            "the probabilities of the labels are averaged",
            "averaging",
            "A review counts 1 or 0: is its label the most probable class?",
            pick="probability",
        ),
        wrong(
            "only reviews that are called positive count",
            "averaging",
            "This is the precision of class 1; accuracy is taken over all reviews.",
            over="predicted",
        ),
        wrong(
            "only positive reviews count",
            "averaging",
            "This is the recall of class 1; accuracy is taken over all reviews.",
            over="labelled",
        ),
        wrong(
            "a probability is compared with 0.5",
            "search",
            "With more than two classes the most probable one may lie below 0.5: take the argmax.",
            {"pick": "label half"},
            pick="half",
        ),
        wrong(
            "a log-probability is compared with 0.5",
            "log probabilities",
            "Log-probabilities are never above 0, so class 1 is never chosen: take the argmax.",
            pick="log half",
        ),
        wrong(
            "every prediction is compared with every label",
            "averaging",
            "(B, 1) == (B,) makes (B, B): review i is compared with label i only.",
            pick="all pairs",
        ),
        wrong(
            "the largest value is compared, not its place",
            "search",
            "The class is where the largest value stands: argmax, or max(...).indices.",
            pick="value",
        ),
        wrong(
            "the classes are averaged",
            "averaging",
            "Every review counts alike, so a frequent class counts more.",
            count="classes",
        ),
        wrong(
            "the division is cut to a whole number",
            "averaging",
            "// drops what stands behind the point: use / or mean.",
            count="whole",
            pick="largest",
        ),
    ],
    hints=[
        "Which class of each row is the most probable one?",
        "Comparing (B,) with (B,) gives B times True or False.",
        "The mean of True and False needs them as numbers: .float().",
    ],
    right_variants=[
        lambda p, y: sum(int(row.argmax()) == int(n) for row, n in zip(p, y, strict=True)) / len(y),
        lambda p, y: torch.eq(p.exp().max(dim=-1).indices, y).double().mean(),
        lambda p, y: 1 - torch.count_nonzero(p.topk(1).indices.squeeze(1) - y) / len(y),
    ],
)
def share_right(log_probs, labels):
    """Accuracy: the share of right predictions.

    log_probs: (B, c), labels: (B,) class ids. Returns one number.
    """
    return (log_probs.argmax(dim=1) == labels).float().mean()


def toy_score(seed):
    """A score of a list of tokens that depends on which they are, how often, and in what order."""
    weights = draw(seed, (101,))[0].tolist()

    def score(tokens):
        places = enumerate(map(str, tokens))
        return 0.3 + sum(weights[(sum(map(ord, t)) + 17 * n) % 101] for n, t in places)

    return score


def _importance(score, tokens, *, difference="right", without="one", skip="none", leave="out"):
    whole = score(tokens)
    result, copy = [], list(tokens)
    for i, token in enumerate(tokens):
        if without == "first alike":
            i = tokens.index(token)
        if without == "all alike":
            rest = [t for t in tokens if t != token]
        elif without == "all before" or difference == "all before":
            rest = tokens[i + 1 :]
        elif without == "all others":
            rest = [token]
        elif without == "next":
            rest = tokens[: i + 1] + tokens[i + 2 :]
        elif without == "one more each time":
            del copy[i]
            rest = copy
        elif without == "pop each time":
            copy.pop(i)
            rest = copy
        else:
            if without == "last alike":
                i = len(tokens) - 1 - tokens[::-1].index(token)
            rest = tokens[:i] + ([] if leave == "out" else [leave]) + tokens[i + 1 :]
        before = {"all before": score(tokens[i:]), "growing": score(tokens[: i + 1])}
        rest = tokens[:i] if difference == "growing" else rest
        change = before.get(difference, whole) - score(rest)
        forms = {"turned": -change, "none": score(rest), "size": abs(change)}
        forms |= {"share": change / whole}
        result.append(forms.get(difference, change))
    if difference == "normalised":
        result = [change / sum(result) for change in result]
    return {"none": result, "last": result[:-1], "first": result[1:]}[skip]


def _importance_by_copies(score, tokens):
    changes = torch.full((len(tokens),), float(score(tokens)), dtype=torch.float64)
    for i in range(len(tokens)):
        copy = list(tokens)
        del copy[i]
        changes[i] -= score(copy)
    return changes.tolist()


def _importance_by_recursion(score, tokens):
    whole = score(tokens)

    def go(before, after):
        if not after:
            return []
        return [whole - score(before + after[1:]), *go(before + after[:1], after[1:])]

    return go([], tokens)


@exercise(
    notebook=NOTEBOOK,
    minutes=6,
    difficulty=2,
    trains="which word decides",
    text="""
    How much does each word matter? Leave it out and see by how much the score falls. A word that
    lifts the score has a positive importance. If a word stands there twice, leave out one of the
    two at a time.
    """,
    reference=_importance,
    probes=[
        (toy_score(1009), ["not", "bad"]),
        (toy_score(1010), ["the", "plot", "of", "the", "film", "is", "the", "best"]),
        (toy_score(1011), ["good", ",", "not", "bad", ",", "good"]),
    ],
    mistakes=[
        wrong(
            "the sign is turned round",
            "importance",
            "A word that lifts the score is positive: the whole score minus the one without it.",
            difference="turned",
        ),
        wrong(
            "the score without the word is given, not the difference",
            "importance",
            "Compare it with the score of the whole review.",
            difference="none",
        ),
        wrong(
            "the sign is lost",
            "importance",
            "A word that lowers the score has a negative importance.",
            difference="size",
        ),
        wrong(
            "all words that read alike are left out",
            "importance",
            "Leave out one place at a time: two words can be alike.",
            without="all alike",
        ),
        wrong(
            "the first of two equal words is left out for both",
            "importance",
            "list.remove and list.index find the first place with that word; leave out place i.",
            without="first alike",
        ),
        wrong(
            "the words before it are left out, too",
            "importance",
            "Everything but this one word stays.",
            without="all before",
        ),
        wrong(
            "the word is scored alone",
            "importance",
            "Leave the word out of the review; do not leave the review out.",
            without="all others",
        ),
        wrong(
            "the next word is left out",
            "off by one",
            "tokens[:i] + tokens[i + 1:] is everything but token i.",
            without="next",
        ),
        wrong(
            "the last word is missing",
            "off by one",
            "One number for each word.",
            {"skip": "first"},
            skip="last",
        ),
        wrong(
            "something else is put in the word's place",
            "position",
            "Leave the word out: the words behind it move up by one place.",
            *({"leave": token} for token in ("<unk>", "<mask>", "[PAD]", "[MASK]", "", " ")),
            leave="<pad>",
        ),
        wrong(
            "equal words share one number",
            "importance",
            "A dictionary keeps one entry for a word, that of its last place; make a list.",
            without="last alike",
        ),
        wrong(
            "a word that was left out does not come back",
            "importance",
            "Leave each word out of the whole review again: work on a new list each time.",
            {"without": "pop each time"},
            without="one more each time",
        ),
        wrong(
            "the change is divided by the whole score",
            "importance",
            "Importance is the fall itself, not its share of the whole.",
            difference="share",
        ),
        wrong(
            "the importances are made to sum to 1",
            "importance",
            "They are differences of scores; some are negative, and no sum is due.",
            difference="normalised",
        ),
        wrong(
            "a word is compared with a part of the review",
            "importance",
            "Compare the whole review with the whole review without this word.",
            {"difference": "growing"},
            difference="all before",
        ),
    ],
    hints=[
        "tokens[:i] + tokens[i + 1:] is the review without token i.",
        "You need the score of the whole review once, and one more score for each word.",
        "whole - score(without) is positive when the word helped.",
    ],
    right_variants=[
        _importance_by_copies,
        _importance_by_recursion,
        lambda f, t: [f(t) - f([w for n, w in enumerate(t) if n != i]) for i, _ in enumerate(t)],
    ],
)
def importance_of_words(score, tokens):
    """By how much the score falls when one word is left out.

    score: a function from a list of tokens to a number, tokens: a list of T strings.
    Returns a list of T numbers.
    """
    whole = score(tokens)
    return [whole - score(tokens[:i] + tokens[i + 1 :]) for i in range(len(tokens))]


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=2,
    difficulty=1,
    trains="permutation invariance",
    text="""
    Four different words can be put in 24 orders. A classifier **without** positions pools over all
    of them. How many different log-probabilities can it give the 24 orders, at most?
    """,
    mistakes=[
        wrong(
            "every order is told apart",
            "position",
            "Nothing in the input says where a word stands.",
            answer=24,
        ),
        wrong(
            "classes are counted",
            "counting",
            "Both classes get one log-probability each, but it is the same for all orders.",
            answer=2,
        ),
        wrong(
            "words are counted",
            "counting",
            "All orders have the same four words, and only words are seen.",
            answer=4,
        ),
        wrong(
            "a review and its mirror image are taken to be alike",
            "position",
            "Not only the mirror image: any order looks the same.",
            answer=12,
        ),
    ],
    hints=[
        "What does the encoder do to its outputs when its inputs change places?",
        "The outputs change places in the same way. And their mean?",
        "The mean does not depend on the order. Does anything after it?",
    ],
)
def orders_told_apart():
    """Different outputs for the 24 orders:"""
    return 1


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=3,
    difficulty=2,
    trains="the limit of a bag of words",
    text="""
    Of 100 reviews, 60 form 30 pairs with the same words in another order and with opposite labels.
    The other 40 differ in their words. What is the best accuracy, between 0 and 1, that a model
    without positions can reach?
    """,
    mistakes=[
        wrong(
            "the pairs are taken to be all wrong",
            "averaging",
            "Both of a pair get the same answer, and for one of the two it is right.",
            answer=0.4,
        ),
        wrong(
            "the pairs are taken to be all right",
            "position",
            "Both of a pair get the same answer, but their labels differ.",
            answer=1.0,
        ),
        wrong(
            "everything is taken to be a guess",
            "averaging",
            "Only the pairs are; the words of the other 40 can tell.",
            answer=0.5,
        ),
        wrong(
            "half of the others is taken to be wrong",
            "averaging",
            "It is the pairs of which half is wrong: 30 + 40 are right.",
            {"answer": 0.6},
            answer=0.8,
        ),
    ],
    hints=[
        "What can the model answer for the two reviews of a pair?",
        "So how many of the 60 are right, whatever it answers?",
        "Add the 40 that it can all get right, and divide by 100.",
    ],
)
def best_without_order():
    """Best accuracy of a model without positions:"""
    return 0.7
