"""Runs the notebooks that nbval collects as `make course` runs them; pytest loads this as a plugin.

nbval collects the cells, reads their tags, compares outputs and reports. Running is the course's
own: the same surroundings everywhere; a line that ends in `;` hides its result, and clear_output
and display updates act, as for a reader; a dead kernel is noticed at once; and what the kernel
calls an error is one, even where it only prints it (a line magic that is not there).
"""

from contextlib import ExitStack
from copy import deepcopy

import pytest
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbval.plugin import IPyNbCell, IPyNbFile, coalesce_streams

from course_utils.cli.notebooks import kernel


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    found = yield
    return [
        Notebook.from_parent(parent, path=file_path) if isinstance(each, IPyNbFile) else each
        for each in found
    ]


class Notebook(IPyNbFile):
    """A notebook whose cells run in one kernel of the course's runner."""

    def collect(self):
        for cell in super().collect():
            parts = {name: getattr(cell, name) for name in ("name", "cell_num", "cell", "options")}
            yield Cell.from_parent(self, **parts)

    def setup(self):
        self.stack = ExitStack()
        seconds = self.config.option.nbval_cell_timeout
        fresh = deepcopy(self.nb)
        self.client = self.stack.enter_context(kernel(fresh, self.path.parent, seconds=seconds))

    def teardown(self):
        self.stack.close()


class Cell(IPyNbCell):
    """A cell whose new outputs must be the stored ones, unless a tag says otherwise."""

    def runtest(self):
        notebook = self.parent
        if notebook.timed_out:  # nbval expects this cell to fail, and says so in its report
            self.raise_cell_error("an earlier cell hung or ended the kernel")
        if self.options["skip"]:
            pytest.skip()
        index = next(i for i, cell in enumerate(notebook.nb.cells) if cell is self.cell)
        fresh = notebook.client.nb.cells[index]
        try:
            notebook.client.execute_cell(fresh, index)
        except CellExecutionError as error:
            self.raise_cell_error("Cell execution caused an exception", error.traceback)
        except (CellTimeoutError, DeadKernelError) as error:
            notebook.timed_out = True
            self.raise_cell_error(str(error))
        if not self.options["check"]:
            return
        if not self.compare_outputs(fresh.outputs, coalesce_streams(self.cell.outputs)):
            self.raise_cell_error("Cell outputs differ", "\n".join(self.comparison_traceback))
