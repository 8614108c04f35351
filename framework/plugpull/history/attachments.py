"""Which disk was attached under which kernel name, and when."""

from __future__ import annotations

from dataclasses import dataclass

from plugpull.history.events import DiskAttached, DiskDetached


@dataclass(frozen=True)
class Attachments:
    """The attachments of disks in one scenario, oldest first, beginning with those from before it."""

    attached: tuple[DiskAttached, ...]
    detached: tuple[DiskDetached, ...]

    def of(self, disk: str) -> tuple[DiskAttached, ...]:
        """The attachments of ``disk``, a disk of the rig."""
        return tuple(event for event in self.attached if event.disk == disk)

    def detached_at(self, attachment: DiskAttached) -> float | None:
        """When the kernel took this very attachment off its list."""
        begin = attached_at(attachment)
        for event in self.detached:
            same = (event.kname, event.diskseq) == (attachment.kname, attachment.diskseq)
            if same and event.at is not None and event.at >= begin:
                return event.at
        return None

    def at(self, disk: str, at: float) -> DiskAttached | None:
        """The attachment of ``disk`` that was on the kernel's list at ``at``."""
        for attachment in reversed(self.of(disk)):
            gone = self.detached_at(attachment)
            if attached_at(attachment) <= at and (gone is None or gone > at):
                return attachment
        return None

    def disk_at(self, kname: str, at: float) -> str | None:
        """The rig's disk that the kernel called ``kname`` at ``at``; "" if that disk is not of the rig."""
        for attachment in reversed(self.attached):
            if attachment.kname == kname and attached_at(attachment) <= at:
                gone = self.detached_at(attachment)
                return attachment.disk if gone is None or gone > at else None
        return None


def attached_at(attachment: DiskAttached) -> float:
    """When it was attached, DUT seconds: minus infinity if that was before any clock was mapped."""
    return float("-inf") if attachment.at is None else attachment.at


def same_identity(one: DiskAttached, two: DiskAttached) -> bool:
    """Whether two attachments are of one disk: the same serial number and size."""
    return (one.serial, one.size) == (two.serial, two.size)


def same_socket(now: DiskAttached, was: DiskAttached) -> bool:
    """Whether the disk is in the same socket. The two buses of a USB 3 controller number their ports separately: one
    place can be two sockets, and a disk that comes back at another speed has another place in the same socket."""
    if now.sockets and was.sockets:
        return bool(set(now.sockets) & set(was.sockets))
    return now.place == was.place
