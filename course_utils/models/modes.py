"""Training mode and evaluation mode."""

from contextlib import contextmanager

import torch


@contextmanager
def evaluating(model: torch.nn.Module):
    """No dropout and no gradients inside; afterwards each part is in the mode it was in."""
    modes = [(part, part.training) for part in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield model
    finally:
        for part, training in modes:
            part.training = training
