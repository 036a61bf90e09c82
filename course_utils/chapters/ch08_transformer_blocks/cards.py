"""The recall cards of chapter 08."""

import torch
import torch.nn.functional as F
from torch import nn

from course_utils.chapters.observed import modules_in_order, tiny_model
from course_utils.models.attention import MultiHeadAttention
from course_utils.models.parameters import BASE, count_parameters, on_meta
from course_utils.models.transformer import (
    AddNorm,
    DecoderBlock,
    EncoderBlock,
    PositionWiseFFN,
    Transformer,
    TransformerConfig,
)
from course_utils.recall.card import card
from course_utils.recall.chosen import Choice, Keyword, Order, statement
from course_utils.recall.computed import Expression, Inputs, Number, Shape

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


def count(kind, module=None):
    """How many modules of a kind the base model (or a module) has."""
    module = module or on_meta(lambda: Transformer(BASE))
    return sum(isinstance(m, kind) for m in module.modules())


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


_X = Inputs("T d", tensors={"x": "T d"})
_NORM = Inputs("T d eps", tensors={"x": "T d", "gamma": "d", "beta": "d"})
_FFN = Inputs("T d d_ff", tensors={"x": "T d", "W_1": "d d_ff", "b_1": "d_ff",
                                   "W_2": "d_ff d", "b_2": "d"})  # fmt: skip
_BATCH = Inputs("B T d")


def _sublayer(x):
    """Stands for attention or FFN: something that mixes and bends."""
    return torch.tanh(2 * x.roll(1, dims=-1)) + x.roll(1, dims=-2) / 2


def _add_norm(norm_first):
    def run(x, d, **_):
        addnorm = AddNorm(d, norm_first=norm_first).double()
        return addnorm(x, _sublayer(addnorm.before(x))).detach()

    return run


def _ffn(x, W_1, b_1, W_2, b_2, d, d_ff, **_):
    ffn = PositionWiseFFN(d, d_ff).double()
    weights = {"hidden.weight": W_1.T, "hidden.bias": b_1, "output.weight": W_2.T,
               "output.bias": b_2}  # fmt: skip
    return torch.func.functional_call(ffn, weights, x)


def _statistics_of_layer_norm(B, T, d):
    return tuple(torch.native_layer_norm(torch.zeros(B, T, d), (d,), None, None, 1e-5)[1].shape)


def _statistics_of_batch_norm(B, T, d):
    norm = nn.BatchNorm1d(d)
    norm(torch.randn(B, d, T))
    return tuple(norm.running_mean.shape)


def _batch_norm_sees_the_batch():
    """Which norm changes a sentence when another sentence of the batch does."""
    x = torch.randn(4, 8, 6, generator=torch.Generator().manual_seed(0))  # (B, d, T)
    other = x.clone()
    other[1:] *= 3
    batch, layer = nn.BatchNorm1d(8), nn.LayerNorm(8)
    moves = not torch.allclose(batch(x)[0], batch(other)[0], atol=1e-3)
    return "c" if moves and torch.equal(layer(x.mT)[0], layer(other.mT)[0]) else "a"


def _nothing_passes_unchanged():
    """Whether post-norm gives x back when the sub-layer gives 0."""
    x = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(0)) * 5
    return torch.allclose(AddNorm(8)(x, torch.zeros_like(x)), x)


def _derivative(I, J, d):  # noqa: E741
    """Of a linear shortcut I x plus F(x) = J x, by autograd; it adds for any two matrices."""
    return torch.func.jacrev(lambda x: I @ x + J @ x)(torch.ones(d, dtype=torch.float64))


def _first_gradient(residual, layers=48):
    """The gradient at the first of many layers, with and without a residual connection."""
    generator = torch.Generator().manual_seed(0)
    x = start = torch.randn(4, 32, generator=generator, requires_grad=True)
    for _ in range(layers):
        y = torch.tanh(x) @ torch.randn(32, 32, generator=generator) * 0.1
        x = F.layer_norm(x + y, (32,)) if residual else y
    return torch.autograd.grad(x.square().sum(), start)[0].norm().item()


def _padding_changes_the_rest():
    """Whether padding that is not hidden changes the encoding of the real tokens."""
    model, real = tiny_model(), torch.tensor([[3, 4, 5]])
    padded = torch.tensor([[3, 4, 5, 0, 0]])
    open_, hidden = (model.encode(padded, torch.tensor([n]))[:, :3] for n in (5, 3))
    alone = model.encode(real, torch.tensor([3]))
    return torch.allclose(hidden, alone, atol=1e-5) and not torch.allclose(open_, alone, atol=1e-5)


def _layer_norms(d):
    return count_parameters(on_meta(lambda: nn.LayerNorm(d)))


CARDS = [
    card(
        "encoder-order", "modules", "block order", "002-81 002-86 002-100",
        "The modules of one encoder block (post-norm), in order.",
        Order(_ENCODER, NAMES, lambda: modules_in_order(EncoderBlock(8, 2, 16)),
              {("FFN", "add & norm", "self-attention", "add & norm"):
               "First the tokens exchange what they know, then each works on its own.",
               ("self-attention", "FFN", "add & norm"): "Each sub-layer has an add & norm.",
               ("add & norm", "self-attention", "add & norm", "FFN"):
               "That is pre-norm, where only the norm comes first and the sum still comes last."}),
        "Attention moves information between positions, the FFN works on each position.",
        "\"each layer begins with embedding and positional encoding\": they stand once,"
        " below the stack.",
    ),
    card(
        "decoder-order", "modules", "block order", "002-82 002-86 002-102",
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
        "\"seven modules, the embedding first\": six; the embedding stands below the "
        "stack.",
    ),
    card(
        "embeddings-in-the-encoder", "modules", "counting", "002-86 002-100",
        "How often do the embedding and the positional encoding occur in an encoder of 6 layers?",
        Number(lambda: sum(name.startswith("src_embedding") for name, _ in
                           on_meta(lambda: Transformer(BASE)).named_children()),
               {6: "They stand below the stack, not in every layer.",
                12: "Only the source goes through the encoder, and only once."}),
        "Tokens become vectors once; after that only vectors are passed on.",
        "\"in every layer\": only below the first.",
    ),
    card(
        "norms-per-encoder-block", "modules", "counting", "002-86 002-100",
        "How many add & norm has one encoder block?",
        Number(lambda: count(AddNorm, EncoderBlock(8, 2, 16)),
               {1: "One for each sub-layer: attention and FFN.",
                3: "That is the decoder block."}),
        "One for each sub-layer.",
    ),
    card(
        "norms-per-decoder-block", "modules", "counting", "002-86 002-102",
        "How many add & norm has one decoder block?",
        Number(lambda: count(AddNorm, DecoderBlock(8, 2, 16)),
               {2: "That is the encoder block; the decoder has a sub-layer more."}),
        "Masked self-attention, cross-attention, FFN: one each.",
    ),
    card(
        "attentions-in-the-base-model", "modules", "counting", "002-84 002-86",
        "The base model has 6 + 6 layers. How many multi-head attentions does it have in all?",
        Number(lambda: count(MultiHeadAttention),
               {12: "A decoder layer has two: on itself and on the source.",
                24: "An encoder layer has only one.",
                6: "Both stacks count."}),
        "6 in the encoder, 6 x 2 in the decoder.",
    ),
    card(
        "decoder-specials", "modules", "mask missing", "002-82 002-90 002-113",
        "What does a decoder block have that an encoder block has not?",
        Choice(["a causal mask in its self-attention", "a feed-forward network",
                "residual connections", "cross-attention"], "ad",
               {"b": "Both have it.", "c": "Both have them."}),
        "All the rest is the same.",
    ),
    card(
        "where-the-source-enters", "modules", "role of q, k, v",
        "002-112 002-102 002-103",
        "The tokens written so far go up through the decoder. In which of its modules"
        " does the output of the encoder join them?",
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
        "encoder-output-once", "modules", "block order", "002-112 002-101",
        "True or false: each of the 6 decoder layers looks at the output of the *last* encoder "
        "layer.",
        statement(True, "Layer i of the decoder does not read layer i of the encoder: the memory "
                        "is one tensor for all.", lambda: _same_memory()),
        "The encoder's output is one tensor, (B, Ts, d_model), for all decoder layers.",
    ),
    card(
        "what-ffn-mixes", "modules", "block order", "002-89 002-86",
        "Which module mixes information *between* positions?",
        Choice(["attention", "the FFN", "LayerNorm", "the residual connection"], "a",
               {"b": "It is applied to each position on its own.",
                "c": "Its statistics are taken per token.",
                "d": "It adds a position to itself."}, lambda: _mixers()),
        "Attention is the only one; all the others treat every position alike and alone.",
    ),
    card(
        "post-norm-formula", "block", "norm place", "002-66 002-95 002-135 002-89",
        "The paper's add & norm around a sub-layer (post-norm): the new x. "
        "(layernorm(x) and sublayer(x) are at hand.)",
        Expression("layernorm(x + sublayer(x))", _X, _add_norm(False), {
            "x + sublayer(layernorm(x))": "That is pre-norm.",
            "layernorm(sublayer(x))": "The residual connection is missing.",
            "x + layernorm(sublayer(x))": "The norm comes after the sum.",
            "x + sublayer(x)": "The norm is missing.",
            "layernorm(x) + sublayer(x)": "The norm takes the whole sum.",
        }, ["LayerNorm(sublayer(x) + x)", "layer_norm(x + Sublayer(x))"],
            {"sublayer": _sublayer}),
        "Sum first, then norm: \"post\".",
    ),
    card(
        "pre-norm-formula", "block", "norm place", "002-66 002-135",
        "A sub-layer with pre-norm: the new x. (layernorm(x) and sublayer(x) are at hand.)",
        Expression("x + sublayer(layernorm(x))", _X, _add_norm(True), {
            "layernorm(x + sublayer(x))": "That is post-norm.",
            "sublayer(layernorm(x))": "The residual connection is missing.",
            "layernorm(x) + sublayer(layernorm(x))": "The stream x itself is not normalised.",
            "x + layernorm(sublayer(x))": "The norm stands before the sub-layer.",
        }, functions={"sublayer": _sublayer}),
        "The stream passes untouched; only what the sub-layer reads is normalised.",
    ),
    card(
        "norm-of-the-paper", "block", "norm place", "002-66",
        "Pre-norm or post-norm: which stands in the paper of 2017?",
        Choice(["pre-norm", "post-norm"], "b", {"a": "Pre-norm came later."}),
        "Much later code, PyTorch's own blocks by default, still is post-norm.",
    ),
    card(
        "norm-for-depth", "block", "norm place", "002-66 002-95",
        "Pre-norm or post-norm: which is easier to train when there are many layers?",
        Choice(["pre-norm", "post-norm"], "a",
               {"b": "Post-norm needs warm-up, and gets hard beyond a dozen layers."}),
        "The identity path is never normalised away, so gradients reach every layer evenly.",
    ),
    card(
        "end-of-pre-norm", "block", "norm place", "002-66",
        "What does a pre-norm stack need after its last block, and a post-norm stack does not?",
        Choice(["a softmax", "one more residual connection", "one more LayerNorm"], "c",
               {"a": "That comes after the logits, in both.",
                "b": "The sum is already there."},
               lambda: "c" if isinstance(on_meta(lambda: Transformer(
                   TransformerConfig(9, 9))).encoder_norm, nn.LayerNorm) else "a"),
        "Nothing else normalises the stream that leaves the last block.",
        "\"pre-norm only moves the norm\": without this last one the logits would be "
        "made from a stream of any size.",
    ),
    card(
        "layernorm-formula", "block", "scale and shift", "002-125",
        "LayerNorm of x (T, d) with gamma, beta and eps. (mean(x) and var(x) are taken over the "
        "features; var divides by d.)",
        Expression("(x - mean(x)) / sqrt(var(x) + eps) * gamma + beta", _NORM,
                lambda x, gamma, beta, d, eps, **_: F.layer_norm(x, (d,), gamma, beta, eps), {
                    "(x - mean(x)) / sqrt(var(x)) * gamma + beta":
                    "eps is missing: a constant vector would divide by 0.",
                    "(x - mean(x)) / std(x) * gamma + beta":
                    "eps is missing: a constant vector would divide by 0.",
                    "(x - mean(x)) / (var(x) + eps) * gamma + beta":
                    "Divide by the standard deviation, a square root.",
                    "(x - mean(x)) / sqrt(var(x) + eps)": "Scale gamma and shift beta are missing.",
                    "x / sqrt(var(x) + eps) * gamma + beta": "The mean is not taken off.",
                    "(x - mean(x)) / (sqrt(var(x)) + eps) * gamma + beta":
                    "eps stands under the root.",
                }, ["gamma * (x - x.mean(-1)) / sqrt(x.var(dim=-1) + ε) + β"]),
        "Without gamma and beta each row has mean 0 and variance 1.",
        "(x - μ) / σ without ε: a constant vector then gives NaN.",
    ),
    card(
        "layernorm-statistics", "block", "norm statistics", "002-125",
        "x is (B, T, d). The shape of the means that LayerNorm takes, the last axis kept as 1?",
        Shape("(B, T, 1)", _BATCH, _statistics_of_layer_norm,
              {"(B, 1, 1)": "Every token has a mean of its own.",
               "(1, 1, d)": "That is BatchNorm: a mean for each feature.",
               "(1, T, d)": "Nothing is averaged over the batch."}),
        "One mean for each token, over its own features.",
        "\"each sample independently\": it is each *token* of each sample.",
    ),
    card(
        "batchnorm-statistics", "block", "norm statistics", "002-125",
        "x is (B, T, d). The shape of the means that `nn.BatchNorm1d` takes over such sequences?",
        Shape("(d,)", _BATCH, _statistics_of_batch_norm,
              {"(T, d)": "BatchNorm1d averages over batch and positions.",
               "(B, T)": "That is LayerNorm.", "(B,)": "It averages over the batch."}),
        "One for each feature, over all tokens of all sentences, padding included.",
        "\"over the batch\" is half of it: over batch and positions.",
    ),
    card(
        "why-not-batchnorm", "block", "norm statistics", "002-125",
        "Why LayerNorm and not BatchNorm?",
        Choice(["it has fewer parameters", "it needs no gradients",
                "a sentence's result must not depend on its batch companions and their padding"],
               "c", {"a": "Both have a scale and a shift for each feature.",
                     "b": "Gradients pass through it."}, _batch_norm_sees_the_batch),
        "LayerNorm needs neither other sentences nor other positions.",
    ),
    card(
        "layernorm-cures-gradients", "block", "gradient norm", "002-125 002-95",
        "True or false: with LayerNorm, gradients can neither vanish nor explode.",
        statement(False, "It makes both rarer; depth, initialisation and learning rate still "
                         "matter."),
        "Post-norm models still need warm-up.",
        "\"solves vanishing and exploding gradients\": it mitigates them.",
    ),
    card(
        "residual-gradient", "block", "residual", "002-135 002-89 002-95",
        "y = x + F(x); J is the derivative of F at x, I the identity. The derivative of y?",
        Expression("I + J", Inputs("d", tensors={"I": "d d", "J": "d d"}),
                _derivative,
                {"J": "The shortcut has a derivative, too: I.", "I @ J": "They add.",
                 "I": "F has a derivative, too."}, ["J + I"]),
        "However small J becomes, the gradient has a straight way through I.",
    ),
    card(
        "residual-for-depth", "block", "residual", "002-66 002-135 002-95",
        "48 layers, with residual connections and norms or without either. Where does the "
        "gradient of the first layer survive?",
        Choice(["with them", "without them", "in both"], "a",
               {"b": "Small factors multiply 48 times.", "c": "Small factors multiply 48 times."},
               lambda: "a" if _first_gradient(True) > 1e3 * _first_gradient(False) else "b"),
        "The straight way through the sums keeps it alive.",
    ),
    card(
        "identity-of-post-norm", "block", "norm place", "002-135",
        "True or false: if a sub-layer gives 0, a post-norm block passes x on unchanged.",
        statement(False, "LayerNorm(x + 0) is not x; only pre-norm has a clean identity path.",
                  _nothing_passes_unchanged),
        "\"At least the identity\" holds for plain residual connections and for pre-norm.",
        "\"never worse than a shallower net\": that is about what can be represented, "
        "not about what is learned, and not about post-norm.",
    ),
    card(
        "hundred-layers", "block", "norm place", "002-135 002-66",
        "True or false: LayerNorm(x + Sublayer(x)) is enough for over a hundred layers to converge "
        "stably.",
        statement(False, "That is post-norm; such depths took pre-norm or a special scaling."),
        "Standard post-norm gets hard to train beyond a dozen layers or two.",
        "\"residual and norm make hundreds of layers converge\": not in post-norm "
        "without further help.",
    ),
    card(
        "name-of-the-shortcut", "block", "residual", "002-135",
        "The x in x + F(x) is called the ... connection? (ResNet, a CNN, made it famous.)",
        Keyword("residual", ["residual connection", "shortcut", "shortcut connection", "skip",
                             "skip connection", "残差", "残差连接"],
                {"ResNet": "ResNet is a network that has such connections."}),
        "F only has to learn the difference, the residue.",
        "\"residual network\": that is ResNet, for images; a Transformer has residual "
        "connections.",
    ),
    card(
        "ffn-formula", "block", "activation", "002-89 002-81",
        "The feed-forward network of the paper (with ReLU) of x (T, d).",
        Expression("relu(x @ W_1 + b_1) @ W_2 + b_2", _FFN, _ffn, {
            "gelu(x @ W_1 + b_1) @ W_2 + b_2": "That is with GELU, as in many later models; "
                                               "the paper has ReLU.",
            "(x @ W_1 + b_1) @ W_2 + b_2": "Without the activation both maps are one linear map.",
            "relu(relu(x @ W_1 + b_1) @ W_2 + b_2)": "After the second map there is no activation.",
            "relu(x @ W_1) @ W_2": "The biases are missing.",
        }, ["max(0, x @ W_1 + b_1) @ W_2 + b_2", "FFN(x) = max(0, x W_1 + b_1) W_2 + b_2"]),
        "Two linear maps with an activation between them, the same for every position.",
    ),
    card(
        "ffn-parameters", "block", "counting", "002-89 002-84",
        "Parameters of the FFN, biases counted.",
        Expression("2 * d * d_ff + d_ff + d", Inputs("d d_ff"),
                lambda d, d_ff: count_parameters(on_meta(lambda: PositionWiseFFN(d, d_ff))), {
                    "2 * d * d_ff": "The biases are missing: d_ff and d.",
                    "d * d_ff + d_ff + d": "There are two matrices.",
                    "2 * d * d_ff + 2 * d": "The first map has d_ff biases.",
                    "2 * d * d_ff + 2 * d_ff": "The second map has d biases.",
                }, ["d*d_ff + d_ff + d_ff*d + d"]),
        "2 099 712 for 512 and 2048: twice as many as the attention beside it.",
    ),
    card(
        "encoder-block-parameters", "block", "counting", "002-84 002-81",
        "Parameters of one encoder block of the base model (512, 8 heads, 2048), all biases "
        "counted.",
        Number(lambda: count_parameters(on_meta(lambda: EncoderBlock(512, 8, 2048, bias=True))),
               {4 * 512**2 + 2 * 512 * 2048: "Biases and the two LayerNorms are missing.",
                4 * 512**2 + 4 * 512 + 2 * 512 * 2048 + 2048 + 512: "The LayerNorms are missing.",
                4 * 512**2 + 4 * 512 + 2 * 512 * 2048 + 2048 + 512 + 2 * 512:
                "There are two LayerNorms, each with a scale and a shift."}),
        "4d² + 4d for the attention, 2·d·d_ff + d_ff + d for the FFN, 2·2d for the norms.",
    ),
    card(
        "where-the-bend-is", "block", "activation", "002-89",
        "What would happen to the FFN without its activation?",
        Choice(["nothing", "the positions would mix",
                "two linear maps in a row would be one linear map"], "c",
               {"a": "Then one map would do.", "b": "Each position stays on its own."}),
        "The FFN gives each position a non-linear function of its features.",
    ),
    card(
        "mask-of-the-encoder", "decoder", "mask missing", "002-100 002-104",
        "True or false: an encoder needs no mask at all.",
        statement(False, "Padding must be hidden, or it changes the encoding of the real tokens.",
                  lambda: not _padding_changes_the_rest()),
        "It needs no *causal* mask.",
        "\"fully visible, no mask\": a padding mask is still needed.",
    ),
    card(
        "layernorm-parameters", "sizes", "counting", "002-125 002-84",
        "Parameters of one LayerNorm over d features.",
        Expression("2 * d", Inputs("d"), _layer_norms,
                {"d": "Scale and shift.", "2": "One scale and shift for each feature.",
                 "d**2": "It is no matrix."}, ["d + d"]),
        "gamma and beta.",
    ),
]  # fmt: skip
