"""Film reviews: the grammar's promises, the real ones, and batches."""

import os
import re
from collections import Counter
from pathlib import Path

import pooch
import pytest
from local_web import load_from

from course_utils.maintain import review_grammar
from course_utils.maintain.review_grammar import CONSTRUCTIONS, OPENERS, SLOTS
from course_utils.text import reviews as module
from course_utils.text.corpora import reads_as
from course_utils.text.registry import CORPORA, CorpusError, corpus_files
from course_utils.text.review_task import ReviewTask, review_task
from course_utils.text.reviews import Review, constructions, real_reviews, reviews
from course_utils.text.text import tokenize
from course_utils.text.vocab import Vocab

real_data = pytest.mark.skipif(
    not Path(os.environ.get("COURSE_DATA_DIR", "no folder"), "rt-polarity.pos").is_file(),
    reason="COURSE_DATA_DIR names no folder with rt-polarity.pos",
)
EVERY = {split: reviews(split) for split in ("train", "test")}


def words(review):
    return tokenize(review.text, "en")


# ---------------------------------------------------------------- the grammar


@pytest.mark.parametrize(("split", "size"), [("train", 8000), ("test", 1000)])
def test_reviews_are_distinct_and_balanced(split, size):
    texts = [review.text for review in EVERY[split]]
    assert len(texts) == len(set(texts)) == size
    assert [review.label for review in EVERY[split]] == [1, 0] * (size // 2)


def test_no_review_is_on_both_sides_even_when_all_are_asked_for():
    train = {reads_as(r.text) for r in reviews("train", module.LARGEST["train"])}
    test = {reads_as(r.text) for r in reviews("test", module.LARGEST["test"])}
    assert len(train) == module.LARGEST["train"]
    assert len(test) == module.LARGEST["test"]
    assert not train & test


def opinions_in(review):
    """The tokens of a review without its neutral opening, and where the opinions stand."""
    opener = next((o for o in OPENERS if review.text.startswith(o)), "")
    tokens = tokenize(review.text.removeprefix(opener), "en")
    known = {word for scale in CONSTRUCTIONS[review.construction].scales for word in scale}
    return tokens, [i for i, token in enumerate(tokens) if token in known]


def opinion_words(review):
    tokens, places = opinions_in(review)
    return frozenset(tokens[i] for i in places)


def test_pairs_of_opinions_are_held_out():
    long_lists = {
        name
        for name, c in CONSTRUCTIONS.items()
        if len(c.scales) >= len(review_grammar.PLAIN) and len(c.positive[1]) == 2
    }
    assert len(long_lists) >= 20
    seen, held = (
        {opinion_words(r) for r in EVERY[split] if r.construction in long_lists} for split in EVERY
    )
    assert all(len(pair) == 2 for pair in seen | held)
    assert len(held) > 80
    assert not seen & held


def test_every_held_out_word_and_construction_is_seen_in_training():
    seen, held = ({w for r in EVERY[split] for w in words(r)} for split in EVERY)
    assert held <= seen
    for split in EVERY:
        assert {r.construction for r in EVERY[split]} == set(CONSTRUCTIONS)


def test_word_order_decides_in_most_constructions():
    """The twins follow each other: same words, other order, opposite label."""
    by_words = set()
    for rows in EVERY.values():
        for positive, negative in zip(rows[::2], rows[1::2], strict=True):
            assert positive.construction == negative.construction
            if Counter(words(positive)) == Counter(words(negative)):
                assert words(positive) != words(negative)
            else:
                by_words.add(positive.construction)
    assert by_words == {"not at all", "for a minute", "neither, nor", "and", "with", "feeling"}
    assert len(CONSTRUCTIONS) - len(by_words) == 24


def test_a_bag_of_words_is_right_in_six_of_ten_at_most():
    bags = {}
    for review in EVERY["test"]:
        bags.setdefault(tuple(sorted(words(review))), []).append(review.label)
    right = sum(max(labels.count(0), labels.count(1)) for labels in bags.values())
    assert 550 < right < 600


FIRST_DECIDES = (
    "x, not y", "although last", "despite last", "rather than", "always, never", "I, but they",
    "film, but other", "my feelings, theirs", "advice", "marks",
)  # fmt: skip


@pytest.mark.parametrize("split", EVERY)
def test_labels_agree_with_what_decides(split):
    """The last opinion, or the first where the film or the reviewer is named first."""
    for review in EVERY[split]:
        tokens, places = opinions_in(review)
        decisive = places[0 if review.construction in FIRST_DECIDES else -1]
        good = tokens[decisive] in {g for g, _ in CONSTRUCTIONS[review.construction].scales}
        denied = tokens[decisive - 1] in ("not", "nor") or review.construction == "for a minute"
        assert review.label == (good != denied), review


@pytest.mark.parametrize("split", EVERY)
def test_spelling(split):
    for review in EVERY[split]:
        text = review.text
        assert re.fullmatch(r"[A-Z][A-Za-z ,;?.]*\.", text)
        assert "  " not in text
        assert not re.search(r"\ba [aeiou]|\ban [^aeiou]", text)
        assert not re.search(r"[?.] [a-z]", text)
        assert not re.search(r"\b(\w+) \1\b", text)


def test_two_parts_are_never_the_same_and_scales_have_no_word_twice():
    for review in EVERY["train"]:
        if review.construction in ("part, but part", "and"):
            parts = [p for p in SLOTS["part"] if f"the {p} is" in review.text.lower()]
            assert len(parts) == 2, review
    for construction in CONSTRUCTIONS.values():
        flat = [word for scale in construction.scales for word in scale]
        assert len(flat) == len(set(flat))


def test_a_smaller_set_is_the_beginning_of_a_larger_one():
    assert reviews("train", 10) == EVERY["train"][:10]
    assert reviews("test", 2000)[:1000] == EVERY["test"]
    module._shipped.cache_clear()
    assert reviews("train") == EVERY["train"]


def test_the_first_reviews_are_the_same_on_every_machine():
    assert [review.text for review in EVERY["train"][:2]] == [
        "This movie is not forgettable but clever.",
        "This movie is not clever but forgettable.",
    ]
    assert (
        EVERY["test"][-1].text
        == "I saw it twice. The camera work is superb, but this western is dreadful."
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("valid",), "unknown split 'valid': use one of train, test"),
        (("train", 0), r"size must lie in 1..20000 for 'train', got 0"),
        (("test", 3001), r"size must lie in 1..3000 for 'test', got 3001"),
    ],
)
def test_impossible_requests_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        reviews(*arguments)


def test_examples_of_constructions():
    examples = constructions()
    assert set(examples) == set(CONSTRUCTIONS)
    for name, (positive, negative) in examples.items():
        assert (positive.label, negative.label) == (1, 0)
        assert positive.construction == negative.construction == name


# ---------------------------------------------------------------- tasks and batches


def test_a_task_counts_its_words_and_pads_its_batches():
    task = review_task()
    assert str(task) == (
        "short-reviews: 8,000 training reviews, 1,000 held out, "
        f"{len(task.vocab)} tokens, at most {task.max_len} in a review"
    )
    batch = task.batch([Review("The film is great.", 1), Review("Dull? No, it is not.", 0)])
    assert batch.tokens.shape == (2, 8)
    assert batch.valid_lens.tolist() == [5, 8]
    assert batch.labels.tolist() == [1, 0]
    assert batch.tokens[0, 5:].tolist() == [Vocab.pad] * 3
    assert task.vocab.decode(batch.tokens[0, :5]) == ["the", "film", "is", "great", "."]


def small_task():
    rows = [Review("word " * n + "end.", n % 2) for n in range(1, 11)]
    return ReviewTask("small", rows, rows[:2], Vocab(map(words, rows)))


def test_each_pass_holds_every_review_once_and_batches_little_padding():
    task = small_task()
    batches = task.batches(epochs=2, batch_size=3)
    assert [len(b.labels) for b in batches].count(3) == 6
    for epoch in (batches[:4], batches[4:]):
        lens = sorted(n for batch in epoch for n in batch.valid_lens.tolist())
        assert lens == list(range(3, 13))
    assert all(b.valid_lens.max() - b.valid_lens.min() <= 2 for b in batches)


def test_the_order_of_batches_repeats_with_the_seed():
    task = small_task()
    orders = [[b.valid_lens.tolist() for b in task.batches(2, 3, seed)] for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    with pytest.raises(ValueError, match="at least 1, got 0 and 64"):
        task.batches(0)


def test_unknown_corpora_are_named():
    with pytest.raises(
        CorpusError, match="unknown corpus of reviews 'imdb': use one of short-reviews, "
    ):
        review_task("imdb")


# ---------------------------------------------------------------- rt-polarity


@pytest.fixture
def data_dir(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_DATA_DIR", str(tmp_path))
    return tmp_path


def write(folder, positive, negative):
    (folder / "rt-polarity.pos").write_bytes(positive)
    (folder / "rt-polarity.neg").write_bytes(negative)


def test_real_reviews_are_read_from_two_files(data_dir):
    write(data_dir, "a caf\u00e9 \nb\n".encode(), b"c\nd\n")
    texts = [(review.text, review.label) for review in real_reviews()]
    assert texts == [("a caf\u00e9", 1), ("c", 0), ("b", 1), ("d", 0)]


def test_a_review_that_stands_there_twice_is_held_out_as_one(data_dir):
    lines = [f"good film {i % 30}" for i in range(60)], [f"bad film {i}" for i in range(60)]
    write(data_dir, *("\n".join(side).encode() for side in lines))
    task = review_task("rt-polarity")
    assert len(task.train) + len(task.test) == 120
    assert not {r.text for r in task.train} & {r.text for r in task.test}
    assert len({r.text for r in task.test}) == 9


def test_files_that_cannot_be_read_are_named(data_dir):
    with pytest.raises(CorpusError, match=r"no rt-polarity\.pos in it"):
        real_reviews()
    write(data_dir, b"caf\xe9\n", b"x\n")
    with pytest.raises(CorpusError, match=r"rt-polarity\.pos is not UTF-8"):
        real_reviews()
    write(data_dir, b"a\nb\n", b"x\n")
    with pytest.raises(CorpusError, match="2 positive and 1 negative"):
        real_reviews()


def test_without_a_network_the_shipped_reviews_are_offered(monkeypatch, tmp_path):
    monkeypatch.delenv("COURSE_DATA_DIR", raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "cache")
    load_from(monkeypatch, "rt-polarity", 9)  # nobody listens
    with pytest.raises(CorpusError) as caught:
        review_task("rt-polarity")
    message = str(caught.value)
    assert "rt-polarity.pos could not be downloaded from http://127.0.0.1" in message
    assert "(short-reviews)" in message
    assert "put a copy of rt-polarity.pos into a folder and set COURSE_DATA_DIR" in message


@real_data
def test_the_real_files_have_the_known_hash():
    files = CORPORA["rt-polarity"].files
    for file, path in zip(files, corpus_files("rt-polarity"), strict=True):
        kind, digest = file.known_hash.split(":")
        assert pooch.file_hash(str(path), alg=kind) == digest


@real_data
def test_rt_polarity_has_its_10662_reviews():
    found = real_reviews()
    assert len(found) == 10_662
    assert sum(review.label for review in found) == 5331
    assert found[1] == Review("simplistic , silly and tedious .", 0)
    task = review_task("rt-polarity")
    assert len(task.test) == 1067  # a tenth, and one that reads like one of them
