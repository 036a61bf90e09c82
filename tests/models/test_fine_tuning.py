"""LoRA, adapters, prefixes and prompts: equal at the start, frozen base, few trained weights."""

import copy

import pytest
import torch
from torch import nn

from course_utils.models.attention import MultiHeadAttention
from course_utils.models.classifier import SequenceClassifier
from course_utils.models.fine_tuning import (
    Adapter,
    LoRALinear,
    PrefixAttention,
    PromptEncoder,
    add_adapters,
    add_lora,
    add_prefix,
    freeze,
    load_task_weights,
    merge_lora,
    task_weights,
)
from course_utils.models.masks import causal_mask
from course_utils.models.parameters import count_parameters
from course_utils.models.token_encoder import TokenEncoder
from course_utils.training.loops import fit
from course_utils.training.seeds import set_seed

METHODS = {  # name -> how, and how many numbers it trains with d_model 16 and 2 blocks
    "lora": (lambda e: add_lora(e, rank=3), 2 * 2 * 3 * (16 + 16)),
    "adapters": (lambda e: add_adapters(e, bottleneck=5), 2 * 2 * (2 * 16 * 5 + 5 + 16)),
    "prefix": (lambda e: add_prefix(e, length=4), 2 * 2 * 4 * 16),
    "prompt": (lambda e: PromptEncoder(e, length=4), 4 * 16),
}
each_method = pytest.mark.parametrize(("add", "count"), METHODS.values(), ids=METHODS)
TOKENS, LENS = torch.arange(12).reshape(2, 6), torch.tensor([6, 4])


@pytest.fixture
def base():
    set_seed(0)
    return TokenEncoder(20, d_model=16, num_heads=2, d_ff=32, dropout=0.0).eval()


def train(model, steps=3):
    labels = torch.tensor([0, 1])

    def loss_of(_):
        return nn.functional.cross_entropy(model(TOKENS, LENS), labels)

    return fit(model, [None] * steps, loss_of, lr=1e-2)


@each_method
def test_only_the_new_weights_are_trained(base, add, count):
    before = copy.deepcopy(base).state_dict()
    encoder = add(freeze(base))
    assert count_parameters(encoder) == count
    model = SequenceClassifier(encoder, 2)
    start = task_weights(model)
    train(model)
    assert all(p.grad is not None for p in model.parameters() if p.requires_grad)
    assert all(p.grad is None for p in model.parameters() if not p.requires_grad)
    assert sum(not torch.equal(w, start[n]) for n, w in task_weights(model).items()) == len(start)
    kept = [p for p in model.parameters() if not p.requires_grad]
    assert len(kept) == len(before)
    for frozen in kept:
        assert any(torch.equal(frozen, w) for w in before.values() if w.shape == frozen.shape)


@each_method
def test_freezing_before_after_or_not_at_all_comes_to_the_same(base, add, count):
    models = [add(freeze(copy.deepcopy(base))), freeze(add(copy.deepcopy(base))), add(base)]
    trained = [[n for n, p in m.named_parameters() if p.requires_grad] for m in models]
    assert trained[0] == trained[1] == trained[2]
    assert [count_parameters(model) for model in models] == [count] * 3


def test_what_one_method_added_is_still_trained_after_another(base):
    both = add_adapters(add_lora(add_prefix(base, length=4), rank=3), bottleneck=5)
    assert count_parameters(both) == sum(
        METHODS[name][1] for name in ("prefix", "lora", "adapters")
    )


@each_method
def test_padding_changes_nothing(base, add, count):
    encoder = add(freeze(base)).eval()
    out = encoder(TOKENS, valid_lens=LENS)
    assert out.shape == (2, 6, 16)
    torch.testing.assert_close(out[1, :4], encoder(TOKENS[1:, :4])[0])


@each_method
def test_the_future_stays_hidden(base, add, count):
    encoder = add(freeze(base)).eval()
    other = TOKENS.clone()
    other[:, 4:] = 19
    a, b = encoder(TOKENS, causal_mask(6)), encoder(other, causal_mask(6))
    torch.testing.assert_close(a[:, :4], b[:, :4])
    assert not torch.allclose(a[:, 4:], b[:, 4:])


@pytest.mark.parametrize("name", ["lora", "adapters"])
def test_training_starts_from_the_base(base, name):
    with torch.no_grad():
        wanted = base(TOKENS, valid_lens=LENS)
        assert torch.equal(METHODS[name][0](base)(TOKENS, valid_lens=LENS), wanted)


@each_method
def test_weights_can_be_exchanged(base, add, count):
    model = SequenceClassifier(add(freeze(base)), 2)
    start, first = task_weights(model), model(TOKENS, LENS)
    train(model)
    assert not torch.allclose(model(TOKENS, LENS), first)
    load_task_weights(model, start)
    assert torch.equal(model(TOKENS, LENS), first)


def test_weights_of_another_size_are_refused(base):
    small = task_weights(add_lora(freeze(copy.deepcopy(base)), rank=1))
    with pytest.raises(ValueError, match=r"blocks\.0\.attention\.W_q\.A"):
        load_task_weights(add_lora(freeze(base), rank=2), small)


@pytest.mark.parametrize("bias", [True, False])
def test_lora_is_a_matrix_of_low_rank(bias):
    set_seed(0)
    layer = LoRALinear(nn.Linear(7, 5, bias=bias), rank=2, alpha=6.0)
    nn.init.normal_(layer.B)
    x = torch.randn(3, 4, 7)
    update = 3.0 * layer.B @ layer.A
    assert torch.linalg.matrix_rank(update) == 2
    wanted = nn.functional.linear(x, layer.base.weight + update, layer.base.bias)
    torch.testing.assert_close(layer(x), wanted)
    merged = layer.merged()
    assert type(merged) is nn.Linear
    assert (merged.bias is not None) is bias
    torch.testing.assert_close(merged(x), wanted)


def test_lora_has_the_sizes_of_the_notes():
    base = nn.Linear(512, 512, bias=False)
    assert count_parameters(base) == 262_144
    assert count_parameters(LoRALinear(base, rank=8)) == 8_192


def test_merging_leaves_a_plain_model(base):
    plain = copy.deepcopy(base)
    model = SequenceClassifier(add_lora(freeze(base), rank=2, names=("W_o", "hidden")), 2)
    train(model)
    before = model(TOKENS, LENS)
    merge_lora(model)
    torch.testing.assert_close(model(TOKENS, LENS), before)
    assert [n for n, _ in model.encoder.named_parameters()] == [
        n for n, _ in plain.named_parameters()
    ]


def test_names_that_no_layer_has_are_refused(base):
    with pytest.raises(ValueError, match="no linear layer called query or value"):
        add_lora(base, 2, names=("query", "value"))
    with pytest.raises(ValueError, match="Linear has no EncoderBlock"):
        add_prefix(nn.Linear(2, 2), 1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: LoRALinear(nn.Linear(2, 2), 0),
        lambda: Adapter(2, 0),
        lambda: PrefixAttention(MultiHeadAttention(4, 2), 0),
        lambda: PromptEncoder(TokenEncoder(5, 4, 2, 8), 0),
    ],
)
def test_sizes_below_one_are_refused(make):
    with pytest.raises(ValueError, match="must be at least 1, got 0"):
        make()


def test_a_prefix_of_one_is_the_bias_of_torch():
    """`add_bias_kv` appends one trained key and value; the place among the keys is no matter."""
    set_seed(0)
    ours = PrefixAttention(MultiHeadAttention(8, 2), 1).eval()
    theirs = nn.MultiheadAttention(8, 2, bias=False, add_bias_kv=True, batch_first=True).eval()
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.W_q.weight, ours.W_k.weight, ours.W_v.weight]))
        theirs.out_proj.weight.copy_(ours.W_o.weight)
        theirs.bias_k.copy_(ours.prefix_keys.reshape(1, 1, 8))
        theirs.bias_v.copy_(ours.prefix_values.reshape(1, 1, 8))
    x = torch.randn(2, 5, 8)
    lens = torch.tensor([5, 3])
    output, weights = ours(x, x, x, valid_lens=lens, return_weights=True)
    wanted, maps = theirs(
        x, x, x, key_padding_mask=torch.arange(5) >= lens[:, None], average_attn_weights=False
    )
    torch.testing.assert_close(output, wanted)
    torch.testing.assert_close(weights, maps.roll(1, dims=-1))


@pytest.mark.parametrize("mask", [None, causal_mask(5), torch.ones(1, 1, 1, 1).bool()])
def test_every_query_sees_the_prefix(mask):
    layer = PrefixAttention(MultiHeadAttention(8, 2), 3).eval()
    x = torch.randn(2, 5, 8)
    output, weights = layer(x, x, x, mask, return_weights=True)
    assert weights.shape == (2, 2, 5, 8)
    assert (weights[..., :3] > 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 5))
    torch.testing.assert_close(layer(x, x, x, mask), output)


def test_a_prompt_widens_the_maps(base):
    encoder = PromptEncoder(base, 3).eval()
    out, maps = encoder(TOKENS, valid_lens=LENS, return_weights=True)
    assert out.shape == (2, 6, 16)
    assert [m.shape for m in maps] == [(2, 2, 9, 9)] * 2
    assert maps[0][1, :, :, 7:].eq(0).all()  # padding behind 3 + 4 real positions
    _, maps = encoder(TOKENS, causal_mask(6), return_weights=True)
    assert maps[0][:, :, :3, 3:].eq(0).all()  # the prompt carries nothing back in time


@each_method
@pytest.mark.parametrize("seen", [1, 3, 6])
def test_a_beginning_is_read_as_in_the_whole_text(base, add, count, seen):
    encoder = add(freeze(base)).eval()
    whole = encoder(TOKENS, causal_mask(6))[:, :seen]
    torch.testing.assert_close(encoder(TOKENS[:, :seen], causal_mask(seen)), whole)


def test_a_prompt_carries_nothing_from_one_token_to_another(base):
    """Under a mask with which every token sees itself only, another token changes nothing."""
    encoder, other = PromptEncoder(base, 3).eval(), TOKENS.clone()
    other[:, 1:] = 19
    mask = torch.eye(6, dtype=torch.bool)
    torch.testing.assert_close(encoder(TOKENS, mask)[:, 0], encoder(other, mask)[:, 0])
    every = encoder(TOKENS, torch.ones(6, 6, dtype=torch.bool))
    torch.testing.assert_close(encoder(TOKENS), every)


def test_a_query_that_sees_no_token_asks_the_prefix():
    layer = PrefixAttention(MultiHeadAttention(8, 2, bias=True), 3).eval()
    x = torch.randn(2, 5, 8)
    nothing = torch.zeros(5, 5, dtype=torch.bool)
    output, weights = layer(x, x, x, nothing, return_weights=True)
    wanted = layer.split_heads(layer.W_q(x)) @ layer.prefix_keys.mT / 2
    torch.testing.assert_close(weights[..., :3], wanted.softmax(-1))
    assert weights[..., 3:].eq(0).all()
    joined = layer.merge_heads(weights[..., :3] @ layer.prefix_values)
    torch.testing.assert_close(output, layer.W_o(joined))
    torch.testing.assert_close(layer(x, x, x, nothing), output)


@each_method
@pytest.mark.parametrize("training", [True, False])
def test_what_is_added_has_mode_and_dtype_of_the_model(add, count, training):
    base = TokenEncoder(20, 16, 2, 32, dropout=0.5).bfloat16().train(training)
    encoder = add(freeze(base))
    assert {part.training for part in encoder.modules()} == {training}
    assert {p.dtype for p in encoder.parameters()} == {torch.bfloat16}
    out = encoder(TOKENS, valid_lens=LENS)
    assert out.dtype == torch.bfloat16
    assert out.equal(encoder(TOKENS, valid_lens=LENS)) is not training
    merge_lora(encoder)
    assert {part.training for part in encoder.modules()} == {training}


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("adapters", "prefix", "here is Adapted.*before the adapters"),
        ("prefix", "prefix", "here is PrefixAttention: add it once"),
        ("adapters", "adapters", "has adapters already"),
        ("lora", "lora", "W_q and W_v with LoRA already.*merge_lora"),
        ("prompt", "prompt", "for a TokenEncoder, got PromptEncoder"),
    ],
)
def test_what_cannot_be_added_is_refused_and_leaves_the_model(base, first, second, message):
    encoder = METHODS[first][0](base)
    before = [name for name, _ in encoder.named_parameters()]
    with pytest.raises((ValueError, TypeError), match=message):
        METHODS[second][0](encoder)
    assert [name for name, _ in encoder.named_parameters()] == before


@pytest.mark.parametrize("order", ["prefix adapters", "lora prefix adapters", "lora adapters"])
def test_methods_that_go_together_do(base, order):
    with torch.no_grad():
        plain = base(TOKENS, valid_lens=LENS)
        for name in order.split():
            base = METHODS[name][0](base)
        out = base.eval()(TOKENS, valid_lens=LENS)
    assert torch.allclose(out, plain) is ("prefix" not in order)
    assert count_parameters(add_lora(base, 2, names=("output",))) > 0
