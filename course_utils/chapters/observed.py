"""What running models show of themselves: helpers that cards, figures and lessons share."""

import torch

from course_utils.models.attention import MultiHeadAttention
from course_utils.models.transformer import DecoderBlock, Transformer, TransformerConfig
from course_utils.training.decoding import greedy_decode


def tiny_model(d_model=8, num_heads=2, vocabulary=9):
    """A Transformer of one size smaller than any in use, always with the same weights."""
    torch.manual_seed(0)
    return Transformer(TransformerConfig(vocabulary, vocabulary, d_model, num_heads, 8)).eval()


def modules_in_order(block):
    """The names of the parts of a block, in the order in which they run (post-norm)."""
    names = {"attention": "self-attention", "self_attention": "masked self-attention",
             "cross_attention": "cross-attention", "ffn": "FFN"}  # fmt: skip
    ran = []

    def note(name):
        return lambda *_: ran.append(name)

    for name, module in block.named_children():
        shown = names.get(name, "add & norm")
        watched = module.W_o if isinstance(module, MultiHeadAttention) else module
        watched.register_forward_hook(note(shown))
    x = torch.zeros(1, 3, 8)
    block(x, block.project_source(x)) if isinstance(block, DecoderBlock) else block(x)
    return ran


def count_calls(max_len):
    """How often encoder and decoder run while a sentence of `max_len` tokens is written."""
    model, calls = Transformer(TransformerConfig(9, 9, d_model=8, d_ff=8)), {}
    for name in ("encode", "decode"):
        run = getattr(model, name)

        def counted(*args, _run=run, _name=name, **words):
            calls[_name] = calls.get(_name, 0) + 1
            return _run(*args, **words)

        setattr(model, name, counted)
    source = torch.tensor([[3, 4, 5]])
    greedy_decode(model, source, torch.tensor([3]), bos=1, eos=-1, max_len=max_len)
    return calls
