"""Which sectors of an array the write hole may have taken, by the record of the array."""

from __future__ import annotations

from plugpull.checks.raid.arrays import WORKING, ArrayRecord, arrays_of
from plugpull.history.events import ArrayActed
from plugpull.history.story import Story
from plugpull.integrity.oracle.ledger import Ledger
from plugpull.integrity.oracle.rules import Extents
from plugpull.integrity.oracle.write_hole import open_writes, stripes_of

CLOSED_BY = frozenset({"ppl", "journal"})
"""Values of consistency_policy with which there is no hole (Documentation/admin-guide/md.rst)."""


def hole_of(story: Story, array: str, ledger: Ledger, *, powered: bool) -> Extents:
    """The sectors of an array that may be wrong although they were flushed. Empty for a disk.

    That is so only if the array was assembled again and then ran without a member: otherwise each block is read from
    the member that holds it. A log helps unless the array was assembled by force."""
    record = arrays_of(story).get(array)
    if record is None or not any(_opens_it(record, act) for act in record.done("assemble")):
        return ()
    return stripes_of(record.layout, open_writes(ledger, powered=powered))


def _opens_it(record: ArrayRecord, act: ArrayActed) -> bool:
    """Whether the array was degraded at once when it was assembled in this way, and no log was used."""
    if not act.ok or (record.made.policy in CLOSED_BY and not act.forced):
        return False
    begun = (act.at or 0.0) - act.seconds
    later = (one for one in record.states if (one.at or 0.0) >= begun and one.values.get("array_state") in WORKING)
    first = next(later, None)
    return first is not None and first.values.get("degraded", "0") != "0"


def hole_words(sectors: int) -> str:
    """What is said of sectors that are wrong, and may be."""
    return f"{sectors} sectors are wrong in stripes that were being written when the array failed: its write hole"
