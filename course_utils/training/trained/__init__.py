"""Models that ship with the course, each in a folder that says how it was made.

`python -m course_utils translate` and `load_translator("fra-eng")` find them by
name.
"""

from pathlib import Path


def trained_models() -> dict[str, Path]:
    """The model folders by name."""
    here = Path(__file__).parent
    return {path.parent.name: path.parent for path in sorted(here.glob("*/config.json"))}
