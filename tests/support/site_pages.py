"""The course as a built site; what its pages load, where they link, and what is missing."""

import os
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from filelock import FileLock

from course_utils.environment import ROOT

NEEDED = ("sphinx", "myst_nb", "furo", "math_core")
LOADS = {"audio", "embed", "iframe", "img", "input", "object", "script", "source", "track", "video"}
CSS_URL = r"""(?:@import\s*|url\(\s*)['"]?([^'")\s]+)"""


@pytest.fixture(scope="session")
def course_site(tmp_path_factory):
    """The folder of the site of the committed notebooks, built once for all processes."""
    for package in NEEDED:
        pytest.importorskip(package, reason=f"the site needs {package}, which is not installed")
    from course_utils.cli.site import build_site

    above = tmp_path_factory.getbasetemp()
    above = above.parent if "PYTEST_XDIST_WORKER" in os.environ else above  # what they share
    out = above / "course_site"
    with FileLock(above / "course_site.lock"):
        if not out.is_dir():
            build_site(ROOT, out)
    return out


class Page(HTMLParser):
    """What one page holds: `loads` and `links` (URLs), `ids`, `alts` of pictures, `h1` (number)."""

    def __init__(self, path):
        super().__init__()
        self.loads, self.links, self.ids, self.alts, self.h1 = [], [], set(), [], 0
        self.feed(path.read_text(encoding="utf-8"))
        self.close()

    def handle_starttag(self, tag, attrs):
        attrs = {name: value or "" for name, value in attrs}
        self.ids |= {attrs["id"]} if "id" in attrs else set()
        self.h1 += tag == "h1"
        if tag == "img":
            self.alts.append(attrs.get("alt", ""))
        if tag == "link" or tag in LOADS:
            self.loads += [attrs[name] for name in ("href", "src", "data") if attrs.get(name)]
            self.loads += [each.split()[0] for each in attrs.get("srcset", "").split(",") if each]
        self.loads += re.findall(CSS_URL, attrs.get("style", ""))
        if tag == "a" and "href" in attrs:
            self.links.append(attrs["href"])


@cache
def pages(site):
    """Every page of a site by its path."""
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def asked_of_other_hosts(site):
    """What pages and style sheets load from elsewhere: {(name of the file, URL)}."""
    found = {(path.name, url) for path, page in pages(site).items() for url in page.loads}
    for sheet in site.rglob("*.css"):
        urls = re.findall(CSS_URL, sheet.read_text(encoding="utf-8"))
        found |= {(sheet.name, url) for url in urls if not url.startswith("data:")}
    return {(name, url) for name, url in found if urlsplit(url).netloc}


def broken(site):
    """Links and resources within the site that lead nowhere: {(name of the page, URL)}."""
    all_pages, lost = pages(site), set()
    for path, page in all_pages.items():
        for url in [*page.loads, *page.links]:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            target = Path(path.parent, unquote(parts.path)).resolve() if parts.path else path
            there = target.is_file()
            if there and parts.fragment and target in all_pages:
                there = unquote(parts.fragment) in all_pages[target].ids
            if not there:
                lost.add((path.name, url))
    return lost
