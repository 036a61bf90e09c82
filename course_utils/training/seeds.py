"""One place that makes a run repeatable."""

import random


def set_seed(seed: int = 0) -> None:
    """Seed Python's, NumPy's and torch's random number generators, and compute on one thread.

    The same seed gives the same numbers again on the same machine and versions. Call it at the
    top of a notebook and again before each training, so that cells can be run on their own.

    One thread, because several add up numbers in another order, so that what is printed would
    depend on how many cores there are; because tensors as small as a lesson's gain nothing from a
    second one; and because two threads wait for each other, several times as long as they compute,
    where another program is busy.
    """
    import numpy
    import torch

    random.seed(seed)
    numpy.random.seed(seed)
    torch.manual_seed(seed)
    torch.set_num_threads(1)
