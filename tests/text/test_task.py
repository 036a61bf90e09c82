"""The translation task that chapters 4 and 9 share."""

import os
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.models.transformer import Transformer, TransformerConfig
from course_utils.text.batches import encode_pairs
from course_utils.text.corpora import Corpus, CorpusError, load_corpus, reads_as
from course_utils.text.pairs import Pair
from course_utils.text.small_world import small_world
from course_utils.text.task import references, translation_task
from course_utils.text.vocab import Vocab
from course_utils.training.seeds import set_seed
from course_utils.training.translation import Translator


@pytest.fixture(scope="module")
def task():
    return translation_task(size=300, held_out=20)


def test_the_small_world_is_joined_by_the_everyday_pairs(task):
    everyday = load_corpus("everyday").pairs
    assert len(task.train) == 300 + 3 * len(everyday)
    assert all(task.train.count(pair) == 3 for pair in everyday[:5])
    assert set(task.held_out) == {"random", "compositional"}
    assert all(len(pairs) == 20 for pairs in task.held_out.values())


@pytest.mark.parametrize("corpus", ["small-world", "everyday", "fra-eng"])
def test_no_held_out_source_reads_like_one_to_train_on(corpus):
    if corpus == "fra-eng" and "COURSE_DATA_DIR" not in os.environ:
        pytest.skip("COURSE_DATA_DIR names no folder with fra-eng.zip")
    task = translation_task(corpus)
    trained = {reads_as(pair.source) for pair in task.train}
    for pairs in task.held_out.values():
        assert not trained & {reads_as(pair.source) for pair in pairs}


variants = st.sampled_from(["Hello, Marc.", "Hello Marc!", "hello marc", "E-mail me.", "Email me"])


@settings(deadline=None, max_examples=25, derandomize=True)
@given(st.lists(variants | st.from_regex(r"[a-d]{1,2}[.!]?", fullmatch=True), max_size=25))
def test_no_held_out_source_reads_like_one_to_train_on_whatever_the_corpus(sources):
    pairs = [Pair(source, "x") for source in ["One.", "Two.", "Three.", *sources]]
    with mock.patch("course_utils.text.task.load_corpus", return_value=Corpus("own", pairs)):
        task = translation_task("own", held_out=2)
    held = {reads_as(pair.source) for pair in task.held_out["held-out"]}
    assert len(held) == 2
    assert not held & {reads_as(pair.source) for pair in task.train}


def test_a_leak_is_refused_where_the_task_is_made(monkeypatch):
    leaked = small_world("train", 1)
    monkeypatch.setattr("course_utils.text.task.small_world", lambda *_: leaked)
    with pytest.raises(ValueError, match="held-out texts read like one to train on"):
        translation_task("small-world", size=10)


def test_examples_are_the_training_pairs_in_their_order(task):
    assert task.examples == encode_pairs(task.train, task.src_vocab, task.tgt_vocab)


def test_words_seen_once_become_unk_in_training(task):
    unk = Vocab.unk
    assert any(unk in example.source for example in task.examples)
    assert sum(unk in example.source for example in task.examples) < len(task.train) / 2


def test_another_corpus_is_split_by_source(tmp_path):
    lines = [f"Word {i}.\tMot {i}.\nWord {i}.\tTerme {i}.\n" for i in range(10)]
    path = tmp_path / "corpus.tsv"
    path.write_text("".join(lines), encoding="utf-8")
    task = translation_task(path, held_out=3)
    assert len(task.train) == 14
    assert len(task.held_out["held-out"]) == 6
    assert "14 training pairs, held out: 6 held-out" in str(task)


def test_an_unknown_corpus_is_refused():
    with pytest.raises(CorpusError, match="unknown corpus 'fra'"):
        translation_task("fra")


def test_references_are_spelled_as_a_word_level_model_spells():
    assert references([Pair("Are you coming?", "Tu viens\u202f?")]) == ["tu viens ?"]
    assert references([Pair("I lost.", "J\u2019ai perdu.")]) == ["j'ai perdu."]


def test_score_compares_translations_with_the_references(task):
    set_seed(0)
    config = TransformerConfig(len(task.src_vocab), len(task.tgt_vocab), d_model=16, num_heads=2)
    translator = Translator(Transformer(config), task.src_vocab, task.tgt_vocab)
    pairs = task.held_out["random"][:4]
    translator.translate = lambda texts, **_: references(pairs)
    assert translator.score(pairs)[0] == pytest.approx(100)
    translator.translate = lambda texts, **_: ["" for _ in texts]
    assert translator.score(pairs)[0] == 0


def test_cross_dropout_is_that_of_the_cross_attention_alone():
    config = TransformerConfig(10, 10, d_model=8, num_heads=2, dropout=0.1, cross_dropout=0.5)
    model = Transformer(config)
    for block in model.decoder:
        assert block.cross_attention.attention.dropout.p == 0.5
        assert block.self_attention.attention.dropout.p == 0.1
    assert all(block.attention.attention.dropout.p == 0.1 for block in model.encoder)


@pytest.mark.parametrize("corpus", ["small-world", "everyday"])
@pytest.mark.parametrize(("name", "count"), [("size", 0), ("size", -1), ("held_out", 0)])
def test_a_count_of_none_is_refused_and_not_taken_for_the_default(corpus, name, count):
    with pytest.raises(ValueError, match=rf"{name} must be at least 1, got {count}"):
        translation_task(corpus, **{name: count})
