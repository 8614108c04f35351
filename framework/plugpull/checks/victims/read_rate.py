"""Whether a disk that came back is read as fast as it was made.

A disk that came back often has no load any more, so that nobody sees its pace; but its stamped data is read back at the
end. An emulated disk has a rate, so how long it should be busy with that is known. In 25 read-backs on healthy emulated
benches disks were busy for 0.79 to 1.10 times as long as their rate allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from plugpull.checks.accusation import Accusation
from plugpull.checks.evidence import seconds
from plugpull.checks.limits import bench_kind
from plugpull.checks.starved import awake
from plugpull.checks.survivors.survivor import own_rate
from plugpull.history.events import ReadBackBegun, ReadBackEnded
from plugpull.history.story import Story

AROUND = 0.15
"""Seconds before and after a read-back from which a sample counts, so that nothing of it is left out."""
LEAST = 1 << 19
"""Bytes below which a read-back is too short to be timed."""
PIECE = 1 << 17
"""Bytes that QEMU reads at once of an emulated disk (``SCSI_DMA_BUF_SIZE`` in its hw/scsi/scsi-disk.c)."""
SLOWER = 1.8
"""How many times as long as the disk's rate allows it may be busy, or as the others were if that is more: a slow host
slows them all."""


class ReadBackPace(NamedTuple):
    """How many bytes of a disk were read back, for how many seconds the disk was busy with them, and for how many its
    rate lets it be, and its latency if it serves one request after the other."""

    moved: int
    busy: float
    due: float

    @property
    def ratio(self) -> float:
        return self.busy / self.due


def slow_reads(story: Story, disk: str) -> Iterator[Accusation]:
    """An accusation if a disk that had come back was busy much longer with its read-back than its rate allows."""
    if bench_kind(story) != "virtual" or any(one.get("disk") == disk for one in story.rig.get("defect", ())):
        return
    others = [found.ratio for begun in story.of(ReadBackBegun) if begun.disk != disk and (found := _read(story, begun))]
    limit = SLOWER * max(1.0, median(others) if others else 1.0)
    for begun in story.of(ReadBackBegun):
        found = _read(story, begun) if begun.disk == disk and _came_back(story, begun) else None
        if found is not None and found.ratio > limit:
            speed, due = found.moved / found.busy / 1e6, found.moved / found.due / 1e6
            what = f"{disk} was read at {speed:.2f} MB/s after it came back, and its rate is {due:.2f} MB/s"
            yield Accusation(
                subject=disk,
                summary=f"{what}: {found.ratio:.1f} times slower (limit {limit:.1f})",
                at=begun.at,
                evidence=(f"{found.moved} bytes kept it busy for {seconds(found.busy)}",),
            )
            return


def _read(story: Story, begun: ReadBackBegun) -> ReadBackPace | None:
    """What the kernel counted during a read-back; ``None`` if it was too short or failed, or the disk has no rate."""
    ended = next((one for one in story.of(ReadBackEnded) if one.job == begun.job), None)
    rate = own_rate(story, begun.disk)
    here = None if begun.at is None else story.attachment_at(begun.disk, begun.at)
    if not rate or here is None or begun.at is None or begun.error or begun.again:
        return None
    if ended is None or ended.at is None or ended.status != 0 or ended.stuck:
        return None
    stream = story.samples.streams.get((here.kname, here.diskseq))
    if stream is None:
        return None
    rows = [row for row in story.samples.between(begun.at - AROUND, ended.at + AROUND) if stream.has(row)]
    if not rows:
        return None
    first, last = (stream.counters(stream.index(row)) for row in (rows[0], rows[-1]))
    begin, end = (story.samples.time(row) or 0.0 for row in (rows[0], rows[-1]))
    busy = (last.busy_ms - first.busy_ms) / 1000 - (end - begin - awake(story, begin, end))
    moved = last.read_bytes - first.read_bytes
    requests = max(last.reads - first.reads, moved / PIECE)
    due = moved / rate + requests * _latency(story, begun.disk)
    return ReadBackPace(moved, busy, due) if moved >= LEAST and busy > 0 else None


def _latency(story: Story, disk: str) -> float:
    """Seconds that each request to an emulated disk takes at least."""
    found = next((one.get("latency") for one in story.rig.get("disk", ()) if one.get("name") == disk), None)
    return float(found) if isinstance(found, int | float) and found > 0 else 0.0


def _came_back(story: Story, begun: ReadBackBegun) -> bool:
    back = (cut.times(begun.disk).returned_at for cut in story.cuts_of(begun.disk))
    return any(at is not None and at <= (begun.at or 0.0) for at in back)
