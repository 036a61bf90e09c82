"""Training: the same batch for all, and the same sentences, each batched in its own usual way."""

import random
from collections.abc import Callable, Mapping

import torch

from course_utils.bench.floor import Products
from course_utils.bench.peers import Course
from course_utils.bench.rounds import Measurement, rates
from course_utils.bench.setting import LONG, SHORT, Shape, V, random_batch
from course_utils.text.batches import Batch, Example, collate
from course_utils.text.vocab import RESERVED, Vocab
from course_utils.training.runs.data import batches_of

SENTENCES = 512
UNIT = "real target tokens/s"
TOKENS = 64 * 40  # padded tokens of both sides in a batch of ours, as many as in 64 x 20


def same_batch(
    models: Mapping[str, object], shape: Shape, rounds: int, device: torch.device
) -> Measurement:
    """One update on one batch."""
    batch = random_batch(shape).to(device)
    calls = {name: lambda model=model: model.train(batch) for name, model in models.items()}
    values = rates(calls, batch.num_tokens, rounds, device)
    return Measurement("train", f"one batch of {shape}", UNIT, values)


def own_batches(models: Mapping[str, object], rounds: int, device: torch.device) -> Measurement:
    """One pass over sentences whose lengths are spread as in fra-eng.

    Peers take 64 at a time as they come, padded to 20 as d2l does it; the course's engine puts
    like lengths together and counts tokens, not sentences.
    """
    examples = sentences(SENTENCES)
    padded = [widen(collate(examples[i : i + 64]), 20) for i in range(0, len(examples), 64)]
    by_length = [collate(group) for group in batches_of(examples, TOKENS, seed=0, epoch=0)]
    work = sum(len(e.target) - 1 for e in examples)

    def one_pass(model: object) -> Callable[[], None]:
        chosen = by_length if isinstance(model, (Course, Products)) else padded
        batches = [batch.to(device) for batch in chosen]

        def run() -> None:
            for batch in batches:
                model.train(batch)

        return run

    calls = {name: one_pass(model) for name, model in models.items()}
    values = rates(calls, work, rounds, device)
    return Measurement("train", f"{SENTENCES} short sentences, own batches", UNIT, values)


def sentences(count: int, seed: int = 0) -> list[Example]:
    """Random ids; source lengths from 3 to 19 around 7, a French sentence a token longer or so."""
    rng = random.Random(seed)

    def ids(length: int) -> list[int]:
        return [rng.randrange(len(RESERVED), V) for _ in range(length)]

    examples = []
    for _ in range(count):
        length = min(18, max(2, round(rng.lognormvariate(1.9, 0.4))))
        longer = min(18, max(2, length + rng.choice((-1, 0, 0, 1, 1, 2, 3))))
        examples.append(Example([*ids(length), Vocab.eos], [Vocab.bos, *ids(longer), Vocab.eos]))
    return examples


def widen(batch: Batch, positions: int) -> Batch:
    """The batch, padded to so many positions on both sides."""

    def pad(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.pad(x, (0, positions - x.shape[1]))

    return Batch(pad(batch.src), batch.src_lens, pad(batch.tgt_in), pad(batch.tgt_out))


def measurements(
    models: Mapping[str, object], rounds: int, device: torch.device
) -> list[Measurement]:
    """All measurements of training."""
    return [
        own_batches(models, rounds, device),
        *(same_batch(models, shape, rounds, device) for shape in (SHORT, LONG)),
    ]
