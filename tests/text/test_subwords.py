"""Subwords lose nothing, know every text and keep the reserved ids."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from course_utils.text.corpora import load_corpus
from course_utils.text.subwords import LONGEST, SMALLEST, Subwords
from course_utils.text.text import normalise
from course_utils.text.vocab import RESERVED, Vocab


@pytest.fixture(scope="module")
def subwords():
    pairs = load_corpus("everyday").pairs
    return Subwords.learn([side for p in pairs for side in (p.source, p.target)], 700)


def test_reserved_ids_are_those_of_the_word_vocabulary(subwords):
    assert (subwords.pad, subwords.bos, subwords.eos, subwords.unk) == (
        Vocab.pad, Vocab.bos, Vocab.eos, Vocab.unk,
    )  # fmt: skip
    assert subwords.pieces(range(4)) == list(RESERVED)
    assert len(subwords) == 700


@settings(deadline=None)
@given(st.text(max_size=30))
@example("<pad> <eos>")
@example("Ça va\u202f? 我很好 🙂")
@example("\x00 \u2028")
def test_any_text_comes_back_in_its_normal_spelling(subwords, text):
    ids = subwords.encode(text)
    assert all(i >= len(RESERVED) for i in ids)
    assert subwords.decode(ids) == normalise(text)
    assert "".join(subwords.pieces(ids)).count("·") >= normalise(text).count(" ")


def test_frequent_words_are_one_piece_and_rare_ones_several(subwords):
    assert subwords.pieces(subwords.encode("je suis")) == ["·je", "·suis"]
    assert len(subwords.encode("xylophone")) > 2


def test_many_lines_are_encoded_like_one(subwords):
    texts = ["I'm home.", "", "  ", "Je suis chez moi."]
    assert subwords.encode_all(texts) == [subwords.encode(text) for text in texts]
    assert subwords.encode_all(texts)[1:3] == [[], []]


def test_reserved_and_broken_ids_do_no_harm_in_decoding(subwords):
    ids = [subwords.bos, *subwords.encode("va !"), subwords.eos, subwords.pad]
    assert subwords.decode(ids) == "va !"
    assert isinstance(subwords.decode([len(subwords) - 1, 4 + 200]), str)


def test_learning_is_repeatable_and_survives_a_file(subwords):
    pairs = load_corpus("everyday").pairs
    again = Subwords.learn([side for p in pairs for side in (p.source, p.target)], 700)
    assert again.to_json() == subwords.to_json()
    loaded = Subwords.from_json(subwords.to_json())
    assert loaded.encode("Il est <unk> calme.") == subwords.encode("Il est <unk> calme.")


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"model": {"type": "WordLevel"}}', "{"])
def test_what_is_no_vocabulary_is_refused(text):
    with pytest.raises(ValueError, match="no subword vocabulary"):
        Subwords.from_json(text)


def test_a_vocabulary_without_the_reserved_tokens_is_refused(subwords):
    other = json.loads(subwords.to_json())
    other["added_tokens"] = []
    ids = other["model"]["vocab"]
    ids["<pad>"], ids["<bos>"] = ids["<bos>"], ids["<pad>"]
    with pytest.raises(ValueError, match="must begin with <pad>"):
        Subwords.from_json(json.dumps(other))


def test_a_size_without_room_for_the_bytes_is_refused():
    with pytest.raises(ValueError, match=f"at least {SMALLEST}, got 100"):
        Subwords.learn(["a"], 100)


def test_a_lone_surrogate_is_read_as_a_replaced_character(subwords):
    for text in ("caf\udce9", "\ud800", "a\udfffb"):
        replaced = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
        assert subwords.encode(text) == subwords.encode(replaced)
        assert subwords.decode(subwords.encode(text)) == replaced
    assert len(Subwords.learn(["caf\udce9"], SMALLEST)) == SMALLEST


def test_pieces_show_control_characters_as_escapes(subwords):
    line = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0), 0x202E, 0x2066]))
    ids = [i for c in line for i in subwords.encode_all([f"a{c}b"])[0]]
    assert all(piece.isprintable() for piece in subwords.pieces(ids))
    assert subwords.pieces(subwords.encode("\x1b"))[-1] == r"\x1b"


def test_a_learnt_piece_has_a_longest_length():
    learnt = Subwords.learn(["x" * 5_000] * 3, 400)
    pieces = json.loads(learnt.to_json())["model"]["vocab"]
    assert LONGEST / 2 < max(map(len, pieces)) <= LONGEST


@pytest.mark.parametrize("gone", ["type", "vocab", "merges"])
def test_a_vocabulary_without_a_key_names_it(subwords, gone):
    other = json.loads(subwords.to_json())
    del other["model"][gone]
    with pytest.raises(ValueError, match=f"this is no subword vocabulary: it has no '{gone}'"):
        Subwords.from_json(json.dumps(other))
