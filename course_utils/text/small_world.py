"""The small world: English sentences, their correct French translations, and the word alignment.

A grammar wrote both sides of a pair at once (`course_utils.maintain.small_world_grammar`), so
every pair is right by construction, and which word stands for which is known. Each English sentence
has one translation only, because the world has conventions where French asks for more than
English says:

- "you" is one friend (tu, never vous), and the speaker and "you" are men (je suis fatigué);
- "they" are "ils", unless a subject earlier in the sentence is feminine (elles);
- "it" as an object always takes up a noun of the same sentence;
- the English past of an action is a passé composé; "used to", "was" and "was doing" an imparfait;
- "will" is a futur simple, "going to" a futur proche.

Gold links ``(i, j)`` join token i of the source to token j of the target, counted with
`course_utils.text.text.tokenize`:

- every word is linked to each word that it stands for, and several make a group: "went" to both
  "est" and "allé", "doesn't" to "ne" and "pas", "I'm" to "je" and to the verb;
- an auxiliary that French does without is linked with the verb it serves ("is eating" - "mange");
- a question's fronted auxiliary (do, is, can) is linked to "est-ce" and "que";
- a reflexive pronoun is linked to the English verb ("get up" - "me lève");
- punctuation is linked to punctuation;
- only a French article stays without a link, where English has none ("I like cats" - "les chats",
  "he eats bread" - "du pain", "he doesn't eat meat" - "pas de viande").
"""

import gzip
from collections import Counter
from functools import cache
from pathlib import Path

from course_utils.text.pairs import Pair
from course_utils.text.text import tokenize

FILE = Path(__file__).with_name("small_world.tsv.gz")  # split, source, target, links as 0-0 1-2
SIZES = {"train": 20_000, "random": 1_000, "compositional": 1_000}  # by default
LARGEST = {**SIZES, "train": 30_000}


def small_world(split: str = "train", size: int | None = None) -> list[Pair]:
    """Pairs of one split, all with different sources.

    Args:
        split: "train"; "random", held out by chance; or "compositional", held out because a word
            or pattern meets another that it never meets in training. A held-out source reads like
            no source of training, nor like an everyday one, and every word of the held-out pairs
            stands in the default training set.
        size: how many pairs; by default 20,000 of "train" and 1,000 of the others. A smaller set
            is the beginning of a larger one.

    Raises:
        ValueError: an unknown split, a negative size, or more pairs than there are.
    """
    if split not in SIZES:
        raise ValueError(f"unknown split {split!r}: use one of {', '.join(SIZES)}")
    size = SIZES[split] if size is None else size
    if not 0 <= size <= LARGEST[split]:
        raise ValueError(f"size must lie in 0..{LARGEST[split]} for {split!r}, got {size}")
    return [_pair(row) for row in _rows()[split][:size]]


def common_sentences(split: str, longest: int, least: int) -> list[list[str]]:
    """English sentences of a split, tokenised: at most `longest` tokens, no rare word.

    Every word stands `least` times or more in those sentences of the training split that are short
    enough.
    """
    counts: Counter[str] = Counter()
    for sentence in _short("train", longest):
        counts.update(sentence)
    return [
        sentence
        for sentence in _short(split, longest)
        if all(counts[word] >= least for word in sentence)
    ]


def _short(split: str, longest: int) -> list[list[str]]:
    sentences = [tokenize(pair.source, "en") for pair in small_world(split)]
    return [sentence for sentence in sentences if len(sentence) <= longest]


@cache
def _rows() -> dict[str, list[str]]:
    """The lines of the file by split, without its name."""
    rows: dict[str, list[str]] = {split: [] for split in SIZES}
    for line in gzip.decompress(FILE.read_bytes()).decode("utf-8").splitlines():
        split, _, row = line.partition("\t")
        rows[split].append(row)
    return rows


def _pair(row: str) -> Pair:
    source, target, links = row.split("\t")
    return Pair(source, target, tuple(_link(link) for link in links.split(" ")))


@cache
def _link(text: str) -> tuple[int, int]:
    i, j = text.split("-")
    return int(i), int(j)
