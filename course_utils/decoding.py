"""From a trained model to tokens: greedy and beam search.

A model is anything with `start(src, src_lens) -> state`, `decode(tokens (B, 1), state) ->
(logits (B, 1, V), state)`, and states that know `select(rows)`: `Transformer` and `Seq2Seq` do.
"""

from contextlib import contextmanager

import torch
from torch import Tensor


@contextmanager
def evaluating(model: torch.nn.Module):
    """No dropout and no gradients inside; afterwards the model is in the mode it was in."""
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield model
    finally:
        model.train(training)


def _check_limits(max_len: int, beam: int = 1) -> None:
    if max_len < 1 or beam < 1:
        raise ValueError(f"max_len and beam must be at least 1, got {max_len} and {beam}")


def greedy_decode(
    model, src: Tensor, src_lens: Tensor, *, bos: int, eos: int, max_len: int = 50
) -> list[list[int]]:
    """Take the most probable token at every step until `eos`, at most `max_len` tokens.

    Args:
        src, src_lens: (B, Ts) token ids and (B,) lengths.
        bos, eos: ids that begin and end a target sentence.

    Returns:
        One list of ids a sentence, without `bos` and `eos`.
    """
    _check_limits(max_len)
    sentences: list[list[int]] = [[] for _ in range(len(src))]
    with evaluating(model):
        state = model.start(src, src_lens)
        rows = torch.arange(len(src))  # the sentence that each row of the batch still works on
        tokens = torch.full((len(src), 1), bos, device=src.device)
        for _ in range(max_len):
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
    """Keep the `beam` best beginnings; of the finished ones return the best per token.

    The search ends when `beam` sentences are finished and no beginning is ahead of the best.

    A sentence's score is its log-probability divided by length ** length_penalty (its end
    counted), as in Wu et al. 2016 without coverage. A beam of 1 is greedy decoding.

    Args and result are those of `greedy_decode`.
    """
    _check_limits(max_len, beam)
    with evaluating(model):
        return [
            _beam_one(model, src[i : i + 1], src_lens[i : i + 1], bos, eos, beam, max_len,
                      length_penalty)
            for i in range(len(src))
        ]


def _beam_one(model, src, src_lens, bos, eos, beam, max_len, length_penalty) -> list[int]:
    """Beam search for one sentence; every row of the batch is one unfinished beginning."""
    state = model.start(src, src_lens)
    beginnings: list[list[int]] = [[]]
    scores = torch.zeros(1, device=src.device)  # log-probabilities of the beginnings
    finished: list[tuple[float, list[int]]] = []
    tokens = torch.tensor([[bos]], device=src.device)
    for length in range(1, max_len + 1):
        logits, state = model.decode(tokens, state)
        totals = scores.unsqueeze(1) + logits[:, -1].log_softmax(dim=-1)  # (rows, V)
        vocab_size = totals.shape[1]
        best, index = totals.flatten().topk(min(beam, totals.numel()))
        rows, words = index // vocab_size, index % vocab_size
        ended = words == eos
        for score, row in zip(best[ended].tolist(), rows[ended].tolist(), strict=True):
            finished.append((score / length**length_penalty, beginnings[row]))
        if ended.all():
            break
        rows, words, scores = rows[~ended], words[~ended], best[~ended]
        ahead = float(scores.max()) / length**length_penalty  # of the best unfinished one
        if len(finished) >= beam and max(finished)[0] >= ahead:
            break
        beginnings = [
            beginnings[row] + [word]
            for row, word in zip(rows.tolist(), words.tolist(), strict=True)
        ]
        state, tokens = state.select(rows), words.unsqueeze(1)
    else:  # no room left: what is unfinished competes too
        finished += [
            (score / max_len**length_penalty, begun)
            for score, begun in zip(scores.tolist(), beginnings, strict=True)
        ]
    return max(finished, key=lambda entry: entry[0])[1]
