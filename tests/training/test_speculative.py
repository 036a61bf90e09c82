"""Speculative decoding writes what the large model would have written, exactly."""

import doctest
import math
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.models.modern.block import DecoderConfig
from course_utils.models.modern.decoder_only import DecoderOnly
from course_utils.training import speculative
from course_utils.training.speculative import (
    check_draft,
    expected_tokens,
    overlap,
    pick,
    residual,
    speculative_decode,
)

few = settings(deadline=None, max_examples=25, derandomize=True)
close = torch.testing.assert_close


def table(*shape, seed):
    x = torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    x = x**3 * (x > 0.3)  # uneven, and some tokens impossible
    x[..., 0] += 0.05
    return x / x.sum(-1, keepdim=True)


def law_of_first(p, q, k):
    """The exact law of the first k + 1 tokens of one check, continued by the target alone.

    p and q: (V^k states ..) as functions of the tokens so far. All outcomes are enumerated: each
    accept or reject has a known probability, and uniforms are put inside the stretch they mean.
    """
    V = p(()).shape[0]
    law = {}

    def add(tokens, mass):
        if mass and len(tokens) <= k:  # the target goes on alone
            for x in range(V):
                add((*tokens, x), mass * p(tokens)[x].item())
        elif mass:
            law[tokens] = law.get(tokens, 0.0) + mass

    for drafted in product(range(V), repeat=k):
        before = [drafted[:i] for i in range(k + 1)]
        draft = torch.stack([q(b) for b in before[:k]])
        target = torch.stack([p(b) for b in before])
        chance = math.prod(draft[i, x].item() for i, x in enumerate(drafted))
        if not chance:
            continue
        ratio = [min(1.0, (target[i, x] / draft[i, x]).item()) for i, x in enumerate(drafted)]
        for kept in range(k + 1):
            mass = chance * math.prod(ratio[:kept])
            mass *= 1 - ratio[kept] if kept < k else 1
            if mass <= 1e-15:
                continue
            accept = torch.tensor([r / 2 for r in ratio]).double()
            if kept < k:
                accept[kept] = (1 + ratio[kept]) / 2
            last = residual(target[kept], draft[kept]) if kept < k else target[k]
            upto = last.cumsum(0)
            for x in range(V):
                if last[x] > 0:
                    u = (upto[x] - last[x] / 2).item()
                    tokens, count = check_draft(list(drafted), draft, target, accept, u)
                    assert count == kept
                    assert tokens == [*drafted[:kept], x]
                    add(tuple(tokens), mass * last[x].item())
    return law


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_law_of_the_tokens_is_exactly_the_targets(seed, k):
    every = [s for n in range(k + 1) for s in product(range(3), repeat=n)]
    ps = dict(zip(every, table(len(every), 3, seed=seed)))
    qs = dict(zip(every, table(len(every), 3, seed=100 + seed)))
    law = law_of_first(ps.__getitem__, qs.__getitem__, k)
    for tokens in product(range(3), repeat=k + 1):
        wanted = 1.0
        for i, x in enumerate(tokens):
            wanted *= ps[tokens[:i]][x].item()
        assert law.get(tokens, 0.0) == pytest.approx(wanted, abs=1e-12)


def test_without_the_residual_the_law_would_be_another():
    p, q = table(2, 4, seed=3)
    kept = torch.minimum(p, q)
    close(kept + (1 - overlap(p, q)) * residual(p, q), p)
    assert (kept + (1 - overlap(p, q)) * p - p).abs().max() > 0.01


@few
@given(seed=st.integers(0, 999), u=st.floats(0, 1, exclude_max=True))
def test_a_pick_never_takes_the_impossible_and_follows_the_stretches(seed, u):
    p = table(6, seed=seed)
    token = pick(p, u)
    assert p[token] > 0
    assert p[:token].sum() - 1e-12 <= u <= p[: token + 1].sum() + 1e-12


def models(same=False):
    torch.manual_seed(0)
    config = DecoderConfig(7, d_model=8, num_heads=2, d_ff=8, num_layers=1, positions="rotary")
    large, small = DecoderOnly(config).double(), DecoderOnly(config).double()
    for m in (large, small):
        torch.nn.init.normal_(m.embedding.weight, std=0.5)
    return (large, large) if same else (large, small)


def alone(model, prompt, length, uniforms):
    tokens = list(prompt)
    for u in uniforms[:length]:
        with torch.no_grad():
            tokens.append(pick(model(torch.tensor([tokens]))[0, -1].softmax(-1), u))
    return tokens[len(prompt) :]


@pytest.mark.parametrize("ahead", [1, 3, 20])
def test_greedy_decoding_is_the_targets_own_token_by_token(ahead):
    def greedy(logits):
        return torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).double()

    large, small = models()
    found = speculative_decode(large, small, [1, 2], 17, torch.rand, ahead=ahead,
                               distribution=greedy)  # fmt: skip
    tokens = [1, 2]
    with torch.no_grad():
        for _ in range(17):
            tokens.append(int(large(torch.tensor([tokens]))[0, -1].argmax()))
    assert found.tokens == tokens[2:]
    assert found.target_calls <= 17
    assert found.kept <= found.drafted


def test_a_draft_equal_to_the_target_is_always_kept():
    large, same = models(same=True)
    found = speculative_decode(large, same, [3], 15, torch.rand, ahead=4)
    assert len(found.tokens) == 15
    assert found.kept == found.drafted == 12
    assert found.target_calls == 3


def test_each_token_uses_the_numbers_it_is_given():
    """With a fixed first draft and an accepting number the result is computed by hand."""
    large, small = models()
    u = torch.tensor([0.3, 0.0, 0.6]).double()
    found = speculative_decode(large, small, [1], 2, lambda n: u[:n], ahead=1)
    (first,) = alone(small, [1], 1, [0.3])
    second = alone(large, [1, first], 1, [0.6])[0]
    assert found.tokens == [first, second]


def test_on_models_the_law_of_two_tokens_is_the_targets_within_sampling_error():
    large, small = models()
    generator = torch.Generator().manual_seed(0)
    draws, counts = 300, torch.zeros(7, 7).double()
    for _ in range(draws):
        found = speculative_decode(
            large, small, [1], 2, lambda n: torch.rand(n, generator=generator), ahead=1
        )
        counts[found.tokens[0], found.tokens[1]] += 1
    with torch.no_grad():
        first = large(torch.tensor([[1]]))[0, -1].softmax(-1)
        after = large(torch.tensor([[1, x] for x in range(7)]))[:, -1].softmax(-1)
    wanted = first[:, None] * after * draws
    chi_square = ((counts - wanted) ** 2 / wanted).sum()
    assert chi_square < 48 + 4 * (2 * 48) ** 0.5


def test_examples_bounds_and_bad_numbers():
    assert doctest.testmod(speculative).failed == 0
    assert expected_tokens(0.5, 1) == 1.5
    with pytest.raises(ValueError, match="0 tokens, 3 and 4"):
        speculative_decode(*models(), [], 3, torch.rand)
    assert speculative_decode(*models(), [1], 0, torch.rand).tokens == []
