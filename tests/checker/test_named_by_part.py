"""What is said of a part of an answer, of three mistakes at once, and of an open task."""

import ast
import re
import time

import pytest
import torch
import torch.nn.functional as F

from course_utils.checker import catalogue, check
from course_utils.checker.edits import code_of
from course_utils.checker.resized import sums_to_one
from course_utils.checker.widen import widened

pytestmark = pytest.mark.usefixtures("patient_search")
BY_NAME = {e.name: e for e in catalogue()}


def both_masks_turned(source, target, pad):
    steps = target.shape[1]
    later = torch.ones(steps, steps).triu(1).bool()
    return (source == pad)[:, None, None], (target == pad)[:, None, None] & later


def not_named_groups(model):
    named = list(model.named_parameters())
    decayed = [n for n, p in named if p.dim() == 2]
    return [n for n, p in named if p.dim() != 2], decayed


@pytest.mark.parametrize(
    ("name", "answer", "mistakes"),
    [
        (
            "translation_masks",
            both_masks_turned,
            {
                "the mask of the source is inverted",
                "the mask is inverted",
                "the two masks are joined with or",
            },
        ),
        (
            "decay_groups",
            not_named_groups,
            {
                "only tensors with exactly two axes decay",
                "frozen parameters are sorted in",
                "the two lists change places",
            },
        ),
    ],
)
def test_three_mistakes_at_once_are_named(name, answer, mistakes):
    result = check(name, answer)
    assert {*result.mistakes} == mistakes, str(result)
    assert "these 3 mistakes are made" in str(result)


def test_a_part_that_a_mistake_explains_is_named_where_the_rest_is_unknown():
    right = BY_NAME["best_limits"].solution

    def loss_of_bags(bags, labels):
        return right(bags, labels)[0] ** 2, right(bags, labels)[1] / 0.6931471805599453

    result = check("best_limits", loss_of_bags)
    assert result.status == "wrong"
    said = "The second result is what comes out when this mistake is made: The logarithm"
    assert f"{said} has base 2." in str(result)
    assert "he first result" not in str(result)


@pytest.mark.parametrize(
    ("name", "answer", "lacking"),
    [
        (
            "my_schedule",
            lambda step, steps: min(step / (steps // 10), 1.0) * (1 - 0.8 * (step > steps // 4)),
            ["a third of all are 0.95 or more", "the last is at most a tenth"],
        ),
        (
            "my_sampler",
            lambda probs: torch.where(probs > 0.2, probs, 0.0),
            [
                "each row sums to 1",
                "the best token stays",
                "the unsure row keeps more tokens than the sure one",
            ],
        ),
        (
            "ordered_pool",
            lambda x, valid_lens: x.amax(1) + 1,
            [
                "leaves padding out",
                "gives v where all real outputs are v",
                "changes when two real outputs change places",
                "doubles when all outputs double",
            ],
        ),
    ],
)
def test_of_an_open_task_all_that_does_not_hold_is_said(name, answer, lacking):
    text = str(check(name, answer))
    assert text.count("This does not hold: ") == len(lacking), text
    assert all(f"This does not hold: {key}." in text for key in lacking), text
    assert "it is False" not in text
    assert "one change" not in text


def test_a_module_that_is_slow_to_load_does_not_count(tmp_path, monkeypatch):
    code = "import time\nend = time.process_time() + 1.0\nwhile time.process_time() < end: pass\n"
    (tmp_path / "slow_to_load.py").write_text(code + "whole = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def answer(logits, targets, smoothing):
        from slow_to_load import whole

        return BY_NAME["label_smoothed_loss"].variant()(logits, targets, smoothing) if whole else 0

    started = time.process_time()
    assert check("label_smoothed_loss", answer, seconds=0.5).status == "right"
    assert time.process_time() - started >= 1.0


def test_an_error_is_not_told_as_a_missing_return():
    def by_place(words, cut, markers):
        read, say = [], []
        for i, (word, goes) in enumerate(zip(words, cut)):
            if goes:
                read.append(markers[i + 2])
            (say if goes else read).append(word)
        return read, say

    result = check("corrupt_spans", by_place)
    assert result.status == "error"
    assert "returned None" not in str(result)
    assert "list index out of range" in str(result)


def test_as_many_things_are_due_as_on_the_input_that_is_shown():
    def clip(gradients, limit):
        norms = [torch.linalg.matrix_norm(g, 2) if g.dim() == 2 else g.norm() for g in gradients]
        factor = min(1.0, float(limit / torch.stack(norms).norm()))
        return [g * factor for g in gradients]

    assert "things" not in str(check("clip_by_norm", clip))


def growing(scores, log_probs, width):
    found, at = [], {}
    for b in range(len(scores)):
        for v in range(log_probs.shape[1]):
            found.append((float(log_probs[b, v]), b, v))
            at[v] = b
        found += [scores[b]]
    return found, at


def resets(weight, batches):
    weight.grad = None
    weight[0] = 1.0
    return weight


def all_edits(function):
    code = code_of(function)
    for rank in range(3):
        for edit in code.edits(rank):
            old = edit.put(edit.new)
            yield edit, ast.unparse(ast.fix_missing_locations(code.tree))
            edit.put(old)


def test_no_small_change_puts_a_list_into_itself():
    texts = [text for _, text in all_edits(growing)]
    assert len(texts) > 100
    lines = [line.strip() for text in texts for line in text.split("\n")]
    once = [x for x in lines if x.count("found.append(") == 1 or "found +=" in x]
    assert not [x for x in once if re.match(r"found(\.append\(| \+= ).*\bfound\b", x)]
    assert not [x for x in lines if re.match(r"at\[.*= .*\bat\b", x)]


def test_no_small_change_is_made_to_what_is_assigned_to():
    lines = {line.strip() for _, text in all_edits(resets) for line in text.split("\n")}
    assert "weight[1] = 1.0" in lines
    assert not [x for x in lines if re.match(r"weight\.(clone|mT|T)\b.*=", x)]


@pytest.mark.parametrize("name", ["my_sampler", "nucleus"])
def test_rows_that_sum_to_one_still_do_on_wider_inputs(name):
    inputs = [args[0] for _, args in widened(BY_NAME[name])]
    assert min(x.shape[1] for x in inputs) < min(x.shape[1] for x, *_ in BY_NAME[name].probes)
    assert all(map(sums_to_one, inputs))


def test_lengths_are_tried_at_their_ends():
    words = [words for words, _ in widened(BY_NAME["ordered_pool"])]
    assert "where `valid_lens` is 1 throughout" in words
    words = [words for words, _ in widened(BY_NAME["prefix_mask"])]
    assert "where `prefix_lens` is 4 throughout" in words


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("without_positions", "e", "The answers are a, b, c, d."),
        ("pipeline_bubble", 20, "It is given in percent, and the share itself is due"),
        ("best_without_order", 70, "It is given in percent, and the share itself is due"),
        ("diagnose_run", "edcab", "A and C are mixed up."),
    ],
)
def test_typed_answers(name, answer, said):
    result = check(name, answer)
    assert not result
    assert said in str(result)


def test_a_mistake_is_known_by_what_it_makes_and_not_by_an_error_of_its_reference():
    def answer(logits, targets, smoothing):
        target = F.one_hot(targets, logits.shape[1]) * smoothing + (1 - smoothing) / logits.shape[1]
        return (target * logits.log_softmax(-1)).sum(-1).mean()

    assert {*check("label_smoothed_loss", answer).mistakes} == {
        "smoothing and 1 - smoothing change places",
        "the minus sign is missing",
    }


def test_parts_are_told_where_an_answer_fails_on_other_inputs():
    def own_markers(words, cut, markers):
        read, say = [], []
        for i, (word, goes) in enumerate(zip(words, cut)):
            if goes and (i == 0 or not cut[i - 1]):
                read.append(f"<{sum(word.startswith('<') for word in read)}>")
            (say if goes else read).append(word)
        return read, say

    result = check("corrupt_spans", own_markers)
    assert result.status == "wrong", str(result)
    said = (
        "`what has to be said` is what comes out when this mistake is made: The markers are missing"
    )
    assert said in str(result)


def test_of_several_best_tokens_any_may_stay():
    def most_of_three(probs):
        values, at = probs.flip(-1).topk(3)
        kept = torch.zeros_like(probs).scatter(-1, at, values).flip(-1)
        return kept / kept.sum(-1, keepdim=True)

    text = str(check("my_sampler", most_of_three))
    assert "This does not hold: the unsure row keeps more tokens than the sure one." in text
    assert text.count("does not hold") == 1
