"""What torch.nn.Transformer learns in a plain loop in the minutes that `train` is given.

    python -m course_utils.bench.quality --corpus fra-eng --held-out 2000 --minutes 10

takes the options of `train` and prints the same line: the same sentences are held out, the
vocabulary, the sizes of the model and the schedule of the learning rate are the same. The loop is
that of a tutorial: 64 shuffled sentences a batch, padded to the longest, and the last weights.
"""

import argparse
import random
import sys
import time
from collections.abc import Iterator, Sequence

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from tqdm import tqdm

from course_utils.bench.torch_modules import TorchModules
from course_utils.bench.usual import step
from course_utils.models.modes import evaluating
from course_utils.models.parameters import count_parameters
from course_utils.text.batches import Batch, Example, collate, pad
from course_utils.text.vocab import Vocab
from course_utils.training.metrics import bleu
from course_utils.training.runs.data import encode, learn_vocabulary, positions, split_corpus
from course_utils.training.runs.processes import best_device
from course_utils.training.runs.refusals import Refused
from course_utils.training.runs.settings import Settings, add_options, new_settings
from course_utils.training.schedules import warmup_then_decay_after

SENTENCES = 64  # in a batch
STEPS = 60  # the longest translation, in tokens


def main(argv: list[str]) -> None:
    """Train for the minutes, translate the test set, print its BLEU."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.bench.quality", description=__doc__.splitlines()[0]
    )
    add_options(parser)
    settings = new_settings(vars(parser.parse_args(argv)))
    if settings.minutes is None:
        raise Refused("say how long: --minutes 10")
    split = split_corpus(settings)
    vocabulary = learn_vocabulary(split, settings.vocab)
    examples = encode(split.train, vocabulary, settings.max_len)
    device = best_device()
    torch.manual_seed(settings.seed)  # on all threads, as `train`
    config = settings.model_config(len(vocabulary), max(positions(examples), STEPS))
    model = TorchModules(config).to(device)
    updates = fit(model, examples, settings, device)
    sources = vocabulary.encode_all([pair.source for pair in split.test])
    said = [vocabulary.decode(ids) for ids in translate(model, sources, device)]
    score = bleu(said, [pair.target for pair in split.test], lowercase=False)
    print(
        f"torch.nn.Transformer, {count_parameters(model):,} weights: test BLEU {score:.2f} on "
        f"{len(split.test)} held-out sentences ({score.signature}) after {updates:,} updates"
    )


def shuffled(examples: Sequence[Example], seed: int) -> Iterator[Batch]:
    """Batches without end, every epoch in another order."""
    rng, order = random.Random(seed), list(examples)
    while True:
        rng.shuffle(order)
        for first in range(0, len(order), SENTENCES):
            yield collate(order[first : first + SENTENCES])


def fit(
    model: nn.Module, examples: Sequence[Example], settings: Settings, device: torch.device
) -> int:
    """Train until the minutes are over.

    Returns:
        the number of updates.
    """
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    total, began, updates = 60 * settings.minutes, time.monotonic(), 0
    model.train()
    with tqdm(total=round(total), unit="s", file=sys.stderr) as bar:
        for batch in shuffled(examples, settings.seed):
            seconds = time.monotonic() - began
            if seconds >= total:
                break
            share = warmup_then_decay_after(seconds, settings.warmup * total, total)
            optimizer.param_groups[0]["lr"] = settings.peak_lr * share
            batch = batch.to(device)
            logits = model(batch.src, batch.tgt_in)  # (B, Tt, V)
            loss = cross_entropy(
                logits.flatten(0, 1), batch.tgt_out.flatten(), ignore_index=Vocab.pad,
                label_smoothing=settings.smoothing,
            )  # fmt: skip
            step(loss, model, optimizer)
            updates += 1
            bar.update(int(seconds) - bar.n)
    return updates


def translate(
    model: TorchModules, sources: Sequence[list[int]], device: torch.device
) -> list[list[int]]:
    """Greedy translations, as many sentences at once as in training."""
    order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
    said: list[list[int]] = [[] for _ in sources]
    for first in range(0, len(order), SENTENCES):
        chunk = order[first : first + SENTENCES]
        src, _ = pad([[*sources[i], Vocab.eos] for i in chunk])
        with evaluating(model):
            for i, ids in zip(chunk, model.greedy(src.to(device), STEPS).tolist(), strict=True):
                said[i] = ids[: ids.index(Vocab.eos)] if Vocab.eos in ids else ids
    return said


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Refused as error:
        sys.exit(f"quality: {error}")
