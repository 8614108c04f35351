"""Is all there that the disks had promised to keep? The oracle says so, from ledgers and read-backs on record."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass, field

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.errors import Finding
from plugpull.history.events import (
    KernelMessage,
    LedgerBegun,
    LedgerEnded,
    LedgerPart,
    ReadBackBegun,
    ReadBackEnded,
    ReadBackPart,
)
from plugpull.history.reader import Story
from plugpull.integrity.decode import CUT_OFF, decode_found, decode_ledger
from plugpull.integrity.oracle import Opinion, judge
from plugpull.integrity.readback import Run
from plugpull.integrity.statistics import loss_bound
from plugpull.integrity.wrong import Damage, Wrong
from plugpull.kernel.classify import classify
from plugpull.results import BadSectors, DiskIntegrity, Integrity

SHOWN = 6
"""Wrong stretches given as evidence at most."""


class NothingLost(Check, frozen=True, tag="nothing_lost"):
    """Every sector that was stamped holds what it may hold by the rules of ``integrity/oracle.py``.

    ``None`` means every disk that was stamped, apart from those that a permanent cut took away for good. Unflushed
    writes that are gone are legal, and counted.
    """

    disks: tuple[str, ...] | None = None

    def judge(self, story: Story) -> Judgement:
        rounds = rounds_of(story)
        disks = tuple(dict.fromkeys(r.begun.disk for r in rounds)) if self.disks is None else self.disks
        gone = _gone_for_good(story) if self.disks is None else set()
        sheets = [_Sheet(disk) for disk in disks]
        for sheet in sheets:
            for one in rounds:
                if one.begun.disk == sheet.disk and not (sheet.disk in gone and not one.read_back):
                    sheet.enter(story, one)
        unknowns = [sentence for sheet in sheets for sentence in sheet.unknowns]
        unknowns += [f"{sheet.disk} was not stamped" for sheet in sheets if not sheet.rounds and sheet.disk not in gone]
        if not disks:
            unknowns.append("nothing was stamped")
        findings = tuple(finding for sheet in sheets for finding in sheet.findings)
        integrity = _integrity(sheets, story)
        return Judgement(
            findings=findings,
            unknowns=tuple(unknowns),
            worst="" if findings or unknowns else _worst(integrity),
            subject=", ".join(disks),
            integrity=integrity,
        )


def nothing_lost(disks: Disks | None = None) -> NothingLost:
    """Nothing that ``disks`` had promised to keep may be gone; by default, of every disk that was stamped."""
    return NothingLost(None if disks is None else disk_names(disks))


# --- what is on record ------------------------------------------------------------------------------------------------


@dataclass
class Round:
    """One session on one disk: written, cut or not, read back."""

    begun: LedgerBegun
    parts: list[tuple[int, bytes]] = field(default_factory=list)
    ended: LedgerEnded | None = None
    read: ReadBackBegun | None = None
    read_parts: list[tuple[int, bytes]] = field(default_factory=list)
    read_ended: ReadBackEnded | None = None
    before: tuple[Run, ...] | None = None

    @property
    def read_back(self) -> bool:
        return self.read is not None and not self.read.error

    @property
    def at(self) -> float | None:
        return self.read.at if self.read is not None else self.begun.at

    def opinion(self) -> Opinion:
        """What the oracle makes of it. The runs it found become what was there before the next round."""
        ledger, found = decode_ledger(self.parts), decode_found(self.read_parts)
        named = (self.begun.session, self.begun.run, self.begun.device)
        if (ledger.session, ledger.run, ledger.device) != named:
            ledger.problems.append("the ledger is of another session than its name says")
            ledger.session, ledger.run, ledger.device = named
        if self.ended is not None and self.ended.received != sum(len(data) for _, data in self.parts):
            ledger.problems.append("the ledger is shorter than what arrived")
        if ledger.problems == [CUT_OFF]:
            ledger.problems.append(f"at most {self.begun.bound} bytes of it are missing at its end")
        logical = self.read.logical if self.read is not None else 512
        opinion = judge(ledger, found, self.begun.extents, self.before, logical_block=logical)
        self.found = tuple(found.runs)
        return opinion

    found: tuple[Run, ...] = ()


def rounds_of(story: Story) -> list[Round]:
    """The sessions of a story, in order, each with the read-back that followed it."""
    rounds = {event.job: Round(event) for event in story.of(LedgerBegun)}
    for part in story.of(LedgerPart):
        if part.job in rounds:
            rounds[part.job].parts.append((part.offset, _bytes(part.data)))
    for end in story.of(LedgerEnded):
        if end.job in rounds:
            rounds[end.job].ended = end
    reads: dict[str, Round] = {}
    for read in story.of(ReadBackBegun):
        of = [r for r in rounds.values() if (r.begun.disk, r.begun.session) == (read.disk, read.session)]
        for one in of[-1:]:
            one.read = read
            reads[read.job] = one
    for piece in story.of(ReadBackPart):
        if piece.job in reads:
            reads[piece.job].read_parts.append((piece.offset, _bytes(piece.data)))
    for over in story.of(ReadBackEnded):
        if over.job in reads:
            reads[over.job].read_ended = over
    return list(rounds.values())


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""  # a gap, and told as one


def _gone_for_good(story: Story) -> set[str]:
    cuts = [cut for cut in story.cut_records if cut.armed.permanent]
    return {times.disk for cut in cuts for times in cut.disks if not times.returned_at}


# --- one disk ---------------------------------------------------------------------------------------------------------


class _Sheet:
    """What is gathered about one disk over all its rounds."""

    def __init__(self, disk: str) -> None:
        self.disk = disk
        self.rounds = 0
        self.lost = 0
        self.cuts = 0
        self.cuts_lost = 0
        self.findings: list[Finding] = []
        self.unknowns: list[str] = []
        self.counts: dict[str, int] = {}
        self.total = Opinion()
        self.first: Wrong | None = None
        self.worst: Wrong | None = None
        self.ledger_bytes = 0
        self.suspicious = 0
        self._last: Round | None = None

    def enter(self, story: Story, one: Round) -> None:
        self.rounds += 1
        if not one.begun.fill and self._last is not None and self._last.begun.run == one.begun.run:
            one.before = self._last.found
        self._last = one
        if one.read is None or one.read.error:
            why = one.read.error if one.read is not None else f"{self.disk} was not read back"
            self.unknowns.append(f"what was written to {self.disk} could not be compared: {why}")
            return
        opinion = one.opinion()
        mechanisms = _cut_by(story, one)
        cut = bool(mechanisms)
        if mechanisms == {"data"}:
            self.suspicious += opinion.unflushed
        self.cuts += cut
        self.cuts_lost += cut and bool(opinion.wrong)
        self.lost += bool(opinion.wrong)
        self._add(opinion)
        self.ledger_bytes += sum(len(data) for _, data in one.parts)
        if opinion.wrong:
            self.findings.append(_finding(story, one, opinion))
        if not opinion.intact and not opinion.wrong:
            self.unknowns += [f"{self.disk}: {problem}" for problem in opinion.problems or ["nothing was compared"]]

    def _add(self, opinion: Opinion) -> None:
        total = self.total
        for name in ("checked", "unjudged", "unflushed", "beyond", "writes", "flushes"):
            setattr(total, name, getattr(total, name) + getattr(opinion, name))
        for kind, sectors in opinion.counts.items():
            self.counts[kind] = self.counts.get(kind, 0) + sectors
        self.first = self.first or opinion.first
        worst = [wrong for wrong in (self.worst, opinion.worst) if wrong is not None]
        order = list(Damage)
        self.worst = min(worst, key=lambda wrong: (order.index(wrong.kind), -wrong.sectors), default=None)

    def result(self) -> DiskIntegrity:
        total = self.total
        return DiskIntegrity(
            disk=self.disk,
            rounds=self.rounds,
            rounds_lost=self.lost,
            sectors_checked=total.checked,
            sectors_unjudged=total.unjudged,
            counts=self.counts,
            unflushed=total.unflushed,
            suspicious=self.suspicious,
            writes=total.writes,
            flushes=total.flushes,
            ledger_bytes=self.ledger_bytes,
            first=None if self.first is None else _bad(self.first),
            worst=None if self.worst is None else _bad(self.worst),
        )


def _cut_by(story: Story, one: Round) -> set[str]:
    """The mechanisms by which the disk was cut between the beginning of its session and the read-back."""
    begin, end = one.begun.at or 0.0, one.at if one.at is not None else float("inf")
    cuts = [cut for cut in story.cut_records if one.begun.disk in cut.armed.victims]
    return {cut.armed.mechanism for cut in cuts if begin <= (cut.off.commanded_at or -1.0) <= end}


def _bad(wrong: Wrong) -> BadSectors:
    return BadSectors(
        kind=wrong.kind.value,
        first=wrong.first,
        sectors=wrong.sectors,
        expected=wrong.expected(),
        found=wrong.found(),
        expected_hex=wrong.expected_bytes().hex(),
        found_hex=wrong.found_bytes().hex(),
        evidence=wrong.evidence(),
    )


def _finding(story: Story, one: Round, opinion: Opinion) -> Finding:
    disk = one.begun.disk
    told = ", ".join(f"{sectors} {kind}" for kind, sectors in opinion.counts.items())
    first = opinion.first
    assert first is not None
    where = f"{first.kind.value} at sector {first.first}: expected {first.expected()}; found {first.found()}"
    evidence = [_line(wrong) for wrong in opinion.wrong[:SHOWN]]
    evidence += dict.fromkeys(said for wrong in opinion.wrong for said in wrong.evidence())
    return Finding(
        check="nothing_lost",
        subject=disk,
        summary=f"{disk} has wrong sectors ({told}), the first {where}",
        at=one.at,
        evidence=(*evidence[: 2 * SHOWN], *_resets(story, one)),
    )


def _line(wrong: Wrong) -> str:
    return f"{wrong.kind.value}, {wrong.sectors} from {wrong.first}: expected {wrong.expected()}; found {wrong.found()}"


def _resets(story: Story, one: Round) -> Iterable[str]:
    """A device that was reset may have lost its cache, and then answered a flush of which it knew nothing more."""
    until = one.at
    for message in story.of(KernelMessage):
        if message.at is None or (until is not None and message.at > until) or message.at < (one.begun.at or 0.0):
            continue
        event = classify(message.text)
        if event is None or event.kind not in ("usb.reset", "scsi.reset"):
            continue
        attachment = story.attachment_at(one.begun.disk, message.at)
        if event.subject and attachment is not None and f"/{event.subject}/" in f"{attachment.sysfs}/":
            yield f"perhaps lost in a reset: {message.at:.3f} s {message.text}"


# --- all of them ------------------------------------------------------------------------------------------------------


def _integrity(sheets: list[_Sheet], story: Story) -> Integrity:
    def total(kind: Damage) -> int:
        return sum(sheet.counts.get(kind.value, 0) for sheet in sheets)

    cuts, lost = sum(sheet.cuts for sheet in sheets), sum(sheet.cuts_lost for sheet in sheets)
    return Integrity(
        sectors_checked=sum(sheet.total.checked for sheet in sheets),
        durable_lost=total(Damage.LOST) + total(Damage.STALE) + total(Damage.ZEROED),
        stale=total(Damage.STALE),
        corrupt=total(Damage.CORRUPT),
        torn=total(Damage.TORN),
        misdirected=total(Damage.MISDIRECTED),
        foreign=total(Damage.FOREIGN),
        zeroed=total(Damage.ZEROED),
        unreadable=total(Damage.UNREADABLE),
        never_written=total(Damage.NEVER_WRITTEN),
        unflushed=sum(sheet.total.unflushed for sheet in sheets),
        cuts=cuts,
        cuts_lost=lost,
        loss_bound=loss_bound(lost, cuts) if cuts else None,
        disks=tuple(sheet.result() for sheet in sheets if sheet.rounds),
    )


def _worst(integrity: Integrity) -> str:
    legal = f"; {integrity.unflushed} unflushed sectors are gone, which is legal" if integrity.unflushed else ""
    suspicious = sum(disk.suspicious for disk in integrity.disks)
    if suspicious:
        legal += f", {suspicious} of them though the disk had kept its power"
    return f"nothing lost ({integrity.sectors_checked} sectors{legal})"
