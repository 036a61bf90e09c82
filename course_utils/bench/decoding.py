"""Greedy decoding, by batch size and number of steps."""

from collections.abc import Mapping

import torch

from course_utils.bench.rounds import Timing, timed
from course_utils.bench.sizes import SHORT, random_batch

CASES = [(n, steps) for n in (1, 64) for steps in (20, 80, 160)]


def greedy(
    models: Mapping[str, object], sentences: int, steps: int, rounds: int, device: torch.device
) -> dict[str, Timing]:
    """Decode so many sentences for so many steps; the work is the sentences."""
    batch = random_batch(SHORT).to(device)
    src, src_lens = batch.src[:sentences], batch.src_lens[:sentences]
    calls = {
        name: lambda model=model: model.decode(src, src_lens, steps)
        for name, model in models.items()
    }
    return timed(calls, sentences, rounds, device)


def timings(
    models: Mapping[str, object], rounds: int, device: torch.device
) -> dict[str, dict[str, Timing]]:
    """All measurements of decoding, in sentences a second."""
    return {
        f"greedy decoding, {n} at once, {steps} steps": greedy(models, n, steps, rounds, device)
        for n, steps in CASES
    }
