"""The register of constructions, and the predicates that several of them share.

A construction is a function of a random generator that returns a finished sentence as a `Phrase`.
Those of one clause stand in ``statements.py``, questions in ``questions.py``, and sentences of
several clauses in ``sentences.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from . import lexicon
from .adverbials import FREQUENCY, GOALS, LIVING, PLACE, TIMES, TRAVELS, fixed
from .clauses import ANYMORE, NEVER, QUESTION, STATEMENT, clause
from .phrases import (
    EMPTY,
    GENERIC,
    NAMES,
    chance,
    join,
    maybe,
    name,
    noun_phrase,
    possessed,
    relative,
    thing,
    with_preposition,
)
from .rules import Phrase, rule

CONSTRUCTIONS: dict[str, Callable[[Random], Phrase]] = {}


def construction(function: Callable[[Random], Phrase]) -> Callable[[Random], Phrase]:
    """Register a construction under its function's name, spaces for underscores."""
    title = function.__name__.replace("_", " ")

    def marked(rng: Random) -> Phrase:
        phrase = function(rng)
        return phrase._replace(marks=phrase.marks | {title})

    CONSTRUCTIONS[title] = marked
    return marked


def state(phrase: Phrase) -> Phrase:
    return rule("{X} ._z", "{X} ._z", X=phrase)


def ask(phrase: Phrase) -> Phrase:
    return rule("{X} ?_z", "{X} ?_z", X=phrase)


def exclaim(phrase: Phrase) -> Phrase:
    return rule("{X} !_z", "{X} !_z", X=phrase)


PERIODS = {  # the times that go with a tense
    "present": "habit",
    "progressive": "now",
    "past": "past",
    "future": "future",
    "going to": "future",
    "used to": "habit",
    "past progressive": "past",
}
STATIVE = frozenset("have know like love prefer want".split())
_TO_SOMEONE = ("give", "show")  # these need a receiver
_SUDDEN = frozenset("see find lose forget break meet understand".split())
TRANSITIVE = [
    verb
    for verb, nouns in lexicon.objects.items()
    if nouns and verb not in STATIVE and verb not in _TO_SOMEONE
]
LASTING = [verb for verb in TRANSITIVE if verb not in _SUDDEN]
PLANNED = [*LASTING, "see"]
# Few verbs have a simple future or an imperfect here, so that each form is seen often enough.
VERBS_FOR = {
    "present": "eat drink buy read write take drive wear watch visit help call sing wash".split(),
    "progressive": LASTING,
    "past progressive": "eat drink read watch".split(),
    "used to": "eat drink read watch".split(),
    "future": "take see visit help".split(),
    "going to": PLANNED,
    "want to": PLANNED,
    "can": PLANNED,
    "must": PLANNED,
}
# Verbs of which one cannot well have many objects at a time.
_SINGLE = frozenset("wear drive use watch learn take make".split())
_CLASH = {  # what one does not do to things of some kind
    "write": frozenset("old new French Italian".split()),
    "wash": frozenset(["clean"]),
    "wear": frozenset(["dirty"]),
    "repair": frozenset(["new"]),
    "look for": frozenset(["dirty"]),
    "make": frozenset(["cold", "expensive"]),
}
_MANY = ("food", "text", "gift", "dish", "animal", "opening", "song")
_OWNED = ("clothes", "small-thing", "device", "vehicle", "pet", "bedroom", "instrument")
_KNOWN = ("opening", "room", "outdoors", "building", "town")


def object_of(
    rng: Random, verb: str, who: Phrase, manner: str = "", negated: bool = False
) -> Phrase:
    """Something or someone that the verb can be done to, by this subject.

    ``manner`` is "habit" (one reads books), "order" (read the book) or "" for a single event.
    """
    noun = rng.choice(lexicon.objects[verb])
    while noun.en[0] == "dress" and verb == "wear" and not who.feminine:
        noun = rng.choice(lexicon.objects[verb])
    if "kin" in noun.kinds:
        return name(rng.choice(NAMES)) if chance(rng, 40) else relative(rng, 10)
    if "person" in noun.kinds:
        return noun_phrase(rng, noun, rng.choice(("the", "this")), chance(rng, 25), 30)
    indefinite = ("bare " if manner == "habit" else "") + ("no" if negated else "a")
    known = not noun.kinds.isdisjoint(_KNOWN) and verb not in ("sell", "buy")
    owned = not noun.kinds.isdisjoint(_OWNED) and verb not in ("buy", "find", "see")
    kinds = ("the", "this") if known or manner == "order" else (indefinite,)
    if not manner and verb != "make":
        kinds += ("the", "this")
    if owned:
        kinds = (who.own,) if manner == "habit" else (kinds[0], who.own, who.own)
    many = verb not in _SINGLE and not noun.kinds.isdisjoint(_MANY)
    adjectives = 15 if manner == "habit" or verb == "wash" else 35
    unless = GENERIC if manner == "habit" else _CLASH.get(verb, frozenset())
    return thing(rng, noun, kinds, many, adjectives, unless)


def transitive(
    rng: Random, who: Phrase, tense: str, mode: int = STATEMENT, dated: int = 40
) -> Phrase:
    """Subject, verb and object, with a time in ``dated`` percent of the cases."""
    verb = rng.choice(VERBS_FOR.get(tense, TRANSITIVE))
    manner = "habit" if tense in ("present", "used to") else ""
    what = object_of(rng, verb, who, manner, mode not in (STATEMENT, QUESTION))
    when, often = _when(rng, tense, mode, dated)
    return clause(who, verb, join(what, when), tense, mode, often)


def _when(rng: Random, tense: str, mode: int, dated: int = 50) -> tuple[Phrase, Phrase]:
    """A time, or an adverb of frequency: the present tense of an action wants one of the two."""
    if tense == "present":
        if mode in (NEVER, ANYMORE):
            return EMPTY, EMPTY
        if chance(rng, 50):
            return EMPTY, rng.choice(FREQUENCY if mode == STATEMENT else FREQUENCY[:2])
        return rng.choice(TIMES["habit"]), EMPTY
    return (maybe(rng, TIMES[PERIODS[tense]], dated) if tense in PERIODS else EMPTY), EMPTY


_SITES = {  # where one does it
    "work": "at home|at the office|at the library|at the restaurant|at the hotel|in the garden",
    "sleep": "at home|at the hotel|on the beach|in the garden|here",
    "walk": "in the park|in the forest|in the street|on the beach",
    "run": "in the park|in the forest|in the street|on the beach",
    "swim": "in the sea|in the river|in the pool",
    "dance": "at home|in the street|in the kitchen|on the beach|in the park",
    "cook": "at home|at the restaurant",
}
ACTIVITIES = {
    verb: [PLACE[place] for place in places.split("|")] for verb, places in _SITES.items()
}
GAMES = fixed("""
    football_a      | au_a football_a
    tennis_a        | au_a tennis_a
    chess_a         | aux_a échecs_a
    cards_a         | aux_a cartes_a
    the_a piano_b   | du_a piano_b
    the_a guitar_b  | de_a la_a guitare_b
""")
COMPANY = ("with", "avec")


def activity(
    rng: Random, who: Phrase, tense: str, mode: int = STATEMENT, dated: int = 50
) -> Phrase:
    """Something one does without an object: work, swim, play the piano."""
    draw = rng.randrange(10)
    if draw < 3 and tense != "can":  # French tells "can" from "knows how to"
        verb, where = "play", rng.choice(GAMES)
        if chance(rng, 30):
            where = join(where, with_preposition(*COMPANY, relative(rng, 10)))
    elif draw < 4 and tense in ("present", "used to"):
        return clause(who, "live", rng.choice(LIVING), tense, mode)
    else:
        rare = tense in ("future", "used to", "past progressive")
        verb = rng.choice(("work", "sleep") if rare else list(ACTIVITIES))
        where = rng.choice(ACTIVITIES[verb])
    when, often = _when(rng, tense, mode, dated)
    return clause(who, verb, join(where, when), tense, mode, often)


_STAYS, _ARRIVALS = (
    [PLACE[place] for place in places.split("|")]
    for places in (
        "at home|at school|at the office|at the hotel|in Paris|in London|in Rome|here",
        "at school|at the station|at the office|at the hotel|in Paris|in London|in Rome",
    )
)


def motion(rng: Random, who: Phrase, tense: str, mode: int = STATEMENT) -> Phrase:
    """Going and staying: the verbs that take être in the passé composé."""
    verbs = ["go", "go", "go", "go", "leave", "stay"]
    if tense in ("past", "going to"):
        verbs += ["arrive"]
    if tense != "future":
        verbs += ["come home", "go out"]
    verb = rng.choice(verbs)
    when, often = _when(rng, tense, mode)
    if tense == "present" and verb in ("leave", "come home") and mode in (STATEMENT, QUESTION):
        when, often = rng.choice(TIMES["habit"]), EMPTY
    where = EMPTY
    if verb == "go" and tense in ("past", "future", "going to") and chance(rng, 30):
        where = rng.choice(TRAVELS)
        when = rng.choice(TIMES["far " + PERIODS[tense]])
    elif verb == "go":
        where = rng.choice(GOALS)
        if chance(rng, 25):
            where = join(where, with_preposition(*COMPANY, relative(rng, 10)))
    elif verb in ("arrive", "stay"):
        if "two days ago" in when.marks and verb == "stay":
            when = EMPTY
        where = rng.choice(_ARRIVALS if verb == "arrive" else _STAYS)
    elif when is often is EMPTY and tense in PERIODS:
        when = rng.choice(TIMES[PERIODS[tense]])
    return clause(who, verb, join(where, when), tense, mode, often)


def action(rng: Random, who: Phrase, tense: str, mode: int = STATEMENT) -> Phrase:
    """Any of the three, in any tense."""
    draw = rng.randrange(10)
    kind = transitive if draw < 6 else activity if draw < 8 else motion
    return kind(rng, who, tense, mode)


_ANYBODY = [a for a in lexicon.adjectives.values() if "person" in a.kinds]
# Things that one calls something: "the soup is cold", "my car is dirty".
_DESCRIBED = [
    noun
    for name_, noun in lexicon.nouns.items()
    if lexicon.predicative[name_] and noun.kinds.isdisjoint(("person", "kin"))
]


def graded(rng: Random, adjective: lexicon.Adjective, who: Phrase, percent: int = 30) -> Phrase:
    """The adjective after "be", agreeing with ``who``: tired, very tired."""
    english = french = ""
    if adjective.en not in lexicon.ABSOLUTE and chance(rng, percent):
        english, french = "very", "très"
        if "person" not in adjective.kinds and chance(rng, 50):
            english, french = "too", "trop"
    return rule(
        "{very}_d {adjective}_a",
        "{DEGREE}_d {ADJECTIVE}_a",
        (adjective.en,),
        very=english,
        DEGREE=french,
        adjective=adjective.en,
        ADJECTIVE=adjective.agreed(who.feminine, who.plural),
    )


SINGULAR = ("mass", "building", "room", "outdoors", "town")
TEMPORARY = frozenset(
    "tired sick busy ready calm late angry sad happy "
    "open closed broken cold hot dirty empty".split()
)


def described(rng: Random) -> Phrase:
    """A thing or an animal that has qualities worth telling."""
    noun = rng.choice(_DESCRIBED)
    owned = not noun.kinds.isdisjoint(_OWNED)
    many = noun.kinds.isdisjoint(SINGULAR) and chance(rng, 25)
    many = many or "pair" in noun.kinds
    if owned and chance(rng, 25):
        return possessed(name(rng.choice(NAMES)), noun_phrase(rng, noun, "the", many))
    kinds = ("the", "this", "my", "your", "her") if owned else ("the", "this")
    return noun_phrase(rng, noun, rng.choice(kinds), many)


def quality(rng: Random, who: Phrase, passing: bool = False) -> Phrase:
    """An adjective that suits the subject; if ``passing``, one that may change by tomorrow."""
    head = next((mark for mark in sorted(who.marks) if mark in lexicon.nouns), None)
    options = lexicon.predicative[head] if head else _ANYBODY
    allowed = [a for a in options if a.en not in {"French", "Italian"} | who.marks]
    if passing:
        allowed = [a for a in allowed if a.en in TEMPORARY]
    return graded(rng, rng.choice(allowed), who) if allowed else EMPTY
