"""JupyterLab as `make lab` starts it, asked over HTTP."""

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest

from course_utils.cli.lab import FIRST_LESSON, lab_command, main

TOKEN, SECONDS = "a-token-of-this-test", 60


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of a running server."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    scratch = tmp_path_factory.mktemp("jupyter")
    places = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    options = ["--no-browser", f"--port={port}", "--ServerApp.port_retries=0"]
    options += [f"--IdentityProvider.token={TOKEN}"]
    log = scratch / "log.txt"
    with log.open("wb") as file:
        process = subprocess.Popen(
            lab_command(options),
            env={**os.environ, **{name: str(scratch / name) for name in places}},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    address = f"http://127.0.0.1:{port}"
    end = time.monotonic() + SECONDS
    try:
        while True:
            try:
                get(f"{address}/api/status")
                break
            except OSError:
                assert process.poll() is None, log.read_text(encoding="utf-8")
                assert time.monotonic() < end, log.read_text(encoding="utf-8")
                time.sleep(0.2)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=SECONDS)


def get(url, token=TOKEN):
    headers = {"Authorization": f"token {token}"} if token else {}
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
        return answer.read().decode("utf-8"), answer.url


def test_without_the_token_nothing_is_served(server):
    with pytest.raises(urllib.error.HTTPError, match="403"):
        get(f"{server}/api/contents/", token=None)


def test_other_machines_cannot_reach_it(server):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; tells which address would be used
        except OSError:
            pytest.skip("this machine has no address but its own")
        own = probe.getsockname()[0]
    if own.startswith("127."):
        pytest.skip("this machine has no address but its own")
    with pytest.raises(OSError, match="refused|timed out"):
        socket.create_connection((own, int(server.rsplit(":", 1)[1])), timeout=5)


def test_nothing_turns_the_token_off():
    command = " ".join(lab_command([]))
    assert "token" not in command
    assert "password" not in command
    assert "--ip" not in command
    assert "ServerApp.ip" not in command


def test_it_opens_on_the_first_lesson(server):
    assert get(f"{server}/")[1] == f"{server}/lab/tree/{FIRST_LESSON}"


def test_lessons_can_reach_the_whole_course(server):
    names = {entry["name"] for entry in json.loads(get(f"{server}/api/contents/")[0])["content"]}
    assert {"notebooks", "course_utils", "requirements.txt"} <= names


def test_pages_are_shown_as_they_are_read(server):
    plugin = "@jupyterlab/docmanager-extension:plugin"
    settings = json.loads(get(f"{server}/lab/api/settings/{plugin}")[0])
    viewers = settings["schema"]["properties"]["defaultViewers"]["default"]
    assert viewers == {"markdown": "Markdown Preview"}


def test_it_asks_no_question_about_news(server):
    plugin = "@jupyterlab/apputils-extension:notification"
    settings = json.loads(get(f"{server}/lab/api/settings/{plugin}")[0])
    defaults = settings["schema"]["properties"]
    assert defaults["fetchNews"]["default"] == "false"
    assert defaults["checkForUpdates"]["default"] is False


@pytest.mark.skipif(os.name == "nt", reason="os.execv is not how Windows starts it")
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_says_first_what_is_ours(option, monkeypatch, capsys):
    monkeypatch.setattr(os, "execv", lambda *command: None)
    main([option])
    said = capsys.readouterr().out
    assert said.startswith("Opens JupyterLab on the first lesson")
    assert "example: python -m course_utils lab" in said
