"""Slips that are found in any exercise: what is said of them is the slip, and no known mistake."""

import math

import pytest
import torch

from course_utils.checker import check


def for_a_name(map, distance):
    B, h, T, _ = map.shape
    total = torch.zeros(h)
    for q in range(distance, T):
        total += map[:, :, q, q - distance].sum(0)
    return total / (B * (T - 1))


def replaced(words, times):
    counts = {}
    for word, often in zip(words, times):
        for pair in zip(word, word[1:]):
            counts.setdefault(pair, 0)
            counts[pair] = often
    pair = min(counts, key=lambda p: (-counts[p], p))
    return [*pair, counts[pair]]


def rounded(losses, text):
    return losses.sum() / 0.7 / len(text.encode())


def without_the_batch(scores, mask):
    return torch.where(mask, scores, -math.inf).softmax(-1).nan_to_num()[0]


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("weight_back", for_a_name, "at `1`, a name is due, not one number"),
        ("next_merge", replaced, "at `counts[pair] = often`, this line should add, not replace"),
        ("bits_per_byte", rounded, "Every number is 0.9902 times what it should be"),
        ("softmax_with_mask", without_the_batch, "The shape is (2, 2), not (2, "),
    ],
)
def test_the_slip_is_said(name, answer, said):
    result = check(name, answer)
    assert said in str(result), str(result)
    assert result.mistakes == ()
    assert "Two things together" not in str(result)
