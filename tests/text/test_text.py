"""From raw text to tokens and back."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.text.text import (
    LANGUAGES,
    detokenize,
    normalise,
    tokenize,
    words,
)

few = settings(deadline=None, max_examples=100, derandomize=True)
languages = st.sampled_from(LANGUAGES)
odd = st.text(  # cases, ligatures, accents on their own, and every kind of white space
    alphabet="aZİßǅﬁœÉe\u0301\u0327ñ漢字🙂'’.,!?:…«9"
    "\u0085\u001c\u2028\u3000\u202f\ufeff\u200b\r\n ",
    max_size=40,
)
lines = st.text(alphabet="abJéÉœ 0123.,!?;:()\"«»…'’\u00a0\u202f\t-", max_size=40)


@pytest.mark.parametrize("space", ["\u202f", "\u00a0", " ", "", "  ", "\u2009"])
def test_every_space_before_a_question_mark_gives_the_same_tokens(space):
    assert tokenize(f"Tu viens{space}?", "fr") == ["tu", "viens", "?"]


@pytest.mark.parametrize("apostrophe", ["'", "\u2019", "\u2018", "\u02bc", "\u2032"])
def test_every_apostrophe_gives_the_same_tokens(apostrophe):
    assert tokenize(f"I{apostrophe}m home.", "en") == ["i'm", "home", "."]
    assert tokenize(f"J{apostrophe}ai perdu.", "fr") == ["j'", "ai", "perdu", "."]


def test_composed_and_decomposed_accents_are_one_word():
    composed = "l'été"
    assert tokenize(unicodedata.normalize("NFD", composed), "fr") == tokenize(composed, "fr")
    assert tokenize(composed, "fr") == ["l'", "été"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("I'm home.", ["i'm", "home", "."]),
        ("Don't! Why?", ["don't", "!", "why", "?"]),
        ("Tom's dogs' bone", ["tom's", "dogs'", "bone"]),
        ('"Go," he said: now; yes...', ['"', "go", ",", '"', "he", "said", ":", "now", ";"]
         + ["yes", ".", ".", "."]),
        ("At 12:30 it cost 3.5, not 1,000.", ["at", "12:30", "it", "cost", "3.5", ",", "not"]
         + ["1,000", "."]),
        ('(5) "7 apples"', ["(", "5", ")", '"', "7", "apples", '"']),
        ("a well-known man", ["a", "well-known", "man"]),
        ("", []),
        (" \u202f\t ", []),
    ],
)  # fmt: skip
def test_english_tokens(text, tokens):
    assert tokenize(text, "en") == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Je suis chez moi.", ["je", "suis", "chez", "moi", "."]),
        ("L'ami d'aujourd'hui", ["l'", "ami", "d'", "aujourd'hui"]),
        ("Aujourd'hui, c'est toi.", ["aujourd'hui", ",", "c'", "est", "toi", "."]),
        ("Qu'est-ce que c'est ?", ["qu'", "est-ce", "que", "c'", "est", "?"]),
        ("A-t-il mangé ?", ["a-t-il", "mangé", "?"]),
        ("S'il n'y a quelqu'un", ["s'", "il", "n'", "y", "a", "quelqu'un"]),
        ("Lorsqu'elle l'œuf jusqu'à", ["lorsqu'", "elle", "l'", "œuf", "jusqu'", "à"]),
        ("« Oui » !", ["«", "oui", "»", "!"]),
        ("l'«ami»", ["l'", "«", "ami", "»"]),
        ("Il coûte 3,5 euros.", ["il", "coûte", "3,5", "euros", "."]),
    ],
)
def test_french_tokens(text, tokens):
    assert tokenize(text, "fr") == tokens


@pytest.mark.parametrize(
    ("text", "lang"),
    [
        ("i'm home.", "en"),
        ("don't! why? yes, now; go: there.", "en"),
        ("j'ai perdu.", "fr"),
        ("tu viens ?", "fr"),
        ("va !", "fr"),
        ("qu'est-ce que c'est ?", "fr"),
        ("« oui », dit-il.", "fr"),
        ("aujourd'hui, il coûte 3,5 euros.", "fr"),
    ],
)
def test_detokenising_restores_a_well_spaced_line(text, lang):
    assert detokenize(tokenize(text, lang), lang) == text


@few
@given(text=lines, lang=languages)
def test_tokens_of_a_detokenised_line_are_the_tokens(text, lang):
    tokens = tokenize(text, lang)
    assert tokenize(detokenize(tokens, lang), lang) == tokens


@few
@given(text=odd, lang=languages)
def test_tokens_hold_no_space_and_lose_no_letter(text, lang):
    tokens = tokenize(text, lang)
    assert all(token and not any(c.isspace() for c in token) for token in tokens)
    assert "".join(tokens) == "".join(normalise(text).lower().split())
    assert tokenize(normalise(text), lang) == tokens


@few
@given(text=odd | lines, lang=languages)
def test_no_rule_looks_across_a_space(text, lang):
    words = normalise(text).split(" ")
    assert tokenize(text, lang) == [token for word in words for token in tokenize(word, lang)]


@few
@given(text=odd | lines)
def test_what_needs_no_mending_is_left_and_what_does_is_mended(text):
    mended = unicodedata.normalize("NFC", text)
    for apostrophe in "\u2019\u2018\u02bc\u2032":
        mended = mended.replace(apostrophe, "'")
    assert normalise(text) == " ".join(mended.split())
    assert normalise("\ud800") == "\ufffd"


@few
@given(text=odd)
def test_normalising_twice_changes_nothing_more(text):
    once = normalise(text)
    assert normalise(once) == once


def test_normalise_keeps_case_and_punctuation():
    assert normalise("  Tu viens\u202f?\u00a0 C\u2019est  bon.\r\n") == "Tu viens ? C'est bon."


@pytest.mark.parametrize("lang", ["de", "EN", ""])
def test_other_languages_are_refused(lang):
    with pytest.raises(ValueError, match=f"unknown language {lang!r}: use one of en, fr"):
        tokenize("Go.", lang)
    with pytest.raises(ValueError, match="use one of en, fr"):
        detokenize(["go"], lang)


@given(
    st.lists(
        st.text(st.sampled_from("ab'\u2019 \u202f\t\n\xe9e\u0301\u0316\u1100\u1161\x85\x1c\ud800"))
    )
)
def test_words_are_what_stands_between_the_spaces_also_across_joined_texts(texts):
    each = [word for text in texts for word in normalise(text).split(" ") if word]
    assert [word for text in texts for word in words(text)] == each
    assert words(" ".join(texts)) == each
