"""Show the source of a finished piece, what another chapter printed, or numbers on one line."""

import inspect
import json
from collections.abc import Iterable, Mapping

from IPython.display import Markdown, display

from course_utils.environment import ROOT


def show_source(*pieces) -> None:
    """Display the source of classes or functions, as it stands in `course_utils`."""
    for piece in pieces:
        display(Markdown(f"```python\n{inspect.getsource(piece).rstrip()}\n```"))


def listing(values: Mapping | Iterable, spec: str = "") -> str:
    """Values on one line, each in the format `spec`: `0.13, 0.73`, or `place 0.13, word 0.73`.

    values: a list or a vector of any kind, or a mapping, whose keys then stand before the values.
    """
    if isinstance(values, Mapping):
        return ", ".join(f"{name} {value:{spec}}" for name, value in values.items())
    return ", ".join(f"{value:{spec}}" for value in values)


def stored_output(notebook: str, result: str) -> str:
    """What the cell of `notebook` whose metadata says `"result": result` printed when last run.

    So a chapter can quote the measurement of another one without repeating its training.

    Raises:
        LookupError: there is no such cell, or it has printed nothing.
    """
    path = ROOT / "notebooks" / f"{notebook}.ipynb"
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["metadata"].get("result") == result:
            streams = [o["text"] for o in cell["outputs"] if o["output_type"] == "stream"]
            if streams:
                return "".join("".join(lines) for lines in streams).rstrip()
    raise LookupError(f"{path.name} has no cell that printed the result {result!r}: run it first")
