"""Constructions around "be": qualities, jobs, feelings, ages, places, weather, time, owners."""

from __future__ import annotations

from random import Random

from . import lexicon
from .adverbials import LIVING, ORIGINS, PLACES, TIMES, fixed
from .clauses import NEGATION, STATEMENT, be, clause
from .constructions import (
    SINGULAR,
    construction,
    described,
    exclaim,
    quality,
    state,
)
from .phrases import (
    EMPTY,
    NAMES,
    NUMBERS,
    chance,
    join,
    maybe,
    name,
    noun_phrase,
    possessed,
    someone,
    subject,
    thing,
    with_preposition,
)
from .rules import Phrase, rule


@construction
def being(rng: Random) -> Phrase:
    """Subject, be, adjective: in three tenses, affirmed and denied."""
    who = rng.choice((subject, described))(rng)
    tense = rng.choice(("present", "present", "past", "future"))
    what = quality(rng, who, tense != "present")
    if what is EMPTY:
        tense, what = "present", quality(rng, who)
    mode = NEGATION if chance(rng, 25) else STATEMENT
    when = EMPTY
    if tense == "past":
        when = maybe(rng, TIMES["past"], 50)
    elif tense == "future":
        when = maybe(rng, TIMES["future"], 70)
    return state(be(who, join(what, when), tense, mode))


_JOBS = {  # English -> French for a man, for a woman
    "teacher": "professeur professeure",
    "doctor": "médecin médecin",
    "student": "étudiant étudiante",
    "nurse": "infirmier infirmière",
    "singer": "chanteur chanteuse",
    "baker": "boulanger boulangère",
    "musician": "musicien musicienne",
}


@construction
def profession(rng: Random) -> Phrase:
    """She's a nurse: no article in French, and the job has a gender."""
    who, job = subject(rng), rng.choice(list(_JOBS))
    while who.plural and who.feminine:
        who = subject(rng)
    french = _JOBS[job].split()[who.feminine] + "s" * who.plural
    if who.plural:
        what = rule("{job}_j", "{J}_j", (job,), job=job + "s", J=french)
    else:
        what = rule("a_j {job}_j", "{J}_j", (job,), job=job, J=french)
    tense = rng.choice(("present", "present", "past"))
    return state(be(who, what, tense, NEGATION if chance(rng, 25) else STATEMENT))


@construction
def being_somewhere(rng: Random) -> Phrase:
    who, tense = subject(rng), rng.choice(("present", "past", "past", "future"))
    where = rng.choice([p for p in PLACES if "sea" not in min(p.marks)])
    period = {"present": "now", "past": "past", "future": "future"}[tense]
    mode = NEGATION if chance(rng, 25) else STATEMENT
    return state(be(who, join(where, maybe(rng, TIMES[period], 60)), tense, mode))


@construction
def origin(rng: Random) -> Phrase:
    """I come from Canada: de, du, d'."""
    who, mode = subject(rng), NEGATION if chance(rng, 30) else STATEMENT
    return state(clause(who, "come", rng.choice(ORIGINS), mode=mode))


AVOIR = {  # what one is in English and has in French
    "hungry": "faim",
    "thirsty": "soif",
    "cold": "froid",
    "hot": "chaud",
    "sleepy": "sommeil",
    "afraid": "peur",
    "right": "raison",
    "wrong": "tort",
}


def feeling(word: str, very: str = "") -> Phrase:
    if very:
        return rule("very_d {x}_x", "très_d {X}_x", (word,), x=word, X=AVOIR[word])
    return rule("{x}_x", "{X}_x", (word,), x=word, X=AVOIR[word])


@construction
def feelings(rng: Random) -> Phrase:
    """I'm hungry, j'ai faim; she's afraid of the dog, elle a peur du chien."""
    who, word = subject(rng), rng.choice(list(AVOIR))
    tense = rng.choice(("present", "present", "past"))
    mode = NEGATION if chance(rng, 25) else STATEMENT
    graded = word not in ("right", "wrong") and mode == STATEMENT and chance(rng, 30)
    what = feeling(word, "very" if graded else "")
    if word == "afraid" and chance(rng, 80):
        noun = rng.choice(lexicon.nouns_of("animal"))
        beast = noun_phrase(rng, noun, rng.choice(("the", "this")), chance(rng, 30), 40)
        what = join(feeling(word), with_preposition("of", "de", beast))
    return state(be(who, what, tense, mode, french="have"))


_CHILDREN = "two three four five six seven eight nine ten eleven twelve".split()
_AGES = {
    "twenty": "vingt",
    "thirty": "trente",
    "forty": "quarante",
    "fifty": "cinquante",
    "sixty": "soixante",
    "eighty": "quatre-vingts",
}


@construction
def age(rng: Random) -> Phrase:
    """My sister is ten years old, ma sœur a dix ans."""
    who = subject(rng)
    elder = {"mother", "father", "uncle", "aunt", "man", "woman", "teacher", "doctor", "nurse"}
    ages = {**{n: NUMBERS[n] for n in _CHILDREN[4:]}, **_AGES}
    words = list(ages)
    if who.marks & elder:
        words = words[-5:-1]
    elif who.marks & {"grandmother", "grandfather"}:
        words = words[-2:]
    elif who.marks & {"boy", "girl", "child"}:
        words = words[:7]
    number = rng.choice(words)
    years = rule("{n}_n years_y old_y", "{N}_n ans_y", (number,), n=number, N=ages[number])
    return state(be(who, years, french="have"))


_PREPOSITIONS = (
    ("on", "sur", ("table", "chair", "bed")),
    ("under", "sous", ("table", "chair", "bed")),
    ("in", "dans", ("box", "bag", "kitchen", "bedroom", "office", "garden", "house")),
    ("behind", "derrière", ("door", "house", "school", "church", "hotel", "museum", "store")),
    ("in front of", "devant", ("house", "school", "church", "hotel", "museum", "bakery")),
    ("next to", "à côté de", ("bed", "lamp", "door", "window", "computer", "hotel", "church")),
    ("near", "près de", ("window", "river", "school", "hotel", "museum", "church", "park")),
)
_OUTSIDE = frozenset("house school church hotel museum store bakery river park garden".split())


def spot(rng: Random) -> tuple[Phrase, bool]:
    """Where something lies or stands, and whether that is out of doors."""
    en, fr, nouns = rng.choice(_PREPOSITIONS)
    noun = rng.choice(nouns)
    where = with_preposition(en, fr, noun_phrase(rng, lexicon.nouns[noun]))
    return where, noun in _OUTSIDE


_SMALL = lexicon.nouns_of("small-thing", "gift", "dish", "fruit", "clothes", "letter")
_LARGE = lexicon.nouns_of("vehicle", "pet", "horse", "flower", "bird")


@construction
def there_is(rng: Random) -> Phrase:
    """There are two cats under the table, il y a deux chats sous la table."""
    where, outside = spot(rng)
    noun = rng.choice(_LARGE if outside else _SMALL)
    tense = rng.choice(("is", "is", "was"))
    negated = chance(rng, 25)
    what = thing(rng, noun, ("no",) if negated else ("a",), True, 40)
    is_, a = {"is": ("are" if what.plural else "is", "a")}.get(
        tense, ("were" if what.plural else "was", "avait")
    )
    templates = ("there_b {is}_b {X} {W}", "il_b y_b {a}_b {X} {W}")
    if negated:
        templates = (
            "there_b {is}_bn not_n {X} {W}",
            "il_b ne_n y_b {a}_b pas_n {X} {W}",
        )
    return state(rule(*templates, ("there is",), X=what, W=where, a=a, **{"is": is_}))


_WEATHER = {  # adjective after "it's" -> after "il fait"
    "cold": "froid",
    "hot": "chaud",
}


_SKY = {"is": ("is", "fait"), "was": ("was", "faisait"), "will": ("will be", "fera")}


def nice_weather(tense: str) -> Phrase:
    """the weather is nice, il fait beau"""
    is_, fait = _SKY[tense]
    templates = ("the_i weather_i {is}_f nice_c", "il_i {fait}_f beau_c")
    return rule(*templates, ("weather", "nice"), fait=fait, **{"is": is_})


def weather(word: str, tense: str, intensity: str = "") -> Phrase:
    """it's (very) cold, il fait (très) froid; tense: is, was, will be"""
    is_, fait = _SKY[tense]
    very = {"very": "très", "too": "trop", "": ""}[intensity]
    return rule(
        "it_i {is}_f {very}_d {cold}_c",
        "il_i {fait}_f {V}_d {froid}_c",
        ("weather", word),
        very=intensity,
        V=very,
        cold=word,
        froid=_WEATHER[word],
        fait=fait,
        **{"is": is_},
    )


def falling(word: str, tense: str) -> Phrase:
    """it rains, il pleut: the weather verbs rain and snow"""
    verb = lexicon.verbs[word]
    it = rule("it_s", "il_s")
    return clause(it, verb.name, tense=tense)


_CITIES = [place for place in LIVING if place.en[-1][0].istitle()]


@construction
def the_weather(rng: Random) -> Phrase:
    tense = rng.choice(("is", "was", "will"))
    where = maybe(rng, _CITIES, 50)
    period = TIMES[{"is": "now", "was": "past", "will": "future"}[tense]]
    if tense == "is":
        period = period[:2]
    draw = rng.randrange(10)
    if draw < 5:
        word = rng.choice(("cold", "hot"))
        body = weather(word, tense, rng.choice(("", "very", "too")))
    elif draw < 7:
        body = nice_weather(tense)
    else:
        word = rng.choice(("rain", "snow"))
        later = rng.choice(("future", "going to"))
        body = falling(word, {"is": "progressive", "was": "past", "will": later}[tense])
    return state(join(body, where, maybe(rng, period, 60)))


_MINUTES = (
    ("{n}_n o'clock_h", "{N}_n heures_h"),
    ("half_m past_p {n}_n", "{N}_n heures_p et_m demie_m"),
    ("a_m quarter_m past_p {n}_n", "{N}_n heures_p et_m quart_m"),
    ("a_m quarter_m to_p {n}_n", "{N}_n heures_p moins_m le_m quart_m"),
    ("ten_m past_p {n}_n", "{N}_n heures_p dix_m"),
    ("twenty_m past_p {n}_n", "{N}_n heures_p vingt_m"),
    ("ten_m to_p {n}_n", "{N}_n heures_p moins_m dix_m"),
)
_HOURS = [number for number in NUMBERS if number != "twelve"]


def clock(rng: Random) -> Phrase:
    """A time of day: half past three, trois heures et demie."""
    hour = rng.choice(_HOURS)
    en, fr = rng.choice(_MINUTES)
    return rule(en, fr, (hour, "clock"), n=hour, N=NUMBERS[hour])


_SCHEDULED = fixed("""
    the_a train_b leaves_c      | le_a train_b part_c
    the_a bus_b leaves_c        | le_a bus_b part_c
    the_a plane_b leaves_c      | l'_a avion_b part_c
    the_a train_b arrives_c     | le_a train_b arrive_c
    the_a plane_b arrives_c     | l'_a avion_b arrive_c
    the_a movie_b begins_c      | le_a film_b commence_c
    the_a movie_b ends_c        | le_a film_b finit_c
    the_a store_b opens_c       | le_a magasin_b ouvre_c
    the_a museum_b opens_c      | le_a musée_b ouvre_c
    the_a library_b closes_c    | la_a bibliothèque_b ferme_c
""")


@construction
def time_of_day(rng: Random) -> Phrase:
    """It's half past three; the train leaves at ten o'clock."""
    if chance(rng, 35):
        return state(rule("it_i is_e {T}", "il_i est_e {T}", ("clock",), T=clock(rng)))
    at = rule("at_a {T}", "à_a {T}", T=clock(rng))
    return state(join(rng.choice(_SCHEDULED), at, maybe(rng, TIMES["habit"][-3:], 25)))


@construction
def this_is(rng: Random) -> Phrase:
    """This is my car, c'est ma voiture; these are Emma's shoes."""
    noun = rng.choice(lexicon.nouns_of("small-thing", "vehicle", "clothes", "device", "kin", "pet"))
    plural = "pair" in noun.kinds or ("elder" not in noun.kinds and chance(rng, 25))
    if "kin" in noun.kinds or chance(rng, 30):
        owner = rng.choice(("my", "your", "his", "her", "our", "their"))
        what = noun_phrase(rng, noun, owner, plural, 25)
    else:
        what = possessed(name(rng.choice(NAMES)), noun_phrase(rng, noun, "the", plural, 15))
    if chance(rng, 25):
        templates = ("{t}_t {is}_bn not_n {X}", "ce_t ne_n {est}_b pas_n {X}")
    else:
        templates = ("{t}_t {is}_b {X}", "{c}_t {est}_b {X}")
    forms = {"t": "these", "is": "are", "c": "ce", "est": "sont"}
    if not plural:
        forms = {"t": "this", "is": "is", "c": "c'", "est": "est"}
    return state(rule(*templates, X=what, **forms))


@construction
def belonging(rng: Random) -> Phrase:
    """This bike belongs to Paul, ce vélo appartient à Paul."""
    noun = rng.choice(lexicon.nouns_of("small-thing", "vehicle", "clothes", "device", "house"))
    plural = "pair" in noun.kinds or chance(rng, 25)
    what = noun_phrase(rng, noun, "this", plural, 40)
    owner = name(rng.choice(NAMES)) if chance(rng, 30) else someone(rng)
    to = with_preposition("to", "à", owner)
    return state(clause(what, "belong", to, mode=NEGATION if chance(rng, 20) else STATEMENT))


@construction
def exclamation(rng: Random) -> Phrase:
    """What a beautiful garden! Quel beau jardin !"""
    nouns = [n for n in lexicon.nouns.values() if lexicon.attributive[n.en[0]] and not n.mass]
    noun = rng.choice([n for n in nouns if "kin" not in n.kinds])
    many = "pair" in noun.kinds or (noun.kinds.isdisjoint(SINGULAR) and chance(rng, 20))
    return exclaim(noun_phrase(rng, noun, "what", many, 90, lexicon.ABSOLUTE | {"rich", "clean"}))
