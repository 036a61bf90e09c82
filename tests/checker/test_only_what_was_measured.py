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
