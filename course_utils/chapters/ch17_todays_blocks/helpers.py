"""What the cells of chapter 17 only call: its sentences, the training loop, a crowd, a table."""

import random
import time
from collections import Counter

import pandas as pd
import torch
import torch.nn.functional as F

from course_utils.text.batches import pad
from course_utils.text.small_world import small_world
from course_utils.text.text import tokenize
from course_utils.text.vocab import Vocab
from course_utils.training.steps import update

BATCH, WARMUP = 64, 15  # sentences an update, updates in which the learning rate rises


def short_sentences(longest, rarest):
    """English sentences of at most `longest` tokens, each seen `rarest` times in training.

    Returns the vocabulary, and the ids of the sentences to train on and of those held out, from
    <bos> to <eos>, the shortest first.
    """
    texts = []
    for part in ("train", "random"):
        sentences = [tokenize(pair.source, "en") for pair in small_world(part)]
        texts.append([sentence for sentence in sentences if len(sentence) <= longest])
    count = Counter(word for sentence in texts[0] for word in sentence)
    texts = [[s for s in text if all(count[word] >= rarest for word in s)] for text in texts]
    words = Vocab(sorted(texts[0], key=len))
    train_ids, held_ids = (
        [[Vocab.bos, *words.encode(s), Vocab.eos] for s in sorted(text, key=len)] for text in texts
    )
    return words, train_ids, held_ids


def loss_of(model, tokens, start=0):
    """Mean loss of the next token; the first one stands at position `start`."""
    logits, said = model(tokens[:, :-1], start), tokens[:, 1:]
    return F.cross_entropy(logits.flatten(0, 1), said.flatten(), ignore_index=Vocab.pad)


def fit(model, train_ids, held, *, updates, every, rate, seed, balance):
    """Train on batches that depend on the seed alone; a balance loss is added where there is one.

    Returns (measurements, 3): updates, seconds of computing in them, loss on held-out text.
    """
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    rng, seconds, seen = random.Random(seed), 0.0, []
    for step in range(updates + 1):
        if step % every == 0 or step == updates:
            with torch.no_grad():
                seen.append((step, seconds, loss_of(model, held).item()))
        if step == updates:
            break
        begin = rng.randrange(max(1, len(train_ids) - BATCH + 1))
        batch, began = pad(train_ids[begin : begin + BATCH])[0], time.process_time()
        loss = loss_of(model, batch)
        if hasattr(model.block.ffn, "balance"):
            loss = loss + balance * model.block.ffn.balance
        share = min((step + 1) / WARMUP, (updates - step) / max(1, updates - WARMUP))
        update(loss, optimizer, lr=rate * share, step=step + 1)
        seconds += time.process_time() - began
    return torch.tensor(seen)


def make_crowd(model, tokens, liking):
    """The router's first two experts like the mean direction of what the network reads."""
    read = []
    hook = model.block.ffn.register_forward_pre_hook(lambda _, given: read.append(given[0]))
    with torch.no_grad():
        model(tokens)
        common = F.normalize(read[0].flatten(0, 1).mean(0), dim=0)  # (D,)
        model.block.ffn.router.weight[:2] += liking * common
    hook.remove()


def load_of(model, tokens):
    """Which share of the visits each expert gets when the model reads these tokens: (E,)."""
    with torch.no_grad():
        model(tokens)
    return model.block.ffn.load


def race_table(models, runs):
    """A row for each kind of model: weights, bytes of cache, loss, gain, time.

    models: (kind, seed) -> model; runs: kind -> (seeds, measurements, 3), "old block" first.
    """
    rows, old = {}, runs["old block"]
    for kind, found in runs.items():
        model, end = models[kind, 0], found[:, -1, 2]  # (seeds,)
        gain = old[:, -1, 2] - end  # of the same seed and the same batches
        rows[kind] = {
            "parameters": f"{sum(p.numel() for p in model.parameters()):,}",
            "cache, bytes a token": 2 * model.block.attention.W_k.out_features * 4,  # float32
            "loss": f"{end.mean():.3f}",
            "gain, worst to best seed": f"{gain.min():+.3f} to {gain.max():+.3f}",
            "time": f"{found[:, -1, 1].sum() / old[:, -1, 1].sum():.2f}",
        }
    return pd.DataFrame.from_dict(rows, orient="index")
