"""Grey pictures with the lines of their patches, and beneath each where a model looks."""

from matplotlib.ticker import NullLocator

from course_utils.viz.arrays import to_array
from course_utils.viz.in_notebook import display_figure
from course_utils.viz.style import SEQUENTIAL, new_figure, use_course_style


def show_pictures(pictures, patch, titles, maps=None, *, show=True, alt=None):
    """Draw pictures side by side; brighter pixels are lighter, lines part the patches.

    pictures  (n, 1, H, W) or (n, H, W)
    patch     pixels a side of a patch
    titles    (n,) words above the pictures
    maps      (n, N) weights of the N patches, row by row; drawn beneath, on one colour scale

    Shows the figure and returns None; with show=False returns the matplotlib Figure.
    Raises ValueError if sizes or numbers of titles and maps do not fit.
    """
    pictures = to_array(pictures, "pictures")
    number, (height, width) = len(pictures), pictures.shape[-2:]
    pictures = pictures.reshape(number, height, width)
    rows, columns = height // patch, width // patch
    if (rows * patch, columns * patch, len(titles)) != (height, width, number):
        raise ValueError(
            f"{number} of {height} x {width} pixels need as many titles, got {len(titles)}, and "
            f"patches that tile them, got {patch}"
        )
    kind = f"{number} picture{'s' if number != 1 else ''}"
    said = [f"{kind} of {height} x {width} pixels in patches of {patch}"]
    if maps is not None:
        maps = to_array(maps, "maps").reshape(number, rows, columns)
        said += [_read(title, one) for title, one in zip(titles, maps, strict=True)]
    else:
        said.append(", ".join(titles))
    with use_course_style():
        lines = 1 if maps is None else 2
        size = (max(2.4, 1.6 * number), 1.9 * lines)
        figure, axes = new_figure(lines, number, size, squeeze=False)
        for ax, picture, title in zip(axes[0], pictures, titles, strict=True):
            ax.imshow(picture, "gray", interpolation="nearest")
            ax.set_title(title, fontsize=9, parse_math=False)
            for edge in range(patch, height, patch):
                ax.axhline(edge - 0.5, color="#E69F00", linewidth=0.7)
            for edge in range(patch, width, patch):
                ax.axvline(edge - 0.5, color="#E69F00", linewidth=0.7)
        for i, ax in enumerate(axes[1] if lines == 2 else ()):
            ax.imshow(maps[i], SEQUENTIAL, vmin=0, vmax=maps.max(), interpolation="nearest")
            ax.set_xlabel(f"largest {maps[i].max():.2f}", fontsize=8)
        for ax in axes.flat:
            ax.xaxis.set_major_locator(NullLocator())
            ax.yaxis.set_major_locator(NullLocator())
            ax.grid(False)
    if not show:
        return figure
    display_figure(figure, alt or ". ".join(said) + ".", kind)
    return None


def _read(title, weights):
    row, column = divmod(int(weights.argmax()), weights.shape[1])
    return (
        f"{title}: most weight on the patch in row {row}, column {column} ({weights.max():.2f} of "
        f"{weights.sum():.2f})"
    )
