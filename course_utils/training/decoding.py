"""From a trained model to tokens: greedy and beam search.

A model is anything with `start(src, src_lens) -> state`, `decode(tokens (B, 1), state) ->
(logits (B, 1, V), state)`, and states that know `select(rows)`: `Transformer` and `Seq2Seq` do.
"""

import math
from collections.abc import Sequence
from heapq import nlargest

import torch
from torch import Tensor

from course_utils.models.modes import evaluating


def positions(model) -> float:
    """How many tokens of a sentence the model has positions for; a recurrent one knows no end."""
    return getattr(getattr(model, "config", None), "max_len", math.inf)


def _steps(model, max_len: int, beam: int = 1) -> range:
    if max_len < 1 or beam < 1:
        raise ValueError(f"max_len and beam must be at least 1, got {max_len} and {beam}")
    return range(min(max_len, positions(model)))


def greedy_decode(
    model, src: Tensor, src_lens: Tensor, *, bos: int, eos: int, max_len: int = 50
) -> list[list[int]]:
    """Take the most probable token at every step until `eos`.

    There are at most `max_len` tokens, and no more than the model has positions for.

    Args:
        src, src_lens: (B, Ts) token ids and (B,) lengths.
        bos, eos: ids that begin and end a target sentence.

    Returns:
        One list of ids a sentence, without `bos` and `eos`.
    """
    steps = _steps(model, max_len)
    if not len(src):
        return []
    sentences: list[list[int]] = [[] for _ in range(len(src))]
    with evaluating(model):
        state = model.start(src, src_lens)
        rows = torch.arange(len(src))  # the sentence that each row of the batch still works on
        tokens = torch.full((len(src), 1), bos, device=src.device)
        for _ in steps:
            if not len(rows):
                break
            logits, state = model.decode(tokens, state)
            tokens = logits[:, -1].argmax(dim=-1)  # (rows,)
            going = tokens.ne(eos).nonzero().flatten()
            if len(going) < len(rows):  # drop finished sentences from the batch
                state, tokens, rows = state.select(going), tokens[going], rows[going.cpu()]
            for row, token in zip(rows.tolist(), tokens.tolist(), strict=True):
                sentences[row].append(token)
            tokens = tokens.unsqueeze(1)
    return sentences


def beam_search(
    model,
    src: Tensor,
    src_lens: Tensor,
    *,
    bos: int,
    eos: int,
    beam: int = 4,
    max_len: int = 50,
    length_penalty: float = 1.0,
) -> list[list[int]]:
    """Keep the `beam` best open hypotheses; of the finished ones return the best per token.

    The search ends when `beam` hypotheses are finished and no open one is ahead of the best.

    A sentence's score is its log-probability divided by length ** length_penalty (its end
    counted), as in Wu et al. 2016 without coverage. A beam of 1 is greedy decoding.

    Args and result are those of `greedy_decode`.
    """
    if beam == 1 or not len(src):  # so that of equal words both take the same
        return greedy_decode(model, src, src_lens, bos=bos, eos=eos, max_len=max_len)
    found = n_best(model, src, src_lens, bos=bos, eos=eos, beam=beam, max_len=max_len,
                   length_penalty=length_penalty)  # fmt: skip
    return [hypotheses[0][1] for hypotheses in found]


def n_best(
    model,
    src: Tensor,
    src_lens: Tensor,
    *,
    bos: int,
    eos: int,
    beam: int = 4,
    max_len: int = 50,
    length_penalty: float = 1.0,
) -> list[list[tuple[float, list[int]]]]:
    """What `beam_search` chooses from: for each sentence (score, ids), the best first.

    There are `beam` of them or more, fewer only where no more fit into `max_len`.
    """
    steps = _steps(model, max_len, beam)
    searches = [_Search(beam, length_penalty) for _ in range(len(src))]
    with evaluating(model):
        state = model.start(src, src_lens)
        tokens = torch.full((len(src), 1), bos, device=src.device)
        for _ in steps:
            going = [search for search in searches if not search.done]
            if not going:
                break
            logits, state = model.decode(tokens, state)
            log_probs = logits[:, -1].log_softmax(dim=-1)  # (rows, V): a row is one open hypothesis
            best = log_probs.topk(min(beam, log_probs.shape[1]))  # no more of a row can be kept
            choices = list(zip(best.values.tolist(), best.indices.tolist(), strict=True))
            rows, words, first = [], [], 0
            for search in going:
                last = first + len(search.open)
                for row, word in search.extend(choices[first:last], eos):
                    rows.append(first + row)
                    words.append(word)
                first = last
            state = state.select(torch.tensor(rows, dtype=torch.long, device=src.device))
            tokens = torch.tensor(words, dtype=torch.long, device=src.device).unsqueeze(1)
    return [search.ranked() for search in searches]


class _Search:
    """The hypotheses of one sentence: those that are still open, and those that are finished."""

    def __init__(self, beam: int, length_penalty: float):
        self.beam, self.length_penalty = beam, length_penalty
        self.open: list[tuple[float, list[int]]] = [(0.0, [])]  # log-probability, words
        self.finished: list[tuple[float, list[int]]] = []  # score, words
        self.done = False

    def extend(
        self, choices: Sequence[tuple[list[float], list[int]]], eos: int
    ) -> list[tuple[int, int]]:
        """Go on with the best of `choices`: log-probabilities and next words of each open one.

        Returns:
            for each hypothesis that stays open, which one it continues, and by which word; none
            when the search is done.
        """
        longer = [
            (total + log_prob, row, word)
            for row, ((total, _), choice) in enumerate(zip(self.open, choices, strict=True))
            for log_prob, word in zip(*choice, strict=True)
        ]
        before, self.open, kept = self.open, [], []
        for total, row, word in nlargest(self.beam, longer):
            words = before[row][1]
            if word == eos:
                self.finished.append((self._score(total, len(words) + 1), words))
            else:
                self.open.append((total, [*words, word]))
                kept.append((row, word))
        self.done = not self.open or self._nothing_ahead()
        return [] if self.done else kept

    def _nothing_ahead(self) -> bool:
        """Whether enough are finished, and the best of them beats every open one."""
        ahead = max(self._score(total, len(words)) for total, words in self.open)
        return len(self.finished) >= self.beam and max(self.finished)[0] >= ahead

    def ranked(self) -> list[tuple[float, list[int]]]:
        """The best first; those cut off at the longest length allowed compete too."""
        cut_off = [] if self.done else [(self._score(t, len(w)), w) for t, w in self.open]
        return sorted(self.finished + cut_off, key=lambda entry: entry[0], reverse=True)

    def _score(self, total: float, length: int) -> float:
        return total / length**self.length_penalty
