"""The text of a stub and of a solution, both cut from the one solution that exists.

Of a function or method everything after the docstring is cut. Where lines between `# >>>` and
`# <<<` are marked, only they are cut and the rest is given to the learner.
"""

import ast
import inspect
import re
import textwrap
from types import CodeType
from typing import Any

from course_utils.checker.exercise import Exercise

WORDS = "your turn"  # of the error that a stub raises
_TODO = f'raise NotImplementedError("{WORDS}")'
_BLOCK = re.compile(r"^([ \t]*)# >>>[^\n]*\n.*?^[ \t]*# <<<[^\n]*\n?", re.M | re.S)
_MARK = re.compile(r"^[ \t]*# (?:>>>|<<<)[^\n]*\n?", re.M)


def stub(exercise: Exercise) -> str:
    """The cell that the learner finds."""
    if exercise.kind == "value":
        return f"{_question(exercise)}\n{exercise.name} = ..."
    source = _source(exercise.solution)
    if _BLOCK.search(source):
        return _BLOCK.sub(rf"\1{_TODO}\n", source).rstrip()
    lines = source.splitlines()
    for method in sorted(_functions(source), key=lambda node: -node.lineno):
        first, last = _body(method)
        indent = " " * (method.col_offset + 4)
        lines[first - 1 : last] = [indent + _TODO]
    return "\n".join(lines).rstrip()


def solved(exercise: Exercise) -> str:
    """The same cell with the solution in it."""
    if exercise.kind == "value":
        (function,) = _functions(_source(exercise.solution))
        answer = ast.unparse(function.body[-1].value)
        return f"{_question(exercise)}\n{exercise.name} = {answer}"
    return _MARK.sub("", _source(exercise.solution)).rstrip()


def is_untouched(exercise: Exercise, answer: Any) -> bool:
    """Whether an answer is still the stub, told by its bytecode and not by its text."""
    if exercise.kind == "value":
        return answer is ...
    here = _codes(answer)
    return bool(here) and here == _codes_of_text(stub(exercise))


def _question(exercise: Exercise) -> str:
    text = inspect.cleandoc(exercise.solution.__doc__)
    return "\n".join(f"# {line}".rstrip() for line in text.splitlines())


def _source(thing: Any) -> str:
    """The source of a function or class without its decorators."""
    text = textwrap.dedent(inspect.getsource(thing))
    (node,) = ast.parse(text).body
    return "\n".join(text.splitlines()[node.lineno - 1 :]) + "\n"


def _functions(source: str) -> list[ast.FunctionDef]:
    """The function itself, or the methods of the class."""
    (node,) = ast.parse(source).body
    return (
        [node]
        if isinstance(node, ast.FunctionDef)
        else [item for item in node.body if isinstance(item, ast.FunctionDef)]
    )


def _body(function: ast.FunctionDef) -> tuple[int, int]:
    """First and last line of what is cut: all but the docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    docstring_end = function.body[0].end_lineno if body != function.body else None
    first = docstring_end + 1 if docstring_end else body[0].lineno
    return first, function.end_lineno


def _codes(answer: Any) -> list[tuple]:
    """What the bytecode of a function does, or that of the methods of a class, in order."""
    if hasattr(answer, "__code__"):
        return [_essence(answer.__code__)]
    if isinstance(answer, type):
        return [_essence(f.__code__) for f in vars(answer).values() if hasattr(f, "__code__")]
    return []


def _essence(code: CodeType) -> tuple:
    return code.co_code, code.co_names, WORDS in code.co_consts


def _codes_of_text(source: str) -> list[tuple]:
    def inner(code: CodeType) -> list[CodeType]:
        return [const for const in code.co_consts if isinstance(const, CodeType)]

    (outer,) = inner(compile(source, "<stub>", "exec"))
    is_class = source.startswith("class ")
    return [_essence(code) for code in (inner(outer) if is_class else [outer])]
