"""Synchronous rules: an English and a French template that share slots and alignment labels.

A template is a string of words and ``{slots}``. What follows an underscore are labels, one letter
each: words on the two sides that share a label are aligned. So

    rule("{S} does_n not_n {v}_v {O}", "{S} ne_n {V}_v pas_n {O}", S=..., v="eat", V="mange", O=...)

aligns "does not" with "ne ... pas" and "eat" with "mange". A slot holds a `Phrase`, which brings
both its sides and its own links, or a string of words. Contraction (do not -> don't), elision
(ne aime -> n'aime) and a/an happen once, in `realise`, when the neighbours of each word are known.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import NamedTuple

from course_utils.text.pairs import Pair

from .morphology import elide


class Phrase(NamedTuple):
    """A piece of a sentence in both languages.

    ``en`` and ``fr`` are tuples of (word, labels); ``marks`` names the words and patterns used,
    which is what the compositional split is defined on; the rest is agreement.
    """

    en: tuple = ()
    fr: tuple = ()
    marks: frozenset = frozenset()
    person: int = 3
    plural: bool = False
    feminine: bool = False
    own: str = ""  # the English possessive that refers back to it: my, your, his, ...

    @property
    def french_person(self) -> int:
        """Index of the verb form it takes: je 0, tu 1, il 2, nous 3, ils 4."""
        return {1: 3, 3: 4}[self.person] if self.plural else self.person - 1


EMPTY = Phrase()
_fresh = itertools.count()


@cache
def _compile(template: str) -> tuple:
    """The items of a template: (slot name or None, word, label codes)."""
    items = []
    for item in template.split():
        word, _, labels = item.partition("_")
        slot = word[1:-1] if word.startswith("{") else None
        items.append((slot, word, tuple(map(ord, labels))))
    return tuple(items)


def rule(en: str, fr: str, /, marks: tuple = (), like: Phrase = EMPTY, **slots) -> Phrase:
    """Fill the two templates. The result agrees as ``like`` does (third singular by default)."""
    base = next(_fresh) << 16
    sides = []
    for side, template in enumerate((en, fr)):
        words = []
        for slot, word, codes in _compile(template):
            value = word if slot is None else slots[slot]
            if value.__class__ is Phrase:
                words += value[side]
            elif value:
                one = len(codes) == 1
                labels = (base + codes[0],) if one else tuple([base + code for code in codes])
                if " " in value:
                    words += [(part, labels) for part in value.split(" ")]
                else:
                    words.append((value, labels))
        sides.append(tuple(words))
    inherited = [value.marks for value in slots.values() if value.__class__ is Phrase]
    return Phrase(*sides, frozenset(marks).union(*inherited), *like[3:])


def fresh(phrase: Phrase) -> Phrase:
    """A copy with labels of its own, so that a "we" or "at home" used twice is not cross-linked."""
    base = next(_fresh) << 48
    sides = (
        tuple([(word, tuple([base + label for label in labels])) for word, labels in side])
        for side in phrase[:2]
    )
    return Phrase(*sides, *phrase[2:])


_AUXILIARIES = "do does did is are was were must"
_NEGATED = {(aux, "not"): aux + "n't" for aux in _AUXILIARIES.split()} | {
    ("will", "not"): "won't",
    ("can", "not"): "can't",
    ("has", "not"): "hasn't",
    ("have+", "not"): "haven't",
}
_CONTRACTED = {
    (pronoun, verb): pronoun + ending
    for pronouns, verb, ending in (
        ("I", "am", "'m"),
        ("you we they", "are", "'re"),
        ("he she it there that where what who", "is", "'s"),
        ("I you he she it we they", "will", "'ll"),
        ("I you we they", "have+", "'ve"),  # have+ is the auxiliary, "I have a car" stays
        ("I we", "would", "'d"),
        ("let", "us", "'s"),
    )
    for pronoun in pronouns.split()
}


def _contract(tokens, table: dict) -> list:
    """Merge neighbours that English writes as one word (and the genitive 's with its owner);
    the merged word keeps both links."""
    merged = []
    for word, labels in tokens:
        previous = merged[-1] if merged else ("", ())
        whole = previous[0] + word if word == "'s" else table.get((previous[0], word))
        if whole:
            merged[-1] = (whole, previous[1] + labels)
        else:
            merged.append((word, labels))
    return merged


def _article(word: str, following: str) -> str:
    return "an" if word == "a" and following[0] in "aeiouAEIOU" else word


def _text(words: list[str], glued: str) -> str:
    """Join words: nothing after an elision (l'), nothing before the marks in ``glued``."""
    text = ""
    for word in words:
        tight = not text or text.endswith("'") or word in glued
        text += word if tight else " " + word
    return text[0].upper() + text[1:]


def realise(sentence: Phrase) -> Pair:
    """Spell a finished sentence on both sides and read the gold alignment off its labels."""
    en = _contract(_contract(sentence.en, _NEGATED), _CONTRACTED)
    en_words = [word.rstrip("+") for word, _ in en]
    en_words = [_article(*pair) for pair in zip(en_words, en_words[1:] + ["."])]
    fr_words = [word for word, _ in sentence.fr]
    fr_words = [elide(*pair) for pair in zip(fr_words, fr_words[1:] + ["."])]
    holders: dict[int, list[int]] = {}
    for j, (_, labels) in enumerate(sentence.fr):
        for label in labels:
            holders.setdefault(label, []).append(j)
    links = {
        (i, j)
        for i, (_, labels) in enumerate(en)
        for label in labels
        for j in holders.get(label, ())
    }
    return Pair(_text(en_words, ".,?!"), _text(fr_words, ".,"), tuple(sorted(links)))
