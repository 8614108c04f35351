"""Do a disk's counters fit each other? A request moves sectors, and a disk that is sampled was announced."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from plugpull.checks.limits import bench_kind
from plugpull.history.events import DiskStalled
from plugpull.history.samples import CounterStream
from plugpull.history.story import Story

SECTOR = 512
EMPTY = 1000
"""Requests that may be completed without a sector: 21 at most in 7,914 counters of healthy emulated disks."""
UNFINISHED = 2 << 20
"""Bytes that may be transferred before their request is completed. The kernel counts the parts of a request as they
are done: 1 MiB at most in the same counters."""
SEEN = 5
"""Samples in which a disk must be for its announcement to be missed."""
EDGE = 0.3
"""Seconds after the beginning and before the end of a stall in which a request may still be completed."""
_DIRECTIONS = (("read", 0, 2), ("wrote", 1, 3))
"""The columns of bytes and of requests of a stream (``history/counters.py``)."""
_SCSI_DISK = re.compile(r"sd[a-z]+$")


def counters_doubted(story: Story) -> Iterator[str]:
    """What the counters of an emulated DUT's disks say against themselves, a clause each."""
    if bench_kind(story) not in ("virtual", ""):
        return
    yield from _went_on(story)
    disks = {(one.kname, one.diskseq) for one in story.all_attachments}
    names = {kname for kname, _ in disks}
    for key, stream in story.samples.streams.items():
        if key in disks and len(stream):
            yield from _requests(stream)
        elif names and key[0] not in names and _SCSI_DISK.match(key[0]) and key[1] and len(stream) >= SEEN:
            yield f"{key[0]} (diskseq {key[1]}) was sampled, and no such disk was ever announced"


def _went_on(story: Story) -> Iterator[str]:
    """Disks that moved data while they stood still on request: none did in 23 stalls."""
    for event in story.of(DiskStalled):
        for begin, end in event.spans:
            moved = story.moved(event.disk, begin + EDGE, end - EDGE)
            if moved:
                yield f"{event.disk} stood still from {begin:.2f} to {end:.2f} s, and moved {moved} bytes meanwhile"
                return


def _requests(stream: CounterStream) -> Iterator[str]:
    """Requests that moved no sector, and bytes that no request moved."""
    for word, bytes_at, requests_at in _DIRECTIONS:
        moved, done = stream.columns[bytes_at].numbers, stream.columns[requests_at].numbers
        empty = (done[-1] - done[0]) - (moved[-1] - moved[0]) // SECTOR
        if empty > EMPTY and moved[-1] >= moved[0]:
            more, few = done[-1] - done[0], moved[-1] - moved[0]
            yield f"{stream.kname} {word} {few} bytes with {more} requests, which is less than a sector with each"
        if stream.only_grows and done[-1]:
            last = bisect_left(done, done[-1])
            if moved[-1] - moved[last] > UNFINISHED:
                yield f"{stream.kname} {word} {moved[-1] - moved[last]} bytes and completed no request for it"
