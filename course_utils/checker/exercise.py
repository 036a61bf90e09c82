"""What an exercise is: a solution, one reference with switchable mistakes, and probes.

A chapter file holds, for each exercise, a small *reference* whose keyword-only parameters are
switches. With the defaults it is right; every `wrong(...)` entry turns one switch and so is a known
wrong answer. Two entries on different switches can be combined, so two mistakes at once cost
nothing to describe. The decorator `exercise(...)` above the solution ties everything together.
"""

import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from course_utils.checker.values import Typed

TAGS = {
    "softmax axis": "A softmax runs over the keys: each query shares out a weight of 1.",
    "mask axis": "A padding mask hides keys, so it varies along the last axis of the scores.",
    "mask meaning": "In this course True means that the query may look at the key.",
    "mask direction": "A causal mask lets position i look at positions 0 to i, itself included.",
    "mask timing": "Hide scores before the softmax: then the visible weights still sum to 1.",
    "mask missing": "Every kind of position that must stay hidden needs its part of the mask.",
    "empty row": "A query that may look at nothing gets weights of zero, not NaN and not 1/n.",
    "overflow": "exp of a large score overflows: subtract the maximum first.",
    "scale": "Divide dot products by the square root of the size of one head.",
    "score": "The score says how well a query fits a key; each part of its formula matters.",
    "normalisation": "Weights are non-negative and sum to 1 over the keys.",
    "role of q, k, v": "Queries ask, keys are compared, values are what is averaged.",
    "head layout": "Split d_model into (h, d_head), then swap the axes of heads and positions.",
    "head merging": "Swap heads and positions back before the heads are joined.",
    "sharing": "Each projection needs a weight of its own, registered with the module.",
    "projection": "Queries, keys, values and the joined heads each go through their own matrix.",
    "counting": "Count matrix by matrix: inputs times outputs, and a bias only where there is one.",
    "off by one": "Check the first and the last position by hand.",
    "position": "A position encoding must use the position that the token really has.",
    "frequency": "Pair i turns at 10000^(-2i/d): the first pair fastest, the last one slowest.",
    "sine and cosine": "Sines stand in the even columns and cosines in the odd ones, in turn.",
    "state": "A recurrent state is handed on: step t starts from what step t - 1 left.",
    "teacher forcing": "The decoder reads the sentence from <bos> and predicts it up to <eos>.",
    "padding in the loss": "Padding is no prediction: it counts neither above nor below the line.",
    "averaging": "Know what a mean is taken over: everything in the sum must be in the count.",
    "clipping": "An n-gram scores at most as often as it stands in the reference.",
    "length": "Short translations are punished, long ones are already punished by precision.",
    "stopping": "Decoding ends at <eos> or after the largest allowed number of tokens.",
    "prefix": "The next token depends on everything decoded so far.",
    "log probabilities": "Probabilities multiply along a sentence, so their logarithms add.",
    "search": "A beam keeps the best continuations of all beams together.",
    "cache": "A cache grows along the positions and holds the keys and values of every step.",
    "importance": "A word matters by what the whole scores minus what is left without it.",
    "masked tokens": "Chosen tokens count in the loss: 80 % masked, 10 % replaced, 10 % kept.",
    "sampling": "Temperature, then the cut, then a softmax over the tokens that are left.",
    "perplexity": "Perplexity is e to the mean negative log-probability of a token.",
    "locality": "The nearer the key, the larger its weight.",
    "self exclusion": "A point that may use its own value learns to copy it.",
    "variance": "Variances of independent terms add; a factor enters the variance squared.",
    "smoothing": "A smoothed target still sums to 1: what the others get, the right token gives.",
    "learning rate": "It rises in a line to the peak, and the decay starts from there.",
    "gradient": "Gradients of the parts of a batch add up until the one update.",
    "gradient norm": "One factor for all gradients, and only when their joint norm is too large.",
    "memory": "Bytes are entries times bytes per entry: 4 in float32, 2 in half precision.",
    "pipeline": "A stage waits for the stages before it, and later for those behind it.",
    "norm statistics": "LayerNorm takes one mean and one variance per token, over its features.",
    "scale and shift": "After normalising, gamma scales each feature and then beta shifts it.",
    "norm place": "Post-norm normalises the sum, pre-norm what the sub-layer reads.",
    "activation": "Without an activation between them, two linear layers are one.",
    "residual": "A residual connection adds the stream as it was before the sub-layer.",
    "block order": "Attention first, then the network; each reads what the last one left.",
    "patches": "A patch keeps its rows and columns together; patches follow each other row by row.",
    "class token": "The class token stands at 0, with a position of its own; patches begin at 1.",
    "frozen base": "The pre-trained weights stay as they are; only what is added is trained.",
    "neutral start": "The way up starts at zero, the way down does not: at first nothing changes.",
    "low rank": "LoRA adds alpha / r times B A: down to r numbers, then up again.",
    "preference": "What counts is the reward of the preferred answer minus that of the other.",
    "reference policy": "The KL term is the policy's mean of log policy minus log reference.",
    "merges": "Learn the most frequent pair first; encode with merges in the order of learning.",
    "bytes": "A character may take up to four bytes: count, cut and decode with that in mind.",
}

ASKS = ("build", "practice", "transfer")  # what an exercise is for


@dataclass(frozen=True, eq=False)
class Mistake:
    """One form of a known mistake: name and reason are shown, the tag is counted.

    `of_two` tells that it is two slips on the way to a typed number, which others may lead to, too.
    """

    name: str
    tag: str
    why: str
    switches: dict[str, Any]
    of_two: bool = False


@dataclass(frozen=True)
class WrongAnswer:
    """A known wrong answer and the names it must get."""

    name: str
    message: str
    tags: tuple[str, ...]
    mistakes: tuple[str, ...]
    answer: Any


def wrong(name: str, tag: str, why: str, *other_forms: dict, **switches) -> list[Mistake]:
    """One short entry for one known mistake.

    Args:
        name: what is wrong, as a clause.
        tag: its kind, one of TAGS.
        why: one sentence that says what was done and what is due.
        other_forms: more switches, added one by one, with which the same mistake looks different.
        switches: what makes the mistake out of the reference; `answer=` for a value.

    Raises:
        ValueError: the tag is unknown, or no switch is given.
    """
    if tag not in TAGS:
        raise ValueError(f"unknown tag {tag!r} for {name!r}; the tags are {sorted(TAGS)}")
    if not switches:
        raise ValueError(f"the mistake {name!r} turns no switch of the reference")
    return [Mistake(name, tag, why, switches | form) for form in ({}, *other_forms)]


def call(answer: Callable, *args):
    """How an answer that is a function is played."""
    return answer(*args)


@dataclass(frozen=True, eq=False)
class Exercise:
    """Everything that belongs to one exercise; see `exercise` for the fields."""

    name: str
    notebook: str
    minutes: int
    difficulty: int
    trains: str
    text: str
    solution: Any
    reference: Any
    mistakes: tuple[Mistake, ...]
    probes: tuple[tuple, ...]
    edges: tuple[tuple[str, tuple], ...]
    hints: tuple[str, ...]
    right_variants: tuple
    kind: str
    play: Callable
    forbids: tuple[str, ...]
    too_large: tuple[str, tuple[int, ...]] | None
    map_of: Callable | None
    allows: Callable | None
    asks: str

    def variant(self, **switches) -> Any:
        """The reference with some switches turned: something that can be given to `check`."""
        if self.kind == "value":
            return switches.get("answer", self.solution())
        if self.kind == "class":
            return type(self.reference.__name__, (self.reference,), switches)
        return functools.partial(self.reference, **switches)

    @property
    def tags(self) -> tuple[str, ...]:
        """The kinds of its known mistakes."""
        return tuple(sorted({m.tag for m in self.mistakes}))

    def argument(self, i: int) -> str:
        """The name of argument `i` of a probe."""
        return self._arguments[i]

    @functools.cached_property
    def _arguments(self) -> list[str]:
        if self.kind == "function" and self.play is call:
            return list(inspect.signature(self.solution).parameters)
        return list(inspect.signature(self.play).parameters)[1:]  # the first is the answer

    @functools.cached_property
    def wrong_answers(self) -> tuple[WrongAnswer, ...]:
        """The known single mistakes in all their forms, each as an answer that `check` names."""
        return tuple(self.combine(mistake) for mistake in self.mistakes)

    def pairs(self) -> list[tuple[Mistake, Mistake]]:
        """The mistakes that can be made together, because they turn different switches."""
        return [
            (a, b)
            for a, b in itertools.combinations(self.mistakes, 2)
            if self.kind != "value"
            and a.name != b.name
            and not a.switches.keys() & b.switches.keys()
        ]

    def combine(self, *mistakes: Mistake) -> WrongAnswer:
        """The wrong answer that makes all the given mistakes."""
        switches = {key: value for m in mistakes for key, value in m.switches.items()}
        return WrongAnswer(
            name=" + ".join(m.name for m in mistakes),
            message=" ".join(m.why for m in mistakes),
            tags=tuple(m.tag for m in mistakes),
            mistakes=tuple(m.name for m in mistakes),
            answer=self.variant(**switches),
        )


REGISTRY: dict[str, Exercise] = {}


def exercise(
    *,
    notebook: str,
    minutes: int,
    difficulty: int,
    trains: str,
    text: str,
    mistakes: Sequence[list[Mistake]],
    hints: Sequence[str],
    reference: Any = None,
    probes: Sequence[tuple] = ((),),
    edges: Sequence[tuple[str, tuple]] = (),
    right_variants: Sequence = (),
    kind: str = "function",
    play: Callable | None = None,
    forbids: Sequence[str] = (),
    too_large: tuple[str, tuple[int, ...]] | None = None,
    map_of: Callable | None = None,
    allows: Callable | None = None,
    asks: str = "build",
):
    """Register the decorated function or class as the solution of an exercise.

    Args:
        notebook: its stem, "02_masked_softmax".
        minutes, difficulty, trains: for the learner; difficulty is 1 to 3.
        text: the task in Markdown. The docstring of the solution says the shapes.
        mistakes: what `wrong` returned, one entry each.
        hints: at least three, the last of which still leaves something to do.
        reference: right with its default switches; for a class, a class with class attributes;
            for a value, none.
        probes: tuples of arguments, the smallest first.
        edges: further inputs, each after what is special about it ("where `x` is empty"), tried
            only on an answer that is right on the probes.
        right_variants: differently written right answers.
        kind: "function", "class", or "value" for an answer that is typed in; a value's solution is
            a function of no arguments.
        play: `play(answer, *args)` gives what is compared; a function is simply called.
        forbids: functions of torch that the text rules out: "layer_norm", or with a keyword
            "cross_entropy(label_smoothing)".
        too_large: a tensor that the text rules out, in words, and sizes that it has on probe 0.
        map_of: takes from an outcome the attention map (Tq, Tk) to draw.
        allows: `allows(*args)` says whether the text allows an input, in what no shape tells: ids
            that differ, a table with a row for each token.
        asks: one of ASKS: "practice" for what a function of the chapter answers as it is,
            "transfer" for what no cell of the chapter holds, else "build".

    Raises:
        ValueError: another exercise has this name, or `asks` is none of ASKS.
    """
    if asks not in ASKS:
        raise ValueError(f"asks is one of {', '.join(ASKS)}, not {asks!r}")

    def register(solution):
        name = solution.__name__
        if name in REGISTRY and REGISTRY[name].notebook != notebook:
            raise ValueError(f"two exercises are called {name!r}")
        REGISTRY[name] = Exercise(
            name=name,
            notebook=notebook,
            minutes=minutes,
            difficulty=difficulty,
            trains=trains,
            text=inspect.cleandoc(text),
            solution=solution,
            reference=reference,
            mistakes=tuple(itertools.chain(*mistakes)),
            probes=tuple(probes),
            edges=tuple(edges),
            hints=tuple(hints),
            right_variants=tuple(right_variants),
            kind=kind,
            play=play or (_the_value if kind == "value" else call),
            forbids=tuple(forbids),
            too_large=too_large,
            map_of=map_of,
            allows=allows,
            asks=asks,
        )
        return solution

    return register


def _the_value(answer):
    return Typed(answer) if type(answer) is float else answer
