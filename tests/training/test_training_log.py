"""Which weights are kept as the best, the log of a training, its early end, and training on."""

import csv
import json
import shutil

import pytest
import torch
from engine_runs import assert_same_folders, command, run, tensors, tiny_folder
from PIL import Image

from course_utils.cli import train
from course_utils.training.metrics import Score
from course_utils.training.runs import engine
from course_utils.training.runs.files import read_header
from course_utils.training.runs.folder import read_best
from course_utils.training.runs.training_log import read_log

ANIMALS = {"cat": "猫", "dog": "狗", "bird": "鸟", "fish": "鱼", "horse": "马", "cow": "牛"}
DEEDS = {"sees": "看见", "likes": "喜欢", "hears": "听见", "wants": "想要"}


@pytest.fixture
def chinese(tmp_path):
    """A corpus of 144 sentences: The cat sees the dog., 猫看见狗。"""
    path = tmp_path / "chinese.tsv"
    lines = [
        f"The {a} {does} the {b}.\t{ANIMALS[a]}{DEEDS[does]}{ANIMALS[b]}。\n"
        for a in ANIMALS for does in DEEDS for b in ANIMALS
    ]  # fmt: skip
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_a_target_without_spaces_is_scored_by_its_characters(chinese, tmp_path, capsys):
    """facebookresearch/fairseq#4689: each validation says BLEU 0, and the last weights are kept."""
    folder = tmp_path / "a"
    options = ["--corpus", str(chinese), "--size", "144", "--epochs", "16", "--vocab", "330"]
    assert run(folder, *options, "--d-model", "32", "--held-out", "10", "--validations", "4") == 0
    out, err = capsys.readouterr()
    scores = [row.score for row in read_log(folder)]
    assert len(set(scores)) == 4
    assert max(scores) > 50
    assert read_best(folder).score == pytest.approx(max(scores), abs=1e-4)
    assert "tok:zh" in out
    assert f"BLEU {max(scores):.2f}, the best so far" in err


def with_measurements(monkeypatch, folder, measured, *options):
    """Train, with these scores and losses at the validations."""
    measured = iter(measured)
    current = {}

    def score(self, pairs):
        current["score"], current["loss"] = next(measured)
        return Score(current["score"], "BLEU", "")

    with monkeypatch.context() as patch:
        patch.setattr(engine.Training, "score", score)
        patch.setattr(engine.Training, "loss", lambda self, pairs: current["loss"])
        assert run(folder, *options) == 0
    return read_best(folder)


@pytest.mark.parametrize(
    ("measured", "best"),
    [
        ([(0.0, 3.0), (0.0, 2.0), (0.0, 2.5)], (0.0, 2.0)),  # of equal scores the smaller loss
        ([(0.0, 2.0), (1.0, 3.0), (0.5, 1.0)], (1.0, 3.0)),  # but the score comes first
        ([(100.0, 1.0), (100.0, 1.0), (0.0, 0.5)], (100.0, 1.0)),
    ],
)
def test_of_equal_scores_the_smaller_loss_is_better(monkeypatch, tmp_path, measured, best):
    found = with_measurements(monkeypatch, tmp_path / "a", measured)
    assert (found.score, found.loss) == best


def test_every_validation_stands_in_the_log(tmp_path):
    folder = tiny_folder()
    with open(folder / "log.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    steps = json.loads(read_header(folder / "last.safetensors")["step"])
    assert [int(row["update"]) for row in rows] == [steps // 3, 2 * steps // 3, steps]
    assert [row["measure"] for row in rows] == ["chrF2"] * 3
    losses = [float(row["validation_loss"]) for row in rows]
    assert losses == sorted(losses, reverse=True)
    assert read_best(folder).loss == pytest.approx(losses[-1], abs=1e-4)
    with Image.open(folder / "log.png") as picture:
        assert picture.size == (840, 320)


def test_the_validation_loss_is_that_of_the_kept_weights_without_dropout_or_smoothing(tmp_path):
    """Measured twice it is the same; it moves no weights and no random numbers of the training."""
    folder = tmp_path / "a"
    kept = []
    measure = engine.Training.loss

    def twice(self, pairs):
        found = [measure(self, pairs) for _ in range(2)]
        kept.append(found)
        return found[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine.Training, "loss", twice)
        assert run(folder) == 0
    assert all(a == b for a, b in kept)
    assert_same_folders(folder, tiny_folder())


def test_a_log_has_each_validation_once_after_a_stop(monkeypatch, tmp_path):
    """A run killed between log and checkpoint validates again, and logs it once."""
    folder = tmp_path / "a"
    save = engine.Training._save

    def killed(self):
        if self.validated == 2:
            raise KeyboardInterrupt
        save(self)

    with monkeypatch.context() as patch:
        patch.setattr(engine.Training, "_save", killed)
        with pytest.raises(KeyboardInterrupt):
            run(folder)
    assert len(read_log(folder)) == 2
    assert command("--out", str(folder), "--resume") == 0
    wanted = [row.update for row in read_log(tiny_folder())]
    assert [row.update for row in read_log(folder)] == wanted
    assert_same_folders(folder, tiny_folder())


@pytest.mark.parametrize("text", ["", "a,b\n", "update\n1\n", "\x00", "update," * 9])
def test_another_file_in_the_place_of_the_log_is_refused(tmp_path, capsys, text):
    folder = shutil.copytree(tiny_folder(), tmp_path / "a")
    (folder / "log.csv").write_text(text, encoding="utf-8")
    assert command("--out", str(folder), "--resume") == 1
    assert "log.csv is no log of `train`: move it away" in capsys.readouterr().err
    (folder / "log.csv").unlink()
    assert command("--out", str(folder), "--resume") == 0


def test_patience_ends_a_training_that_gets_no_better(monkeypatch, tmp_path, capsys):
    folder = tmp_path / "a"
    measured = [(1.0, 1.0), (3.0, 1.0), (2.0, 1.0), (2.5, 1.0), (9.0, 1.0)]
    options = ("--validations", "6", "--patience", "2")
    best = with_measurements(monkeypatch, folder, measured, *options)
    assert best.score == 3.0
    assert len(read_log(folder)) == 4
    said = capsys.readouterr()
    assert "2 validations brought nothing better: stopped" in said.err
    weights = tensors(folder)
    assert command("--out", str(folder), "--resume") == 0  # ended is ended
    assert all(torch.equal(weights[name], w) for name, w in tensors(folder).items())


def test_training_on_begins_with_the_weights_and_keeps_the_vocabulary(tmp_path, capsys):
    before, folder = tiny_folder(), tmp_path / "a"
    options = ["--corpus", "everyday", "--size", "60", "--tokens", "400"]
    assert command(*options, "--start-from", str(before), "--epochs", "1", "--lr", "1e-9",
                   "--out", str(folder)) == 0  # fmt: skip
    assert "may have learnt from" not in capsys.readouterr().err
    assert (folder / "vocabulary.json").read_bytes() == (before / "vocabulary.json").read_bytes()
    for name, weights in tensors(folder, "model.safetensors").items():
        torch.testing.assert_close(weights, tensors(before, "model.safetensors")[name], atol=1e-6,
                                   rtol=0)  # fmt: skip
    assert read_best(folder).loss == pytest.approx(read_best(before).loss, abs=1e-3)


def test_training_on_takes_new_words_and_longer_sentences_and_resumes(tmp_path, capsys, chinese):
    folder = tmp_path / "a"
    options = ["--corpus", str(chinese), "--start-from", str(tiny_folder()), "--epochs", "2"]
    assert command(*options, "--out", str(folder)) == 0
    assert "may have learnt from sentences that are held out here" in capsys.readouterr().err
    assert json.loads((folder / "config.json").read_text())["d_model"] == 16
    assert command("--out", str(folder), "--resume") == 0


def test_training_on_refuses_what_does_not_go_together(tmp_path, capsys):
    def refusal(*options):
        assert train.main([*options, "--out", str(tmp_path / "a")]) == 1
        return capsys.readouterr().err

    start = ["--corpus", "everyday", "--start-from"]
    assert "leave out --d-model" in refusal(*start, str(tiny_folder()), "--d-model", "32")
    assert "no folder nowhere" in refusal(*start, "nowhere")
    assert "fra-eng" in refusal(*start, "nowhere")
