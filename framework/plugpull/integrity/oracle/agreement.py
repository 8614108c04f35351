"""Where the copies of an array differ from each other.

After a cut, a write that nothing had kept may be there or not. A mirror has to decide for one of both: after the resync
that follows an unclean stop, all members hold the same (md(4), UNCLEAN SHUTDOWN).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from plugpull.integrity.oracle.readback import ContentKind, SectorRun

NOT_COMPARED = frozenset({ContentKind.UNREADABLE, ContentKind.MORE_DAMAGED})
"""What such sectors hold is not known."""


class Disagreement(NamedTuple):
    """``sectors`` of the array from ``first`` on that two copies hold differently: parts of these runs."""

    first: int
    sectors: int
    one: SectorRun
    other: SectorRun


def disagreements(one: Sequence[SectorRun], other: Sequence[SectorRun]) -> Iterator[Disagreement]:
    """Where two copies differ, of what was read of both. Their runs are in rising order."""
    ours, theirs = iter(one), iter(other)
    a, b = next(ours, None), next(theirs, None)
    while a is not None and b is not None:
        begin, end = max(a.first, b.first), min(a.end, b.end)
        if begin < end and not _same(a, b):
            yield Disagreement(begin, end - begin, a, b)
        a_over, b_over = a.end <= b.end, b.end <= a.end
        a = next(ours, None) if a_over else a
        b = next(theirs, None) if b_over else b


def _same(a: SectorRun, b: SectorRun) -> bool:
    """Whether two runs hold the same where both are."""
    if a.kind in NOT_COMPARED or b.kind in NOT_COMPARED:
        return True
    same = (a.kind, a.number, a.run, a.device, a.raw) == (b.kind, b.number, b.run, b.device, b.raw)
    return same and a.origin - a.first == b.origin - b.first if a.kind is ContentKind.ELSEWHERE else same
