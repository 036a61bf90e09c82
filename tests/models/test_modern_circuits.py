"""Scores of heads, logit lens, rollout, and interventions, also on the translator."""

import pytest
import torch

from course_utils.models.modern.block import DecoderConfig
from course_utils.models.modern.circuits import (
    induction_scores,
    logit_lens,
    looks_back,
    repeated_sequences,
    rollout,
)
from course_utils.models.modern.decoder_only import DecoderOnly
from course_utils.models.modern.interventions import (
    ablated,
    head_outputs,
    patch_effects,
    patched,
    recorded,
)
from course_utils.models.transformer import Transformer, TransformerConfig

close = torch.testing.assert_close
TOKENS = torch.tensor([[3, 1, 4, 1, 5, 9]])


def attention_only(layers=2, **options):
    torch.manual_seed(0)
    options = {"d_model": 16, "ffn": "none", "positions": "rotary", **options}
    return DecoderOnly(DecoderConfig(11, num_layers=layers, **options)).double().eval()


def translator():
    torch.manual_seed(0)
    return Transformer(TransformerConfig(11, 12, d_model=16, num_heads=4, d_ff=24)).double().eval()


def test_sequences_repeat_each_with_its_own_period():
    tokens, period = repeated_sequences(40, 20, 50, range(3, 9), torch.Generator().manual_seed(0))
    assert tokens.shape == (40, 20)
    assert set(period.tolist()) == set(range(3, 9))
    for row, p in zip(tokens, period.tolist(), strict=True):
        assert torch.equal(row[p:], row[:-p])
    with pytest.raises(ValueError, match=r"1\.\.19, below the length"):
        repeated_sequences(2, 20, 5, range(5, 21))


def test_a_head_that_looks_back_by_hand():
    period = torch.tensor([3, 4])
    wanted = torch.zeros(2, 2, 9, 9)  # (B, h, T, T): head 0 induces, head 1 looks one back
    for b, p in enumerate(period.tolist()):
        for query in range(9):
            wanted[b, 0, query, max(query - p + 1, 0)] = 1
            wanted[b, 1, query, max(query - 1, 0)] = 1
    assert induction_scores([wanted], period).tolist() == [[1.0, 0.0]]
    assert looks_back([wanted], 1, start=2).tolist() == [[0.0, 1.0]]
    even = torch.ones(1, 1, 4, 4).tril() / torch.arange(1, 5)[:, None]
    close(looks_back([even], 1), torch.tensor([[(1 / 2 + 1 / 3 + 1 / 4) / 3]]))
    with pytest.raises(ValueError, match="no query from 0 on has a key 4 before it"):
        looks_back([even], 4)


def test_the_lens_of_the_last_layer_is_the_model():
    model = attention_only(3)
    with recorded(model.blocks) as states:
        logits = model(TOKENS)
    lens = logit_lens(states, model.norm, model.output)
    assert lens.shape == (3, 1, 6, 11)
    close(lens[-1], logits)
    assert not torch.allclose(lens[0], logits)


def test_the_lens_on_the_translators_decoder():
    model = translator()
    with recorded(model.decoder) as states:
        logits = model(TOKENS, torch.tensor([6]), TOKENS[:, :4])
    close(logit_lens(states, model.decoder_norm, model.output)[-1], logits)
    assert not model.decoder[0]._forward_hooks


def test_rollout_by_hand_and_its_limits():
    first, second = torch.rand(1, 2, 3, 3).softmax(-1), torch.rand(1, 2, 3, 3).softmax(-1)
    a, b = first.mean(1)[0], second.mean(1)[0]
    close(rollout([first, second], 0.0)[0], b @ a)
    close(rollout([first, second], 1.0)[0], torch.eye(3))
    close(rollout([first])[0], (a + torch.eye(3)) / 2)
    close(rollout([first, second]).sum(-1), torch.ones(1, 3))
    with pytest.raises(ValueError, match="got 1.5"):
        rollout([first], 1.5)


def test_an_ablated_head_is_a_head_whose_part_of_W_o_is_zero():
    for model, attention, run in (
        (m := attention_only(), m.blocks[1].attention, lambda m: m(TOKENS)),
        (m := translator(), m.decoder[1].cross_attention,
         lambda m: m(TOKENS, torch.tensor([6]), TOKENS)),
    ):  # fmt: skip
        whole = run(model)
        with ablated(attention, [2]):
            without = run(model)
        close(run(model), whole)
        with torch.no_grad():
            attention.W_o.weight[:, 8:12] = 0
        close(run(model), without)
        assert not torch.allclose(whole, without)


def test_a_head_set_to_its_own_output_changes_nothing():
    model = attention_only()
    attention = model.blocks[0].attention
    with head_outputs(attention) as outputs:
        whole = model(TOKENS)
    assert outputs[0].shape == (1, 6, 4, 4)
    with ablated(attention, [1, 3], outputs[0][:, :, [1, 3]]):
        close(model(TOKENS), whole)
    with ablated(attention, [1], outputs[0].mean((0, 1))[[1]]):
        assert not torch.allclose(model(TOKENS), whole)
    with pytest.raises(ValueError, match="count from 0 to 3, got .4."), ablated(attention, [4]):
        pass


def test_hooks_are_gone_after_an_error():
    model = attention_only()
    whole = model(TOKENS)
    for inside in (
        lambda: ablated(model.blocks[0].attention, [0]),
        lambda: patched(model.blocks[0], torch.zeros(1, 6, 16)),
        lambda: recorded(model.blocks),
    ):
        with pytest.raises(KeyError), inside():
            raise KeyError
    close(model(TOKENS), whole)


def test_patching_all_positions_of_one_layer_restores_the_clean_run():
    model, other = attention_only(), TOKENS.flip(1)
    with recorded(model.blocks) as states:
        clean = model(TOKENS)
    with patched(model.blocks[0], states[0]):
        close(model(other), clean)
    with patched(model.blocks[1], states[1], [2]):
        mixed = model(other)
    close(mixed[:, 2], clean[:, 2])
    close(mixed[:, 3:], model(other)[:, 3:])  # above the last block nothing moves between positions


def test_effects_say_where_the_answer_is():
    model = attention_only()
    other = TOKENS.clone()
    other[0, 2] = 7

    def last(tokens):
        return lambda: model(tokens)[0, -1, 5]

    effects = patch_effects([model.embedding, *model.blocks], last(TOKENS), last(other), 6)
    wanted = torch.zeros(3, 6)
    wanted[0, 2] = 1  # at the bottom all is where the inputs differ
    wanted[-1, -1] = 1  # at the top all is at the position that is read
    close(effects[[0, 2]], wanted[[0, 2]])
    assert not effects[1, :2].any()  # what comes before sees no difference
    with pytest.raises(ValueError, match="both give"):
        patch_effects(model.blocks, last(TOKENS), last(TOKENS), 6)


def test_effects_on_the_translator():
    model, other = translator(), TOKENS.clone()
    other[0, 2] = 7

    def score(src):
        return lambda: model(src, torch.tensor([6]), TOKENS[:, :3])[0, -1, 5]

    effects = patch_effects(model.decoder, score(TOKENS), score(other), 3)
    close(effects[-1], torch.tensor([0.0, 0.0, 1.0]))
    inside = patch_effects(model.encoder, score(TOKENS), score(other), 6)
    assert inside.shape == (2, 6)
    assert inside.isfinite().all()
