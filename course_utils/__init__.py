"""Shared helpers of the course: every finished piece that the notebooks build, in one place."""

__version__ = "0.1.0"
