"""Holds the garbage collector back while many objects are made that never refer to each other."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Hold the garbage collector back while modules are loaded, or while a history is read, judged or reported.

    Events never refer to each other, and the collector would go through all of them again and again: that takes more
    than half of the time of reading, and a fifth of that of judging.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
