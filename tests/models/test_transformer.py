"""The Transformer and its blocks: parity, causality, caching, padding, and bad input."""

import math

import d2l.torch as d2l
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from parity import (
    assert_same_gradients,
    copy_weights,
    d2l_block_pairs,
    torch_decoder_layer_pairs,
    torch_encoder_layer_pairs,
    torch_transformer_pairs,
)
from torch import nn

from course_utils.models.masks import causal_mask, mask_from_valid_lens
from course_utils.models.transformer import (
    AddNorm,
    DecoderBlock,
    EncoderBlock,
    PositionWiseFFN,
    Transformer,
    TransformerConfig,
)

few = settings(deadline=None, max_examples=15, derandomize=True)
close = torch.testing.assert_close
B, TS, TT, D, H, FF = 3, 6, 5, 8, 2, 12
SRC, TGT = 11, 13  # vocabulary sizes
pre_and_post_norm = pytest.mark.parametrize("norm_first", [False, True])
lens_strategy = st.lists(st.integers(1, TS), min_size=B, max_size=B)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def perturb(module):
    """Weights that no test can pass by luck: no zero bias, no norm that does nothing."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return module


def make(**options):
    config = {"d_model": D, "num_heads": H, "d_ff": FF, "dropout": 0.0, "max_len": 20, "bias": True}
    return perturb(Transformer(TransformerConfig(SRC, TGT, **config | options)).double())


def ids(high, *shape):
    return torch.randint(1, high, shape)


def pair(*shape):
    """The same random tensor twice, as leaves of two graphs."""
    ours = torch.randn(*shape, dtype=torch.float64, requires_grad=True)
    return ours, ours.detach().clone().requires_grad_()


def hidden_keys(lens, num_keys):
    """torch's key_padding_mask: (B, Tk), True = may NOT be looked at."""
    return ~mask_from_valid_lens(lens, num_keys)[:, 0, 0]


def without_key_bias(pairs, *attentions):
    """A key bias moves all scores of a query alike, so its true gradient is 0."""
    biases = [attention.W_k.bias for attention in attentions]
    return [p for p in pairs if not any(p[0] is bias for bias in biases)]


# ---------------------------------------------------------------- parts


def test_ffn_equals_d2l_values_and_gradients():
    ours = PositionWiseFFN(d_model=D, d_ff=FF).double()
    theirs = d2l.PositionWiseFFN(D, FF, D).double()
    pairs = [
        (ours.hidden.weight, theirs.dense1.weight, slice(None)),
        (ours.hidden.bias, theirs.dense1.bias, slice(None)),
        (ours.output.weight, theirs.dense2.weight, slice(None)),
        (ours.output.bias, theirs.dense2.bias, slice(None)),
    ]
    copy_weights(pairs)
    x, twin = pair(B, TS, D)
    output, reference = ours(x), theirs(twin)
    close(output, reference, rtol=0, atol=1e-12)
    output.square().sum().backward()
    reference.square().sum().backward()
    close(x.grad, twin.grad, rtol=0, atol=1e-10)
    assert_same_gradients(pairs)


def test_ffn_treats_every_position_alike_and_on_its_own():
    ffn = PositionWiseFFN(4, 8).double().eval()
    rows = ffn(torch.ones(2, 3, 4).double())[0]
    assert rows[0].equal(rows[1])
    assert rows[0].equal(rows[2])
    x = torch.randn(2, 3, 4).double()
    close(ffn(x[:, [2, 0, 1]]), ffn(x)[:, [2, 0, 1]], rtol=0, atol=1e-12)


def test_ffn_takes_another_activation():
    ffn = PositionWiseFFN(4, 8, activation=F.gelu)
    x = torch.randn(2, 3, 4)
    close(ffn(x), ffn.output(F.gelu(ffn.hidden(x))))


def test_post_norm_equals_d2l_and_pre_norm_leaves_the_stream_alone():
    x, y = (torch.randn(B, TS, D) for _ in range(2))
    theirs, ours = perturb(d2l.AddNorm(D, 0.0)), AddNorm(D)
    ours.norm.load_state_dict(theirs.ln.state_dict())
    close(ours(x, y), theirs(x, y))
    assert ours.before(x) is x
    pre = AddNorm(D, norm_first=True)
    close(pre(x, y), x + y)
    close(pre.before(x), F.layer_norm(x, (D,)))


@pytest.mark.parametrize("lens", [None, [2, 6, 3]])
def test_encoder_block_equals_d2l_values_and_gradients(lens):
    ours = perturb(EncoderBlock(D, H, FF, bias=True).double())
    theirs = d2l.EncoderBlock(D, D, D, D, [D], D, FF, H, 0.0, use_bias=True).double()
    pairs = list(d2l_block_pairs(ours, theirs))
    copy_weights(pairs)
    x, twin = pair(B, TS, D)
    lens = None if lens is None else torch.tensor(lens)
    output, reference = ours(x, valid_lens=lens), theirs(twin, lens)
    close(output, reference, rtol=0, atol=1e-12)
    output.square().sum().backward()
    reference.square().sum().backward()
    close(x.grad, twin.grad, rtol=0, atol=1e-10)
    assert_same_gradients(without_key_bias(pairs, ours.attention))


@pre_and_post_norm
@pytest.mark.parametrize("bias", [False, True])
def test_encoder_block_equals_torch_values_and_gradients(norm_first, bias):
    """torch's `bias` also switches those of the feed-forward layers and norms, so ours are 0."""
    ours = perturb(EncoderBlock(D, H, FF, norm_first=norm_first, bias=bias).double())
    theirs = nn.TransformerEncoderLayer(
        D, H, FF, 0.0, batch_first=True, norm_first=norm_first
    ).double()
    for name, parameter in theirs.named_parameters():
        if not bias and name in ("self_attn.in_proj_bias", "self_attn.out_proj.bias"):
            nn.init.zeros_(parameter)
    pairs = list(torch_encoder_layer_pairs(ours, theirs))
    copy_weights(pairs)
    x, twin = pair(B, TS, D)
    lens = torch.tensor([2, 6, 3])
    mask = causal_mask(TS) & mask_from_valid_lens(lens, TS)
    output, weights = ours(x, mask, return_weights=True)
    assert weights.shape == (B, H, TS, TS)
    reference = theirs(
        twin, src_mask=~causal_mask(TS)[0, 0], src_key_padding_mask=hidden_keys(lens, TS)
    )
    close(output, reference, rtol=0, atol=1e-12)
    close(ours(x, mask), output, rtol=0, atol=1e-12)
    output.square().sum().backward()
    reference.square().sum().backward()
    close(x.grad, twin.grad, rtol=0, atol=1e-10)
    pairs = without_key_bias(pairs, ours.attention) if bias else pairs
    assert_same_gradients(pairs)


@pre_and_post_norm
def test_decoder_block_equals_torch_values_and_gradients(norm_first):
    ours = perturb(DecoderBlock(D, H, FF, norm_first=norm_first, bias=True).double())
    theirs = nn.TransformerDecoderLayer(
        D, H, FF, 0.0, batch_first=True, norm_first=norm_first
    ).double()
    pairs = list(torch_decoder_layer_pairs(ours, theirs))
    copy_weights(pairs)
    (x, twin), (memory, memory_twin) = pair(B, TT, D), pair(B, TS, D)
    lens = torch.tensor([2, 6, 3])
    source_mask = mask_from_valid_lens(lens, TS)
    source = ours.project_source(memory, source_mask)
    arguments = (x, source, None, causal_mask(TT), source_mask)
    output, cache, self_weights, cross_weights = ours(*arguments, return_weights=True)
    assert self_weights.shape == (B, H, TT, TT)
    assert cross_weights.shape == (B, H, TT, TS)
    assert cache.keys.shape == cache.values.shape == (B, H, TT, D // H)
    close(ours(*arguments)[0], output, rtol=0, atol=1e-12)
    reference = theirs(
        twin,
        memory_twin,
        tgt_mask=~causal_mask(TT)[0, 0],
        memory_key_padding_mask=hidden_keys(lens, TS),
    )
    close(output, reference, rtol=0, atol=1e-12)
    output.square().sum().backward()
    reference.square().sum().backward()
    close(x.grad, twin.grad, rtol=0, atol=1e-10)
    close(memory.grad, memory_twin.grad, rtol=0, atol=1e-10)
    assert_same_gradients(without_key_bias(pairs, ours.self_attention, ours.cross_attention))


def torch_twin(model, norm_first):
    """nn.Transformer with our weights; post-norm stacks end without a norm, as in the paper."""
    c = model.config
    layer = {"batch_first": True, "norm_first": norm_first, "dropout": 0.0}
    sizes = (c.d_model, c.num_heads, c.d_ff)

    def end():
        return nn.LayerNorm(c.d_model) if norm_first else None

    stacks = {
        "custom_encoder": nn.TransformerEncoder(
            nn.TransformerEncoderLayer(*sizes, **layer),
            c.num_encoder_layers,
            end(),
            enable_nested_tensor=False,
        ),
        "custom_decoder": nn.TransformerDecoder(
            nn.TransformerDecoderLayer(*sizes, **layer), c.num_decoder_layers, end()
        ),
    }
    theirs = nn.Transformer(c.d_model, c.num_heads, batch_first=True, **stacks).double()
    pairs = list(torch_transformer_pairs(model, theirs))
    copy_weights(pairs)
    return theirs, pairs


@pre_and_post_norm
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_the_whole_model_equals_torch_values_and_gradients(norm_first, positions):
    model = make(norm_first=norm_first, positions=positions)
    theirs, pairs = torch_twin(model, norm_first)
    src, tgt, lens = ids(SRC, B, TS), ids(TGT, B, TT), torch.tensor([2, 6, 3])
    with torch.no_grad():
        embedded = [
            (embedding(tokens) * math.sqrt(D) + table[: tokens.shape[1]]).double()
            for embedding, tokens, table in (
                (model.src_embedding, src, model.src_positions.table),
                (model.tgt_embedding, tgt, model.tgt_positions.table),
            )
        ]
    embedded = [x.requires_grad_() for x in embedded]
    hidden = hidden_keys(lens, TS)
    reference = theirs(
        *embedded,
        tgt_mask=~causal_mask(TT)[0, 0],
        src_key_padding_mask=hidden,
        memory_key_padding_mask=hidden,
    )
    reference = reference @ model.output.weight.detach().T
    logits = model(src, lens, tgt)
    close(logits, reference, rtol=0, atol=1e-10)
    targets = ids(TGT, B * TT)
    F.cross_entropy(logits.flatten(0, 1), targets).backward()
    F.cross_entropy(reference.flatten(0, 1), targets).backward()
    attentions = [block.attention for block in model.encoder]
    attentions += [a for b in model.decoder for a in (b.self_attention, b.cross_attention)]
    assert_same_gradients(without_key_bias(pairs, *attentions))
    # the gradient of an embedded token reaches the row of its id, times sqrt(d_model)
    wanted = torch.zeros(SRC, D).double()
    wanted.index_add_(0, src.flatten(), embedded[0].grad.flatten(0, 1) * math.sqrt(D))
    close(model.src_embedding.weight.grad, wanted, rtol=0, atol=1e-10)


# ---------------------------------------------------------------- shapes of the notes


def test_blocks_and_stacks_keep_the_shapes_of_the_notes():
    """Notes 001-98, 001-102, 001-109: 2 sentences of 100 tokens, 24 units, 8 heads."""
    x, lens = torch.ones(2, 100, 24), torch.tensor([3, 2])
    encoder = EncoderBlock(24, 8, 48, dropout=0.5).eval()
    memory, weights = encoder(x, valid_lens=lens, return_weights=True)
    assert memory.shape == (2, 100, 24)
    assert weights.shape == (2, 8, 100, 100)
    decoder = DecoderBlock(24, 8, 48, dropout=0.5).eval()
    mask = mask_from_valid_lens(lens, 100)
    output, _ = decoder(x, decoder.project_source(memory, mask), None, causal_mask(100), mask)
    assert output.shape == (2, 100, 24)
    config = TransformerConfig(200, 200, d_model=24, num_heads=8, d_ff=48, dropout=0.5)
    tokens = torch.ones(2, 100, dtype=torch.long)
    assert Transformer(config).eval().encode(tokens, lens).shape == (2, 100, 24)


def test_logits_and_maps_have_the_stated_shapes():
    model = make(num_encoder_layers=3)
    src, tgt, lens = ids(SRC, B, TS), ids(TGT, B, TT), torch.tensor([2, 6, 3])
    assert model(src, lens, tgt).shape == (B, TT, TGT)
    maps = model.attention_maps(src, lens, tgt)
    assert {name: tuple(m.shape) for name, m in maps.items()} == {
        "encoder": (3, B, H, TS, TS),
        "decoder": (2, B, H, TT, TT),
        "cross": (2, B, H, TT, TS),
    }
    for m in maps.values():
        close(m.sum(dim=-1), torch.ones_like(m[..., 0]))
    for name in ("encoder", "cross"):
        assert maps[name][:, 0, :, :, 2:].eq(0).all()
        assert maps[name][:, 2, :, :, 3:].eq(0).all()
    assert maps["decoder"].triu(1).eq(0).all()


def test_asking_for_maps_does_not_change_the_logits():
    model, src, tgt = make(), ids(SRC, B, TS), ids(TGT, B, TT)
    lens = torch.tensor([2, 6, 3])
    logits, _, self_maps, cross_maps = model.decode(
        tgt, model.start(src, lens), return_weights=True
    )
    close(logits, model(src, lens, tgt), rtol=0, atol=1e-12)
    maps = model.attention_maps(src, lens, tgt)
    close(torch.stack(self_maps), maps["decoder"], rtol=0, atol=1e-12)
    close(torch.stack(cross_maps), maps["cross"], rtol=0, atol=1e-12)


# ---------------------------------------------------------------- what must hold of the model


@pre_and_post_norm
@few
@given(data=st.data())
def test_cached_decoding_in_any_steps_equals_the_full_pass(norm_first, data):
    model = make(norm_first=norm_first).eval()
    lens = torch.tensor(data.draw(lens_strategy))
    steps = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    src, tgt = ids(SRC, B, TS), ids(TGT, B, sum(steps))
    state, logits = model.start(src, lens), []
    for part in tgt.split(steps, dim=1):
        got, state = model.decode(part, state)
        logits.append(got)
    assert state.length == sum(steps)
    close(torch.cat(logits, dim=1), model(src, lens, tgt), rtol=0, atol=1e-10)


def test_decoding_leaves_the_state_it_was_given_as_it_was():
    model, src, lens = make().eval(), ids(SRC, B, TS), torch.tensor([2, 6, 3])
    state = model.start(src, lens)
    _, after = model.decode(ids(TGT, B, 2), state)
    next_token = ids(TGT, B, 1)
    first, _ = model.decode(next_token, after)
    model.decode(ids(TGT, B, 3), after)
    again, _ = model.decode(next_token, after)
    assert first.equal(again)
    assert state.length == 0
    assert state.target == [None, None]


@few
@given(data=st.data())
def test_selecting_rows_of_a_state_continues_those_sentences(data):
    model, src, lens = make().eval(), ids(SRC, B, TS), torch.tensor(data.draw(lens_strategy))
    tgt = ids(TGT, B, 4)
    rows = torch.tensor(data.draw(st.lists(st.integers(0, B - 1), min_size=1, max_size=5)))
    full = model(src, lens, tgt)
    for start in (0, 2):  # before and after the first token
        state = model.start(src, lens)
        if start:
            _, state = model.decode(tgt[:, :start], state)
        logits, _ = model.decode(tgt[rows, start:], state.select(rows))
        close(logits, full[rows, start:], rtol=0, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@few
@given(position=st.integers(1, TT - 1))
def test_a_future_token_never_changes_an_earlier_logit(dtype, position):
    model = make().to(dtype).eval()
    src, lens, tgt = ids(SRC, B, TS), torch.tensor([2, 6, 3]), ids(TGT, B, TT)
    changed = tgt.clone()
    changed[:, position:] = tgt[:, position:] % (TGT - 1) + 1  # another id everywhere
    a, b = model(src, lens, tgt), model(src, lens, changed)
    assert a[:, :position].equal(b[:, :position])  # bit for bit
    assert not torch.allclose(a[:, position], b[:, position])


@pre_and_post_norm
@few
@given(lens=lens_strategy, extra=st.integers(0, 4))
def test_a_sentence_gives_the_same_logits_alone_and_padded_in_a_batch(norm_first, lens, extra):
    model = make(norm_first=norm_first).eval()
    src, tgt = ids(SRC, B, TS + extra), ids(TGT, B, TT)
    together = model(src, torch.tensor(lens), tgt)
    for i, n in enumerate(lens):
        alone = model(src[i : i + 1, :n], torch.tensor([n]), tgt[i : i + 1])
        close(together[i : i + 1], alone, rtol=0, atol=1e-10)


@pytest.mark.parametrize("poison", [math.nan, math.inf, 1e300])
def test_what_the_padding_embeds_reaches_no_logit_and_no_gradient_of_other_rows(poison):
    model = make()
    src, lens, tgt = ids(SRC, B, TS), torch.tensor([2, 6, 3]), ids(TGT, B, TT)
    src[0, 2:] = src[2, 3:] = 0
    wanted = model(src, lens, tgt).detach()
    with torch.no_grad():
        model.src_embedding.weight[0] = poison
    close(model(src, lens, tgt), wanted, rtol=0, atol=1e-12)
    maps = model.attention_maps(src, lens, tgt)
    assert maps["cross"].isfinite().all()


def test_the_order_of_source_tokens_matters_and_an_encoder_map_is_not_causal():
    model, lens = make().eval(), torch.tensor([TS])
    src, tgt = torch.arange(1, TS + 1)[None], ids(TGT, 1, TT)
    assert not torch.allclose(model(src, lens, tgt), model(src.flip(1), lens, tgt))
    assert model.attention_maps(src, lens, tgt)["encoder"].gt(0).all()


@pre_and_post_norm
def test_padded_columns_keep_shape_and_values_in_training_and_inference(norm_first):
    """torch's inference fast path drops columns that are padding in every row; ours may not."""
    block = EncoderBlock(16, 4, 32, norm_first=norm_first)
    x, lens = torch.randn(2, 6, 16), torch.tensor([3, 2])
    training = block(x, valid_lens=lens)
    with torch.no_grad():
        inference = block.eval()(x, valid_lens=lens)
    assert inference.shape == training.shape == (2, 6, 16)
    close(inference, training, rtol=0, atol=1e-5)


def test_non_contiguous_token_ids_and_expanded_batches():
    model, lens = make(), torch.tensor([4, 4, 4])
    src, tgt = ids(SRC, 4, B).T, ids(TGT, 1, TT).expand(B, TT)
    got = model(src, lens, tgt)
    close(got, model(src.contiguous(), lens, tgt.contiguous()), rtol=0, atol=0)
    close(model(src.int(), lens.int(), tgt.int()), got, rtol=0, atol=0)


def test_eval_mode_switches_all_dropout_off():
    model = make(dropout=0.5)
    without = make()
    without.load_state_dict(model.state_dict())
    args = ids(SRC, B, TS), torch.tensor([2, 6, 3]), ids(TGT, B, TT)
    assert not model(*args).equal(model(*args))
    close(model.eval()(*args), without(*args), rtol=0, atol=1e-12)


def test_an_empty_source_is_looked_at_by_nobody_and_poisons_nothing():
    model = make().train()
    src, lens, tgt = ids(SRC, B, TS), torch.tensor([0, 6, 3]), ids(TGT, B, TT)
    logits = model(src, lens, tgt)
    assert logits.isfinite().all()
    logits.square().mean().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)
    close(logits[1:], model(src[1:], lens[1:], tgt[1:]), rtol=0, atol=1e-10)
    other = ids(SRC, B, TS)
    other[1:] = src[1:]
    close(model(other, lens, tgt), logits, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_runs_forward_and_backward(dtype):
    model = make().to(dtype)
    logits = model(ids(SRC, B, TS), torch.tensor([2, 6, 0]), ids(TGT, B, TT))
    assert logits.dtype == dtype
    logits.float().square().mean().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


# ---------------------------------------------------------------- parameters and configuration


def test_tied_output_is_one_parameter_and_untied_is_two():
    tied, untied = make(tie_output=True), make(tie_output=False)
    assert tied.output.weight is tied.tgt_embedding.weight
    assert untied.output.weight is not untied.tgt_embedding.weight
    count = [sum(p.numel() for p in m.parameters()) for m in (tied, untied)]
    assert count[1] - count[0] == TGT * D


def test_number_of_parameters_by_hand():
    model = make(bias=False, num_encoder_layers=1, num_decoder_layers=1)
    attention, norm = 4 * D * D, 2 * D
    ffn = D * FF + FF + FF * D + D
    encoder, decoder = attention + ffn + 2 * norm, 2 * attention + ffn + 3 * norm
    wanted = (SRC + TGT) * D + encoder + decoder + 2 * norm
    assert sum(p.numel() for p in model.parameters()) == wanted


def test_initial_embeddings_have_unit_variance_after_scaling():
    model = Transformer(TransformerConfig(2000, 2000, d_model=64, num_heads=4, d_ff=64))
    for embedding in (model.src_embedding, model.tgt_embedding):
        assert (embedding.weight * 64**0.5).std().item() == pytest.approx(1, abs=0.02)
    for block in model.encoder:
        assert block.ffn.hidden.bias.eq(0).all()


def test_a_saved_model_loads_into_one_of_another_max_len():
    small, large = make(max_len=20), make(max_len=40)
    large.load_state_dict(small.state_dict())
    args = ids(SRC, B, TS), torch.tensor([2, 6, 3]), ids(TGT, B, TT)
    close(large(*args), small(*args), rtol=0, atol=0)
    assert large(ids(SRC, 1, 30), torch.tensor([30]), ids(TGT, 1, 2)).shape == (1, 2, TGT)


def test_double_moves_the_position_tables_too():
    assert {b.dtype for b in make().buffers()} == {torch.float64}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"d_model": 10, "num_heads": 4}, "d_model = 10 .*num_heads = 4"),
        ({"d_model": 9, "num_heads": 3}, "even.*got 9"),
        ({"d_ff": 0}, "d_ff must be at least 1, got 0"),
        ({"num_decoder_layers": 0}, "num_decoder_layers must be at least 1, got 0"),
        ({"max_len": 0}, "max_len must be at least 1, got 0"),
        ({"positions": "rotary"}, "'sinusoidal' or 'learned', got 'rotary'"),
        ({"dropout": 1.5}, "between 0 and 1.*1.5"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


@pytest.mark.parametrize(
    ("src", "lens", "tgt", "error", "message"),
    [
        ((B, TS), [1, 2], (B, TT), ValueError, r"\(B,\).*B = 3, got \(2,\)"),
        ((B, TS), [1, 2, 7], (B, TT), ValueError, r"0\.\.6.*\[1, 2, 7\]"),
        ((B, TS), [1.0, 2.0, 3.0], (B, TT), TypeError, "integers, got torch.float32"),
        ((TS,), [1, 2, 3], (B, TT), ValueError, r"\(B, T\), got \(6,\)"),
        ((B, TS), [1, 2, 3], (TT,), ValueError, r"\(B, T\), got \(5,\)"),
        ((B, TS), [1, 2, 3], (1, TT), ValueError, "3 source sentences, but 1 target"),
        ((B, TS), [[6] * TS] * B, (B, TS), ValueError, r"shape \(B,\), got \(3, 6\)"),
        ((B, TS), [[1], [2], [3]], (B, TT), ValueError, r"shape \(B,\), got \(3, 1\)"),
        ((B, 21), [1, 2, 3], (B, TT), ValueError, r"0\.\.20 .*max_len = 20"),
        ((B, TS), [1, 2, 3], (B, 21), ValueError, r"0\.\.20 .*max_len = 20"),
    ],
)
def test_inputs_of_a_wrong_shape_are_named(src, lens, tgt, error, message):
    with pytest.raises(error, match=message):
        make()(ids(SRC, *src), torch.tensor(lens), ids(TGT, *tgt))


def test_token_ids_outside_the_vocabulary_are_named():
    model, lens = make(), torch.tensor([TS] * B)
    src, tgt = ids(SRC, B, TS), ids(TGT, B, TT)
    with pytest.raises(ValueError, match=r"0\.\.10, got .*vocabulary"):
        model(src + 10, lens, tgt)
    with pytest.raises(ValueError, match=r"0\.\.12, got .*vocabulary"):
        model(src, lens, tgt - 13)
    with pytest.raises(TypeError, match="int64 or int32, got torch.float64"):
        model(src.double(), lens, tgt)


def test_decoding_beyond_max_len_is_refused_at_the_step_that_leaves_it():
    model, src, lens = make(max_len=6), ids(SRC, B, TS), torch.tensor([TS] * B)
    _, state = model.decode(ids(TGT, B, 6), model.start(src, lens))
    with pytest.raises(ValueError, match=r"6\.\.6 .*max_len = 6"):
        model.decode(ids(TGT, B, 1), state)


def test_no_sentences_and_no_target_tokens_give_empty_logits():
    model = make()
    nothing = torch.zeros(0, TS, dtype=torch.long)
    assert model(nothing, torch.zeros(0, dtype=torch.long), nothing).shape == (0, TS, TGT)
    src, lens = ids(SRC, B, TS), torch.tensor([2, 6, 3])
    assert model(src, lens, ids(TGT, B, 0)).shape == (B, 0, TGT)


@pytest.mark.parametrize(
    "keep",
    [
        torch.ones(B, TT),
        torch.zeros(B, TT, dtype=torch.long),
        torch.ones(B, TT + 1, dtype=torch.bool),
        torch.ones(B, dtype=torch.bool),
    ],
)
def test_keep_is_a_boolean_for_every_token(keep):
    model, lens = make(), torch.tensor([2, 6, 3])
    with pytest.raises(ValueError, match=r"keep must be boolean, in the shape \(3, 5\)"):
        model(ids(SRC, B, TS), lens, ids(TGT, B, TT), keep)


@pytest.mark.parametrize("return_weights", [False, True])
def test_fully_masked_tokens_of_a_decoder_block_get_nothing_from_attention(return_weights):
    """All biases are on; what is left is the feed-forward network."""
    block = perturb(DecoderBlock(D, H, FF, norm_first=True, bias=True).double())
    x, memory = (torch.randn(B, TT, D).double() for _ in range(2))
    nothing = torch.zeros(1, 1, 1, TT, dtype=torch.bool)
    source = block.project_source(memory, nothing)
    got = block(x, source, None, nothing, nothing, return_weights=return_weights)[0]
    close(got, x + block.ffn(block.addnorm3.before(x)), rtol=0, atol=1e-12)


def test_a_decoder_block_refuses_a_mask_that_could_be_per_sentence_or_per_head():
    block, x = DecoderBlock(D, H, FF).double(), torch.randn(H, 3, D).double()
    with pytest.raises(ValueError, match="per sentence or per head"):
        block(x, block.project_source(x), None, torch.ones(H, 3, 3, dtype=torch.bool))
