"""Places, times and frequencies, written out in both languages with their labels."""

from __future__ import annotations

from .rules import Phrase, rule


def fixed(table: str) -> list[Phrase]:
    """Phrases written out with their labels, one a line: English | French."""
    rows = (line.split("|") for line in table.strip().splitlines())
    return [rule(en, fr, (_plain(en),)) for en, fr in rows]


def _plain(template: str) -> str:
    return " ".join(item.partition("_")[0] for item in template.split())


PLACES = fixed("""
    at_a home_b             | à_a la_b maison_b
    at_a school_b           | à_a l'_b école_b
    in_a the_b kitchen_c    | dans_a la_b cuisine_c
    in_a the_b garden_c     | dans_a le_b jardin_c
    in_a the_b park_c       | dans_a le_b parc_c
    in_a the_b forest_c     | dans_a la_b forêt_c
    in_a the_b street_c     | dans_a la_b rue_c
    in_a town_b             | en_a ville_b
    at_a the_b station_c    | à_a la_b gare_c
    at_a the_b market_c     | au_ab marché_c
    at_a the_b office_c     | au_ab bureau_c
    at_a the_b hotel_c      | à_a l'_b hôtel_c
    at_a the_b library_c    | à_a la_b bibliothèque_c
    at_a the_b restaurant_c | au_ab restaurant_c
    on_a the_b beach_c      | sur_a la_b plage_c
    in_a the_b sea_c        | dans_a la_b mer_c
    in_a the_b river_c      | dans_a la_b rivière_c
    in_a the_b pool_c       | dans_a la_b piscine_c
    here_a                  | ici_a
    in_a Paris_b            | à_a Paris_b
    in_a London_b           | à_a Londres_b
    in_a Rome_b             | à_a Rome_b
""")
PLACE = {min(place.marks): place for place in PLACES}  # by the English words
LIVING = fixed("""
    here_a                  | ici_a
    in_a Paris_b            | à_a Paris_b
    in_a London_b           | à_a Londres_b
    in_a Rome_b             | à_a Rome_b
    in_a France_b           | en_a France_b
    in_a Italy_b            | en_a Italie_b
    in_a Canada_b           | au_a Canada_b
    in_a Japan_b            | au_a Japon_b
    in_a this_b village_c   | dans_a ce_b village_c
    near_a the_b sea_c      | près_a de_a la_b mer_c
    near_a the_b river_c    | près_a de_a la_b rivière_c
    near_a the_b station_c  | près_a de_a la_b gare_c
    in_a the_b mountains_c  | à_a la_b montagne_c
""")
GOALS = fixed("""
    to_a school_b           | à_a l'_b école_b
    to_a the_b market_c     | au_ab marché_c
    to_a the_b beach_c      | à_a la_b plage_c
    to_a the_b station_c    | à_a la_b gare_c
    to_a the_b museum_c     | au_ab musée_c
    to_a the_b library_c    | à_a la_b bibliothèque_c
    to_a the_b bakery_c     | à_a la_b boulangerie_c
    to_a the_b hospital_c   | à_a l'_b hôpital_c
    to_a the_b park_c       | au_ab parc_c
    to_a the_b restaurant_c | au_ab restaurant_c
    to_a the_b office_c     | au_ab bureau_c
""")
TRAVELS = fixed("""
    to_a Paris_b            | à_a Paris_b
    to_a London_b           | à_a Londres_b
    to_a Rome_b             | à_a Rome_b
    to_a Italy_b            | en_a Italie_b
    to_a Canada_b           | au_a Canada_b
    to_a Japan_b            | au_a Japon_b
""")
ORIGINS = fixed("""
    from_a Paris_b          | de_a Paris_b
    from_a London_b         | de_a Londres_b
    from_a Rome_b           | de_a Rome_b
    from_a Italy_b          | d'_a Italie_b
    from_a France_b         | de_a France_b
    from_a Canada_b         | du_a Canada_b
    from_a Japan_b          | du_a Japon_b
    from_a the_b village_c  | du_ab village_c
""")
TIMES = {
    "habit": fixed("""
        every_a day_b           | tous_a les_b jours_b
        every_a morning_b       | tous_a les_b matins_b
        every_a week_b          | toutes_a les_b semaines_b
        in_a the_b evening_c    | le_ab soir_c
        in_a summer_b           | en_a été_b
        in_a winter_b           | en_a hiver_b
        on_a Mondays_b          | le_a lundi_b
        on_a Saturdays_b        | le_a samedi_b
        on_a Sundays_b          | le_a dimanche_b
    """),
    "now": fixed("""
        now_a                   | maintenant_a
        today_a                 | aujourd'hui_a
        this_a morning_b        | ce_a matin_b
    """),
    "past": fixed("""
        yesterday_a             | hier_a
        this_a morning_b        | ce_a matin_b
        last_a night_b          | hier_a soir_b
        last_a week_b           | la_a semaine_b dernière_a
        two_a days_b ago_c      | il_c y_c a_c deux_a jours_b
        on_a Monday_b           | lundi_ab
        on_a Saturday_b         | samedi_ab
        on_a Sunday_b           | dimanche_ab
    """),
    "future": fixed("""
        tomorrow_a              | demain_a
        tonight_a               | ce_a soir_a
        next_a week_b           | la_a semaine_b prochaine_a
        on_a Monday_b           | lundi_ab
        on_a Saturday_b         | samedi_ab
        on_a Sunday_b           | dimanche_ab
        in_a two_b days_c       | dans_a deux_b jours_c
    """),
    "far past": fixed("""
        last_a month_b          | le_a mois_b dernier_a
        last_a year_b           | l'_a année_b dernière_a
        last_a summer_b         | l'_a été_b dernier_a
    """),
    "far future": fixed("""
        next_a month_b          | le_a mois_b prochain_a
        next_a year_b           | l'_a année_b prochaine_a
        next_a summer_b         | l'_a été_b prochain_a
    """),
}
FREQUENCY = fixed("""
    always_a                    | toujours_a
    often_a                     | souvent_a
    sometimes_a                 | parfois_a
    rarely_a                    | rarement_a
""")
