"""Nadaraya-Watson attention pooling."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.models.attention import masked_softmax
from course_utils.models.kernel_regression import (
    KERNELS,
    NWKernelRegression,
    average_pooling,
    consistent_width,
    kernel_weights,
    sine_data,
    true_curve,
)

few = settings(deadline=None, max_examples=30, derandomize=True)
close = torch.testing.assert_close
every_kernel = pytest.mark.parametrize("kernel", list(KERNELS))


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.mark.parametrize(
    ("kernel", "raw"),
    [
        ("gaussian", [1, math.exp(-0.125), math.exp(-0.5), math.exp(-2)]),
        ("boxcar", [1, 1, 0, 0]),
        ("epanechnikov", [1, 0.75, 0, 0]),
        ("triangular", [1, 0.5, 0, 0]),
    ],
)
@pytest.mark.parametrize("width", [1.0, 2.5])
def test_kernels_by_hand(kernel, raw, width):
    """Keys at 0, 1/2, 1 and 2 widths from the query, on both sides."""
    keys = torch.tensor([0.0, 0.5, 1.0, 2.0]) * width
    raw = torch.tensor(raw)
    for side in (1, -1):
        got = kernel_weights(torch.tensor([3.0]), 3.0 + side * keys, width, kernel)
        close(got, (raw / raw.sum())[None])


@every_kernel
@few
@given(width=st.floats(0.5, 10) | st.just(1.0), shift=st.integers(-3072, 3072))
def test_weights_are_a_distribution_that_depends_on_distances_only(kernel, width, shift):
    """On a grid of binary fractions: a rounded distance may fall over the edge of the boxcar."""
    queries, keys, shift = torch.arange(5) / 4, torch.arange(9) / 8, shift / 1024
    weights = kernel_weights(queries, keys, width, kernel)
    assert weights.shape == (5, 9)
    assert weights.ge(0).all()
    close(weights.sum(dim=-1), torch.ones(5))
    assert torch.equal(kernel_weights(queries + shift, keys + shift, width, kernel), weights)


@every_kernel
def test_far_from_all_keys(kernel):
    """The Gaussian reaches everywhere and picks the nearest key; the others see nothing."""
    weights = kernel_weights(torch.tensor([1000.0]), torch.tensor([0.0, 1.0]), 1.0, kernel)
    assert weights.tolist() == [[0, 1] if kernel == "gaussian" else [0, 0]]


def test_the_gaussian_is_the_softmax_of_minus_half_the_squared_distance():
    queries, keys = torch.randn(4), torch.randn(6)
    scores = -((queries[:, None] - keys) ** 2) / 2
    close(kernel_weights(queries, keys), masked_softmax(scores))


def test_a_narrow_width_recalls_the_value_and_a_wide_one_averages():
    keys, values = torch.arange(5.0), torch.randn(5)
    close(kernel_weights(keys, keys, 0.01) @ values, values)
    close(kernel_weights(keys, keys, 1e4) @ values, average_pooling(keys, values))


def test_average_pooling_gives_every_query_the_mean():
    assert average_pooling(torch.zeros(3), torch.tensor([1.0, 2.0, 6.0])).tolist() == [3, 3, 3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0}, "above 0, got 0"),
        ({"width": -1.0}, "above 0, got -1.0"),
        ({"width": math.nan}, "above 0, got nan"),
        ({"kernel": "cosine"}, "'cosine': use one of gaussian, boxcar"),
    ],
)
def test_widths_and_kernels_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        kernel_weights(torch.zeros(1), torch.zeros(1), **options)


def test_the_learned_width_is_one_over_the_fixed_one():
    queries, (keys, values) = torch.linspace(0, 5, 9), sine_data(20)
    prediction, weights = NWKernelRegression(w=4.0)(queries, keys, values)
    fixed = kernel_weights(queries, keys, width=0.25)
    close(weights, fixed)
    close(prediction, fixed @ values)


def test_a_mask_leaves_out_each_point_itself():
    keys, values = sine_data(10)
    mask = ~torch.eye(10, dtype=torch.bool)
    prediction, weights = NWKernelRegression()(keys, keys, values, mask)
    assert weights.diagonal().eq(0).all()
    for i in range(10):
        others = torch.arange(10) != i
        alone, _ = NWKernelRegression()(keys[i : i + 1], keys[others], values[others])
        close(prediction[i : i + 1], alone)


def test_training_the_width_without_each_points_own_key_lowers_the_error():
    keys, values = sine_data(50)
    mask, model = ~torch.eye(50, dtype=torch.bool), NWKernelRegression()
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=0.3), []
    for _ in range(25):
        loss = (model(keys, keys, values, mask)[0] - values).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    assert model.w.item() > 1.5


def test_data_are_sorted_and_lie_on_the_curve_without_noise():
    x, y = sine_data(200, noise=0.0)
    assert x.equal(x.sort().values)
    assert x.min() >= 0
    assert x.max() < 5
    close(y, true_curve(x))
    close(true_curve(torch.tensor([1.0])), torch.tensor([2 * math.sin(1) + 1]))
    noisy_x, noisy_y = sine_data(2000, noise=0.5)
    assert (noisy_y - true_curve(noisy_x)).std().item() == pytest.approx(0.5, abs=0.03)


def test_a_width_that_shrinks_with_the_data_finds_the_curve_and_a_fixed_one_does_not():
    """The fixed kernel keeps its bias however many points it is given."""
    queries, errors = torch.linspace(0.5, 4.5, 50), {}
    for n in (50, 5000):
        keys, values = sine_data(n, noise=0.3)
        for name, width in (("fixed", 1.0), ("shrinking", consistent_width(n))):
            found = kernel_weights(queries, keys, width) @ values
            errors[name, n] = (found - true_curve(queries)).square().mean().item()
    assert errors["fixed", 5000] > 0.5 * errors["fixed", 50]
    assert errors["shrinking", 5000] < 0.25 * errors["shrinking", 50]
    assert consistent_width(32) == pytest.approx(0.5)
    assert consistent_width(32, scale=3) == pytest.approx(1.5)


@pytest.mark.parametrize("width", [1e-300, 1e-45, 1e-30, 1e-20, 1e20, 1e300])
@every_kernel
def test_extreme_widths_give_numbers(width, kernel):
    queries, keys = torch.tensor([0.25, 2.0, 9.0]), torch.tensor([0.0, 1.0, 2.0])
    weights = kernel_weights(queries, keys, width, kernel)
    assert weights.isfinite().all()
    if width > 1:
        close(weights, torch.full((3, 3), 1 / 3))
    elif kernel == "gaussian":
        assert weights.tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 1]]


@pytest.mark.parametrize("w", [1e20, -1e20, 0.0])
@pytest.mark.parametrize("masked", [False, True])
def test_extreme_learned_widths_give_numbers_and_gradients(w, masked):
    keys = torch.tensor([0.0, 1.0, 2.5], requires_grad=True)
    values, model = torch.tensor([3.0, 4.0, 5.0]), NWKernelRegression(w)
    mask = ~torch.eye(3, dtype=torch.bool) if masked else None
    prediction, weights = model(keys, keys, values, mask)
    if w and masked:
        assert weights.tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0]]
    elif w:
        close(prediction, values)
    prediction.sum().backward()
    assert keys.grad.isfinite().all()
    assert model.w.grad.isfinite()


def test_a_query_that_sees_no_key_predicts_zero():
    keys, values = sine_data(4)
    mask = torch.ones(4, 4, dtype=torch.bool)
    mask[1] = False
    model = NWKernelRegression()
    prediction, weights = model(keys, keys, values, mask)
    assert weights[1].eq(0).all()
    assert prediction[1] == 0
    prediction.sum().backward()
    assert model.w.grad.isfinite()


@pytest.mark.parametrize("masked", [False, True])
def test_the_gradients_are_those_of_the_plain_formula(masked):
    mask = ~torch.eye(6, dtype=torch.bool) if masked else None
    x, y = torch.randn(2, 6).double()
    results = []
    for plain in (False, True):
        keys, model = x.clone().requires_grad_(), NWKernelRegression(0.7).double()
        if plain:
            scores = -(((keys[:, None] - keys[None, :]) * model.w) ** 2) / 2
            prediction = masked_softmax(scores, mask=mask) @ y
        else:
            prediction = model(keys, keys, y, mask)[0]
        prediction.square().sum().backward()
        results.append((prediction.detach(), keys.grad, model.w.grad))
    close(*results)


@pytest.mark.parametrize("column", ["queries", "keys", "values"])
def test_columns_instead_of_vectors_are_refused(column):
    given_in = {name: torch.arange(4.0) for name in ("queries", "keys", "values")}
    given_in[column] = given_in[column][:, None]
    with pytest.raises(ValueError, match=r"\(4, 1\)"):
        NWKernelRegression()(**given_in)
    if column != "values":
        del given_in["values"]
        for kernel in KERNELS:
            with pytest.raises(ValueError, match=r"\(4, 1\).*flatten"):
                kernel_weights(**given_in, kernel=kernel)
