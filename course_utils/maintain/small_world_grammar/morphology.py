"""How words inflect: French nouns, adjectives and verbs, English nouns and verbs, and elision.

Regular forms come from the rules below; whatever breaks them is written out in ``lexicon.py``.
French persons are counted je 0, tu 1, il 2, nous 3, ils 4: the small world has no "vous".
"""

from __future__ import annotations

from dataclasses import dataclass

VOWELS = "aeiouàâéèêëîïôûœ"
# No elision before these, though they begin with a vowel letter or an h.
ASPIRATE = frozenset("onze onzième oui huit huitième haut haute hauts hautes héros hibou".split())
SHORTENED = {
    word: word[:-1] + "'" for word in ("je", "me", "te", "se", "le", "la", "de", "ne", "que")
}


def starts_with_vowel(word: str) -> bool:
    """Does the French word make the one before it elide ("l'homme", but "le onze")?"""
    word = word.lower()
    return word == "y" or (word not in ASPIRATE and word[0] in VOWELS + "h")


def elide(word: str, following: str) -> str:
    """The French word as written before ``following``: elide("de", "eau") is "d'"."""
    if word == "si":
        return "s'" if following in ("il", "ils") else word
    if word in SHORTENED and starts_with_vowel(following):
        return SHORTENED[word]
    return word


def french_plural(word: str) -> str:
    """chien -> chiens, cheval -> chevaux, gâteau -> gâteaux, souris -> souris."""
    if word[-1] in "sxz":
        return word
    if word.endswith(("eau", "eu")) and word != "bleu":
        return word + "x"
    return word[:-2] + "aux" if word.endswith("al") else word + "s"


def french_feminine(word: str) -> str:
    """grand -> grande, heureux -> heureuse, cher -> chère, italien -> italienne."""
    for ending, feminine in (("e", "e"), ("eux", "euse"), ("er", "ère"), ("en", "enne")):
        if word.endswith(ending):
            return word[: -len(ending)] + feminine
    return word + "e"


def english_plural(word: str) -> str:
    """dog -> dogs, box -> boxes, story -> stories."""
    if word.endswith(("s", "x", "ch", "sh")):
        return word + "es"
    return word[:-1] + "ies" if _consonant_y(word) else word + "s"


def english_third(verb: str) -> str:
    """eat -> eats, watch -> watches, carry -> carries, go -> goes, have -> has."""
    if verb == "have":
        return "has"
    return verb + "es" if verb.endswith("o") else english_plural(verb)


def english_past(verb: str) -> str:
    """watch -> watched, close -> closed, carry -> carried."""
    if verb.endswith("e"):
        return verb + "d"
    return verb[:-1] + "ied" if _consonant_y(verb) else verb + "ed"


def english_ing(verb: str) -> str:
    """eat -> eating, close -> closing, see -> seeing."""
    silent_e = verb.endswith("e") and not verb.endswith("ee")
    return (verb[:-1] if silent_e else verb) + "ing"


def _consonant_y(word: str) -> bool:
    return word.endswith("y") and word[-2] not in "aeiou"


@dataclass(frozen=True)
class FrenchVerb:
    """All the forms of a French verb that the small world uses, five persons a tense."""

    infinitive: str
    present: tuple[str, ...]
    future: tuple[str, ...]
    imperfect: tuple[str, ...]
    participle: str
    imperative: str  # tu
    reflexive: bool = False
    etre: bool = False  # être in the passé composé, as all reflexives have

    def agreed(self, feminine: bool, plural: bool) -> str:
        """The participle with its agreement: allé, allée, allés, allées."""
        form = self.participle + "e" * feminine
        return french_plural(form) if plural else form


def conjugate(
    infinitive: str, present: str = "", participle: str = "", future_stem: str = "", **traits
) -> FrenchVerb:
    """Conjugate a verb; what is given (five present forms in a string, ...) overrides the rule."""
    forms = tuple(present.split()) or _regular_present(infinitive)
    past_stem = "ét" if infinitive == "être" else forms[3].removesuffix("ons")
    stem = future_stem or _regular_future_stem(infinitive)
    tu = forms[1]
    return FrenchVerb(
        infinitive=infinitive,
        present=forms,
        future=tuple(stem + ending for ending in ("ai", "as", "a", "ons", "ont")),
        imperfect=tuple(
            _soften(past_stem, ending) + ending for ending in ("ais", "ais", "ait", "ions", "aient")
        ),
        participle=participle or _regular_participle(infinitive),
        imperative=tu[:-1] if tu.endswith(("es", "vas")) else tu,
        **traits,
    )


def _regular_present(infinitive: str) -> tuple[str, ...]:
    stem = infinitive[:-2]
    if infinitive.endswith("er"):
        strong = _stressed(stem)
        endings = ((strong, "e"), (strong, "es"), (strong, "e"), (stem, "ons"), (strong, "ent"))
        return tuple(_soften(base, ending) + ending for base, ending in endings)
    endings = "is is it issons issent" if infinitive.endswith("ir") else "s s - ons ent"
    return tuple(stem + ending.strip("-") for ending in endings.split())


def _stressed(stem: str) -> str:
    """The stem of an -er verb before a silent ending: achet -> achèt, nettoy -> nettoi."""
    if stem.endswith("y"):
        return stem[:-1] + "i"
    if stem.endswith("appel"):
        return stem + "l"
    if stem[-2] in "eé" and stem[-1] not in VOWELS:
        return stem[:-2] + "è" + stem[-1]
    return stem


def _soften(stem: str, ending: str) -> str:
    """Keep a soft g or c before a and o: mang -> mange(ons), commenc -> commenç(ons)."""
    stem = stem[:-1] if stem.endswith("ge") else stem
    stem = stem[:-1] + "c" if stem.endswith("ç") else stem
    if ending[0] not in "ao":
        return stem
    return stem + "e" if stem.endswith("g") else stem[:-1] + "ç" if stem.endswith("c") else stem


def _regular_future_stem(infinitive: str) -> str:
    if not infinitive.endswith("er"):
        return infinitive.removesuffix("e")
    stem = infinitive[:-2]
    return (stem if stem[-2] == "é" else _stressed(stem)) + "er"


def _regular_participle(infinitive: str) -> str:
    stem, ending = infinitive[:-2], infinitive[-2:]
    return stem + {"er": "é", "ir": "i", "re": "u"}[ending]
