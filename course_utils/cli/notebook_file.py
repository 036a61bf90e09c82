"""Notebooks read from their files, with the name and the line of what is wrong in them."""

import json
import re
from collections import Counter
from pathlib import Path

import nbformat

CONFLICT = re.compile(r"^(<{7}|={7}|>{7})( |$)", re.MULTILINE)  # what `git merge` leaves
SIDES = re.compile(r"^(<{7}|>{7}) ", re.MULTILINE)  # a row of = may underline a heading


class UnreadableNotebook(ValueError):
    """A file is no notebook; the message names it and says how to mend it."""


def read_notebook(path: Path) -> nbformat.NotebookNode:
    """A notebook as nbformat gives it, in version 4.

    Raises:
        UnreadableNotebook: the file is not UTF-8, holds the marks of a merge that nobody has ended,
            is no JSON or no notebook, or two of its cells have one id.
    """
    name = path.name
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableNotebook(
            f"{name} is not UTF-8 ({error.reason}): save it as UTF-8"
        ) from None
    if mark := CONFLICT.search(text):
        raise _open_merge(f"{name}, line {text.count(chr(10), 0, mark.start()) + 1}")
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise UnreadableNotebook(
            f"{name}, line {error.lineno}: no JSON there ({error.msg}); is the file cut short?"
        ) from None
    if not isinstance(found, dict) or not isinstance(found.get("cells"), list):
        raise UnreadableNotebook(f"{name} is JSON, but no notebook of version 4: it has no cells")
    # nbformat would give the second another one, unasked
    ids = Counter(cell.get("id") for cell in found["cells"] if isinstance(cell, dict))
    if twice := [each for each, times in ids.items() if each and times > 1]:
        raise UnreadableNotebook(
            f"{name}: {ids[twice[0]]} cells have the id {twice[0]!r}; give each one of its own"
        )
    try:
        notebook = nbformat.reads(text, as_version=4)
    except Exception as error:  # nbformat lets its own and those of its schema through
        raise UnreadableNotebook(f"{name} is no notebook: {error}") from None
    for number, cell in enumerate(notebook.cells, start=1):
        if SIDES.search(cell.source):
            raise _open_merge(f"{name}, cell {number}")
    return notebook


def _open_merge(place: str) -> UnreadableNotebook:
    return UnreadableNotebook(
        f"{place}: a merge by git stands open there; choose one side, or take a whole file by "
        "`git checkout --ours` or `--theirs`"
    )
