"""What the cells of chapter 14 only call: its examples and batches, and a counter of operations."""

import random

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from course_utils.text.batches import pad


def draw(rows, most, seed=0):
    """At most so many rows of each kind, drawn at random.

    Args:
        rows: (ids, label) of each sentence.

    Returns:
        those rows, label by label.
    """
    rows = random.Random(seed).sample(rows, len(rows))  # all, in random order
    drawn = []
    for label in sorted({label for _, label in rows}):
        drawn += [row for row in rows if row[1] == label][:most]
    return drawn


def batches(rows, updates, seed=0, size=32):
    """One batch for each update, of sentences of similar length.

    Args:
        rows: (ids, label) of each sentence.

    Returns:
        A list of (tokens (B, T), lengths (B,), labels (B,)).
    """
    rng = random.Random(seed)
    chunks = []
    while len(chunks) < updates:
        order = sorted(rng.sample(rows, len(rows)), key=lambda row: len(row[0]))
        new = [order[i : i + size] for i in range(0, len(order), size)]
        chunks += rng.sample(new, len(new))
    found = []
    for chunk in chunks[:updates]:
        tokens, lengths = pad([ids for ids, _ in chunk])
        found.append((tokens, lengths, torch.tensor([label for _, label in chunk])))
    return found


def operations(loss_of, model, batch, learn):
    """Floating-point operations of all matrix products: forward, and backward if it learns.

    Args:
        loss_of: computes the loss of the model on a batch.
    """
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        loss = loss_of(model, batch)
        if learn:
            loss.backward()
    return counter.get_total_flops()
