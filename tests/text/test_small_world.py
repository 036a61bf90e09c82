"""The small world as it ships: sizes, order, splits, and alignments that fit."""

from collections import Counter

import pytest

from course_utils.text import small_world as module
from course_utils.text.corpora import load_corpus, reads_as
from course_utils.text.pairs import Pair
from course_utils.text.small_world import LARGEST, SIZES, common_sentences, small_world
from course_utils.text.text import normalise, tokenize

FIRST = Pair(
    source="Where's the office?",
    target="Où est le bureau ?",
    alignment=((0, 0), (0, 1), (1, 2), (2, 3), (3, 4)),
)


@pytest.fixture(scope="module")
def splits():
    return {split: small_world(split, size) for split, size in LARGEST.items()}


def test_sizes_and_distinct_sources(splits):
    assert {split: len(small_world(split)) for split in splits} == SIZES
    for split, pairs in splits.items():
        assert len(pairs) == len({pair.source for pair in pairs}) == LARGEST[split]


def test_a_smaller_set_is_the_beginning_of_a_larger_one(splits):
    for split, pairs in splits.items():
        assert small_world(split, 50) == pairs[:50]
    assert small_world(size=0) == []


def test_the_first_pair_with_its_alignment():
    assert small_world("train", 1) == [FIRST]


def test_common_sentences_are_short_and_have_no_rare_word():
    short = [s for s in (tokenize(p.source, "en") for p in small_world("train")) if len(s) <= 5]
    counts = Counter(word for sentence in short for word in sentence)
    common = common_sentences("train", longest=5, least=20)
    assert common == [s for s in short if min(counts[word] for word in s) >= 20]
    assert 0 < len(common) < len(short)
    held_out = common_sentences("random", longest=5, least=20)
    assert {word for s in held_out for word in s} <= {w for w, n in counts.items() if n >= 20}


def test_the_file_is_small():
    assert module.FILE.stat().st_size < 1_000_000


def test_no_source_reads_like_one_of_another_split_or_an_everyday_one(splits):
    trained = {reads_as(p.source) for p in splits["train"] + load_corpus("everyday").pairs}
    for split in ("random", "compositional"):
        readings = {reads_as(pair.source) for pair in splits[split]}
        assert not readings & trained
        trained |= readings


def test_held_out_words_are_seen_in_training(splits):
    def words(pairs):
        return {w for p in pairs for w in tokenize(p.source, "en") + tokenize(p.target, "fr")}

    known = words(small_world())
    assert words(splits["random"]) | words(splits["compositional"]) <= known
    assert len(known) > 800


def test_texts_are_normal_and_links_fit_their_tokens(splits):
    for pair in [pair for pairs in splits.values() for pair in pairs[::10]]:
        assert (pair.source, pair.target) == (normalise(pair.source), normalise(pair.target))
        english, french = tokenize(pair.source, "en"), tokenize(pair.target, "fr")
        assert {i for i, _ in pair.alignment} == set(range(len(english)))
        assert max(j for _, j in pair.alignment) == len(french) - 1  # the final mark
        assert list(pair.alignment) == sorted(set(pair.alignment))


def test_bad_arguments_say_what_is_wanted():
    with pytest.raises(ValueError, match="use one of train, random, compositional"):
        small_world("test")
    with pytest.raises(ValueError, match=r"0\.\.30000 for 'train', got -1"):
        small_world(size=-1)
    with pytest.raises(ValueError, match=r"0\.\.1000 for 'random', got 1001"):
        small_world("random", 1001)
    assert len(load_corpus("small-world", 10**6).pairs) == 30_000  # at most so many
