"""Where a cell of a notebook stands: its section, and the link that leads there."""

import re
from collections import Counter
from dataclasses import dataclass
from urllib.parse import quote

import nbformat

from course_utils.chapters import CHAPTERS, Chapter
from course_utils.cli.notebook_file import read_notebook
from course_utils.cli.notebooks import NOTEBOOKS

HEADING = r"^#{2,3} (.+)$"  # as deep as headings of the site have addresses
FENCE = r"^```.*?^```"
ENDS_A_LINK = r"""[()<>|%"]"""  # what Markdown would not read as part of an address


@dataclass(frozen=True)
class Section:
    """A section of a chapter; the text above the first heading has the heading ""."""

    chapter: Chapter
    heading: str = ""

    @property
    def link(self) -> str:
        """In Markdown, for a page beside the notebooks: `[2. The end](02_….ipynb#The-end)`.

        The target is named as JupyterLab names a heading; the site makes its own form of it.
        """
        anchor = re.sub(ENDS_A_LINK, lambda m: quote(m[0]), self.heading.replace(" ", "-"))
        target = f"#{anchor}" if anchor else ""
        name = self.heading or self.chapter.title
        return f"[{self.chapter.number}. {name}]({self.chapter.file}{target})"


def sections() -> dict[str, Section]:
    """The section of every cell, in the order of reading: {"02#c02-half": Section}.

    A heading that holds a formula, or that stands twice in a chapter, begins no section of its own:
    no address leads to it.
    """
    found = {}
    for chapter in CHAPTERS:
        cells = read_notebook(NOTEBOOKS / chapter.file).cells
        headings = {cell.id: _headings(cell) for cell in cells}
        times = Counter(heading for some in headings.values() for heading in some)
        section = Section(chapter)
        for cell in cells:
            own = [h for h in headings[cell.id] if times[h] == 1 and "$" not in h]
            if own:
                section = Section(chapter, own[0])
            found[f"{chapter.name[:2]}#{cell.id}"] = section
            if own:
                section = Section(chapter, own[-1])
    return found


def _headings(cell: nbformat.NotebookNode) -> list[str]:
    """The headings of a text cell as they are read, without their marks."""
    if cell.cell_type != "markdown":
        return []
    text = re.sub(FENCE, "", cell.source, flags=re.M | re.S)
    return [re.sub(r"[`*]", "", heading).strip() for heading in re.findall(HEADING, text, re.M)]
