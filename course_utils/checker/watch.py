"""What an answer does while it runs: how many things it returns, and whose functions it calls."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from course_utils.checker.stated_sizes import tensors_in

TURNED = "T of three axes"  # how `calls` names it
_LOST = {  # what becomes of large scores, and by which function
    "exp": "`exp` of a large number is infinite in {}, and of one far below 0 it is 0: for a "
    "softmax first subtract the largest of the row; a sigmoid is 1 / (1 + exp(-z))",
    "log": "a small probability is 0 in {}, and its `log` -inf: `log_softmax` avoids that",
}
_HIDDEN = -1e4  # and below: no score, but a number that hides one
_NORMS = {"layer_norm", "rms_norm", "group_norm", "instance_norm", "batch_norm", "normalize"}
_LOST_BELOW = "`exp` of a number far below 0 is 0 in {}: stay with the logarithms"
_ROOMS = ("models", "training", "text")
_LIBRARY = tuple(str(Path(__file__).parents[1] / room) for room in _ROOMS)


class Watch:
    """Takes notes on one answer.

    Attributes:
        returned: what it handed back last, before anything was made of it; `...` if nothing yet.
        calls: the functions of torch that it called, "cross_entropy" and where a keyword was set
            "cross_entropy(label_smoothing)" too, and "exp in float32" where that loses something;
            noted inside `calls_noted` only.
        shapes: those of the tensors that it made with functions of torch; likewise.
        borrowed: the functions and layers of the course's library whose results it handed back
            as they were; likewise.
    """

    def __init__(self, answer: Any):
        self.answer, self.returned = answer, ...
        self.calls: set[str] = set()
        self.shapes: set[tuple[int, ...]] = set()
        self.borrowed: set[str] = set()

    def ruled_out(self, forbidden: Sequence[str]) -> str:
        """The function that was called though it, or another name of it, is forbidden.

        A norm of torch stands for all its norms; `native_layer_norm` is a name of `layer_norm`.
        """
        for name in forbidden:
            names = _NORMS if name in _NORMS else {name}
            called = [x for x in self.calls if " in " not in x and any(n in x for n in names)]
            if called:
                return min(called, key=lambda x: (len(x), x))
        return ""

    def made(self, too_large: tuple[str, tuple[int, ...]] | None) -> str:
        """In words, where a tensor with these sizes was made, among others of its own."""
        words, sizes = too_large or ("", ())
        made = too_large and any(
            all(shape.count(n) >= sizes.count(n) for n in sizes) for shape in self.shapes
        )
        return f"it makes {words}, which the exercise rules out" if made else ""

    def lost(self, facts: list[str], args: tuple = ()) -> list[str]:
        """By which function that was called something is lost that the facts speak of."""
        if any("axes of size 1" in fact for fact in facts) and "squeeze()" in self.calls:
            return ["`squeeze()` without a number takes all axes of size 1 away"]
        return self._far_out(args) if any("NaN" in fact for fact in facts) else []

    def _far_out(self, args: tuple) -> list[str]:
        """What becomes of numbers far out in a function that was called, in the dtypes it got."""
        given = [x for x in tensors_in(args) if x.is_floating_point()]
        low = bool(given) and all((x <= 0).all() for x in given)
        for name, words in _LOST.items():
            head = f"{name} in "
            dtypes = sorted(x.removeprefix(head) for x in self.calls if x.startswith(head))
            if dtypes:
                words = _LOST_BELOW if low and name == "exp" else words
                return [words.format(" and ".join(dtypes))]
        return []

    @contextmanager
    def returns_noted(self) -> Iterator[Any]:
        """Gives what is to be played in place of the answer."""
        if not isinstance(self.answer, type):
            yield self._noting if callable(self.answer) else self.answer
            return
        hook = nn.modules.module.register_module_forward_hook(self._note_layer)
        try:
            yield self.answer
        finally:
            hook.remove()

    @contextmanager
    def calls_noted(self) -> Iterator[None]:
        """Notes, in this thread, what is called; the notes are complete when it ends."""
        handed: list[tuple[str, Any]] = []

        def profile(frame, event: str, arg: Any) -> None:
            code, above = frame.f_code, frame.f_back
            if event == "return" and code.co_filename.startswith(_LIBRARY):
                owner = type(frame.f_locals["self"]).__name__ if "self" in frame.f_locals else ""
                inside = above is not None and above.f_code.co_filename.startswith(_LIBRARY)
                if not inside and code.co_name != "__init__":
                    handed.append((owner or code.co_name, arg))

        usual = sys.getprofile()
        sys.setprofile(profile)
        try:
            with _Calls(self.calls, self.shapes):
                yield
        finally:
            sys.setprofile(usual)
            same = [name for name, x in handed if x is not None and x is self.returned]
            self.borrowed = set(same)

    def _noting(self, *args, **words) -> Any:
        self.returned = self.answer(*args, **words)
        return self.returned

    def _note_layer(self, module: nn.Module, _: Any, output: Any) -> None:
        if isinstance(module, self.answer):
            self.returned = output


class _Calls(TorchFunctionMode):
    def __init__(self, seen: set[str], made: set[tuple[int, ...]]):
        super().__init__()
        self.seen, self.made = seen, made

    def __torch_function__(self, func: Callable, types, args=(), kwargs=None) -> Any:
        name = getattr(func, "__name__", "")
        if name == "__get__" and getattr(func.__self__, "__name__", "") == "T":
            name = "T" if args[0].dim() < 3 else TURNED
        if name == "squeeze" and len(args) == 1 and not kwargs:
            name = "squeeze()"
        words = {w for w, x in (kwargs or {}).items() if isinstance(x, (int, float)) and x}
        self.seen |= {name, *(f"{name}({word})" for word in words)}
        result = func(*args, **(kwargs or {}))
        if name in _LOST and isinstance(result, Tensor) and _loses(args[0], result):
            self.seen.add(f"{name} in {str(result.dtype).removeprefix('torch.')}")
        self.made |= {(*result.shape,)} if isinstance(result, Tensor) else set()
        return result


def _loses(x: Tensor, result: Tensor) -> bool:
    """Whether finite numbers became infinite, or 0: one that was not lowered to hide it, or all."""
    finite = x.isfinite()
    lost = (result == 0) & finite
    whole = lost.all(-1) if lost.dim() and lost.numel() else lost
    return bool(((result.isinf() | lost & (x > _HIDDEN)) & finite).any() or whole.any())


def loads(thread: int) -> bool:
    """Whether a thread is just loading a module."""
    frame = sys._current_frames().get(thread)
    while frame and frame.f_code.co_filename != "<frozen importlib._bootstrap>":
        frame = frame.f_back
    return frame is not None


def things(returned: Any) -> int | None:
    """How many things were returned; None where that is a matter of taste, as with numbers."""
    if returned is None or isinstance(returned, (Tensor, nn.Module, float, int, str)):
        return 1
    several = isinstance(returned, (list, tuple)) and any(
        isinstance(x, (list, tuple)) or (isinstance(x, Tensor) and x.dim()) for x in returned
    )
    return len(returned) if several else None


def described(returned: Any) -> str:
    """What came back, in words: "one tensor of shape (2, 3)", "2 things"."""
    if isinstance(returned, Tensor):
        return f"one tensor of shape {tuple(returned.shape)}"
    if isinstance(returned, (list, tuple)):
        return "one thing in brackets" if len(returned) == 1 else f"{len(returned)} things"
    if returned is ...:
        return "nothing"
    return "None" if returned is None else f"one {type(returned).__name__}"
