"""Greedy decoding, by batch size and number of steps."""

from collections.abc import Mapping

import torch

from course_utils.bench.rounds import Measurement, rates
from course_utils.bench.setting import SHORT, random_batch

TASK = "decode"
CASES = [(n, steps) for n in (1, 64) for steps in (20, 80, 160)]


def shape(sentences: int, steps: int) -> str:
    """What the records call this case."""
    return f"n = {sentences}, {steps} steps"


def greedy(
    models: Mapping[str, object], sentences: int, steps: int, rounds: int, device: torch.device
) -> Measurement:
    """Decode so many sentences for so many steps."""
    batch = random_batch(SHORT).to(device)
    src, src_lens = batch.src[:sentences], batch.src_lens[:sentences]
    calls = {
        name: lambda model=model: model.decode(src, src_lens, steps)
        for name, model in models.items()
    }
    values = rates(calls, sentences, rounds, device)
    return Measurement(TASK, shape(sentences, steps), "sentences/s", values)


def measurements(
    models: Mapping[str, object], rounds: int, device: torch.device
) -> list[Measurement]:
    """All cases of decoding."""
    return [greedy(models, n, steps, rounds, device) for n, steps in CASES]
