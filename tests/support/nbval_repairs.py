"""Mends nbval 0.11.0, the pinned release; pytest loads this as a plugin (see pyproject.toml).

- Each notebook's kernel starts in the same surroundings wherever the tests run.
- A cell that ends in `;` hides its result, as it does for a reader (nbval#194, ipython#14162).
- clear_output and display updates act on the outputs before these are compared.
- A kernel that died is noticed at once, not when the cell's time is up.
- A busy machine may take its time between two messages (nbval#231).
"""

import os
import tempfile
import time
from collections import deque
from queue import Empty
from unittest.mock import patch

from nbval.kernel import RunningKernel
from nbval.plugin import IPyNbFile

from course_utils.cli.notebooks import headless_environment

MESSAGE_SECONDS = 60
OUTPUTS = ("stream", "display_data", "execute_result", "error")

start_kernel, stop_kernel = IPyNbFile.setup, IPyNbFile.teardown
wait_until_idle = RunningKernel.await_idle


def setup(self):
    self.scratch = tempfile.TemporaryDirectory()
    with patch.dict(os.environ, headless_environment(self.scratch.name), clear=True):
        start_kernel(self)


def teardown(self):
    stop_kernel(self)
    self.scratch.cleanup()


def execute_cell_input(self, cell_input, allow_stdin=None):
    self.running = self.kc.execute(
        cell_input, store_history=True, allow_stdin=allow_stdin, stop_on_error=False
    )
    return self.running


def await_reply(self, msg_id, timeout=None):
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        try:
            message = self.kc.get_shell_msg(timeout=1)
        except Empty:
            if not self.is_alive():
                raise RuntimeError("the kernel died while it ran this cell") from None
            if end is not None and time.monotonic() > end:
                raise
        else:
            if message["parent_header"].get("msg_id") == msg_id:
                return


def await_idle(self, parent_id, timeout):
    if getattr(self, "idle", None) != parent_id:  # otherwise collected() has read that message
        wait_until_idle(self, parent_id, timeout)


def get_kernel_message(self, timeout=None, stream="iopub"):
    if not self.__dict__.setdefault("messages", deque()):
        self.messages.extend(collected(self.kernel))
    return self.messages.popleft()


def collected(kernel) -> list[dict]:
    """The outputs of the running cell as a reader finally sees them, then the idle message."""
    shown, clear_next = [], False
    while True:
        message = kernel.get_message("iopub", timeout=MESSAGE_SECONDS)
        kind, content = message["msg_type"], message["content"]
        if message["parent_header"].get("msg_id") != kernel.running:
            continue
        if kind == "status" and content["execution_state"] == "idle":
            kernel.idle = kernel.running
            return [*shown, message]
        if kind == "update_display_data":
            update(shown, content)
        elif kind == "clear_output":
            clear_next = bool(content.get("wait"))
            if not clear_next:
                shown.clear()
        elif kind in OUTPUTS:
            if clear_next:
                shown.clear()
            clear_next = False
            shown.append(message)


def update(shown: list[dict], content: dict) -> None:
    """Put new content into every output that was shown under the same display id."""
    for message in shown:
        before = message["content"].get("transient", {}).get("display_id")
        if before is not None and before == content["transient"]["display_id"]:
            message["content"].update(data=content["data"], metadata=content["metadata"])


IPyNbFile.setup, IPyNbFile.teardown = setup, teardown
IPyNbFile.get_kernel_message = get_kernel_message
RunningKernel.execute_cell_input = execute_cell_input
RunningKernel.await_reply, RunningKernel.await_idle = await_reply, await_idle
