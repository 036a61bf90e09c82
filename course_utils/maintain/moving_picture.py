"""The moving picture of the README: the shipped model says a sentence, one head's weights drawn.

An SVG that moves by itself, with CSS, also where it is shown as an image; who wants no motion sees
the whole sentence at once.
"""

from functools import cache
from html import escape

from course_utils.training.translation import load_translator
from course_utils.viz.explorer.scenes import translation_scene

SENTENCE, LAYER, HEAD = "The black cat is sleeping.", 1, 0
SECONDS = 0.9  # a step
REST = 3  # steps for which the whole sentence stays
ROW, LEFT, RIGHT, WIDTH = 34, 190, 430, 620
FAINTEST = 0.05  # weights below it get no line
STYLE = """
text { font: 18px system-ui, sans-serif; fill: #24292f }
.small { font-size: 14px; fill: #57606a }
.on { fill: #0072b2; font-weight: 600 }
line { stroke: #0072b2; stroke-linecap: round }
@media (prefers-color-scheme: dark) {
  .paper { fill: #15181c } text { fill: #e6edf3 } .small { fill: #9aa4af } .on { fill: #56b4e9 }
  line { stroke: #56b4e9 }
}
@media (prefers-reduced-motion: no-preference) { .word, .now { opacity: 0 } }
"""


@cache
def moving_picture() -> tuple[str, str]:
    """The SVG, the same text each time, and its alt text."""
    scene = translation_scene(load_translator("fra-eng"), SENTENCE)
    cross = scene.families[0]
    weights = cross.weights[LAYER, HEAD].tolist()  # (Tq, Tk)
    steps, length = len(cross.queries), (len(cross.queries) + REST) * SECONDS
    height = 76 + ROW * max(steps, len(cross.keys))
    rules, parts = [STYLE], []
    for t, (said, row) in enumerate(zip(cross.queries, weights, strict=True)):
        rules.append(_rules(t, steps, length))
        word = f'<text x="{LEFT - 12}" y="{_y(t)}" text-anchor="end" class="word w{t}">'
        parts.append(f"{word}{escape(said)}</text>")
        lines = [
            f'<line x1="{LEFT}" y1="{_y(t) - 6}" x2="{RIGHT}" y2="{_y(k) - 6}" '
            f'stroke-width="{1 + 9 * w:.1f}" stroke-opacity="{0.35 + 0.65 * w:.2f}"/>'
            for k, w in enumerate(row) if w >= FAINTEST
        ]  # fmt: skip
        parts.append(f'<g class="now n{t}">{"".join(lines)}</g>')
    english = [f'<text x="{RIGHT + 12}" y="{_y(k)}">{escape(token)}</text>'
               for k, token in enumerate(cross.keys)]  # fmt: skip
    head = (
        f'<text x="{LEFT - 12}" y="28" text-anchor="end" class="small">French, said</text>'
        f'<text x="{RIGHT + 12}" y="28" class="small">English, read</text>'
        f'<text x="{(LEFT + RIGHT) / 2}" y="28" text-anchor="middle" class="small">'
        f"cross-attention, layer {LAYER}, head {HEAD}</text>"
    )
    alt = (
        f"The course's Transformer translates “{scene.source}”: “{scene.said}” comes word by word, "
        "and lines show which English words one head of the cross-attention looks at meanwhile."
    )
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img"><title>{escape(alt)}</title>'
        f"<style>{''.join(rules)}</style>"
        f'<rect class="paper" width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>'
        f"{head}{''.join(english)}{''.join(parts)}</svg>\n"
    )
    return svg, alt


def _y(row: int) -> int:
    return 62 + ROW * row


def _rules(t: int, steps: int, length: float) -> str:
    """A word appears at its step and stays; its lines stand for one step, and all in the rest."""
    begin, end = 100 * t * SECONDS / length, 100 * (t + 1) * SECONDS / length
    rest = 100 * steps * SECONDS / length
    return (
        "@media (prefers-reduced-motion: no-preference) {"
        f"@keyframes w{t} {{ 0%, {begin:.2f}% {{ opacity: 0 }} "
        f"{begin + 0.5:.2f}%, 100% {{ opacity: 1 }} }}"
        f"@keyframes n{t} {{ 0%, {begin:.2f}% {{ opacity: 0 }} {begin + 0.5:.2f}%, {end:.2f}% "
        f"{{ opacity: 1 }} {end + 0.5:.2f}%, {max(rest, end + 0.6):.2f}% {{ opacity: 0.12 }} "
        f"100% {{ opacity: 0.45 }} }}"
        f".w{t} {{ animation: w{t} {length:.1f}s infinite }}"
        f".n{t} {{ animation: n{t} {length:.1f}s infinite }} }}\n"
    )
