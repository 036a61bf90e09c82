"""The chapters whose mistakes were proved, named one by one and in pairs, as they are now.

A chapter is proved again in every test run until this is recorded, by
`python tests/support/proved_pairs.py`, which proves what is not and then writes the record.
"""

import hashlib
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from course_utils.chapters import contents

RECORD = Path(__file__).parents[1] / "checker" / "proved_pairs.json"
PROOFS = "tests/checker/test_exercises_catalogue.py"
PARTS = "told_apart or at_once or gets_its_name"


def digests() -> dict[str, str]:
    """Of every chapter's exercises, by the name of its notebook."""
    texts = {c.name: Path(m.__file__).read_text("utf-8") for c, m in contents("exercises")}
    return {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in texts.items()}


def stale() -> set[str]:
    """The names of chapters whose exercises are not as they were when their pairs were proved."""
    known = json.loads(RECORD.read_text(encoding="utf-8"))
    return {name for name, digest in digests().items() if known.get(name) != digest}


def main() -> int:
    """Prove the pairs of stale chapters; 0 and a new record when all hold."""
    now = digests()
    call = [sys.executable, "-m", "pytest", "-q", PROOFS, "-k", PARTS]
    if find_spec("xdist"):
        call += ["-n", "2"]
    if code := subprocess.run(call, cwd=RECORD.parents[2]).returncode:
        return code
    RECORD.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
