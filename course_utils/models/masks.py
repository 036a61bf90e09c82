"""Boolean masks, one convention for the whole course: True = this query may look at this key."""

import torch
from torch import Tensor

_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def mask_from_valid_lens(
    valid_lens: Tensor, num_keys: int, batch: int | None = None, num_queries: int | None = None
) -> Tensor:
    """Turn valid lengths into a mask, in this one place.

    Args:
        valid_lens: integers, (B,) for one length per sentence or (B, Tq) for one per query.
        num_keys: Tk, the padded length.
        batch, num_queries: B and Tq that the lengths must fit, when they are known.

    Returns:
        (B, 1, 1, Tk) or (B, 1, Tq, Tk), True for the first `valid_len` keys.

    Raises:
        TypeError: the lengths are not integers.
        ValueError: their shape is neither (B,) nor (B, Tq), or one is not in 0..num_keys.
    """
    valid_lens = torch.as_tensor(valid_lens)
    if valid_lens.dtype == torch.bool:
        raise TypeError("valid_lens must hold integers, got torch.bool: give a mask as mask=")
    if valid_lens.dtype not in _INTEGERS:
        raise TypeError(f"valid_lens must hold integers, got {valid_lens.dtype}: use .long()")
    shape = tuple(valid_lens.shape)
    wanted = tuple(size for size in (batch, num_queries) if size is not None)
    if len(shape) not in (1, 2) or any(s != w for s, w in zip(shape, wanted)):
        sizes = [f"{name} = {w}" for name, w in zip(("B", "Tq"), wanted)]
        where = f" with {' and '.join(sizes)}" if sizes else ""
        raise ValueError(f"valid_lens must have shape (B,) or (B, Tq){where}, got {shape}")
    if valid_lens.numel() and not 0 <= valid_lens.min() <= valid_lens.max() <= num_keys:
        raise ValueError(
            f"valid_lens must lie in 0..{num_keys} (there are {num_keys} keys), "
            f"got {valid_lens.tolist()}"
        )
    key_positions = torch.arange(num_keys, device=valid_lens.device)  # (Tk,)
    mask = key_positions < valid_lens.unsqueeze(-1)  # (B, Tk) or (B, Tq, Tk)
    return mask[:, None, None] if valid_lens.dim() == 1 else mask[:, None]


def mask_from_lengths(lengths: Tensor, num_keys: int, batch: int) -> Tensor:
    """As above, but one length per sentence only: (B,) -> (B, 1, 1, Tk).

    Raises:
        TypeError, ValueError: as above, and for (B, Tq) lengths.
    """
    lengths = torch.as_tensor(lengths)
    if lengths.dim() != 1:
        raise ValueError(
            f"lengths must have shape (B,), got {tuple(lengths.shape)}: give one a sentence"
        )
    return mask_from_valid_lens(lengths, num_keys, batch)


def padding_mask(tokens: Tensor, pad_id: int) -> Tensor:
    """Hide padding: (B, Tk) token ids -> (B, 1, 1, Tk), True where the key is a real token."""
    return (tokens != pad_id)[:, None, None]


def causal_mask(num_queries: int, num_keys: int | None = None, device=None) -> Tensor:
    """Hide the future: (1, 1, Tq, Tk), True where the key is not later.

    The last query stands at the last key, so with more keys than queries (a cache of earlier
    steps) query 0 stands at position Tk - Tq.

    Raises:
        ValueError: fewer keys than queries; the first queries would have nothing to look at.
    """
    num_keys = num_queries if num_keys is None else num_keys
    if num_keys < num_queries:
        raise ValueError(
            f"a causal mask needs at least as many keys as queries, "
            f"got {num_queries} queries and {num_keys} keys"
        )
    every = torch.ones(num_queries, num_keys, dtype=torch.bool, device=device)
    return every.tril(num_keys - num_queries)[None, None]


def combine_masks(*masks: Tensor | None) -> Tensor | None:
    """A key is visible if every mask allows it; `None` allows everything."""
    given = [mask for mask in masks if mask is not None]
    if not given:
        return None
    combined = given[0]
    for mask in given[1:]:
        combined = combined & mask
    return combined


def check_boolean(mask: Tensor) -> None:
    """Refuse what is no boolean tensor: lengths, and 0/1 floats, which torch would add.

    Raises:
        TypeError: the mask is not a boolean tensor.
    """
    if isinstance(mask, Tensor) and mask.dtype in _INTEGERS:
        raise TypeError(
            f"the mask must be a boolean tensor (True = may look), got {mask.dtype}: give numbers "
            "of visible keys as valid_lens=, a mask of 0 and 1 as mask.bool()"
        )
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        kind = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise TypeError(
            f"the mask must be a boolean tensor (True = may look), got {kind}: use mask.bool()"
        )


def _check_axes(mask: Tensor, least: int) -> None:
    """Refuse a mask of one axis: it may be lengths made boolean, and would broadcast silently."""
    if mask.dim() < least:
        raise ValueError(
            f"the mask has shape {tuple(mask.shape)}, too few axes to tell queries from keys: give "
            "lengths as valid_lens=, one row of keys for all queries as mask[None]"
        )


def check_mask(mask: Tensor, batch: int, heads: int, num_queries: int, num_keys: int) -> Tensor:
    """Bring a mask to four axes (B or 1, h or 1, Tq or 1, Tk or 1), or say why it does not fit.

    A mask of three axes (X, Tq, Tk) is read per head when X = h and per sentence when h = 1; when
    X equals both the batch size and a number of heads above one it is refused, because guessing
    would be silent. So is a mask of one axis, which may be lengths or a row of keys; one of two
    axes is (Tq, Tk).

    Raises:
        TypeError: the mask is not a boolean tensor.
        ValueError: it does not broadcast to (B, h, Tq, Tk), or is ambiguous.
    """
    check_boolean(mask)
    _check_axes(mask, 2)
    wanted = (batch, heads, num_queries, num_keys)
    if mask.dim() == 3 and mask.shape[0] > 1:
        if heads > 1 and mask.shape[0] == heads == batch:
            raise ValueError(
                f"a mask of shape {tuple(mask.shape)} could be per sentence or per head: "
                "write mask[:, None] for one mask a sentence, mask[None] for one a head"
            )
        if heads == 1:
            mask = mask[:, None]  # (B, 1, Tq, Tk)
    full = mask[(None,) * (4 - mask.dim())] if mask.dim() < 4 else mask
    fits = full.dim() == 4 and all(m in (1, w) for m, w in zip(full.shape, wanted, strict=True))
    if not fits:
        raise ValueError(
            f"the mask has shape {tuple(mask.shape)}, which does not broadcast to "
            f"(B, h, Tq, Tk) = {wanted}. For one row of keys per sentence write "
            "mask[:, None, None, :], for one map per sentence mask[:, None]"
        )
    return full


def check_tokens(tokens: Tensor, vocab_size: int, batch: int | None = None) -> None:
    """Say which token id an embedding of `vocab_size` rows cannot look up.

    Raises:
        TypeError: the ids are not integers.
        ValueError: not of shape (B, T), not `batch` sentences when that is given, or an id is
            not in 0..vocab_size - 1.
    """
    if tokens.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"token ids must be int64 or int32, got {tokens.dtype}: use .long()")
    if tokens.dim() != 2:
        raise ValueError(f"token ids must have shape (B, T), got {tuple(tokens.shape)}")
    if batch is not None and len(tokens) != batch:
        raise ValueError(f"there are {batch} source sentences, but {len(tokens)} target sentences")
    if tokens.numel() and not 0 <= tokens.min() <= tokens.max() < vocab_size:
        raise ValueError(
            f"token ids must lie in 0..{vocab_size - 1}, got {int(tokens.min())}.."
            f"{int(tokens.max())}: encode the text with the vocabulary the model was built for"
        )


def build_mask(
    mask: Tensor | None, valid_lens: Tensor | None, sizes: tuple[int, int, int, int]
) -> Tensor | None:
    """One mask of four axes from `mask` and `valid_lens`, for sizes (B, h, Tq, Tk)."""
    if mask is not None:
        mask = check_mask(mask, *sizes)
    if valid_lens is None:
        return mask
    batch, _, num_queries, num_keys = sizes
    return combine_masks(mask, mask_from_valid_lens(valid_lens, num_keys, batch, num_queries))


def hide_unseen(x: Tensor, mask: Tensor | None) -> Tensor:
    """Zero the positions of keys or values (B, h or 1, Tk, d) that no query may look at.

    A weight of 0 is not enough: 0 * inf and 0 * NaN are NaN. For the same reason infinity or NaN
    where *some* query may look, such as at the last token under a causal mask, reaches them all.
    """
    if mask is None:
        return x
    unseen = ~mask.any(dim=-2)  # (B or 1, h or 1, Tk or 1)
    if x.shape[1] == 1:
        unseen = unseen.all(dim=1, keepdim=True)
    return x.masked_fill(unseen.unsqueeze(-1), 0.0)


def zero_fully_masked(x: Tensor, mask: Tensor | None) -> Tensor:
    """Zero what belongs to queries that may look at no key, in x (B, h or 1, Tq, d)."""
    return x if mask is None else hide_unseen(x, mask.transpose(-2, -1))


def mask_for_scores(
    scores: Tensor, mask: Tensor | None, valid_lens: Tensor | None
) -> Tensor | None:
    """One mask that broadcasts to the scores (B, ..., Tq, Tk) from `mask` and `valid_lens`.

    Raises:
        TypeError, ValueError: one of them does not fit, or the mask could be read in two ways.
    """
    mask = None if mask is None else _mask_for(scores, mask)
    return mask if valid_lens is None else combine_masks(mask, _lengths_for(scores, valid_lens))


def _mask_for(scores: Tensor, mask: Tensor) -> Tensor:
    """The mask in the shape of the scores, if it can be read in one way only."""
    check_boolean(mask)
    shape, missing = tuple(mask.shape), scores.dim() - mask.dim()
    _check_axes(mask, min(2, scores.dim()))
    if missing > 0 and len(shape) > 2 and shape[0] == len(scores) == scores.shape[missing] > 1:
        raise ValueError(
            f"for scores of shape {tuple(scores.shape)} a mask of shape {shape} could be per "
            "sentence or per head: write mask[:, None] for one mask a sentence, mask[None] for "
            "one a head"
        )
    try:
        return mask.broadcast_to(scores.shape)
    except RuntimeError:
        raise ValueError(
            f"a mask of shape {shape} does not broadcast to the scores' {tuple(scores.shape)}"
        ) from None


def _lengths_for(scores: Tensor, valid_lens: Tensor) -> Tensor:
    """The mask of `valid_lens` with as many axes as the scores."""
    if scores.dim() < 3:
        raise ValueError(
            f"valid_lens needs scores with a batch axis, (B, ..., Tq, Tk), got "
            f"{tuple(scores.shape)}: use mask= for a single map"
        )
    batch, num_queries, num_keys = scores.shape[0], *scores.shape[-2:]
    mask = mask_from_valid_lens(valid_lens, num_keys, batch, num_queries)
    return mask.reshape(batch, *(1,) * (scores.dim() - 3), *mask.shape[2:])
