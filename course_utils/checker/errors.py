"""What can be said of an error besides its message: read from the learner's own line and its call.

Each sentence is either about what lies in that line at that moment (shapes, names), or about a
message of torch that means one thing only.
"""

import ast
import difflib
import linecache
import re
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType, FunctionType, TracebackType
from typing import Any

from torch import Tensor

_MEANINGS = (
    (r"view size is not compatible", "after a transpose use .reshape, or .contiguous().view"),
    (
        r"must match the size of tensor|not broadcastable|doesn't match the broadcast",
        "two shapes do not broadcast: count the axes from the right",
    ),
    (
        r"shapes cannot be multiplied|batch1|size mismatch|inconsistent tensor size",
        "in a matrix product the last axis on the left must equal the last but one on the right",
    ),
    (r"shape '\[.*\]' is invalid", "a reshape must keep the number of entries"),
    (
        r"not implemented for '(Long|Bool|Int|Short|Byte|Char)'|must be either a floating point",
        "this operation needs floating-point numbers: convert to float first, with .float()",
    ),
    (
        r"meta tensor",
        "a meta tensor has a shape but no numbers: make the tensor without device='meta'",
    ),
    (r"only supports boolean masks", "masked_fill takes a boolean mask: compare, or use .bool()"),
    (r"same dtype|expected scalar type", "two tensors have different dtypes: convert one"),
    (r"missing \d+ required positional", "something is called with too few arguments"),
    (r"Dimension out of range", "an axis is named that the tensor does not have"),
    (r"maximum recursion depth", "the function calls itself without end"),
)
_ABOUT_SHAPES = re.compile(r"shape|size|dimension|broadcast|axis|batch1", re.I)
_MOST_SHAPES = 4
_MOST_OF_A_MESSAGE = 300  # characters
_PLAIN = (  # a slice of these changes nothing when it is worked out once more
    ast.Slice, ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop,
    ast.expr_context, ast.Attribute, ast.Subscript,
)  # fmt: skip


def place(error: BaseException, answer: Any) -> tuple[str, list[str]]:
    """The deepest line of the answer's own file that led to the error, and what it tells.

    Returns:
        ("line 3: ...", sentences); the line is "" where the error came before the answer's code.
    """
    own = list(_own_frames(error.__traceback__, answer))
    said = [text for pattern, text in _MEANINGS if re.search(pattern, _message(error))][:1]
    if not own:
        return "", said
    at = own[-1]
    frame, number = at.tb_frame, at.tb_lineno
    line = linecache.getline(frame.f_code.co_filename, number).strip()
    said += _misspelt(error, frame)
    if isinstance(error, IndexError):
        said += _beyond(line, at)
    if isinstance(error, (RuntimeError, ValueError, IndexError, TypeError)):
        said += _shapes(line, frame) if _ABOUT_SHAPES.search(_message(error)) else []
        said += _other_parameter(line, at.tb_next)
    return f"line {number}: {line}" if line else f"line {number}", said


def _message(error: BaseException) -> str:
    with suppress(Exception):
        return str(error)
    return ""


def _own_frames(trace: TracebackType | None, answer: Any) -> Iterator[TracebackType]:
    own = vars(answer).values() if isinstance(answer, type) else [answer]
    own = [*own, getattr(type(answer), "forward", None)]  # a layer may be the answer
    files = {f.__code__.co_filename for f in own if isinstance(f, FunctionType)}
    while trace:
        if trace.tb_frame.f_code.co_filename in files:
            yield trace
        trace = trace.tb_next


def _misspelt(error: BaseException, frame: FrameType) -> list[str]:
    """A name that nearly is another one, or that stands for nothing yet."""
    if isinstance(error, UnboundLocalError):
        return ["on the way taken here nothing was assigned to that name before"]
    known: list[str] = []
    if isinstance(error, NameError):
        known = [*frame.f_locals, *frame.f_globals]
    elif isinstance(error, AttributeError) and getattr(error, "obj", None) is not None:
        known = dir(error.obj)
    name = getattr(error, "name", None)
    near = difflib.get_close_matches(name, [n for n in known if n != name], 1) if name else []
    if near:
        return [f"did you mean `{near[0]}`?"]
    return ["no cell has defined that name"] if isinstance(error, NameError) else []


def _shapes(line: str, frame: FrameType) -> list[str]:
    """The shapes of the tensors that the line names."""
    names = dict.fromkeys(re.findall(r"[A-Za-z_]\w*", line))
    tensors = {n: frame.f_locals[n] for n in names if isinstance(frame.f_locals.get(n), Tensor)}
    shown = [f"`{n}` {tuple(x.shape)}" for n, x in [*tensors.items()][:_MOST_SHAPES]]
    more = f", and {len(tensors) - _MOST_SHAPES} more" if len(tensors) > _MOST_SHAPES else ""
    empty = [f"the slice `{text}` is empty here" for text in _empty_slices(line, frame)]
    return empty + ([f"in that line the shapes are {', '.join(shown)}{more}"] if shown else [])


def _parsed(line: str) -> ast.Module:
    """One line of code, which may be the head of a block."""
    return ast.parse(re.sub(r"^elif\b", "if", line) + " pass" * line.endswith(":"))


def _beyond(line: str, at: TracebackType) -> list[str]:
    """Where the line asks for an entry behind the last one, and why a loop may do so."""
    frame = at.tb_frame
    with suppress(SyntaxError):
        for part in ast.walk(_parsed(line)):
            plain = isinstance(part, ast.Subscript) and not isinstance(part.slice, ast.Slice)
            if not plain or not all(isinstance(n, _PLAIN) for n in ast.walk(part)):
                continue
            with suppress(Exception):
                whole, index = (
                    eval(ast.unparse(x), {"__builtins__": {}}, frame.f_locals)
                    for x in (part.value, part.slice)
                )
                counted = type(index) is int and isinstance(whole, (list, tuple, str, Tensor))
                if counted and index >= len(whole):
                    name = ast.unparse(part.value)
                    ends = f"ends at place {len(whole) - 1}" if len(whole) else "is empty"
                    said = f"`{ast.unparse(part)}` asks for place {index}, and `{name}` {ends}"
                    return [said, *_got_shorter(name, at)]
    return []


def _got_shorter(name: str, at: TracebackType) -> list[str]:
    """Whether the line is in a loop over the places of a list that takes entries out of it."""
    with suppress(SyntaxError):
        tree = ast.parse("".join(linecache.getlines(at.tb_frame.f_code.co_filename)))
        for loop in (n for n in ast.walk(tree) if isinstance(n, ast.For)):
            counted = f"len({name})" in ast.unparse(loop.iter)
            if counted and loop.lineno <= at.tb_lineno <= loop.end_lineno:
                taken = rf"\bdel {name}\[|\b{name}\.(pop|remove)\(|\b{name} = {name}\["
                if re.search(taken, ast.unparse(loop)):
                    return [f"`{name}` gets shorter in the loop, whose rounds were counted before"]
    return []


def _empty_slices(line: str, frame: FrameType) -> Iterator[str]:
    """Slices in the line that take nothing of a tensor which is not empty."""
    with suppress(SyntaxError):
        for part in ast.walk(_parsed(line)):
            if not isinstance(part, ast.Subscript) or not isinstance(part.slice, ast.Slice):
                continue
            whole = frame.f_locals.get(getattr(part.value, "id", None))
            plain = all(isinstance(n, _PLAIN) for n in ast.walk(part.slice))
            if isinstance(whole, Tensor) and whole.numel() and plain:
                with suppress(Exception):
                    code = compile(ast.Expression(part), "<slice>", "eval")
                    if not eval(code, {"__builtins__": {"len": len}}, frame.f_locals).numel():
                        yield ast.unparse(part)


def _other_parameter(line: str, below: TracebackType | None) -> list[str]:
    """A variable that went to another parameter than the one that bears its name."""
    if below is None:
        return []
    called = below.tb_frame.f_code
    takes = called.co_varnames[: called.co_argcount + called.co_kwonlyargcount]
    with suppress(SyntaxError):
        for call in ast.walk(_parsed(line)):
            if (
                isinstance(call, ast.Call)
                and ast.unparse(call.func).split(".")[-1] == called.co_name
            ):
                for to, given in zip(takes, call.args):
                    own = getattr(given, "id", to)
                    if own != to and own in takes:
                        return [f"`{own}` went to the parameter `{to}` of `{called.co_name}`; "
                                f"its parameter `{own}` is set by name"]  # fmt: skip
    return []


def message(error: BaseException) -> str:
    """What an exception says, cut short; some cannot even be turned into text."""
    try:
        text = str(error)
        return text if len(text) <= _MOST_OF_A_MESSAGE else text[:_MOST_OF_A_MESSAGE] + " ..."
    except Exception:
        return "(its message cannot be shown)"
