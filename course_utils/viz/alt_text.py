"""Say in a line what a heatmap or a mask shows: alt text, made from the numbers themselves."""

import numpy as np

from course_utils.viz.arrays import as_labels, as_mask, check_finite, to_array


def read_heatmap(weights, queries=None, keys=None, *, mask=None, limit=6):
    """What a matrix of weights says, as one sentence of text.

    weights        (Tq, Tk); rows that are weights (>= 0, sum 1) are read query by query, any
                   other numbers by their largest and smallest entry
    queries, keys  the tokens, Tq and Tk of them; without them positions are named. A token that
                   stands more than once is followed by its position: the[0], the[4]
    mask           boolean, True = may look; the other cells are not read
    limit          at most so many queries are read out; the rest are counted

    >>> read_heatmap([[.93, .07], [.55, .45]], ["je", "moi"], ["i'm", "home"])
    "je looks most at i'm (0.93); moi splits its weight between i'm (0.55) and home (0.45)"
    """
    weights, shown = _matrix(weights, mask)
    queries = _names(queries, weights.shape[0], "query", "rows")
    keys = _names(keys, weights.shape[1], "key", "columns")
    if not is_attention(weights):
        return _read_extremes(weights, shown, queries, keys)
    rows = zip(queries[:limit], weights[:limit], strict=True)
    parts = [f"{query} {_read_row(row, keys)}" for query, row in rows]
    return "; ".join(parts + _rest(len(queries) - limit))


def read_mask(mask, queries=None, keys=None, *, limit=6):
    """Which keys each query may look at, as one sentence.

    mask (Tq, Tk), boolean, True = may look. Masks of the usual kinds are named.
    """
    mask = to_array(mask, "mask")
    if mask.ndim != 2:
        raise ValueError(f"mask must be (Tq, Tk), got shape {mask.shape}")
    mask = as_mask(mask, mask.shape)
    queries = _names(queries, mask.shape[0], "query", "rows")
    keys = _names(keys, mask.shape[1], "key", "columns")
    if mask.all():
        return "every query may look at every key"
    if mask.shape[0] > 1 and np.array_equal(mask, np.tri(*mask.shape, dtype=bool)):
        return "each query may look at itself and at what stands before it"
    if (mask == mask[0]).all():
        return f"every query may look at {_some(keys, mask[0])}"
    rows = zip(queries[:limit], mask[:limit], strict=True)
    parts = [f"{query} may look at {_some(keys, row)}" for query, row in rows]
    return "; ".join(parts + _rest(len(queries) - limit))


def is_attention(weights):
    """True if the rows are weights: none negative, each sum 1 (or 0: nothing to look at)."""
    sums = weights.sum(-1)
    whole = np.isclose(sums, 1, atol=0.02)  # half-precision weights sum to 1 only so well
    return bool((weights >= 0).all() and (whole | (sums == 0)).all() and whole.any())


def _matrix(weights, mask):
    """The weights, 0 where hidden, and which cells are not hidden: two arrays (Tq, Tk)."""
    weights = to_array(weights, "weights").astype(np.float64)
    if weights.ndim != 2 or 0 in weights.shape:
        raise ValueError(f"weights must be one matrix (Tq, Tk), got shape {weights.shape}")
    shown = np.ones(weights.shape, bool) if mask is None else as_mask(mask, weights.shape)
    check_finite(weights, shown, "weights")
    return np.where(shown, weights, 0.0), shown


def _names(labels, count, kind, cells):
    labels = as_labels(labels, count, f"{kind} tokens", cells)
    if labels is None:
        return [f"{kind} {i}" for i in range(count)]
    return [f"{t}[{i}]" if labels.count(t) > 1 else t for i, t in enumerate(labels)]


def _rest(more):
    return [f"and {more} more {'query' if more == 1 else 'queries'}"] if more > 0 else []


def _read_row(row, keys):
    if not row.any():
        return "looks at nothing"
    order = np.argsort(-row, kind="stable")
    seen = int((row > 0).sum())
    top, best = row[order], [f"{keys[k]} ({row[k]:.2f})" for k in order[:3]]
    if top[0] >= 0.6 or seen == 1:
        return f"looks most at {best[0]}"
    if seen > 2 and top[0] < 1.5 / seen:
        return f"spreads its weight over {seen} keys"
    if top[:2].sum() >= 0.7 and (seen == 2 or top[2] <= top[1] / 2):
        return f"splits its weight between {best[0]} and {best[1]}"
    return f"looks at {', '.join(best)}" + (" and others" if seen > 3 else "")


def _read_extremes(values, shown, queries, keys):
    if not shown.any():
        return "every cell is masked"
    ends = []
    lowest = np.where(shown, values, np.inf).argmin()
    highest = np.where(shown, values, -np.inf).argmax()
    for index in (lowest, highest):
        q, k = np.unravel_index(index, values.shape)
        ends.append(f"{values[q, k]:.2f} ({queries[q]}, {keys[k]})")
    return f"values from {ends[0]} to {ends[1]}"


def _some(names, chosen):
    names = [n for n, yes in zip(names, chosen, strict=True) if yes]
    if not names:
        return "nothing"
    if len(names) > 4:
        return f"{len(names)} keys, {names[0]} to {names[-1]}"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
