"""The whole course as one file, which the site offers."""

import zipfile
from pathlib import Path

NAMES = (
    "README.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "pyproject.toml", "requirements.txt",
    ".gitattributes", ".gitignore", ".ci", "course_utils", "figures", "notebooks", "tests",
)  # fmt: skip
MADE = {"__pycache__", ".ipynb_checkpoints", ".pytest_cache", ".ruff_cache"}
DATE = (2026, 1, 1, 0, 0, 0)  # the same archive for the same files


def write_archive(root: Path, out: Path) -> None:
    """Write what the course in `root` is made of into the zip `out`, in a folder of its own."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(files(root)):
            name = f"attention-by-running-it/{file.relative_to(root).as_posix()}"
            entry = zipfile.ZipInfo(name, DATE)
            entry.external_attr = (0o755 if file.parent.name == ".ci" else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.read_bytes())


def files(root: Path) -> list[Path]:
    """The files of the course, without what was made from them or belongs to a learner."""
    tops = [root / name for name in NAMES]
    inside = [path for top in tops if top.is_dir() for path in top.rglob("*") if path.is_file()]
    return [top for top in tops if top.is_file()] + [
        path for path in inside
        if not MADE & set(path.parts) and not path.name.startswith(".progress")
    ]  # fmt: skip
