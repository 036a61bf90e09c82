"""The benchmark measures like with like: the same work, and the same results where they are due."""

import json

import pytest
import torch

from course_utils.__main__ import main
from course_utils.bench import decoding, pipeline, training
from course_utils.bench.peers import PEERS, Course, Torch, available
from course_utils.bench.rounds import Timing, ratios, take_turns
from course_utils.bench.sizes import LONG, SHORT, random_batch
from course_utils.data.vocab import Vocab

CPU = torch.device("cpu")
PHRASES = ["Go.\tVa !", "Hi, you.\tSalut, toi\u202f!", "a..b  ,c\tQuoi ?", "no tab", "x\ty\tz", ""]

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


def test_ratios_are_of_the_same_round_and_count_the_work():
    ours, theirs = Timing([1.0, 2.0, 4.0], 10), Timing([3.0, 4.0, 4.0], 5)
    assert ratios(ours, theirs) == (2.0, 4.0, 6.0)
    assert ours.rate == 5.0


def test_every_peer_decodes_all_steps_of_all_sentences(models):
    batch = random_batch(SHORT)
    for name, model in models.items():
        said = model.decode(batch.src[:3], batch.src_lens[:3], 7)
        assert [len(ids) for ids in said] == [7, 7, 7], name


def test_peers_that_are_trained_learn(models):
    """One batch seen again and again: its loss falls, whoever trains on it."""
    from course_utils.engine.loop import mean_loss

    batch = random_batch(SHORT)
    ours = models["course"]
    before = mean_loss(ours.model.eval(), batch).item()
    for model in models.values():
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


def test_batches_hold_what_their_shape_says():
    short, long = random_batch(SHORT), random_batch(LONG)
    assert short.src.shape == (64, 20)
    assert int(short.src_lens.min()) >= SHORT.shortest
    assert torch.equal(short.src.ne(Vocab.pad).sum(1), short.src_lens)
    assert long.num_tokens == 16 * 128


def test_sentences_reach_every_peer_whole():
    examples = training.sentences(100)
    wide = training.widen(training.collate(examples[:64]), 20)
    assert wide.src.shape == wide.tgt_in.shape == (64, 20)
    assert wide.num_tokens == sum(len(e.target) - 1 for e in examples[:64])


@pytest.mark.parametrize("text", ["\n".join(PHRASES), "\n".join(PHRASES * 3)])
def test_the_fast_pipeline_gives_d2l_s_arrays(text):
    for ours, theirs in zip(pipeline.fast(text), pipeline.slow(text)):
        for a, b in zip(ours, theirs):
            assert torch.equal(a, b)


def test_decoding_counts_sentences():
    timing = decoding.greedy({"course": Course(CPU), "nn": Torch(CPU)}, 2, 3, 1, CPU)["course"]
    assert timing.work == 2
    assert len(timing.seconds) == 1


def test_the_command_prints_ratios_and_keeps_the_numbers(tmp_path, capsys):
    path = tmp_path / "bench.json"
    assert main(["bench", "--only", "attention", "--rounds", "2", "--json", str(path)]) == 0
    assert "course x" in capsys.readouterr().out
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert "torch" in kept["machine"]
    for timings in kept["results"].values():
        assert all(len(timing["seconds"]) == 2 for timing in timings.values())
