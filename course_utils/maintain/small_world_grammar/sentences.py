"""Sentences of two clauses: and, but, because, when, if, who, that, while."""

from __future__ import annotations

from random import Random

from . import lexicon
from .adverbials import FREQUENCY, GOALS, PLACE
from .being import AVOIR, falling, feeling, nice_weather, weather
from .clauses import NEGATION, STATEMENT, be, clause
from .constructions import (
    ACTIVITIES,
    GAMES,
    action,
    activity,
    construction,
    described,
    graded,
    quality,
    state,
    transitive,
)
from .phrases import (
    EMPTY,
    GENERIC,
    NAMES,
    PRONOUNS,
    chance,
    echo,
    name,
    noun_phrase,
    pronoun,
    relative,
    someone,
    subject,
)
from .rules import Phrase, fresh, rule


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
    return state(rule("{A} and_c {B}", "{A} et_c {B}", A=one, B=fresh(two)))


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
    return state(rule("{A} while_c {B}", "{A} pendant_c que_c {B}", A=one, B=fresh(two)))


@construction
def but_clauses(rng: Random) -> Phrase:
    """Paul likes tea, but Emma prefers coffee; he eats fish, but he doesn't eat meat."""
    first, second = _two(rng)
    kinds = rng.choice((("food",), ("drink",), ("food",), ("text",)))
    one, other = rng.sample(lexicon.nouns_of(*kinds), 2)
    if kinds != ("text",) and chance(rng, 60):
        verb = rng.choice(("like", "love"))
        left = clause(first, verb, noun_phrase(rng, one, "all", not one.mass))
        liked = noun_phrase(rng, other, "all", not other.mass)
        if chance(rng, 50):
            right = clause(second, "like", liked, mode=NEGATION)
        else:
            right = clause(second, "prefer", liked)
    else:
        verb = {"food": "eat", "drink": "drink", "text": "read"}[kinds[0]]
        left = clause(first, verb, noun_phrase(rng, one, "bare a", not one.mass, 20, GENERIC))
        no = noun_phrase(rng, other, "bare no", not other.mass)
        right = clause(echo(first), verb, no, mode=NEGATION)
    return state(rule("{A} ,_k but_c {B}", "{A} ,_k mais_c {B}", A=left, B=fresh(right)))


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


def reason(rng: Random, who: Phrase, word: str, tense: str, mode: int = STATEMENT) -> Phrase:
    """she's tired, elle est fatiguée; she's hungry, elle a faim"""
    graded_ = 25 if mode == STATEMENT else 0
    if word in AVOIR:
        what = feeling(word, "very" if chance(rng, graded_) else "")
        return be(who, what, tense, mode, french="have")
    return be(who, graded(rng, lexicon.adjectives[word], who, graded_), tense, mode)


@construction
def because_clauses(rng: Random) -> Phrase:
    """I'm drinking water because I'm thirsty."""
    who = subject(rng)
    verb, what, causes = rng.choice(_CAUSES)
    tense = rng.choice(("progressive", "past", "past", "going to", "want to"))
    if what.startswith(("at ", "in ")):
        rest = PLACE[rng.choice(what.split("|"))]
    elif what:
        noun = lexicon.nouns[rng.choice(what.split())]
        own = who.own if verb == "wear" else "a"
        kind = "the" if verb in ("open", "close", "call") else own
        rest = noun_phrase(rng, noun, kind, False, 20)
    else:
        rest = EMPTY
    effect = clause(who, verb, rest, tense)
    now = "past" if tense == "past" else "present"
    cause = reason(rng, echo(who), rng.choice(causes.split()), now)
    templates = ("{A} because_b {B}", "{A} parce_b que_b {B}")
    return state(rule(*templates, ("because",), A=effect, B=fresh(cause)))


_AT_HOME = PLACE["at home"]
_INDOORS = [
    *((verb, _AT_HOME) for verb in ("stay", "sleep", "work", "cook")),
    *(("play", game) for game in GAMES[2:5]),
    *(("go", goal) for goal in GOALS if goal.en[-1][0] in ("museum", "library")),
]
_OUTDOORS = [
    *(("go", goal) for goal in GOALS if goal.en[-1][0] in ("beach", "park")),
    *(("play", game) for game in GAMES[:2]),
    *((verb, place) for verb in ("walk", "swim", "run") for place in ACTIVITIES[verb]),
]
_COMMON = ("stay", "sleep", "work", "cook", "play", "go")  # these have a simple future


def _weather_and_plan(rng: Random) -> tuple[Phrase, str, Phrase]:
    """A kind of weather, and the verb and place of what one then does."""
    if chance(rng, 50):
        cold = weather("cold", "is", rng.choice(("", "very", "too")))
        skies = (falling("rain", "present"), falling("snow", "present"), cold)
        return (rng.choice(skies), *rng.choice(_INDOORS))
    skies = (nice_weather("is"), weather("hot", "is", rng.choice(("", "very"))))
    return (rng.choice(skies), *rng.choice(_OUTDOORS))


@construction
def if_clauses(rng: Random) -> Phrase:
    """If it rains, we'll stay at home. S'il pleut, nous resterons à la maison."""
    sky, verb, where = _weather_and_plan(rng)
    tense = rng.choice(("future", "going to", "can", "want to"))
    if (verb == "play" and tense == "can") or (verb not in _COMMON and tense == "future"):
        tense = "going to"
    main = clause(subject(rng), verb, where, tense)
    return state(rule("if_i {A} ,_k {B}", "si_i {A} ,_k {B}", ("if",), A=sky, B=fresh(main)))


@construction
def when_clauses(rng: Random) -> Phrase:
    """When it's hot, we go to the beach; when I was young, I used to play football."""
    who = subject(rng)
    if chance(rng, 50):
        if chance(rng, 50):
            what = graded(rng, lexicon.adjectives["young"], who, 0)
        elif who.plural:
            what = rule("children_n", "enfants_n", ("child",))
        else:
            what = rule("a_n child_n", "enfant_n", ("child",))
        first, main = be(who, what, "past"), _plain(rng, echo(who), "used to")
    else:
        first, verb, where = _weather_and_plan(rng)
        main = clause(who, verb, where, adverb=rng.choice(FREQUENCY[:2]))
    return state(
        rule("when_i {A} ,_k {B}", "quand_i {A} ,_k {B}", ("when",), A=first, B=fresh(main))
    )


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
        return state(be(who, quality(rng, person)))
    kin = rng.choice(("sister", "daughter") if who.feminine else ("brother", "son", "friend"))
    owner = rng.choice(("my", "your", "her", "our"))
    return state(be(who, noun_phrase(rng, lexicon.nouns[kin], owner, who.plural)))


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
        about = rng.choice((someone, described))(rng)
        said = be(about, quality(rng, about))
    else:
        tense = rng.choice(("past", "progressive", "want to", "can"))
        said = (_plain if tense == "progressive" else action)(rng, about, tense)
    rest = rule("that_q {X}", "que_q {X}", X=fresh(said))
    return state(clause(who, verb, rest))


# First clause; how the second takes its object up: conjunction, verb, tense, mode; the things.
_FRAMES = (
    ("buy", "past", "but", "use", "present", NEGATION, "bike computer phone"),
    ("buy", "past", "but", "like", "present", NEGATION, "dress hat car guitar lamp shirt chair"),
    ("buy", "past", "and", "like", "present", STATEMENT, "dress hat car guitar lamp shirt chair"),
    ("find", "past", "and", "read", "progressive", STATEMENT, "book letter newspaper"),
    ("lose", "past", "and", "look for", "progressive", STATEMENT, "key bag phone ticket umbrella"),
    ("lose", "past", "and", "find", "can", NEGATION, "key bag phone ticket umbrella watch"),
    ("write", "past", "but", "send", "past", NEGATION, "letter"),
    ("wash", "past", "and", "eat", "going to", STATEMENT, "apple tomato strawberry"),
    ("break", "past", "and", "repair", "must", STATEMENT, "lamp watch computer phone"),
    ("have", "present", "but", "sell", "want to", STATEMENT, "car bike house piano guitar"),
    ("have", "present", "but", "find", "can", NEGATION, "umbrella ticket"),
    ("see", "past", "but", "understand", "past", NEGATION, "movie"),
    ("read", "past", "but", "understand", "past", NEGATION, "book story letter"),
    ("buy", "past", "and", "eat", "past", STATEMENT, "cake sandwich apple orange"),
    ("forget", "past", "and", "look for", "going to", STATEMENT, "key bag phone"),
)


@construction
def taken_up(rng: Random) -> Phrase:
    """Paul bought a bike, but he doesn't use it. ... un vélo, mais il ne l'utilise pas."""
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
    comma = rule(",_k", ",_k") if conjunction == "but" else EMPTY
    templates = ("{A} {K} {and}_c {B}", "{A} {K} {et}_c {B}")
    return state(rule(*templates, A=first, K=comma, B=fresh(second), et=et, **{"and": conjunction}))


@construction
def answer(rng: Random) -> Phrase:
    """Yes, I know him. No, I don't like fish."""
    yes = chance(rng, 50)
    mode = STATEMENT if yes else NEGATION
    who = PRONOUNS[rng.choice(("I", "he", "she", "we", "they"))]
    draw = rng.randrange(3)
    if draw == 0:
        noun = rng.choice(lexicon.objects["like"])
        what = noun_phrase(rng, noun, "all", not noun.mass, 20, GENERIC)
        body = clause(who, "like", what, mode=mode)
    elif draw == 1:
        word = rng.choice("tired hungry thirsty cold sick busy ready late".split())
        body = reason(rng, who, word, "present", mode)
    else:
        body = _plain(rng, who, rng.choice(("past", "want to", "can")), mode)
    word, mot = ("yes", "oui") if yes else ("no", "non")
    return state(rule("{y}_y ,_k {X}", "{o}_y ,_k {X}", y=word, o=mot, X=body))
