"""Figures of the site that are alive: the translator on the cover, explorers in the chapters.

A picture stands where a live figure will: readers without scripts keep it. What a figure shows
lies in a script of its own, which is loaded when the figure is scrolled to.
"""

import hashlib
import json
from binascii import a2b_base64
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from course_utils.training.trained import trained_models
from course_utils.viz.live.page import model_script
from course_utils.viz.pages import page_script, page_style, scene_script

MODEL = "fra-eng"
MOVING = "live.svg"  # the picture in whose place the translator stands
SIZE = "9.9 MB"
WHOLE = (
    '<p class="live-more"><a href="live.html">The whole live page</a>: every head at once, '
    "switches, temperature, positions, a tour of eight things to do.</p>"
)
DOWNLOAD = '<a href="course.zip">the whole course as a zip</a>'
PAGE = f"""---
orphan: true
hide-toc: true
---

# A Transformer that translates in this page

A whole encoder-decoder with cross-attention, trained for one hour on one core, runs in this page by
itself: no server, nothing to install. Type English, see what each head looks at, and break it.

```{{raw}} html
<div data-live="_static/model.js" data-size="{SIZE}"></div>
<noscript><p>This figure needs JavaScript.</p></noscript>
```

Go on: [chapter 0, Start here](notebooks/00_start_here.ipynb), {DOWNLOAD}, or
[the cover](index.md).
"""


def scenes_of(notebook: dict) -> dict[str, str]:
    """The scenes that a notebook stores, by the hash of the picture that each goes with."""
    return {
        hashlib.sha256(a2b_base64("".join(output["data"]["image/png"]))).hexdigest(): scene
        for cell in notebook["cells"]
        for output in cell.get("outputs", [])
        if (scene := output.get("metadata", {}).get("image/png", {}).get("scene"))
    }


def make_figures_live(app: Sphinx, document: nodes.document) -> None:
    """Put each picture of a live figure into an element that the script builds the figure in."""
    page, path = app.env.docname, Path(app.env.doc2path(app.env.docname))
    up = "../" * page.count("/")
    is_notebook = path.suffix == ".ipynb"
    scenes = scenes_of(json.loads(path.read_text(encoding="utf-8"))) if is_notebook else {}
    for image in list(document.findall(nodes.image)):
        name = Path(image["uri"]).stem
        if page == app.config.root_doc and Path(image["uri"]).name == MOVING:
            opening = f'<div data-live="{up}_static/model.js" data-compact data-size="{SIZE}">'
            wrap(image, opening, f"</div>{WHOLE}")
        elif name in scenes:
            folder = Path(app.outdir, "_static", "scenes")
            folder.mkdir(parents=True, exist_ok=True)
            address = f"{up}_static/scenes/{name[:16]}.js"
            script = scene_script(address, scenes[name])
            (folder / f"{name[:16]}.js").write_text(script, encoding="utf-8")
            wrap(image, f'<div data-scene="{address}">', "</div>")


def wrap(image: nodes.image, opening: str, closing: str) -> None:
    """Put HTML before and after a picture, or after the paragraph that holds it alone."""
    alone = isinstance(image.parent, nodes.paragraph)
    node = image.parent if alone else image
    around = nodes.container()
    node.replace_self(around)
    around["classes"].clear()  # those of the picture, which replace_self hands on
    around += [nodes.raw("", opening, format="html"), node, nodes.raw("", closing, format="html")]


def add_scripts(app: Sphinx, page: str, template: str, context: dict, document) -> None:
    """The script and the style of live figures, on pages that have any."""
    if document is None:
        return
    if any(
        "data-live=" in x.astext() or "data-scene=" in x.astext()
        for x in document.findall(nodes.raw)
    ):
        app.add_css_file("live.css")
        app.add_js_file("live.js", loading_method="defer")


def write_scripts(app: Sphinx, exception: Exception | None) -> None:
    """Write what the pages load, once they are there."""
    static = Path(app.outdir, "_static")
    if exception or app.builder.name != "html":
        return
    (static / "live.js").write_text(page_script(), encoding="utf-8")
    (static / "live.css").write_text(page_style(), encoding="utf-8")
    if Path(app.srcdir, "live.md").exists():
        script = model_script(trained_models()[MODEL])
        (static / "model.js").write_text(script, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("doctree-read", make_figures_live)
    app.connect("html-page-context", add_scripts)
    app.connect("build-finished", write_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
