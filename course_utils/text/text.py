"""From raw text to word-level tokens and back, for English and French."""

import re
import unicodedata

LANGUAGES = ("en", "fr")

# U+2019 and its look-alikes are typed for '; French sets (narrow) no-break spaces before ? ! : ;
_APOSTROPHES = dict.fromkeys(map(ord, "\u2019\u2018\u02bc\u2032"), "'")
# halves of characters, as a command line holds them that is not UTF-8; no file can
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
_SPELLINGS = {**_APOSTROPHES, **_SURROGATES}
_RESPELLED = re.compile(f"[{''.join(map(chr, _APOSTROPHES))}\\ud800-\\udfff]")
# what moves a terminal's cursor or turns its text around, white space apart
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069]")
_PACKED = {
    b"\x1f\x8b": "packed by gzip",
    b"BZh": "packed by bzip2",
    b"\xfd7zXZ\0": "packed by xz",
    b"\x28\xb5\x2f\xfd": "packed by zstd",
    b"PK\x03\x04": "a zip archive, or a table or document of an office program",
    b"%PDF-": "a PDF",
    b"PAR1": "in Parquet",
}
_WHITE_SPACE = re.compile(r"\s+")
_PUNCTUATION = re.compile(r"([!?;\u2026()\"\u00ab\u00bb]|[.,:](?!\d))")  # 3.5 and 12:30 stay whole
# French elisions end at their apostrophe: j'ai -> j' ai. These words only look elided.
_ELISIONS = re.compile(r"(?<!\S)(?:(?!aujourd'hui(?!\S)|quelqu'un|prud'hom)\w+'(?=\w))+")
_NO_SPACE_BEFORE = {"en": ".,!?;:)\u2026", "fr": ".,)\u2026"}


def normalise(text: str) -> str:
    """One spelling for what reads the same: NFC, ASCII apostrophes, single plain spaces.

    A lone surrogate becomes U+FFFD.

    >>> normalise("Tu viens\\u202f?  C\\u2019est bon.")
    "Tu viens ? C'est bon."
    """
    text = _respelled(text)
    if "  " in text or not text.isprintable() or text[:1] == " " or text[-1:] == " ":
        text = _WHITE_SPACE.sub(" ", text).strip()  # of white space only " " is printable
    return text


def _respelled(text: str) -> str:
    """NFC and ASCII apostrophes; most lines need neither, and to see that is cheap."""
    if text.isascii() or unicodedata.is_normalized("NFC", text) and not _RESPELLED.search(text):
        return text
    return unicodedata.normalize("NFC", text).translate(_SPELLINGS)


def words(text: str) -> list[str]:
    """What stands between the spaces of `normalise(text)`; no rule of `tokenize` looks across one.

    >>> words(" Tu viens\\u202f? ")
    ['Tu', 'viens', '?']
    """
    return _respelled(text).split()


def not_text(data: bytes) -> str:
    """What the beginning of a file shows it to be, with what to do, if not text in UTF-8; or "".

    >>> not_text(b"\\xff\\xfeG\\0o\\0"), not_text(b"Go.")
    ('in UTF-16: save it as UTF-8, or convert it by iconv -f UTF-16 -t UTF-8', '')
    """
    if kind := next((kind for magic, kind in _PACKED.items() if data.startswith(magic)), ""):
        return f"{kind}: unpack it or export it as plain text first"
    line = data[:1000].split(b"\n")[0]
    marked = line.startswith((b"\xff\xfe", b"\xfe\xff")) and b"\0" in line
    # or the empty halves of five Latin letters or more
    halves = (line[0::2], line[1::2])
    if marked or any(len(half) > 4 and not half.strip(b"\0") for half in halves):
        return "in UTF-16: save it as UTF-8, or convert it by iconv -f UTF-16 -t UTF-8"
    return ""


def one_line(text: str) -> str:
    """`normalise` for text from a stranger: without control characters and overrides of direction.

    >>> one_line("Va\\x1b[2J\\n!")
    'Va[2J !'
    """
    return normalise(_CONTROLS.sub("", text))


def printable(text: str) -> str:
    """The text with an escape for each character that a terminal would obey or not show.

    >>> printable("caf\u00e9\\x1b[2J")
    'caf\u00e9\\\\x1b[2J'
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _check_language(lang: str) -> None:
    if lang not in LANGUAGES:
        raise ValueError(f"unknown language {lang!r}: use one of {', '.join(LANGUAGES)}")


def tokenize(text: str, lang: str) -> list[str]:
    """Lower-cased words and punctuation marks.

    English contractions stay one token; French elisions are split after the apostrophe, because
    `j'`, `l'` and `n'` are words of their own that an alignment has to reach.

    Args:
        text: one sentence, in any spelling that `normalise` accepts.
        lang: "en" or "fr".

    >>> tokenize("I'm home.", "en"), tokenize("J'ai perdu.", "fr")
    (["i'm", 'home', '.'], ["j'", 'ai', 'perdu', '.'])
    """
    _check_language(lang)
    line = _PUNCTUATION.sub(r" \1 ", normalise(text).lower())
    if lang == "fr":
        line = _ELISIONS.sub(lambda elided: elided[0].replace("'", "' "), line)
    return line.split()


def detokenize(tokens: list[str], lang: str) -> str:
    """Join tokens into a readable line, the reverse of `tokenize` up to case and spacing.

    >>> detokenize(["j'", "ai", "perdu", "."], "fr")
    "j'ai perdu."
    """
    _check_language(lang)
    line = " ".join(tokens)
    marks = re.escape(_NO_SPACE_BEFORE[lang])
    line = re.sub(rf" +([{marks}])", r"\1", line)
    if lang == "fr":
        line = re.sub(r"(?<=\w') +(?=\w)", "", line)
    return line
