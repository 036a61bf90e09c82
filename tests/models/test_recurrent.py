"""The GRU encoder and both decoders: parity, padding, step by step, and bad input."""

from functools import partial

import d2l.torch as d2l
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from parity import copy_weights, d2l_attention_pairs

from course_utils.models.recurrent import BahdanauDecoder, GRUDecoder, GRUEncoder, Seq2Seq

few = settings(deadline=None, max_examples=12, derandomize=True)
close = torch.testing.assert_close
B, TS, TT, E, N, LAYERS = 3, 6, 5, 7, 8, 2
SRC, TGT = 11, 13
both_decoders = pytest.mark.parametrize("decoder", [GRUDecoder, BahdanauDecoder])
every_decoder = pytest.mark.parametrize(
    "decoder",
    [
        partial(kind, deep_output=deep)
        for kind in (GRUDecoder, BahdanauDecoder)
        for deep in (False, True)
    ],
    ids=["gru", "gru, deep output", "bahdanau", "bahdanau, deep output"],
)
lens_strategy = st.lists(st.integers(1, TS), min_size=B, max_size=B)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def make(decoder=BahdanauDecoder, layers=LAYERS, dropout=0.0):
    sizes = {
        "embed_size": E,
        "num_hiddens": N,
        "num_layers": layers,
        "dropout": dropout,
    }
    return Seq2Seq(GRUEncoder(SRC, **sizes), decoder(TGT, **sizes)).double()


def ids(high, *shape):
    return torch.randint(1, high, shape)


# ---------------------------------------------------------------- encoder


def d2l_encoder(ours):
    theirs = d2l.Seq2SeqEncoder(SRC, E, N, LAYERS).double()
    theirs.embedding.load_state_dict(ours.embedding.state_dict())
    theirs.rnn.load_state_dict(ours.gru.state_dict())
    return theirs


def test_encoder_equals_d2l_on_full_sentences_values_and_gradients():
    ours = make().encoder
    theirs, src = d2l_encoder(ours), ids(SRC, B, TS)
    outputs, state = ours(src, torch.tensor([TS] * B))
    their_outputs, their_state = theirs(src)
    close(outputs, their_outputs.transpose(0, 1), rtol=0, atol=1e-12)
    close(state, their_state, rtol=0, atol=1e-12)
    (outputs.square().sum() + state.sum()).backward()
    (their_outputs.square().sum() + their_state.sum()).backward()
    pairs = zip(ours.parameters(), theirs.parameters(), strict=True)
    for mine, other in pairs:
        assert mine.grad.abs().max() > 0
        close(mine.grad, other.grad, rtol=0, atol=1e-10)


@few
@given(lens=lens_strategy, extra=st.integers(0, 3))
def test_encoder_reads_a_padded_sentence_as_d2l_reads_it_alone(lens, extra):
    ours = make().encoder
    theirs, src = d2l_encoder(ours), ids(SRC, B, TS + extra)
    outputs, state = ours(src, torch.tensor(lens))
    assert outputs.shape == (B, TS + extra, N)
    assert state.shape == (LAYERS, B, N)
    for i, n in enumerate(lens):
        their_outputs, their_state = theirs(src[i : i + 1, :n])
        close(outputs[i, :n], their_outputs[:, 0], rtol=0, atol=1e-12)
        close(state[:, i], their_state[:, 0], rtol=0, atol=1e-12)
        assert outputs[i, n:].eq(0).all()


# ---------------------------------------------------------------- decoders


def gru_step(gru, x, hidden):
    """One step of a stacked GRU from its equations: (B, in), (L, B, n) -> the new (L, B, n)."""
    states = []
    for layer, h in enumerate(hidden):
        gates_x, gates_h = (
            y @ getattr(gru, f"weight_{kind}_l{layer}").T + getattr(gru, f"bias_{kind}_l{layer}")
            for kind, y in (("ih", x), ("hh", h))
        )
        (rx, zx, nx), (rh, zh, nh) = gates_x.chunk(3, -1), gates_h.chunk(3, -1)
        z = torch.sigmoid(zx + zh)
        candidate = torch.tanh(nx + torch.sigmoid(rx + rh) * nh)
        x = (1 - z) * candidate + z * h
        states.append(x)
    return torch.stack(states)


def reference_decode(model, src, lens, tgt, attention=None):
    """Logits (B, T, V) and weights step by step, attention by d2l (or one fixed context)."""
    outputs, hidden = model.encoder(src, lens)
    fixed, decoder = hidden[-1], model.decoder
    logits, maps = [], []
    for token in tgt.T:  # (B,)
        context = fixed
        if attention is not None:
            context = attention(hidden[-1][:, None], outputs, outputs, lens)[:, 0]
            maps.append(attention.attention_weights[:, 0])
        x = torch.cat([context, decoder.embedding.weight[token]], dim=-1)
        hidden = gru_step(decoder.gru, x, hidden)
        said = torch.cat([hidden[-1], x], dim=-1) if decoder.deep_output else hidden[-1]
        logits.append(said @ decoder.output.weight.T + decoder.output.bias)
    return torch.stack(logits, dim=1), torch.stack(maps, dim=1) if maps else None


@every_decoder
def test_decoders_equal_a_hand_written_step_values_and_gradients(decoder):
    """Notes 001-46 to 001-52: attend with the last hidden state, join, step, project.

    A deep output (Bahdanau et al. 2015, A.2.2) projects what was read as well.
    """
    model = make(decoder)
    src, tgt, lens = ids(SRC, B, TS), ids(TGT, B, TT), torch.tensor([2, 6, 3])
    attention = None
    if isinstance(model.decoder, BahdanauDecoder):
        attention = d2l.AdditiveAttention(N, N, N, 0.0).double()
        copy_weights(d2l_attention_pairs(model.decoder.attention, attention))
    wanted, maps = reference_decode(model, src, lens, tgt, attention)
    logits = model(src, lens, tgt)
    assert logits.shape == (B, TT, TGT)
    close(logits, wanted, rtol=0, atol=1e-12)
    got_maps = model.attention_maps(src, lens, tgt)
    if attention is None:
        assert got_maps == {}
    else:
        assert got_maps["cross"].shape == (1, B, 1, TT, TS)
        close(got_maps["cross"][0, :, 0], maps, rtol=0, atol=1e-12)
    upstream = torch.randn_like(logits)
    gradients = []
    for output in (logits, wanted):
        model.zero_grad()
        output.backward(upstream, retain_graph=True)
        gradients.append([p.grad for p in model.decoder.gru.parameters()])
        gradients[-1] += [p.grad for p in model.encoder.parameters()]
    for mine, other in zip(*gradients, strict=True):
        assert mine.abs().max() > 0
        close(mine, other, rtol=0, atol=1e-10)
    if attention is not None:
        model.zero_grad()
        logits.backward(upstream)
        for mine, other, _ in d2l_attention_pairs(model.decoder.attention, attention):
            assert mine.grad.abs().max() > 0
            close(mine.grad, other.grad, rtol=0, atol=1e-10)


@every_decoder
@few
@given(data=st.data())
def test_decoding_in_any_steps_equals_teacher_forcing(decoder, data):
    model = make(decoder).eval()
    lens = torch.tensor(data.draw(lens_strategy))
    steps = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    src, tgt = ids(SRC, B, TS), ids(TGT, B, sum(steps))
    state, logits = model.start(src, lens), []
    for part in tgt.split(steps, dim=1):
        got, state = model.decode(part, state)
        logits.append(got)
    close(torch.cat(logits, dim=1), model(src, lens, tgt), rtol=0, atol=1e-12)


@every_decoder
@few
@given(data=st.data())
def test_selecting_rows_of_a_state_continues_those_sentences(decoder, data):
    model, src, lens = make(decoder), ids(SRC, B, TS), torch.tensor(data.draw(lens_strategy))
    rows = torch.tensor(data.draw(st.lists(st.integers(0, B - 1), min_size=1, max_size=5)))
    tgt = ids(TGT, B, 4)
    _, state = model.decode(tgt[:, :2], model.start(src, lens))
    logits, _ = model.decode(tgt[rows, 2:], state.select(rows))
    close(logits, model(src, lens, tgt)[rows, 2:], rtol=0, atol=1e-12)


@every_decoder
@few
@given(lens=lens_strategy, extra=st.integers(0, 4))
def test_a_sentence_gives_the_same_logits_alone_and_padded_in_a_batch(decoder, lens, extra):
    model, src, tgt = make(decoder), ids(SRC, B, TS + extra), ids(TGT, B, TT)
    together = model(src, torch.tensor(lens), tgt)
    for i, n in enumerate(lens):
        alone = model(src[i : i + 1, :n], torch.tensor([n]), tgt[i : i + 1])
        close(together[i : i + 1], alone, rtol=0, atol=1e-12)


@every_decoder
def test_a_future_token_never_changes_an_earlier_logit(decoder):
    model, src, lens = make(decoder), ids(SRC, B, TS), torch.tensor([2, 6, 3])
    tgt = ids(TGT, B, TT)
    changed = tgt.clone()
    changed[:, 3:] = tgt[:, 3:] % (TGT - 1) + 1
    a, b = model(src, lens, tgt), model(src, lens, changed)
    assert a[:, :3].equal(b[:, :3])
    assert not torch.allclose(a[:, 3], b[:, 3])


def test_attention_reaches_every_source_word_and_no_padding():
    model, src, lens = make(), ids(SRC, B, TS), torch.tensor([2, 6, 3])
    weights = model.attention_maps(src, lens, ids(TGT, B, TT))["cross"][0, :, 0]
    close(weights.sum(dim=-1), torch.ones(B, TT).double())
    for row, n in zip(weights, lens.tolist(), strict=True):
        assert row[:, :n].gt(0).all()
        assert row[:, n:].eq(0).all()


@both_decoders
def test_eval_mode_switches_all_dropout_off(decoder):
    model, plain = make(decoder, dropout=0.5), make(decoder)
    plain.load_state_dict(model.state_dict())
    args = ids(SRC, B, TS), torch.tensor([2, 6, 3]), ids(TGT, B, TT)
    assert not model(*args).equal(model(*args))
    close(model.eval()(*args), plain(*args), rtol=0, atol=1e-12)


def test_one_layer_with_dropout_gives_no_warning(recwarn):
    make(layers=1, dropout=0.5)
    assert [str(w.message) for w in recwarn] == []


# ---------------------------------------------------------------- bad input


@both_decoders
@pytest.mark.parametrize(
    ("src", "lens", "tgt", "error", "message"),
    [
        ((B, TS), [0, 2, 3], (B, TT), ValueError, r"none empty, got lengths \[0, 2, 3\]"),
        ((0, TS), [], (0, TT), ValueError, "one sentence or more"),
        ((B, TS), [1, 2], (B, TT), ValueError, r"B = 3, got \(2,\)"),
        ((B, TS), [1, 2, 7], (B, TT), ValueError, r"0\.\.6.*\[1, 2, 7\]"),
        ((B, TS), [1.0, 2.0, 3.0], (B, TT), TypeError, "integers, got torch.float32"),
        ((TS,), [1, 2, 3], (B, TT), ValueError, r"\(B, T\), got \(6,\)"),
        ((B, TS), [1, 2, 3], (1, TT), ValueError, "3 source sentences, but 1 target"),
        ((B, TS), [[1], [2], [3]], (B, TT), ValueError, r"shape \(B,\), got \(3, 1\)"),
        ((B, TS), [1, 2, 3], (B, 0), ValueError, r"a token or more to read, got \(3, 0\)"),
    ],
)
def test_inputs_of_a_wrong_shape_are_named(decoder, src, lens, tgt, error, message):
    lens = torch.tensor(lens, dtype=None if lens else torch.long)
    with pytest.raises(error, match=message):
        make(decoder)(ids(SRC, *src), lens, ids(TGT, *tgt))


@both_decoders
def test_token_ids_outside_the_vocabulary_are_named(decoder):
    model, lens = make(decoder), torch.tensor([TS] * B)
    src, tgt = ids(SRC, B, TS), ids(TGT, B, TT)
    with pytest.raises(ValueError, match=r"0\.\.10, got .*vocabulary"):
        model(src + 10, lens, tgt)
    with pytest.raises(ValueError, match=r"0\.\.12, got .*vocabulary"):
        model(src, lens, tgt - 13)


@both_decoders
def test_lengths_may_be_a_list(decoder):
    model, lens = make(decoder), [2, 6, 3]
    src, tgt = ids(SRC, B, TS), ids(TGT, B, TT)
    assert model(src, lens, tgt).equal(model(src, torch.tensor(lens), tgt))


@both_decoders
def test_attention_maps_need_a_target(decoder):
    with pytest.raises(ValueError, match="a token or more to read"):
        make(decoder).attention_maps(ids(SRC, B, TS), torch.tensor([2, 6, 3]), ids(TGT, B, 0))


@pytest.mark.parametrize("change", [{"num_layers": 1}, {"num_hiddens": N + 1}])
def test_encoder_and_decoder_of_different_sizes_are_refused(change):
    sizes = {"embed_size": E, "num_hiddens": N, "num_layers": LAYERS}
    with pytest.raises(ValueError, match=r"same num_layers and num_hiddens, got \(2, 8\) and"):
        Seq2Seq(GRUEncoder(SRC, **sizes), BahdanauDecoder(TGT, **sizes | change))


# ---------------------------------------------------------------- both ways


def test_each_way_is_a_gru_of_its_own_over_the_real_tokens():
    encoder = GRUEncoder(SRC, E, N, LAYERS, two_way=True).double()
    src, lens = ids(SRC, B, TS), torch.tensor([TS, 4, 1])
    outputs, state = encoder(src, lens)
    assert outputs.shape == (B, TS, N)
    assert state.shape == (LAYERS, B, N)
    for b, length in enumerate(lens.tolist()):
        alone, last = encoder.gru(encoder.embedding(src[b : b + 1, :length]))
        close(outputs[b, :length], alone[0])
        close(state[-1, b], torch.cat([alone[0, -1, : N // 2], alone[0, 0, N // 2 :]]))
        close(state[0, b], torch.cat([last[0, 0], last[1, 0]]))
        assert (outputs[b, length:] == 0).all()


def test_an_encoder_that_reads_both_ways_knows_later_words():
    src = ids(SRC - 1, 1, TS)
    changed = src.clone()
    changed[0, -1] += 1
    for two_way in (False, True):
        encoder = GRUEncoder(SRC, E, N, two_way=two_way).double()
        first = [encoder(x, torch.tensor([TS]))[0][0, 0] for x in (src, changed)]
        assert torch.equal(*first) != two_way


@both_decoders
def test_both_ways_step_by_step_is_the_whole_sentence(decoder):
    encoder = GRUEncoder(SRC, E, N, LAYERS, two_way=True)
    model = Seq2Seq(encoder, decoder(TGT, E, N, LAYERS)).double().eval()
    src, lens, tgt = ids(SRC, B, TS), torch.tensor([TS, 3, 2]), ids(TGT, B, TT)
    state, steps = model.start(src, lens), []
    for t in range(TT):
        logits, state = model.decode(tgt[:, t : t + 1], state)
        steps.append(logits)
    close(torch.cat(steps, dim=1), model(src, lens, tgt))


def test_two_ways_need_an_even_number_of_hidden_units():
    with pytest.raises(ValueError, match="num_hiddens=7: make it even"):
        GRUEncoder(SRC, E, 7, two_way=True)
