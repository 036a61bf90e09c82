"""The command `export`: a model as ONNX says what it says here."""

import sys

import numpy as np
import pytest
from engine_runs import talking_folder, tiny_folder
from tokenizers import Tokenizer

from course_utils.cli import export
from course_utils.text.corpora import load_corpus
from course_utils.training.runs.onnx_files import DECODER, ENCODER
from course_utils.training.translation import load_translator


def greedy(encoder, decoder, tokenizer, texts, max_len):
    """What a program without PyTorch does."""
    ids = [[*tokenizer.encode(text, add_special_tokens=False).ids, 2] for text in texts]
    lens = np.array([len(some) for some in ids])
    src = np.zeros((len(ids), lens.max()), np.int64)
    for row, some in zip(src, ids, strict=True):
        row[: len(some)] = some
    (memory,) = encoder.run(None, {"src": src, "src_lens": lens})
    tgt = np.ones((len(ids), 1), np.int64)
    for _ in range(max_len - 1):
        (logits,) = decoder.run(None, {"tgt": tgt, "memory": memory, "src_lens": lens})
        tgt = np.concatenate([tgt, logits.argmax(-1)[:, None]], axis=1)
    ended = [[*row, 2] for row in tgt[:, 1:].tolist()]
    return [tokenizer.decode(row[: row.index(2)]).strip() for row in ended]


@pytest.mark.long
def test_onnxruntime_says_what_the_model_says(tmp_path, capsys):
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    folder, out = talking_folder(), tmp_path / "onnx"
    assert export.main(["--model", str(folder), "--out", str(out)]) == 0
    assert "encoder.onnx and decoder.onnx" in capsys.readouterr().out
    encoder, decoder = (runtime.InferenceSession(out / name) for name in (ENCODER, DECODER))
    tokenizer = Tokenizer.from_file(str(out / "vocabulary.json"))
    texts = [p.source for p in load_corpus("everyday").pairs if len(p.source) < 25][:200]
    translator = load_translator(folder)
    wanted = translator.translate(texts, max_len=24)
    assert len(texts) == 200
    assert len(set(wanted)) > 5
    for some in (texts, texts[:1]):  # a batch of another size, too
        assert greedy(encoder, decoder, tokenizer, some, 25) == wanted[: len(some)]


def test_no_folder_with_something_in_it_is_written_into(tmp_path, capsys):
    (tmp_path / "vocabulary.json").write_text("mine", encoding="utf-8")
    assert export.main(["--model", str(tiny_folder()), "--out", str(tmp_path)]) == 1
    assert "is not empty: name a new folder" in capsys.readouterr().err
    assert (tmp_path / "vocabulary.json").read_text(encoding="utf-8") == "mine"


def test_a_package_that_is_missing_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    assert export.main(["--model", str(tiny_folder()), "--out", str(tmp_path / "a")]) == 1
    assert "pip install onnxscript" in capsys.readouterr().err
