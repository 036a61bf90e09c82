"""Compute a formula that was typed; nothing but arithmetic can be run.

The syntax tree is walked by hand: names, numbers, + - * / @ **, and the functions listed here.
All else is refused before anything is computed.
"""

import ast
import operator

import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.recall.spelling import MODULES, Unreadable, key, spell

LONGEST = 300  # characters

_OPERATORS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Pow: operator.pow, ast.MatMult: operator.matmul,
}  # fmt: skip


class Impossible(ValueError):
    """The formula can be read, but its sizes do not fit together."""


def _along(function):
    """A function of a tensor and an axis; the axis arrives as a number that was computed."""
    return lambda x, dim=-1: function(x, int(dim))


def _of_two(function):
    return lambda a, b: function(*torch.broadcast_tensors(a, b))


def _transposed(x):
    if x.dim() < 2:
        raise ValueError("only a matrix has a transpose")
    return x.mT


def _joined(*parts, dim=-1):
    if isinstance(parts[0], tuple):  # cat((a, b), -1)
        parts, dim = parts[0], (*parts[1:], dim)[0]
    return torch.cat(parts, int(dim))


FUNCTIONS = {
    "softmax": _along(torch.softmax),
    "sqrt": torch.sqrt,
    "exp": torch.exp,
    "log": torch.log,
    "ln": torch.log,
    "sin": torch.sin,
    "cos": torch.cos,
    "tanh": torch.tanh,
    "relu": torch.relu,
    "gelu": F.gelu,
    "max": _of_two(torch.maximum),
    "maximum": _of_two(torch.maximum),
    "min": _of_two(torch.minimum),
    "minimum": _of_two(torch.minimum),
    "mean": _along(lambda x, dim: x.mean(dim, keepdim=True)),
    "var": _along(lambda x, dim: x.var(dim, correction=0, keepdim=True)),
    "std": _along(lambda x, dim: x.std(dim, correction=0, keepdim=True)),
    "matmul": torch.matmul,
    "transpose": lambda x, *_: _transposed(x),
    "concat": _joined,
    "cat": _joined,
    "layernorm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "size": lambda x, dim: x.new_tensor(x.shape[int(dim)]),
}


class Formula:
    """A text that has been read.

    Args:
        text: what was typed.
        names: the variables that may stand in it.
        functions: more functions than FUNCTIONS, by name in lower case.
        product: the sign that is put in where two factors stand side by side.

    Raises:
        Unreadable: it is no formula in these names.
    """

    def __init__(self, text: str, names, functions=None, product: str = "*"):
        self._names, self._functions = list(names), FUNCTIONS | (functions or {})
        if len(text) > LONGEST:
            raise Unreadable(f"that is longer than {LONGEST} characters")
        self.code = spell(text, self._names, self._functions, product)
        try:
            self._tree = ast.parse(self.code, mode="eval").body
        except SyntaxError as error:
            raise Unreadable(f"read as `{self.code}`, this is no formula: {error.msg}") from None
        self._check(self._tree)

    def value(self, values: dict) -> Tensor:
        """The result for these variables; a tuple gives a row of numbers.

        Raises:
            Impossible: the sizes do not fit together.
        """
        try:
            result = self._compute(self._tree, values)
            return torch.stack(result) if isinstance(result, tuple) else result
        except (
            RuntimeError,
            IndexError,
            TypeError,
            ValueError,
            AttributeError,
            OverflowError,
        ) as error:
            reason = str(error).split("\n")[0]
            raise Impossible(
                f"this cannot be computed ({reason}); `@` is the matrix product, `*` multiplies "
                "entry by entry"
            ) from None

    def _check(self, node: ast.AST) -> None:
        for part in self._parts(node):
            self._check(part)

    def _parts(self, node: ast.AST) -> list[ast.AST]:
        """What a permitted node consists of."""
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return [node.left, node.right]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            return [node.operand]
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return []
        if isinstance(node, ast.Name) and node.id in self._names:
            return []
        if isinstance(node, (ast.Tuple, ast.List)) and node.elts:
            return node.elts
        if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
            return [node.value]
        if isinstance(node, ast.Subscript) and getattr(node.value, "attr", "") == "shape":
            return [node.value.value, node.slice]
        if isinstance(node, ast.Call) and self._function_of(node):
            if [word.arg for word in node.keywords] not in ([], ["dim"], ["axis"]):
                raise Unreadable("the only word that may be set in brackets is dim=")
            words = [word.value for word in node.keywords]
            return [*_object_of(node.func), *node.args, *words]
        what = ast.unparse(node)[:40]
        if not self._names:
            raise Unreadable(f"`{what}` is no number; write one, or a calculation such as 3 * 4**2")
        names = ", ".join(name for name in self._names if not name.startswith("_"))
        raise Unreadable(
            f"`{what}` is not known here. The names are {names}. Write a product as Q @ K.T or "
            "n * d, a power as n**2, a root as sqrt(d)"
        )

    def _function_of(self, call: ast.Call):
        name = getattr(call.func, "id", None) or getattr(call.func, "attr", "")
        return self._functions.get(key(name))

    def _compute(self, node: ast.AST, values: dict):
        """The value of a node that was checked."""
        parts = self._parts(node)
        if isinstance(node, ast.Constant):
            return torch.tensor(float(node.value), dtype=torch.float64)
        if isinstance(node, ast.Name):
            return torch.as_tensor(values[node.id], dtype=torch.float64)
        found = [self._compute(part, values) for part in parts]
        if isinstance(node, ast.BinOp):
            return _OPERATORS[type(node.op)](*found)
        if isinstance(node, ast.UnaryOp):
            return -found[0] if isinstance(node.op, ast.USub) else found[0]
        if isinstance(node, (ast.Tuple, ast.List)):
            return tuple(found)
        if isinstance(node, ast.Attribute):
            return _transposed(found[0])
        if isinstance(node, ast.Subscript):
            return found[0].new_tensor(found[0].shape[int(found[1])])
        words = {"dim": found.pop()} if node.keywords else {}
        return self._function_of(node)(*found, **words)


def _object_of(func: ast.AST) -> list[ast.AST]:
    """x in x.softmax(-1), nothing in torch.softmax(x, -1) or softmax(x)."""
    if not isinstance(func, ast.Attribute):
        return []
    return [] if getattr(func.value, "id", None) in MODULES else [func.value]
