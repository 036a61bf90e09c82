"""Weights in bytes: a linear layer whose matrix is int8, with one scale an output."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.models.modern.paged_cache import quantise


class Int8Linear(nn.Module):
    """A trained nn.Linear with its weights as int8: a quarter of the bytes, for use only.

    y = (x @ codes^T) * scale + bias, one scale a row of the matrix, that is, an output. The codes
    are made floating-point again for the product, so that memory shrinks and speed need not grow.
    Source: weight-only quantisation by rows as in Dettmers et al. 2022, LLM.int8(), section 2.

    Args:
        linear: the layer to take over; it stays as it is.
    """

    def __init__(self, linear: nn.Linear):
        super().__init__()
        rows = quantise(linear.weight.detach())
        self.register_buffer("codes", rows.codes)  # (out, in) int8
        self.register_buffer("scale", rows.scale.squeeze(-1))  # (out,)
        bias = None if linear.bias is None else linear.bias.detach().clone()
        self.register_buffer("bias", bias)

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        y = F.linear(x, self.codes.to(x.dtype)) * self.scale.to(x.dtype)
        return y if self.bias is None else y + self.bias.to(x.dtype)


def quantise_linears(model: nn.Module) -> int:
    """Replace every nn.Linear inside a model by its int8 form; how many there were.

    A matrix that other parts share, such as a tied embedding, stays with them as it is.
    """
    found = [
        (part, name, child)
        for part in model.modules()
        for name, child in part.named_children()
        if type(child) is nn.Linear
    ]
    for part, name, child in found:
        setattr(part, name, Int8Linear(child))
    return len(found)


def weight_bytes(model: nn.Module) -> int:
    """Bytes of all parameters and saved buffers, shared ones once."""
    tensors = {x.data_ptr(): x for x in (*model.parameters(), *model.state_dict().values())}
    return sum(x.nbytes for x in tensors.values() if isinstance(x, torch.Tensor))
