"""Lines in, translations out: as many as there were, whatever the lines hold."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice

from course_utils.text.subwords import Subwords
from course_utils.text.text import normalise, not_text, one_line
from course_utils.training.runs.parts import cut, joined, sentences
from course_utils.training.runs.refusals import Refused
from course_utils.training.translation import Translator

BOM = "\ufeff"


def read_lines(stream: Iterable[bytes], warn: Callable[[str], None]) -> Iterator[str]:
    """The lines of a UTF-8 stream, which only a line feed ends; a leading byte-order mark goes.

    Bytes that are no UTF-8 become U+FFFD, and `warn` is told so.

    Raises:
        Refused: the stream is in UTF-16, packed, or otherwise no text.
    """
    for number, line in enumerate(stream, start=1):
        if number == 1 and (kind := not_text(line)):
            raise Refused(f"the text is {kind}")
        line = line.removesuffix(b"\n")
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            warn(f"line {number} is not UTF-8 ({error.reason}): the bytes at fault were replaced")
            text = line.decode("utf-8", errors="replace")
        yield text.removeprefix(BOM) if number == 1 else text


def unseen_letters(text: str, known: frozenset[str]) -> str:
    """The letters of a line that stand in no piece of a vocabulary (`letters_of`), each once."""
    return "".join(dict.fromkeys(c for c in normalise(text) if c.isalpha() and c not in known))


def letters_of(vocabulary: Subwords) -> frozenset[str]:
    """All characters that the pieces of a vocabulary spell."""
    return frozenset("".join(vocabulary.pieces(range(len(vocabulary)))))


def translate_texts(
    translator: Translator,
    lines: Sequence[str],
    *,
    beam: int = 1,
    batch_size: int = 64,
    on_cut: Callable[[int, int], None] | None = None,
) -> list[str]:
    """`translate_lines`, but the sentences of a line one by one.

    A model that was trained on single sentences loses some of several, or mixes them up.
    """
    parts = [sentences(line) for line in lines]
    owners = [index for index, some in enumerate(parts) for _ in some]
    said = iter(
        translate_lines(
            translator,
            [sentence for some in parts for sentence in some],
            beam=beam,
            batch_size=batch_size,
            on_cut=on_cut and (lambda index, count: on_cut(owners[index], count)),
        )
    )
    return [joined(islice(said, len(some))) for some in parts]


def translate_lines(
    translator: Translator,
    lines: Sequence[str],
    *,
    beam: int = 1,
    batch_size: int = 64,
    on_cut: Callable[[int, int], None] | None = None,
) -> list[str]:
    """One line for each, in order; an empty one for an empty one.

    Neither the batch size nor the other lines change a translation. No translation holds a line
    break or a control character, whatever a stranger's vocabulary spells.

    Args:
        on_cut: told the index of a line too long for the model, and into how many parts it goes.
    """
    max_len = translator.model.config.max_len
    pieces: list[list[int]] = []
    owners: list[int] = []
    for index, line in enumerate(lines):
        parts = cut(line, translator.source, max_len - 1)  # and <eos>
        if len(parts) > 1 and on_cut is not None:
            on_cut(index, len(parts))
        pieces += parts
        owners += [index] * len(parts)
    translations: list[list[str]] = [[] for _ in lines]
    for owner, ids in zip(owners, _decode(translator, pieces, beam, batch_size), strict=True):
        translations[owner].append(translator.target.decode(ids))
    return [one_line(joined(texts)) for texts in translations]


def longest_answer(length: int, max_len: int) -> int:
    """How many ids may answer a piece of some ids, so that babble comes to an end."""
    return min(max_len, 2 * length + 20)


def _decode(
    translator: Translator, pieces: Sequence[list[int]], beam: int, batch_size: int
) -> list[list[int]]:
    """Ids to ids."""
    max_len = translator.model.config.max_len
    limits = [longest_answer(len(ids), max_len) for ids in pieces]
    results: list[list[int]] = [[] for _ in pieces]
    # many long pieces have one limit: by their lengths too, so that like lengths share a batch
    order = sorted(range(len(pieces)), key=lambda i: (limits[i], len(pieces[i])))
    # greedy answers may be cut to their limits; beams must not grow beyond theirs, so of one length
    alike = [order] if beam == 1 else [list(g) for _, g in groupby(order, limits.__getitem__)]
    for group in alike:
        for start in range(0, len(group), batch_size):
            chunk = group[start : start + batch_size]
            sources, longest = [pieces[i] for i in chunk], limits[chunk[-1]]
            answers = translator.decode(sources, beam, longest, batch_size)
            for i, ids in zip(chunk, answers, strict=True):
                results[i] = ids[: limits[i]]
    return results
