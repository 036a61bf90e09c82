"""Write a verdict as plain text and as HTML. No meaning is carried by colour alone."""

from html import escape
from typing import Any

import torch
from torch import Tensor

from course_utils.checker import source
from course_utils.checker.called_with import one_call, own_arguments
from course_utils.checker.exercise import Exercise
from course_utils.checker.properties import is_of_properties
from course_utils.checker.shown import number, show
from course_utils.checker.values import Raised, gap, numbers_in
from course_utils.checker.verdict import Case, Verdict
from course_utils.checker.wording import capital, mistakes_are

_HEADS = {
    "right": ("✓", "right"),
    "mistake": ("✗", "not right yet, and here is why"),
    "wrong": ("✗", "not right yet"),
    "error": ("✗", "it stops with an error"),
    "time": ("✗", "it takes too long"),
    "borrowed": ("○", "the numbers are right, but not by your own work"),
    "unfinished": ("○", "the line with `raise NotImplementedError` is still run"),
    "not attempted": ("○", "not attempted yet"),
    "not checked": ("○", "nothing was checked"),
}
_MOST_ENTRIES = 8  # of a batch, in which a map that differs is looked for
_MOST_NUMBERS = 24  # of an argument of an answer that raised: of a larger one its shape is shown
_PRE = "margin:0;background:transparent;color:inherit"
_BORDERS = {"✓": "#1b7f5c", "✗": "#b3541e", "○": "#767676"}


_WITH_HELP = ("mistake", "wrong", "error", "time", "borrowed")


class Result:
    """What `check` returns: shown as HTML in a notebook, as text elsewhere, true when right."""

    def __init__(self, exercise: Exercise, verdict: Verdict, note: str = ""):
        self.exercise, self.verdict, self._note = exercise, verdict, note

    @property
    def status(self) -> str:
        """See `Verdict.status`."""
        return self.verdict.status

    @property
    def mistakes(self) -> tuple[str, ...]:
        """The names of the mistakes that were recognised."""
        return tuple(m.name for m in self.verdict.mistakes)

    def __bool__(self) -> bool:
        return self.status == "right"

    def __repr__(self) -> str:
        lines = [self._headline(), *("  " + line for line in self._sentences())]
        rows = self._case_rows()
        width = max([len("expected"), *(len(label) for label, _ in rows)]) + 2
        for label, text in rows:
            lines.append(f"  {label:<{width}}" + text.replace("\n", "\n" + " " * (width + 2)))
        lines += ["  " + line for line in self._map_lines()]
        lines += ["  " + line for line in self._last_lines()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        border = _BORDERS[_HEADS[self.status][0]]
        parts = [f"<p><strong>{escape(self._headline())}</strong></p>"]
        parts += [f"<p>{_code(line)}</p>" for line in self._sentences()]
        rows = "".join(
            f'<tr><th scope="row" style="text-align:left;vertical-align:top;white-space:nowrap">'
            f'{escape(label)}</th><td style="text-align:left"><pre style="{_PRE}">{escape(text)}'
            "</pre></td></tr>"
            for label, text in self._case_rows()
        )
        if rows:
            caption = escape(self._caption())
            parts.append(
                f'<table><caption style="text-align:left;white-space:nowrap">{caption}</caption>'
                f"{rows}</table>"
            )
        parts.append(self._maps_html())
        if self.status in _WITH_HELP:
            parts.append(_folded(self.exercise))
        parts += [f"<p>{_code(line)}</p>" for line in self._last_lines(self.status in _WITH_HELP)]
        return (
            f'<div role="group" aria-label="check of {escape(self.exercise.name)}" '
            f'style="border-left:4px solid {border};padding-left:1em">{"".join(parts)}</div>'
        )

    def draw(self) -> None:
        """Show the right attention map and the given one as figures, where there are any."""
        from course_utils.viz import show_heatmaps  # matplotlib is loaded only when asked for

        maps = self._maps()
        if maps is not None:
            show_heatmaps(
                torch.stack(maps)[None],
                xlabel="keys",
                ylabel="queries",
                titles=["expected", "given"],
            )

    def _headline(self) -> str:
        mark, words = _HEADS[self.status]
        words += ", and here is what was found" if self.verdict.measured else ""
        return f"{mark} {self.exercise.name}: {words}"

    def _sentences(self) -> list[str]:
        """The names with their reasons, then what was measured, then the facts."""
        named = [f"{capital(m.name)}. {m.why}" for m in self.verdict.mistakes]
        if named and self.verdict.mistakes[0].of_two:
            named.insert(0, "One way to this number:")
        elif named and self.verdict.whole:
            open_task = is_of_properties(self.verdict.case and self.verdict.case.expected)
            what = "Your result is what comes out"  # of properties very different results may agree
            what = "The same properties are lacking" if open_task else what
            named.insert(0, f"{what} when {mistakes_are(len(named))} made:")
        elif named:
            named.insert(0, capital(f"{mistakes_are(len(named))} made:"))
        facts = [*self.verdict.measured, *self.verdict.facts]
        if named and self.verdict.whole and facts:
            facts[0] = f"and besides: {facts[0]}"
        return named + [capital(fact) + ("" if fact[-1] in ".?!" else ".") for fact in facts]

    def _caption(self) -> str:
        one_value = self.exercise.kind == "value"
        return "What you gave" if one_value else "The smallest input on which it shows"

    def _case_rows(self) -> list[tuple[str, str]]:
        case = self.verdict.case
        if case is None:
            return []
        if self.exercise.kind == "value":  # the right value is not given away
            small = isinstance(case.given, float) and 0 < abs(case.given) < 1e-3
            return [("given", f"{case.given:.4g}" if small else show(case.given))]
        expected, given, index = case.expected, case.given, case.index
        many = isinstance(expected, list) and isinstance(given, list) and index
        own = one_call(self.exercise, case.args, index[0]) if many else []
        if own:
            expected, given, index = expected[index[0]], given[index[0]], index[1:]
        own = own or own_arguments(self.exercise, case.args)
        named = own or [(self.exercise.argument(i), arg) for i, arg in enumerate(case.args)]
        rows = [(name, self._argument(arg)) for name, arg in named]
        if self.status != "time":
            expected, given, equal = _without_equal_parts(expected, given)
            equal = [part for part in equal if part in self.verdict.held]
            rows.append(("expected", show(expected, index)))
            rows.append(("given", show(given, index)))
            rows += [("right already", ", ".join(equal))] if equal else []
        return rows

    def _argument(self, value: Any) -> str:
        large = isinstance(self.verdict.case.given, Raised) and numbers_in(value) > _MOST_NUMBERS
        return (
            f"of shape {tuple(value.shape)}" if large and isinstance(value, Tensor) else show(value)
        )

    def _maps(self) -> list[Tensor] | None:
        """The right map and the given one, when both are maps of one shape."""
        case: Case | None = self.verdict.case
        if case is None or self.exercise.map_of is None:
            return None
        pairs = [self._maps_of_entry(case, b) for b in range(_MOST_ENTRIES)]
        differ = (p for p in pairs if p is not None and gap(*p).size > 1)
        return next(differ, pairs[0])  # of a batch, the first entry whose maps differ

    def _maps_of_entry(self, case: Case, b: int) -> list[Tensor] | None:
        try:
            right, given = (self.exercise.map_of(_from(x, b)) for x in (case.expected, case.given))
            fits = right.shape == given.shape and right.dim() == 2 and not given.is_complex()
        except (AttributeError, IndexError, KeyError, TypeError):
            return None
        return [right.double(), given.double()] if fits and right.numel() <= 64 else None

    def _map_lines(self) -> list[str]:
        maps = self._maps()
        if maps is None:
            return []
        left, right = ([" ".join(f"{x:6.2f}" for x in row) for row in m.tolist()] for m in maps)
        width = len(left[0])
        head = f"{'expected map':<{width}}   |   given map   (rows are queries, columns keys)"
        return [head, *(f"{a}   |   {b}" for a, b in zip(left, right, strict=True))]

    def _maps_html(self) -> str:
        maps = self._maps()
        if maps is None:
            return ""
        tables = (
            _map_table(m, (m - maps[0]).abs() > 0.005, title)
            for m, title in zip(maps, ("expected map", "given map"), strict=True)
        )
        marked = "<p>* differs from what is expected</p>"
        return f'<div style="display:flex;gap:2em;flex-wrap:wrap">{"".join(tables)}</div>{marked}'

    def _last_lines(self, help_is_there: bool = False) -> list[str]:
        lines = []
        if self.verdict.printed:
            lines.append(f"It printed: {self.verdict.printed}")
        if self.verdict.tried:
            lines.append(f"It gave what is due on {self.verdict.tried} inputs, small and large.")
        if self.status not in ("right", "not checked") and not help_is_there:
            lines.append(
                f"`hint({self.exercise.name!r})` shows the next of "
                f"{len(self.exercise.hints)} hints."
            )
        return lines + ([self._note] if self._note else [])


def _without_equal_parts(expected: Any, given: Any) -> tuple[Any, Any, list[str]]:
    """What differs of two results with named parts, and the names of the parts that are equal."""
    named = isinstance(expected, dict) and isinstance(given, dict)
    if not named or expected.keys() != given.keys():
        return expected, given, []
    equal = [key for key in expected if gap(expected[key], given[key]).size <= 1]
    if len(equal) == len(expected):
        return expected, given, []
    return *({k: x[k] for k in x if k not in equal} for x in (expected, given)), equal


def _from(outcome: Any, b: int) -> Any:
    """An outcome whose batches start at entry b, so that this is the one a map is taken of."""
    if isinstance(outcome, Tensor):
        return outcome[b:] if outcome.dim() > 2 else outcome
    return [_from(item, b) for item in outcome] if isinstance(outcome, list) else outcome


def _folded(exercise: Exercise) -> str:
    """The hints and the solution, each folded inside the one before it."""
    steps = [(f"Hint {i} of {len(exercise.hints)}", f"<p>{_code(text)}</p>")
             for i, text in enumerate(exercise.hints, 1)]  # fmt: skip
    html = ""
    for head, body in reversed([*steps, ("Solution", coloured(source.solved(exercise)))]):
        html = f'<details style="margin-left:1em"><summary>{head}</summary>{body}{html}</details>'
    return html


def coloured(code: str) -> str:
    """Python code as HTML, on a light ground of its own, so that it reads in any theme."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    style = "background:#f8f8f8;color:#1a1a1a;padding:0.5em"
    return highlight(code, PythonLexer(), HtmlFormatter(noclasses=True, cssstyles=style))


class Text(str):
    """A text that a notebook shows as it is, without quotation marks."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f'<pre style="white-space:pre-wrap">{escape(self)}</pre>'


class Source(Text):
    """Python code, coloured in a notebook."""

    def _repr_html_(self) -> str:
        return coloured(self)


def _map_table(weights: Tensor, differs: Tensor, title: str) -> str:
    """A map as a table: shaded, with its numbers, an asterisk where it differs."""
    rows = []
    for q, row in enumerate(weights.tolist()):
        cells = "".join(
            f'<td style="{_shade(x)}">{number(round(x, 2))}{"*" if differs[q, k] else ""}</td>'
            for k, x in enumerate(row)
        )
        rows.append(f'<tr><th scope="row">query {q}</th>{cells}</tr>')
    keys = "".join(f'<th scope="col">key {k}</th>' for k in range(weights.shape[1]))
    return f"<table><caption>{title}</caption><tr><td></td>{keys}</tr>{''.join(rows)}</table>"


def _shade(x: float) -> str:
    """Light for 0, dark for 1, with text that stays readable on it."""
    level = min(max(x, 0.0), 1.0) if x == x else 0.0
    red, green, blue = (round(255 + level * (dark - 255)) for dark in (8, 48, 107))
    text = "#ffffff" if level > 0.5 else "#000000"
    return f"background:rgb({red},{green},{blue});color:{text};text-align:right"


def _code(line: str) -> str:
    """Escape a line and set what stands between backticks as code."""
    pieces = escape(line).split("`")
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces))
