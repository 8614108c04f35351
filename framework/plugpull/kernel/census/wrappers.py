"""The table of functions that print messages, ``wrappers.txt``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from importlib.resources import files
from typing import NamedTuple

LEVELS = {"EMERG": "0", "ALERT": "1", "CRIT": "2", "ERR": "3", "WARNING": "4", "NOTICE": "5", "INFO": "6", "DEBUG": "7"}
"""KERN_... by name (include/linux/kern_levels.h)."""
CONTINUED = "c"
"""KERN_CONT: the rest of a line whose beginning is another message."""
TRACED = "w"
"""A WARNING: a call trace and a line that names the place follow."""
UNKNOWN = "?"
"""The level is a variable."""
NOT_LOGGED = "-"
DEFAULT = "4"
"""Messages without a level get CONFIG_MESSAGE_LOGLEVEL_DEFAULT."""

_NAMES = {
    "emerg": "0", "alert": "1", "crit": "2", "err": "3", "error": "3", "warn": "4", "warning": "4", "notice": "5",
    "info": "6", "debug": "7", "dbg": "7", "vdbg": "7", "devel": "7", "cont": CONTINUED,
}  # fmt: skip
_ENDINGS = ("", "_once", "_ratelimited", "_ratelimit", "_limit", "_limited", "_rl", "_in_rcu", "_rl_in_rcu")
_LINE = re.compile(r'(\S+)\s+(\S+)\s+(\d+)\s+"(.*)"$')


class Wrapper(NamedTuple):
    """A function that prints messages. ``level`` is a digit, ``=`` or ``#N``; ``prefix`` comes before its format."""

    name: str
    level: str
    argument: int
    prefix: str


class Wrappers:
    """The wrappers of every file."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._of: list[tuple[tuple[str, ...], dict[str, Wrapper]]] = []
        for line in lines:
            if line.startswith("@ "):
                self._of.append((tuple(line[2:].split()), {}))
            elif found := _LINE.match(line):
                for wrapper in _expanded(*found.groups()):
                    self._of[-1][1].setdefault(wrapper.name, wrapper)

    def of(self, path: str) -> dict[str, Wrapper]:
        """The wrappers that can occur in a file, by name. Those of the file's own directory win."""
        found: dict[str, Wrapper] = {}
        for patterns, wrappers in self._of:
            if any(fnmatchcase(path, pattern) for pattern in patterns):
                found |= wrappers
        return found


def _expanded(name: str, level: str, argument: str, prefix: str) -> Iterator[Wrapper]:
    for word, number in _NAMES.items() if "*" in name else [("", level)]:
        for ending in _ENDINGS:
            yield Wrapper(name.replace("*", word) + ending, number if level == "*" else level, int(argument), prefix)


def wrappers() -> Wrappers:
    """The table that comes with this package."""
    return Wrappers(files(__package__).joinpath("wrappers.txt").read_text(encoding="utf-8").splitlines())
