"""Pages that carry what they show, for figures that run in a browser without a notebook."""

import base64
import json
import zlib
from html import escape
from pathlib import Path

from course_utils.viz.scripts import as_text, bundle

VIZ = Path(__file__).parent
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="{description}">
<meta property="og:title" content="{title}">
<meta property="og:description" content="{description}">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
{style}</style>
<body data-theme="auto">
<main>
<h1>{title}</h1>
{body}
</main>
{scripts}
</html>
"""


def page_script() -> str:
    """The script of all live figures, for a <script> element without a type."""
    return f"(() => {{\n{bundle(VIZ / 'live' / 'site.js')}}})();\n"


def page_style() -> str:
    """The style of all live figures."""
    files = (VIZ / "explorer" / "explorer.css", VIZ / "live" / "live.css")
    return "".join(path.read_text(encoding="utf-8") for path in files)


def scene_text(payload: dict) -> str:
    """A payload of `pack_scene` as one line of text: JSON, compressed, in base64."""
    text = json.dumps(payload, default=lambda data: base64.b64encode(data).decode("ascii"))
    return base64.b64encode(zlib.compress(text.encode("utf-8"), 9)).decode("ascii")


def scene_script(name: str, text: str) -> str:
    """A script that brings the scene `text` of `scene_text` under a name."""
    entry = f"window.courseScenes[{json.dumps(name)}] = {json.dumps(text)};\n"
    return f"window.courseScenes ??= {{}};\n{entry}"


def whole_page(title: str, description: str, body: str, scripts: list[str]) -> str:
    """One file with all its scripts and styles."""
    style = (VIZ / "live" / "page.css").read_text(encoding="utf-8") + page_style()
    return PAGE.format(
        title=escape(title),
        description=escape(description),
        style=style,
        body=body,
        scripts="\n".join(f"<script>\n{as_text(s)}</script>" for s in [*scripts, page_script()]),
    )
