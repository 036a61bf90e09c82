"""Comparison: bigger than, less expensive than, as tall as."""

from __future__ import annotations

from collections import defaultdict
from itertools import permutations
from random import Random

from . import lexicon
from .clauses import NEGATION, STATEMENT, be
from .constructions import SINGULAR, construction, state
from .lexicon import Adjective, Noun
from .phrases import NAMES, TONIC, chance, name, noun_phrase, relative, subject
from .rules import Phrase, rule

# Kinds of things that one compares with each other.
_GROUPS = (
    ("vehicle",),
    ("clothes",),
    ("furniture",),
    ("building",),
    ("room",),
    ("outdoors",),
    ("town",),
    ("text", "movie"),
    ("food",),
    ("device",),
    ("pet",),
)


def _comparable() -> dict[str, list[tuple[Noun, Noun]]]:
    """For each adjective, the pairs of nouns that one compares by it."""
    table = defaultdict(list)
    for kinds in _GROUPS:
        for one, other in permutations(lexicon.nouns_of(*kinds), 2):
            for adjective in lexicon.predicative[one.en[0]]:
                if adjective in lexicon.predicative[other.en[0]] and one.mass == other.mass:
                    table[adjective.en].append((one, other))
    skipped = lexicon.ABSOLUTE | {"new", "kind", "intelligent", "sick"}
    return {adjective: pairs for adjective, pairs in table.items() if adjective not in skipped}


_COMPARABLE = _comparable()
_PERSONAL = [
    lexicon.adjectives[word]
    for word in "tall young old rich happy kind strong intelligent funny lazy serious".split()
]


def compared(adjective: Adjective, who: Phrase, than: Phrase, degree: str) -> Phrase:
    """What follows "be": bigger than Paul's, plus grand que ...; degree: more, less, as."""
    french = adjective.agreed(who.feminine, who.plural)
    word = adjective.en
    if degree == "as":
        templates = ("as_m {a}_a as_t {X}", "aussi_m {b}_a que_t {X}")
    elif degree == "less":
        templates = ("less_m {a}_a than_t {X}", "moins_m {b}_a que_t {X}")
    elif word == "good":
        templates = ("better_a than_t {X}", "{b}_a que_t {X}")
        french = ("meilleur", "meilleure", "meilleurs", "meilleures")[who.feminine + 2 * who.plural]
    elif adjective.comparative.startswith("more "):
        templates = ("more_m {a}_a than_t {X}", "plus_m {b}_a que_t {X}")
    else:
        word = adjective.comparative
        templates = ("{a}_ma than_t {X}", "plus_m {b}_a que_t {X}")
    return rule(*templates, ("than", adjective.en), a=word, b=french, X=than)


def _degree(rng: Random, adjective: Adjective) -> str:
    return (
        "more"
        if chance(rng, 60)
        else "as"
        if chance(rng, 60)
        else ("less" if adjective.comparative.startswith("more ") else "as")
    )


@construction
def comparing_people(rng: Random) -> Phrase:
    """My brother is taller than me, mon frère est plus grand que moi."""
    who = subject(rng)
    draw = rng.randrange(3)
    if draw == 0:
        pronouns = [p for p in TONIC.values() if p.person != who.person]
        other = rng.choice(pronouns)
    else:
        other = name(rng.choice(NAMES)) if draw == 1 else relative(rng, 0)
    adjective = rng.choice(_PERSONAL)
    if adjective.en == "old":  # said of age: "plus âgé"
        adjective = lexicon.adjectives["young"]
    what = compared(adjective, who, other, _degree(rng, adjective))
    mode = NEGATION if chance(rng, 15) else STATEMENT
    return state(be(who, what, rng.choice(("present", "present", "past")), mode))


@construction
def comparing_things(rng: Random) -> Phrase:
    """This table is more expensive than your bed."""
    word = rng.choice(list(_COMPARABLE))
    adjective = lexicon.adjectives[word]
    one, other = rng.choice(_COMPARABLE[word])
    mine, yours = "my", rng.choice(("your", "his", "her", "our"))
    if one.kinds.isdisjoint(("clothes", "vehicle", "device", "house", "apartment", "furniture")):
        mine, yours = rng.choice((("the", "the"), ("this", "this")))
    plural = "pair" in one.kinds or (one.kinds.isdisjoint(SINGULAR) and chance(rng, 25))
    who = noun_phrase(rng, one, mine, plural)
    than = noun_phrase(rng, other, yours, "pair" in other.kinds or plural)
    what = compared(adjective, who, than, _degree(rng, adjective))
    return state(be(who, what, mode=NEGATION if chance(rng, 10) else STATEMENT))
