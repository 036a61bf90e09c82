"""Byte-pair encoding by hand is that of the library, on all the text that ships."""

import doctest
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.text import byte_pairs
from course_utils.text.byte_pairs import BytePairs, merge, split_words
from course_utils.text.corpora import load_corpus
from course_utils.text.prose import load_text
from course_utils.text.reviews import reviews
from course_utils.text.small_world import small_world
from course_utils.text.subwords import Subwords
from course_utils.text.text import normalise

few = settings(deadline=None, max_examples=60, derandomize=True)


@cache
def shipped(name):
    """All lines of a text that ships."""
    if name == "prose":
        return load_text().split("\n")
    if name == "reviews":
        return [r.text for split in ("train", "test") for r in reviews(split)]
    if name == "everyday":
        pairs = load_corpus("everyday").pairs
    else:
        pairs = small_world("train", 30_000) + small_world("random") + small_world("compositional")
    return [text for pair in pairs for text in (pair.source, pair.target)]


TEXTS = ("prose", "reviews", "everyday", "small world")


def learned_alike(lines, size):
    """Both vocabularies, after a look at their merges."""
    ours, theirs = BytePairs.learn(lines, size), Subwords.learn(lines, size)
    assert len(ours) == len(theirs) == size
    assert ours.merges == theirs.merges
    return ours, theirs


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_learned_from_each_text_is_what_the_library_learns(name):
    lines = shipped(name)[:4000]
    ours, theirs = learned_alike(lines, 600)
    some = lines[:500]
    encoded = [ours.encode(line) for line in some]
    assert encoded == theirs.encode_all(some)
    assert [ours.decode(ids) for ids in encoded] == [normalise(line) for line in some]


@cache
def on_prose():
    return BytePairs.learn(shipped("prose"), 700), Subwords.learn(shipped("prose"), 700)


def test_every_line_that_ships_gets_the_librarys_ids():
    lines = list(dict.fromkeys(line for name in TEXTS for line in shipped(name)))
    ours, theirs = on_prose()
    assert [ours.encode(line) for line in lines] == theirs.encode_all(lines)


def as_gpt2_splits(text):
    """Not the characters that GPT-2 counts as digits and Python as letters."""
    return not any(c.isnumeric() and not c.isdecimal() for c in text)


@few
@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc",))).filter(as_gpt2_splits))
def test_any_text_gets_the_librarys_ids_and_comes_back(text):
    ours, theirs = on_prose()
    ids = ours.encode(text)
    assert ids == theirs.encode(text)
    assert ours.decode(ids) == normalise(text)


MARKED = {
    "Hindi": "मैं हिन्दी बोलता हूँ",
    "Thai": "คุณช่วยฉันได้ไหม",
    "Arabic with vowels": "أَنَا أَتَكَلَّمُ العَرَبِيَّةَ",
    "Hebrew with points": "בְּרֵאשִׁית בָּרָא",
    "Tamil": "நான் தமிழ் பேசுகிறேன்",
    "accents without a letter of their own": "x\u0301z\u030a q\u0308",
    "forms of Chinese characters": "葛\U000e0100城 辻\U000e0101",
}


@pytest.mark.parametrize("text", MARKED.values(), ids=MARKED)
def test_a_mark_stays_with_its_letter_so_that_a_word_can_become_one_piece(text):
    assert [word.decode() for word in split_words(text)] == [f" {word}" for word in text.split()]
    ours, theirs = BytePairs.learn([text] * 9, 700), Subwords.learn([text] * 9, 700)
    assert ours.merges == theirs.merges
    assert len(ours.encode(text)) == len(theirs.encode(text)) == len(text.split())


def test_marks_without_a_letter_go_with_the_rest():
    words = [word.decode() for word in split_words("\u2764\ufe0f! \u0301a 1\u0332b")]
    assert words == [" \u2764\ufe0f!", " \u0301", "a", " 1", "\u0332", "b"]


def test_merging_by_hand():
    assert merge([1, 1, 1, 2, 1, 1], (1, 1), 9) == [9, 1, 2, 9]
    assert merge([], (1, 1), 9) == []
    found = BytePairs.learn(["low low low lower newest newest"], 263)
    assert found.merges[:3] == [(b"l", b"o"), (b" ", b"lo"), (b" lo", b"w")]
    assert [found.pieces[i] for i in found.encode("lower")] == [b" low", b"e", b"r"]


def test_learning_ends_when_every_word_is_one_piece():
    found = BytePairs.learn(["ab ab"], 1000)
    assert found.merges == [(b"a", b"b"), (b" ", b"ab")]
    assert len(found.encode("ab ab")) == 2
    assert BytePairs.learn([], 300).merges == []


def test_a_vocabulary_is_its_merges():
    ours = on_prose()[0]
    again = BytePairs(ours.merges)
    assert again.pieces == ours.pieces
    assert again.encode("The ferry was late.") == ours.encode("The ferry was late.")
    with pytest.raises(ValueError, match="merge 0 joins b'ab' and b'c'"):
        BytePairs([(b"ab", b"c")])
    with pytest.raises(ValueError, match="at least 260, got 100"):
        BytePairs.learn([], 100)


def test_reserved_words_in_a_text_are_text_and_broken_bytes_are_replaced():
    ours = on_prose()[0]
    ids = ours.encode("<pad> é")
    assert min(ids) >= 4
    assert ours.decode([0, 1, *ids, 2]) == "<pad> é"
    assert ours.decode(BytePairs().encode("é")[:-1]) == "\ufffd"
    assert ours.encode("  ") == []


def test_examples_in_docstrings():
    assert doctest.testmod(byte_pairs).failed == 0
    assert split_words("") == []
