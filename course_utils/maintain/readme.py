"""The parts of the README that are made from something else, each between two marks."""

from course_utils.bench import measured
from course_utils.chapters import by_part, measured_costs
from course_utils.cli.notebooks import in_words
from course_utils.environment import ROOT
from course_utils.maintain import ledger
from course_utils.viz.drawings import figure_markdown

README = ROOT / "README.md"


def chapters(notebooks: str, figures: str) -> str:
    """The map, and a table with a row for each chapter.

    Args:
        notebooks, figures: the folders as a link writes them, such as "../figures/".
    """
    costs = measured_costs()
    lines = [
        "| | chapter | its question, and what you build and see | runs in |",
        "|---|---|---|---|",
    ]
    for part, members in by_part():
        lines.append(f"| | **{part}** | | |")
        for c in members:
            name = f"[{c.title}]({notebooks}{c.file}) {c.chinese}".rstrip()
            cost = in_words(costs[c.file]) if c.file in costs else "not measured yet"
            lines.append(f"| {c.number} | {name} | **{c.question}** {c.builds} | {cost} |")
    return f"{figure_markdown('course_map.svg', figures)}\n\n" + "\n".join(lines)


def parts() -> dict[str, str]:
    """What is to stand between the marks, by their name."""
    return {
        "chapters": chapters("notebooks/", "figures"),
        "coverage of the notes": ledger.summary(ledger.rows_with_cells()),
        "measured speed": measured.as_markdown(measured.kept_records()),
    }


def with_part(text: str, name: str, part: str) -> str:
    """The text with this part between its two marks.

    Raises:
        ValueError: there are no such marks in it.
    """
    start, end = f"<!-- {name}, written by make sync -->", f"<!-- end of {name} -->"
    before, begun, rest = text.partition(start)
    _, ended, after = rest.partition(end)
    if not (begun and ended):
        raise ValueError(f"the lines {start} and {end} are missing: the part between them is made")
    return f"{before}{start}\n\n{part}\n\n{end}{after}"
