"""Whether written data reads back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from plugpull.checks.accusation import Accusation
from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim
from plugpull.checks.collector import Collector
from plugpull.checks.data.nothing_lost import loss
from plugpull.checks.data.opinions import JudgedRounds, claims_of, gone_for_good, judge_rounds
from plugpull.history.events import (
    LedgerBegun,
    LedgerEnded,
    LedgerPart,
    LoadBegun,
    LoadEnded,
    ReadBackBegun,
    StampingPlanned,
    Verified,
)
from plugpull.history.reader import Story
from plugpull.judging.results import Integrity

SECTOR = 512
EARLY = 0.5
"""Seconds by which a comparison may seem to precede the end of the load, because two clocks are involved."""
SHOWN = 5
"""Bad extents given as evidence at most."""


class DataIntact(Check, frozen=True, tag="data_intact"):
    """Each of ``disks`` was read back and compared, without an error.

    The oracle (``integrity/oracle/``) judges stamped data; fio compares what it wrote itself. ``None`` means every disk
    that was written, apart from the victims of permanent cuts.
    """

    disks: tuple[str, ...] | None = None

    def judge(self, story: Story) -> Judgement:
        record = _stamped(story, self.disks)
        disks = _written(story, record) if self.disks is None else self.disks
        said = Collector(self, disks)
        compared = [_compare(story, record, disk) for disk in disks]
        for one in compared:
            said.take(*one.accusations, *one.unknowns)
        said.doubt(*(record.missing if record is not None else ()))
        if not disks:
            said.doubt("nothing was written and nothing was read back")
        counts: Counter[str] = Counter()
        for one in compared:
            counts.update(one.counts)
        unpromised = [one.disk for one in compared if one.unpromised]
        besides = f"; nothing had been promised of {', '.join(unpromised)}, which lost its power" if unpromised else ""
        intact = f"data intact ({counts['sectors_checked']} sectors{besides})"
        return said.judgement(
            intact if said.clean else "",
            integrity=msgspec.convert(dict(counts), Integrity),
            measured=float(sum(bad for name, bad in counts.items() if name != "sectors_checked")),
            limit=0.0,
            unit="sectors",
            smallest=float(max((one.smallest for one in compared), default=1)),
        )

    def claims(self, story: Story) -> Iterable[Claim]:
        record = _stamped(story, self.disks)
        return () if record is None else claims_of(record, "holds what was written")


@dataclass
class _Compared:
    """The comparison of one disk. ``unpromised``: it lost its power before anything on it was durable. ``smallest`` is
    the smallest damage that the comparison could have noticed, in sectors."""

    disk: str
    accusations: list[Accusation] = field(default_factory=list)
    unknowns: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    unpromised: bool = False
    smallest: int = 1


def _stamped(story: Story, disks: tuple[str, ...] | None) -> JudgedRounds | None:
    """The rounds of stamped writing on these disks; None if there is no sign of any."""
    if not any(story.of(kind) for kind in (LedgerBegun, LedgerPart, LedgerEnded, StampingPlanned, ReadBackBegun)):
        return None
    return judge_rounds(story, disks)


def _compare(story: Story, record: JudgedRounds | None, disk: str) -> _Compared:
    made = _Compared(disk)
    for event in story.of(Verified):
        if event.disk == disk:
            _by_fio(made, event)
            made.unknowns += _too_little(story, event)
            blocks = [load.block // SECTOR for load in story.of(LoadBegun) if load.disk == disk]
            made.smallest = max(blocks, default=1)
    rounds = [one for one in record.rounds if one.round.disk == disk] if record is not None else []
    for one in rounds:
        made.unknowns += one.unknowns
        if one.opinion is None:
            continue
        made.unpromised |= one.unpromised
        made.counts["sectors_checked"] += one.opinion.checked
        for kind, sectors in one.opinion.counts.items():
            made.counts[_kind(kind)] += sectors
        if one.opinion.wrong:
            made.accusations.append(loss(story, one, one.opinion, "has wrong sectors"))
    if not rounds and (early := _too_early(story, disk)):
        made.unknowns.append(early)
    seen = made.counts["sectors_checked"] or made.unpromised
    if not seen and not made.unknowns:
        made.unknowns.append(f"what was written to {disk} was not read back")
    return made


def _too_little(story: Story, event: Verified) -> list[str]:
    """A sentence if less was compared than the load is known to have written: all that it completed, once its span, if
    it was asked to end. The blocks that a cut may have caught prove nothing and are left out (``load/load.py``)."""
    loads = [one for one in story.of(LoadBegun) if one.disk == event.disk and (one.at or 0.0) <= (event.at or 0.0)]
    end = story.load_end(loads[-1]) if loads else None
    if end is None or event.error or event.bad:
        return []
    load, due = loads[-1], loads[-1].span
    if load.mode == "write":
        due = min(end.written_bytes - end.written_bytes % load.block, load.span)
        due -= 0 if end.asked else (3 * load.depth + 2) * load.block
    if event.checked >= due:
        return []
    return [f"{event.checked} bytes of {event.disk} were compared, and {due} had been written"]


def bad_reads(story: Story, disk: str) -> list[Accusation]:
    """The errors that fio found on a disk."""
    return [_accusation(event) for event in story.of(Verified) if event.disk == disk and event.bad]


def _too_early(story: Story, disk: str) -> str:
    """Why fio's comparisons do not show the final contents of a disk, as a sentence; empty if they do."""
    read = [event.at for event in story.of(Verified) if event.disk == disk and event.at is not None]
    ends = [end.at for end in story.of(LoadEnded) if end.disk == disk and end.at is not None]
    cuts = [cut.off.commanded_at for cut in story.cut_records if disk in cut.armed.victims]
    later = max([*ends, *(at for at in cuts if at is not None)], default=None)
    if not read or later is None or max(read) >= later - EARLY:
        return ""
    return f"{disk} was read back at {max(read):.2f} s, and written or cut until {later:.2f} s"


def _by_fio(made: _Compared, event: Verified) -> None:
    made.counts["sectors_checked"] += max(0, event.checked) // SECTOR
    if event.error:
        made.unknowns.append(f"{event.disk} could not be read back: {event.error}")
    if event.bad:
        made.accusations.append(_accusation(event))
    for _, length, what in event.bad:
        made.counts[_kind(what)] += -(-length // SECTOR)


def data_intact(disks: Disks | None = None) -> DataIntact:
    """Data written to ``disks`` must read back. By default, these are all disks that were written."""
    return DataIntact(None if disks is None else disk_names(disks))


def _written(story: Story, record: JudgedRounds | None) -> tuple[str, ...]:
    verified = [event.disk for event in story.of(Verified)]
    lost = gone_for_good(story)
    loaded = [load.disk for load in story.of(LoadBegun) if "write" in load.mode or "rw" in load.mode]
    stamped = record.disks if record is not None else ()
    return tuple(dict.fromkeys([*verified, *(disk for disk in (*loaded, *stamped) if disk not in lost)]))


def _accusation(event: Verified) -> Accusation:
    sectors = sum(-(-length // SECTOR) for _, length, _ in event.bad)
    offset, _, what = min(event.bad)
    return Accusation(
        subject=event.disk,
        summary=f"{sectors} bad sectors on {event.disk}, the first at offset {offset}: {what}",
        at=event.at,
        evidence=tuple(f"offset {offset}, {length} bytes: {what}" for offset, length, what in event.bad[:SHOWN]),
    )


def _kind(what: str) -> str:
    """The field of ``Integrity`` in which a bad extent counts, by the oracle's word for it."""
    said = what.lower()
    columns = (("torn", "torn"), ("misdirected", "misdirected"), ("foreign", "foreign"), ("unreadable", "unreadable"))
    for word, column in (*columns, ("never written", "never_written"), ("lost", "durable_lost")):
        if word in said:
            return column
    return "durable_lost" if "stale" in said or "older" in said or "zeroed" in said else "corrupt"
