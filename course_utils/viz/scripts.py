"""One script of several: a page that lies in a file cannot load modules, so it carries them.

A module imports by `import { a, b } from "./file.js";` and exports by `export` before a
declaration. Nothing is renamed, so a name means the same in every module.
"""

import re
from pathlib import Path

_IMPORT = re.compile(r'^import \{[^}]*\} from "(\.[^"]+)";\n', re.MULTILINE)
_LEFT = re.compile(r"^(import\b.*|export (?:default|\{).*)$", re.MULTILINE)


def bundle(entry: Path) -> str:
    """The module `entry` and all that it imports, as one module; each stands before its users.

    Raises:
        ValueError: a module imports or exports in another way, or modules import in a circle.
    """
    parts: dict[Path, str] = {}
    _add(entry.resolve(), parts, ())
    return "\n".join(parts.values())


def _add(path: Path, parts: dict[Path, str], above: tuple[Path, ...]) -> None:
    if path in above:
        raise ValueError(f"{path.name} imports itself, by way of {above[-1].name}")
    if path in parts:
        return
    text = path.read_text(encoding="utf-8")
    for name in _IMPORT.findall(text):
        _add((path.parent / name).resolve(), parts, (*above, path))
    text = re.sub(r"^export (?=(?:async )?(?:function|class|const)\b)", "", _IMPORT.sub("", text),
                  flags=re.MULTILINE)  # fmt: skip
    if odd := _LEFT.search(text):
        raise ValueError(f"{path.name} has a line that cannot be bundled: {odd[0]}")
    parts[path] = text


def as_text(code: str) -> str:
    """The code for the inside of a <script> element, which `</script` and `<!--` would end."""
    return code.replace("</script", "<\\/script").replace("<!--", "<\\!--")
