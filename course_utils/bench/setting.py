"""The size at which all models meet, and random sentences for them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from course_utils.text.batches import Batch
from course_utils.text.vocab import Vocab

V = 8000  # shared size of both vocabularies
D_MODEL, HEADS, D_FF, LAYERS = 256, 8, 1024, 3
DROPOUT = 0.1  # of embeddings and sub-layer outputs; of attention weights where a model has it
MAX_LEN = 512


@dataclass(frozen=True)
class Shape:
    """Sentences in a batch, positions in each, and the shortest real length."""

    sentences: int
    positions: int
    shortest: int

    def __str__(self) -> str:
        lengths = f"{self.shortest}..{self.positions} real" if self.padded else "all real"
        return f"{self.sentences} x {self.positions}, {lengths}"

    @property
    def padded(self) -> bool:
        return self.shortest < self.positions


SHORT = Shape(64, 20, 8)  # as fra-eng fills d2l's 20 steps
LONG = Shape(16, 128, 128)


def random_batch(shape: Shape, seed: int = 0) -> Batch:
    """Random ids without the reserved ones; padding where a sentence is shorter than the batch."""
    generator = torch.Generator().manual_seed(seed)
    size = (shape.sentences, shape.positions)

    def lengths() -> Tensor:
        drawn = torch.randint(shape.shortest, shape.positions + 1, size[:1], generator=generator)
        drawn[0] = shape.positions
        return drawn

    def ids(lens: Tensor) -> Tensor:
        drawn = torch.randint(Vocab.eos + 1, V, size, generator=generator)
        return drawn.masked_fill(torch.arange(size[1]) >= lens[:, None], Vocab.pad)

    src_lens, tgt_lens = lengths(), lengths()
    return Batch(ids(src_lens), src_lens, ids(tgt_lens), ids(tgt_lens))
