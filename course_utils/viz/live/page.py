"""Write the live page of a trained model."""

import json
from pathlib import Path

from course_utils.text.corpora import load_corpus
from course_utils.viz.live.packed_model import pack_model
from course_utils.viz.pages import whole_page

COUNTED = 50  # sentences of a live page to count over


def model_script(folder: str | Path) -> str:
    """A script that brings a trained model, and sentences to count over."""
    sources = sorted({pair.source for pair in load_corpus("everyday").pairs})
    step = len(sources) // COUNTED
    packed = {**pack_model(folder), "sentences": sources[::step][:COUNTED]}
    return f"window.courseModel = {json.dumps(packed)};\n"


def write_live_page(folder: str | Path, out: Path) -> None:
    """Write the live page of a trained model.

    Raises:
        Refused, ValueError: see `pack_model`. OSError: `out` cannot be written.
    """
    script = model_script(folder)
    text = whole_page(
        "A Transformer that translates in this page",
        "Type English and watch every attention head of a Transformer say it in French; then "
        "switch heads off, hide words, and see what breaks.",
        LIVE.format(size=f"{len(script) / 1e6:.1f} MB"),
        [script],
    )
    out.write_text(text, encoding="utf-8")


LIVE = """<p>A whole encoder-decoder with cross-attention, trained for one hour on one core, runs in
this page by itself: no server, nothing to install. Type English, see what each head looks at, and
break it.</p>
<div data-live="#model" data-size="{size}"></div>
<noscript><p>This figure needs JavaScript.</p></noscript>"""
