"""One process or several: who am I, where do I compute, and how do we agree.

Under torchrun every process has a rank; without it there is one process, of rank 0.
"""

import argparse
import os

import torch
import torch.distributed as dist
from torch import Tensor, nn

from course_utils.training.runs.refusals import Refused, number


def rank() -> int:
    """The number of this process, from 0."""
    count = world_size()
    return _told("RANK", 0, 0, count - 1) if count > 1 else 0


def world_size() -> int:
    """How many processes train together."""
    return _told("WORLD_SIZE", 1, 1)


def _told(name: str, default: int, low: int, high: float = float("inf")) -> int:
    """A whole number that torchrun sets in the environment.

    Raises:
        Refused: it is none, or out of its range.
    """
    try:
        return number(int, low, high)(os.environ.get(name, str(default)))
    except argparse.ArgumentTypeError as error:
        raise Refused(
            f"{name} in the environment: {error}; unset it, or start with torchrun, which sets it"
        ) from None


def best_device() -> torch.device:
    """This process's accelerator where there is one, else the CPU."""
    if torch.cuda.is_available():
        local = _told("LOCAL_RANK", 0, 0) % torch.cuda.device_count()
        return torch.device("cuda", local)
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def join(device: torch.device) -> None:
    """Meet the other processes; alone, nothing happens."""
    if world_size() > 1:
        if device.type == "cuda":
            torch.cuda.set_device(device)
        rank()  # says what is wrong with it
        try:
            dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
        except ValueError as error:  # a part of what torchrun says is missing
            raise Refused(
                f"WORLD_SIZE is {world_size()}, but the processes cannot meet ({error}): unset it, "
                "or start with torchrun"
            ) from None


def leave() -> None:
    """The reverse of `join`."""
    if dist.is_initialized():
        dist.destroy_process_group()


def wait_for_all() -> None:
    """Go on when every process has come here."""
    if dist.is_initialized():
        dist.barrier()


def largest_of_all(numbers: list[float], device: torch.device) -> list[float]:
    """Each number's largest value over the processes, so that all decide alike."""
    if not dist.is_initialized():
        return numbers
    shared = torch.tensor(numbers, dtype=torch.float64, device=device)
    dist.all_reduce(shared, op=dist.ReduceOp.MAX)
    return shared.tolist()


def data_parallel(model: nn.Module, device: torch.device) -> nn.Module:
    """The model, whose gradients become the mean over the processes if there are several."""
    if not dist.is_initialized():
        return model
    ids = [device.index] if device.type == "cuda" else None
    return nn.parallel.DistributedDataParallel(model, device_ids=ids)


def share(loss_sum: Tensor, count: int) -> Tensor:
    """The loss to follow here, so that the mean of all gradients is that of the global batch.

    Args:
        loss_sum: the sum over this process's tokens; count: tokens of all processes together.
    """
    return loss_sum * (world_size() / count)
