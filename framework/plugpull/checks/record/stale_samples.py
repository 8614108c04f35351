"""Samples that repeat one another, although the ledger of a disk shows that it was written meanwhile.

Both are of the DUT's kernel and by its clock. A write that the ledger has as issued after one sample, and as completed
before another began, is in the counters of the second: in 332 sessions on healthy benches there was not a byte of
difference. Only if no number of any disk changes is it the sampler that stood still. If one disk's do not, its pace is
known only as far as its ledger agrees with its counters.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from plugpull.history.medians import AT_ONCE
from plugpull.history.story import Story
from plugpull.integrity.oracle.decode import CUT_OFF
from plugpull.integrity.oracle.ledger import Ledger

SECTOR = 512
LITTLE = 64 << 10
"""Bytes by which the two may differ: transfers that the kernel repeats (``outside_counts.py``)."""


def stale_samples(story: Story, disk: str, ledger: Ledger) -> str:
    """When the samples stood still while a disk was written by this ledger, a clause; empty if they did not, or it is
    not known."""
    for run, done in _written_runs(story, disk, ledger):
        for still in _still(story, run):
            missing = _missing(still, done)
            if missing > LITTLE:
                said = f"the samples from {still[0]:.2f} s to {still[-1]:.2f} s repeat one another"
                return f"{said}, and {disk} completed {missing} bytes of writes meanwhile"
    return ""


Done = Sequence[tuple[float, float, int]]
"""Writes: when each was issued and completed, DUT seconds, and its bytes."""


@dataclass(frozen=True)
class Uncounted:
    """A ledger's writes, of which some were completed while the disk's counters stood still. ``clause`` says when."""

    clause: str
    done: Done

    def completed(self, begin: float, end: float) -> int:
        """The bytes of the writes that completed in [begin, end], DUT seconds."""
        return sum(size for _, at, size in self.done if begin <= at <= end)


def stale_counters(story: Story, disk: str, ledger: Ledger) -> Uncounted | None:
    """What this ledger has if the counters of this disk stood still while it was written by it; ``None`` if they did
    not. The disk did not stand still then, whatever its counters say."""
    for run, done in _written_runs(story, disk, ledger):
        missing = _missing(run, done)
        if missing > LITTLE:
            said = f"its counters did not change from {run[0]:.2f} s to {run[-1]:.2f} s"
            return Uncounted(f"{said}, and by its ledger it completed {missing} bytes of writes meanwhile", done)
    return None


def _written_runs(story: Story, disk: str, ledger: Ledger) -> Iterator[tuple[Sequence[float], Done]]:
    """The times of consecutive samples between which the disk's counters did not change although it completed writes,
    with all its completed writes."""
    if not ledger.begun_ns or set(ledger.problems) - {CUT_OFF}:
        return
    origin = ledger.begun_ns / 1e9
    done = [
        (origin + one.issued_at, origin + one.completed_at, one.sectors * SECTOR)
        for one in ledger.writes
        if one.completed_at is not None and not one.error
    ]
    ends = sorted(end for _, end, _ in done)
    for run in _runs(story, disk, origin, _until(story, disk, ledger, origin)):
        # Most runs are those of a disk that has no write completed.
        if bisect_right(ends, run[-1]) != bisect_left(ends, run[0]):
            yield run, done


def _missing(still: Sequence[float], done: Done) -> int:
    """The bytes of writes that were issued after the first of these samples and completed before the last."""
    before = still[max(0, bisect_left(still, still[-1] - AT_ONCE) - 1)]
    return sum(size for begin, end, size in done if begin > still[0] and end <= before)


def _until(story: Story, disk: str, ledger: Ledger, origin: float) -> float:
    """Up to when both are known: a disk that is cut, or whose writes fail, counts what it did not write, and a ledger
    without its end says nothing of later writes."""
    done = [origin + one.completed_at for one in ledger.writes if one.completed_at is not None]
    failed = [origin + one.completed_at for one in ledger.writes if one.completed_at is not None and one.error]
    offs = [(cut.off.commanded_at, cut.error) for cut in story.cuts_of(disk)]
    cuts = [origin if at is None else at - error for at, error in offs if at is None or at > origin]
    return min([*failed, *cuts, max(done, default=origin)])


def _runs(story: Story, disk: str, begin: float, end: float) -> Iterator[Sequence[float]]:
    """The times of consecutive samples in (begin, end] between which the disk's written bytes did not change."""
    readings = story.readings(disk)
    inside = readings[bisect_right(readings.at, begin) : bisect_right(readings.at, end)]
    if len({part.stream.key for part in inside.parts}) != 1:
        return
    times, written = inside.at, inside.column(1)
    changes = [place for place in range(1, len(written)) if written[place] != written[place - 1]]
    for first, last in pairwise([0, *changes, len(written)]):
        if last - first > 2:
            yield times[first:last]


def _still(story: Story, run: Sequence[float]) -> Iterator[Sequence[float]]:
    """The parts of a run between which no number of any disk changed, of more than two samples."""
    changed = {run[0], float("inf")}
    for stream in story.samples.streams.values():
        seen = sorted(
            (at, stream.counters(index))
            for index, row in enumerate(stream.rows())
            if run[0] <= (at := story.samples.time(row) or 0.0) <= run[-1]
        )
        changed |= {later for (_, one), (later, two) in pairwise(seen) if one != two}
    for begin, end in pairwise(sorted(changed)):
        still = run[bisect_left(run, begin) : bisect_left(run, end)]
        if len(still) > 2:
            yield still
