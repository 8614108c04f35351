"""What an array promises while more of its members lose their power than its level covers.

They never do so at the same instant: two ports that are switched together are off some hundredths of a second after
each other, on a busy host some tenths. What the array answers in between is on the members that are left, and when they
are gone as well, their superblocks need not say yet that the first one had missed it: then the array begins again with
all its members, and the data of any of them may become that of all. In 8 such cuts of a mirror with kernel 6.1.0-56, 3
lost writes with FUA that had been answered in these moments, and none that had been before.
"""

from __future__ import annotations

import errno
from dataclasses import replace
from math import isinf

from plugpull.checks.raid.arrays import arrays_of, may_fail_from
from plugpull.history.story import Story
from plugpull.integrity.oracle.ledger import Ledger

SKEW = 2.0
"""Seconds in which members that are cut together lose their power. They took up to 0.4 s on busy hosts."""


def promised(story: Story, target: str, ledger: Ledger) -> Ledger:
    """The ledger of an array without the promises of these moments: its flushes count as failed, its writes as without
    FUA. Any other ledger as it is."""
    if target not in arrays_of(story) or not ledger.begun_ns:
        return ledger
    since = may_fail_from(story, target) - ledger.begun_ns / 1e9
    if isinf(since) or since <= 0.0:
        return ledger

    def between(at: float | None) -> bool:
        return at is not None and since <= at <= since + SKEW

    return replace(
        ledger,
        writes=[replace(one, fua=one.fua and not between(one.completed_at)) for one in ledger.writes],
        flushes=[replace(one, error=errno.EIO) if between(one.completed_at) else one for one in ledger.flushes],
    )
