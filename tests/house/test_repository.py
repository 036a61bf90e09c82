"""What may stand in the repository: its tracked files, read as text."""

import re
import shutil
import subprocess

import pytest

from course_utils.environment import ROOT

TOP_LEVEL = {
    ".ci", ".gitattributes", ".gitignore", "CONTRIBUTING.md", "LICENSE", "Makefile",
    "README.md", "course_utils", "figures", "notebooks", "pyproject.toml", "requirements.txt",
    "tests",
}  # fmt: skip
BINARY = {".gz", ".otf", ".png", ".safetensors", ".ttf"}
UNWANTED = {  # written so that this file does not match
    "a note of unfinished work": r"\b(T[O]DO|F[I]XME|X[X]X)\b",
    "a path of one computer": r"(?<![\w.~*])/(home|root|Users|work|farm)/|[A-Z]:\\+Users",
    "a package registry's host": r"pypi\.[o]rg|python[h]osted\.org|registry\.[n]pmjs|deb\.[d]ebian",
}


def tracked_files():
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        return []
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True
    ).stdout.decode()
    return [name for name in listing.split("\0") if name and (ROOT / name).is_file()]


TRACKED = tracked_files()
TEXT = [name for name in TRACKED if not any(name.endswith(end) for end in BINARY)]


def test_only_the_agreed_names_stand_at_the_top():
    assert {name.split("/")[0] for name in TRACKED} <= TOP_LEVEL


@pytest.mark.parametrize("name", TEXT)
def test_text_files_are_utf8_with_unix_line_ends_and_nothing_unwanted(name):
    text = (ROOT / name).read_bytes().decode("utf-8")
    assert "\r" not in text
    assert text == "" or text.endswith("\n")
    # The base64 of a notebook's pictures can spell anything.
    text = re.sub(r'"image/png": "[^"]*"', "", text)
    found = {what: m[0] for what, pattern in UNWANTED.items() if (m := re.search(pattern, text))}
    assert not found


@pytest.mark.parametrize(
    "line", ["T" "ODO: more", "see /ho" "me/ada/x", "C:" r"\Users\ada", "https://py" "pi.org/x"]
)  # fmt: skip
def test_unwanted_text_is_noticed(line):
    assert any(re.search(pattern, line) for pattern in UNWANTED.values())
