"""The course as a static site: the README is its cover, each chapter a page.

Pages are made from the outputs that the notebooks store; nothing runs here. The site asks nothing
of another host: formulas are MathML, which browsers draw themselves, and fonts are the reader's.
"""

import argparse
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from course_utils.chapters import CHAPTERS, Chapter, by_part, measured_costs
from course_utils.cli.addresses import repository
from course_utils.cli.notebooks import COLOURS, in_words
from course_utils.cli.site.archive import write_archive
from course_utils.cli.site.finish import finish_pages
from course_utils.cli.site.live_figures import MOVING, PAGE
from course_utils.environment import ROOT

OFFER = "this one, or `course.zip`, which its site offers; unpack it where you like."
LINK = r"\]\(([^)\s#:]+)\)"  # to a file of the course
MADE_BY_SPHINX = ".buildinfo"
CONF = Path(__file__).parent  # the folder of conf.py


class FaultyPages(Exception):
    """Pages that Sphinx warns about; the message holds its warnings."""


def cover(readme: str, chapters: Sequence[Chapter], costs: dict[str, dict]) -> str:
    """The front page: the README, with what each chapter cost, and the order of the pages."""
    for chapter in chapters:
        if cost := costs.get(chapter.file):
            row = rf"^(\|.*\]\(notebooks/{chapter.file}\).*?) *\|$"
            readme = re.sub(row, rf"\1; here {in_words(cost)} |", readme, flags=re.MULTILINE)
    menu = "".join(
        f"\n```{{toctree}}\n:hidden:\n:caption: {part}\n\n"
        + "".join(f"{c.number}. {c.title} <notebooks/{c.file}>\n" for c in members)
        + "```\n"
        for part, members in by_part(chapters)
    )
    offered = '<a href="course.zip">course.zip</a>, to be unpacked where you like.'
    return readme.replace(OFFER, offered) + menu


def lay_out(root: Path, source: Path, chapters: Sequence[Chapter], costs: dict[str, dict]) -> None:
    """Copy what the pages are made of: what README and its pages link to, figures, the cover."""
    readme = (root / "README.md").read_text(encoding="utf-8")
    linked = {root / name for name in re.findall(LINK, readme)}
    linked |= {root / "notebooks" / chapter.file for chapter in chapters}
    linked |= {*(root / "notebooks").glob("*.md")}  # the glossary, the way from the notes
    for page in [file for file in linked if file.suffix == ".md" and file.is_file()]:
        text = page.read_text(encoding="utf-8")
        linked |= {(page.parent / name).resolve() for name in re.findall(LINK, text)}
    for file in linked.union((root / "figures").glob("*")):
        if file.is_file():  # if not, Sphinx says which page misses it
            copy = source / file.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            if file.suffix == ".md":  # a page of its own, in no order with the chapters
                text = file.read_text(encoding="utf-8")
                copy.write_text(f"---\norphan: true\n---\n{text}", encoding="utf-8")
            else:
                shutil.copyfile(file, copy)
    (source / "index.md").write_text(cover(readme, chapters, costs), encoding="utf-8")
    if MOVING in readme:
        (source / "live.md").write_text(PAGE, encoding="utf-8")


def build_site(
    root: Path,
    out: Path,
    costs: dict[str, dict] | None = None,
    chapters: Sequence[Chapter] = CHAPTERS,
) -> None:
    """Build the site of the course in `root` (README.md, notebooks/, figures/) into folder `out`.

    The menu has the chapters in their order.

    Pages show what each notebook cost, where `costs` says it: {file name: {seconds, peak_bytes}}.
    A former site in `out` is replaced once the new one is whole; any other folder is not touched.
    Raises FaultyPages when Sphinx warns of anything, FileExistsError when `out` holds other files.
    """
    if out.exists() and not (out / MADE_BY_SPHINX).exists() and any(out.iterdir()):
        raise FileExistsError(f"{out} holds files that are not a site; name another folder: --out")
    costs = costs or {}
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch).resolve()
        source, fresh, warnings = scratch / "source", scratch / "site", io.StringIO()
        lay_out(root, source, chapters, costs)
        with patch_docutils(), docutils_namespace():
            app = Sphinx(
                source, CONF, fresh, scratch / "doctrees", "html",
                confoverrides={"course_costs": costs, "course_repository": repository(root)},
                status=None, warning=warnings,
            )  # fmt: skip
            app.build()
        finish_pages(fresh)
        write_archive(root, fresh / "course.zip")
        if warnings.getvalue():
            text = re.sub(COLOURS, "", warnings.getvalue())
            raise FaultyPages(text.replace(f"{source}{os.sep}", "").strip())
        shutil.rmtree(out, ignore_errors=True)
        shutil.move(fresh, out)


def main(argv: list[str]) -> int:
    """Build the site; 1 when a page is faulty or the folder holds something else."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils site",
        description="Build the course as a static site from the outputs that notebooks store.",
    )
    parser.add_argument("--out", type=Path, default=ROOT / "_site", help="default: _site")
    parser.add_argument(
        "--costs", type=Path, help="what `course --costs FILE` wrote: show time and memory"
    )
    args = parser.parse_args(argv)
    try:
        build_site(ROOT, args.out, measured_costs(args.costs) if args.costs else {})
    except (FaultyPages, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"The site is built: open {args.out / 'index.html'}")
    return 0
