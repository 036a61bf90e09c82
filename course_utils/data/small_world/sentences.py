"""Sentences of two clauses: and, but, because, when, if, who, that, while."""

from __future__ import annotations

from random import Random

from . import lexicon
from .clauses import NEGATION, STATEMENT, be, clause
from .constructions import (
    ACTIVITIES,
    GAMES,
    action,
    activity,
    construction,
    graded,
    motion,
    object_of,
    predicate_of,
    state,
    transitive,
)
from .phrases import (
    EMPTY,
    GOALS,
    NAMES,
    PLACES,
    PRONOUNS,
    TIMES,
    chance,
    echo,
    fixed,
    join,
    name,
    noun_phrase,
    pronoun,
    relative,
    someone,
    subject,
    thing,
)
from .rules import Phrase, rule
from .statements import AVOIR, falling, feeling, weather


def _two(rng: Random) -> tuple[Phrase, Phrase]:
    """Two different subjects; "they" and the like need someone to point at, so names go first."""
    first = name(rng.choice(NAMES)) if chance(rng, 50) else relative(rng)
    second = name(rng.choice(NAMES)) if chance(rng, 50) else relative(rng)
    if first.en[-1][0] == second.en[-1][0]:
        return _two(rng)
    if chance(rng, 40):
        first = PRONOUNS[rng.choice(("I", "you", "we"))]
    return first, second


@construction
def and_clauses(rng: Random) -> Phrase:
    """Two people do two things: Emma is cooking and I'm reading a book."""
    first, second = _two(rng)
    tense = rng.choice(("progressive", "past", "going to"))
    one, two = _plain(rng, first, tense), _plain(rng, second, tense)
    return state(rule("{A} and_c {B}", "{A} et_c {B}", A=one, B=two))


def _plain(rng: Random, who: Phrase, tense: str, mode: int = STATEMENT) -> Phrase:
    """An action without a date: verb and object, or verb and place."""
    if chance(rng, 60):
        return transitive(rng, who, tense, mode, dated=0)
    return activity(rng, who, tense, mode, dated=0)


@construction
def while_clauses(rng: Random) -> Phrase:
    """Paul is sleeping while Emma is working."""
    first, second = _two(rng)
    tense = rng.choice(("progressive", "past progressive"))
    one, two = _plain(rng, first, tense), _plain(rng, second, tense)
    return state(rule("{A} while_c {B}", "{A} pendant_c que_c {B}", A=one, B=two))


@construction
def but_clauses(rng: Random) -> Phrase:
    """Paul likes tea, but Emma prefers coffee; he eats fish, but he doesn't eat meat."""
    first, second = _two(rng)
    if chance(rng, 50):
        verb = rng.choice(("like", "love"))
        one, other = rng.sample([n for n in lexicon.objects[verb] if "animal" not in n.kinds], 2)
        left = clause(first, verb, noun_phrase(rng, one, "all", not one.mass, 20))
        liked = noun_phrase(rng, other, "all", not other.mass, 20)
        if "song" in other.kinds or "movie" in other.kinds or chance(rng, 40):
            right = clause(second, "like", liked, mode=NEGATION)
        else:
            right = clause(second, "prefer", liked)
    else:
        verb = rng.choice(("eat", "drink", "read"))
        one, other = rng.sample(lexicon.objects[verb], 2)
        left = clause(first, verb, noun_phrase(rng, one, "bare", not one.mass))
        no = noun_phrase(rng, other, "bare no", not other.mass)
        right = clause(echo(first), verb, no, mode=NEGATION)
    return state(rule("{A} ,_k but_c {B}", "{A} ,_k mais_c {B}", A=left, B=right))


# What one does, with which things, and why: adjectives or feelings.
_CAUSES = (
    ("eat", "bread cheese sandwich soup cake apple egg rice", "hungry"),
    ("drink", "water juice milk tea", "thirsty"),
    ("drink", "coffee", "tired sleepy"),
    ("wear", "coat hat", "cold"),
    ("open", "window door", "hot"),
    ("close", "window door", "cold"),
    ("go to bed", "", "tired sick sleepy"),
    ("stay", "at home", "tired sick busy"),
    ("leave", "", "late busy angry"),
    ("run", "in the street", "late afraid"),
    ("call", "doctor", "sick"),
    ("dance", "in the kitchen|in the street", "happy"),
    ("sing", "song", "happy"),
    ("come home", "", "tired sick hungry"),
)
_BY_NAME = {min(place.marks): place for place in PLACES}


def reason(rng: Random, who: Phrase, word: str, tense: str) -> Phrase:
    """she's tired, elle est fatiguée; she's hungry, elle a faim"""
    if word in AVOIR:
        return be(who, feeling(word, "very" if chance(rng, 20) else ""), tense, french="have")
    return be(who, graded(rng, lexicon.adjectives[word], who, 25), tense)


@construction
def because_clauses(rng: Random) -> Phrase:
    """I'm drinking water because I'm thirsty."""
    who = subject(rng)
    verb, what, causes = rng.choice(_CAUSES)
    tense = rng.choice(("progressive", "past", "past", "going to", "want to"))
    if what.startswith(("at ", "in ")):
        rest = _BY_NAME[rng.choice(what.split("|"))]
    elif what:
        noun = lexicon.nouns[rng.choice(what.split())]
        own = who.own if verb == "wear" else "a"
        kind = "the" if verb in ("open", "close", "call") else own
        rest = noun_phrase(rng, noun, kind, False, 20)
    else:
        rest = EMPTY
    effect = clause(who, verb, rest, tense)
    cause = reason(rng, echo(who), rng.choice(causes.split()), "past" if tense == "past" else "present")
    return state(rule("{A} because_b {B}", "{A} parce_b que_b {B}", ("because",), A=effect, B=cause))


def _condition(rng: Random) -> Phrase:
    """The weather as a condition: it rains, it's cold."""
    draw = rng.randrange(5)
    if draw < 2:
        return falling(("rain", "snow")[draw], "present")
    return weather(("cold", "hot", "cold")[draw - 2], "is", rng.choice(("", "very", "too")))


@construction
def if_clauses(rng: Random) -> Phrase:
    """If it rains, we'll stay at home. S'il pleut, nous resterons à la maison."""
    condition = _condition(rng)
    tense = rng.choice(("future", "going to"))
    mode = NEGATION if chance(rng, 40) else STATEMENT
    who = subject(rng)
    if chance(rng, 50):
        verb = rng.choice(("stay", "go", "go"))
        rest = _BY_NAME["at home"] if verb == "stay" else rng.choice(GOALS)
        main = clause(who, verb, rest, tense, mode)
    else:
        main = activity(rng, who, tense, mode, dated=0)
    return state(rule("if_i {A} ,_k {B}", "si_i {A} ,_k {B}", ("if",), A=condition, B=main))


@construction
def when_clauses(rng: Random) -> Phrase:
    """When it's hot, we go to the beach; when I was young, I used to play football."""
    who = subject(rng)
    if chance(rng, 50):
        youth = "little" if chance(rng, 40) else "young"
        young = be(who, graded(rng, lexicon.adjectives["young"], who, 0), "past")
        if youth == "little":
            schooled = {"a": "a_d child_n"} if not who.plural else {"a": "children_n"}
            enfant = "enfants" if who.plural else "enfant"
            young = be(who, rule(schooled["a"], enfant + "_n", ("child",)), "past")
        main = _plain(rng, echo(who), "used to")
    else:
        young = _condition(rng)
        main = rng.choice((activity, motion))(rng, who, "present")
    return state(rule("when_i {A} ,_k {B}", "quand_i {A} ,_k {B}", ("when",), A=young, B=main))


def _who_clause(rng: Random, person: Phrase) -> Phrase:
    """person + who is reading a book / who lives here"""
    link = rule("who_w", "qui_w", like=person)
    tense = rng.choice(("progressive", "past", "past"))
    body = _plain(rng, link, tense)
    return rule("{X} {R}", "{X} {R}", like=person, X=person, R=body)


@construction
def relative_subject(rng: Random) -> Phrase:
    """The girl who is reading a book is Emma's sister."""
    noun = rng.choice(lexicon.nouns_of("person"))
    if "friend" in noun.kinds:
        return relative_subject(rng)
    person = noun_phrase(rng, noun, "the", chance(rng, 30), 10)
    who = _who_clause(rng, person)
    if chance(rng, 50):
        adjectives = [a for a in lexicon.predicative["student"] if a.en not in ("good", "new")]
        return state(be(who, graded(rng, rng.choice(adjectives), who)))
    kin = rng.choice([n for n in lexicon.nouns_of("kin") if n.feminine == who.feminine])
    if who.plural and "elder" in kin.kinds:
        kin = lexicon.nouns["sister" if who.feminine else "brother"]
    return state(be(who, noun_phrase(rng, kin, rng.choice(("my", "your", "her", "our")), who.plural)))


@construction
def relative_object(rng: Random) -> Phrase:
    """I know the man who sold this car."""
    noun = rng.choice([n for n in lexicon.nouns_of("person") if "friend" not in n.kinds])
    person = noun_phrase(rng, noun, "the", chance(rng, 25), 20)
    whom = _who_clause(rng, person)
    verb, tense = rng.choice(
        (("know", "present"), ("see", "past"), ("meet", "past"), ("help", "past"), ("call", "past"))
    )
    who = subject(rng)
    return state(clause(who, verb, whom, tense))


@construction
def that_clauses(rng: Random) -> Phrase:
    """I think that Emma is sick. Je pense qu'Emma est malade."""
    who = pronoun(rng) if chance(rng, 60) else someone(rng, 0)
    verb = rng.choice(("think", "say", "hope"))
    about = someone(rng)
    if verb == "hope":
        said = action(rng, about, "future")
    elif chance(rng, 40):
        about, what, tense = predicate_of(rng)
        said = be(about, what, tense)
    else:
        said = action(rng, about, rng.choice(("past", "progressive", "want to", "can")))
    rest = rule("that_q {X}", "que_q {X}", X=said)
    return state(clause(who, verb, rest))


# First clause; how the second takes its object up: conjunction, verb, tense, mode; the things.
_FRAMES = (
    ("buy", "past", "but", "use", "present", NEGATION, "bike computer phone"),
    ("buy", "past", "but", "like", "present", NEGATION, "dress hat car guitar lamp shirt chair"),
    ("buy", "past", "and", "like", "present", STATEMENT, "dress hat car guitar lamp shirt chair"),
    ("find", "past", "and", "read", "progressive", STATEMENT, "book letter message newspaper poem"),
    ("lose", "past", "and", "look for", "progressive", STATEMENT, "key bag phone ticket umbrella"),
    ("lose", "past", "and", "find", "can", NEGATION, "key bag phone ticket umbrella watch"),
    ("write", "past", "but", "send", "past", NEGATION, "letter message"),
    ("write", "past", "and", "show", "past", NEGATION, "poem story book"),
    ("wash", "past", "and", "eat", "going to", STATEMENT, "apple carrot pear tomato strawberry"),
    ("break", "past", "and", "repair", "must", STATEMENT, "lamp watch computer phone"),
    ("have", "present", "but", "sell", "want to", STATEMENT, "car bike house piano violin guitar"),
    ("have", "present", "but", "find", "can", NEGATION, "umbrella ticket"),
    ("see", "past", "but", "understand", "past", NEGATION, "movie"),
    ("read", "past", "but", "understand", "past", NEGATION, "book poem story letter"),
    ("buy", "past", "and", "eat", "past", STATEMENT, "cake sandwich apple orange banana"),
    ("forget", "past", "and", "look for", "going to", STATEMENT, "key bag phone dictionary"),
)


@construction
def taken_up(rng: Random) -> Phrase:
    """Paul bought a bike, but he doesn't use it. Paul a acheté un vélo, mais il ne l'utilise pas."""
    who = subject(rng)
    verb, tense, conjunction, again, later, mode, things = rng.choice(_FRAMES)
    noun = lexicon.nouns[rng.choice(things.split())]
    owned = verb in ("lose", "forget", "break")
    plural = not owned and chance(rng, 25) and verb != "have"
    what = noun_phrase(rng, noun, who.own if owned else "a", plural, 30)
    first = clause(who, verb, what, tense)
    it, le = ("them", "les") if plural else ("it", "la" if noun.feminine else "le")
    pronoun_ = rule("{it}_o", "{le}_o", it=it, le=le)
    pronoun_ = pronoun_._replace(feminine=noun.feminine, plural=plural)
    second = clause(echo(who), again, EMPTY, later, mode, pronoun=pronoun_)
    et = {"and": "et", "but": "mais"}[conjunction]
    comma = ",_k" if conjunction == "but" else ""
    return state(
        rule(
            f"{{A}} {comma} {conjunction}_c {{B}}", f"{{A}} {comma} {et}_c {{B}}", A=first, B=second
        )
    )


@construction
def answer(rng: Random) -> Phrase:
    """Yes, I know him. No, I don't like fish."""
    yes = chance(rng, 50)
    mode = STATEMENT if yes else NEGATION
    who = PRONOUNS[rng.choice(("I", "he", "she", "we", "they"))]
    draw = rng.randrange(3)
    if draw == 0:
        noun = rng.choice(lexicon.objects["like"])
        body = clause(who, "like", noun_phrase(rng, noun, "all", not noun.mass, 20), mode=mode)
    elif draw == 1:
        body = reason(rng, who, rng.choice("tired hungry thirsty cold sick busy ready late".split()), "present")
        if not yes:
            return answer(rng)
    else:
        body = _plain(rng, who, rng.choice(("past", "want to", "can")), mode)
    word, mot = ("yes", "oui") if yes else ("no", "non")
    return state(rule("{y}_y ,_k {X}", "{o}_y ,_k {X}", y=word, o=mot, X=body))
