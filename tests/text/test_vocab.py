"""Token <-> id."""

import os
import subprocess
import sys
from collections import Counter

import d2l.torch as d2l
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.text.vocab import BOS, EOS, PAD, RESERVED, UNK, Vocab

few = settings(deadline=None, max_examples=50, derandomize=True)
corpora = st.lists(st.lists(st.sampled_from([*"abcdef", *RESERVED]), max_size=6), max_size=6)


def test_reserved_tokens_come_first_then_frequency_then_spelling():
    vocab = Vocab([["b", "c", "d"], ["c", "a"], ["c", "b"]])
    assert vocab.tokens == [PAD, BOS, EOS, UNK, "c", "b", "a", "d"]
    assert [vocab.pad, vocab.bos, vocab.eos, vocab.unk] == [0, 1, 2, 3]
    assert len(vocab) == 8


def test_min_freq_keeps_what_is_seen_often_enough():
    sentences = [["a"] * 3 + ["b"] * 2 + ["c"]]
    assert Vocab(sentences, min_freq=2).tokens[4:] == ["a", "b"]
    assert Vocab(sentences, min_freq=4).tokens == list(RESERVED)
    assert Vocab([]).tokens == list(RESERVED)


@few
@given(sentences=corpora, min_freq=st.integers(1, 3))
def test_ids_are_unique_and_dense_and_known_tokens_survive_a_round_trip(sentences, min_freq):
    vocab = Vocab(sentences, min_freq)
    counts = Counter(t for s in sentences for t in s if t not in RESERVED)
    kept = {t for t, n in counts.items() if n >= min_freq}
    assert len(vocab) == len(set(vocab.tokens)) == 4 + len(kept)
    assert set(vocab.encode(sorted(kept))) == set(range(4, len(vocab)))
    for sentence in sentences:
        ids = vocab.encode(sentence)
        assert vocab.decode(ids) == [t if t in kept else UNK for t in sentence]
        assert not {vocab.pad, vocab.bos, vocab.eos} & set(ids)


def test_a_vocabulary_of_counts_is_that_of_the_sentences():
    sentences = [["b", "c", "<pad>", "d"], ["c", "a"], ["c", "b"]]
    counts = Counter(token for sentence in sentences for token in sentence)
    for min_freq in (1, 2):
        by_counts, by_sentences = Vocab.of_counts(counts, min_freq), Vocab(sentences, min_freq)
        assert by_counts.tokens == by_sentences.tokens
        assert by_counts.encode([*"abcd", "<pad>"]) == by_sentences.encode([*"abcd", "<pad>"])


def test_words_of_a_text_that_look_reserved_are_unknown_and_shift_no_id():
    vocab = Vocab([["<unk>", "<pad>", "<eos>", "a", "<eos>"]])
    assert vocab.tokens == [*RESERVED, "a"]
    assert vocab.encode(["<pad>", "<bos>", "<eos>", "<unk>", "a"]) == [3, 3, 3, 3, 4]


def test_unknown_words_are_unknown_not_an_error():
    vocab = Vocab([["a"]])
    assert vocab.encode(["xylophone", "a"]) == [vocab.unk, 4]
    assert "a" in vocab
    assert "xylophone" not in vocab


def test_order_of_sentences_does_not_matter():
    sentences = [["b"], ["a"], ["c", "c"]]
    assert Vocab(sentences).tokens[4:] == Vocab(sentences[::-1]).tokens[4:] == ["c", "a", "b"]


def test_sentences_may_be_a_generator():
    assert Vocab(s for s in [["a"], ["b"]]).tokens[4:] == ["a", "b"]


def test_the_mapping_does_not_depend_on_the_hash_seed():
    code = (
        "from course_utils.text.vocab import Vocab;"
        "print(Vocab([['w%d' % (i * 7919 % 50) for i in range(50)]]).tokens)"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1


def test_the_same_tokens_as_d2l_are_kept():
    sentences = [["b", "c", "a"], ["c", "d"], ["c", "b", "e", "e", "e"]]
    theirs = d2l.Vocab(sentences, min_freq=2, reserved_tokens=["<pad>", "<bos>", "<eos>"])
    ours = Vocab(sentences, min_freq=2)
    assert set(ours.tokens) == set(theirs.idx_to_token)
    assert len(ours) == len(theirs)


@pytest.mark.parametrize("wrong", [5, -1])
def test_ids_out_of_range_are_named(wrong):
    with pytest.raises(IndexError, match=rf"0\.\.4, got {wrong}"):
        Vocab([["a"]]).decode([4, wrong])
