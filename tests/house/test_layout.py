"""The floor plan of course_utils: which room may use which, read from the imports themselves."""

import ast
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter

import pytest

from course_utils.environment import ROOT

PACKAGE = ROOT / "course_utils"
# A room uses those on its right and no others; what is on no line stands on the ground floor.
MAY_USE = {
    "text": "environment",
    "models": "text",
    "training": "environment text models",
    "viz": "environment text models training",
    "checker": "environment text models training viz",
    "recall": "environment text models training viz checker",
    "bench": "environment text models training viz",
    "chapters": "environment text models training viz checker recall bench",
    "cli": "environment text models training viz checker recall bench chapters",
    "maintain": "environment text models training viz checker recall bench cli chapters",
    "__main__": "environment text models training viz checker recall bench cli chapters maintain",
}
# These reach the content of the chapters by name, when it is asked for.
CONTENT_BY_NAME = {"checker", "recall", "viz"}
MOST_ROOMS = 12
MOST_LINES = 300
CONTENT = ("chapters/", "maintain/small_world_grammar/")  # content, not machinery: may be long
STILL_LONG = {  # with the lines that each has at most: it may shrink
    "models/transformer.py": 382,
}


def module_name(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports(name, path, known):
    """The modules of the course that a file imports, and those that it loads by name."""
    base = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    found, by_name = set(), set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = base[: len(base) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                whole = f"{module}.{alias.name}"
                found.add(whole if whole in known else module)
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            by_name |= {
                part.value.removesuffix(".")
                for part in ast.walk(node)
                if isinstance(part, ast.Constant)
                and str(part.value).startswith("course_utils.")
                and part.value != "course_utils."
            }
    ours = {found_name for found_name in found if found_name.split(".")[0] == "course_utils"}
    return ours - {name}, by_name


def room(name):
    """The room of a module; what stands at the top is its own; empty for the package itself."""
    return (name.split(".") + [""])[1]


def arrows(graph):
    """(from, to) rooms -> who imports what across them."""
    found = defaultdict(list)
    for name, used in graph.items():
        for other in used:
            if room(other) and room(name) != room(other):
                found[room(name), room(other)].append(f"{name} imports {other}")
    return found


USED, BY_NAME = {}, {}
for each, file in FILES.items():
    USED[each], BY_NAME[each] = imports(each, file, FILES)


def test_rooms_use_only_what_the_table_allows():
    against = {
        f"{a} -> {b}": sorted(lines)
        for (a, b), lines in arrows(USED).items()
        if b not in MAY_USE.get(a, "").split()
    }
    assert against == {}


def test_only_some_rooms_reach_the_chapters_by_name():
    named = {(a, b) for a, b in arrows(BY_NAME) if b not in MAY_USE.get(a, "").split()}
    assert named == {(a, "chapters") for a in CONTENT_BY_NAME}


def test_the_table_runs_one_way():
    TopologicalSorter({a: b.split() for a, b in MAY_USE.items()}).prepare()


def test_no_module_imports_itself_by_way_of_others():
    """A package's __init__ is left out: all that it gathers imports it first."""
    packages = {name for name, path in FILES.items() if path.name == "__init__.py"}
    graph = {
        name: {other for other in used if other not in packages}
        for name, used in USED.items()
        if name not in packages
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(reversed(error.args[1])))


def test_there_are_few_rooms():
    rooms = {room(name) for name in FILES} - {"", "__main__"}
    assert len(rooms) <= MOST_ROOMS
    assert rooms <= set(MAY_USE) | {"environment"}, "a new room wants its line in the table"


def test_a_name_stands_for_one_subject():
    """But for the chapters, whose folders hold the same kinds of content."""
    places = defaultdict(list)
    for name, path in FILES.items():
        if path.stem != "__init__" and ".chapters.ch" not in name:
            places[path.stem].append(name)
    assert {stem: names for stem, names in places.items() if len(names) > 1} == {}


def test_files_fit_on_a_few_screens():
    lines = {
        str(path.relative_to(PACKAGE).as_posix()): len(path.read_text("utf-8").splitlines())
        for path in FILES.values()
    }
    long = {
        name: count
        for name, count in lines.items()
        if count > MOST_LINES and not name.startswith(CONTENT)
    }
    grown = {name: count for name, count in long.items() if count > STILL_LONG.get(name, 0)}
    assert grown == {}
    assert set(STILL_LONG) <= set(long), "it is short now: take it off the list"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import course_utils.b.c", {"course_utils.b.c"}),
        ("from course_utils.b import c", {"course_utils.b.c"}),
        ("from course_utils.b.c import thing", {"course_utils.b.c"}),
        ("def late():\n    from ..b import c, other", {"course_utils.b.c", "course_utils.b"}),
        ("from . import d", {"course_utils.a.d"}),
        ("import torch, json", set()),
    ],
)
def test_imports_are_seen_in_every_form(source, expected, tmp_path):
    path = tmp_path / "x.py"
    path.write_text(source, encoding="utf-8")
    known = {"course_utils.b", "course_utils.b.c", "course_utils.a.d"}
    assert imports("course_utils.a.x", path, known) == (expected, set())


def test_an_arrow_against_the_order_is_seen():
    graph = {"course_utils.models.x": {"course_utils.cli.train", "course_utils.models.y"}}
    assert list(arrows(graph)) == [("models", "cli")]
    assert "cli" not in MAY_USE["models"].split()
