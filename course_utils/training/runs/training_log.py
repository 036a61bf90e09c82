"""log.csv: what a training measured at each validation."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from course_utils.training.runs.files import read_text, write_atomic
from course_utils.training.runs.refusals import Refused

LOG = "log.csv"
LOG_BYTES = 20_000_000  # 100,000 validations take half of it


class Row(NamedTuple):
    """One validation. The training loss is a moving mean, with label smoothing and dropout."""

    update: int
    seconds: float
    training_loss: float
    validation_loss: float  # per token, without either
    score: float
    measure: str  # BLEU or chrF2


def write_log(folder: Path, rows: Sequence[Row]) -> None:
    """Write log.csv."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Row._fields)
    for row in rows:
        writer.writerow(f"{x:.4f}" if isinstance(x, float) else x for x in row)
    write_atomic(folder / LOG, text.getvalue().encode())


def read_log(folder: Path) -> list[Row]:
    """The rows of log.csv; none where there is no such file.

    Raises:
        Refused: `train` has not written it.
    """
    try:
        lines = csv.reader(io.StringIO(read_text(folder / LOG, LOG_BYTES)))
        if next(lines, None) != list(Row._fields):
            raise ValueError
        return [Row(*(kind(x) for kind, x in zip(Row.__annotations__.values(), line, strict=True)))
                for line in lines]  # fmt: skip
    except FileNotFoundError:
        return []
    except (ValueError, csv.Error):
        raise Refused(f"{folder / LOG} is no log of `train`: move it away") from None
