"""Cards on note 002, section 3 and memory card 2: which modules, in which order."""

import torch
from torch import nn

from course_utils.attention import MultiHeadAttention
from course_utils.recall.chosen import Choice, Keyword, Order, statement
from course_utils.recall.computed import Number
from course_utils.recall.model import card
from course_utils.sizes import BASE, on_meta
from course_utils.transformer import (
    AddNorm,
    DecoderBlock,
    EncoderBlock,
    PositionWiseFFN,
    Transformer,
    TransformerConfig,
)

NAMES = {
    "self-attention": ["MHA", "MHSA", "attention", "multi-head attention", "self-attn",
                       "multi-head self-attention", "自注意力"],
    "masked self-attention": ["masked MHSA", "masked MHA", "masked self-attn",
                              "masked multi-head self-attention", "causal self-attention"],
    "cross-attention": ["cross", "cross-attn", "encoder-decoder attention", "交叉注意力"],
    "add & norm": ["add+norm", "add and norm", "AddNorm", "add & LayerNorm", "AN",
                   "residual + LayerNorm"],
    "FFN": ["feed-forward", "feed forward network", "feed-forward network", "MLP",
            "PositionWiseFFN", "feed forward network (FFN)", "前馈网络"],
}  # fmt: skip
_ENCODER = ("self-attention", "add & norm", "FFN", "add & norm")
_DECODER = (
    "masked self-attention", "add & norm", "cross-attention", "add & norm", "FFN", "add & norm",
)  # fmt: skip


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


def count(kind, module=None):
    """How many modules of a kind the base model (or a module) has."""
    module = module or on_meta(lambda: Transformer(BASE))
    return sum(isinstance(m, kind) for m in module.modules())


CARDS = [
    card(
        "encoder-order", "08_transformer_blocks", "block order", "002-81 002-86 002-100",
        "The modules of one encoder block (post-norm), in order.",
        Order(_ENCODER, NAMES, lambda: modules_in_order(EncoderBlock(8, 2, 16)),
              {("FFN", "add & norm", "self-attention", "add & norm"):
               "First the tokens exchange what they know, then each works on its own.",
               ("self-attention", "FFN", "add & norm"): "Each sub-layer has an add & norm.",
               ("add & norm", "self-attention", "add & norm", "FFN"):
               "That is pre-norm, where only the norm comes first and the sum still comes last."}),
        "Attention moves information between positions, the FFN works on each position.",
        "section 3 lists \"embedding + positional encoding\" as item 1 of each layer (002-86); "
        "they stand once, below the stack.",
    ),
    card(
        "decoder-order", "08_transformer_blocks", "block order", "002-82 002-86 002-102",
        "The modules of one decoder block (post-norm), in order.",
        Order(_DECODER, NAMES, lambda: modules_in_order(DecoderBlock(8, 2, 16)),
              {("cross-attention", "add & norm", "masked self-attention", "add & norm", "FFN",
                "add & norm"):
               "The target looks at itself first, then asks the source.",
               ("self-attention", "add & norm", "cross-attention", "add & norm", "FFN",
                "add & norm"): "Its self-attention is masked.",
               ("masked self-attention", "add & norm", "FFN", "add & norm"):
               "That is a decoder-only block: the look at the source is missing."}),
        "The encoder block with a second attention in the middle, and a causal mask in the first.",
        "the decoder has seven items in section 3 and six on the memory card (002-86); six is "
        "right, the embedding stands below the stack.",
    ),
    card(
        "embeddings-in-the-encoder", "08_transformer_blocks", "counting", "002-86 002-100",
        "How often do the embedding and the positional encoding occur in an encoder of 6 layers?",
        Number(lambda: sum(name.startswith("src_embedding") for name, _ in
                           on_meta(lambda: Transformer(BASE)).named_children()),
               {6: "They stand below the stack, not in every layer.",
                12: "Only the source goes through the encoder, and only once."}),
        "Tokens become vectors once; after that only vectors are passed on.",
        "section 3 writes them into every layer.",
    ),
    card(
        "norms-per-encoder-block", "08_transformer_blocks", "counting", "002-86 002-100",
        "How many add & norm has one encoder block?",
        Number(lambda: count(AddNorm, EncoderBlock(8, 2, 16)),
               {1: "One for each sub-layer: attention and FFN.",
                3: "That is the decoder block."}),
        "One for each sub-layer.",
    ),
    card(
        "norms-per-decoder-block", "08_transformer_blocks", "counting", "002-86 002-102",
        "How many add & norm has one decoder block?",
        Number(lambda: count(AddNorm, DecoderBlock(8, 2, 16)),
               {2: "That is the encoder block; the decoder has a sub-layer more."}),
        "Masked self-attention, cross-attention, FFN: one each.",
    ),
    card(
        "attentions-in-the-base-model", "08_transformer_blocks", "counting", "002-84 002-86",
        "The base model has 6 + 6 layers. How many multi-head attentions does it have in all?",
        Number(lambda: count(MultiHeadAttention),
               {12: "A decoder layer has two: on itself and on the source.",
                24: "An encoder layer has only one.",
                6: "Both stacks count."}),
        "6 in the encoder, 6 x 2 in the decoder.",
    ),
    card(
        "decoder-specials", "08_transformer_blocks", "mask missing", "002-82 002-90 002-113",
        "What does a decoder block have that an encoder block has not?",
        Choice(["a causal mask in its self-attention", "a feed-forward network",
                "residual connections", "cross-attention"], "ad",
               {"b": "Both have it.", "c": "Both have them."}),
        "All the rest is the same.",
    ),
    card(
        "where-the-source-enters", "08_transformer_blocks", "role of q, k, v",
        "002-112 002-102 002-103",
        "The drawing of note 002: generated tokens go up through the decoder. In which module "
        "does the encoder's output join?",
        Keyword("cross-attention", ["encoder-decoder attention", "cross-attn",
                                    "multi-head cross-attention",
                                    "multi-head encoder-decoder attention",
                                    "encoder-decoder cross-attention", "交叉注意力"],
                {"self-attention": "There the target looks at itself only.",
                 "masked self-attention": "There the target looks at itself only.",
                 "FFN": "The FFN sees one position at a time.",
                 "embedding": "Only token ids go in there."}),
        "Its keys and values are the encoder's output, in every decoder layer.",
    ),
    card(
        "encoder-output-once", "08_transformer_blocks", "block order", "002-112 002-101",
        "True or false: each of the 6 decoder layers looks at the output of the *last* encoder "
        "layer.",
        statement(True, "Layer i of the decoder does not read layer i of the encoder: the memory "
                        "is one tensor for all.", lambda: _same_memory()),
        "The encoder's output is one tensor, (B, Ts, d_model), for all decoder layers.",
    ),
    card(
        "what-ffn-mixes", "08_transformer_blocks", "block order", "002-89 002-86",
        "Which module mixes information *between* positions?",
        Choice(["attention", "the FFN", "LayerNorm", "the residual connection"], "a",
               {"b": "It is applied to each position on its own.",
                "c": "Its statistics are taken per token.",
                "d": "It adds a position to itself."}, lambda: _mixers()),
        "Attention is the only one; all the others treat every position alike and alone.",
    ),
]  # fmt: skip


def _same_memory():
    """Whether the keys of every decoder layer are made from the encoder's output."""
    model = Transformer(TransformerConfig(9, 9, 8, 2, 8, 3, 3)).eval()
    read = []
    for block in model.decoder:
        keys = block.cross_attention.W_k
        keys.register_forward_pre_hook(lambda _, given: read.append(given[0]))
    source, lengths = torch.tensor([[3, 4, 5]]), torch.tensor([3])
    memory = model.encode(source, lengths)
    model.start(source, lengths)
    return len(read) == 3 and all(torch.equal(x, memory) for x in read)


def _mixers():
    """The letters of the modules in which another position changes when one does."""
    x = torch.randn(1, 4, 8, generator=torch.Generator().manual_seed(0))
    changed = x.clone()
    changed[0, 3] += 1
    attention, norm = MultiHeadAttention(8, 2), nn.LayerNorm(8)
    ffn = PositionWiseFFN(8, 16)
    modules = [lambda x: attention(x, x, x), ffn, norm, lambda x: x + ffn(x)]
    return {
        letter
        for letter, module in zip("abcd", modules)
        if not torch.allclose(module(x)[0, :3], module(changed)[0, :3], atol=1e-6)
    }
