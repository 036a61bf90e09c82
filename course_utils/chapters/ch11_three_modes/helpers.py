"""What the cells of chapter 11 only call: where a sentence of ids ends."""

from course_utils.text.vocab import Vocab


def before_eos(ids) -> list[int]:
    """The ids before the first <eos>, all of them where none stands."""
    ids = [int(i) for i in ids]
    return ids[: ids.index(Vocab.eos)] if Vocab.eos in ids else ids
