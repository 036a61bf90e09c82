"""Turn what people write on paper into Python: softmax(QKᵀ / √d_k) V, O(n² d), 4d^2.

A text is cut into tokens; names that run together are parted, and missing product signs put in.
"""

import re

_SIGNS = {
    "×": "*", "·": "*", "⋅": "*", "−": "-", "–": "-", "÷": "/", "²": "**2", "³": "**3",
    "^⊤": ".T", "^T": ".T", "ᵀ": ".T", "⊤": ".T", "μ": "mu", "σ": "sigma", "γ": "gamma",
    "β": "beta", "ε": "eps", "ϵ": "eps",
}  # fmt: skip
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?P<name>[^\W\d]\w*)"
    r"|(?P<sign>\*\*|//|[-+*/@(),.=\[\]]))"
)
MODULES = {"torch", "math", "np", "numpy", "F", "nn"}


class Unreadable(ValueError):
    """The text is no formula in these names; the message says how to mend it."""


def key(name: str) -> str:
    """Names of functions are compared without case and underscores."""
    return name.lower().replace("_", "")


def spell(text: str, names: list[str], functions, product: str) -> str:
    """The text as Python source, with `product` wherever two factors stand side by side.

    Args:
        names: the variables that may stand in it.
        functions: the known functions, by `key`.

    Raises:
        Unreadable: it holds a sign that is not known, or nothing.
    """
    spelt: list[str] = []
    previous = ("sign", "(")
    for kind, token in _tokens(_plain(text)):
        parts = [token]
        if kind == "name" and previous != ("sign", "."):
            parts = _parted(token, names, functions)
        for part in parts:
            opens = kind in ("number", "name") or part == "("
            if opens and _ends_factor(previous, spelt, part, names):
                spelt.append("*" if previous[0] == "number" else product)
            spelt.append(part)
            previous = (kind, part)
    return " ".join(spelt)


def _plain(text: str) -> str:
    """Signs of paper and of LaTeX replaced; `name =` before the formula and O( ) round it cut."""
    text = re.sub(r"_\{(\w+)\}", r"_\1", text.strip().strip("`$"))
    text = re.sub(r"\^\{(T|⊤)\}", r"^\1", text)
    text = re.sub(r"(?<![a-zA-Z])W\^\{?([A-Za-z])\}?(?!\w)", r"W_\1", text)
    for sign, code in _SIGNS.items():
        text = text.replace(sign, code)
    text = text.replace("^", "**").replace("{", "(").replace("}", ")")
    text = re.sub(r"√\s*([^\W\d]\w*|\d+(?:\.\d+)?)", r"sqrt(\1)", text).replace("√", "sqrt")
    text = re.sub(r"^\s*[^\W\d]\w*(\([^()]*\))?\s*=(?!=)", "", text)
    order = re.fullmatch(r"\s*[OΘ]\s*\((.*)\)\s*", text, flags=re.DOTALL)
    return order[1] if order else text


def _tokens(text: str) -> list[tuple[str, str]]:
    found, place = [], 0
    while place < len(text.rstrip()):
        match = _TOKEN.match(text, place)
        if match is None:
            raise Unreadable(f"the sign {text[place:].strip()[:1]!r} is not known here")
        found.append((match.lastgroup, match[match.lastgroup]))
        place = match.end()
    if not found:
        raise Unreadable("there is nothing to read")
    return found


def _parted(text: str, names: list[str], functions) -> list[str]:
    """The names in `text`: itself, itself in another case, or several run together, as in QK."""
    if text in names or text in MODULES or key(text) in functions:
        return [text]
    same = [name for name in names if key(name) == key(text)]
    if len(same) == 1:
        return same
    for name in sorted(names, key=len, reverse=True):
        rest = text[len(name) :]
        if text.startswith(name) and rest:
            parts = _parted(rest, names, functions)
            if all(part in names for part in parts):
                return [name, *parts]
    return [text]


def _ends_factor(previous: tuple[str, str], spelt: list[str], following: str, names) -> bool:
    """Whether a factor ended here, so that what follows is multiplied with it."""
    kind, text = previous
    if kind == "sign":
        return text in (")", "]")
    if kind == "name" and following == "(":  # a call, or a product with a bracket
        attribute = len(spelt) > 1 and spelt[-2] == "."
        return text in ("T", "mT") if attribute else text in names
    return True
