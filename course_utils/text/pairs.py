"""The one type every bilingual corpus of the course is made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pair:
    """An English sentence and its French translation.

    ``source`` and ``target`` are natural text: cased, with French spacing ("Tu viens ?", a plain
    space before ? and !). ``alignment`` holds gold links ``(source token, target token)`` as
    indices into ``course_utils.text.text.tokenize`` of the two sides; None where nobody knows them.
    """

    source: str
    target: str
    alignment: tuple[tuple[int, int], ...] | None = None
