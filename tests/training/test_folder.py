"""The model folder: what is written is read again, and what is damaged is refused, not loaded."""

import hashlib
import json
import os
import shutil
import stat
import sys

import pytest
import torch
from engine_runs import tensors, tiny_folder
from safetensors.torch import save_file

from course_utils import __main__ as cli
from course_utils.cli import train
from course_utils.models.parameters import count_parameters
from course_utils.models.transformer import TransformerConfig
from course_utils.training.runs import files
from course_utils.training.runs.folder import read_best, read_config, read_vocabulary, write_config
from course_utils.training.runs.refusals import Refused
from course_utils.training.trained import trained_models
from course_utils.training.translation import load_translator


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(tiny_folder(), tmp_path / "model")


def test_a_folder_gives_the_model_that_was_saved(folder):
    translator = load_translator(folder)
    assert not translator.model.training
    saved = tensors(folder, "model.safetensors")
    named = dict(translator.model.named_parameters())
    assert named.keys() == saved.keys()
    for name, weights in named.items():
        assert weights.dtype == torch.float64
        assert torch.equal(weights, saved[name].double())
    assert translator.model.output.weight is translator.model.tgt_embedding.weight
    assert len(translator.source) == translator.model.config.src_vocab_size == 300


def test_a_config_comes_back(tmp_path):
    config = TransformerConfig(300, 400, cross_dropout=0.5, positions="learned", bias=True)
    write_config(tmp_path, config)
    assert read_config(tmp_path) == config


def test_before_the_first_weights_there_is_no_best(tmp_path):
    assert read_best(tmp_path) is None


def refused(folder, message):
    with pytest.raises(Refused, match=message):
        load_translator(folder)


@pytest.mark.parametrize("name", ["config.json", "vocabulary.json", "model.safetensors"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    refused(folder, f"there is no {name} in ")


def test_a_missing_folder_is_named(tmp_path):
    refused(tmp_path / "nowhere", "there is no folder ")
    refused(tmp_path / "nowhere", r"ships with the course \(.*\bfra-eng\b.*\)")


@pytest.mark.parametrize("name", ["config.json", "vocabulary.json", "model.safetensors"])
@pytest.mark.parametrize("share", [0, 0.5, 0.99])
def test_a_file_that_was_cut_off_is_refused(folder, name, share):
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[: int(share * len(whole))])
    refused(folder, "again")


def test_a_pickle_is_not_loaded(folder):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(folder / "trapped"),)

    torch.save(Trap(), folder / "model.safetensors")
    refused(folder, "is cut off or damaged")
    assert not (folder / "trapped").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "is of format 2, this version reads format 1"),
        ({"d_modle": 16}, "has the unknown field 'd_modle'; its fields are format, src_vocab_size"),
        ({"d_model": "16"}, "d_model must be a whole number, got '16'"),
        ({"d_model": 16.0}, "d_model must be a whole number, got 16.0"),
        ({"num_heads": True}, "num_heads must be a whole number, got True"),
        ({"bias": 1}, "bias must be true or false, got 1"),
        ({"dropout": None}, "dropout must be a number, got None"),
        ({"dropout": 1.5}, "dropout must be at least 0 and below 1, got 1.5"),
        ({"dropout": float("nan")}, "dropout must be at least 0 and below 1, got nan"),
        ({"positions": 3}, "positions must be text, got 3"),
        ({"positions": "rotary"}, "describes no model: positions must be"),
        ({"num_heads": 5}, "describes no model: d_model = 16 cannot be split"),
        ({"d_ff": 0}, "d_ff must lie in 1..131,072, got 0"),
        ({"num_encoder_layers": 10**9}, "num_encoder_layers must lie in 1..256"),
        ({"src_vocab_size": 10**15}, "src_vocab_size must lie in 1..1,000,000"),
        ({"max_len": 10**9}, "max_len must lie in 1..16,384"),
        ({"src_vocab_size": 301, "tgt_vocab_size": 301}, "holds 300 pieces, but config.json says"),
        ({"d_ff": 128}, r"encoder.0.ffn.hidden.weight has shape \(64, 16\), wanted is \(128, 16\)"),
        ({"num_decoder_layers": 2}, "tensors are wanted, it holds"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(folder, change, message):
    fields = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(fields | change), encoding="utf-8")
    refused(folder, message)


def test_a_config_without_a_field_is_refused(folder):
    fields = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    del fields["d_ff"]
    (folder / "config.json").write_text(json.dumps(fields), encoding="utf-8")
    refused(folder, "has no field 'd_ff'")


@pytest.mark.parametrize("text", ["[]", "null", '"format"', "[" * 100_000])
def test_json_that_is_no_config_is_refused(folder, text):
    (folder / "config.json").write_text(text, encoding="utf-8")
    refused(folder, "is of format|cannot be read as JSON")


def test_weights_that_are_no_numbers_are_refused(folder):
    saved = tensors(folder, "model.safetensors")
    saved["src_embedding.weight"][3, 3] = float("nan")
    save_file(saved, folder / "model.safetensors")
    refused(folder, "holds infinity or NaN")


def test_weights_of_another_type_are_refused(folder):
    saved = tensors(folder, "model.safetensors")
    save_file({name: w.bfloat16() for name, w in saved.items()}, folder / "model.safetensors")
    refused(folder, r"is of type BF16, wanted is F32 \(float32\) or F16")


def test_a_vocabulary_of_another_kind_is_refused(folder):
    (folder / "vocabulary.json").write_text('{"model": {"type": "WordPiece"}}', encoding="utf-8")
    refused(folder, "this is no subword vocabulary: its model is not BPE")


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "config.json"
    files.write_atomic(path, b"old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(Refused, match="No space left on device"):
        files.write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["config.json"]


def test_writing_where_no_file_can_be_is_refused_with_what_to_do(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    for path, mend in (
        (tmp_path / "no" / "a", "make its folder first"),
        (tmp_path / "file" / "a", "make its folder first"),
        (tmp_path / "folder", "name a file, not a folder"),
    ):
        with pytest.raises(Refused, match=f"cannot write .*; {mend}"):
            files.write_atomic(path, b"")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


@pytest.mark.skipif(os.name == "nt", reason="Windows syncs no folders")
def test_a_file_in_its_place_is_written_though_its_folder_may_not_be_opened(tmp_path, monkeypatch):
    opened = os.open

    def forbidden(path, *args, **options):
        if os.path.isdir(path):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *args, **options)

    monkeypatch.setattr(files.os, "open", forbidden)
    files.write_atomic(tmp_path / "a", b"whole")
    assert (tmp_path / "a").read_bytes() == b"whole"


@pytest.mark.parametrize("name", ["config.json", "vocabulary.json", "model.safetensors"])
def test_a_file_that_may_not_be_read_is_not_called_damaged(folder, monkeypatch, name):
    opened = open

    def forbidden(path, *args, **options):
        if str(path).endswith(name):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *args, **options)

    monkeypatch.setattr(files, "open", forbidden, raising=False)
    refused(folder, f"you may not read .*{name}: ask its owner")


@pytest.mark.skipif(sys.platform != "linux", reason="only there are such names")
def test_a_folder_whose_name_is_not_utf_8_is_refused_and_not_called_damaged(folder, capsys):
    odd = folder.rename(folder.parent / "caf\udce9")
    refused(odd, r"the name '.*caf\\udce9.*' is not UTF-8: take another name")
    assert pack(odd, folder) == 1
    odd.rename(folder)
    assert pack(folder, odd) == 1
    assert capsys.readouterr().err.count("is not UTF-8: take another name") == 2
    assert not odd.exists()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_a_written_file_has_the_usual_mode(tmp_path):
    (tmp_path / "usual").write_bytes(b"")
    files.write_atomic(tmp_path / "ours", b"")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("usual", "ours")]
    assert modes[0] == modes[1]


def pack(folder, out):
    return cli.main(["pack", "--model", str(folder), "--out", str(out)])


def test_a_packed_folder_is_the_model_in_half_precision(folder, tmp_path, capsys):
    assert pack(folder, tmp_path / "packed") == 0
    said = capsys.readouterr().out
    digest = hashlib.sha256((tmp_path / "packed" / "model.safetensors").read_bytes()).hexdigest()
    assert f"sha256:{digest}" in said
    assert {path.name for path in (tmp_path / "packed").iterdir()} == {
        "config.json", "model.safetensors", "vocabulary.json"
    }  # fmt: skip
    saved = tensors(folder, "model.safetensors")
    packed = load_translator(tmp_path / "packed")
    for name, weights in packed.model.named_parameters():
        assert torch.equal(weights, saved[name].half().double())
    assert read_best(tmp_path / "packed") == read_best(folder)
    files_of = [(folder / "model.safetensors"), (tmp_path / "packed" / "model.safetensors")]
    large, small = (path.stat().st_size for path in files_of)
    assert small < 0.6 * large


def test_what_half_precision_cannot_hold_is_not_packed(folder, tmp_path, capsys):
    saved = tensors(folder, "model.safetensors")
    saved["src_embedding.weight"][3, 3] = 70_000.0
    files.write_tensors(folder / "model.safetensors", saved, {"bleu": "1", "step": "1"})
    assert pack(folder, tmp_path / "packed") == 1
    assert "too large for half precision" in capsys.readouterr().err
    assert not (tmp_path / "packed").exists()


def test_packing_wants_a_folder_and_offers_no_name_that_it_does_not_take(tmp_path, capsys):
    assert pack(tmp_path / "nowhere", tmp_path / "packed") == 1
    said = capsys.readouterr().err
    assert "there is no folder" in said
    assert "ships with the course" not in said


def test_a_folder_in_use_is_not_packed_into(folder, capsys):
    assert pack(folder, folder) == 1
    assert "exists and is not empty" in capsys.readouterr().err
    assert pack(folder, folder / "config.json") == 1


@pytest.fixture(scope="module")
def twin(tmp_path_factory):
    """A model of the same sizes, of other words."""
    corpus = tmp_path_factory.mktemp("twin") / "own.tsv"
    lines = (f"der Hund {i} lief heim\tl'animal {i} rentra\n" for i in range(60))
    corpus.write_text("".join(lines), encoding="utf-8")
    folder = str(corpus.with_name("model"))
    sizes = ("--vocab", "300", "--d-model", "16", "--heads", "2", "--layers", "1", "--epochs", "1")
    assert train.main(["--corpus", str(corpus), "--out", folder, *sizes]) == 0
    return corpus.with_name("model")


def test_the_vocabulary_of_another_model_is_refused_though_the_sizes_fit(folder, twin, tmp_path):
    assert read_vocabulary(twin).to_json() != read_vocabulary(folder).to_json()
    assert read_config(twin).src_vocab_size == read_config(folder).src_vocab_size
    shutil.copy(twin / "vocabulary.json", folder)
    refused(folder, "another vocabulary than vocabulary.json beside it")
    assert pack(folder, tmp_path / "packed") == 1
    assert not (tmp_path / "packed").exists()
    assert train.main(["--out", str(folder), "--resume"]) == 1


def test_a_packed_model_knows_its_vocabulary(folder, twin, tmp_path):
    assert pack(folder, tmp_path / "packed") == 0
    shutil.copy(twin / "vocabulary.json", tmp_path / "packed")
    refused(tmp_path / "packed", "another vocabulary")


@pytest.mark.parametrize("name", sorted(trained_models()))
def test_a_shipped_model_is_what_its_readme_says(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    folder = trained_models()[name]
    readme = (folder / "README.md").read_text(encoding="utf-8")
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    assert digest in readme
    assert sum(path.stat().st_size for path in folder.iterdir()) < 12e6
    translator = load_translator(name)
    assert f"{count_parameters(translator.model):,} weights" in readme
    assert translator.translate(["I'm home.", "Where is the cat?"]) == [
        "Je suis chez moi.", "Où est le chat ?"
    ]  # fmt: skip


def test_a_folder_goes_before_a_shipped_model_of_its_name(folder, monkeypatch, tmp_path):
    name = next(iter(trained_models()))
    folder.rename(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert len(load_translator(name).source) == 300
