"""The sampler's counters by disk of the rig."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from plugpull.history.attachments import Attachments, attached_at
from plugpull.history.counters import Counters
from plugpull.history.events import DiskAttached, Sampled


class Reading(NamedTuple):
    """One attachment's counters at ``at`` seconds."""

    at: float
    kname: str
    counters: Counters

    @property
    def diskseq(self) -> int:
        return self.counters.diskseq

    @property
    def read(self) -> int:
        """Bytes read since it was attached."""
        return self.counters.read_bytes

    @property
    def written(self) -> int:
        """Bytes written since it was attached."""
        return self.counters.written_bytes

    @property
    def moved(self) -> int:
        """Bytes read and written since it was attached."""
        return self.counters.moved


class Rate(NamedTuple):
    """Mean rates, bytes per second, over the ``seconds`` that end at ``at``."""

    at: float
    seconds: float
    read_bps: float
    write_bps: float


def readings_of(samples: Iterable[Sampled], attachments: Attachments) -> dict[str, tuple[Reading, ...]]:
    """The counters of each disk of the rig, over all its attachments, in order of time."""
    known: defaultdict[tuple[str, int], list[DiskAttached]] = defaultdict(list)
    for attachment in attachments.attached:
        known[attachment.kname, attachment.diskseq].append(attachment)
    found: defaultdict[str, list[Reading]] = defaultdict(list)
    for sample in samples:
        if sample.at is None:
            continue
        for kname, counters in sample.disks.items():
            owner = _owner(known.get((kname, counters.diskseq), ()), sample.at)
            if owner:
                found[owner].append(Reading(sample.at, kname, counters))
    return {disk: tuple(sorted(readings)) for disk, readings in found.items()}


def _owner(attachments: Sequence[DiskAttached], at: float) -> str:
    """Kernels before 5.15 have no diskseq (it is 0 then), so one key may stand for several attachments."""
    if not attachments:
        return ""
    earlier = [attachment for attachment in attachments if attached_at(attachment) <= at]
    return (earlier[-1] if earlier else attachments[0]).disk
