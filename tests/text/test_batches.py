"""From sentence pairs to padded tensors."""

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.text.batches import (
    Example,
    collate,
    encode_pairs,
    encode_source,
    encode_target,
    group_by_length,
    make_batches,
    number_pairs,
    pad,
)
from course_utils.text.pairs import Pair
from course_utils.text.vocab import Vocab

few = settings(deadline=None, max_examples=50, derandomize=True)
words = st.lists(st.integers(4, 9), max_size=6)
examples = st.builds(
    lambda source, target: Example([*source, Vocab.eos], [Vocab.bos, *target, Vocab.eos]),
    words,
    words,
)
PAIRS = [Pair("Go.", "Va !"), Pair("I\u2019m home.", "Je suis chez moi.")]


def test_vocabularies_are_built_from_the_tokens_of_each_side():
    english, french, _ = number_pairs(PAIRS)
    assert english.tokens[4:] == [".", "go", "home", "i'm"]
    assert french.tokens[4:] == ["!", ".", "chez", "je", "moi", "suis", "va"]
    english, french, _ = number_pairs(PAIRS, min_freq=2)
    assert english.tokens[4:] == ["."]
    assert french.tokens[4:] == []


def test_sources_end_with_eos_and_targets_stand_between_bos_and_eos():
    english, french, _ = number_pairs(PAIRS)
    assert english.decode(encode_source("Go home!", english)) == ["go", "home", "<unk>", "<eos>"]
    assert french.decode(encode_target("Va !", french)) == ["<bos>", "va", "!", "<eos>"]
    assert encode_source("", english) == [english.eos]
    assert encode_target("", french) == [french.bos, french.eos]
    encoded = encode_pairs(PAIRS, english, french)
    assert encoded == number_pairs(PAIRS)[2]
    assert [len(example.source) for example in encoded] == [3, 4]
    assert [len(example.target) for example in encoded] == [4, 7]


def test_a_text_cannot_forge_special_tokens():
    english, *_ = number_pairs([Pair("<eos> <pad> go", "x")])
    assert english.encode(["<eos>", "<pad>", "<bos>"]) == [english.unk] * 3
    assert encode_source("<eos> go", english).count(english.eos) == 1


def test_padding_by_hand():
    padded, lengths = pad([[5, 6, 2], [2], []])
    assert padded.tolist() == [[5, 6, 2], [2, 0, 0], [0, 0, 0]]
    assert lengths.tolist() == [3, 1, 0]
    assert padded.dtype == lengths.dtype == torch.int64


@pytest.mark.parametrize("make", [pad, collate])
def test_a_batch_of_nothing_is_refused(make):
    with pytest.raises(ValueError, match="at least one sentence"):
        make([])


def test_a_batch_by_hand():
    batch = collate([Example([7, 2], [1, 8, 9, 2]), Example([5, 6, 2], [1, 2])])
    assert batch.src.tolist() == [[7, 2, 0], [5, 6, 2]]
    assert batch.src_lens.tolist() == [2, 3]
    assert batch.tgt_in.tolist() == [[1, 8, 9], [1, 0, 0]]
    assert batch.tgt_out.tolist() == [[8, 9, 2], [2, 0, 0]]
    assert batch.num_tokens == 4
    assert batch.to("meta").src.device.type == "meta"


@few
@given(items=st.lists(examples, min_size=1, max_size=6))
def test_batches_lose_nothing(items):
    batch = collate(items)
    assert batch.tgt_in.shape == batch.tgt_out.shape
    for row, example in enumerate(items):
        assert batch.src[row, : batch.src_lens[row]].tolist() == example.source
        assert batch.src[row, batch.src_lens[row] :].eq(Vocab.pad).all()
        said, read = len(example.target) - 1, example.target[:-1]
        assert batch.tgt_out[row, :said].tolist() == example.target[1:]
        assert batch.tgt_in[row, :said].tolist() == read
        assert batch.tgt_in[row, said:].eq(Vocab.pad).all()
        assert batch.tgt_out[row, said:].eq(Vocab.pad).all()
    assert batch.num_tokens == sum(len(example.target) - 1 for example in items)


@few
@given(items=st.lists(examples, max_size=12), size=st.integers(1, 5), seed=st.integers(0, 5))
def test_one_pass_sees_every_example_once(items, size, seed):
    for rng in (None, random.Random(seed)):
        batches = list(make_batches(items, size, rng))
        assert all(1 <= len(batch.src) <= size for batch in batches)
        assert sum(len(batch.src) == size for batch in batches) >= len(items) // size
        seen = [
            source[:n].tolist()
            for batch in batches
            for source, n in zip(batch.src, batch.src_lens, strict=True)
        ]
        assert sorted(seen) == sorted(example.source for example in items)


def test_like_lengths_share_a_batch():
    items = [Example([4] * n + [2], [1] + [4] * n + [2]) for n in (9, 1, 8, 2, 9, 1)]
    shapes = sorted(batch.src.shape for batch in make_batches(items, 2, random.Random(0)))
    assert shapes == [(2, 2), (2, 9), (2, 10)]
    assert [b.src.shape[1] for b in make_batches(items, 2)] == [2, 9, 10]


def test_batches_come_in_random_order_and_not_from_short_to_long():
    items = [Example([4] * n + [2], [1] + [4] * n + [2]) for n in range(10)]
    lengths = [b.src.shape[1] for b in make_batches(items, 1, random.Random(0))]
    assert sorted(lengths) == list(range(1, 11))
    assert lengths != sorted(lengths)


def test_the_generator_decides_the_order_and_its_seed_repeats_it():
    items = [Example([i, 2], [1, i, 2]) for i in range(4, 40)]

    def order(seed):
        return [batch.src[:, 0].tolist() for batch in make_batches(items, 4, random.Random(seed))]

    assert order(0) == order(0)
    assert order(0) != order(1)
    rng = random.Random(0)
    epochs = [[b.src[:, 0].tolist() for b in make_batches(items, 4, rng)] for _ in range(2)]
    assert epochs[0] != epochs[1]


@few
@given(
    items=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), max_size=30),
    kind=st.sampled_from(["sentences", "tokens"]),
    most=st.integers(1, 60),
    seed=st.none() | st.integers(0, 3),
)
def test_groups_hold_every_item_once_and_no_more_than_they_may(items, kind, most, seed):
    rng = None if seed is None else random.Random(seed)
    groups = group_by_length(items, tuple, **{kind: most}, rng=rng)
    assert sorted(item for group in groups for item in group) == sorted(items)
    for group in groups:
        padded = len(group) * sum(map(max, zip(*group, strict=True)))
        size = len(group) if kind == "sentences" else padded
        assert len(group) == 1 or size <= most
    if seed is None:
        assert [item for group in groups for item in group] == sorted(items)


@pytest.mark.parametrize("limits", [{}, {"sentences": 2, "tokens": 9}])
def test_a_group_has_one_limit(limits):
    with pytest.raises(TypeError, match="give sentences or tokens"):
        group_by_length([(1, 1)], tuple, **limits)


def test_the_examples_are_not_reordered_in_place():
    items = [Example([i, 2], [1, i, 2]) for i in range(4, 20)]
    kept = list(items)
    list(make_batches(items, 4, random.Random(0)))
    assert items == kept


@pytest.mark.parametrize("size", [0, -1])
def test_batches_hold_at_least_one_example(size):
    with pytest.raises(ValueError, match=f"at least 1, got {size}"):
        list(make_batches([], size))
