"""Lessons open unchanged in JupyterLab, and leave no difference when they are saved unchanged.

When a kernel starts, JupyterLab writes into the notebook what it says of its language, with the
version of Python, and marks the notebook as unsaved. The lessons hold the language's name alone,
which is true for every Python; here the rest is given to JupyterLab and not written to the file.
Nor is `collapsed`, the former name of `outputs_hidden`, which JupyterLab sets beside it.
"""

from ipykernel.ipkernel import IPythonKernel
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager

STORED = {"name": "python"}
SAID = dict(IPythonKernel.language_info)


def swap(notebook: dict, old: dict, new: dict) -> None:
    """Give a notebook one description of its language for another."""
    if notebook["metadata"].get("language_info") == old:
        notebook["metadata"]["language_info"] = dict(new)


def is_whole_notebook(model: dict) -> bool:
    return model.get("type") == "notebook" and bool(model.get("content"))


class LessonContents(AsyncLargeFileManager):
    """JupyterLab's own files, but for what stands in notebooks of their language."""

    async def get(self, path, *args, **options):
        model = await super().get(path, *args, **options)
        if is_whole_notebook(model):
            swap(model["content"], STORED, SAID)
        return model

    async def save(self, model, path=""):
        if is_whole_notebook(model):
            swap(model["content"], SAID, STORED)
            for cell in model["content"]["cells"]:
                hidden = cell["metadata"].get("jupyter", {}).get("outputs_hidden")
                if hidden is not None and cell["metadata"].get("collapsed") == hidden:
                    del cell["metadata"]["collapsed"]
        return await super().save(model, path)
