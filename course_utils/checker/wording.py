"""Small words that several sentences of a verdict share."""

import re

_WORD = re.compile(r"(a|[a-z]{2,})(['-][a-z]+)*[,;:.]?(\s|$)")  # no symbol, no name in code
_ORDER = ("first", "second", "third", "fourth", "fifth", "sixth")


def in_words(key: int) -> str:
    """One of several results, counted from 0: "the first result"."""
    return f"the {_ORDER[key]} result" if key < len(_ORDER) else f"result {key + 1}"


def mistakes_are(n: int) -> str:
    """The subject for so many mistakes, with its verb."""
    return "this mistake is" if n == 1 else f"these {n} mistakes are"


def entries(n: int) -> str:
    """So many entries."""
    return "1 entry" if n == 1 else f"{n} entries"


def capital(sentence: str) -> str:
    """With a large letter in front, unless it begins with a symbol: w_v, k, nn.Linear."""
    return sentence[:1].upper() + sentence[1:] if _WORD.match(sentence) else sentence
