"""Speculative decoding (投机解码): a small model drafts, a large one checks several at once.

The tokens are distributed as if the large model had written them all, whatever the small one
drafts; only the speed depends on it. Source: Leviathan et al. 2023; Chen et al. 2023.

All random numbers are arguments, uniform in [0, 1), so that every result can be computed exactly.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from course_utils.models.modern.decoder_only import DecoderOnly, truncate
from course_utils.models.modes import evaluating


def pick(probabilities: Tensor, u: float) -> int:
    """The token in whose stretch of the cumulative distribution u lies: (V,) -> an id.

    >>> [pick(torch.tensor([0.25, 0.75]), u) for u in (0.0, 0.24, 0.25, 0.99)]
    [0, 0, 1, 1]
    """
    upto = probabilities.double().cumsum(0)
    token = int(torch.searchsorted(upto, u * upto[-1], right=True))
    return min(token, int(probabilities.nonzero()[-1]))  # rounding may lead past the last


def residual(target: Tensor, draft: Tensor) -> Tensor:
    """max(0, p - q), to sum 1: what is left of the target where the draft gave too little."""
    rest = (target - draft).clamp(min=0)
    return rest / rest.sum() if rest.sum() > 0 else target


def check_draft(
    drafted: list[int], draft: Tensor, target: Tensor, accept: Tensor, correct: float
) -> tuple[list[int], int]:
    """Keep a beginning of the draft and add one token of the target's.

    Drafted token x is kept with probability min(1, p(x) / q(x)); the first that is not is replaced
    by one from the residual, and the rest is thrown away. If all are kept, one more is drawn from
    the target, at no further cost.

    Args:
        drafted: k ids.
        draft: (k, V), q: the distributions they were drawn from.
        target: (k + 1, V), p: the target's at the same places and one beyond.
        accept: (k,) uniform numbers, one a drafted token.
        correct: a uniform number, for the token that is added.

    Returns:
        1 to k + 1 ids, and how many of the draft were kept.
    """
    for place, token in enumerate(drafted):
        p, q = target[place], draft[place]
        if accept[place] * q[token] >= p[token]:
            return [*drafted[:place], pick(residual(p, q), correct)], place
    return [*drafted, pick(target[len(drafted)], correct)], len(drafted)


@dataclass
class Speculation:
    """The tokens, and what they cost: calls of the target, tokens drafted and kept."""

    tokens: list[int]
    target_calls: int = 0
    drafted: int = 0
    kept: int = 0


class _Reader:
    """A model with a cache that can be taken back to any earlier length."""

    def __init__(self, model: DecoderOnly, distribution: Callable[[Tensor], Tensor]):
        self.model, self.distribution, self.caches = model, distribution, None

    def read(self, tokens: list[int]) -> Tensor:
        """The distributions (T', V) after the tokens that are not in the cache yet."""
        done = len(self.caches[0]) if self.caches else 0
        new = torch.tensor([tokens[done:]])
        logits, self.caches, _ = self.model.decode(new, self.caches)
        return self.distribution(logits[0])

    def forget(self, length: int) -> None:
        if self.caches and len(self.caches[0]) > length:
            self.caches = truncate(self.caches, length)


def softmax(logits: Tensor) -> Tensor:
    return logits.double().softmax(dim=-1)


def speculative_decode(
    target: DecoderOnly,
    draft: DecoderOnly,
    prompt: list[int],
    length: int,
    uniforms: Callable[[int], Tensor],
    *,
    ahead: int = 4,
    distribution: Callable[[Tensor], Tensor] = softmax,
) -> Speculation:
    """Continue one text by `length` tokens, distributed as the target's.

    Args:
        target, draft: models of one vocabulary.
        prompt: one id or more.
        uniforms: gives n uniform numbers, such as `torch.rand`.
        ahead: k, how many tokens are drafted before the target is asked.
        distribution: from (T, V) logits to probabilities, of both models; the temperature is here.

    Raises:
        ValueError: an empty prompt, or numbers out of range.
    """
    if not prompt or length < 0 or ahead < 1:
        raise ValueError(
            f"speculation needs a prompt, a length of 0 or more and 1 or more ahead, got "
            f"{len(prompt)} tokens, {length} and {ahead}"
        )
    result, tokens, end = Speculation([]), list(prompt), len(prompt) + length
    large, small = _Reader(target, distribution), _Reader(draft, distribution)
    with evaluating(target), evaluating(draft):
        while len(tokens) < end:
            start, k = len(tokens), min(ahead, end - len(tokens) - 1)
            u = uniforms(2 * k + 1)
            drafts, longer = [], tokens[:]
            for place in range(k):
                drafts.append(small.read(longer)[-1])  # (V,)
                longer.append(pick(drafts[-1], u[place]))
            checked = large.read(longer)[-(k + 1) :]  # (k + 1, V)
            q = torch.stack(drafts) if drafts else checked[:0]
            new, kept = check_draft(longer[start:], q, checked, u[k : 2 * k], u[2 * k])
            tokens += new
            result.target_calls, result.drafted = result.target_calls + 1, result.drafted + k
            result.kept += kept
            for reader in (large, small):
                reader.forget(start + kept)  # what was read beyond is not part of the text
    result.tokens = tokens[len(prompt) :]
    return result


def expected_tokens(kept: float, ahead: int) -> float:
    """Tokens a call of the target when each drafted one is kept with one probability.

    (1 - a^(k+1)) / (1 - a). Source: Leviathan et al. 2023, equation 1.

    >>> expected_tokens(0.0, 4), expected_tokens(1.0, 4), round(expected_tokens(0.8, 4), 2)
    (1.0, 5.0, 3.36)
    """
    return float(sum(kept**i for i in range(ahead + 1)))


def overlap(target: Tensor, draft: Tensor) -> Tensor:
    """The probability that a drafted token is kept: sum of min(p, q), (..., V) -> (...)."""
    return torch.minimum(target, draft).sum(dim=-1)
