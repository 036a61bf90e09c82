"""The words of the small world, as tables. This is the one place to add a word.

A slash separates forms that the rules of ``morphology.py`` would get wrong.

- NOUNS:      English(/plural)  French(/plural)  gender  kinds. ``mass`` nouns have no plural.
- ADJECTIVES: English(/comparative)  French(/feminine)  position  kinds of nouns that it fits.
              Position: ``pre`` or ``post`` the noun, ``pred`` for use after "be" only.
- VERBS:      English(/past/participle/-ing)  French infinitive  kinds of objects it takes.
- IRREGULAR:  French infinitive: five present forms | past participle | future stem.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import NamedTuple

from . import morphology as m

NOUNS = """
man/men          homme            m  person adult
woman/women      femme            f  person adult
boy              garçon           m  person young
girl             fille            f  person young
child/children   enfant           m  person young
teacher          professeur       m  person adult job
doctor           médecin          m  person adult job
student          étudiant         m  person job
neighbor         voisin           m  person adult
nurse            infirmière       f  person adult job
singer           chanteur         m  person adult job
actress          actrice          f  person adult job
friend           ami              m  person kin
brother          frère            m  kin
sister           sœur             f  kin
son              fils             m  kin
daughter         fille            f  kin
mother           mère             f  kin elder
father           père             m  kin elder
uncle            oncle            m  kin elder
aunt             tante            f  kin elder
grandmother      grand-mère/grands-mères  f  kin elder
grandfather      grand-père/grands-pères  m  kin elder

dog              chien            m  animal pet
cat              chat             m  animal pet
horse            cheval           m  animal
rabbit           lapin            m  animal pet
mouse/mice       souris           f  animal
bird             oiseau           m  animal

apple            pomme            f  food fruit
orange           orange           f  food fruit
tomato/tomatoes  tomate           f  food fruit
strawberry       fraise           f  food fruit
egg              œuf              m  food
cake             gâteau           m  food baked
sandwich         sandwich         m  food
bread            pain             m  food mass
cheese           fromage          m  food mass
meat             viande           f  food mass
rice             riz              m  food mass
soup             soupe            f  food mass warm
chocolate        chocolat         m  food mass
fish/fish        poisson          m  food mass
water            eau              f  drink mass warm
milk             lait             m  drink mass warm
coffee           café             m  drink mass warm
tea              thé              m  drink mass warm
wine             vin              m  drink mass
juice            jus              m  drink mass

book             livre            m  text small-thing
letter           lettre           f  text letter
newspaper        journal          m  text
story            histoire         f  text told
song             chanson          f  song
movie            film             m  movie

car              voiture          f  vehicle
bike             vélo             m  vehicle
bus              bus              m  ride
train            train            m  ride
plane            avion            m  ride
key              clé              f  small-thing
bag              sac              m  container small-thing
box              boîte            f  container
glass            verre            m  container dish crockery
cup              tasse            f  container dish crockery
plate            assiette         f  dish crockery
knife/knives     couteau          m  dish
hat              chapeau          m  clothes
coat             manteau          m  clothes
shirt            chemise          f  clothes
dress            robe             f  clothes
shoe             chaussure        f  clothes pair
phone            téléphone        m  device small-thing
computer         ordinateur       m  device
lamp             lampe            f  device furniture
watch            montre           f  device small-thing
umbrella         parapluie        m  small-thing
gift             cadeau           m  gift
flower           fleur            f  gift
photo            photo            f  gift
ticket           billet           m  small-thing
guitar           guitare          f  instrument
piano            piano            m  instrument
table            table            f  furniture
chair            chaise           f  furniture
bed              lit              m  furniture
door             porte            f  opening
window           fenêtre          f  opening

house            maison           f  building
apartment        appartement      m  building
kitchen          cuisine          f  room
bedroom          chambre          f  room
office           bureau           m  room
garden           jardin           m  outdoors
park             parc             m  outdoors
forest           forêt            f  outdoors
street           rue              f  outdoors
river            rivière          f  outdoors
village          village          m  town
city             ville            f  town
school           école            f  building public
hospital         hôpital          m  building public
hotel            hôtel            m  building public
restaurant       restaurant       m  building public shop
museum           musée            m  building public shop
library          bibliothèque     f  building public shop
bakery           boulangerie      f  building shop
store            magasin          m  building shop
church           église           f  building
"""

# Kinds that many adjectives fit, under one name.
GROUPS = {
    "COLORED": "vehicle clothes container crockery furniture opening",
    "SIZED": "vehicle container furniture building room outdoors town opening dog cat",
    "OWNED": "vehicle clothes device instrument",
    "OLDER": "furniture building town text song movie",
    "COSTLY": "furniture restaurant hotel apartment ticket cheese wine",
    "FOREIGN": "book newspaper story movie song",
    "READABLE": "book story newspaper",
    "PLACE": "outdoors town house apartment church museum hotel",
}

ADJECTIVES = """
big/bigger            grand             pre   SIZED
small/smaller         petit             pre   SIZED animal gift small-thing crockery
good/better           bon/bonne         pre   food drink READABLE movie song job restaurant
beautiful             beau/belle        pre   PLACE vehicle clothes gift song horse bird instrument
old/older             vieux/vieille     pre   OWNED OLDER animal adult friend
new/newer             nouveau/nouvelle  pre   OWNED text song movie job shop house
young/younger         jeune             pre   adult job
pretty/prettier       joli              pre   clothes gift young town outdoors crockery
long/longer           long/longue       pre   text movie song street river
tall/taller           grand             pred  person kin
little                petit             pre   boy girl brother sister
red                   rouge             post  COLORED flower
blue                  bleu              post  COLORED flower
green                 vert              post  COLORED apple
white                 blanc/blanche     post  COLORED animal flower
black                 noir              post  vehicle clothes container furniture animal device
yellow                jaune             post  COLORED flower
heavy/heavier         lourd             post  container furniture instrument
expensive             cher/chère        post  OWNED COSTLY
clean/cleaner         propre            post  vehicle clothes dish room street river water
dirty/dirtier         sale              post  vehicle clothes dish room street river opening
empty                 vide              post  container restaurant street room
cold/colder           froid             post  warm room
hot/hotter            chaud             post  warm
delicious             délicieux         post  food juice wine tea
fresh/fresher         frais/fraîche     post  fruit bread milk fish egg
interesting           intéressant       post  text movie museum city
funny/funnier         drôle             post  person kin told movie
sad/sadder            triste            post  person told song movie
happy/happier         heureux           post  person kin
rich/richer           riche             post  person kin
poor/poorer           pauvre            pred  person kin
kind/kinder           gentil/gentille   pred  person kin pet
intelligent           intelligent       post  person kin pet
strong/stronger       fort              post  boy man brother
lazy/lazier           paresseux         post  person cat
serious               sérieux           post  person job kin
French                français          post  job wine cheese FOREIGN restaurant
Italian               italien           post  job wine cheese FOREIGN vehicle
tired                 fatigué           pred  person kin
sick                  malade            pred  person kin animal
busy                  occupé            pred  person kin
ready                 prêt              pred  person kin baked sandwich soup tea coffee
calm                  calme             pred  person kin
late                  en~retard         pred  person kin ride
angry                 en~colère         pred  person kin
open                  ouvert            pred  shop opening
closed                fermé             pred  shop opening
broken                cassé             pred  device crockery
"""

VERBS = """
eat/ate/eaten                 manger      food
drink/drank/drunk             boire       drink
buy/bought/bought             acheter     OWNED food drink furniture gift book ticket
sell/sold/sold                vendre      vehicle house apartment instrument furniture device
read/read/read                lire        text
write/wrote/written           écrire      letter told book
see/saw/seen                  voir        person kin animal outdoors movie
find/found/found              trouver     small-thing pet letter clothes
lose/lost/lost                perdre      small-thing
open                          ouvrir      opening box bag letter store
close                         fermer      opening store
break/broke/broken            casser      crockery device
wash                          laver       vehicle clothes dish pet fruit
take/took/taken               prendre     ride photo umbrella small-thing
drive/drove/driven            conduire    car bus
forget/forgot/forgotten/forgetting  oublier  small-thing
use                           utiliser    phone computer bike knife umbrella
wear/wore/worn                porter      clothes watch
learn                         apprendre   song story
understand/understood/understood  comprendre  text movie
watch                         regarder    movie bird
listen~to                     écouter     song story teacher
look~for                      chercher    small-thing pet clothes store
wait~for                      attendre    ride person kin
visit                         visiter     museum city village house
help                          aider       person kin
call                          appeler     person kin
meet/met/met                  rencontrer  person
know/knew/known               connaître   person town song store
sing/sang/sung                chanter     song
repair                        réparer     vehicle device furniture opening
show/showed/shown             montrer     photo gift letter room
give/gave/given               donner      gift text fruit
send/sent/sent                envoyer     letter gift
love                          adorer      food drink movie song animal
like                          aimer       food drink movie song animal
prefer/preferred/preferred/preferring  préférer  food drink
want                          vouloir     food drink gift device clothes

work                          travailler
sleep/slept/slept             dormir
walk                          marcher
run/ran/run/running           courir
swim/swam/swum/swimming       nager
dance                         danser
cook                          cuisiner
live                          habiter
play                          jouer
speak/spoke/spoken            parler
rain                          pleuvoir
snow                          neiger

go/went/gone                  aller
come/came/come                venir
leave/left/left               partir
arrive                        arriver
come~home/came/come           rentrer
go~out/went/gone              sortir
stay                          rester
get~up/got/gotten/getting     se~lever
wake~up/woke/woken            se~réveiller
go~to~bed/went/gone           se~coucher

be/was/been                   être
have/had/had                  avoir       OWNED pet house garden brother sister umbrella ticket
do/did/done                   faire
make/made/made                faire       baked soup sandwich coffee tea
can                           pouvoir
must                          devoir
think/thought/thought         penser
say/said/said                 dire
hope                          espérer
belong                        appartenir
brush                         se~brosser
"""

IRREGULAR = """
être        suis es est sommes sont                      | été       | ser
avoir       ai as a avons ont                            | eu        | aur
aller       vais vas va allons vont                      | allé      | ir
venir       viens viens vient venons viennent            | venu      | viendr
faire       fais fais fait faisons font                  | fait      | fer
pouvoir     peux peux peut pouvons peuvent               | pu        | pourr
vouloir     veux veux veut voulons veulent               | voulu     | voudr
devoir      dois dois doit devons doivent                | dû        | devr
boire       bois bois boit buvons boivent                | bu        | boir
lire        lis lis lit lisons lisent                    | lu        | lir
écrire      écris écris écrit écrivons écrivent          | écrit     | écrir
voir        vois vois voit voyons voient                 | vu        | verr
ouvrir      ouvre ouvres ouvre ouvrons ouvrent           | ouvert    | ouvrir
prendre     prends prends prend prenons prennent         | pris      | prendr
apprendre   apprends apprends apprend apprenons apprennent      | appris    | apprendr
comprendre  comprends comprends comprend comprenons comprennent | compris   | comprendr
conduire    conduis conduis conduit conduisons conduisent       | conduit   | conduir
connaître   connais connais connaît connaissons connaissent     | connu     | connaîtr
dormir      dors dors dort dormons dorment               | dormi     | dormir
partir      pars pars part partons partent               | parti     | partir
sortir      sors sors sort sortons sortent               | sorti     | sortir
courir      cours cours court courons courent            | couru     | courr
envoyer     envoie envoies envoie envoyons envoient      | envoyé    | enverr
dire        dis dis dit disons disent                    | dit       | dir
appartenir  appartiens appartiens appartient appartenons appartiennent | appartenu | appartiendr
pleuvoir    - - pleut pleuvons -                         | plu       | pleuvr
"""

ABSOLUTE = frozenset(  # no degrees: neither "very red" nor "redder" is wanted
    "red blue green white black yellow empty delicious French Italian ready open closed broken "
    "late angry little".split()
)
ETRE = frozenset("aller venir partir arriver rentrer sortir rester".split())


class Noun(NamedTuple):
    en: tuple[str, str]  # singular, plural
    fr: tuple[str, str]
    feminine: bool
    kinds: frozenset[str]

    @property
    def mass(self) -> bool:
        return "mass" in self.kinds


class Adjective(NamedTuple):
    en: str
    comparative: str  # bigger, or "more expensive"
    fr: tuple[str, str, str, str]  # grand, grande, grands, grandes
    position: str
    kinds: frozenset[str]

    def agreed(self, feminine: bool, plural: bool) -> str:
        return self.fr[feminine + 2 * plural]


class Verb(NamedTuple):
    name: str  # the English base form with its particle: "look for"
    base: str
    third: str
    past: str
    participle: str
    ing: str
    fr: m.FrenchVerb
    kinds: frozenset[str]


def _rows(table: str, columns: int):
    for line in table.strip().splitlines():
        if line.strip():
            cells = line.split()
            kinds = " ".join(GROUPS.get(kind, kind) for kind in cells[columns:])
            yield [*cells[:columns], frozenset(kinds.split())]


def _forms(cell: str) -> tuple[str, str]:
    base, *others = cell.replace("~", " ").split("/")
    return base, others[0] if others else ""


def _read_nouns() -> dict[str, Noun]:
    nouns = {}
    for english, french, gender, kinds in _rows(NOUNS, 3):
        (one, many), (un, des) = _forms(english), _forms(french)
        pairs = ((one, many or m.english_plural(one)), (un, des or m.french_plural(un)))
        nouns[one] = Noun(*pairs, gender == "f", kinds | {one})
    return nouns


def _read_adjectives() -> dict[str, Adjective]:
    adjectives = {}
    for english, french, position, kinds in _rows(ADJECTIVES, 3):
        (plain, comparative), (masculine, feminine) = _forms(english), _forms(french)
        feminine = feminine or m.french_feminine(masculine)
        forms = (masculine, feminine, m.french_plural(masculine), m.french_plural(feminine))
        if " " in masculine:  # "en retard" does not agree
            forms = (masculine,) * 4
        more = comparative or "more " + plain
        adjectives[plain] = Adjective(plain, more, forms, position, kinds)
    return adjectives


def _read_verbs() -> dict[str, Verb]:
    irregular = {}
    for line in IRREGULAR.strip().splitlines():
        present, participle, stem = line.split("|")
        infinitive, *forms = present.split()
        irregular[infinitive] = (" ".join(forms), participle.strip(), stem.strip())
    verbs = {}
    for english, french, kinds in _rows(VERBS, 2):
        base, *forms = english.split("/")
        base, _, particle = base.replace("~", " ").partition(" ")
        past, participle, ing = (*forms, *[""] * (3 - len(forms)))
        past = past or m.english_past(base)
        inflected = (base, m.english_third(base), past, participle or past)
        inflected += (ing or m.english_ing(base),)
        words = [f"{form} {particle}".strip() for form in inflected]
        bare = french.removeprefix("se~").removeprefix("s'")
        traits = {"reflexive": bare != french, "etre": bare != french or bare in ETRE}
        verb = m.conjugate(bare, *irregular.get(bare, ()), **traits)
        verbs[words[0]] = Verb(words[0], *words, verb, kinds)
    return verbs


nouns = _read_nouns()
adjectives = _read_adjectives()
verbs = _read_verbs()


@cache
def nouns_of(*kinds: str) -> tuple[Noun, ...]:
    """The nouns of any of these kinds (a noun's English name is a kind of its own)."""
    return tuple(noun for noun in nouns.values() if not noun.kinds.isdisjoint(kinds))


def _fitting(positions: tuple[str, ...]) -> dict[str, list[Adjective]]:
    table = defaultdict(list)
    for name, noun in nouns.items():
        for adjective in adjectives.values():
            if adjective.position in positions and not adjective.kinds.isdisjoint(noun.kinds):
                table[name].append(adjective)
    return table


attributive = _fitting(("pre", "post"))  # noun -> adjectives that may stand beside it
for _name, _noun in nouns.items():  # "my serious aunt" is nothing that anyone says
    if "kin" in _noun.kinds:
        attributive[_name] = [a for a in attributive[_name] if a.position == "pre"]
predicative = _fitting(("pre", "post", "pred"))  # noun -> adjectives that may follow "be"
objects = {name: nouns_of(*verb.kinds) for name, verb in verbs.items()}  # verb -> what it takes
