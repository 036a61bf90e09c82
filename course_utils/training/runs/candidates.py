"""The best translations of a sentence, each with its score and its word alignment."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from torch import Tensor

from course_utils.text.batches import pad
from course_utils.text.text import one_line
from course_utils.training.decoding import n_best
from course_utils.training.metrics import links_from_weights
from course_utils.training.runs.lines import longest_answer
from course_utils.training.runs.parts import cut
from course_utils.training.translation import Translator


class Candidate(NamedTuple):
    """A translation; `links` are pairs (source word, target word), counted from 0 at spaces."""

    text: str
    score: float  # log-probability per piece, the end counted
    links: list[tuple[int, int]]


def candidates(
    translator: Translator,
    sentences: Sequence[str],
    count: int,
    *,
    beam: int = 1,
    batch_size: int = 64,
    on_cut: Callable[[int, int], None] | None = None,
) -> list[list[Candidate]]:
    """At most `count` different translations of each sentence, best first; none of an empty one.

    Args:
        beam: of the search; it is at least `count` wide.
        on_cut: told the index of a sentence too long for the model, and how many parts it has;
            only the first is translated.
    """
    limit = translator.model.config.max_len
    pieces: list[list[int]] = []
    for index, sentence in enumerate(sentences):
        parts = cut(sentence, translator.source, limit - 1)  # and <eos>
        if len(parts) > 1 and on_cut is not None:
            on_cut(index, len(parts))
        pieces.append(parts[0])
    results: list[list[Candidate]] = [[] for _ in sentences]
    for some in _alike(pieces, batch_size):
        found = n_best(
            translator.model,
            *_on_device(translator, [pieces[i] for i in some]),
            bos=translator.target.bos,
            eos=translator.target.eos,
            beam=max(beam, count),
            max_len=longest_answer(len(pieces[some[0]]), limit),
        )
        for i, hypotheses in zip(some, found, strict=True):
            scores: dict[str, float] = {}  # other pieces may spell the same text
            for score, ids in hypotheses:
                scores.setdefault(one_line(translator.target.decode(ids)), score)
            source = translator.source.decode(pieces[i])
            best = list(scores.items())[:count]
            results[i] = [Candidate(t, s, align(translator, source, t)) for t, s in best]
    return results


def _alike(pieces: Sequence[list[int]], batch_size: int) -> Iterator[list[int]]:
    """Indices of pieces of one length, so that no translation depends on its batch."""
    filled = sorted((i for i, ids in enumerate(pieces) if ids), key=lambda i: len(pieces[i]))
    for _, group in groupby(filled, key=lambda i: len(pieces[i])):
        alike = list(group)
        yield from (alike[k : k + batch_size] for k in range(0, len(alike), batch_size))


def _on_device(translator: Translator, sources: Sequence[list[int]]) -> tuple[Tensor, Tensor]:
    device = next(translator.model.parameters()).device
    src, src_lens = pad([[*ids, translator.source.eos] for ids in sources])
    return src.to(device), src_lens.to(device)


def align(translator: Translator, source: str, target: str) -> list[tuple[int, int]]:
    """For each word of the target the word of the source that the cross-attention weighs most.

    The weights are the mean over layers and heads, summed over the pieces of each word. A target
    that the model has no positions for is not aligned.
    """
    if not 0 < len(translator.target.encode(target)) < translator.model.config.max_len:
        return []
    maps, source_pieces, target_pieces = translator.attention_maps(source, target)
    weights = maps["cross"].mean((0, 1))  # (Tt, Ts)
    weights = _by_word(_by_word(weights.T, source_pieces).T, target_pieces)
    words = weights[:-1]  # without the row that says <eos>
    return sorted(links_from_weights(words))


def _by_word(weights: Tensor, pieces: Sequence[str]) -> Tensor:
    """(T, n) -> (words, n): the sum over the pieces of each word; <eos> is a word of its own."""
    begins = [piece.startswith("·") or k == len(pieces) - 1 for k, piece in enumerate(pieces)]
    begins[0] = True
    word = weights.new_tensor(begins).cumsum(0).long() - 1  # (T,)
    return weights.new_zeros(int(word[-1]) + 1, weights.shape[1]).index_add(0, word, weights)
