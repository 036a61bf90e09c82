"""Making very many small objects at once."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collecting_later() -> Iterator[None]:
    """Let nobody look for garbage meanwhile: what is made is kept, and there is ever more of it.

    Also a decorator: `@collecting_later()`.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
