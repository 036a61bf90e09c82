"""Questions: yes/no, where, when, why, how, who, what, which, how many, how old."""

from __future__ import annotations

from random import Random

from . import lexicon
from .adverbials import GOALS, TIMES
from .clauses import QUESTION, be, clause
from .constructions import (
    SINGULAR,
    action,
    activity,
    ask,
    construction,
    described,
    motion,
    object_of,
    quality,
    transitive,
)
from .phrases import (
    EMPTY,
    GENERIC,
    NAMES,
    POSSESSIVES,
    PRONOUNS,
    chance,
    join,
    maybe,
    name,
    noun_phrase,
    possessed,
    someone,
)
from .rules import Phrase, rule


def asked(rng: Random) -> Phrase:
    """Whom a question is about: hardly ever the one who asks."""
    if chance(rng, 60):
        return PRONOUNS[rng.choice(("you", "you", "he", "she", "they"))]
    return someone(rng)


@construction
def yes_no_question(rng: Random) -> Phrase:
    tense = rng.choice(("present", "progressive", "past", "past", "going to", "can", "want to"))
    kind = activity if tense == "progressive" else action
    return ask(kind(rng, asked(rng), tense, QUESTION))


@construction
def yes_no_be_question(rng: Random) -> Phrase:
    who, tense = rng.choice((asked, described))(rng), rng.choice(("present", "present", "past"))
    what = quality(rng, who, tense == "past")
    if what is EMPTY:
        tense, what = "present", quality(rng, who)
    when = maybe(rng, TIMES["past"], 40) if tense == "past" else EMPTY
    return ask(be(who, join(what, when), tense, QUESTION))


@construction
def yes_no_state_question(rng: Random) -> Phrase:
    """Do you like fish? Does she have a car? Do you know my brother?"""
    who, verb = asked(rng), rng.choice(("like", "have", "know", "want"))
    noun = rng.choice(lexicon.objects[verb])
    if verb == "like":
        what = noun_phrase(rng, noun, "all", not noun.mass, 30, GENERIC)
    elif verb == "know":
        what = object_of(rng, verb, who)
    else:
        kin = "kin" in noun.kinds
        what = noun_phrase(rng, noun, "a", False, 0 if kin else 50)
    return ask(clause(who, verb, what, mode=QUESTION))


def _wh(en: str, fr: str, question: Phrase) -> Phrase:
    return ask(rule("{en}_w {Q}", "{fr}_w {Q}", (en,), en=en, fr=fr, Q=question))


_BOUGHT = ("buy", "find", "lose", "see", "meet")


@construction
def where_question(rng: Random) -> Phrase:
    draw, who = rng.randrange(4), asked(rng)
    if draw == 0:
        verb = rng.choice(_BOUGHT)
        what = object_of(rng, verb, who, "order")
        return _wh("where", "où", clause(who, verb, what, "past", QUESTION))
    if draw == 1:
        tense = rng.choice(("progressive", "past", "want to", "going to"))
        when = maybe(rng, TIMES["past"], 40) if tense == "past" else EMPTY
        return _wh("where", "où", clause(who, "go", when, tense, QUESTION))
    if draw == 2:
        verb = rng.choice(("work", "live", "sleep", "swim"))
        tense = rng.choice(("present", "used to") if verb == "live" else ("present", "past"))
        return _wh("where", "où", clause(who, verb, EMPTY, tense, QUESTION))
    when = rng.choice(TIMES["past"])
    return _wh("where", "où", be(who, when, "past", QUESTION))


@construction
def where_is_question(rng: Random) -> Phrase:
    """Where are my keys? Où sont mes clés ?"""
    draw = rng.randrange(10)
    if draw < 2:
        noun = lexicon.nouns[rng.choice("kitchen office museum hotel library school".split())]
        who = noun_phrase(rng, noun)
    else:
        noun = rng.choice(lexicon.nouns_of("small-thing", "pet", "clothes", "kin"))
        plural = "pair" in noun.kinds or ("elder" not in noun.kinds and chance(rng, 25))
        if draw < 5 and "kin" not in noun.kinds:
            who = possessed(name(rng.choice(NAMES)), noun_phrase(rng, noun, "the", plural))
        else:
            who = noun_phrase(rng, noun, rng.choice(list(POSSESSIVES)), plural, 20)
    is_, est = ("are", "sont") if who.plural else ("is", "est")
    return ask(rule("where_w {is}_b {S}", "où_w {est}_b {S}", S=who, est=est, **{"is": is_}))


@construction
def when_question(rng: Random) -> Phrase:
    who, tense = asked(rng), rng.choice(("past", "going to", "present"))
    if tense == "present" or chance(rng, 40):
        verb = rng.choice(("leave", "come home", "get up", "go to bed"))
        body = clause(who, verb, EMPTY, tense, QUESTION)
    elif chance(rng, 40):
        body = clause(who, "go", rng.choice(GOALS), tense, QUESTION)
    else:
        verb = rng.choice(("buy", "sell", "visit", "see", "read", "call"))
        what = object_of(rng, verb, who, "order")
        body = clause(who, verb, what, tense, QUESTION)
    return _wh("when", "quand", body)


@construction
def why_question(rng: Random) -> Phrase:
    who, tense = asked(rng), rng.choice(("progressive", "past", "past", "want to"))
    if chance(rng, 30):
        what = quality(rng, who, passing=True)
        return _wh("why", "pourquoi", be(who, what, rng.choice(("present", "past")), QUESTION))
    if tense == "progressive":
        body = rng.choice((transitive, activity))(rng, who, tense, QUESTION)
    else:
        body = rng.choice((transitive, motion))(rng, who, tense, QUESTION)
    return _wh("why", "pourquoi", body)


@construction
def who_question(rng: Random) -> Phrase:
    """Who broke this glass? Qui a cassé ce verre ?"""
    who = rule("who_s", "qui_s")._replace(own="his")
    tense = rng.choice(("progressive", "past", "past", "can", "want to", "going to"))
    return ask(action(rng, who, tense))


@construction
def what_question(rng: Random) -> Phrase:
    """What are you eating? Qu'est-ce que tu manges ?"""
    who, tense = asked(rng), rng.choice(("progressive", "past", "past", "want to", "going to"))
    verbs = "eat drink buy read write wash repair look-for do sell".split()
    if tense == "past":
        verbs += "see lose find forget break".split()
    if tense == "want to":
        verbs = "eat drink buy read do do".split()
    period = {"progressive": "now", "past": "past", "going to": "future"}.get(tense)
    when = maybe(rng, TIMES[period], 50) if period else EMPTY
    verb = rng.choice(verbs).replace("-", " ")
    return _wh("what", "que", clause(who, verb, when, tense, QUESTION))


@construction
def which_question(rng: Random) -> Phrase:
    """Which books did you read? Quels livres est-ce que tu as lus ?"""
    who, tense = asked(rng), rng.choice(("past", "past", "want to", "going to"))
    verbs = ("read", "buy", "eat", "see")
    if tense != "past":
        verbs += ("sell", "visit", "take", "wear", "repair")
    verb = rng.choice(verbs)
    nouns = [n for n in lexicon.objects[verb] if n.kinds.isdisjoint(("mass", "person", "kin"))]
    noun = rng.choice(nouns)
    many = noun.kinds.isdisjoint(SINGULAR) and chance(rng, 30)
    what = noun_phrase(rng, noun, "which", many or "pair" in noun.kinds)
    question = clause(who, verb, EMPTY, tense, QUESTION, fronted=what)
    return ask(rule("{X} {Q}", "{X} {Q}", X=what, Q=question))


@construction
def how_many_question(rng: Random) -> Phrase:
    """How many apples did you eat? Combien de pommes est-ce que tu as mangées ?"""
    who, verb = asked(rng), rng.choice(("eat", "drink", "buy", "buy", "have", "read", "see"))
    tense = "present" if verb == "have" else rng.choice(("past", "past", "want to", "going to"))
    nouns = lexicon.objects[verb]
    if verb == "see":
        nouns = lexicon.nouns_of("animal", "movie")
    noun = rng.choice([n for n in nouns if n.kinds.isdisjoint(("garden", "pair"))])
    what = noun_phrase(rng, noun, "how many", True)
    question = clause(who, verb, EMPTY, tense, QUESTION, fronted=what)
    return ask(rule("{X} {Q}", "{X} {Q}", X=what, Q=question))


@construction
def how_old_question(rng: Random) -> Phrase:
    """How old is your sister? Quel âge a ta sœur ?"""
    who = someone(rng)
    a, is_ = ("ont", "are") if who.plural else ("a", "is")
    return ask(rule("how_q old_q {is}_v {S}", "quel_q âge_q {a}_v {S}", S=who, a=a, **{"is": is_}))


@construction
def is_this_question(rng: Random) -> Phrase:
    """Is this your umbrella? Est-ce que c'est ton parapluie ?"""
    noun = rng.choice(lexicon.nouns_of("small-thing", "vehicle", "clothes", "device", "pet", "kin"))
    plural = "pair" in noun.kinds or ("elder" not in noun.kinds and chance(rng, 25))
    owner = rng.choice(("your", "your", "his", "her", "their", "our"))
    what = noun_phrase(rng, noun, owner, plural, 30)
    if plural:
        return ask(rule("are_bq these_t {X}", "est-ce_q que_q ce_t sont_b {X}", X=what))
    return ask(rule("is_bq this_t {X}", "est-ce_q que_q c'_t est_b {X}", X=what))
