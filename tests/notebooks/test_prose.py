"""The running text of the language models."""

import re
from collections import Counter
from pathlib import Path

import pytest

from course_utils.text import prose
from course_utils.text.prose import load_text
from course_utils.text.registry import CorpusError


def test_the_stories_are_long_plain_and_clean():
    text = load_text()
    assert len(text) >= 30_000
    assert text.isascii()
    assert "\t" not in text
    assert "  " not in text
    assert "\n\n\n" not in text
    assert text.endswith(".\n")
    assert not re.search(r" [.,!?]|[.,!?][A-Za-z]| \n", text)
    for paragraph in text.split("\n\n"):
        assert paragraph.count('"') % 2 == 0, paragraph[:60]


def test_the_vocabulary_is_small_and_repeats():
    words = re.findall(r"[a-z']+", load_text().lower())
    counts = Counter(words)
    assert len(words) > 5_000
    assert len(counts) < 1_200
    assert sum(n for n in counts.values() if n >= 5) > 0.8 * len(words)


def test_size_takes_the_beginning():
    assert load_text(size=8) == "The Town"


def test_a_real_text_comes_by_name(monkeypatch, tmp_path):
    (tmp_path / "tiny-shakespeare.txt").write_bytes(b"First Citizen:\r\nSpeak.\n")
    monkeypatch.setenv("COURSE_DATA_DIR", str(tmp_path))
    assert load_text("tiny-shakespeare") == "First Citizen:\nSpeak.\n"
    assert load_text("tiny-shakespeare", 5) == "First"


def test_bad_requests_are_refused():
    with pytest.raises(CorpusError, match="unknown text 'fra-eng': use one of prose, tiny"):
        load_text("fra-eng")
    with pytest.raises(CorpusError, match="size must be at least 1, got 0"):
        load_text(size=0)


def test_the_stories_ship_with_the_package():
    assert Path(prose.__file__).with_name("prose.txt").is_file()
