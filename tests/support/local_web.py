"""A server on this machine in place of the web, for tests of downloads."""

import gc
import http.server
import io
import threading
import warnings
import zipfile
from dataclasses import replace
from hashlib import sha256

import pooch
import pytest

from course_utils.text import registry

LINES = b"Go.\tVa !\nI lost.\tJ'ai perdu.\n"


def archive(*members):
    """The bytes of a zip with these (name, content) members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members:
            file.writestr(name, content)
    return buffer.getvalue()


def load_from(monkeypatch, name, port, **changes):
    """Let a corpus be downloaded from a port of this machine."""
    source = registry.CORPORA[name]
    files = tuple(
        replace(file, url=f"http://127.0.0.1:{port}/{file.name}", **changes)
        for file in source.files
    )
    monkeypatch.setitem(registry.CORPORA, name, replace(source, files=files))


@pytest.fixture
def web(tmp_path, monkeypatch):
    """Serve fra-eng from here, and begin with an empty cache.

    Yields (served, asked, cache): what is served by path (bytes, or a function that answers by the
    request's handler), the paths asked for so far, and the folder of the cache.
    """
    served, asked = {}, []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            content = served.get(self.path)
            if callable(content):
                content(self)
                return
            self.send_response(200 if content is not None else 404)
            self.end_headers()
            self.wfile.write(content or b"<html>not here</html>")

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    cache = tmp_path / "cache"
    monkeypatch.delenv("COURSE_DATA_DIR", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(pooch, "os_cache", lambda project: cache)
    content = archive(("fra.txt", LINES))
    known_hash = "sha256:" + sha256(content).hexdigest()
    load_from(monkeypatch, "fra-eng", server.server_port, known_hash=known_hash)
    served["/fra-eng.zip"] = content
    yield served, asked, cache
    server.shutdown()
    server.server_close()
    with warnings.catch_warnings():  # pooch leaves the socket of a failed download to the collector
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
