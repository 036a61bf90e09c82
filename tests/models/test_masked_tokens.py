"""Masked-token training."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_utils.models.masked_tokens import MaskedTokenModel, mask_tokens
from course_utils.models.token_encoder import TokenEncoder
from course_utils.text.vocab import RESERVED, Vocab
from course_utils.training.loops import fit
from course_utils.training.losses import masked_cross_entropy
from course_utils.training.seeds import set_seed

MASK = 20


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_the_shares_are_those_of_bert():
    tokens = torch.randint(4, MASK, (300, 400), generator=generator(1))
    read, guess = mask_tokens(tokens, MASK, generator=generator())
    chosen = guess != Vocab.pad
    share = chosen.float().mean().item()
    assert share == pytest.approx(0.15, abs=0.005)
    assert guess[chosen].equal(tokens[chosen])
    assert read[~chosen].equal(tokens[~chosen])
    assert read[chosen].eq(MASK).float().mean().item() == pytest.approx(0.8, abs=0.01)
    swapped = read.ne(tokens) & read.ne(MASK)
    # of those drawn anew, one in 16 is drawn as it was
    assert swapped[chosen].float().mean().item() == pytest.approx(0.1 * 15 / 16, abs=0.01)
    assert read[swapped].min() == len(RESERVED)
    assert read[swapped].max() == MASK - 1


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_reserved_tokens_are_left_alone(seed, share):
    tokens = torch.randint(0, MASK, (3, 7), generator=generator(seed))
    kept = tokens.clone()
    read, guess = mask_tokens(tokens, MASK, share=share, generator=generator(seed))
    reserved = tokens < len(RESERVED)
    assert read[reserved].equal(tokens[reserved])
    assert guess[reserved].eq(Vocab.pad).all()
    assert tokens.equal(kept)
    again = mask_tokens(tokens, MASK, share=share, generator=generator(seed))
    assert again[0].equal(read)
    assert again[1].equal(guess)


def test_the_whole_or_nothing_can_be_chosen():
    tokens = torch.full((2, 5), 7)
    assert mask_tokens(tokens, MASK, share=0.0)[1].eq(Vocab.pad).all()
    assert mask_tokens(tokens, MASK, share=1.0)[1].equal(tokens)


def test_a_wrong_mask_id_or_share_is_refused():
    with pytest.raises(ValueError, match=r"got 19 for tokens up to 19"):
        mask_tokens(torch.tensor([[5, 19]]), 19)
    with pytest.raises(ValueError, match=r"must be len\(vocab\)"):
        mask_tokens(torch.tensor([[1, 2]]), 4)
    with pytest.raises(ValueError, match=r"share must lie in 0..1, got 15"):
        mask_tokens(torch.tensor([[5, 19]]), MASK, share=15)


def build():
    set_seed(0)
    return MaskedTokenModel(TokenEncoder(MASK + 1, 16, 2, 32, 1, 0.0)).eval()


def test_the_model_sees_both_sides_but_no_padding():
    model = build()
    tokens = torch.tensor([[5, 6, 7, 0, 0]])
    lens = torch.tensor([3])
    logits = model(tokens, lens)
    assert logits.shape == (1, 5, MASK + 1)
    torch.testing.assert_close(logits[:, :3], model(tokens[:, :3]))
    later = torch.tensor([[5, 6, 9, 0, 0]])
    assert not torch.allclose(logits[:, 0], model(later, lens)[:, 0])
    assert model.output.weight is model.encoder.embedding.weight


def test_it_learns_a_word_that_only_the_right_side_gives_away():
    model = build()
    pairs = torch.arange(4, 12).repeat(8).view(-1, 1)
    whole = torch.cat([pairs, pairs + 8], dim=1)  # 4 12, 5 13, ...: each word has one companion
    read, guess = whole.clone(), torch.zeros_like(whole)
    read[:, 0], guess[:, 0] = MASK, whole[:, 0]
    fit(model, [None] * 60, lambda _: masked_cross_entropy(model(read), guess), lr=2e-2)
    assert model(read)[:, 0].argmax(-1).equal(whole[:, 0])
