"""What is done to each page once it is written: scopes of tables, the language of Chinese words."""

import re
from pathlib import Path

_ASIDE = re.compile(r"(<(script|style|title|textarea)\b.*?</\2>|<[^>]+>)", re.DOTALL)
_HEAD = re.compile(r"<thead>.*?</thead>", re.DOTALL)
_TH = re.compile(r"<th(?![^>]*\bscope=)(?=[\s>])")
_CHINESE = re.compile(r"[\u3400-\u9fff]+(?:[\s，、。；：]*[\u3400-\u9fff]+)*")


def finish(page: str) -> str:
    """The HTML of a page, with `scope` in each `<th>` and `lang="zh"` around Chinese words."""
    page = _HEAD.sub(lambda head: _TH.sub('<th scope="col"', head[0]), page)
    page = _TH.sub('<th scope="row"', page)
    parts = _ASIDE.split(page)
    # split gives text, the whole tag, the name of one with content or None, text, ...
    texts = [_CHINESE.sub(r'<span lang="zh">\g<0></span>', text) for text in parts[::3]]
    tags = [*parts[1::3], ""]
    return "".join(text + tag for text, tag in zip(texts, tags, strict=True))


def finish_pages(folder: Path) -> None:
    """`finish` every page of a site."""
    for path in folder.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        path.write_text(finish(text), encoding="utf-8")
