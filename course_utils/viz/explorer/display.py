"""How a scene is shown: live where a browser can talk to this kernel, as a picture elsewhere."""

import base64
import os
from collections.abc import Callable
from pathlib import Path

import anywidget
import traitlets

from course_utils.viz.explorer.payload import pack_scene
from course_utils.viz.explorer.picture import draw, summary
from course_utils.viz.explorer.scenes import Scene
from course_utils.viz.in_notebook import png_bytes
from course_utils.viz.pages import scene_script, scene_text, whole_page
from course_utils.viz.scripts import bundle

FOLDER = Path(__file__).parent
NOT_LIVE = "COURSE_HEADLESS"  # set where outputs are stored


class ExplorerWidget(anywidget.AnyWidget):
    """The live figure: `payload` goes to the browser, typed sentences come back as messages.

    Args:
        payload: what `pack_scene` gives.
        again: from a typed sentence to a new payload; its ValueErrors are shown to the learner.
    """

    _esm = f"{bundle(FOLDER / 'explorer.js')}\nexport default {{ render }};\n"
    _css = FOLDER / "explorer.css"
    payload = traitlets.Dict().tag(sync=True)

    def __init__(self, payload: dict, again: Callable[[str], dict] | None = None):
        super().__init__(payload=payload)
        self._again = again
        self.on_msg(self._answer)

    def _answer(self, _widget, content: dict, _buffers) -> None:
        if self._again is None or content.get("type") != "translate":
            return
        try:
            self.payload = self._again(str(content.get("text", "")))
        except ValueError as error:
            self.send({"type": "refused", "why": str(error)})
        else:
            self.send({"type": "translated"})


class Explorer:
    """A scene that shows itself at the end of a cell.

    Its output holds a PNG with alt text and a line of plain text. In a running notebook the live
    figure goes with them, and is what a reader sees; it has an address that is new each time, so
    it is left out where outputs are stored (see NOT_LIVE).

    Args:
        scene: what to show.
        again: from a typed sentence to a new scene, or None.
    """

    def __init__(self, scene: Scene, again: Callable[[str], Scene] | None = None):
        self.scene, self._again = scene, again

    def widget(self) -> ExplorerWidget:
        """A live figure of its own."""
        again = self._again
        own = again and (lambda text: pack_scene(again(text), own_sentences=True))
        return ExplorerWidget(pack_scene(self.scene, own_sentences=again is not None), own)

    def save(self, path: str | os.PathLike) -> Path:
        """Write the figure as one HTML page that needs nothing else, to keep or to send.

        Sentences of one's own cannot be typed there: that takes the model.

        Raises:
            OSError: the file cannot be written.
        """
        path = Path(path)
        text = scene_text(pack_scene(self.scene))
        body = '<div data-scene="#scene"></div>\n<noscript>This needs JavaScript.</noscript>'
        title = f"Attention: {self.scene.source}" if self.scene.source else "Attention of a layer"
        about = "Touch a token to see what it looks at, and unfold the arithmetic of a weight."
        page = whole_page(title, about, body, [scene_script("#scene", text)])
        path.write_text(page, encoding="utf-8")
        return path

    def __repr__(self):
        return summary(self.scene)

    def _repr_mimebundle_(self, **_):
        figure, alt = draw(self.scene)
        data = {
            "text/plain": repr(self),
            "image/png": base64.b64encode(png_bytes(figure)).decode("ascii"),
        }
        metadata = {"image/png": {"alt": alt}}
        if os.environ.get(NOT_LIVE):  # a page made of the stored output can be live by this
            metadata["image/png"]["scene"] = scene_text(pack_scene(self.scene))
            return data, metadata
        live, live_metadata = self.widget()._repr_mimebundle_()
        return {**live, **data}, {**live_metadata, **metadata}
