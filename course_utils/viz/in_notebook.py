"""Show a finished figure in the running notebook, with alt text, and let it go."""

import base64
import io
import sys

from PIL import Image

from course_utils.viz.style import use_course_style


def display_figure(figure, alt, summary="1 chart"):
    """Show `figure` as a PNG in the running notebook; outside a notebook nothing is shown.

    alt      says what the figure shows, for those who cannot see it. It travels in the output's
             metadata (`image/png` -> `alt`), the place that Jupyter has for it.
    summary  a few words that are the same on each run; they become the output's plain text,
             `<Figure: ...>`, which the notebook tests compare.

    The figure is closed if pyplot knows it, so drawing in a loop piles up nothing.
    """
    if not alt or not alt.strip():
        raise ValueError("this figure has no alt text: pass alt='what the figure shows'")
    shell = _kernel()
    if shell is not None:
        shell.display_pub.publish(
            data={
                "image/png": base64.b64encode(png_bytes(figure)).decode("ascii"),
                "text/plain": f"<Figure: {summary}>",
            },
            metadata={"image/png": {"alt": alt}},
        )
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close(figure)


def png_bytes(figure):
    """The figure as the bytes of a PNG file, the same bytes for the same figure.

    256 colours, chosen so that none is off by more than a few steps of 255, look the same as
    all of them and make the file a third as large.
    """
    drawn, small = io.BytesIO(), io.BytesIO()
    with use_course_style():
        figure.savefig(drawn, format="png")
    image = Image.open(drawn).convert("RGB")
    image = image.quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
    image.save(small, "PNG", optimize=True)
    return small.getvalue()


def _kernel():
    """The IPython shell of a Jupyter kernel, or None in a script, a test or a terminal."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell if getattr(shell, "kernel", None) is not None else None
