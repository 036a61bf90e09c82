"""Where the course lies on the web: `Repository`, and `Homepage` of its site, in [project.urls].

While pyproject.toml names none, nothing points there.
"""

import re
from pathlib import Path

from course_utils.environment import ROOT


def setting(name: str, root: Path = ROOT) -> str | None:
    """An address of [project.urls] in pyproject.toml, without a slash at its end, or None."""
    file = root / "pyproject.toml"
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    _, _, table = text.partition("\n[project.urls]")
    found = re.search(rf'^{name} *= *"([^"]+)"', table.partition("\n[")[0], re.MULTILINE)
    return found[1].rstrip("/") if found else None


def repository(root: Path = ROOT) -> str | None:
    """Where the files lie, such as https://github.com/someone/course."""
    return setting("Repository", root)


def notebook_links(address: str, file: str) -> dict[str, str]:
    """Where a notebook of a repository can be seen and run: {name: address}.

    Colab and Binder open repositories of GitHub alone.
    """
    links = {"Source": f"{address}/blob/main/notebooks/{file}"}
    if hub := re.fullmatch(r"https://github\.com/([^/]+/[^/]+?)(?:\.git)?", address):
        links["Colab"] = (
            f"https://colab.research.google.com/github/{hub[1]}/blob/main/notebooks/{file}"
        )
        links["Binder"] = f"https://mybinder.org/v2/gh/{hub[1]}/main?labpath=notebooks%2F{file}"
    return links
