"""Running text for character-level language models: the course's own stories, or a real text."""

from course_utils.text.registry import TEXT, CorpusError, corpus_files, find


def load_text(name: str = "prose", size: int | None = None) -> str:
    """A text by name, line ends as "\\n".

    Args:
        name: "prose", the stories of a small town that ship with the course (30,000 characters of
            plain ASCII), or "tiny-shakespeare" (1.1 million, downloaded once, or taken from
            `COURSE_DATA_DIR`).
        size: at most so many characters, from the beginning.

    Raises:
        CorpusError: the name is unknown, the size is below 1, or the file cannot be had.
    """
    if size is not None and size < 1:
        raise CorpusError(f"size must be at least 1, got {size}")
    find(name, TEXT)
    return corpus_files(name)[0].read_text(encoding="utf-8")[:size]
