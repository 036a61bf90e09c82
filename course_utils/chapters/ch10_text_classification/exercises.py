"""Exercises of notebook 10: limits without order, positions, pooling, importance, lists."""

import math
from collections import Counter

import torch
import torch.nn.functional as F

from course_utils.checker.exercise import exercise, wrong
from course_utils.checker.probes import as_asked, draw

NOTEBOOK = "10_text_classification"


def _limits(
    bags, labels, *, pick="most", log="e", over="bag", weigh="reviews", divide="reviews",
    order="ab", shares="own",
):  # fmt: skip
    groups = {}
    for bag, label in zip(bags, labels, strict=True):
        groups.setdefault(bag if over == "bag" else 0, Counter())[label] += 1
    right = loss = 0.0
    for counts in groups.values():
        n = sum(counts.values())
        even = len(bags) / len(groups)
        picked = {
            "most": max(counts.values()),
            "fewest": min(counts.values()),
            "label 1": counts[1],
            "sure": n if len(counts) == 1 else 0,
            "1 or not": max(counts[1], n - counts[1]),
            "the mean": counts[round(sum(y * c for y, c in counts.items()) / n)],
        }[pick]
        right += (even if weigh in ("bags", "bags, accuracy") else n) * picked / n
        parts = counts.values()
        if shares != "own":
            first = counts[1] if shares == "1 or not" else max(counts.values())
            parts = [c for c in (first, n - first) if c]
        entropy = -sum(c / n * math.log(c / n) for c in parts)
        if log.startswith("largest"):
            entropy = -math.log(max(counts.values()) / n)
        weight = {"bags": even, "bags, loss": even, "once": 1}.get(weigh, n)
        loss += weight * entropy / (math.log(2) if log.endswith("2") else 1.0)
    number = len(groups) if divide == "bags" else len(bags)
    right /= {"nothing": 1, "accuracy by bags": len(groups)}.get(divide, number)
    loss /= {"nothing": 1, "loss by bags": len(groups)}.get(divide, number)
    return (right, loss) if order == "ab" else (loss, right)


def _limits_by_lookup(bags, labels):
    pairs, alone = Counter(zip(bags, labels, strict=True)), Counter(bags)
    best = {bag: max(n for (b, _), n in pairs.items() if b == bag) for bag in alone}
    losses = [-math.log(pairs[b, y] / alone[b]) for b, y in zip(bags, labels, strict=True)]
    return sum(best.values()) / len(bags), sum(losses) / len(losses)


def _limits_with_tensors(bags, labels):
    names, kinds = sorted(set(bags)), sorted(set(labels))
    table = torch.zeros(len(names), len(kinds), dtype=torch.float64)
    for bag, label in zip(bags, labels, strict=True):
        table[names.index(bag), kinds.index(label)] += 1
    share = table / table.sum(1, keepdim=True)
    loss = -torch.xlogy(table, share).sum() / len(bags)
    return [table.amax(1).sum() / len(bags), loss]


@exercise(
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=2,
    trains="computing what a model can reach at best",
    text="""
    How well can a model do that sees no more of a review than its bag of words? Two reviews with
    equal bags must get the same answer. Compute the largest **accuracy** (one label for each bag),
    and the smallest **loss**: the mean of `-log p(label)`, natural logarithm, if for each bag the
    model may name any probabilities, as long as they sum to 1.
    """,
    reference=_limits,
    probes=[
        (["ab", "ab", "c", "c", "c", "d"], [1, 0, 1, 1, 0, 1]),
        (["x", "y", "x", "y", "x", "z", "x", "z"], [0, 1, 0, 1, 1, 0, 0, 0]),
        ("p q p p q p p r q q p".split(), [0, 1, 2, 0, 1, 1, 2, 2, 0, 1, 0]),
    ],
    mistakes=[
        wrong(
            "the rarer label is picked",
            "search",
            "Each bag gets the label that most of its reviews have.",
            pick="fewest",
        ),
        wrong(
            "every bag is called positive",
            "search",
            "A model may give each bag a label of its own, whichever is the more frequent there.",
            pick="label 1",
        ),
        wrong(
            "a bag with both labels counts as all wrong",
            "averaging",
            "One answer for the bag is still right for the reviews that have this label.",
            pick="sure",
        ),
        wrong(
            "all reviews share one bag",
            "averaging",
            "Reviews are counted within their own bag, not together.",
            over="everything",
        ),
        wrong(
            "every bag counts alike",
            "averaging",
            "Both are means over reviews, so a bag of four reviews counts four times.",
            {"weigh": "bags, accuracy"},
            {"weigh": "bags, loss"},
            weigh="bags",
        ),
        wrong(
            "the loss of a bag counts once, however many reviews it has",
            "averaging",
            "-log p is added up over reviews: a share times its log, times the reviews of the bag.",
            weigh="once",
        ),
        wrong(
            "sums over reviews are divided by the number of bags",
            "averaging",
            "Accuracy and loss are means over all reviews.",
            {"divide": "accuracy by bags"},
            {"divide": "loss by bags"},
            divide="bags",
        ),
        wrong(
            "only labels 0 and 1 are thought of",
            "counting",
            "A bag may hold more than two labels: count each by itself.",
            {"shares": "1 or not"},
            {"pick": "most", "shares": "1 or not"},
            pick="1 or not",
        ),
        wrong(
            "the loss takes all but the most frequent label together",
            "counting",
            "A bag may hold more than two labels: each has a share of its own.",
            shares="most or not",
        ),
        wrong(
            "the mean of the labels is rounded",
            "search",
            "Labels are names: the one that most reviews of the bag have is right most often.",
            pick="the mean",
        ),
        wrong(
            "nothing is divided by the number of reviews",
            "averaging",
            "Accuracy and loss are means over all reviews.",
            divide="nothing",
        ),
        wrong(
            "the logarithm has base 2",
            "log probabilities",
            "math.log, the natural one, as in cross_entropy.",
            log="2",
        ),
        wrong(
            "the loss counts only the likelier label",
            "log probabilities",
            "Reviews with the other label have a loss as well, and a larger one.",
            {"log": "largest, 2"},
            log="largest",
            shares="own",
        ),
        wrong(
            "the two results are given in the wrong order",
            "averaging",
            "First the accuracy, then the loss.",
            order="ba",
        ),
    ],
    hints=[
        "Count, for each bag, how often each label occurs: a dictionary of Counters.",
        "Which one label should a bag with counts 3 and 1 get? And which probabilities make the "
        "mean of -log p smallest for it?",
        "The best probabilities are the shares of the labels in the bag, here 3/4 and 1/4. Sum "
        "over the reviews of all bags, and divide by their number.",
    ],
    right_variants=[
        _limits_by_lookup,
        _limits_with_tensors,
        lambda bags, labels: (
            sum(
                max(Counter(y for c, y in zip(bags, labels) if c == b).values()) for b in set(bags)
            )
            / len(bags),
            -sum(
                math.log(
                    sum(c == b and z == y for c, z in zip(bags, labels)) / list(bags).count(b)
                )
                for b, y in zip(bags, labels)
            )
            / len(bags),
        ),
    ],
)  # fmt: skip
def best_limits(bags, labels):
    """The largest accuracy and the smallest mean loss of a function of the bag.

    bags: a list of N strings, equal where the words are, labels: a list of N class numbers.
    Returns two numbers.
    """
    counts = {}
    for bag, label in zip(bags, labels, strict=True):
        of_bag = counts.setdefault(bag, {})
        of_bag[label] = of_bag.get(label, 0) + 1
    right = sum(max(c.values()) for c in counts.values())
    loss = sum(-n * math.log(n / sum(c.values())) for c in counts.values() for n in c.values())
    return right / len(bags), loss / len(bags)


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
        "of real": ((tokens != 0).cumsum(1) - 1).clamp(min=0),
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
            "ids of 0 are left out when places are counted",
            "position",
            "The place of a token is its column, whatever ids stand before it.",
            at="of real",
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
    if pool == "one number":
        return (kept.sum((1, 2)) / mask.sum((1, 2)) / d)[:, None].expand(-1, d)
    if pool == "batch":
        return kept.sum((0, 1)) / valid_lens.sum()
    if pool == "wrong axis":  # an error, unless there are as many reviews as features
        return kept.sum(1) / valid_lens
    counts = {"mean": mask.sum(1), "padded": steps, "sum": 1, "by features": d}
    counts |= {"by reviews": batch, "by the longest": valid_lens.max()}
    counts |= {"by numbers": (kept != 0).sum(1), "by rows": (kept != 0).any(-1).sum(1)[:, None]}
    return kept.sum(1) / counts[pool]


@exercise(
    asks="practice",
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
        (torch.tensor([[[6.0, 0.0], [0.0, 0.0], [3.0, 1.0]]]), torch.tensor([3])),
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
            "zeros are taken for padding",
            "averaging",
            "A real token may hold zeros, and counts all the same: divide by valid_lens.",
            {"pool": "by rows"},
            pool="by numbers",
        ),
        wrong(
            "all features share one mean",
            "averaging",
            "Each feature has a mean of its own: the mean runs over the tokens alone.",
            pool="one number",
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
        elif without == "two":
            rest = tokens[:i] + tokens[i + 2 :]
        elif without == "turned round":
            rest = tokens[i + 1 :] + tokens[:i]
        elif without == "sorted":
            rest = sorted(tokens[:i] + tokens[i + 1 :])
        elif without == "set":
            rest = [t for t in dict.fromkeys(tokens) if t != token]
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
    asks="transfer",
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
            "two words are left out",
            "off by one",
            "tokens[:i] + tokens[i + 1:] is everything but token i.",
            without="two",
        ),
        wrong(
            "the other words change their places",
            "position",
            "The score may depend on the order: leave the others where they are.",
            {"without": "sorted"},
            without="turned round",
        ),
        wrong(
            "words that stand there twice are read once",
            "importance",
            "A set has each word once: leave out one place of the list.",
            without="set",
        ),
        wrong(
            "the last or the first word is missing",
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
    asks="transfer",
    kind="value",
    notebook=NOTEBOOK,
    minutes=2,
    difficulty=1,
    trains="permutation invariance",
    text="""
    Four different words can be put in 24 orders. A classifier **without** positions pools over all
    of them. How many different logits for "positive" can it give the 24 orders, at most?
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
            "Each class gets a logit of its own, but it is the same for all orders.",
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
        wrong(
            "one order is not counted",
            "counting",
            "Outputs are counted, not changes: where all are alike there is one.",
            {"answer": 23},
            answer=0,
        ),
        wrong(
            "pairs of words are counted",
            "counting",
            "Four words make 6 pairs, but no output depends on which of two comes first.",
            answer=6,
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
    asks="transfer",
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
            "what can be right is halved once more",
            "averaging",
            "30 of the 60 and all of the other 40 are right: only the 60 are halved.",
            answer=0.35,
        ),
        wrong(
            "half of the others is taken to be wrong",
            "averaging",
            "It is the pairs of which half is wrong: 30 + 40 are right.",
            answer=0.8,
        ),
        wrong(
            "all reviews of the pairs are counted, and none of the others",
            "counting",
            "Of each pair one is right, 30 of the 60, and all 40 others can be right.",
            answer=0.6,
        ),
        wrong(
            "the 30 pairs are taken for 30 reviews",
            "counting",
            "A pair is two reviews: 60 of the 100 stand in pairs, and half of these are right.",
            {"answer": (15 + 40) / 70},
            {"answer": (15 + 40) / 100},
            answer=0.85,
        ),
        wrong(
            "the pairs alone are counted",
            "counting",
            "30 of the 60 are right, and besides them all of the other 40.",
            answer=0.3,
        ),
        wrong(
            "the 30 pairs are taken for 30 reviews, and counted alone",
            "counting",
            "A pair is two reviews: 30 of the 60 are right, and besides them all of the other 40.",
            answer=0.15,
        ),
        wrong(
            "the two groups are taken to be equally large",
            "averaging",
            "Half of the 60 and all of the other 40 are right: add the reviews, not the shares.",
            answer=0.75,
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


def _read(
    subjects,
    verdicts,
    asked,
    scale,
    *,
    axis=1,
    weights="softmax",
    match="asked",
    keys="match",
    sign=1,
    result="sum",
):
    same = (subjects == asked[:, None]).double()  # (B, n)
    if match == "first":
        same = (subjects == subjects[:, :1]).double()
    if match == "others":
        same = 1 - same
    if match in ("product of ids", "distance of ids"):
        first, second = subjects.double(), asked[:, None].double()
        same = first * second if match == "product of ids" else -(first - second).abs()
    scores = same if keys == "not scaled" else same * scale
    if keys == "verdict":
        scores = scores * verdicts
    if keys == "divided":
        scores = same / scale
    if keys == "by the root of n":
        scores = scores / math.sqrt(same.shape[1])
    share = {
        "softmax": torch.softmax(scores, axis),
        "none": scores,
        "one": same,
        "even": torch.ones_like(same) / same.shape[1],
    }[weights]
    read = sign * share * verdicts.double()
    return read if result == "each" else read.sum(1)


def _read_with_matrices(subjects, verdicts, asked, scale):
    eye = torch.eye(int(max(subjects.max(), asked.max())) + 1, dtype=torch.float64)
    scores = scale * eye[asked][:, None] @ eye[subjects].transpose(1, 2)  # (B, 1, n)
    return (scores.softmax(-1) @ verdicts.double()[..., None])[:, 0, 0]


def _list(seed, batch, number):
    generator = torch.Generator().manual_seed(seed)
    subjects = torch.rand(batch, 9, generator=generator).argsort(1)[:, :number]
    verdicts = torch.randint(2, (batch, number), generator=generator) * 2.0 - 1
    at = torch.randint(number, (batch,), generator=generator)
    return subjects, verdicts, subjects[torch.arange(batch), at]


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=2,
    trains="setting one attention head by hand",
    text="""
    Set a head by hand that answers the lists above. The query is the subject that is asked for, the
    keys are the subjects of the list, and the values its verdicts, +1 or -1. A subject's vector is
    one-hot, so the dot product of query and key is 1 where they name the same subject and 0
    elsewhere; it is multiplied by `scale`, and a softmax over the list follows. Return what the
    head reads, the weighted sum of the verdicts.
    """,
    reference=_read,
    probes=[
        (*_list(1021, 3, 4), 2.0),
        (*_list(1022, 4, 6), 3.0),
        (*_list(1023, 6, 5), 1.5),
    ],
    mistakes=[
        wrong(
            "the softmax runs over the batch",
            "softmax axis",
            "Each query shares out a weight of 1 over the verdicts of its own list.",
            axis=0,
        ),
        wrong(
            "there is no softmax",
            "normalisation",
            "The scores are not yet weights: a softmax makes them sum to 1.",
            weights="none",
        ),
        wrong(
            "only the verdict that is asked for is read",
            "normalisation",
            "So it is with a very large scale. A softmax gives the others some weight, too.",
            weights="one",
        ),
        wrong(
            "all verdicts are averaged",
            "score",
            "Every key gets the same weight; the score has to say which subject is asked for.",
            weights="even",
        ),
        wrong(
            "the scores are not scaled",
            "scale",
            "Multiply the dot products by scale.",
            keys="not scaled",
        ),
        wrong(
            "the scores are divided by the scale",
            "scale",
            "Here scale makes the head sharper: multiply.",
            keys="divided",
        ),
        wrong(
            "the scores are divided by a root",
            "scale",
            "Here the dot products are multiplied by scale, and by nothing else.",
            keys="by the root of n",
        ),
        wrong(
            "the weighted verdicts are not added up",
            "averaging",
            "The head reads their weighted sum, one number for each review.",
            result="each",
        ),
        wrong(
            "the verdicts stand in the scores",
            "role of q, k, v",
            "Keys are compared with the query, and they are subjects; verdicts are values.",
            keys="verdict",
        ),
        wrong(
            "the first subject of the list is looked for",
            "role of q, k, v",
            "The query is what is asked for, wherever it stands in the list.",
            match="first",
        ),
        wrong(
            "ids are taken for amounts",
            "score",
            "Ids are names: one-hot vectors have the dot product 1 where the ids are equal and 0 "
            "elsewhere, however large or near they are.",
            {"match": "distance of ids"},
            match="product of ids",
        ),
        wrong(
            "the other subjects are looked for",
            "score",
            "The score is scale where the subjects are the same, and 0 elsewhere.",
            match="others",
        ),
        wrong(
            "the sign is turned round",
            "role of q, k, v",
            "The values are the verdicts as they are.",
            sign=-1,
        ),
    ],
    hints=[
        "subjects == asked[:, None] compares the query of each review with its keys: (B, n).",
        "The scores are that comparison as numbers, times scale. Over which axis is the softmax?",
        "Weights times verdicts, summed over the list: (B,).",
    ],
    right_variants=[
        _read_with_matrices,
        lambda s, v, a, c: torch.stack(
            [
                (torch.where(row == q, float(c), 0.0).softmax(0) * w).sum()
                for row, w, q in zip(s, v, a, strict=True)
            ]
        ),
        lambda s, v, a, c: (
            (p := ((s == a.unsqueeze(1)).double() * c).exp()) * v
        ).sum(-1) / p.sum(-1),
    ],
    allows=lambda s, v, asked, scale: (
        v.abs().eq(1).all() and s.sort(dim=1).values.diff(dim=1).gt(0).all()
    ),
)  # fmt: skip
def read_the_list(subjects, verdicts, asked, scale):
    """What one head reads from a list when it is asked for one subject.

    subjects: (B, n) ids, all different within a list, verdicts: (B, n) of +1 and -1, asked: (B,)
    ids, scale: a number. Returns (B,).
    """
    scores = scale * (subjects == asked[:, None]).float()  # (B, n)
    return (scores.softmax(dim=-1) * verdicts).sum(dim=-1)


def _what_a_pool_keeps(answer, x, valid_lens):
    """What is asked of a pooling, whatever its design: each property, and whether it has it."""
    wanted = (len(x), x.shape[2])
    pooled = as_asked(answer(x.clone(), valid_lens), "a tensor (B, d)", wanted)
    real = (torch.arange(x.shape[1]) < valid_lens[:, None])[..., None]  # (B, T, 1)
    same = torch.where(real, x[:, :1], -7.0)  # each real output of a review is its first one

    def like(a, b):
        return torch.allclose(a.double(), b.double(), atol=1e-4)

    swaps = []
    for b, length in enumerate(valid_lens.tolist()):
        for i in range(length):
            for j in range(i):
                swapped = x.clone()
                swapped[b, [i, j]] = x[b, [j, i]]
                moved = (answer(swapped, valid_lens)[b] - pooled[b]).abs().max().item()
                swaps.append(moved > 1e-4 or (x[b, i] - x[b, j]).abs().max().item() < 1.0)
    return {
        "leaves padding out": like(answer(torch.where(real, x, 50.0), valid_lens), pooled),
        "gives v where all real outputs are v": like(answer(same, valid_lens), x[:, 0]),
        "changes when two real outputs change places": all(swaps),
        "doubles when all outputs double": like(answer(2 * x, valid_lens), 2 * pooled),
    }


_STEEP = (
    0.1,
    10.0,
    0.2,
    5.0,
    0.05,
    20.0,
    0.22,
    4.5,
)  # bases of weights that leave some places next to nothing


def _pool(x, valid_lens, *, made="rising", padding="hidden", sums="one"):
    at = torch.arange(x.shape[1])
    hidden = at >= valid_lens[:, None]  # (B, T)
    last = at == valid_lens[:, None] - 1
    weights = {
        "even": torch.ones(hidden.shape),
        "ends": ((at == 0) | last).float(),
        "a wave": ((math.pi / 4 * at).cos() + 2).expand(hidden.shape),
        "a valley": ((at - (len(at) - 1) / 2).abs() + 1).expand(hidden.shape),
        "last": last.float(),
        **{base: (base**at).expand(hidden.shape) for base in _STEEP},
    }.get(made, (at + 1.0).expand(hidden.shape))
    if padding == "hidden":
        weights = weights.masked_fill(hidden, 0.0)
    if sums == "one":
        weights = weights / weights.sum(1, keepdim=True)
    if sums == "nothing at 1":  # 0, 1, 2, ...: of one place nothing is left
        weights = at * (~hidden if padding == "hidden" else torch.ones_like(hidden))
        weights = weights / weights.sum(1, keepdim=True).clamp(min=1.0)
    if made == "bent":  # v stays v, but twice as much is not twice as much
        weights = (weights.log() + x.norm(dim=-1)).softmax(1)
    return (weights[..., None] * x).sum(1)


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=15,
    difficulty=3,
    trains="letting the pooling see the order",
    text="""
    **An open task**: many answers are right, and only what is asked here is checked. Positions need
    not be in the input. Invent a pooling that tells a review from its twin even when the encoder
    has no positions. (1) Padding does not count. (2) If all real outputs of a review are the same
    vector v, the result is v. (3) If any two real outputs change places that are 1 or more apart
    in one of their numbers, some number of the result changes by more than 1e-4. (4) If all outputs
    are doubled, so is the result. Reviews have at most 8 tokens.
    """,
    reference=_pool,
    play=_what_a_pool_keeps,
    probes=[
        (torch.arange(8.0).view(1, 8, 1), torch.tensor([8])),
        (*draw(1031, (2, 4, 3)), torch.tensor([4, 3])),
        (*draw(1032, (3, 6, 2)), torch.tensor([2, 6, 5])),
        (*draw(1033, (2, 8, 2)), torch.tensor([8, 4])),
        (*draw(1034, (3, 5, 2)), torch.tensor([1, 5, 2])),
    ],
    mistakes=[
        wrong(
            "two places have the same weight, or next to none",
            "position",
            "Property 3: outputs of places that count alike can change places unseen, and so can "
            "those of places whose weights are all but 0. Let all weights differ, none be tiny.",
            {"made": "ends", "padding": "hidden", "sums": "one"},
            {"made": "last", "padding": "hidden", "sums": "one"},
            {"made": "a wave"},
            {"made": "a valley"},
            *({"made": base, "padding": "hidden", "sums": "one"} for base in _STEEP),
            made="even",
        ),
        wrong(
            "padding counts",
            "mask missing",
            "Property 1: places from the length on get a weight of 0.",
            padding="counts",
        ),
        wrong(
            "the weights do not sum to 1",
            "averaging",
            "Property 2: divide by the sum of the weights of the real places.",
            {"sums": "nothing at 1"},
            sums="more",
        ),
        wrong(
            "the result does not double with the outputs",
            "averaging",
            "Property 4: a weight depends on the place alone, not on what the output says.",
            made="bent",
            sums="one",
        ),
    ],
    hints=[
        "A mean gives each real place the weight 1 / length. Which weights tell places apart?",
        "Any different weights do, such as 1, 2, 3, ...; padding gets 0.",
        "Divide the weights of a review by their sum, and take the weighted sum over axis 1.",
    ],
    right_variants=[
        lambda x, n: torch.stack(
            [
                (row[:k] * (w := 0.5 ** torch.arange(float(k)))[:, None]).sum(0) / w.sum()
                for row, k in zip(x, n.tolist(), strict=True)
            ]
        ),
        lambda x, n: torch.stack(
            [
                (torch.arange(float(k)).sqrt() + 0.3) @ row[:k]
                / (torch.arange(float(k)).sqrt() + 0.3).sum()
                for row, k in zip(x, n.tolist(), strict=True)
            ]
        ),
        lambda x, n: torch.stack(
            [
                torch.softmax(0.3 * torch.arange(float(k)), 0) @ row[:k]
                for row, k in zip(x, n.tolist(), strict=True)
            ]
        ),
    ],
)  # fmt: skip
def ordered_pool(x, valid_lens):
    """One vector per review, for which the order of the outputs counts.

    x: (B, T, d), valid_lens: (B,) integers from 1 to T. T is at most 8. Returns (B, d).
    """
    # One of many: the weight of a place is its number, counted from 1.
    places = torch.arange(x.shape[1])
    weights = (places + 1.0) * (places < valid_lens[:, None])  # (B, T)
    weights = weights / weights.sum(dim=1, keepdim=True)
    return (weights[..., None] * x).sum(dim=1)
