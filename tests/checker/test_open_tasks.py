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
