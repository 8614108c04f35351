"""The exceptions of plugpull, by whose fault they are.

``UsageError`` is the user's fault: a rig file, an option, a path. Nothing was touched; exit status 2.
``RigError`` is the bench's fault: a switch, a cable, the controller, the agent. The verdict is UNKNOWN; exit status 3.
``DutError`` is the DUT's fault: the kernel, an enclosure or a disk did something wrong, and the scenario cannot go on.
It becomes a finding (``finding.py``); exit status 1.

Each says what happened and how to fix it. Every exception class of the package is one of these. This module needs only
the standard library, because the launcher uses it before the Python environment exists.
"""

from __future__ import annotations


class PlugpullError(Exception):
    """Base of the errors that plugpull raises on purpose.

    ``what`` is a sentence on what happened. ``hint`` is the next step for the user. ``where`` is a place such as
    ``rigs/quick.toml:12:9`` (empty when there is none).
    """

    def __init__(self, what: str, *, hint: str = "", where: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.where = where

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{place}{self.what}{hint}"


class UsageError(PlugpullError):
    """The user asked for something impossible. Nothing was started."""


class NotServed(UsageError):
    """The rig lacks something that a scenario needs, such as a hub whose cable can be cut. The scenario is skipped."""


class NoFilesystem(NotServed):
    """The DUT has no filesystem of the type ``fstype``, whichever disk it were made on."""

    def __init__(self, what: str, *, fstype: str) -> None:
        super().__init__(what)
        self.fstype = fstype


class RigError(PlugpullError):
    """The bench did not obey a command, or evidence was lost. The verdict is UNKNOWN, never PASS or FAIL."""


class DutError(PlugpullError):
    """The DUT, an enclosure or a disk did something wrong, and the scenario cannot go on. The verdict is FAIL."""
