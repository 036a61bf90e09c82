"""Ctrl-C and SIGTERM as a request, so that a training ends between two updates."""

import signal


class StopRequest:
    """Inside a with block, the first signal is noted in `number`; the second acts as always."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __enter__(self) -> "StopRequest":
        self.number = 0
        self._before = {s: signal.signal(s, self._note) for s in self.SIGNALS}
        return self

    def _note(self, number: int, frame: object) -> None:
        self.number = number
        self._restore()

    def _restore(self) -> None:
        for s, handler in self._before.items():
            signal.signal(s, handler)

    def __exit__(self, *_: object) -> None:
        self._restore()
