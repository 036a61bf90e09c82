"""BLEU and alignment error rate against numbers worked out by hand."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.training.metrics import (
    alignment_error_rate,
    bleu,
    chrf,
    links_from_weights,
    measure_for,
    quality,
)

few = settings(deadline=None, max_examples=50, derandomize=True)
link_sets = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=8)


def percent(*precisions, penalty=1.0):
    return 100 * penalty * math.prod(precisions) ** (1 / len(precisions))


# ---------------------------------------------------------------- BLEU


@pytest.mark.parametrize(
    ("hypothesis", "reference", "wanted"),
    [
        ("a b c d e", "a b c d e", 100),
        ("a b c d e", "a b c d f", percent(4 / 5, 3 / 4, 2 / 3, 1 / 2)),
        ("a b c d", "a b c d e", percent(1, 1, 1, 1, penalty=math.exp(1 - 5 / 4))),
        ("a b c d e f", "a b c d e", percent(5 / 6, 4 / 5, 3 / 4, 2 / 3)),  # long: no penalty
        ("the the the the the", "the cat sat on the", percent(2 / 5, 1 / 8, 1 / 12, 1 / 16)),
        ("Je suis chez moi.", "je suis chez moi .", 100),  # case and spacing apart
    ],
)
def test_bleu_by_hand(hypothesis, reference, wanted):
    """An order without a match counts as 1/2, 1/4, ... of a match (sacreBLEU's smoothing)."""
    assert bleu([hypothesis], [reference]) == pytest.approx(wanted, abs=1e-6)


def test_bleu_pools_counts_over_the_corpus_and_does_not_average_sentences():
    hypotheses, references = ["a b c d e", "v w x y"], ["a b c d f", "v w x y"]
    assert bleu(hypotheses, references) == pytest.approx(percent(8 / 9, 6 / 7, 4 / 5, 2 / 3))


@pytest.mark.parametrize("pair", [("va", "va !"), ("", "va !"), ("va", "va"), ("", "")])
def test_bleu_of_sentences_shorter_than_its_orders_is_a_number(pair):
    assert 0 <= bleu([pair[0]], [pair[1]]) <= 100


def test_bleu_orders_sentences_as_one_expects():
    perfect, near, shuffled, wrong = (
        bleu([hypothesis], ["let it go now"])
        for hypothesis in ("let it go now", "let it go soon", "go let now it", "yes no never ever")
    )
    assert perfect == pytest.approx(100)
    assert perfect > near > shuffled > wrong >= 0
    assert bleu(["yes"], ["no"]) == 0
    assert bleu([""], ["va !"]) == 0


@pytest.mark.parametrize(("hypotheses", "references"), [(["a"], ["a", "b"]), ([], []), (["a"], [])])
def test_bleu_compares_line_by_line(hypotheses, references):
    message = f"{len(hypotheses)} hypotheses and {len(references)} references"
    with pytest.raises(ValueError, match=message):
        bleu(hypotheses, references)


SCRIPTS = {  # two sentences, and the tokens that suit them
    "Chinese": (["我喜欢猫和狗。", "她在读书。"], "zh"),
    "Chinese with a name": (["Tom 喜欢猫和狗。", "她在读一本书。"], "zh"),
    "Japanese": (["猫が好きです。", "本を読みます。"], "char"),
    "Thai": (["ฉันรักแมว", "เธออ่าน"], "char"),
    "Korean": (["나는 고양이를 정말 좋아한다", "그녀는 책을 잘 읽는다"], "13a"),
    "French": (["J'aime les chats.", "Elle lit un livre."], "13a"),
    "single words": (["chat", "livre"], "13a"),
    "no words at all": (["!!", ""], "13a"),
}  # fmt: skip


@pytest.mark.parametrize(("right", "tokens"), SCRIPTS.values(), ids=SCRIPTS)
def test_the_score_tells_right_from_wrong_in_any_script(right, tokens):
    """facebookresearch/fairseq#4689: a sentence without spaces is one token, so that BLEU is 0."""
    measure = measure_for(right)
    score = quality(right, right, measure)
    assert score.name == measure
    assert f"|tok:{tokens}|" in bleu(right, right).signature
    if any(map(str.isalpha, "".join(right))):
        assert score == pytest.approx(100)
        assert quality(right[::-1], right, measure) < 50
    assert measure == ("BLEU" if " " in "".join(right) or tokens != "13a" else "chrF2")


@pytest.mark.parametrize("nested", [[["a b c d"]], ["a b c d".split()]])
def test_references_that_are_no_flat_list_are_refused_in_our_words(nested):
    """mjpost/sacrebleu#272: references nested the wrong way round score something else."""
    for score in (bleu, chrf):
        with pytest.raises(TypeError, match=r"two lists of sentences: write \[hypothesis\]"):
            score(["a b c d"], nested)


def test_case_counts_only_where_it_is_asked_for_and_the_signature_says_so():
    lower, cased = (bleu(["The Cat sat here"], ["the cat sat here"], lowercase=on) for on in (1, 0))
    assert lower == pytest.approx(100)
    assert cased < 50
    assert "case:lc" in lower.signature
    assert "case:mixed" in cased.signature
    assert f"{lower:.1f}" == "100.0"
    assert "nc:6" in chrf(["a b"], ["a b"]).signature
    with pytest.raises(TypeError, match="chrF2 takes two lists"):
        chrf("a", ["a"])


# ---------------------------------------------------------------- alignments


def test_each_target_token_links_to_its_heaviest_source_token():
    weights = torch.tensor([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2]])  # (Tt, Ts)
    assert links_from_weights(weights) == {(1, 0), (0, 1)}


def test_alignment_error_rate_by_hand():
    gold = [{(0, 0), (1, 1), (1, 2)}, {(0, 0)}]
    predicted = [{(0, 0), (1, 1), (0, 2)}, {(1, 0)}]  # 2 hits of 4 links, 4 gold ones
    assert alignment_error_rate(predicted, gold) == pytest.approx(1 - 2 * 2 / (4 + 4))


def test_links_of_targets_without_gold_do_not_count():
    gold = [{(0, 0)}]
    assert alignment_error_rate([{(0, 0), (2, 5)}], gold) == 0  # token 5 is <eos>, say
    assert alignment_error_rate([{(0, 0), (2, 0)}], gold) == pytest.approx(1 - 2 / 3)


@few
@given(gold=st.lists(link_sets, min_size=1, max_size=4).filter(any), data=st.data())
def test_alignment_error_rate_lies_between_0_and_1(gold, data):
    predicted = [data.draw(link_sets) for _ in gold]
    assert 0 <= alignment_error_rate(predicted, gold) <= 1
    assert alignment_error_rate(gold, gold) == 0
    assert alignment_error_rate([set() for _ in gold], gold) == 1


def test_alignments_are_taken_from_any_iterable_and_not_changed():
    gold = [((0, 0), (1, 1))]
    assert alignment_error_rate([iter([(0, 0), (1, 1)])], gold) == 0
    assert gold == [((0, 0), (1, 1))]


def test_alignments_that_cannot_be_compared_are_refused():
    with pytest.raises(ValueError, match="1 predicted and 2 gold"):
        alignment_error_rate([set()], [{(0, 0)}, {(0, 0)}])
    for nothing in ([], [set()]):
        with pytest.raises(ValueError, match="no gold links"):
            alignment_error_rate(nothing, nothing)


def test_a_source_of_nothing_but_its_end_gets_no_links():
    assert links_from_weights(torch.ones(3, 1)) == set()
    assert links_from_weights(torch.ones(0, 4)) == set()


@pytest.mark.parametrize(("hypotheses", "references"), [("ab", "ab"), ("a", ["a"]), (["a"], "a")])
def test_a_single_string_is_no_list_of_sentences(hypotheses, references):
    with pytest.raises(TypeError, match="two lists of sentences"):
        bleu(hypotheses, references)
