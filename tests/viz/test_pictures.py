"""Pictures with their patches, and maps beneath."""

import numpy as np
import pytest
import torch

from course_utils.viz import pictures
from course_utils.viz.pictures import show_pictures


def test_lines_part_the_patches_and_maps_lie_beneath():
    x, maps = torch.rand(2, 1, 8, 12), torch.eye(6)[:2]
    figure = show_pictures(x, 4, ["a", "b"], maps, show=False)
    above, beneath = figure.axes[:2], figure.axes[2:]
    assert [len(ax.lines) for ax in above] == [3, 3]  # one across, two down
    np.testing.assert_array_equal(above[0].images[0].get_array(), x[0, 0])
    np.testing.assert_array_equal(beneath[1].images[0].get_array(), maps[1].reshape(2, 3))


def test_the_words_say_where_a_map_looks(monkeypatch):
    said = []
    monkeypatch.setattr(pictures, "display_figure", lambda figure, alt, kind: said.append(alt))
    show_pictures(torch.zeros(1, 8, 8), 4, ["a cross"], torch.tensor([[0.1, 0.2, 0.6, 0.1]]))
    assert "a cross: most weight on the patch in row 1, column 0 (0.60 of 1.00)" in said[0]


def test_what_does_not_fit_is_said():
    with pytest.raises(ValueError, match="1 of 8 x 8 pixels need as many titles, got 2"):
        show_pictures(torch.zeros(1, 8, 8), 4, ["a", "b"])
    with pytest.raises(ValueError, match="patches that tile them, got 3"):
        show_pictures(torch.zeros(1, 8, 8), 3, ["a"])
