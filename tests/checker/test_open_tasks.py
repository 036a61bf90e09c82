"""Answers that are right in most sizes, or by what the text forbids, to tasks with many answers."""

import math

import pytest
import torch
import torch.nn.functional as F

from course_utils.checker import check


@pytest.mark.parametrize(
    ("step", "lacking"),
    [
        (lambda rows, columns: 2 * math.pi / max(rows, columns), "has one step nearer than two"),
        (lambda rows, columns: math.pi / rows, "gives no two patches the same vector"),
        (lambda rows, columns: math.pi / columns, "gives no two patches the same vector"),
        (lambda rows, columns: math.pi / (max(rows, columns) - 1), "ZeroDivisionError"),
        (lambda rows, columns: math.pi / max(rows, columns, 2), None),
    ],
)
def test_positions_on_a_grid_hold_in_every_size(step, lacking):
    def answer(rows, columns, d):
        turn = step(rows, columns)
        down, right = turn * torch.arange(rows)[:, None], turn * torch.arange(columns)
        code = torch.zeros(rows, columns, d)
        code[..., 0], code[..., 1] = down.cos(), down.sin()
        code[..., 2], code[..., 3] = right.cos(), right.sin()
        return code.flatten(0, 1)

    result = check("grid_code", answer)
    if lacking is None:
        assert result.status == "right"
    else:
        assert lacking in str(result).split("expected")[0]


@pytest.mark.parametrize("collect", [lambda tiles: zip(*tiles), lambda tiles: zip(*list(tiles))])
def test_who_holds_all_tiles_is_told(collect):
    def answer(queries, tiles):
        keys, values = map(torch.cat, collect(tiles))
        return F.scaled_dot_product_attention(queries, keys, values)

    assert check("from_tiles", answer).mistakes == ("all tiles are held",)


def test_brackets_that_lack_behind_a_power_are_told():
    def answer(queries, keys, values):
        scores = queries @ keys.transpose(1, 2) / queries.shape[-1] ** 1 / 2
        return _weighed(scores, values)

    assert "the brackets stand elsewhere" in str(check("scaled_attention", answer))


def _weighed(scores, values):
    weights = scores.softmax(-1)
    return weights @ values, weights


def test_a_roll_the_wrong_way_is_not_put_down_to_the_right_one():
    def answer(ids, length):
        n = len(ids) // length
        return tuple(x[: n * length].reshape(n, length) for x in (ids, ids.roll(1)))

    assert check("next_token_pairs", answer).mistakes == ("the text is rolled the wrong way",)


@pytest.mark.parametrize("given", [0.37, 7.77, 500.0])  # of no known mistake
def test_a_number_on_the_other_side_of_0_is_told_as_that(given):
    said = str(check("adam_walk", given))
    assert "It is above 0; what is due is not." in said
    assert "too large" not in said
