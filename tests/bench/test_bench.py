"""The benchmark measures like with like: the same work, and the same results where they are due."""

import json
import random
import zipfile
from itertools import count

import pytest
import torch

from course_utils.__main__ import main
from course_utils.bench import (
    decoding_speed,
    measured,
    quality,
    results,
    text_speed,
    training_speed,
)
from course_utils.bench.peers import PEERS, Course, Torch, available
from course_utils.bench.rounds import FLOOR, Measurement, take_turns
from course_utils.bench.setting import LONG, SHORT, random_batch
from course_utils.bench.torch_modules import TorchModules
from course_utils.models.transformer import TransformerConfig
from course_utils.text.batches import Example
from course_utils.text.corpora import load_corpus
from course_utils.text.pairs import Pair
from course_utils.text.vocab import Vocab
from course_utils.training.runs.settings import Settings

CPU = torch.device("cpu")

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")


@pytest.fixture(scope="module")
def models():
    return available(PEERS, CPU)[0]


def test_turns_are_taken_fairly():
    said = []
    calls = {name: lambda name=name: said.append(name) for name in "abc"}
    seconds = take_turns(calls, 3)
    assert said == [*"abc", *"abc", *"bca", *"cab"]
    assert {name: len(each) for name, each in seconds.items()} == dict.fromkeys("abc", 3)
    said.clear()
    assert take_turns(calls, 1, lambda call: [call()] and 2.0) == dict.fromkeys("abc", [2.0])
    assert said == [*"abc"]  # who times in another way warms up in it, too


def test_ratios_are_of_the_same_round():
    found = Measurement("t", "s", "u", {"ours": [8.0, 4.0, 2.0], "other": [2.0, 2.0, 1.0]})
    assert found.middle("ours") == 4.0
    assert found.ratio("other") == (2.0, 2.0, 4.0)


def test_every_peer_decodes_all_steps_of_all_sentences(models):
    batch = random_batch(SHORT)
    for name, model in models.items():
        said = model.decode(batch.src[:3], batch.src_lens[:3], 7)
        assert [len(ids) for ids in said] == [7, 7, 7], name


def test_peers_that_are_trained_learn(models):
    """One batch seen again and again: its loss falls, whoever trains on it."""
    from course_utils.training.runs.engine import mean_loss

    batch = random_batch(SHORT)
    ours = models["ours"]
    before = mean_loss(ours.model.eval(), batch).item()
    for name, model in models.items():
        if name == FLOOR:
            continue
        changed = [p.detach().clone() for p in model.model.parameters()]
        model.train(batch)
        assert any((p != old).any() for p, old in zip(model.model.parameters(), changed))
    assert mean_loss(ours.model.eval(), batch).item() < before


def test_the_book_s_decoder_steps_as_it_reads_at_once(models):
    book = models["d2l"].model
    batch = random_batch(SHORT)
    src, lens = batch.src[:3], batch.src_lens[:3]
    book.positions.P.zero_()  # step by step the book gives every token the first position
    said = models["d2l"].decode(src, lens, 5)  # (3, 5)
    read = torch.cat((torch.full((3, 1), Vocab.bos), said), dim=1)
    book.train()  # it hides the future only when it trains; dropout is switched off by hand
    for module in book.modules():
        if isinstance(module, torch.nn.Dropout):
            module.eval()
    assert torch.equal(book(src, lens, read).argmax(-1)[:, :-1], said)


def test_the_floor_holds_the_matrices_of_the_models(models):
    """Weights that multiply something, but for embeddings, are as many as ours."""

    def matrices(model):
        return sum(p.numel() for p in model.parameters() if p.dim() == 2)

    ours, floor = models["ours"].model, models[FLOOR].model
    embeddings = ours.src_embedding.weight.numel() + ours.tgt_embedding.weight.numel()
    output = ours.output.weight.numel()
    assert ours.output.weight is ours.tgt_embedding.weight  # tied: the output is counted once
    assert matrices(floor) == matrices(ours) - embeddings + output


def test_batches_hold_what_their_shape_says():
    short, long = random_batch(SHORT), random_batch(LONG)
    assert short.src.shape == (64, 20)
    assert int(short.src_lens.min()) >= SHORT.shortest
    assert torch.equal(short.src.ne(Vocab.pad).sum(1), short.src_lens)
    assert long.num_tokens == 16 * 128


def test_sentences_reach_every_peer_whole():
    examples = training_speed.sentences(100)
    wide = training_speed.widen(training_speed.collate(examples[:64]), 20)
    assert wide.src.shape == wide.tgt_in.shape == (64, 20)
    assert wide.num_tokens == sum(len(e.target) - 1 for e in examples[:64])


def test_the_course_and_d2l_cut_alike_where_their_rules_agree():
    pairs = load_corpus("everyday").pairs
    alike, sides = text_speed.check_agreement(pairs)
    assert sides == 2 * len(pairs)
    assert alike > sides / 3
    with pytest.raises(ValueError, match="cut 'go' in two ways"):
        text_speed.check_agreement([Pair("go", "l'ami")], cut=lambda text, lang: ["g", "o"])


@pytest.fixture
def small_file(tmp_path, monkeypatch):
    """80 pairs in the place of fra-eng."""
    with zipfile.ZipFile(tmp_path / "fra-eng.zip", "w") as file:
        file.writestr("fra.txt", "Go now.\tVa vite !\nWe go.\tNous allons.\n" * 40)
    monkeypatch.setenv("COURSE_DATA_DIR", str(tmp_path))


@pytest.mark.usefixtures("small_file")
def test_both_read_the_same_file_and_ours_loses_no_token():
    batches = text_speed.ours()
    assert [len(batch.src) for batch in batches] in ([64, 16], [16, 64])
    assert sum(int(batch.src_lens.sum()) for batch in batches) == 80 * 4
    (source, lengths), (target, _) = text_speed.theirs()
    assert source.shape == target.shape == (80, 10)
    assert int(lengths.sum()) == 80 * 4


@pytest.mark.long
@pytest.mark.usefixtures("small_file")
def test_each_way_is_timed_in_a_process_of_its_own():
    found = text_speed.measurements(rounds=1)
    assert [set(each.values) for each in found] == [{"ours", "d2l"}]


def test_decoding_counts_sentences_a_second(monkeypatch):
    ticks = iter(range(100))
    monkeypatch.setattr("time.perf_counter", lambda: next(ticks))  # every call takes a second
    found = decoding_speed.greedy({"ours": Course(CPU), "nn": Torch(CPU)}, 2, 3, 1, CPU)
    assert found.values == {"ours": [2.0], "nn": [2.0]}


def test_records_say_what_was_measured_and_are_read_back():
    found = [
        Measurement("decode", "n = 1, 20 steps", "sentences/s", {"ours": [3.0, 2.0, 7.0]}),
        Measurement("memory", "one batch", "MiB", {"ours": [50.0], "d2l": [60.0]}),
    ]
    records = results.records(found, CPU)
    assert [(r["task"], r["system"], r["value"], r["unit"]) for r in records] == [
        ("decode", "ours", 3.0, "sentences/s"), ("memory", "ours", 50.0, "MiB"),
        ("memory", "d2l", 60.0, "MiB"),
    ]  # fmt: skip
    assert results.measurements(json.loads(json.dumps(records))) == found


def test_the_command_prints_ratios_and_writes_records(tmp_path, capsys):
    path = tmp_path / "bench.json"
    assert main(["bench", "attention", "--rounds", "2", "--json", str(path)]) == 0
    assert "ours / this" in capsys.readouterr().out
    records = json.loads(path.read_text(encoding="utf-8"))
    assert {"ours", "sdpa kernel"} <= {record["system"] for record in records}
    for record in records:
        assert {"task", "shape", "system", "value", "unit"} <= set(record)
        assert len(record["rounds"]) == 2
        assert "torch" in record["machine"]


def test_an_unknown_part_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["bench", "flying"])
    assert "invalid choice: 'flying'" in capsys.readouterr().err


def test_the_curves_of_decoding_are_the_kept_seconds():
    found = [Measurement("decode", "n = 64, 20 steps", "sentences/s", {"ours": [32.0, 64.0, 16.0]})]
    assert measured.seconds_by_steps(found, 64) == {"ours": [(20, 2.0)]}
    assert measured.seconds_by_steps(found, 1) == {}


def test_a_plain_loop_learns_and_translates(monkeypatch):
    """A toy language, word for word: the rival of the quality table is no straw man."""
    ticks = count(0, 1)
    monkeypatch.setattr("time.monotonic", lambda: next(ticks))  # every update takes a second
    words = [f"w{i}" for i in range(12)]
    rng = random.Random(0)
    lines = [[rng.choice(words) for _ in range(rng.randint(1, 4))] for _ in range(600)]
    index = {word: i for i, word in enumerate(words, start=4)}
    examples = [
        Example([*(index[w] for w in line), 2], [1, *(index[w] + 1 for w in line), 2])
        for line in lines
    ]
    torch.manual_seed(0)
    model = TorchModules(TransformerConfig(20, 20, 32, 2, 64, 1, 1, 0.0, max_len=64))
    settings = Settings("toy", minutes=5, d_model=32, smoothing=0.0)
    assert quality.fit(model, examples, settings, CPU) == 299
    sources = [e.source[:-1] for e in examples[:100]]
    said = quality.translate(model, sources, CPU)
    right = sum(ids == e.target[1:-1] for ids, e in zip(said, examples, strict=False))
    assert right > 60
