"""Why the ledger of a round does not fit the rest of the record."""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.checks.data.stamps import Round
from plugpull.history.events import LedgerBegun
from plugpull.history.story import Story
from plugpull.integrity.oracle.ledger import Ledger
from plugpull.integrity.oracle.stamp import device_number
from plugpull.rig.topology import unit_identity

CLOCKS = 1.0
"""Seconds by which two records of the same moment may differ. A writer that was not scheduled reports a completion
late: by 0.2 s on healthy guests. In 474 sessions none was later than the end of its writer."""
BEGUN = 20.0
"""Seconds by which the record of a session's beginning may come after it: its disk is filled and waited for."""
ATTACHED = 5.0
"""Seconds by which a disk may be announced after its writer began, by a uevent that was read late."""
EARLY = 0.1
"""Seconds by which a read-back may seem to begin before its writer ended, because two clocks are involved."""


def misfits(story: Story, one: Round, ledger: Ledger) -> Iterator[str]:
    """Sentences on why a decoded ledger cannot belong to this round. Nothing is concluded from such a round."""
    yield from contradictions(story, one, ledger)
    yield from _without_its_disk(story, one, ledger)


def contradictions(story: Story, one: Round, ledger: Ledger) -> Iterator[str]:
    """Errors of the ledger itself: another session, disk or time. A disk that the kernel served after it had removed it
    causes none of them."""
    begun = one.begun
    if ledger.depth:  # its first record arrived
        if (ledger.session, ledger.run, ledger.device) != (begun.session, begun.run, begun.device):
            yield "its ledger is of another session, disk or run than its name says"
        if ledger.block != begun.block:
            yield f"its ledger is of blocks of {ledger.block} sectors, the session of {begun.block}"
    for other, number in _numbers_of_disks(story).items():
        if other != one.disk and number == begun.device:
            yield f"its stamps carry the number of {other}"
    if outside := sum(not _covers(begun, write.sector, write.end) for write in ledger.writes):
        yield f"{outside} of its writes are outside of what the session covers"
    yield from _clocks(story, one, ledger)


def _numbers_of_disks(story: Story) -> dict[str, int]:
    """The number of each disk of the rig in its stamps."""
    tables = [table for table in story.rig.get("disk", []) if isinstance(table, dict)]
    return {
        str(table.get("name")): device_number(unit_identity(str(table.get("serial")), table.get("lun") or 0))
        for table in tables
    }


def _covers(begun: LedgerBegun, first: int, end: int) -> bool:
    return any(begin <= first and end <= begin + count for begin, count in begun.extents)


def _clocks(story: Story, one: Round, ledger: Ledger) -> Iterator[str]:
    """Times in the ledger that contradict the rest of the record. Both use the DUT's clock."""
    read_at = one.read.begun.at if one.read is not None else None
    ended_at = one.ended.at if one.ended is not None else None
    if read_at is not None and ended_at is not None and read_at < ended_at - EARLY:
        yield f"it was read back at {read_at:.2f} s, and its writer ended at {ended_at:.2f} s"
    if not ledger.begun_ns:
        return
    origin = ledger.begun_ns / 1e9
    if one.begun.at is not None and abs(one.begun.at - origin) > BEGUN:
        yield f"its ledger says that it began at {origin:.2f} s, the record says {one.begun.at:.2f} s"
    last = _last_success(ledger)
    if one.arrived and last > max(one.arrived) + CLOCKS:
        yield f"its last record is of {last:.2f} s and arrived at {max(one.arrived):.2f} s"
    if one.ended is not None and one.ended.at is not None and last > one.ended.at + CLOCKS:
        yield f"its last record is of {last:.2f} s, and its writer ended at {one.ended.at:.2f} s"


def _without_its_disk(story: Story, one: Round, ledger: Ledger) -> Iterator[str]:
    """A ledger of a time at which its disk was not attached."""
    if not ledger.begun_ns or not story.attachments(one.disk):
        return
    origin, last = ledger.begun_ns / 1e9, _last_success(ledger)
    attachment = story.attachment_at(one.disk, origin) or story.attachment_at(one.disk, origin - ATTACHED)
    if attachment is None:
        yield f"its ledger begins at {origin:.2f} s, and {one.disk} was not attached then"
        return
    gone = story.detached_at(attachment)
    if gone is not None and last > gone + CLOCKS:
        yield f"it completed something at {last:.2f} s, and {one.disk} was gone since {gone:.2f} s"


def _last_success(ledger: Ledger) -> float:
    """When the last write or flush without an error was completed, DUT seconds."""
    done = [write.completed_at for write in ledger.writes if write.completed_at is not None and not write.error]
    done += [flush.completed_at for flush in ledger.flushes if flush.completed_at is not None and not flush.error]
    return ledger.begun_ns / 1e9 + max(done, default=0.0)
