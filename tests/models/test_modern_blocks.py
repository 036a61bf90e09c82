"""RMSNorm, gated networks, grouped queries, experts, and the model made of them."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from course_utils.models.attention import MultiHeadAttention
from course_utils.models.language_model import generate, perplexity
from course_utils.models.masks import causal_mask
from course_utils.models.modern.block import (
    GATED,
    NORMS,
    PLAIN,
    POSITIONS,
    TODAY,
    DecoderConfig,
    ModernBlock,
)
from course_utils.models.modern.decoder_only import DecoderOnly, cache_bytes, truncate
from course_utils.models.modern.experts import MixtureOfExperts, balance_loss, route
from course_utils.models.modern.feed_forward import GatedFFN, gated_size, squared_relu
from course_utils.models.modern.grouped_query import GroupedQueryAttention, copy_key_heads
from course_utils.models.modern.norms import RMSNorm
from course_utils.models.transformer import PositionWiseFFN

few = settings(deadline=None, max_examples=15, derandomize=True)
close = torch.testing.assert_close
SMALL = DecoderConfig(11, d_model=16, num_heads=4, d_ff=24)


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def seeded(build):
    torch.manual_seed(0)
    return build().double().eval()


def parameters(module):
    return sum(p.numel() for p in module.parameters())


# --- norms


def test_rms_norm_equals_torch_with_its_gradients():
    x = numbers(2, 5, 8)
    ours, theirs = RMSNorm(8).double(), nn.RMSNorm(8, eps=1e-6).double()
    with torch.no_grad():
        ours.weight.copy_(numbers(8, seed=1))
        theirs.weight.copy_(ours.weight)
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    close(ours(a), theirs(b))
    ours(a).pow(3).sum().backward()
    theirs(b).pow(3).sum().backward()
    close(a.grad, b.grad)
    close(ours.weight.grad, theirs.weight.grad)


def test_rms_norm_by_hand_and_what_it_leaves():
    close(RMSNorm(2, eps=0.0)(torch.tensor([3.0, 4.0])), torch.tensor([3.0, 4.0]) / 12.5**0.5)
    x = numbers(4, 8)
    norm = RMSNorm(8).double()
    close(norm(1000 * x), norm(x), rtol=1e-5, atol=1e-5)  # the length is forgotten
    assert (norm(x + 1) - norm(x)).abs().max() > 0.1  # the mean is not
    assert not norm(torch.zeros(8).double()).any()
    assert norm.half()(torch.full((8,), 6e4).half()).isfinite().all()  # squares are beyond half


def test_rms_norm_of_centred_numbers_is_layer_norm():
    x = numbers(3, 8)
    x = x - x.mean(dim=-1, keepdim=True)
    close(RMSNorm(8, eps=1e-5).double()(x), F.layer_norm(x, (8,)))


# --- feed-forward networks


def test_swiglu_by_hand_and_at_equal_parameters():
    x = numbers(2, 3, 4)
    ffn = seeded(lambda: GatedFFN(4, 6))
    gate, up = x @ ffn.W_gate.weight.T, x @ ffn.W_up.weight.T
    close(ffn(x), (gate * torch.sigmoid(gate) * up) @ ffn.W_down.weight.T)
    plain, gated = PositionWiseFFN(128, 512), GatedFFN(128, gated_size(512))
    assert abs(parameters(gated) / parameters(plain) - 1) < 0.01
    close(squared_relu(torch.tensor([-2.0, 3.0])), torch.tensor([0.0, 9.0]))


# --- grouped queries


@few
@given(
    kv=st.sampled_from([1, 2, 4]),
    steps=st.integers(1, 6),
    rotary=st.sampled_from([None, "halves", "interleaved"]),
)
def test_copied_key_heads_make_many_heads_equal_to_grouped_ones(kv, steps, rotary):
    grouped = seeded(lambda: GroupedQueryAttention(16, 4, kv, bias=True, rotary=rotary))
    many = GroupedQueryAttention(16, 4, bias=True, rotary=rotary).double().eval()
    if rotary is None:
        many = MultiHeadAttention(16, 4, bias=True).double().eval()
    copy_key_heads(many, grouped)
    x, mask = numbers(2, steps, 16), causal_mask(steps)
    close(grouped(x, x, x, mask), many(x, x, x, mask))
    ours, theirs = (a(x, x, x, mask, return_weights=True)[1] for a in (grouped, many))
    close(ours, theirs)
    assert ours.shape == (2, 4, steps, steps)


def test_tiled_instead_of_repeated_key_heads_are_another_function():
    grouped = seeded(lambda: GroupedQueryAttention(16, 4, 2))
    many = MultiHeadAttention(16, 4).double()
    copy_key_heads(many, grouped)
    x = numbers(1, 5, 16)
    with torch.no_grad():
        for layer in (many.W_k, many.W_v):
            layer.weight.copy_(layer.weight.unflatten(0, (4, -1))[[0, 2, 0, 2]].flatten(0, 1))
    assert not torch.allclose(grouped(x, x, x), many(x, x, x), atol=1e-3)


@pytest.mark.parametrize("causal", [True, False])
def test_grouped_queries_equal_the_kernel(causal):
    layer = seeded(lambda: GroupedQueryAttention(16, 4, 2))
    x = numbers(2, 5, 16)
    q, (k, v) = layer.split_heads(layer.W_q(x)), layer.project(x, x)
    assert k.shape == (2, 2, 5, 4)
    mask = causal_mask(5) if causal else None
    kernel = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
    close(layer(x, x, x, mask), layer.W_o(layer.merge_heads(kernel)))
    close(layer(x, x, x, mask), layer(x, x, x, mask, return_weights=True)[0])


def test_a_query_without_keys_gets_zero_and_heads_must_divide():
    layer = seeded(lambda: GroupedQueryAttention(16, 4, 1, bias=True, rotary="halves"))
    x = numbers(1, 3, 16).requires_grad_()
    mask = torch.tensor([[True, False, True], [False] * 3, [True, False, False]])
    output, weights = layer(x, x, x, mask, return_weights=True)
    assert not output[0, 1].any()
    assert not weights[0, :, 1].any()
    output.sum().backward()
    assert x.grad.isfinite().all()
    with pytest.raises(ValueError, match="num_kv_heads = 3"):
        GroupedQueryAttention(16, 4, 3)


# --- experts


def experts(number=4, top_k=2):
    return seeded(lambda: MixtureOfExperts(8, number, top_k, lambda: GatedFFN(8, 12)))


def test_a_mixture_is_the_weighted_sum_of_all_experts_with_zeros_for_the_others():
    layer, x = experts(), numbers(2, 5, 8)
    probs = layer.router(x).softmax(-1)  # (B, T, E)
    kept = probs * (probs >= probs.topk(2).values[..., -1:])
    gates = kept / kept.sum(-1, keepdim=True)
    every = torch.stack([expert(x) for expert in layer.experts], dim=-1)  # (B, T, d, E)
    close(layer(x), (every * gates[..., None, :]).sum(-1))


def test_one_expert_for_all_is_that_expert():
    layer, x = experts(1, 1), numbers(2, 5, 8)
    close(layer(x), layer.experts[0](x))
    assert layer.routing.balance_loss().item() == pytest.approx(1)


@few
@given(top_k=st.integers(1, 4), seed=st.integers(0, 99))
def test_balance_loss_is_one_when_even_and_num_experts_when_one_gets_all(top_k, seed):
    even = route(torch.zeros(6, 4).double(), top_k)
    assert even.balance_loss().item() == pytest.approx(1)
    logits = numbers(40, 4, seed=seed)
    routing = route(logits, top_k)
    assert routing.load().sum().item() == pytest.approx(1)
    close(routing.weights.sum(-1), torch.ones(40).double())
    by_hand = sum(
        (routing.chosen == e).double().sum() / (40 * top_k) * logits.softmax(-1)[:, e].mean()
        for e in range(4)
    )
    close(routing.balance_loss(), 4 * by_hand)
    crowded = route(torch.tensor([[50.0, 0, 0, 0]]).repeat(9, 1), 1)
    assert crowded.balance_loss().item() == pytest.approx(4)


def test_the_balance_loss_pushes_a_crowded_expert_down():
    layer, x = experts(4, 1), numbers(1, 40, 8)
    with torch.no_grad():
        layer.router.weight[0] += x.mean((0, 1)) * 30
    layer(x)
    before = layer.routing.load().max()
    assert before > 0.5
    optimizer = torch.optim.SGD(layer.router.parameters(), lr=10.0)
    for _ in range(30):
        layer(x)
        optimizer.zero_grad()
        balance_loss(layer).backward()
        optimizer.step()
    layer(x)
    assert layer.routing.load().max() < before / 1.5


def test_balance_loss_equals_transformers_but_for_the_factor_k():
    pytest.importorskip("transformers")
    from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

    logits = numbers(30, 4)
    theirs = load_balancing_loss_func((logits,), num_experts=4, top_k=2)
    close(2 * route(logits, 2).balance_loss(), theirs.double())


def test_numbers_of_experts_are_checked():
    with pytest.raises(ValueError, match=r"1\.\.4, the experts, got 5"):
        route(torch.zeros(2, 4), 5)


# --- the model


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("num_experts", [0, 3])
def test_a_cache_changes_nothing_and_the_future_is_hidden(positions, num_experts):
    config = replace(SMALL, positions=positions, num_experts=num_experts, num_kv_heads=2)
    model = seeded(lambda: DecoderOnly(config))
    nn.init.normal_(model.embedding.weight, std=0.3)
    for block in model.blocks:
        if positions == "relative":
            nn.init.normal_(block.attention.attention.bias.table)
    tokens = torch.randint(11, (2, 7), generator=torch.Generator().manual_seed(1))
    whole = model(tokens)
    first, past, _ = model.decode(tokens[:, :3])
    with torch.no_grad():
        second, past, maps = model.decode(tokens[:, 3:], past, return_weights=True)
    close(torch.cat([first, second], 1), whole)
    assert [m.shape for m in maps] == [(2, 4, 4, 7)] * 2
    short = truncate(past, 3)
    close(model.decode(tokens[:, 3:4], short)[0], second[:, :1])
    changed = tokens.clone()
    changed[:, 4:] = (changed[:, 4:] + 1) % 11
    close(model(changed)[:, :4], whole[:, :4])


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("ffn", PLAIN | GATED)
def test_every_switch_trains_every_parameter(norm, ffn):
    torch.manual_seed(0)
    model = DecoderOnly(replace(SMALL, norm=norm, ffn=ffn, positions="relative", num_experts=2))
    tokens = torch.randint(11, (8, 6))
    loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()) + balance_loss(model)
    loss.backward()
    still = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert still == []


@pytest.mark.parametrize("positions", ["none", "rotary", "alibi", "relative"])
def test_without_added_positions_a_shift_of_the_window_changes_no_score(positions):
    """Relative positions have no origin: keys dropped from the front leave the rest alone."""
    config = replace(SMALL, positions=positions, num_layers=1)
    model = seeded(lambda: DecoderOnly(config))
    tokens = torch.randint(11, (1, 9), generator=torch.Generator().manual_seed(1))

    def last_ratio(part):  # weights at the last position, up to the softmax's total
        weights = model.decode(part, return_weights=True)[2][0][0, :, -1, -4:]
        return weights / weights.sum(-1, keepdim=True)

    close(last_ratio(tokens), last_ratio(tokens[:, 3:]))


def test_the_model_serves_perplexity_and_generate():
    model = seeded(lambda: DecoderOnly(replace(SMALL, **TODAY, num_kv_heads=1)))
    tokens = torch.randint(11, (3, 6))
    assert perplexity(model, tokens) > 1
    assert generate(model, tokens, 5, context=300, temperature=0).shape == (3, 11)


def test_cache_bytes_are_those_of_the_cache():
    config = replace(SMALL, num_kv_heads=2)
    _, caches, _ = DecoderOnly(config).decode(torch.zeros(1, 9, dtype=torch.long))
    held = sum(x.numel() * x.element_size() for c in caches for x in (c.keys, c.values))
    assert cache_bytes(config, 9) == held == cache_bytes(SMALL, 9) // 2


def test_bad_switches_are_refused_with_the_choice():
    with pytest.raises(ValueError, match="norm must be one of layer, rms, got 'batch'"):
        replace(SMALL, norm="batch")
    with pytest.raises(ValueError, match="d_ff must be at least 1"):
        replace(SMALL, d_ff=0)
    with pytest.raises(ValueError, match="positions 0..256 do not fit in max_len = 256"):
        DecoderOnly(SMALL)(torch.zeros(1, 257, dtype=torch.long))
    assert (
        DecoderOnly(replace(SMALL, positions="rotary"))(torch.zeros(1, 257).long()).shape[1] == 257
    )


# --- transformers' own


def llama(config):
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = LlamaConfig(
        vocab_size=config.vocab_size, hidden_size=config.d_model, num_attention_heads=4,
        num_key_value_heads=2, intermediate_size=gated_size(config.d_ff), rms_norm_eps=1e-6,
        num_hidden_layers=config.num_layers, tie_word_embeddings=False,
    )  # fmt: skip
    torch.manual_seed(0)
    return LlamaForCausalLM(sizes).double().eval()


def copy_block(ours: ModernBlock, theirs):
    pairs = [(ours.norm1, theirs.input_layernorm), (ours.norm2, theirs.post_attention_layernorm)]
    for mine, other in (("W_q", "q_proj"), ("W_k", "k_proj"), ("W_v", "v_proj"), ("W_o", "o_proj")):
        pairs.append((getattr(ours.attention, mine), getattr(theirs.self_attn, other)))
    for mine, other in (("W_gate", "gate_proj"), ("W_up", "up_proj"), ("W_down", "down_proj")):
        pairs.append((getattr(ours.ffn, mine), getattr(theirs.mlp, other)))
    copy_weights(pairs)


def copy_weights(pairs):
    with torch.no_grad():
        for mine, other in pairs:
            assert mine.weight.shape == other.weight.shape
            nn.init.normal_(other.weight, mean=0.5 if other.weight.dim() == 1 else 0.0, std=0.3)
            mine.weight.copy_(other.weight)


def test_todays_model_equals_llama_with_copied_weights():
    pytest.importorskip("transformers")
    config = replace(SMALL, **TODAY, layout="halves", num_kv_heads=2, tie_output=False)
    theirs, ours = llama(config), DecoderOnly(config).double()
    for mine, other in zip(ours.blocks, theirs.model.layers, strict=True):
        copy_block(mine, other)
    copy_weights([(ours.norm, theirs.model.norm), (ours.output, theirs.lm_head)])
    copy_weights([(ours.embedding, theirs.model.embed_tokens)])
    with torch.no_grad():
        ours.embedding.weight.div_(config.d_model**0.5)  # ours multiplies by it
    tokens = torch.randint(11, (2, 9))
    # theirs has norms and angles in float32
    close(ours(tokens), theirs(tokens).logits, rtol=1e-5, atol=1e-5)
    assert not torch.allclose(ours(tokens)[:, 1:], ours(tokens.flip(1)).flip(1)[:, 1:], atol=1e-2)
