"""The page of a class: one HTML file that needs nothing else; for screens, phones, projectors."""

from functools import cache
from html import escape

from course_utils.checker.exercise import TAGS, Exercise
from course_utils.checker.shown import show
from course_utils.checker.values import gap
from course_utils.checker.verdict import outcome_of

_STYLE = """
:root { color-scheme: light dark; --line: #8886; --bar: #2a6f97; --soft: #8882; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 64rem; margin: 0 auto; padding: 1rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); }
td:last-child { min-width: 14rem; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
.bar { display: inline-block; width: 6rem; height: .7rem; background: var(--soft); }
.bar i { display: block; height: 100%; background: var(--bar); }
details { border-left: 3px solid var(--line); padding-left: .8rem; margin: .4rem 0; }
summary { cursor: pointer; }
pre { background: var(--soft); padding: .5rem; overflow-x: auto; }
a { color: inherit; }
body:has(#project:checked) { font-size: 1.6rem; max-width: none; }
body:has(#project:checked) .who { display: none; }
"""


def page(found) -> str:
    """The whole page of a `class_report.Class`."""
    tried = [e for e in found.exercises if found.tried(e.name)]
    body = "".join(
        (
            "<h1>What the class has done</h1>",
            f"<p>{len(found.learners)} learners, {len(tried)} of {len(found.exercises)} exercises "
            "tried.</p>",
            '<p><label><input type="checkbox" id="project"> To project: large, without names'
            "</label></p>",
            _again(found),
            _exercises(found, tried),
            "".join(_exercise(found, e) for e in tried),
            _learners(found, tried),
            _skipped(found),
        )
    )
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>The class</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body>{body}</body></html>"
    )


def _again(found) -> str:
    """What to explain again: the exercise where most are stuck, the kinds of mistakes, guesses."""
    stuck = max(found.exercises, key=lambda e: found.stuck(e.name), default=None)
    lines = []
    if stuck and found.stuck(stuck.name):
        lines.append(
            f"<p>Most are stuck at {_link(stuck.name)}: {found.stuck(stuck.name)} learners have "
            "tried it three times or more and have not solved it.</p>"
        )
    kinds = sorted(found.kinds.items(), key=lambda item: (-len(item[1]), item[0]))[:8]
    if kinds:
        rows = [(escape(tag), len(who), who.total(), escape(TAGS[tag])) for tag, who in kinds]
        lines.append(_table(("kind of mistake", "learners", "answers", "what holds"), rows))
    if found.guesses:
        wrong = ", ".join(f"{escape(what)} ({n})" for what, n in found.guesses.most_common(8))
        lines.append(f"<p>Guessed otherwise than it came out: {wrong}.</p>")
    return f"<h2>To explain again</h2>{''.join(lines) or '<p>No mistakes so far.</p>'}"


def _exercises(found, tried: list[Exercise]) -> str:
    rows = []
    for e in tried:
        own = found.tried(e.name)
        solved = sum(t.solved for t in own.values())
        common = found.mistakes(e.name).most_common(1)
        bar = f'<span class="bar"><i style="width:{100 * solved / len(own):.0f}%"></i></span>'
        rows.append(
            (e.notebook, _link(e.name), len(own), f"{solved} {bar}", f"{found.median(e.name):g}",
             found.stuck(e.name), f"{escape(common[0][0])} ({common[0][1]})" if common else "")
        )  # fmt: skip
    heads = ("chapter", "exercise", "tried", "solved", "usual tries", "stuck", "commonest mistake")
    return "<h2>Exercises</h2>" + _table(heads, rows)


def _exercise(found, e: Exercise) -> str:
    """One exercise: its mistakes with an example each, and who did what."""
    known = {m.name: m for m in e.mistakes}
    mistakes = "".join(
        f"<li>{escape(name)} ({n}){_example(e, known[name]) if name in known else ''}</li>"
        for name, n in found.mistakes(e.name).most_common()
    )
    who = ", ".join(
        f'<a href="#{_key("who", name)}">{escape(name)}</a> ({"✓ " if t.solved else ""}{t.tries})'
        for name, t in found.tried(e.name).items()
    )
    return (
        f"<details><summary><code>{e.name}</code></summary>"
        f'<div id="{_key("ex", e.name)}"></div>'  # inside, so that a link to it unfolds this
        f"<ul>{mistakes or '<li>no mistake with a name</li>'}</ul>"
        f'<p class="who">Tries of each: {who}</p></details>'
    )


@cache
def _example(e: Exercise, mistake) -> str:
    """What comes out with this mistake where it shows first: an example, nobody's own answer."""
    if e.kind == "value":
        return f"<p>{escape(mistake.why)}</p>"
    for i in range(len(e.probes)):
        due, given = outcome_of(e, (), i), outcome_of(e, (mistake,), i)
        if (found := gap(due, given)).size > 1:
            rows = (("due", show(due, found.index)), ("given", show(given, found.index)))
            text = "\n".join(f"{head:7}" + x.replace("\n", "\n" + 7 * " ") for head, x in rows)
            return f"<p>{escape(mistake.why)}</p><pre>{escape(text)}</pre>"
    return ""


def _learners(found, tried: list[Exercise]) -> str:
    parts = []
    for name, own in found.learners.items():
        solved = sum(t.solved for t in own.values())
        rows = [
            (_link(e.name), "✓" if t.solved else "", t.tries,
             escape(", ".join(f"{m} ({n})" for m, n in t.mistakes.most_common())))
            for e in tried
            if (t := own.get(e.name))
        ]  # fmt: skip
        parts.append(
            f'<details class="who"><summary>{escape(name)}: {solved} solved of {len(own)} tried'
            f'</summary><div id="{_key("who", name)}"></div>'
            f"{_table(('exercise', 'solved', 'tries', 'mistakes'), rows)}</details>"
        )
    return f'<h2 class="who">Learners</h2>{"".join(parts)}'


def _skipped(found) -> str:
    items = "".join(f"<li>{escape(name)}: {escape(why)}</li>" for name, why in found.skipped)
    return f'<div class="who"><h2>Skipped files</h2><ul>{items}</ul></div>' if items else ""


def _link(name: str) -> str:
    return f'<a href="#{_key("ex", name)}"><code>{name}</code></a>'


def _key(kind: str, name: str) -> str:
    return escape(f"{kind}-{name}".replace(" ", "_"), quote=True)


def _table(heads: tuple, rows: list[tuple]) -> str:
    """A table whose cells are HTML already; numbers stand on the right."""
    top = "".join(f'<th scope="col">{head}</th>' for head in heads)
    cells = (
        "".join(f'<td class="n">{x}</td>' if isinstance(x, int) else f"<td>{x}</td>" for x in row)
        for row in rows
    )
    return f"<table><tr>{top}</tr>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"
