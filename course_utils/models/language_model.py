"""A decoder-only language model: what comes next, how sure it is, and how to draw from it.

Shapes: B texts, T tokens, V tokens in the vocabulary.
"""

import math

import torch
from torch import Tensor, nn

from course_utils.models.masks import causal_mask
from course_utils.models.modes import evaluating
from course_utils.models.token_encoder import TokenEncoder, tied_output


class LanguageModel(nn.Module):
    """Encoder blocks under a causal mask, and an output layer (Radford et al. 2018).

    Args:
        encoder: the trunk; the output layer shares the weights of its embedding.
    """

    def __init__(self, encoder: TokenEncoder):
        super().__init__()
        self.encoder = encoder
        self.output = tied_output(encoder)

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T) ids -> (B, T, V) logits of the token after each, all positions in one pass.

        Padding at the end needs no mask: what stands before it does not see it.
        """
        mask = causal_mask(tokens.shape[1], device=tokens.device)  # (1, 1, T, T)
        return self.output(self.encoder(tokens, mask))


def next_token_log_probs(logits: Tensor, tokens: Tensor) -> Tensor:
    """log P(token t + 1 | tokens up to t): (B, T, V) logits of (B, T) tokens -> (B, T - 1).

    Their sum along a text is the log-probability of all but its first token.
    """
    log_probs = logits[:, :-1].log_softmax(dim=-1)  # (B, T - 1, V)
    return log_probs.gather(-1, tokens[:, 1:, None]).squeeze(-1)


def random_windows(ids: Tensor, length: int, batch_size: int, generator=None) -> Tensor:
    """Pieces of a text, each from a random place: (N,) ids -> (batch_size, length).

    Raises:
        ValueError: the text is shorter than `length`.
    """
    _check_length(ids, length)
    starts = torch.randint(len(ids) - length + 1, (batch_size, 1), generator=generator)
    return ids[starts + torch.arange(length)]


def windows(ids: Tensor, length: int) -> Tensor:
    """Pieces of a text, one after the other: (N,) ids -> (pieces, length).

    The last token of a piece is the first one of the next, so that each token but the very first
    is predicted once. A remainder shorter than `length` is left out.

    Raises:
        ValueError: the text is shorter than `length`.
    """
    _check_length(ids, length)
    return ids.unfold(0, length, length - 1)


def _check_length(ids: Tensor, length: int) -> None:
    if not 2 <= length <= len(ids):
        raise ValueError(f"a window must have 2 to {len(ids)} tokens, got {length}")


def perplexity(model: nn.Module, texts: Tensor) -> float:
    """exp of the mean negative log-probability of a token: among how many it seems to choose.

    Args:
        model: from (B, T) ids to (B, T, V) logits of the next tokens.
        texts: (B, T) ids without padding; the first token of each is given, not predicted.

    Returns:
        at least 1; infinite for a model that is sure of what does not come.

    Raises:
        ValueError: there is no token to predict.
    """
    if texts.dim() != 2 or not len(texts) or texts.shape[1] < 2:
        raise ValueError(
            f"perplexity needs (B, T) ids, a text or more of two tokens or more, got a tensor of "
            f"shape {tuple(texts.shape)}"
        )
    with evaluating(model):
        parts = [next_token_log_probs(model(part), part) for part in texts.split(64)]
    return torch.cat(parts).double().mean().neg().exp().item()


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    """Only the k most probable tokens of each row (..., V); the others get -inf.

    Of tokens that are equally probable at the limit, all are kept.

    Raises:
        ValueError: k is not in 1..V.
    """
    if not 1 <= k <= logits.shape[-1]:
        raise ValueError(
            f"top_k must lie in 1..{logits.shape[-1]}, the vocabulary (None keeps all), got {k}"
        )
    smallest = logits.topk(k, dim=-1).values[..., -1:]  # (..., 1)
    return logits.masked_fill(logits < smallest, -math.inf)


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    """Only the smallest set of most probable tokens that together reach p (nucleus sampling).

    Source: Holtzman et al. 2020. The most probable token always stays; p = 1 keeps all.

    Raises:
        ValueError: p is not above 0 and at most 1.
    """
    if not 0 < p <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1, got {p}")
    ordered, order = logits.sort(dim=-1, descending=True, stable=True)
    probs = ordered.double().softmax(dim=-1)
    before = probs.cumsum(dim=-1) - probs  # what the more probable tokens have already
    if p < 1:  # rounding may bring a sum to 1 too early
        ordered = ordered.masked_fill(before >= p, -math.inf)
    return torch.empty_like(logits).scatter(-1, order, ordered)


def sample(
    logits: Tensor,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Draw one token a row: (B, V) logits -> (B,) ids.

    Args:
        temperature: logits are divided by it; below 1 the probable tokens gain, above 1 the rare
            ones. 0, the limit, takes the most probable token.
        top_k, top_p: keep only some tokens, after the temperature; with both, k first.
        generator: makes the draw repeatable.

    Raises:
        ValueError: a temperature below 0 or infinite, or a `top_k` or `top_p` out of range.
    """
    if not 0 <= temperature < math.inf:
        raise ValueError(f"temperature must be 0 or more, and finite, got {temperature}")
    if temperature > 0:
        smallest = torch.finfo(logits.dtype).tiny  # what is smaller might become 0
        logits = logits - logits.amax(dim=-1, keepdim=True)  # then no quotient is +inf
        logits = logits / max(temperature, smallest)
    if top_k is not None:
        logits = keep_top_k(logits, top_k)
    if top_p is not None:
        logits = keep_top_p(logits, top_p)
    if temperature == 0:
        return logits.argmax(dim=-1)
    return torch.multinomial(logits.softmax(dim=-1), 1, generator=generator).squeeze(-1)


def generate(model: nn.Module, prompt: Tensor, length: int, *, context: int, **options) -> Tensor:
    """Continue texts token by token: (B, T) ids -> (B, T + length).

    Args:
        model: from (B, T) ids to (B, T, V) logits of the next tokens.
        length: how many tokens to add.
        context: how many tokens back the model looks; no more than it was trained on.
        options: those of `sample`.

    Raises:
        ValueError: the prompt is empty, `length` is below 0 or `context` below 1.
    """
    if not prompt.shape[1] or length < 0 or context < 1:
        raise ValueError(
            f"a text needs a first token, a length of 0 or more and a context of 1 or more, got "
            f"a prompt of {prompt.shape[1]}, length {length} and context {context}"
        )
    tokens = prompt
    with evaluating(model):
        for _ in range(length):
            logits = model(tokens[:, -context:])[:, -1]  # (B, V)
            tokens = torch.cat([tokens, sample(logits, **options)[:, None]], dim=1)
    return tokens
