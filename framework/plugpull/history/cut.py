"""One cut as checks see it: its switchings, and when each victim went away and came back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import msgspec

from plugpull.history.events import CutArmed

EARLY = 1.0
"""Seconds by which an acknowledgement may seem to come before its command: two mappings of clocks are compared."""


@dataclass(frozen=True)
class Switching:
    """All ports of a cut point switched once, ``off`` or ``on``. Times are those of the slowest port, DUT seconds.

    ``complete``: the command to every port is on record, and not only that it acknowledged.
    ``read_back`` is ``None`` if the switch cannot be asked. ``skew`` is what lay
    between the first and the last acknowledged edge of all that was switched at once, ``None`` for a single port.
    """

    state: str
    commanded: bool = False
    commanded_at: float | None = None
    acknowledged_at: float | None = None
    read_back: bool | None = None
    ports: tuple[str, ...] = ()
    error: float = 0.0
    skew: float | None = None
    complete: bool = True

    @property
    def doubt(self) -> str:
        """Why this switching cannot be trusted, as a clause; empty when the switch acknowledged and confirmed it."""
        where = f"the switch {', '.join(self.ports)}"
        if not self.commanded:
            return f"it was never switched {self.state}"
        if self.commanded_at is None or not self.complete:
            return f"{where} was commanded {self.state} at an unknown time"
        if self.acknowledged_at is None:
            return f"{where} did not acknowledge {self.state}"
        if self.acknowledged_at < self.commanded_at - max(self.error, EARLY):
            return f"{where} acknowledged {self.state} before the command"
        if self.read_back is False:
            return f"{where} was commanded {self.state} but read back otherwise"
        return ""


class DiskTimes(msgspec.Struct, frozen=True, kw_only=True):
    """When one victim went away and came back, seconds of DUT CLOCK_MONOTONIC.

    ``removed_at``: its block device left the kernel's list. ``returned_at``: a disk with its identity was announced
    again. ``first_io_at``: the first byte moved on it after that.
    """

    disk: str
    last_io_at: float | None = None
    removed_at: float | None = None
    returned_at: float | None = None
    first_io_at: float | None = None


@dataclass(frozen=True)
class Cut:
    """One cut. ``until`` is when the next cut of one of its victims began, or when a permanent one was healed on the
    way out (infinity if neither happened).

    Where cuts that are made at once share a victim, such as its cable and its power, they are one cut to that disk: it
    may go with the first command, and can be back only after the last of them was restored. So the ``commanded_at`` of
    all of them is the earliest when they go off, and the latest when they come back on; then ``acknowledged_at`` is the
    latest as well. A contact that bounces is such cuts, one after the other.

    Cuts that overlap without being made at once hold a victim off together (``holds.py``): in ``disks``, the first of
    them has its ``removed_at`` and the last one its ``returned_at``."""

    armed: CutArmed
    off: Switching
    on: Switching
    until: float
    kernel_saw_at: float | None
    disks: tuple[DiskTimes, ...]
    kernel_skew: float | None = None
    """From the first sign in the kernel of one of the cuts made at once to that of the last, seconds."""
    joined: tuple[Cut, ...] = ()
    """The other cuts that held the disk off at the same time (``Story.cuts_of``)."""

    @property
    def executed(self) -> bool:
        return not self.off.doubt

    def off_at(self, at: float) -> bool:
        """Whether the port was commanded off and not yet on again."""
        off, on = self.off.commanded_at, self.on.commanded_at
        return off is not None and off - self.error < at and (on is None or on > at)

    @cached_property
    def error(self) -> float:
        """Bound on the error of the controller's times, seconds."""
        return max(self.off.error, self.on.error)

    @property
    def restored_at(self) -> float | None:
        """When the switch was commanded on again, if it acknowledged that."""
        return self.on.commanded_at if self.on.acknowledged_at is not None else None

    @property
    def restored_point(self) -> str:
        """The cut point that has to be restored for the disks to return."""
        return next((one.armed.point for one in self.joined if one.on is self.on), self.armed.point)

    def times(self, disk: str) -> DiskTimes:
        return next((times for times in self.disks if times.disk == disk), DiskTimes(disk=disk))
