"""Constructions of one clause around a verb: tenses, negations, modals, pronouns, quantities."""

from __future__ import annotations

from random import Random

from . import lexicon
from .adverbials import LIVING, TIMES, fixed
from .clauses import ANYMORE, NEGATION, NEVER, STATEMENT, clause
from .constructions import (
    ACTIVITIES,
    GAMES,
    action,
    activity,
    construction,
    motion,
    object_of,
    state,
    transitive,
)
from .phrases import (
    DATIVE,
    EMPTY,
    GENERIC,
    NAMES,
    NUMBERS,
    OBJECT_PRONOUNS,
    PRONOUNS,
    chance,
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


@construction
def present_habit(rng: Random) -> Phrase:
    return state(action(rng, subject(rng), "present"))


@construction
def present_progressive(rng: Random) -> Phrase:
    return state(rng.choice((transitive, activity))(rng, subject(rng), "progressive"))


@construction
def past_event(rng: Random) -> Phrase:
    return state(transitive(rng, subject(rng), "past"))


@construction
def past_motion(rng: Random) -> Phrase:
    return state(motion(rng, subject(rng), "past"))


@construction
def future(rng: Random) -> Phrase:
    return state(action(rng, subject(rng), "future", NEGATION if chance(rng, 25) else STATEMENT))


@construction
def going_to(rng: Random) -> Phrase:
    return state(action(rng, subject(rng), "going to", NEGATION if chance(rng, 15) else STATEMENT))


@construction
def used_to(rng: Random) -> Phrase:
    return state(rng.choice((transitive, activity))(rng, subject(rng), "used to"))


@construction
def negation(rng: Random) -> Phrase:
    tense = rng.choice(("present", "progressive", "past", "past"))
    kind = activity if tense == "progressive" else action
    return state(kind(rng, subject(rng), tense, NEGATION))


@construction
def never_and_anymore(rng: Random) -> Phrase:
    mode = rng.choice((NEVER, ANYMORE))
    return state(rng.choice((transitive, activity))(rng, subject(rng), "present", mode))


@construction
def modal(rng: Random) -> Phrase:
    tense = rng.choice(("can", "must", "want to"))
    return state(action(rng, subject(rng), tense, NEGATION if chance(rng, 30) else STATEMENT))


@construction
def just_and_already(rng: Random) -> Phrase:
    """I've just eaten, I've already seen this movie, I haven't read this book yet."""
    kind = rng.choice(("just", "already", "yet"))
    verbs = "eat drink buy sell read write see wash visit call help make repair take".split()
    who, verb = subject(rng), rng.choice(verbs)
    what = object_of(rng, verb, who, negated=kind == "yet")
    if kind == "just":
        return state(clause(who, verb, what, "just"))
    adverb = rule("already_a", "déjà_a") if kind == "already" else rule("yet_a", "encore_a")
    if kind == "already":
        return state(clause(who, verb, what, "perfect", adverb=adverb))
    what = join(what, adverb._replace(fr=()))
    return state(clause(who, verb, what, "perfect", NEGATION, adverb=adverb._replace(en=())))


_EARLY = fixed("""
    early_a                     | tôt_a
    late_a                      | tard_a
    at_a six_b o'clock_c        | à_a six_b heures_c
    at_a seven_b o'clock_c      | à_a sept_b heures_c
    at_a eight_b o'clock_c      | à_a huit_b heures_c
    at_a nine_b o'clock_c       | à_a neuf_b heures_c
    at_a ten_b o'clock_c        | à_a dix_b heures_c
""")
_ROUTINE = ("get up", "wake up", "go to bed")


@construction
def reflexive(rng: Random) -> Phrase:
    """Verbs that are reflexive in French: I get up early, je me lève tôt."""
    verb = rng.choice(_ROUTINE)
    tense = rng.choice(("present", "present", "past", "going to", "must", "want to"))
    mode = NEGATION if chance(rng, 20) else STATEMENT
    hour = rng.choice(_EARLY[:2] + (_EARLY[4:] if verb == "go to bed" else _EARLY[2:5]))
    if tense in ("present", "past", "going to") and chance(rng, 40):
        period = {"present": "habit", "past": "past"}.get(tense, "future")
        days = "every day|on Mondays|on Sundays|yesterday|on Monday|on Sunday|tomorrow".split("|")
        hour = join(hour, rng.choice([day for day in TIMES[period] if min(day.marks) in days]))
    return state(clause(subject(rng), verb, hour, tense, mode))


@construction
def likes(rng: Random) -> Phrase:
    """Tastes: I like apples, she loves swimming, Paul prefers tea to coffee."""
    who, mode = subject(rng), NEGATION if chance(rng, 25) else STATEMENT
    draw = rng.randrange(4)
    if draw == 0:
        one, other = rng.sample(lexicon.objects["prefer"], 2)
        if one.mass != other.mass or ("drink" in one.kinds) != ("drink" in other.kinds):
            return likes(rng)
        dear = noun_phrase(rng, one, "all", plural=not one.mass)
        less = with_preposition("to", "à", noun_phrase(rng, other, "all", plural=not other.mass))
        return state(clause(who, "prefer", join(dear, less)))
    verb = rng.choice(("like", "love")) if mode == STATEMENT else "like"
    if draw == 1:
        doing = rng.choice(("swim", "dance", "cook", "walk", "run", "work"))
        what = gerund(doing, rng.choice(ACTIVITIES[doing]))
    elif draw == 2:
        what = gerund("play", rng.choice(GAMES))
    else:
        noun = rng.choice(lexicon.objects[verb])
        what = noun_phrase(rng, noun, "all", not noun.mass, 30, GENERIC)
    return state(clause(who, verb, what, "present", mode))


def gerund(verb: str, where: Phrase) -> Phrase:
    """swimming in the sea, nager dans la mer"""
    entry = lexicon.verbs[verb]
    return rule(
        "{ing}_i {O}", "{INF}_i {O}", (verb,), ing=entry.ing, INF=entry.fr.infinitive, O=where
    )


@construction
def wants_and_has(rng: Random) -> Phrase:
    """States: having, knowing, wanting."""
    who, verb = subject(rng), rng.choice(("have", "have", "know", "want"))
    mode = NEGATION if chance(rng, 35) else STATEMENT
    noun = rng.choice(lexicon.objects[verb])
    if verb == "know":
        what = object_of(rng, verb, who, negated=mode == NEGATION)
        return state(clause(who, verb, what, mode=mode))
    kin = "kin" in noun.kinds
    if mode == NEGATION:
        what = noun_phrase(rng, noun, "no", kin, 0 if kin else 40)
    else:
        what = thing(rng, noun, ("a",), kin or "pet" in noun.kinds, 0 if kin else 60)
    return state(clause(who, verb, what, mode=mode))


@construction
def polite_wish(rng: Random) -> Phrase:
    """I'd like some water, please."""
    who = PRONOUNS[rng.choice(("I", "we"))]
    noun = rng.choice([n for n in lexicon.objects["want"] if n.kinds.isdisjoint(("gift",))])
    what = thing(rng, noun, ("a",), "food" in noun.kinds, 30)
    please = rule(",_c please_p", ",_c s'_p il_p te_p plaît_p") if chance(rng, 60) else EMPTY
    form = {"I": "voudrais", "we": "voudrions"}[who.en[0][0]]
    templates = ("{S} would_v like_v {O} {P}", "{S} {V}_v {O} {P}")
    return state(rule(*templates, ("want",), S=who, V=form, O=what, P=please))


_PERSONAL = "know see help call wait-for look-for".split()


@construction
def object_pronoun(rng: Random) -> Phrase:
    """I know her, je la connais; they saw us, ils nous ont vus."""
    who, verb = subject(rng), rng.choice(_PERSONAL).replace("-", " ")
    others = [p for p in OBJECT_PRONOUNS.values() if p.person == 3 or p.person != who.person]
    whom = rng.choice(others)
    tenses = ["past", "past", "going to", "want to", "can", "future"]
    if verb in ("know", "see"):
        tense = "present" if verb == "know" else rng.choice(("past", "can", "going to"))
    else:
        tense = rng.choice(tenses)
    mode = NEGATION if chance(rng, 30) else STATEMENT
    if tense == "future" and verb not in ("see", "help", "call"):
        tense = "past"
    when = EMPTY
    if tense in ("past", "going to", "future"):
        when = maybe(rng, TIMES["past" if tense == "past" else "future"], 40)
    return state(clause(who, verb, when, tense, mode, pronoun=whom))


@construction
def giving(rng: Random) -> Phrase:
    """Two objects: he gave a book to his sister, il m'a donné un livre."""
    who, verb = subject(rng), rng.choice(("give", "show", "send", "write", "read"))
    kinds = {"write": ("letter", "story"), "read": ("story", "letter")}.get(verb)
    noun = rng.choice(lexicon.nouns_of(*kinds) if kinds else lexicon.objects[verb])
    tense = rng.choice(("past", "past", "going to", "want to"))
    mode = NEGATION if chance(rng, 20) else STATEMENT
    determiners = ("no",) if mode == NEGATION else ("a", "a", "this")
    if "room" in noun.kinds:
        determiners = ("the",)
    what = thing(rng, noun, determiners, "room" not in noun.kinds)
    when = EMPTY
    if tense != "want to":
        when = maybe(rng, TIMES["past" if tense == "past" else "future"], 30)
    if chance(rng, 50):
        allowed = {1: "you him her them", 2: "me him her us them", 3: "me you him her us them"}
        whom = DATIVE[rng.choice(allowed[who.person].split())]
        return state(clause(who, verb, join(what, when), tense, mode, pronoun=whom))
    receiver = name(rng.choice(NAMES)) if chance(rng, 40) else relative(rng, owners=(who.own, "my"))
    to = with_preposition("to", "à", receiver)
    return state(clause(who, verb, join(what, to, when), tense, mode))


@construction
def quantity(rng: Random) -> Phrase:
    """a lot of, too many, too much, enough"""
    who, verb = subject(rng), rng.choice(("eat", "drink", "buy", "have", "read"))
    tense = rng.choice(("past", "present")) if verb != "read" else "past"
    nouns = lexicon.objects[verb]
    if verb in ("buy", "have"):
        nouns = lexicon.nouns_of("food", "gift")
        tense = "present" if verb == "have" else "past"
    much = rng.choice(("a lot of", "too many", "enough"))
    what = noun_phrase(rng, rng.choice(nouns), much)
    when = maybe(rng, TIMES["past"], 40) if tense == "past" else EMPTY
    return state(clause(who, verb, join(what, when), tense))


_YEARS = ("two", "three", "four", "five", "six", "ten")


@construction
def for_ten_years(rng: Random) -> Phrase:
    """I've lived here for ten years, j'habite ici depuis dix ans."""
    who, verb = subject(rng), rng.choice(("live", "live", "work", "play"))
    where = rng.choice({"live": LIVING, "play": GAMES}.get(verb) or ACTIVITIES["work"][1:5])
    unit = rng.choice((("years", "ans"), ("months", "mois"), ("weeks", "semaines")))
    number = rng.choice(_YEARS)
    time = rule(
        "for_f {n}_n {y}_y",
        "depuis_f {N}_n {Y}_y",
        ("since",),
        n=number,
        N=NUMBERS[number],
        y=unit[0],
        Y=unit[1],
    )
    return state(clause(who, verb, join(where, time), "since"))
