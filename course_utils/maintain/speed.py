"""The speed table of the README: which runs of the benchmark it quotes.

python -m course_utils bench --json run.json    measures (some minutes, nothing else running)
python -m course_utils.maintain.speed run.json [more.json]   keeps the runs, and writes the table
python -m course_utils figures                  draws figures/decoding_cost.svg from it
"""

import json
import sys
from pathlib import Path

from course_utils.bench import measured
from course_utils.environment import ROOT

README = ROOT / "README.md"
START, END = "<!-- measured speed, written by make sync -->", "<!-- end of speed -->"


def with_table(readme: str, table: str) -> str:
    """The README with this table between its two marks."""
    before, _, rest = readme.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n\n{table}\n\n{END}{after}"


def main(paths: list[str]) -> None:
    """Keep runs and quote them."""
    runs = [json.loads(Path(path).read_text(encoding="utf-8")) for path in paths]
    kept = json.dumps([record for run in runs for record in run], indent=1) + "\n"
    measured.FILE.write_bytes(kept.encode("utf-8"))
    readme = with_table(
        README.read_text(encoding="utf-8"), measured.as_markdown(measured.kept_records())
    )
    README.write_bytes(readme.encode("utf-8"))


if __name__ == "__main__":
    main(sys.argv[1:])
