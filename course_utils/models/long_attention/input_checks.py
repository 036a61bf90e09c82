"""What the functions of this package ask of their inputs, said once."""

from torch import Tensor

from course_utils.models.masks import check_mask


def check_attention(queries: Tensor, keys: Tensor, values: Tensor) -> None:
    """Refuse all but (B, h, Tq, d), (B, h, Tk, d), (B, h, Tk, v).

    Raises:
        ValueError: they do not fit; the message holds the three shapes.
    """
    if not queries.dim() == keys.dim() == values.dim() == 4:
        raise ValueError(
            f"queries, keys and values must all be (B, h, T, d): {_shapes(queries, keys, values)}"
        )
    one_size = queries.shape[:2] == keys.shape[:2] and queries.shape[3] == keys.shape[3]
    if not one_size or keys.shape[:3] != values.shape[:3]:
        raise ValueError(
            "queries (B, h, Tq, d) and keys (B, h, Tk, d) need the same B, h and d, and every key "
            f"one value (B, h, Tk, v): {_shapes(queries, keys, values)}"
        )


def check_self_attention(queries: Tensor, keys: Tensor, values: Tensor) -> None:
    """Refuse all but (B, h, T, d), (B, h, T, d), (B, h, T, v) with one T.

    Raises:
        ValueError: they do not fit; the message holds the three shapes.
    """
    check_attention(queries, keys, values)
    if queries.shape != keys.shape:
        raise ValueError(
            "this is self-attention, with as many queries as keys: "
            f"{_shapes(queries, keys, values)}"
        )


def _shapes(queries: Tensor, keys: Tensor, values: Tensor) -> str:
    return f"queries {tuple(queries.shape)}, keys {tuple(keys.shape)}, values {tuple(values.shape)}"


def keys_alone(mask: Tensor, queries: Tensor, num_keys: int) -> Tensor:
    """A mask that hides the same keys from every query, as (B or 1, h or 1, 1, Tk).

    Raises:
        TypeError, ValueError: it is no boolean mask, does not fit, or differs between queries,
            which these methods cannot heed without the full map of weights.
    """
    mask = check_mask(mask, *queries.shape[:3], num_keys)
    if mask.shape[-2] != 1:
        raise ValueError(
            f"the mask has shape {tuple(mask.shape)}, one row a query. Here only keys can be "
            "hidden, from all queries at once: give (B, 1, 1, Tk), and causal=True for the future"
        )
    return mask.expand(*mask.shape[:3], num_keys)


def check_divides(part: int, whole: int, name: str) -> None:
    """Refuse a length that is no multiple of its parts.

    Raises:
        ValueError: `part` is below 1 or does not divide `whole`.
    """
    if part < 1 or whole % part:
        raise ValueError(
            f"{name} = {part} must be at least 1 and divide the length {whole}: "
            "pad the sequence or choose another size"
        )
