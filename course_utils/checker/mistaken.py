"""What is easily mistaken for something else, and which step is easily forgotten."""

import ast

ALIKE = [  # what is easily taken for each other
    {ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.MatMult},
    {ast.Mult, ast.Pow},
    {ast.BitAnd, ast.BitOr, ast.BitXor},
    {ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq},
    {"sum", "mean", "amax", "max", "min", "logsumexp", "prod", "median", "norm", "cumsum", "len"},
    {"argmax", "argmin"},
    {"minimum", "maximum"},
    {"tril", "triu"},
    {"ones", "zeros", "eye"},
    {"ones_like", "zeros_like"},
    {"ones_", "zeros_", "normal_"},
    {"softmax", "log_softmax", "sigmoid", "logsigmoid"},
    {"relu", "elu", "gelu", "tanh", "sigmoid"},
    {"sin", "cos"},
    {"sqrt", "square", "abs", "exp", "log", "log10", "log2"},
    {"cat", "stack", "hstack", "vstack"},
    {"repeat", "repeat_interleave"},
    {"scatter", "gather"},
    {"any", "all"},
    {"nanmean", "nanmedian", "nansum"},
    {"std", "var"},
    {"view", "reshape", "transpose", "permute"},
    {"append", "extend"},
]
KEYWORDS = {"reduction": ("mean", "sum", "none"), "dim": (0, 1, 2, -1, -2, None)}
NUMBERS = (-1, -2, -3, 0, 1, 2, 3)
FACTORS = (0.5, 2.0, 0.1, 10.0, 1e-3, 1e3, 1e6, 0.0)  # for a number with a point
VERY_LOW = 10**9  # below all scores
OVER_ALL = {  # what is done to all numbers, and along which axes it may be due
    **dict.fromkeys(("mean", "sum", "amax", "amin", "norm", "std", "var"), ((0,), (1,), (-1,))),
    "flatten": ((0, 1), (1, 2), (-2,)),
}
MORE = {  # a step that may be missing; _ is the expression that is there
    "a copy": ("_.clone()", "_.copy()"),
    "the opposite": ("_ == False", "not _"), "a change of sign": ("-_",),
    "1 minus it": ("1 - _",), "1 divided by it": ("1 / _",),
    "a step of one": ("_ + 1", "_ - 1"),
    "a factor or a power": (
        "2 * _", "_ / 2", "_ ** 2", "_ ** 0.5", "_ / _.shape[-1] ** 0.5", "_ / _.shape[-1]",
        "_ / len(_)",
    ),
    "a cut": ("_[1:]", "_[:-1]", "_[:1]", "_[-1:]"),
    "another order": ("_[::-1]", "_.flip(-1)", "sorted(_)"),
    "an exchange of two axes": ("_.T", "_.mT", "_.transpose(0, 1)", "_.transpose(1, 2)"),
    "an axis of size 1": ("_.unsqueeze(0)", "_.unsqueeze(1)", "_.unsqueeze(-1)"),
    "the removal of an axis": ("_.squeeze(0)", "_.squeeze(-1)"),
    "a flattening": ("_.flatten(0, 1)", "_.flatten(-2)"),
    "a softmax": ("_.softmax(-1)", "_.softmax(0)"), "an exp or a logarithm": ("_.exp()", "_.log()"),
    "a function of each number": ("_.abs()", "_.relu()", "_.tanh()"),
    "a triangle": ("_.tril()", "_.triu()"),
    "a sum over the last axis": ("_.sum(-1, keepdim=True)",),
    "a division by its sum": ("_ / _.sum(-1, keepdim=True)",),
    "a subtraction of its mean": ("_ - _.mean(-1, keepdim=True)",),
    "a running sum": ("_.cumsum(-1)",),
    "a change of type": ("_.float()", "int(_)", "float(_)", "list(_)"),
    "a length": ("len(_)",), "a factor of 0": ("0 * _",),
}  # fmt: skip
