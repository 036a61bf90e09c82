"""A mistake is told by its deed, on each side of a switch, and with the numbers that are shown."""

import math
import re

import pytest
import torch

from course_utils.checker import catalogue, check
from course_utils.checker.exercise import REGISTRY


def _one_slip_on_each_side(x, sublayer, norm, norm_first):
    if norm_first:
        x = norm(x)
        return x + sublayer(x)
    return norm(sublayer(x))


def test_each_side_of_a_switch_is_told_its_own_mistake():
    text = str(check("add_and_norm", _one_slip_on_each_side))
    normed, missing = (
        "The residual connection carries the normalised stream",
        "The residual connection is missing in post-norm",
    )
    assert f"Where `norm_first` is True: this mistake is made: {normed}" in text
    assert f"Where `norm_first` is False: this mistake is made: {missing}" in text


def _padding_of_the_first(segments):
    order = torch.ones(segments.shape[1:] * 2, dtype=torch.bool).tril()
    return (segments[:, :, None] == segments[:, None]) & order & (segments[0] != 0)


def _padding_of_the_last(segments):
    order = torch.ones(segments.shape[1:] * 2, dtype=torch.bool).tril()
    return (segments[:, :, None] == segments[:, None]) & order & (segments[-1] != 0)


def test_a_mask_is_taken_apart_along_the_batch_as_numbers_are():
    first = check("own_sentence", _padding_of_the_first)
    assert first.mistakes == ("the padding of the first row is taken for that of all rows",)
    last = check("own_sentence", _padding_of_the_last)
    assert "ach entry of the batch alone comes out right; together they do not" in str(last)


def _no_limit(candidate_length, reference_length):
    return math.exp(1 - candidate_length / reference_length)


def _one_id_is_enough(ids, pair, new):
    merged, i = [], 0
    while i < len(ids) - 1:
        fits = ids[i] == pair[0] or ids[i + 1] == pair[1]
        merged.append(new if fits else ids[i])
        i += 2 if fits else 1
    return merged


def _parameters(d, d_ff, layers, vocabulary, *, of_map=1, of_network=1, of_norm=None):
    attention = 4 * (d * d + d * of_map)
    network = 2 * d * d_ff + (d_ff + d) * of_network
    norm = 2 * d if of_norm is None else of_norm
    return layers * (3 * attention + 2 * network + 5 * norm) + vocabulary * d


@pytest.mark.parametrize(
    ("name", "answer", "mistakes"),
    [
        (
            "brevity_penalty",
            _no_limit,
            {"the fraction is upside down", "the limit of 1 is missing"},
        ),
        ("merge_pair", _one_id_is_enough, {"one of the two ids is enough", "the last id is lost"}),
        (
            "transformer_parameters",
            lambda *sizes: _parameters(*sizes, of_map=0),
            {"the biases of attention are forgotten"},
        ),
        (
            "transformer_parameters",
            lambda *sizes: _parameters(*sizes, of_network=0),
            {"the biases of the network are forgotten"},
        ),
        (
            "transformer_parameters",
            lambda *sizes: _parameters(*sizes, of_norm=2),
            {"scale and shift of a norm are counted as one number each"},
        ),
    ],
)
def test_each_deed_has_its_name(name, answer, mistakes):
    assert {*check(name, answer).mistakes} == mistakes


def test_a_vector_may_be_counted_as_one_number():
    counted = check("additive_parameters", (2 + 20) * 8 + 1)
    assert counted.mistakes == ("w_v is counted as one number",)
    norms = check("encoder_block_parameters", 49_472 + 4)
    assert norms.mistakes == ("scale and shift of a norm are counted as one number each",)


def test_two_slips_are_told_as_one_way_to_a_number():
    text = str(check("additive_parameters", 192))
    assert "One way to this number:" in text
    assert "Your result is what comes out" not in text


def test_no_pair_of_slips_counts_the_bias_of_a_map_that_is_forgotten():
    numbers = [
        m.switches["answer"]
        for m in REGISTRY["additive_parameters"].mistakes
        if "w_v is forgotten" in m.name and "biases are counted" in m.name
    ]
    assert {*numbers} == {192}  # those of W_q and W_k alone


def test_names_say_what_was_done():
    """Not what comes of it: beside another mistake something else may come."""
    catalogue()
    effects = re.compile(r"\b(bonus|overflows?|grows|more weight|punish\w*)\b")
    functions = [e for e in REGISTRY.values() if e.kind != "value"]
    found = {m.name for e in functions for m in e.mistakes if effects.search(m.name)}
    assert not found - {"the cache does not grow"}
