"""What the cells of chapter 21 only call: drawn pictures, the training loop, three tables."""

import time

import pandas as pd
import torch
import torch.nn.functional as F

from course_utils.models.modern.toy_images import drawn_pictures
from course_utils.training.seeds import set_seed

SHAPES = 3  # so many logits answer the first question, the others the second
BATCH, WARMUP = 64, 20  # pictures an update, updates in which the learning rate rises


def scaled(pictures):
    """Pixels shifted and scaled, so that their mean is near 0."""
    return 3 * (pictures - 0.2)


def draw(number, seed, **look):
    """Pictures (n, 1, 16, 16), answers (n, 2) for shape and quarter, masks (n, 16, 16)."""
    generator = torch.Generator().manual_seed(seed)
    pictures, shape, masks = drawn_pictures(number, 16, generator=generator, **look)
    lines = torch.arange(16.0)
    row, column = ((masks.any(axis) * lines).sum(1) / masks.any(axis).sum(1) for axis in (2, 1))
    quarter = 2 * (row > 7.5).long() + (column > 7.5).long()
    return scaled(pictures), torch.stack([shape, quarter], dim=1), masks


def answers(model, pictures):
    """(n, 2): the most likely shape and quarter."""
    with torch.no_grad():
        logits = model.eval()(pictures)  # (n, 7)
    return torch.stack([logits[:, :SHAPES].argmax(-1), logits[:, SHAPES:].argmax(-1)], dim=1)


def right(model, pictures, labels):
    """Shares of right answers (2,): shape, quarter."""
    return (answers(model, pictures) == labels).float().mean(0)


def fit(make, pictures, labels, held, *, seed, updates, rate):
    """A trained model, and rows of (updates, seconds, right shapes, right quarters), one in 25.

    The batches depend on the seed alone. held: pictures and labels that are held out.
    """
    set_seed(seed)
    model, order = make(), torch.Generator().manual_seed(seed)
    adam = torch.optim.Adam(model.parameters(), fused=True)
    curve, seconds = [], 0.0
    for update in range(1, updates + 1):
        start = time.perf_counter()
        for group in adam.param_groups:  # up in the first updates, down in the second half
            group["lr"] = rate * min(update / WARMUP, 1, 2 - 2 * (update - 1) / updates)
        batch = torch.randint(len(pictures), (BATCH,), generator=order)
        logits = model.train()(pictures[batch])
        shape, quarter = labels[batch].T
        loss = F.cross_entropy(logits[:, :SHAPES], shape)
        loss = loss + F.cross_entropy(logits[:, SHAPES:], quarter)
        adam.zero_grad()
        loss.backward()
        adam.step()
        seconds += time.perf_counter() - start
        if update % 25 == 0 or update == updates:
            curve.append([update, seconds, *right(model, *held).tolist()])
    return model, torch.tensor(curve)


def table_of_shares(found):
    """What was right of shapes and quarters: the mean, and the lowest and highest seed.

    found: name -> a list of (2,), one a seed.
    """
    rows = {}
    for name, shares in found.items():
        rows[name] = {}
        for column, values in zip(
            ("right shape", "right quarter"), torch.stack(shares).T, strict=True
        ):
            low, high = values.min(), values.max()
            rows[name][column] = f"{values.mean():.2f} ({low:.2f} to {high:.2f})"
    return pd.DataFrame.from_dict(rows, orient="index")


def table_of_ends(runs):
    """Right shapes and quarters at the end of each run, one number a seed.

    runs: (name, pictures, seed) -> (measurements, 4).
    """
    cells = {}
    for (name, number, _), curve in runs.items():
        for question, share in zip(("shape", "quarter"), curve[-1, 2:].tolist(), strict=True):
            cells.setdefault((question, name), {}).setdefault(number, []).append(f"{share:.2f}")
    columns = sorted(cells, key=lambda key: (key[0] == "quarter", key[1] == "net"))
    table = {key: {n: " ".join(cells[key][n]) for n in sorted(cells[key])} for key in columns}
    return pd.DataFrame(table).rename_axis("pictures")


def alike(model):
    """(N, N): cosines between the positions of patches, their mean taken away."""
    table = model.positions[1:].detach()
    table = F.normalize(table - table.mean(0), dim=-1)
    return table @ table.T


def table_of_neighbours(models, side=4):
    """Mean cosine of the positions of two patches, by how they lie in a grid of side x side."""
    row, column = torch.arange(side**2) // side, torch.arange(side**2) % side
    down, aside = (row[:, None] - row).abs(), (column[:, None] - column).abs()
    quarter = 2 * (row // (side // 2)) + column // (side // 2)
    own, step = quarter[:, None] == quarter, down + aside == 1
    kinds = {
        "one step, same quarter": step & own,
        "one step, other quarter": step & ~own,
        "same row, farther": (down == 0) & (aside > 1),
        "same column, farther": (aside == 0) & (down > 1),
        "neither": (down > 0) & (aside > 0),
    }
    return pd.DataFrame(
        {
            name: {kind: f"{alike(model)[pairs].mean():+.2f}" for kind, pairs in kinds.items()}
            for name, model in models.items()
        }
    )
