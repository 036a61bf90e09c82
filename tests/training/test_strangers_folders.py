"""Model folders from strangers: whatever is in them, every command refuses or works, in a line.

`test_engine_folder` has what is merely damaged; here somebody means harm.
"""

import itertools
import json
import os
import shutil
import struct

import pytest
import torch
from engine_runs import run, tensors, tiny_folder, translate_bytes
from safetensors.torch import save_file

from course_utils.cli import evaluate, heatmap, train, translate
from course_utils.text.subwords import Subwords
from course_utils.training.runs import folder
from course_utils.training.runs.checkpoint import LAST
from course_utils.training.runs.files import read_header
from course_utils.training.runs.folder import CONFIG, VOCABULARY, WEIGHTS
from course_utils.training.runs.lines import translate_lines
from course_utils.training.runs.refusals import Refused
from course_utils.training.translation import Translator, load_translator

needs_posix = pytest.mark.skipif(os.name == "nt", reason="Windows takes no such names")


@pytest.fixture
def model(tmp_path):
    return shutil.copytree(tiny_folder(), tmp_path / "model")


def refused(model, message):
    with pytest.raises(Refused, match=message) as caught:
        load_translator(model)
    assert len(str(caught.value)) < 1000


def resume_refused(capsys, model, message):
    assert train.main(["--out", str(model), "--resume"]) == 1
    err = capsys.readouterr().err
    assert message in err
    assert len(err) < 1500


def test_every_command_refuses_in_one_line(model, capsys):
    (model / CONFIG).write_text("[" * 50_000, encoding="utf-8")
    both = ["--src", str(model / "test.en"), "--ref", str(model / "test.fr")]
    options = ["--model", str(model)]
    assert translate.main(options) == 1
    assert evaluate.main([*options, *both]) == 1
    assert heatmap.main([*options, "--text", "Go.", "--out", str(model / "map.png")]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["translate", "evaluate", "heatmap"]
    assert all("cannot be read as JSON" in line for line in lines)
    (model / LAST).write_bytes(struct.pack("<Q", 2**63) + b"{}")
    resume_refused(capsys, model, "is cut off or damaged (the length of its header is absurd)")


# ---------------------------------------------------------------- weights


def split_file(path):
    """Header and data of a safetensors file."""
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    return json.loads(raw[8 : 8 + size]), raw[8 + size :]


def write_file(path, header, data, length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)


FIRST, SECOND = "src_embedding.weight", "encoder.0.attention.w_q.weight"


def names(header):
    return sorted(
        (n for n in header if n != "__metadata__"), key=lambda n: header[n]["data_offsets"]
    )


def with_entry(**change):
    def edit(header):
        header[names(header)[0]] |= change

    return edit


def overlap(header):
    first, second, *_ = names(header)
    header[second]["data_offsets"] = header[first]["data_offsets"]


HEADERS = {
    "overlapping": overlap,
    "backwards": with_entry(data_offsets=[100, 0]),
    "negative offset": with_entry(data_offsets=[-8, 64]),
    "beyond the end": with_entry(data_offsets=[0, 10**15]),
    "huge offset": with_entry(data_offsets=[0, 2**64]),
    "negative shape": with_entry(shape=[-300, 16]),
    "product of 2^64": with_entry(shape=[2**32, 2**32]),
    "huge shape": with_entry(shape=[10**30, 1]),
    "shape and size differ": with_entry(shape=[300, 17]),
    "shape is no list": with_entry(shape="300"),
    "unknown type": with_entry(dtype="OBJECT"),
    "type is no text": with_entry(dtype=7),
    "entry is no object": lambda header: header.update({names(header)[0]: 5}),
    "lines are no texts": lambda header: header.update(__metadata__={"bleu": 5}),
    "lines are no object": lambda header: header.update(__metadata__=[1]),
    "one more": lambda header: header.update(
        {"x" * 5000: {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}
    ),
    "no tensors": lambda header: header.clear(),
}


@pytest.mark.parametrize("edit", HEADERS.values(), ids=HEADERS)
def test_a_hostile_header_is_refused(model, capsys, edit):
    for name in (WEIGHTS, LAST):
        header, data = split_file(model / name)
        edit(header)
        write_file(model / name, header, data)
    refused(model, "is cut off or damaged|does not fit its config.json")
    resume_refused(capsys, model, LAST)


@pytest.mark.parametrize("length", [0, 1, 2**20, 2**31, 2**63, 2**64 - 1])
def test_a_header_of_another_length_than_it_says_is_refused(model, length):
    header, data = split_file(model / WEIGHTS)
    write_file(model / WEIGHTS, header, data, length)
    refused(model, "is cut off or damaged")


@pytest.mark.parametrize(
    "text", [b"[" * 90_000, b'{"a":' * 90_000, b"\xff" * 9, b"null", b" " * 99]
)
def test_a_header_that_is_no_object_is_refused(model, text):
    write_file(model / WEIGHTS, text, b"")
    refused(model, "is cut off or damaged")


def test_a_header_that_fills_the_file_is_refused_unread(model):
    with open(model / WEIGHTS, "wb") as file:
        file.write(struct.pack("<Q", 90_000_000))
        file.truncate(90_000_008)  # a hole: no room is used
    refused(model, "the length of its header is absurd")


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int32, torch.uint8,
                                   torch.bool, torch.complex64, torch.float8_e4m3fn])  # fmt: skip
def test_weights_of_any_other_type_are_refused(model, dtype):
    saved = tensors(model, WEIGHTS)
    save_file({name: w.to(dtype) for name, w in saved.items()}, model / WEIGHTS)
    refused(model, r"is of type \w+, wanted is F32")


@pytest.mark.parametrize("size", [3e38, -3e38, 1e-45])
def test_extreme_weights_are_translated_or_refused(model, capsys, size):
    saved = tensors(model, WEIGHTS)
    save_file({name: torch.full_like(w, size) for name, w in saved.items()}, model / WEIGHTS)
    both = ["--src", str(model / "test.en"), "--ref", str(model / "test.fr")]
    for beam in ("1", "3"):
        assert evaluate.main(["--model", str(model), *both, "--beam", beam]) in (0, 1)
    picture = ["--text", "Go.", "--target", "Va !", "--out", str(model / "map.png")]
    assert heatmap.main(["--model", str(model), *picture]) in (0, 1)
    assert "Traceback" not in capsys.readouterr().err


# ---------------------------------------------------------------- configuration


def test_a_huge_config_is_refused_unread(model, monkeypatch):
    with open(model / CONFIG, "ab") as file:
        file.truncate(200_000_000)
    monkeypatch.setattr(folder.json, "loads", None)  # it does not come so far
    refused(model, "is larger than 100,000 bytes, which no such file needs")


def test_a_huge_vocabulary_is_refused_unread(model, monkeypatch, capsys):
    with open(model / VOCABULARY, "ab") as file:
        file.truncate(1_090_001)
    monkeypatch.setattr(Subwords, "from_json", None)
    refused(model, "is larger than 1,090,000 bytes, which no such file needs")  # of 300 pieces
    assert train.main(["--out", str(model), "--resume"]) == 1
    assert "is larger than 1,090,000 bytes" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["../../etc/passwd", "\x1b[2J\n", "x" * 50_000, "__class__"])
def test_odd_names_in_a_config_are_quoted_and_cut(model, name):
    fields = json.loads((model / CONFIG).read_text(encoding="utf-8"))
    for change in ({name: 1}, {"positions": name}, {"d_model": name}, {"format": name}):
        (model / CONFIG).write_text(json.dumps(fields | change), encoding="utf-8")
        refused(model, "config.json")
        with pytest.raises(Refused) as caught:
            load_translator(model)
        assert str(caught.value).isprintable()


# ---------------------------------------------------------------- vocabulary


def edited(model, edit):
    content = json.loads((model / VOCABULARY).read_text(encoding="utf-8"))
    edit(content, content["model"]["vocab"], content["model"]["merges"])
    (model / VOCABULARY).write_text(json.dumps(content), encoding="utf-8")


def rename(old, new):
    return lambda content, ids, merges: ids.update({new: ids.pop(old)})


def set_id(piece, number):
    return lambda content, ids, merges: ids.update({piece: number})


def part(name, value):
    return lambda content, ids, merges: content.update({name: value})


VOCABULARIES = {
    "beyond the end": (set_id("a", 10**6), "must be 0 to 299, each once"),
    "beyond 32 bits": (set_id("a", 2**40), "must be 0 to 299, each once"),
    "negative": (set_id("a", -1), "must be 0 to 299, each once"),
    "twice": (set_id("a", 5), "must be 0 to 299, each once"),
    "a fraction": (set_id("a", 5.0), "must be 0 to 299, each once"),
    "a bool": (set_id("!", True), "must be 0 to 299, each once"),
    "a gap": (lambda c, ids, merges: ids.pop("a"), "must be 0 to 298, each once"),
    "no byte": (rename("a", "aaaaaaaa"), "lacks 1 of the reserved tokens and bytes"),
    "reserved elsewhere": (
        lambda c, ids, merges: ids.update({"<pad>": ids["a"], "a": 0}), "must begin with <pad>"
    ),
    "no reserved one": (rename("<eos>", "<end>"), "lacks 1 of the reserved"),
    "no bytes": (set_id("\u4e2d", 300), "'\u4e2d' is not made of bytes"),
    "an empty piece": (set_id("", 300), "'' is not made of bytes"),
    "a merge of no pieces": (lambda c, ids, merges: merges.append(["zz", "q"]), "not all of them"),
    "a merge of three": (lambda c, ids, merges: merges.append(["a", "b", "c"]), "too many values"),
    "a merge of numbers": (lambda c, ids, merges: merges.append([1, 2]), "no subword vocabulary"),
    "merges of no list": (lambda c, ids, merges: c["model"].update(merges=7), "no subword"),
    "ids of no object": (lambda c, ids, merges: c["model"].update(vocab=[1]), "no subword"),
    "no model": (lambda c, ids, merges: c.pop("model"), "no subword vocabulary"),
    "a normalizer": (part("normalizer", {"type": "Lowercase"}), "it has a normalizer, which"),
    "a truncation": (part("truncation", {"max_length": 1}), "it has a truncation, which"),
    "a padding": (part("padding", {}), "it has a padding, which"),
    "a post_processor": (part("post_processor", {}), "it has a post_processor, which"),
}  # fmt: skip


@pytest.mark.parametrize(("edit", "message"), VOCABULARIES.values(), ids=VOCABULARIES)
def test_a_hostile_vocabulary_is_refused(model, edit, message):
    edited(model, edit)
    refused(model, message)


@pytest.mark.parametrize("text", ["[" * 90_000, '{"model":' * 90_000, "null", "[]", '"BPE"', "{}",
                                  '{"model": null}', '{"model": {"type": ["BPE"]}}'])  # fmt: skip
def test_json_that_is_no_vocabulary_is_refused(model, text):
    (model / VOCABULARY).write_text(text, encoding="utf-8")
    refused(model, "no subword vocabulary|cannot be read")


def test_nothing_but_pieces_and_merges_of_a_vocabulary_acts(model):
    before = load_translator(model).source

    def meddle(content, ids, merges):
        slow = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated",
                "invert": False}  # fmt: skip
        content["pre_tokenizer"] = slow
        content["decoder"] = {"type": "Fuse"}
        content["added_tokens"].append({"id": 7, "content": "e", "special": True})
        content["model"]["dropout"] = 0.9

    edited(model, meddle)
    after = load_translator(model).source
    for text in ("Go home.", "e" * 40, "<pad> \u4e2d"):
        assert after.encode(text) == before.encode(text)
        assert after.decode(after.encode(text)) == text


# ---------------------------------------------------------------- checkpoint


SETTINGS = {
    "epochs": ["3", 3.5, True, 0, -1, 10**400],
    "minutes": [float("nan"), float("inf"), 0, "1"],
    "d_model": [None, 0, 1, 16.0, [16]],
    "corpus": [None, 3, ["everyday"]],
    "lr": [-1, 11.0, "high"],
    "tokens": [0, 0.5],
    "dropout": [1.0, None, {}],
    "validations": [0, 10**9, None],
    "seed": [-1, 2**40, "a"],
}


def with_lines(model, **lines):
    header, data = split_file(model / LAST)
    header["__metadata__"] |= {name: json.dumps(value) for name, value in lines.items()}
    write_file(model / LAST, header, data)


@pytest.mark.parametrize("name", SETTINGS)
def test_stored_settings_that_train_would_not_take_are_refused(model, capsys, name):
    settings = json.loads(read_header(model / LAST)["settings"])
    for value in SETTINGS[name]:
        change = {name: value, "epochs": None} if name == "minutes" else {name: value}
        with_lines(model, settings=settings | change)
        resume_refused(capsys, model, "the checkpoint ")


@pytest.mark.parametrize(
    "lines",
    [{"step": -1}, {"step": 0}, {"step": True}, {"step": 10**300}, {"step": "4"}, {"seconds": 1},
     {"seconds": float("nan")}, {"seconds": -1.0}, {"validated": -1}, {"settings": []},
     {"digest": 7}],
    ids=str,
)  # fmt: skip
def test_a_checkpoint_with_impossible_lines_is_refused(model, capsys, lines):
    with_lines(model, **lines)
    resume_refused(capsys, model, "is no checkpoint of `train`")


def test_a_checkpoint_of_deep_lines_is_refused(model, capsys):
    header, data = split_file(model / LAST)
    header["__metadata__"]["settings"] = "[" * 90_000
    write_file(model / LAST, header, data)
    resume_refused(capsys, model, "is no checkpoint of `train`")


@pytest.mark.parametrize("line", ["[" * 90_000, "1e999", "NaN", "-1", '"9"', "[9]", ""])
@pytest.mark.parametrize("name", ["chrf2", "loss", "step"])
def test_weights_with_impossible_lines_are_refused(model, capsys, name, line):
    if (name, line) == ("loss", "1e999"):
        return  # folders of earlier versions hold no loss, which is read so
    header, data = split_file(model / WEIGHTS)
    assert name in header["__metadata__"]
    header["__metadata__"][name] = line
    write_file(model / WEIGHTS, header, data)
    resume_refused(capsys, model, "does not say its score")


def test_a_checkpoint_of_a_giant_is_refused_before_it_is_built(model, capsys, monkeypatch):
    settings = json.loads(read_header(model / LAST)["settings"])
    with_lines(model, settings=settings | {"d_model": 2**14})
    monkeypatch.setattr(train, "Training", None)
    resume_refused(capsys, model, "has shape (300, 16), wanted is (300, 16384)")


@pytest.mark.parametrize("name", ["a\0b", "a\0.tsv", "\ud800.tsv", "x" * 300])
def test_a_corpus_that_no_file_can_be_is_refused(model, capsys, name):
    settings = json.loads(read_header(model / LAST)["settings"])
    with_lines(model, settings=settings | {"corpus": name})
    resume_refused(capsys, model, "cannot read the corpus")


ESCAPES = "\x1b]0;mine\x07\x1b[2J\x9b31m\u202e"


@pytest.mark.parametrize("where", ["a setting", "the corpus", "a type", "a tensor"])
def test_nothing_in_a_checkpoint_acts_on_the_terminal(model, capsys, where):
    settings = json.loads(read_header(model / LAST)["settings"])
    header, data = split_file(model / LAST)
    if where == "a setting":
        with_lines(model, settings=settings | {ESCAPES: 1})
    elif where == "the corpus":
        with_lines(model, settings=settings | {"corpus": f"/{ESCAPES}.tsv"})
    else:
        change = {"dtype": ESCAPES} if where == "a type" else {ESCAPES: 1}
        with_entry(**change)(header)
        header[ESCAPES] = header.pop(names(header)[0])
        write_file(model / LAST, header, data)
    assert train.main(["--out", str(model), "--resume"]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert err.removesuffix("\n").isprintable()
    assert "mine" in err


@needs_posix
def test_no_name_of_a_file_acts_on_the_terminal(tmp_path, capsys):
    corpus = tmp_path / f"own{ESCAPES}.tsv"
    corpus.write_text("".join(f"line {i}\tligne {i}\n" for i in range(40)), encoding="utf-8")
    assert run(tmp_path / f"a{ESCAPES}", "--corpus", str(corpus), "--epochs", "1") == 0
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / ESCAPES).write_text("", encoding="utf-8")
    assert run(tmp_path / "b") == 1
    assert run(tmp_path / "b", "--resume") == 1
    both = ["--src", str(corpus), "--ref", str(tmp_path / ESCAPES)]
    assert evaluate.main(["--model", str(tmp_path / "b"), *both]) == 1
    out, err = capsys.readouterr()
    moves = "\x1b[A"  # with which a progress bar goes up a line
    assert not set("\x1b\x07\x9b\u202e") & set((out + err).replace(moves, ""))
    assert out.count("mine") == 1
    assert err.count("mine") >= 4


def test_nothing_that_a_model_says_acts_on_the_terminal(model, monkeypatch, tmp_path, capsys):
    translator = load_translator(model)
    vocabulary = translator.target
    controls = map(chr, [*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), 0x2066, 0x2069])
    said = [vocabulary._tokenizer.encode(f"a{c}b").ids for c in controls]
    again = itertools.cycle(said)
    monkeypatch.setattr(
        Translator, "decode", lambda self, sources, *args: [next(again) for _ in sources]
    )
    assert set(translate_lines(translator, ["Go."] * len(said))) == {"ab", "a b"}
    out = translate_bytes(monkeypatch, b"Go.\nStop.\n", folder=model)
    assert out.count(b"\n") == 2
    assert len(out.decode("utf-8").splitlines()) == 2
    picture = ["--text", "Go \x1b[2J.", "--target", "Va \x1b\x9b\u202e", "--out"]
    assert heatmap.main(["--model", str(model), *picture, str(tmp_path / "map.png")]) == 0
    assert capsys.readouterr().out.removesuffix("\n").isprintable()


# ---------------------------------------------------------------- links, pipes, devices

FILES = [CONFIG, VOCABULARY, WEIGHTS, LAST]
needs_links = pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")


def replaced(model, name, make):
    (model / name).unlink()
    make(model / name)
    return model


SPECIAL = {
    "a folder": lambda path: path.mkdir(),
    "a pipe": os.mkfifo if hasattr(os, "mkfifo") else None,
    "an endless device": lambda path: path.symlink_to("/dev/zero"),
    "a link in a circle": lambda path: path.symlink_to(path),
    "a link to nowhere": lambda path: path.symlink_to(path.parent / "nowhere"),
    "a link to a secret": lambda path: path.symlink_to(path.parent / "secret"),
}


@needs_links
@pytest.mark.parametrize("make", SPECIAL.values(), ids=SPECIAL)
@pytest.mark.parametrize("name", FILES)
def test_what_is_no_file_is_refused_and_not_waited_for(model, capsys, name, make):
    (model / "secret").write_text("hunter2", encoding="utf-8")
    replaced(model, name, make)
    if name != LAST:
        refused(model, name)
        with pytest.raises(Refused) as caught:
            load_translator(model)
        assert "hunter2" not in str(caught.value)
    code = train.main(["--out", str(model), "--resume"])
    out, err = capsys.readouterr()
    assert "hunter2" not in out + err
    assert code == 1 or name == CONFIG  # a resumed training does not read it


@needs_links
def test_a_link_to_a_sound_file_is_followed_but_never_written_through(model, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in FILES:
        shutil.move(model / name, elsewhere / name)
        (model / name).symlink_to(elsewhere / name)
    load_translator(model)  # as caches of models have it
    before = {name: (elsewhere / name).read_bytes() for name in FILES}
    folder.write_config(model, folder.read_config(model))
    assert not (model / CONFIG).is_symlink()
    assert {name: (elsewhere / name).read_bytes() for name in FILES} == before


@needs_links
def test_unfinished_files_are_removed_and_nothing_else(model, tmp_path):
    (tmp_path / "precious").write_text("kept", encoding="utf-8")
    (model / ".unfinished-link").symlink_to(tmp_path / "precious")
    (model / ".unfinished-folder").mkdir()
    (model / ".unfinished-file").write_text("", encoding="utf-8")
    assert train.main(["--out", str(model), "--resume"]) == 0
    assert (tmp_path / "precious").read_text(encoding="utf-8") == "kept"
    assert [path.name for path in model.glob(".unfinished-*")] == [".unfinished-folder"]


@needs_links
def test_a_corpus_that_a_checkpoint_names_must_be_a_file(model, capsys):
    settings = json.loads(read_header(model / LAST)["settings"])
    with_lines(model, settings=settings | {"corpus": "/dev/zero"})
    resume_refused(capsys, model, "it is a pipe or a device, not a file that can be read again")
