"""Corpora by name or path, files with faults, downloads, and splits."""

import bz2
import contextlib
import gzip
import io
import lzma
import os
import random
import subprocess
import sys
import zipfile
from pathlib import Path

import d2l.torch as d2l
import pooch
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from local_web import LINES, archive, load_from

from course_utils.cli import train
from course_utils.text.batches import number_pairs
from course_utils.text.corpora import (
    Corpus,
    check_apart,
    load_corpus,
    reads_as,
    sample,
    split_by_source,
)
from course_utils.text.pairs import Pair
from course_utils.text.registry import CORPORA, PAIRS, CorpusError, File, Source, corpus_files
from course_utils.text.task import translation_task
from course_utils.text.text import normalise, tokenize
from course_utils.training.runs.lines import read_lines
from course_utils.training.runs.refusals import Refused

few = settings(deadline=None, max_examples=30, derandomize=True)
DATA_DIR = os.environ.get("COURSE_DATA_DIR")
real_data = pytest.mark.skipif(
    not (DATA_DIR and os.path.isfile(os.path.join(DATA_DIR, "fra-eng.zip"))),
    reason="COURSE_DATA_DIR names no folder with fra-eng.zip",
)
GO = Pair("Go.", "Va !")
LOST = Pair("I lost.", "J'ai perdu.")


@pytest.fixture
def tsv(tmp_path):
    """Write bytes or text to a file and load it."""

    def load(content, size=None):
        path = tmp_path / "pairs.tsv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return load_corpus(path, size)

    return load


# ---------------------------------------------------------------- a file of one's own


@pytest.mark.parametrize(
    "content",
    [
        "Go.\tVa !\nI lost.\tJ'ai perdu.\n",
        "Go.\tVa !\nI lost.\tJ'ai perdu.",  # no line end at the end
        "Go.\tVa !\r\nI lost.\tJ'ai perdu.\r\n",  # Windows
        "\ufeffGo.\tVa !\nI lost.\tJ'ai perdu.\n",  # byte order mark
        "\ufeff Go. \t Va\u202f! \r\nI  lost.\tJ\u2019ai\u00a0perdu.\r\n",
        "Go.\tVa !\tCC-BY 2.0 (France) #123\nI lost.\tJ'ai perdu.\n",  # attribution
        "Go.\tVa !\ta\tb\tc\nI lost.\tJ'ai perdu.\t\n",
        "Go.\tVa !\rI lost.\tJ'ai perdu.\r",  # old Macs
    ],
)
def test_two_pairs_however_the_file_is_written(tsv, content):
    corpus = tsv(content)
    assert corpus.pairs == [GO, LOST]
    assert corpus.lines == 2
    assert corpus.dropped == {}


def test_no_word_of_a_third_column_reaches_a_vocabulary(tsv):
    corpus = tsv("Go.\tVa !\nHi.\tSalut !\tCC-BY 2.0 (France) Attribution: tatoeba.org #123\n")
    english, french, _ = number_pairs(corpus.pairs)
    assert english.tokens[4:] == [".", "go", "hi"]
    assert french.tokens[4:] == ["!", "salut", "va"]


def test_lines_that_are_no_pair_are_counted_with_their_numbers_and_reasons(tsv):
    lines = ["Go.\tVa !", "no tab here", "", "\tVa !", "Go.\t", "I lost.\tJ'ai perdu.", "x", " \t "]
    corpus = tsv("\n".join(lines) + "\n")
    assert corpus.pairs == [GO, LOST]
    assert corpus.lines == 8
    assert corpus.dropped == {
        "no tab": [2, 7],
        "nothing on the line": [3],
        "an empty side": [4, 5, 8],
    }
    text = str(corpus)
    assert "2 pairs from 8 lines" in text
    assert "dropped 2 with no tab (line 2, 7)" in text
    assert "dropped 3 with an empty side (line 4, 5, 8)" in text


def test_what_was_mended_is_counted_with_its_numbers(tsv):
    lines = ["Go.\tVa !", "Go.\tVa\u202f!", "I lost.\tJ\u2019ai perdu.\tCC-BY", " Go. \tVa !\tx"]
    corpus = tsv("\ufeff" + "\r\n".join(lines))
    assert corpus.mended == {
        "unusual spaces, apostrophes or accents": [2, 3],
        "more than two columns": [3, 4],
    }
    assert "4 pairs from 4 lines; mended 2 with unusual spaces" in str(corpus)


def test_a_nul_character_is_refused_with_the_line(tsv):
    with pytest.raises(CorpusError, match="line 2 holds a NUL character.*UTF-16"):
        tsv("Go.\tVa !\nI\0 lost.\tJ'ai perdu.\n")


def test_a_line_of_a_million_characters_is_a_line(tsv):
    corpus = tsv("Go.\tVa !\n" + "very " * 200_000 + "long\tlong\n")
    assert [len(pair.source) for pair in corpus.pairs] == [3, 1_000_004]


letters = st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r\0")
sides = st.text(letters, max_size=20)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(sides, sides), max_size=8), st.sampled_from(["\n", "\r\n", "\r"]))
def test_every_pair_that_is_written_comes_back_or_is_counted(tsv, pairs, end):
    lines = ["Go.\tVa !", *("\t".join(pair) for pair in pairs)]
    corpus = tsv("".join(line + end for line in lines))
    whole = [Pair(*map(normalise, p)) for p in pairs if all(map(normalise, p))]
    assert corpus.pairs == [GO, *whole]
    assert corpus.lines == len(lines)
    assert len(corpus.pairs) + sum(map(len, corpus.dropped.values())) == corpus.lines


def test_every_line_is_a_pair_or_dropped_and_long_lists_are_cut_in_the_text(tsv):
    corpus = tsv("Go.\tVa !\nno tab\n" * 1500)
    assert len(corpus.pairs) + sum(map(len, corpus.dropped.values())) == corpus.lines == 3000
    assert "1,500 pairs from 3,000 lines; dropped 1,500 with no tab (line 2, 4, 6, ...)" in str(
        corpus
    )


def test_a_line_separator_inside_a_sentence_is_no_line_end(tsv):
    assert tsv("Go\u2028now.\tVa\u0085vite.\n").pairs == [Pair("Go now.", "Va vite.")]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_a_file_in_another_encoding_is_refused_with_the_line(tsv, encoding):
    content = "Go.\tVa !\nSummer.\tL'été.\n".encode(encoding)
    with pytest.raises(CorpusError, match="line 2 is not UTF-8.*save the file as UTF-8"):
        tsv(content)


PACKED = {
    "gzip": (gzip.compress(b"Go.\tVa !\n"), "packed by gzip: unpack it"),
    "bzip2": (bz2.compress(b"Go.\tVa !\n"), "packed by bzip2"),
    "xz": (lzma.compress(b"Go.\tVa !\n"), "packed by xz"),
    "zip": (archive(("a.tsv", "Go.\tVa !\n")), "a zip archive, or a table"),
    "UTF-16": ("Go.\tVa !\n".encode("utf-16"), "in UTF-16: save it as UTF-8"),
    "UTF-16 without a mark": ("Go now.\tVa !\n".encode("utf-16-le"), "in UTF-16"),
}


@pytest.mark.parametrize(("content", "message"), PACKED.values(), ids=PACKED)
def test_what_is_no_text_is_called_what_it_is(tsv, content, message):
    with pytest.raises(CorpusError, match=message):
        tsv(content)
    with pytest.raises(Refused, match=message):
        list(read_lines(io.BytesIO(content), print))


@pytest.mark.parametrize("row", ["{n}\tGo {n}.\t{n}7\tVa {n}.\n", "{n}\teng\tGo {n}.\n"])
def test_a_table_whose_first_column_counts_is_refused_with_what_to_do(tsv, row):
    rows = [row.format(n=n) for n in range(40)]
    with pytest.raises(CorpusError, match="holds numbers, not sentences.* cut -f 2,4"):
        tsv("".join(rows))


def test_numbers_are_sentences_where_there_are_two_columns_or_few(tsv):
    assert len(tsv("".join(f"{n}\tzahl {n}\n" for n in range(40))).pairs) == 40
    some = "".join(f"Go {n}.\tVa {n}.\tCC-BY\n" for n in range(40))
    assert len(tsv(some + "7\tsept\tCC-BY\n").pairs) == 41


@pytest.mark.parametrize("content", ["", "\n", "\ufeff", "no tab\nnone here\n", "\t\n"])
def test_a_file_without_a_pair_is_refused(tsv, content):
    with pytest.raises(CorpusError, match="0 pairs.*one pair a line: source, tab, target"):
        tsv(content)


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(CorpusError, match=r"cannot read .*missing\.tsv"):
        load_corpus(tmp_path / "missing.tsv")
    with pytest.raises(CorpusError, match=f"cannot read .*{tmp_path.name}"):
        load_corpus(tmp_path)


@pytest.mark.parametrize("name", ["small_world", "fra"])
def test_unknown_names_list_the_known_ones(name):
    with pytest.raises(CorpusError, match="unknown corpus .*small-world, everyday, fra-eng"):
        load_corpus(name)


def test_a_corpus_that_is_not_pairs_says_what_it_is():
    with pytest.raises(CorpusError, match="'tiny-shakespeare' is a text, not one of pairs: use"):
        load_corpus("tiny-shakespeare")


def test_size_takes_pairs_from_the_beginning(tsv):
    content = "Go.\tVa !\nI lost.\tJ'ai perdu.\n"
    assert tsv(content, size=1).pairs == [GO]
    assert tsv(content, size=10).pairs == [GO, LOST]
    with pytest.raises(CorpusError, match="at least 1, got 0"):
        tsv(content, size=0)


def test_files_are_read_alike_whatever_the_platforms_encoding(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_bytes("Summer.\tL'été, ça va\u202f?\n".encode())
    code = (
        "import sys, warnings;"
        "warnings.filterwarnings('error', category=EncodingWarning, module='course_utils');"
        "from course_utils.text.corpora import load_corpus;"
        "print(ascii(load_corpus(sys.argv[1]).pairs), ascii(load_corpus('everyday').pairs[-1]))"
    )
    outputs = []
    for settings_ in ({"PYTHONUTF8": "0", "LC_ALL": "C"}, {"PYTHONUTF8": "1"}):
        environment = {**os.environ, **settings_, "PYTHONPATH": os.pathsep.join(sys.path)}
        outputs.append(
            subprocess.run(
                [sys.executable, "-X", "warn_default_encoding", "-c", code, str(path)],
                env=environment,
                capture_output=True,
                text=True,
                encoding="utf-8",
                check=True,
            ).stdout
        )
    assert outputs[0] == outputs[1]
    assert ascii("L'été, ça va ?") in outputs[0]


# ---------------------------------------------------------------- what ships


def test_everyday_is_complete_and_normal():
    corpus = load_corpus("everyday")
    assert corpus.dropped == {}
    assert len(corpus.pairs) == corpus.lines >= 1000
    assert Pair("I'm home.", "Je suis chez moi.") in corpus.pairs
    for pair in corpus.pairs:
        assert pair.source == normalise(pair.source)
        assert pair.target == normalise(pair.target)


def test_small_world_pairs_carry_links_that_fit_their_tokens():
    corpus = load_corpus("small-world", size=200)
    assert len(corpus.pairs) == 200
    for pair in corpus.pairs:
        english, french = tokenize(pair.source, "en"), tokenize(pair.target, "fr")
        assert pair.alignment
        assert all(0 <= s < len(english) and 0 <= t < len(french) for s, t in pair.alignment)


# ---------------------------------------------------------------- COURSE_DATA_DIR


ABOUT = ("_about.txt", b"About these pairs\tand their licence\n")


@pytest.fixture
def data_dir(tmp_path, monkeypatch):
    """A folder that COURSE_DATA_DIR names; no download may be tried."""

    def refuse(*args, **options):
        raise AssertionError("a download was tried")

    monkeypatch.setenv("COURSE_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(pooch, "retrieve", refuse)
    return tmp_path


@pytest.mark.parametrize(
    "members",
    [
        [("fra.txt", LINES)],
        [ABOUT, ("fra.txt", LINES)],
        [("fra-eng/_about.txt", b""), ("fra-eng/fra.txt", LINES)],
        [("__MACOSX/._fra.txt", b"\x00\x05\x16"), ("fra.txt", LINES)],
        [("__MACOSX/fra.txt", b"\x00\x05\x16"), ("a/b/fra.txt", LINES)],
        [("not-fra.txt", b"x\ty\n"), ("fra.txt", LINES)],
    ],
)
def test_fra_eng_is_found_in_the_archive_wherever_it_stands(data_dir, members):
    (data_dir / "fra-eng.zip").write_bytes(archive(*members))
    assert load_corpus("fra-eng").pairs == [GO, LOST]
    assert load_corpus("fra-eng", size=1).pairs == [GO]
    assert sorted(p.name for p in data_dir.iterdir()) == ["fra-eng.zip"]  # nothing is unpacked


@pytest.mark.parametrize("size", [0, 10, -30])
def test_an_archive_that_is_cut_off_is_named_with_what_to_do(data_dir, size):
    path = data_dir / "fra-eng.zip"
    path.write_bytes(archive(ABOUT, ("fra.txt", LINES * 50))[:size])
    with pytest.raises(CorpusError, match=r"fra-eng\.zip is not a sound zip.*delete it"):
        load_corpus("fra-eng")


def test_a_web_page_in_place_of_the_archive_is_named(data_dir):
    (data_dir / "fra-eng.zip").write_bytes(b"<html>404 Not Found</html>")
    with pytest.raises(CorpusError, match=r"fra-eng\.zip is not a sound zip.*web page"):
        load_corpus("fra-eng")


def test_a_damaged_archive_is_never_read_as_something_else(data_dir):
    """Flip one byte after the other inside the compressed text."""
    text = "".join(f"Go {i}.\tVa {i * i} !\n" for i in range(40)).encode()
    whole = archive(("fra.txt", text))
    start, end = 40, whole.index(b"PK\x01\x02")
    wanted, found = [Pair(f"Go {i}.", f"Va {i * i} !") for i in range(40)], 0
    for position in range(start, end, 7):
        damaged = bytearray(whole)
        damaged[position] ^= 0x55
        (data_dir / "fra-eng.zip").write_bytes(damaged)
        with pytest.raises(CorpusError, match="not a sound zip"):
            load_corpus("fra-eng")
        found += 1
    assert found > 10
    (data_dir / "fra-eng.zip").write_bytes(whole)
    assert load_corpus("fra-eng").pairs == wanted


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damage_is_named_however_an_archive_is_compressed(data_dir, method):
    path = data_dir / "fra-eng.zip"
    with zipfile.ZipFile(path, "w", method) as file:
        file.writestr("fra.txt", LINES * 50)
    whole, found = path.read_bytes(), 0
    assert len(load_corpus("fra-eng").pairs) == 100
    for position in range(14, len(whole), 1 + len(whole) // 60):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x55]) + whole[position + 1 :])
        with contextlib.suppress(CorpusError):  # a date that is wrong, say, is no harm
            assert len(load_corpus("fra-eng").pairs) == 100
            found -= 1
        found += 1
    assert found > 10


@pytest.mark.parametrize("call", ["is_file", "read_bytes"])
@pytest.mark.parametrize("name", ["fra-eng", "own.tsv", "own"])
def test_a_file_that_may_not_be_read_is_named(data_dir, monkeypatch, name, call):
    def forbidden(path, *args):
        raise PermissionError(13, "Permission denied", str(path))

    for file in ("fra-eng.zip", "own.tsv", "own"):
        (data_dir / file).write_bytes(archive(("fra.txt", LINES)))
    monkeypatch.chdir(data_dir)
    monkeypatch.setattr(Path, call, forbidden)
    with pytest.raises(CorpusError, match=rf"cannot read .*{name}.*: Permission denied"):
        load_corpus(name)


@pytest.mark.parametrize("name", ["a\0b", "a\0.tsv", "\ud800.tsv", "x" * 300, "x" * 300 + ".tsv"])
def test_a_name_that_no_file_can_have_is_refused(name):
    with pytest.raises(CorpusError, match="cannot read the corpus") as caught:
        load_corpus(name)
    assert str(caught.value).isprintable()


def test_an_archive_without_the_text_is_named(data_dir):
    (data_dir / "fra-eng.zip").write_bytes(archive(ABOUT))
    with pytest.raises(CorpusError, match=r"fra-eng\.zip holds no fra\.txt"):
        load_corpus("fra-eng")


def test_a_folder_without_the_file_is_named(data_dir):
    with pytest.raises(CorpusError, match=r"COURSE_DATA_DIR is .*no fra-eng\.zip in it"):
        load_corpus("fra-eng")
    with pytest.raises(CorpusError, match=r"no tiny-shakespeare\.txt in it"):
        corpus_files("tiny-shakespeare")


def test_unknown_files_list_the_known_ones():
    with pytest.raises(CorpusError, match="unknown corpus 'every': use one of small-world, every"):
        corpus_files("every")


def test_what_ships_is_there_and_needs_no_folder(data_dir):
    for name, source in CORPORA.items():
        if source.ships:
            assert all(path.is_file() for path in corpus_files(name))


def test_a_corpus_is_one_row_of_the_registry(data_dir, monkeypatch, capsys):
    """One more row, and it can be loaded, split, trained on and is named by help and errors."""
    row = Source(PAIRS, "two pairs", (File("two.tsv", "https://example.org/two.tsv", "sha256:0"),))
    monkeypatch.setitem(CORPORA, "two", row)
    (data_dir / "two.tsv").write_bytes(LINES)
    assert load_corpus("two").pairs == [GO, LOST]
    assert len(translation_task("two", held_out=1).train) == 1
    with pytest.raises(CorpusError, match="use one of small-world, everyday, fra-eng, two, or a"):
        load_corpus("thre")
    with pytest.raises(SystemExit):
        train.main(["--help"])
    assert "fra-eng, two, or" in " ".join(capsys.readouterr().out.split())


# ---------------------------------------------------------------- downloads


def test_a_corpus_is_downloaded_once_and_then_read_without_a_network(web):
    served, asked, _ = web
    assert load_corpus("fra-eng").pairs == [GO, LOST]
    served.clear()
    assert load_corpus("fra-eng").pairs == [GO, LOST]
    assert asked == ["/fra-eng.zip"]


def test_a_damaged_file_in_the_cache_is_fetched_again(web):
    _, asked, cache = web
    cache.mkdir()
    (cache / "fra-eng.zip").write_bytes(b"0123456789")
    assert load_corpus("fra-eng").pairs == [GO, LOST]
    assert asked == ["/fra-eng.zip"]


def test_a_download_with_another_hash_is_refused_and_not_kept(web):
    served, _, cache = web
    served["/fra-eng.zip"] = archive(("fra.txt", b"Bad.\tMal.\n"))
    with pytest.raises(CorpusError, match=r"(?s)could not be downloaded.*hash.*COURSE_DATA_DIR"):
        load_corpus("fra-eng")
    assert not (cache / "fra-eng.zip").exists()


@pytest.mark.parametrize("fault", ["not found", "no network"])
def test_without_a_network_the_shipped_corpora_and_the_folder_are_named(web, monkeypatch, fault):
    served, _, _ = web
    served.clear()
    if fault == "no network":  # nobody listens at port 9
        load_from(monkeypatch, "fra-eng", 9)
    with pytest.raises(CorpusError) as caught:
        load_corpus("fra-eng")
    message = str(caught.value)
    assert "fra-eng.zip could not be downloaded from http://127.0.0.1" in message
    assert "small-world, everyday" in message
    assert "put a copy of fra-eng.zip into a folder and set COURSE_DATA_DIR" in message


# ---------------------------------------------------------------- the real files


@pytest.fixture(scope="module")
def fra_eng():
    return load_corpus("fra-eng")


@real_data
def test_fra_eng_has_its_167130_pairs(fra_eng):
    assert len(fra_eng.pairs) == fra_eng.lines == 167_130
    assert fra_eng.dropped == {}
    assert fra_eng.pairs[0] == GO
    assert str(fra_eng) == (
        "fra-eng: 167,130 pairs from 167,130 lines; mended 11,093 with unusual spaces, apostrophes "
        "or accents (line 3, 4, 6, ...)"
    )
    assert all(pair.source and pair.target for pair in fra_eng.pairs)


@pytest.mark.long
@real_data
def test_fra_eng_is_the_text_that_d2l_loads():
    """d2l's own preprocessing and vocabulary, with min_freq 2, has 10,012 English entries."""
    with zipfile.ZipFile(corpus_files("fra-eng")[0]) as file:
        lines = file.read("fra.txt").decode("utf-8").splitlines()
    english = "\n".join(line.split("\t")[0] + "\t" for line in lines)  # its French side takes long
    source, _ = d2l.tokenize_nmt(d2l.preprocess_nmt(english))
    assert len(source) == 167_130
    vocab = d2l.Vocab(source, min_freq=2, reserved_tokens=["<pad>", "<bos>", "<eos>"])
    assert len(vocab) == 10_012


@pytest.mark.long
@real_data
def test_fra_eng_can_be_split_so_that_no_source_stands_on_both_sides(fra_eng):
    train, held = split_by_source(fra_eng.pairs, 1000)
    assert len(train) + len(held) == 167_130
    assert not source_keys(held) & source_keys(train)
    assert len(source_keys(held)) == 1000


@real_data
def test_tiny_shakespeare_is_running_text():
    text = corpus_files("tiny-shakespeare")[0].read_text(encoding="utf-8")
    assert text.startswith("First Citizen:")
    assert len(text) > 1_000_000


# ---------------------------------------------------------------- splits and samples


words = st.sampled_from(
    [
        "Go",
        "go",
        "Go.",
        "Go!",
        "Hi",
        "Hi ?",
        "No",
        "Yes",
        "Run, Al",
        "run Al!",
        "I'm",
        "Im",
        "?",
        "!",
    ]
)
pair_lists = st.lists(st.builds(Pair, words, st.sampled_from(["a", "b", "c"])), max_size=15)


def source_keys(pairs):
    return {reads_as(pair.source) for pair in pairs}


@pytest.mark.parametrize(
    "alike",
    [
        ["Hello, Marc.", "Hello Marc!", "hello, marc", " Hello , Marc ?"],
        ["I'm home.", "I\u2019m home!", "im home"],
        ["an e-mail", "An email...", "An e mail?!"],
        ["Stra\u00dfe", "STRASSE"],
        ["\u0915\u093e \u0915\u0940.", "\u0915\u093e, \u0915\u0940"],  # vowel signs stay
    ],
)
def test_what_reads_alike(alike):
    assert len(set(map(reads_as, alike))) == 1


@pytest.mark.parametrize(
    "other",
    [["Go.", "No."], ["I am.", "I'm."], ["?", "!"], ["\u0915\u093e", "\u0915\u0940"], ["$5", "5"]],
)
def test_what_does_not_read_alike(other):
    assert len(set(map(reads_as, other))) == len(other)


def test_a_held_out_text_that_reads_like_one_to_train_on_is_refused():
    check_apart(["Hi.", "Go!"], ["No."])
    with pytest.raises(ValueError, match="2 held-out texts read like one to train on, first 'go'"):
        check_apart(["Hi.", "Go!"], ["No.", "go", "HI"])


@few
@given(pairs=pair_lists, data=st.data())
def test_split_parts_are_complete_disjoint_and_in_order(pairs, data):
    keys = source_keys(pairs)
    if len(keys) < 2:
        return
    held_out = data.draw(st.integers(1, len(keys) - 1))
    seed = data.draw(st.integers(0, 3))
    train, held = split_by_source(pairs, held_out, seed)
    assert len(source_keys(held)) == held_out
    assert source_keys(train) | source_keys(held) == keys
    assert not source_keys(train) & source_keys(held)
    assert train == [p for p in pairs if p in train]
    assert held == [p for p in pairs if p in held]
    assert len(train) + len(held) == len(pairs)
    shuffled = random.Random(seed).sample(pairs, len(pairs))
    again_train, again_held = split_by_source(shuffled, held_out, seed)
    assert source_keys(again_held) == source_keys(held)
    assert source_keys(again_train) == source_keys(train)


def test_a_seed_chooses_the_held_out_sources_and_more_pairs_keep_them_together():
    pairs = [Pair(f"Word {i}", "mot") for i in range(100)]
    first = split_by_source(pairs, 20, seed=0)
    assert split_by_source(pairs, 20, seed=0) == first
    assert split_by_source(pairs, 20, seed=1) != first
    wider = split_by_source(pairs, 40, seed=0)[1]
    assert source_keys(first[1]) < source_keys(wider)


@pytest.mark.parametrize("held_out", [0, 2, -1])
def test_impossible_splits_are_refused_with_the_range(held_out):
    pairs = [GO, LOST, Pair("go!", "Allez !")]
    with pytest.raises(ValueError, match=rf"1\.\.1 \(there are 2 .*got {held_out}"):
        split_by_source(pairs, held_out)


def test_samples_are_drawn_without_replacement_and_repeat_with_the_seed():
    pairs = [Pair(str(i), "x") for i in range(50)]
    got = sample(pairs, 20, seed=3)
    assert len(set(got)) == 20
    assert set(got) <= set(pairs)
    assert sample(pairs, 20, seed=3) == got
    assert sample(pairs, 20, seed=4) != got
    with pytest.raises(ValueError, match="arger than population"):
        sample(pairs, 51)


def test_a_generated_corpus_names_no_lines():
    assert str(Corpus("x", [GO])) == "x: 1 pairs"
