"""Where a line is cut for a model that was trained on single sentences, in any script."""

import re
from collections.abc import Iterable, Sequence

from course_utils.text.subwords import Subwords
from course_utils.text.text import normalise

# ends of sentences, and of clauses: before a space, and those of Chinese and Japanese
STOPS, FULL_STOPS = ".!?\u2026\u061f\u06d4\u0964\u0965\u104b\u17d4", "\u3002\uff01\uff1f\uff61"
PAUSES, FULL_PAUSES = ",;:\u060c\u061b\u104a", "\uff0c\u3001\uff1b\uff1a\uff64"
# A space between a sentence's end, with its quotes, and a capital or a letter without case; not
# after Mr., J. or the like. After a full stop without a space, but not before a further mark or a
# closing quote, nor inside a quotation.
SENTENCE = re.compile(
    r"(?<!\bMr\.)(?<!\bMrs\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bSt\.)(?<!\b[A-Z]\.)"
    rf"(?:(?<=[{STOPS}])|(?<=[{STOPS}][\"'\u201d\u00bb)])) (?=[\"'\u201c\u00ab(]?[^\W\d_a-z])"
    rf"|(?<=[{FULL_STOPS}]) ?(?=[^\s{FULL_STOPS}{STOPS})\u201d\u300d\u300f\uff09])"
    r"(?![^\u201c\u201d\u300c-\u300f]{0,200}[\u201d\u300d\u300f])"
)
_ENDS = [[tuple(mark.encode() for mark in marks) for marks in kinds]
         for kinds in ((STOPS, FULL_STOPS), (PAUSES, FULL_PAUSES))]  # fmt: skip
_UNSPACED_END = re.compile(
    "[\u3001-\u30ff\u3400-\u9fff\uf900-\ufaff\uff01-\uff9f\U00020000-\U0003ffff]$"
)


def sentences(text: str) -> list[str]:
    """The sentences of a line; a line without an end is one.

    >>> sentences("Hello. How is Mr. Smith? Fine.")
    ['Hello.', 'How is Mr. Smith?', 'Fine.']
    >>> sentences("我在家。你呢？")
    ['我在家。', '你呢？']
    """
    return SENTENCE.split(normalise(text))


def joined(parts: Iterable[str]) -> str:
    """The translations of the parts of a line as one; Chinese and Japanese set no space between.

    >>> joined(["Hello.", "Fine."]), joined(["我在家。", "你呢？"])
    ('Hello. Fine.', '我在家。你呢？')
    """
    filled = [part for part in parts if part]
    spaced = [part if _UNSPACED_END.search(part) else f"{part} " for part in filled[:-1]]
    return "".join(spaced + filled[-1:])


def cut(text: str, vocabulary: Subwords, limit: int) -> list[list[int]]:
    """The ids of a line, in as few parts of at most `limit` ids as its own ends allow.

    A part ends at the last end of a sentence that fits, else of a clause, else of a word, else of
    a character; where even a character does not fit, inside it. No id is lost.
    """
    ids = vocabulary.encode(text)
    if len(ids) <= limit:
        return [ids]
    spelled, parts, start = vocabulary.spell(ids), [], 0
    while len(ids) - start > limit:
        places = range(start + limit, start, -1)
        end = min(places, key=lambda place: _rank(spelled, place))  # of equals the last
        parts.append(ids[start:end])
        start = end
    return [*parts, ids[start:]]


def _rank(spelled: Sequence[bytes], place: int) -> int:
    """How bad it is to cut before a piece: 0 at the end of a sentence, 4 inside a character."""
    following = spelled[place][:1]
    before = b"".join(spelled[max(0, place - 3) : place])
    for rank, (spaced, unspaced) in enumerate(_ENDS):
        if before.endswith(unspaced) or following == b" " and before.endswith(spaced):
            return rank
    return 2 if following == b" " else 4 if 0x80 <= following[0] < 0xC0 else 3
