"""Rules that keep the notebooks readable everywhere and their comparison by nbval meaningful.

Nothing is run here; `faults` reads a notebook and names each rule that it breaks, and where.
"""

import copy
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from nbval.plugin import comment_markers

from course_utils.environment import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MEGABYTES = 2
NOT_COMPARED = {"nbval-ignore-output", "nbval-skip"}
MAY_RAISE = {"raises-exception", "nbval-raises-exception"}
ADDRESS = r"\b0x[0-9a-f]{6,}"
DAY = r"\b20\d\d-\d\d-\d\d\b"
PRIVATE_PATH = r"(?<![\w.])(/(home|root|Users|tmp|var/folders)/|[A-Z]:\\+Users)"
PICTURE = r"!\[(?P<alt>[^\]]*)\]\((?P<target>[^)\s]+)[^)]*\)"
IMG = r"<img\b[^>]*>"
LINK = r"(?<!!)\[[^\]]+\]\((?P<target>[^)\s]+)\)"


def faults(notebook: nbformat.NotebookNode, folder: Path) -> Iterator[str]:
    """Every rule that a notebook in `folder` breaks."""
    yield from document_faults(notebook)
    for cell in notebook.cells:
        where = f"cell {cell.get('execution_count') or ''} ({cell.get('id')})"
        check = code_faults if cell.cell_type == "code" else text_faults
        for fault in check(cell, folder):
            yield f"{where}: {fault}"


def document_faults(notebook: nbformat.NotebookNode) -> Iterator[str]:
    """What is wrong with the notebook as a whole."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            nbformat.validate(copy.deepcopy(notebook))
        except Exception as error:
            yield f"no valid notebook: {str(error).splitlines()[0]}"
    if notebook.metadata.get("kernelspec", {}).get("name") != "python3":
        yield "the kernel is not called python3"
    if "widgets" in notebook.metadata:
        yield "metadata.widgets keeps the state of widgets, which viewers stumble over"
    filled = [c for c in notebook.cells if c.cell_type == "code" and c.source.strip()]
    if [c.execution_count for c in filled] != list(range(1, len(filled) + 1)):
        yield "not run from top to bottom (nbval does not compare cells that were not run)"


def code_faults(cell: nbformat.NotebookNode, folder: Path) -> Iterator[str]:
    """What is wrong with a code cell and its outputs."""
    tags = set(cell.metadata.get("tags", []))
    if cell.source.rstrip().endswith(";"):
        yield "ends in ';': assign the result to _ instead"
    if re.search(r"^\s*[%!]\s*(python -m )?pip\b|\bpip install\b", cell.source, re.MULTILINE):
        yield "installs packages: what is needed stands in requirements.txt"
    if re.search(rf"#+\s*({'|'.join(comment_markers)})\s*$", cell.source, re.MULTILINE):
        yield "tells nbval what to do in a comment: use a tag, and say why in metadata.why"
    if tags & (NOT_COMPARED | MAY_RAISE) and not str(cell.metadata.get("why", "")).strip():
        yield f"{', '.join(sorted(tags))} without a reason in metadata.why"
    if "execution" in cell.metadata:
        yield "metadata.execution keeps times that change with every run"
    for output in cell.outputs:
        yield from output_faults(output, tags)


def output_faults(output: nbformat.NotebookNode, tags: set[str]) -> Iterator[str]:
    """What is wrong with an output of a cell with these tags."""
    if output.output_type == "error" and not tags & MAY_RAISE:
        yield f"ends in an error: {output.ename}"
    if output.get("name") == "stderr":
        yield f"writes to stderr: {output.text.strip()[-60:]!r}"
    texts = {"text": output.get("text", ""), **output.get("data", {})}
    for kind, text in texts.items():
        if kind == "image/svg+xml":
            yield "an SVG picture, which nbval compares letter by letter: use PNG"
        if kind.startswith("image/") or not isinstance(text, str):
            continue
        if re.search(PRIVATE_PATH, text):
            yield f"shows a folder of one computer in {kind}"
        if re.search(ADDRESS, text) and not tags & NOT_COMPARED:
            yield f"shows a memory address in {kind}"
        if re.search(DAY, text) and not tags & NOT_COMPARED:
            yield f"shows a day in {kind}: tomorrow it may be another"


def text_faults(cell: nbformat.NotebookNode, folder: Path) -> Iterator[str]:
    """What is wrong with a text cell: pictures without words for them, links that lead nowhere."""
    text = re.sub(r"```.*?```|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]*\$", "", cell.source, flags=re.DOTALL)
    for picture in re.finditer(PICTURE, text):
        if not picture["alt"].strip():
            yield f"picture {picture['target']} without alt text"
    for tag in re.findall(IMG, text):
        if not re.search(r"""\balt=("[^"]+"|'[^']+')""", tag):
            yield f"{tag} without alt text"
    targets = [m["target"] for m in [*re.finditer(PICTURE, text), *re.finditer(LINK, text)]]
    targets += re.findall(r"""<img\b[^>]*\bsrc=["']([^"']+)""", text)
    for target in targets:
        path = target.split("#")[0]
        if path and not re.match(r"\w+:", path) and not (folder / path).exists():
            yield f"{target} leads nowhere"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_keeps_the_rules(path):
    found = list(faults(nbformat.read(path, as_version=4), path.parent))
    if path.stat().st_size > MEGABYTES * 1e6:
        found.append(f"larger than {MEGABYTES} MB")
    assert not found, "\n".join(found)


def notebook_of(*cells, **metadata):
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)"}
    return new_notebook(cells=list(cells), metadata={"kernelspec": kernel, **metadata})


def ran(source="x", *outputs, count=1, **metadata):
    return new_code_cell(source, execution_count=count, outputs=list(outputs), metadata=metadata)


def stream(text, name="stdout"):
    return new_output("stream", name=name, text=text)


def shown(**data):
    return new_output("display_data", data={k.replace("_", "/"): v for k, v in data.items()})


ERROR = new_output("error", ename="ValueError", evalue="no", traceback=[])

GOOD = {
    "plain": ran("print(1)", stream("1\n")),
    "a reason for a loose tag": ran(
        "%timeit x", stream("3 ms\n"), tags=["nbval-ignore-output"], why="a time"
    ),
    "an expected error": ran("f()", ERROR, tags=["raises-exception"], why="the mistake is shown"),
    "a picture": new_markdown_cell("![two curves](here.png) and $a![b](c)$ and `![](x)`"),
    "links": new_markdown_cell("[here](here.png#top) [web](https://example.org) [below](#below)"),
    "a png": ran("show()", shown(image_png="0x123456789", text_plain="<Figure>")),
}

BAD = {
    "top to bottom": ran(count=3),
    "top to bottom ": ran(count=None),
    "ends in ';'": ran("plot(x);\n"),
    "installs packages": ran("!pip install torch"),
    "installs packages ": ran("%pip install torch"),
    "in a comment": ran("# NBVAL_IGNORE_OUTPUT\nx"),
    "metadata.why": ran(tags=["nbval-ignore-output"]),
    "metadata.why ": ran("f()", ERROR, tags=["raises-exception"], why=" "),
    "times that change": ran(execution={"iopub.execute_input": "2026-01-01"}),
    "ends in an error": ran("f()", ERROR),
    "writes to stderr": ran("x", stream("careful", name="stderr")),
    "SVG": ran("show()", new_output("display_data", data={"image/svg+xml": "<svg/>"})),
    "memory address": ran("x", stream("<object at 0x7f2a3b4c5d6e>\n")),
    "shows a day": ran("x", stream("last on 2026-01-05\n")),
    "folder of one computer": ran("x", stream("/home" + "/ada/course\n")),
    "without alt text": new_markdown_cell("![](here.png)"),
    "without alt text ": new_markdown_cell('<img src="here.png" alt="">'),
    "leads nowhere": new_markdown_cell("[next](gone.ipynb)"),
    "leads nowhere ": new_markdown_cell("![a map](gone.png)"),
}


@pytest.mark.parametrize("cell", GOOD.values(), ids=GOOD)
def test_good_cells_pass(cell, tmp_path):
    (tmp_path / "here.png").touch()
    assert list(faults(notebook_of(cell), tmp_path)) == []


@pytest.mark.parametrize(("fault", "cell"), BAD.items(), ids=BAD)
def test_each_fault_is_found(fault, cell, tmp_path):
    (tmp_path / "here.png").touch()
    found = list(faults(notebook_of(cell), tmp_path))
    assert len(found) == 1
    assert fault.strip() in found[0]


def test_faults_of_the_whole_notebook_are_found(tmp_path):
    kept = notebook_of(ran(), widgets={})
    assert "metadata.widgets" in next(faults(kept, tmp_path))
    other = notebook_of(ran())
    other.metadata.kernelspec.name = "my-env"
    assert "python3" in next(faults(other, tmp_path))
    without_id = notebook_of(ran())
    del without_id.cells[0]["id"]
    assert "no valid notebook" in next(faults(without_id, tmp_path))
