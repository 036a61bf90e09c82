"""The pictures in figures/, each drawn by code: `python -m course_utils figures`."""

from course_utils.diagrams.files import figure_markdown, main, write
from course_utils.diagrams.table import FIGURES

__all__ = ["FIGURES", "figure_markdown", "main", "write"]
