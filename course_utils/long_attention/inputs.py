"""What the functions of this package ask of their inputs, said once."""

from torch import Tensor

from course_utils.masks import check_mask


def check_self_attention(queries: Tensor, keys: Tensor, values: Tensor) -> None:
    """Refuse all but (B, h, T, d), (B, h, T, d), (B, h, T, v) with one T.

    Raises:
        ValueError: they do not fit; the message holds the three shapes.
    """
    shapes = (
        f"queries {tuple(queries.shape)}, keys {tuple(keys.shape)}, values {tuple(values.shape)}"
    )
    if not queries.dim() == keys.dim() == values.dim() == 4:
        raise ValueError(f"queries, keys and values must all be (B, h, T, d): {shapes}")
    if queries.shape != keys.shape or keys.shape[:3] != values.shape[:3]:
        raise ValueError(
            "this is self-attention: queries and keys need one shape (B, h, T, d), and every key "
            f"one value (B, h, T, v): {shapes}"
        )


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
