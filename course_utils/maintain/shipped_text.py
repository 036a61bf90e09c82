"""Write the sentences that ship, from the grammars that make them.

python -m course_utils.maintain.shipped_text

The small world takes some ten seconds. A file that already holds the text is left as it is, because
another version of zlib packs it into other bytes.
"""

import gzip
import zlib
from pathlib import Path

from course_utils.maintain.review_grammar import review_splits
from course_utils.maintain.small_world_grammar import small_world_splits
from course_utils.text import reviews, small_world
from course_utils.text.pairs import Pair


def small_world_text() -> str:
    """One pair a line: split, source, target, and the links as 0-0 1-2."""
    return "".join(
        f"{split}\t{pair.source}\t{pair.target}\t{_links(pair)}\n"
        for split, pairs in small_world_splits().items()
        for pair in pairs
    )


def _links(pair: Pair) -> str:
    return " ".join(f"{i}-{j}" for i, j in pair.alignment)


def reviews_text() -> str:
    """Two reviews a line: split, construction, the positive one, the negative one."""
    return "".join(
        f"{split}\t{drawn.construction}\t{drawn.positive}\t{drawn.negative}\n"
        for split, draws in review_splits().items()
        for drawn in draws
    )


TEXTS = {small_world.FILE: small_world_text, reviews.FILE: reviews_text}


def packed(text: str) -> bytes:
    """The text as gzip, without a date or a name."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS, 9)
    return packer.compress(text.encode("utf-8")) + packer.flush()


def unpacked(path: Path) -> str | None:
    """The text of a file, if it is there."""
    return gzip.decompress(path.read_bytes()).decode("utf-8") if path.exists() else None


def main() -> None:
    """Write what is out of date."""
    for path, make in TEXTS.items():
        text = make()
        if unpacked(path) != text:
            path.write_bytes(packed(text))
            print(f"{path.name}: {text.count(chr(10)):,} lines, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
