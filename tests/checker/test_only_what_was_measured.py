"""What is said of an answer was measured on that answer; what is hidden by 0 is found out."""

import torch

from course_utils.checker import check


def test_a_token_of_nan_reaches_what_a_weight_of_0_hides():
    for bad in (float("nan"), float("inf")):

        def influence(layer, x, bad=bad):
            columns = []
            for j in range(len(x)):
                y = x.clone()
                y[j] = bad
                columns.append((layer(y) != layer(x)).any(1))
            return torch.stack(columns, dim=1)

        assert "0 times NaN is NaN" in str(check("influence", influence))


def test_rounding_is_not_a_share_of_the_output():
    def influence(layer, x):
        columns = []
        for j in range(len(x)):
            y = x.clone()
            y[j] += 1 + torch.arange(x.shape[1])
            columns.append(~torch.isclose(layer(y), layer(x)).all(1))
        return torch.stack(columns, dim=1)

    assert "A weak influence is overlooked" in str(check("influence", influence))


def _with_bias(b):
    def absolute_network(d):
        eye, low, high = torch.eye(d), torch.zeros(d), torch.full((d,), b)
        return torch.cat([eye, eye], 1), torch.cat([low, high]), torch.cat([2 * eye, -eye]), high

    return absolute_network


def test_float64_is_blamed_only_where_it_was_run():
    result = str(check("absolute_network", _with_bias(100.0)))
    assert "no bias is large enough" in result
    assert "float64" not in result


def test_two_slips_that_cancel_explain_nothing():
    result = check("absolute_network", _with_bias(900.0))
    assert result.status != "right"
    assert "wo things together" not in str(result)


def test_what_was_taken_away_is_not_what_is_missing():
    def mean_of_real(x, valid_lens):
        mask = torch.arange(x.shape[1])[None, :] < valid_lens[:, None]
        x = torch.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0)
        return (x * mask[..., None]).sum(1) / mask.sum()

    assert "at `mask.sum()`, an argument is missing" in str(check("mean_of_real", mean_of_real))


def test_a_step_more_mends_no_table_of_truths_by_chance():
    def influence(layer, x):
        x = x.clone().requires_grad_(True)
        y = layer(x)
        rows = [torch.autograd.grad(o.sum(), x, retain_graph=True)[0] for o in y]
        return torch.stack([(row != 0).any(-1) for row in rows])

    result = check("influence", influence)
    assert result.status != "right"
    assert "step is missing" not in str(result)


def test_a_power_of_ten_is_told():
    assert "10 times too large" in str(check("peak_learning_rate", 0.00494))
    assert "10 times too small" in str(check("peak_learning_rate", 0.0000494))
