"""Does what was written read back?"""

from __future__ import annotations

import msgspec

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.errors import Finding
from plugpull.history.events import LoadBegun, Verified
from plugpull.history.reader import Story
from plugpull.results import Integrity

SECTOR = 512
SHOWN = 5
"""Bad extents given as evidence at most."""


class DataIntact(Check, frozen=True, tag="data_intact"):
    """Every one of ``disks`` was read back and compared, and nothing was bad.

    ``None`` means every disk that was written, apart from those that a permanent cut took away for good.
    """

    disks: tuple[str, ...] | None = None

    def judge(self, story: Story) -> Judgement:
        disks = _written(story) if self.disks is None else self.disks
        findings: list[Finding] = []
        unknowns: list[str] = []
        totals = {"sectors_checked": 0, "durable_lost": 0, "corrupt": 0, "torn": 0, "misdirected": 0}
        for disk in disks:
            checked = 0
            for event in story.of(Verified):
                if event.disk != disk:
                    continue
                checked += event.checked
                if event.error:
                    unknowns.append(f"{disk} could not be read back: {event.error}")
                if event.bad:
                    findings.append(_finding(event))
                for _, length, what in event.bad:
                    totals[_kind(what)] += -(-length // SECTOR)
            totals["sectors_checked"] += checked // SECTOR
            if not checked and not any(sentence.startswith(f"{disk} could not") for sentence in unknowns):
                unknowns.append(f"what was written to {disk} was not read back")
        if not disks:
            unknowns.append("nothing was written and nothing was read back")
        intact = "" if findings or unknowns else f"data intact ({totals['sectors_checked']} sectors)"
        return Judgement(
            findings=tuple(findings),
            unknowns=tuple(unknowns),
            worst=intact,
            subject=", ".join(disks),
            integrity=msgspec.convert(totals, Integrity),
        )


def data_intact(disks: Disks | None = None) -> DataIntact:
    """What was written to ``disks`` must read back; by default, to every disk that was written."""
    return DataIntact(None if disks is None else disk_names(disks))


def _written(story: Story) -> tuple[str, ...]:
    verified = [event.disk for event in story.of(Verified)]
    lost = {
        times.disk for cut in story.cut_records if cut.armed.permanent for times in cut.disks if not times.returned_at
    }
    loaded = [load.disk for load in story.of(LoadBegun) if "write" in load.mode or "rw" in load.mode]
    return tuple(dict.fromkeys(verified + [disk for disk in loaded if disk not in lost]))


def _finding(event: Verified) -> Finding:
    sectors = sum(-(-length // SECTOR) for _, length, _ in event.bad)
    offset, _, what = min(event.bad)
    return Finding(
        check="data_intact",
        subject=event.disk,
        summary=f"{sectors} bad sectors on {event.disk}, the first at offset {offset}: {what}",
        at=event.at,
        evidence=tuple(f"offset {offset}, {length} bytes: {what}" for offset, length, what in event.bad[:SHOWN]),
    )


def _kind(what: str) -> str:
    """The column of ``Integrity`` that a bad extent counts in, by the oracle's word for it."""
    said = what.lower()
    for word, column in (("torn", "torn"), ("misdirected", "misdirected"), ("lost", "durable_lost")):
        if word in said:
            return column
    return "durable_lost" if "stale" in said or "older" in said else "corrupt"
