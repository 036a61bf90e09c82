"""The register of constructions, and the predicates that several of them share.

A construction is a function of a random generator that returns a finished sentence as a `Phrase`.
Those of one clause stand in ``statements.py``, questions in ``questions.py``, and sentences of
several clauses in ``sentences.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from . import lexicon
from .clauses import ANYMORE, NEVER, QUESTION, STATEMENT, clause
from .phrases import (
    EMPTY,
    FREQUENCY,
    GOALS,
    LIVING,
    NAMES,
    PLACES,
    TIMES,
    TRAVELS,
    chance,
    fixed,
    join,
    maybe,
    name,
    noun_phrase,
    relative,
    subject,
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
_INSTANT = STATIVE | frozenset("see find lose forget break meet understand".split())
_TO_SOMEONE = ("give", "show")  # these need a receiver
TRANSITIVE = [
    verb
    for verb, nouns in lexicon.objects.items()
    if nouns and verb not in STATIVE and verb not in _TO_SOMEONE
]
LASTING = [verb for verb in TRANSITIVE if verb not in _INSTANT]
HABITUAL = "eat drink buy read write take drive wear watch draw visit help call sing wash clean".split()
HABITUAL += ["listen to"]
# Few verbs have a simple future or an imperfect here, so that each form is seen often enough.
FUTURE = "buy sell take eat read visit help call write see".split()
PAST_LASTING = "read write draw wash clean prepare repair watch".split() + ["look for", "wait for"]
IMPERFECT = "eat drink read write draw sing wear watch".split()
# Verbs of which one cannot well have many objects at a time.
_SINGLE = frozenset("wear drive use watch prepare learn take".split())
_MANY = ("food", "text", "gift", "clothes", "dish", "animal", "container", "opening", "small-thing")
_OWNED = ("clothes", "small-thing", "device", "vehicle", "pet", "bedroom", "instrument")
_KNOWN = ("opening", "room", "outdoors", "store", "museum", "town", "house")


def verbs_for(tense: str) -> list[str]:
    """The transitive verbs that make sense in a tense."""
    if tense == "progressive":
        return LASTING
    if tense == "past progressive":
        return PAST_LASTING
    return {"present": HABITUAL, "future": FUTURE, "used to": IMPERFECT}.get(tense, TRANSITIVE)


def object_of(
    rng: Random, verb: str, who: Phrase, negated: bool = False, habit: bool = False
) -> Phrase:
    """Something or someone that the verb can be done to, by this subject."""
    noun = rng.choice(lexicon.objects[verb])
    if "kin" in noun.kinds:
        return name(rng.choice(NAMES)) if chance(rng, 40) else relative(rng, 10)
    if "person" in noun.kinds:
        return noun_phrase(rng, noun, rng.choice(("the", "this")), chance(rng, 25), 30)
    kinds = ("the", "the", "this")
    if noun.kinds.isdisjoint(_KNOWN) or verb in ("draw", "sell", "buy"):
        indefinite = ("bare" if habit else "") + " no" * negated
        kinds = (indefinite.strip() or "a",) * (4 if habit else 2) + (() if habit else kinds)
    if not noun.kinds.isdisjoint(_OWNED) and verb not in ("buy", "find", "draw"):
        kinds = (kinds[0],) + (who.own,) * 2
    many = verb not in _SINGLE and not noun.kinds.isdisjoint(_MANY)
    return thing(rng, noun, kinds, many)


def transitive(
    rng: Random, who: Phrase, tense: str, mode: int = STATEMENT, dated: int = 40
) -> Phrase:
    """Subject, verb and object, with a time in ``dated`` percent of the cases."""
    verb = rng.choice(verbs_for(tense))
    habit = tense in ("present", "used to")
    what = object_of(rng, verb, who, mode not in (STATEMENT, QUESTION), habit)
    when, often = _when(rng, tense, mode, dated)
    return clause(who, verb, join(what, when), tense, mode, often)


def _when(rng: Random, tense: str, mode: int, dated: int = 50) -> tuple[Phrase, Phrase]:
    """A time, or an adverb of frequency: the present tense of an action wants one of the two."""
    if tense == "present":
        if mode in (NEVER, ANYMORE):
            return maybe(rng, TIMES["habit"], 30 if mode == NEVER else 0), EMPTY
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
    "cook": "at home|in the kitchen|at the restaurant",
}
_BY_NAME = {min(place.marks): place for place in PLACES}
ACTIVITIES = {
    verb: [_BY_NAME[place] for place in places.split("|")] for verb, places in _SITES.items()
}
GAMES = fixed("""
    football_a      | au_a football_a
    tennis_a        | au_a tennis_a
    chess_a         | aux_a échecs_a
    cards_a         | aux_a cartes_a
    the_a piano_b   | du_a piano_b
    the_a guitar_b  | de_a la_a guitare_b
    the_a violin_b  | du_a violon_b
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
        verb = rng.choice(list(ACTIVITIES))
        where = rng.choice(ACTIVITIES[verb])
    when, often = _when(rng, tense, mode, dated)
    return clause(who, verb, join(where, when), tense, mode, often)


_ARRIVALS = [
    _BY_NAME[place]
    for place in "at school|at the station|at the market|at the office|at the hotel|in Paris|"
    "at the restaurant|in London|in Rome".split("|")
]


def motion(rng: Random, who: Phrase, tense: str, mode: int = STATEMENT) -> Phrase:
    """Going and staying: the verbs that take être in the passé composé."""
    verb = rng.choice(("go", "go", "go", "go", "leave", "come home", "go out", "stay", "arrive"))
    if tense == "present" and verb == "arrive":
        verb = "go"
    when, often = _when(rng, tense, mode)
    where = EMPTY
    if verb == "go" and tense in ("past", "future", "going to") and chance(rng, 30):
        where = rng.choice(TRAVELS)
        when = rng.choice(TIMES["far " + PERIODS[tense]])
    elif verb == "go":
        where = rng.choice(GOALS)
        if chance(rng, 25):
            where = join(where, with_preposition(*COMPANY, relative(rng, 10)))
    elif verb == "arrive":
        where = rng.choice(_ARRIVALS)
    elif verb == "stay":
        where = rng.choice((*_ARRIVALS, _BY_NAME["at home"], _BY_NAME["here"]))
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
    noun for name_, noun in lexicon.nouns.items()
    if lexicon.predicative[name_] and noun.kinds.isdisjoint(("person", "kin"))
]


def graded(rng: Random, adjective: lexicon.Adjective, who: Phrase, percent: int = 30) -> Phrase:
    """The adjective after "be", agreeing with ``who``: tired, very tired, too tired."""
    very = too = ""
    if adjective.en not in lexicon.ABSOLUTE and chance(rng, percent):
        very, too = rng.choice((("very", "très"), ("too", "trop"), ("so", "si")))
    return rule(
        "{very}_d {a}_a",
        "{too}_d {b}_a",
        (adjective.en,),
        very=very,
        too=too,
        a=adjective.en,
        b=adjective.agreed(who.feminine, who.plural),
    )


def predicate_of(rng: Random) -> tuple[Phrase, Phrase, str]:
    """A subject, an adjective that suits it, and a tense of "be"."""
    tense = rng.choice(("present", "present", "past", "future"))
    if chance(rng, 50):
        who = subject(rng)
        temporary = [a for a in _ANYBODY if a.position == "pred" and a.en not in ("tall", "poor")]
        adjective = rng.choice(temporary if tense == "future" else _ANYBODY)
        return who, graded(rng, adjective, who), tense
    noun = rng.choice(_DESCRIBED)
    kinds = ("the", "this") if noun.kinds.isdisjoint(_OWNED) else ("the", "this", "my", "your", "her")
    plural = "pair" in noun.kinds or (not noun.mass and chance(rng, 25))
    who = noun_phrase(rng, noun, rng.choice(kinds), plural)
    adjectives = [a for a in lexicon.predicative[noun.en[0]] if a.en not in ("French", "Italian")]
    return who, graded(rng, rng.choice(adjectives), who), tense if tense != "future" else "present"
