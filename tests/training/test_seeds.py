"""One seed for every random number generator."""

import random

import numpy
import pytest
import torch

from course_utils.training.seeds import set_seed


def draw():
    return random.random(), numpy.random.rand(), torch.rand(()).item()


def test_the_same_seed_gives_the_same_numbers_from_all_three_generators():
    set_seed(7)
    first = draw()
    assert draw() != first
    set_seed(7)
    assert draw() == first


def test_another_seed_gives_other_numbers_from_each():
    set_seed(1)
    first = draw()
    set_seed(2)
    assert all(a != b for a, b in zip(first, draw(), strict=True))


def test_the_default_is_zero_and_the_first_torch_number_is_known():
    set_seed()
    first = torch.rand(1)
    torch.manual_seed(0)
    assert torch.rand(1).equal(first)
    assert first.item() == pytest.approx(0.4963, abs=5e-5)


def test_the_sums_of_a_lesson_are_added_up_in_one_order():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        set_seed()
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
