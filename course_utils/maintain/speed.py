"""Keep the runs of the benchmark that the README quotes.

python -m course_utils bench --json run.json    measures (some minutes, nothing else running)
python -m course_utils.maintain.speed run.json [more.json]   keeps the runs
python -m course_utils sync     writes the README's table and figures/decoding_cost.svg from them
"""

import json
import sys
from pathlib import Path

from course_utils.bench import measured


def main(paths: list[str]) -> None:
    """Keep the records of these files instead of those kept so far."""
    runs = [json.loads(Path(path).read_text(encoding="utf-8")) for path in paths]
    kept = json.dumps([record for run in runs for record in run], indent=1) + "\n"
    measured.FILE.write_bytes(kept.encode("utf-8"))


if __name__ == "__main__":
    main(sys.argv[1:])
