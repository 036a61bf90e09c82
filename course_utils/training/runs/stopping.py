"""Ctrl-C, SIGTERM and a lost terminal as a request, so that a training ends between two updates."""

import signal

HANG_UP = getattr(signal, "SIGHUP", None)  # Windows has none


class StopRequest:
    """Inside a with block, the first signal is noted in `number`; the second acts as always.

    A lost terminal may be told twice, so SIGHUP never acts; ignored, as by `nohup`, it stays so.
    """

    SIGNALS = (signal.SIGINT, signal.SIGTERM, *filter(None, [HANG_UP]))

    def __enter__(self) -> "StopRequest":
        self.number = 0
        self._before = {
            s: signal.signal(s, self._note)
            for s in self.SIGNALS
            if s != HANG_UP or signal.getsignal(s) != signal.SIG_IGN
        }
        return self

    def _note(self, number: int, frame: object) -> None:
        self.number = number
        self._restore(but=HANG_UP)

    def _restore(self, but: int | None = None) -> None:
        for s, handler in self._before.items():
            if s != but:
                signal.signal(s, handler)

    def __exit__(self, *_: object) -> None:
        self._restore()
