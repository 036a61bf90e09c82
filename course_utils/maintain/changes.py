"""What a learner may do to a chapter: natural changes of its numbers, each tried.

python -m course_utils.maintain.changes notebooks/02_masked_softmax.ipynb [--cell c02-004] [--whole]

A chapter's changes stand in its folder, in `changes.py`: CHANGES lists (cell id, old text, new
text). Each is applied alone to the chapter, which then runs to its end as at a learner's desk.
Printed is what the claims said, and where a cell ended in an error: a clear one is raised by the
course with words of its own; a bare one comes out of Python, torch or an assert.

SHORT, in the same file and of the same form, makes the trainings of a chapter short: fewer updates,
pairs, seeds. All its lines are applied together, unless --whole is given; a change comes first, and
a line of SHORT whose old text it has touched is left out for that change.

The chapter runs once; where a change applies, a copy of the process goes on with the changed cell,
so that thirty changes cost little more than the cells below them. A first copy runs to the end and
tells what it imported, so that no other has to. Needs a system that forks.
"""

import argparse
import contextlib
import gc
import importlib
import io
import json
import os
import select
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import nbformat
import torch
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from course_utils.checker.lesson import HEADLESS, NO_LONGER
from course_utils.cli.notebook_file import read_notebook
from course_utils.cli.notebooks import headless_environment
from course_utils.environment import ROOT

SECONDS = 900  # what the rest of a chapter may take
Change = tuple[str, str, str]  # cell id, old text, new text
PLAIN = (AssertionError, IndexError, NameError, KeyError)  # bare wherever they are raised


@dataclass(frozen=True)
class Tried:
    """One change and what became of the chapter.

    Attributes:
        cell, old, new: what was changed.
        spoke: what the claims said that no longer held.
        clear, bare: errors with the id of their cell, with words of ours and without.
    """

    cell: str
    old: str
    new: str
    spoke: list[str] = field(default_factory=list)
    clear: list[str] = field(default_factory=list)
    bare: list[str] = field(default_factory=list)


def changes_of(chapter: str) -> list[Change]:
    """The changes that are listed for a chapter, named by its notebook's stem."""
    return importlib.import_module(f"course_utils.chapters.ch{chapter}.changes").CHANGES


def short_of(chapter: str) -> list[Change]:
    """What makes the trainings of a chapter short; nothing where there is nothing to shorten."""
    listed = importlib.import_module(f"course_utils.chapters.ch{chapter}.changes")
    return getattr(listed, "SHORT", [])


def changed(cell: nbformat.NotebookNode, change: Change | None, short: list[Change]) -> str:
    """The source of a cell after a change, then after each line of `short` that still applies."""
    source = cell.source
    if change is not None and change[0] == cell.id:
        source = source.replace(*change[1:])
    for where, old, new in short:
        if where == cell.id and source.count(old) == 1:
            source = source.replace(old, new)
    return source


def try_changes(
    notebook: nbformat.NotebookNode, changes: list[Change], short: list[Change] = ()
) -> Iterator[Tried]:
    """Run a notebook in this process, and in a copy of it for each change, one after another.

    Raises:
        ValueError: a change names no cell, or its old text does not stand there exactly once.
        RuntimeError: the notebook without a change, or the process of a change, fails.
    """
    cells = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    sources = {cell.id: cell.source for cell in cells}
    for cell, old, _ in [*changes, *short]:
        if sources.get(cell, "").count(old) != 1:
            raise ValueError(f"{old!r} does not stand exactly once in a code cell {cell!r}")
    torch.set_num_threads(1)  # a copy of a process has none of its threads, and would wait for them
    shell = _shell()
    _import(_in_a_copy(lambda: _imported(shell, cells, short)))
    for i, cell in enumerate(cells):
        for change in changes:
            if change[0] == cell.id:
                gc.freeze()  # or the collector of each copy would touch, and so copy, all there is
                yield Tried(**_in_a_copy(lambda: asdict(_rest(shell, cells[i:], change, short))))  # noqa: B023
        _run(shell, changed(cell, None, short))


def _shell() -> InteractiveShell:
    """A new one that keeps no history; pieces that display something ask for the one there is."""
    InteractiveShell.clear_instance()
    settings = Config()
    settings.HistoryManager.enabled = False
    return InteractiveShell.instance(config=settings)


def _run(shell: InteractiveShell, source: str) -> tuple[str, BaseException | None]:
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        result = shell.run_cell(source)
    return text.getvalue(), result.error_before_exec or result.error_in_exec


def _rest(
    shell: InteractiveShell,
    cells: list[nbformat.NotebookNode],
    change: Change | None,
    short: list[Change],
) -> Tried:
    """The chapter from the changed cell on; a learner goes on after an error, and so does this."""
    tried = Tried(*change or ("", "", ""))
    for cell in cells:
        printed, error = _run(shell, changed(cell, change, short))
        tried.spoke.extend(line for line in printed.splitlines() if NO_LONGER in line)
        if error is not None:
            words = f"{cell.id}: {type(error).__name__}: {error}".splitlines()[0]
            (tried.clear if _is_clear(error) else tried.bare).append(words)
    return tried


def _imported(
    shell: InteractiveShell, cells: list[nbformat.NotebookNode], short: list[Change]
) -> list[str]:
    """The modules that the chapter takes in, from its first cell to its last, without a change."""
    before = set(sys.modules)
    tried = _rest(shell, cells, None, short)
    if tried.clear or tried.bare:
        raise RuntimeError(f"without a change it fails: {[*tried.clear, *tried.bare]}")
    return [name for name in sys.modules if name not in before]


def _import(modules: list[str]) -> None:
    for name in modules:
        with contextlib.suppress(Exception):  # some are no files; what imports them will tell
            importlib.import_module(name)


def _is_clear(error: BaseException) -> bool:
    """Raised by a line of the course itself, with a kind that says more than that it failed."""
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    return str(ROOT / "course_utils") in last and not isinstance(error, PLAIN)


def _in_a_copy(work: Callable[[], dict | list]) -> dict | list:
    """Call `work` in a copy of this process and bring back what it returns, by way of JSON."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        with os.fdopen(writer, "w", encoding="utf-8") as pipe:
            try:
                answer = work()
            except BaseException as error:
                answer = f"{type(error).__name__}: {error}"
            pipe.write(json.dumps(answer))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        if not select.select([pipe], [], [], SECONDS)[0]:
            os.kill(child, signal.SIGKILL)
        answer = pipe.read()
    os.waitpid(child, 0)
    answer = json.loads(answer or f'"it was killed, or ran for more than {SECONDS} s"')
    if isinstance(answer, str):
        raise RuntimeError(f"the process of a change has failed: {answer}")
    return answer


def try_chapter(path: Path, cell: str | None = None, whole: bool = False) -> Iterator[Tried]:
    """Try all changes of a chapter, or those of one cell, as at a learner's desk.

    Its trainings are made short, if they are not to be `whole`.
    """
    changes = [c for c in changes_of(path.stem) if cell in (None, c[0])]
    short = [] if whole else short_of(path.stem)
    before, here = dict(os.environ), os.getcwd()
    with tempfile.TemporaryDirectory() as scratch:
        os.environ.update(headless_environment(scratch))
        os.environ.pop(HEADLESS)
        os.chdir(path.parent)
        try:
            yield from try_changes(read_notebook(Path(path.name)), changes, short)
        finally:
            os.chdir(here)
            os.environ.clear()
            os.environ.update(before)


def main(arguments: list[str] | None = None) -> int:
    """Print what each change did; 1 when one ended in a bare error."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.maintain.changes",
        description="Try the natural changes that are listed for a chapter.",
    )
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--cell", help="only the changes of this cell")
    parser.add_argument("--whole", action="store_true", help="with the full trainings")
    options = parser.parse_args(arguments)
    tried = []
    for one in try_chapter(options.notebook, options.cell, options.whole):
        tried.append(one)
        print(f"{one.cell}: {one.old}  ->  {one.new}")
        for mark, lines in (("", one.spoke), ("clear: ", one.clear), ("BARE: ", one.bare)):
            for line in lines:
                print(f"    {mark}{line}", flush=True)
    bare = sum(bool(one.bare) for one in tried)
    spoke = sum(bool(one.spoke) for one in tried)
    print(f"{len(tried)} changes: {spoke} made a claim speak, {bare} ended in a bare error")
    return 1 if bare else 0


if __name__ == "__main__":
    sys.exit(main())
