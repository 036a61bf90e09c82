"""What a text leaves open is right in every form, and what is said of an answer is true of it."""

import re

import pytest
import torch

from course_utils.checker import catalogue, check
from course_utils.checker.exercise import REGISTRY

NUMBERS = [e.name for e in catalogue() if e.kind == "value" and type(e.solution()) is float]


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_rounded_to_three_digits_is_right(name):
    exercise = REGISTRY[name]
    rounded = float(f"{exercise.solution():.2e}")
    assert check(name, rounded).status == "right"
    assert all(check(name, m.switches["answer"]).status != "right" for m in exercise.mistakes)


def test_a_text_that_asks_for_digits_asks_for_three():
    said = [f"{e.text} {e.solution.__doc__}" for e in catalogue()]
    asked = re.findall(r"(\w+) digits\s+(?:are enough|after the point)", " ".join(said))
    assert len(asked) >= 3
    assert {word.lower() for word in asked} == {"three"}


@pytest.mark.parametrize("most", [1.0, 6.0])
def test_an_upper_bound_of_an_activation_has_a_name(most):
    def answer(x, W_1, b_1, W_2, b_2):
        return (x @ W_1 + b_1).clamp(0, most) @ W_2 + b_2

    assert check("feed_forward", answer).mistakes == ("large numbers are cut off",)


def test_the_base_forgotten_for_one_head_and_a_pair_of_which_one_is_harmless():
    def answer(base, loss, allowed):
        alone = loss.diagonal() <= allowed
        return (alone[:, None] | alone) & (loss - base > allowed)

    assert set(check("hidden_partners", answer).mistakes) == {
        "one of the two may be missed alone",
        "losses are not compared with the base",
    }


def test_the_value_of_key_0_forgotten():
    (name,) = check("average_pooling_answer", (20 + 60) / 3).mistakes
    assert "key 0 is left out" in name


def test_what_is_said_of_repeat_and_of_tile_is_what_torch_does():
    rows = torch.tensor([[1, 2], [3, 4]])
    with pytest.raises(RuntimeError):
        rows.repeat(2)
    assert rows.tile(2).tolist() == [[1, 2, 1, 2], [3, 4, 3, 4]]
    tiled = check("lengths_for_heads", lambda lengths, h: lengths.tile(h))
    assert tiled.mistakes == ("lengths are tiled along the last axis",)
    repeated = check("lengths_for_heads", lambda lengths, h: lengths.repeat(h).reshape(-1))
    assert "it asks for two numbers and stops" in str(repeated)
