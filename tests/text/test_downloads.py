"""Downloads that go wrong: the cache is never left broken, and the message says what to do."""

import os
import socket
import subprocess
import sys
import threading

import pooch
import pytest
from local_web import LINES, archive

from course_utils.text import registry
from course_utils.text.corpora import load_corpus
from course_utils.text.pairs import Pair
from course_utils.text.registry import CorpusError

PAIRS = [Pair("Go.", "Va !"), Pair("I lost.", "J'ai perdu.")]
WHAT_TO_DO = (
    r"(?s)fra-eng.zip could not be downloaded from http://127\.0\.0\.1.*small-world, everyday.*"
    "put a copy of fra-eng.zip into a folder and set COURSE_DATA_DIR"
)


def fails_then_works(web, answer):
    """While the server answers badly the fault is told and nothing kept; afterwards all is well."""
    served, asked, cache = web
    good = served["/fra-eng.zip"]
    served["/fra-eng.zip"] = answer
    with pytest.raises(CorpusError, match=WHAT_TO_DO) as caught:
        load_corpus("fra-eng")
    assert not list(cache.iterdir())
    served["/fra-eng.zip"] = good
    assert load_corpus("fra-eng").pairs == PAIRS
    assert [path.name for path in cache.iterdir()] == ["fra-eng.zip"]
    assert len(asked) == 2
    return str(caught.value)


@pytest.mark.parametrize("status", [403, 500])
def test_an_error_of_the_server_is_told_by_its_number(web, status):
    assert str(status) in fails_then_works(web, lambda request: request.send_error(status))


@pytest.mark.parametrize("silent_before", ["headers", "the first byte", "the last byte"])
def test_a_server_that_falls_silent_is_given_up(web, monkeypatch, silent_before):
    monkeypatch.setattr(registry, "_PATIENCE", 0.2)
    content, done = web[0]["/fra-eng.zip"], threading.Event()

    def answer(request):
        if silent_before != "headers":
            request.send_response(200)
            request.send_header("Content-Length", str(len(content)))
            request.end_headers()
        if silent_before == "the last byte":
            request.wfile.write(content[:-1])
        request.wfile.flush()
        done.wait(10)

    message = fails_then_works(web, answer)
    done.set()
    assert "timed out" in message


@pytest.mark.parametrize("says_its_length", [True, False])
@pytest.mark.parametrize("share", [0, 0.99])
def test_a_download_that_is_cut_off_is_no_download(web, share, says_its_length):
    content = web[0]["/fra-eng.zip"]

    def answer(request):
        request.send_response(200)
        if says_its_length:
            request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content[: int(share * len(content))])

    fails_then_works(web, answer)


def test_a_refused_download_leaves_the_damaged_file_in_sight_and_the_next_one_mends_it(web):
    served, _, cache = web
    cache.mkdir()
    (cache / "fra-eng.zip").write_bytes(b"PK cut off")
    good = served.pop("/fra-eng.zip")
    with pytest.raises(CorpusError, match=WHAT_TO_DO):
        load_corpus("fra-eng")
    served["/fra-eng.zip"] = good
    assert load_corpus("fra-eng").pairs == PAIRS


LOAD = """
import sys
from dataclasses import replace
import pooch
from course_utils.text.corpora import load_corpus
from course_utils.text.registry import CORPORA
url, known_hash, cache = sys.argv[1:]
source = CORPORA["fra-eng"]
file = replace(source.files[0], url=url, known_hash=known_hash)
CORPORA["fra-eng"] = replace(source, files=(file,))
pooch.os_cache = lambda project: cache
print(ascii(load_corpus("fra-eng").pairs))
"""


def start_loading(cache):
    """Another process that loads fra-eng by way of the same cache."""
    file = registry.CORPORA["fra-eng"].files[0]
    command = [sys.executable, "-c", LOAD, file.url, file.known_hash, str(cache)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=environment, text=True, encoding="utf-8", **pipes)


def test_two_processes_may_download_at_once(web):
    served, asked, cache = web
    content, together = served["/fra-eng.zip"], threading.Barrier(2, timeout=60)

    def answer(request):
        request.send_response(200)
        request.end_headers()
        request.wfile.write(content[:50])
        request.wfile.flush()
        together.wait()  # both have begun before either ends
        request.wfile.write(content[50:])

    served["/fra-eng.zip"] = answer
    processes = [start_loading(cache) for _ in range(2)]
    for process in processes:
        output, errors = process.communicate(timeout=90)
        assert process.returncode == 0, errors
        assert output.strip() == ascii(PAIRS)
    assert len(asked) == 2
    assert [path.name for path in cache.iterdir()] == ["fra-eng.zip"]
    assert (cache / "fra-eng.zip").read_bytes() == content


def test_a_process_killed_while_it_downloads_does_no_harm(web):
    served, _, cache = web
    content, begun, killed = served["/fra-eng.zip"], threading.Event(), threading.Event()

    def answer(request):
        request.send_response(200)
        request.end_headers()
        request.wfile.write(content[:50])
        request.wfile.flush()
        begun.set()
        killed.wait(60)

    served["/fra-eng.zip"] = answer
    process = start_loading(cache)
    assert begun.wait(60)
    process.kill()
    process.communicate(timeout=60)
    killed.set()
    assert not (cache / "fra-eng.zip").exists()
    served["/fra-eng.zip"] = content
    assert load_corpus("fra-eng").pairs == PAIRS


def test_a_cache_that_is_no_folder_is_told(web):
    _, asked, cache = web
    cache.write_bytes(b"")
    with pytest.raises(CorpusError, match=WHAT_TO_DO):
        load_corpus("fra-eng")
    assert asked == []
    assert cache.read_bytes() == b""


@pytest.mark.skipif(
    sys.platform == "win32" or getattr(os, "geteuid", int)() == 0,
    reason="root may write everywhere, and Windows keeps permissions otherwise",
)
def test_a_cache_that_cannot_be_written_is_told_and_what_is_in_it_is_read(web):
    _, asked, cache = web
    cache.mkdir()
    cache.chmod(0o555)
    with pytest.raises(CorpusError, match=WHAT_TO_DO) as caught:
        load_corpus("fra-eng")
    assert "PermissionError" in str(caught.value)
    assert asked == []
    cache.chmod(0o755)
    load_corpus("fra-eng")
    cache.chmod(0o555)
    assert load_corpus("fra-eng").pairs == PAIRS
    cache.chmod(0o755)


def test_without_any_name_service_the_message_is_the_same(web, monkeypatch):
    def no_names(*args, **options):
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", no_names)
    with pytest.raises(CorpusError, match=WHAT_TO_DO):
        load_corpus("fra-eng")


# ---------------------------------------------------------------- archives with ill intent


@pytest.fixture
def own_copy(tmp_path, monkeypatch):
    """Put an archive into a folder that COURSE_DATA_DIR names, inside `tmp_path`."""
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    monkeypatch.setenv("COURSE_DATA_DIR", str(folder))
    monkeypatch.setattr(pooch, "retrieve", None)

    def put(content):
        (folder / "fra-eng.zip").write_bytes(content)
        return tmp_path

    return put


@pytest.mark.parametrize(
    "name", ["../fra.txt", "../../fra.txt", "a/../../fra.txt", "/fra.txt", "//fra.txt"]
)
def test_a_member_that_points_out_of_its_folder_is_only_read(own_copy, name):
    top = own_copy(archive((name, LINES), ("../evil.txt", b"x")))
    before = sorted(top.rglob("*"))
    assert load_corpus("fra-eng").pairs == PAIRS
    assert sorted(top.rglob("*")) == before


@pytest.mark.parametrize(("offset", "value"), [(6, 1), (8, 99)], ids=["encrypted", "method"])
def test_an_archive_that_cannot_be_unpacked_is_told(own_copy, offset, value):
    """`offset` of the flags or the method in the member's header, two bytes later in the list."""
    content = bytearray(archive(("fra.txt", LINES)))
    directory = content.index(b"PK\x01\x02")
    content[offset] = content[directory + offset + 2] = value
    own_copy(bytes(content))
    with pytest.raises(CorpusError, match=r"fra-eng\.zip is not a sound zip.*delete it"):
        load_corpus("fra-eng")
