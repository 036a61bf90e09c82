"""One place that makes a run repeatable."""

import random


def set_seed(seed: int = 0) -> None:
    """Seed Python's, NumPy's and torch's random number generators.

    The same seed gives the same numbers again on the same machine and versions. Call it at the
    top of a notebook and again before each training, so that cells can be run on their own.
    """
    import numpy
    import torch

    random.seed(seed)
    numpy.random.seed(seed)
    torch.manual_seed(seed)
