"""Patches, the vision encoder, and the drawn pictures."""

import pytest
import torch
import torch.nn.functional as F

from course_utils.models.modern.patches import VisionEncoder, cut, small_convnet
from course_utils.models.modern.toy_images import SHAPES, drawn_pictures

close = torch.testing.assert_close


def seeded(**options):
    torch.manual_seed(0)
    return VisionEncoder(12, 4, 5, d_model=16, d_ff=32, num_layers=2, **options).eval()


def test_patches_by_hand_and_as_a_convolution():
    picture = torch.arange(16.0).view(1, 1, 4, 4)
    assert cut(picture, 2)[0, 1].tolist() == [2, 3, 6, 7]
    x, weight = torch.randn(2, 3, 6, 8), torch.randn(5, 3, 2, 2)
    by_convolution = F.conv2d(x, weight, stride=2).flatten(2).mT  # (B, N, 5)
    close(cut(x, 2) @ weight.flatten(1).T, by_convolution)
    with pytest.raises(ValueError, match="patches of 4 do not tile a picture of 6 x 8"):
        cut(x, 4)


def test_without_positions_the_order_of_the_patches_is_lost():
    x = torch.randn(2, 1, 12, 12)
    moved = torch.cat([x[..., 4:, :], x[..., :4, :]], dim=-2)  # rows of patches in another order
    bag = seeded(positions=False)
    close(bag(moved), bag(x), rtol=1e-4, atol=1e-5)
    whole = seeded()
    assert (whole(moved) - whole(x)).abs().max() > 1e-4


def test_maps_have_a_row_for_the_class_token():
    logits, maps = seeded()(torch.randn(2, 1, 12, 12), return_weights=True)
    assert logits.shape == (2, 5)
    assert [m.shape for m in maps] == [(2, 4, 10, 10)] * 2
    close(maps[0].sum(-1), torch.ones(2, 4, 10))


def test_every_parameter_is_trained():
    for model in (seeded(), small_convnet(5)):
        F.cross_entropy(model(torch.randn(4, 1, 12, 12)), torch.tensor([0, 1, 2, 3])).backward()
        assert all(p.grad is not None and p.grad.any() for n, p in model.named_parameters()
                   if not n.endswith("0.bias"))  # fmt: skip


def test_pictures_repeat_and_hold_their_shapes():
    pictures, labels, masks = drawn_pictures(300, generator=torch.Generator().manual_seed(0))
    again = drawn_pictures(300, generator=torch.Generator().manual_seed(0))[0]
    assert torch.equal(pictures, again)
    assert pictures.shape == (300, 1, 24, 24)
    assert labels.unique().tolist() == list(range(len(SHAPES)))
    assert (masks.sum((1, 2)) >= 8).all()
    assert not masks[:, 0].any()  # shapes lie inside
    assert not masks[:, :, -1].any()
    clean, labels, masks = drawn_pictures(200, clutter=0, noise=0.0)
    assert torch.equal(clean[:, 0] > 0, masks)
    assert clean.max() <= 1
    with pytest.raises(ValueError, match="12 pixels or more.*size 8"):
        drawn_pictures(1, 8)


def test_shapes_of_one_size_differ():
    _, labels, masks = drawn_pictures(400, clutter=0, noise=0.0)
    area = masks.sum((1, 2)).float()
    means = [area[labels == i].mean().item() for i in range(len(SHAPES))]
    assert means[0] > means[3]  # a disc is more than its ring
    assert means[1] > means[4]  # a square more than a cross


def test_only_the_shapes_that_are_asked_for():
    """Labels are places among them."""
    options = {"clutter": 0, "noise": 0.0}
    few = ("ring", "cross")
    _, labels, masks = drawn_pictures(40, 16, shapes=few, **options)
    assert labels.unique().tolist() == [0, 1]
    for label, inside in ((0, False), (1, True)):  # a ring is empty in its middle, a cross is not
        for mask in masks[labels == label]:
            row, column = mask.nonzero().float().mean(0).round().long()
            assert mask[row, column].item() == inside
    with pytest.raises(ValueError, match="shapes are some of disc, .* got star"):
        drawn_pictures(1, shapes=("star",))
    with pytest.raises(ValueError, match="got none"):
        drawn_pictures(1, shapes=())
