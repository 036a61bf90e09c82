"""The hand-written everyday pairs: the shape of the file, its typography and its French elision."""

import re
import unicodedata
from pathlib import Path

import pytest

TSV = Path(__file__).parents[2] / "course_utils" / "text" / "everyday.tsv"
RAW = TSV.read_bytes()
TEXT = RAW.decode("utf-8")
ROWS = [line.split("\t") for line in TEXT.removesuffix("\n").split("\n")]

NAMED = [
    ("Go.", "Va !"),
    ("I'm home.", "Je suis chez moi."),
    ("He's calm.", "Il est calme."),
    ("I lost.", "J'ai perdu."),
]

# A command that ends in a full stop in English may take an exclamation mark in French.
COMPATIBLE_ENDS = {("?", "?"), ("!", "!"), (".", "."), (".", "!")}

VOWEL = "[aeiouàâæéèêëîïôœùûü]"
# "h" counts as a vowel, save before an aspirated one: le haut, la honte, le huit.
ASPIRATED = (
    "h(?:ach|aie|ain|alte|amster|anche|andicap|aricot|asard|aut|éros|érisson|ibou|"
    "ockey|omard|onte|ors|uit|url)"
)
VOWEL_SOUND = rf"(?!{ASPIRATED}|on[zc]|oui\b)(?:h|{VOWEL}|y\b)"

FRENCH_FAULTS = {
    # not after a hyphen: "puis-je entrer" and "dis-le à Paul" are right
    "no elision": rf"(?<![-\w])(?:je|me|te|se|le|la|de|ne|que|jusque|lorsque) {VOWEL_SOUND}",
    "si il": r"\bsi ils?\b",
    "ce for cet or c'": rf"(?<![-\w])ce {VOWEL_SOUND}",
    "ma, ta, sa before a vowel": rf"\b[mts]a {VOWEL_SOUND}",
    "beau, nouveau, vieux before a vowel": rf"\bun (?:beau|nouveau|vieux) {VOWEL_SOUND}",
    "elision before a consonant": rf"\b(?:[cdjlmnst]|qu)'(?!h|{VOWEL}|y\b)",
    # "de le voir" is right: there "le" is a pronoun before an infinitive
    "no contraction": r"\b(?:de|à) les? (?!\w+(?:er|ir|re)\b)",
    "no t between vowels": r"[ae]-(?:il|elle|on)\b",
    "oe or ae for the ligature": r"\b(?:soeur|coeur|oeufs?|oeil|oeuvre)\b",
}


def faults(french):
    """Names of the faults in FRENCH_FAULTS that a French sentence shows."""
    return [name for name, rx in FRENCH_FAULTS.items() if re.search(rx, french.lower())]


def test_file_is_utf8_with_unix_line_ends():
    assert not RAW.startswith(b"\xef\xbb\xbf")
    assert b"\r" not in RAW
    assert RAW.endswith(b"\n")
    assert not RAW.endswith(b"\n\n")


def test_two_columns_and_at_least_a_thousand_pairs():
    assert [row for row in ROWS if len(row) != 2] == []
    assert len(ROWS) >= 1000


def test_each_source_stands_once():
    sources = [source.lower() for source, _ in ROWS]
    assert sorted({s for s in sources if sources.count(s) > 1}) == []


@pytest.mark.parametrize("pair", NAMED)
def test_named_pairs_are_present(pair):
    assert list(pair) in ROWS


def test_text_is_composed_and_has_only_plain_characters():
    assert unicodedata.is_normalized("NFC", TEXT)
    characters = set(TEXT) - set("\t\n ")
    assert {c for c in characters if unicodedata.category(c)[0] in "CZ"} == set()
    assert characters & set("\u2018\u2019\u02bc") == set()


def test_spaces_are_single_and_inside():
    cells = [cell for row in ROWS for cell in row]
    assert [cell for cell in cells if cell != " ".join(cell.split())] == []


def test_every_cell_starts_with_a_capital():
    assert [cell for row in ROWS for cell in row if not cell[0].isupper()] == []


def test_both_sides_end_in_compatible_marks():
    assert [row for row in ROWS if (row[0][-1], row[1][-1]) not in COMPATIBLE_ENDS] == []


def test_end_marks_stand_only_at_the_end():
    assert [row for row in ROWS if any(re.search(r"[.?!]", cell[:-1]) for cell in row)] == []


def test_space_before_question_and_exclamation_marks_in_french_only():
    assert [source for source, _ in ROWS if re.search(r" [?!]", source)] == []
    assert [target for _, target in ROWS if re.search(r"[^ ][?!]", target)] == []


def test_lengths_run_from_one_word_to_fourteen():
    lengths = [len(re.findall(r"[\w'-]+", source)) for source, _ in ROWS]
    assert min(lengths) == 1
    assert max(lengths) <= 14
    assert sum(2 <= n <= 8 for n in lengths) > 0.9 * len(lengths)


def test_french_has_no_fault_of_elision_or_contraction():
    assert [(target, faults(target)) for _, target in ROWS if faults(target)] == []


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ("Je ai perdu.", "no elision"),
        ("Le ami de Paul.", "no elision"),
        ("La heure de partir.", "no elision"),
        ("Je crois que il dort.", "no elision"),
        ("Je ne y crois pas.", "no elision"),
        ("Si il pleut.", "si il"),
        ("Ce homme parle.", "ce for cet or c'"),
        ("Ma amie.", "ma, ta, sa before a vowel"),
        ("Un vieux ami.", "beau, nouveau, vieux before a vowel"),
        ("J'suis là.", "elision before a consonant"),
        ("Je vais à le marché.", "no contraction"),
        ("Où va-il ?", "no t between vowels"),
        ("Ma soeur.", "oe or ae for the ligature"),
    ],
)
def test_the_check_sees_a_fault(wrong, name):
    assert name in faults(wrong)


@pytest.mark.parametrize(
    "right",
    ["Puis-je entrer ?", "Dis-le à Paul !", "Le haut du toit.", "Le onze mai.", "Où va-t-il ?"]
    + ["J'ai peur de le perdre.", "J'y vais.", "C'est aujourd'hui.", "De vieux amis."],
)
def test_the_check_passes_right_french(right):
    assert faults(right) == []
