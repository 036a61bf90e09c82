"""What the cells of chapter 20 only call: small translators, their table, letters in vectors."""

import random
import time

import pandas as pd
import torch
import torch.nn.functional as F

from course_utils.models.transformer import Transformer, TransformerConfig
from course_utils.text.batches import Example, collate, group_by_length
from course_utils.text.small_world import small_world
from course_utils.text.task import references
from course_utils.text.text import tokenize
from course_utils.training.loops import fit
from course_utils.training.losses import masked_cross_entropy
from course_utils.training.metrics import bleu
from course_utils.training.seeds import set_seed
from course_utils.training.translation import Translator


def short_pairs(split, longest, number=None):
    """The first pairs of the small world with at most `longest` letters on the English side."""
    size = 30_000 if split == "train" else 1_000
    return [pair for pair in small_world(split, size) if len(pair.source) <= longest][:number]


def encoded(pairs, source, target):
    """Pairs as ids, each with one tokenizer a side."""
    return [
        Example(
            [*source.encode(pair.source), source.eos],
            [target.bos, *target.encode(pair.target), target.eos],
        )
        for pair in pairs
    ]


def train_translator(cut, pairs, seed, *, updates, sentences, lr):
    """A Transformer of one block a side, and the CPU seconds of its training.

    cut: the tokenizers of source and target. Which sentences an update sees, the seed decides.
    """
    source, target = cut
    set_seed(seed)
    config = TransformerConfig(len(source), len(target), d_model=64, d_ff=256, dropout=0.0,
                               num_encoder_layers=1, num_decoder_layers=1)  # fmt: skip
    model, ids = Transformer(config), encoded(pairs, source, target)

    def loss_of(group):
        batch = collate([ids[i] for i in group])
        logits = model(batch.src, batch.src_lens, batch.tgt_in)  # (B, Tt, V)
        return masked_cross_entropy(logits, batch.tgt_out)

    order, groups = random.Random(seed), []
    while len(groups) < updates:  # like lengths together: less padding
        groups += group_by_length(
            range(len(pairs)), lambda i: (len(pairs[i].source),), sentences=sentences, rng=order
        )
    start = time.process_time()
    fit(model, groups[:updates], loss_of, lr=lr)
    return Translator(model, source, target), time.process_time() - start


def say(translator, pairs):
    """Its translations of the English sides."""
    return translator.translate([pair.source for pair in pairs], max_len=100)


def score(translator, pairs):
    """BLEU of its translations."""
    return bleu(say(translator, pairs), references(pairs))


def table_of_sizes(cuts, runs, scores, pairs, updates):
    """A row for each vocabulary: tokens, embeddings, time, BLEU.

    cuts: name -> tokenizers; runs: name -> (translator, seconds) of each seed; scores: name ->
    BLEU of each seed; pairs: those of the training.
    """
    rows = {}
    for name, (source, target) in cuts.items():
        tokens, found = sum(len(target.encode(pair.target)) for pair in pairs), scores[name]
        weights = runs[name][0][0].model.src_embedding.weight
        rows[name] = {
            "tokens a French sentence": f"{tokens / len(pairs):.1f}",
            "numbers in both embeddings": f"{weights.shape[1] * (len(source) + len(target)):,}",
            "CPU ms an update": f"{1000 * min(seconds for _, seconds in runs[name]) / updates:.0f}",
            "BLEU (lowest to highest)": f"{sum(found) / len(found):.1f} "
            f"({min(found):.1f} to {max(found):.1f})",
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def nats(translator, pairs):
    """The cross-entropy of all French sides together, in nats, and how many tokens they have."""
    batch = collate(encoded(pairs, translator.source, translator.target))
    with torch.no_grad():
        logits = translator.model(batch.src, batch.src_lens, batch.tgt_in)  # (B, Tt, V)
    return masked_cross_entropy(logits, batch.tgt_out).item() * batch.num_tokens, batch.num_tokens


def new_words_said(runs, pairs, unseen):
    """Of the words of `unseen` pairs that stand in no pair of the training, how many are said.

    Returns how many there are, and name -> how many were said, the mean of the seeds.
    """
    known = {word for pair in pairs for word in tokenize(pair.target, "fr")}
    new = [set(tokenize(pair.target, "fr")) - known for pair in unseen]
    fresh = [(pair, words) for pair, words in zip(unseen, new, strict=True) if words]
    said = {}
    for name, run in runs.items():
        said[name] = 0
        for translator, _ in run:
            texts = say(translator, [pair for pair, _ in fresh])
            for text, (_, words) in zip(texts, fresh, strict=True):
                said[name] += len(words & set(tokenize(text, "fr"))) / len(run)
    return sum(len(words) for _, words in fresh), said


def first_letters(texts, vectors, *, penalty=100, seed=0):
    """A linear map from vectors to first letters, fitted on four fifths, tried on the rest.

    Ridge regression: least squares plus `penalty` times the squares of the weights.
    texts: words in small letters; vectors (N, d). Returns the share that the map gets right, and
    the share of the commonest letter.
    """
    letters = torch.tensor([ord(text[0]) - ord("a") for text in texts])  # (N,)
    x = F.layer_norm(vectors, vectors.shape[1:])  # (N, d)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    test, rest = order[: len(x) // 5], order[len(x) // 5 :]
    wanted = F.one_hot(letters[rest], 26).float()  # (N, 26)
    squares = x[rest].T @ x[rest] + penalty * torch.eye(x.shape[1])
    weights = torch.linalg.solve(squares, x[rest].T @ wanted)  # (d, 26)
    found = (x[test] @ weights).argmax(dim=1)
    right = (found == letters[test]).float().mean().item()
    return right, (letters == letters.mode().values).float().mean().item()
