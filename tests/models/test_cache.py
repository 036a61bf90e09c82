"""A cache is a value, whatever memory it shares with others."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_utils.models.cache import KeyValueCache

B, H, D = 3, 2, 4


def piece(length: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(B, H, length, D), torch.randn(B, H, length, D)


def joined(pairs):
    return tuple(torch.cat(side, dim=2) for side in zip(*pairs, strict=True))


def equal(cache: KeyValueCache, pairs, rows=slice(None)) -> bool:
    keys, values = joined(pairs)
    same = torch.equal(cache.keys, keys[rows]) and torch.equal(cache.values, values[rows])
    return same and len(cache) == keys.shape[2]


@torch.no_grad()
@given(
    st.integers(0, 3),
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 4), st.booleans()), max_size=12),
)
def test_any_tree_of_caches_is_what_was_appended_and_selected(first, growth):
    """Each step continues any cache made so far, so that many grow from one beginning."""
    pairs = [piece(first)]
    made = [(KeyValueCache(*pairs[0]), pairs, torch.arange(B))]
    for which, length, reverse in growth:
        cache, pairs, rows = made[which % len(made)]
        if reverse:
            made.append((cache.select(torch.tensor([2, 1, 0])), pairs, rows.flip(0)))
        else:
            keys, values = piece(length)
            longer = cache.append(keys[rows], values[rows])
            made.append((longer, [*pairs, (keys, values)], rows))
    for cache, pairs, rows in made:
        assert equal(cache, pairs, rows)


@torch.no_grad()
def test_growing_by_one_moves_seldom():
    cache, places = KeyValueCache(*piece(1)), set()
    for _ in range(200):
        cache = cache.append(*piece(1))
        places.add(cache.keys.data_ptr())
    assert len(places) <= 8


@torch.no_grad()
def test_fewer_rows_keep_the_room():
    cache = KeyValueCache(*piece(8)).append(*piece(1)).select(torch.tensor([0, 2]))
    place = cache.keys.data_ptr()
    keys, values = piece(3)
    assert cache.append(keys[:2], values[:2]).keys.data_ptr() == place


def test_what_was_given_is_never_written_to():
    pairs = [piece(2), piece(1), piece(1)]
    copies = [tuple(x.clone() for x in pair) for pair in pairs]
    with torch.no_grad():
        cache = KeyValueCache(*pairs[0])
        for pair in pairs[1:]:
            cache = cache.append(*pair)
    for pair, copy in zip(pairs, copies, strict=True):
        assert all(map(torch.equal, pair, copy))


def test_gradients_reach_every_position():
    pairs = [tuple(x.requires_grad_() for x in piece(n)) for n in (2, 1, 3)]
    cache = KeyValueCache(*pairs[0])
    for pair in pairs[1:]:
        cache = cache.append(*pair)
    (cache.keys.square().sum() + cache.values.square().sum()).backward()
    for keys, values in pairs:
        torch.testing.assert_close(keys.grad, 2 * keys)
        torch.testing.assert_close(values.grad, 2 * values)


MODES = [torch.no_grad, torch.inference_mode, torch.enable_grad]


@pytest.mark.parametrize("before", MODES)
@pytest.mark.parametrize("after", MODES)
def test_a_cache_goes_on_in_another_mode(before, after):
    pairs = [piece(2), piece(1), piece(1)]
    with before():
        cache = KeyValueCache(*pairs[0]).append(*pairs[1])
    with after():
        assert equal(cache.append(*pairs[2]), pairs)
    assert equal(cache, pairs[:2])
