"""Phrases of both languages at once: noun phrases, subjects, pronouns, places and times."""

from __future__ import annotations

from random import Random

from . import lexicon
from .lexicon import Noun
from .morphology import starts_with_vowel
from .rules import EMPTY, Phrase, rule

# English possessive -> French before a masculine, feminine, plural noun.
POSSESSIVES = {
    "my": ("mon", "ma", "mes"),
    "your": ("ton", "ta", "tes"),
    "his": ("son", "sa", "ses"),
    "her": ("son", "sa", "ses"),
    "our": ("notre", "notre", "nos"),
    "their": ("leur", "leur", "leurs"),
}
BEFORE_VOWEL = {
    "ma": "mon",
    "ta": "ton",
    "sa": "son",
    "ce": "cet",
    "beau": "bel",
    "nouveau": "nouvel",
    "vieux": "vieil",
}
NUMBERS = dict(
    zip(
        "two three four five six seven eight nine ten eleven twelve".split(),
        "deux trois quatre cinq six sept huit neuf dix onze douze".split(),
    )
)

QUANTITIES = {  # English with plurals, with mass nouns -> French
    "a lot of": ("a_d lot_d of_d", "a_d lot_d of_d", "beaucoup_d de_d"),
    "too many": ("too_d many_d", "too_d much_d", "trop_d de_d"),
    "enough": ("enough_d", "enough_d", "assez_d de_d"),
    "how many": ("how_d many_d", "how_d much_d", "combien_d de_d"),
}

# English, French, person, plural, feminine, possessive, object pronoun of both languages.
# The speaker and "you" are men where French asks; "they" without a known antecedent is "ils".
_PRONOUNS = (
    ("I", "je", 1, False, False, "my", "me", "me"),
    ("you", "tu", 2, False, False, "your", "you", "te"),
    ("he", "il", 3, False, False, "his", "him", "le"),
    ("she", "elle", 3, False, True, "her", "her", "la"),
    ("we", "nous", 1, True, False, "our", "us", "nous"),
    ("they", "ils", 3, True, False, "their", "them", "les"),
)
PRONOUNS = {
    en: rule(en + "_s", fr + "_s")._replace(person=person, plural=many, feminine=female, own=own)
    for en, fr, person, many, female, own, _, _ in _PRONOUNS
}
OBJECT_PRONOUNS = {
    me: rule(me + "_o", moi + "_o")._replace(person=person, plural=many, feminine=female)
    for _, _, person, many, female, _, me, moi in _PRONOUNS
}
TONIC = {  # after a preposition or "than"
    me: rule(me + "_o", moi + "_o")._replace(person=person, plural=many)
    for me, moi, person, many in (
        ("me", "moi", 1, False),
        ("you", "toi", 2, False),
        ("him", "lui", 3, False),
        ("her", "elle", 3, False),
        ("us", "nous", 1, True),
        ("them", "eux", 3, True),
    )
}
DATIVE = {  # "gave me": no participle agrees with these
    me: rule(me + "_o", moi + "_o")
    for me, moi in zip("me you him her us them".split(), "me te lui lui nous leur".split())
}
THEY_FEMININE = rule("they_s", "elles_s")._replace(plural=True, feminine=True, own="their")
REFLEXIVE = ("me", "te", "se", "nous", "se")  # by French person

MEN = "Paul Lucas Thomas Marc Louis Simon".split()
WOMEN = "Emma Alice Julie Marie Sarah Anna".split()
NAMES = MEN + WOMEN


def chance(rng: Random, percent: int) -> bool:
    """True in ``percent`` of a hundred draws; integers only, so alike on every machine."""
    return rng.randrange(100) < percent


def join(*phrases: Phrase) -> Phrase:
    """The phrases one after the other, in the same order in both languages."""
    en, fr, marks = EMPTY[:3]
    for phrase in phrases:
        en, fr, marks = en + phrase.en, fr + phrase.fr, marks | phrase.marks
    return Phrase(en, fr, marks)


def name(word: str) -> Phrase:
    female = word in WOMEN
    return rule(word + "_n", word + "_n", (word,))._replace(
        feminine=female, own="her" if female else "his"
    )


def _determiner(kind: str, noun: Noun, plural: bool, prenominal: bool, vowel: bool):
    """English and French words (template items) of a determiner; see `noun_phrase`."""
    form = 2 if plural else int(noun.feminine)
    definite = ("le", "la", "les")[form] + "_d"
    if kind == "the":
        return "the_d", definite
    if kind in POSSESSIVES:
        french = POSSESSIVES[kind][form]
        return kind + "_d", (BEFORE_VOWEL.get(french, french) if vowel else french) + "_d"
    if kind == "this":
        french = ("ce", "cette", "ces")[form]
        english = "these_d" if plural else "this_d"
        return english, (BEFORE_VOWEL.get(french, french) if vowel else french) + "_d"
    if kind == "all":  # "I like apples": the kind as such, a definite article in French
        return "", definite
    if kind in QUANTITIES:
        return QUANTITIES[kind][noun.mass], QUANTITIES[kind][2]
    if kind in ("what", "which"):
        what = "what_d a_d" if kind == "what" and not plural else kind + "_d"
        return what, ("quel_d", "quelle_d", "quelles_d" if noun.feminine else "quels_d")[form]
    if kind in NUMBERS:
        return kind + "_d", NUMBERS[kind] + "_d"
    if kind == "no":  # after "ne ... pas"
        return ("any_d" if plural or noun.mass else "a_d"), "de_d"
    if kind == "bare no":
        return "", "de_d"
    if kind == "bare a":
        return "", _determiner("a", noun, plural, prenominal, vowel)[1]
    if kind != "a":
        raise ValueError(f"unknown kind of determiner {kind!r}")
    if noun.mass:
        partitive = "du_d" if definite == "le_d" and not vowel else f"de_d {definite}"
        return "some_d", partitive
    if plural:  # des livres, but "de vieux livres"
        return "some_d", "de_d" if prenominal else "des_d"
    return "a_d", "une_d" if noun.feminine else "un_d"


def noun_phrase(
    rng: Random,
    noun: Noun,
    kind: str = "the",
    plural: bool = False,
    adjectives: int = 0,
    unless: frozenset[str] = frozenset(),
) -> Phrase:
    """Determiner, noun, and with ``adjectives`` percent probability an adjective that fits it.

    ``unless`` names adjectives that the context rules out. ``kind`` is a possessive, a number word,
    a key of `QUANTITIES`, or one of

    - "the", "this", "which", "what" (a garden!), "a" (with plural and mass nouns: some);
    - "all": apples in general, as in "I like apples", "j'aime les pommes";
    - "bare a": some apples, without the word, as in "I eat apples", "je mange des pommes";
    - "no", "bare no": "a" and "bare a" after a negated verb, "pas de pommes".
    """
    adjective = None
    if adjectives and chance(rng, adjectives):
        options = lexicon.attributive[noun.en[0]]
        if unless:
            options = [option for option in options if option.en not in unless]
        adjective = rng.choice(options) if options else None
    plural = not noun.mass and (plural or kind in NUMBERS or kind in QUANTITIES)
    english, french = noun.en[plural], noun.fr[plural]
    marks = [noun.en[0]]
    before = after = big = ""
    if adjective:
        big, marks = adjective.en, [*marks, adjective.en]
        agreed = adjective.agreed(noun.feminine, plural)
        if adjective.position == "pre":
            elides = not plural and starts_with_vowel(french)
            before = BEFORE_VOWEL.get(agreed, agreed) if elides else agreed
        else:
            after = agreed
    vowel = starts_with_vowel(before or french)
    the, le = _determiner(kind, noun, plural, bool(before), vowel)
    phrase = rule(
        the + " {big}_a {noun}_n",
        le + " {before}_a {nom}_n {after}_a",
        marks,
        big=big,
        noun=english,
        nom=french,
        before=before,
        after=after,
    )
    own = "their" if plural else "her" if noun.feminine else "his"
    return phrase._replace(plural=plural, feminine=noun.feminine, own=own)


_MERGED = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}


def with_preposition(en: str, fr: str, phrase: Phrase) -> Phrase:
    """Put a preposition before a phrase: de + le jardin = du jardin, but de l'hôtel."""
    *lead, last = fr.split()
    (article, labels), *rest = phrase.fr
    merged = _MERGED.get((last, article))
    if not merged or (article == "le" and starts_with_vowel(rest[0][0])):
        return rule("{en}_p {X}", "{fr}_p {X}", like=phrase, en=en, fr=fr, X=phrase)
    bare = phrase._replace(fr=((merged, labels), *rest))
    whole = rule("{en}_p {X}", "{fr}_p {X}", like=phrase, en=en, fr=" ".join(lead), X=bare)
    preposition = whole.en[0][1]
    words = list(whole.fr)
    words[len(lead)] = (merged, labels + preposition)
    return whole._replace(fr=tuple(words))


# Adjectives that do not pick a kind of thing: not "I like big apples", but "I like cold milk".
GENERIC = lexicon.ABSOLUTE - {"French", "Italian", "black", "white"} | {
    adjective.en for adjective in lexicon.adjectives.values() if adjective.position == "pre"
}


def possessed(owner: Phrase, what: Phrase) -> Phrase:
    """Emma's car, la voiture d'Emma: the genitive links to the article and to "de"."""
    of = with_preposition("of", "de", owner)
    (_, article), *english = what.en
    genitive = Phrase(en=(("'s", article + of.en[0][1]),))
    what = what._replace(en=tuple(english))
    return rule("{X} {s} {Y}", "{Y} {of}", like=what, X=owner, s=genitive, Y=what, of=of)


def someone(rng: Random, adjectives: int = 15) -> Phrase:
    """A person in the third person: a name, "my sister", "the old man"."""
    draw = rng.randrange(10)
    if draw < 3:
        return name(rng.choice(NAMES))
    if draw < 7:
        return relative(rng, adjectives)
    noun = rng.choice(lexicon.nouns_of("person"))
    plural = chance(rng, 25) and "friend" not in noun.kinds
    kind = rng.choice(["the", "the", "this"]) if "friend" not in noun.kinds else "my"
    return noun_phrase(rng, noun, kind, plural, adjectives)


def relative(
    rng: Random,
    adjectives: int = 15,
    owners: tuple = ("my", "my", "your", "his", "her", "our", "their"),
) -> Phrase:
    """A member of somebody's family, or a friend."""
    noun = rng.choice(lexicon.nouns_of("kin"))
    plural = chance(rng, 15) and "elder" not in noun.kinds
    return noun_phrase(rng, noun, rng.choice(owners), plural, adjectives)


def pronoun(rng: Random) -> Phrase:
    return PRONOUNS[rng.choice(list(PRONOUNS))]


def two_people(rng: Random) -> Phrase:
    """Paul and Emma: feminine in French only if both are women."""
    first, second = rng.sample(NAMES, 2)
    both = rule("{A} and_a {B}", "{A} et_a {B}", A=name(first), B=name(second))
    female = first in WOMEN and second in WOMEN
    return both._replace(plural=True, feminine=female, own="their")


def subject(rng: Random) -> Phrase:
    """Who does it: mostly a pronoun or one person."""
    draw = rng.randrange(20)
    if draw < 9:
        return pronoun(rng)
    return two_people(rng) if draw < 11 else someone(rng)


def echo(phrase: Phrase) -> Phrase:
    """The subject pronoun that takes up a subject: "Emma" -> she, "the girls" -> they (elles)."""
    if phrase.person != 3:
        return next(p for p in PRONOUNS.values() if p[3:5] == phrase[3:5])
    if phrase.plural:
        return THEY_FEMININE if phrase.feminine else PRONOUNS["they"]
    return PRONOUNS["she" if phrase.feminine else "he"]


def thing(
    rng: Random,
    noun: Noun,
    kinds: tuple[str, ...],
    many: bool = True,
    adjectives: int = 35,
    unless: frozenset[str] = frozenset(),
) -> Phrase:
    """A noun as an object, with a determiner of one of these kinds; ``many`` allows a plural."""
    kind = rng.choice(kinds)
    always = "pair" in noun.kinds or (kind.startswith("bare") and not noun.mass)
    plural = always or (many and not noun.mass and chance(rng, 30))
    if plural and kind == "a" and "pair" not in noun.kinds and chance(rng, 40):
        kind = rng.choice(list(NUMBERS)[:5])
    return noun_phrase(rng, noun, kind, plural, adjectives, unless)


def maybe(rng: Random, phrases: list[Phrase], percent: int) -> Phrase:
    """One of the phrases, or nothing."""
    return rng.choice(phrases) if chance(rng, percent) else EMPTY
