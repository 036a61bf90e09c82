"""Answers that are chosen, named or told: options, the order of modules, a word, some sentences.

They have the attributes that `computed` describes.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from course_utils.recall.computed import Judged


class Choice:
    """One or several of the options a, b, c, ...

    Args:
        options: the texts, in order.
        right: the letters of the right ones, such as "b" or "ac".
        because: letter -> why this option is wrong; for missing ones the message says so.
        proof: finds the right letters by running code, where that can be done.
    """

    def __init__(self, options: Sequence[str], right: str, because=None, proof=None):
        self.options = dict(zip("abcdefgh", options))
        self._right, self.because, self.proof = set(right), because or {}, proof

    @property
    def wanted(self) -> str:
        """How the answer is typed."""
        letters = list(self.options)
        if len(self._right) == 1:
            return f'one letter, "{letters[0]}" to "{letters[-1]}"'
        return f'{len(self._right)} letters, such as "{letters[0]}{letters[1]}"'

    @property
    def right(self) -> str:
        """The right letters with their texts."""
        return "; ".join(f"{c}: {self.options[c]}" for c in sorted(self._right))

    @property
    def accepted(self) -> tuple:
        """Ways to type it."""
        letters = sorted(self._right)
        return "".join(letters), ", ".join(letters).upper(), [self.options[c] for c in letters]

    @property
    def refused(self) -> tuple[str, ...]:
        """Every other single option, and all at once."""
        return *(set(self.options) - self._right), "".join(self.options)

    def proved(self) -> bool:
        """Whether code finds the same; a choice between reasons has no proof."""
        return self.proof is None or set(self.proof()) == self._right

    def judge(self, given: Any) -> Judged:
        """Read letters, or the options' own words."""
        chosen = self._letters(given)
        if not chosen:
            return Judged(None, f"Answer with {self.wanted}.")
        if chosen == self._right:
            return Judged(True)
        wrong = sorted(chosen - self._right)
        said = [f"{c}: {self.because[c]}" for c in wrong if c in self.because]
        if wrong:
            return Judged(False, " ".join(said) or f"Not {', '.join(wrong)}.")
        return Judged(False, f"Right so far, but {len(self._right)} options are asked for.")

    def _letters(self, given: Any) -> set[str]:
        if isinstance(given, bool):
            given = str(given)
        if isinstance(given, (list, tuple, set)):
            parts = [self._letters(part) for part in given]
            return set().union(*parts) if all(parts) else set()
        text = str(given).strip().lower()
        same = {c for c, option in self.options.items() if option.lower() == text}
        letters = set(re.sub(r"[\s,;.&+]|and", "", text))
        return same or (letters if letters <= self.options.keys() else set())


def statement(right: bool, because: str, proof: Callable[[], bool] | None = None) -> Choice:
    """A sentence that is true or false; `because` is said to who takes it the wrong way round."""
    letter = {True: "a", False: "b"}
    find = None if proof is None else lambda: letter[bool(proof())]
    other = letter[not right]
    return Choice(["true", "false"], letter[right], {other: because}, find)


class Order:
    """A row of modules in their order.

    Args:
        right: the row, in the names of `names`.
        names: name -> other spellings of it.
        slips: wrong row -> what is wrong with it.
        proof: reads the row from running modules.
    """

    wanted = 'names in order, such as "first -> second -> third"'

    def __init__(self, right: Sequence[str], names: dict[str, Sequence[str]], proof, slips=None):
        self._right, self.names, self.proof = tuple(right), names, proof
        self.slips = slips or {}
        self._known = {_bare(s): name for name, more in names.items() for s in (name, *more)}

    @property
    def right(self) -> str:
        """The row as text."""
        return " -> ".join(self._right)

    @property
    def accepted(self) -> tuple:
        """Ways to type it."""
        shortest = [min([name, *self.names[name]], key=len) for name in self._right]
        return self.right, list(self._right), " → ".join(shortest)

    @property
    def refused(self) -> tuple:
        """Known wrong answers, the row backwards, and the row without its end."""
        return *self.slips, self._right[::-1], self._right[:-1]

    def proved(self) -> bool:
        """Whether the modules run in this order."""
        return tuple(self.proof()) == self._right

    def judge(self, given: Any) -> Judged:
        """Read the names in any known spelling and compare their order."""
        parts = (
            given if isinstance(given, (list, tuple)) else re.split(r"->|→|=>|>|,|;|\n", str(given))
        )
        row = [self._known.get(_bare(str(part)), str(part).strip()) for part in parts]
        unknown = [name for name in row if name not in self.names]
        if unknown:
            known = ", ".join(self.names)
            return Judged(None, f"{unknown[0]!r} is no name that is known here: {known}.")
        if tuple(row) == self._right:
            return Judged(True)
        if tuple(row) in self.slips:
            return Judged(False, self.slips[tuple(row)])
        if len(row) != len(self._right):
            return Judged(False, f"That is a row of {len(row)}; there are {len(self._right)}.")
        place = next(i for i, (a, b) in enumerate(zip(row, self._right), 1) if a != b)
        return Judged(False, f"Number {place} in the row is another one.")


class Keyword:
    """A word or a few, read as `_essence` does: "the attention mechanisms" is "attention".

    Args:
        right: the word as it is shown.
        same: other words for it, Chinese ones too.
        slips: wrong word -> what is wrong with it.
    """

    wanted = "a word or two"

    def __init__(self, right: str, same: Sequence[str] = (), slips: dict[str, str] | None = None):
        self.right, self.accepted, self.slips = right, (right, right.upper(), *same), slips or {}

    @property
    def refused(self) -> tuple[str, ...]:
        """Known wrong answers."""
        return tuple(self.slips)

    def proved(self) -> bool:
        """A word has no proof by code."""
        return True

    def judge(self, given: Any) -> Judged:
        """Compare what is essential in the words."""
        text = _essence(str(given))
        if not text:
            return Judged(None, f"Answer with {self.wanted}.")
        if text in map(_essence, self.accepted):
            return Judged(True)
        named = {_essence(word): message for word, message in self.slips.items()}
        return Judged(False, named.get(text, "Another word is meant."))


class Sentences:
    """A few sentences of one's own, as in an interview, in Chinese or English.

    Only words are looked for, not their sense: an answer is right when none of the points is
    missing, and partly right when some of them are there. The model answer is shown with it, to be
    compared.

    Args:
        right: a model answer.
        points: what must be said -> a regular expression of words that say it.
    """

    wanted = "two or three sentences, in Chinese or English"

    def __init__(self, right: str, points: dict[str, str]):
        self.right, self.points, self.accepted = right, points, (right, right.upper())

    @property
    def refused(self) -> tuple[str, ...]:
        """Sentences that say nothing to the point."""
        return "不知道。", "That is a good question."

    def proved(self) -> bool:
        """Whether the model answer itself names every point."""
        return bool(self.judge(self.right).right)

    def judge(self, given: Any) -> Judged:
        """Say which points are there, and which are missing."""
        text = str(given)
        if not text.strip():
            return Judged(None, f"Answer with {self.wanted}.")
        said = [p for p, words in self.points.items() if re.search(words, text, re.I)]
        missing = [p for p in self.points if p not in said]
        if not missing:
            return Judged(True)
        message = f"Not said yet: {'; '.join(missing)}."
        if said:
            message = f"Said: {'; '.join(said)}. {message}"
        return Judged(False, message, partly=bool(said))


def _bare(text: str) -> str:
    return "".join(c for c in text.lower().replace("and", "") if c.isalnum())


_BEFORE = {"a", "an", "the", "all", "only", "by"}  # words that an answer may begin with
_BEHIND = {"layer", "mechanism"}  # and end with, where others are left


def _essence(text: str) -> str:
    """The letters and digits of some words, without what makes no difference to their meaning.

    Case, spaces, signs and "and" do not count, nor do a plural s, British or American spelling,
    and the words of _BEFORE and _BEHIND.
    """
    words = [_singular(_american(word)) for word in re.split(r"[\W_]+", text.lower()) if word]
    while len(words) > 1 and words[0] in _BEFORE:
        words.pop(0)
    while len(words) > 1 and words[-1] in _BEHIND:
        words.pop()
    return "".join(word for word in words if word != "and")


def _singular(word: str) -> str:
    return re.sub(r"(?<=[sc]h)es$|(?<=..[^s])s$", "", word)


def _american(word: str) -> str:
    word = re.sub(r"^(learn|burn|spell)t$", r"\1ed", word)
    return re.sub(r"(?<=...)is(?=(e|ed|es|er|ing|ation|ations)$)", "iz", word)
