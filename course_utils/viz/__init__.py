"""Figures of the course: heatmaps with real tokens, masks, curves and bars.

Nothing here opens a window or touches pyplot: a figure is drawn, shown as a PNG in the running
notebook, and let go. Each figure carries alt text made from its own data.
"""

from course_utils.viz.alt_text import read_heatmap, read_mask
from course_utils.viz.charts import plot_bars, plot_curves, plot_spread
from course_utils.viz.heatmaps import show_heatmaps, show_mask
from course_utils.viz.in_notebook import display_figure
from course_utils.viz.style import new_figure, use_course_style

__all__ = [
    "display_figure",
    "new_figure",
    "plot_bars",
    "plot_curves",
    "plot_spread",
    "read_heatmap",
    "read_mask",
    "show_heatmaps",
    "show_mask",
    "use_course_style",
]
