"""What a computation costs: multiply-adds, bytes held and kept, seconds."""

import contextlib
import os
import sys
import time
import timeit
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode


def multiply_adds(f: Callable, *inputs: Tensor) -> int:
    """Multiply-adds of all matrix products in f(*inputs), as torch counts them.

    torch counts a multiply-add as two operations, and counts no softmax and no additions.
    """
    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        f(*inputs)
    return counter.get_total_flops() // 2


def bytes_held(f: Callable, *inputs: Tensor) -> int:
    """The most bytes that f(*inputs) held at once beyond its inputs, without gradients.

    Read from the log of torch's allocator on the CPU, so what a compiled kernel takes inside itself
    counts, and what ran before does not. What others allocate, such as NumPy, is not in that log.
    """
    with torch.no_grad(), _quiet(), profile(
        activities=[ProfilerActivity.CPU], profile_memory=True
    ) as log:  # fmt: skip
        f(*inputs)
    held = most = 0
    for event in log.profiler.kineto_results.events():
        if event.name() == "[memory]":  # bytes taken, or given back where negative
            held += event.nbytes()
            most = max(most, held)
    return most


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The profiler writes to the process's stderr that it starts and stops."""
    kept = os.dup(2)
    with open(os.devnull, "w", encoding="utf-8") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def bytes_kept(f: Callable, *inputs: Tensor) -> int:
    """Bytes of the different tensors that autograd keeps of f(*inputs) for the backward pass.

    The inputs are made to need a gradient, as in training. Counted, not measured: the same
    number on every machine.
    """
    kept = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    inputs = [x.detach().requires_grad_() if x.is_floating_point() else x for x in inputs]
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        result = f(*inputs)
    del result  # lived until here, so that no memory was used twice
    return sum(kept.values())


def seconds(f: Callable, *inputs: Tensor, repeats: int = 3) -> float:
    """The shortest of several runs of f(*inputs), without gradients.

    Counted is the time in which the processor works for us, on all threads, so that other
    programs hardly matter. (Windows counts that too coarsely; there it is the time on the clock.)
    """
    clock = time.perf_counter if sys.platform == "win32" else time.process_time
    with torch.no_grad():
        f(*inputs)  # the first run pays for what later ones reuse
        return min(timeit.repeat(lambda: f(*inputs), timer=clock, number=1, repeat=repeats))
