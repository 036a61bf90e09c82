"""Commands, suggestions and the short things that people say."""

from __future__ import annotations

from random import Random

from . import lexicon
from .adverbials import GOALS, TIMES, fixed
from .constructions import (
    ACTIVITIES,
    GAMES,
    construction,
    exclaim,
    object_of,
    state,
)
from .phrases import (
    EMPTY,
    NAMES,
    PRONOUNS,
    chance,
    maybe,
    name,
)
from .rules import Phrase, rule

_COMMANDED = (
    "eat drink buy read write open close wash take use learn listen-to look-for wait-for "
    "help call repair"
).split()
_PLEASE = rule(",_c please_p", ",_c s'_p il_p te_p plaît_p")


def _order(rng: Random, negated: bool) -> tuple[str, Phrase]:
    """A verb and what follows it in a command to one friend."""
    draw = rng.randrange(10)
    if draw < 7:
        verb = rng.choice(_COMMANDED).replace("-", " ")
        manner = "" if verb in ("eat", "drink", "buy", "write") else "order"
        return verb, object_of(rng, verb, PRONOUNS["you"], manner, negated)
    if draw < 8:
        return "go", rng.choice(GOALS)
    if draw < 9:
        return "play", rng.choice(GAMES)
    verb = rng.choice(("work", "run", "walk", "sleep", "dance"))
    return verb, rng.choice(ACTIVITIES[verb])


@construction
def command(rng: Random) -> Phrase:
    """Close the door, please. Ferme la porte, s'il te plaît."""
    verb, rest = _order(rng, False)
    entry = lexicon.verbs[verb]
    tail = _PLEASE if chance(rng, 40) else EMPTY
    if tail is EMPTY and chance(rng, 30):
        tail = rule(",_c {N}", ",_c {N}", N=name(rng.choice(NAMES)))
    order = rule(
        "{base}_v {O} {T}",
        "{IMP}_v {O} {T}",
        ("imperative", verb),
        base=entry.base,
        IMP=entry.fr.imperative,
        O=rest,
        T=tail,
    )
    return rng.choice((state, exclaim))(order)


@construction
def prohibition(rng: Random) -> Phrase:
    """Don't open the window! N'ouvre pas la fenêtre !"""
    verb, rest = _order(rng, True)
    entry = lexicon.verbs[verb]
    tail = rule(",_c {N}", ",_c {N}", N=name(rng.choice(NAMES))) if chance(rng, 30) else EMPTY
    order = rule(
        "do_n not_n {base}_v {O} {T}",
        "ne_n {IMP}_v pas_n {O} {T}",
        ("imperative", verb),
        base=entry.base,
        IMP=entry.fr.imperative,
        O=rest,
        T=tail,
    )
    return rng.choice((state, exclaim))(order)


@construction
def suggestion(rng: Random) -> Phrase:
    """Let's go to the beach! Allons à la plage !"""
    verb, rest = _order(rng, False)
    if rest.own == "your" or "your" in [word for word, _ in rest.en]:
        verb, rest = "go", rng.choice(GOALS)
    entry = lexicon.verbs[verb]
    proposal = rule(
        "let_l us_l {base}_v {O} {T}",
        "{nous}_lv {O} {T}",
        ("suggestion", verb),
        base=entry.base,
        nous=entry.fr.present[3],
        O=rest,
        T=maybe(rng, TIMES["future"][:2], 30),
    )
    return rng.choice((state, exclaim))(proposal)


_SAYINGS = fixed("""
    good_a morning_b            | bonjour_ab
    good_a evening_b            | bonsoir_ab
    good_a night_b              | bonne_a nuit_b
    thank_a you_a               | merci_a
    hello_a                     | salut_a
    goodbye_a                   | au_a revoir_a
    see_a you_a tomorrow_b      | à_a demain_b
    see_a you_a soon_b          | à_a bientôt_b
    see_a you_a tonight_b       | à_a ce_b soir_b
    have_a a_a good_b day_c     | bonne_ab journée_c
    have_a a_a good_b trip_c    | bon_ab voyage_c
    good_a luck_b               | bonne_a chance_b
    happy_a birthday_b          | joyeux_a anniversaire_b
    welcome_a                   | bienvenue_a
    of_a course_a               | bien_a sûr_a
    I_a am_b sorry_c            | je_a suis_b désolé_c
    hurry_a                     | dépêche-toi_a
    get_a up_a                  | lève-toi_a
    wake_a up_a                 | réveille-toi_a
    be_a careful_b              | fais_a attention_b
    come_a here_b               | viens_a ici_b
    come_a in_a                 | entre_a
    look_a                      | regarde_a
    wait_a                      | attends_a
""")


@construction
def saying(rng: Random) -> Phrase:
    """Good morning, Emma. Hurry, Paul!"""
    words = rng.choice(_SAYINGS)
    if chance(rng, 70):
        words = rule("{X} ,_c {N}", "{X} ,_c {N}", X=words, N=name(rng.choice(NAMES)))
    return rng.choice((state, exclaim))(words)
