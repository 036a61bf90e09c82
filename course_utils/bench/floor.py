"""The matrix products that a model of this size cannot do without, and nothing else.

No attention, softmax, norm, dropout, loss, optimiser or search: what this takes is a floor for
every implementation in the same precision, and how far ours is above it is what could be gained.
"""

import torch
from torch import Tensor, nn

from course_utils.bench.setting import D_FF, D_MODEL, LAYERS, V
from course_utils.text.batches import Batch
from course_utils.text.vocab import Vocab


def products(square: int) -> nn.Sequential:
    """The projections of one block, all in a row, and its feed-forward network."""
    layers = [nn.Linear(D_MODEL, D_MODEL, bias=False) for _ in range(square)]
    return nn.Sequential(*layers, nn.Linear(D_MODEL, D_FF), nn.Linear(D_FF, D_MODEL))


class Products:
    """Queries, keys, values and outputs of both attentions, feed-forward, output layer."""

    def __init__(self, device: torch.device):
        self.model = nn.ModuleDict({
            "encoder": nn.Sequential(*(products(4) for _ in range(LAYERS))),
            "decoder": nn.Sequential(*(products(6) for _ in range(LAYERS))),
            "source": nn.Linear(D_MODEL, 2 * LAYERS * D_MODEL, bias=False),  # cross keys, values
            "output": nn.Linear(D_MODEL, V, bias=False),
        }).to(device)  # fmt: skip

    def read(self, src: Tensor) -> Tensor:
        """(B, Ts) -> what cross-attention would look at."""
        x = torch.ones(src.numel(), D_MODEL, device=src.device)
        return self.model["source"](self.model["encoder"](x))

    def train(self, batch: Batch) -> None:
        """Forward and backward; only real tokens reach the output layer."""
        x = torch.ones(batch.tgt_in.numel(), D_MODEL, device=batch.tgt_in.device)
        real = batch.tgt_out.ne(Vocab.pad).flatten()
        logits = self.model["output"](self.model["decoder"](x)[real])
        (logits.mean() + self.read(batch.src).mean()).backward()
        self.model.zero_grad()

    def decode(self, src: Tensor, src_lens: Tensor, steps: int) -> list[list[int]]:
        """One position a sentence and step, as a cache allows."""
        with torch.no_grad():
            self.read(src)
            x = torch.ones(len(src), D_MODEL, device=src.device)
            for _ in range(steps):
                self.model["output"](self.model["decoder"](x))
        return [[Vocab.unk] * steps for _ in range(len(src))]
