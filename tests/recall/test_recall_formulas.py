"""What is typed as a formula is read as people write it, and nothing else is run."""

from contextlib import suppress

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_utils.recall.chosen import Choice, Keyword, Order
from course_utils.recall.computed import Expression, Inputs, Number, Shape
from course_utils.recall.formulas import FUNCTIONS, LONGEST, Formula, Impossible
from course_utils.recall.spelling import Unreadable

Q, K, V = (torch.randn(n, m).double() for n, m in ((5, 4), (7, 4), (7, 3)))
VALUES = {"Q": Q, "K": K, "V": V, "d_k": 4}
ATTENTION = torch.softmax(Q @ K.T / 2, -1) @ V


@pytest.mark.parametrize(
    "text",
    [
        "softmax(Q @ K.T / sqrt(d_k)) @ V",
        "softmax(QKᵀ / √d_k) V",
        "softmax(QK^T/√(d_k))V",
        r"Attention(Q,K,V) = softmax(QK^{T}/√{d_k})V",
        "$softmax(QK^⊤ ÷ √d_{k})·V$".replace("·", "@"),
        "torch.softmax(Q @ K.transpose(-2, -1) / d_k**0.5, dim=-1) @ V",
        "(Q@K.mT/math.sqrt(Q.size(-1))).softmax(-1)@V",
        "softmax(q @ k.T / K.shape[-1]**.5) @ v",
        "matmul(softmax(matmul(Q, transpose(K)) / sqrt(d_k)), V)",
    ],
)
def test_many_ways_to_write_attention(text):
    assert torch.allclose(Formula(text, VALUES, product="@").value(VALUES), ATTENTION)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("O(n² d)", 45), ("n^2d", 45), ("nnd", 45), ("2n(n+1)", 24), ("n(n+1)/2", 6), ("3n d²", 225),
     ("2^{n-1}", 4), ("sqrt(d - 1)", 2), ("max(n, d)", 5), ("-n + 1e1", 7), ("7 // n", 2),
     ("1_000 n", 3000), ("f(n) = 2 * n", 6), ("log(exp(n))", 3)],
)  # fmt: skip
def test_products_powers_and_signs(text, wanted):
    assert Formula(text, ["n", "d"]).value({"n": 3, "d": 5}).item() == pytest.approx(wanted)


@pytest.mark.parametrize(
    "text",
    ["", " ", "(", "()", "Q +", "Q.__class__", "__import__('os')", "exec(Q)", "open(Q)", "foo",
     "lambda: 1", "[x for x in Q]", "Q if Q else V", "'a' * 9", "Q.data", "Q.backward()", "True",
     "1j", "softmax", "softmax(Q, out=3)", "softmax(Q, **K)", "softmax(*Q)", "Q[0]", "K.shape",
     "torch", "torch.Q", "Q := 3", "Q == K", "Q & K", "Q; K", "Q\nK\n'", "d" * (LONGEST + 1)],
)  # fmt: skip
def test_everything_else_is_refused_before_it_runs(text):
    with pytest.raises(Unreadable):
        Formula(text, VALUES, product="@")


@pytest.mark.parametrize("text", ["QK", "Q + K", "cat((Q, V))", "softmax(Q, 7)", "d_k.T", "(Q, K)",
                                  "Q.shape[9]", "size(Q)", "Q.size(1e30)"])  # fmt: skip
def test_sizes_that_do_not_fit_are_said(text):
    with pytest.raises(Impossible, match="cannot be computed"):
        Formula(text, VALUES, product="@").value(VALUES)


@given(st.text(alphabet="QKVd_k nTm()[].,+-*/@^²√ᵀ=0123456789softmaxqrtcat'\"\\:%$", max_size=40))
def test_whatever_is_typed_nothing_else_is_raised(text):
    with suppress(Unreadable, Impossible):
        Formula(text, VALUES, product="@").value(VALUES)


def test_inputs_differ_and_repeat():
    inputs = Inputs("B h T d_k _m", {"d_model": "h * d_k"}, {"x": "B d_model"})
    for seed in range(20):
        values = inputs.draw(seed)
        assert len({values[name] for name in inputs.sizes}) == 5
        assert values["d_model"] == values["h"] * values["d_k"]
        assert values["x"].shape == (values["B"], values["d_model"])
        assert torch.equal(values["x"], inputs.draw(seed)["x"])
    assert inputs.shown == "x, B, h, T, d_k, d_model"


def test_a_proof_that_disagrees_is_noticed():
    assert not Expression("2 * n", Inputs("n"), lambda n: 3 * n).proved()
    assert Expression("2 * n", Inputs("n"), lambda n: 3 * n, up_to_factor=True).proved()
    assert not Shape("(n, 1)", Inputs("n"), lambda n: (1, n)).proved()
    assert not Choice(["x", "y"], "a", proof=lambda: "b").proved()
    assert not Order(["x", "y"], {"x": [], "y": []}, lambda: ["y", "x"]).proved()
    assert not Number(lambda: 8.3, shown="8", within=0.01).proved()


def test_constant_factors_are_forgiven_only_where_asked():
    cost = Expression("n**2 * d", Inputs("n d"), lambda n, d: n * n * d, up_to_factor=True)
    assert cost.judge("7 n² d").right
    assert cost.judge("n² d + n d²").right is False
    exact = Expression("n**2 * d", Inputs("n d"), lambda n, d: n * n * d)
    assert exact.judge("7 n² d").right is False


@pytest.mark.parametrize("given", ["(B, h, T, d)", "B, h, T, d", ("B", "h", "T", "d"), "[B,h,T,d]",
                                   ["B", "h", "T", "d"], "(B, h, T, 2d / 2)"])  # fmt: skip
def test_shapes_in_many_forms(given):
    shape = Shape("(B, h, T, d)", Inputs("B h T d"), lambda **sizes: tuple(sizes.values()))
    assert shape.proved()
    assert shape.judge(given).right
    assert "3 axes, not 4" in shape.judge("(B, T, d)").message
    assert "Axis 1" in shape.judge("(B, T, h, d)").message


@pytest.mark.parametrize("given", [12, 12.0, "12", "3 * 4", "1.2e1", torch.tensor(12)])
def test_numbers_in_many_forms(given):
    number = Number(lambda: 12, {11: "One is missing."})
    assert number.judge(given).right
    assert number.judge(11).message == "One is missing."
    assert number.judge("twelve").right is None
    assert number.judge((12, 12)).right is False


def test_choices_orders_and_words_in_many_forms():
    choice = Choice(["red", "green", "blue"], "ac", {"b": "Not green."})
    for given_ in ("ac", "c, a", "A and C", ["a", "c"], ("red", "blue"), {"a", "c"}):
        assert choice.judge(given_).right
    assert choice.judge("ab").message == "b: Not green."
    assert "2 options" in choice.judge("a").message
    assert choice.judge("x").right is None
    order = Order(["norm", "sum"], {"norm": ["LN"], "sum": ["+"], "ffn": []}, lambda: ["norm"])
    assert order.judge("LN → Sum").right
    assert order.judge(["norm", "SUM"]).right
    assert order.judge("norm -> ffn").message == "Number 2 in the row is another one."
    assert "no name" in order.judge("norm -> relu").message
    word = Keyword("post-norm", ["后归一化"], {"pre-norm": "Later."})
    assert word.judge("Post Norm").right
    assert word.judge("后归一化").right
    assert word.judge("PRE-NORM").message == "Later."
    assert word.judge(" ").right is None


def test_functions_take_axes_by_name_and_by_place():
    for name in ("softmax", "mean", "var", "std"):
        for call in (f"{name}(Q, 0)", f"{name}(Q, dim=0)", f"{name}(Q, axis=-2)", f"Q.{name}(0)"):
            assert torch.equal(Formula(call, VALUES).value(VALUES), FUNCTIONS[name](Q, 0))
