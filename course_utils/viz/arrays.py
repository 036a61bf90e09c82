"""Turn what a caller hands in (tensor, array, list) into checked NumPy arrays and labels."""

import numpy as np


def to_array(x, name):
    """`x` (torch tensor on any device and of any real dtype, array, or nested list) as an array.

    Booleans stay booleans, everything else becomes float64. ValueError if it is no such thing.
    """
    if hasattr(x, "detach"):  # a torch tensor; NumPy has no bfloat16, so widen there
        x = x.detach().cpu()
        if x.is_complex():
            raise ValueError(f"{name} is complex: pass its real part or its absolute value")
        return x.numpy() if str(x.dtype) == "torch.bool" else x.double().numpy()
    if isinstance(x, (list, tuple)) and any(hasattr(item, "shape") for item in x):
        parts = [to_array(item, name) for item in x]
        if len({part.shape for part in parts}) > 1:
            shapes = ", ".join(str(part.shape) for part in parts)
            raise ValueError(f"{name} holds arrays of unequal shapes: {shapes}")
        return np.stack(parts)
    try:
        array = np.asarray(x)
        if array.dtype == bool:
            return array
        if np.iscomplexobj(array):
            raise TypeError("complex numbers")
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        kind = type(x).__name__
        raise ValueError(f"{name} must hold real numbers, got {kind}: {error}") from None


def as_grid(x, name):
    """(Tq, Tk), (n, Tq, Tk) or (rows, cols, Tq, Tk) -> array (rows, cols, Tq, Tk)."""
    array = to_array(x, name)
    if array.ndim not in (2, 3, 4):
        raise ValueError(
            f"{name} must have 2, 3 or 4 axes, (Tq, Tk), (n, Tq, Tk) or (rows, cols, Tq, Tk); "
            f"got {array.ndim}, of shape {array.shape}"
        )
    if 0 in array.shape:
        raise ValueError(f"{name} is empty: its shape is {array.shape}")
    return array.reshape((1,) * (4 - array.ndim) + array.shape)


def as_mask(mask, shape):
    """A boolean mask broadcast to `shape`; ValueError if it is not boolean or does not fit."""
    mask = to_array(mask, "mask")
    if mask.dtype != bool:
        raise ValueError(
            "mask must be boolean, True = this query may look at this key; "
            "turn 0s and 1s into it with mask.bool() or mask == 1"
        )
    try:
        return np.broadcast_to(mask, shape)
    except ValueError:
        raise ValueError(
            f"mask of shape {mask.shape} does not broadcast to the matrices' {shape}"
        ) from None


def check_finite(grid, shown, name):
    """ValueError that tells where, if a cell that is to be `shown` is NaN or infinite."""
    bad = np.argwhere(shown & ~np.isfinite(grid))
    if len(bad):
        where = tuple(int(i) for i in bad[0])
        axes = ", ".join(("row", "col", "query", "key")[-grid.ndim :])
        raise ValueError(
            f"{name} has {len(bad)} cells that are NaN or infinite; the first is {grid[where]} "
            f"at ({axes}) = {where}. Cells that are hidden on purpose belong in mask="
        )


def as_labels(labels, count, name, cells):
    """One visible label for each of `count` cells (rows or columns), or None for none at all."""
    if labels is None:
        return None
    labels = [labels] if isinstance(labels, str) and count == 1 else labels
    if isinstance(labels, str):
        raise ValueError(f"the {name} must be a list of tokens, got one string: {labels!r}")
    labels = [visible(label) for label in labels]
    if len(labels) != count:
        raise ValueError(f"{len(labels)} labels for {count} {cells}: the {name} do not fit")
    return labels


def shorten(text, longest=60):
    """The text, cut to so many characters, the last one then being an ellipsis."""
    text = str(text)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def visible(token):
    """`token` as text that can be seen: outer spaces and control characters are spelled out."""
    text = shorten(token)
    core = text.strip(" ")
    before, after = len(text) - len(text.lstrip(" ")), len(text) - len(text.rstrip(" "))
    text = "␣" * before + core + "␣" * (after if core else 0)
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text) or "''"
