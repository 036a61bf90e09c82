"""The command `train`: what it learns from, that it can be stopped anywhere, what it refuses."""

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from engine_runs import (
    ENVIRONMENT,
    ROOT,
    TINY,
    assert_same_folders,
    command,
    run,
    tensors,
    tiny_folder,
)

from course_utils.cli import train, translate
from course_utils.models.transformer import Transformer, TransformerConfig
from course_utils.text.batches import Example, collate
from course_utils.text.corpora import load_corpus
from course_utils.training.losses import masked_cross_entropy
from course_utils.training.runs import engine, processes
from course_utils.training.runs.data import batches_of, held_out, positions, split_corpus
from course_utils.training.runs.engine import mean_loss
from course_utils.training.runs.files import read_header
from course_utils.training.runs.folder import read_vocabulary
from course_utils.training.runs.refusals import Refused
from course_utils.training.runs.settings import Settings
from course_utils.training.runs.stopping import StopRequest


def test_a_training_leaves_a_whole_folder_and_says_how_good_it_is(tmp_path, capsys):
    assert run(tmp_path / "a", "--epochs", "1", "--validations", "1") == 0
    out, err = capsys.readouterr()
    assert out.count("\n") == 1
    assert "test chrF2" in out  # none of the three validation sentences has four words
    assert "nc:6" in out
    assert "54 pairs to train on, 3 to validate, 3 to test; 300 pieces" in err
    assert "tokens/s" in err
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [
        "config.json", "last.safetensors", "log.csv", "log.png", "model.safetensors", "test.en",
        "test.fr", "vocabulary.json",
    ]  # fmt: skip


def test_what_is_kept_is_the_moving_average_of_the_best_validation():
    folder = tiny_folder()
    last, best = tensors(folder), tensors(folder, "model.safetensors")
    step = json.loads(read_header(folder / "model.safetensors")["step"])
    assert step == json.loads(read_header(folder / "last.safetensors")["step"])
    for name, weights in best.items():
        assert torch.equal(weights, last[f"average/{name}"])
    assert any(not torch.equal(weights, last[f"model/{name}"]) for name, weights in best.items())


def test_the_loss_at_real_tokens_is_that_of_all_logits_without_padding():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(9, 9, 8, 2, 16, 1, 1, dropout=0.0)).double()
    batch = collate([Example([4, 5, 2], [1, 6, 2]), Example([7, 2], [1, 8, 4, 5, 2])])
    logits = model(batch.src, batch.src_lens, batch.tgt_in)
    whole = masked_cross_entropy(logits, batch.tgt_out, label_smoothing=0.1)
    wanted = torch.autograd.grad(whole, list(model.parameters()))
    short = mean_loss(model, batch, 0.1)
    torch.testing.assert_close(short, whole)
    found = torch.autograd.grad(short, list(model.parameters()))
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_the_loss_falls(monkeypatch, tmp_path):
    losses = []

    def recorded(*args, **options):
        loss = mean_loss(*args, **options)
        losses.append(loss.item())
        return loss

    monkeypatch.setattr(engine, "mean_loss", recorded)
    assert run(tmp_path / "a", "--epochs", "12", "--validations", "1") == 0
    tenth = len(losses) // 10
    assert sum(losses[-tenth:]) < 0.8 * sum(losses[:tenth])


def stop_after(monkeypatch, updates, number):
    """Let a signal arrive in the middle of an update."""
    original = engine.Training._update

    def interrupted(self, *args):
        if self.step == updates - 1:
            signal.raise_signal(number)
        return original(self, *args)

    monkeypatch.setattr(engine.Training, "_update", interrupted)


HANG_UP = pytest.param(
    6, getattr(signal, "SIGHUP", None),
    marks=pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no terminal says so here"),
)  # fmt: skip


@pytest.mark.parametrize(("updates", "number"), [(4, signal.SIGINT), (9, signal.SIGTERM), HANG_UP])
def test_a_stopped_and_resumed_run_equals_an_unbroken_one(
    monkeypatch, tmp_path, capsys, updates, number
):
    with monkeypatch.context() as patch:
        stop_after(patch, updates, number)
        assert run(tmp_path / "a b") == 128 + number
    err = capsys.readouterr().err
    assert f"stopped after update {updates}; to go on: " in err
    hint = err.split("to go on: ")[1]
    assert os.name == "nt" or shlex.split(hint)[4:] == ["--out", str(tmp_path / "a b"), "--resume"]
    assert json.loads(read_header(tmp_path / "a b" / "last.safetensors")["step"]) == updates
    assert command("--out", str(tmp_path / "a b"), "--resume") == 0  # settings need no repeating
    assert f"going on at update {updates}" in capsys.readouterr().err
    assert_same_folders(tmp_path / "a b", tiny_folder())


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no terminal says so here")
def test_a_terminal_that_is_lost_twice_or_ignored_kills_nothing():
    before = signal.getsignal(signal.SIGHUP)
    with StopRequest() as stop:
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGHUP)
        assert stop.number == signal.SIGHUP
    assert signal.getsignal(signal.SIGHUP) == before
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopRequest() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert stop.number == 0
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_finished_run_can_be_resumed_and_stays_as_it_is(tmp_path, capsys):
    options = ["--epochs", "1", "--validations", "1"]
    assert run(tmp_path / "a", *options) == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()}
    summary = capsys.readouterr().out
    assert run(tmp_path / "a", *options, "--resume") == 0
    assert capsys.readouterr().out == summary
    assert {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()} == before


def test_minutes_are_kept(tmp_path, capsys):
    timed = TINY[: TINY.index("--epochs")] + TINY[TINY.index("--tokens") :]
    timed += ["--validations", "2", "--minutes", "0.02", "--out", str(tmp_path / "a")]
    assert train.main(timed) == 0
    header = read_header(tmp_path / "a" / "last.safetensors")
    assert json.loads(header["seconds"]) >= 1.2
    assert json.loads(header["validated"]) == 2
    assert "(100%)" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="torchrun's store is missing on Windows")
@pytest.mark.long
def test_two_processes_train_as_one(tmp_path):
    options = ["--dropout", "0", "--epochs", "2", "--validations", "1", "--tokens", "300"]
    together = [sys.executable, "-m", "torch.distributed.run", "--standalone",
                "--nproc_per_node", "2", "-m", "course_utils", "train",
                *TINY, *options, "--out", str(tmp_path / "two")]  # fmt: skip
    result = subprocess.run(together, env=ENVIRONMENT, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("test chrF2") == 1  # only one of them speaks and writes
    assert run(tmp_path / "one", *options) == 0
    two, one = tensors(tmp_path / "two"), tensors(tmp_path / "one")
    assert two.keys() == one.keys()
    for name in one:
        if name.startswith(("model/", "average/")):
            torch.testing.assert_close(two[name], one[name], rtol=0, atol=1e-5)


def test_the_share_of_a_process_weighs_its_tokens(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    # the mean over 4 processes of share(sum_i) is the sum over all tokens divided by their count
    sums = [torch.tensor(x) for x in (1.0, 2.0, 3.0, 4.0)]
    assert sum(processes.share(x, 20) for x in sums) / 4 == pytest.approx(10 / 20)


def test_a_rank_counts_only_among_several(monkeypatch):
    for number in ("x", "1", "-1"):
        monkeypatch.setenv("RANK", number)
        assert (processes.rank(), processes.world_size()) == (0, 1)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    assert processes.rank() == 1


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"WORLD_SIZE": "x"}, "WORLD_SIZE in the environment: 'x' is not a whole number from 1"),
        ({"WORLD_SIZE": "0"}, "WORLD_SIZE in the environment: '0' is not a whole number from 1"),
        ({"WORLD_SIZE": "2", "RANK": "x"}, "RANK in the environment: 'x' is not a whole number"),
        ({"WORLD_SIZE": "2", "RANK": "2"}, "'2' is not a whole number from 0 to 1"),
        ({"WORLD_SIZE": "2", "RANK": "0"}, "WORLD_SIZE is 2, but the processes cannot meet"),
        ({"WORLD_SIZE": "2"}, "WORLD_SIZE is 2, but the processes cannot meet"),
    ],
    ids=str,
)
def test_what_torchrun_would_not_say_is_refused(monkeypatch, tmp_path, capsys, said, message):
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    err = refusal(capsys, *TINY, "--out", str(tmp_path / "a"))
    assert message in err
    assert "start with torchrun" in err
    assert not (tmp_path / "a").exists()


def test_no_source_stands_on_two_sides():
    split = split_corpus(Settings("everyday", held_out=40))
    keys = [
        {pair.source.lower().rstrip(" .!?") for pair in pairs}
        for pairs in (split.train, split.validation, split.test)
    ]
    assert sum(map(len, keys)) == len(set.union(*keys))
    assert set.union(*keys) == {
        pair.source.lower().rstrip(" .!?") for pair in load_corpus("everyday").pairs
    }
    assert len({pair.source for pair in split.test}) == len(split.test) >= 40


def test_sources_that_read_the_same_are_counted_once(tmp_path):
    corpus = tmp_path / "own.tsv"
    texts = [f"{text}{end}" for text in ("Go", "Stop", "Run") for end in ("", ".", "!", " ?")]
    corpus.write_text("".join(f"{text}\tVa\n" for text in texts), encoding="utf-8")
    with pytest.raises(Refused, match="has 3 different source sentences, too few to hold out"):
        split_corpus(Settings(str(corpus), held_out=2))


def test_held_out_pairs_that_are_too_long_are_left_out_and_counted(tmp_path, capsys):
    corpus = tmp_path / "own.tsv"
    lines = [f"{i}{' word' * 40 if i % 3 == 0 else ''}\tmot {i}\n" for i in range(60)]
    corpus.write_text("".join(lines), encoding="utf-8")
    settings = ["--corpus", str(corpus), "--held-out", "12", "--max-len", "20", "--epochs", "1"]
    assert run(tmp_path / "a", *settings) == 0
    split = split_corpus(Settings(str(corpus), size=60, held_out=12))
    wanted = [
        [pair for pair in pairs if "word" not in pair.source]
        for pairs in (split.validation, split.test)
    ]
    (kept, tested), err = map(len, wanted), capsys.readouterr().err
    assert 0 < kept < 12
    assert 0 < tested < 12
    assert f"{kept} to validate ({12 - kept} longer than --max-len left out), " in err
    assert f"{tested} to test ({12 - tested} longer than --max-len left out);" in err
    sources = (tmp_path / "a" / "test.en").read_text(encoding="utf-8").splitlines()
    assert sources == [pair.source for pair in wanted[1]]
    with pytest.raises(Refused, match="every held-out pair has more than 2 pieces: raise --max"):
        held_out(split, read_vocabulary(tmp_path / "a"), 2)
    corpus.write_text("".join(f"{i}\tmot{' mot' * 40}\n" for i in range(60)), encoding="utf-8")
    err = refusal(capsys, *TINY, *settings, "--out", str(tmp_path / "b"))
    assert "every training pair has more than 20 pieces: raise --max-len" in err


def examples_of_many_lengths():
    return [Example([7] * (i % 9 + 1), [1, *[7] * (i * 5 % 11), 2]) for i in range(200)]


def test_batches_hold_every_example_once_within_the_budget():
    examples = examples_of_many_lengths()
    batches = batches_of(examples, 60, seed=0, epoch=0)
    assert sorted(map(id, sum(batches, []))) == sorted(map(id, examples))
    for batch in batches:
        widest = max(len(e.source) for e in batch) + max(len(e.target) for e in batch)
        assert widest * len(batch) <= 60


def test_batches_follow_from_seed_and_epoch():
    examples = examples_of_many_lengths()
    first = batches_of(examples, 60, 0, 0)
    assert batches_of(examples, 60, 0, 0) == first
    others = [batches_of(examples, 60, seed, epoch) for seed, epoch in [(0, 1), (1, 0)]]
    assert all(other != first and len(other) == len(first) for other in others)


def test_an_epoch_keeps_its_batches_so_that_stopped_runs_go_on_with_them():
    examples = examples_of_many_lengths()
    place = {id(example): i for i, example in enumerate(examples)}
    first = [[place[id(e)] for e in batch] for batch in batches_of(examples, 60, 0, 0)[:3]]
    assert first == [[103, 4, 59], [101, 156, 57], [111, 12, 166, 67]]


def test_an_example_over_the_budget_stands_alone():
    examples = [Example([7] * 50, [1, 2]), Example([7], [1, 2])]
    assert sorted(map(len, batches_of(examples, 10, 0, 0))) == [1, 1]


def test_positions_reach_as_far_as_the_longest_example():
    assert positions([Example([7] * 5, [1, 7, 2])]) == 32
    assert positions([Example([7], [1, *[7] * 50, 2])]) == 51


def refusal(capsys, *argv):
    assert train.main(list(argv)) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return err


def test_a_loss_that_is_no_number_stops_the_run_with_its_causes(monkeypatch, tmp_path, capsys):
    calls = []

    def broken(model, batch, *smoothing):
        calls.extend(smoothing)  # which a validation has not
        return mean_loss(model, batch, *smoothing) * (float("nan") if len(calls) == 6 else 1)

    monkeypatch.setattr(engine, "mean_loss", broken)
    err = refusal(capsys, *TINY, "--out", str(tmp_path / "a"))
    assert "the loss is nan at update 6" in err
    assert "--lr (now 0.006)" in err
    assert "--warmup" in err
    kept = tensors(tmp_path / "a")
    assert all(torch.isfinite(tensor).all() for tensor in kept.values())


def test_a_folder_in_use_is_refused(tmp_path, capsys):
    (tmp_path / "thesis.doc").write_text("years of work", encoding="utf-8")
    err = refusal(capsys, *TINY, "--out", str(tmp_path))
    assert "is not empty (it holds thesis.doc)" in err
    err = refusal(capsys, *TINY, "--out", str(tmp_path), "--resume")
    assert "holds thesis.doc but no last.safetensors" in err
    err = refusal(capsys, *TINY, "--out", str(tmp_path / "thesis.doc" / "a"))
    assert "cannot make the folder" in err


@pytest.mark.parametrize(
    "options", [["--max-len", "8"], ["--size", "2"], ["--start-from", "nowhere"], ["--heads", "3"]]
)
def test_a_refused_training_leaves_the_folder_as_it_found_it(tmp_path, capsys, options):
    corpus = tmp_path / "long.tsv"
    # each word stands once, so that the pieces stay short
    words = ("".join(chr(97 + (i * k) % 26) for k in range(1, 30)) for i in range(1, 81))
    lines = (f"{a}\t{b}\n" for a, b in zip(words, words, strict=False))
    corpus.write_text("".join(lines), encoding="utf-8")
    small = [] if "--start-from" in options else ["--vocab", "260"]
    out = str(tmp_path / "a")
    refusal(capsys, "--corpus", str(corpus), *small, "--out", out, *options)
    assert list((tmp_path / "a").iterdir()) == []


def test_other_settings_are_refused_and_named(capsys):
    err = refusal(capsys, "--out", str(tiny_folder()), "--resume", "--epochs", "8", "--lr", "0.1")
    assert "--epochs was 3, now 8; --lr was not given, now 0.1" in err


def test_another_corpus_of_the_same_name_is_refused(tmp_path, capsys):
    corpus = tmp_path / "own.tsv"
    lines = [f"line {i}\tligne {i}\n" for i in range(40)]
    corpus.write_text("".join(lines), encoding="utf-8")
    folder = str(tmp_path / "a")
    assert run(folder, "--corpus", str(corpus), "--epochs", "1", "--validations", "1") == 0
    capsys.readouterr()
    corpus.write_text("".join(lines[1:]), encoding="utf-8")
    err = refusal(capsys, "--out", folder, "--resume")
    assert "is no longer what the training" in err


def test_a_damaged_checkpoint_is_refused(tmp_path, capsys):
    whole = (tiny_folder() / "last.safetensors").read_bytes()
    (tmp_path / "last.safetensors").write_bytes(whole[:-100])
    err = refusal(capsys, "--out", str(tmp_path), "--resume")
    assert "is cut off or damaged" in err
    (tmp_path / "last.safetensors").write_bytes((tiny_folder() / "model.safetensors").read_bytes())
    assert "is no checkpoint of `train`" in refusal(capsys, "--out", str(tmp_path), "--resume")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--size", "2"], "too few to hold out"),
        (["--heads", "3"], "d_model = 16 cannot be split into num_heads = 3"),
        (["--d-model", "15"], "d_model must be even"),
        (["--corpus", "klingon"], "unknown corpus 'klingon'"),
        (["--held-out", "30"], "smaller --held-out"),
    ],
)
def test_what_cannot_be_trained_is_refused(tmp_path, capsys, options, message):
    assert message in refusal(capsys, *TINY, *options, "--out", str(tmp_path / "a"))
    assert list((tmp_path / "a").iterdir()) == []  # so that the same folder may be named again


def test_a_folder_whose_name_is_not_utf_8_is_refused_at_once(tmp_path, capsys):
    folder = tmp_path / "caf\udce9"
    err = refusal(capsys, *TINY, "--out", str(folder))
    assert r"caf\udce9' is not UTF-8: take another name" in err
    assert not folder.exists()


@pytest.mark.parametrize(
    ("call", "main", "options"),
    [("iterdir", train.main, [*TINY, "--out"]), ("exists", translate.main, ["--model"])],
)
def test_a_folder_that_may_not_be_used_is_named(monkeypatch, tmp_path, capsys, call, main, options):
    used = getattr(Path, call)

    def forbidden(path, *args, **options):
        if path.parts[-2:] == ("mine", "a"):
            raise PermissionError(13, "Permission denied", str(path))
        return used(path, *args, **options)

    (tmp_path / "mine" / "a").mkdir(parents=True)
    monkeypatch.setattr(Path, call, forbidden)
    folder = str(tmp_path / "mine" / "a")
    assert main([*options, folder]) == 1
    assert f"cannot use {folder}: Permission denied" in capsys.readouterr().err


def test_a_corpus_must_be_named(tmp_path, capsys):
    assert "name a corpus" in refusal(capsys, "--out", str(tmp_path / "a"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--epochs", "0"], "'0' is not a whole number from 1"),
        (["--epochs", "two"], "'two' is not a whole number from 1"),
        (["--vocab", "100"], "'100' is not a whole number from 260"),
        (["--minutes", "0"], "'0' is not a number above 0"),
        (["--minutes", "nan"], "'nan' is not a number above 0"),
        (["--epochs", "1", "--minutes", "1"], "not allowed with"),
        (["--dropout", "1"], "'1' is not a number from 0 to 0.95"),
    ],
)
def test_options_out_of_range_are_refused(tmp_path, capsys, options, message):
    with pytest.raises(SystemExit) as stop:
        train.main([*options, "--corpus", "everyday", "--out", str(tmp_path / "a")])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "a").exists()
