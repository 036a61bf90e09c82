"""The picture of feedback in the README: an answer with a mistake, and what `check` says to it."""

import textwrap
from functools import cache
from html import escape

from course_utils.checker import catalogue
from course_utils.checker.judge import judge_answer
from course_utils.checker.report import Result

EXERCISE = "into_heads"
ANSWER = """\
def into_heads(x, num_heads):
    B, T, d = x.shape
    return x.view(B, num_heads, T, d // num_heads)
"""
COLUMNS, LINE, LETTER = 86, 21, 8.45  # characters of a line, its height and a letter's width
STYLE = """
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #24292f; white-space: pre }
.wrong { fill: #a33b00; font-weight: 600 } .name { font-weight: 600 } .code { fill: #0b3d66 }
rect { fill: #ffffff; stroke: #d0d7de }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .wrong { fill: #ffa657 } .code { fill: #9ecbff }
  rect { fill: #15181c; stroke: #3d444d }
}
"""  # noqa: E501


@cache
def feedback_picture() -> tuple[str, str]:
    """The SVG, made by running the check, and its alt text."""
    exercise = next(e for e in catalogue() if e.name == EXERCISE)
    names: dict = {}
    exec(ANSWER, names)  # our own three lines, above
    said = repr(Result(exercise, judge_answer(exercise, names[EXERCISE], seconds=60.0)))
    lines = [("code", line) for line in [*ANSWER.splitlines(), "", f"check({EXERCISE})"]]
    lines.append(("", ""))
    for number, line in enumerate(said.splitlines()):
        kind = "wrong" if number == 0 else "name" if number == 2 else ""
        indent = line[: len(line) - len(line.lstrip())]
        for part in textwrap.wrap(line, COLUMNS, subsequent_indent=indent) if kind else [line]:
            lines.append((kind, part))
    mistake = said.splitlines()[2].strip()
    alt = f"An answer to the exercise {EXERCISE} with a mistake, and what check says: {mistake}"
    width, height = round(COLUMNS * LETTER + 40), 28 + LINE * len(lines)
    texts = "".join(
        f'<text x="20" y="{30 + LINE * i}" class="{kind}" xml:space="preserve">'
        f"{escape(line)}</text>"
        for i, (kind, line) in enumerate(lines)
    )
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img"><title>{escape(alt)}</title>'
        f'<style>{STYLE}</style><rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" '
        f'rx="8"/>{texts}</svg>\n'
    )
    return svg, alt
