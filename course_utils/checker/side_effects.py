"""What an answer may change for everybody, put back; what it prints, kept short.

What a C library prints cannot be caught here, so such calls are stopped before they are made.
"""

import contextlib
import functools
import io
import os
import random
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_MOST_TEXT = 200  # characters of what an answer prints
_FINITE_ONLY = ("eigvals", "lstsq")  # with NaN in them MKL prints of its own accord, or crashes


class _Notepad(io.TextIOBase):
    """Takes any amount of text and keeps the start."""

    def __init__(self):
        self.kept, self.length = "", 0
        self.warned: list[str] = []

    def write(self, text: str) -> int:
        if self.length < _MOST_TEXT:
            self.kept += text[: _MOST_TEXT - self.length]
        self.length += len(text)
        return len(text)

    def note(self, message: Warning | str, *_, **__) -> None:
        """Takes the place of `warnings.showwarning`: a warning is kept whole, without its path."""
        text = str(message).split(" (Triggered internally")[0]
        self.warned += [text] if text not in self.warned else []

    def summary(self) -> str:
        cut = f" ... ({self.length} characters in all)" if self.length > _MOST_TEXT else ""
        return " / ".join(self.kept.split("\n")).rstrip(" /") + cut


@contextlib.contextmanager
def quiet():
    """Global state is kept, and what is printed is written on a notepad."""
    notepad = _Notepad()
    with (
        global_state_kept(),
        _finite_only(),
        contextlib.redirect_stdout(notepad),
        contextlib.redirect_stderr(notepad),
    ):
        usual, warnings.showwarning = warnings.showwarning, notepad.note
        try:
            yield notepad
        finally:
            warnings.showwarning = usual


@contextlib.contextmanager
def _finite_only():
    """Functions of torch.linalg that need finite numbers say so themselves."""
    usual = {name: getattr(torch.linalg, name) for name in _FINITE_ONLY}
    for name, function in usual.items():
        setattr(torch.linalg, name, _checked(function, name))
    try:
        yield
    finally:
        for name, function in usual.items():
            setattr(torch.linalg, name, function)


def _checked(function: Callable, name: str) -> Callable:
    @functools.wraps(function)
    def called(*args, **words) -> Any:
        for x in (*args, *words.values()):
            if isinstance(x, Tensor) and not x.isfinite().all():
                raise ValueError(f"torch.linalg.{name} was given NaN or infinite numbers")
        return function(*args, **words)

    return called


@contextlib.contextmanager
def global_state_kept():
    """Put back what an answer may have changed for everybody."""
    numpy = sys.modules.get("numpy")
    torch_state, python_state = torch.get_rng_state(), random.getstate()
    numpy_state = numpy.random.get_state() if numpy else None
    dtype = torch.get_default_dtype()
    torch_printing = torch._tensor_str.get_printoptions()
    numpy_printing = numpy.get_printoptions() if numpy else {}
    try:
        folder = os.getcwd()
    except OSError:  # it was removed meanwhile
        folder = None
    try:
        yield
    finally:
        torch.set_rng_state(torch_state)
        random.setstate(python_state)
        if numpy:
            numpy.random.set_state(numpy_state)
            numpy.set_printoptions(**numpy_printing)
        torch.set_default_dtype(dtype)
        torch.set_printoptions(**torch_printing)
        if folder is not None:
            with contextlib.suppress(OSError):
                os.chdir(folder)
