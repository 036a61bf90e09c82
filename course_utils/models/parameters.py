"""The sizes that people quote, and the parameters that they make, counted and not remembered.

Models are built on torch's meta device: every shape is there, but no memory is used.
"""

from dataclasses import replace

import torch
from torch import nn

from course_utils.models.transformer import Transformer, TransformerConfig

VOCABULARY = 37_000  # shared by both languages (Vaswani et al. 2017, section 5.1)

BASE = TransformerConfig(
    VOCABULARY, VOCABULARY, d_model=512, num_heads=8, d_ff=2048,
    num_encoder_layers=6, num_decoder_layers=6, norm_first=False, bias=True,
)  # fmt: skip
BIG = replace(BASE, d_model=1024, num_heads=16, d_ff=4096)


def on_meta(build) -> nn.Module:
    """The module that `build()` makes, with shapes only."""
    with torch.device("meta"):
        return build()


def parts(config: TransformerConfig) -> dict[str, int]:
    """Parameters of the encoder's and decoder's layers and of the embeddings.

    Both languages and the output layer share one embedding, as in the paper, so it counts once.
    """
    model = on_meta(lambda: Transformer(config))
    return {
        "encoder": count_parameters(model.encoder) + count_parameters(model.encoder_norm),
        "decoder": count_parameters(model.decoder) + count_parameters(model.decoder_norm),
        "embedding": count_parameters(model.tgt_embedding),
    }


def count_parameters(model: nn.Module) -> int:
    """Trainable numbers of a model, shared ones counted once."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)
