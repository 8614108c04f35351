"""Whether the disks kept all promised data. The oracle decides this from ledgers and read-backs."""

from __future__ import annotations

from collections.abc import Iterable

from plugpull.checks.accusation import Accusation
from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim
from plugpull.checks.collector import Collector
from plugpull.checks.data.belief import WriteCache
from plugpull.checks.data.opinions import JudgedRound, claims_of, counted, judge_rounds
from plugpull.checks.data.power import Power
from plugpull.checks.data.stamps import Round
from plugpull.checks.raid.write_hole import hole_words
from plugpull.history.reader import Story
from plugpull.integrity.oracle.rules import Opinion
from plugpull.integrity.oracle.statistics import loss_bound
from plugpull.integrity.oracle.wrong import Damage, Wrong
from plugpull.judging.results import BadSectors, DiskIntegrity, Integrity, Measurement
from plugpull.kernel.diagnosis.story_log import log_of

SHOWN = 6
"""The most wrong ranges given as evidence."""


class NothingLost(Check, frozen=True, tag="nothing_lost"):
    """Every stamped sector has contents that the rules of ``integrity/oracle/rules.py`` allow.

    ``None`` means every stamped disk, apart from the victims of permanent cuts. Lost unflushed writes are legal, and
    counted. ``kept_while_powered`` judges what else a disk must keep that did not lose its power. What an array answers
    while more of its members lose their power than its level covers promises nothing (``array_promises.py``).
    """

    disks: tuple[str, ...] | None = None

    def judge(self, story: Story) -> Judgement:
        record = judge_rounds(story, self.disks)
        said = Collector(self, record.disks)
        said.doubt(*record.unknowns)
        if not record.disks and said.clean:
            said.doubt("nothing was stamped")
        sheets = [_Sheet(disk) for disk in record.disks]
        for sheet in sheets:
            for one in record.rounds:
                if one.round.disk == sheet.disk:
                    sheet.enter(story, one)
        for sheet in sheets:
            said.take(*sheet.accusations)
            if sheet.total.checked:
                said.measure(sheet.measurement())
        integrity = integrity_of(sheets)
        return said.judgement(
            "; ".join((_worst(sheets, integrity), *_holes(sheets))) if said.clean else "",
            integrity=integrity,
            measured=float(sum(sheet.bad for sheet in sheets)),
            limit=0.0,
            unit="sectors",
            smallest=1.0,
        )

    def claims(self, story: Story) -> Iterable[Claim]:
        return claims_of(judge_rounds(story, self.disks), "holds what it had promised to keep")


def nothing_lost(disks: Disks | None = None) -> NothingLost:
    """No promised data of ``disks`` may be lost. By default, these are all stamped disks."""
    return NothingLost(None if disks is None else disk_names(disks))


# --- one disk ---------------------------------------------------------------------------------------------------------


class _Sheet:
    """The results of one disk over all its rounds."""

    def __init__(self, disk: str) -> None:
        self.disk = disk
        self.rounds: list[JudgedRound] = []
        self.lost = 0
        self.accusations: list[Accusation] = []
        self.total = Opinion()
        self.counts: dict[str, int] = {}
        self.first: Wrong | None = None
        self.worst: Wrong | None = None
        self.suspicious = 0

    def enter(self, story: Story, one: JudgedRound) -> None:
        self.rounds.append(one)
        opinion = one.opinion
        if opinion is None:
            return
        if one.cuts and one.power is not Power.LOST:
            self.suspicious += opinion.unflushed
        self.lost += bool(opinion.wrong)
        self._add(opinion)
        if opinion.wrong:
            self.accusations.append(loss(story, one, opinion, "has wrong sectors"))

    def _add(self, opinion: Opinion) -> None:
        total = self.total
        for name in ("checked", "unjudged", "unflushed", "beyond", "in_hole", "writes", "flushes"):
            setattr(total, name, getattr(total, name) + getattr(opinion, name))
        for kind, sectors in opinion.counts.items():
            self.counts[kind] = self.counts.get(kind, 0) + sectors
        self.first = self.first or opinion.first
        worst = [wrong for wrong in (self.worst, opinion.worst) if wrong is not None]
        order = list(Damage)
        self.worst = min(worst, key=lambda wrong: (order.index(wrong.kind), -wrong.sectors), default=None)

    @property
    def bad(self) -> int:
        """The number of wrong sectors."""
        return sum(self.counts.values())

    def measurement(self) -> Measurement:
        return Measurement(
            name="bad sectors",
            subject=self.disk,
            value=float(self.bad),
            unit="sectors",
            better="down",
            n=len(self.rounds),
            parameters={"sectors checked": float(self.total.checked)},
        )

    def result(self) -> DiskIntegrity:
        total = self.total
        return DiskIntegrity(
            disk=self.disk,
            rounds=len(self.rounds),
            rounds_lost=self.lost,
            sectors_checked=total.checked,
            sectors_unjudged=total.unjudged,
            counts=self.counts,
            unflushed=total.unflushed,
            suspicious=self.suspicious,
            writes=total.writes,
            flushes=total.flushes,
            ledger_bytes=sum(len(data) for one in self.rounds for _, data in one.round.parts),
            write_cache="; ".join(dict.fromkeys(str(one.belief.write_cache) for one in self.rounds)),
            first=None if self.first is None else _bad(self.first),
            worst=None if self.worst is None else _bad(self.worst),
        )


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


def loss(story: Story, one: JudgedRound, opinion: Opinion, what: str) -> Accusation:
    """The accusation about a round whose disk has wrong sectors."""
    first = opinion.wrong[0]
    where = f"{first.kind.value} at sector {first.first}: expected {first.expected()}; found {first.found()}"
    evidence = [_line(wrong) for wrong in opinion.wrong[:SHOWN]]
    evidence += dict.fromkeys(said for wrong in opinion.wrong for said in wrong.evidence())
    return Accusation(
        subject=one.round.disk,
        summary=f"{one.round.disk} {what} ({counted(opinion)}), the first {where}",
        at=one.round.at,
        evidence=(*evidence[: 2 * SHOWN], one.promise_words(), *one.read_again(opinion), *_resets(story, one.round)),
    )


def _line(wrong: Wrong) -> str:
    return f"{wrong.kind.value}, {wrong.sectors} from {wrong.first}: expected {wrong.expected()}; found {wrong.found()}"


def _resets(story: Story, one: Round) -> Iterable[str]:
    """Resets of the device. It may have lost its cache then, and answered a flush without writing anything."""
    until = one.at
    for line in log_of(story).timed:
        if (until is not None and line.at > until) or line.at < (one.begun.at or 0.0):
            continue
        event = line.event
        if event is None or event.kind not in ("usb.reset", "scsi.reset"):
            continue
        attachment = story.attachment_at(one.disk, line.at)
        if event.subject and attachment is not None and f"/{event.subject}/" in f"{attachment.sysfs}/":
            yield f"perhaps lost in a reset: {line.at:.3f} s {line.text}"


# --- all of them ------------------------------------------------------------------------------------------------------


def integrity_of(sheets: Iterable[_Sheet]) -> Integrity:
    """The numbers over all disks."""
    sheets = list(sheets)

    def total(kind: Damage) -> int:
        return sum(sheet.counts.get(kind.value, 0) for sheet in sheets)

    rounds = [one for sheet in sheets for one in sheet.rounds if one.opinion is not None]
    cut = [one for one in rounds if one.cuts]
    trials = [one for one in cut if one.trial]
    lost = sum(one.is_wrong for one in trials)
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
        cuts=len(cut),
        cuts_lost=sum(one.is_wrong for one in cut),
        trials=len(trials),
        trials_lost=lost,
        loss_bound=loss_bound(lost, len(trials)) if trials else None,
        disks=tuple(sheet.result() for sheet in sheets if sheet.rounds),
    )


def _worst(sheets: Iterable[_Sheet], integrity: Integrity) -> str:
    """The promises, the result, and the number of cuts that could have lost something."""
    rounds = [one for sheet in sheets for one in sheet.rounds]
    counted = [f"{integrity.sectors_checked} sectors"]
    if integrity.unflushed:
        counted.append(f"{integrity.unflushed} sectors are gone that were not flushed, which is legal")
    suspicious = sum(disk.suspicious for disk in integrity.disks)
    if suspicious:
        counted.append(f"{suspicious} of them though the disk had kept its power")
    said = f"nothing lost {promises(rounds)}".rstrip()
    losses = sum(one.power is Power.LOST for one in rounds)
    if losses:
        said += f", {integrity.trials} of {losses} power losses could have lost it"
    return f"{said} ({'; '.join(counted)})"


def _holes(sheets: Iterable[_Sheet]) -> Iterable[str]:
    return (f"{sheet.disk}: {hole_words(sheet.total.in_hole)}" for sheet in sheets if sheet.total.in_hole)


def promises(rounds: Iterable[JudgedRound]) -> str:
    """The kinds of promises that were tested, such as "that was flushed"."""
    rounds = list(rounds)
    kinds = {one.belief.write_cache for one in rounds}
    words = []
    if kinds - {WriteCache.THROUGH}:
        fua = [one.belief for one in rounds if one.round.begun.fua]
        sent = "" if any(belief.fua for belief in fua) else ", which the kernel sends as flushes"
        known = any(belief.write_cache is WriteCache.BACK for belief in fua)
        words.append("that was flushed" + (f" or written with FUA{sent * known}" if fua else ""))
    if WriteCache.THROUGH in kinds:
        through = dict.fromkeys(one.round.disk for one in rounds if one.belief.write_cache is WriteCache.THROUGH)
        words.append(f"that was completed by {', '.join(through)}, said to be write-through")
    assumed = dict.fromkeys(one.round.disk for one in rounds if one.belief.write_cache is WriteCache.ASSUMED_THROUGH)
    if assumed:
        words.append(f"though the kernel assumed {', '.join(assumed)} to be write-through and sent no flush")
    return " and ".join(words)
