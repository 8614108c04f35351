"""What the write hole of a RAID 5 or 6 may take, as distinct from loss.

md writes data and parity of a stripe one after the other. If the array stops between the two (it fails, or the DUT
dies) and then runs without one of its members, what that member held is worked out from data and parity that do not
belong together. Any block of such a stripe can be wrong, also one that was flushed long ago and is not being written.

- A stripe is one page (4 KiB) of each member at the same offset (drivers/md/raid5.h, DEFAULT_STRIPE_SIZE).
- Open are the stripes of writes that were not over, or failed; and those of writes that no flush followed if members
  lost their power, because each member had written its part or had not.
- An array that is complete when it runs again makes its parity from its data, and loses nothing.
- With a partial parity log (RAID 5) or a journal, and in RAID 0, 1 and 10, no other block depends on a write
  (Documentation/driver-api/md/raid5-ppl.rst, raid5-cache.rst). The log is of no use if the array is assembled by force,
  because mdadm marks it as clean then (super1.c, "force-array").

A wrong block of an open stripe is damaged, older, zeros, or a mix that no write had. Whole stamps of another place are
not a result of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from plugpull.integrity.oracle.array_layout import ArrayLayout
from plugpull.integrity.oracle.ledger import Ledger, Write
from plugpull.integrity.oracle.rules import Extents, Opinion
from plugpull.integrity.oracle.wrong import Damage, Wrong, outside_of

STRIPE = 8
"""Sectors of each member in a stripe."""
HAVE_IT = frozenset({"raid5", "raid6"})
OF_IT = frozenset({Damage.LOST, Damage.STALE, Damage.ZEROED, Damage.CORRUPT, Damage.TORN, Damage.NEVER_WRITTEN})
"""Kinds of damage that parity of another moment can do. The exclusive or of three stamps is a whole stamp, as their
checksum is linear: with the neighbour's version from before and after a write it has the number of that write."""


def open_writes(ledger: Ledger, *, powered: bool) -> list[Write]:
    """The writes whose stripes may be half written. ``powered``: no member lost its power."""
    flushes = [one.submitted for one in ledger.flushes if one.completed is not None and not one.error]
    last = max(flushes, default=-1)

    def is_open(write: Write) -> bool:
        if write.completed is None or write.error:
            return True
        return not powered and not write.fua and last <= write.completed

    return [write for write in ledger.writes if is_open(write)]


def stripes_of(layout: ArrayLayout, writes: Iterable[Write]) -> Extents:
    """All sectors of the array that share a stripe with one of these writes."""
    if layout.level not in HAVE_IT or not layout.known:
        return ()
    data = layout.data_members
    rows = {
        (sector // layout.chunk // data, sector % layout.chunk // STRIPE)
        for write in writes
        for sector in range(write.sector - write.sector % STRIPE, write.end, STRIPE)
    }
    return tuple(
        ((row * data + member) * layout.chunk + stripe * STRIPE, STRIPE)
        for row, stripe in sorted(rows)
        for member in range(data)
    )


def without_hole(opinion: Opinion, hole: Extents) -> Opinion:
    """The opinion without what the write hole may have taken, which is counted in ``in_hole``. Changes it in place."""
    if hole and opinion.wrong:
        before = _sectors(opinion.wrong)
        opinion.wrong = [*_kept(opinion.wrong, hole)]
        opinion.in_hole = before - _sectors(opinion.wrong)
    return opinion


def _kept(wrong: Collection[Wrong], hole: Extents) -> Iterator[Wrong]:
    for one in wrong:
        yield from outside_of([one], hole) if one.kind in OF_IT else [one]


def _sectors(wrong: Iterable[Wrong]) -> int:
    return sum(one.sectors for one in wrong)
