"""The trunk of the one-stack models."""

import pytest
import torch

from course_utils.models.fine_tuning import PromptEncoder
from course_utils.models.masks import causal_mask
from course_utils.models.token_encoder import TokenEncoder
from course_utils.training.loops import fit
from course_utils.training.seeds import set_seed


@pytest.fixture
def tokens():
    return torch.arange(12).reshape(2, 6)


def build(**options):
    set_seed(0)
    return TokenEncoder(20, d_model=16, num_heads=2, d_ff=32, **options).eval()


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_what_follows_the_real_tokens_changes_nothing(tokens, positions):
    model = build(positions=positions)
    lens = torch.tensor([4, 6])
    other = tokens.clone()
    other[0, 4:] = 19
    a, b = model(tokens, valid_lens=lens), model(other, valid_lens=lens)
    torch.testing.assert_close(a[0, :4], b[0, :4])
    torch.testing.assert_close(a[0, :4], model(tokens[:1, :4])[0])


def test_a_causal_mask_hides_the_future(tokens):
    model = build()
    other = tokens.clone()
    other[:, 4:] = 19
    mask = causal_mask(6)
    torch.testing.assert_close(model(tokens, mask)[:, :4], model(other, mask)[:, :4])
    assert not torch.allclose(model(tokens)[:, :4], model(other)[:, :4])


def test_without_positions_a_permutation_is_only_a_permutation(tokens):
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    for positions, same in (("none", True), ("sinusoidal", False), ("learned", False)):
        model = build(positions=positions)
        equal = torch.allclose(model(tokens)[:, order], model(tokens[:, order]), atol=1e-5)
        assert equal is same


def test_one_map_a_layer_comes_back(tokens):
    out, maps = build(num_layers=3)(tokens, valid_lens=torch.tensor([4, 6]), return_weights=True)
    assert out.shape == (2, 6, 16)
    assert [tuple(m.shape) for m in maps] == [(2, 2, 6, 6)] * 3
    assert maps[0][0, :, :, 4:].eq(0).all()


def test_an_unknown_kind_of_positions_is_refused():
    with pytest.raises(ValueError, match="'sinusoidal', 'learned' or 'none', got 'rotary'"):
        build(positions="rotary")


def test_fit_learns_and_leaves_what_it_was_not_given(tokens):
    model = build(dropout=0.0)
    head = torch.nn.Linear(16, 2)
    kept = model.embedding.weight.detach().clone()
    labels = torch.tensor([0, 1])

    def loss_of(batch):
        return torch.nn.functional.cross_entropy(head(model(batch).mean(1)), labels)

    losses = fit(model, [tokens] * 40, loss_of, lr=1e-1, parameters=head.parameters())
    assert len(losses) == 40
    assert losses[-1] < 0.1 * losses[0]
    assert model.embedding.weight.equal(kept)
    assert not model.training


def test_fit_says_when_there_is_nothing_to_do(tokens):
    model = build()
    with pytest.raises(ValueError, match="0 batches"):
        fit(model, [], lambda batch: batch)
    with pytest.raises(ValueError, match="0 tensors that need a gradient"):
        fit(model.requires_grad_(False), [tokens], lambda batch: batch)


@pytest.mark.parametrize("wrap", [lambda e: e, lambda e: PromptEncoder(e, 3).eval()])
def test_masks_with_lengths_are_read_as_masks_alone(tokens, wrap):
    """Two sentences, two heads: three axes could be either, with and without lengths."""
    model, lens = wrap(build()), torch.tensor([4, 6])
    mask = causal_mask(6).expand(2, 1, 6, 6)
    for options in ({}, {"valid_lens": lens}):
        with pytest.raises(ValueError, match="per sentence or per head"):
            model(tokens, mask[:, 0], **options)
        with pytest.raises(ValueError, match=r"\(3, 6, 6\).*\(2, 2, 6, 6\)"):
            model(tokens, mask[:1, 0].expand(3, -1, -1), **options)
        with pytest.raises(TypeError, match=r"mask\.bool\(\)"):
            model(tokens, mask.float(), **options)
        for less in (mask[:1], mask[0], mask[0, 0]):
            wanted = model(tokens, mask, **options)
            torch.testing.assert_close(model(tokens, less, **options), wanted)
    row = torch.arange(6)[None] < 4
    both = model(tokens, row, valid_lens=torch.tensor([6, 6]))
    torch.testing.assert_close(both, model(tokens, valid_lens=torch.tensor([4, 4])))


def test_fit_takes_a_generator():
    parameter = torch.nn.Linear(1, 1, bias=False)
    batches = (torch.full((1, 1), float(i)) for i in range(1, 4))
    losses = fit(parameter, batches, lambda x: parameter(x).square().sum())
    assert len(losses) == 3
    with pytest.raises(ValueError, match="0 batches"):
        fit(parameter, iter([]), lambda x: x)


def test_fit_ends_in_evaluation_mode_and_keeps_the_weights_when_a_gradient_is_no_number():
    layer = torch.nn.Linear(1, 1, bias=False)
    before = layer.weight.detach().clone()
    hostile = lambda _: (layer.weight * 0).sqrt().sum()  # noqa: E731  0 / 0 on the way back
    with pytest.raises(FloatingPointError, match="gradient is nan.*weights are those before it"):
        fit(layer, [None], hostile)
    assert layer.weight.equal(before)
    assert not layer.training
