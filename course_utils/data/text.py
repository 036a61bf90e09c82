"""From raw text to word-level tokens and back, for English and French."""

import re
import unicodedata

LANGUAGES = ("en", "fr")

# U+2019 and its look-alikes are typed for '; French sets (narrow) no-break spaces before ? ! : ;
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'", "\u2032": "'"})
_WHITE_SPACE = re.compile(r"\s+")
_PUNCTUATION = re.compile(r"([!?;\u2026()\"\u00ab\u00bb]|[.,:](?!\d))")  # 3.5 and 12:30 stay whole
# A French elision ends at its apostrophe: j'ai -> j' ai. These words only look elided.
_ELISION = re.compile(r"^(?!aujourd'hui$|quelqu'un|prud'hom)(\w+')(?=\w)")
_NO_SPACE_BEFORE = {"en": ".,!?;:)\u2026", "fr": ".,)\u2026"}


def normalise(text: str) -> str:
    """One spelling for what reads the same: NFC, ASCII apostrophes, single plain spaces.

    >>> normalise("Tu viens\\u202f?  C\\u2019est bon.")
    "Tu viens ? C'est bon."
    """
    text = unicodedata.normalize("NFC", text).translate(_APOSTROPHES)
    return _WHITE_SPACE.sub(" ", text).strip()


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
    words = _PUNCTUATION.sub(r" \1 ", normalise(text).lower()).split()
    if lang == "en":
        return words
    tokens = []
    for word in words:
        while match := _ELISION.match(word):
            tokens.append(match.group(1))
            word = word[match.end() :]
        tokens.append(word)
    return tokens


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
