"""The verb and its tense: one table of synchronous templates, and `clause`, which fills it.

Slots: S subject, D adverb beside the verb, C object pronoun, O all that follows the verb; and the
verb forms, English in lower case, French in upper case (R is a French reflexive pronoun).
Labels: v the verb, a its auxiliary, n the negation, q the question.
"""

from __future__ import annotations

from functools import cache

from . import lexicon
from .phrases import REFLEXIVE
from .rules import EMPTY, Phrase, rule

# tense: (English statement, negation, question), (French statement, negation, question)
_PRESENT_FR = (
    "{S} {R}_v {C} {PRES}_v {D} {O}",
    "{S} ne_n {R}_v {C} {PRES}_v pas_n {D} {O}",
    "est-ce_q que_q {S} {R}_v {C} {PRES}_v {D} {O}",
)
TENSES = {
    "present": (
        (
            "{S} {D} {pres}_v {C} {O}",
            "{S} {do}_n not_n {D} {base}_v {C} {O}",
            "{do}_q {S} {D} {base}_v {C} {O}",
            "{S} never_n {pres}_v {C} {O}",
            "{S} {do}_n not_n {base}_v {C} {O} anymore_n",
        ),
        (
            *_PRESENT_FR,
            "{S} ne_n {R}_v {C} {PRES}_v jamais_n {O}",
            "{S} ne_n {R}_v {C} {PRES}_v plus_n {O}",
        ),
    ),
    "progressive": (
        (
            "{S} {be}_v {D} {ing}_v {C} {O}",
            "{S} {be}_vn not_n {D} {ing}_v {C} {O}",
            "{be}_vq {S} {D} {ing}_v {C} {O}",
        ),
        _PRESENT_FR,
    ),
    "past": (
        (
            "{S} {D} {past}_va {C} {O}",
            "{S} did_na not_n {D} {base}_v {C} {O}",
            "did_qa {S} {D} {base}_v {C} {O}",
        ),
        (
            "{S} {R}_v {C} {AUX}_a {D} {PP}_v {O}",
            "{S} ne_n {R}_v {C} {AUX}_a pas_n {D} {PP}_v {O}",
            "est-ce_q que_q {S} {R}_v {C} {AUX}_a {D} {PP}_v {O}",
        ),
    ),
    "future": (
        (
            "{S} will_v {D} {base}_v {C} {O}",
            "{S} will_vn not_n {D} {base}_v {C} {O}",
            "will_vq {S} {D} {base}_v {C} {O}",
        ),
        (
            "{S} {R}_v {C} {FUT}_v {D} {O}",
            "{S} ne_n {R}_v {C} {FUT}_v pas_n {D} {O}",
            "est-ce_q que_q {S} {R}_v {C} {FUT}_v {D} {O}",
        ),
    ),
    "going to": (
        (
            "{S} {be}_a going_a to_a {D} {base}_v {C} {O}",
            "{S} {be}_an not_n going_a to_a {D} {base}_v {C} {O}",
            "{be}_aq {S} going_a to_a {D} {base}_v {C} {O}",
        ),
        (
            "{S} {GO}_a {R}_v {C} {INF}_v {D} {O}",
            "{S} ne_n {GO}_a pas_n {R}_v {C} {INF}_v {D} {O}",
            "est-ce_q que_q {S} {GO}_a {R}_v {C} {INF}_v {D} {O}",
        ),
    ),
    "used to": (
        (
            "{S} used_v to_v {D} {base}_v {C} {O}",
            "{S} did_vn not_n use_v to_v {D} {base}_v {C} {O}",
            "did_vq {S} use_v to_v {D} {base}_v {C} {O}",
        ),
        (
            "{S} {R}_v {C} {IMP}_v {D} {O}",
            "{S} ne_n {R}_v {C} {IMP}_v pas_n {D} {O}",
            "est-ce_q que_q {S} {R}_v {C} {IMP}_v {D} {O}",
        ),
    ),
    "past progressive": (
        (
            "{S} {was}_v {D} {ing}_v {C} {O}",
            "{S} {was}_vn not_n {D} {ing}_v {C} {O}",
            "{was}_vq {S} {D} {ing}_v {C} {O}",
        ),
    ),
    "perfect": (
        (
            "{S} {have}_a {D} {pp}_v {C} {O}",
            "{S} {have}_an not_n {D} {pp}_v {C} {O}",
            "{have}_aq {S} {D} {pp}_v {C} {O}",
        ),
    ),
    "just": (
        ("{S} {have}_a just_a {pp}_v {C} {O}",),
        ("{S} {COME}_a de_a {R}_v {C} {INF}_v {O}",),
    ),
    "since": (
        ("{S} {have}_v {pp}_v {C} {O}",),
        ("{S} {R}_v {C} {PRES}_v {O}",),
    ),
    "can": (
        (
            "{S} can_m {D} {base}_v {C} {O}",
            "{S} can_mn not_n {D} {base}_v {C} {O}",
            "can_mq {S} {D} {base}_v {C} {O}",
        ),
        (
            "{S} {CAN}_m {R}_v {C} {INF}_v {D} {O}",
            "{S} ne_n {CAN}_m pas_n {R}_v {C} {INF}_v {D} {O}",
            "est-ce_q que_q {S} {CAN}_m {R}_v {C} {INF}_v {D} {O}",
        ),
    ),
    "must": (
        (
            "{S} must_m {D} {base}_v {C} {O}",
            "{S} must_mn not_n {D} {base}_v {C} {O}",
            "must_mq {S} {D} {base}_v {C} {O}",
        ),
        (
            "{S} {MUST}_m {R}_v {C} {INF}_v {D} {O}",
            "{S} ne_n {MUST}_m pas_n {R}_v {C} {INF}_v {D} {O}",
            "est-ce_q que_q {S} {MUST}_m {R}_v {C} {INF}_v {D} {O}",
        ),
    ),
    "want to": (
        (
            "{S} {wants}_m to_m {D} {base}_v {C} {O}",
            "{S} {do}_n not_n want_m to_m {D} {base}_v {C} {O}",
            "{do}_q {S} want_m to_m {D} {base}_v {C} {O}",
        ),
        (
            "{S} {WANT}_m {R}_v {C} {INF}_v {D} {O}",
            "{S} ne_n {WANT}_m pas_n {R}_v {C} {INF}_v {D} {O}",
            "est-ce_q que_q {S} {WANT}_m {R}_v {C} {INF}_v {D} {O}",
        ),
    ),
}
TENSES["past progressive"] += (TENSES["used to"][1],)
TENSES["perfect"] += (TENSES["past"][1],)
STATEMENT, NEGATION, QUESTION, NEVER, ANYMORE = range(5)

# "be" needs no "do", and its past is an imparfait.
_BE = {
    "present": (
        ("{S} {be}_v {D} {O}", "{S} {be}_vn not_n {D} {O}", "{be}_vq {S} {D} {O}"),
        TENSES["present"][1],
    ),
    "past": (
        ("{S} {was}_v {D} {O}", "{S} {was}_vn not_n {D} {O}", "{was}_vq {S} {D} {O}"),
        TENSES["used to"][1],
    ),
    "future": TENSES["future"],
}


@cache
def _forms(english: str, name: str, person: int, plural: bool, feminine: bool) -> dict[str, str]:
    """Every verb slot for a subject: the English verb, and the French side of the verb ``name``."""
    verb, french = lexicon.verbs[english], lexicon.verbs[name].fr
    agreement = Phrase(person=person, plural=plural)
    he = person == 3 and not plural
    i = person == 1 and not plural
    index = agreement.french_person
    of = lexicon.verbs
    auxiliary = of["be" if french.etre else "have"].fr
    return {
        "base": verb.base,
        "pres": verb.third if he else verb.base,
        "past": verb.past,
        "pp": verb.participle,
        "ing": verb.ing,
        "do": "does" if he else "do",
        "be": "is" if he else "am" if i else "are",
        "was": "was" if he or i else "were",
        "have": "has" if he else "have+",
        "wants": "wants" if he else "want",
        "R": REFLEXIVE[index] if french.reflexive else "",
        "PRES": french.present[index],
        "FUT": french.future[index],
        "IMP": french.imperfect[index],
        "INF": french.infinitive,
        "AUX": auxiliary.present[index],
        "PP": french.agreed(feminine, plural) if french.etre else french.participle,
        "GO": of["go"].fr.present[index],
        "COME": of["come"].fr.present[index],
        "CAN": of["can"].fr.present[index],
        "MUST": of["must"].fr.present[index],
        "WANT": of["want"].fr.present[index],
    }


def clause(
    who: Phrase,
    verb: str,
    rest: Phrase = EMPTY,
    tense: str = "present",
    mode: int = STATEMENT,
    adverb: Phrase = EMPTY,
    pronoun: Phrase = EMPTY,
    fronted: Phrase = EMPTY,
) -> Phrase:
    """A clause without its full stop.

    ``pronoun`` is an object: after the verb in English, before it in French. A French participle
    with avoir agrees with an object before it, the pronoun (je l'ai vue) or one that the caller
    puts at the front (quels livres est-ce que tu as lus ?).
    """
    entry = lexicon.verbs[verb]
    forms = _forms(verb, verb, *who[3:6])
    before = fronted if pronoun is EMPTY else pronoun
    if before is not EMPTY and not entry.fr.etre:
        forms = {**forms, "PP": entry.fr.agreed(before.feminine, before.plural)}
    english, french = TENSES[tense]
    marks = (verb, tense)
    return rule(
        english[mode], french[mode], marks, like=who, S=who, D=adverb, C=pronoun, O=rest, **forms
    )


def be(
    who: Phrase,
    rest: Phrase,
    tense: str = "present",
    mode: int = STATEMENT,
    adverb: Phrase = EMPTY,
    french: str = "be",
) -> Phrase:
    """A clause with English "be"; ``french="have"`` says it with avoir (I'm hungry, j'ai faim)."""
    forms = _forms("be", french, *who[3:6])
    english, templates = _BE[tense]
    marks = ("be", "was" if tense == "past" else tense)
    return rule(
        english[mode], templates[mode], marks, like=who, S=who, D=adverb, C=EMPTY, O=rest, **forms
    )
