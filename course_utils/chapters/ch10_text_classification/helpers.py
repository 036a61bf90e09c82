"""Draws the lists of verdicts of chapter 10."""

import torch
from torch import Generator, cat, full

from course_utils.text.review_task import ReviewBatch


def draw_lists(
    subjects: int, number: int, size: int, question_first: bool, generator: Generator
) -> ReviewBatch:
    """Lists of `number` verdicts on different subjects, and a question about one of them.

    A step is two ids, the subject's (from 3 on) and the verdict's: 1 bad, 2 good, or 0, which asks.
    The label is the verdict that is asked for, 0 bad or 1 good.
    """
    order = torch.rand(size, subjects, generator=generator).argsort(1)
    chosen = order[:, :number] + 3  # (B, number), all different
    good = torch.randint(2, (size, number), generator=generator)  # (B, number)
    asked = torch.randint(number, (size, 1), generator=generator)  # (B, 1)
    verdicts = torch.stack([chosen, good + 1], dim=-1)  # (B, number, 2)
    question = torch.stack([chosen.gather(1, asked), 0 * asked], dim=-1)  # (B, 1, 2)
    steps = [question, verdicts] if question_first else [verdicts, question]
    return ReviewBatch(cat(steps, dim=1), full((size,), number + 1), good.gather(1, asked)[:, 0])
