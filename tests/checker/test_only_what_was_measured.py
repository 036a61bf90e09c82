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

    assert "at `mask.sum()`, two arguments are missing" in str(check("mean_of_real", mean_of_real))


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


def test_what_is_wrong_in_float64_alone_cuts_no_gradient():
    def answer(x, W_1, b_1, W_2, b_2):
        y = torch.relu(x @ W_1 + b_1) @ W_2 + b_2
        return y if x.dtype == torch.float32 else 2 * y

    assert "gradient" not in str(check("feed_forward", answer))


def test_numbers_of_which_some_are_exact_are_not_all_called_off():
    def rounded(x, valid_lens):
        keep = torch.arange(x.shape[1]) < valid_lens[:, None]
        means = torch.where(keep[..., None], x, 0.0).sum(1) / valid_lens[:, None]
        return means.round(decimals=2)

    said = str(check("mean_of_real", rounded))
    assert "No number is off by more than 1 % of the largest" in said
    assert "very number is off" not in said


def test_an_exp_that_loses_nothing_is_not_blamed_for_what_is_infinite():
    def divided_by_zero(logits, targets, pad):
        real = targets != pad
        logs = logits.log_softmax(-1).gather(-1, targets[..., None])[..., 0]
        return torch.exp(-logs[real].mean()) / torch.zeros(())

    said = str(check("text_perplexity", divided_by_zero))
    assert "infinite" in said
    assert "`exp` of a" not in said


def test_a_sentence_typed_for_letters_is_shown_as_it_was_typed():
    assert "'d, e, and f'" in str(check("what_fits", "d, e, and f"))
    assert check("what_fits", "e, d")
