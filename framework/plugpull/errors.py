"""The errors of plugpull, by whose fault they are.

``UsageError`` is the user's fault: a rig file, an option, a path. Nothing was touched; exit status 2.
``RigError`` is the bench's fault: a switch, a cable, the controller, the agent. The verdict is UNKNOWN; exit status 3.
``Finding`` is the DUT's fault: the kernel, an enclosure or a disk did something wrong; exit status 1. It is data and
not an exception, because a run goes on after it and collects the next one.

Each says what happened and how to fix it.
"""

from __future__ import annotations

import msgspec

EXIT_PASS = 0
EXIT_FAIL = 1
EXIT_USAGE = 2
EXIT_UNKNOWN = 3


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


class RigError(PlugpullError):
    """The bench did not obey a command, or evidence was lost. The verdict is UNKNOWN, never PASS or FAIL."""


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A fault of the DUT, an enclosure or a disk.

    ``at`` is seconds on the DUT's CLOCK_MONOTONIC; ``evidence`` are lines with which a reader can verify the claim.
    """

    check: str
    subject: str
    summary: str
    at: float | None = None
    evidence: tuple[str, ...] = ()
