"""Write the figures to files that are the same on every run, and put them into a page."""

import argparse
import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from matplotlib import rc_context

from course_utils.environment import ROOT
from course_utils.viz.canvas import Canvas
from course_utils.viz.gallery import write_gallery
from course_utils.viz.style import use_course_style

FOLDER = ROOT / "figures"
DUBLIN_CORE = "{http://purl.org/dc/elements/1.1/}"  # of an SVG file's metadata
# Letters become outlines, so a page needs no font; ids depend on what is drawn and not on chance.
_REPEATABLE = {"svg.fonttype": "path", "svg.hashsalt": "course"}


class Drawing(NamedTuple):
    """A figure: the function that draws it, and what it shows, in words."""

    draw: Callable[[], Canvas]
    alt: str


@cache
def figures() -> dict[str, Drawing]:
    """Every drawn figure of the course by the name of its file, in the order of the chapters."""
    chapters = import_module("course_utils.chapters")
    return {
        name: drawing
        for _, module in chapters.contents("figures")
        for name, drawing in module.FIGURES.items()
    }


def write(name, folder=FOLDER):
    """Draw the figure `name` into `folder` as SVG, with its alt text and fingerprint."""
    drawing = _drawing(name)
    with use_course_style(), rc_context(_REPEATABLE):
        canvas = drawing.draw()
        metadata = {
            "Title": Path(name).stem.replace("_", " "),
            "Description": drawing.alt,
            "Identifier": canvas.fingerprint(),
            "Creator": None,
            "Date": None,
        }
        path = Path(folder) / name
        canvas.figure.savefig(path, format="svg", metadata=metadata)
    # matplotlib ends some lines with a space
    text = re.sub(r"[ \t]+$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def is_stale(name, folder=FOLDER):
    """Is the file of the figure `name` missing, or does it show or say something else by now?"""
    drawing, path = _drawing(name), Path(folder) / name
    if not path.is_file():
        return True
    with use_course_style():
        wanted = {"identifier": drawing.draw().fingerprint(), "description": drawing.alt}
    root = ElementTree.parse(path).getroot()
    return any(root.findtext(f".//{DUBLIN_CORE}{key}") != text for key, text in wanted.items())


def figure_markdown(name, folder="../figures"):
    """The line that shows a figure in a notebook or a page: `![alt](../figures/x.svg)`."""
    return f"![{_drawing(name).alt}]({folder}/{name})"


def _drawing(name):
    try:
        return figures()[name]
    except KeyError:
        raise ValueError(f"no figure {name!r}; there are {', '.join(figures())}") from None


def main(options=None):
    """Draw everything in figures/ again."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils figures", description=main.__doc__
    )
    parser.add_argument("--out", type=Path, default=FOLDER, help="another folder to draw into")
    folder = parser.parse_args(options).out
    folder.mkdir(parents=True, exist_ok=True)
    for name in figures():
        print(write(name, folder))
    for path in write_gallery(folder):
        print(path)
