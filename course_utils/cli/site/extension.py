"""What Sphinx must know of our pages: heads of chapters, pictures, folds, formulas."""

import hashlib
import json
import re
from binascii import a2b_base64
from html import escape
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

from docutils import nodes
from math_core import LatexError, LatexToMathML
from PIL import Image
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

from course_utils.chapters import CHAPTERS
from course_utils.cli.addresses import notebook_links, setting
from course_utils.cli.notebooks import in_words
from course_utils.cli.site.exercise_help import with_help

JUMP = r"(?<=\]\()([\w.]*)#([^)\s]+)(?=\))"  # to a heading of this page or of another chapter
WIDE = 700  # pixels; a broader picture would be too small to read on a phone
LATEX = LatexToMathML(annotation=True, fancy_error=False)
ABOUT = (
    "Attention and the Transformer by running code: a model that translates in the page, notebooks "
    "that check themselves, exercises that name your mistake."
)
PREVIEW = "gallery_alignment.png"
log = logging.getLogger(__name__)


def is_notebook(app: Sphinx, page: str) -> bool:
    """Is this page made from a notebook?"""
    return Path(app.env.doc2path(page)).suffix == ".ipynb"


def prepare_notebook(app: Sphinx, page: str, text: list[str]) -> None:
    """Put a download and the measured cost under a title, mark what to fold, and mend jumps.

    In a page that is no notebook, such as the glossary, only jumps are mended.

    The text that Sphinx has read, `text[0]`, is replaced. JupyterLab keeps the fold of a cell's
    outputs in its metadata; myst-nb wants a tag.
    """
    if not is_notebook(app, page):
        text[0] = re.sub(JUMP, as_slug, text[0])
        return
    notebook = json.loads(text[0])
    notebook["metadata"].pop("widgets", None)
    for cell in notebook["cells"]:
        without_widgets(cell)
        if "proof" in cell["metadata"].get("tags", []):
            fold_proof(cell)
        elif cell["metadata"].get("jupyter", {}).get("outputs_hidden"):
            cell["metadata"].setdefault("tags", []).append("hide-output")
        if cell["cell_type"] == "markdown":
            cell["source"] = re.sub(JUMP, as_slug, "".join(cell["source"]))
    notebook["cells"] = with_help(notebook["cells"])
    first = notebook["cells"][0]
    title, _, rest = "".join(first["source"]).partition("\n")
    if not title.startswith("# "):
        log.warning("the first cell must begin with the title: # Title", location=page)
    first["source"] = f"{title}\n\n{head(app, page)}\n\n{rest}"
    text[0] = json.dumps(notebook)


def without_widgets(cell: dict) -> None:
    """Show what is stored beside a widget, its picture or text: a page has no kernel to ask."""
    for output in cell.get("outputs", []):
        output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)


def fold_proof(cell: dict) -> None:
    """Fold a cell that proves something, under what its first line, a comment, says it proves."""
    line = "".join(cell["source"]).split("\n")[0].lstrip("# ")
    cell["metadata"]["tags"].append("hide-cell")
    cell["metadata"]["mystnb"] = {"code_prompt_show": line, "code_prompt_hide": line}


def as_slug(jump: re.Match) -> str:
    """`02_x.ipynb#Scores,-first`, JupyterLab's name of a heading, as MyST's, `…#scores-first`."""
    slug = re.sub(r"[^\w-]", "", unquote(jump[2])).lower()
    return f"{jump[1]}#{slug}"


def head(app: Sphinx, page: str) -> str:
    """The line under a chapter's title."""
    name = Path(app.env.doc2path(page)).name
    download = (
        f"{{download}}`Download this notebook <{name}>`. To run it takes the whole course, in one "
        'folder: <a href="../course.zip">course.zip</a>.'
    )
    address = app.config.course_repository
    links = notebook_links(address, name) if address else {}
    more = "".join(f" [{where}]({link})." for where, link in links.items())
    cost = app.config.course_costs.get(name)
    ran = f" When this page was made, it ran in {in_words(cost)}." if cost else ""
    return download + more + ran


def describe_page(app: Sphinx, page: str, template: str, context: dict, document) -> None:
    """Title and description for search engines and for links that are shared."""
    chapter = next((c for c in CHAPTERS if page == f"notebooks/{c.name}"), None)
    about = f"{chapter.question} {chapter.builds}" if chapter else ABOUT
    title = chapter.title if chapter else app.config.project
    home = setting("Homepage")  # a preview needs a whole address
    tags = {"og:title": title, "og:description": about, "og:type": "website"}
    context["metatags"] = context.get("metatags", "") + "".join(
        [f'<meta name="description" content="{escape(about)}">']
        + [f'<meta property="{name}" content="{escape(text)}">' for name, text in tags.items()]
        + ([f'<meta property="og:image" content="{home}/_images/{PREVIEW}">'] if home else [])
    )


def describe_pictures(app: Sphinx, document: nodes.document) -> None:
    """Give each picture of an output the alt text that the notebook stores with it.

    myst-nb names the file of a picture by the hash of its bytes.
    """
    page = app.env.docname
    if not is_notebook(app, page):
        return
    notebook = json.loads(Path(app.env.doc2path(page)).read_text(encoding="utf-8"))
    alts = {
        hashlib.sha256(a2b_base64("".join(output["data"]["image/png"]))).hexdigest(): alt
        for cell in notebook["cells"]
        for output in cell.get("outputs", [])
        if (alt := output.get("metadata", {}).get("image/png", {}).get("alt"))
    }
    for image in document.findall(nodes.image):
        if alt := alts.get(Path(image["uri"]).stem):
            image["alt"] = alt


def let_wide_pictures_scroll(app: Sphinx, document: nodes.document) -> None:
    """Put each wide picture into a box of its own, class `wide`, which scrolls on small screens."""
    for image in list(document.findall(nodes.image)):
        path = Path(app.srcdir, image["uri"])
        if not path.is_file() or natural_width(path) <= WIDE:
            continue
        if isinstance(image.parent, nodes.paragraph):
            image.parent["classes"].append("wide")
        else:
            box = nodes.container(classes=["wide"])
            image.replace_self(box)
            box += image


def natural_width(picture: Path) -> float:
    """Pixels that a PNG or one of our SVG files, measured in points, is wide by itself."""
    if picture.suffix == ".svg":
        points = ElementTree.parse(picture).getroot().get("width", "0").removesuffix("pt")
        return float(points) * 96 / 72
    with Image.open(picture) as image:
        return image.width


def draw_formula(translator: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    """Write a formula as MathML; one that is no LaTeX is a warning, which fails the build."""
    block = isinstance(node, nodes.math_block)
    try:
        mathml = LATEX.convert_with_local_state(node.astext(), displaystyle=block)
    except LatexError as error:
        log.warning("formula %r: %s", node.astext(), error, location=node)
        mathml = ""
    translator.body.append(f'<div class="formula">{mathml}</div>' if block else mathml)
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_config_value("course_costs", {}, "env")
    app.add_config_value("course_repository", None, "env")
    app.add_html_math_renderer("mathml", (draw_formula, None), (draw_formula, None))
    app.connect("source-read", prepare_notebook)
    app.connect("html-page-context", describe_page)
    app.connect("doctree-read", describe_pictures)
    app.connect("doctree-read", let_wide_pictures_scroll)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
