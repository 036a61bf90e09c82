"""Constructions of one clause: tenses, negations, modals, pronouns, there is, weather, age."""

from __future__ import annotations

from random import Random

from . import lexicon
from .clauses import ANYMORE, NEGATION, NEVER, STATEMENT, be, clause
from .constructions import (
    ACTIVITIES,
    GAMES,
    TRANSITIVE,
    action,
    activity,
    construction,
    exclaim,
    motion,
    object_of,
    predicate_of,
    state,
    transitive,
)
from .phrases import (
    DATIVE,
    EMPTY,
    LIVING,
    NAMES,
    NUMBERS,
    OBJECT_PRONOUNS,
    ORIGINS,
    PLACES,
    PRONOUNS,
    QUANTITIES,
    TIMES,
    chance,
    fixed,
    join,
    maybe,
    name,
    noun_phrase,
    pronoun,
    relative,
    someone,
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
    who, verb = subject(rng), rng.choice(TRANSITIVE)
    kind = rng.choice(("just", "already", "yet"))
    what = object_of(rng, verb, who, kind == "yet")
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
    at_a ten_b o'clock_c        | à_a dix_b heures_c
    at_a noon_b                 | à_a midi_b
""")
_ROUTINE = ("get up", "wake up", "go to bed", "get dressed", "rest", "hurry")


@construction
def reflexive(rng: Random) -> Phrase:
    """Verbs that are reflexive in French: I get up early, je me lève tôt."""
    verb = rng.choice(_ROUTINE)
    tense = rng.choice(("present", "present", "past", "going to", "must", "want to"))
    mode = NEGATION if chance(rng, 20) else STATEMENT
    hour = rng.choice(_EARLY) if verb in _ROUTINE[:3] else EMPTY
    if tense in ("present", "past", "going to") and (hour is EMPTY or chance(rng, 40)):
        period = {"present": "habit", "past": "past"}.get(tense, "future")
        if verb in _ROUTINE[:3] and tense != "present":
            day = rng.choice([time for time in TIMES[period] if "o" in min(time.marks)])
        else:
            day = rng.choice(TIMES[period])
        hour = join(hour, day)
    return state(clause(subject(rng), verb, hour, tense, mode))


@construction
def likes(rng: Random) -> Phrase:
    """Tastes: I like apples, she loves swimming, Paul prefers tea to coffee."""
    who, mode = subject(rng), NEGATION if chance(rng, 25) else STATEMENT
    draw = rng.randrange(4)
    if draw == 0:
        one, other = rng.sample([n for n in lexicon.objects["prefer"]], 2)
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
        what = noun_phrase(rng, noun, "all", not noun.mass, 30)
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
        return state(clause(who, verb, object_of(rng, verb, who, mode == NEGATION), mode=mode))
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
    what = thing(rng, noun, ("a",), True, 30)
    please = rule(",_c please_p", ",_c s'_p il_p te_p plaît_p") if chance(rng, 60) else EMPTY
    form = {"I": "voudrais", "we": "voudrions"}[who.en[0][0]]
    wish = rule(
        "{S} would_v like_v {O} {P}", "{S} {V}_v {O} {P}", ("want",), S=who, V=form, O=what, P=please
    )
    return state(wish)


_PERSONAL = "know see help call invite wait~for look~for listen~to meet".replace("~", "-").split()


@construction
def object_pronoun(rng: Random) -> Phrase:
    """I know her, je la connais; they saw us, ils nous ont vus."""
    who, verb = subject(rng), rng.choice(_PERSONAL).replace("-", " ")
    whom = rng.choice([p for p in OBJECT_PRONOUNS.values() if p.person != who.person or p.person == 3])
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
    kinds = {"write": ("letter", "poem"), "read": ("story", "poem", "letter")}.get(verb)
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
def being(rng: Random) -> Phrase:
    """Subject, be, adjective: in three tenses, affirmed and denied."""
    who, what, tense = predicate_of(rng)
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
    "lawyer": "avocat avocate",
    "farmer": "agriculteur agricultrice",
    "musician": "musicien musicienne",
}


@construction
def profession(rng: Random) -> Phrase:
    """She's a nurse: no article in French, and the job has a gender."""
    who, job = subject(rng), rng.choice(list(_JOBS))
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
    "fifteen": "quinze",
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


_SMALL = lexicon.nouns_of("small-thing", "gift", "crockery", "fruit", "clothes", "text")
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
    "nice": "beau",
    "dark": "nuit",
}


def weather(word: str, tense: str, intensity: str = "") -> Phrase:
    """it's (very) cold, il fait (très) froid; tense: is, was, will be"""
    is_, fait = {"is": ("is", "fait"), "was": ("was", "faisait"), "will": ("will be", "fera")}[tense]
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


_CITIES = [place for place in LIVING if min(place.marks).startswith("in ") and place.en[1][0][0].isupper()]


@construction
def the_weather(rng: Random) -> Phrase:
    tense = rng.choice(("is", "was", "will"))
    where = maybe(rng, _CITIES, 50)
    period = TIMES[{"is": "now", "was": "past", "will": "future"}[tense]]
    if tense == "is":
        period = period[:2]
    if chance(rng, 60):
        word = rng.choice(("cold", "hot"))
        body = weather(word, tense, rng.choice(("", "very", "too")))
    else:
        word = rng.choice(("rain", "snow"))
        tense = {"is": "progressive", "was": "past", "will": rng.choice(("future", "going to"))}[tense]
        body = falling(word, tense)
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
    the_a lesson_b begins_c     | la_a leçon_b commence_c
    the_a lesson_b ends_c       | la_a leçon_b finit_c
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
def quantity(rng: Random) -> Phrase:
    """a lot of, too many, too much, enough"""
    who, verb = subject(rng), rng.choice(("eat", "drink", "buy", "have", "read"))
    tense = rng.choice(("past", "present")) if verb != "read" else "past"
    nouns = lexicon.objects[verb] if verb not in ("buy", "have") else lexicon.nouns_of("food", "gift")
    much = rng.choice(("a lot of", "too many", "enough"))
    if verb == "have" or (verb == "buy" and tense == "present"):
        verb, tense = "have", "present"
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


@construction
def this_is(rng: Random) -> Phrase:
    """This is my car, c'est ma voiture; these are Emma's shoes."""
    noun = rng.choice(lexicon.nouns_of("small-thing", "vehicle", "clothes", "device", "kin", "pet"))
    plural = "pair" in noun.kinds or ("elder" not in noun.kinds and chance(rng, 25))
    what = owned(rng, noun, plural)
    if chance(rng, 25):
        templates = ("{t}_t {is}_bn not_n {X}", "ce_t ne_n {est}_b pas_n {X}")
    else:
        templates = ("{t}_t {is}_b {X}", "{c}_t {est}_b {X}")
    forms = {"t": "these", "is": "are", "c": "ce", "est": "sont"}
    if not plural:
        forms = {"t": "this", "is": "is", "c": "c'", "est": "est"}
    return state(rule(*templates, X=what, **forms))


def owned(rng: Random, noun: lexicon.Noun, plural: bool = False) -> Phrase:
    """my car, Emma's car, my sister's car"""
    if chance(rng, 40) or "kin" in noun.kinds:
        owner = rng.choice(("my", "your", "his", "her", "our", "their"))
        return noun_phrase(rng, noun, owner, plural, 25)
    owner = name(rng.choice(NAMES)) if chance(rng, 60) else relative(rng, 0, ("my", "your", "our"))
    if owner.plural:
        return owned(rng, noun, plural)
    return possessed(owner, noun_phrase(rng, noun, "the", plural))


def possessed(owner: Phrase, what: Phrase) -> Phrase:
    """Emma's car, la voiture d'Emma: the genitive links to the article and to "de"."""
    of = with_preposition("of", "de", owner)
    (_, article), *english = what.en
    genitive = Phrase(en=(("'s", article + of.en[0][1]),))
    what = what._replace(en=tuple(english))
    return rule("{X} {s} {Y}", "{Y} {of}", like=what, X=owner, s=genitive, Y=what, of=of)


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
    return exclaim(noun_phrase(rng, noun, "what", chance(rng, 20) or "pair" in noun.kinds, 100))
