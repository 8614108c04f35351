"""The rounds of stamped writing on record, and why the record of a round is not reliable."""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from plugpull.checks.record.writer_ends import ended_wrongly
from plugpull.history.events import (
    LedgerBegun,
    LedgerEnded,
    LedgerPart,
    LoadBegun,
    LoadEnded,
    Phase,
    ReadBackBegun,
    ReadBackEnded,
    ReadBackPart,
    StampingOver,
    StampingPlanned,
    Verified,
)
from plugpull.history.story import Story
from plugpull.integrity.oracle.readback import SectorRun

_STAMP_JOB = re.compile(r"^stamp\d+-")
_JOB_NUMBER = re.compile(r"^(?:stamp|readback)(\d+)-")
_ON_DISKS = re.compile(r" on (\d+) disks$")


@dataclass
class ReadBack:
    """One reading of a disk after a session."""

    begun: ReadBackBegun
    parts: list[tuple[int, bytes]] = field(default_factory=list)
    ended: ReadBackEnded | None = None
    problems: list[str] = field(default_factory=list)
    others: set[str] = field(default_factory=set)
    """Other disks for which pieces of it are on record."""


@dataclass
class Round:
    """One session on one disk: written, cut or not, read back.

    ``doubts`` are reasons why nothing can be concluded from this round, ``problems`` reasons why it cannot pass; both
    are sentences without the disk's name. ``before`` is the result of the previous round, ``None`` if unknown.
    """

    begun: LedgerBegun
    parts: list[tuple[int, bytes]] = field(default_factory=list)
    ended: LedgerEnded | None = None
    reads: list[ReadBack] = field(default_factory=list)
    again: list[ReadBack] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    before: tuple[SectorRun, ...] | None = None
    arrived: list[float] = field(default_factory=list)

    @property
    def disk(self) -> str:
        return self.begun.disk

    @property
    def read(self) -> ReadBack | None:
        """The reading that counts."""
        return self.reads[-1] if self.reads else None

    @property
    def read_back(self) -> bool:
        return self.read is not None and not self.read.begun.error

    @property
    def at(self) -> float | None:
        """When it was read back, or else when it began, DUT seconds."""
        return self.read.begun.at if self.read is not None else self.begun.at


def rounds_of(story: Story) -> list[Round]:
    """The sessions of a story, in the order of their beginnings, each with the readings after it."""
    return _Assembly(story).rounds


def missing_rounds(story: Story, rounds: Iterable[Round]) -> list[str]:
    """Sentences about stamping and read-backs that other events show, and that are not on record."""
    return list(dict.fromkeys(_missing(story, list(rounds))))


# --- putting rounds together ------------------------------------------------------------------------------------------


class _Assembly:
    def __init__(self, story: Story) -> None:
        self._place = {id(event): number for number, event in enumerate(story.others)}
        begun: dict[str, Round] = {}
        for event in story.of(LedgerBegun):
            if event.job in begun:
                begun[event.job].doubts.append("its beginning is on record twice")
            else:
                begun[event.job] = Round(event)
        self._rounds = begun
        self.rounds = list(begun.values())
        self._ledgers(story)
        self._readings(story)
        for one in self.rounds:
            self._order(one)

    def _ledgers(self, story: Story) -> None:
        for part in story.of(LedgerPart):
            one = self._rounds.get(part.job)
            if one is not None:
                _take(one.parts, one.problems, part, one.disk, "ledger")
                if part.at is not None:
                    one.arrived.append(part.at)
        for end in story.of(LedgerEnded):
            one = self._rounds.get(end.job)
            if one is not None:
                if one.ended is not None:
                    one.problems.append("the end of its writer is on record twice")
                one.ended = end
        loads = {end.job: end.asked for end in story.of(LoadEnded)}
        for one in self.rounds:
            if one.ended is None:
                one.problems.append("the end of its writer is not on record")
            elif one.ended.disk != one.disk:
                one.doubts.append(f"the end of its writer is on record for {one.ended.disk}")
            elif wrong := ended_wrongly(story, one.begun, one.ended):
                one.problems.append(wrong)
            elif loads.get(one.begun.job, one.ended.asked) != one.ended.asked:
                one.problems.append("its writer and its load disagree on whether they were asked to end")

    def _readings(self, story: Story) -> None:
        reads: dict[str, ReadBack] = {}
        for event in story.of(ReadBackBegun):
            read = ReadBack(event)
            if event.job:
                if event.job in reads:
                    read.problems.append("the beginning of this read-back is on record twice")
                reads[event.job] = read
            of = self._written_before(event)
            if of is not None:
                (of.again if event.again else of.reads).append(read)
        for part in story.of(ReadBackPart):
            if part.job in reads:
                reads[part.job].others |= {part.disk} - {reads[part.job].begun.disk}
                _take(reads[part.job].parts, reads[part.job].problems, part, reads[part.job].begun.disk, "read-back")
        for over in story.of(ReadBackEnded):
            if over.job in reads:
                reads[over.job].ended = over
        for one in self.rounds:
            for read in (*one.reads, *one.again):
                _complete(read)
            if sum(not read.begun.error for read in one.reads) > 1:
                one.problems.append("it was read back twice")

    def _written_before(self, read: ReadBackBegun) -> Round | None:
        """The session of a reading: the last one with this number on the disk that began before it."""
        known = [one for one in self.rounds if (one.disk, one.begun.session) == (read.disk, read.session)]
        earlier = [one for one in known if self._place[id(one.begun)] < self._place[id(read)]]
        return earlier[-1] if earlier else None

    def _order(self, one: Round) -> None:
        """Doubts about a reading that began before its session ended, or does not cover it."""
        if one.read is None:
            return
        if one.read.others:
            one.doubts.append(f"what was read back is on record for {', '.join(sorted(one.read.others))} too")
        at = self._place[id(one.read.begun)]
        if one.ended is not None and self._place[id(one.ended)] > at:
            one.doubts.append(f"the read-back of session {one.begun.session} began before the session ended")
        if one.read_back and one.read.begun.extents != one.begun.extents:
            one.doubts.append("what was read back is not the extent that was written")


def _take(
    parts: list[tuple[int, bytes]], problems: list[str], part: LedgerPart | ReadBackPart, disk: str, stream: str
) -> None:
    """Add a piece of a stream. Pieces arrive in order, because the agent sends them through one pipe."""
    if part.disk != disk:
        problems.append(f"{stream}: a piece is on record for {part.disk}")
    if parts and part.offset < parts[-1][0]:
        problems.append(f"{stream}: the piece at offset {part.offset} is out of order")
    parts.append((part.offset, _bytes(part.data)))


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""  # reported as a gap


def _complete(read: ReadBack) -> None:
    if read.begun.error:
        return
    if read.ended is None:
        read.problems.append("the end of the read-back is not on record")
        return
    received = sum(len(data) for _, data in read.parts)
    if read.ended.received != received:
        read.problems.append(f"{read.ended.received} bytes of the read-back arrived, {received} are on record")
    if read.ended.stuck or read.ended.status != 0:
        read.problems.append(f"the read-back failed: {read.ended.why or f'status {read.ended.status}'}")


# --- rounds that are not on record ------------------------------------------------------------------------------------


def _missing(story: Story, rounds: list[Round]) -> Iterator[str]:
    yield from _orphans(story, rounds)
    yield from _numbers(story, rounds)
    yield from _planned(story, rounds)
    yield from _jobs(story)
    yield from _phases(story)


def _orphans(story: Story, rounds: list[Round]) -> Iterator[str]:
    """Events of sessions and readings without a beginning on record."""
    jobs = {one.begun.job for one in rounds}
    written = [*_jobs_of(story, LedgerPart), *_jobs_of(story, LedgerEnded)]
    loads = [*_jobs_of(story, LoadBegun), *_jobs_of(story, LoadEnded)]
    for disk, job in (*written, *(load for load in loads if _STAMP_JOB.match(load[1]))):
        if job not in jobs:
            yield f"{disk} was stamped by {job}, and the beginning of that is not on record"
    for read in story.of(ReadBackBegun):
        if not any((one.disk, one.begun.session) == (read.disk, read.session) for one in rounds):
            yield f"{read.disk} was read back after session {read.session}, which is not on record"
    readings = {read.job for read in story.of(ReadBackBegun)}
    for disk, job in (*_jobs_of(story, ReadBackPart), *_jobs_of(story, ReadBackEnded)):
        if job not in readings:
            yield f"{disk} was read back by {job}, and the beginning of that is not on record"


def _jobs_of(
    story: Story,
    kind: type[LedgerBegun | LedgerPart | LedgerEnded | LoadBegun | LoadEnded]
    | type[ReadBackBegun | ReadBackPart | ReadBackEnded],
) -> list[tuple[str, str]]:
    """(disk, job) of each event of a kind."""
    return [(event.disk, event.job) for event in story.of(kind)]


def _numbers(story: Story, rounds: list[Round]) -> Iterator[str]:
    """Gaps in the numbers of sessions, which start from 1 in a run of the writer and are the same on all disks."""
    sessions: defaultdict[int, defaultdict[int, list[Round]]] = defaultdict(lambda: defaultdict(list))
    for one in rounds:
        sessions[one.begun.run][one.begun.session].append(one)
    planned = {(plan.run, plan.session): plan.disks for plan in story.of(StampingPlanned)}
    for run, by_number in sessions.items():
        disks = dict.fromkeys(one.disk for of in by_number.values() for one in of)
        for number in range(1, max(by_number) + 1):
            of = by_number.get(number, [])
            at = min((one.begun.at for one in of if one.begun.at is not None), default=None)
            for disk in planned.get((run, number), tuple(disks)):
                if any(one.disk == disk for one in of):
                    continue
                away = at is not None and story.attachments(disk) and story.attachment_at(disk, at) is None
                if (run, number) in planned or not away:
                    yield f"session {number} of what was stamped on {disk} is not on record"


def _planned(story: Story, rounds: list[Round]) -> Iterator[str]:
    """Rounds missing from the plan. Histories have it since the agent records what is to be stamped, and how many
    sessions there were."""
    plans = story.of(StampingPlanned)
    known = {(one.begun.run, one.begun.session, one.disk) for one in rounds}
    overs = {over.run: over for over in story.of(StampingOver)}
    for plan in plans:
        for disk in plan.disks:
            if (plan.run, plan.session, disk) not in known:
                yield f"session {plan.session} of what was stamped on {disk} is not on record"
        if plan.run not in overs:
            yield f"the end of stamping {', '.join(plan.disks)} is not on record"
    announced = {(plan.run, plan.session) for plan in plans}
    for run, session, disk in sorted(known):
        if run in overs and (run, session) not in announced:
            yield f"that {disk} was to be stamped in session {session} is not on record"
    for run, over in overs.items():
        for disk in over.disks:
            last = max((one.begun.session for one in rounds if (one.begun.run, one.disk) == (run, disk)), default=0)
            if last < over.sessions.get(disk, 0):
                yield f"session {over.sessions[disk]} of what was stamped on {disk} is not on record"
            elif last and not any((read.disk, read.session) == (disk, last) for read in story.of(ReadBackBegun)):
                yield f"that {disk} was to be read back after session {last} is not on record"


def _jobs(story: Story) -> Iterator[str]:
    """Gaps in the numbers of the writer's jobs. A read-back that could not begin has a number too."""
    names = [job for _, job in (*_jobs_of(story, LedgerBegun), *_jobs_of(story, ReadBackBegun))]
    numbers = sorted({int(found[1]) for name in names if (found := _JOB_NUMBER.match(name))})
    if not numbers:
        return
    refused = sum(not read.job for read in story.of(ReadBackBegun))
    gaps = numbers[-1] - numbers[0] + 1 - len(numbers)
    if gaps > refused:
        yield f"{gaps - refused} of the {numbers[-1] - numbers[0] + 1} jobs of the writer are not on record"


def _phases(story: Story) -> Iterator[str]:
    """Loads and readings that a phase announced and that did not follow."""
    within: list[tuple[Phase, Counter[str]]] = []
    for event in story.among(Phase, LoadBegun, LedgerBegun, ReadBackBegun, Verified):
        if isinstance(event, Phase):
            within.append((event, Counter()))
        elif within and isinstance(event, LoadBegun | LedgerBegun | ReadBackBegun | Verified):
            within[-1][1]["begun" if isinstance(event, LoadBegun | LedgerBegun) else "read"] += 1
    for phase, counted in within:
        said = _ON_DISKS.search(phase.text)
        when = "" if phase.at is None else f" at {phase.at:.2f} s"
        if phase.name in ("fill", "load") and said is not None and phase is not within[-1][0]:
            absent = int(said[1]) - counted["begun"]
            if absent > _away(story, phase):
                yield f"{phase.text!r} began{when}, and that of {absent} disks is not on record"
        elif phase.name == "verify" and not counted["read"] and phase is not within[-1][0]:
            yield f"reading back began{when}, and nothing of it is on record"


def _away(story: Story, phase: Phase) -> int:
    """How many of the rig's disks were not attached when a phase began."""
    disks = [str(table.get("name")) for table in story.rig.get("disk", []) if isinstance(table, dict)]
    if phase.at is None:
        return 0
    return sum(bool(story.attachments(disk)) and story.attachment_at(disk, phase.at) is None for disk in disks)
