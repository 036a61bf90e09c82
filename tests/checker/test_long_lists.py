"""Lists far longer than those of the probes, and results of which one part is wrong."""

import re

import pytest

from course_utils.checker import catalogue, check
from course_utils.checker.generic_inputs import part_of, parts
from course_utils.checker.shown import show
from course_utils.checker.values import gap
from course_utils.checker.verdict import outcome_of
from course_utils.checker.widen import far_longer

pytestmark = pytest.mark.usefixtures("patient_search")
BY_NAME = {e.name: e for e in catalogue()}
WITH_LISTS = [
    "shifted",
    "clipped_precision",
    "best_limits",
    "importance_of_words",
    "corrupt_spans",
    "score_by_hiding",
    "when_to_stop",
    "pages_taken",
    "merge_pair",
    "next_merge",
    "encode_word",
    "shown_so_far",
    "split_fairly",
]


@pytest.mark.parametrize("name", WITH_LISTS)
def test_long_lists_are_tried(name):
    lengths = [len(x) for args in far_longer(BY_NAME[name]) for x in args if hasattr(x, "__len__")]
    assert max(lengths) >= 60


@pytest.mark.parametrize("most", [7, 50])
@pytest.mark.parametrize("name", WITH_LISTS)
def test_what_cuts_a_list_at_some_length_is_wrong(name, most):
    right = BY_NAME[name].solution

    def cut(*args):
        return right(*(x[:most] if hasattr(x, "__getitem__") else x for x in args))

    assert check(name, cut).status not in ("right", "not checked")


def eos_forgotten_nowhere(sentence, bos, eos):
    return [bos] + sentence[:-1], sentence + [eos]


def both_too_short(sentence, bos, eos):
    return [bos] + sentence[:-1], sentence[1:] + [eos]


def first_target_lost(sentence, bos, eos):
    return [bos] + sentence, sentence[1:] + [eos]


def too_short_and_exchanged(sentence, bos, eos):
    inputs = [bos] + sentence[:-1]
    targets = sentence[1:] + [eos]
    return targets, inputs


def inputs_alone_exchanged(sentence, bos, eos):
    inputs = [bos] + sentence[:-1]
    targets = sentence + [eos]
    return targets, inputs


@pytest.mark.parametrize(
    ("answer", "mistakes"),
    [
        (eos_forgotten_nowhere, ["the last token is missing in the inputs"]),
        (both_too_short, ["inputs and targets have one token too few"]),
        (first_target_lost, ["the first token is missing in the targets"]),
        (
            too_short_and_exchanged,
            ["the shift goes the wrong way", "inputs and targets have one token too few"],
        ),
        (
            inputs_alone_exchanged,
            ["the shift goes the wrong way", "the last token is missing in the inputs"],
        ),
    ],
)
def test_what_is_lost_in_a_shift_is_named(answer, mistakes):
    result = check("shifted", answer)
    assert [*result.mistakes] == mistakes, str(result)


def test_a_sentence_may_be_empty():
    result = check("shifted", lambda s, b, e: ([b, *s], [*s, e]) if s else ([], []))
    assert "not where `sentence` is empty" in str(result)


def test_of_a_part_no_mistake_is_told_that_changes_a_part_that_is_right():
    def answer(sentence, bos, eos):
        return [bos, *sentence, bos], [*sentence, eos]

    def read_wrong(sentence, bos, eos):
        return [eos, *sentence, bos], [*sentence, eos, eos]

    assert "targets" not in str(check("shifted", answer)).split("sentence")[0]
    assert "<bos> and <eos> are exchanged" in str(check("shifted", read_wrong)).replace("T", "t")


def _mixed(exercise, mistake, key):
    """What is right, but for one part, which is as a mistake makes it."""
    mixed = []
    for i in range(len(exercise.probes)):
        due, made = outcome_of(exercise, (), i), outcome_of(exercise, (mistake,), i)
        one = [part_of(made if k == key else due, k) for k, *_ in parts(due, due)]
        mixed.append(one)
    return mixed


def test_of_a_right_part_beside_it_nothing_is_said():
    exercise = BY_NAME["next_token_pairs"]
    (mistake,) = [m for m in exercise.mistakes if m.name == "the text runs down the columns"]
    mixed = _mixed(exercise, mistake, "entry 0")

    def answer(*args):
        for probe, outcome in zip(exercise.probes, mixed):
            if all(gap(a, b).size == 0 for a, b in zip(probe, args)):
                return tuple(outcome)
        return exercise.solution(*args)

    assert "runs down the columns" not in str(check("next_token_pairs", answer))


def test_long_lists_are_shown_in_part():
    assert show([7] * 24).count("7") == 24
    assert show([*range(60)]) == "[0, 1, 2, 3, ... (52 more), 56, 57, 58, 59]"
    assert "28, 29, 30, 31, 32, 33, ..." in show([*range(60)], (30,))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([0.25] * 4, "the one that stands here several times is right"),
        ([1.0, 0.0, 0.0, 0.0], "none of these is right"),
        ([1.0, 0.25], "one of these is right"),
    ],
)
def test_of_several_numbers_it_is_said_whether_one_is_right(given, said):
    assert f"One number is asked; {said}." in str(check("empty_row_weight", given))


def test_joined_axes_are_told_beside_a_mistake():
    def tokens_in_one_axis(x):
        batch, heads, steps, d_head = x.shape
        return x.permute(0, 2, 3, 1).reshape(batch * steps, heads * d_head)

    said = str(check("from_heads", tokens_in_one_axis))
    assert "Features of the heads are interleaved" in said
    assert "axes 0 and 1 are joined into one" in said


def test_joined_axes_are_told_alone():
    without_source = eval("lambda x: x.transpose(1, 2).flatten(2).flatten(0, 1)")
    said = str(check("from_heads", without_source))
    assert "he numbers are right, only axes 0 and 1 are joined into one" in said


def test_a_lost_line_break_is_named():
    pattern = r"[0-9]{1,3}(?=(?:[0-9]{3})*(?![0-9]))|[A-Za-z]+|."
    result = check("split_fairly", lambda text: re.findall(pattern, text))
    assert [*result.mistakes] == ["line breaks are lost"], str(result)
