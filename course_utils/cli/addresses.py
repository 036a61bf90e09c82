"""Where the course lies on the web: one setting, `Repository` under [project.urls].

While pyproject.toml names none, nothing points there.
"""

import re
from pathlib import Path

from course_utils.environment import ROOT

_SETTING = re.compile(
    r'^\[project\.urls\].*\n(?:[^\[\n].*\n|\n)*?Repository *= *"([^"]+)"', re.MULTILINE
)


def repository(root: Path = ROOT) -> str | None:
    """The address of the repository, such as https://github.com/someone/course, or None."""
    file = root / "pyproject.toml"
    found = _SETTING.search(file.read_text(encoding="utf-8")) if file.is_file() else None
    return found[1].rstrip("/") if found else None


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
