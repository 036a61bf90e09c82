"""A trained Transformer as two ONNX files, for programs without Python or PyTorch."""

import contextlib
import io
import logging
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.export import Dim

from course_utils.models.masks import causal_mask
from course_utils.models.transformer import Transformer
from course_utils.models.trunk import run_blocks
from course_utils.training.runs.refusals import Refused

ENCODER, DECODER = "encoder.onnx", "decoder.onnx"


def _source_mask(src_lens: Tensor, steps: int) -> Tensor:
    return (torch.arange(steps) < src_lens[:, None])[:, None, None]  # (B, 1, 1, Ts)


class _Encoder(nn.Module):
    """`Transformer.encode` without its checks of values, which a graph cannot hold."""

    def __init__(self, model: Transformer):
        super().__init__()
        self.model = model

    def forward(self, src: Tensor, src_lens: Tensor) -> Tensor:
        """(B, Ts) ids and (B,) lengths -> (B, Ts, d_model)."""
        model, mask = self.model, _source_mask(src_lens, src.shape[1])
        x = model._embed(src, model.src_embedding, model.src_positions)
        return model.encoder_norm(run_blocks(model.encoder, x, mask)[0])


class _Decoder(nn.Module):
    """`Transformer.decode` of all tokens so far, without a cache."""

    def __init__(self, model: Transformer):
        super().__init__()
        self.model = model

    def forward(self, tgt: Tensor, memory: Tensor, src_lens: Tensor) -> Tensor:
        """(B, Tt) ids -> logits (B, V) of the token after the last."""
        model, mask = self.model, _source_mask(src_lens, memory.shape[1])
        x = model._embed(tgt, model.tgt_embedding, model.tgt_positions)
        for block in model.decoder:
            source = block.project_source(memory, mask)
            x, _ = block(x, source, None, causal_mask(tgt.shape[1]), mask)
        return model.output(model.decoder_norm(x[:, -1]))


def write_onnx(model: Transformer, folder: Path) -> None:
    """Write encoder.onnx and decoder.onnx, in single precision.

    Raises:
        Refused: the packages that write such files are not installed.
    """
    try:
        import onnxscript  # noqa: F401
    except ModuleNotFoundError:
        raise Refused("ONNX files are written by onnxscript: pip install onnxscript") from None
    model = model.cpu().float().eval()
    batch, most = Dim("batch"), model.config.max_len
    source, target = Dim("source", max=most), Dim("target", max=most)
    lens = torch.tensor([5, 3])
    src, tgt = torch.ones(2, 5, dtype=torch.long), torch.ones(2, 4, dtype=torch.long)
    memory = torch.zeros(2, 5, model.config.d_model)
    _write(_Encoder(model), (src, lens), folder / ENCODER, ["src", "src_lens"], "memory",
           ({0: batch, 1: source}, {0: batch}))  # fmt: skip
    _write(_Decoder(model), (tgt, memory, lens), folder / DECODER, ["tgt", "memory", "src_lens"],
           "logits", ({0: batch, 1: target}, {0: batch, 1: source}, {0: batch}))  # fmt: skip


def _write(module, inputs, path, names, output, shapes) -> None:
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of the exporter about itself
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        program = torch.onnx.export(module, inputs, dynamo=True, input_names=names,
                                    output_names=[output], dynamic_shapes=shapes)  # fmt: skip
        program.save(path)
