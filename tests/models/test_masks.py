"""One mask convention: True = this query may look at this key."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.models.masks import (
    causal_mask,
    check_mask,
    check_tokens,
    combine_masks,
    mask_from_valid_lens,
    padding_mask,
)

few = settings(deadline=None, max_examples=30, derandomize=True)


def test_valid_lens_1d_show_the_first_keys_of_each_sentence():
    mask = mask_from_valid_lens(torch.tensor([2, 0, 3]), num_keys=3)
    assert mask.shape == (3, 1, 1, 3)
    assert mask.dtype == torch.bool
    assert mask[:, 0, 0].tolist() == [[True, True, False], [False] * 3, [True] * 3]


def test_valid_lens_2d_show_the_first_keys_of_each_query():
    mask = mask_from_valid_lens(torch.tensor([[1, 2], [0, 3]]), num_keys=3)
    assert mask.shape == (2, 1, 2, 3)
    assert mask[0, 0].tolist() == [[True, False, False], [True, True, False]]
    assert mask[1, 0].tolist() == [[False] * 3, [True] * 3]


@few
@given(
    lens=st.lists(st.lists(st.integers(0, 6), min_size=2, max_size=2), min_size=1, max_size=4),
    dtype=st.sampled_from([torch.uint8, torch.int8, torch.int32, torch.int64]),
)
def test_valid_lens_of_any_integer_type_give_rows_that_sum_to_the_length(lens, dtype):
    lens = torch.tensor(lens, dtype=dtype)  # (B, 2)
    mask = mask_from_valid_lens(lens, num_keys=6)
    assert mask.sum(dim=-1).squeeze(1).equal(lens.long())
    assert mask.int().diff(dim=-1).max() <= 0  # visible keys come first


def test_a_plain_list_of_valid_lens_works():
    assert mask_from_valid_lens([1, 2], 2)[:, 0, 0].tolist() == [[True, False], [True, True]]


@pytest.mark.parametrize("lens", [torch.tensor([1.0, 2.0]), torch.tensor([True, False])])
def test_valid_lens_must_be_integers(lens):
    with pytest.raises(TypeError, match=f"integers, got {lens.dtype}"):
        mask_from_valid_lens(lens, 3)


@pytest.mark.parametrize("lens", [[4, 1], [-1, 2]])
def test_valid_lens_out_of_range_are_named_with_the_range(lens):
    with pytest.raises(ValueError, match=r"0\.\.3 .*got \[" + f"{lens[0]}, {lens[1]}"):
        mask_from_valid_lens(torch.tensor(lens), 3)


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        ((), "got \\(\\)"),
        ((2, 3, 1), "got \\(2, 3, 1\\)"),
        ((3,), "B = 2 and Tq = 3, got \\(3,\\)"),
        ((2, 4), "B = 2 and Tq = 3, got \\(2, 4\\)"),
        ((3, 3), "B = 2 and Tq = 3, got \\(3, 3\\)"),
    ],
)
def test_valid_lens_of_a_wrong_shape_name_both_shapes(shape, wanted):
    with pytest.raises(ValueError, match=wanted):
        mask_from_valid_lens(torch.ones(shape, dtype=torch.long), 5, batch=2, num_queries=3)


def test_causal_mask_hides_the_future_and_nothing_else():
    mask = causal_mask(4)
    assert mask.shape == (1, 1, 4, 4)
    for query in range(4):
        for key in range(4):
            assert mask[0, 0, query, key] == (key <= query)


@few
@given(num_queries=st.integers(0, 6), past=st.integers(0, 6))
def test_causal_mask_with_a_cache_is_the_end_of_the_square_one(num_queries, past):
    num_keys = past + num_queries
    wanted = causal_mask(num_keys)[:, :, past:]
    assert causal_mask(num_queries, num_keys).equal(wanted)


def test_causal_mask_refuses_fewer_keys_than_queries():
    with pytest.raises(ValueError, match="4 queries and 3 keys"):
        causal_mask(4, 3)


def test_padding_hides_columns_never_rows():
    tgt = torch.tensor([[5, 7, 0, 0]])
    allowed = combine_masks(padding_mask(tgt, 0), causal_mask(4))
    assert allowed.int()[0, 0].tolist() == [[1, 0, 0, 0]] + [[1, 1, 0, 0]] * 3


def test_padding_mask_uses_the_pad_id_of_its_own_side():
    src, tgt = torch.tensor([[5, 1, 0]]), torch.tensor([[5, 0, 1]])
    assert padding_mask(src, pad_id=0)[0, 0, 0].tolist() == [True, True, False]
    assert padding_mask(tgt, pad_id=1)[0, 0, 0].tolist() == [True, True, False]


def test_combine_masks_is_and_none_allows_everything_and_nothing_is_changed():
    a = torch.tensor([True, True, False])
    b = torch.tensor([True, False, True])
    assert combine_masks(None, None) is None
    assert combine_masks(a, None) is a
    assert combine_masks(None, a, b).tolist() == [True, False, False]
    assert a.tolist() == [True, True, False]
    assert b.tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        ((4, 5), (1, 1, 4, 5)),
        ((1, 4, 5), (1, 1, 4, 5)),
        ((3, 4, 5), (1, 3, 4, 5)),  # per head, because it is h and not B
        ((2, 1, 1, 5), (2, 1, 1, 5)),
        ((2, 3, 4, 5), (2, 3, 4, 5)),
    ],
)
def test_masks_that_broadcast_get_four_axes(shape, wanted):
    mask = torch.rand(shape) > 0.5
    got = check_mask(mask, 2, 3, 4, 5)
    assert got.shape == wanted
    assert got.flatten().equal(mask.flatten())


def test_three_axes_mean_one_map_a_sentence_where_there_is_one_head():
    mask = torch.rand(2, 4, 5) > 0.5
    assert check_mask(mask, 2, 1, 4, 5).equal(mask[:, None])


def test_a_mask_that_could_be_per_sentence_or_per_head_is_refused():
    mask = torch.ones(3, 4, 5, dtype=torch.bool)
    with pytest.raises(ValueError, match="per sentence or per head"):
        check_mask(mask, 3, 3, 4, 5)


@pytest.mark.parametrize("shape", [(2, 4, 5), (2, 5), (5, 4), (2, 3, 4, 6), (1, 2, 3, 4, 5)])
def test_masks_that_do_not_broadcast_name_both_shapes(shape):
    given_shape = str(shape).replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(ValueError, match=given_shape + r".*\(2, 3, 4, 5\)"):
        check_mask(torch.ones(shape, dtype=torch.bool), 2, 3, 4, 5)


@pytest.mark.parametrize(
    ("mask", "kind"),
    [
        (torch.ones(4, 4).tril(), "float32"),
        (torch.ones(4, 4, dtype=torch.int64), "int64"),
        ([[True]], "list"),
    ],
)
def test_what_is_not_a_boolean_tensor_is_no_mask(mask, kind):
    with pytest.raises(TypeError, match=f"got .*{kind}.*mask.bool"):
        check_mask(mask, 1, 1, 4, 4)


def test_check_tokens_names_what_is_wrong():
    check_tokens(torch.tensor([[0, 9]]), 10)
    check_tokens(torch.zeros(0, 5, dtype=torch.int32), 10)
    with pytest.raises(ValueError, match=r"0\.\.9, got 3\.\.10"):
        check_tokens(torch.tensor([[3, 10]]), 10)
    with pytest.raises(ValueError, match=r"0\.\.9, got -1\.\.3"):
        check_tokens(torch.tensor([[3, -1]]), 10)
    with pytest.raises(ValueError, match=r"shape \(B, T\), got \(2,\)"):
        check_tokens(torch.tensor([3, 4]), 10)
    with pytest.raises(TypeError, match="int64 or int32, got torch.float32"):
        check_tokens(torch.tensor([[3.0]]), 10)
    with pytest.raises(ValueError, match="2 source sentences, but 1 target"):
        check_tokens(torch.tensor([[3]]), 10, batch=2)
