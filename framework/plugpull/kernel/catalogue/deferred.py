"""Regular expressions that are compiled at their first use. To compile all of these rooms' takes 30 ms; most logs need
few of them."""

from __future__ import annotations

import re
from typing import Any, cast

_METHODS = ("match", "search", "fullmatch", "findall", "finditer", "split", "sub", "subn")


class _Deferred:
    """Stands for a compiled pattern. At its first use it takes over the methods of the compiled one."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self.pattern)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def deferred(pattern: str) -> re.Pattern[str]:
    """What ``re.compile(pattern)`` returns, but an invalid pattern raises ``re.error`` at its first use only."""
    return cast("re.Pattern[str]", _Deferred(pattern))
