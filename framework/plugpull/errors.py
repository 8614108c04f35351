"""What can go wrong, sorted by whose fault it is.

``UsageError`` is yours: a rig file, an option, a path. Nothing was touched; exit status 2.
``RigError`` is the bench's: a switch, a cable, the controller, the agent. The verdict is UNKNOWN; exit status 3.
``Finding`` is the DUT's: the kernel, an enclosure or a disk did something wrong. It is data, not an exception,
because a run goes on after it and collects the next one; exit status 1.

Each says what happened and how to mend it.
"""

from __future__ import annotations

import msgspec

EXIT_PASS = 0
EXIT_FAIL = 1
EXIT_USAGE = 2
EXIT_UNKNOWN = 3


class PlugpullError(Exception):
    """Base of the errors plugpull raises on purpose.

    ``what`` is one sentence saying what happened, ``mend`` one saying what to do about it,
    ``where`` a place such as ``rigs/quick.toml:12:9`` (empty when there is none).
    """

    def __init__(self, what: str, *, mend: str = "", where: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.mend = mend
        self.where = where

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        mend = f"\n  to mend it: {self.mend}" if self.mend else ""
        return f"{place}{self.what}{mend}"


class UsageError(PlugpullError):
    """The person asked for something that cannot be done. Nothing was started."""


class NotServed(UsageError):
    """This rig lacks what a scenario needs, such as a hub whose cable can be cut. The scenario is skipped."""


class RigError(PlugpullError):
    """The bench did not do what it was told, or evidence was lost. Never a PASS, never a FAIL."""


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something the DUT, an enclosure or a disk did wrong.

    ``at`` is seconds on the DUT's CLOCK_MONOTONIC; ``evidence`` are lines a reader can verify the claim with.
    """

    check: str
    subject: str
    summary: str
    at: float | None = None
    evidence: tuple[str, ...] = ()
