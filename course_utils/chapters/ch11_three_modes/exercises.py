"""Exercises of notebook 11: masked-token training, language models, and drawing from them."""

import itertools
import math

import torch
import torch.nn.functional as F

from course_utils.checker.common import (
    NOT_LOW,
    lowered,
    mixed_up,
    not_low_enough,
    not_shifted,
    unshifted,
)
from course_utils.checker.exercise import exercise, wrong
from course_utils.checker.probes import draw

NOTEBOOK = "11_three_modes"
RESERVED = 4  # ids 0 to 3 are <pad>, <bos>, <eos> and <unk>


def _hide(
    tokens,
    chance,
    kind,
    others,
    mask_id,
    *,
    choose="below",
    reserved="kept",
    change="three ways",
    guess="chosen",
    truth="tokens",
    among="chosen",
    elsewhere=0,
    given="read first",
):
    chosen = {
        "below": chance < 0.15,
        "at most": chance <= 0.15,
        "above": chance >= 0.15,
    }[choose]
    words = {
        "kept": tokens >= RESERVED,
        "chosen": torch.ones_like(chosen),
        "but padding": tokens != 0,
        "but padding and bos": tokens > 1,
        "one more": tokens > RESERVED,
    }
    chosen = chosen & words[reserved]
    hide, swap = {
        "three ways": (kind < 0.8, kind >= 0.9),
        "mask only": (kind < 2.0, kind >= 2.0),
        "never the mask": (kind >= 2.0, kind >= 0.9),
        "never another": (kind < 0.8, kind >= 2.0),
        "never the same": (kind < 0.8, kind >= 0.8),
        "mask or another": (kind < 0.9, kind >= 0.9),
        "swapped": ((kind >= 0.8) & (kind < 0.9), kind < 0.8),
        "the middle": (kind < 0.8, (kind >= 0.8) & (kind < 0.9)),
        "exchanged": (kind >= 0.9, kind < 0.8),
        "the middle, other borders": (kind < 0.8, (kind > 0.8) & (kind <= 0.9)),
        "0.8 masked": (kind <= 0.8, kind >= 0.9),
        "0.9 kept": (kind < 0.8, kind > 0.9),
        "both borders": (kind <= 0.8, kind > 0.9),
    }[change]
    changed = chosen if among == "chosen" else torch.ones_like(chosen)
    read = torch.where(changed & hide, mask_id, tokens)
    read = torch.where(changed & swap, others, read)
    counted = {
        "chosen": chosen,
        "all": torch.ones_like(chosen),
        "masks": chosen & hide,
        "changed": chosen & (hide | swap),
        "others": ~chosen,
    }[guess]
    goal = torch.where(counted, tokens if truth == "tokens" else read, elsewhere)
    return (read, goal) if given == "read first" else (goal, read)


def _hide_in_loops(tokens, chance, kind, others, mask_id):
    read, guess = tokens.clone(), torch.zeros_like(tokens)
    for b in range(tokens.shape[0]):
        for t in range(tokens.shape[1]):
            if tokens[b, t] > 3 and chance[b, t] < 0.15:
                guess[b, t] = tokens[b, t]
                if kind[b, t] < 0.8:
                    read[b, t] = mask_id
                elif kind[b, t] >= 0.9:
                    read[b, t] = others[b, t]
    return read, guess


def _hide_by_index(tokens, chance, kind, others, mask_id):
    at = torch.nonzero((chance < 0.15) & (tokens > 3), as_tuple=True)
    new = torch.where(kind[at] < 0.9, tokens[at], others[at])
    new[kind[at] < 0.8] = mask_id
    read = tokens.clone()
    read[at] = new
    return read, torch.zeros_like(tokens).index_put(at, tokens[at])


def _hiding(seed, batch, steps, mask_id, pads):
    """A probe in which all kinds of positions occur, near the limits 0.15, 0.8 and 0.9, too."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(RESERVED, mask_id, (batch, steps), generator=generator)
    others = (tokens - RESERVED + 2) % (mask_id - RESERVED) + RESERVED
    tokens[:, 0], tokens[-1, steps - pads :] = 1, 0
    tokens[0, 1:4] = torch.tensor([2, 3, 4])
    chance = torch.rand((batch, steps), generator=generator).mul(0.3).round(decimals=3)
    chance[:, 0] = chance[-1, steps - pads :] = chance[0, 1:4] = 0.01
    kind = torch.tensor([0.5, 0.85, 0.95, 0.3, 0.92, 0.81, 0.7, 0.88])
    kind = kind.repeat(batch * steps)[: batch * steps].view(batch, steps)
    return tokens, chance, kind, others, mask_id


@exercise(
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=2,
    trains="masked-token training",
    text="""
    Prepare a batch for masked-token training. A token is chosen where `chance` is below 0.15,
    unless it is reserved (ids 0 to 3). Of the chosen ones, those with `kind` below 0.8 are read as
    `mask_id`, those with `kind` of 0.9 or more as the token in `others`, and the rest as they are.
    The targets are the true tokens at chosen positions, and 0 (padding, no loss) everywhere else.
    """,
    reference=_hide,
    probes=[
        (
            torch.tensor([[1, 5, 8, 6, 7, 9, 0]]),
            torch.tensor([[0.10, 0.02, 0.14, 0.60, 0.05, 0.15, 0.01]]),
            torch.tensor([[0.50, 0.30, 0.85, 0.20, 0.95, 0.10, 0.92]]),
            torch.tensor([[7, 6, 9, 8, 5, 10, 4]]),
            11,
        ),
        _hiding(111, 3, 9, 12, 2),
        _hiding(112, 4, 13, 20, 5),
        (  # in float64, where a 0.9 read with .tolist() or float() is still 0.9
            torch.tensor([[5, 8, 6, 7, 9, 10, 4]]),
            torch.tensor([[0.02, 0.05, 0.10, 0.14, 0.15, 0.01, 0.08]], dtype=torch.float64),
            torch.tensor([[0.80, 0.90, 0.79, 0.91, 0.80, 0.85, 0.90]], dtype=torch.float64),
            torch.tensor([[7, 6, 9, 8, 5, 4, 10]]),
            11,
        ),
    ],
    mistakes=[
        wrong(
            "85 % of the tokens are chosen",
            "masked tokens",
            "Chosen are the tokens whose chance lies below 0.15.",
            choose="above",
        ),
        wrong(
            "a chance of 0.15 itself is enough",
            "masked tokens",
            "Chosen are the tokens whose chance lies below 0.15: < and not <=.",
            choose="at most",
        ),
        wrong(
            "reserved tokens are chosen, too",
            "masked tokens",
            "Padding and <bos> are no words: leave ids 0 to 3 alone.",
            {"reserved": "but padding"},
            {"reserved": "but padding and bos"},
            reserved="chosen",
        ),
        wrong(
            "every chosen token becomes the mask",
            "masked tokens",
            "One in ten becomes another token and one in ten stays, or the model could trust "
            "every word that is no mask.",
            change="mask only",
        ),
        wrong(
            "no chosen token becomes another one",
            "masked tokens",
            "With a kind of 0.9 or more a chosen token is read as the one in others.",
            change="never another",
        ),
        wrong(
            "no chosen token stays as it is",
            "masked tokens",
            "With a kind from 0.8 to 0.9 a chosen token is read unchanged.",
            {"change": "mask or another"},
            change="never the same",
        ),
        wrong(
            "the shares of mask, other and unchanged are mixed up",
            "masked tokens",
            "80 % mask, 10 % another token, 10 % unchanged.",
            {"change": "the middle"},
            {"change": "the middle, other borders"},
            {"change": "exchanged"},
            change="swapped",
        ),
        wrong(
            "a border stands on the wrong side",
            "masked tokens",
            "Below 0.8 is < 0.8, and 0.9 or more is >= 0.9: a kind of 0.8 itself leaves the token "
            "as it is, one of 0.9 replaces it.",
            {"change": "0.9 kept"},
            {"change": "both borders"},
            change="0.8 masked",
        ),
        wrong(
            "every position is a target",
            "masked tokens",
            "Where nothing was chosen the target is 0, so that the loss leaves it out.",
            guess="all",
        ),
        wrong(
            "only masked positions are targets",
            "masked tokens",
            "Chosen tokens that were replaced or left as they are count as well.",
            guess="masks",
        ),
        wrong(
            "only changed positions are targets",
            "masked tokens",
            "A chosen token that is left as it is has a target as well.",
            guess="changed",
        ),
        wrong(
            "the targets are the positions that were not chosen",
            "masked tokens",
            "To be guessed is what was chosen.",
            guess="others",
        ),
        wrong(
            "the targets hold what the model reads",
            "masked tokens",
            "The targets are the true tokens, from before anything was hidden.",
            truth="read",
        ),
        wrong(
            "tokens that were not chosen are changed, too",
            "masked tokens",
            "Of the chosen ones 80 % are masked and 10 % replaced; all others are read as "
            "they are.",
            among="all",
        ),
        wrong(
            "id 4 is taken to be reserved",
            "off by one",
            "Ids 0 to 3 are reserved, so 4 is the first word.",
            reserved="one more",
        ),
        wrong(
            "the targets elsewhere are -100",
            "masked tokens",
            "That is what torch's cross_entropy ignores by itself; here padding, 0, marks no loss.",
            {"elsewhere": -1},
            elsewhere=-100,
        ),
        wrong(
            "the two results are given in the wrong order",
            "masked tokens",
            "First what the model reads, then what it has to guess.",
            given="guess first",
        ),
        wrong(
            "no chosen token becomes the mask",
            "masked tokens",
            "With a kind below 0.8 a chosen token is read as mask_id; a second torch.where "
            "must start from what the first has made.",
            change="never the mask",
        ),
    ],
    hints=[
        "First a boolean tensor: which tokens are chosen? Two conditions, joined by &.",
        "torch.where(condition, a, b) takes a where the condition holds and b elsewhere.",
        "Read: start from the tokens, put the mask in, then the others. Targets: one more where.",
    ],
    right_variants=[
        _hide_in_loops,
        _hide_by_index,
        lambda t, c, k, o, m: (
            lambda chosen: (
                t.masked_fill(chosen & (k < 0.8), m).where(~(chosen & (k >= 0.9)), o),
                t * chosen,
            )
        )(c.lt(0.15) & t.ge(4)),
    ],
)
def hide_tokens(tokens, chance, kind, others, mask_id):
    """What the model reads and what it has to guess.

    tokens, others: (B, T) ids, chance, kind: (B, T) random numbers from 0 to 1.
    Returns two (B, T) tensors of ids.
    """
    chosen = (chance < 0.15) & (tokens >= 4)
    read = torch.where(chosen & (kind < 0.8), mask_id, tokens)
    read = torch.where(chosen & (kind >= 0.9), others, read)
    return read, torch.where(chosen, tokens, 0)


def _pairs(ids, length, *, shift=1, end="next", step=0, count=0, cut="rows"):
    pieces = (len(ids) - 1 + step) // (length + step)
    if isinstance(count, int):
        pieces += count
    else:
        pieces = len(ids) // length - (count == "whole ones, less one")
    if cut == "no last target":
        pieces = len(ids) // length
        both = (x[: pieces * length] for x in (ids, ids[max(shift, 0) :]))
        return tuple(part.reshape(pieces, length) for part in both)
    if cut == "inside":
        piece = ids[: len(ids) // length * length].view(-1, length)
        return piece[:, :-1], piece[:, 1:]
    if cut == "rolled":
        pieces = len(ids) // length
        both = (x[: pieces * length].view(pieces, length) for x in (ids, ids.roll(-shift)))
        return tuple(both)
    if cut == "sliding, not shifted":
        return ids.unfold(0, length, 1), ids.unfold(0, length, 1)
    if cut == "sliding":
        at = (torch.arange(len(ids) - 1) + shift).clamp(0, len(ids) - 1)
        return ids[:-1].unfold(0, length, 1), ids[at].unfold(0, length, 1)
    if cut == "padded":
        ids = torch.cat([ids, ids.new_zeros(-(len(ids) - 1) % length)])
        pieces = (len(ids) - 1) // length
    if cut == "columns":
        both = (ids[: pieces * length], ids[1 : pieces * length + 1])
        inputs, targets = (part.view(length, pieces).T for part in both)
        return inputs, inputs.roll(-1, 1) if end == "wrapped" else targets
    inputs, targets = [], []
    for i in range(pieces):
        start = i * (length + step)
        piece = ids[start : start + length]
        inputs.append(piece)
        if end == "wrapped":
            targets.append(piece.roll(-1))
        elif end == "one":
            targets.append(ids[start + length])
        else:
            at = (torch.arange(start, start + length) + shift).clamp(0, len(ids) - 1)
            targets.append(ids[at])
    inputs, targets = torch.stack(inputs), torch.stack(targets)
    return (targets, inputs) if cut == "exchanged" else (inputs, targets)


def _pairs_by_view(ids, length):
    n = (len(ids) - 1) // length
    return ids[: n * length].view(n, length), ids[1 : n * length + 1].view(n, length)


def _pairs_by_unfold(ids, length):
    pieces = ids.unfold(0, length + 1, length)
    return pieces[:, :-1], pieces[:, 1:]


def _pairs_in_loops(ids, length):
    starts = range(0, len(ids) - length, length)
    rows = [[(int(ids[s + t]), int(ids[s + t + 1])) for t in range(length)] for s in starts]
    both = torch.tensor(rows)
    return both[..., 0], both[..., 1]


@exercise(
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=1,
    trains="inputs and targets of a language model",
    text="""
    Cut a text into pieces of `length` tokens to train a language model: the inputs, and for each
    input token its target, the token that follows in the text. The next piece starts where the last
    one ended. What remains at the end and does not fill a piece is left out.
    """,
    reference=_pairs,
    probes=[
        (torch.tensor([3, 1, 4, 1, 5, 29, 2]), 3),
        (torch.tensor([3, 8, 4, 6, 5, 9, 2, 7, 1, 43, 11, 12]), 4),
        (torch.arange(70, 43, -1), 5),
    ],
    mistakes=[
        wrong(
            "the targets are the inputs",
            "off by one",
            "The target is the next token: a model that may copy its input learns nothing.",
            shift=0,
        ),
        wrong(
            "the targets are two tokens ahead",
            "off by one",
            "The target is the very next token.",
            shift=2,
        ),
        wrong(
            "the targets are the tokens before",
            "off by one",
            "A language model predicts what follows, not what came before.",
            shift=-1,
        ),
        wrong(
            "the last target is the first token of the piece",
            "off by one",
            "Rolling a piece brings its own first token to the end; the target is the first "
            "token of the next piece.",
            {"end": "wrapped", "count": "whole ones"},
            end="wrapped",
        ),
        wrong(
            "one token is lost between two pieces",
            "off by one",
            "The last target of a piece is also the first input of the next one.",
            step=1,
        ),
        wrong(
            "two pieces share a token",
            "off by one",
            "The next piece starts length tokens later, not length - 1.",
            step=-1,
        ),
        wrong(
            "the last whole piece is missing",
            "off by one",
            "A piece needs length inputs and one more token for the last target.",
            {"count": "whole ones, less one"},
            count=-1,
        ),
        wrong(
            "the last piece has no last target",
            "off by one",
            "The last input needs a token behind it: (N - 1) // length pieces, not N // length.",
            cut="no last target",
            end="next",
            step=0,
            count=0,
        ),
        wrong(
            "inputs and targets are cut out of one piece",
            "off by one",
            "Then each piece has length - 1 inputs, and between two pieces a target is lost: the "
            "last target is the token behind the piece.",
            cut="inside",
            shift=1,
        ),
        wrong(
            "a piece starts at every token",
            "off by one",
            "The next piece starts where the last one ended, length tokens later.",
            cut="sliding",
        ),
        wrong(
            "the rest is filled up with padding",
            "length",
            "What does not fill a piece is left out.",
            cut="padded",
        ),
        wrong(
            "the text runs down the columns",
            "position",
            "Each row is a piece of the text: reshape to (pieces, length).",
            cut="columns",
            shift=1,
        ),
        wrong(
            "only the token behind the piece is a target",
            "teacher forcing",
            "Each of the `length` input tokens has its own target.",
            end="one",
        ),
        wrong(
            "a piece starts at every token, and the targets are the inputs",
            "off by one",
            "The next piece starts length tokens later, and the target is the next token.",
            cut="sliding, not shifted",
            shift=0,
        ),
        wrong(
            "the first token of the text becomes the last target",
            "off by one",
            "roll brings it round to the end: the last token of the text has no next one, so "
            "(N - 1) // length pieces can be made.",
            cut="rolled",
            shift=1,
        ),
        wrong(
            "the text is rolled the wrong way",
            "off by one",
            "roll(1) brings the last token to the front, so that each target is the token before. "
            "And the last token has no next one: (N - 1) // length pieces can be made.",
            cut="rolled",
            shift=-1,
            end="next",
            step=0,
            count=0,
        ),
        wrong(
            "inputs and targets are exchanged",
            "role of q, k, v",
            "First what is read, then what follows each token of it.",
            cut="exchanged",
        ),
    ],
    hints=[
        "Write the text twice, one below the other, the second time without its first token.",
        "How many pieces are there, if the last target must exist?",
        "Both tensors come from one cut: first n * length tokens, reshaped to (n, length).",
    ],
    right_variants=[_pairs_by_view, _pairs_by_unfold, _pairs_in_loops],
)
def next_token_pairs(ids, length):
    """Inputs and targets of a language model.

    ids: (N,) the text. Returns two tensors (pieces, length).
    """
    pieces = (len(ids) - 1) // length
    inputs = ids[: pieces * length].reshape(pieces, length)
    targets = ids[1 : pieces * length + 1].reshape(pieces, length)
    return inputs, targets


def _top_k(logits, temperature, k, *, scale="divide", keep="largest", extra=0, cut="inf", dim=-1,
           place="back"):  # fmt: skip
    factor = {"divide": 1 / temperature, "multiply": temperature, "none": 1.0}[scale]
    scores = logits * factor
    if cut == "twice":
        scores = logits.softmax(-1) * factor
    if keep.startswith("down the batch"):  # an error, unless there are k rows
        found = scores.topk(k, dim=0).values
        smallest = found[-1:] if keep == "down the batch" else found[:, -1:]
        return scores.masked_fill(scores < smallest, -math.inf).softmax(-1)
    best = scores.topk(k + extra, dim=-1, largest=keep == "largest").indices
    kept = torch.zeros_like(scores, dtype=torch.bool).scatter(-1, best, True)
    if keep in ("batch", "first row"):
        smallest = scores.topk(k, dim=-1).values[:, -1]
        kept = scores >= (smallest.min() if keep == "batch" else smallest[0])
    if place == "packed":
        return scores.topk(k, dim=-1).values.softmax(-1)
    if cut == "one sum":
        weights = scores.softmax(-1) * kept
        return weights / weights.sum()
    if cut == "zero":
        return scores.masked_fill(~kept, 0.0).softmax(dim)
    if cut == "after":
        return scores.softmax(dim) * kept
    if cut == "none":
        return scores.softmax(dim)
    if cut == "unshifted":
        return unshifted(scores, kept)
    if cut in NOT_LOW:
        return lowered(scores, ~kept, cut).softmax(dim)
    return scores.masked_fill(~kept, -math.inf).softmax(dim).nan_to_num()


def _top_k_by_renormalising(logits, temperature, k):
    probs = torch.softmax(logits / temperature, dim=-1)
    smallest = probs.sort(descending=True).values[:, k - 1, None]
    kept = probs * (probs >= smallest)
    return kept / kept.sum(-1, keepdim=True)


def _top_k_row_by_row(logits, temperature, k):
    rows = []
    for row in logits:
        values, at = row.topk(k)
        rows.append(torch.zeros_like(row).index_add(0, at, F.softmax(values / temperature, 0)))
    return torch.stack(rows)


def _top_k_by_hand(logits, temperature, k):
    out = []
    for row in logits.tolist():
        best = sorted(range(len(row)), key=lambda v: -row[v])[:k]
        weights = {v: math.exp((row[v] - row[best[0]]) / temperature) for v in best}
        out.append([weights.get(v, 0.0) / sum(weights.values()) for v in range(len(row))])
    return torch.tensor(out)


@exercise(
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="temperature and top-k",
    text="""
    Turn logits into the probabilities to draw the next token from: divide by the temperature, keep
    only the `k` most probable tokens of each row, and let their probabilities sum to 1. All other
    tokens get exactly 0.
    """,
    reference=_top_k,
    probes=[
        (torch.tensor([[2.0, 0.5, 1.0, -1.0]]), 0.5, 2),
        (draw(113, (3, 7))[0], 2.0, 3),
        (draw(114, (2, 6), scale=2.0)[0], 0.7, 4),
        (draw(121, (2, 5), scale=2.0)[0] - 30_000.0, 2.0, 2),
    ],
    mistakes=[
        wrong(
            "the logits are multiplied by the temperature",
            "sampling",
            "Divide: a low temperature makes differences larger and the choice surer.",
            scale="multiply",
        ),
        wrong(
            "the temperature changes nothing",
            "sampling",
            "It divides the logits; dividing probabilities and normalising again undoes it.",
            scale="none",
        ),
        wrong(
            "the k least probable tokens are kept",
            "sampling",
            "Keep the k largest logits.",
            keep="smallest",
        ),
        wrong(
            "one token too many is kept",
            "off by one",
            "Exactly k tokens of each row stay.",
            extra=1,
        ),
        wrong(
            "one token too few is kept",
            "off by one",
            "Exactly k tokens of each row stay.",
            extra=-1,
        ),
        wrong(
            "the other logits are set to 0",
            "sampling",
            "exp(0) is 1, not 0: hide with -inf, before the softmax.",
            cut="zero",
        ),
        not_low_enough("cut", "at -1", "at -100"),
        not_shifted(cut="unshifted", dim=-1),
        wrong(
            "what is left is not normalised again",
            "normalisation",
            "The probabilities of the kept tokens must sum to 1.",
            cut="after",
        ),
        wrong(
            "all tokens are kept",
            "sampling",
            "Only k tokens of each row may be drawn.",
            cut="none",
        ),
        wrong(
            "the softmax runs over the batch",
            "softmax axis",
            "Each row is a distribution over the vocabulary: softmax over the last axis.",
            dim=0,
        ),
        wrong(
            "one threshold holds for the whole batch",
            "sampling",
            "Each row has its own k-th largest logit.",
            {"keep": "first row"},
            keep="batch",
        ),
        wrong(
            "the k best are looked for down the batch",
            "softmax axis",
            "The tokens of one row compete: topk over the last axis.",
            {"keep": "down the batch, last column"},
            keep="down the batch",
            cut="inf",
        ),
        wrong(
            "probabilities are taken for logits",
            "sampling",
            "Temperature and cut work on the logits; a softmax of probabilities is nearly even.",
            cut="twice",
        ),
        wrong(
            "only the k kept probabilities are given",
            "sampling",
            "The result is (B, V): every token stays at its place, the others get 0.",
            place="packed",
        ),
        wrong(
            "all rows are divided by one sum",
            "normalisation",
            "Each row is a distribution of its own, so it is divided by its own sum.",
            cut="one sum",
        ),
    ],
    hints=[
        "The temperature does not change which tokens are the k best.",
        "topk(k).values[:, -1:] is the smallest logit that stays.",
        "masked_fill everything smaller with -inf, then softmax.",
    ],
    right_variants=[_top_k_by_renormalising, _top_k_row_by_row, _top_k_by_hand],
)
def next_token_probabilities(logits, temperature, k):
    """Probabilities of the next token.

    logits: (B, V), temperature: above 0, k: in 1..V. Returns (B, V), rows that sum to 1.
    """
    smallest = logits.topk(k, dim=-1).values[:, -1:]  # (B, 1)
    kept = logits.masked_fill(logits < smallest, -math.inf)
    return torch.softmax(kept / temperature, dim=-1)


def _nucleus(probs, p, *, order="falling", limit="before", place="back", left="normalised"):
    if order == "as given":
        ordered, at = probs, torch.arange(probs.shape[-1]).expand_as(probs)
    else:
        ordered, at = probs.sort(dim=-1, descending=order == "falling")
    sums = ordered.cumsum(-1)
    before = sums - ordered
    lengths = (before < p).sum(-1, keepdim=True)
    rank = torch.arange(probs.shape[-1])
    kept = {
        "before": before < p,
        "ties": ordered >= ordered.gather(-1, lengths - 1),
        "longest": (rank < lengths.max()).expand_as(probs),
        "first row": (rank < lengths[0]).expand_as(probs),
        "down the batch": ordered.cumsum(0) - ordered < p,
        "1 - p": before < 1 - p,
        "of the best": ordered >= p * ordered.amax(-1, keepdim=True),
        "of the number": (rank < math.ceil(p * probs.shape[-1])).expand_as(probs),
        "at most": before <= p,
        "after": sums <= p,
        "below": sums < p,
        "after, but one": (sums <= p) | (rank == 0),
        "below, but one": (sums < p) | (rank == 0),
        "one more": before - F.pad(ordered, (1, 0))[..., :-1] < p,
        "each": ordered >= p,
        "never": before < 2.0,
    }[limit]
    if place == "mask not moved":
        return probs * kept / (probs * kept).sum(-1, keepdim=True)
    if left == "softmax with zeros":
        new = torch.zeros_like(probs).scatter(-1, at, ordered * kept)
        return new.softmax(-1)
    if left == "softmax":
        return torch.zeros_like(probs).scatter(
            -1, at, ordered.masked_fill(~kept, -math.inf).softmax(-1).nan_to_num()
        )
    ordered = ordered * kept
    if left == "one sum":
        ordered = ordered / ordered.sum()
    if left == "normalised":
        ordered = ordered / ordered.sum(-1, keepdim=True)
    if place == "sorted":
        return ordered
    if place == "gathered":
        return ordered.gather(-1, at)
    return torch.zeros_like(probs).scatter(-1, at, ordered)


def _nucleus_in_loops(probs, p):
    out = torch.zeros_like(probs)
    for row, new in zip(probs, out):
        total = 0.0
        for v in row.argsort(descending=True):
            new[v] = row[v]
            total += float(row[v])
            if total >= p:
                break
    return out / out.sum(-1, keepdim=True)


def _nucleus_by_count(probs, p):
    sums = probs.sort(descending=True).values.cumsum(-1)
    size = (sums < p).sum(-1) + 1  # how many tokens stay
    rank = probs.argsort(-1, descending=True).argsort(-1)
    return F.normalize(probs * (rank < size[:, None]), p=1, dim=-1)


def _nucleus_by_comparing(probs, p):
    larger = probs[:, None] > probs[:, :, None]  # (B, v, w): is w more probable than v?
    larger = larger | (probs[:, None] == probs[:, :, None]).tril(-1)  # or as probable, and earlier
    before = (probs[:, None] * larger).sum(-1)
    kept = torch.where(before < p, probs, 0.0)
    return kept / kept.sum(1, keepdim=True)


def play_nucleus(answer, probs, p):
    """The result, with what equally probable tokens get in falling order: any of them may stay."""
    given = probs.clone()
    result = answer(probs, p)
    if not torch.is_tensor(result) or result.shape != given.shape:
        return result
    result = result.clone()
    for row, old in zip(result, given):
        for value in old.unique():
            row[old == value] = row[old == value].sort(descending=True).values
    return result


def _distributions(seed, rows, size):
    return torch.softmax(draw(seed, (rows, size), scale=1.5)[0], dim=-1)


@exercise(
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=3,
    trains="top-p, or nucleus, sampling",
    text="""
    Top-p: from the most probable token on, keep tokens until those kept have a probability of at
    least `p` together, the one that reaches `p` included. Let the kept ones sum to 1; the others
    get 0. Every token stays at its place.
    """,
    reference=_nucleus,
    play=play_nucleus,
    probes=[
        (torch.tensor([[0.15, 0.4, 0.1, 0.35]]), 0.7),
        (_distributions(115, 3, 7), 0.6),
        (_distributions(116, 2, 9), 0.85),
        (torch.tensor([[0.03, 0.07, 0.9], [0.2, 0.5, 0.3]]), 0.45),
        (torch.tensor([[0.3, 0.4, 0.3], [0.25, 0.25, 0.5]]), 0.6),
        (torch.tensor([[0.125, 0.5, 0.125, 0.25]]), 0.5),  # reached exactly
    ],
    mistakes=[
        wrong(
            "the token that reaches p is dropped",
            "sampling",
            "The kept tokens must reach p: a token stays if those before it have not reached it.",
            {"limit": "below"},
            {"limit": "after, but one"},
            {"limit": "below, but one"},
            limit="after",
        ),
        wrong(
            "one token too many is kept",
            "off by one",
            "Stop with the token that reaches p.",
            limit="one more",
        ),
        wrong(
            "a token more is kept where the sum is exactly p",
            "off by one",
            "At least p is enough: a token stays only while those before it have less than p.",
            limit="at most",
        ),
        wrong(
            "each token is compared with p on its own",
            "sampling",
            "It is the running sum that must reach p.",
            limit="each",
        ),
        wrong(
            "all tokens are kept",
            "sampling",
            "Tokens after the one that reaches p get 0.",
            limit="never",
        ),
        wrong(
            "the sum starts at the least probable token",
            "sampling",
            "Sort in falling order: the most probable tokens come first.",
            order="rising",
        ),
        wrong(
            "the tokens are not sorted",
            "sampling",
            "Sort first: the most probable tokens come first, wherever they stand.",
            order="as given",
        ),
        wrong(
            "the result is in sorted order",
            "sampling",
            "Put each probability back to the place of its token (scatter).",
            place="sorted",
        ),
        wrong(
            "what is left is not normalised again",
            "normalisation",
            "The probabilities of the kept tokens must sum to 1.",
            left="as it is",
        ),
        wrong(
            "tokens tied with the last kept one stay, too",
            "sampling",
            "Keep tokens one by one until p is reached; an equally probable one behind that goes.",
            limit="ties",
        ),
        wrong(
            "one number of kept tokens holds for the whole batch",
            "sampling",
            "A row of sure probabilities reaches p sooner: each row has its own cut.",
            {"limit": "first row"},
            limit="longest",
        ),
        wrong(
            "the running sum goes down the batch",
            "softmax axis",
            "Each row has its own sum over the tokens, the last axis.",
            limit="down the batch",
        ),
        wrong(
            "a share of p is cut away, not kept",
            "sampling",
            "The kept tokens reach p together; what is cut away is the rest.",
            limit="1 - p",
        ),
        wrong(
            "tokens are compared with a share of the best",
            "sampling",
            "That is min-p sampling; top-p looks at the running sum.",
            limit="of the best",
        ),
        wrong(
            "p is taken for a share of the vocabulary",
            "sampling",
            "p is a probability: how many tokens reach it differs from row to row.",
            limit="of the number",
        ),
        wrong(
            "a mask in sorted order is laid on unsorted tokens",
            "sampling",
            "Bring what is kept back to the places of the tokens first (scatter).",
            place="mask not moved",
        ),
        wrong(
            "the order is applied once more, not undone",
            "sampling",
            "gather with the indices of sort sorts; scatter with the same indices undoes it.",
            place="gathered",
        ),
        wrong(
            "a softmax is taken of the probabilities",
            "normalisation",
            "They are no logits: divide them by their sum.",
            {"left": "softmax with zeros"},
            left="softmax",
        ),
        wrong(
            "all rows are divided by one sum",
            "normalisation",
            "Each row must sum to 1, so it is divided by its own sum.",
            left="one sum",
        ),
    ],
    hints=[
        "sort(descending=True) gives the values and where each of them stood.",
        "cumsum minus the value itself: what the more probable tokens have together.",
        "Keep where that is below p, set the rest to 0, scatter back, divide by the sum.",
    ],
    right_variants=[_nucleus_in_loops, _nucleus_by_count, _nucleus_by_comparing],
)
def nucleus(probs, p):
    """The smallest set of most probable tokens that reaches p.

    probs: (B, V), rows that sum to 1, p: above 0, at most 1. Returns (B, V), rows that sum to 1.
    """
    ordered, place = probs.sort(dim=-1, descending=True)
    before = ordered.cumsum(dim=-1) - ordered  # what the more probable tokens have together
    ordered = torch.where(before < p, ordered, 0.0)
    kept = torch.zeros_like(probs).scatter(-1, place, ordered)
    return kept / kept.sum(dim=-1, keepdim=True)


def _perplexity(
    logits,
    targets,
    pad,
    *,
    base="e",
    per="token",
    real="both",
    sign=-1,
    inner="log",
    dim=-1,
    pick="target",
    shift=False,
    zero=False,
    viewed=False,
):
    pad = 0 if zero else pad
    if viewed:
        logits = logits.reshape(len(logits), logits.shape[2], -1).mT
    if shift:
        logits, targets = logits[:, :-1], targets[:, 1:]
    every = logits.softmax(dim).log() if inner == "log of 0" else logits.log_softmax(dim)
    log_probs = {
        "target": every.gather(-1, targets[..., None]).squeeze(-1),
        "best": every.amax(-1),
        "entropy": (every.exp() * every).sum(-1),
    }[pick]
    counted = targets != pad
    above = counted if real in ("both", "above") else torch.ones_like(counted)
    below = counted if real in ("both", "below") else torch.ones_like(counted)
    scores = log_probs if inner in ("log", "log of 0") else log_probs.exp()
    scores = scores * above
    if per == "sentence":
        means = scores.sum(-1) / below.sum(-1)
    elif per == "mean of means":
        means = (scores.sum(-1) / below.sum(-1)).mean()
    elif per == "text":
        means = scores.sum() / len(scores)
    elif per == "sum":
        means = scores.sum()
    else:
        means = scores.sum() / below.sum()
    if inner == "probability":
        return (1 / means).mean()
    if inner == "product":
        chances = torch.where(counted, log_probs.exp(), 1.0)
        return chances.prod() ** (-1 / counted.sum())
    if inner == "exp first":
        return ((sign * log_probs).exp() * above).sum() / below.sum()
    means = sign * means
    bases = {"e": means.exp(), "2": 2.0**means, "none": means}
    bases["e of bits"] = (means / math.log(2)).exp()
    return bases[base].mean()


def _perplexity_by_cross_entropy(logits, targets, pad):
    return F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=pad).exp()


def _perplexity_in_bits(logits, targets, pad):
    bits = []
    for row, words in zip(logits.double(), targets):
        for scores, word in zip(row, words):
            if word != pad:
                bits.append(-float(torch.log_softmax(scores, 0)[word]) / math.log(2))
    return 2 ** (sum(bits) / len(bits))


def _perplexity_as_root(logits, targets, pad):
    real = targets != pad
    chances = logits.double().softmax(-1)[real].gather(1, targets[real][:, None])
    return float((chances ** (-1 / len(chances))).prod())


def _texts(seed, batch, steps, size, lengths, pad=0):
    logits = draw(seed, (batch, steps, size), scale=1.5)[0]
    targets = draw(seed + 50, (batch, steps))[0].mul(100).long().abs() % (size - 1) + 1
    for row, length in zip(targets, lengths):
        row[length:] = 0
    targets[targets == pad], targets[targets == 0] = -1, pad  # 0 and pad change places
    return logits, targets.clamp(min=0), pad


def _far_apart():
    """A text of which one token is next to impossible."""
    logits = draw(122, (1, 5, 5))[0]
    logits[0, 1] = torch.tensor([-1.0, 150.0, 0.0, 1.0, -2.0])
    return logits, torch.tensor([[1, 2, 4, 2, 3]])


@exercise(
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="perplexity",
    text="""
    The perplexity of a model on some texts: e to the power of the mean negative log-probability of
    a token. Every real token counts once; padding counts nowhere. Logits may lie hundreds apart.
    """,
    reference=_perplexity,
    probes=[
        _texts(117, 2, 3, 4, [3, 1]),
        _texts(121, 2, 80, 3, [80, 72]),
        _texts(118, 3, 5, 6, [5, 2, 4]),
        _texts(119, 2, 7, 5, [3, 7]),
        _texts(120, 2, 4, 5, [4, 2], pad=2),
        (*_far_apart(), 0),
    ],
    mistakes=[
        wrong(
            "the logarithm is taken of a softmax that is 0",
            "log probabilities",
            "Far below the largest logit a probability is 0 in float32, and its logarithm "
            "infinite: log_softmax takes the logits themselves.",
            inner="log of 0",
        ),
        wrong(
            "the exponential is missing",
            "perplexity",
            "The mean negative log-probability is the loss; perplexity is e to that power.",
            base="none",
        ),
        wrong(
            "2 is raised to a power in nats",
            "perplexity",
            "With natural logarithms the base is e, with log2 it is 2.",
            base="2",
        ),
        wrong(
            "the sign is lost",
            "log probabilities",
            "Log probabilities are negative: without the minus the result lies below 1.",
            sign=1,
        ),
        wrong(
            "the sum is taken, not the mean",
            "averaging",
            "Perplexity is per token, or longer texts would always be worse.",
            per="sum",
        ),
        wrong(
            "the perplexities of the texts are averaged",
            "averaging",
            "Take one mean over all tokens, so that every token counts alike.",
            per="sentence",
        ),
        wrong(
            "padding counts as a prediction",
            "padding in the loss",
            "Leave padding out of the sum and of the count.",
            real="neither",
        ),
        wrong(
            "padding is in the count only",
            "padding in the loss",
            "Divide by the number of real tokens.",
            real="above",
        ),
        wrong(
            "padding is in the sum only",
            "padding in the loss",
            "Sum over real tokens only.",
            real="below",
        ),
        wrong(
            "probabilities are averaged, not their logarithms",
            "perplexity",
            "Take the mean of log p, then the exponential.",
            inner="probability",
        ),
        wrong(
            "all probabilities are multiplied, and the product underflows",
            "log probabilities",
            "Of a long text the product is 0 in float32, the perplexity infinite: add logarithms.",
            inner="product",
            per="token",
        ),
        wrong(
            "the softmax runs over the positions",
            "softmax axis",
            "At each position the probabilities over the vocabulary, the last axis, sum to 1.",
            dim=1,
        ),
        wrong(
            "the means of the texts are averaged",
            "averaging",
            "Then a token of a short text counts more; take one mean over all tokens.",
            per="mean of means",
        ),
        wrong(
            "the sum is divided by the number of texts",
            "averaging",
            "Perplexity is per token: divide by the number of real tokens.",
            per="text",
        ),
        wrong(
            "the perplexities of the tokens are averaged",
            "perplexity",
            "First the mean of the negative log-probabilities, then e to that power, once.",
            inner="exp first",
        ),
        wrong(
            "e is raised to a power in bits",
            "perplexity",
            "With log2 the base is 2, with natural logarithms it is e.",
            base="e of bits",
        ),
        wrong(
            "the words are brought to the front by a reshape",
            "softmax axis",
            "That deals the logits of one position out to others: exchange the axes, with "
            "logits.transpose(1, 2).",
            viewed=True,
        ),
        wrong(
            "the target is not looked at",
            "perplexity",
            "What counts is the probability that the model gave the token that came.",
            {"pick": "entropy"},
            pick="best",
            per="token",
        ),
        wrong(
            "the targets are shifted once more",
            "off by one",
            "The target at position t belongs to the logits at position t already.",
            shift=True,
        ),
        wrong(
            "the id of padding is taken to be 0",
            "padding in the loss",
            "The vocabulary decides which id it is; here it is the argument pad.",
            zero=True,
        ),
    ],
    hints=[
        "log_softmax over the vocabulary, then gather the entries of the targets.",
        "One boolean tensor says which targets are real; it is used twice.",
        "exp(-(sum over real tokens) / (number of real tokens)).",
    ],
    right_variants=[_perplexity_by_cross_entropy, _perplexity_in_bits, _perplexity_as_root],
)
def text_perplexity(logits, targets, pad):
    """Perplexity over the real tokens.

    logits: (B, T, V), targets: (B, T) ids, pad: the id of padding. Returns one number.
    """
    log_probs = torch.log_softmax(logits, dim=-1)  # (B, T, V)
    log_probs = log_probs.gather(-1, targets[..., None]).squeeze(-1)  # (B, T)
    real = targets != pad
    return torch.exp(-log_probs[real].mean())


@exercise(
    kind="value",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=4,
    difficulty=2,
    trains="telling from two losses what a language model has learned",
    text="""
    Four language models, each with about 450 ids (ln 450 is 6.1). The losses per token:

    | | training, at the end | held out, at its lowest | held out, at the end |
    |---|---|---|---|
    | **A** | 2.1 | 2.2 | 2.2 |
    | **B** | 0.3 | 2.9 | 4.4 |
    | **C** | 6.1 | 6.1 | 6.1 |
    | **D** | 0.1 | 0.1 | 0.1 |

    Which is which? Write the four letters in this order: it has learned its text by heart, a
    position sees its own target, nothing is wrong, it has learned nothing.
    """,
    mistakes=[
        wrong(
            "the leak and learning by heart are exchanged",
            "teacher forcing",
            "What is known by heart helps on its own text only; a leak helps on held-out text.",
            answer="DBAC",
        ),
        wrong(
            "learning by heart and the sound run are exchanged",
            "teacher forcing",
            "Where nothing is wrong, the two losses stay close to each other.",
            answer="ADBC",
        ),
        wrong(
            "the leak and the sound run are exchanged",
            "teacher forcing",
            "No honest model can be so sure of the next word of a text that it has not seen.",
            answer="BADC",
        ),
        wrong(
            "the sound run and the one that learned nothing are exchanged",
            "perplexity",
            "ln 450 is the loss of a model that finds all ids equally probable.",
            answer="BDCA",
        ),
        *mixed_up(
            "BDAC",
            {
                "by heart": "What is known by heart helps on its own text only.",
                "a leak": "A leak helps on held-out text too: no honest model is so sure there.",
                "nothing wrong": "Where nothing is wrong the losses stay close, well above 0.",
                "learned nothing": "ln 450 is the loss where all ids are equally probable.",
            },
            "perplexity",
            but=("DBAC", "ADBC", "BADC", "BDCA"),
        ),
    ],
    hints=[
        "In one row the two losses are far apart. Which text is it good at?",
        "ln V is the loss of somebody who knows nothing.",
        "Two rows are left with equal losses. Which of them is possible without the answer?",
    ],
)
def diagnose_losses():
    """Four letters, in the order by heart, leak, nothing wrong, learned nothing"""
    return "BDAC"


def _spans(
    words,
    cut,
    markers,
    *,
    per="span",
    first="next",
    answer="marked",
    rest="marked",
    order="rest first",
    which="cut",
    start="right",
    end="right",
):
    if which == "left":
        cut = [not c for c in cut]
    if end == "lost":
        while cut and cut[-1]:
            words, cut = words[:-1], cut[:-1]
    read, say, spans = [], [], 0
    for i, word in enumerate(words):
        goes_on = cut[i - 1] if i or start == "wraps" else False  # cut[-1] is the last word
        begins = cut[i] and (per == "word" or not goes_on)
        ends = cut[i] and (per == "word" or i + 1 == len(words) or not cut[i + 1])
        spans += begins
        last = len(markers) - 1
        which_marker = {
            "always the first": 0,
            "from the end": max(last - max(spans - 1, 0), 0),
            "of the word": i if cut[i] else 0,
            "from the second": min(spans, last),
        }
        marker = markers[which_marker.get(first, min(max(spans - 1, 0), last))]
        if begins and rest == "marked":
            read.append(marker)
        if begins and answer == "marked":
            say.append(marker)
        if rest == "whole":
            read.append(word)
            if cut[i]:
                say.append(word)
        else:
            (say if cut[i] else read).append(word)
        if ends and answer == "marked behind":
            say.append(marker)
    if answer == "whole":
        say = list(words)
    if end == "one marker more":
        say = say + markers[spans : spans + 1]
    return (read, say) if order == "rest first" else (say, read)


def _spans_by_groups(words, cut, markers):
    read, say, left = [], [], iter(markers)
    for gone, group in itertools.groupby(zip(words, cut), key=lambda pair: bool(pair[1])):
        group = [word for word, _ in group]
        if gone:
            marker = next(left)
            read, say = [*read, marker], [*say, marker, *group]
        else:
            read += group
    return read, say


def _spans_by_index(words, cut, markers):
    starts = [i for i in range(len(words)) if cut[i] and (i == 0 or not cut[i - 1])]
    name = dict(zip(starts, markers))
    read = [name.get(i, words[i]) for i in range(len(words)) if not cut[i] or i in name]
    say = []
    for i in range(len(words)):
        say += ([name[i]] if i in name else []) + ([words[i]] if cut[i] else [])
    return read, say


def _spans_with_a_pointer(words, cut, markers):
    read, say, left, i = [], [], list(markers), 0
    while i < len(words):
        if not cut[i]:
            read.append(words[i])
            i += 1
            continue
        read.append(left[0])
        say.append(left.pop(0))
        while i < len(words) and cut[i]:
            say.append(words[i])
            i += 1
    return read, say


def play_spans(answer, words, cut, markers):
    """Two lists, whatever kind of sequence was given."""
    result = answer(list(words), list(cut), list(markers))
    if not isinstance(result, tuple) or len(result) != 2:
        return result
    return {"what is read": list(result[0]), "what has to be said": list(result[1])}


@exercise(
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=2,
    trains="span corruption",
    text="""
    Cut spans out of a sentence. `cut` says for each word whether it goes; neighbouring words that
    go form *one* span. In what is read, one marker stands in the place of each span, the first of
    `markers` for the first span, and so on. What has to be said lists every marker with the words
    of its span behind it.
    """,
    reference=_spans,
    play=play_spans,
    probes=[
        (["a", "b", "c", "d"], [False, True, True, False], ["<0>", "<1>"]),
        (
            ["we", "saw", "an", "old", "cat", "here", "."],
            [True, False, True, True, False, False, True],
            ["<0>", "<1>", "<2>", "<3>", "<4>"],
        ),
        (
            ["you", "like", "tea", "and", "cake"],
            [False, True, False, True, True],
            ["<x>", "<y>", "<z>", "<u>"],
        ),
        (["so", "it", "is"], [True, True, True], ["<0>", "<1>", "<2>"]),
        (["alone"], [False], ["<0>", "<1>"]),
    ],
    mistakes=[
        wrong(
            "each word that goes has a marker of its own",
            "masked tokens",
            "Neighbours that go form one span, and one marker stands for all of it.",
            per="word",
        ),
        wrong(
            "every span gets the first marker",
            "masked tokens",
            "The markers are used one after the other, or nobody knows which span is which.",
            first="always the first",
        ),
        wrong(
            "the markers are taken from the end",
            "masked tokens",
            "pop() takes the last one: the first marker is for the first span.",
            first="from the end",
        ),
        wrong(
            "the place of the word is taken for the number of its span",
            "masked tokens",
            "Count the spans: markers[0] is for the first, wherever it stands.",
            first="of the word",
        ),
        wrong(
            "the first marker is left out",
            "off by one",
            "markers[0] is for the first span: take the marker, then count on.",
            first="from the second",
        ),
        wrong(
            "the markers are missing from what has to be said",
            "masked tokens",
            "The answer lists each marker with its words: it says where they belong.",
            answer="bare",
        ),
        wrong(
            "the whole sentence has to be said",
            "masked tokens",
            "Only what was cut out is asked for; that makes the targets short.",
            answer="whole",
        ),
        wrong(
            "nothing marks the place of a span",
            "masked tokens",
            "In what is read a marker stands where the span was.",
            rest="bare",
        ),
        wrong(
            "the words are still there beside their markers",
            "masked tokens",
            "What is cut must not be read, or there is nothing to guess.",
            rest="whole",
        ),
        wrong(
            "the words that stay are cut",
            "mask meaning",
            "True in `cut` means that the word goes.",
            which="left",
        ),
        wrong(
            "the two results are given in the wrong order",
            "masked tokens",
            "First what is read, then what has to be said.",
            order="answer first",
        ),
        wrong(
            "a span at the end is lost",
            "off by one",
            "The sentence may end before the span does: what is collected then is still due, "
            "marker and words.",
            end="lost",
        ),
        wrong(
            "one more marker ends what has to be said",
            "masked tokens",
            "T5 does that; here each marker stands for a span, and there are no more markers "
            "than spans.",
            end="one marker more",
        ),
        wrong(
            "the marker stands behind the words of its span",
            "masked tokens",
            "What has to be said names the marker first, then the words that it stands for.",
            answer="marked behind",
        ),
        wrong(
            "the word before the first is taken to be the last",
            "off by one",
            "At i = 0, cut[i - 1] is cut[-1], the last entry: a span at the start gets no "
            "marker where the last word goes, too.",
            start="wraps",
        ),
    ],
    hints=[
        "Go from word to word. When does a new span begin?",
        "A span begins where `cut` is true and was not true one word before.",
        "Two growing lists: at the beginning of a span both get the marker, a word only one.",
    ],
    edges=[
        (
            "where there are only as many markers as spans",
            (["so", "it", "is", "here", "now"], [True, False, True, False, False], ["<0>", "<1>"]),
        )
    ],
    right_variants=[_spans_by_groups, _spans_by_index, _spans_with_a_pointer],
    allows=lambda words, cut, markers: len({*markers}) == len(markers),
)
def corrupt_spans(words, cut, markers):
    """What is read and what has to be said.

    words: a list, cut: as many booleans, markers: a list. Returns two lists.
    """
    read, say, spans = [], [], 0
    for i, word in enumerate(words):
        if cut[i] and not (i and cut[i - 1]):
            read.append(markers[spans])
            say.append(markers[spans])
            spans += 1
        (say if cut[i] else read).append(word)
    return read, say


def _prefix(prefix_lens, num_steps, *, source="seen", target="causal", extra=0, turned=False,
            lens="each", join="or", meaning="look"):  # fmt: skip
    of_all = {"each": prefix_lens, "first": prefix_lens[:1], "longest": prefix_lens.amax()}[lens]
    n = (of_all.expand_as(prefix_lens) + extra).view(-1, 1, 1, 1)
    keys, queries = torch.arange(num_steps), torch.arange(num_steps)[:, None]
    seen = {
        "seen": keys < n,
        "rows": (queries < n) & (keys < num_steps),
        "by itself only": (keys < n) & (queries < n),
        "by the target only": (keys < n) & (queries >= n),
        "not": (keys < n) & (keys > num_steps),
    }[source]
    later = {
        "causal": keys <= queries,
        "strictly": keys < queries,
        "later": keys >= queries,
        "everything": (keys <= queries) | (queries >= n),
        "not by the source": (keys <= queries) & (queries >= n) & (keys >= n),
    }[target]
    mask = seen & later if join == "and" else seen | later
    if source == "by itself only":
        mask = mask & ~((queries >= n) & (keys < n))
    mask = ~mask if meaning == "hide" else mask
    return mask.mT if turned else mask


def _prefix_by_filling(prefix_lens, num_steps):
    mask = torch.ones(len(prefix_lens), 1, num_steps, num_steps, dtype=torch.bool).tril()
    for b, n in enumerate(prefix_lens.tolist()):
        mask[b, :, :, :n] = True
    return mask


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="one stack for source and target, by a mask",
    text="""
    The *prefix language model* is a variant without a second stack: source and target stand in one
    sequence and go through *one* stack. Of sentence b the first `prefix_lens[b]` positions are the
    source. Every position, of the source or not, may look at the whole source; besides, each may
    look at itself and at what stands before it. Make its mask.
    """,
    reference=_prefix,
    probes=[
        (torch.tensor([2]), 4),
        (torch.tensor([3, 1]), 5),
        (torch.tensor([2, 5, 0, 4]), 6),
        (torch.tensor([4, 1]), 4),
    ],
    mistakes=[
        wrong(
            "it is the causal mask alone",
            "mask direction",
            "The source is known from the start: its positions may look at all of it, to the right "
            "as well.",
            source="not",
        ),
        wrong(
            "the target does not see the source",
            "mask missing",
            "What is written depends on the source, and one stack has no cross-attention.",
            source="by itself only",
        ),
        wrong(
            "the target sees its future",
            "mask direction",
            "Behind the source a position may look only at what has been written.",
            target="everything",
        ),
        wrong(
            "a position of the target does not see itself",
            "off by one",
            "Position t predicts the token at t + 1, so its own token is known.",
            target="strictly",
        ),
        wrong(
            "the source is one position too long",
            "off by one",
            "With a length of n the source is at positions 0 to n - 1.",
            extra=1,
        ),
        wrong(
            "the source is one position too short",
            "off by one",
            "With a length of n the source is at positions 0 to n - 1.",
            extra=-1,
        ),
        wrong(
            "queries and keys are exchanged",
            "mask axis",
            "Rows are queries and columns keys: the source is a block of *columns*.",
            {"turned": False, "source": "rows"},
            turned=True,
        ),
        wrong(
            "the two conditions are joined with and",
            "mask meaning",
            "A position sees the source *or* what stands before it: either is enough.",
            join="and",
        ),
        wrong(
            "a position looks at what follows it",
            "mask direction",
            "Besides the source, it may look at itself and at what stands *before* it.",
            target="later",
        ),
        wrong(
            "the mask is inverted",
            "mask meaning",
            "It is True where a key must be hidden; here True = may look.",
            meaning="hide",
        ),
        wrong(
            "all sentences get the source length of the first",
            "mask axis",
            "Each sentence has its own length: (B, 1, 1, 1) against the keys.",
            lens="first",
        ),
        wrong(
            "all sentences get the longest source length",
            "mask axis",
            "Where the source is shorter, the future is seen: compare each with its own length.",
            lens="longest",
        ),
    ],
    hints=[
        "Draw it for 4 positions, 2 of them source. Which cells does the causal mask lack?",
        "Two conditions on (query, key); a cell is True if the one or the other holds.",
        "prefix_lens[:, None, None, None] compares with the positions of the keys.",
    ],
    right_variants=[
        _prefix_by_filling,
        lambda lens, t: torch.stack(
            [
                torch.tensor([[[k < n or k <= q for k in range(t)] for q in range(t)]])
                for n in lens.tolist()
            ]
        ),
        lambda lens, t: (
            ~(
                (torch.arange(t) > torch.arange(t)[:, None])
                & (torch.arange(t) >= lens[:, None, None, None])
            )
        ),
    ],
)
def prefix_mask(prefix_lens, num_steps):
    """The mask of a prefix language model, True = may look.

    prefix_lens: (B,), each from 0 to num_steps; num_steps: T. Returns a boolean (B, 1, T, T).
    """
    keys = torch.arange(num_steps)  # (T,)
    source = keys < prefix_lens[:, None, None, None]  # (B, 1, 1, T)
    return source | (keys <= keys[:, None])


def _looking(kind, steps, seed):
    """A model of given eyesight: (1, T) ids -> (1, T, 3) logits."""
    position = torch.arange(steps)
    may = {
        "causal": position <= position[:, None],
        "both sides": torch.ones(steps, steps, dtype=torch.bool),
        "one ahead": position <= position[:, None] + 1,
        "first only": (position == 0) | (position == position[:, None]),
        "blind spot": (position <= position[:, None]) & (position != 1),
        "itself": position == position[:, None],
    }[kind]
    weights = torch.rand(steps, steps, generator=torch.Generator().manual_seed(seed)) + 0.5
    weights = (64 * weights).round() / 64  # sums without rounding: what cancels is 0
    # nothing shows in logit 0, or the changes of all logits sum to 0; some fall, some are small
    spread = torch.tensor([0.0, 1.0, 0.5] if seed % 2 else [1.0, 0.0, -1.0])
    special = {
        4: spread.abs() * torch.tensor([1.0, 0.0, 0.5]),
        6: -spread.abs(),
        7: 2**-13 * spread,
    }
    spread = special.get(seed, spread)
    own = torch.tensor([12.0, 0.0, 0.0]) if seed < 6 else torch.zeros(3)  # the best may change

    def model(tokens):
        if tokens.shape[-1] != steps:
            raise ValueError(f"this model reads {steps} tokens, got {tokens.shape[-1]}")
        return ((weights * may) @ tokens.view(-1, steps, 1).double().float()) * spread + own

    return model


def _sees(model, tokens, other, *, turned=False, itself=True, restore=True, judged="logits",
          where="each", meaning="changed"):  # fmt: skip
    steps, before = tokens.shape[1], model(tokens)
    seen, poked = torch.zeros(steps, steps, dtype=torch.bool), tokens.clone()
    for s in range(steps):
        poked = tokens.clone() if restore else poked
        poked[0, s] = other
        after = model(poked)
        if judged == "best":
            seen[:, s] = (before.argmax(-1) != after.argmax(-1))[0]
        elif judged == "logit 0":
            seen[:, s] = (before != after)[0, :, 0]
        elif judged == "summed":
            seen[:, s] = (before - after).sum(-1).abs()[0] > 1e-5
        elif judged == "all":
            seen[:, s] = (before != after).all(-1)[0]
        elif judged in ("rising", "falling"):
            seen[:, s] = ((after > before) if judged == "rising" else after < before).any(-1)[0]
        elif judged == "large":
            seen[:, s] = (before - after).abs().amax(-1)[0] > 0.05
        else:
            seen[:, s] = (before != after).any(-1)[0]
        if where == "last":
            seen[:-1, s] = False
    if not itself:
        seen.fill_diagonal_(False)
    seen = seen if meaning == "changed" else ~seen
    return seen.T if turned else seen


def _sees_in_a_batch(model, tokens, other):
    steps = tokens.shape[1]
    poked = tokens.repeat(steps, 1)
    poked.fill_diagonal_(other)
    after = torch.cat([model(row[None]) for row in poked])  # (T, T, V): row s has s changed
    return ~torch.isclose(after, model(tokens), rtol=0, atol=1e-6).all(-1).T


def play_sees(answer, kind, steps, seed):
    """What is found out about a model whose eyesight is known."""
    tokens = torch.arange(5, 5 + steps)[None]
    return answer(_looking(kind, steps, seed), tokens, 30)


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=3,
    trains="finding out what a model looks at, without its source",
    text="""
    You are given a model as a black box: `model(tokens)` turns (1, T) ids into (1, T, V) logits.
    Find out what each position looks at: put the id `other`, which does not occur in `tokens`, in
    the place of one token at a time, and see at which positions any of the logits changes. A
    language model has a leak where its map is True above the diagonal: there a position sees what
    stands after it.
    """,
    reference=_sees,
    play=play_sees,
    probes=[("causal", 3, 1), ("both sides", 4, 2), ("one ahead", 5, 3), ("blind spot", 5, 4),
            ("first only", 4, 5), ("itself", 4, 6), ("causal", 4, 7)],
    mistakes=[
        wrong(
            "rows and columns are exchanged",
            "mask axis",
            "Row t is the output at t, column s the token that was changed.",
            turned=True,
        ),
        wrong(
            "changed tokens stay changed",
            "prefix",
            "Start from the original tokens for every s, or what you see is the effect of several.",
            restore=False,
        ),
        wrong(
            "only a new best guess counts",
            "log probabilities",
            "The logits can change without the best guess changing; compare the logits.",
            judged="best",
        ),
        wrong(
            "only the last position is looked at",
            "mask axis",
            "Every position gives logits; each of them is one row of the map.",
            where="last",
        ),
        wrong(
            "a position's own token is left out",
            "off by one",
            "Whether the output at t depends on token t is measured like the rest.",
            itself=False,
        ),
        wrong(
            "true and false are exchanged",
            "mask meaning",
            "True where the output changes: there it looks.",
            meaning="unchanged",
        ),
        wrong(
            "only one logit is looked at",
            "log probabilities",
            "A change may show in the others only; compare all of them.",
            judged="logit 0",
            itself=True,
        ),
        wrong(
            "all logits have to change",
            "log probabilities",
            "The output depends on a token as soon as one of its logits changes: any, not all.",
            judged="all",
            itself=True,
        ),
        wrong(
            "a logit may change in one direction only",
            "log probabilities",
            "Logits may fall or rise: compare with !=, or take absolute values.",
            {"judged": "falling"},
            judged="rising",
            itself=True,
        ),
        wrong(
            "small changes are not seen",
            "log probabilities",
            "Any change counts, where the logits are small as well: more than rounding is enough.",
            judged="large",
            itself=True,
        ),
        wrong(
            "differences are added with their signs",
            "log probabilities",
            "They may cancel: compare logit by logit, or take absolute values first.",
            judged="summed",
            itself=True,
        ),
    ],
    hints=[
        "One run of the model on the tokens as they are, then one for each s.",
        "tokens.clone(), one entry changed: which rows of (1, T, V) differ from before?",
        "(before != after).any(-1) has shape (1, T): it is column s of the map.",
    ],
    right_variants=[
        _sees_in_a_batch,
        lambda model, tokens, other: torch.tensor(
            [
                [
                    not torch.equal(
                        model(tokens)[0, t],
                        model(tokens.index_fill(1, torch.tensor([s]), other))[0, t],
                    )
                    for s in range(tokens.shape[1])
                ]
                for t in range(tokens.shape[1])
            ]
        ),
        lambda model, tokens, other: torch.stack(
            [
                (model(tokens.masked_fill(torch.arange(tokens.shape[1]) == s, other))
                 - model(tokens)).abs().amax(-1)[0] > 1e-6
                for s in range(tokens.shape[1])
            ],
            -1,
        ),
    ],
)  # fmt: skip
def what_it_sees(model, tokens, other):
    """True at [t, s] where the output at position t depends on the token at s.

    model: from (1, T) ids to (1, T, V) logits, tokens: (1, T), other: an id. Returns (T, T).
    """
    before = model(tokens)
    columns = []
    for s in range(tokens.shape[1]):
        poked = tokens.clone()
        poked[0, s] = other
        columns.append((model(poked) != before).any(-1)[0])  # (T,)
    return torch.stack(columns, dim=1)


def _two_way(seed, size):
    """A model in which every position looks at all: (B, T) ids -> (B, T, V) logits."""
    generator = torch.Generator().manual_seed(seed)
    own, others = torch.randn(2, size, size, generator=generator)

    def model(tokens):
        around = others[tokens].mean(dim=1, keepdim=True)
        return own[tokens] + 2 * around + torch.arange(tokens.shape[1])[:, None] * 0.1 * own[0]

    return model


def _by_hiding(model, ids, mask_id, *, hidden="one", ends="left out", total="sum", log="log",
               place="itself", sign=1):  # fmt: skip
    total_score, number, read = 0.0, 0, ids.clone()
    inner = range(1, len(ids) - 1) if ends == "left out" else range(len(ids))
    for t in inner:
        if hidden != "more and more":
            read = ids.clone()
        if hidden == "all":
            read[1:-1] = mask_id
        elif hidden == "copies":
            read[ids == ids[t]] = mask_id
        elif hidden == "left out":
            read = torch.cat([ids[:t], ids[t + 1 :]])
        elif hidden != "none":
            read[t] = mask_id
        row = model(read[None])[0, t if place == "itself" else t - 1]
        score = row.log_softmax(-1)[ids[t]]
        forms = {"log": score, "padded": (score.exp() + 1e-9).log(), "probability": score.exp()}
        total_score = total_score + forms[log]
        number += 1
    return sign * (total_score if total == "sum" else total_score / number)


def _by_hiding_in_a_batch(model, ids, mask_id):
    inner = torch.arange(1, len(ids) - 1)
    read = ids.repeat(len(inner), 1)
    read[torch.arange(len(inner)), inner] = mask_id
    rows = model(read)[torch.arange(len(inner)), inner]
    return -F.cross_entropy(rows, ids[inner], reduction="sum")


def play_hiding(answer, seed, size, ids, sure):
    """The score that an answer gives with a two-way model whose logits are `sure` times as far."""
    model = _two_way(seed, size)
    return answer(lambda tokens: sure * model(tokens), torch.tensor(ids), size - 1)


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=3,
    trains="scoring a sentence with an encoder-only model",
    text="""
    An encoder-only model cannot multiply its way from left to right. Yet it can say how natural a
    sentence is: hide its words one at a time, the others staying visible, and add up the
    log-probabilities of the true words at the hidden places. The first and the last token, `<bos>`
    and `<eos>`, are never hidden and not scored.
    """,
    reference=_by_hiding,
    play=play_hiding,
    probes=[
        (141, 7, [1, 4, 2], 1),
        (142, 9, [1, 5, 4, 7, 2], 1),
        (143, 11, [1, 8, 4, 6, 9, 5, 2], 1),
        (144, 9, [1, 5, 4, 5, 5, 2], 1),
        (145, 9, [1, 6, 4, 7, 2], 10),
    ],
    mistakes=[
        wrong(
            "all copies of a word are hidden with it",
            "masked tokens",
            "Hide the one place: the same word elsewhere in the sentence stays visible.",
            hidden="copies",
        ),
        wrong(
            "the word is left out, not hidden",
            "masked tokens",
            "Put mask_id in its place: without it all that follows moves up by one.",
            hidden="left out",
        ),
        wrong(
            "the logarithm has a small number added to its probability",
            "log probabilities",
            "Of a probability as small as that number the true one is lost: use log_softmax.",
            log="padded",
        ),
        wrong(
            "nothing is hidden",
            "masked tokens",
            "Then the model reads the very word that it is asked for.",
            hidden="none",
        ),
        wrong(
            "all words are hidden at once",
            "masked tokens",
            "Hide one word at a time: the others are what it is judged by.",
            hidden="all",
        ),
        wrong(
            "hidden words stay hidden",
            "masked tokens",
            "Start from the whole sentence for every word.",
            hidden="more and more",
        ),
        wrong(
            "the first and the last token are scored, too",
            "off by one",
            "<bos> and <eos> frame every sentence; leave both out.",
            ends="scored",
        ),
        wrong(
            "the mean is taken, not the sum",
            "averaging",
            "Asked for is the sum of the log-probabilities.",
            total="mean",
        ),
        wrong(
            "the sign is turned round",
            "log probabilities",
            "Asked for is the sum of the log-probabilities, below 0; minus that is a loss.",
            sign=-1,
        ),
        wrong(
            "probabilities are added, not their logarithms",
            "log probabilities",
            "Take the logarithm of each probability, then the sum.",
            log="probability",
        ),
        wrong(
            "the logits of the position before are read",
            "off by one",
            "An encoder-only model answers at the hidden place itself, not one step before.",
            place="before",
        ),
    ],
    hints=[
        "For a sentence of n words between its ends the model runs n times.",
        "ids.clone(), one entry replaced; which row of the logits belongs to it?",
        "log_softmax over the vocabulary, the entry of the true word, summed over the places.",
    ],
    right_variants=[
        _by_hiding_in_a_batch,
        lambda model, ids, mask_id: sum(
            math.log(
                model(torch.cat([ids[:t], torch.tensor([mask_id]), ids[t + 1 :]])[None])[0, t]
                .double()
                .softmax(-1)[ids[t]]
            )
            for t in range(1, len(ids) - 1)
        ),
        lambda model, ids, mask_id: torch.stack(
            [
                torch.log_softmax(model(ids.where(torch.arange(len(ids)) != t, mask_id)[None]), -1)[
                    0, t, ids[t]
                ]
                for t in torch.arange(1, len(ids) - 1)
            ]
        ).sum(),
    ],
)  # fmt: skip
def score_by_hiding(model, ids, mask_id):
    """The sum of log P(word | all the others) over the words of a sentence.

    model: from (B, T) ids to (B, T, V) logits, ids: (T,), mask_id: an id. Returns one number.
    """
    score = 0.0
    for t in range(1, len(ids) - 1):
        read = ids.clone()
        read[t] = mask_id
        score = score + model(read[None])[0, t].log_softmax(-1)[ids[t]]
    return score


_ROWS = torch.tensor([
    [0.90, 0.05, 0.03, 0.01, 0.006, 0.004],  # sure
    [0.02, 0.08, 0.10, 0.60, 0.15, 0.05],
    [0.18, 0.15, 0.16, 0.17, 0.20, 0.14],  # unsure
])  # fmt: skip


# 300 tokens: unsure, the best of them is less probable than any token of a sure row above
_MANY = torch.stack([
    torch.tensor([0.9] + [0.1 / 299] * 299),
    torch.linspace(1.0, 0.0, 300).square().softmax(0),
    torch.linspace(1.0, 1.05, 300) / torch.linspace(1.0, 1.05, 300).sum(),
])  # fmt: skip


_EVEN = torch.stack([_ROWS[0], torch.full((6,), 1 / 6)])  # of equal tokens none may be cut


def _own_sampler(probs, *, form="right"):
    best = probs.amax(-1, keepdim=True)
    kept = {
        "nothing cut": probs >= 0,
        "two": torch.zeros_like(probs).scatter(-1, probs.topk(2).indices, 1.0) > 0,
        "one": torch.zeros_like(probs).scatter(-1, probs.topk(1).indices, 1.0) > 0,
        "without the best": (probs < best) & (probs >= 0.1 * best),
        "fixed limit": probs >= 0.1,
        "best of the batch": probs >= 0.3 * probs.max(),
    }.get(form, probs >= 0.3 * best)
    new = torch.where(kept, 1 / probs if form == "turned" else probs, 0.0)
    return new if form == "as it is" else new / new.sum(-1, keepdim=True)


def play_sampler(answer, rows):
    """The properties of a rule, on a sure row, one in between and an unsure one."""
    new = answer(rows.clone())
    if not torch.is_tensor(new) or new.shape != rows.shape:
        return new
    new = new.double()
    kept = (new > 0).sum(-1).tolist()
    first, second = rows[:, :, None], rows[:, None]  # does a less probable token get more?
    best = rows == rows.amax(-1, keepdim=True)  # of several best ones any may stay
    return {
        "each row sums to 1": bool(torch.allclose(new.sum(-1), torch.ones(len(rows)).double())),
        "nothing is negative": bool((new >= 0).all()),
        "no token overtakes a more probable one": not bool(
            ((first > second) & (new[:, :, None] < new[:, None] - 1e-9)).any()
        ),
        "the best token stays": bool(((new > 0) & best).any(-1).all()),
        "of the sure row something is cut": kept[0] < rows.shape[1],
        "the unsure row keeps more tokens than the sure one": kept[-1] > kept[0],
    }


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=15,
    difficulty=3,
    trains="designing a rule for drawing text",
    text="""
    **An open task**: many rules are right, and only what is asked here is checked. Invent a rule of
    your own that turns the probabilities of the next token into those to draw from: (1) each row
    sums to 1, and nothing is negative; (2) a token never gets more than one that was more probable;
    (3) the most probable token stays possible; (4) where the model is sure, as in
    (0.9, 0.05, 0.03, 0.01, 0.006, 0.004), something is cut to exactly 0; (5) where it is unsure, as
    in (0.18, 0.15, 0.16, 0.17, 0.2, 0.14), more tokens stay than there.
    """,
    reference=_own_sampler,
    play=play_sampler,
    probes=[(_EVEN,), (_ROWS,), (_ROWS[:, [5, 0, 3, 1, 4, 2]],), (_MANY,)],
    mistakes=[
        wrong(
            "nothing is cut",
            "sampling",
            "Property 4: in a sure row at least one improbable token gets exactly 0.",
            form="nothing cut",
        ),
        wrong(
            "the unsure row keeps no more tokens than the sure one",
            "sampling",
            "Property 5: the rule has to look at how sure the row is; a fixed number does not.",
            {"form": "one"},
            form="two",
        ),
        wrong(
            "a row can lose all its tokens",
            "sampling",
            "Where no token reaches the limit, 0 / 0 is NaN: measure each token by its own row, "
            "not by a fixed number or by the best of the whole batch.",
            {"form": "best of the batch"},
            form="fixed limit",
        ),
        wrong(
            "the most probable token is cut",
            "sampling",
            "Property 3: the best token must stay possible.",
            form="without the best",
        ),
        wrong(
            "what is left is not normalised again",
            "normalisation",
            "Property 1: divide what is left by its sum, row by row.",
            form="as it is",
        ),
        wrong(
            "less probable tokens get more",
            "sampling",
            "Property 2: the order of the tokens has to stay.",
            form="turned",
        ),
    ],
    hints=[
        "Which number tells a sure row from an unsure one? The largest probability; the entropy; a "
        "running sum.",
        "A limit that depends on that number: tokens below it get 0.",
        "torch.where(kept, probs, 0.0), then divide by the sum of each row (keepdim=True).",
    ],
    right_variants=[
        lambda probs: F.normalize(probs * (probs > probs.square().sum(-1, keepdim=True) / 2), p=1),
        lambda probs: (
            lambda new: new / new.sum(-1, keepdim=True)
        )((probs - probs.amax(-1, keepdim=True) / 5).clamp(min=0)),
        lambda probs: torch.stack([
            (row * (row >= (row * row.log()).sum().exp() / 2))
            / (row * (row >= (row * row.log()).sum().exp() / 2)).sum()
            for row in probs
        ]),
    ],
)  # fmt: skip
def my_sampler(probs):
    """The probabilities to draw from.

    probs: (B, V), rows that sum to 1. Returns (B, V).
    """
    # One of many, min-p: keep what has at least 0.3 of the best token's probability.
    kept = torch.where(probs >= 0.3 * probs.amax(-1, keepdim=True), probs, 0.0)
    return kept / kept.sum(-1, keepdim=True)
