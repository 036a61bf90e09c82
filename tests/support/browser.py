"""A browser for tests, and what it looks at: JupyterLab as `make lab` starts it, a folder of pages.

Where Playwright or a browser is missing, such tests are skipped; with CI set they fail.
"""

import contextlib
import functools
import http.server
import os
import shutil
import socket
import subprocess
import threading
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from course_utils.cli import lab
from course_utils.environment import ROOT

try:
    from playwright.sync_api import Error, expect, sync_playwright
except ImportError:  # the fixture `browser` says so
    Error = expect = sync_playwright = None

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHANNELS = ("chrome", "msedge", "chromium")  # where macOS and Windows keep them, and Playwright's
FLAGS = [
    "--disable-gpu", "--disable-quic", "--disable-domain-reliability",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]  # fmt: skip
PATIENCE = 180_000  # milliseconds to wait for what will come, on a slow machine too
TOKEN = "a-token-of-this-test"
CELL = ".jp-Notebook .jp-Cell.jp-mod-active"  # the one that `Lab.go_to` went to


@pytest.fixture(scope="module")
def browser():
    """A running browser. Of a module: while it lives, no other event loop can run."""
    if sync_playwright is None:
        do_without("Playwright is not installed: python -m pip install -r requirements.txt")
    with sync_playwright() as playwright:
        running = launch(playwright.chromium)
        expect.set_options(timeout=PATIENCE)
        yield running
        running.close()


def do_without(reason):
    """Skip the test, or fail where everything must be there."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(f"no browser test: {reason}")


def launch(chromium):
    """The first browser that starts, of those on the PATH and those in their usual places."""
    found = [{"executable_path": path} for name in NAMES if (path := shutil.which(name))]
    complaints = []
    for place in [*found, *({"channel": channel} for channel in CHANNELS)]:
        try:
            return chromium.launch(args=FLAGS, **place)
        except Error as error:
            complaints.append(f"{place}: {error.message.splitlines()[0]}")
    return do_without("no Chromium, Chrome or Edge starts.\n" + "\n".join(complaints))


@contextmanager
def open_page(browser, address, **options):
    """A new page at `address` in a context with these options; fails for what went wrong in it.

    Wrong are errors of its scripts or in its console, and requests to any other server.
    """
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE)
    home, faults = urlsplit(address).netloc, []

    def note_request(request):
        asked = urlsplit(request.url)
        if asked.scheme not in ("data", "blob") and asked.netloc != home:
            faults.append(f"asked another server: {request.url}")

    def note_message(message):
        if message.type == "error":
            faults.append(f"in the console: {message.text} {message.location}")

    context.on("request", note_request)
    context.on("console", note_message)
    context.on("weberror", lambda error: faults.append(f"a script failed: {error.error}"))
    context.on("page", lambda page: page.on("websocket", note_request))
    try:
        page = context.new_page()
        page.goto(address)
        yield page
    finally:
        context.close()
    assert not faults, "\n".join(faults)


def free_port():
    """A port of this machine that nobody listens to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def serve(folder):
    """Serve a folder over HTTP; yields the address."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    handler = functools.partial(Handler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def run_lab(scratch, monkeypatch, names):
    """JupyterLab by the command of `make lab`, on copies in `scratch` of the named notebooks.

    Yields the address. The progress, the settings and the notebooks of the learner stay untouched.
    """
    copy = Path(scratch, "course")
    (copy / "notebooks").mkdir(parents=True)
    for name in names:
        shutil.copy(ROOT / "notebooks" / name, copy / "notebooks")
    shutil.copytree(ROOT / "figures", copy / "figures")
    monkeypatch.setattr(lab, "ROOT", copy)
    address = f"http://127.0.0.1:{(port := free_port())}"
    command = lab.lab_command([
        "--no-browser", f"--port={port}", "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={TOKEN}", "--LabApp.expose_app_in_browser=True",
    ])  # fmt: skip
    places = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR",
              "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR")  # fmt: skip
    env = {**os.environ, **{name: str(Path(scratch, name)) for name in places}}
    env |= {"PYTHONPATH": str(ROOT), "COURSE_PROGRESS": str(Path(scratch, "progress.jsonl"))}
    log = Path(scratch, "log.txt")
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=env, stdout=file, stderr=subprocess.STDOUT)
    try:
        wait_for(process, f"{address}/api/status?token={TOKEN}", log)
        yield address
    finally:
        end_tree(process)


def wait_for(process, url, log):
    """Return when the server of `process` answers at `url`."""
    end = time.monotonic() + PATIENCE / 1000
    while True:
        try:
            with urllib.request.urlopen(url):
                return
        except OSError:
            said = log.read_text(encoding="utf-8", errors="replace")
            assert process.poll() is None, said
            assert time.monotonic() < end, said
            time.sleep(0.1)


def end_tree(process):
    """End a process and all that it started, the kernels of a server among them."""
    family = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    process.kill()
    process.wait()
    for each in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            each.kill()


@dataclass
class Lab:
    """A notebook that is open in JupyterLab on `page`."""

    page: object

    def wait_until(self, condition):
        """Wait for a JavaScript `condition` on `panel`, the notebook's."""
        self.page.wait_for_function(
            f"() => {{ const panel = window.jupyterapp?.shell.currentWidget; return {condition}; }}"
        )

    def run_all(self):
        """Run all cells, and wait for the last one; fails for a cell that stops with an error."""
        self._run("notebook:run-all-cells")

    def run_down_to(self, text):
        """Run the cells from the first one to the code cell with this text; fails as above."""
        self.go_to(text)
        self.page.evaluate("window.jupyterapp.shell.currentWidget.content.activeCellIndex += 1")
        self._run("notebook:run-all-above")

    def _run(self, command):
        self.wait_until("panel?.sessionContext?.session?.kernel?.status === 'idle'")
        self.page.evaluate(
            "command => { window.jupyterapp.commands.execute(command)"
            ".then(() => { window.cellsRan = true; }); }",
            command,
        )
        self.page.wait_for_function("() => window.cellsRan")
        errors = self.page.evaluate(
            """() => window.jupyterapp.shell.currentWidget.content.widgets
                .flatMap(cell => cell.model.sharedModel.outputs ?? [])
                .filter(output => output.output_type === 'error')
                .map(output => `${output.ename}: ${output.evalue}`)"""
        )
        assert not errors, "\n".join(errors)

    def go_to(self, text, cell_type="code"):
        """Make the first cell with this text the active one, scroll to it, and return it."""
        self.page.evaluate(
            """async ([text, type]) => {
                const notebook = window.jupyterapp.shell.currentWidget.content;
                const index = notebook.widgets.findIndex(
                    ({model}) => model.type === type && model.sharedModel.source.includes(text));
                if (index < 0) throw new Error(`no ${type} cell holds ${text}`);
                notebook.activeCellIndex = index;
                await notebook.scrollToItem(index, 'start');
            }""",
            [text, cell_type],
        )
        return self.page.locator(CELL)

    def replace_last_line(self, cell, text):
        """Type `text` in place of the last line of a cell; its indentation stays."""
        cell.locator(".cm-line").last.click()
        for key in ("End", "Shift+Home"):
            self.page.keyboard.press(key)
        self.page.keyboard.type(text)

    def run_active(self):
        """Shift+Enter: run the active cell and go to the next one."""
        self.page.keyboard.press("Shift+Enter")


@contextmanager
def open_notebook(browser, address, name, **options):
    """A `Lab` with the notebook of this name, from the server at `address`."""
    url = f"{address}/lab/tree/notebooks/{name}?token={TOKEN}&reset"
    with open_page(browser, url, **options) as page:
        lab_page = Lab(page)
        lab_page.wait_until("panel?.context?.isReady && panel.content.widgets.length > 0")
        yield lab_page
