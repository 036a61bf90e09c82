"""What a training shows while it runs: a progress bar, and a line at every validation."""

import sys
import time

from tqdm import tqdm

from course_utils.training.runs.training_log import Row


class Report:
    """A progress bar with loss, tokens per second and time left.

    Into a terminal it is drawn ten times a second; into a file a line now and then.

    Args:
        progress: share of the budget that earlier runs have used.
        quiet: show nothing; TQDM_DISABLE=1 in the environment takes away the bar alone.
    """

    def __init__(self, progress: float, quiet: bool):
        self.quiet, self.loss, self.tokens = quiet, 0.0, 0
        self.updates, self.began = 0, time.monotonic()
        self.bar = tqdm(
            total=1.0,
            initial=progress,
            desc="training",
            bar_format="{desc} {percentage:3.0f} %|{bar}| {elapsed}<{remaining}{postfix}",
            mininterval=0.1 if sys.stderr.isatty() else 30.0,
            **({"disable": True} if quiet else {}),
        )

    def update(self, progress: float, loss: float, tokens: int) -> None:
        """An update is done: its mean loss, and the tokens of its batch."""
        self.updates += 1
        share = max(0.01, 1 / self.updates)  # a mean at first, then a slow moving average
        self.loss += share * (loss - self.loss)
        self.tokens += tokens
        if not self.bar.disable:
            self.bar.set_postfix_str(self._numbers(), refresh=False)
            self.bar.update(min(1.0, progress) - self.bar.n)

    def _numbers(self) -> str:
        speed = self.tokens / max(1e-9, time.monotonic() - self.began)
        return f"loss {self.loss:.3f}, {speed:,.0f} tokens/s"

    def validated(self, row: Row, progress: float, best: bool) -> None:
        """A validation is done. Its time does not count as time per token."""
        verdict = "the best so far" if best else "not the best"
        self.write(
            f"update {row.update:,} ({min(1.0, progress):.0%}): {self._numbers()}, "
            f"validation loss {row.validation_loss:.3f}, {row.measure} {row.score:.2f}, {verdict}"
        )
        self.tokens, self.began = 0, time.monotonic()

    def write(self, line: str) -> None:
        """Write a line above the bar."""
        if not self.quiet:
            tqdm.write(line, file=sys.stderr)

    def arrive(self, progress: float) -> None:
        """Leave the bar where the training has come to."""
        self.bar.update(min(1.0, progress) - self.bar.n)

    def __enter__(self) -> "Report":
        return self

    def __exit__(self, *_) -> None:
        self.bar.close()
