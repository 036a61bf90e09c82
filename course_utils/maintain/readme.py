"""The parts of the README and its pages that are made from something else, between marks."""

from pathlib import Path

from course_utils.bench import measured
from course_utils.chapters import by_part, measured_costs
from course_utils.cli.addresses import repository
from course_utils.cli.notebooks import in_words
from course_utils.cli.site import OFFER
from course_utils.environment import ROOT
from course_utils.maintain import ledger
from course_utils.maintain.feedback_picture import feedback_picture
from course_utils.maintain.moving_picture import moving_picture
from course_utils.viz.drawings import figure_markdown

README = ROOT / "README.md"
NOTES = ROOT / "course_utils" / "maintain" / "NOTES.md"
SPEED = ROOT / "course_utils" / "bench" / "SPEED.md"
PICTURES = {"live.svg": moving_picture, "feedback.svg": feedback_picture}  # of figures/


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


def parts() -> dict[Path, dict[str, str]]:
    """What is to stand in each file between the marks, by their name."""
    return {
        README: {
            "moving picture": picture("live.svg"),
            "feedback": picture("feedback.svg"),
            "how to get the files": how_to_get_the_files(),
            "chapters": chapters("notebooks/", "figures"),
        },
        NOTES: {"coverage of the notes": ledger.summary(ledger.rows_with_cells())},
        SPEED: {"measured speed": measured.as_markdown(measured.kept_records())},
    }


def picture(name: str) -> str:
    """The line that shows one of PICTURES, with its alt text."""
    return f"![{PICTURES[name]()[1]}](figures/{name})"


def how_to_get_the_files() -> str:
    """The clone line, where pyproject.toml names a repository; else what a reader has by now."""
    if address := repository():
        return f"```bash\ngit clone {address}\n```"
    return f"The whole course is one folder: {OFFER}"


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
