"""What Sphinx must know of our notebooks: heads of chapters, alt texts, folds, formulas."""

import hashlib
import json
from binascii import a2b_base64
from pathlib import Path

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

LATEX = LatexToMathML(annotation=True, fancy_error=False)
log = logging.getLogger(__name__)


def in_words(cost: dict) -> str:
    """Time and memory as a reader wants them: `14 s with 0.6 GB`."""
    seconds = cost["seconds"]
    time = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
    return f"{time} with {cost['peak_bytes'] / 1e9:.1f} GB"


def is_notebook(app: Sphinx, page: str) -> bool:
    """Is this page made from a notebook?"""
    return Path(app.env.doc2path(page)).suffix == ".ipynb"


def prepare_notebook(app: Sphinx, page: str, text: list[str]) -> None:
    """Put a download and the measured cost under a notebook's title, and mark what to fold.

    The text that Sphinx has read, `text[0]`, is replaced. JupyterLab keeps the fold of a cell's
    outputs in its metadata; myst-nb wants a tag.
    """
    if not is_notebook(app, page):
        return
    notebook = json.loads(text[0])
    for cell in notebook["cells"]:
        if cell["metadata"].get("jupyter", {}).get("outputs_hidden"):
            cell["metadata"].setdefault("tags", []).append("hide-output")
    first = notebook["cells"][0]
    title, _, rest = "".join(first["source"]).partition("\n")
    if not title.startswith("# "):
        log.warning("the first cell must begin with the title: # Title", location=page)
    first["source"] = f"{title}\n\n{head(app, page)}\n\n{rest}"
    text[0] = json.dumps(notebook)


def head(app: Sphinx, page: str) -> str:
    """The line under a chapter's title."""
    name = Path(app.env.doc2path(page)).name
    download = f"{{download}}`Download this notebook <{name}>` to run and change it."
    cost = app.config.course_costs.get(name)
    return download + (f" When this page was made, it ran in {in_words(cost)}." if cost else "")


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
    app.add_html_math_renderer("mathml", (draw_formula, None), (draw_formula, None))
    app.connect("source-read", prepare_notebook)
    app.connect("doctree-read", describe_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
