"""The decoder-only language model, and how text is drawn from it."""

import math
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_utils.models.language_model import (
    LanguageModel,
    generate,
    keep_top_k,
    keep_top_p,
    next_token_log_probs,
    perplexity,
    random_windows,
    sample,
    windows,
)
from course_utils.models.token_encoder import TokenEncoder
from course_utils.training.seeds import set_seed

seeds = st.integers(0, 10_000)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def build(vocab_size=9, **options):
    set_seed(0)
    options = {"d_model": 16, "num_heads": 2, "d_ff": 32, "dropout": 0.0, **options}
    return LanguageModel(TokenEncoder(vocab_size, **options)).eval()


def test_no_position_sees_a_later_one():
    model = build()
    tokens = torch.randint(9, (2, 7), generator=generator())
    other = tokens.clone()
    other[:, 4:] = (other[:, 4:] + 1) % 9
    a, b = model(tokens), model(other)
    torch.testing.assert_close(a[:, :4], b[:, :4])
    assert not torch.allclose(a[:, 4:], b[:, 4:])
    assert a.shape == (2, 7, 9)
    assert model.output.weight is model.encoder.embedding.weight


def test_the_probabilities_of_all_texts_sum_to_one():
    model = build(vocab_size=3)
    texts = torch.tensor([[1, *rest] for rest in product(range(3), repeat=4)])
    total = next_token_log_probs(model(texts), texts).sum(1).exp().sum()
    assert total.item() == pytest.approx(1, abs=1e-5)


def test_scores_in_one_pass_are_those_of_every_prefix():
    model = build()
    tokens = torch.randint(9, (1, 6), generator=generator(1))
    scores = next_token_log_probs(model(tokens), tokens)
    assert scores.shape == (1, 5)
    for t in range(1, 6):
        step = model(tokens[:, :t])[0, -1].log_softmax(-1)[tokens[0, t]]
        assert scores[0, t - 1].item() == pytest.approx(step.item(), abs=1e-5)


def test_perplexity_of_known_models():
    texts = torch.randint(9, (100, 5), generator=generator())
    assert perplexity_of(lambda tokens: torch.zeros(*tokens.shape, 9), texts) == pytest.approx(9)
    nine = torch.tensor([[0, 1, 0, 1]])
    table = torch.tensor([[0.2, 0.8], [0.5, 0.5]]).log()
    expected = (0.8 * 0.5 * 0.8) ** (-1 / 3)
    assert perplexity_of(lambda tokens: table[tokens], nine) == pytest.approx(expected)


def perplexity_of(function, texts):
    class Model(torch.nn.Module):
        def forward(self, tokens):
            return function(tokens)

    model = Model().train()
    value = perplexity(model, texts)
    assert model.training
    return value


def test_perplexity_is_the_exponential_of_the_loss():
    model, texts = build(), torch.randint(9, (70, 5), generator=generator())
    loss = torch.nn.functional.cross_entropy(
        model(texts)[:, :-1].flatten(0, 1), texts[:, 1:].flatten()
    )
    assert perplexity(model, texts) == pytest.approx(math.exp(loss.item()), rel=1e-5)


def test_windows_predict_each_token_once():
    ids = torch.arange(12)
    pieces = windows(ids, 4)
    assert pieces.tolist() == [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9]]
    assert windows(ids, 12).tolist() == [list(range(12))]


def test_random_windows_come_from_the_whole_text():
    ids = torch.arange(10)
    pieces = random_windows(ids, 4, 500, generator())
    assert pieces.shape == (500, 4)
    assert pieces.diff(dim=1).eq(1).all()
    assert set(pieces[:, 0].tolist()) == set(range(7))
    assert random_windows(ids, 4, 500, generator()).equal(pieces)


@pytest.mark.parametrize("cut", [windows, lambda ids, n: random_windows(ids, n, 2)])
def test_a_text_that_is_too_short_is_refused(cut):
    for length in (1, 6):
        with pytest.raises(ValueError, match=f"2 to 5 tokens, got {length}"):
            cut(torch.arange(5), length)


def logits_of(seed, shape=(3, 7)):
    return torch.randn(shape, generator=generator(seed))


@given(seeds, st.integers(1, 7))
def test_top_k_keeps_the_k_best(seed, k):
    logits = logits_of(seed)
    kept = keep_top_k(logits, k).isfinite()
    assert kept.sum(-1).tolist() == [k] * 3
    best = logits.masked_fill(~kept, -math.inf).sort(-1, descending=True).values
    assert best[:, :k].equal(logits.sort(-1, descending=True).values[:, :k])


@given(seeds, st.floats(0.01, 1))
def test_top_p_keeps_the_smallest_set_that_reaches_p(seed, p):
    logits = logits_of(seed).double()
    cut = keep_top_p(logits, p)
    kept = cut.isfinite()
    assert cut[kept].equal(logits[kept])
    probs = logits.softmax(-1)
    for row, of_row in zip(probs, kept):
        chosen = row[of_row]
        assert chosen.sum() >= p - 1e-9
        assert chosen.sum() - chosen.min() < p + 1e-9
        assert not (~of_row).any() or row[~of_row].max() <= chosen.min()


def test_the_cuts_leave_their_input_alone():
    logits = logits_of(0)
    kept = logits.clone()
    keep_top_k(logits, 2), keep_top_p(logits, 0.5), sample(logits, temperature=0.5, top_k=3)
    assert logits.equal(kept)


def test_draws_follow_the_probabilities():
    logits = torch.tensor([2.0, 1.0, 0.0, -1.0])
    for options, expected in (
        ({}, logits.softmax(-1)),
        ({"temperature": 2.0}, (logits / 2).softmax(-1)),
        ({"top_k": 2}, torch.tensor([math.e, 1.0, 0.0, 0.0]) / (math.e + 1)),
        ({"top_p": 0.7}, torch.tensor([math.e, 1.0, 0.0, 0.0]) / (math.e + 1)),
        ({"temperature": 0.5, "top_p": 0.8}, torch.tensor([1.0, 0.0, 0.0, 0.0])),
    ):
        drawn = sample(logits.expand(40_000, -1), generator=generator(), **options)
        shares = torch.bincount(drawn, minlength=4) / len(drawn)
        torch.testing.assert_close(shares, expected, atol=0.01, rtol=0)


def test_temperature_zero_is_the_best_token():
    logits = logits_of(3)
    assert sample(logits, temperature=0).equal(logits.argmax(-1))
    torch.testing.assert_close(sample(logits, temperature=1e-4), logits.argmax(-1))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("temperature", [1e-4, 1e-30, 1e-39, 5e-324])
def test_a_tiny_temperature_is_the_limit_and_no_overflow(dtype, temperature):
    logits = torch.tensor([[-300.0, 200.0, 100.0, -math.inf], [-5.0, -4.0, -3.0, -9.0]]).to(dtype)
    assert sample(logits, temperature=temperature).tolist() == [1, 2]
    assert sample(logits, temperature=temperature, top_k=3, top_p=0.9).tolist() == [1, 2]
    ties = torch.tensor([[2.0, 2.0, 1.0]]).to(dtype).expand(200, 3)
    drawn = sample(ties, temperature=temperature, generator=torch.Generator().manual_seed(0))
    assert set(drawn.tolist()) == {0, 1}  # the limit keeps ties


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_top_k_of_zero_is_refused_and_the_way_to_keep_all_is_said(temperature):
    with pytest.raises(ValueError, match=r"top_k must lie in 1\.\.3, .*\(None keeps all\), got 0"):
        sample(torch.zeros(1, 3), temperature=temperature, top_k=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -1.0}, "temperature must be 0 or more, and finite, got -1.0"),
        ({"temperature": math.nan}, "temperature must be 0 or more, and finite, got nan"),
        ({"temperature": math.inf}, "temperature must be 0 or more, and finite, got inf"),
        ({"top_k": 0}, r"top_k must lie in 1..7, the vocabulary \(None keeps all\), got 0"),
        ({"top_k": 8}, r"top_k must lie in 1..7, the vocabulary \(None keeps all\), got 8"),
        ({"top_p": 0.0}, "top_p must be above 0 and at most 1, got 0.0"),
        ({"top_p": 1.5}, "top_p must be above 0 and at most 1, got 1.5"),
    ],
)
def test_settings_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        sample(logits_of(0), **options)


def test_generate_goes_on_from_the_prompt():
    model = build().train()
    prompt = torch.tensor([[1, 2, 3], [4, 5, 6]])
    tokens = generate(model, prompt, 5, context=4, generator=generator())
    assert tokens.shape == (2, 8)
    assert tokens[:, :3].equal(prompt)
    assert generate(model, prompt, 5, context=4, generator=generator()).equal(tokens)
    assert model.training
    assert generate(model, prompt, 0, context=4).equal(prompt)


def test_generate_looks_back_over_the_context_only():
    model = build()
    a = generate(model, torch.tensor([[1, 2, 3, 4]]), 6, context=2, temperature=0)
    b = generate(model, torch.tensor([[7, 8, 3, 4]]), 6, context=2, temperature=0)
    assert a[:, 2:].equal(b[:, 2:])
    token = model(a[:, 2:4])[:, -1].argmax(-1)
    assert a[:, 4].equal(token)


def test_generate_refuses_what_makes_no_sense():
    model, prompt = build(), torch.tensor([[1]])
    for bad in ((prompt[:, :0], 3, 4), (prompt, -1, 4), (prompt, 3, 0)):
        with pytest.raises(ValueError, match="a text needs a first token"):
            generate(model, *bad[:2], context=bad[2])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_a_top_p_of_one_keeps_every_token(dtype):
    logits = torch.linspace(20, 0, 5000)[None].to(dtype)
    assert keep_top_p(logits, 1.0).equal(logits)
    few = keep_top_k(logits, 3)
    assert keep_top_p(few, 1.0).equal(few)


def test_top_p_adds_up_many_small_probabilities():
    """1,000 equal tokens: in half precision their running sum soon stands still."""
    logits = torch.zeros(1, 1000, dtype=torch.bfloat16)
    assert keep_top_p(logits, 0.5005).isfinite().sum() == 501


def test_perplexity_of_a_model_that_is_sure_and_wrong_is_infinite():
    wrong = torch.tensor([0.0, 5000.0])
    texts = torch.zeros(2, 3, dtype=torch.long)
    assert perplexity_of(lambda tokens: wrong.expand(*tokens.shape, 2), texts) == math.inf


@pytest.mark.parametrize("shape", [(0, 5), (2, 1), (2, 0), (5,)])
def test_perplexity_needs_a_token_to_predict(shape):
    with pytest.raises(ValueError, match=r"two tokens or more, got a tensor of shape"):
        perplexity_of(lambda tokens: tokens, torch.zeros(shape, dtype=torch.long))
