"""Data parallel training in its smallest form: several processes, one model.

    torchrun --standalone --nproc_per_node 2 -m course_utils.training.data_parallel FILE

Every process holds the whole model and works on its own share of each batch. After the backward
pass the gradients are averaged over the processes, so that all take the same step. Process 0 writes
what came out to FILE. Everything runs in float64, so that results can be compared closely.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from course_utils.environment import ROOT
from course_utils.models.masks import causal_mask
from course_utils.models.token_encoder import TokenEncoder
from course_utils.training.seeds import set_seed

VOCAB_SIZE, LENGTH, GLOBAL_BATCH, STEPS, LR = 12, 7, 8, 5, 0.1


class NextToken(nn.Module):
    """A small causal language model, the same in every process."""

    def __init__(self):
        super().__init__()
        set_seed(0)
        self.encoder = TokenEncoder(VOCAB_SIZE, 16, 2, 32, num_layers=1, dropout=0.0)
        self.output = nn.Linear(16, VOCAB_SIZE)
        self.double()

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T) ids -> logits (B, T, V) of the next token."""
        return self.output(self.encoder(tokens, causal_mask(tokens.shape[1])))


def global_batch(step: int) -> Tensor:
    """All the sequences of one step, (GLOBAL_BATCH, LENGTH) ids, the same for every process."""
    generator = torch.Generator().manual_seed(step)
    return torch.randint(VOCAB_SIZE, (GLOBAL_BATCH, LENGTH), generator=generator)


def average_gradients(model: nn.Module) -> None:
    """What DistributedDataParallel does, by hand: the mean over all processes, in every process."""
    for p in model.parameters():
        dist.all_reduce(p.grad)  # the sum over all processes
        p.grad /= dist.get_world_size()


def train(model: nn.Module, rank: int = 0, world: int = 1, after_backward=None) -> list[float]:
    """Train on share `rank` of `world` of every batch, by plain gradient descent.

    Args:
        after_backward: called with the model between backward pass and update.

    Returns:
        the norm of this process's gradient in each step, before `after_backward`.
    """
    optimizer, norms = torch.optim.SGD(model.parameters(), lr=LR), []
    for step in range(STEPS):
        tokens = global_batch(step)[rank::world]  # (GLOBAL_BATCH / world, LENGTH)
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        norms.append(torch.cat([p.grad.flatten() for p in model.parameters()]).norm().item())
        if after_backward is not None:
            after_backward(model)
        optimizer.step()
    return norms


def work(out: Path, store: str = "env://") -> None:
    """What every process runs; RANK and WORLD_SIZE in the environment say which one it is."""
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=world)
    by_hand, automatic = NextToken(), NextToken()
    local_norms = train(by_hand, rank, world, after_backward=average_gradients)
    train(DistributedDataParallel(automatic), rank, world)
    norms = [None] * world
    dist.all_gather_object(norms, local_norms)
    if rank == 0:
        states = {"by hand": by_hand.state_dict(), "DDP": automatic.state_dict()}
        torch.save({"states": states, "norms": norms}, out)
    dist.destroy_process_group()


def _commands(processes: int, folder: Path, torchrun: bool) -> list[tuple[list[str], dict]]:
    """What to start, each with what it needs in its environment."""
    script = ["-m", "course_utils.training.data_parallel", str(folder / "result.pt")]
    if torchrun:
        options = ["--standalone", "--local-addr", "127.0.0.1", "--nproc_per_node", str(processes)]
        return [([sys.executable, "-m", "torch.distributed.run", *options, *script], {})]
    command = [sys.executable, *script, "--store", (folder / "store").as_uri()]
    return [
        (command, {"RANK": str(rank), "WORLD_SIZE": str(processes)}) for rank in range(processes)
    ]


def launch(
    processes: int = 2, *, torchrun: bool = sys.platform != "win32", seconds: float = 120.0
) -> dict:
    """Run this module in several processes of this machine and wait for the result.

    Args:
        torchrun: leave the start to torchrun; else every process is started here with its RANK and
            WORLD_SIZE, and they meet in a file. That is the way on Windows, where torch is built
            without the network store that torchrun waits for.
        seconds: after which the processes are stopped.

    Returns:
        "states": weights after training, averaged "by hand" and by "DDP"; "norms": for each
        process the norms of its own gradients.

    Raises:
        ValueError: the batch cannot be shared out equally.
        RuntimeError: a process failed or took too long; the message ends with what it wrote.
    """
    if processes < 1 or GLOBAL_BATCH % processes:
        raise ValueError(f"{GLOBAL_BATCH} sequences cannot be shared out over {processes}")
    common = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    loopback = {"linux": "lo", "darwin": "lo0"}.get(sys.platform)
    if loopback:  # nothing leaves this machine, and no host name has to be known
        common["GLOO_SOCKET_IFNAME"] = loopback
    with tempfile.TemporaryDirectory() as name:
        folder, running = Path(name), []
        try:
            for command, needed in _commands(processes, folder, torchrun):
                running.append(
                    subprocess.Popen(
                        command, env=os.environ | common | needed, text=True,
                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                    )
                )  # fmt: skip
            for process in running:
                _, errors = process.communicate(timeout=seconds)
                if process.returncode:
                    raise RuntimeError(f"a process ended with an error:\n{errors[-2000:]}")
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"the processes did not end within {seconds} seconds") from None
        finally:
            for process in running:
                with process:  # this closes its pipe, and waits until it has ended
                    process.terminate()
        return torch.load(folder / "result.pt", weights_only=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="course_utils.training.data_parallel", description=__doc__
    )
    parser.add_argument("out", type=Path, help="file for the result")
    parser.add_argument("--store", default="env://", help="where the processes meet")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    work(options.out, options.store)


if __name__ == "__main__":
    main()
