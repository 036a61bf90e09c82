"""The heatmaps of the README: pictures that the notebooks drew, with real weights.

A cell whose metadata says `"gallery": "alignment"` gives its first picture to
figures/gallery_alignment.png. So the picture is made where the model is trained, and stands there.
"""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from course_utils.environment import ROOT


class Picture(NamedTuple):
    """One picture of the gallery: its file name, its bytes, and what it shows, in words."""

    name: str
    png: bytes
    alt: str


def pictures(notebooks: Path = ROOT / "notebooks") -> Iterator[Picture]:
    """The gallery pictures that the stored notebooks hold."""
    for path in sorted(notebooks.glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if name := cell["metadata"].get("gallery"):
                yield _picture(f"gallery_{name}.png", cell, path)


def _picture(name: str, cell: dict, path: Path) -> Picture:
    for output in cell["outputs"]:
        if "image/png" in output.get("data", {}):
            png = base64.b64decode(output["data"]["image/png"])
            return Picture(name, png, output["metadata"]["image/png"]["alt"])
    raise ValueError(f"cell {cell['id']} of {path.name} is to give {name}, but has drawn nothing")


def write_gallery(folder: Path) -> list[Path]:
    """Write every gallery picture into `folder`."""
    written = []
    for picture in pictures():
        path = folder / picture.name
        path.write_bytes(picture.png)
        written.append(path)
    return written
